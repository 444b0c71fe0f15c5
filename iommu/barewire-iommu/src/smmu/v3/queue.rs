//! The command queue: many CPUs add commands, one SMMU executes them.
//!
//! *Read first*: IHI 0070, 3.5 (queues), 4.7.3 (CMD_SYNC), 7.1 (errors).
//!
//! # How the hardware works
//! The queue is a ring of 16-byte commands between two indices, each with a wrap bit. Software
//! moves SMMU_CMDQ_PROD and the SMMU moves SMMU_CMDQ_CONS. CONS passes a CMD_SYNC when every
//! earlier command has completed. At a command that it cannot execute the SMMU stops: CONS stays at
//! the command, CONS.ERR has the reason, and SMMU_GERROR.CMDQ_ERR is toggled. It continues when
//! SMMU_GERRORN is toggled too.
//!
//! # How this driver uses it
//! A position is the number of commands since the queue began, modulo 2^32. Its low bits are the
//! index and the wrap bit. There is no lock. A CPU waits only for the SMMU's progress, and only as
//! long as its patience allows. A batch of commands is queued in five steps:
//! 1. *Reserve*: one compare-and-swap on `reserved` takes room for the whole batch, and only slots
//!    the SMMU has finished with. So a CPU that has reserved can always continue.
//! 2. *Write* the commands into their slots.
//! 3. *Mark* the batch as written: store its length in `marks`, at its first slot.
//! 4. *Publish*: increment `publishing`. The CPU that found it 0 is the publisher. It moves PROD
//!    over all consecutive marked batches, then subtracts the count it saw; if other CPUs came
//!    meanwhile, it repeats. The other CPUs go on: they set their mark before they incremented the
//!    count, so the publisher's next round sees the mark. So PROD moves in order and by one CPU at
//!    a time. A CPU that is interrupted delays the commands behind its own, but never prevents
//!    another CPU from timing out.
//! 5. *Wait* until CONS has passed the batch's CMD_SYNC.
//!
//! A batch larger than half the queue is queued in pieces, with the CMD_SYNC in the last.
//!
//! # Errors
//! A CPU that finds an error reason in CONS reads GERROR. If the error is active, the CPU recovers:
//! it records position and reason, replaces an illegal command by CMD_SYNC, and acknowledges the
//! error. The batch that contains the command returns [`FlushError::Command`] after its CMD_SYNC
//! has completed. Other batches are not affected, with two exceptions: a batch queued in pieces
//! takes errors between its pieces for its own, and so does any batch that waited while 8 or more
//! errors occurred.
//!
//! A command whose fetch was aborted (CERROR_ABT) is fetched again. Its batch fails nevertheless.

use core::fmt;

use super::command::Command;
use super::error::SmmuError;
use super::registers::{
    CMDQ_CONS, CMDQ_CONS_ERR_MASK, CMDQ_CONS_ERR_SHIFT, CMDQ_PROD, GERROR, GERROR_CMDQ_ERR,
    GERRORN, QUEUE_BASE_ALLOCATE,
};
use crate::pool::Pool;
use crate::smmu::memory::{Memory, Stopped};
use crate::smmu::patience::{Patience, wait_for};
use crate::smmu::registers::Registers;
use crate::sync::atomic::{AtomicU32, Ordering, fence};
use crate::tlbi::FlushError;

/// SMMU_CMDQ_CONS.ERR: the command is illegal.
const CERROR_ILL: u32 = 1;

/// The number of errors that are recorded.
const KEPT: usize = 8;

/// The most commands reserved at once, so that other CPUs get in between.
const BATCH_MAX: u32 = 64;

