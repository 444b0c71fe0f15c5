//! The commands that change a flash chip's array or its status registers.
//!
//! Read first: `mod.rs`; W25Q256JV datasheet, section 8.2 (write status register, page program,
//! erases); SST25VF016B datasheet, the same under "Instructions"; S25FL512S datasheet, status
//! register 1 (P_ERR, E_ERR), BE and CLSR.
//!
//! A command changes the array when it starts and sets BUSY for its time. WEL clears at the end of
//! that time. A refused command changes nothing and takes no time. A protected target also clears
//! WEL, or sets an error bit and leaves BUSY set. Power loss is decided here, because only this
//! file knows what was half done.
//!
//! Not supported: suspend and resume; wear; program disturb.

use core::ops::Range;

use super::part::{Command, EraseUnit, Op};
use super::{ErrorBits, GRANULE, Nor};
use crate::chip::Ps;

impl Nor {
    pub(super) fn write_status(&mut self, at: Ps) {
        let layout = self.part.status;
        let data_max = if layout.writable_2 == 0 { 1 } else { 2 };
        let count = self.data_count;
        if !(1..=data_max).contains(&count) {
            return self.complain(format_args!(
                "status write (01h) with {count} data bytes, at most {data_max} are taken"
            ));
        }
        if !self.write_enabled && !self.status_write_armed {
            return self.complain(format_args!("status write (01h) without write enable"));
        }
        self.status[0] = self.data[0] & layout.writable_1;
        if count == 2 {
            let kept = self.status[1] & (!layout.writable_2 | layout.one_time_2);
            self.status[1] = kept | self.data[1] & layout.writable_2;
        }
        let time_ps = self.part.times.write_status.typical_ps;
        self.busy_until = Some(at.saturating_add(time_ps));
        self.end_disables_write = true;
        self.settle(at);
    }

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
        if !self.may_change(opcode, protected, |errors| errors.program) {
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
        let (size, time) = self.part.erase(unit);
        let base = self.at & !(size - 1);
        let protected = self.protects(base..base + size);
        // BE is ignored while any part is protected, without an error.
        let error = |errors: ErrorBits| if unit == EraseUnit::Chip { 0 } else { errors.erase };
        if !self.may_change(opcode, protected, error) {
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

    fn protects(&self, range: Range<usize>) -> bool {
        let protected = self.part.protected(self.status[0], self.status[1]);
        range.start < protected.end && protected.start < range.end
    }

    /// Whether a program or an erase may start. `error` selects the error bit that is set
    /// otherwise, if the part has one.
    fn may_change(&mut self, opcode: u8, protected: bool, error: impl Fn(ErrorBits) -> u8) -> bool {
        if !self.write_enabled {
            self.complain(format_args!("command {opcode:02X}h without WEL"));
            return false;
        }
        match self.part.status.errors {
            Some(errors) if protected => self.failed |= error(errors),
            None if protected => {
                self.write_enabled = false;
                self.aai_next = None;
            }
            _ => {}
        }
        !protected
    }

    fn start(&mut self, at: Ps, time_ps: Ps) {
        self.busy_until =
            Some(if self.faults.stuck_busy { Ps::MAX } else { at.saturating_add(time_ps) });
        self.end_disables_write = true;
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
