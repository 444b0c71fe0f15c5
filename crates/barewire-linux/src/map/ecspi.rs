//! An ECSPI (i.MX 6, 7, 8M) with its GPIO chip selects, brought up on mapped registers.
//!
//! **Experimental until it has run under a kernel.** Tested: on a directory tree, with sparse
//! files as `/dev/mem` and `/dev/uioN`, whose bytes are what the registers would have been told.
//! Not tested: a real block, its clock, its pins.
//!
//! Read first: [`barewire::controller::ecspi`]; this crate's README, on taking a controller from
//! the kernel and on pins.
//!
//! # Ordering
//! 1. The specification is checked, and nothing is opened for a wrong one.
//! 2. A controller that a kernel driver has is refused, with the command that releases it; so is
//!    an address at which the kernel knows a device of another kind.
//! 3. Its clock gate is looked at, where the SoC is known and `/dev/mem` can be had. A closed gate
//!    is refused too: the first access would hang the machine.
//! 4. Only the pages needed are mapped: the block's, and those of the GPIO bank.
//!
//! So far ([`MappedEcspi::open`]) no register of the controller has been touched, and the caller
//! may say what [`MappedEcspi::warning`] has to say. Then, in [`MappedEcspi::start`]:
//!
//! 5. Each GPIO chip select is driven inactive, then made an output; other pins of the bank keep
//!    their values.
//! 6. The block is reset and enabled.
//!
//! ```no_run
//! use barewire::{bus::Bus, spi::Settings};
//! use barewire_linux::Root;
//! use barewire_linux::bus_text;
//! use barewire_linux::map::MappedEcspi;
//!
//! let spec = bus_text::parse_mem("0x30820000,reference-hz=80M,cs=gpio@0x30240000.9")?;
//! let mapped = MappedEcspi::open(&Root::system(), &spec)?;
//! if let Some(warning) = mapped.warning() {
//!     eprintln!("warning: {warning}");
//! }
//! let bus = Bus::new(mapped.start());
//! let device = bus.device(&Settings::new(0, 20_000_000))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Not supported
//! Chip selects that are active high, or spread over several GPIO banks; the pins'
//! functions (IOMUXC), which the boot loader or the kernel has set; the GPIO bank's clock, which
//! its kernel driver keeps; a process that has the same controller mapped at the same time and does
//! not hold the same lock.

use std::fmt;
use std::path::PathBuf;

use barewire::controller::ecspi::{Ecspi, EcspiConfig, Streaming};
use barewire::controller::gpio::{GpioBank, ImxGpio, NoGpio, Ownership};
use barewire::controller::{ALWAYS_POLL, CsLine};

use super::bound::Kind;
use super::clock::{self, ClockState, Family};
use super::{DevMem, MapError, MappedInterrupt, Uio, bound};
use crate::root::Root;
use crate::shared::{SharedError, SharedLock};
use crate::sys::MappedRegisters;
use crate::timer::Monotonic;

/// Bytes of the ECSPI's registers.
const ECSPI_LEN: u32 = 0x40;
/// Bytes of a GPIO bank's registers.
const GPIO_LEN: u32 = 0x20;
/// The block of a UIO device that is the controller: its node's first `reg`.
const UIO_CONTROLLER: u32 = 0;

/// The way to the registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// A UIO device whose first block is the controller.
    Uio {
        /// Its node, as `uio0` or `/dev/uio0`.
        device: String,
    },
    /// `/dev/mem`.
    DevMem {
        /// Where the controller's registers begin.
        address: u64,
    },
}

/// A chip select, active low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsPin {
    /// The controller's own line.
    Native {
        /// Which, 0 to 3.
        channel: u8,
    },
    /// A pin of a GPIO bank.
    Gpio {
        /// Where the bank's registers begin.
        address: u64,
        /// Which pin, 0 to 31.
        bit: u8,
    },
}

/// Where the lock lies between the processes that use a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedAt {
    /// `/run/lock/barewire-ADDRESS.lock`, by the address of the controller's registers in
    /// hexadecimal: the same through UIO and `/dev/mem`.
    Default,
    /// A file that all of them name.
    File(PathBuf),
}

