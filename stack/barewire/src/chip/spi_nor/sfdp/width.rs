//! The width of addresses: BFPT words 1 and 16, and the 4-byte address instruction table.
//!
//! Where word 16 is missing the maker decides, if its parts are alike. If neither table gives a way into 4-byte
//! mode and one out of it, bytes above 16 MiB cannot be reached.

use super::basic::Basic;
use crate::chip::spi_nor::address::{Addressing, Enter, Exit, THREE_BYTE_REACH, Ways};
use crate::chip::spi_nor::assume::Assume;
use crate::chip::spi_nor::part;

/// The 4BAIT's bits: READ, FAST_READ, page program.
const READ: u32 = 1 << 0;
const FAST_READ: u32 = 1 << 1;
const PAGE_PROGRAM: u32 = 1 << 6;

/// The address widths and commands that a part offers, and those in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Width {
    pub(super) addressing: Addressing,
    pub(super) exit: Option<Exit>,
    pub(super) extended_address: bool,
    pub(super) has_fast_read: bool,
    /// The bytes within reach.
    pub(super) reach: u64,
}

/// BFPT word 16. All bits set in a field mean that the maker left it unprogrammed (MX25R6435F).
fn ways_of(word: u32) -> Option<Ways> {
    let (enter, exit) = (word >> 24, word >> 14 & 0x3ff);
    if enter == 0xff {
        return None;
    }
    let named = |field: u32, bit: u32| field >> bit & 1 == 1;
    let bank = named(exit, 3);
    let entries = [(0, Enter::En4b), (1, Enter::WrenEn4b), (3, Enter::Bank)];
    let enter_by = entries.into_iter().find(|(bit, _)| named(enter, *bit)).map(|(_, way)| way);
    // A reset loses more than the mode, so it comes last: 66h 99h, then F0h.
    let reset = named(exit, 6);
    let exits = [
        (named(exit, 0), Exit::Ex4b),
        (named(exit, 1), Exit::WrenEx4b),
        (bank, Exit::Bank),
        (reset && named(word, 12), Exit::Reset),
        (reset && named(word, 11), Exit::ResetF0),
    ];
    let exit_by = match enter_by {
        Some(Enter::Bank) if bank => Some(Exit::Bank),
        _ => exits.into_iter().find(|(named, _)| *named).map(|(_, way)| way),
    };
    Some(Ways {
        enter: enter_by,
        exit: exit_by,
        extended_address: named(enter, 2) && named(exit, 2),
        always_four: named(enter, 6),
    })
}

impl Basic<'_> {
    fn ways(&self, assume: &Assume) -> Ways {
        let word_16 = (self.words >= 16).then(|| ways_of(self.bfpt[15])).flatten();
        let mut ways = word_16.unwrap_or_else(|| part::ways_of_maker(self.id));
        // A maker's own way out, which word 16 cannot name.
        let own = part::exit_of_maker(self.id);
        if ways.enter.is_some() && ways.exit.is_none_or(|way| !way.is_harmless()) && own.is_some() {
            ways.exit = own;
        }
        if let Some((enter, exit)) = assume.four_byte_mode {
            ways = Ways { enter: Some(enter), exit: Some(exit), ..ways };
        }
        ways
    }

    /// Word 1, bits 18 and 17.
    fn address_bytes(&self) -> u32 {
        self.bfpt[0] >> 17 & 3
    }

    pub(super) fn width(&self, size: u64, assume: &Assume) -> Width {
        let ways = self.ways(assume);
        let four_only = self.address_bytes() == 2 || ways.always_four;
        let three = Width {
            addressing: Addressing::ThreeByte,
            exit: None,
            extended_address: false,
            has_fast_read: true,
            reach: size,
        };
        if four_only {
            return Width { addressing: Addressing::FourByteOnly, ..three };
        }
        if size <= THREE_BYTE_REACH {
            // With three or four bytes, because an earlier user may have left 4-byte mode on.
            let exit = ways.exit.filter(|_| self.address_bytes() == 1);
            return Width { exit, ..three };
        }
        let four = Width { exit: ways.exit, extended_address: ways.extended_address, ..three };
        let granted = self.address_4b.map_or(0, |[granted, _]| granted);
        let all = |wanted: u32| granted & wanted == wanted;
        let opcodes = Width {
            addressing: Addressing::FourByteOpcodes,
            has_fast_read: all(FAST_READ),
            ..four
        };
        if all(READ | PAGE_PROGRAM) && (0..4).any(|index| self.four_byte_erase(index).is_some()) {
            return opcodes;
        }
        match ways {
            Ways { enter: Some(enter), exit: Some(_), .. } => {
                Width { addressing: Addressing::FourByteMode { enter }, ..four }
            }
            Ways { extended_address: true, .. } => {
                Width { addressing: Addressing::ExtendedAddress, exit: None, ..four }
            }
            _ if all(READ | PAGE_PROGRAM) => opcodes,
            _ => Width { reach: THREE_BYTE_REACH, ..four },
        }
    }
}