/// A command queue in memory and the state for adding to it.
///
/// It is not tied to the SMMU's first command queue: each call takes the registers, with
/// SMMU_CMDQ_PROD, SMMU_CMDQ_CONS, SMMU_GERROR and SMMU_GERRORN at their offsets.
pub struct CommandQueue<'p, P: Pool> {
    /// Two words per command.
    slots: Memory<'p, P>,
    /// One word per slot: the length of the batch that begins there, once it is written.
    marks: Memory<'p, P>,
    log2: u32,
    /// The position up to which slots are reserved.
    reserved: AtomicU32,
    /// The position up to which the SMMU was seen to have finished. Never more than the queue's
    /// length behind `reserved`, and never ahead of the SMMU.
    consumed: AtomicU32,
    /// The position of PROD. Only the publisher accesses it.
    published: AtomicU32,
    /// The number of batches marked since there was no publisher.
    publishing: AtomicU32,
    /// 1 while a CPU recovers from an error.
    recovering: AtomicU32,
    errors: Errors,
}

/// The positions and reasons of failed commands.
struct Errors {
    /// The number of errors so far.
    count: AtomicU32,
    /// The positions of the last ones.
    at: [AtomicU32; KEPT],
    /// The reasons of the last ones.
    codes: [AtomicU32; KEPT],
}

impl<'p, P: Pool> CommandQueue<'p, P> {
    /// Creates a queue of `1 << log2` commands, at least 2 and at most `1 << 19`.
    ///
    /// # Errors
    /// [`SmmuError::OutOfMemory`].
    pub fn new(pool: &'p P, log2: u32) -> Result<Self, SmmuError> {
        let log2 = log2.clamp(1, 19);
        let memory = |bytes| Memory::new(pool, bytes).ok_or(SmmuError::OutOfMemory { bytes });
        let slots = memory(16 << log2)?;
        let marks = match memory(8 << log2) {
            Ok(marks) => marks,
            Err(error) => {
                slots.unused();
                return Err(error);
            }
        };
        // Index and wrap bit are 0, and 2^32 is near, so that every use of a queue also tests the
        // wrap.
        let begin = 0u32.wrapping_sub(8 << log2);
        Ok(Self {
            slots,
            marks,
            log2,
            reserved: AtomicU32::new(begin),
            consumed: AtomicU32::new(begin),
            published: AtomicU32::new(begin),
            publishing: AtomicU32::new(0),
            recovering: AtomicU32::new(0),
            errors: Errors::new(),
        })
    }

    /// The value for SMMU_CMDQ_BASE. SMMU_CMDQ_PROD and SMMU_CMDQ_CONS begin with 0.
    pub fn base(&self) -> u64 {
        self.slots.at().0 | QUEUE_BASE_ALLOCATE | u64::from(self.log2)
    }

    /// Issues `count` commands and a CMD_SYNC, and waits until all have completed. With no commands
    /// it waits for those published before.
    ///
    /// # Errors
    /// [`FlushError::Command`] if the SMMU refused one of them. [`FlushError::Timeout`] if they did
    /// not complete in time; they may complete later.
    pub fn run(
        &self,
        registers: &impl Registers,
        patience: &impl Patience,
        count: u64,
        mut commands: impl Iterator<Item = Command>,
    ) -> Result<(), FlushError> {
        let errors_before = self.errors.count();
        let mut left = count + 1;
        let mut first = None;
        loop {
            let batch = left.min(u64::from(self.batch_max())) as u32;
            let start = self.reserve(registers, patience, batch).ok_or(FlushError::Timeout)?;
            first.get_or_insert(start);
            for position in 0..batch {
                let command = commands.next().filter(|_| left > 1).unwrap_or(Command::SYNC);
                self.write(start.wrapping_add(position), command);
                left -= 1;
            }
            self.publish(registers, start, batch);
            if left == 0 {
                let end = start.wrapping_add(batch);
                wait_for(patience, || self.passed(registers, end).then_some(()))
                    .ok_or(FlushError::Timeout)?;
                let first = first.unwrap_or(start);
                return match self.errors.between(errors_before, first, end) {
                    Some(code) => Err(FlushError::Command(code)),
                    None => Ok(()),
                };
            }
        }
    }

