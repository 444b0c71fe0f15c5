//! The chips whose registers are known by name, an entry each.

use std::ops::RangeInclusive;

use barewire::chip::mcp251xfd::{self, Oscillator};
use barewire::regmap::Map;

use crate::shared::text::near;

/// A chip with registers.
#[derive(Debug)]
pub(super) struct RegisterChip {
    /// Its name for `--chip`.
    pub(super) name: &'static str,
    /// Its registers.
    pub(super) map: &'static Map,
    /// Registers that show whether the chip is there: then none of them is all ones, and not all
    /// are zero.
    pub(super) proof: &'static [&'static str],
    /// The fastest clock it takes, with an oscillator of this many hertz.
    pub(super) max_speed_hz: fn(oscillator_hz: u32) -> u32,
    /// The oscillators it works with.
    pub(super) clock_hz: RangeInclusive<u32>,
    /// Its slowest and its fastest oscillator, for a board whose oscillator is not given.
    pub(super) oscillator_hz: [u32; 2],
    /// Why a write may have had no effect.
    pub(super) hint: &'static str,
}

const CAN: RegisterChip = RegisterChip {
    name: "mcp2518fd",
    map: &mcp251xfd::MAP,
    proof: &["OSC", "C1CON"],
    max_speed_hz: |oscillator_hz| Oscillator::new(oscillator_hz).spi_max_hz(),
    clock_hz: 1_000_000..=40_000_000,
    // The data sheets' crystals: 4 (for the PLL), 20 and 40 MHz.
    oscillator_hz: [4_000_000, 40_000_000],
    hint: "most of its registers are written in Configuration mode alone: C1CON.REQOP=4",
};

/// All of them.
pub(super) static CHIPS: [RegisterChip; 2] =
    [CAN, RegisterChip { name: "mcp2517fd", map: &mcp251xfd::MAP_2517FD, ..CAN }];

impl RegisterChip {
    /// The chip of that name.
    pub(super) fn find(name: &str) -> Result<&'static Self, String> {
        let found = CHIPS.iter().find(|chip| chip.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| near::unknown("chip", name, &CHIPS.each_ref().map(|chip| chip.name)))
    }
}