/// What somebody has to know to bring an ECSPI up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EcspiSpec {
    /// The way to its registers.
    pub via: Via,
    /// Its reference clock (ECSPI_CLK_ROOT), in hertz, above zero. Nothing here can check it: half
    /// the real one makes every bus clock twice what was asked.
    pub reference_hz: u32,
    /// Its chip selects; a device names one by its index.
    pub chip_selects: [Option<CsPin>; 4],
    /// Go on where the clock gate reads closed.
    pub ignore_clock: bool,
    /// Transfers that take longer on the wire, in microseconds, wait by the UIO device's
    /// interrupt; `None`: all are polled.
    pub poll_limit_us: Option<u32>,
    /// Whether other processes use it too, and which lock they hold for that.
    pub shared: Option<SharedAt>,
}

impl EcspiSpec {
    /// The largest [`EcspiSpec::poll_limit_us`]: beyond, nanoseconds are more than 32 bits.
    pub const POLL_LIMIT_US_MAX: u32 = (ALWAYS_POLL - 1) / 1_000;
}

/// What is wrong with an [`EcspiSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// There is no chip select.
    NoChipSelect,
    /// The controller has no such line of its own.
    Channel {
        /// The line asked for.
        channel: u8,
    },
    /// A GPIO bank has no such pin.
    Pin {
        /// The pin asked for.
        bit: u8,
    },
    /// The chip selects are in two GPIO banks.
    TwoBanks {
        /// One bank's address.
        first: u64,
        /// The other's.
        second: u64,
    },
    /// The reference clock is 0 Hz.
    ReferenceHzZero,
    /// A limit to polling, and no interrupt beyond it.
    NoInterrupt,
    /// The limit to polling is longer than can be counted.
    PollLimit {
        /// The limit asked for, in microseconds.
        us: u32,
    },
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoChipSelect => {
                f.write_str("there is no chip select: name one, native0 or gpio@0xBANK.PIN")
            }
            Self::Channel { channel } => {
                write!(f, "the controller has no line {channel} of its own: they are 0 to 3")
            }
            Self::Pin { bit } => write!(f, "a GPIO bank has no pin {bit}: they are 0 to 31"),
            Self::TwoBanks { first, second } => write!(
                f,
                "the chip selects are in the GPIO banks at {first:#x} and at {second:#x}: all must be in one; open a bus for each bank, one at a time"
            ),
            Self::ReferenceHzZero => f.write_str(
                "the reference clock is 0 Hz: name what the block is clocked by (`clk_summary` in /sys/kernel/debug/clk)",
            ),
            Self::NoInterrupt => f.write_str(
                "there is a limit to polling, but /dev/mem has no interrupt to wait for beyond it: leave poll-limit-us out, or map the controller through UIO",
            ),
            Self::PollLimit { us } => write!(
                f,
                "a limit to polling of {us} µs is too long: at most {} µs, or leave it out to poll always",
                EcspiSpec::POLL_LIMIT_US_MAX
            ),
        }
    }
}

impl std::error::Error for SpecError {}

impl EcspiSpec {
    /// Whether it makes sense in itself.
    ///
    /// # Errors
    /// Every variant of [`SpecError`].
    pub fn check(&self) -> Result<(), SpecError> {
        if self.reference_hz == 0 {
            return Err(SpecError::ReferenceHzZero);
        }
        match (self.poll_limit_us, &self.via) {
            (Some(_), Via::DevMem { .. }) => return Err(SpecError::NoInterrupt),
            (Some(us), _) if us > Self::POLL_LIMIT_US_MAX => {
                return Err(SpecError::PollLimit { us });
            }
            _ => {}
        }
        let mut bank = None;
        for pin in self.chip_selects.into_iter().flatten() {
            match pin {
                CsPin::Native { channel } if channel > 3 => {
                    return Err(SpecError::Channel { channel });
                }
                CsPin::Native { .. } => {}
                CsPin::Gpio { bit, .. } if bit > 31 => return Err(SpecError::Pin { bit }),
                CsPin::Gpio { address, .. } => {
                    let first = *bank.get_or_insert(address);
                    if first != address {
                        return Err(SpecError::TwoBanks { first, second: address });
                    }
                }
            }
        }
        if self.chip_selects.iter().all(Option::is_none) {
            return Err(SpecError::NoChipSelect);
        }
        Ok(())
    }

