//! Microchip's bit-serial converters MCP3002, MCP3004, MCP3008, MCP3204 and MCP3208.
//!
//! *Read first*: DS21295 (MCP3004/3008), sections 3.0, 4.0, 5.0 and 6.2 with figures 5-1 and 5-2;
//! and the same sections of DS21298 (MCP3204/3208) and DS21294 (MCP3002); [`Chip`], which this
//! implements.
//!
//! # How it works
//! There are no bytes. After CS has fallen the chip waits for the first clock with DIN high. From
//! there it counts clocks (`part.rs`):
//!
//! | clock | DIN | DOUT |
//! |---|---|---|
//! | 0 | start | high impedance |
//! | 1 to 4 | SGL/DIFF, D2, D1, D0 | high impedance |
//! | 5 | don't care | high impedance |
//! | 6 | don't care | null bit, 0 |
//! | 7 on | don't care | the code, most significant bit first |
//! | then | don't care | the code again from B1 up to its most significant bit, then zeros |
//!
//! The MCP3002 takes SGL/DIFF, ODD/SIGN and MSBF in clocks 1 to 3 and has the null bit in clock 4.
//! If MSBF is set, it sends zeros instead of the second code. (One sentence of DS21294 on figure
//! 5-2 says the opposite. The sentences that define MSBF, and both figures, say this.)
//!
//! The input is the value of its [`Signal`] at the falling edge that ends the sample period: that
//! of clock 5 (MCP3002: 3). In mode 0,0 this edge is the end of that clock's cell. In mode 1,1 SCK
//! is high between two words, and the edge is the beginning of the next clock's cell. The code is
//! the input times 1024 (4096) over VREF, rounded down and clamped to its range. A
//! pseudo-differential pair whose IN+ is not above its IN- gives 0.
//!
//! Another conversion needs another fall of CS. The sampled charge leaks: B0 must be clocked out
//! within 1.2 ms of the end of the sample period (section 6.2, at 85 degrees). Otherwise there is a
//! complaint, and the code stays.
//!
//! # Not supported
//! - Linearity, offset, gain and noise.
//! - The sampling switch's resistance, and settling between inputs.
//! - IN- beyond 100 mV of VSS, which is converted as if it were allowed.
//! - VDD rising while CS is low.
//! - DOUT's delay after CLK's fall, which is below half a period at the clock limit.

mod part;
#[cfg(test)]
mod tests;

pub use part::{AdcPart, SupplyError};

use super::signal::Signal;
use crate::chip::complaints::Complaints;
use crate::chip::{Chip, Clocking, Ps, SetupEdge, WireLimits};

/// How long the sample capacitor keeps its charge, section 6.2: 1.2 ms.
const CHARGE_HOLDS_PS: Ps = 1_200_000_000;
const PS_PER_US: Ps = 1_000_000;

/// The most complaints kept until they are taken.
const COMPLAINTS_MAX: usize = 64;

/// Faults of a converter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdcFaults {
    /// There is no chip: DOUT is never driven and DIN is ignored.
    pub absent: bool,
    /// DOUT is shorted to ground: the chip works, but reads as zeros.
    pub dout_stuck_low: bool,
}

/// The input of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A channel against ground.
    Single(u8),
    /// A channel against its neighbour.
    Differential {
        /// IN+.
        plus: u8,
        /// IN-.
        minus: u8,
    },
}

/// One conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The input.
    pub input: Input,
    /// The rising edge that began the sample period.
    pub sampling_from_ps: Ps,
    /// The falling edge that ended it: the voltage at this time was converted.
    pub sampled_at_ps: Ps,
    /// The result.
    pub code: u16,
}

/// A converter.
#[derive(Clone, Debug)]
pub struct Adc {
    part: AdcPart,
    limits: WireLimits,
    vref_uv: i128,
    inputs: Vec<Signal>,
    faults: AdcFaults,

    // A selection in progress.
    /// SCK is high between words: mode 1,1.
    rests_high: bool,
    /// The clock of the last bit; `None` before the start bit.
    clock: Option<u32>,
    /// The configuration bits so far.
    config: u32,
    sampling_from: Ps,
    conversion: Option<Conversion>,

    last: Option<Conversion>,
    conversions: u64,
    complaints: Complaints<COMPLAINTS_MAX>,
}

impl Adc {
    /// Creates a converter supplied with `supply_mv`, with reference `vref_mv` and its inputs at
    /// ground.
    ///
    /// # Errors
    /// [`SupplyError::Supply`] outside 2,700 to 5,500 mV. [`SupplyError::Reference`] outside
    /// 250 mV to the supply. [`SupplyError::NoReferencePin`] if an MCP3002's reference is not its
    /// supply.
    pub fn new(part: AdcPart, supply_mv: u32, vref_mv: u32) -> Result<Self, SupplyError> {
        part.check_supply(supply_mv, vref_mv)?;
        Ok(Self {
            part,
            limits: part.limits(supply_mv),
            vref_uv: i128::from(vref_mv) * 1_000,
            inputs: vec![Signal::GROUND; usize::from(part.channels())],
            faults: AdcFaults::default(),
            rests_high: false,
            clock: None,
            config: 0,
            sampling_from: 0,
            conversion: None,
            last: None,
            conversions: 0,
            complaints: Complaints::default(),
        })
    }

    /// The part.
    #[must_use]
    pub fn part(&self) -> AdcPart {
        self.part
    }

    /// Connects `signal` to input CH`channel`.
    ///
    /// # Panics
    /// If the part has no such channel.
    pub fn set_input(&mut self, channel: u8, signal: Signal) {
        let channels = self.part.channels();
        assert!(
            channel < channels,
            "a {} has no CH{channel}, its last is CH{}",
            self.part,
            channels - 1
        );
        self.inputs[usize::from(channel)] = signal;
    }

