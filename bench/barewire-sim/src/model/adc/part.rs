//! The parts as data: channels, bits, clock positions, limits.
//!
//! *Read first*: DS21295 (MCP3004/3008), DS21298 (MCP3204/3208) and DS21294 (MCP3002), each section
//! 1.0 (electrical characteristics: timing parameters) and 5.0 (serial communication).
//!
//! # How it works
//! Clocks are counted from the start bit, which is clock 0. The five parts differ in the number of
//! configuration bits after it, and so in the clock whose falling edge ends the sample period and
//! brings the null bit. They also differ in the bits of a code. Everything else about a conversion
//! is equal.
//!
//! The data sheets give a clock limit at 5 V and one at 2.7 V and nothing in between, so any supply
//! below 5 V has the lower limit.

use std::fmt;

use crate::chip::WireLimits;

/// A converter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdcPart {
    /// 2 channels, 10 bits, the supply is the reference.
    Mcp3002,
    /// 4 channels, 10 bits.
    Mcp3004,
    /// 8 channels, 10 bits.
    Mcp3008,
    /// 4 channels, 12 bits.
    Mcp3204,
    /// 8 channels, 12 bits.
    Mcp3208,
}

/// Why a converter cannot be supplied like that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupplyError {
    /// VDD is outside 2.7 V to 5.5 V.
    Supply {
        /// The converter.
        part: AdcPart,
        /// VDD as given.
        actual_mv: u32,
    },
    /// VREF is outside 0.25 V to VDD.
    Reference {
        /// The converter.
        part: AdcPart,
        /// VDD.
        max_mv: u32,
        /// VREF as given.
        actual_mv: u32,
    },
    /// The part has no VREF pin, and VREF is not VDD.
    NoReferencePin {
        /// The converter.
        part: AdcPart,
        /// VDD.
        expected_mv: u32,
        /// VREF as given.
        actual_mv: u32,
    },
}

impl fmt::Display for SupplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Supply { part, actual_mv } => {
                let name = part.name();
                write!(f, "a {name} works from {SUPPLY_MIN_MV} to {SUPPLY_MAX_MV} mV, ")?;
                write!(f, "not at {actual_mv} mV")
            }
            Self::Reference { part, max_mv, actual_mv } => {
                let name = part.name();
                write!(f, "a {name}'s reference is from {REFERENCE_MIN_MV} mV to its supply ")?;
                write!(f, "({max_mv} mV), not {actual_mv} mV")
            }
            Self::NoReferencePin { part, expected_mv, actual_mv } => {
                let name = part.name();
                write!(f, "a {name} has its supply ({expected_mv} mV) as reference, ")?;
                write!(f, "not {actual_mv} mV")
            }
        }
    }
}

impl std::error::Error for SupplyError {}

/// Operating voltage, all data sheets.
const SUPPLY_MIN_MV: u32 = 2_700;
const SUPPLY_MAX_MV: u32 = 5_500;
/// Reference input, voltage range.
const REFERENCE_MIN_MV: u32 = 250;

/// The supply from which the faster clock is allowed: the table's condition is VDD = 5 V.
const FAST_FROM_MV: u32 = 5_000;

impl AdcPart {
    /// All parts.
    pub const ALL: [Self; 5] =
        [Self::Mcp3002, Self::Mcp3004, Self::Mcp3008, Self::Mcp3204, Self::Mcp3208];

    /// The vendor's name of the part.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mcp3002 => "MCP3002",
            Self::Mcp3004 => "MCP3004",
            Self::Mcp3008 => "MCP3008",
            Self::Mcp3204 => "MCP3204",
            Self::Mcp3208 => "MCP3208",
        }
    }

    /// The number of inputs; a power of two.
    #[must_use]
    pub const fn channels(self) -> u8 {
        match self {
            Self::Mcp3002 => 2,
            Self::Mcp3004 | Self::Mcp3204 => 4,
            Self::Mcp3008 | Self::Mcp3208 => 8,
        }
    }

    /// The width of a code in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Mcp3002 | Self::Mcp3004 | Self::Mcp3008 => 10,
            Self::Mcp3204 | Self::Mcp3208 => 12,
        }
    }

    /// Configuration bits after the start bit: SGL/DIFF, D2, D1, D0; MCP3002: SGL/DIFF, ODD/SIGN,
    /// MSBF.
    pub(super) const fn config_bits(self) -> u32 {
        match self {
            Self::Mcp3002 => 3,
            _ => 4,
        }
    }

    /// The clock with the null bit, counted from the start bit. The falling edge before it brings
    /// the null bit and ends the sample period, which began at the rising edge one and a half
    /// clocks earlier. Sections 5.0: *fourth rising edge* and *falling edge of the fifth clock*;
    /// MCP3002: *second* and *third*.
    pub(super) const fn null_clock(self) -> u32 {
        match self {
            Self::Mcp3002 => 4,
            _ => 6,
        }
    }

    /// Section 1.0, timing parameters. tHI and tLO (140, 125 and 250 ns) are half a period of the
    /// clock limit or less.
    #[must_use]
    pub const fn limits(self, supply_mv: u32) -> WireLimits {
        let (fast_hz, slow_hz, cs_inactive_ns) = match self {
            Self::Mcp3002 => (3_200_000, 1_200_000, 310),
            Self::Mcp3004 | Self::Mcp3008 => (3_600_000, 1_350_000, 270),
            Self::Mcp3204 | Self::Mcp3208 => (2_000_000, 1_000_000, 500),
        };
        WireLimits {
            modes: 0b1001,    // Features: modes 0,0 and 1,1.
            cs_setup_ns: 100, // tSUCS: CS fall to first rising CLK edge.
            cs_hold_ns: 0,    // None given.
            cs_inactive_ns,   // tCSH: CS disable time.
            max_clock_hz: if supply_mv >= FAST_FROM_MV { fast_hz } else { slow_hz },
        }
    }

    /// Whether the part works at that supply and reference.
    pub(crate) fn check_supply(self, supply_mv: u32, vref_mv: u32) -> Result<(), SupplyError> {
        if !(SUPPLY_MIN_MV..=SUPPLY_MAX_MV).contains(&supply_mv) {
            return Err(SupplyError::Supply { part: self, actual_mv: supply_mv });
        }
        if self == Self::Mcp3002 {
            if vref_mv != supply_mv {
                return Err(SupplyError::NoReferencePin {
                    part: self,
                    expected_mv: supply_mv,
                    actual_mv: vref_mv,
                });
            }
        } else if !(REFERENCE_MIN_MV..=supply_mv).contains(&vref_mv) {
            return Err(SupplyError::Reference {
                part: self,
                max_mv: supply_mv,
                actual_mv: vref_mv,
            });
        }
        Ok(())
    }
}

impl fmt::Display for AdcPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
