//! The command queue: many CPUs put commands in, one SMMU takes them out.
//!
//! *Read first*: IHI 0070, 3.5 (queues), 4.7.3 (CMD_SYNC), 7.1 (errors).
//!
//! # How the hardware works
//! A ring of 16-byte commands between two indices with a wrap bit each: software moves
//! SMMU_CMDQ_PROD, the SMMU moves SMMU_CMDQ_CONS. A CMD_SYNC is passed by CONS when every command
//! before it has completed. At a command it cannot execute the SMMU stops, with CONS at the command,
//! a reason in CONS.ERR and SMMU_GERROR.CMDQ_ERR toggled, until SMMU_GERRORN is toggled too.
//!
//! # How this driver uses it
//! Positions are counts of commands since the queue began, modulo 2^32; their low bits are indices
//! and wrap bits. Nobody holds a lock, and nobody waits for another CPU but by looking, with
//! patience, at how far the SMMU is. A batch goes in like this:
//! 1. *Reserve*: room for the whole batch is taken by one compare-and-swap on `reserved`, and only
//!    where the SMMU is known to be done with it, so whoever has reserved can always go on.
//! 2. *Write* the commands into their slots.
//! 3. *Mark* the batch as written: its length, at its first slot, in `marks`.
//! 4. *Publish*: count up `publishing`. Whoever found it 0 is the publisher: it moves PROD over all
//!    batches that are marked, one behind the other, and counts down what it has seen; if others
//!    came meanwhile it goes round again. The others go on: the publisher's next round sees their
//!    mark, since their count came after it. So PROD moves in order, by one CPU at a time, and an
//!    interrupted CPU holds back commands behind its own but never stops anyone from giving up.
//! 5. *Wait* until CONS has passed the batch's CMD_SYNC.
//!
//! A batch larger than half the queue goes in as several, the CMD_SYNC with the last.
//!
//! # Errors
//! Whoever looks at CONS and finds an error reason there looks at GERROR, and if the error is active
//! deals with it: notes position and reason, replaces a command that is illegal by CMD_SYNC, and
//! acknowledges. It is the batch with the command that fails, by [`FlushError::Command`], after its
//! CMD_SYNC has completed; others do not notice. A batch that went in as several takes errors between
//! its pieces for its own, and so does any when 8 errors or more came while it waited.
//!
//! A command whose fetch was aborted (CERROR_ABT) is fetched again, and its batch fails all the same.

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

/// How many errors are told apart.
const KEPT: usize = 8;

/// The most commands reserved at once: others get in between.
const BATCH_MAX: u32 = 64;

/// A command queue in memory, and who may write where.
///
/// Not tied to the SMMU's first command queue: it takes the registers with each call, at the
/// offsets of SMMU_CMDQ_PROD, SMMU_CMDQ_CONS, SMMU_GERROR and SMMU_GERRORN.
pub struct CommandQueue<'p, P: Pool> {
    /// Two words a command.
    slots: Memory<'p, P>,
    /// A word a slot: how many commands the batch that begins there has, once they are written.
    marks: Memory<'p, P>,
    log2: u32,
    /// Up to where slots are taken.
    reserved: AtomicU32,
    /// Up to where the SMMU was seen to be done. Never behind `reserved` by more than the queue's
    /// length, never ahead of the SMMU.
    consumed: AtomicU32,
    /// Up to where PROD was moved; the publisher's.
    published: AtomicU32,
    /// Batches marked since there was no publisher.
    publishing: AtomicU32,
    /// 1 while somebody deals with an error.
    recovering: AtomicU32,
    errors: Errors,
}

/// Where commands failed, and why.
struct Errors {
    /// How many there were.
    count: AtomicU32,
    /// Positions of the last ones.
    at: [AtomicU32; KEPT],
    /// Their reasons.
    codes: [AtomicU32; KEPT],
}

impl<'p, P: Pool> CommandQueue<'p, P> {
    /// A queue of `1 << log2` commands, 2 at least and `1 << 19` at most.
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
        // Index and wrap bit 0, and 2^32 not far: whoever uses a queue tries that too.
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

    /// SMMU_CMDQ_BASE. SMMU_CMDQ_PROD and SMMU_CMDQ_CONS begin with 0.
    pub fn base(&self) -> u64 {
        self.slots.at().0 | QUEUE_BASE_ALLOCATE | u64::from(self.log2)
    }

