//! Which chip, how it is clocked, and what is wrong with it.

use std::num::NonZeroU32;

use crate::chip::Ps;

/// Which part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// The first one: no low power mode, no DEVID, sequence numbers of 7 bits.
    Mcp2517Fd,
    /// Its successor.
    Mcp2518Fd,
}

impl PartKind {
    /// The maker's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mcp2517Fd => "MCP2517FD",
            Self::Mcp2518Fd => "MCP2518FD",
        }
    }
}

/// What is wrong with one chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChipFaults {
    /// There is no chip: MISO floats, nothing is heard, nothing is on the CAN bus.
    pub absent: bool,
    /// SDO is at ground: everything reads zero.
    pub sdo_stuck_low: bool,
    /// A bit of the data of every n-th READ_CRC is inverted on MISO.
    pub read_crc_corrupt_every: Option<NonZeroU32>,
    /// A bit of the data of every n-th WRITE_CRC or WRITE_SAFE is inverted on MOSI.
    pub write_crc_corrupt_every: Option<NonZeroU32>,
    /// INT is low, whatever the flags say.
    pub int_stuck_low: bool,
    /// INT is never low.
    pub int_never: bool,
    /// The oscillator does not start: OSCRDY stays clear, and no mode changes.
    pub oscillator_dead: bool,
    /// The PLL does not lock.
    pub pll_dead: bool,
}

/// What is wrong with all chips, as the errata have it: off unless asked for. The limit of the SPI clock
/// is always held, by a complaint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errata {
    /// DS80000789/792, READ_CRC: of the reads of registers that change by themselves every n-th comes
    /// with the CRC of other data, the first byte's top bit inverted. The data are right.
    pub read_crc_every: Option<NonZeroU32>,
    /// DS80000789, FIFOCI: for so long after a frame was taken, C1FIFOSTA reads with an index that is
    /// one too large, and so names an object that is old or half written.
    pub fifoci_wrong_for_ps: Ps,
    /// DS80000789, IOCON: a write of several bytes clears LAT0 and LAT1.
    pub iocon_clears_latches: bool,
    /// DS80000789/792, SPI clock: above the limit every word written to RAM has its lowest bit inverted.
    pub fast_clock_corrupts_ram: bool,
}

/// A chip on a board.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which part.
    pub part: PartKind,
    /// The crystal's or clock's frequency.
    pub oscillator_hz: u32,
    /// The board expects the PLL to be used, which multiplies it by 10.
    pub pll: bool,
    /// Power comes on at time zero: the oscillator has yet to start. Otherwise it has long been on.
    pub starts_cold: bool,
    /// What DEVID reads.
    pub devid: u32,
    /// What is wrong with it.
    pub faults: ChipFaults,
    /// Which errata it shows.
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
