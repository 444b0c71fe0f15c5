//! The figures of "Analyzing SPI driver performance on the Raspberry Pi" (Scott Ellis, 2017).
//!
//! Raspberry Pi 3, MCP3008 at 3.6 MHz (3.571 made), one channel, spidev: samples a second by
//! transfers an ioctl, with Linux's 10 µs at each `cs_change` and without.

use std::ops::RangeInclusive;

use barewire_lab::figure;

use super::Which;

/// The article's rows: conversions an ioctl, the figure with the unchanged kernel and the one with the delay removed.
const ROWS: [(usize, [&str; 2]); 4] = [
    (1, ["ellis-stock-1", "ellis-patched-1"]),
    (10, ["ellis-stock-10", "ellis-patched-10"]),
    (100, ["ellis-stock-100", "ellis-patched-100"]),
    (500, ["ellis-stock-500", "ellis-patched-500"]),
];

/// One transfer as the author's scope showed it: 7.2 µs of clocks, 1.6 of lead, 0.4 of lag.
pub(super) const TRANSFER_US: f64 = 9.2;
/// Chip select inactive inside a message of the patched kernel.
pub(super) const GAP_US: f64 = 0.25;
/// Between two calls.
pub(super) const CALL_US: f64 = 5.0;

/// The author's clock: 3.6 MHz asked, 3.571 made.
const SPEED_HZ: RangeInclusive<u32> = 3_570_000..=3_600_000;

/// A row of the article.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    /// Samples a second with the unchanged kernel.
    pub(super) stock: f64,
    /// The delay removed.
    pub(super) patched: f64,
    /// The figure beside which the lab has barewire's.
    pub(super) id: &'static str,
}

/// The published figures for that many conversions a message, if `which` is the set-up they were measured on.
pub(super) fn of(which: &Which, channels: usize, batch: usize) -> Option<Published> {
    let Which { place, chip, effective_speed_hz, .. } = which;
    let his_board = !place.simulated || place.bus == "sim:rpi3";
    let same =
        his_board && *chip == "MCP3008" && channels == 1 && SPEED_HZ.contains(effective_speed_hz);
    let &(_, [stock, patched]) = ROWS.iter().find(|row| same && row.0 == batch)?;
    let figures = figure::published();
    let value = |id| Some(figures.iter().find(|figure| figure.id == id)?.value);
    Some(Published { stock: value(stock)?, patched: value(patched)?, id: patched })
}
