//! Settings to register values: dividers, mode, chip select, delays.

use super::CS_HIGH;
use super::regs::{
    BURST_BYTES_MAX, CHANNEL_MODE_ALL, CSD_CTL_MAX, DIVIDERS, EN, FIFO_WORDS, LBC, SCLK_PHA_ALL,
    SCLK_POL_ALL, SMC, channel_select, csd_ctl, dividers, divisor, ss_pol,
};
use crate::controller::{Limits, Plan, Program, delay_ticks, word_bytes};
use crate::spi::{Effective, Error, MessageError, Mode, Settings, Transfer};
use crate::time::{effective_ns, ticks_at_least};

const NS_PER_S: u64 = 1_000_000_000;
const PS_PER_S: u128 = 1_000_000_000_000;
/// The slowest clock whose half period is certainly over once RXDATA has been read after RR:
/// 50 ns, less than any read of a peripheral register takes on these chips.
const FAST_START_MIN_HZ: u64 = 10_000_000;
/// The datasheet's lag of the block's own select is half a period less this.
const SS_LAG_LESS_NS: u64 = 2;

/// One line of a controller's table of chip selects: a property of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsLine {
    /// No such line.
    Absent,
    /// The block's own SS line `channel` (0 to 3).
    Native {
        /// Which SS line.
        channel: u8,
        /// Its active level.
        active_high: bool,
    },
    /// Pin `bit` of the GPIO bank.
    Gpio {
        /// Which pin, 0 to 31.
        bit: u8,
        /// Its active level.
        active_high: bool,
    },
    /// A line whose driver may sleep: refused when a device on it is opened.
    Sleeping,
}

/// How transfers longer than the FIFO are fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    /// Bursts of 512 bytes, refilled while they run: no idle clocks for 4,096 bits.
    Refill,
    /// Bursts of one FIFO load, started when full: for a model that runs a burst in no time and
    /// does not count its FIFOs.
    FifoLoads,
}

/// What the board fixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcspiConfig {
    /// The block's reference clock (ECSPI_CLK_ROOT), in hertz, above zero.
    pub reference_hz: u32,
    /// The lines; a device names one by its index.
    pub chip_selects: [CsLine; 4],
    /// How long transfers are fed.
    pub streaming: Streaming,
    /// Transfers that take longer on the wire, in nanoseconds, wait by interrupt; the others are
    /// polled. [`EcspiConfig::ALWAYS_POLL`] if there is no interrupt. Without effect under
    /// [`Streaming::FifoLoads`], whose model has no counts to interrupt by.
    pub poll_limit_ns: u32,
}

impl EcspiConfig {
    /// The [`poll_limit_ns`](EcspiConfig::poll_limit_ns) under which every transfer is polled.
    pub const ALWAYS_POLL: u32 = u32::MAX;

    pub(super) fn limits(&self, timer_hz: u32) -> Limits {
        Limits {
            max_speed_hz: self.reference_hz,
            min_speed_hz: self.reference_hz.div_ceil(16 << 15),
            bits_per_word_mask: 1 << 7 | 1 << 15 | 1 << 31,
            timer_hz,
        }
    }

    /// CONREG's divider bits for the fastest clock not above `speed_hz`.
    fn dividers_for(&self, speed_hz: u32) -> Result<u32, Error> {
        if speed_hz == 0 {
            return Err(Error::SpeedZero);
        }
        let divisor = self.reference_hz.div_ceil(speed_hz);
        // The smallest post divider that brings the pre divider into range has the finest step.
        (0..16)
            .map(|post| (divisor.div_ceil(1 << post), post))
            .find(|&(pre, _)| pre <= 16)
            .map(|(pre, post)| dividers(pre, post))
            .ok_or(Error::SpeedTooLow { asked_hz: speed_hz, min_hz: self.limits(1).min_speed_hz })
    }

    /// CONREG for a clock not above `speed_hz` on `channel`, without a burst length.
    fn conreg_for(&self, speed_hz: u32, channel: u32) -> Result<u32, Error> {
        let dividers = self.dividers_for(speed_hz)?;
        let fast = u64::from(self.reference_hz) >= FAST_START_MIN_HZ * divisor(dividers);
        let start = if fast { SMC } else { 0 };
        Ok(EN | CHANNEL_MODE_ALL | channel | dividers | start)
    }

