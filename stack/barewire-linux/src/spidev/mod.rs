//! The kernel's spidev as a [`Controller`]: any controller that has a kernel driver.
//!
//! **Experimental until it has run on a board.** Tested against a recorder of ioctls, byte for byte, and
//! under Linux 6.1 in QEMU's guests.
//!
//! Read first: the kernel's `Documentation/spi/spidev.rst` and its `spi_transfer_one_message`,
//! whose reading of the fields is meant below.
//!
//! A node is one chip select of one controller, so that [`Settings::chip_select`] is always 0
//! here, whatever the node's name. Settings become ioctls when they differ from those in force;
//! a planned message becomes *one* `SPI_IOC_MESSAGE`:
//!
//! ```no_run
//! use barewire::bus::Bus;
//! use barewire::spi::{Settings, Transfer};
//! use barewire_linux::spidev::Spidev;
//!
//! let spidev = Spidev::open("/dev/spidev0.0")?;
//! let last_error = spidev.last_error();
//! let bus = Bus::new(spidev);
//! let device = bus.device(&Settings::new(0, 10_000_000))?;
//! let mut id = [0; 3];
//! if let Err(error) = device.sync(&mut [Transfer::write(&[0x9f]), Transfer::read(&mut id)]) {
//!     // The bus knows where and the errno, spidev knows what to do about it.
//!     let why = last_error.take().map_or(error.to_string(), |why| why.to_string());
//!     eprintln!("{why}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Delays
//! spidev counts microseconds; every delay is rounded up to them, and
//! [`Effective`] reports that.
//!
//! | asked | done by |
//! |---|---|
//! | `cs_setup` | a transfer of no bytes with `delay_usecs` at the beginning, up to 65,535 µs |
//! | delay, `cs_hold` | their sum as `delay_usecs`, up to 65,535 µs |
//! | `word_delay` | `word_delay_usecs`, up to 255 µs; many kernel drivers ignore it |
//! | `cs_change` delay, `cs_inactive` at `cs_change` | up to 10 µs by the kernel, which keeps CS inactive that long; more by cutting the message there and waiting |
//! | `cs_inactive` after a message | a wait before the next message, if that comes too soon |
//!
//! The kernel's own loop honours the first two, also for a transfer without bytes. A controller
//! driver with a loop of its own, or a chip select that the controller's hardware drives around
//! its words, may not, and spidev does not tell: where lead and lag matter, let the chip select be
//! a GPIO (`cs-gpios`), or use `spi-cs-setup-delay-ns` and its kin in the device tree.
//!
//! # Length
//! A message has at most [`bufsiz`] bytes each way between two points at which CS drops, each transfer
//! rounded up to 128 bytes ([`Limits::max_message_bytes`]). A longer one is split where CS drops
//! anyway, else refused: see this crate's README.
//!
//! # Ordering
//! 1. Settings that differ, mode first: its polarity moves CS and SCK, words and clock do not.
//! 2. The rest of the last `cs_inactive`.
//! 3. The message, or its parts in order with 2 between them.
//!
//! # Errors
//! The bus returns the core's small errors: [`Error::Os`] with the kernel's errno (EIO also where
//! it counted another length than the message's), [`Error::MessageTooLong`],
//! [`Error::TooManyTransfers`], [`Error::DelayTooLong`]. The whole, with the node's name and what
//! to do about it, is in [`LastError`].
//!
//! # Not supported
//! * Which transfer failed: spidev does not say, the first of the ioctl is named.
//! * The real clock: spidev does not say. The effective one is what was asked. It may be exceeded where
//!   the controller's slowest clock is faster: below 1 kHz a message that was over too soon is an
//!   error ([`SpidevError::TooFast`]), after it was sent.
//! * Other users of the same node, who share its mode and word length: what they change between
//!   two of our messages is not seen.
//! * `try_` calls that never block: the kernel may sleep while another process has the bus.
//! * Dual and quad wires.

pub mod abi;
mod error;
mod ioctl;
mod message;
mod settings;
mod split;
#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use barewire::controller::{Controller, Limits, Program, Unfinished, plan_message};
use barewire::spi::{Effective, Error, MessageError, Settings, Transfer};
use barewire::time::{Timer, ticks_at_least};
use rustix::io::Errno;

pub use error::SpidevError;
pub use ioctl::{Ioctl, Node, Setting};
pub use message::Message;

use crate::root::{Root, number};
use crate::timer::Monotonic;
use abi::MESSAGE_TRANSFERS_MAX;
use message::{Segment, Store};
use settings::{Applied, P_SPEED, TIMER_HZ};
use split::{Load, Room};