    /// The GPIO bank of its chip selects.
    fn bank(&self) -> Option<u64> {
        self.chip_selects.iter().find_map(|pin| match pin {
            Some(CsPin::Gpio { address, .. }) => Some(*address),
            _ => None,
        })
    }

    fn config(&self) -> EcspiConfig {
        let line = |pin| match pin {
            None => CsLine::Absent,
            Some(CsPin::Native { channel }) => CsLine::Native { channel, active_high: false },
            Some(CsPin::Gpio { bit, .. }) => CsLine::Gpio { bit, active_high: false },
        };
        EcspiConfig {
            reference_hz: self.reference_hz,
            chip_selects: self.chip_selects.map(line),
            streaming: Streaming::Refill,
            poll_limit_ns: self.poll_limit_us.map_or(ALWAYS_POLL, |us| us * 1_000),
        }
    }
}

/// The bus's name, without its options: `uio:uio0`, `mem:0x30820000`.
impl fmt::Display for EcspiSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.via {
            Via::Uio { device } => write!(f, "uio:{device}"),
            Via::DevMem { address } => write!(f, "mem:{address:#x}"),
        }
    }
}

/// The GPIO bank of an ECSPI's chip selects, if it has one.
#[derive(Debug)]
pub enum CsGpio {
    /// All lines are the controller's own.
    None(NoGpio),
    /// A bank that the kernel's GPIO driver may go on using.
    Bank(ImxGpio<MappedRegisters>),
}

/// # Panics
/// On every call of [`CsGpio::None`], which a table without GPIO lines does not make.
impl GpioBank for CsGpio {
    #[inline]
    fn drive(&mut self, mask: u32, high: bool) {
        match self {
            Self::None(none) => none.drive(mask, high),
            Self::Bank(bank) => bank.drive(mask, high),
        }
    }

    fn output(&mut self, mask: u32, high: bool) {
        match self {
            Self::None(none) => none.output(mask, high),
            Self::Bank(bank) => bank.output(mask, high),
        }
    }
}

/// An ECSPI whose registers are mapped and not yet touched.
#[derive(Debug)]
pub struct MappedEcspi {
    registers: MappedRegisters,
    bank: Option<MappedRegisters>,
    interrupt: MappedInterrupt,
    clock: ClockState,
    config: EcspiConfig,
    lock: Option<LockFile>,
}

/// The lock that an ECSPI's specification asks for.
#[derive(Debug)]
struct LockFile {
    path: PathBuf,
    /// The device whose owner and rights it is to have.
    like: PathBuf,
}

impl LockFile {
    fn of(root: &Root, spec: &EcspiSpec, address: u64, device: &str) -> Option<Self> {
        let path = match spec.shared.as_ref()? {
            SharedAt::Default => root.path(format!("/run/lock/barewire-{address:x}.lock")),
            SharedAt::File(path) => root.path(path),
        };
        Some(Self { path, like: root.path(device) })
    }
}

impl MappedEcspi {
    /// Steps 1 to 4 of the module. The mapping keeps a UIO device open, and so its clock running
    /// where that depends on it, until the controller is dropped.
    ///
    /// # Errors
    /// * [`MapError::Spec`] for a specification that makes no sense.
    /// * [`MapError::OtherDevice`] if another device is at an address of `/dev/mem`.
    /// * [`MapError::Bound`], with the command that releases the controller.
    /// * [`MapError::ClockGated`], unless the specification says to ignore that.
    /// * [`MapError::NoInterrupt`] if there is a limit to polling, and the UIO device has none.
    /// * [`MapError::GpioBank`] if the bank can be had neither from the UIO device nor from
    ///   `/dev/mem`.
    /// * Whatever else [`Uio`] and [`DevMem`] say.
    pub fn open(root: &Root, spec: &EcspiSpec) -> Result<Self, MapError> {
        // 1.
        spec.check().map_err(MapError::Spec)?;
        match &spec.via {
            Via::Uio { device } => Self::through_uio(root, spec, device),
            Via::DevMem { address } => Self::through_memory(root, spec, *address),
        }
    }

