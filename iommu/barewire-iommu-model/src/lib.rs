//! A strict IOMMU for tests: hardware as difficult as the architecture allows, with a judge.
//!
//! *Read first*: Arm ARM DDI 0487, D8, for tables, walks and TLB maintenance; IHI 0070, 4.4, for
//! the commands.
//!
//! # How it works
//! - [`Machine`] is memory, walker and TLB in one. Tables are built in it (it is a
//!   [`Pool`](barewire_iommu::Pool)) and invalidated by it (it is an
//!   [`Invalidate`](barewire_iommu::Invalidate)). After every single store it walks everything that
//!   the store made reachable and caches everything it finds, like the most aggressive prefetcher
//!   possible.
//! - `memory` is the physical memory for tables and checks every access. `tlb` holds all that
//!   hardware may cache. `walker`, `descriptor` and `shape` were written from the manual a second
//!   time: none of the library's own format code is used here, because both would then share one
//!   misreading.
//! - [`Naive`] is the reference: what should be mapped. Before an operation [`Machine::begin`]
//!   tells the judge its intended result, after it [`Machine::end`] tells the actual one.
//!   [`Machine::settle`] tells that everything is invalidated.
//! - [`Violation`] is a report of the judge. Every one it knows is provoked once in
//!   `tests/it/judge_can_fail.rs`.
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
//! // To attach a table that was never filled is to walk the garbage in fresh memory.
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
