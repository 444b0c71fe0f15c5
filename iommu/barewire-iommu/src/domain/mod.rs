//! A domain: tables, IOVAs, strategy and hardware in one handle.
//!
//! # How it works
//! - Mapping asks the allocator for addresses, claims that part of the table, and maps. The
//!   [`Mapped`] it returns is the sole claim to those addresses from then on.
//! - Unmapping takes the [`Mapped`], claims the part again, unhooks everything, and has it
//!   invalidated: at once, or in the flush queue. Tables go back to the pool and addresses to the
//!   allocator when, and only when, that has completed; then the memory may go back to its owner.
//! - [`inner`] does so; [`mapped`] is what callers hold meanwhile, [`policy`] how it is done.
//!
//! All calls take `&self` and may come from several threads at once: ranges that the allocator hands
//! out never overlap, so neither do the parts of the table that two calls work on.
//!
//! # Ordering
//! What a caller can count on:
//! 1. When mapping returns, a device told afterwards finds the memory.
//! 2. When unmapping returns an [`Unmapped`] whose ticket is complete, no device reaches the memory.
//! 3. Addresses are handed out again, and tables used again, after 2 only.
//! 4. A failed flush frees nothing. Who gets the error can try again, and everything comes free then.

mod error;
mod inner;
mod mapped;
mod policy;
mod statistics;
#[cfg(all(test, not(loom)))]
mod tests;

pub use error::{DomainError, DomainMapError, DomainUnmapError};
pub use mapped::{Held, Mapped, Ticket, Unmapped};
pub use policy::{Deferred, Policy, Walks};
pub use statistics::Statistics;

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize as CoreUsize, Ordering::Relaxed};

use crate::address::{Iova, PhysAddr, Segment};
use crate::deferred::{FlushQueue, Flushed};
use crate::format::{Attributes, Config, Geometry, Stage};
use crate::gather::Gather;
use crate::iova::{ClaimError, IovaAllocator};
use crate::lock::Lock;
use crate::pool::Pool;
use crate::strategy::Strategy;
use crate::sync::atomic::AtomicUsize;
use crate::table::{MapError, PageTable, Translation};
use crate::tlbi::{Context, FlushError, Invalidate};
use inner::Inner;
use statistics::Counters;

/// Ranges that a flush queue holds unless told otherwise.
const QUEUE: usize = 64;

/// Counted up for each domain, so that a mapping tells whose it is.
static DOMAINS: CoreUsize = CoreUsize::new(1);

/// Tables, IOVAs, strategy and hardware in one handle, for any number of threads.
///
/// `P` is where tables come from, `I` the hardware, `A` who decides on addresses; each may be a
/// reference. `N` ranges fit into the flush queue.
///
/// Which physical memory is mapped is the caller's word: nothing here knows whose it is.
///
/// Dropping a domain invalidates its context and frees its tables, whatever is mapped: detach its
/// devices before. If the invalidation fails, the tables are leaked. Addresses of mappings that were
/// not unmapped stay with the allocator as handed out.
///
/// It has spin locks inside, held for short, which an interrupt handler must not meet: map and
/// unmap in handlers only if every other call is made with those interrupts masked.
pub struct Domain<P: Pool, I: Invalidate, A: IovaAllocator, const N: usize = QUEUE> {
    inner: Inner<P, I, A>,
    queue: FlushQueue<Inner<P, I, A>, N>,
}

impl<P: Pool, I: Invalidate, A: IovaAllocator> Domain<P, I, A> {
    /// An empty domain, which devices may be attached to by its [`root`](Self::root), and which
    /// hardware knows as `context`. See [`Policy`] for how it invalidates at first.
    ///
    /// # Errors
    /// [`DomainError`].
    pub fn new(
        config: Config,
        context: Context,
        pool: P,
        invalidate: I,
        iovas: A,
    ) -> Result<Self, DomainError> {
        Self::with_queue(config, context, pool, invalidate, iovas)
    }
}

