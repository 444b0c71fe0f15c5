//! The parts: their limits, and the layout of their exchanges.

use super::{AdcError, Input};
use crate::spi::{Effective, Settings};

const NS_PER_S: u64 = 1_000_000_000;
/// The supply range of the family, in every data sheet.
const SUPPLY_MIN_MV: u32 = 2_700;
const SUPPLY_MAX_MV: u32 = 5_500;
/// The supply from which the higher clock is specified.
const SUPPLY_FAST_MV: u32 = 5_000;

/// A converter of the family. The figures are from the data sheets, chapter "Electrical
/// characteristics".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Part {
    /// The vendor's name.
    pub name: &'static str,
    /// The width of a code in bits.
    pub bits: u8,
    /// The number of channels.
    pub channels: u8,
    /// fCLK at 5 V and above, in hertz.
    pub max_hz: u32,
    /// fCLK below 5 V, in hertz.
    pub max_hz_low: u32,
    /// tCSH: CS inactive between two conversions, in nanoseconds.
    pub cs_inactive_ns: u32,
    /// tSUCS: CS active to the first rising edge of the clock, in nanoseconds.
    pub cs_setup_ns: u32,
    /// Zeros before the start bit, so that the code ends with the last byte.
    leading_zeros: u8,
    /// From the start bit to the null bit, in clocks.
    pub(super) start_to_null: u8,
}

/// 8 channels of 10 bits. Its clock below 5 V is 1 MHz, which users choose at 3.3 V; DS21295
/// specifies 1.35 MHz at 2.7 V and nothing in between.
pub static MCP3008: Part = Part {
    name: "MCP3008",
    bits: 10,
    channels: 8,
    max_hz: 3_600_000,
    max_hz_low: 1_000_000,
    cs_inactive_ns: 270,
    cs_setup_ns: 100,
    leading_zeros: 7,
    start_to_null: 6,
};
/// 4 channels of 10 bits.
pub static MCP3004: Part = Part { name: "MCP3004", channels: 4, ..MCP3008_COPY };
/// 8 channels of 12 bits.
pub static MCP3208: Part = Part {
    name: "MCP3208",
    bits: 12,
    max_hz: 2_000_000,
    cs_inactive_ns: 500,
    leading_zeros: 5,
    ..MCP3008_COPY
};
/// 4 channels of 12 bits.
pub static MCP3204: Part = Part {
    name: "MCP3204",
    bits: 12,
    channels: 4,
    max_hz: 2_000_000,
    cs_inactive_ns: 500,
    leading_zeros: 5,
    ..MCP3008_COPY
};
/// 2 channels of 10 bits.
pub static MCP3002: Part = Part {
    name: "MCP3002",
    channels: 2,
    max_hz: 3_200_000,
    max_hz_low: 1_200_000,
    cs_inactive_ns: 310,
    leading_zeros: 1,
    start_to_null: 4,
    ..MCP3008_COPY
};
/// The family.
pub static PARTS: [&Part; 5] = [&MCP3002, &MCP3004, &MCP3008, &MCP3204, &MCP3208];

/// The base of the other parts' definitions.
const MCP3008_COPY: Part = Part {
    name: "MCP3008",
    bits: 10,
    channels: 8,
    max_hz: 3_600_000,
    max_hz_low: 1_000_000,
    cs_inactive_ns: 270,
    cs_setup_ns: 100,
    leading_zeros: 7,
    start_to_null: 6,
};

/// The bytes to send for one conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Command {
    bytes: [u8; Self::LEN_MAX],
    len: usize,
}

impl Command {
    /// The length of the family's longest exchange.
    pub const LEN_MAX: usize = 3;

