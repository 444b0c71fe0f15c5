//! Settings to register values: dividers, mode, chip select, delays.

use super::regs::{CPSDVSR_MAX, DSS, FIFO_WORDS, LBM, SCR_DIVISOR_MAX, SPH, SPO, SSE, scr};
use super::{NATIVE, P_CR1, P_FLAGS, P_SETTLE, PAIRS, cpsdvsr, divisor};
use crate::controller::block::BlockConfig;
use crate::controller::lines::{self, Select};
use crate::controller::{CsLine, Limits, Plan, Preset};
use crate::spi::{Effective, Error, MessageError, Mode, Settings, Transfer};
use crate::time::{NS_PER_S, mul_div, mul_div_ceil, quotient, quotient_ceil, ticks_at_least};

/// Clocks for which the block rests after a frame with SPH = 0, rounded up: until its select line
/// rises, one clock after the last capture, and the line's pulse.
const PAUSE_CLOCKS: u32 = 2;
/// Clocks of an exchange outside its frames, rounded up: from the select line's fall to the first
/// edge, and from the last edge to its rise.
const LINE_CLOCKS: u64 = 2;

/// The properties of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Pl022Config {
    /// The block's reference clock (SSPCLK), in hertz, above zero.
    pub reference_hz: u32,
    /// The select lines; a device names one by its index. The native line is channel 0, active low;
    /// a board with a chip on it can have no other chip.
    pub chip_selects: [CsLine; 4],
    /// Transfers that take longer than this on the wire, in nanoseconds, wait by interrupt; the
    /// others are polled. [`ALWAYS_POLL`](crate::controller::ALWAYS_POLL) if there is no interrupt.
    pub poll_limit_ns: u32,
}

impl Pl022Config {
    /// CPSDVSR and SCR for the fastest clock not above `speed_hz`.
    fn dividers_for(&self, speed_hz: u32) -> Result<u32, Error> {
        if speed_hz == 0 {
            return Err(Error::SpeedZero);
        }
        let wanted = quotient_ceil(self.reference_hz, speed_hz);
        let (mut best, mut dividers) = (u32::MAX, 0);
        // Not `step_by`, which divides.
        for prescaler in (1..=CPSDVSR_MAX / 2).map(|half| 2 * half) {
            let divisor = quotient_ceil(wanted, prescaler);
            if divisor <= SCR_DIVISOR_MAX && prescaler * divisor < best {
                best = prescaler * divisor;
                dividers = cpsdvsr(prescaler) | scr(divisor);
                // The product is even.
                if best <= wanted.next_multiple_of(2) {
                    break;
                }
            }
        }
        if dividers == 0 {
            let min_hz = self.limits(1).min_speed_hz;
            return Err(Error::SpeedTooLow { asked_hz: speed_hz, min_hz });
        }
        Ok(dividers)
    }

    /// The line that selects the chip of `settings`, and whether it is active high.
    fn select(&self, settings: &Settings) -> Result<(Select, bool), Error> {
        let (select, active_high) = lines::find(&self.chip_selects, settings)?;
        match select {
            Select::Native { channel: 0 } if active_high => {
                Err(Error::CsPolarity { active_high: false })
            }
            Select::Native { channel: 0 } => Ok((select, active_high)),
            Select::Native { .. } => {
                Err(Error::NoSuchChipSelect { chip_select: settings.chip_select })
            }
            Select::Gpio { .. } | Select::None => {
                // The native line falls for every frame, whichever chip is addressed.
                match lines::native(&self.chip_selects).next() {
                    Some(_) => Err(Error::NoIdleChipSelect),
                    None => Ok((select, active_high)),
                }
            }
        }
    }

    /// How long `frames` take under `control`, including its word length, in nanoseconds.
    pub(super) fn wire_ns(&self, control: u32, frames: usize) -> u64 {
        let frame_clocks = (control & DSS) + 1 + pause_clocks(control);
        let clocks = frames as u64 * u64::from(frame_clocks) + LINE_CLOCKS;
        mul_div(clocks * u64::from(divisor(control)), NS_PER_S, self.reference_hz)
    }
}

impl BlockConfig for Pl022Config {
    fn check(&self) {
        assert!(self.reference_hz > 0, "the block's reference clock runs");
    }

    fn chip_selects(&self) -> &[CsLine] {
        &self.chip_selects
    }

    fn limits(&self, timer_hz: u32) -> Limits {
        Limits::new(
            quotient_ceil(self.reference_hz, CPSDVSR_MAX * SCR_DIVISOR_MAX),
            self.reference_hz / 2,
            1 << 7 | 1 << 15,
            timer_hz,
        )
    }

