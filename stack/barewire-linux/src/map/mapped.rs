//! A controller with its GPIO chip selects, brought up on mapped registers.
//!
//! **Experimental until it has run under a kernel.** Tested: on a directory tree, with sparse
//! files as `/dev/mem` and `/dev/uioN`, whose bytes are what the registers would have been told.
//! Not tested: a real block, its clock, its pins.
//!
//! Read first: the block's room here, and its driver in [`barewire::controller`]; this crate's
//! README, on taking a controller from the kernel and on pins.
//!
//! # Ordering
//! 1. The specification is checked, and nothing is opened for a wrong one.
//! 2. A controller that a kernel driver has is refused, with the command that releases it; so is
//!    one that by the device tree is another of the blocks known here, and an address of `/dev/mem`
//!    at which the kernel knows a device of another kind, or in the middle of a device's registers.
//!    From here on a [`Watch`] can tell whether the driver came back.
//! 3. Its clock is looked at, by all that [`clock`] knows. One that is off is refused, since the first
//!    access would hang the machine; one of which nobody knows is refused too, and one whose rate is
//!    not the specification's. Each can be overridden ([`MapSpec::ignore_clock`]).
//! 4. Only the pages needed are mapped: the block's, and those of the GPIO bank.
//!
//! 5. Chip selects through the kernel are requested, and lines are held of banks whose registers are to
//!    be written: see [`gpio`](crate::gpio). A bank of i.MX of which another line is in use is refused.
//!
//! So far ([`Mapped::open`]) no register of the controller and of the GPIO bank has been touched. Where
//! no block is, the first access ends the process (SIGBUS): a caller who wants to say which register
//! that was reads [`Mapped::first_reads`] in a way of its own. Then it may say what
//! [`Mapped::warnings`] has to say, for which a Raspberry Pi's bank is asked whether a pin carries SCK.
//! Then, in [`Mapped::start`]:
//!
//! 6. Each GPIO chip select is driven inactive, then made an output; other pins of the bank keep
//!    their values.
//! 7. The block is brought to its idle state by its driver.
//!
//! ```no_run
//! use barewire::{bus::Bus, spi::Settings};
//! use barewire_linux::Root;
//! use barewire_linux::bus_text;
//! use barewire_linux::map::Mapped;
//!
//! let spec = bus_text::parse_mem(
//!     "0x3f204000,controller=bcm2835,reference-hz=400M,cs=gpio@0x3f200000.8",
//! )?;
//! let mut mapped = Mapped::open(&Root::system(), &spec)?;
//! for warning in mapped.warnings() {
//!     eprintln!("warning: {warning}");
//! }
//! let watch = mapped.watch();
//! let bus = Bus::new(mapped.start());
//! let device = bus.device(&Settings::new(0, 1_000_000))?;
//! // … messages, and every 100 ms and before what they brought is believed:
//! watch.still_ours()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Not supported
//! The pins' functions, which the boot loader or the kernel has set; the GPIO bank's clock, which its
//! kernel driver keeps; a process that has the same controller mapped at the same time and does
//! not hold the same lock.

use std::cell::Cell;
use std::path::PathBuf;

use barewire::reg::Registers;

use super::block::{Block, Board, Parts};
use super::bound::Kind;
use super::clock::{self, Clock, ClockState, Family};
use super::cs::Selects;
use super::in_use::MappedBlock;
use super::text::text;
use super::{DevMem, MapError, MapSpec, MappedInterrupt, SharedAt, Uio, Via, Watch, bound};
use crate::gpio::{CharacterDevices, Kernel};
use crate::root::Root;
use crate::shared::{ChipLocks, SharedError, SharedLock};
use crate::sys::MappedRegisters;

/// The block of a UIO device that is the controller: its node's first `reg`.
const UIO_CONTROLLER: u32 = 0;

/// A controller whose registers are mapped and not yet touched.
#[derive(Debug)]
pub struct Mapped {
    block: Block,
    board: Board,
    address: u64,
    parts: Parts,
    clock: Clock,
    watch: Watch,
    /// Whether somebody has the watch, which may fail messages.
    watched: Cell<bool>,
    shared_warning: Option<String>,
    lock: Option<LockFile>,
}

