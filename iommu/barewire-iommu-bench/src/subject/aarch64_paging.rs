//! The crate aarch64-paging, on a table that no processor uses. It then does no TLB maintenance,
//! which is its fastest case.
//!
//! # How it works
//! It is used in the fastest way its interface has:
//! - One piece is one `map_range`.
//! - A scattered list is one `modify_range`, whose updater writes each page's address. That call
//!   creates a missing table only where it does not cover the table's whole span. So for each span
//!   that the list fills, a `modify_range` of one page comes first.
//! - An unmap is one `map_range` with flags that are not valid, which also frees whole tables.
#![allow(unsafe_code, reason = "the crate's trait is about pointers to tables")]

use core::ptr::NonNull;

use aarch64_paging::Mapping;
use aarch64_paging::descriptor::{El1Attributes, PhysicalAddress, UpdatableDescriptor};
use aarch64_paging::paging::{Constraints, El1And0, MemoryRegion, PageTable, Translation, VaRange};
use barewire_iommu::{PhysAddr, Pool, Segment};

use super::{Job, Subject};
use crate::list::{Layout, PAGE, TABLE_SPAN};
use crate::pool::{TABLE, Tables};

/// Our attributes in the crate's flags.
const FLAGS: El1Attributes = El1Attributes::ATTRIBUTE_INDEX_1
    .union(El1Attributes::INNER_SHAREABLE)
    .union(El1Attributes::USER)
    .union(El1Attributes::ACCESSED)
    .union(El1Attributes::NON_GLOBAL)
    .union(El1Attributes::PXN)
    .union(El1Attributes::UXN)
    .union(El1Attributes::VALID);

/// The flags of a page, as the crate stores them.
const PAGE_FLAGS: El1Attributes = FLAGS.union(El1Attributes::TABLE_OR_PAGE);

/// Allocates its tables from our pool.
#[derive(Debug)]
struct Ours;

impl Translation<El1Attributes> for Ours {
    fn allocate_table(&mut self) -> (NonNull<PageTable<El1Attributes>>, PhysicalAddress) {
        let table = Tables.alloc(TABLE).expect("the pool has tables");
        let pointer = Tables.pointer(table);
        // SAFETY: a whole table, and only ours.
        unsafe { pointer.write_bytes(0, TABLE / 8) };
        (pointer.cast(), PhysicalAddress(table.0 as usize))
    }

    unsafe fn deallocate_table(&mut self, table: NonNull<PageTable<El1Attributes>>) {
        // SAFETY: it came from `allocate_table`, by the trait's contract.
        unsafe { Tables.free(PhysAddr(table.addr().get() as u64), TABLE) };
    }

    fn physical_to_virtual(&self, pa: PhysicalAddress) -> NonNull<PageTable<El1Attributes>> {
        Tables.pointer(PhysAddr(pa.0 as u64)).cast()
    }
}

/// aarch64-paging's table, never active.
#[derive(Debug)]
pub struct Aarch64Paging {
    table: Mapping<Ours, El1And0>,
}

impl Aarch64Paging {
    /// An empty table of four levels.
    #[expect(clippy::new_without_default, reason = "it takes memory that a default should not")]
    pub fn new() -> Self {
        let lower = VaRange::Lower;
        Self { table: Mapping::with_asid_and_va_range(Ours, 1, 0, El1And0, lower) }
    }

    #[inline]
    fn map_range(&mut self, iova: u64, bytes: u64, phys: u64, flags: El1Attributes) {
        let phys = PhysicalAddress(phys as usize);
        let constraints = Constraints::NO_CONTIGUOUS_HINT;
        let mapped = self.table.map_range(&region(iova, bytes), phys, flags, constraints);
        mapped.expect("the range is within the table");
    }

    /// Maps single pages.
    #[inline]
    fn map_pages(&mut self, iova: u64, list: &[Segment]) {
        let write = |page: &MemoryRegion, entry: &mut UpdatableDescriptor<'_, El1Attributes>| {
            let index = (page.start().0 as u64 - iova) / PAGE;
            let phys = list.get(index as usize).ok_or(())?.phys;
            entry.set(PhysicalAddress(phys.0 as usize), PAGE_FLAGS)
        };
        let bytes = list.len() as u64 * PAGE;
        let mut span = iova.next_multiple_of(TABLE_SPAN);
        while span + TABLE_SPAN <= iova + bytes {
            let modified = self.table.modify_range(&region(span, PAGE), &write);
            modified.expect("the range is within the table");
            span += TABLE_SPAN;
        }
        let modified = self.table.modify_range(&region(iova, bytes), &write);
        modified.expect("the range is within the table");
    }
}

fn region(iova: u64, bytes: u64) -> MemoryRegion {
    MemoryRegion::new(iova as usize, (iova + bytes) as usize)
}

impl Subject for Aarch64Paging {
    fn map(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            let iova = job.iova(slot);
            match (job.layout, &job.list[..]) {
                (Layout::Scattered, list @ [_, _, ..]) => self.map_pages(iova, list),
                (_, list) => self.map_range(iova, list[0].len, list[0].phys.0, FLAGS),
            }
        }
    }

    fn unmap(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            for (iova, bytes) in job.unmaps(slot) {
                self.map_range(iova, bytes, 0, El1Attributes::empty());
            }
        }
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn translate(&self, _job: &Job, iova: u64) -> Option<u64> {
        let mut found = None;
        let mut look =
            |_: &MemoryRegion, entry: &aarch64_paging::descriptor::Descriptor<_>, level| {
                let span = 4096_u64 << (9 * (3 - level as u64));
                found = entry.is_valid().then(|| entry.output_address().0 as u64 + iova % span);
                Ok(())
            };
        self.table.walk_range(&region(iova, 1), &mut look).expect("the range is within the table");
        found
    }
}
