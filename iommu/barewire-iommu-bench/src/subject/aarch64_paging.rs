//! The crate aarch64-paging, on a table that no processor uses. It then does no TLB maintenance,
//! which is its fastest case.
//!
//! A scattered list takes one call per page: the crate has no other way.
#![allow(unsafe_code, reason = "the crate's trait is about pointers to tables")]

use core::ptr::NonNull;

use aarch64_paging::descriptor::{El1Attributes, PhysicalAddress};
use aarch64_paging::paging::{
    Constraints, El1And0, MemoryRegion, PageTable, RootTable, Translation, VaRange,
};
use barewire_iommu::{PhysAddr, Pool};

use super::{Job, Subject};
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

/// aarch64-paging's root table.
#[derive(Debug)]
pub struct Aarch64Paging {
    root: RootTable<El1And0, Ours>,
}

impl Aarch64Paging {
    /// An empty table of four levels.
    #[expect(clippy::new_without_default, reason = "it takes memory that a default should not")]
    pub fn new() -> Self {
        Self { root: RootTable::with_va_range(Ours, 0, El1And0, VaRange::Lower) }
    }

    fn map_range(&mut self, iova: u64, bytes: u64, phys: u64, flags: El1Attributes) {
        let region = MemoryRegion::new(iova as usize, (iova + bytes) as usize);
        let phys = PhysicalAddress(phys as usize);
        let mapped = self.root.map_range(&region, phys, flags, Constraints::NO_CONTIGUOUS_HINT);
        mapped.expect("the range is within the table");
    }
}

impl Subject for Aarch64Paging {
    fn map(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            let mut iova = job.iova(slot);
            for piece in &job.list {
                self.map_range(iova, piece.len, piece.phys.0, FLAGS);
                iova += piece.len;
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
        let page = MemoryRegion::new(iova as usize, iova as usize + 1);
        let mut found = None;
        let mut look =
            |_: &MemoryRegion, entry: &aarch64_paging::descriptor::Descriptor<_>, level| {
                let span = 4096_u64 << (9 * (3 - level as u64));
                found = entry.is_valid().then(|| entry.output_address().0 as u64 + iova % span);
                Ok(())
            };
        self.root.walk_range(&page, &mut look).expect("the range is within the table");
        found
    }
}