    fn configure(&self, settings: &Settings, timer_hz: u32) -> Result<(Preset, Effective), Error> {
        let (select, active_high) = self.select(settings)?;
        let mode = settings.mode;
        if mode.contains(Mode::LSB_FIRST) {
            return Err(Error::LsbFirst);
        }
        let native = matches!(select, Select::Native { .. });
        if native {
            check_native_delays(settings)?;
        }
        let bit = |on: bool, bit: u32| if on { bit } else { 0 };
        let control = self.dividers_for(settings.speed_hz)?
            | bit(mode.contains(Mode::CPHA), SPH)
            | bit(mode.contains(Mode::CPOL), SPO);
        let divisor = divisor(control);
        let speed_hz = quotient(self.reference_hz, divisor);
        let period_ns = mul_div_ceil(divisor.into(), NS_PER_S, self.reference_hz);

        let mut regs = [0; 4];
        regs[P_CR1] = SSE | bit(mode.contains(Mode::LOOP), LBM);
        regs[P_FLAGS] = bit(native, NATIVE) | bit(mode.contains(Mode::CPHA), PAIRS);
        regs[P_SETTLE] = ticks_at_least(2 * period_ns, timer_hz) as u32;
        let plan = Plan::new(control, 0, block_word_bytes(settings.bits_per_word)?);
        let mut preset =
            Preset::by_timer(settings, timer_hz, plan, regs)?.with_line(select, active_high);
        // Whether the native line would pulse depends on the whole message.
        preset.asks = native;
        preset.selection = preset.selection.holding_cs(!native);
        Ok((preset, Effective::by_timer(speed_hz, settings, timer_hz)))
    }

    fn plan(&self, preset: &Preset, transfer: &Transfer<'_>) -> Result<u32, Error> {
        if transfer.bits_per_word != 0 {
            block_word_bytes(transfer.bits_per_word)?;
        }
        let device = preset.plan.control;
        if transfer.speed_hz == 0 {
            return Ok(device);
        }
        Ok(self.dividers_for(transfer.speed_hz)? | device & (SPH | SPO))
    }

    fn complete(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        check_native(preset, message)
    }

    fn poll_limit_ns(&self) -> u32 {
        self.poll_limit_ns
    }

    fn reference_hz(&self) -> u32 {
        self.reference_hz
    }

    fn word_periods(&self, plan: &Plan) -> u32 {
        (8 * u32::from(plan.word_bytes()) + pause_clocks(plan.control)) * divisor(plan.control)
    }
}

fn pause_clocks(control: u32) -> u32 {
    if control & SPH != 0 { 0 } else { PAUSE_CLOCKS }
}

fn block_word_bytes(bits: u8) -> Result<u8, Error> {
    match bits {
        8 | 16 => Ok(bits / 8),
        _ => Err(Error::BitsPerWord { bits }),
    }
}

/// The native line falls with the first bit and rises with the last: no delay is possible between.
fn check_native_delays(settings: &Settings) -> Result<(), Error> {
    let Settings { cs_setup_ns, cs_hold_ns, word_delay_ns, .. } = *settings;
    match [cs_setup_ns, cs_hold_ns, word_delay_ns].into_iter().find(|&asked_ns| asked_ns > 0) {
        Some(asked_ns) => Err(Error::NativeCsDelay { asked_ns, max_ns: 0 }),
        None => Ok(()),
    }
}

/// Whether two bytes of a planned message go in a frame: if frames follow each other without a
/// pause and every transfer has an even length. Decided for the whole message, because the word
/// length changes only while the block is disabled, when no chip should be selected.
#[inline]
pub(super) fn in_pairs(preset: &Preset, message: &[Transfer<'_>]) -> bool {
    let fits = |transfer: &Transfer<'_>| {
        transfer.data.len() % 2 == 0
            && (transfer.plan.word_delay_ticks == 0 || transfer.plan.word_bytes() == 2)
    };
    preset.regs[P_FLAGS] & PAIRS != 0 && message.iter().all(fits)
}

/// Bytes of a frame.
#[inline]
pub(super) fn frame_bytes(plan: &Plan, pairs: bool) -> u8 {
    if pairs { 2 } else { plan.word_bytes() }
}

/// Refuses messages that would pulse the native line: with SPH = 0 it rises after every frame, with
/// SPH = 1 when the transmit FIFO is empty, so only after the words that were in it at the start.
pub(super) fn check_native(preset: &Preset, message: &[Transfer<'_>]) -> Result<(), MessageError> {
    if preset.regs[P_FLAGS] & NATIVE == 0 {
        return Ok(());
    }
    let pairs = in_pairs(preset, message);
    let last = message.len().saturating_sub(1);
    for (index, transfer) in message.iter().enumerate() {
        let plan = &transfer.plan;
        let together = plan.control & SPH != 0 && plan.word_delay_ticks == 0;
        let frames_max = if together { FIFO_WORDS } else { 1 };
        let max_bytes = frames_max * usize::from(frame_bytes(plan, pairs));
        if transfer.data.len() > max_bytes || (index < last && !transfer.cs_change) {
            return Err(MessageError::refused(Error::NativeCsWouldPulse { max_bytes }, index));
        }
    }
    Ok(())
}
