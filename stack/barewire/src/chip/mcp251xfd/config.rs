//! The configuration of a controller.

use super::BitRate;

/// The chip's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Oscillator {
    /// The frequency of the crystal or at the pin, in hertz: 1 to 40 MHz.
    pub hz: u32,
    /// Multiply by ten, for a crystal of 4 MHz.
    pub pll: bool,
    /// Divide by two afterwards.
    pub halved: bool,
}

impl Oscillator {
    /// A clock that is used without PLL or divider.
    #[must_use]
    pub const fn new(hz: u32) -> Self {
        Self { hz, pll: false, halved: false }
    }

    /// The system clock, in hertz.
    #[must_use]
    pub const fn sysclk_hz(&self) -> u32 {
        let hz = if self.pll { self.hz.saturating_mul(10) } else { self.hz };
        if self.halved { hz / 2 } else { hz }
    }

    /// The SPI clock that is safe at all times, in hertz.
    ///
    /// The data sheets say half the system clock. Errata DS80000792 5 and DS80000789 4 say 0.85 of
    /// that, since faster writes can corrupt the memory while the CAN bus is busy: 17 MHz at 40.
    /// With the PLL it is 17 fortieths of the oscillator, because the PLL is off after a reset.
    #[must_use]
    pub const fn spi_max_hz(&self) -> u32 {
        let sysclk_hz = self.sysclk_hz();
        let slowest_hz = if sysclk_hz < self.hz { sysclk_hz } else { self.hz };
        (slowest_hz as u64 * 17 / 40) as u32
    }
}

/// The chip's modes, numbered as in OPMOD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Mode {
    /// On the bus, with CAN FD and classic frames.
    CanFd = 0,
    /// Asleep.
    Sleep = 1,
    /// Transmitted frames are received inside the chip; nothing is on the bus.
    InternalLoopback = 2,
    /// Receives only: sends no acknowledgement and no error frame.
    ListenOnly = 3,
    /// Off the bus.
    Configuration = 4,
    /// Frames transmitted on the bus are received too.
    ExternalLoopback = 5,
    /// On the bus, with classic frames; a frame of CAN FD is an error.
    Classic = 6,
    /// Receives and acknowledges, and sends nothing else.
    Restricted = 7,
}

impl Mode {
    pub(super) const fn of(opmod: u32) -> Self {
        match opmod & 7 {
            0 => Self::CanFd,
            1 => Self::Sleep,
            2 => Self::InternalLoopback,
            3 => Self::ListenOnly,
            4 => Self::Configuration,
            5 => Self::ExternalLoopback,
            6 => Self::Classic,
            _ => Self::Restricted,
        }
    }
}

/// The space for data in every object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Payload {
    /// Classic frames.
    Bytes8 = 0,
    /// 12 bytes.
    Bytes12 = 1,
    /// 16 bytes.
    Bytes16 = 2,
    /// 20 bytes.
    Bytes20 = 3,
    /// 24 bytes.
    Bytes24 = 4,
    /// 32 bytes.
    Bytes32 = 5,
    /// 48 bytes.
    Bytes48 = 6,
    /// Any frame.
    Bytes64 = 7,
}

impl Payload {
    /// In bytes.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        [8, 12, 16, 20, 24, 32, 48, 64][self as usize]
    }
}

/// The order in which frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TxOrder {
    /// In the order given (FIFO 2): two accesses per frame.
    Fifo,
    /// The most urgent identifier first; equal identifiers in no guaranteed order (TXQ). Three
    /// accesses per frame, since only the chip knows which place is free.
    Identifier,
}

/// The configuration of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Config {
    /// The clock.
    pub oscillator: Oscillator,
    /// Bit rate of arbitration, and of classic frames.
    pub nominal: BitRate,
    /// The bit rate of an FD frame's data. If `None`, the chip's reset value stays and no frame may
    /// switch the bit rate.
    pub data: Option<BitRate>,
    /// The mode to start in.
    pub mode: Mode,
    /// The space for data in every object.
    pub payload: Payload,
    /// The number of objects to transmit from, 1 to 32.
    pub tx_objects: u8,
    /// The number of objects to receive into, 1 to 32.
    pub rx_objects: u8,
    /// The order of transmission.
    pub tx_order: TxOrder,
    /// Whether each transmitted frame is reported with its time, for two more accesses.
    pub transmit_events: bool,
    /// Whether invalid frames are reported one by one, for up to four accesses each. A node without
    /// partners has one per attempt to transmit. Error states are reported in any case.
    pub invalid_frames: bool,
    /// Whether every access has a CRC, for three more bytes and up to 3 attempts. If a write of the
    /// set-up arrives corrupt, the set-up is repeated, also up to 3 times.
    pub crc: bool,
    /// The system clocks per tick of the time stamps, 1 to 1024. Time stamps have 64 bits, and are
    /// right if fewer than 2^31 ticks pass between two frames or calls of
    /// [`now`](super::Mcp251xfd::now): 35 minutes at 1 µs.
    pub timestamp_prescaler: u16,
}

impl Config {
    /// Classic frames: 8 objects to transmit from, 32 to receive into, ticks of 40 clocks.
    #[must_use]
    pub const fn classic(oscillator: Oscillator, nominal: BitRate) -> Self {
        Self {
            oscillator,
            nominal,
            data: None,
            mode: Mode::Classic,
            payload: Payload::Bytes8,
            tx_objects: 8,
            rx_objects: 32,
            tx_order: TxOrder::Fifo,
            transmit_events: false,
            invalid_frames: true,
            crc: false,
            timestamp_prescaler: 40,
        }
    }

    /// Frames of CAN FD with up to 64 bytes: 8 objects to transmit from, 16 to receive into.
    #[must_use]
    pub const fn fd(oscillator: Oscillator, nominal: BitRate, data: BitRate) -> Self {
        Self {
            data: Some(data),
            mode: Mode::CanFd,
            payload: Payload::Bytes64,
            rx_objects: 16,
            ..Self::classic(oscillator, nominal)
        }
    }
}
