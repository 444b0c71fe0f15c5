//! Settings to register values: the divisor, the mode and the line.

use super::regs::{DIV_MAX, ENDIAN, LINES_MAX, PHA, POL};
use super::{P_CSID, P_NATIVE};
use crate::controller::block::BlockConfig;
use crate::controller::lines::{self, Select};
use crate::controller::{CsLine, Limits, Plan, Preset};
use crate::spi::{Effective, Error, Mode, Settings, Transfer};
use crate::time::{quotient, quotient_ceil};

/// The properties of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SiFiveConfig {
    /// The clock that SCKDIV divides (`tlclk` of the FU540-C000), in hertz, above zero.
    pub reference_hz: u32,
    /// The lines; a device names one by its index.
    pub chip_selects: [CsLine; 4],
    /// Transfers that take longer on the wire, in nanoseconds, wait by interrupt; the others are
    /// polled. [`ALWAYS_POLL`](crate::controller::ALWAYS_POLL) if there is no interrupt.
    pub poll_limit_ns: u32,
}

// A plan's `control` is SCKDIV, SCKMODE above it, and then ENDIAN of FMT in its place shifted.
const MODE_SHIFT: u32 = 12;
const ENDIAN_SHIFT: u32 = 12;

/// SCKDIV of a plan's `control`.
#[inline(always)]
pub(super) const fn sckdiv(control: u32) -> u32 {
    control & DIV_MAX
}

/// SCKMODE of a plan's `control`.
#[inline(always)]
pub(super) const fn sckmode(control: u32) -> u32 {
    control >> MODE_SHIFT & (PHA | POL)
}

/// ENDIAN of FMT, of a plan's `control`.
#[inline(always)]
pub(super) const fn endian(control: u32) -> u32 {
    control >> ENDIAN_SHIFT & ENDIAN
}

/// Cycles of the input clock in one of SCK.
#[inline(always)]
pub(super) const fn divisor(sckdiv: u32) -> u32 {
    2 * (sckdiv + 1)
}

impl SiFiveConfig {
    /// CSDEF with the lines of the table inactive. The bits of other lines stay as they are.
    pub(super) fn csdef(&self, before: u32) -> u32 {
        lines::native(&self.chip_selects).fold(before, |csdef, (channel, active_high)| {
            csdef & !(1 << channel) | u32::from(!active_high) << channel
        })
    }

    /// SCKDIV for the fastest clock not above `speed_hz`.
    fn sckdiv_for(&self, speed_hz: u32) -> Result<u32, Error> {
        if speed_hz == 0 {
            return Err(Error::SpeedZero);
        }
        let sckdiv = quotient_ceil(self.reference_hz, speed_hz).div_ceil(2) - 1;
        if sckdiv > DIV_MAX {
            let min_hz = quotient_ceil(self.reference_hz, divisor(DIV_MAX));
            return Err(Error::SpeedTooLow { asked_hz: speed_hz, min_hz });
        }
        Ok(sckdiv)
    }
}

impl BlockConfig for SiFiveConfig {
    fn check(&self) {
        assert!(self.reference_hz > 0, "the block's input clock runs");
        for (channel, _) in lines::native(&self.chip_selects) {
            assert!(channel < LINES_MAX, "the block has at most 32 lines, and no line {channel}");
        }
    }

    fn chip_selects(&self) -> &[CsLine] {
        &self.chip_selects
    }

    fn limits(&self, timer_hz: u32) -> Limits {
        let slowest = quotient_ceil(self.reference_hz, divisor(DIV_MAX));
        Limits::new(slowest, self.reference_hz / divisor(0), 1 << 7, timer_hz)
    }

    fn configure(&self, settings: &Settings, timer_hz: u32) -> Result<(Preset, Effective), Error> {
        let (select, active_high) = lines::find(&self.chip_selects, settings)?;
        let mode = settings.mode;
        if mode.contains(Mode::LOOP) {
            return Err(Error::NoLoopback);
        }
        let channel = match select {
            Select::Native { channel } => Some(u32::from(channel)),
            Select::Gpio { .. } | Select::None => None,
        };
        let native = channel.is_some();
        // The line falls with the first frame, so a wait before it does not come after the edge.
        if native && settings.cs_setup_ns > 0 {
            return Err(Error::NativeCsDelay { asked_ns: settings.cs_setup_ns, max_ns: 0 });
        }
        check_bits(settings.bits_per_word)?;
        let bit = |on: bool, bit: u32| if on { bit } else { 0 };
        let sckdiv = self.sckdiv_for(settings.speed_hz)?;
        let control = sckdiv
            | bit(mode.contains(Mode::CPHA), PHA << MODE_SHIFT)
            | bit(mode.contains(Mode::CPOL), POL << MODE_SHIFT)
            | bit(mode.contains(Mode::LSB_FIRST), ENDIAN << ENDIAN_SHIFT);

        let mut regs = [0; 4];
        regs[P_CSID] = channel.unwrap_or_default();
        regs[P_NATIVE] = native.into();
        let plan = Plan::new(control, 0, 1);
        let mut preset =
            Preset::by_timer(settings, timer_hz, plan, regs)?.with_line(select, active_high);
        preset.selection = preset.selection.holding_cs(!native);
        let speed_hz = quotient(self.reference_hz, divisor(sckdiv));
        Ok((preset, Effective::by_timer(speed_hz, settings, timer_hz)))
    }

    fn plan(&self, preset: &Preset, transfer: &Transfer<'_>) -> Result<u32, Error> {
        if transfer.bits_per_word != 0 {
            check_bits(transfer.bits_per_word)?;
        }
        let device = preset.plan.control;
        if transfer.speed_hz == 0 {
            return Ok(device);
        }
        let own = self.sckdiv_for(transfer.speed_hz)? | (device & !DIV_MAX);
        // The block takes no SCKDIV over while it holds its line.
        if own != device && super::is_native(preset) {
            return Err(Error::NativeCsSpeed { asked_hz: transfer.speed_hz });
        }
        Ok(own)
    }

    fn poll_limit_ns(&self) -> u32 {
        self.poll_limit_ns
    }

    fn reference_hz(&self) -> u32 {
        self.reference_hz
    }

    fn word_periods(&self, plan: &Plan) -> u32 {
        8 * divisor(sckdiv(plan.control))
    }
}

fn check_bits(bits: u8) -> Result<(), Error> {
    if bits == 8 { Ok(()) } else { Err(Error::BitsPerWord { bits }) }
}