    pub(super) fn configure(
        &self,
        settings: &Settings,
        timer_hz: u32,
    ) -> Result<(Program, Effective), Error> {
        let (channel, cs_mask, active_high) = self.line(settings)?;
        let mode = settings.mode;
        if mode.contains(Mode::LSB_FIRST) {
            return Err(Error::LsbFirst);
        }
        if mode.contains(Mode::CS_HIGH) != active_high && !mode.contains(Mode::NO_CS) {
            return Err(Error::CsPolarity { active_high });
        }
        let conreg = self.conreg_for(settings.speed_hz, channel_select(channel))?;
        let divisor = divisor(conreg);
        let speed_hz = (u64::from(self.reference_hz) / divisor) as u32;
        let period_ns = (NS_PER_S * divisor).div_ceil(u64::from(self.reference_hz));

        let mut configreg = ss_pol(self.native_active_high());
        if mode.contains(Mode::CPHA) {
            configreg |= SCLK_PHA_ALL;
        }
        if mode.contains(Mode::CPOL) {
            configreg |= SCLK_POL_ALL;
        }
        let testreg = if mode.contains(Mode::LOOP) { LBC } else { 0 };
        let settle_ticks = ticks_at_least(2 * period_ns, timer_hz) as u32 & !CS_HIGH;

        // Without a chip select a line moves too, but none that a chip listens to.
        let native = cs_mask == 0 && !mode.contains(Mode::NO_CS);
        let (delays, periodreg, effective_setup_ns, effective_hold_ns) = if native {
            self.native_delays(settings, timer_hz, divisor)?
        } else {
            let delays = [
                delay_ticks(settings.cs_setup_ns, timer_hz)?,
                delay_ticks(settings.cs_hold_ns, timer_hz)?,
                delay_ticks(settings.cs_inactive_ns, timer_hz)?,
            ];
            let setup = effective_ns(settings.cs_setup_ns.into(), timer_hz);
            let hold = effective_ns(settings.cs_hold_ns.into(), timer_hz);
            (delays, 0, setup, hold)
        };
        let [cs_setup_ticks, cs_hold_ticks, cs_inactive_ticks] = delays;
        let plan = Plan::new(
            conreg,
            delay_ticks(settings.word_delay_ns, timer_hz)?,
            word_bytes(settings.bits_per_word)?,
        );
        let program = Program {
            plan,
            // What would pulse the block's own line depends on the message.
            asks: native,
            poll_bytes_max: self.poll_bytes_max(&plan, timer_hz),
            max_transfer_bytes: self.burst_bytes_max(),
            regs: [
                configreg,
                periodreg,
                testreg,
                cs_mask,
                settle_ticks | if active_high { CS_HIGH } else { 0 },
            ],
            cs_setup_ticks,
            cs_hold_ticks,
            cs_inactive_ticks,
            timed: cs_setup_ticks | cs_hold_ticks | cs_inactive_ticks != 0,
        };
        let effective = Effective {
            speed_hz,
            cs_setup_ns: effective_setup_ns,
            cs_hold_ns: effective_hold_ns,
            cs_inactive_ns: effective_ns(settings.cs_inactive_ns.into(), timer_hz),
            word_delay_ns: effective_ns(settings.word_delay_ns.into(), timer_hz),
            quantum_ns: effective_ns(1, timer_hz),
        };
        Ok((program, effective))
    }

    /// Channel, GPIO mask (0: native, or no line at all) and polarity of the line a device names.
    fn line(&self, settings: &Settings) -> Result<(u8, u32, bool), Error> {
        let chip_select = settings.chip_select;
        if settings.mode.contains(Mode::NO_CS) {
            return self.idle_channel().map(|channel| (channel, 0, false)).ok_or(Error::NoCs);
        }
        match self.chip_selects.get(usize::from(chip_select)) {
            None | Some(CsLine::Absent) => Err(Error::NoSuchChipSelect { chip_select }),
            Some(CsLine::Sleeping) => Err(Error::CsCanSleep),
            Some(&CsLine::Native { channel, active_high }) => Ok((channel & 3, 0, active_high)),
            // Some channel has to be selected: one whose SS no chip listens to.
            // There is one: this line leaves at most three of the four to native ones.
            Some(&CsLine::Gpio { bit, active_high }) => {
                Ok((self.idle_channel().unwrap_or(0), 1 << (bit & 31), active_high))
            }
        }
    }

    fn native_channels(&self) -> impl Iterator<Item = (u8, bool)> {
        self.chip_selects.into_iter().filter_map(|line| match line {
            CsLine::Native { channel, active_high } => Some((channel & 3, active_high)),
            _ => None,
        })
    }

    fn native_active_high(&self) -> u8 {
        self.native_channels().fold(0, |mask, (channel, high)| mask | u8::from(high) << channel)
    }

    /// A channel whose SS no chip listens to.
    fn idle_channel(&self) -> Option<u8> {
        (0..4).find(|&channel| self.native_channels().all(|(used, _)| used != channel))
    }

