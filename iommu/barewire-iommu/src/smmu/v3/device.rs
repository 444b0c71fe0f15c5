//! Bring-up: from the identification registers to a running SMMU (IHI 0070, 3.11 and chapter 6).

use core::fmt;

use super::command::Command;
use super::errata::{Errata, Identity};
use super::error::{SmmuError, Unsupported};
use super::features::Features;
use super::global_error::GlobalErrors;
use super::queue::CommandQueue;
use super::registers::{
    CMDQ_BASE, CMDQ_CONS, CMDQ_PROD, CR0, CR0_ALL, CR0_CMDQEN, CR0_EVENTQEN, CR0_SMMUEN, CR0ACK,
    CR1, CR1_NON_CACHEABLE, CR1_WRITE_BACK_INNER, CR2, CR2_PTM, CR2_RECINVSID, EVENTQ_BASE,
    EVENTQ_CONS, EVENTQ_PROD, GBPA, GBPA_ABORT, GBPA_UPDATE, GERROR, GERRORN, IRQ_CTRL,
    IRQ_CTRL_EVENTQ_IRQEN, IRQ_CTRL_GERROR_IRQEN, IRQ_CTRLACK, QUEUE_BASE_ALLOCATE,
};
use crate::pool::Pool;
use crate::smmu::memory::{Memory, StopProof};
use crate::smmu::patience::{Patience, Polls, wait_for};
use crate::smmu::registers::Registers;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::tlbi::FlushError;

/// The configuration of an SMMU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings<W = Polls> {
    /// log2 of the command queue's length; reduced to the SMMU's maximum.
    pub command_queue_log2: u8,
    /// log2 of the event queue's length.
    pub event_queue_log2: u8,
    /// What happens to accesses while the SMMU does not translate.
    pub disabled: Disabled,
    /// The errata of the SMMU. `None`: those known for its SMMU_IIDR, see [`Errata::of`].
    pub errata: Option<Errata>,
    /// How long to poll for an answer.
    pub patience: W,
}

/// What happens to accesses while SMMU_CR0.SMMUEN is 0: SMMU_GBPA.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Disabled {
    /// They are aborted.
    #[default]
    Abort,
    /// They pass untranslated.
    Bypass,
    /// The setting found in the register is kept.
    Unchanged,
}

impl Default for Settings {
    /// 256 commands, 128 events; accesses are aborted until there is a stream table.
    fn default() -> Self {
        Self {
            command_queue_log2: 8,
            event_queue_log2: 7,
            disabled: Disabled::default(),
            errata: None,
            patience: Polls::default(),
        }
    }
}

/// A resource of which an SMMU has one.
#[derive(Clone, Copy)]
pub(super) enum Claim {
    Streams = 1,
    Events = 2,
}

/// An SMMUv3 with running queues.
///
/// All CPUs share it: methods that take `&self` may run at the same time. Its memory is not freed
/// when it is dropped, since the SMMU still uses it: see [`Smmu::shut_down`].
pub struct Smmu<'p, R, P: Pool, W = Polls> {
    registers: R,
    pool: &'p P,
    patience: W,
    features: Features,
    identity: Identity,
    errata: Errata,
    commands: CommandQueue<'p, P>,
    events: Memory<'p, P>,
    events_log2: u32,
    /// The intended value of SMMU_CR0.
    cr0: AtomicU32,
    claims: AtomicU32,
}