    /// Issues `count` commands and a CMD_SYNC, and waits until all have completed. With no commands
    /// it waits for those that were published before.
    ///
    /// # Errors
    /// [`FlushError::Command`] if the SMMU refused one of them, [`FlushError::Timeout`] if it has not
    /// taken them in time: it may still do.
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

    /// Deals with a command that the SMMU refused, if there is one. Who waits for commands does so
    /// by the way; this is for an interrupt handler.
    pub fn recover(&self, registers: &impl Registers) {
        // One at a time: GERRORN toggled twice would raise the error again.
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
                // The SMMU stands still and reads the slot again, and the slot is not free yet.
                self.write(at, Command::SYNC);
            }
            self.errors.note(at, code);
            self.slots.pool().barrier();
            registers.write32(GERRORN, acknowledged ^ GERROR_CMDQ_ERR);
        }
        self.recovering.store(0, Ordering::Release);
    }

    /// Gives its memory back: no SMMU was told of it.
    pub(super) fn unused(self) {
        self.slots.unused();
        self.marks.unused();
    }

    /// Gives its memory back.
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

    /// How far a register's index is behind a position.
    fn distance(&self, position: u32, register: u32) -> u32 {
        self.index(register.wrapping_sub(position))
    }

    fn batch_max(&self) -> u32 {
        (self.size() / 2).min(BATCH_MAX)
    }

    /// 1. Takes `count` slots; their first position.
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
            // Acquire: who saw the SMMU done with a slot read it from CONS, maybe on another CPU; our
            // stores to the slot come after that. First this and then `reserved`: it may be older
            // than it is, but never says that there is more room than there is.
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

    /// 2. Writes a command into a slot of ours.
    fn write(&self, position: u32, command: Command) {
        let word = 2 * self.slot(position);
        self.slots.store(word, command.0[0]);
        self.slots.store(word + 1, command.0[1]);
        self.slots.clean(word..word + 2);
    }

    /// 3. Marks a batch as written, 4. and has PROD moved over it.
    fn publish(&self, registers: &impl Registers, start: u32, count: u32) {
        // Here as well as before PROD moves: only the CPU that cleaned a cache line, or wrote a
        // table, can wait for that to be done.
        self.slots.pool().barrier();
        self.marks.store(self.slot(start), u64::from(count));
        // Release: the mark is seen by the publisher that sees the count. Acquire: so are others'.
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

    /// Moves PROD over what is marked. The publisher only.
    fn publish_marked(&self, registers: &impl Registers) {
        let from = self.published.load(Ordering::Relaxed);
        let mut to = from;
        // A mark at this slot is of this round: the slot is taken again only after PROD has passed.
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
            // All commands, of all CPUs whose marks we saw, before PROD.
            self.slots.pool().barrier();
            registers.write32(CMDQ_PROD, self.index(to));
        }
    }

    /// 5. Whether the SMMU has passed a position.
    fn passed(&self, registers: &impl Registers, position: u32) -> bool {
        let is_passed = |consumed: u32| consumed.wrapping_sub(position).cast_signed() >= 0;
        // Acquire: whoever saw it in CONS may have been another CPU.
        is_passed(self.consumed.load(Ordering::Acquire)) || is_passed(self.refresh(registers))
    }

    /// Looks how far the SMMU is, and whether it has stopped.
    fn refresh(&self, registers: &impl Registers) -> u32 {
        let mut consumed = self.consumed.load(Ordering::Acquire);
        loop {
            let cons = registers.read32(CMDQ_CONS);
            // What follows, a store to a slot or the end of an invalidation, comes after the SMMU is
            // done.
            fence(Ordering::Acquire);
            // The reason says nothing while the error is not active, but is there when it is.
            if cons >> CMDQ_CONS_ERR_SHIFT & CMDQ_CONS_ERR_MASK != 0 {
                self.recover(registers);
            }
            // If `consumed` is what it was before CONS was read, CONS is at most a queue's length
            // ahead of it. Else somebody else has looked meanwhile, and CONS may be behind: again.
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

    /// Whoever recovers only.
    fn note(&self, at: u32, code: u32) {
        let count = self.count.load(Ordering::Relaxed);
        let slot = count as usize % KEPT;
        // Release: who reads this also sees the count that it belongs to, or a later one.
        self.at[slot].store(at, Ordering::Release);
        self.codes[slot].store(code, Ordering::Release);
        self.count.store(count.wrapping_add(1), Ordering::Release);
    }

    /// The reason of an error since there were `before`, at positions from `first` to before `end`.
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
        // What was overwritten, before or while we read, may have been ours.
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