    /// Recovers from a refused command, if there is one. Calls that wait for commands do this
    /// themselves; this is for an interrupt handler.
    pub fn recover(&self, registers: &impl Registers) {
        // One CPU at a time: toggling GERRORN twice would raise the error again.
        let turn = self.recovering.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        if turn.is_err() {
            return;
        }
        let acknowledged = registers.read32(GERRORN);
        if (registers.read32(GERROR) ^ acknowledged) & GERROR_CMDQ_ERR != 0 {
            let cons = registers.read32(CMDQ_CONS);
            let code = cons >> CMDQ_CONS_ERR_SHIFT & CMDQ_CONS_ERR_MASK;
            let consumed = self.consumed.load(Ordering::Acquire);
            let at = consumed.wrapping_add(self.distance(consumed, cons));
            if code == CERROR_ILL && at.wrapping_sub(consumed) < self.size() {
                // The SMMU has stopped and will read the slot again, and the slot is still
                // reserved.
                self.write(at, Command::SYNC);
            }
            self.errors.note(at, code);
            self.slots.pool().barrier();
            registers.write32(GERRORN, acknowledged ^ GERROR_CMDQ_ERR);
        }
        self.recovering.store(0, Ordering::Release);
    }

    /// Frees its memory. No SMMU was given the queue.
    pub(super) fn unused(self) {
        self.slots.unused();
        self.marks.unused();
    }

    /// Frees its memory.
    pub(super) fn free(self, stopped: &Stopped) {
        self.slots.free(stopped);
        self.marks.free(stopped);
    }

    fn size(&self) -> u32 {
        1 << self.log2
    }

    /// Index and wrap bit.
    fn index(&self, position: u32) -> u32 {
        position & (2 * self.size() - 1)
    }

    fn slot(&self, position: u32) -> usize {
        (position & (self.size() - 1)) as usize
    }

    /// The distance from a register's index back to a position.
    fn distance(&self, position: u32, register: u32) -> u32 {
        self.index(register.wrapping_sub(position))
    }

    fn batch_max(&self) -> u32 {
        (self.size() / 2).min(BATCH_MAX)
    }

    /// Step 1, reserve: takes `count` slots. Returns their first position.
    fn reserve(
        &self,
        registers: &impl Registers,
        patience: &impl Patience,
        count: u32,
    ) -> Option<u32> {
        let mut start = self.try_reserve(count);
        if start.is_none() {
            start = wait_for(patience, || {
                self.refresh(registers);
                self.try_reserve(count)
            });
        }
        start
    }

    fn try_reserve(&self, count: u32) -> Option<u32> {
        loop {
            // Acquire: another CPU may have read from CONS that the SMMU has finished with a slot;
            // our stores to the slot come after that. Loaded before `reserved`: a stale value never
            // shows more room than there is.
            let consumed = self.consumed.load(Ordering::Acquire);
            let start = self.reserved.load(Ordering::Relaxed);
            if start.wrapping_sub(consumed) > self.size() - count {
                return None;
            }
            let end = start.wrapping_add(count);
            let taken = self.reserved.compare_exchange_weak(
                start,
                end,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if taken.is_ok() {
                return Some(start);
            }
        }
    }

    /// Step 2, write: stores a command in a reserved slot.
    fn write(&self, position: u32, command: Command) {
        let word = 2 * self.slot(position);
        self.slots.store(word, command.0[0]);
        self.slots.store(word + 1, command.0[1]);
        self.slots.clean(word..word + 2);
    }

    /// Step 3, mark, and step 4, publish.
    fn publish(&self, registers: &impl Registers, start: u32, count: u32) {
        // Here and again before PROD moves: only the CPU that cleaned a cache line, or wrote a
        // table, can wait for that to complete.
        self.slots.pool().barrier();
        self.marks.store(self.slot(start), u64::from(count));
        // Release: a publisher that sees the count sees the mark. Acquire: we see the other CPUs'
        // marks.
        if self.publishing.fetch_add(1, Ordering::AcqRel) != 0 {
            return;
        }
        let mut seen = 1;
        loop {
            self.publish_marked(registers);
            let done =
                self.publishing.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire);
            match done {
                Ok(_) => return,
                Err(more) => seen = more,
            }
        }
    }

