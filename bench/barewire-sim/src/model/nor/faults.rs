//! What can go wrong with a flash chip.

/// Faults of a chip. Operations are counted from when the faults are set.
#[derive(Default, Clone, Debug, PartialEq, Eq)]
pub struct NorFaults {
    /// The first erase or program never ends.
    pub stuck_busy: bool,
    /// The n-th (from 0) page, byte or word program is interrupted: half of its bytes are
    /// programmed, then the chip is dead until [`Nor::power_cycle`](super::Nor::power_cycle).
    pub power_loss_in_program: Option<u64>,
    /// The n-th (from 0) erase is interrupted: its first half is erased, the rest keeps some of its
    /// old bits, then the chip is dead until [`Nor::power_cycle`](super::Nor::power_cycle).
    pub power_loss_in_erase: Option<u64>,
    /// There is no chip: MISO is never driven and MOSI is ignored.
    pub absent: bool,
    /// MISO is shorted to ground: the chip works, but reads as zeros.
    pub miso_stuck_low: bool,
    /// A program takes its time and changes nothing, as worn cells do.
    pub ignore_program: bool,
}