    fn through_uio(root: &Root, spec: &EcspiSpec, device: &str) -> Result<Self, MapError> {
        let uio = Uio::open(root, device)?;
        let address = uio.registers_at(UIO_CONTROLLER)?;
        // 2.
        bound::refuse_if_bound(root, address)?;
        // 3. UIO needs no `/dev/mem`; whoever may read it gets to know more.
        let gate = Family::detect(root).and_then(|family| family.gate(address));
        let memory = gate.and_then(|_| DevMem::open(root).ok());
        let clock = look_at_clock(root, spec, address, memory.as_ref())?;
        // 4.
        let registers = uio.map(UIO_CONTROLLER, ECSPI_LEN)?;
        let bank = spec.bank().map(|bank| bank_beside(root, &uio, bank)).transpose()?;
        let lock = LockFile::of(root, spec, address, uio.path());
        let interrupt = match spec.poll_limit_us {
            Some(_) => MappedInterrupt::of(uio)?,
            None => MappedInterrupt::none(),
        };
        Ok(Self { registers, bank, interrupt, clock, config: spec.config(), lock })
    }

    fn through_memory(root: &Root, spec: &EcspiSpec, address: u64) -> Result<Self, MapError> {
        // 2. A mistyped address may be a watchdog's, which nobody should be told to unbind.
        bound::refuse_other_device(root, address, Kind::Spi)?;
        bound::refuse_if_bound(root, address)?;
        let memory = DevMem::open(root)?;
        // 3.
        let clock = look_at_clock(root, spec, address, Some(&memory))?;
        // 4.
        let registers = memory.map_controller(address, ECSPI_LEN)?;
        let bank = spec.bank().map(|bank| bank_in(root, &memory, bank)).transpose()?;
        let lock = LockFile::of(root, spec, address, "/dev/mem");
        let interrupt = MappedInterrupt::none();
        Ok(Self { registers, bank, interrupt, clock, config: spec.config(), lock })
    }

    /// What is known of the controller's clock.
    #[must_use]
    pub fn clock(&self) -> ClockState {
        self.clock
    }

    /// What to tell the user before [`MappedEcspi::start`].
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.clock.warning()
    }

    /// Bytes mapped: whole pages of the controller and, if there is one, of the GPIO bank.
    #[must_use]
    pub fn mapped_len(&self) -> usize {
        self.registers.mapped_len() + self.bank.as_ref().map_or(0, MappedRegisters::mapped_len)
    }

    /// The lock between processes, if the specification asks for one, with the device's owner and
    /// rights. [`MappedEcspi::start`] then belongs under it:
    /// [`ProcessShared::bring_up`](crate::shared::ProcessShared::bring_up).
    ///
    /// # Errors
    /// What [`SharedLock::open`] says.
    pub fn lock(&self) -> Result<Option<SharedLock>, SharedError> {
        let open = |lock: &LockFile| SharedLock::open(&lock.path, &lock.like);
        self.lock.as_ref().map(open).transpose()
    }

    /// Steps 5 and 6 of the module. From here on the registers are touched: where other processes
    /// use them too, under [their lock](MappedEcspi::lock).
    #[must_use]
    pub fn start(self) -> Ecspi<MappedRegisters, CsGpio, Monotonic, MappedInterrupt> {
        let gpio = match self.bank {
            Some(bank) => CsGpio::Bank(ImxGpio::new(bank, Ownership::Shared)),
            None => CsGpio::None(NoGpio),
        };
        Ecspi::new(self.registers, gpio, Monotonic::new(), self.config)
            .with_interrupt(self.interrupt)
    }
}

fn look_at_clock(
    root: &Root,
    spec: &EcspiSpec,
    address: u64,
    memory: Option<&DevMem>,
) -> Result<ClockState, MapError> {
    match clock::check(root, address, memory) {
        ClockState::Gated(gate) if !spec.ignore_clock => {
            Err(MapError::ClockGated { address, gate })
        }
        state => Ok(state),
    }
}