/// What spidev allocates when nobody asked for more.
const BUFSIZ_DEFAULT: usize = 4096;
/// spidev's major number, since 2006.
const SPIDEV_MAJOR: u32 = 153;
/// Below this the clock is checked by the time that a message takes. Few controllers go so low. Not
/// higher, since an emulated controller clocks in no time.
const PACED_BELOW_HZ: u32 = 1_000;
/// Waits longer than this are slept.
const SPIN_MAX_NS: u64 = 200_000;

/// A spidev node as a controller with one chip select, number 0.
#[derive(Debug)]
pub struct Spidev<I = Node, T = Monotonic> {
    ioctl: I,
    timer: T,
    path: PathBuf,
    room: Room,
    /// What the mode had beyond what barewire sets: wires, as the device tree describes them.
    kept_mode: u32,
    applied: Applied,
    store: Store,
    /// The tick until which CS must stay inactive.
    quiet_until: Option<u64>,
    last_error: LastError,
}

/// A node's mode as it was found, written back when this is dropped: the kernel keeps it for whoever
/// uses the chip next, which may be a driver of its own.
#[derive(Debug)]
pub struct FoundMode {
    node: Node,
    mode: u32,
}

impl FoundMode {
    /// That of the node at `path`, which is opened once more. Keep it longer than the [`Spidev`].
    ///
    /// # Errors
    /// As [`Spidev::open`].
    pub fn of(path: impl AsRef<Path>) -> Result<Self, SpidevError> {
        let Spidev { ioctl: mut node, path, .. } = Spidev::open(path)?;
        let mode = node.mode32().map_err(|errno| SpidevError::Os {
            path,
            what: "asked for its mode",
            errno,
        })?;
        Ok(Self { node, mode })
    }
}

impl Drop for FoundMode {
    fn drop(&mut self) {
        if self.node.mode32() != Ok(self.mode) {
            // Nobody is left to tell of an error.
            let _ = self.node.set(Setting::Mode32(self.mode));
        }
    }
}

/// The last error of a [`Spidev`], in full; stays in reach when the controller is inside a bus.
#[derive(Clone, Debug, Default)]
pub struct LastError(Arc<Mutex<Option<SpidevError>>>);

impl LastError {
    /// The error, which is then forgotten. Take it where a call on the bus has failed.
    #[must_use]
    pub fn take(&self) -> Option<SpidevError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    #[cold]
    fn put(&self, error: SpidevError) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// The spidev nodes there are.
#[must_use]
pub fn nodes(root: &Root) -> Vec<String> {
    let names = root.names("/dev").into_iter();
    names.filter(|name| name.starts_with("spidev")).map(|name| format!("/dev/{name}")).collect()
}

/// The most bytes spidev takes each way in one message: its parameter `bufsiz`.
#[must_use]
pub fn bufsiz(root: &Root) -> usize {
    let text = root.text("/sys/module/spidev/parameters/bufsiz").ok();
    let bytes = text.and_then(|text| number(&text)).and_then(|bytes| bytes.try_into().ok());
    bytes.unwrap_or(BUFSIZ_DEFAULT)
}

/// Whether an open file is a spidev node, by its driver where sysfs says, else by its number.
fn is_spidev(root: &Root, file: &File) -> bool {
    let Ok(metadata) = file.metadata() else {
        return false;
    };
    if !metadata.file_type().is_char_device() {
        return false;
    }
    let device = metadata.rdev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    match root.link_name(format!("/sys/dev/char/{major}:{minor}/subsystem")) {
        Some(subsystem) => subsystem == "spidev",
        None => major == SPIDEV_MAJOR,
    }
}

/// Whether a message takes the time of its clocks, where those are slow. Linux's drivers clock as
/// slowly as they can when asked for less, and do not say so.
struct Pace {
    begun: u64,
    /// The least the clocks take; 0 is not checked.
    least_ns: u64,
}

impl Pace {
    fn begin(program: &Program, segments: &[Segment], timer: &mut impl Timer) -> Self {
        let speed_hz = program.regs[P_SPEED];
        if speed_hz >= PACED_BELOW_HZ {
            return Self { begun: 0, least_ns: 0 };
        }
        let least_ns = segments.iter().map(|segment| segment.clocks_ns(speed_hz)).sum();
        Self { begun: timer.now_ticks(), least_ns }
    }

    /// If the message took less than half of what it must: what it must, and what it took. Half,
    /// since a word may have nine bits in two bytes.
    fn end(self, timer: &mut impl Timer) -> Result<(), (u64, u64)> {
        if self.least_ns == 0 {
            return Ok(());
        }
        let ticks = timer.now_ticks().wrapping_sub(self.begun);
        let took_ns = ticks_ns(ticks, timer.frequency_hz());
        if took_ns < self.least_ns / 2 { Err((self.least_ns, took_ns)) } else { Ok(()) }
    }
}

/// Nanoseconds of `ticks`.
fn ticks_ns(ticks: u64, frequency_hz: u32) -> u64 {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(frequency_hz);
    u64::try_from(ns).unwrap_or(u64::MAX)
}

impl Spidev {
    /// Opens the node at `path`, on this machine.
    ///
    /// # Errors
    /// As [`Spidev::open_at`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SpidevError> {
        Self::open_at(&Root::system(), path)
    }

