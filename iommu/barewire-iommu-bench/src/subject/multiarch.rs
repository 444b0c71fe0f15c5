//! The crate page_table_multiarch on a host, where it does no TLB maintenance.
//!
//! Its descriptor format for Arm compiles only for Arm. So the format here is ours, through the
//! crate's own traits, with attributes computed once. The crate frees no tables before the whole
//! table is dropped, so all its maps but the first find their tables ready.
//!
//! It is used in the fastest way its interface has: single pages by `map` and `unmap`, without the
//! checks of `map_region`. A call has a cursor of its own, which records what its end flushes from
//! the TLB, as each of our calls has a gather. On a host the end flushes nothing, so `black_box`
//! keeps the compiler from leaving the record out.
#![allow(unsafe_code, reason = "a table's memory goes back where it came from")]

use core::hint::black_box;

use barewire_iommu::{Descriptor, PhysAddr, Pool};
use memory_addr::{PAGE_SIZE_4K, VirtAddr};
use page_table_multiarch::{
    GenericPTE, MappingFlags, PageSize, PageTable64, PagingHandler, PagingMetaData,
};

use super::{ATTRIBUTES, BASE, Job, Subject};
use crate::list::PAGE;
use crate::pool::{TABLE, Tables};

/// 48 bits in four levels.
#[derive(Debug)]
struct Shape;

impl PagingMetaData for Shape {
    const LEVELS: usize = 4;
    const PA_MAX_BITS: usize = 48;
    const VA_MAX_BITS: usize = 48;

    type VirtAddr = VirtAddr;

    fn flush_tlb(_: Option<VirtAddr>) {}
}

/// A VMSAv8-64 descriptor.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct Entry(Descriptor);

impl GenericPTE for Entry {
    fn new_page(paddr: memory_addr::PhysAddr, _: MappingFlags, is_huge: bool) -> Self {
        let level = if is_huge { 2 } else { 3 };
        Self(Descriptor::leaf(PhysAddr(paddr.as_usize() as u64), level, ATTRIBUTES.bits()))
    }

    fn new_table(paddr: memory_addr::PhysAddr) -> Self {
        Self(Descriptor::table(PhysAddr(paddr.as_usize() as u64)))
    }

    fn paddr(&self) -> memory_addr::PhysAddr {
        memory_addr::PhysAddr::from_usize(self.0.address().0 as usize)
    }

    fn flags(&self) -> MappingFlags {
        MappingFlags::READ | MappingFlags::WRITE
    }

    fn set_paddr(&mut self, paddr: memory_addr::PhysAddr) {
        self.0.0 = self.0.0 & !self.0.address().0 | paddr.as_usize() as u64;
    }

    fn set_flags(&mut self, _: MappingFlags, _: bool) {}

    fn bits(self) -> usize {
        self.0.0 as usize
    }

    fn is_unused(&self) -> bool {
        self.0.0 == 0
    }

    fn is_present(&self) -> bool {
        self.0.is_valid()
    }

    fn is_huge(&self) -> bool {
        self.0.is_leaf(2)
    }

    fn clear(&mut self) {
        self.0 = Descriptor(0);
    }
}

/// Allocates its tables from our pool.
#[derive(Debug)]
struct Ours;

impl PagingHandler for Ours {
    fn alloc_frames(count: usize, align: usize) -> Option<memory_addr::PhysAddr> {
        if count != 1 || align > PAGE_SIZE_4K {
            return None;
        }
        let table = Tables.alloc(TABLE)?;
        // Once here, so that `phys_to_virt` costs nothing.
        Tables.pointer(table).as_ptr().expose_provenance();
        Some(memory_addr::PhysAddr::from_usize(table.0 as usize))
    }

    fn dealloc_frames(paddr: memory_addr::PhysAddr, count: usize) {
        assert_eq!(count, 1, "as allocated");
        // SAFETY: the crate gives back what it allocated, and does not use it again.
        unsafe { Tables.free(PhysAddr(paddr.as_usize() as u64), TABLE) };
    }

    fn phys_to_virt(paddr: memory_addr::PhysAddr) -> VirtAddr {
        VirtAddr::from_usize(paddr.as_usize())
    }
}

/// page_table_multiarch's table.
pub struct Multiarch {
    table: PageTable64<Shape, Entry, Ours>,
}

impl core::fmt::Debug for Multiarch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Multiarch").finish_non_exhaustive()
    }
}

impl Multiarch {
    /// An empty table of four levels.
    #[expect(clippy::new_without_default, reason = "it takes memory that a default should not")]
    pub fn new() -> Self {
        Self { table: PageTable64::try_new().expect("the pool has tables") }
    }
}

impl Subject for Multiarch {
    fn map(&mut self, job: &Job, slots: usize) {
        let flags = MappingFlags::READ | MappingFlags::WRITE;
        for slot in 0..slots {
            let mut cursor = self.table.cursor();
            let begin = job.iova(slot);
            let mut iova = begin;
            for piece in &job.list {
                let at = VirtAddr::from_usize(iova as usize);
                let phys = piece.phys.0;
                let mapped = if piece.len == PAGE {
                    let phys = memory_addr::PhysAddr::from_usize(phys as usize);
                    cursor.map(at, phys, PageSize::Size4K, flags)
                } else {
                    let of = |iova: VirtAddr| {
                        let phys = phys + (iova.as_usize() as u64 - begin);
                        memory_addr::PhysAddr::from_usize(phys as usize)
                    };
                    cursor.map_region(at, of, piece.len as usize, flags, job.is_blocks())
                };
                mapped.expect("nothing is mapped there");
                iova += piece.len;
            }
            black_box(&mut cursor);
        }
    }

    fn unmap(&mut self, job: &Job, slots: usize) {
        for slot in 0..slots {
            for (iova, bytes) in job.unmaps(slot) {
                let mut cursor = self.table.cursor();
                let (mut at, end) = (iova as usize, (iova + bytes) as usize);
                while at < end {
                    let unmapped = cursor.unmap(VirtAddr::from_usize(at));
                    let (_, _, size) = unmapped.expect("all of it is mapped");
                    at += size as usize;
                }
                black_box(&mut cursor);
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
