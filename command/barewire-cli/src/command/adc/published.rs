//! The figures of "Analyzing SPI driver performance on the Raspberry Pi" (Scott Ellis, 2017).
//!
//! Raspberry Pi 3, MCP3008 at 3.6 MHz (3.571 made), one channel, spidev: samples a second by
//! transfers an ioctl, with Linux's 10 µs at each `cs_change` and without.

use std::ops::RangeInclusive;

use super::Which;

/// A row of the article.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublishedRow {
    pub(super) batch: usize,
    /// With the unchanged kernel.
    pub(super) stock_samples_per_s: u32,
    /// The delay removed.
    pub(super) patched_samples_per_s: u32,
}

const ROWS: [PublishedRow; 4] = [
    row(1, 69_800, 69_600),
    row(10, 52_500, 98_300),
    row(100, 51_200, 105_200),
    row(500, 51_100, 105_500),
];

const fn row(batch: usize, stock_samples_per_s: u32, patched_samples_per_s: u32) -> PublishedRow {
    PublishedRow { batch, stock_samples_per_s, patched_samples_per_s }
}

/// One transfer as the author's scope showed it: 7.2 µs of clocks, 1.6 of lead, 0.4 of lag.
pub(super) const TRANSFER_US: f64 = 9.2;
/// Chip select inactive inside a message of the patched kernel.
pub(super) const GAP_US: f64 = 0.25;
/// Between two calls.
pub(super) const CALL_US: f64 = 5.0;

/// The author's clock: 3.6 MHz asked, 3.571 made.
const SPEED_HZ: RangeInclusive<u32> = 3_570_000..=3_600_000;

/// The published figures for that many conversions a message, if `which` is the set-up they were
/// measured on.
pub(super) fn of(which: &Which, channels: usize, batch: usize) -> Option<PublishedRow> {
    let Which { place, chip, effective_speed_hz, .. } = which;
    let his_board = !place.simulated || place.bus == "sim:rpi3";
    let same =
        his_board && *chip == "MCP3008" && channels == 1 && SPEED_HZ.contains(effective_speed_hz);
    ROWS.into_iter().find(|row| same && row.batch == batch)
}