/// A register of a mapped block that may be read at any time: nothing happens when it is.
#[derive(Debug)]
pub struct FirstRead<'m> {
    /// Its name in the manual.
    pub register: &'static str,
    /// Its address.
    pub address: u64,
    /// Whose it is: the controller, or the GPIO bank of a chip select.
    pub of: &'static str,
    registers: &'m mut MappedRegisters,
    offset: u32,
}

impl FirstRead<'_> {
    /// Reads it. Where nothing answers, the process gets SIGBUS, or the machine hangs.
    pub fn read(&mut self) -> u32 {
        self.registers.read(self.offset)
    }
}

/// The lock that a specification asks for.
#[derive(Debug)]
struct LockFile {
    path: PathBuf,
    /// The device whose owner and rights it is to have.
    like: PathBuf,
}

impl LockFile {
    fn of(root: &Root, spec: &MapSpec, address: u64, device: &str) -> Option<Self> {
        let path = match spec.shared.as_ref()? {
            SharedAt::Default => root.path(format!("/run/lock/barewire-{address:x}.lock")),
            SharedAt::File(path) => root.path(path),
        };
        Some(Self { path, like: root.path(device) })
    }
}

impl Mapped {
    /// Steps 1 to 5 of the module. The mapping keeps a UIO device open, and so its clock running
    /// where that depends on it, until the controller is dropped.
    ///
    /// # Errors
    /// * [`MapError::Spec`] for a specification that makes no sense.
    /// * [`MapError::OtherDevice`] if another device is at an address of `/dev/mem`,
    ///   [`MapError::NotBase`] if the address is in the middle of the right one's registers.
    /// * [`MapError::OtherBlock`] if the controller there is another block.
    /// * [`MapError::Bound`], with the command that releases the controller.
    /// * [`MapError::Clock`] if the clock is off or nobody knows, and [`MapError::ClockRate`] if it has
    ///   another rate, unless the specification says to ignore that.
    /// * [`MapError::NoInterrupt`] if there is a limit to polling, and the UIO device has none.
    /// * [`MapError::Range`] if the UIO device's block is shorter than the controller's registers.
    /// * [`MapError::GpioBank`] if the bank can be had neither from the UIO device nor from
    ///   `/dev/mem`.
    /// * [`MapError::Gpio`] if a line of the kernel cannot be had, or a bank may not be written.
    /// * Whatever else [`Uio`] and [`DevMem`] say.
    pub fn open(root: &Root, spec: &MapSpec) -> Result<Self, MapError> {
        Self::open_with(root, spec, &CharacterDevices)
    }

    /// The same with another kernel for GPIO lines: a test's.
    ///
    /// # Errors
    /// As [`Mapped::open`].
    pub fn open_with(root: &Root, spec: &MapSpec, kernel: &dyn Kernel) -> Result<Self, MapError> {
        // Step 1: check the specification.
        spec.check().map_err(MapError::Spec)?;
        match &spec.via {
            Via::Uio { device } => Self::through_uio(root, spec, kernel, device),
            Via::DevMem { address } => Self::through_memory(root, spec, kernel, *address),
        }
    }

    fn through_uio(
        root: &Root,
        spec: &MapSpec,
        kernel: &dyn Kernel,
        device: &str,
    ) -> Result<Self, MapError> {
        let uio = Uio::open(root, device)?;
        let address = uio.registers_at(UIO_CONTROLLER)?;
        let facts = spec.block.facts();
        // Step 2: refuse a controller that a kernel driver has.
        bound::refuse_other_block(root, address, spec.block)?;
        bound::refuse_if_bound(root, address, facts.registers_len)?;
        let watch = Watch::new(root, address, facts.registers_len);
        // Step 3: look at the clock. UIO needs no `/dev/mem`; whoever may read it gets to know more.
        let gate = Family::detect(root).and_then(|family| family.gate(address));
        let memory = gate.and_then(|_| DevMem::open(root).ok());
        let name = uio.path().strip_prefix("/dev/");
        let clock = look_at_clock(root, spec, address, memory.as_ref(), name)?;
        // Step 4: map the pages needed.
        let registers = uio.map(UIO_CONTROLLER, facts.registers_len)?;
        let bank = |at| bank_beside(root, &uio, spec, at);
        let selects = Selects::open(root, kernel, spec, bank)?;
        let lock = LockFile::of(root, spec, address, uio.path());
        let interrupt = match spec.poll_limit_us {
            Some(_) => MappedInterrupt::of(uio)?,
            None => MappedInterrupt::none(),
        };
        Ok(Self::of(spec, address, Parts { registers, selects, interrupt }, clock, watch, lock))
    }

