//! Settings to register values: the divider, the mode, the line.

use super::regs::{
    BYTE_CLOCKS, BYTE_REST_CLOCKS, CPHA, CPOL, DIVISOR_MAX, TA, chip_select, cspol, divisor,
};
use super::{NATIVE_CHANNELS, P_CS, P_SETTLE};
use crate::controller::block::BlockConfig;
use crate::controller::lines::{self, Select};
use crate::controller::{CsLine, Limits, Plan, Preset};
use crate::spi::{Effective, Error, Mode, Settings, Transfer};
use crate::time::{NS_PER_S, mul_div_ceil, quotient, quotient_ceil, ticks_at_least};

/// The line that has no pin, on any chip with this block.
const NO_PIN: u8 = 2;

/// The properties of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Bcm2835Config {
    /// The core clock, which CDIV divides, in hertz, above zero. Firmware sets it, and may change
    /// it with the load, which changes SCK: fix it with `core_freq` and `core_freq_min`, or
    /// `force_turbo`.
    pub core_hz: u32,
    /// The select lines; a device names one by its index.
    pub chip_selects: [CsLine; 4],
    /// Transfers that take longer than this on the wire, in nanoseconds, wait by interrupt; the
    /// others are polled. [`ALWAYS_POLL`](crate::controller::ALWAYS_POLL) if there is no interrupt.
    pub poll_limit_ns: u32,
}

impl Bcm2835Config {
    /// CDIV for the fastest clock not above `speed_hz`.
    fn cdiv_for(&self, speed_hz: u32) -> Result<u32, Error> {
        if speed_hz == 0 {
            return Err(Error::SpeedZero);
        }
        // The block rounds an odd divisor down, to a faster clock than asked for.
        let divisor = u64::from(quotient_ceil(self.core_hz, speed_hz)).next_multiple_of(2);
        if divisor > DIVISOR_MAX.into() {
            let min_hz = self.limits(1).min_speed_hz;
            return Err(Error::SpeedTooLow { asked_hz: speed_hz, min_hz });
        }
        // The largest divisor is 0 in CDIV's 16 bits.
        Ok(divisor as u32 % DIVISOR_MAX)
    }

    /// CS with only the idle levels of the native lines.
    pub(super) fn polarities(&self) -> u32 {
        lines::native(&self.chip_selects)
            .filter(|&(_, active_high)| active_high)
            .fold(0, |cs, (channel, _)| cs | cspol(channel))
    }
}

impl BlockConfig for Bcm2835Config {
    fn check(&self) {
        assert!(self.core_hz > 0, "the core clock runs");
        for (channel, _) in lines::native(&self.chip_selects) {
            assert!(channel < NATIVE_CHANNELS, "SPI0 has CE0 and CE1, and no line {channel}");
        }
    }

    fn chip_selects(&self) -> &[CsLine] {
        &self.chip_selects
    }

    fn limits(&self, timer_hz: u32) -> Limits {
        Limits::new(quotient_ceil(self.core_hz, DIVISOR_MAX), self.core_hz / 2, 1 << 7, timer_hz)
    }

    fn configure(&self, settings: &Settings, timer_hz: u32) -> Result<(Preset, Effective), Error> {
        let (select, active_high) = lines::find(&self.chip_selects, settings)?;
        let Settings { mode, speed_hz, bits_per_word, .. } = *settings;
        if mode.contains(Mode::LSB_FIRST) {
            return Err(Error::LsbFirst);
        }
        if mode.contains(Mode::LOOP) {
            return Err(Error::NoLoopback);
        }
        check_bits(bits_per_word)?;
        let cdiv = self.cdiv_for(speed_hz)?;
        let divisor = divisor(cdiv);

        let mut cs = self.polarities();
        if mode.contains(Mode::CPHA) {
            cs |= CPHA;
        }
        if mode.contains(Mode::CPOL) {
            cs |= CPOL;
        }
        cs |= match select {
            // Active with TA, which is set to select the chip.
            Select::Native { channel } => chip_select(channel),
            // TA stays set, so it must name a line without a pin.
            Select::Gpio { .. } | Select::None => chip_select(NO_PIN) | TA,
        };
        let settle_ns = mul_div_ceil(divisor.into(), NS_PER_S, self.core_hz);
        let mut regs = [0; 4];
        regs[P_CS] = cs;
        regs[P_SETTLE] = u32::try_from(ticks_at_least(settle_ns, timer_hz)).unwrap_or(u32::MAX);

        let mut preset = Preset::by_timer(settings, timer_hz, Plan::new(cdiv, 0, 1), regs)?
            .with_line(select, active_high);
        // A native line too: it is active while TA is set.
        preset.selection = preset.selection.holding_cs(true);
        let speed_hz = quotient(self.core_hz, divisor);
        let effective = Effective::by_timer(speed_hz, settings, timer_hz);
        Ok((preset, Effective { word_rest_clocks: BYTE_REST_CLOCKS, ..effective }))
    }

    fn plan(&self, preset: &Preset, transfer: &Transfer<'_>) -> Result<u32, Error> {
        if transfer.bits_per_word != 0 {
            check_bits(transfer.bits_per_word)?;
        }
        if transfer.speed_hz == 0 {
            return Ok(preset.plan.control);
        }
        let cdiv = self.cdiv_for(transfer.speed_hz)?;
        // CDIV is written with TA clear, which raises the native line.
        if cdiv != preset.plan.control && super::is_native(preset) {
            return Err(Error::NativeCsSpeed { asked_hz: transfer.speed_hz });
        }
        Ok(cdiv)
    }

    fn poll_limit_ns(&self) -> u32 {
        self.poll_limit_ns
    }

    fn reference_hz(&self) -> u32 {
        self.core_hz
    }

    fn word_periods(&self, plan: &Plan) -> u32 {
        BYTE_CLOCKS as u32 * divisor(plan.control)
    }
}

/// The block shifts bytes.
fn check_bits(bits: u8) -> Result<(), Error> {
    if bits == 8 { Ok(()) } else { Err(Error::BitsPerWord { bits }) }
}
