//! Measures IO page tables against the minimum they could cost.
//!
//! # How it works
//! - [`list`] has the scatter lists and [`pool`] the table memory; all contestants use them.
//! - [`floors`] has the minimum, written by hand: the work without any library.
//! - [`subject`] has the contestants: barewire-iommu, the floors, and the crates aarch64-paging,
//!   page_table_multiarch and page-table-generic.
//! - [`measure`](measure::measure) times them side by side and returns [`row`]s. [`scaling`]
//!   measures two threads. [`bars`] compares the results with the promises.
//! - [`counted`] has the operations whose instructions [`callgrind`] counts, and [`traced`] on Arm.
//!   [`cleaned`] is table memory for a walker that does not snoop.
//! - [`counting`] is a TLB that counts. [`thread_table`] compares the counts with [`published`]
//!   figures of a kernel, using costs that [`fit`] finds.
//!
//! `barewire-iommu bench` prints all this.

pub mod bars;
pub mod callgrind;
pub mod cleaned;
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
pub mod traced;
