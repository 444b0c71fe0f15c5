//! What IO page tables cost, beside the least that they could.
//!
//! # How it works
//! - [`list`] has the scatter lists, the same for everybody, and [`pool`] the table memory, the same too.
//! - [`floors`] is written by hand: what the work itself costs, without any library.
//! - [`subject`] has those who are measured: barewire-iommu, the floors, and the crates aarch64-paging
//!   and page_table_multiarch.
//! - [`measure`](measure::measure) times them side by side and gives [`row`]s, [`scaling`] is for two
//!   threads, [`counted`] for [`callgrind`]; [`bars`] holds the results against what is promised.
//! - [`counting`] is a TLB that counts; [`thread_table`] sets the counts beside what was [`published`]
//!   of a kernel, through costs that [`fit`] finds.
//!
//! `barewire iommu bench` prints all this.

pub mod bars;
pub mod callgrind;
pub mod counted;
pub mod counting;
pub mod fit;
pub mod floors;
pub mod list;
pub mod measure;
pub mod pool;
pub mod published;
pub mod row;
pub mod scaling;
pub mod stats;
pub mod subject;
pub mod thread_table;
