//! SMMUv2: the TLB operations of a context bank (IHI 0062, chapters 16 and 17).
//!
//! # How the hardware works
//! A TLB operation is a register write, which the hardware queues. A write to SMMU_CBn_TLBSYNC
//! begins a wait for all earlier operations. They are complete when SMMU_CBn_TLBSTATUS.SACTIVE is
//! 0. Operations by VMID are in the global space and have a wait of their own, SMMU_sTLBGSYNC and
//! SMMU_sTLBGSTATUS.GSACTIVE.
//!
//! This driver does not rely on the effect of a second write to TLBSYNC while SACTIVE is 1. If it
//! had none, SACTIVE would become 0 at the end of the first wait, and the second CPU would take its
//! own operations for complete too early. Linux holds a lock there too (`global_sync_lock` and
//! `cb_lock` in its arm-smmu driver).
//!
//! # How this driver uses it
//! One CPU at a time writes TLBSYNC and polls its status. Each [`ContextBank`] has a lock for the
//! bank's TLBSYNC; the global one, shared by all banks of an SMMU, has the lock in [`GlobalSync`]. A
//! CPU waits for the lock only as long as its patience allows. If a CPU gives up while SACTIVE is 1,
//! it marks the lock, and the next CPU first waits until SACTIVE is 0.
//!
//! # Ordering
//! 1. Tables first: walks after [`flush`](Invalidate::flush) see all stores to tables before it.
//! 2. Complete: when it returns Ok, SACTIVE was 0 after all its operations.
//! 3. One wait at a time: several CPUs may flush at the same time. Their operations are issued
//!    together; their waits come one after the other.
//! 4. Interrupt handlers: a handler that flushes may have interrupted the CPU that waits. It then gets
//!    [`FlushError::Timeout`] when its patience ends. Flush with those interrupts masked, or outside
//!    handlers.
//!
//! # Not supported
//! - Ranges and level hints, which SMMUv2 does not have: [`Tlbi::Range`] becomes one operation per
//!   granule.
//! - Context banks with 32-bit formats.
//! - Bring-up: the caller configures stream mapping and the bank's registers.
//! - Recognising errata: an SMMUv2's registers do not tell. See [`Erratum`].

mod errata;

pub use errata::{Erratum, PrefetchError, disable_prefetch};

use super::patience::{Patience, Polls, wait_for};
use super::registers::Registers;
use crate::pool::Pool;
use crate::sync::atomic::{AtomicU32, Ordering, fence};
use crate::tlbi::{Context, FlushError, Invalidate, Tlbi};

/// SMMU_IDR1.
const IDR1: u32 = 0x24;
const IDR1_PAGESIZE_64K: u32 = 1 << 31;
const IDR1_NUMPAGENDXB_SHIFT: u32 = 28;
/// NUMCB: the number of context banks.
const IDR1_NUMCB: u32 = 0xff;

/// Global space: SMMU_TLBIVMID, SMMU_sTLBGSYNC, SMMU_sTLBGSTATUS.
const TLBIVMID: u32 = 0x64;
const TLBGSYNC: u32 = 0x70;
const TLBGSTATUS: u32 = 0x74;

/// Offsets in a context bank's page.
const TLBIVA: u32 = 0x600;
const TLBIASID: u32 = 0x610;
const TLBIVAL: u32 = 0x620;
const TLBIIPAS2: u32 = 0x630;
const TLBIIPAS2L: u32 = 0x638;
const TLBSYNC: u32 = 0x7f0;
const TLBSTATUS: u32 = 0x7f4;

/// SACTIVE, GSACTIVE: operations are not complete.
const ACTIVE: u32 = 1;

/// Addresses are written without their lower 12 bits, whatever the granule, with the ASID above
/// them.
const PAGE_SHIFT: u32 = 12;
const VA_PAGES: u64 = (1 << 44) - 1;
const ASID_SHIFT: u32 = 48;

/// The lock of a wait.
#[derive(Debug)]
struct SyncLock(AtomicU32);

/// No CPU waits.
const FREE: u32 = 0;
/// A CPU waits.
const HELD: u32 = 1;
/// No CPU waits, but the wait of one that gave up may not be over.
const ABANDONED: u32 = 2;

impl SyncLock {
    #[cfg(not(loom))]
    const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// The model checker's atomics are not made at compile time.
    #[cfg(loom)]
    fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Acquires the lock. Returns whether the last wait was abandoned.
    fn try_acquire(&self) -> Option<bool> {
        let acquire = |from| {
            self.0.compare_exchange(from, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        if acquire(FREE) {
            return Some(false);
        }
        acquire(ABANDONED).then_some(true)
    }

    /// Makes waits follow one another: begins a wait by writing `register`, and polls `status`.
    fn wait(
        &self,
        registers: &impl Registers,
        patience: &impl Patience,
        register: u32,
        status: u32,
    ) -> Result<(), FlushError> {
        let is_over = || (registers.read32(status) & ACTIVE == 0).then_some(());
        let is_abandoned = wait_for(patience, || self.try_acquire()).ok_or(FlushError::Timeout)?;
        // Released also if the caller's code panics. Until the end SACTIVE may be 1.
        let mut held = SyncGuard { sync: self, left: ABANDONED };
        if is_abandoned {
            wait_for(patience, is_over).ok_or(FlushError::Timeout)?;
        }
        registers.write32(register, u32::MAX);
        wait_for(patience, is_over).ok_or(FlushError::Timeout)?;
        held.left = FREE;
        Ok(())
    }
}

/// Releases the lock on drop.
struct SyncGuard<'l> {
    sync: &'l SyncLock,
    /// [`FREE`] or [`ABANDONED`].
    left: u32,
}

impl Drop for SyncGuard<'_> {
    fn drop(&mut self) {
        self.sync.0.store(self.left, Ordering::Release);
    }
}

