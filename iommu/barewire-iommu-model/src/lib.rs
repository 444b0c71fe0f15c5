//! A strict IOMMU: hardware as bad as the architecture allows, and a judge beside it.
//!
//! *Read first*: Arm ARM DDI 0487, D8, for tables, walks and TLB maintenance; IHI 0070, 4.4, for the
//! commands.
//!
//! # How it works
//! - [`Machine`] is memory, walker and TLB in one: tables are built in it (it is a
//!   [`Pool`](barewire_iommu::Pool)) and invalidated by it (it is an
//!   [`Invalidate`](barewire_iommu::Invalidate)). After every single store it walks all that the
//!   store made reachable and keeps all that it finds: the hungriest prefetcher there can be.
//! - `memory` is physical memory for tables, watched; `tlb` is what hardware may keep; `walker`,
//!   `descriptor` and `shape` are the manual, read once more: nothing of the library's own format
//!   code is used here, lest both share one misreading.
//! - [`Naive`] is what should be mapped. [`Machine::begin`] tells the judge what an operation is
//!   going to do, [`Machine::end`] what it did, [`Machine::settle`] that everything is invalidated.
//! - [`Violation`] is what it reports.
//!
//! # Not supported
//! Two stages at once, the Contiguous bit, hardware update of access and dirty state.
//!
//! ```
//! use barewire_iommu::{Context, Config, Invalidate, PhysAddr, Pool, Tlbi};
//! use barewire_iommu_model::{Machine, Naive, Options, Shape, Violation};
//!
//! let machine = Machine::new(Options::default());
//! let root = machine.alloc(4096).expect("there is memory");
//! let context = Context::Asid(1);
//! // Whoever attaches a table that was never filled learns what stands in fresh memory.
//! machine.attach(context, root, Shape::new(&Config::default()), 0);
//! assert!(matches!(machine.take_violations()[0], Violation::Malformed { .. } | Violation::NoTable { .. }));
//! ```

mod descriptor;
mod machine;
mod memory;
mod naive;
mod shape;
mod tlb;
mod violation;
mod walker;

pub use descriptor::{Entry, Flaw, Leaf, Meaning, decode};
pub use machine::{Counts, Fetching, FlushFailure, Machine, Options};
pub use memory::Shortage;
pub use naive::{Naive, Piece};
pub use shape::Shape;
pub use violation::Violation;
pub use walker::{Fault, Root, leaves, walk};