    /// Opens the node at `path` under `root`.
    ///
    /// # Errors
    /// * [`SpidevError::NoSuchDevice`], with those there are.
    /// * [`SpidevError::NoPermission`], with the node's group and the udev rule.
    /// * [`SpidevError::NotSpidev`] if it is another file.
    /// * [`SpidevError::Gone`] if a node was left behind by its driver.
    /// * [`SpidevError::Os`] for the rest.
    pub fn open_at(root: &Root, path: impl AsRef<Path>) -> Result<Self, SpidevError> {
        let path = path.as_ref();
        let real = root.path(path);
        // No terminal, FIFO or watchdog named by mistake shall block or take us as its owner.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        let flags = flags.bits().cast_signed();
        let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&real);
        let file = opened.map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            match errno {
                Errno::ISDIR => SpidevError::NotSpidev { path: path.to_owned() },
                _ => SpidevError::of_open(root, path, &real, errno),
            }
        })?;
        if !is_spidev(root, &file) {
            return Err(SpidevError::NotSpidev { path: path.to_owned() });
        }
        Self::new(Node::new(file), Monotonic::new(), path, bufsiz(root))
    }
}

impl<I: Ioctl, T: Timer> Spidev<I, T> {
    /// A controller on any body of ioctls; `path` is for messages to people.
    ///
    /// # Errors
    /// If the node's mode cannot be read.
    pub fn new(
        mut ioctl: I,
        timer: T,
        path: impl Into<PathBuf>,
        bufsiz: usize,
    ) -> Result<Self, SpidevError> {
        let path = path.into();
        let kept_mode = match ioctl.mode32() {
            Ok(mode) => settings::kept(mode),
            Err(errno @ (Errno::SHUTDOWN | Errno::NODEV)) => {
                return Err(SpidevError::Gone { path, errno });
            }
            Err(errno) => return Err(SpidevError::Os { path, what: "asked for its mode", errno }),
        };
        Ok(Self {
            ioctl,
            timer,
            path,
            room: Room { bufsiz },
            kept_mode,
            applied: Applied::default(),
            store: Store::default(),
            quiet_until: None,
            last_error: LastError::default(),
        })
    }

    /// A handle on the last error, to keep when the controller goes into a bus.
    #[must_use]
    pub fn last_error(&self) -> LastError {
        self.last_error.clone()
    }

    /// The last error, which is then forgotten.
    #[must_use]
    pub fn take_error(&self) -> Option<SpidevError> {
        self.last_error.take()
    }

    /// The node's name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The clock the device tree allows this chip, unless another program has set another: a
    /// default for who names none.
    ///
    /// # Errors
    /// [`SpidevError::Os`].
    pub fn max_speed_hz(&mut self) -> Result<u32, SpidevError> {
        self.ioctl.max_speed_hz().map_err(|errno| {
            let path = self.path.clone();
            SpidevError::Os { path, what: "asked for its clock", errno }
        })
    }

    /// Keeps the whole error and returns its nearest kin in the core.
    #[cold]
    fn keep(&self, whole: SpidevError, nearest: Error) -> Error {
        self.last_error.put(whole);
        nearest
    }

    #[cold]
    fn unfinished(&self, transfer_index: u32, errno: Errno, whole: SpidevError) -> Unfinished {
        self.last_error.put(whole);
        Unfinished::os(transfer_index as usize, errno.raw_os_error())
    }

    /// Checks that there is a way to send every stretch between two drops of CS.
    fn check_room(&self, program: &Program, message: &[Transfer<'_>]) -> Result<(), MessageError> {
        let selected =
            if program.cs_setup_ticks > 0 { Load::of(0, false, false) } else { Load::default() };
        let mut load = selected;
        let mut too_much_at = None;
        for (index, transfer) in message.iter().enumerate() {
            let data = transfer.data();
            load = load + Load::of(data.len(), data.tx().is_some(), data.rx().is_some());
            if !self.room.fits(load) && too_much_at.is_none() {
                too_much_at = Some(index);
            }
            if transfer.cs_change || index + 1 == message.len() {
                if let Some(first) = too_much_at {
                    return Err(MessageError::refused(self.too_much(load), first));
                }
                load = selected;
            }
        }
        Ok(())
    }

    #[cold]
    fn too_much(&self, load: Load) -> Error {
        let (bytes, bufsiz) = (load.bytes(), self.room.bufsiz);
        if bytes > bufsiz {
            let whole = SpidevError::TooLong { bytes, bufsiz };
            return self.keep(whole, Error::MessageTooLong { bytes, max_bytes: bufsiz });
        }
        let transfers = load.transfers();
        let whole = SpidevError::TooManyTransfers { transfers };
        self.keep(whole, Error::TooManyTransfers { transfers, max: MESSAGE_TRANSFERS_MAX })
    }
}

impl<I: Ioctl, T: Timer> Controller for Spidev<I, T> {
    fn limits(&self) -> Limits {
        settings::LIMITS.with_max_message_bytes(self.room.longest())
    }