    /// Sets the faults from now on.
    pub fn set_faults(&mut self, faults: AdcFaults) {
        self.faults = faults;
    }

    /// The number of conversions: selections that reached the end of the sample period.
    #[must_use]
    pub fn conversions(&self) -> u64 {
        self.conversions
    }

    /// The last conversion.
    #[must_use]
    pub fn last_conversion(&self) -> Option<Conversion> {
        self.last
    }

    /// The code of `input` at a time.
    ///
    /// # Panics
    /// If the part has no such channel.
    #[must_use]
    pub fn code_at(&self, input: Input, at: Ps) -> u16 {
        let level_uv = |channel: u8| i128::from(self.inputs[usize::from(channel)].at(at));
        let input_uv = match input {
            Input::Single(channel) => level_uv(channel),
            Input::Differential { plus, minus } => level_uv(plus) - level_uv(minus),
        };
        let codes = 1_i128 << self.part.bits();
        // Rounded towards zero, but what is below zero is cut off anyway.
        (input_uv * codes / self.vref_uv).clamp(0, codes - 1) as u16
    }

    /// The input that the configuration bits select (tables 5-1 and 5-2).
    fn input(&self) -> Input {
        let (single, number) = match self.part {
            // The last bit is MSBF.
            AdcPart::Mcp3002 => (self.config & 0b100 != 0, self.config >> 1 & 1),
            // D2 is a don't care where there are four channels.
            _ => (self.config & 0b1000 != 0, self.config & (u32::from(self.part.channels()) - 1)),
        };
        let channel = number as u8;
        if single {
            Input::Single(channel)
        } else {
            Input::Differential { plus: channel, minus: channel ^ 1 }
        }
    }

    /// The falling edge that ends the sample period.
    fn hold(&mut self, at: Ps) {
        let input = self.input();
        let conversion = Conversion {
            input,
            sampling_from_ps: self.sampling_from,
            sampled_at_ps: at,
            code: self.code_at(input, at),
        };
        self.conversions += 1;
        self.last = Some(conversion);
        self.conversion = Some(conversion);
    }

    /// DOUT's level in a clock; true if it is not driven.
    fn dout(&self, clock: u32) -> bool {
        let Some(conversion) = self.conversion else { return true };
        let bits = self.part.bits();
        let code = u32::from(conversion.code);
        match clock - self.part.null_clock() {
            0 => false,
            nth if nth <= bits => code >> (bits - nth) & 1 != 0,
            // B0 is sent once: the second code begins with B1.
            nth if nth < 2 * bits => self.lsb_first() && code >> (nth - bits) & 1 != 0,
            _ => false,
        }
    }

    /// Whether the code is sent again, least significant bit first.
    fn lsb_first(&self) -> bool {
        self.part != AdcPart::Mcp3002 || self.config & 1 == 0
    }

    /// One clock cell: takes DIN, returns DOUT.
    fn cell(&mut self, at: Ps, period: Ps, din: bool) -> bool {
        let Some(before) = self.clock else {
            self.clock = din.then_some(0);
            return true;
        };
        let clock = before.saturating_add(1);
        let (null_clock, bits) = (self.part.null_clock(), self.part.bits());
        let rising = at + period / 2;
        self.clock = Some(clock);
        // Mode 1,1: the cell begins with the falling edge of the clock before.
        if clock == null_clock && self.rests_high {
            self.hold(at);
        }
        let dout = self.dout(clock);
        if clock <= self.part.config_bits() {
            self.config = self.config << 1 | u32::from(din);
        }
        if clock + 2 == null_clock {
            self.sampling_from = rising;
        }
        if clock == null_clock + bits {
            self.check_charge(rising);
        }
        // Mode 0,0: the cell ends with the falling edge of its own clock.
        if clock + 1 == null_clock && !self.rests_high {
            self.hold(at + period);
        }
        dout
    }

    /// Called when the host samples B0.
    fn check_charge(&mut self, at: Ps) {
        let Some(conversion) = self.conversion else { return };
        let held = at.saturating_sub(conversion.sampled_at_ps);
        if held > CHARGE_HOLDS_PS {
            self.complaints.add(|| format!(
                "B0 was read {} us after the sample, whose charge holds for {} us: clock it faster",
                held.div_ceil(PS_PER_US),
                CHARGE_HOLDS_PS / PS_PER_US
            ));
        }
    }
}

impl Chip for Adc {
    fn name(&self) -> &'static str {
        self.part.name()
    }

    fn limits(&self) -> WireLimits {
        self.limits
    }

    /// tSUCS ends with the first rising edge, which in mode 1,1 is the second edge.
    fn setup_edge(&self) -> SetupEdge {
        SetupEdge::Sampling
    }

    fn clocked_in(&mut self, mode: u8) {
        self.rests_high = mode & 2 != 0;
    }

    fn select(&mut self, _at: Ps) {
        self.clock = None;
        self.config = 0;
        self.conversion = None;
    }

    fn deselect(&mut self, _at: Ps) {
        self.clock = None;
        self.conversion = None;
    }

    fn exchange(&mut self, clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        let Clocking { mut at, period } = clocking;
        if self.faults.absent {
            return u32::MAX >> (32 - bits);
        }
        let mut miso = 0;
        for bit in (0..bits).rev() {
            let dout = self.cell(at, period, mosi >> bit & 1 != 0);
            miso = miso << 1 | u32::from(dout);
            at += period;
        }
        if self.faults.dout_stuck_low { 0 } else { miso }
    }

    fn take_complaint(&mut self) -> Option<String> {
        self.complaints.take()
    }
}
