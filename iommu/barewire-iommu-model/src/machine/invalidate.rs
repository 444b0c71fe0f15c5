//! The command queue: what each command drops, when it completes, and how it fails.

use std::ops::Range;

use barewire_iommu::{Context, FlushError, Invalidate, Tlbi};

use super::{FlushFailure, Machine, State};
use crate::violation::Violation;

impl Invalidate for Machine {
    fn flush(&self, context: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
        self.state().flush(context, operations)
    }

    fn has_ranges(&self) -> bool {
        self.state().options.ranges
    }
}

impl State {
    fn flush(&mut self, context: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
        self.counts.flushes += 1;
        let failure = match &mut self.failing {
            Some((0, how)) => {
                let how = *how;
                self.failing = None;
                Some(how)
            }
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        };
        if failure == Some(FlushFailure::Before) {
            return Err(FlushError::Timeout);
        }
        let slot = self.slot(context);
        for operation in operations {
            self.command(slot, *operation);
        }
        failure.map_or(Ok(()), |_| Err(FlushError::Timeout))
    }

    /// Drops what the command covers. Between any two commands everything reachable is read again.
    fn command(&mut self, slot: usize, operation: Tlbi) {
        match operation {
            Tlbi::Context => {
                self.counts.commands += 1;
                self.counts.contexts += 1;
                self.slots[slot].tlb.drop_context();
                self.refetch(slot, &(0..u64::MAX));
            }
            Tlbi::Pages { iova, stride, count, leaf, level } => {
                self.check(slot, iova.0, stride, leaf, level);
                self.counts.commands += count;
                self.counts.pages += count;
                for page in 0..count {
                    // A command carries an address from bit 12 on.
                    let address = (iova.0 + (page << stride)) & !0xfff;
                    self.drop(slot, address..address + 1, leaf, level);
                }
            }
            Tlbi::Range { iova, page_shift, pages, leaf, level } => {
                self.check(slot, iova.0, page_shift, leaf, level);
                if !self.options.ranges {
                    self.report(Violation::Command { why: "a range, which it does not take" });
                }
                if page_shift != self.slots[slot].root.shape.page_shift() {
                    self.report(Violation::Command { why: "a range of another granule" });
                }
                self.counts.commands += 1;
                self.counts.ranges += 1;
                self.drop(slot, iova.0..iova.0 + (pages << page_shift), leaf, level);
            }
        }
    }

    fn check(&mut self, slot: usize, iova: u64, stride: u32, leaf: bool, level: Option<u8>) {
        let shape = self.slots[slot].root.shape;
        if level.is_some() && !leaf {
            self.report(Violation::Command { why: "a level, and walks as well" });
        }
        if level.is_some_and(|level| level != 3 && !shape.block_at(level.into())) {
            self.report(Violation::Command { why: "a level that has no leaves" });
        }
        if iova & ((1 << stride) - 1) != 0 {
            self.report(Violation::Command { why: "an address that is no multiple of the stride" });
        }
        if iova >= shape.input_end() {
            self.report(Violation::Command { why: "an address that cannot be translated" });
        }
    }

    fn drop(&mut self, slot: usize, range: Range<u64>, leaf: bool, level: Option<u8>) {
        let known = &mut self.slots[slot];
        let shape = known.root.shape;
        known.tlb.drop_range(&shape, &range, leaf, level);
        self.refetch(slot, &range);
    }
}
