//! Settings to register values: divider, mode, chip select, delays.

use super::regs::{
    BITS_16, CHANNELS, CPOL, CSAAT, DELAY_MAX, DLYBCS_MIN, DLYBCT, DLYBCT_PERIODS, LLB, MODFDIS,
    MSTR, NCPHA, PS, SCBR, WDRBT, dlybcs, dlybct, dlybct_of, dlybs, pcs, scbr, scbr_of,
};
use super::{P_CHANNEL, P_MR, P_NATIVE, P_PCS};
use crate::controller::block::BlockConfig;
use crate::controller::lines::{self, Select};
use crate::controller::{CsLine, Limits, Plan, Preset, word_bytes};
use crate::spi::{Effective, Error, MessageError, Mode, Settings, Transfer};
use crate::time::{NS_PER_S, div_ceil, mul_div, mul_div_ceil, quotient, quotient_ceil};

/// Errata of earlier parts with this block forbid 1: AT91SAM9 "Bad tx_ready Behavior when CSAAT = 1
/// and SCBR = 1" (a word may be sent twice), AVR32 UC3A "Bad serial clock generation on 2nd chip
/// select when SCBR = 1, CPOL = 1 and NCPHA = 0" (an extra pulse). At 1 the SPI clock would be the
/// peripheral clock, 132 MHz on SAMA5D3, too fast for a pin.
const SCBR_MIN: u32 = 2;
const SCBR_MAX: u32 = 255;
/// The slowest clock whose half period has certainly passed after RDRF and a read of RDR: 50 ns,
/// less than any read of a peripheral register takes on these chips.
const FAST_MIN_HZ: u32 = 10_000_000;

/// How many words are in flight, and what prevents the loss of received words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Pipe {
    /// Two words; the block starts the second only when the first was read (WDRBT). Late software
    /// costs time, never data. For SAMA5D3 and other parts with that bit.
    WaitDataRead,
    /// One word. Late software costs time, never data; each word costs the time to read it and to
    /// write the next. For blocks without WDRBT.
    OneWord,
    /// Two words; the block does not wait for software. There is no gap between words as long as
    /// software reads each in time; if it is late, the message fails ([`Error::Overrun`]). For
    /// software that is not preempted, or a slow clock.
    TwoWords,
}

/// How the block learns which native line is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PeripheralSelect {
    /// From MR: a message to another line than the previous one costs a write. For a bus with one
    /// device, or few changes of device.
    Fixed,
    /// From each word: messages of several devices alternate without a write, if they agree on
    /// loopback and DLYBCS. Each word costs one instruction more.
    Variable,
}

/// The properties of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AtmelConfig {
    /// The block's peripheral clock (MCK, or the part of it the PMC gives the block), in hertz,
    /// above zero.
    pub reference_hz: u32,
    /// The select lines; a device names one by its index.
    pub chip_selects: [CsLine; 4],
    /// How many words are in flight.
    pub pipe: Pipe,
    /// How the block learns which line is selected.
    pub peripheral_select: PeripheralSelect,
    /// Transfers that take longer than this on the wire, in nanoseconds, wait by interrupt; the
    /// others are polled. [`ALWAYS_POLL`](crate::controller::ALWAYS_POLL) if there is no interrupt.
    /// Each word takes an interrupt.
    pub poll_limit_ns: u32,
}

/// A delay in steps of `step_periods` of the peripheral clock, rounded up; `None` if it does not
/// fit.
fn steps(ns: u32, reference_hz: u32, step_periods: u32) -> Option<u32> {
    let steps = div_ceil(mul_div_ceil(ns.into(), reference_hz, NS_PER_S), step_periods);
    u32::try_from(steps).ok().filter(|&steps| steps <= DELAY_MAX)
}

impl AtmelConfig {
    /// MR's bits for every device, without a line or a delay.
    pub(super) fn mr(&self) -> u32 {
        let guard = if self.pipe == Pipe::WaitDataRead { WDRBT } else { 0 };
        let select = if self.peripheral_select == PeripheralSelect::Variable { PS } else { 0 };
        MSTR | MODFDIS | guard | select
    }

