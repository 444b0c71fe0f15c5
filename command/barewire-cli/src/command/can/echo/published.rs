//! The figures of David Jander's "A new SPI API for fast, low-latency regmap peripheral access"
//! (linux-spi, 2022): an MCP2518FD at an i.MX8MP, 250 kbit/s, canecho there and cangen elsewhere.
//!
//! The times are from an oscilloscope; for most of them the author gives one figure and no spread.
//! The shares of processor time are from top: that of the interrupt thread that receives, and idle
//! time. The author does not say of how many processors.

use serde::Serialize;

/// A kernel; the field names are an interface.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct PublishedRow {
    pub(super) kernel: &'static str,
    pub(super) rx_eof_to_tx_sof_us: f64,
    pub(super) irq_low_us: f64,
    pub(super) cs_to_clock_us: f64,
    pub(super) cs_high_gap_us: f64,
    pub(super) receive_cpu_percent: f64,
    pub(super) idle_percent: f64,
    pub(super) spi_accesses_per_frame: f64,
}

pub(super) const ALL: [PublishedRow; 3] = [
    PublishedRow {
        kernel: "A: Linux 5.18-rc1",
        rx_eof_to_tx_sof_us: 380.0,
        irq_low_us: 160.0,
        cs_to_clock_us: 10.0,
        cs_high_gap_us: 25.0,
        receive_cpu_percent: 13.3,
        idle_percent: 78.5,
        spi_accesses_per_frame: 6.0,
    },
    PublishedRow {
        kernel: "B: with polling",
        rx_eof_to_tx_sof_us: 310.0,
        irq_low_us: 144.0,
        cs_to_clock_us: 9.8,
        cs_high_gap_us: 30.0,
        receive_cpu_percent: 10.2,
        idle_percent: 81.6,
        spi_accesses_per_frame: 6.0,
    },
    PublishedRow {
        kernel: "C: with a fast path",
        rx_eof_to_tx_sof_us: 152.0,
        irq_low_us: 55.0,
        cs_to_clock_us: 2.6,
        cs_high_gap_us: 5.0,
        receive_cpu_percent: 4.4,
        idle_percent: 92.9,
        spi_accesses_per_frame: 6.0,
    },
];
