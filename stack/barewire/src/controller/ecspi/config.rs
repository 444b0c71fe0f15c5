//! Settings to register values: dividers, mode, chip select, delays.

use super::regs::{
    BURST_BYTES_MAX, CHANNEL_MODE_ALL, CSD_CTL_MAX, DIVIDERS, EN, FIFO_WORDS, LBC, SCLK_PHA_ALL,
    SCLK_POL_ALL, SMC, channel_select, csd_ctl, dividers, divisor, ss_pol,
};
use crate::controller::block::BlockConfig;
use crate::controller::lines::{self, Select};
use crate::controller::{CsLine, Limits, Plan, Preset, delay_ticks, word_bytes};
use crate::spi::{Effective, Error, MessageError, Mode, Settings, Transfer};
use crate::time::{
    NS_PER_S, div_ceil, mul_div, mul_div_ceil, quotient, quotient_ceil, ticks_at_least,
};

/// The slowest clock whose half period has certainly passed after RR and a read of RXDATA: 50 ns,
/// less than any read of a peripheral register takes on these chips.
const FAST_MIN_HZ: u64 = 10_000_000;
/// The longest transfer on a native line: TXFIFO's size. The manual does not say whether the line
/// stays active while a burst has run out of words, so that must not happen.
const NATIVE_BYTES_MAX: usize = FIFO_WORDS * 4;
/// The datasheet's lag of a native line is half a period less this.
const SS_LAG_LESS_NS: u64 = 2;

/// The properties of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct EcspiConfig {
    /// The block's reference clock (ECSPI_CLK_ROOT), in hertz, above zero.
    pub reference_hz: u32,
    /// The select lines; a device names one by its index.
    pub chip_selects: [CsLine; 4],
    /// Transfers that take longer than this on the wire, in nanoseconds, wait by interrupt; the
    /// others are polled. [`ALWAYS_POLL`](crate::controller::ALWAYS_POLL) if there is no interrupt.
    pub poll_limit_ns: u32,
}

/// The waits around a selection by a native line.
struct NativeWaits {
    periodreg: u32,
    cs_setup_ns: u64,
    cs_hold_ns: u64,
    cs_inactive_ticks: u32,
}

impl EcspiConfig {
    /// CONREG's divider bits for the fastest clock not above `speed_hz`.
    fn dividers_for(&self, speed_hz: u32) -> Result<u32, Error> {
        if speed_hz == 0 {
            return Err(Error::SpeedZero);
        }
        let divisor = quotient_ceil(self.reference_hz, speed_hz);
        // The smallest post divider that brings the pre divider into range gives the finest steps.
        (0..16)
            .map(|post| (divisor.div_ceil(1 << post), post))
            .find(|&(pre, _)| pre <= 16)
            .map(|(pre, post)| dividers(pre, post))
            .ok_or(Error::SpeedTooLow { asked_hz: speed_hz, min_hz: self.limits(1).min_speed_hz })
    }

    /// CONREG for a clock not above `speed_hz` on `channel`, without a burst length.
    fn conreg_for(&self, speed_hz: u32, channel: u32) -> Result<u32, Error> {
        let dividers = self.dividers_for(speed_hz)?;
        let start = if self.is_fast(dividers) { SMC } else { 0 };
        Ok(EN | CHANNEL_MODE_ALL | channel | dividers | start)
    }

    /// Whether reading one register takes longer than half a clock of CONREG's dividers.
    #[inline]
    fn is_fast(&self, conreg: u32) -> bool {
        u64::from(self.reference_hz) >= FAST_MIN_HZ * u64::from(divisor(conreg))
    }

    /// Ticks of the timer that last `halves` half clocks of CONREG's dividers; 0 if the reads that
    /// end a burst take that long anyway.
    #[inline]
    pub(super) fn half_clock_ticks(&self, conreg: u32, halves: u32, timer_hz: u32) -> u32 {
        if self.is_fast(conreg) {
            return 0;
        }
        let periods = u64::from(halves) * u64::from(divisor(conreg));
        let ticks = mul_div_ceil(periods, timer_hz, self.reference_hz);
        u32::try_from(ticks.div_ceil(2)).unwrap_or(u32::MAX)
    }

