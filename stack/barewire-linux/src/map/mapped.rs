//! A controller with its GPIO chip selects, brought up on mapped registers.
//!
//! **Experimental until it has run on a board.** Tested: under Linux 6.1 in QEMU's guests, and on a
//! directory tree, with sparse files as `/dev/mem` and `/dev/uioN`, whose bytes show what was written
//! to the registers. Not tested: a real block, its clock, its pins.
//!
//! Read first: the block's module here, and its driver in [`barewire::controller`]; this crate's
//! README, on taking a controller from the kernel and on pins.
//!
//! # Ordering
//! 1. Check the specification; nothing is opened for an invalid one. The kernel module's device is asked what it is
//!    ([`Via::Door`]), and the whole checked; steps 2 and 3 are then the kernel's.
//! 2. Refuse a controller to which a kernel driver is bound, with the command that unbinds it. Also
//!    refuse a controller that is another of the supported blocks according to the device tree, and
//!    an address of `/dev/mem`, of the controller or of a GPIO bank, that is not the first of an enabled node of its kind
//!    ([`bound`]; [`MapSpec::nodes`] overrides that). From here on a [`Watch`] can notice whether the driver came back.
//! 3. Examine its clock, by all evidence of [`clock`]. Refuse a clock that is off, because the
//!    first access would hang the machine; a clock of unknown state; and a clock whose rate is not
//!    the specification's. Each can be overridden ([`MapSpec::ignore_clock`]).
//! 4. Open the lock between processes: beside others, or alone; then take the kernel module's device. From here on other openers see this one. Refuse a
//!    controller that a process has mapped without the lock, as far as `/proc` shows it.
//! 5. Map only the pages needed: the block's, and those of the GPIO bank.
//! 6. Request chip selects through the kernel, and hold lines of banks whose registers will be
//!    written: see [`gpio`](crate::gpio). A bank of i.MX is refused if another of its lines is in
//!    use.
//!
//! Up to here ([`Mapped::open`]) no register of the controller or the GPIO bank is accessed. If
//! there is no block at the address, the first access ends the process (SIGBUS). A caller that
//! wants to report which register that was reads [`Mapped::first_reads`] first. Then it may print
//! [`Mapped::warnings`]; on a Raspberry Pi they read the GPIO bank, to see whether a pin carries
//! SCK. Then [`Mapped::start`]:
//!
//! 7. Drives each GPIO chip select inactive, then makes it an output; other pins of the bank keep
//!    their values.
//! 8. Lets the block's driver bring it to its idle state.
//!
//! ```no_run
//! use barewire::{bus::Bus, spi::Settings};
//! use barewire_linux::Root;
//! use barewire_linux::bus_text;
//! use barewire_linux::map::Mapped;
//!
//! let spec = bus_text::parse_mem(
//!     "0x3f204000,controller=bcm2835,reference-hz=400M,cs=gpio@0x3f200000.8,exclusive",
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
//! The pins' functions: the boot loader or the kernel must have set them. The GPIO bank's clock:
//! its kernel driver keeps it on. A process that maps the controller later without the lock: see
//! `stranger.rs`.

use std::cell::Cell;

use barewire::reg::Registers;

use super::block::Block;
use super::bound::Kind;
use super::clock::{self, Clock, ClockState, Family};
use super::cs::Selects;
use super::door::{Claim, Door};
use super::facts::{Board, Parts};
use super::stranger::Search;
use super::text::text;
use super::{CsPin, DevMem, LockAt, MapError, MapSpec, MappedInterrupt, Uio, Via, Watch, bound};
use crate::gpio::{CharacterDevices, Kernel};
use crate::root::Root;
use crate::shared::{ChipLocks, SharedLock};
use crate::soc::DOOR_DRIVER;
use crate::sys::MappedRegisters;

/// The map of a UIO device that is the controller: its node's first `reg`.
const UIO_CONTROLLER: u32 = 0;

/// A controller whose registers are mapped but not yet accessed.
#[derive(Debug)]
pub struct Mapped {
    pub(super) block: Block,
    pub(super) board: Board,
    chip_selects: [Option<CsPin>; 4],
    address: u64,
    pub(super) parts: Parts,
    clock: Clock,
    watch: Watch,
    /// Whether a watch was made, which may fail messages.
    pub(super) watched: Cell<bool>,
    shared_warning: Option<String>,
    /// `None` after the lock was taken.
    pub(super) lock: Option<SharedLock>,
    /// `None` if the bus is exclusive.
    pub(super) chips: Option<ChipLocks>,
}

/// A register of a mapped block that may be read at any time without an effect.
#[derive(Debug)]
pub struct FirstRead<'m> {
    /// Its name in the manual.
    pub register: &'static str,
    /// Its address.
    pub address: u64,
    /// The block it belongs to: the controller, or the GPIO bank of a chip select.
    pub of: &'static str,
    registers: &'m mut MappedRegisters,
    offset: u32,
}