    /// The duration of `periods`, in nanoseconds, rounded down.
    fn periods_ns(&self, periods: u32) -> u64 {
        mul_div(periods.into(), NS_PER_S, self.reference_hz)
    }

    /// SCBR for the fastest clock not above `speed_hz`.
    fn scbr_for(&self, speed_hz: u32) -> Result<u32, Error> {
        if speed_hz == 0 {
            return Err(Error::SpeedZero);
        }
        let divisor = quotient_ceil(self.reference_hz, speed_hz).max(SCBR_MIN);
        if divisor > SCBR_MAX {
            let min_hz = self.limits(1).min_speed_hz;
            return Err(Error::SpeedTooLow { asked_hz: speed_hz, min_hz });
        }
        Ok(scbr(divisor))
    }

    /// BITS of a word length, and the bytes of a word.
    fn bits_for(bits: u8) -> Result<(u32, u8), Error> {
        match word_bytes(bits)? {
            1 => Ok((0, 1)),
            2 => Ok((BITS_16, 2)),
            _ => Err(Error::BitsPerWord { bits }),
        }
    }

    /// The native line that a chip's transfers use, since each transfer needs a CSR. A chip that a
    /// GPIO selects gets a line that is not wired. With four lines for four chips each gets its
    /// own, so devices that alternate do not overwrite each other's CSR.
    fn channel_for(&self, select: Select, chip_select: u8) -> Result<u8, Error> {
        match select {
            Select::Native { channel } if channel < CHANNELS => Ok(channel),
            Select::Native { .. } => Err(Error::NoSuchChipSelect { chip_select }),
            Select::Gpio { .. } | Select::None => {
                let before = self.chip_selects.iter().take(chip_select.into());
                let pins = before.filter(|line| matches!(line, CsLine::Gpio { .. })).count();
                let nth = if select == Select::None { 0 } else { pins };
                lines::idle_channels(&self.chip_selects, CHANNELS)
                    .nth(nth)
                    .ok_or(Error::NoIdleChipSelect)
            }
        }
    }

    /// DLYBCT for a word delay; `None` if it is 0 or too long.
    fn dlybct_for(&self, ns: u32) -> Option<u32> {
        steps(ns, self.reference_hz, DLYBCT_PERIODS).filter(|&steps| steps > 0)
    }

    /// DLYBS for a setup time.
    fn dlybs_for(&self, ns: u32) -> Result<u32, Error> {
        let max_ns = self.periods_ns(DELAY_MAX) as u32;
        steps(ns, self.reference_hz, 1).ok_or(Error::NativeCsDelay { asked_ns: ns, max_ns })
    }

    /// The largest divider (SCBR) with which half a clock takes no longer than a read of RDR.
    pub(super) fn fast_scbr_max(&self) -> u32 {
        self.reference_hz / FAST_MIN_HZ
    }

    /// How many periods of the peripheral clock a word takes under `csr`.
    pub(super) fn periods(&self, csr: u32) -> u32 {
        let bits = if csr & BITS_16 != 0 { 16 } else { 8 };
        bits * scbr_of(csr) + dlybct_of(csr) * DLYBCT_PERIODS
    }
}

impl BlockConfig for AtmelConfig {
    fn check(&self) {
        assert!(self.reference_hz > 0, "the block's peripheral clock runs");
    }

    fn chip_selects(&self) -> &[CsLine] {
        &self.chip_selects
    }

    fn limits(&self, timer_hz: u32) -> Limits {
        Limits::new(
            quotient_ceil(self.reference_hz, SCBR_MAX),
            self.reference_hz / SCBR_MIN,
            1 << 7 | 1 << 15,
            timer_hz,
        )
    }