    fn through_memory(
        root: &Root,
        spec: &MapSpec,
        kernel: &dyn Kernel,
        address: u64,
    ) -> Result<Self, MapError> {
        let facts = spec.block.facts();
        // Step 2: refuse what is not ours. A mistyped address may be a watchdog's, which nobody should be told to unbind.
        bound::refuse_other_device(root, address, facts.registers_len, Kind::Spi).map_err(
            |error| at_base(error, spec, |right, address| right.via = Via::DevMem { address }),
        )?;
        bound::refuse_other_block(root, address, spec.block)?;
        bound::refuse_if_bound(root, address, facts.registers_len)?;
        let watch = Watch::new(root, address, facts.registers_len);
        let memory = DevMem::open(root)?;
        // Step 3: look at the clock.
        let clock = look_at_clock(root, spec, address, Some(&memory), None)?;
        // Step 4: map the pages needed.
        let registers = memory.map_controller(address, facts.registers_len)?;
        let bank = |at| bank_in(root, &memory, spec, at);
        let selects = Selects::open(root, kernel, spec, bank)?;
        let lock = LockFile::of(root, spec, address, "/dev/mem");
        let interrupt = MappedInterrupt::none();
        Ok(Self::of(spec, address, Parts { registers, selects, interrupt }, clock, watch, lock))
    }

    fn of(
        spec: &MapSpec,
        address: u64,
        parts: Parts,
        clock: Clock,
        watch: Watch,
        lock: Option<LockFile>,
    ) -> Self {
        let written_whole = spec.block.facts().written_whole;
        let shared_warning = (spec.unsafe_shared && written_whole).then(|| {
            "the GPIO bank of a chip select is shared without protection (unsafe-shared): a write of the kernel to any other pin of it puts the chip select back to what it was when the kernel started".to_owned()
        });
        let (block, board) = (spec.block, spec.board());
        let watched = Cell::new(false);
        Self { block, board, address, parts, clock, watch, watched, shared_warning, lock }
    }

    /// One register of each mapped block, the controller's first, that tells whether a block is there.
    pub fn first_reads(&mut self) -> Vec<FirstRead<'_>> {
        let facts = self.block.facts();
        let Parts { registers, selects, .. } = &mut self.parts;
        let of_block = |registers, at: u64, of, (register, offset): (&'static str, u32)| {
            FirstRead { register, address: at + u64::from(offset), of, registers, offset }
        };
        let own = of_block(registers, self.address, "the controller", facts.first_read);
        let banks = selects.banks().map(|(at, registers)| {
            of_block(registers, at, "the GPIO bank of a chip select", facts.bank_first_read)
        });
        std::iter::once(own).chain(banks).collect()
    }

    /// Looks whether a kernel driver took the controller back, for as long as it is in use here.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.watched.set(true);
        self.watch.clone().telling(self.parts.selects.fault())
    }

    /// What is known of the controller's clock.
    #[must_use]
    pub fn clock(&self) -> ClockState {
        self.clock.state.clone()
    }

    /// What to tell the user before [`Mapped::start`]. A Raspberry Pi's GPIO bank is read for it.
    #[must_use]
    pub fn warnings(&mut self) -> Vec<String> {
        let look_at_pins = self.block.facts().pins_warning;
        let pins_warning = look_at_pins
            .zip(self.parts.selects.registers())
            .and_then(|(look, bank)| look(self.address, bank));
        let reference_hz = self.board.reference_hz;
        let rate = self.clock.rate.as_ref().filter(|rate| !rate.is(reference_hz));
        let rate_warning = rate.map(|rate| {
            let clock::Rate { name, hz } = rate;
            format!("the controller's reference clock is {hz} Hz by the kernel ({name}), not {reference_hz} Hz: every bus clock is wrong by that much")
        });
        let shared_warning = self.shared_warning.clone();
        let clock_warning = self.clock.state.warning();
        let all = [clock_warning, rate_warning, pins_warning, shared_warning];
        all.into_iter().flatten().collect()
    }

    /// Bytes mapped: whole pages of the controller and, if there is one, of the GPIO bank.
    #[must_use]
    pub fn mapped_len(&self) -> usize {
        let Parts { registers, selects, .. } = &self.parts;
        registers.mapped_len() + selects.mapped_len()
    }

    /// The lock between processes, if the specification asks for one, with the device's owner and
    /// rights. [`Mapped::start`] then belongs under it:
    /// [`ProcessShared::bring_up`](crate::shared::ProcessShared::bring_up).
    ///
    /// # Errors
    /// What [`SharedLock::open`] says.
    pub fn lock(&self) -> Result<Option<SharedLock>, SharedError> {
        let open = |lock: &LockFile| SharedLock::open(&lock.path, &lock.like);
        self.lock.as_ref().map(open).transpose()
    }

    /// Where the locks of the controller's chips are, if several processes use it.
    #[must_use]
    pub fn chip_locks(&self) -> Option<ChipLocks> {
        self.lock.as_ref().map(|LockFile { path, like }| ChipLocks::Beside {
            lock: path.clone(),
            like: like.clone(),
        })
    }

    pub(super) fn block(&self) -> Block {
        self.block
    }

    /// Steps 6 and 7, by the function of the block's module.
    pub(super) fn start_by<C>(self, start: fn(Parts, Board) -> C) -> MappedBlock<C> {
        let Self { board, parts, watched, .. } = self;
        let fault = parts.selects.fault();
        // Edges of registers cannot fail, and without a watch nothing else is told.
        let fallible = watched.get() || !parts.selects.is_one_bank();
        MappedBlock::new(start(parts, board), fault, fallible)
    }
}

