//! A domain: tables, IOVAs, strategy and hardware in one handle.
//!
//! # How it works
//! - Mapping allocates addresses, claims that part of the table, and maps. The returned [`Mapped`]
//!   is from then on the only claim to those addresses.
//! - Unmapping takes the [`Mapped`], claims the part again, unhooks everything, and invalidates it,
//!   at once or in the flush queue. When the invalidation has completed, and not before, tables
//!   return to the pool and addresses to the allocator, and the memory may be reused.
//! - A map that finds an empty table where a block belongs replaces it. A map that runs out of tables
//!   frees the empty ones ([`reclaim`]) and tries again.
//! - [`inner`] does this work, [`mapped`] has the handles of callers, [`policy`] the choices.
//!
//! All calls take `&self`, and several threads may call at once. The allocator never hands out
//! overlapping ranges, so two calls never work on the same part of the table.
//!
//! # Ordering
//! Guarantees to the caller:
//! 1. Mapped means reachable: when `map` returns, a device that is started afterwards reaches the
//!    memory.
//! 2. Complete means unreachable: when the ticket of an [`Unmapped`] is complete, no device reaches
//!    the memory.
//! 3. Addresses and tables are reused only after 2.
//! 4. A failed flush frees nothing. The caller that gets the error can retry, and everything is
//!    freed when the retry succeeds.
//! 5. An empty table is freed under a claim of its whole span, after the walks through it have been
//!    invalidated. So no other call is in it, and no walk leads to it.

mod error;
mod inner;
mod mapped;
mod policy;
mod reclaim;
mod shared;
mod statistics;
mod sweeps;
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
use crate::deferred::{FlushOutcome, FlushQueue};
use crate::format::{Attributes, Config, Geometry, Stage};
use crate::gather::Gather;
use crate::iova::{ClaimError, IovaAllocator};
use crate::pool::Pool;
use crate::strategy::Strategy;
use crate::sync::atomic::AtomicUsize;
use crate::table::{MapError, PageTable, Part, SegmentBits, Translation, UnmapError};
use crate::tlbi::{Context, FlushError, Invalidate};
use inner::Inner;
use shared::SharedPolicy;
use statistics::Counters;
use sweeps::Sweeps;

/// The default capacity of the flush queue, in ranges.
const QUEUE: usize = 64;

/// Counts domains, so that each mapping can name its domain.
static DOMAINS: CoreUsize = CoreUsize::new(1);

/// Tables, IOVAs, strategy and hardware in one handle, for any number of threads.
///
/// `P` is the pool of tables, `I` the hardware and `A` the allocator of addresses; each may be a
/// reference. The flush queue holds `N` ranges.
///
/// The caller decides which physical memory is mapped: the domain does not check its ownership.
///
/// Dropping a domain invalidates its context and frees its tables, even if ranges are still mapped.
/// Detach its devices before. If the invalidation fails, the tables are leaked. The allocator keeps
/// the addresses of ranges that were not unmapped.
///
/// The domain has spin locks that are held briefly. An interrupt handler that waits for one held by
/// the code it interrupted waits for ever. So call map and unmap in a handler only if every other
/// call runs with that interrupt masked.
pub struct Domain<P: Pool, I: Invalidate, A: IovaAllocator, const N: usize = QUEUE> {
    inner: Inner<P, I, A>,
    queue: FlushQueue<Inner<P, I, A>, N>,
}