    fn configure(&self, settings: &Settings, timer_hz: u32) -> Result<(Preset, Effective), Error> {
        let (select, active_high) = lines::find(&self.chip_selects, settings)?;
        let mode = settings.mode;
        if mode.contains(Mode::LSB_FIRST) {
            return Err(Error::LsbFirst);
        }
        let native = matches!(select, Select::Native { .. });
        if native && active_high {
            // NPCS is active low, whatever the table says.
            return Err(Error::CsPolarity { active_high: false });
        }
        let channel = usize::from(self.channel_for(select, settings.chip_select)?);
        let scbr = self.scbr_for(settings.speed_hz)?;
        let (bits, word_bytes) = Self::bits_for(settings.bits_per_word)?;
        let divisor = scbr_of(scbr);

        // CSAAT also for chips on a GPIO: without it the block deselects its own line whenever
        // software is late, and spends DLYBCS and DLYBS on selecting it again.
        let mut csr = CSAAT | scbr | bits;
        if mode.contains(Mode::CPOL) {
            csr |= CPOL;
        }
        if !mode.contains(Mode::CPHA) {
            csr |= NCPHA;
        }
        let mut mr = self.mr();
        if mode.contains(Mode::LOOP) {
            mr |= LLB;
        }
        let pcs = pcs(channel);
        let variable = self.peripheral_select == PeripheralSelect::Variable;
        if !variable {
            mr |= pcs;
        }

        // The delays that the block cannot make stay in here for the timer.
        let mut by_timer = *settings;
        let mut effective =
            Effective::by_timer(quotient(self.reference_hz, divisor), settings, timer_hz);
        if let Some(steps) = self.dlybct_for(settings.word_delay_ns) {
            csr |= dlybct(steps);
            by_timer.word_delay_ns = 0;
            effective.word_delay_ns = self.periods_ns(steps * DLYBCT_PERIODS);
        }
        if native {
            let setup = self.dlybs_for(settings.cs_setup_ns)?;
            csr |= dlybs(setup);
            by_timer.cs_setup_ns = 0;
            effective.cs_setup_ns =
                if setup > 0 { self.periods_ns(setup) } else { self.periods_ns(divisor) / 2 };
            if let Some(inactive) = steps(settings.cs_inactive_ns, self.reference_hz, 1) {
                // The block waits before it selects again; software continues meanwhile.
                mr |= dlybcs(inactive);
                by_timer.cs_inactive_ns = 0;
                effective.cs_inactive_ns = self.periods_ns(inactive.max(DLYBCS_MIN));
            }
        }

        let mut regs = [0; 4];
        regs[P_MR] = mr;
        regs[P_CHANNEL] = channel as u32;
        regs[P_NATIVE] = native.into();
        regs[P_PCS] = if variable { pcs } else { 0 };
        let plan = Plan::new(csr, 0, word_bytes);
        let mut preset =
            Preset::by_timer(&by_timer, timer_hz, plan, regs)?.with_line(select, active_high);
        preset.selection = preset.selection.holding_cs(!native);
        Ok((preset, effective))
    }

    fn plan(&self, preset: &Preset, transfer: &Transfer<'_>) -> Result<u32, Error> {
        let device = preset.plan.control;
        let mut csr = device;
        if transfer.speed_hz != 0 {
            csr = csr & !SCBR | self.scbr_for(transfer.speed_hz)?;
        }
        if transfer.bits_per_word != 0 {
            csr = csr & !BITS_16 | Self::bits_for(transfer.bits_per_word)?.0;
        }
        if transfer.word_delay_ns != 0 {
            // The longer of the two. The block makes it only if both fit; otherwise the timer makes
            // both.
            let fits = preset.plan.word_delay_ticks == 0;
            csr &= !DLYBCT;
            if let (true, Some(steps)) = (fits, self.dlybct_for(transfer.word_delay_ns)) {
                csr |= dlybct(steps.max(dlybct_of(device)));
            }
        }
        Ok(csr)
    }

    fn complete(&self, _preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        for transfer in message {
            if transfer.plan.control & DLYBCT != 0 {
                // The block makes the delay that the timer would.
                transfer.plan.word_delay_ticks = 0;
            }
        }
        Ok(())
    }

    fn poll_limit_ns(&self) -> u32 {
        self.poll_limit_ns
    }

    fn reference_hz(&self) -> u32 {
        self.reference_hz
    }

    fn word_periods(&self, plan: &Plan) -> u32 {
        self.periods(plan.control)
    }
}
