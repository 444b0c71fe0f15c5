//! The kernel's spidev as a [`Controller`]: for any controller with a kernel driver.
//!
//! **Experimental until it has run on a board.** Tested against a recorder of ioctls, byte for byte, and
//! under Linux 6.1 in QEMU's guests.
//!
//! Read first: the kernel's `Documentation/spi/spidev.rst` and its `spi_transfer_one_message`,
//! which defines what the fields below mean.
//!
//! A node is one chip select of one controller. So [`Settings::chip_select`] is always 0 here,
//! whatever the node's name. Settings become ioctls when they differ from those in force. A planned
//! message becomes *one* `SPI_IOC_MESSAGE`:
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
//!     // The bus's error says where and which errno; spidev's says what to do about it.
//!     let why = last_error.take().map_or(error.to_string(), |why| why.to_string());
//!     eprintln!("{why}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Delays
//! spidev counts microseconds. Every delay is rounded up to them, and [`Effective`] reports the
//! result.
//!
//! | delay | how it is made |
//! |---|---|
//! | `cs_setup` | by a transfer without bytes at the beginning, with `delay_usecs`, up to 65,535 µs |
//! | delay, `cs_hold` | by `delay_usecs`, as their sum, up to 65,535 µs |
//! | `word_delay` | by `word_delay_usecs`, up to 255 µs; many kernel drivers ignore it |
//! | `cs_change` delay, `cs_inactive` at `cs_change` | up to 10 µs by the kernel, which always keeps CS inactive that long; longer ones by splitting the message there and waiting |
//! | `cs_inactive` after a message | by waiting before the next message, if that comes too early |
//!
//! The kernel's own loop makes the first two, even for a transfer without bytes. A controller
//! driver with its own loop may not, and neither may a chip select that the controller's hardware
//! drives; spidev does not report it. Where these delays matter, use a GPIO as chip select
//! (`cs-gpios`), or `spi-cs-setup-delay-ns` and related properties in the device tree.
//!
//! # Length
//! A message has at most [`bufsiz`] bytes in each direction between two points where CS is
//! inactive, with each transfer rounded up to 128 bytes ([`Limits::max_message_bytes`]). A longer
//! message is split where CS becomes inactive anyway; if that is not possible it is refused. See
//! this crate's README.
//!
//! # Ordering
//! 1. Apply settings that differ, the mode first: its polarity moves CS and SCK; word length and
//!    clock do not.
//! 2. Wait for the rest of the last `cs_inactive`.
//! 3. Send the message, or its parts in order with step 2 between them.
//!
//! # Errors
//! The bus returns the core's small errors: [`Error::Os`] with the kernel's errno (EIO if it
//! counted another length than the message's), [`Error::MessageTooLong`],
//! [`Error::TooManyTransfers`], [`Error::DelayTooLong`]. [`LastError`] has the full error, with the
//! node's name and a remedy.
//!
//! # Not supported
//! * Which transfer failed: spidev does not report it; the error names the first of the ioctl.
//! * The real clock: spidev does not report it, so the effective clock is the one asked for. The
//!   real clock may be faster if the controller's slowest clock is. Below 1 kHz, a message that
//!   ended too early is an error ([`SpidevError::TooFast`]), after it was sent.
//! * Other users of the node, who share its mode and word length: their changes between two of our
//!   messages are not noticed.
//! * Non-blocking `try_` calls: the kernel may sleep while another process has the bus.
//! * Dual and quad SPI.

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

use barewire::controller::{Controller, Limits, Preset, Unfinished, plan_message};
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
use settings::{AppliedSettings, P_SPEED, TIMER_HZ};
use split::{Load, Room};

/// spidev's default buffer size, in bytes.
const BUFSIZ_DEFAULT: usize = 4096;
/// spidev's major number, since 2006.
const SPIDEV_MAJOR: u32 = 153;
/// Below this clock, the duration of a message is checked. Few controllers are that slow. Not
/// higher, because an emulated controller takes no time.
const PACED_BELOW_HZ: u32 = 1_000;
/// Waits longer than this sleep.
const SPIN_MAX_NS: u64 = 200_000;

