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
//!    over all consecutive marked batches, then subtracts the count that it read. If the count is
//!    not 0 then, other CPUs have marked batches, and it repeats. The other CPUs go on: they set
//!    their mark before they incremented the count, so the publisher's next round sees the mark. So
//!    PROD moves in order and by one CPU at a time. A CPU that is interrupted delays the commands
//!    behind its own, but never prevents another CPU from timing out.
//! 5. *Wait* until CONS has passed the batch's CMD_SYNC.
//!
//! A batch larger than half the queue is queued in pieces, with the CMD_SYNC in the last.
//!
//! # Erratum
//! With [`Erratum::Arm2812531`] (MMU-700 before r1p1) certain sequences of commands need a CMD_SYNC
//! between them. Each piece then has at most 63 commands, all with the same opcode, and a CMD_SYNC of
//! its own. Since a piece is reserved as a whole, no other CPU's command comes before that CMD_SYNC.
//! So whatever CPUs do, every CMD_SYNC follows at most 63 commands of one CPU and one kind, as in
//! Linux. The CPU waits for the last CMD_SYNC only.
//!
//! # Errors
//! A CPU that finds an error reason in CONS reads GERROR. If the error is active, the CPU recovers:
//! it records position and reason, replaces the command by CMD_SYNC, and acknowledges the error. It
//! replaces every command that the SMMU would refuse again: one that is illegal (CERROR_ILL), and one
//! whose reason this driver does not know. The batch that contains the command returns [`FlushError::Command`] after its CMD_SYNC
//! has completed. Other batches are not affected, with two exceptions: a batch queued in pieces
//! takes errors between its pieces for its own, and so does any batch that waited while 8 or more
//! errors occurred.
//!
//! A command whose fetch was aborted (CERROR_ABT) is fetched again. Its batch fails nevertheless. A
//! CMD_SYNC after an ATS invalidation that timed out (CERROR_ATC_INV_SYNC) is executed again.
//!
//! One CPU at a time acknowledges errors, and it acknowledges all active errors of SMMU_GERROR. If
//! a call that must not wait finds another CPU doing this, it leaves one more round to that CPU.

use core::fmt;

use super::command::Command;
use super::errata::{Errata, Erratum};
use super::error::SmmuError;
use super::global_error::GlobalErrors;
use super::refused::RefusedCommands;
use super::registers::{
    CMDQ_CONS, CMDQ_CONS_ERR_MASK, CMDQ_CONS_ERR_SHIFT, CMDQ_PROD, GERROR, GERROR_CMDQ_ERR,
    GERRORN, QUEUE_BASE_ALLOCATE,
};
use crate::pool::Pool;
use crate::smmu::memory::{Memory, StopProof};
use crate::smmu::patience::{Patience, wait_for};
use crate::smmu::registers::Registers;
use crate::sync::atomic::{AtomicU32, Ordering, fence};
use crate::tlbi::FlushError;

/// SMMU_CMDQ_CONS.ERR: no error.
const CERROR_NONE: u32 = 0;
/// The command could not be fetched.
const CERROR_ABT: u32 = 2;
/// A CMD_SYNC found that an ATS invalidation before it had timed out.
const CERROR_ATC_INV_SYNC: u32 = 3;

/// The most slots reserved at once, so that other CPUs get in between. With erratum 2812531 the last
/// is a CMD_SYNC, so that it follows at most 63 commands, as in Linux.
const BATCH_MAX: u32 = 64;

/// A CPU recovers from an error.
const RECOVERING: u32 = 1 << 0;
/// Another CPU wants it to look for errors once more.
const ONCE_MORE: u32 = 1 << 1;

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
    /// [`RECOVERING`], [`ONCE_MORE`].
    recovering: AtomicU32,
    /// Bits of SMMU_GERROR acknowledged and not yet reported.
    unreported: AtomicU32,
    refused: RefusedCommands,
    /// Each batch has one kind of command and its own CMD_SYNC: erratum 2812531.
    separate: bool,
}

