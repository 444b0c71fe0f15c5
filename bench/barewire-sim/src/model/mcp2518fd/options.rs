//! Options: the part, its clock, and its faults.

use std::num::NonZeroU32;

use crate::chip::Ps;

/// The part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// The first part: no low power mode, no DEVID, sequence numbers of 7 bits.
    Mcp2517Fd,
    /// Its successor.
    Mcp2518Fd,
}

impl PartKind {
    /// The vendor's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mcp2517Fd => "MCP2517FD",
            Self::Mcp2518Fd => "MCP2518FD",
        }
    }
}

/// Faults of one chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChipFaults {
    /// There is no chip: MISO floats, SPI is ignored, and nothing is on the CAN bus.
    pub absent: bool,
    /// SDO is at ground: all reads return zero.
    pub sdo_stuck_low: bool,
    /// A bit of the data of every n-th READ_CRC is inverted on MISO.
    pub read_crc_corrupt_every: Option<NonZeroU32>,
    /// A bit of the data of every n-th WRITE_CRC or WRITE_SAFE is inverted on MOSI.
    pub write_crc_corrupt_every: Option<NonZeroU32>,
    /// Every n-th word that is read from RAM has a flipped bit, which ECC, if it is on, corrects and reports.
    pub ram_flip_every: Option<NonZeroU32>,
    /// INT is always low.
    pub int_stuck_low: bool,
    /// INT is never low.
    pub int_never: bool,
    /// The oscillator does not start: OSCRDY stays clear, and no mode changes.
    pub oscillator_dead: bool,
    /// The PLL does not lock.
    pub pll_dead: bool,
}

/// Faults of all chips according to the errata; off by default. Exceeding the limit of the SPI
/// clock is always a complaint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errata {
    /// DS80000789/792, READ_CRC: every n-th read of registers that change by themselves has the CRC
    /// of other data, whose first byte's top bit is inverted. The data itself is right.
    pub read_crc_every: Option<NonZeroU32>,
    /// DS80000789, FIFOCI: for this time after a frame was stored, the index in C1FIFOSTA is one
    /// too large. It then points to an object that is old or half written.
    pub fifoci_wrong_for_ps: Ps,
    /// DS80000789, IOCON: a write of several bytes clears LAT0 and LAT1.
    pub iocon_clears_latches: bool,
    /// DS80000789/792, SPI clock: above the limit, the lowest bit of every word written to RAM is
    /// inverted.
    pub fast_clock_corrupts_ram: bool,
}

/// Options for a chip on a board.
#[derive(Clone, Debug)]
pub struct Options {
    /// The part.
    pub part: PartKind,
    /// The frequency of the crystal or clock.
    pub oscillator_hz: u32,
    /// The board expects the driver to use the PLL, which multiplies the frequency by 10.
    pub pll: bool,
    /// Power comes on at time zero, so the oscillator has yet to start. Otherwise it has been on
    /// for long.
    pub starts_cold: bool,
    /// The value of DEVID.
    pub devid: u32,
    /// The chip's faults.
    pub faults: ChipFaults,
    /// The errata it shows.
    pub errata: Errata,
}

impl Default for Options {
    /// An MCP2518FD at 40 MHz.
    fn default() -> Self {
        Self {
            part: PartKind::Mcp2518Fd,
            oscillator_hz: 40_000_000,
            pll: false,
            starts_cold: false,
            devid: 0,
            faults: ChipFaults::default(),
            errata: Errata::default(),
        }
    }
}