/// A spidev node as a controller with one chip select, number 0.
#[derive(Debug)]
pub struct Spidev<I = Node, T = Monotonic> {
    ioctl: I,
    timer: T,
    path: PathBuf,
    room: Room,
    /// Bits of the mode that barewire does not set: the wiring, as the device tree describes it.
    kept_mode: u32,
    applied: AppliedSettings,
    store: Store,
    /// The tick until which CS must stay inactive.
    quiet_until: Option<u64>,
    last_error: LastError,
}

/// A node's mode as it was found, written back on drop: the kernel keeps the mode for the next user
/// of the chip, which may be a kernel driver.
#[derive(Debug)]
pub struct SavedMode {
    node: Node,
    mode: u32,
}

impl SavedMode {
    /// The mode of the node at `path`, which is opened again for this. Keep it longer than the
    /// [`Spidev`].
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

impl Drop for SavedMode {
    fn drop(&mut self) {
        if self.node.mode32() != Ok(self.mode) {
            // An error cannot be reported on drop.
            let _ = self.node.set(Setting::Mode32(self.mode));
        }
    }
}

/// The last error of a [`Spidev`], in full; a handle to keep when the controller moves into a bus.
#[derive(Clone, Debug, Default)]
pub struct LastError(Arc<Mutex<Option<SpidevError>>>);

impl LastError {
    /// Takes the error. Call it after a call on the bus failed.
    #[must_use]
    pub fn take(&self) -> Option<SpidevError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    #[cold]
    fn put(&self, error: SpidevError) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// The spidev nodes under `root`.
#[must_use]
pub fn nodes(root: &Root) -> Vec<String> {
    let names = root.names("/dev").into_iter();
    names.filter(|name| name.starts_with("spidev")).map(|name| format!("/dev/{name}")).collect()
}

/// The most bytes that spidev takes in each direction in one message: its parameter `bufsiz`.
#[must_use]
pub fn bufsiz(root: &Root) -> usize {
    let text = root.text("/sys/module/spidev/parameters/bufsiz").ok();
    let bytes = text.and_then(|text| number(&text)).and_then(|bytes| bytes.try_into().ok());
    bytes.unwrap_or(BUFSIZ_DEFAULT)
}

/// Whether an open file is a spidev node: by its driver if sysfs has it, else by its device number.
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

/// Checks that a message takes as long as its clocks, if those are slow. Linux's drivers use their
/// slowest clock when asked for a slower one, and do not report it.
struct Pace {
    begun: u64,
    /// The least time the clocks take; 0 if unchecked.
    least_ns: u64,
}

impl Pace {
    fn begin(preset: &Preset, segments: &[Segment], timer: &mut impl Timer) -> Self {
        let speed_hz = preset.regs[P_SPEED];
        if speed_hz >= PACED_BELOW_HZ {
            return Self { begun: 0, least_ns: 0 };
        }
        let least_ns = segments.iter().map(|segment| segment.clocks_ns(speed_hz)).sum();
        Self { begun: timer.now_ticks(), least_ns }
    }

    /// Ends the measurement. If the message took less than half its least time, returns that and
    /// the time it took. Half, because a word may have nine bits in two bytes.
    fn end(self, timer: &mut impl Timer) -> Result<(), (u64, u64)> {
        if self.least_ns == 0 {
            return Ok(());
        }
        let ticks = timer.now_ticks().wrapping_sub(self.begun);
        let took_ns = ticks_ns(ticks, timer.frequency_hz());
        if took_ns < self.least_ns / 2 { Err((self.least_ns, took_ns)) } else { Ok(()) }
    }
}

/// `ticks` in nanoseconds.
fn ticks_ns(ticks: u64, frequency_hz: u32) -> u64 {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(frequency_hz);
    u64::try_from(ns).unwrap_or(u64::MAX)
}

impl Spidev {
    /// Opens the node at `path` of this machine.
    ///
    /// # Errors
    /// As [`Spidev::open_at`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SpidevError> {
        Self::open_at(&Root::system(), path)
    }