    /// Moves PROD over the marked batches. Only the publisher calls this.
    fn publish_marked(&self, registers: &impl Registers) {
        let from = self.published.load(Ordering::Relaxed);
        let mut to = from;
        // A mark in this slot is of this round: the slot is reserved again only after PROD has
        // passed it.
        loop {
            let count = self.marks.load(self.slot(to)) as u32;
            if count == 0 {
                break;
            }
            self.marks.store(self.slot(to), 0);
            to = to.wrapping_add(count);
        }
        if to != from {
            self.published.store(to, Ordering::Relaxed);
            // The commands of all CPUs whose marks we saw come before PROD.
            self.slots.pool().barrier();
            registers.write32(CMDQ_PROD, self.index(to));
        }
    }

    /// Step 5, wait: whether the SMMU has passed a position.
    fn passed(&self, registers: &impl Registers, position: u32) -> bool {
        let is_passed = |consumed: u32| consumed.wrapping_sub(position).cast_signed() >= 0;
        // Acquire: another CPU may have read it from CONS.
        is_passed(self.consumed.load(Ordering::Acquire)) || is_passed(self.refresh(registers))
    }

    /// Reads the SMMU's progress from CONS, and recovers if it has stopped.
    fn refresh(&self, registers: &impl Registers) -> u32 {
        let mut consumed = self.consumed.load(Ordering::Acquire);
        loop {
            let cons = registers.read32(CMDQ_CONS);
            // Later accesses, to a slot or after an invalidation, come after the SMMU has finished.
            fence(Ordering::Acquire);
            // The reason means nothing while the error is inactive, but it is always there while it
            // is active.
            if cons >> CMDQ_CONS_ERR_SHIFT & CMDQ_CONS_ERR_MASK != 0 {
                self.recover(registers);
            }
            // If `consumed` is unchanged since CONS was read, CONS is at most a queue's length
            // ahead of it. Otherwise another CPU has updated it and CONS may be behind: try again.
            let ahead = self.distance(consumed, cons);
            if ahead == 0 || ahead > self.size() {
                return consumed;
            }
            let end = consumed.wrapping_add(ahead);
            let moved =
                self.consumed.compare_exchange(consumed, end, Ordering::AcqRel, Ordering::Acquire);
            match moved {
                Ok(_) => return end,
                Err(now) => consumed = now,
            }
        }
    }
}

impl Errors {
    fn new() -> Self {
        Self {
            count: AtomicU32::new(0),
            at: core::array::from_fn(|_| AtomicU32::new(0)),
            codes: core::array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// Records an error. Only the CPU that recovers calls this.
    fn note(&self, at: u32, code: u32) {
        let count = self.count.load(Ordering::Relaxed);
        let slot = count as usize % KEPT;
        // Release: a reader of this value also sees its count, or a later one.
        self.at[slot].store(at, Ordering::Release);
        self.codes[slot].store(code, Ordering::Release);
        self.count.store(count.wrapping_add(1), Ordering::Release);
    }

    /// The reason of an error after the first `before` errors, at a position from `first` to before
    /// `end`.
    fn between(&self, before: u32, first: u32, end: u32) -> Option<u8> {
        let now = self.count();
        let mut found = None;
        for count in (0..now.wrapping_sub(before).min(KEPT as u32)).rev() {
            let slot = now.wrapping_sub(1).wrapping_sub(count) as usize % KEPT;
            let at = self.at[slot].load(Ordering::Relaxed);
            let code = self.codes[slot].load(Ordering::Relaxed) as u8;
            if at.wrapping_sub(first) < end.wrapping_sub(first) {
                found = found.or(Some(code));
            }
        }
        // An entry overwritten before or while we read may have been ours.
        fence(Ordering::Acquire);
        let overwritten = self.count.load(Ordering::Relaxed).wrapping_sub(before) >= KEPT as u32;
        let last = self.codes[now.wrapping_sub(1) as usize % KEPT].load(Ordering::Relaxed) as u8;
        found.or(overwritten.then_some(last))
    }
}

impl<P: Pool> fmt::Debug for CommandQueue<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandQueue")
            .field("slots", &self.slots)
            .field("reserved", &self.reserved)
            .field("consumed", &self.consumed)
            .finish_non_exhaustive()
    }
}