/// The part of a batch that is reserved at once.
struct Piece {
    commands: u32,
    /// Whether a CMD_SYNC follows.
    sync: bool,
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
            unreported: AtomicU32::new(0),
            refused: RefusedCommands::new(),
            separate: false,
        })
    }

    /// The queue of an SMMU with these errata.
    #[must_use]
    pub fn with_errata(self, errata: Errata) -> Self {
        Self { separate: errata.contains(Erratum::Arm2812531), ..self }
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
        mut commands: impl Iterator<Item = Command> + Clone,
    ) -> Result<(), FlushError> {
        let refused_before = self.refused.count();
        let mut left = count;
        let mut first = None;
        loop {
            let piece = self.piece(left, &commands);
            let slots = piece.commands + u32::from(piece.sync);
            let start = self.reserve(registers, patience, slots).ok_or(FlushError::Timeout)?;
            first.get_or_insert(start);
            for position in 0..slots {
                let command = match position < piece.commands {
                    true => commands.next().unwrap_or(Command::SYNC),
                    false => Command::SYNC,
                };
                self.write(start.wrapping_add(position), command);
            }
            self.publish(registers, start, slots);
            left -= u64::from(piece.commands);
            if piece.sync && left == 0 {
                let end = start.wrapping_add(slots);
                wait_for(patience, || self.passed(registers, end).then_some(()))
                    .ok_or(FlushError::Timeout)?;
                let first = first.unwrap_or(start);
                return match self.refused.between(refused_before, first, end) {
                    Some(code) => Err(FlushError::Command(code)),
                    None => Ok(()),
                };
            }
        }
    }

    /// How many of the `left` commands to reserve for at once.
    fn piece(&self, left: u64, commands: &(impl Iterator<Item = Command> + Clone)) -> Piece {
        let slots = (self.size() / 2).min(BATCH_MAX);
        if !self.separate {
            let most = left.min(slots.into()) as u32;
            return Piece { commands: most, sync: most < slots };
        }
        // Erratum 2812531. Even the shortest queue, of two, has room for a command and its CMD_SYNC.
        let most = left.min(u64::from(slots.max(2)) - 1) as u32;
        let mut upcoming = commands.clone().take(most as usize).map(Command::opcode);
        let alike = match upcoming.next() {
            Some(opcode) => 1 + upcoming.take_while(|&other| other == opcode).count() as u32,
            // Fewer than were promised: CMD_SYNCs take their place.
            None => most,
        };
        Piece { commands: alike, sync: true }
    }

    /// Recovers from a refused command, if there is one, and acknowledges all other active errors of
    /// SMMU_GERROR. Returns those, and those acknowledged since the last call, each once;
    /// [`GlobalError::ServiceFailure`](super::GlobalError::ServiceFailure) at every call.
    ///
    /// It waits for no other CPU, so that an interrupt handler may call it. If another CPU is
    /// recovering, that CPU looks once more, and the next call returns the errors it finds.
    ///
    /// A refused command is the error of the call that issued it, and is not returned here.
    pub fn recover(&self, registers: &impl Registers) -> GlobalErrors {
        let before = self.recovering.fetch_or(RECOVERING | ONCE_MORE, Ordering::AcqRel);
        if before & RECOVERING == 0 {
            self.recover_until_done(registers);
        }
        let keep = GlobalErrors::TERMINAL;
        GlobalErrors::from_bits(self.unreported.fetch_and(keep, Ordering::AcqRel))
    }

    /// Recovers, if no other CPU does. A CPU that polls for progress asks again anyway.
    fn try_recover(&self, registers: &impl Registers) {
        let turn =
            self.recovering.compare_exchange(0, RECOVERING, Ordering::AcqRel, Ordering::Relaxed);
        if turn.is_ok() {
            self.recover_until_done(registers);
        }
    }

    /// Acknowledges errors until no CPU wants another round. This CPU has set [`RECOVERING`]: toggling
    /// GERRORN twice would raise an error again.
    fn recover_until_done(&self, registers: &impl Registers) {
        loop {
            self.recovering.fetch_and(!ONCE_MORE, Ordering::AcqRel);
            self.acknowledge(registers);
            let done = self.recovering.compare_exchange(
                RECOVERING,
                0,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if done.is_ok() {
                return;
            }
        }
    }

    /// Acknowledges all active errors.
    fn acknowledge(&self, registers: &impl Registers) {
        let acknowledged = registers.read32(GERRORN);
        let active = registers.read32(GERROR) ^ acknowledged;
        if active == 0 {
            return;
        }
        if active & GERROR_CMDQ_ERR != 0 {
            self.resolve(registers.read32(CMDQ_CONS));
        }
        // Noted first, so that a CPU which sees the acknowledgement also sees the note.
        self.unreported.fetch_or(active & !GERROR_CMDQ_ERR, Ordering::AcqRel);
        self.slots.pool().barrier();
        registers.write32(GERRORN, acknowledged ^ active);
    }

    /// Makes the command at CONS one that the SMMU can execute, and records why it did not.
    fn resolve(&self, cons: u32) {
        let code = cons >> CMDQ_CONS_ERR_SHIFT & CMDQ_CONS_ERR_MASK;
        let consumed = self.consumed.load(Ordering::Acquire);
        let at = consumed.wrapping_add(self.distance(consumed, cons));
        // These commands may succeed if they are executed again. Any other would be refused again
        // for ever.
        let may_succeed = matches!(code, CERROR_NONE | CERROR_ABT | CERROR_ATC_INV_SYNC);
        if !may_succeed && at.wrapping_sub(consumed) < self.size() {
            // The SMMU has stopped and will read the slot again, and the slot is still reserved.
            self.write(at, Command::SYNC);
        }
        self.refused.note(at, code);
    }

    /// Frees its memory. No SMMU was given the queue.
    pub(super) fn unused(self) {
        self.slots.unused();
        self.marks.unused();
    }

    /// Frees its memory.
    pub(super) fn free(self, stopped: &StopProof) {
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
                self.try_recover(registers);
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

impl<P: Pool> fmt::Debug for CommandQueue<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandQueue")
            .field("slots", &self.slots)
            .field("reserved", &self.reserved)
            .field("consumed", &self.consumed)
            .finish_non_exhaustive()
    }
}