    fn configure(&self, settings: &Settings) -> Result<(Program, Effective), Error> {
        settings::configure(settings, self.kept_mode).map_err(|refused| match refused.whole {
            Some(whole) => self.keep(whole, refused.nearest),
            None => refused.nearest,
        })
    }

    fn plan(&self, program: &Program, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        plan_message(program, TIMER_HZ, message, |transfer| {
            settings::check_delays(program, transfer)
                .map_err(|(whole, nearest)| self.keep(whole, nearest))?;
            Ok(transfer.speed_hz)
        })?;
        self.check_room(program, message)
    }

    fn run(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        // Step 1: settings that differ.
        if let Err((setting, errno)) = self.applied.apply(program, &mut self.ioctl) {
            let path = self.path.clone();
            let error = match errno {
                Errno::SHUTDOWN | Errno::NODEV => SpidevError::Gone { path, errno },
                _ => SpidevError::Setting { path, setting, errno },
            };
            return Err(self.unfinished(0, errno, error));
        }
        let mut recording = self.store.record(program, message);
        let (mut begin, mut actual_length) = (0, 0);
        let failed = loop {
            let segments = &recording.segments()[begin..];
            let Some(first) = segments.first() else {
                return Ok(actual_length);
            };
            let transfer_index = first.transfer_index;
            let Some(part) = self.room.first_part(segments) else {
                let bytes = Load::of_segment(&segments[0]).bytes();
                let error = SpidevError::TooLong { bytes, bufsiz: self.room.bufsiz };
                break (transfer_index, Errno::MSGSIZE, error);
            };
            let inactive_us = segments[part - 1].inactive_us;
            // Step 2: the rest of the last `cs_inactive`.
            if let Some(until) = self.quiet_until.take() {
                wait_until(&mut self.timer, until);
            }
            // Step 3: the message, or its next part.
            let pace = Pace::begin(program, &segments[..part], &mut self.timer);
            let message = recording.message(begin..begin + part);
            match self.ioctl.message(&message) {
                Ok(length) if length == message.len() => {
                    actual_length += length;
                    if let Err((least_ns, took_ns)) = pace.end(&mut self.timer) {
                        let (path, asked_hz) = (self.path.clone(), program.regs[P_SPEED]);
                        let error = SpidevError::TooFast { path, asked_hz, least_ns, took_ns };
                        break (transfer_index, Errno::INVAL, error);
                    }
                }
                Ok(actual) => {
                    let (path, expected) = (self.path.clone(), message.len());
                    let error = SpidevError::Short { path, expected, actual };
                    break (transfer_index, Errno::IO, error);
                }
                Err(errno) => {
                    let error = SpidevError::of_message(&self.path, self.room.bufsiz, errno);
                    break (transfer_index, errno, error);
                }
            }
            self.quiet_until = quiet_until(&mut self.timer, inactive_us);
            begin += part;
        };
        self.quiet_until = quiet_until(&mut self.timer, program.cs_inactive_ticks);
        // Whoever made it fail may have changed the settings too.
        self.applied = Applied::default();
        let (transfer_index, errno, error) = failed;
        Err(self.unfinished(transfer_index, errno, error))
    }

    /// The kernel keeps the controller; only what we believe of the node's settings is forgotten.
    fn reclaim(&mut self) {
        self.applied = Applied::default();
    }
}

/// The tick until which CS that has just dropped stays inactive for `us` microseconds.
fn quiet_until(timer: &mut impl Timer, us: u32) -> Option<u64> {
    (us > 0).then(|| {
        let ticks = ticks_at_least(u64::from(us) * 1000, timer.frequency_hz());
        // One more: the tick now may be partly over.
        timer.now_ticks().saturating_add(ticks.saturating_add(1))
    })
}

fn wait_until(timer: &mut impl Timer, until: u64) {
    let ticks = until.saturating_sub(timer.now_ticks());
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(timer.frequency_hz());
    if ns > u128::from(SPIN_MAX_NS) {
        timer.sleep_ns(u64::try_from(ns).unwrap_or(u64::MAX));
    }
    while timer.now_ticks() < until {
        std::hint::spin_loop();
    }
}
