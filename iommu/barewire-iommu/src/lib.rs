//! IO page tables at memory speed: map, unmap, and the cheapest TLB invalidation that is enough.
//!
//! A [`Domain`] is one handle to all of it. This example maps 32 MiB of scattered pages. Unmapping
//! them costs one invalidation command, or 8,192 commands if each page is invalidated by its
//! address.
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
//! // SAFETY: the memory is as large as `links` says, and nothing else uses it.
//! let pool = unsafe { Arena::new(start, PhysAddr(0x8000_0000), 4096, &links)? };
//!
//! // Addresses for devices: up to 4 GiB, one bit per page.
//! let mut bits = vec![0; 1 << 14];
//! let iovas = IovaWindow::new(Iova(0x1000)..Iova(1 << 32), Granule::Size4K, &mut bits[..]);
//! let smmu = Counter(AtomicU64::new(0));
//! let domain = Domain::new(Config::default(), Context::Asid(1), &pool, &smmu, iovas)?;
//! // A device is attached by writing `domain.root()` and the ASID to its SMMU.
//!
//! let page = |i: u64| Segment { phys: PhysAddr(0x1_0000_0000 + i * 0x5000), len: 0x1000 };
//! let scattered: Vec<Segment> = (0..8192).map(page).collect();
//! let attributes = Attributes::new(Stage::One, Access::ReadWrite);
//!
//! let mapped = domain.map_sg(&scattered, attributes)?;
//! let found = domain.iova_to_phys(&mapped, Iova(mapped.iova().0 + 0x1234)).unwrap();
//! assert_eq!(found.phys, PhysAddr(0x1_0000_5234));
//!
//! // The default strategy takes the cheapest invalidation. After `unmap` the device has no access.
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
//! - `address`: the addresses and lengths all modules share: [`Iova`], [`PhysAddr`], [`Segment`].
//! - `format`: the layout of a table: [`Config`], [`Geometry`], [`Attributes`], descriptors.
//! - `pool`: allocates tables and is the only way to their memory: [`Pool`].
//! - `table`: maps and unmaps: [`PageTable`], and [`Part`] where several threads share one table.
//! - `gather`: collects the ranges that were unmapped and not yet invalidated: [`Gather`].
//! - `tlbi`: the invalidation commands ([`Tlbi`]) and the trait that issues them ([`Invalidate`]).
//! - [`explain`]: walks table bytes as hardware would and reports what it finds.
//! - `strategy`: chooses the commands for a gather: [`Strategy`], by its [`Costs`].
//! - `iova`: allocates IO virtual addresses: [`IovaAllocator`], [`IovaWindow`].
//! - `deferred`: the flush queue, for invalidations that are batched: [`Bounds`].
//! - `domain`: joins all of these: [`Domain`].
//! - `smmu`: the back ends: [`smmu::v3`] from bring-up to events, and [`smmu::v2`]'s invalidations.
//!
//! Dependencies: domain → table, iova, deferred, strategy → gather, tlbi; table → pool, gather →
//! format → address; smmu → tlbi.
#![no_std]

/// The example of the folder's README runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(any(test, feature = "alloc"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod address;
mod deferred;
mod domain;
pub mod explain;
mod few;
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
pub use iova::{ClaimError, IovaAllocator, IovaStorage, IovaWindow};
pub use pool::{Arena, ArenaError, Chain, Link, Pool};
pub use strategy::{Choice, Costs, Facts, Method, Operations, PAGES_MAX, Prediction, Strategy};
pub use table::{MapError, Mapping, PageTable, Part, Ranges, Translation, UnmapError};
pub use tlbi::{Context, FlushError, Invalidate, RangeStep, Tlbi, range_commands, range_steps};