impl<P: Pool, I: Invalidate, A: IovaAllocator> Domain<P, I, A> {
    /// Creates an empty domain. `context` is the tag the hardware uses for it. Devices are attached
    /// by giving their SMMU the [`root`](Self::root). See [`Policy`] for how it invalidates at
    /// first.
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
    /// [`Domain::new`] with a flush queue of another size: `Domain::<_, _, _, 256>::with_queue`. A
    /// domain that is never deferred needs none: 0.
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
            policy: SharedPolicy::new(&Policy::default()),
            counters: Counters::default(),
            live: AtomicUsize::new(0),
            sweeps: Sweeps::new(),
            id: DOMAINS.fetch_add(1, Relaxed),
        };
        Ok(Self { inner, queue: FlushQueue::new() })
    }

    /// The same domain, whose table uses the Contiguous hint: [`PageTable::with_contiguous`]. Call it
    /// before anything is mapped.
    #[must_use]
    pub fn with_contiguous(mut self) -> Self {
        self.inner.set_contiguous();
        self
    }

    /// The address of the root table, for a context descriptor or stream table entry.
    pub fn root(&self) -> PhysAddr {
        self.inner.table.root()
    }

    /// The shape of the table.
    pub fn geometry(&self) -> &Geometry {
        self.inner.table.geometry()
    }

    /// The tag that hardware puts on cached translations of this domain.
    pub fn context(&self) -> Context {
        self.inner.context
    }

    /// The pool of tables.
    pub fn pool(&self) -> &P {
        self.inner.table.pool()
    }

    /// The hardware.
    pub fn invalidate(&self) -> &I {
        &self.inner.invalidate
    }

    /// The allocator of IOVAs.
    pub fn iovas(&self) -> &A {
        &self.inner.iovas
    }

    /// The current policy.
    pub fn policy(&self) -> Policy {
        self.inner.policy.read()
    }

    /// Changes the policy. If the new one is strict, the flush queue is flushed.
    ///
    /// Unmaps under way in other threads may still use the old policy. If the old one was deferred
    /// and the new one is not, call [`flush`](Self::flush) when they are done.
    ///
    /// # Errors
    /// The error of the flush. The policy is changed nevertheless.
    pub fn set_policy(&self, policy: impl Into<Policy>) -> Result<(), FlushError> {
        let policy = policy.into();
        self.inner.policy.change(|_| policy);
        if policy.deferred.is_none() { self.flush() } else { Ok(()) }
    }

    /// Changes the strategy; the domain stays strict or deferred as it was.
    pub fn set_strategy(&self, strategy: Strategy) {
        self.inner.policy.change(|policy| Policy { strategy, ..policy });
    }

    /// Maps `size` bytes from `phys` on, at an address the allocator chooses.
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

    /// Maps the segments of a scatter list one after the other, at an address the allocator
    /// chooses.
    ///
    /// # Errors
    /// [`DomainMapError`]; nothing is mapped then.
    pub fn map_sg(
        &self,
        segments: &[Segment],
        attributes: Attributes,
    ) -> Result<Mapped, DomainMapError> {
        let size = self.size(Iova(0), segments)?;
        let sweeps = self.inner.sweeps.count();
        let iova = match self.inner.iovas.alloc(size) {
            Some(iova) => iova,
            None => self.alloc_again(size, sweeps).ok_or(DomainMapError::Exhausted(size))?,
        };
        self.map_in(iova..Iova(iova.0 + size), segments, attributes)
    }

    /// Maps a scatter list at `iova`: for identity maps, and for regions a device expects at an
    /// address.
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
        self.claim(iova..Iova(end)).map_err(DomainMapError::Claim)?;
        self.map_in(iova..Iova(end), segments, attributes)
    }

    /// Excludes addresses from mapping: for example those of message-signalled interrupts, which a
    /// device behind an SMMU writes untranslated.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub fn reserve(&self, range: Range<Iova>) -> Result<(), ClaimError> {
        self.claim(range)
    }

    /// Unmaps all of a mapping.
    ///
    /// In a strict domain no device reaches its memory when this returns. In a deferred domain no
    /// device reaches it when the ticket is complete.
    ///
    /// # Errors
    /// [`DomainUnmapError`]; it hands back what is still mapped or still held.
    pub fn unmap(&self, mut mapped: Mapped) -> Result<Unmapped, DomainUnmapError> {
        if mapped.domain != self.inner.id {
            return Err(DomainUnmapError::Foreign(mapped));
        }
        if !self.inner.policy.is_plain() {
            return self.unmap_by_policy(mapped);
        }
        let mut gather = Gather::new();
        let (iova, size) = (mapped.iova, mapped.size);
        let unmap = |mut part: Part<'_, P>, gather: &mut Gather| part.unmap(iova, size, gather);
        let removed = self.inner.unmap(&mut mapped, &mut gather, unmap);
        let bytes = match removed {
            Ok(bytes) => bytes,
            Err(error) => return Err(DomainUnmapError::Table { mapped, error }),
        };
        // Read now, so that it need not be kept during the unmap.
        let strategy = self.inner.policy.strategy();
        let retired = self.inner.retire(mapped.range(), &mut gather, &strategy);
        retired.map_err(DomainUnmapError::Held)?;
        Ok(self.unmapped(bytes, 0))
    }

    fn unmapped(&self, bytes: u64, number: u64) -> Unmapped {
        Unmapped { bytes, ticket: Ticket { number, domain: self.inner.id } }
    }

    /// [`unmap`](Self::unmap) in a deferred domain, or where each table is flushed on its own.
    #[inline(never)]
    fn unmap_by_policy(&self, mut mapped: Mapped) -> Result<Unmapped, DomainUnmapError> {
        let policy = self.inner.policy.read();
        let mut gather = Gather::new();
        let (iova, size) = (mapped.iova, mapped.size);
        let unmap = |mut part: Part<'_, P>, gather: &mut Gather| match policy.walks {
            Walks::Gathered => part.unmap(iova, size, gather),
            Walks::EachTable => self.inner.unmap_each_table(part, &policy.strategy, gather),
        };
        let bytes = match self.inner.unmap(&mut mapped, &mut gather, unmap) {
            Ok(bytes) => bytes,
            Err(error) => return Err(DomainUnmapError::Table { mapped, error }),
        };
        let retired = match &policy.deferred {
            None => self.inner.retire(mapped.range(), &mut gather, &policy.strategy).map(|()| 0),
            Some(deferred) => self.defer(mapped.range(), gather, &policy, deferred),
        };
        let number = retired.map_err(DomainUnmapError::Held)?;
        Ok(self.unmapped(bytes, number))
    }

    /// Gives all of a mapping these attributes: read-only and back, or another memory type. When this
    /// returns, devices access the memory by them only. If the memory type or shareability changes,
    /// accesses meanwhile fault, so the device should be quiet.
    ///
    /// # Errors
    /// [`UnmapError::Stage`]. [`UnmapError::Flush`]: devices may still use the old attributes; call again.
    ///
    /// # Panics
    /// If the mapping belongs to another domain.
    pub fn protect(&self, mapped: &mut Mapped, attributes: Attributes) -> Result<(), UnmapError> {
        assert_eq!(mapped.domain, self.inner.id, "the mapping is another domain's");
        self.inner.protect(mapped, attributes)
    }

    /// The translation of an address inside a mapping.
    ///
    /// # Panics
    /// If the mapping belongs to another domain.
    pub fn iova_to_phys(&self, mapped: &Mapped, iova: Iova) -> Option<Translation> {
        assert_eq!(mapped.domain, self.inner.id, "the mapping is another domain's");
        if !mapped.range().contains(&iova) {
            return None;
        }
        // To map or unmap there a caller needs the `Mapped`, which is borrowed here.
        self.inner.table.iova_to_phys(iova)
    }

    /// Retries a failed flush, as an invalidation of the whole context.
    ///
    /// # Errors
    /// The tables and addresses that are still held.
    ///
    /// # Panics
    /// If it belongs to another domain.
    pub fn retry(&self, held: Held) -> Result<(), Held> {
        assert_eq!(held.domain, self.inner.id, "what is held is another domain's");
        self.inner.retry(held)
    }

    /// Whether no device can reach the unmapped memory any more.
    ///
    /// # Panics
    /// If the ticket belongs to another domain.
    pub fn completed(&self, ticket: Ticket) -> bool {
        assert_eq!(ticket.domain, self.inner.id, "the ticket is another domain's");
        ticket.number == 0 || self.queue.completed(ticket.number)
    }

    /// Waits until the ticket is complete, and flushes if necessary. It spins while another thread
    /// flushes.
    ///
    /// # Errors
    /// The error of the flush. Then nothing that waits for this flush is released.
    ///
    /// # Panics
    /// If the ticket belongs to another domain.
    pub fn wait(&self, ticket: Ticket) -> Result<(), FlushError> {
        assert_eq!(ticket.domain, self.inner.id, "the ticket is another domain's");
        if ticket.number == 0 { Ok(()) } else { self.queue.wait(&self.inner, ticket.number) }
    }

    /// Invalidates and releases everything in the flush queue.
    ///
    /// # Errors
    /// The error of the flush. Nothing that waits is released then.
    pub fn flush(&self) -> Result<(), FlushError> {
        self.queue.wait(&self.inner, self.queue.last())
    }

    /// Updates the clock, in ticks of any clock, and flushes if an entry is older than the bounds
    /// allow. Call it regularly in a deferred domain. The age of an entry counts from the call
    /// before it was added, so a flush may come early by as much as the time between two calls.
    ///
    /// # Errors
    /// The error of the flush. Nothing that waits is released then.
    pub fn poll(&self, now_ticks: u64) -> Result<(), FlushError> {
        let Some(deferred) = self.policy().deferred else { return Ok(()) };
        if self.queue.is_due(now_ticks, &deferred.bounds) {
            // If another thread is flushing, nothing is left to do.
            self.queue.try_flush(&self.inner)?;
        }
        Ok(())
    }

    /// The number of unmapped ranges that wait for a flush, and their bytes.
    pub fn waiting(&self) -> (usize, u64) {
        self.queue.waiting()
    }

    /// The approximate number of mapped leaves. A mapping of several segments counts as pages.
    pub fn live_leaves(&self) -> usize {
        self.inner.live.load(Relaxed)
    }

    /// Starts or stops counting. Counting is off at first: counters that several threads write cost
    /// more than the work they count.
    pub fn set_counting(&self, on: bool) {
        self.inner.counters.set_on(on);
    }

    /// The counters.
    pub fn statistics(&self) -> Statistics {
        self.inner.counters.read()
    }

    /// The sum of all lengths, rounded up to the granule.
    fn size(&self, iova: Iova, segments: &[Segment]) -> Result<u64, DomainMapError> {
        let sum = bytes(segments);
        // The table refuses a length that is not a multiple of the granule, and says which.
        let mask = self.geometry().page_bytes() - 1;
        let size = sum.and_then(|sum| sum.checked_add(mask)).map(|sum| sum & !mask);
        match size {
            Some(0) => Err(DomainMapError::Table(MapError::Empty(iova))),
            Some(size) => Ok(size),
            None => Err(DomainMapError::Exhausted(u64::MAX)),
        }
    }

    /// Maps at the allocated range, or releases the range on failure.
    fn map_in(
        &self,
        range: Range<Iova>,
        segments: &[Segment],
        attributes: Attributes,
    ) -> Result<Mapped, DomainMapError> {
        let mut gather = Gather::new();
        match self.inner.map(&range, segments, attributes, &mut gather) {
            Ok(leaves) => Ok(self.mapped(range, leaves)),
            Err(error @ MapError::OutOfMemory(_)) => {
                self.map_without_memory(range, segments, attributes, error, gather)
            }
            Err(error) => self.give_up(range, gather, error),
        }
    }

    /// The handle of a range that was mapped, and the only one.
    #[inline]
    fn mapped(&self, range: Range<Iova>, leaves: usize) -> Mapped {
        let size = range.end.0 - range.start.0;
        Mapped { iova: range.start, size, leaves, domain: self.inner.id }
    }

    /// Releases the range of a map that failed.
    #[cold]
    fn give_up(
        &self,
        range: Range<Iova>,
        mut gather: Gather,
        error: MapError,
    ) -> Result<Mapped, DomainMapError> {
        // Walkers may have seen the part that was mapped before the failure.
        match self.inner.retire(range, &mut gather, &self.inner.policy.strategy()) {
            Ok(()) => Err(DomainMapError::Table(error)),
            Err(held) => Err(DomainMapError::Held { error, held }),
        }
    }

    /// Tries once more to allocate, if a sweep for empty tables had claims meanwhile.
    #[cold]
    #[inline(never)]
    fn alloc_again(&self, size: u64, sweeps: usize) -> Option<Iova> {
        self.inner.sweeps.after(sweeps, || self.inner.iovas.alloc(size)).flatten()
    }

    /// Claims a range. If a sweep for empty tables had it, the claim is tried again after it.
    fn claim(&self, range: Range<Iova>) -> Result<(), ClaimError> {
        let sweeps = self.inner.sweeps.count();
        match self.inner.iovas.claim(range.clone()) {
            Err(error @ (ClaimError::Taken | ClaimError::TooMany(_))) => {
                let again = self.inner.sweeps.after(sweeps, || self.inner.iovas.claim(range));
                again.unwrap_or(Err(error))
            }
            result => result,
        }
    }

    /// Queues an unmapped range, or invalidates it at once. Returns the number for the ticket.
    #[inline(never)]
    fn defer(
        &self,
        mut range: Range<Iova>,
        mut gather: Gather,
        policy: &Policy,
        deferred: &Deferred,
    ) -> Result<u64, Held> {
        let bytes = range.end.0 - range.start.0;
        for may_make_room in [true, false] {
            match self.queue.push(&self.inner, range, gather, bytes, &deferred.bounds) {
                Ok(number) => {
                    self.inner.counters.add(statistics::Kind::Deferred, 1);
                    return Ok(number);
                }
                Err(back) => (range, gather) = back,
            }
            // If this flush fails, the one below probably fails too, and its error is returned to
            // the caller.
            let made = may_make_room && self.queue.try_flush(&self.inner) == Ok(FlushOutcome::Done);
            if !made {
                break;
            }
        }
        self.inner.retire(range, &mut gather, &policy.strategy).map(|()| 0)
    }
}

/// The sum of all lengths, or `None` on overflow.
#[inline]
fn bytes(segments: &[Segment]) -> Option<u64> {
    match segments {
        [segment] => Some(segment.len),
        _ => sum(segments),
    }
}

fn sum(segments: &[Segment]) -> Option<u64> {
    // Lists are read twice, here and by the table. A sum that checks for overflow at each step costs
    // as much as the mapping itself. So this sum is unchecked, and the union of all lengths' bits
    // tells whether it can have overflowed.
    let bits = SegmentBits::of(segments);
    match bits.len.checked_mul(segments.len() as u64) {
        Some(_) => Some(bits.len_sum),
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