impl<'p, R: Registers, P: Pool, W: Patience> Smmu<'p, R, P, W> {
    /// Reads the SMMU's features, stops it, and starts its queues. It does not translate yet: see
    /// [`Smmu::streams`].
    ///
    /// # Errors
    /// [`SmmuError::Unsupported`], [`SmmuError::OutOfMemory`], [`SmmuError::Timeout`], or
    /// [`SmmuError::Flush`] if the first commands fail.
    pub fn new(registers: R, pool: &'p P, settings: Settings<W>) -> Result<Self, SmmuError> {
        let features = Features::read(&registers)?;
        if P::COHERENT && !features.coherent {
            return Err(SmmuError::Unsupported(Unsupported::Coherent));
        }
        let identity = Identity::read(&registers);
        let errata = settings.errata.unwrap_or(Errata::of(identity));
        let log2 = settings.command_queue_log2.min(features.command_queue_log2);
        let commands = CommandQueue::new(pool, log2.into())?.with_errata(errata);
        // 19 is the manual's maximum.
        let events_log2 = settings.event_queue_log2.min(features.event_queue_log2).min(19);
        let events_log2 = u32::from(events_log2);
        let bytes = 32 << events_log2;
        let Some(events) = Memory::new(pool, bytes) else {
            commands.unused();
            return Err(SmmuError::OutOfMemory { bytes });
        };
        let smmu = Self {
            registers,
            pool,
            patience: settings.patience,
            features,
            identity,
            errata,
            commands,
            events,
            events_log2,
            cr0: AtomicU32::new(0),
            claims: AtomicU32::new(0),
        };
        smmu.reset(settings.disabled)?;
        smmu.start_queues()?;
        Ok(smmu)
    }

    /// The features of the implementation.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Which implementation it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The errata that are worked around.
    pub fn errata(&self) -> Errata {
        self.errata
    }

    /// The registers, for functions this driver does not have.
    pub fn registers(&self) -> &R {
        &self.registers
    }

