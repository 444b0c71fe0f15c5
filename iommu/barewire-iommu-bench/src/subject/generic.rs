//! The crate page-table-generic on a host, where it does no TLB maintenance.
//!
//! Its interface has no descriptor format: the one here is ours, through the crate's own traits, with
//! attributes computed once. It frees a table as soon as it is empty, at once; no invalidation comes between.
//! So its maps allocate tables, as ours do where whole tables come and go.
//!
//! It is used in the fastest way its interface has: `map` and `unmap` of a whole piece, with blocks where
//! they are asked for. Its flushes are empty on a host, and so compiled away.
#![allow(unsafe_code, reason = "a table's memory goes back where it came from")]

use barewire_iommu::{Descriptor, PhysAddr, Pool};
use page_table_generic::{
    FrameAllocator, MapConfig, PageTable, PageTableEntry, PhysAddr as Physical, TableMeta, VirtAddr,
};

use super::{ATTRIBUTES, BASE, Job, Subject};
use crate::pool::{TABLE, Tables};

/// 48 bits in four levels, blocks of 2 MiB.
#[derive(Clone, Copy, Debug)]
struct Shape;

impl TableMeta for Shape {
    type P = Entry;

    const PAGE_SIZE: usize = 4096;
    const LEVEL_BITS: &[usize] = &[9, 9, 9, 9];
    const MAX_BLOCK_LEVEL: usize = 2;

    fn flush(_: Option<VirtAddr>) {}
}

/// A VMSAv8-64 descriptor.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct Entry(Descriptor);

impl PageTableEntry for Entry {
    type PteConfig = ();

    fn new_page(paddr: Physical, (): (), is_huge: bool) -> Self {
        let level = if is_huge { 2 } else { 3 };
        Self(Descriptor::leaf(PhysAddr(paddr.as_usize() as u64), level, ATTRIBUTES.bits()))
    }

    fn new_table(paddr: Physical) -> Self {
        Self(Descriptor::table(PhysAddr(paddr.as_usize() as u64)))
    }

    fn paddr(&self, _: bool) -> Physical {
        Physical::from_usize(self.0.address().0 as usize)
    }

    fn config(&self, _: bool) {}

    fn present(&self) -> bool {
        self.0.is_valid()
    }

    fn huge(&self, is_dir: bool) -> bool {
        is_dir && self.0.is_leaf(2)
    }

    fn unused(&self) -> bool {
        self.0.0 == 0
    }

    fn clear(&mut self) {
        self.0 = Descriptor(0);
    }
}

/// Allocates its tables from our pool.
#[derive(Clone, Copy, Debug)]
struct Ours;

impl FrameAllocator for Ours {
    fn alloc_frame(&self) -> Option<Physical> {
        let table = Tables.alloc(TABLE)?;
        // Once here, so that `phys_to_virt` costs nothing.
        Tables.pointer(table).as_ptr().expose_provenance();
        Some(Physical::from_usize(table.0 as usize))
    }

    fn dealloc_frame(&self, frame: Physical) {
        // SAFETY: the crate gives back what it allocated, and does not use it again.
        unsafe { Tables.free(PhysAddr(frame.as_usize() as u64), TABLE) };
    }

    fn phys_to_virt(&self, paddr: Physical) -> *mut u8 {
        core::ptr::with_exposed_provenance_mut(paddr.as_usize())
    }
}

/// page-table-generic's table.
pub struct Generic {
    table: PageTable<Shape, Ours>,
}

impl core::fmt::Debug for Generic {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Generic").finish_non_exhaustive()
    }
}

impl Generic {
    /// An empty table of four levels.
    #[expect(clippy::new_without_default, reason = "it takes memory that a default should not")]
    pub fn new() -> Self {
        Self { table: PageTable::new(Ours).expect("the pool has tables") }
    }
}

impl Subject for Generic {
    fn map(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            let mut iova = job.iova(slot);
            for piece in &job.list {
                let mapped = self.table.map(&MapConfig {
                    vaddr: VirtAddr::from_usize(iova as usize),
                    paddr: Physical::from_usize(piece.phys.0 as usize),
                    size: piece.len as usize,
                    pte: (),
                    allow_huge: job.is_blocks(),
                    flush: true,
                });
                mapped.expect("nothing is mapped there");
                iova += piece.len;
            }
        }
    }

    fn unmap(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            for (iova, bytes) in job.unmaps(slot) {
                let unmapped =
                    self.table.unmap(VirtAddr::from_usize(iova as usize), bytes as usize);
                unmapped.expect("all of it is mapped");
            }
        }
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn translate(&self, _job: &Job, iova: u64) -> Option<u64> {
        debug_assert!(iova >= BASE);
        let found = self.table.query(VirtAddr::from_usize(iova as usize));
        found.ok().map(|(phys, ..)| phys.as_usize() as u64)
    }
}
