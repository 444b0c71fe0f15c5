//! The pattern of an identification that makes no sense, so that the error can name the likely cause.
//!
//! A chip's SFDP begins with four known bytes, and the ids of some parts are known. If the received id is
//! one of these shifted by one bit, the controller sampled MISO one clock late or early: the clock is too
//! fast for the chip and the wires, or the mode is wrong. If two readings of the id differ, nothing drives
//! MISO, or it is disturbed.

use super::sfdp::SIGNATURE;
use super::{JedecId, NorError, SfdpError, part};
use crate::chip::shifted::shifted;

/// The error for an id that is unknown; `again` is a second reading of it.
pub(super) fn of(id: JedecId, again: JedecId, sfdp: SfdpError) -> NorError {
    if again != id {
        return NorError::Unstable { first: id, second: again };
    }
    let signature = match sfdp {
        // Both are read with the first byte in the lowest bits.
        SfdpError::Signature { actual } => {
            shifted(actual.swap_bytes(), SIGNATURE.swap_bytes(), u32::BITS)
        }
        _ => None,
    };
    let known = || part::ids().find_map(|known| shifted(bits(id), bits(known), 24));
    match signature.or_else(known) {
        Some(late) => NorError::Shifted { id, late },
        None => NorError::UnknownChip { id, sfdp },
    }
}

fn bits(JedecId([a, b, c]): JedecId) -> u32 {
    u32::from_be_bytes([0, a, b, c])
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSIGNED: SfdpError = SfdpError::Signature { actual: 0xffff_ffff };
    const ODD: JedecId = JedecId([0x12, 0x34, 0x56]);

    fn signature(stream: u32) -> SfdpError {
        SfdpError::Signature { actual: stream.swap_bytes() }
    }

    #[test]
    fn one_bit_late_or_early_is_told_by_the_signature_of_any_chip() {
        let sfdp = u32::from_be_bytes(*b"SFDP");
        for outside in [0, 1] {
            let late = signature(outside << 31 | sfdp >> 1);
            assert_eq!(of(ODD, ODD, late), NorError::Shifted { id: ODD, late: true });
            let early = signature(sfdp << 1 | outside);
            assert_eq!(of(ODD, ODD, early), NorError::Shifted { id: ODD, late: false });
        }
        let two = signature(sfdp >> 2);
        assert_eq!(of(ODD, ODD, two), NorError::UnknownChip { id: ODD, sfdp: two });
    }

    #[test]
    fn and_by_the_id_of_a_known_one() {
        // ef 40 19 behind a bit of the command's own byte.
        for late in [[0x77, 0xa0, 0x0c], [0xf7, 0xa0, 0x0c]].map(JedecId) {
            assert_eq!(of(late, late, UNSIGNED), NorError::Shifted { id: late, late: true });
        }
        for early in [[0xde, 0x80, 0x32], [0xde, 0x80, 0x33]].map(JedecId) {
            assert_eq!(of(early, early, UNSIGNED), NorError::Shifted { id: early, late: false });
        }
        // Of a part without SFDP too.
        let sst = JedecId([0x5f, 0x92, 0xa0]);
        assert_eq!(of(sst, sst, UNSIGNED), NorError::Shifted { id: sst, late: true });
    }

    #[test]
    fn two_readings_that_differ_come_first() {
        let second = JedecId([0x77, 0xa0, 0x0c]);
        assert_eq!(of(ODD, second, UNSIGNED), NorError::Unstable { first: ODD, second });
        assert_eq!(of(ODD, ODD, UNSIGNED), NorError::UnknownChip { id: ODD, sfdp: UNSIGNED });
    }
}
