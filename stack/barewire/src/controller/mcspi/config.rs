//! Settings to register values: the divisor, the mode, the channel and its line.

use super::regs::{
    CHANNELS, CLKD_SHIFT, CLKG, Channel, DIVISOR_MAX, DPE0, DPE1, EPOL, EXTCLK_SHIFT, FIFOS, IS,
    PHA, POL, WL_SHIFT,
};
use super::{P_CHANNEL, P_CHCONF, P_NATIVE};
use crate::controller::block::BlockConfig;
use crate::controller::lines::{self, Select};
use crate::controller::{CsLine, Limits, Plan, Preset};
use crate::spi::{Effective, Error, Mode, Settings, Transfer};
use crate::time::{quotient, quotient_ceil};

/// The properties of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct McspiConfig {
    /// The functional clock, which is divided to make SCK (`fck`, 48 MHz on the AM335x), in hertz, above zero.
    pub reference_hz: u32,
    /// The lines; a device names one by its index.
    pub chip_selects: [CsLine; 4],
    /// Whether the board has MOSI on SPIDAT\[0\] and MISO on SPIDAT\[1\]: `ti,pindir-d0-out-d1-in` of device
    /// trees. Otherwise it is the other way round.
    pub d0_sends: bool,
    /// Transfers that take longer on the wire, in nanoseconds, wait by interrupt; the others are
    /// polled. [`ALWAYS_POLL`](crate::controller::ALWAYS_POLL) if there is no interrupt.
    pub poll_limit_ns: u32,
}

// A plan's `control` is PHA, POL, CLKD and WL of CHCONF in their places, and EXTCLK above them.
const CHCONF_BITS: u32 = 0xfbf;
const EXTCLK_PLACE: u32 = 16;
const WL: u32 = 0x1f << WL_SHIFT;

/// The bits of a plan's `control` in CHCONF.
#[inline(always)]
pub(super) const fn chconf(control: u32) -> u32 {
    control & CHCONF_BITS
}

/// CHCTRL for a plan's `control`, with the channel disabled.
#[inline(always)]
pub(super) const fn chctrl(control: u32) -> u32 {
    control >> EXTCLK_PLACE << EXTCLK_SHIFT
}

/// Cycles of the functional clock in one of SCK.
#[inline(always)]
pub(super) const fn divisor(control: u32) -> u32 {
    ((control >> EXTCLK_PLACE & 0xff) << 4 | control >> CLKD_SHIFT & 0xf) + 1
}

/// The bits of a word.
#[inline(always)]
pub(super) const fn word_bits(control: u32) -> u32 {
    (control >> WL_SHIFT & 0x1f) + 1
}

/// The same `control` for words of that many bytes.
#[inline(always)]
pub(super) const fn in_words(control: u32, bytes: u8) -> u32 {
    control & !WL | (8 * bytes as u32 - 1) << WL_SHIFT
}

impl McspiConfig {
    /// CHCONF of a channel that is not used: its line inactive, its share of the FIFO given up.
    pub(super) fn unused(&self, channel: u8) -> u32 {
        let pins = if self.d0_sends { DPE1 | IS } else { DPE0 };
        let active_high = lines::native(&self.chip_selects).any(|line| line == (channel, true));
        pins | if active_high { 0 } else { EPOL }
    }

    /// The bits of a plan's `control` for the fastest clock not above `speed_hz`.
    fn divisor_for(&self, speed_hz: u32) -> Result<u32, Error> {
        if speed_hz == 0 {
            return Err(Error::SpeedZero);
        }
        let divisor = quotient_ceil(self.reference_hz, speed_hz);
        if divisor > DIVISOR_MAX {
            let min_hz = quotient_ceil(self.reference_hz, DIVISOR_MAX);
            return Err(Error::SpeedTooLow { asked_hz: speed_hz, min_hz });
        }
        let less_one = divisor - 1;
        Ok(less_one >> 4 << EXTCLK_PLACE | (less_one & 0xf) << CLKD_SHIFT)
    }
}

impl BlockConfig for McspiConfig {
    fn check(&self) {
        assert!(self.reference_hz > 0, "the block's functional clock runs");
        for (channel, _) in lines::native(&self.chip_selects) {
            assert!(channel < CHANNELS, "the block has 4 channels, and no line {channel}");
        }
    }

    fn chip_selects(&self) -> &[CsLine] {
        &self.chip_selects
    }

    fn limits(&self, timer_hz: u32) -> Limits {
        let slowest = quotient_ceil(self.reference_hz, DIVISOR_MAX);
        Limits::new(slowest, self.reference_hz, 1 << 7 | 1 << 15 | 1 << 31, timer_hz)
    }

    fn configure(&self, settings: &Settings, timer_hz: u32) -> Result<(Preset, Effective), Error> {
        let (select, active_high) = lines::find(&self.chip_selects, settings)?;
        let mode = settings.mode;
        if mode.contains(Mode::LSB_FIRST) {
            return Err(Error::LsbFirst);
        }
        if mode.contains(Mode::LOOP) {
            return Err(Error::NoLoopback);
        }
        let native = matches!(select, Select::Native { .. });
        let channel = match select {
            Select::Native { channel } => channel,
            // Its line becomes active too, so no chip may be on it.
            Select::Gpio { .. } | Select::None => {
                let mut idle = lines::idle_channels(&self.chip_selects, CHANNELS);
                idle.next().ok_or(Error::NoIdleChipSelect)?
            }
        };
        let word_bytes = block_word_bytes(settings.bits_per_word)?;
        let bit = |on: bool, bit: u32| if on { bit } else { 0 };
        let clock = self.divisor_for(settings.speed_hz)?
            | bit(mode.contains(Mode::CPHA), PHA)
            | bit(mode.contains(Mode::CPOL), POL);
        let control = in_words(clock, word_bytes);

        let mut regs = [0; 4];
        regs[P_CHANNEL] = Channel::new(channel) as u32;
        regs[P_NATIVE] = native.into();
        regs[P_CHCONF] = self.unused(channel) | FIFOS | CLKG;
        let plan = Plan::new(control, 0, word_bytes);
        let mut preset =
            Preset::by_timer(settings, timer_hz, plan, regs)?.with_line(select, active_high);
        preset.selection = preset.selection.holding_cs(true);
        let speed_hz = quotient(self.reference_hz, divisor(control));
        Ok((preset, Effective::by_timer(speed_hz, settings, timer_hz)))
    }

    fn plan(&self, preset: &Preset, transfer: &Transfer<'_>) -> Result<u32, Error> {
        let mut control = preset.plan.control;
        if transfer.bits_per_word != 0 {
            control = in_words(control, block_word_bytes(transfer.bits_per_word)?);
        }
        if transfer.speed_hz != 0 {
            control = control & (PHA | POL | WL) | self.divisor_for(transfer.speed_hz)?;
        }
        Ok(control)
    }

    fn poll_limit_ns(&self) -> u32 {
        self.poll_limit_ns
    }

    fn reference_hz(&self) -> u32 {
        self.reference_hz
    }

    fn word_periods(&self, plan: &Plan) -> u32 {
        word_bits(plan.control) * divisor(plan.control)
    }
}

fn block_word_bytes(bits: u8) -> Result<u8, Error> {
    match bits {
        8 | 16 | 32 => Ok(bits / 8),
        _ => Err(Error::BitsPerWord { bits }),
    }
}