/// The GPIO bank at `address`: a block of the UIO device, else of `/dev/mem`.
fn bank_beside(root: &Root, uio: &Uio, address: u64) -> Result<MappedRegisters, MapError> {
    match uio.maps().iter().find(|map| map.registers_at() == address) {
        Some(map) => uio.map_shared(map.index, GPIO_LEN),
        None => {
            let bank = DevMem::open(root).and_then(|memory| bank_in(root, &memory, address));
            bank.map_err(|error| {
                let (path, error) = (uio.path().to_owned(), Box::new(error));
                MapError::GpioBank { path, address, error }
            })
        }
    }
}

fn bank_in(root: &Root, memory: &DevMem, address: u64) -> Result<MappedRegisters, MapError> {
    bound::refuse_other_device(root, address, Kind::Gpio)?;
    memory.map_shared(address, GPIO_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(chip_selects: [Option<CsPin>; 4]) -> EcspiSpec {
        let via = Via::DevMem { address: 0x3082_0000 };
        EcspiSpec {
            via,
            reference_hz: 80_000_000,
            chip_selects,
            ignore_clock: false,
            poll_limit_us: None,
            shared: None,
        }
    }

    fn gpio(address: u64, bit: u8) -> Option<CsPin> {
        Some(CsPin::Gpio { address, bit })
    }

    #[test]
    fn a_specification_is_checked_to_its_first_and_last_line() {
        let native = |channel| Some(CsPin::Native { channel });
        let check = |lines| spec(lines).check();
        assert_eq!(check([native(0), native(3), gpio(0, 0), gpio(0, 31)]), Ok(()));
        assert_eq!(check([None, None, None, native(2)]), Ok(()), "gaps are lines left out");
        assert_eq!(check([None; 4]), Err(SpecError::NoChipSelect));
        assert_eq!(check([native(4), None, None, None]), Err(SpecError::Channel { channel: 4 }));
        assert_eq!(check([None, gpio(0, 32), None, None]), Err(SpecError::Pin { bit: 32 }));
        let two = check([gpio(0x10, 1), native(0), gpio(0x20, 1), None]);
        assert_eq!(two, Err(SpecError::TwoBanks { first: 0x10, second: 0x20 }));
        let stopped = EcspiSpec { reference_hz: 0, ..spec([native(0), None, None, None]) };
        assert_eq!(stopped.check(), Err(SpecError::ReferenceHzZero));
    }

    #[test]
    fn a_limit_to_polling_needs_an_interrupt_and_has_an_end() {
        let memory = spec([Some(CsPin::Native { channel: 0 }), None, None, None]);
        let limited = |us| EcspiSpec { poll_limit_us: Some(us), ..memory.clone() };
        assert_eq!(limited(10).check(), Err(SpecError::NoInterrupt));
        let through_uio = |us| EcspiSpec { via: Via::Uio { device: "uio0".into() }, ..limited(us) };
        assert_eq!(through_uio(0).check(), Ok(()));
        assert_eq!(through_uio(0).config().poll_limit_ns, 0);
        assert_eq!(memory.config().poll_limit_ns, ALWAYS_POLL);
        let max = EcspiSpec::POLL_LIMIT_US_MAX;
        assert_eq!(through_uio(max).check(), Ok(()));
        assert_eq!(through_uio(max).config().poll_limit_ns, max * 1_000);
        let us = max + 1;
        assert_eq!(through_uio(us).check(), Err(SpecError::PollLimit { us }));
    }

    #[test]
    fn lines_keep_their_places() {
        let spec = spec([None, Some(CsPin::Native { channel: 2 }), gpio(0x3024_0000, 9), None]);
        let lines = [
            CsLine::Absent,
            CsLine::Native { channel: 2, active_high: false },
            CsLine::Gpio { bit: 9, active_high: false },
            CsLine::Absent,
        ];
        assert_eq!(spec.config().chip_selects, lines);
        assert_eq!(spec.bank(), Some(0x3024_0000));
    }
}