    /// The channels whose line is active high.
    pub(super) fn native_active_high(&self) -> u8 {
        lines::native(&self.chip_selects)
            .fold(0, |mask, (channel, high)| mask | u8::from(high) << (channel & 3))
    }

    /// The waits of a native line: setup in clocks, hold fixed, inactive by software. Software
    /// begins that wait when the burst is known to be over, one period before the line may rise.
    fn native_waits(
        &self,
        settings: &Settings,
        timer_hz: u32,
        divisor: u32,
    ) -> Result<NativeWaits, Error> {
        let clocks_ns =
            |clocks: u64| mul_div(clocks * u64::from(divisor), NS_PER_S, self.reference_hz);
        let periods = mul_div_ceil(settings.cs_setup_ns.into(), self.reference_hz, NS_PER_S);
        let clocks = div_ceil(periods, divisor);
        if clocks > u64::from(CSD_CTL_MAX) {
            let max_ns = clocks_ns(CSD_CTL_MAX.into()) as u32;
            return Err(Error::NativeCsDelay { asked_ns: settings.cs_setup_ns, max_ns });
        }
        let period_ns = clocks_ns(1);
        let hold_ns = (period_ns / 2).saturating_sub(SS_LAG_LESS_NS);
        if u64::from(settings.cs_hold_ns) > hold_ns {
            let max_ns = hold_ns as u32;
            return Err(Error::NativeCsDelay { asked_ns: settings.cs_hold_ns, max_ns });
        }
        if settings.word_delay_ns > 0 {
            return Err(Error::NativeCsDelay { asked_ns: settings.word_delay_ns, max_ns: 0 });
        }
        let cs_inactive_ticks = if settings.cs_inactive_ns == 0 {
            0
        } else {
            delay_ticks(settings.cs_inactive_ns.saturating_add(period_ns as u32 + 1), timer_hz)?
        };
        Ok(NativeWaits {
            periodreg: csd_ctl(clocks as u32),
            cs_setup_ns: clocks_ns(clocks),
            cs_hold_ns: hold_ns,
            cs_inactive_ticks,
        })
    }

    /// Refuses messages that would pulse the native line.
    #[inline]
    fn check_native(&self, preset: &Preset, message: &[Transfer<'_>]) -> Result<(), MessageError> {
        // Only devices on a native line need this check.
        if !preset.asks {
            return Ok(());
        }
        let max_bytes = NATIVE_BYTES_MAX;
        let last = message.len().saturating_sub(1);
        let pulses = |(index, transfer): (usize, &Transfer<'_>)| {
            transfer.data.len() > max_bytes
                || transfer.word_delay_ns > 0
                || (index < last && !transfer.cs_change)
        };
        if let Some(index) = message.iter().enumerate().position(pulses) {
            return Err(MessageError::refused(Error::NativeCsWouldPulse { max_bytes }, index));
        }
        // The line has risen by then: the delay would come after CS is inactive, not before.
        match message.iter().position(|transfer| transfer.delay_ns > 0) {
            Some(index) => {
                let asked_ns = message[index].delay_ns;
                Err(MessageError::refused(Error::NativeCsDelay { asked_ns, max_ns: 0 }, index))
            }
            None => Ok(()),
        }
    }

    #[cold]
    fn plan_speed(&self, preset: &Preset, speed_hz: u32) -> Result<u32, Error> {
        let device = preset.plan.control;
        let conreg = self.conreg_for(speed_hz, device & channel_select(3))?;
        // CSD_CTL counts clocks: a faster clock would shorten the setup time that the device asked
        // for.
        if preset.regs[super::P_PERIODREG] != 0
            && divisor(conreg & DIVIDERS) < divisor(device & DIVIDERS)
        {
            return Err(Error::NativeCsDelay { asked_ns: u32::MAX, max_ns: 0 });
        }
        Ok(conreg)
    }
}

impl BlockConfig for EcspiConfig {
    fn check(&self) {
        assert!(self.reference_hz > 0, "the block's reference clock runs");
    }

