//! One node: the settings that all its openers share, and messages run on a bus.
//!
//! # How it works
//! A program's mode, word length and clock become a device's [`Settings`] for each message, so that all
//! openers see each change at once. This module does what the kernel's SPI core does before a controller
//! sees a message: defaults filled in, clocks clamped, lengths and line counts checked.
//!
//! # Two differences
//! * `SPI_CS_HIGH` is accepted and not reported back: the board fixes the line's polarity. So does a
//!   kernel whose chip select is a GPIO.
//! * `SPI_LSB_FIRST` works on every controller: the bits are reversed here.
//!
//! # A chip left selected
//! `cs_change` on a message's last transfer leaves the chip selected for the next message. The kernel then
//! lets another chip's message begin with both selected; here the caller of [`Chip::run`] first
//! [releases](Chip::release) the bus's other chips.
//!
//! The next message goes on as if it were part of the same one: another clock or word length is a transfer's own, so a
//! controller that cannot change it without an edge on CS refuses the message. Each setting that is written deselects
//! the chip, as `spi_setup()` does in Linux.

use barewire::bus::{Bus, Device};
use barewire::controller::{Controller, Limits};
use barewire::spi::{Error, Mode, Settings, Transfer};
use rustix::io::Errno;

use crate::errno::errno;
use crate::request::Setting;
use crate::settings::{CS_HIGH, LINES, LSB_FIRST, MADE, NodeSettings, on_the_wire};
use crate::transfer::{IocTransfer, Sums};

type AnyBus<'b> = Bus<dyn Controller + 'b>;
type AnyDevice<'b, 'c> = Device<'b, dyn Controller + 'c>;

/// An error number, and its cause if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbiError {
    /// The error number that the program gets.
    pub errno: Errno,
    /// The bus's own error.
    pub why: Option<Error>,
}

impl From<Errno> for AbiError {
    fn from(errno: Errno) -> Self {
        Self { errno, why: None }
    }
}

impl From<Error> for AbiError {
    fn from(why: Error) -> Self {
        Self { errno: errno(why), why: Some(why) }
    }
}

/// A node's properties on its board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The chip select on the bus.
    pub chip_select: u8,
    /// Flags that the board needs in every mode: `CS_HIGH` or `NO_CS`.
    pub mode: Mode,
    /// The clock until a program sets one, in hertz: a device tree's `spi-max-frequency`.
    pub speed_hz: u32,
    /// How long CS stays inactive at `cs_change` inside a message, at least, in nanoseconds. The kernel's is
    /// 10 µs.
    pub cs_change_delay_ns: u32,
    /// The most bytes of a message, each way.
    pub bufsiz: u32,
}

/// A node: settings that persist between openers, but for the clock.
#[derive(Debug)]
pub struct Chip {
    setup: Setup,
    limits: Limits,
    mode: u32,
    bits_per_word: u8,
    speed_hz: u32,
    /// How many have it open.
    openers: usize,
    /// The device's settings with which a message left the chip selected.
    selected: Option<Settings>,
}

impl Chip {
    /// A node of that bus, without openers.
    ///
    /// # Errors
    /// The bus does not support the node's chip select, mode or clock.
    pub fn new(bus: &AnyBus<'_>, setup: Setup) -> Result<Self, Error> {
        let Setup { chip_select, mode, speed_hz, .. } = setup;
        let device = bus.device(&Settings::new(chip_select, speed_hz).with_mode(mode))?;
        let limits = *device.limits();
        let (mode, bits_per_word) = (0, 8);
        Ok(Self { setup, limits, mode, bits_per_word, speed_hz, openers: 0, selected: None })
    }

    /// The node's properties on its board.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Counts one more opener.
    pub fn open(&mut self) {
        self.openers += 1;
    }

    /// Counts one opener less. After the last one, the clock is the node's default again, and a chip left
    /// selected is released.
    pub fn close(&mut self, bus: &AnyBus<'_>) {
        self.openers = self.openers.saturating_sub(1);
        if self.openers == 0 {
            self.speed_hz = self.setup.speed_hz;
            self.release(bus);
        }
    }

    /// The value of a setting, in [`Setting::bytes`] of the four.
    #[must_use]
    pub fn read(&self, setting: Setting) -> u32 {
        match setting {
            Setting::Mode => self.mode & 0xff,
            Setting::Mode32 => self.mode,
            Setting::LsbFirst => u32::from(self.mode & LSB_FIRST != 0),
            Setting::BitsPerWord => self.bits_per_word.into(),
            Setting::MaxSpeedHz => self.speed_hz,
        }
    }