impl FirstRead<'_> {
    /// Reads it. If nothing answers, the process gets SIGBUS, or the machine hangs.
    pub fn read(&mut self) -> u32 {
        self.registers.read(self.offset)
    }
}

/// The file through which registers are mapped.
enum Access {
    /// The kernel module's device, and no other.
    Door(Claim),
    /// A UIO device; `/dev/mem` too, if it is of use and may be opened.
    Uio(Uio, Option<DevMem>),
    Memory(DevMem),
}

/// Step 4. The lock gets the owner and permissions of `device`.
fn open_lock(
    root: &Root,
    spec: &MapSpec,
    address: u64,
    device: &str,
) -> Result<(SharedLock, Option<ChipLocks>), MapError> {
    let path = match &spec.lock {
        LockAt::Default => root.path(format!("/run/lock/barewire-{address:x}.lock")),
        LockAt::File(path) => root.path(path),
    };
    let like = root.path(device);
    let opened = match spec.exclusive {
        true => SharedLock::open_exclusive(&path, &like),
        false => SharedLock::open(&path, &like),
    };
    let lock = opened.map_err(MapError::Lock)?;
    Ok((lock, (!spec.exclusive).then_some(ChipLocks::Beside { lock: path, like })))
}

impl Mapped {
    /// Steps 1 to 6 of the module. A UIO device stays open, and its clock running if that depends
    /// on it, until the controller is dropped.
    ///
    /// # Errors
    /// * [`MapError::Spec`] for an invalid specification.
    /// * [`MapError::OtherDevice`] if another device is at an address of `/dev/mem`,
    ///   [`MapError::NotBase`] if the address is within the right one's registers.
    /// * [`MapError::OtherNode`] if the device tree gives an address of `/dev/mem` to another node, to one that is
    ///   disabled or a target, or to none, unless the specification names it ([`MapSpec::nodes`]).
    /// * [`MapError::OtherBlock`] if the controller there is another block.
    /// * [`MapError::Bound`], with the command that unbinds the kernel driver.
    /// * [`MapError::Clock`] if the clock is off or its state unknown, and [`MapError::ClockRate`]
    ///   if it has another rate, unless the specification ignores that.
    /// * [`MapError::NoInterrupt`] if the specification limits polling, and the UIO device has no
    ///   interrupt.
    /// * [`MapError::Range`] if the UIO device's map is shorter than the controller's registers.
    /// * [`MapError::GpioBank`] if neither the UIO device nor `/dev/mem` provides the bank.
    /// * [`MapError::Gpio`] if a line of the kernel cannot be requested, or a bank may not be
    ///   written.
    /// * [`MapError::Lock`] if the lock cannot be opened, another process holds the bus exclusively, or
    ///   this one wants it exclusively and others use it.
    /// * [`MapError::Stranger`] if a process uses the controller without the lock.
    /// * [`MapError::Taken`], [`MapError::SharedPage`], [`MapError::UnknownBlock`] of the kernel module's device.
    /// * Other errors of [`Uio`] and [`DevMem`].
    pub fn open(root: &Root, spec: &MapSpec) -> Result<Self, MapError> {
        Self::open_with(root, spec, &CharacterDevices)
    }

    /// As [`Mapped::open`], for a controller that a related process, such as the parent, has open
    /// already. That process searched for users without the lock; this one skips the search, which
    /// takes milliseconds.
    ///
    /// # Errors
    /// As [`Mapped::open`], without [`MapError::Stranger`].
    pub fn join(root: &Root, spec: &MapSpec) -> Result<Self, MapError> {
        Self::opened(root, spec, &CharacterDevices, false)
    }

    /// [`Mapped::open`] with another implementation of the kernel's GPIO lines, for tests.
    ///
    /// # Errors
    /// As [`Mapped::open`].
    pub fn open_with(root: &Root, spec: &MapSpec, kernel: &dyn Kernel) -> Result<Self, MapError> {
        Self::opened(root, spec, kernel, true)
    }