impl<P: Pool, I: Invalidate, A: IovaAllocator, const N: usize> Domain<P, I, A, N> {
    /// [`Domain::new`] with another queue: `Domain::<_, _, _, 256>::with_queue`. A domain that is
    /// never deferred needs none, 0.
    ///
    /// # Errors
    /// [`DomainError`].
    pub fn with_queue(
        config: Config,
        context: Context,
        pool: P,
        invalidate: I,
        iovas: A,
    ) -> Result<Self, DomainError> {
        match (config.stage, context) {
            (Stage::One, Context::Asid(_)) | (Stage::Two, Context::Vmid(_)) => {}
            (stage, context) => return Err(DomainError::Context { stage, context }),
        }
        let inner = Inner {
            table: ManuallyDrop::new(PageTable::new(config, pool)?),
            context,
            invalidate,
            iovas,
            policy: Lock::new(Policy::default()),
            counters: Counters::default(),
            live: AtomicUsize::new(0),
            id: DOMAINS.fetch_add(1, Relaxed),
        };
        Ok(Self { inner, queue: FlushQueue::new() })
    }

    /// Where the root table is: for a context descriptor or stream table entry.
    pub fn root(&self) -> PhysAddr {
        self.inner.table.root()
    }

    /// The table's shape.
    pub fn geometry(&self) -> &Geometry {
        self.inner.table.geometry()
    }

    /// How hardware tags what it caches of it.
    pub fn context(&self) -> Context {
        self.inner.context
    }

    /// Where tables come from.
    pub fn pool(&self) -> &P {
        self.inner.table.pool()
    }

    /// The hardware.
    pub fn invalidate(&self) -> &I {
        &self.inner.invalidate
    }

    /// Who decides on addresses.
    pub fn iovas(&self) -> &A {
        &self.inner.iovas
    }

    /// How it invalidates.
    pub fn policy(&self) -> Policy {
        self.inner.policy.with(|policy| *policy)
    }

    /// Invalidates otherwise from now on. Becoming strict flushes what waits.
    ///
    /// Unmaps under way in other threads may still follow the old policy: if it was deferred and the
    /// new is not, flush once they are done.
    ///
    /// # Errors
    /// The flush's; the policy is changed all the same.
    pub fn set_policy(&self, policy: impl Into<Policy>) -> Result<(), FlushError> {
        let policy = policy.into();
        self.inner.policy.with(|current| *current = policy);
        if policy.deferred.is_none() { self.flush() } else { Ok(()) }
    }

    /// Chooses operations otherwise from now on, strict or deferred as before.
    pub fn set_strategy(&self, strategy: Strategy) {
        self.inner.policy.with(|policy| policy.strategy = strategy);
    }

    /// Maps `size` bytes from `phys` on, anywhere.
    ///
    /// # Errors
    /// [`DomainMapError`]; nothing is mapped then.
    pub fn map(
        &self,
        phys: PhysAddr,
        size: u64,
        attributes: Attributes,
    ) -> Result<Mapped, DomainMapError> {
        self.map_sg(&[Segment { phys, len: size }], attributes)
    }

    /// Maps a scatter list, its pieces one after the other, anywhere.
    ///
    /// # Errors
    /// [`DomainMapError`]; nothing is mapped then.
    pub fn map_sg(
        &self,
        segments: &[Segment],
        attributes: Attributes,
    ) -> Result<Mapped, DomainMapError> {
        let size = self.size(Iova(0), segments)?;
        let iova = self.inner.iovas.alloc(size).ok_or(DomainMapError::Exhausted(size))?;
        self.map_in(iova..Iova(iova.0 + size), segments, attributes)
    }

    /// Maps a scatter list at `iova`: identity maps, reserved regions that a device expects.
    ///
    /// # Errors
    /// [`DomainMapError`]; nothing is mapped then.
    pub fn map_at(
        &self,
        iova: Iova,
        segments: &[Segment],
        attributes: Attributes,
    ) -> Result<Mapped, DomainMapError> {
        let size = self.size(iova, segments)?;
        let beyond = MapError::IovaRange { iova, size, end: Iova(self.geometry().input_end()) };
        let end = iova.0.checked_add(size).ok_or(DomainMapError::Table(beyond))?;
        self.inner.iovas.claim(iova..Iova(end)).map_err(DomainMapError::Claim)?;
        self.map_in(iova..Iova(end), segments, attributes)
    }