    /// The bytes of the exchange.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Part {
    /// Finds a part by name, ignoring case.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Part> {
        PARTS.into_iter().find(|part| part.name.eq_ignore_ascii_case(name))
    }

    /// The highest code.
    #[must_use]
    pub const fn code_max(&self) -> u16 {
        (1 << self.bits) - 1
    }

    /// The fastest clock at a supply of `supply_mv` millivolts, in hertz.
    ///
    /// # Errors
    /// [`AdcError::Supply`].
    pub const fn max_speed_hz(&self, supply_mv: u32) -> Result<u32, AdcError> {
        if supply_mv < SUPPLY_MIN_MV || supply_mv > SUPPLY_MAX_MV {
            let (min_mv, max_mv) = (SUPPLY_MIN_MV, SUPPLY_MAX_MV);
            return Err(AdcError::Supply { supply_mv, min_mv, max_mv });
        }
        // Two points are specified and nothing in between, so the lower limit applies below the
        // higher supply.
        Ok(if supply_mv >= SUPPLY_FAST_MV { self.max_hz } else { self.max_hz_low })
    }

    /// A device's settings for the part on line `chip_select`, supplied with `supply_mv` millivolts.
    ///
    /// # Errors
    /// [`AdcError::TooFast`], [`AdcError::Supply`].
    pub fn settings(
        &self,
        chip_select: u8,
        speed_hz: u32,
        supply_mv: u32,
    ) -> Result<Settings, AdcError> {
        let max_hz = self.max_speed_hz(supply_mv)?;
        if speed_hz > max_hz {
            return Err(AdcError::TooFast { speed_hz, max_hz, supply_mv });
        }
        // A slower clock than requested has a longer half period, so this is never too short.
        let half_ns = NS_PER_S / 2 / u64::from(speed_hz.max(1));
        let cs_setup_ns = u64::from(self.cs_setup_ns).saturating_sub(half_ns) as u32;
        let settings = Settings::new(chip_select, speed_hz);
        Ok(Settings { cs_setup_ns, cs_inactive_ns: self.cs_inactive_ns, ..settings })
    }

    /// The bytes to send to convert `input`.
    ///
    /// # Errors
    /// [`AdcError::NoSuchChannel`], [`AdcError::NoPair`].
    pub fn command(&self, input: Input) -> Result<Command, AdcError> {
        let channels = self.channels;
        let exists = |channel| match channel < channels {
            true => Ok(u32::from(channel)),
            false => Err(AdcError::NoSuchChannel { channel, channels }),
        };
        let (single, select) = match input {
            Input::Single(channel) => (1, exists(channel)?),
            Input::Differential { plus, minus } => {
                exists(minus)?;
                if plus ^ minus != 1 {
                    return Err(AdcError::NoPair { plus, minus });
                }
                // The pair's number in the upper bits; the last bit says which channel is IN+.
                (0, exists(plus)?)
            }
        };
        // Start and SGL/DIFF, then the selection: 3 bits, or for MCP3002 one bit and MSBF.
        let (word, word_bits) = match self.channels {
            2 => (1 << 3 | single << 2 | select << 1 | 1, 4),
            _ => (1 << 4 | single << 3 | select, 5),
        };
        let len = self.exchange_bytes();
        let shift = 32 - u32::from(self.leading_zeros) - word_bits;
        let [a, b, c, _] = (word << shift).to_be_bytes();
        Ok(Command { bytes: [a, b, c], len })
    }

    /// The length of one conversion's exchange in bytes.
    #[must_use]
    pub const fn exchange_bytes(&self) -> usize {
        let clocks = self.leading_zeros + self.start_to_null + 1 + self.bits;
        (clocks / 8) as usize
    }

    /// Decodes the received bytes.
    ///
    /// # Errors
    /// [`AdcError::NoChip`].
    pub fn decode(&self, received: &[u8]) -> Result<u16, AdcError> {
        let word = received.iter().fold(0, |word: u32, &byte| word << 8 | u32::from(byte));
        if word >> self.bits & 1 != 0 {
            let [_, a, b, c] = word.to_be_bytes();
            return Err(AdcError::NoChip { received: [a, b, c] });
        }
        Ok(word as u16 & self.code_max())
    }

    /// The minimum time of a conversion on the device's wire, in picoseconds: its clocks, tSUCS and
    /// tCSH, without software. If the controller pauses after each byte, the pause after the last
    /// one is not counted, because CS may rise in it.
    #[must_use]
    pub fn conversion_ps(&self, effective: &Effective) -> u64 {
        let bytes = self.exchange_bytes() as u64;
        let rest = u64::from(effective.word_rest_clocks);
        let clocks = bytes * (8 + rest) - rest;
        let clocks_ps = (clocks * NS_PER_S * 1_000).div_ceil(effective.speed_hz.max(1).into());
        // Half of the first clock is part of tSUCS already.
        let half_ps = NS_PER_S * 500 / u64::from(effective.speed_hz.max(1));
        let setup_ps = (u64::from(self.cs_setup_ns) * 1_000).saturating_sub(half_ps);
        clocks_ps + setup_ps + u64::from(self.cs_inactive_ns) * 1_000
    }

    /// The maximum of conversions per second by [`Part::conversion_ps`], rounded down.
    #[must_use]
    pub fn max_rate_hz(&self, effective: &Effective) -> u32 {
        let rate = NS_PER_S * 1_000 / self.conversion_ps(effective);
        u32::try_from(rate).unwrap_or(u32::MAX)
    }
}
