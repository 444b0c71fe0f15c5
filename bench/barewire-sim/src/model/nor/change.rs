//! The commands that change a flash chip's array.
//!
//! Read first: `mod.rs`; W25Q256JV datasheet, section 8.2 (page program, erases); SST25VF016B
//! datasheet, the same under "Instructions"; S25FL512S datasheet, status register 1 (P_ERR, E_ERR), BE and CLSR; MT25Q
//! datasheet, flag status register.
//!
//! A command changes the array when it starts and sets BUSY for its time. WEL clears at the end of
//! that time. A refused command changes nothing and takes no time. What a protected target does to WEL and to error bits is
//! the part's (`Refusal`). Power loss is decided here, because only this file knows what was half done.
//!
//! Not supported: suspend and resume; wear; program disturb.

use core::ops::Range;

use super::part::{Command, EraseUnit, Op, Refusal};
use super::registers::{ERASE_FAILED, PROGRAM_FAILED, PROTECTED};
use super::{GRANULE, Nor};
use crate::chip::Ps;

/// What protection refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Program,
    Erase,
    ChipErase,
}

impl Nor {
    pub(super) fn program(&mut self, command: Command, at: Ps) {
        let Command { opcode, op, .. } = command;
        let (needs, page) = match op {
            Op::ByteProgram => (1, 1),
            Op::AaiWordProgram => (2, 2),
            _ => (self.data_count.max(1), self.part.page_size),
        };
        if self.data_count != needs {
            let count = self.data_count;
            return self.complain(format_args!(
                "program ({opcode:02X}h) with {count} data bytes, {needs} are needed"
            ));
        }
        let base = self.at & !(page - 1);
        // The first byte of a word goes to the even address whatever A0 says.
        let first = if op == Op::AaiWordProgram { base } else { self.at };
        let protected = self.protects(base..base + page);
        if !self.may_change(opcode, protected, Change::Program) {
            return;
        }
        let mut count = self.data_count.min(page);
        let lost = self.faults.power_loss_in_program == Some(self.program_count);
        self.program_count += 1;
        if lost {
            count /= 2;
        }
        if !self.faults.ignore_program {
            let mut changed = false;
            for slot in 0..count {
                let at = base + (first + slot) % page;
                let byte = self.content[at] & self.data[slot];
                changed |= self.content[at] != byte;
                self.content[at] = byte;
            }
            if changed {
                self.keep(base..base + page);
            }
        }
        if lost {
            return self.lose_power();
        }
        self.start(at, self.part.times.program.typical_ps);
        if op == Op::AaiWordProgram {
            let next = base + page;
            let last = next >= self.content.len() || self.protects(next..next + page);
            self.aai_next = Some(next);
            self.end_disables_write = last;
        }
    }

    pub(super) fn erase(&mut self, opcode: u8, unit: EraseUnit, at: Ps) {
        // A 4 KiB erase in a region without 4 KiB sectors is not executed, and WEL stays set.
        let target = self.at;
        let Some(range) = self.erased_by(unit, target) else {
            return self.complain(format_args!(
                "erase ({opcode:02X}h) at {target:X}h, where the part has no such sector"
            ));
        };
        let (base, size) = (range.start, range.len());
        let time = self.part.erase_time(size);
        let protected = self.protects(range);
        let change = if unit == EraseUnit::Chip { Change::ChipErase } else { Change::Erase };
        if !self.may_change(opcode, protected, change) {
            return;
        }
        let lost = self.faults.power_loss_in_erase == Some(self.erase_count);
        self.erase_count += 1;
        let erased_end = if lost { base + size / 2 } else { base + size };
        self.fill_erased(base..erased_end);
        if lost {
            for at in erased_end..base + size {
                // Some bits have already flipped to 1. Which ones depends only on the address, so
                // that a run can be repeated.
                let flipped = ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
                self.content[at] |= flipped;
            }
            self.keep(erased_end..base + size);
            return self.lose_power();
        }
        self.start(at, time.typical_ps);
    }

    /// The range that an erase at `at` erases; `None` if it is ignored there.
    pub(super) fn erased_by(&self, unit: EraseUnit, at: usize) -> Option<Range<usize>> {
        let configuration = [self.status[1], self.configuration[1]];
        let aligned = |bytes: usize| {
            let start = at & !(bytes - 1);
            start..start + bytes
        };
        match unit {
            EraseUnit::Block(bytes) => Some(aligned(bytes)),
            EraseUnit::Chip => Some(0..self.content.len()),
            EraseUnit::OfMap => Some(self.part.map_block(at, configuration)),
            EraseUnit::Parameter => {
                let sectors = self.part.parameters(configuration)?;
                sectors.contains(&at).then(|| aligned(GRANULE))
            }
        }
    }

    fn protects(&self, range: Range<usize>) -> bool {
        let protected = self.protected();
        range.start < protected.end && protected.start < range.end || self.locks_any(&range)
    }

    /// Whether a program or an erase may start. If protection refuses it, the part's reaction takes place.
    fn may_change(&mut self, opcode: u8, protected: bool, change: Change) -> bool {
        if !self.write_enabled {
            self.complain(format_args!("command {opcode:02X}h without WEL"));
            return false;
        }
        if self.flag_status_unread {
            self.complain(format_args!(
                "command {opcode:02X}h before the flag status register (70h) was read"
            ));
            return false;
        }
        if protected {
            match (self.part.status.refusal, change) {
                (Refusal::ClearsWel, _) => {
                    self.write_enabled = false;
                    self.aai_next = None;
                }
                // BE is ignored while any part is protected, without an error.
                (Refusal::KeepsWel, _) | (Refusal::Errors(_), Change::ChipErase) => {}
                (Refusal::Errors(errors), Change::Program) => self.failed |= errors.program,
                (Refusal::Errors(errors), Change::Erase) => self.failed |= errors.erase,
                (Refusal::Flags, Change::Program) => self.flags |= PROGRAM_FAILED | PROTECTED,
                (Refusal::Flags, _) => self.flags |= ERASE_FAILED | PROTECTED,
            }
        }
        !protected
    }

    pub(super) fn start(&mut self, at: Ps, time_ps: Ps) {
        self.busy_until =
            Some(if self.faults.stuck_busy { Ps::MAX } else { at.saturating_add(time_ps) });
        self.end_disables_write = true;
        self.flag_status_unread = self.part.flag_status_must_be_read;
    }

    /// Sets a range to ones, granule by granule, because the range may be the whole array.
    fn fill_erased(&mut self, range: Range<usize>) {
        const ERASED: [u8; GRANULE] = [0xff; GRANULE];
        for start in range.clone().step_by(GRANULE) {
            let end = (start + GRANULE).min(range.end);
            let granule = &mut self.content[start..end];
            if *granule != ERASED[..end - start] {
                granule.fill(0xff);
                self.keep(start..end);
            }
        }
    }

    /// Tells what `range` holds now.
    fn keep(&mut self, range: Range<usize>) {
        if let Some(keep) = &mut self.keeper.0 {
            keep(range.start, &self.content[range]);
        }
    }

    fn lose_power(&mut self) {
        self.reset_latches();
        self.dead = true;
        self.drive_by_faults();
    }
}
