//! Acceptance: six filters and two masks of four bytes, in the layout of a buffer's identifier.

use super::regs::{DATA, DLC, dlc, sidl};

/// SIDH, SIDL, EID8, EID0.
pub(super) type Id = [u8; 4];

/// Compares the bits that the mask selects. EXIDE is always compared: a filter is for one kind of
/// identifier.
///
/// For a standard frame the lower 16 bits are compared with the first two data bytes, as far as the
/// frame has them.
pub(super) fn passes(buffer: &[u8], filter: Id, mask: Id) -> bool {
    let is_extended = buffer[1] & sidl::EXIDE != 0;
    if is_extended != (filter[1] & sidl::EXIDE != 0) {
        return false;
    }
    let mut compared = [buffer[0], buffer[1], buffer[2], buffer[3]];
    let mut mask = mask;
    if is_extended {
        mask[1] &= sidl::MASK_USED;
    } else {
        mask[1] &= 0xe0;
        let is_remote = buffer[1] & sidl::SRR != 0 || buffer[DLC] & dlc::RTR != 0;
        let len = if is_remote { 0 } else { usize::from(buffer[DLC] & 0xf) };
        for place in 0..2 {
            if place < len {
                compared[2 + place] = buffer[DATA + place];
            } else {
                mask[2 + place] = 0;
            }
        }
    }
    (0..4).all(|place| (compared[place] ^ filter[place]) & mask[place] == 0)
}
