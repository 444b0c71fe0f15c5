//! A `Domain` of barewire-iommu: strict, one thread, a TLB that counts.

use barewire_iommu::{Config, Context, Domain, Granule, Iova, IovaWindow, Mapped, Segment};

use super::{ATTRIBUTES, BASE, Job, Subject};
use crate::counting::Counting;
use crate::pool::Tables;

/// The window's words: one bit a page for 1 GiB.
const WORDS: usize = (1 << 30) / 4096 / 64;

type Strict = Domain<Tables, Counting, IovaWindow<Vec<u64>>>;

/// The domain and its mappings, in the order of the slots.
///
/// It chooses the addresses itself: [`Subject::translate`] reads the job's address as the number of a slot.
///
/// `APART` makes each call a function of its own, which can be counted.
#[derive(Debug)]
pub struct WholeDomain<const APART: bool = false> {
    domain: Strict,
    mapped: Vec<Mapped>,
}

impl<const APART: bool> WholeDomain<APART> {
    /// Creates an empty domain, strict and with the default strategy.
    ///
    /// # Panics
    /// If the pool is empty.
    #[expect(clippy::new_without_default, reason = "it takes memory that a default should not")]
    pub fn new() -> Self {
        let window = Iova(BASE)..Iova(BASE + (1 << 30));
        let iovas = IovaWindow::new(window, Granule::Size4K, vec![0; WORDS]);
        let tlb = Counting::new(false);
        let domain = Domain::new(Config::default(), Context::Asid(1), Tables, tlb, iovas);
        Self { domain: domain.expect("the pool has tables"), mapped: Vec::with_capacity(64) }
    }
}

#[inline(never)]
fn bench_iommu_domain_map(domain: &Strict, list: &[Segment]) -> Mapped {
    map(domain, list)
}

#[inline]
fn map(domain: &Strict, list: &[Segment]) -> Mapped {
    domain.map_sg(list, ATTRIBUTES).expect("the window has room and the pool has tables")
}

#[inline(never)]
fn bench_iommu_domain_unmap(domain: &Strict, mapped: Mapped) {
    unmap(domain, mapped);
}

#[inline]
fn unmap(domain: &Strict, mapped: Mapped) {
    domain.unmap(mapped).expect("counting does not fail");
}

impl<const APART: bool> Subject for WholeDomain<APART> {
    fn map(&mut self, job: &Job, slots: usize) {
        for _ in 0..slots {
            let map = if APART { bench_iommu_domain_map } else { map };
            self.mapped.push(map(&self.domain, &job.list));
        }
    }

    fn unmap(&mut self, _job: &Job, slots: usize) {
        for mapped in self.mapped.drain(..slots) {
            let unmap = if APART { bench_iommu_domain_unmap } else { unmap };
            unmap(&self.domain, mapped);
        }
    }

    fn translate(&self, job: &Job, iova: u64) -> Option<u64> {
        let slot = ((iova - BASE) / job.size.bytes) as usize;
        let mapped = self.mapped.get(slot)?;
        let iova = Iova(mapped.iova().0 + (iova - job.iova(slot)));
        self.domain.iova_to_phys(mapped, iova).map(|found| found.phys.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::{Layout, Size};
    use crate::pool::Lease;

    #[test]
    fn nothing_stays_mapped_and_addresses_are_used_again() {
        let _lease = Lease::take();
        let size = Size::from_name("64K").expect("one of the sizes");
        let job = Job::new(size, Layout::Scattered, false);
        let mut subject = WholeDomain::<false>::new();
        for _ in 0..2 {
            subject.map(&job, 2);
            assert_eq!((subject.domain.live_leaves(), subject.mapped[0].iova()), (32, Iova(BASE)));
            subject.unmap(&job, 2);
            assert_eq!(subject.domain.live_leaves(), 0);
        }
    }
}
