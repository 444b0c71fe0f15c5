//! McSPI registers and bits, by the manual's names.
//!
//! *Read first*: the manual that [`super`] names, section "McSPI Registers".

/// Interrupt status: a write of 1 clears a bit.
pub(super) const IRQSTATUS: u32 = 0x118;
/// Interrupt enable: the bits of [`IRQSTATUS`].
pub(super) const IRQENABLE: u32 = 0x11c;
/// Module control.
pub(super) const MODULCTRL: u32 = 0x128;
/// Channel configuration, of channel 0; [`Channel::register`] gives another's.
pub(super) const CHCONF: u32 = 0x12c;
/// Channel status.
pub(super) const CHSTAT: u32 = 0x130;
/// Channel control.
pub(super) const CHCTRL: u32 = 0x134;
/// Transmit register, or transmit FIFO.
pub(super) const TX: u32 = 0x138;
/// Receive register, or receive FIFO.
pub(super) const RX: u32 = 0x13c;
/// The FIFOs' levels and the word counter.
pub(super) const XFERLEVEL: u32 = 0x17c;
/// 32-bit registers from one of a channel to that of the next.
const CHANNEL_STEP: u32 = 5;

/// A channel, as the registers from channel 0's to its own. An enumeration: the compiler sees that all are in the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Channel {
    Zero = 0,
    One = CHANNEL_STEP,
    Two = 2 * CHANNEL_STEP,
    Three = 3 * CHANNEL_STEP,
    /// None is in use: after a reset.
    #[default]
    Unknown = 4 * CHANNEL_STEP,
}

impl Channel {
    /// The channels, each with a select line.
    pub(super) const ALL: [Self; CHANNELS as usize] =
        [Self::Zero, Self::One, Self::Two, Self::Three];

    /// The channel with that number; [`Channel::Unknown`] if there is none.
    pub(super) fn new(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// The channel as a preset has it.
    pub(super) fn of(preset: u32) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|&channel| channel as u32 == preset).unwrap_or_default()
    }

    pub(super) const fn number(self) -> u8 {
        (self as u32 / CHANNEL_STEP) as u8
    }

    /// The channel's register, by channel 0's.
    #[inline(always)]
    pub(super) const fn register(self, first: u32) -> u32 {
        first + 4 * self as u32
    }
}

/// IRQSTATUS: channel 0's receive FIFO holds as many bytes as AFL says; four bits on for each channel.
pub(super) const RX0_FULL: u32 = 1 << 2;
/// IRQSTATUS: as many words were transferred as WCNT says, and the channel halts.
pub(super) const EOW: u32 = 1 << 17;
/// MODULCTRL: one channel is used, and FORCE drives its select line. All other bits clear: a controller with
/// four pins, outside of the system test.
pub(super) const SINGLE: u32 = 1 << 0;
/// CHCONF: clock phase, CPHA.
pub(super) const PHA: u32 = 1 << 0;
/// CHCONF: clock polarity, CPOL.
pub(super) const POL: u32 = 1 << 1;
/// CHCONF: the lower four bits of the divisor less one.
pub(super) const CLKD_SHIFT: u32 = 2;
/// CHCONF: the select line is active low.
pub(super) const EPOL: u32 = 1 << 6;
/// CHCONF: the bits of a word less one.
pub(super) const WL_SHIFT: u32 = 7;
/// CHCONF: nothing is sent on SPIDAT\[0\].
pub(super) const DPE0: u32 = 1 << 16;
/// CHCONF: nothing is sent on SPIDAT\[1\].
pub(super) const DPE1: u32 = 1 << 17;
/// CHCONF: SPIDAT\[1\] is received, not SPIDAT\[0\].
pub(super) const IS: u32 = 1 << 18;
/// CHCONF: the select line is active.
pub(super) const FORCE: u32 = 1 << 20;
/// CHCONF: the FIFO is used to send (FFEW) and to receive (FFER), half of it each.
pub(super) const FIFOS: u32 = 1 << 27 | 1 << 28;
/// CHCONF: the divisor is any number up to 4,096, not a power of two.
pub(super) const CLKG: u32 = 1 << 29;
/// CHSTAT: the transmit FIFO is empty.
pub(super) const TXFFE: u32 = 1 << 3;
/// CHSTAT: the receive FIFO is empty.
pub(super) const RXFFE: u32 = 1 << 5;
/// CHCTRL: the channel is enabled.
pub(super) const EN: u32 = 1 << 0;
/// CHCTRL: the upper eight bits of the divisor less one.
pub(super) const EXTCLK_SHIFT: u32 = 8;
/// XFERLEVEL: the receive FIFO's level in bytes, less one.
pub(super) const AFL_SHIFT: u32 = 8;
/// XFERLEVEL: the words after which the channel halts; 0 for never.
pub(super) const WCNT_SHIFT: u32 = 16;

/// How many channels there are.
pub(super) const CHANNELS: u8 = 4;
/// Bytes that each FIFO holds. A word of 9 to 16 bits takes two, a longer one four.
pub(super) const FIFO_BYTES: usize = 32;
/// The largest divisor.
pub(super) const DIVISOR_MAX: u32 = 4_096;