    /// Keeps addresses from ever being mapped: those of message-signalled interrupts, say, which an
    /// SMMU's device writes untranslated.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub fn reserve(&self, range: Range<Iova>) -> Result<(), ClaimError> {
        self.inner.iovas.claim(range)
    }

    /// Unmaps all of a mapping.
    ///
    /// In a strict domain no device reaches its memory when this returns; in a deferred one, when
    /// the ticket is complete.
    ///
    /// # Errors
    /// [`DomainUnmapError`], which has what is still mapped, or still held.
    pub fn unmap(&self, mut mapped: Mapped) -> Result<Unmapped, DomainUnmapError> {
        if mapped.domain != self.inner.id {
            return Err(DomainUnmapError::Foreign(mapped));
        }
        let policy = self.policy();
        let mut gather = Gather::new();
        let bytes = match self.inner.unmap(&mut mapped, &policy, &mut gather) {
            Ok(bytes) => bytes,
            Err(error) => return Err(DomainUnmapError::Table { mapped, error }),
        };
        let number =
            self.retire(mapped.range(), gather, &policy).map_err(DomainUnmapError::Held)?;
        Ok(Unmapped { bytes, ticket: Ticket { number, domain: self.inner.id } })
    }

    /// Where an address of a mapping leads.
    ///
    /// # Panics
    /// If the mapping is another domain's.
    pub fn iova_to_phys(&self, mapped: &Mapped, iova: Iova) -> Option<Translation> {
        assert_eq!(mapped.domain, self.inner.id, "the mapping is another domain's");
        if !mapped.range().contains(&iova) {
            return None;
        }
        // Whoever unmaps or maps there would have the `Mapped` alone, so nobody does.
        self.inner.table.iova_to_phys(iova)
    }

    /// Tries a failed flush again, as an invalidation of the whole context.
    ///
    /// # Errors
    /// What is still held.
    ///
    /// # Panics
    /// If it is another domain's.
    pub fn retry(&self, held: Held) -> Result<(), Held> {
        assert_eq!(held.domain, self.inner.id, "what is held is another domain's");
        self.inner.retry(held)
    }

    /// Whether what was unmapped is out of every device's reach.
    ///
    /// # Panics
    /// If the ticket is another domain's.
    pub fn completed(&self, ticket: Ticket) -> bool {
        assert_eq!(ticket.domain, self.inner.id, "the ticket is another domain's");
        ticket.number == 0 || self.queue.completed(ticket.number)
    }

    /// Returns when it is, flushing if need be. A flush by another thread is waited for by spinning.
    ///
    /// # Errors
    /// The flush's: nothing that waits is released then.
    ///
    /// # Panics
    /// If the ticket is another domain's.
    pub fn wait(&self, ticket: Ticket) -> Result<(), FlushError> {
        assert_eq!(ticket.domain, self.inner.id, "the ticket is another domain's");
        if ticket.number == 0 { Ok(()) } else { self.queue.wait(&self.inner, ticket.number) }
    }

    /// Invalidates and releases everything that waits.
    ///
    /// # Errors
    /// The flush's: nothing that waits is released then.
    pub fn flush(&self) -> Result<(), FlushError> {
        self.queue.wait(&self.inner, self.queue.last())
    }

    /// Tells the time, in ticks of any clock, and flushes if something has waited for too long: what
    /// is older than the bounds' age at a call is released by it. To be called now and then in a
    /// deferred domain; ages are reckoned from the call before, so it may flush early by as much.
    ///
    /// # Errors
    /// The flush's: nothing that waits is released then.
    pub fn poll(&self, now_ticks: u64) -> Result<(), FlushError> {
        let Some(deferred) = self.policy().deferred else { return Ok(()) };
        if self.queue.is_due(now_ticks, &deferred.bounds) {
            // If another thread is at it, it is being done.
            self.queue.try_flush(&self.inner)?;
        }
        Ok(())
    }

    /// Unmapped ranges that wait for a flush, and their bytes.
    pub fn waiting(&self) -> (usize, u64) {
        self.queue.waiting()
    }

    /// Leaves that are mapped, about: pages, but for mappings of one segment.
    pub fn live_leaves(&self) -> usize {
        self.inner.live.load(Relaxed)
    }

    /// Begins to count, or stops: off at first, since counters that several threads write cost more
    /// than what they count.
    pub fn set_counting(&self, on: bool) {
        self.inner.counters.set_on(on);
    }

    /// What was counted.
    pub fn statistics(&self) -> Statistics {
        self.inner.counters.read()
    }

    /// All bytes of a list, in whole granules.
    fn size(&self, iova: Iova, segments: &[Segment]) -> Result<u64, DomainMapError> {
        let sum = bytes(segments);
        // What is no multiple of the granule the table will refuse, and say where.
        let size = sum.and_then(|sum| sum.checked_next_multiple_of(self.geometry().page_bytes()));
        match size {
            Some(0) => Err(DomainMapError::Table(MapError::Empty(iova))),
            Some(size) => Ok(size),
            None => Err(DomainMapError::Exhausted(u64::MAX)),
        }
    }

    /// Maps where the allocator said, or gives the addresses back.
    fn map_in(
        &self,
        range: Range<Iova>,
        segments: &[Segment],
        attributes: Attributes,
    ) -> Result<Mapped, DomainMapError> {
        let mut gather = Gather::new();
        self.inner.map(&range, segments, attributes, &mut gather).map_err(|error| {
            // Walkers may have seen what was mapped before it failed.
            match self.inner.retire(range, gather, &self.policy().strategy) {
                Ok(()) => DomainMapError::Table(error),
                Err(held) => DomainMapError::Held { error, held },
            }
        })
    }

    /// Queues what was unmapped, or invalidates it at once; returns the ticket's number.
    fn retire(
        &self,
        mut range: Range<Iova>,
        mut gather: Gather,
        policy: &Policy,
    ) -> Result<u64, Held> {
        if let Some(deferred) = &policy.deferred {
            let bytes = range.end.0 - range.start.0;
            for may_make_room in [true, false] {
                let pushed = self.queue.push(&self.inner, range, gather, bytes, &deferred.bounds);
                match pushed {
                    Ok(number) => {
                        self.inner.counters.add(statistics::Kind::Deferred, 1);
                        return Ok(number);
                    }
                    Err(back) => (range, gather) = back,
                }
                // If the flush fails, so perhaps will the one below, whose error has an owner.
                let made = may_make_room && self.queue.try_flush(&self.inner) == Ok(Flushed::Done);
                if !made {
                    break;
                }
            }
        }
        self.inner.retire(range, gather, &policy.strategy).map(|()| 0)
    }
}

/// All bytes of a list, unless they are too many for a number.
fn bytes(segments: &[Segment]) -> Option<u64> {
    // Long lists are read twice, here and by the table; a sum that looks for an overflow at each
    // step costs as much as mapping them. So the sum is plain, and the bits of all lengths tell
    // whether it can have overflowed.
    let add = |(sum, bits): (u64, u64), segment: &Segment| {
        (sum.wrapping_add(segment.len), bits | segment.len)
    };
    let (sum, bits) = segments.iter().fold((0, 0), add);
    match bits.checked_mul(segments.len() as u64) {
        Some(_) => Some(sum),
        None => segments.iter().try_fold(0u64, |sum, segment| sum.checked_add(segment.len)),
    }
}

impl<P: Pool, I: Invalidate, A: IovaAllocator, const N: usize> Drop for Domain<P, I, A, N> {
    fn drop(&mut self) {
        let flushed = self.flush().is_ok();
        self.inner.drop_table(flushed);
    }
}

impl<P: Pool, I: Invalidate, A: IovaAllocator, const N: usize> fmt::Debug for Domain<P, I, A, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain")
            .field("context", &self.context())
            .field("root", &self.root())
            .field("policy", &self.policy())
            .field("live_leaves", &self.live_leaves())
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}