    fn opened(
        root: &Root,
        spec: &MapSpec,
        kernel: &dyn Kernel,
        searches: bool,
    ) -> Result<Self, MapError> {
        // Step 1: check the specification.
        spec.check().map_err(MapError::Spec)?;
        let door = match &spec.via {
            Via::Door { device } => Some(Door::ask(root, device)?),
            _ => None,
        };
        let completed = door.as_ref().map(|door| door.complete(spec)).transpose();
        let completed = completed.map_err(MapError::Spec)?;
        let spec = completed.as_ref().unwrap_or(spec);
        let facts = spec.block.facts();
        let own = door.is_some().then_some(DOOR_DRIVER);
        let (uio, address) = match &spec.via {
            Via::Door { .. } => (None, door.as_ref().map_or(0, Door::registers_at)),
            Via::Uio { device } => {
                let uio = Uio::open(root, device)?;
                let address = uio.registers_at(UIO_CONTROLLER)?;
                (Some(uio), address)
            }
            Via::DevMem { address } => (None, *address),
        };
        // Step 2: refuse other devices first. A mistyped address may be a watchdog's, and no user
        // should be told to unbind that.
        match &uio {
            // The module is bound to it.
            None if door.is_some() => {}
            Some(_) => bound::refuse_other_block(root, address, spec.block)?,
            None => {
                let wrong = bound::refuse_wrong_address(root, spec, address, Kind::Spi);
                let right = |it: &mut MapSpec, address| it.via = Via::DevMem { address };
                wrong.map_err(|error| at_base(error, spec, right))?;
            }
        }
        bound::refuse_rivals(root, address, facts.registers_len, own)?;
        let watch = Watch::new(root, address, facts.registers_len).beside(own);
        // Step 3: examine the clock. UIO does not need `/dev/mem`, but with it more is known.
        let access = match (uio, &door) {
            (None, None) => Some(Access::Memory(DevMem::open(root)?)),
            (Some(uio), _) => {
                let gate = Family::detect(root).and_then(|family| family.gate(address));
                Some(Access::Uio(uio, gate.and_then(|_| DevMem::open(root).ok())))
            }
            // Taken below, behind the lock.
            (None, Some(_)) => None,
        };
        let clock = match &access {
            Some(access) => look_at_clock(root, spec, address, access)?,
            None => Clock { state: ClockState::Held, rate: None },
        };
        // Step 4: open the lock. If UIO has the controller too, its users may open the same one.
        let path = match (&access, &door) {
            (_, Some(door)) => Some(door.path().to_owned()),
            (Some(Access::Uio(uio, _)), _) => Some(uio.path().to_owned()),
            _ => Uio::find(root, address),
        };
        let device = path.as_deref().unwrap_or("/dev/mem");
        let (lock, chips) = open_lock(root, spec, address, device)?;
        let access = match (access, &door) {
            (Some(access), _) => access,
            (None, Some(door)) => Access::Door(door.claim(root, spec)?),
            (None, None) => unreachable!("one of the two is there"),
        };
        // The kernel gives a door to one program alone.
        let searches = searches && !(door.is_some() && spec.exclusive);
        let search = searches.then(|| Search::new(root, address, path.clone(), &lock));
        search.as_ref().map_or(Ok(()), Search::refuse)?;
        // Step 5: map the pages needed.
        let registers = match &access {
            Access::Door(claim) => claim.map(facts.registers_len)?,
            Access::Uio(uio, _) => uio.map(UIO_CONTROLLER, facts.registers_len)?,
            Access::Memory(memory) => memory.map_controller(address, facts.registers_len)?,
        };
        // Step 6, and the banks' pages: request and hold lines.
        let lines = match &access {
            Access::Door(claim) => Some(claim.lines(&spec.chip_selects)),
            _ => None,
        };
        let map = |at| map_bank(root, spec, &access, at);
        let selects = Selects::open(root, kernel, spec, lines, map)?;
        let interrupt = match access {
            Access::Door(claim) if spec.poll_limit_us.is_some() => claim.interrupt()?,
            Access::Uio(uio, _) if spec.poll_limit_us.is_some() => MappedInterrupt::of(uio)?,
            _ => MappedInterrupt::none(),
        };
        let parts = Parts { registers, selects, interrupt };
        let shared_warning = (spec.unsafe_shared && facts.written_whole).then(|| {
            "the GPIO bank of a chip select is shared without protection (unsafe-shared): a write of the kernel to any other pin of it puts the chip select back to what it was when the kernel started".to_owned()
        });
        let watch = watch.searching(search).locked_by(lock.lock_file().map_err(MapError::Lock)?);
        let mut board = spec.board();
        board.d0_sends = door.is_some_and(|door| door.d0_sends());
        let (block, chip_selects) = (spec.block, spec.chip_selects.clone());
        let (watched, lock) = (Cell::new(false), Some(lock));
        Ok(Self {
            block,
            board,
            chip_selects,
            address,
            parts,
            clock,
            watch,
            watched,
            shared_warning,
            lock,
            chips,
        })
    }

    /// One register of each mapped block, the controller's first; reading it shows whether a block
    /// is there.
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

    /// The controller's registers, and those of the first GPIO bank that it writes itself: to time
    /// [`Harmless`](super::Harmless) accesses before [`Mapped::start`].
    #[must_use]
    pub fn to_time(&mut self) -> (&mut MappedRegisters, Option<&mut MappedRegisters>) {
        (&mut self.parts.registers, self.parts.selects.registers())
    }