fn look_at_clock(
    root: &Root,
    spec: &MapSpec,
    address: u64,
    memory: Option<&DevMem>,
    uio: Option<&str>,
) -> Result<Clock, MapError> {
    let clock = clock::examine(root, spec.block, address, memory, uio);
    if spec.ignore_clock {
        return Ok(clock);
    }
    let mut right = spec.clone();
    let other = clock.rate.as_ref().filter(|rate| !rate.is(spec.reference_hz));
    if let Some(hz) = other.and_then(|rate| u32::try_from(rate.hz).ok()) {
        right.reference_hz = hz;
    }
    if clock.state.is_off() || clock.state == ClockState::Unknown {
        right.ignore_clock = true;
        let (state, remedy) = (clock.state, text(&right));
        return Err(MapError::Clock { address, state, remedy });
    }
    match other {
        None => Ok(clock),
        Some(rate) => {
            let (rate, remedy) = (rate.clone(), text(&right));
            let reference_hz = spec.reference_hz;
            Err(MapError::ClockRate { address, rate, reference_hz, remedy })
        }
    }
}

/// Says in an error about an address inside a device what to write instead: `spec`, to which `mend` gives
/// the address where the device begins.
fn at_base(error: MapError, spec: &MapSpec, mend: impl FnOnce(&mut MapSpec, u64)) -> MapError {
    let MapError::NotBase { address, device, kind, .. } = error else { return error };
    let mut right = spec.clone();
    mend(&mut right, device.address);
    MapError::NotBase { address, device, kind, remedy: Some(text(&right)) }
}

/// The GPIO bank at `address`: a block of the UIO device, else of `/dev/mem`.
fn bank_beside(
    root: &Root,
    uio: &Uio,
    spec: &MapSpec,
    address: u64,
) -> Result<MappedRegisters, MapError> {
    match uio.maps().iter().find(|map| map.registers_at() == address) {
        Some(map) => uio.map_shared(map.index, spec.block.facts().bank_len),
        None => {
            let bank = DevMem::open(root).and_then(|memory| bank_in(root, &memory, spec, address));
            bank.map_err(|error| {
                let (path, error) = (uio.path().to_owned(), Box::new(error));
                match *error {
                    MapError::NotBase { .. } => *error,
                    _ => MapError::GpioBank { path, address, error },
                }
            })
        }
    }
}

fn bank_in(
    root: &Root,
    memory: &DevMem,
    spec: &MapSpec,
    address: u64,
) -> Result<MappedRegisters, MapError> {
    let len = spec.block.facts().bank_len;
    bound::refuse_other_device(root, address, len, Kind::Gpio)
        .map_err(|error| at_base(error, spec, |right, base| right.move_bank(address, base)))?;
    memory.map_shared(address, len)
}