/// Lets the waits in the global space come one after the other. One for each SMMU; all its context
/// banks share it.
#[derive(Debug)]
pub struct GlobalSync(SyncLock);

impl GlobalSync {
    /// Creates one.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(SyncLock::new())
    }

    /// Creates one.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(SyncLock::new())
    }
}

impl Default for GlobalSync {
    fn default() -> Self {
        Self::new()
    }
}

/// A context bank that walks a VMSAv8-64 table. All CPUs share one: there is one for each bank.
#[derive(Debug)]
pub struct ContextBank<'p, R, P, W = Polls> {
    registers: R,
    pool: &'p P,
    patience: W,
    /// The offset of its page.
    base: u32,
    /// Its own wait.
    sync: SyncLock,
    global: &'p GlobalSync,
}

/// The offset of a context bank's page.
fn bank_offset(idr1: u32, index: u32) -> u32 {
    let page_shift = if idr1 & IDR1_PAGESIZE_64K != 0 { 16 } else { 12 };
    // The global space has as many pages as the context banks.
    let pages = 2 << (idr1 >> IDR1_NUMPAGENDXB_SHIFT & 0b111);
    (pages + index) << page_shift
}

impl<'p, R: Registers, P: Pool, W: Patience> ContextBank<'p, R, P, W> {
    /// Context bank `index` of the SMMU at `registers`, which begin with the global space. `pool`
    /// allocates its tables; its barrier is used here. `global` is the SMMU's.
    pub fn new(registers: R, index: u8, pool: &'p P, global: &'p GlobalSync, patience: W) -> Self {
        let base = bank_offset(registers.read32(IDR1), index.into());
        Self { registers, pool, patience, base, sync: SyncLock::new(), global }
    }

    fn one(&self, context: Context, iova: u64, leaf: bool) {
        let page = iova >> PAGE_SHIFT & VA_PAGES;
        let (register, value) = match (context, leaf) {
            (Context::Asid(asid), false) => (TLBIVA, page | u64::from(asid) << ASID_SHIFT),
            (Context::Asid(asid), true) => (TLBIVAL, page | u64::from(asid) << ASID_SHIFT),
            (Context::Vmid(_), false) => (TLBIIPAS2, page),
            (Context::Vmid(_), true) => (TLBIIPAS2L, page),
        };
        self.registers.write64(self.base + register, value);
    }

    fn pages(&self, context: Context, iova: u64, stride: u32, count: u64, leaf: bool) {
        for page in 0..count {
            self.one(context, iova.wrapping_add(page << stride), leaf);
        }
    }

    fn wait(&self, sync: &SyncLock, register: u32, status: u32) -> Result<(), FlushError> {
        sync.wait(&self.registers, &self.patience, register, status)
    }
}

impl<R: Registers, P: Pool, W: Patience> Invalidate for ContextBank<'_, R, P, W> {
    /// Does what the trait promises. Operations by address use the bank's own VMID;
    /// [`Tlbi::Context`] uses the one in `context`.
    fn flush(&self, context: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
        self.pool.barrier();
        let (mut in_bank, mut global) = (false, false);
        for operation in operations {
            match *operation {
                Tlbi::Context => match context {
                    Context::Asid(asid) => {
                        self.registers.write32(self.base + TLBIASID, asid.into());
                        in_bank = true;
                    }
                    Context::Vmid(vmid) => {
                        self.registers.write32(TLBIVMID, vmid.into());
                        global = true;
                    }
                },
                Tlbi::Pages { iova, stride, count, leaf, level: _ } => {
                    self.pages(context, iova.0, stride, count, leaf);
                    in_bank |= count != 0;
                }
                Tlbi::Range { iova, page_shift, pages, leaf, level: _ } => {
                    self.pages(context, iova.0, page_shift, pages, leaf);
                    in_bank |= pages != 0;
                }
            }
        }
        if in_bank {
            self.wait(&self.sync, self.base + TLBSYNC, self.base + TLBSTATUS)?;
        }
        if global {
            self.wait(&self.global.0, TLBGSYNC, TLBGSTATUS)?;
        }
        // The SMMU's accesses come before what the caller does next, for example freeing tables.
        fence(Ordering::Acquire);
        Ok(())
    }

    fn commands(&self, operations: &[Tlbi]) -> u64 {
        let of = |operation: &Tlbi| match *operation {
            Tlbi::Context => 1,
            Tlbi::Pages { count, .. } => count,
            Tlbi::Range { pages, .. } => pages,
        };
        operations.iter().map(of).sum()
    }
}
