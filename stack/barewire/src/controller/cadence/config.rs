//! Settings to register values: the divider, the mode and the line.

use super::P_LINE;
use super::regs::{
    BAUD_RATE_DIV, CLK_PH, CLK_POL, CS, LINES, MANUAL_CS, MODE_SEL, baud, cs_bit, divisor,
};
use crate::controller::block::BlockConfig;
use crate::controller::lines::{self, Select};
use crate::controller::{CsLine, Limits, Plan, Preset};
use crate::spi::{Effective, Error, Mode, Settings, Transfer};
use crate::time::{quotient, quotient_ceil};

/// The divider field of the fastest clock: by 4.
const FASTEST: u32 = 1;
/// The divider field of the slowest clock: by 256.
const SLOWEST: u32 = 7;

/// CONFIG of a controller at its fastest clock that selects no line.
pub(super) const IDLE: u32 = MODE_SEL | MANUAL_CS | CS | baud(FASTEST);

/// The properties of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CadenceConfig {
    /// The reference clock (SPI_Ref_Clk), in hertz, above zero.
    pub reference_hz: u32,
    /// The lines; a device names one by its index.
    pub chip_selects: [CsLine; 4],
    /// Transfers that take longer on the wire, in nanoseconds, wait by interrupt; the others are
    /// polled. [`ALWAYS_POLL`](crate::controller::ALWAYS_POLL) if there is no interrupt.
    pub poll_limit_ns: u32,
}

impl CadenceConfig {
    /// CONFIG's divider for the fastest clock not above `speed_hz`.
    fn baud_for(&self, speed_hz: u32) -> Result<u32, Error> {
        if speed_hz == 0 {
            return Err(Error::SpeedZero);
        }
        (FASTEST..=SLOWEST)
            .map(baud)
            .find(|&field| {
                u64::from(speed_hz) * u64::from(divisor(field)) >= self.reference_hz.into()
            })
            .ok_or_else(|| {
                let min_hz = quotient_ceil(self.reference_hz, divisor(baud(SLOWEST)));
                Error::SpeedTooLow { asked_hz: speed_hz, min_hz }
            })
    }
}

impl BlockConfig for CadenceConfig {
    fn check(&self) {
        assert!(self.reference_hz > 0, "the block's reference clock runs");
        for (channel, _) in lines::native(&self.chip_selects) {
            assert!(channel < LINES, "the block has SS0 to SS2, and no line {channel}");
        }
    }

    fn chip_selects(&self) -> &[CsLine] {
        &self.chip_selects
    }

    fn limits(&self, timer_hz: u32) -> Limits {
        let slowest = quotient_ceil(self.reference_hz, divisor(baud(SLOWEST)));
        Limits::new(slowest, self.reference_hz / divisor(baud(FASTEST)), 1 << 7, timer_hz)
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
        let mut regs = [0; 4];
        if let Select::Native { channel } = select {
            if active_high {
                return Err(Error::CsPolarity { active_high: false });
            }
            regs[P_LINE] = cs_bit(channel);
        }
        check_bits(settings.bits_per_word)?;
        let mut control = IDLE & !BAUD_RATE_DIV | self.baud_for(settings.speed_hz)?;
        if mode.contains(Mode::CPHA) {
            control |= CLK_PH;
        }
        if mode.contains(Mode::CPOL) {
            control |= CLK_POL;
        }
        let plan = Plan::new(control, 0, 1);
        let mut preset =
            Preset::by_timer(settings, timer_hz, plan, regs)?.with_line(select, active_high);
        // A line of the block too: software moves it.
        preset.selection = preset.selection.holding_cs(true);
        let speed_hz = quotient(self.reference_hz, divisor(control));
        Ok((preset, Effective::by_timer(speed_hz, settings, timer_hz)))
    }

    fn plan(&self, preset: &Preset, transfer: &Transfer<'_>) -> Result<u32, Error> {
        if transfer.bits_per_word != 0 {
            check_bits(transfer.bits_per_word)?;
        }
        let device = preset.plan.control;
        match transfer.speed_hz {
            0 => Ok(device),
            speed_hz => Ok(device & !BAUD_RATE_DIV | self.baud_for(speed_hz)?),
        }
    }

    fn poll_limit_ns(&self) -> u32 {
        self.poll_limit_ns
    }

    fn reference_hz(&self) -> u32 {
        self.reference_hz
    }

    fn word_periods(&self, plan: &Plan) -> u32 {
        8 * divisor(plan.control)
    }
}

fn check_bits(bits: u8) -> Result<(), Error> {
    if bits == 8 { Ok(()) } else { Err(Error::BitsPerWord { bits }) }
}