    /// Writes a setting, and deselects a chip that a message left selected. After an error it has its old value.
    ///
    /// # Errors
    /// `EINVAL` for a setting that the interface or the controller does not know.
    pub fn write(
        &mut self,
        bus: &AnyBus<'_>,
        setting: Setting,
        value: u32,
    ) -> Result<(), AbiError> {
        let (mut mode, mut bits_per_word) = (self.mode, self.bits_per_word);
        match setting {
            Setting::Mode | Setting::Mode32 => mode = value & !LINES,
            Setting::LsbFirst if value != 0 => mode |= LSB_FIRST,
            Setting::LsbFirst => mode &= !LSB_FIRST,
            // The argument is a byte.
            Setting::BitsPerWord => bits_per_word = value.to_le_bytes()[0],
            Setting::MaxSpeedHz if value == 0 => return Err(Errno::INVAL.into()),
            Setting::MaxSpeedHz => {}
        }
        if mode & !MADE != 0 {
            return Err(Errno::INVAL.into());
        }
        if bits_per_word == 0 {
            bits_per_word = 8;
        }
        let speed_hz = if setting == Setting::MaxSpeedHz { value } else { self.speed_hz };
        bus.device(&self.settings(mode, bits_per_word, speed_hz))?;
        // Before the mode changes, so that the chip sees no clock idle at another level.
        self.release(bus);
        (self.mode, self.bits_per_word, self.speed_hz) = (mode & !CS_HIGH, bits_per_word, speed_hz);
        Ok(())
    }

    /// As a device's settings, whose clock the controller can make: a message decides whether that is
    /// the one asked for.
    fn settings(&self, mode: u32, bits_per_word: u8, speed_hz: u32) -> Settings {
        let Setup { chip_select, mode: board, .. } = self.setup;
        on_the_wire(chip_select, board, &self.limits, mode, bits_per_word, speed_hz)
    }

    /// The settings that all openers share.
    #[must_use]
    pub fn settings_now(&self) -> NodeSettings {
        let Self { mode, bits_per_word, speed_hz, .. } = *self;
        NodeSettings { mode, bits_per_word, speed_hz }
    }

    /// Whether a message left the chip selected.
    #[must_use]
    pub fn is_selected(&self) -> bool {
        self.selected.is_some()
    }

    /// The settings of a device on which a plain message, one transfer at `speed_hz` with words of
    /// `bits_per_word` bits, runs as by [`Chip::run`]. A caller that runs many of them keeps the device until a
    /// setting is written. `None` if only [`Chip::run`] can: bits are reversed, the clock is below the
    /// controller's slowest, or a message left the chip selected.
    #[must_use]
    pub fn plain_settings(&self, speed_hz: u32, bits_per_word: u8) -> Option<Settings> {
        let reversed = self.mode & LSB_FIRST != 0;
        if reversed || self.is_selected() || speed_hz < self.limits.min_speed_hz {
            return None;
        }
        Some(self.settings(self.mode, bits_per_word, speed_hz))
    }