    /// A watch that notices whether a kernel driver was bound to the controller while it is in use
    /// here.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.watched.set(true);
        self.watch.clone().telling(self.parts.selects.fault())
    }

    /// A watch that fails no message, and so costs no message anything: ask it at the end.
    #[must_use]
    pub fn silent_watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Its chip selects, by number: the specification's, or those that the kernel told.
    #[must_use]
    pub fn chip_selects(&self) -> &[Option<CsPin>; 4] {
        &self.chip_selects
    }

    /// The state of the controller's clock.
    #[must_use]
    pub fn clock(&self) -> ClockState {
        self.clock.state.clone()
    }

    /// The warnings to print before [`Mapped::start`]. Reads a Raspberry Pi's GPIO bank.
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

    /// The mapped length in bytes: whole pages of the controller and of GPIO banks.
    #[must_use]
    pub fn mapped_len(&self) -> usize {
        let Parts { registers, selects, .. } = &self.parts;
        registers.mapped_len() + selects.mapped_len()
    }

    /// Takes the lock that each message must hold; `None` if the bus is [exclusive](MapSpec::exclusive). Call
    /// [`Mapped::start`] while holding it:
    /// [`ProcessShared::bring_up`](crate::shared::ProcessShared::bring_up).
    #[must_use]
    pub fn take_lock(&mut self) -> Option<SharedLock> {
        self.lock.take_if(|_| self.chips.is_some())
    }

    /// Where the locks of the controller's chips are, if several processes use it.
    #[must_use]
    pub fn chip_locks(&self) -> Option<ChipLocks> {
        self.chips.clone()
    }
}

/// Step 3.
fn look_at_clock(
    root: &Root,
    spec: &MapSpec,
    address: u64,
    access: &Access,
) -> Result<Clock, MapError> {
    let (memory, uio) = match access {
        Access::Door(_) => (None, None),
        Access::Uio(uio, memory) => (memory.as_ref(), uio.path().strip_prefix("/dev/")),
        Access::Memory(memory) => (Some(memory), None),
    };
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

/// Completes an error about an address within a device, or of a device on another bus: it then says which bus to use instead.
/// `mend` sets the device's first address in a copy of `spec`.
fn at_base(error: MapError, spec: &MapSpec, mend: impl FnOnce(&mut MapSpec, u64)) -> MapError {
    let (MapError::NotBase { device, .. } | MapError::BusAddress { device, .. }) = &error else {
        return error;
    };
    let mut right = spec.clone();
    mend(&mut right, device.address);
    let remedy = Some(text(&right));
    match error {
        MapError::NotBase { address, device, kind, .. } => {
            MapError::NotBase { address, device, kind, remedy }
        }
        MapError::BusAddress { address, device, .. } => {
            MapError::BusAddress { address, device, remedy }
        }
        other => other,
    }
}

/// Step 5. The GPIO bank at `address`: a map of the UIO device, or else of `/dev/mem`.
fn map_bank(
    root: &Root,
    spec: &MapSpec,
    access: &Access,
    address: u64,
) -> Result<MappedRegisters, MapError> {
    let len = spec.block.facts().bank_len;
    let uio = match access {
        Access::Memory(memory) => return map_bank_in(root, spec, memory, address, len),
        Access::Door(_) => return map_bank_in(root, spec, &DevMem::open(root)?, address, len),
        Access::Uio(uio, _) => uio,
    };
    if let Some(map) = uio.maps().iter().find(|map| map.registers_at() == address) {
        return uio.map_shared(map.index, len);
    }
    let bank = DevMem::open(root).and_then(|memory| map_bank_in(root, spec, &memory, address, len));
    bank.map_err(|error| match error {
        MapError::NotBase { .. } | MapError::BusAddress { .. } | MapError::OtherNode { .. } => {
            error
        }
        error => {
            let (path, error) = (uio.path().to_owned(), Box::new(error));
            MapError::GpioBank { path, address, error }
        }
    })
}

fn map_bank_in(
    root: &Root,
    spec: &MapSpec,
    memory: &DevMem,
    address: u64,
    len: u32,
) -> Result<MappedRegisters, MapError> {
    bound::refuse_wrong_address(root, spec, address, Kind::Gpio)
        .map_err(|error| at_base(error, spec, |right, base| right.move_bank(address, base)))?;
    memory.map_shared(address, len).map_err(|error| match error {
        // The kernel's driver of the bank has claimed it, and offers its lines.
        MapError::RangeNotPermitted { address, claimed_by, .. } => {
            let remedy = Some(text(&spec.with_lines_of_the_kernel()));
            MapError::RangeNotPermitted { address, claimed_by, remedy }
        }
        error => error,
    })
}
