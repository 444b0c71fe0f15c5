//! IO page tables at memory speed: map, unmap, and one TLB invalidation where one is enough.
//!
//! A [`Domain`] is all of it in one handle: here 32 MiB in scattered pages, whose unmapping costs one
//! invalidation, or 8,192 if each page is named.
//!
//! ```
//! use std::ptr::NonNull;
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//!
//! use barewire_iommu::{
//!     Access, Arena, Attributes, Config, Context, Domain, FlushError, Granule, Invalidate, Iova,
//!     IovaWindow, Link, PhysAddr, Segment, Stage, Strategy, Tlbi,
//! };
//!
//! /// Stands in for an SMMU, and counts its commands.
//! struct Counter(AtomicU64);
//!
//! impl Invalidate for Counter {
//!     fn flush(&self, _: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
//!         self.0.fetch_add(self.commands(operations), Relaxed);
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Memory for tables: 32 of 4 KiB, which a walker would find at 0x8000_0000.
//! let mut memory = vec![0u64; 32 * 512];
//! let links: Vec<Link> = (0..32).map(|_| Link::new()).collect();
//! let start = NonNull::from(&mut memory[..]).cast();
//! // SAFETY: the memory is as large as the links say, and nobody else uses it.
//! let pool = unsafe { Arena::new(start, PhysAddr(0x8000_0000), 4096, &links)? };
//!
//! // Addresses for devices: up to 4 GiB, a bit for each page.
//! let iovas = IovaWindow::new(Iova(0x1000)..Iova(1 << 32), Granule::Size4K, vec![0; 1 << 14]);
//! let smmu = Counter(AtomicU64::new(0));
//! let domain = Domain::new(Config::default(), Context::Asid(1), &pool, &smmu, iovas)?;
//! // A device is attached by telling its SMMU of `domain.root()` and the ASID.
//!
//! let page = |i: u64| Segment { phys: PhysAddr(0x1_0000_0000 + i * 0x5000), len: 0x1000 };
//! let scattered: Vec<Segment> = (0..8192).map(page).collect();
//! let attributes = Attributes::new(Stage::One, Access::ReadWrite);
//!
//! let mapped = domain.map_sg(&scattered, attributes)?;
//! let found = domain.iova_to_phys(&mapped, Iova(mapped.iova().0 + 0x1234)).unwrap();
//! assert_eq!(found.phys, PhysAddr(0x1_0000_5234));
//!
//! // By default the cheapest is chosen. When this returns the memory is out of the device's reach.
//! domain.unmap(mapped)?;
//! assert_eq!(smmu.0.swap(0, Relaxed), 1);
//!
//! domain.set_strategy(Strategy::ByPage);
//! let mapped = domain.map_sg(&scattered, attributes)?;
//! domain.unmap(mapped)?;
//! assert_eq!(smmu.0.load(Relaxed), 8192);
//! # Ok(())
//! # }
//! ```
//!
//! *Read first*: Arm ARM (DDI 0487), chapter D8, for the tables; SMMUv3 (IHI 0070) for the queues;
//! `README.md` for what this crate is and is not.
//!
//! # How it works
//! - `address` has the numbers everybody speaks of: [`Iova`], [`PhysAddr`], [`Segment`].
//! - `format` knows what a table looks like: [`Config`] to [`Geometry`], [`Attributes`], descriptors.
//! - `pool` is where tables come from, and the only way to their memory: [`Pool`].
//! - `table` maps and unmaps: [`PageTable`], and [`Part`] for those who share one.
//! - `gather` remembers what was unhooked and not yet invalidated: [`Gather`].
//! - `tlbi` is what a TLB can be told ([`Tlbi`]) and who tells it ([`Invalidate`]).
//! - [`explain`] walks any bytes as hardware would and says what it sees.
//! - `strategy` decides which of those a gather becomes: [`Strategy`], and by which [`Costs`].
//! - `iova` hands out addresses: [`IovaAllocator`], [`IovaWindow`].
//! - `deferred` is the flush queue, for invalidation that waits: [`Bounds`].
//! - `domain` holds all of it together: [`Domain`].
//! - `smmu` has the back ends: [`smmu::v3`] from bring-up to events, [`smmu::v2`]'s operations.
//!
//! Arrows: domain → table, iova, deferred, strategy → gather, tlbi; table → pool, gather → format →
//! address; smmu → tlbi.
#![no_std]

#[cfg(test)]
extern crate std;

mod address;
mod deferred;
mod domain;
pub mod explain;
mod format;
mod gather;
mod iova;
mod lock;
mod pool;
pub mod smmu;
mod strategy;
mod sync;
mod table;
#[cfg(test)]
mod testing;
mod tlbi;

pub use address::{Iova, PhysAddr, Segment};
pub use deferred::Bounds;
pub use domain::{
    Deferred, Domain, DomainError, DomainMapError, DomainUnmapError, Held, Mapped, Policy,
    Statistics, Ticket, Unmapped, Walks,
};
pub use format::{
    Access, Attributes, Config, ConfigError, Descriptor, Geometry, Granule, MemoryType,
    Shareability, Stage,
};
pub use gather::{Gather, Run};
pub use iova::{ClaimError, IovaAllocator, IovaWindow};
pub use pool::{Arena, ArenaError, Chain, Link, Pool};
pub use strategy::{Choice, Costs, Facts, Method, Operations, Prediction, Strategy};
pub use table::{MapError, Mapping, PageTable, Part, Ranges, Translation, UnmapError};
pub use tlbi::{Context, FlushError, Invalidate, RangeStep, Tlbi, range_commands, range_steps};
