//! Acceptance filters.
//!
//! *Read first*: DS20005678, chapter 7: the first enabled filter that matches decides which FIFO
//! gets the frame.

use super::regs::object;
use crate::model::can::CanFrame;

/// FLTENm, in a filter's byte of C1FLTCON.
pub(super) const FLTEN: u8 = 1 << 7;
/// FLTOBJ.EXIDE and MASK.MIDE.
const EXIDE: u32 = 1 << 30;
const SID: u32 = 0x7ff;
const EID: u32 = 0x3_ffff << object::EID;

/// A filter's registers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Filter {
    pub(super) con: u8,
    pub(super) object: u32,
    pub(super) mask: u32,
}

/// The identifier in the layout of objects and filters: SID in the lower bits, EID above.
pub(super) fn identifier(frame: &CanFrame) -> u32 {
    if frame.extended { frame.id >> 18 | (frame.id & 0x3_ffff) << object::EID } else { frame.id }
}

/// The first `bits` of a frame's data, data bit `n` in EID bit `n`.
fn first_bits(frame: &CanFrame, bits: u32) -> (u32, u32) {
    let bits = bits.min(18).min(8 * frame.data().len() as u32);
    let data = |bit: u32| frame.data()[(bit / 8) as usize] >> (7 - bit % 8) & 1;
    let value = (0..bits).map(|bit| u32::from(data(bit)) << bit).sum::<u32>();
    (value << object::EID, ((1 << bits) - 1) << object::EID)
}

impl Filter {
    /// Whether it accepts `frame`. Of standard frames it compares as many data bits as DNCNT says.
    pub(super) fn matches(&self, frame: &CanFrame, dncnt: u32) -> bool {
        if self.con & FLTEN == 0 {
            return false;
        }
        let extended = self.object & EXIDE != 0;
        if self.mask & EXIDE != 0 && extended != frame.extended {
            return false;
        }
        let (mut value, mut compared) = (identifier(frame), SID);
        if frame.extended {
            compared |= EID;
        } else if dncnt > 0 {
            let (bits, mask) = first_bits(frame, dncnt);
            value |= bits;
            compared |= mask;
        }
        (value ^ self.object) & self.mask & compared == 0
    }

    /// FLTBPm.
    pub(super) fn fifo(&self) -> usize {
        usize::from(self.con & 0x1f)
    }
}