    /// Runs a message. `tx` holds the bytes that the transfers send, one transfer after the other.
    /// `rx` has room for those that they receive. Returns the sum of the transfers' lengths.
    ///
    /// # Errors
    /// The kernel's error, by its order of checks; nothing was clocked unless it is `ETIMEDOUT` or
    /// `EIO`.
    pub fn run(
        &mut self,
        bus: &AnyBus<'_>,
        transfers: &[IocTransfer],
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<u32, AbiError> {
        let mut sums = Sums::new(self.setup.bufsiz);
        transfers.iter().try_for_each(|transfer| sums.add(transfer))?;
        let sent: usize = transfers.iter().map(IocTransfer::tx_bytes).sum();
        let received: usize = transfers.iter().map(IocTransfer::rx_bytes).sum();
        if sent != tx.len() || received != rx.len() {
            return Err(Errno::PROTO.into());
        }
        if transfers.is_empty() {
            return Ok(0);
        }
        let limits = self.limits;
        let mut plans = Vec::with_capacity(transfers.len());
        for transfer in transfers {
            let plan = NodeTransfer::new(transfer, self.speed_hz, self.bits_per_word);
            plan.check()?;
            let speed_hz = plan.speed_hz.min(limits.max_speed_hz);
            if speed_hz < limits.min_speed_hz {
                return Err(
                    Error::SpeedTooLow { asked_hz: speed_hz, min_hz: limits.min_speed_hz }.into()
                );
            }
            plans.push(NodeTransfer { speed_hz, ..plan });
        }
        // The first transfer's, so that a message with one clock for all changes none inside it.
        let NodeTransfer { speed_hz, bits_per_word, .. } = plans[0];
        let own = || self.settings(self.mode, bits_per_word, speed_hz);
        let device = bus.device(&self.selected.unwrap_or_else(own))?;
        let lsb_first = self.mode & LSB_FIRST != 0;
        let mut tx = std::borrow::Cow::Borrowed(tx);
        if lsb_first {
            let mut rest = tx.to_mut().as_mut_slice();
            for (transfer, plan) in transfers.iter().zip(&plans) {
                reverse_bits(take_mut(&mut rest, transfer.tx_bytes()), plan.bits_per_word);
            }
        }
        self.clock(&device, transfers, &plans, &tx, rx)?;
        if lsb_first {
            let mut rest = rx;
            for (transfer, plan) in transfers.iter().zip(&plans) {
                reverse_bits(take_mut(&mut rest, transfer.rx_bytes()), plan.bits_per_word);
            }
        }
        Ok(sums.total())
    }

    fn clock(
        &mut self,
        device: &AnyDevice<'_, '_>,
        transfers: &[IocTransfer],
        plans: &[NodeTransfer],
        mut tx: &[u8],
        mut rx: &mut [u8],
    ) -> Result<(), AbiError> {
        let settings = device.settings();
        let mut message = Vec::with_capacity(transfers.len());
        for (transfer, plan) in transfers.iter().zip(plans) {
            let (sent, rest) = tx.split_at(transfer.tx_bytes());
            tx = rest;
            let received = take_mut(&mut rx, transfer.rx_bytes());
            let buffers = match (transfer.tx_buf, transfer.rx_buf) {
                (0, 0) => Transfer::write(&[]),
                (_, 0) => Transfer::write(sent),
                (0, _) => Transfer::read(received),
                _ => Transfer::exchange(sent, received),
            };
            let mut on_the_wire = buffers;
            // Zero is the device's own, which needs no register written.
            if plan.speed_hz != settings.speed_hz {
                on_the_wire.speed_hz = plan.speed_hz;
            }
            if plan.bits_per_word != settings.bits_per_word {
                on_the_wire.bits_per_word = plan.bits_per_word;
            }
            on_the_wire.delay_ns = u32::from(transfer.delay_usecs) * 1_000;
            on_the_wire.word_delay_ns = u32::from(transfer.word_delay_usecs) * 1_000;
            on_the_wire.cs_change = transfer.cs_change != 0;
            if on_the_wire.cs_change {
                on_the_wire.cs_change_delay_ns = self.setup.cs_change_delay_ns;
            }
            message.push(on_the_wire);
        }
        // It has one at least.
        let keep = message.last_mut().is_some_and(|last| {
            last.cs_change_delay_ns = 0;
            std::mem::take(&mut last.cs_change)
        });
        let ran = match keep {
            true => device.sync_keeping_cs(&mut message),
            false => device.sync(&mut message),
        };
        // A message that was refused changes nothing: a chip that was left selected still is.
        ran.map_err(|error| error.error)?;
        self.selected = keep.then_some(*settings);
        Ok(())
    }

    /// Deselects the chip if a message left it selected.
    pub fn release(&mut self, bus: &AnyBus<'_>) {
        let Some(settings) = self.selected.take() else { return };
        if let Ok(device) = bus.device(&settings) {
            // Every message ends with the chip deselected, also one that fails.
            let _ = device.sync(&mut [Transfer::write(&[])]);
        }
    }
}

/// A transfer whose missing values were filled in from the node's settings.
#[derive(Clone, Copy, Debug)]
struct NodeTransfer {
    speed_hz: u32,
    bits_per_word: u8,
    len: u32,
    tx_nbits: Option<u8>,
    rx_nbits: Option<u8>,
}

impl NodeTransfer {
    fn new(transfer: &IocTransfer, speed_hz: u32, bits_per_word: u8) -> Self {
        let IocTransfer { tx_buf, rx_buf, tx_nbits, rx_nbits, .. } = *transfer;
        Self {
            speed_hz: if transfer.speed_hz == 0 { speed_hz } else { transfer.speed_hz },
            bits_per_word: match transfer.bits_per_word {
                0 => bits_per_word,
                bits => bits,
            },
            len: transfer.len,
            tx_nbits: (tx_buf != 0).then_some(tx_nbits),
            rx_nbits: (rx_buf != 0).then_some(rx_nbits),
        }
    }

    /// Refuses parts of a word, and more lines than one: no mode of a node has more.
    fn check(&self) -> Result<(), Errno> {
        let word_bytes = match self.bits_per_word {
            ..=8 => 1,
            9..=16 => 2,
            _ => 4,
        };
        let one = |lines: Option<u8>| matches!(lines, None | Some(0 | 1));
        if !self.len.is_multiple_of(word_bytes) || !one(self.tx_nbits) || !one(self.rx_nbits) {
            return Err(Errno::INVAL);
        }
        Ok(())
    }
}

/// The first `len` bytes; `rest` keeps the others.
fn take_mut<'b>(rest: &mut &'b mut [u8], len: usize) -> &'b mut [u8] {
    let (first, others) = std::mem::take(rest).split_at_mut(len);
    *rest = others;
    first
}

/// Reverses the bits of each word, which lies in the processor's byte order.
fn reverse_bits(bytes: &mut [u8], bits_per_word: u8) {
    let word_bytes = usize::from(bits_per_word.div_ceil(8));
    for word in bytes.chunks_exact_mut(word_bytes.max(1)) {
        word.reverse();
        word.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
    }
}