    /// The command queue.
    pub fn command_queue(&self) -> &CommandQueue<'p, P> {
        &self.commands
    }

    /// Issues commands and waits until all have completed.
    ///
    /// # Errors
    /// As [`CommandQueue::run`].
    pub fn run(&self, commands: &[Command]) -> Result<(), FlushError> {
        self.run_counted(commands.len() as u64, commands.iter().copied())
    }

    /// Enables or disables the SMMU's wired interrupts for errors and events. Their handlers call
    /// [`Smmu::handle_errors`] and [`EventQueue::pop`](super::EventQueue::pop).
    ///
    /// # Errors
    /// [`SmmuError::Timeout`].
    pub fn set_interrupts(&self, errors: bool, events: bool) -> Result<(), SmmuError> {
        let errors = if errors { IRQ_CTRL_GERROR_IRQEN } else { 0 };
        let events = if events { IRQ_CTRL_EVENTQ_IRQEN } else { 0 };
        self.registers.write32(IRQ_CTRL, errors | events);
        self.wait(IRQ_CTRLACK, u32::MAX, errors | events)
    }

    /// Handles the errors of SMMU_GERROR: recovers from a refused command, acknowledges all active
    /// errors, and returns them, without that of the refused command. [`GlobalError`] says what each
    /// asks for.
    ///
    /// Call it in the handler of the error interrupt, or from time to time. It waits for no other CPU;
    /// see [`CommandQueue::recover`].
    ///
    /// [`GlobalError`]: super::GlobalError
    pub fn handle_errors(&self) -> GlobalErrors {
        self.commands.recover(&self.registers)
    }

    /// Stops the SMMU and frees its memory. From now on accesses are treated as [`Disabled`] says.
    ///
    /// # Errors
    /// [`SmmuError::Timeout`]. The memory is then kept, since the SMMU may still use it.
    pub fn shut_down(self) -> Result<(), SmmuError> {
        self.set_cr0(0)?;
        let stopped = self.stopped(CR0_ALL)?;
        self.commands.free(&stopped);
        self.events.free(&stopped);
        Ok(())
    }

    /// Stops the SMMU.
    fn reset(&self, disabled: Disabled) -> Result<(), SmmuError> {
        // First, so that no access passes that was blocked before.
        if disabled != Disabled::Unchanged {
            self.set_gbpa(disabled == Disabled::Abort)?;
        }
        self.set_cr0(0)?;
        self.set_interrupts(false, false)?;
        let attributes =
            if self.features.coherent { CR1_WRITE_BACK_INNER } else { CR1_NON_CACHEABLE };
        self.registers.write32(CR1, attributes);
        self.registers.write32(CR2, CR2_PTM | CR2_RECINVSID);
        // Errors from before are not ours: acknowledge them.
        self.registers.write32(GERRORN, self.registers.read32(GERROR));
        Ok(())
    }

    fn start_queues(&self) -> Result<(), SmmuError> {
        self.pool.barrier();
        self.registers.write64(CMDQ_BASE, self.commands.base());
        self.registers.write32(CMDQ_PROD, 0);
        self.registers.write32(CMDQ_CONS, 0);
        self.set_cr0(CR0_CMDQEN)?;
        self.run(&[Command::CFGI_ALL, Command::TLBI_NSNH_ALL])?;
        let base = self.events.at().0 | QUEUE_BASE_ALLOCATE | u64::from(self.events_log2);
        self.registers.write64(EVENTQ_BASE, base);
        self.registers.write32(EVENTQ_PROD, 0);
        self.registers.write32(EVENTQ_CONS, 0);
        self.set_cr0(CR0_CMDQEN | CR0_EVENTQEN)
    }

    /// Enables or disables translation.
    pub(super) fn set_enabled(&self, enabled: bool) -> Result<(), SmmuError> {
        let without = self.cr0.load(Ordering::Relaxed) & !CR0_SMMUEN;
        if enabled {
            // Cached entries are of tables that are not ours.
            self.run(&[Command::CFGI_ALL, Command::TLBI_NSNH_ALL])?;
        }
        self.set_cr0(without | if enabled { CR0_SMMUEN } else { 0 })
    }

    /// Returns proof that the SMMU has stopped the functions that these bits of SMMU_CR0 enable.
    pub(super) fn stopped(&self, enables: u32) -> Result<StopProof, SmmuError> {
        StopProof::seen(&self.registers, CR0ACK, enables).ok_or(SmmuError::Timeout {
            register: CR0ACK,
            expected: 0,
            actual: enables,
        })
    }

    fn set_gbpa(&self, abort: bool) -> Result<(), SmmuError> {
        self.wait(GBPA, GBPA_UPDATE, 0)?;
        let rest = self.registers.read32(GBPA) & !(GBPA_ABORT | GBPA_UPDATE);
        let abort = if abort { GBPA_ABORT } else { 0 };
        self.registers.write32(GBPA, rest | abort | GBPA_UPDATE);
        self.wait(GBPA, GBPA_UPDATE, 0)
    }

    fn set_cr0(&self, value: u32) -> Result<(), SmmuError> {
        self.cr0.store(value, Ordering::Relaxed);
        self.registers.write32(CR0, value);
        self.wait(CR0ACK, CR0_ALL, value)
    }

    /// Waits until the bits of `mask` equal `expected`.
    fn wait(&self, register: u32, mask: u32, expected: u32) -> Result<(), SmmuError> {
        let mut actual = 0;
        let found = wait_for(&self.patience, || {
            actual = self.registers.read32(register);
            (actual & mask == expected).then_some(())
        });
        found.ok_or(SmmuError::Timeout { register, expected, actual })
    }

    pub(super) fn run_counted(
        &self,
        count: u64,
        commands: impl Iterator<Item = Command> + Clone,
    ) -> Result<(), FlushError> {
        self.commands.run(&self.registers, &self.patience, count, commands)
    }

    pub(super) fn pool(&self) -> &'p P {
        self.pool
    }

    pub(super) fn event_memory(&self) -> (&Memory<'p, P>, u32) {
        (&self.events, self.events_log2)
    }

    pub(super) fn claim(&self, what: Claim) -> Result<(), SmmuError> {
        let bit = what as u32;
        if self.claims.fetch_or(bit, Ordering::Acquire) & bit != 0 {
            return Err(SmmuError::Taken);
        }
        Ok(())
    }

    pub(super) fn release(&self, what: Claim) {
        self.claims.fetch_and(!(what as u32), Ordering::Release);
    }
}

impl<R, P: Pool, W> fmt::Debug for Smmu<'_, R, P, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Smmu")
            .field("identity", &self.identity)
            .field("errata", &self.errata)
            .field("features", &self.features)
            .finish_non_exhaustive()
    }
}