    /// Opens the node at `path` under `root`.
    ///
    /// # Errors
    /// * [`SpidevError::NoSuchDevice`], with the existing nodes.
    /// * [`SpidevError::NoPermission`], with the node's group and the udev rule.
    /// * [`SpidevError::NotSpidev`] if it is another file.
    /// * [`SpidevError::Gone`] if its driver left the node behind.
    /// * [`SpidevError::Os`] otherwise.
    pub fn open_at(root: &Root, path: impl AsRef<Path>) -> Result<Self, SpidevError> {
        let path = path.as_ref();
        let real = root.path(path);
        // A terminal, FIFO or watchdog named by mistake must not block us or become our controlling
        // terminal.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        let flags = flags.bits() as i32;
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
    /// A controller on any implementation of the ioctls. `path` is used in error messages only.
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
            applied: AppliedSettings::default(),
            store: Store::default(),
            quiet_until: None,
            last_error: LastError::default(),
        })
    }

    /// A handle to the last error, to keep when the controller moves into a bus.
    #[must_use]
    pub fn last_error(&self) -> LastError {
        self.last_error.clone()
    }

    /// Takes the last error.
    #[must_use]
    pub fn take_error(&self) -> Option<SpidevError> {
        self.last_error.take()
    }

    /// The node's name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The fastest clock that the device tree allows this chip, unless another program has set
    /// another: a default if the user names none.
    ///
    /// # Errors
    /// [`SpidevError::Os`].
    pub fn max_speed_hz(&mut self) -> Result<u32, SpidevError> {
        self.ioctl.max_speed_hz().map_err(|errno| {
            let path = self.path.clone();
            SpidevError::Os { path, what: "asked for its clock", errno }
        })
    }

    /// Keeps the full error and returns the core's nearest one.
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

    /// Checks that every stretch between two points where CS is inactive can be sent.
    fn check_room(&self, preset: &Preset, message: &[Transfer<'_>]) -> Result<(), MessageError> {
        let selected =
            if preset.cs_setup_ticks > 0 { Load::of(0, false, false) } else { Load::default() };
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

    fn may_use_its_bus(&self) -> bool {
        false
    }

    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        settings::configure(settings, self.kept_mode).map_err(|refused| match refused.whole {
            Some(whole) => self.keep(whole, refused.nearest),
            None => refused.nearest,
        })
    }

    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        plan_message(preset, TIMER_HZ, message, |transfer| {
            settings::check_delays(preset, transfer)
                .map_err(|(whole, nearest)| self.keep(whole, nearest))?;
            Ok(transfer.speed_hz)
        })?;
        self.check_room(preset, message)
    }

    fn run(&mut self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        // Step 1: apply settings that differ.
        if let Err((setting, errno)) = self.applied.apply(preset, &mut self.ioctl) {
            let path = self.path.clone();
            let error = match errno {
                Errno::SHUTDOWN | Errno::NODEV => SpidevError::Gone { path, errno },
                _ => SpidevError::Setting { path, setting, errno },
            };
            return Err(self.unfinished(0, errno, error));
        }
        let mut recording = self.store.record(preset, message);
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
            // Step 2: wait for the rest of the last `cs_inactive`.
            if let Some(until) = self.quiet_until.take() {
                wait_until(&mut self.timer, until);
            }
            // Step 3: send the message, or its next part.
            let pace = Pace::begin(preset, &segments[..part], &mut self.timer);
            let message = recording.message(begin..begin + part);
            match self.ioctl.message(&message) {
                Ok(length) if length == message.len() => {
                    actual_length += length;
                    if let Err((least_ns, took_ns)) = pace.end(&mut self.timer) {
                        let (path, asked_hz) = (self.path.clone(), preset.regs[P_SPEED]);
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
        self.quiet_until = quiet_until(&mut self.timer, preset.cs_inactive_ticks);
        // The cause of the failure may have changed the settings too.
        self.applied = AppliedSettings::default();
        let (transfer_index, errno, error) = failed;
        Err(self.unfinished(transfer_index, errno, error))
    }

    /// Forgets the settings believed to be in force; the kernel keeps the controller itself.
    fn reclaim(&mut self) {
        self.applied = AppliedSettings::default();
    }
}

/// The tick until which CS, which has just become inactive, must stay so for `us` microseconds.
fn quiet_until(timer: &mut impl Timer, us: u32) -> Option<u64> {
    (us > 0).then(|| {
        let ticks = ticks_at_least(u64::from(us) * 1000, timer.frequency_hz());
        // One more tick: the present one may have partly passed.
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