    fn chip_selects(&self) -> &[CsLine] {
        &self.chip_selects
    }

    fn limits(&self, timer_hz: u32) -> Limits {
        Limits::new(
            quotient_ceil(self.reference_hz, 16 << 15),
            self.reference_hz,
            1 << 7 | 1 << 15 | 1 << 31,
            timer_hz,
        )
    }

    fn configure(&self, settings: &Settings, timer_hz: u32) -> Result<(Preset, Effective), Error> {
        let (select, active_high) = lines::find(&self.chip_selects, settings)?;
        let mode = settings.mode;
        if mode.contains(Mode::LSB_FIRST) {
            return Err(Error::LsbFirst);
        }
        let channel = match select {
            Select::Native { channel } => channel & 3,
            // The block must select some channel: one that is not wired to a chip. The GPIO line
            // leaves at most three of the four channels to native lines.
            Select::Gpio { .. } => lines::idle_channels(&self.chip_selects, 4).next().unwrap_or(0),
            Select::None => {
                lines::idle_channels(&self.chip_selects, 4).next().ok_or(Error::NoIdleChipSelect)?
            }
        };
        let conreg = self.conreg_for(settings.speed_hz, channel_select(channel))?;
        let divisor = divisor(conreg);
        let speed_hz = quotient(self.reference_hz, divisor);
        let period_ns = mul_div_ceil(divisor.into(), NS_PER_S, self.reference_hz);

        let mut configreg = ss_pol(self.native_active_high());
        if mode.contains(Mode::CPHA) {
            configreg |= SCLK_PHA_ALL;
        }
        if mode.contains(Mode::CPOL) {
            configreg |= SCLK_POL_ALL;
        }
        let testreg = if mode.contains(Mode::LOOP) { LBC } else { 0 };
        let settle_ticks = ticks_at_least(2 * period_ns, timer_hz) as u32;

        let native = matches!(select, Select::Native { .. });
        let regs = |periodreg| [configreg, periodreg, testreg, settle_ticks];
        let plan = Plan::new(conreg, 0, word_bytes(settings.bits_per_word)?);
        let mut effective = Effective::by_timer(speed_hz, settings, timer_hz);
        let mut preset = if native {
            let waits = self.native_waits(settings, timer_hz, divisor)?;
            effective.cs_setup_ns = waits.cs_setup_ns;
            effective.cs_hold_ns = waits.cs_hold_ns;
            let by_timer = Settings { cs_setup_ns: 0, cs_hold_ns: 0, ..*settings };
            Preset::by_timer(&by_timer, timer_hz, plan, regs(waits.periodreg))?.with_waits(
                0,
                0,
                waits.cs_inactive_ticks,
            )
        } else {
            Preset::by_timer(settings, timer_hz, plan, regs(0))?.with_line(select, active_high)
        };
        // Whether the native line would pulse depends on the whole message.
        preset.asks = native;
        preset.selection = preset.selection.holding_cs(!native);
        preset.max_transfer_bytes = if native { NATIVE_BYTES_MAX } else { BURST_BYTES_MAX };
        Ok((preset, effective))
    }

    #[inline]
    fn plan(&self, preset: &Preset, transfer: &Transfer<'_>) -> Result<u32, Error> {
        if transfer.speed_hz == 0 {
            return Ok(preset.plan.control);
        }
        self.plan_speed(preset, transfer.speed_hz)
    }

    fn complete(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.check_native(preset, message)
    }

    fn poll_limit_ns(&self) -> u32 {
        self.poll_limit_ns
    }

    fn reference_hz(&self) -> u32 {
        self.reference_hz
    }

    fn word_periods(&self, plan: &Plan) -> u32 {
        8 * u32::from(plan.word_bytes()) * divisor(plan.control)
    }
}