    /// The block's own line: setup in clocks, hold as it is, inactive by software from the
    /// moment the burst is known to be over, one period before the line may rise.
    fn native_delays(
        &self,
        settings: &Settings,
        timer_hz: u32,
        divisor: u64,
    ) -> Result<([u32; 3], u32, u64, u64), Error> {
        let reference_hz = u64::from(self.reference_hz);
        let clocks_ns = |clocks: u64| clocks * divisor * NS_PER_S / reference_hz;
        let clocks = (u64::from(settings.cs_setup_ns) * reference_hz).div_ceil(divisor * NS_PER_S);
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
        let inactive_ticks = if settings.cs_inactive_ns == 0 {
            0
        } else {
            delay_ticks(settings.cs_inactive_ns.saturating_add(period_ns as u32 + 1), timer_hz)?
        };
        let delays = [0, 0, inactive_ticks];
        Ok((delays, csd_ctl(clocks as u32), clocks_ns(clocks), hold_ns))
    }

    /// The longest burst: what the block's own select line stays active for.
    pub(super) fn burst_bytes_max(&self) -> usize {
        match self.streaming {
            Streaming::Refill => BURST_BYTES_MAX,
            Streaming::FifoLoads => FIFO_WORDS * 4,
        }
    }

    /// Refuses what would pulse the block's own select line.
    #[inline]
    pub(super) fn check_native(
        &self,
        program: &Program,
        message: &[Transfer<'_>],
    ) -> Result<(), MessageError> {
        // Only a device on such a line has the controller asked.
        if !program.asks {
            return Ok(());
        }
        let max_bytes = self.burst_bytes_max();
        let last = message.len().saturating_sub(1);
        let pulses = |(index, transfer): (usize, &Transfer<'_>)| {
            transfer.data.len() > max_bytes
                || transfer.word_delay_ns > 0
                || (index < last && !transfer.cs_change)
        };
        match message.iter().enumerate().position(pulses) {
            Some(index) => {
                Err(MessageError::refused(Error::NativeCsWouldPulse { max_bytes }, index))
            }
            None => Ok(()),
        }
    }

    /// The longest transfer of `plan` that is polled.
    fn poll_bytes_max(&self, plan: &Plan, timer_hz: u32) -> usize {
        if self.poll_limit_ns == Self::ALWAYS_POLL || self.streaming == Streaming::FifoLoads {
            return usize::MAX;
        }
        let byte_ps = 8 * u128::from(divisor(plan.control)) * PS_PER_S;
        let gap_ps = u128::from(plan.word_delay_ticks) * PS_PER_S;
        let cost_ps = byte_ps.div_ceil(self.reference_hz.into())
            + gap_ps.div_ceil(u128::from(timer_hz) * u128::from(plan.word_bytes()));
        usize::try_from(u128::from(self.poll_limit_ns) * 1_000 / cost_ps).unwrap_or(usize::MAX)
    }

    /// Decides of each transfer of a planned message whether its end is awaited by interrupt.
    pub(super) fn plan_waits(
        &self,
        program: &Program,
        timer_hz: u32,
        message: &mut [Transfer<'_>],
    ) {
        if program.poll_bytes_max == usize::MAX {
            return;
        }
        let device = program.plan;
        for transfer in message {
            let plan = transfer.plan;
            let same_pace = plan.control == device.control
                && plan.word_delay_ticks == device.word_delay_ticks
                && plan.word_bytes() == device.word_bytes();
            let max = if same_pace {
                program.poll_bytes_max
            } else {
                self.poll_bytes_max(&plan, timer_hz)
            };
            transfer.plan = plan.with_interrupt(transfer.data.len() > max);
        }
    }

    /// A transfer's CONREG, without a burst length.
    #[inline]
    pub(super) fn plan(&self, program: &Program, transfer: &Transfer<'_>) -> Result<u32, Error> {
        if transfer.speed_hz == 0 {
            return Ok(program.plan.control);
        }
        self.plan_speed(program, transfer.speed_hz)
    }

    #[cold]
    fn plan_speed(&self, program: &Program, speed_hz: u32) -> Result<u32, Error> {
        let device = program.plan.control;
        let conreg = self.conreg_for(speed_hz, device & channel_select(3))?;
        // CSD_CTL counts clocks: a faster clock would cut the setup time the device asked for.
        if program.regs[super::P_PERIODREG] != 0
            && divisor(conreg & DIVIDERS) < divisor(device & DIVIDERS)
        {
            return Err(Error::NativeCsDelay { asked_ns: u32::MAX, max_ns: 0 });
        }
        Ok(conreg)
    }
}
