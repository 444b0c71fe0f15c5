//! Errata of SMMUv2: the prefetcher of an MMU-500, on a register file written from its manual
//! (Arm CoreLink MMU-500 TRM, ARM DDI 0517).

use std::cell::RefCell;
use std::collections::BTreeMap;

use barewire_iommu::smmu::Registers;
use barewire_iommu::smmu::v2::{Erratum, PrefetchError, disable_prefetch};

/// Three context banks behind 16 pages of 4 KiB of global space.
const IDR1: u32 = 3 << 28 | 3;
const CACHE_LOCK: u32 = 1 << 26;

struct Mmu500 {
    major: u32,
    /// Secure software keeps the lock.
    is_locked: bool,
    sacr: RefCell<u32>,
    actlr: RefCell<BTreeMap<u32, u32>>,
}

impl Mmu500 {
    fn new(major: u32, is_locked: bool) -> Self {
        let actlr = (16..19).map(|page| (page << 12 | 4, 0x3)).collect();
        Self {
            major,
            is_locked,
            sacr: RefCell::new(CACHE_LOCK | 0x100),
            actlr: RefCell::new(actlr),
        }
    }
}

impl Registers for Mmu500 {
    fn read32(&self, offset: u32) -> u32 {
        match offset {
            0x10 => *self.sacr.borrow(),
            0x24 => IDR1,
            0x3c => self.major << 4 | 1,
            other => self.actlr.borrow()[&other],
        }
    }

    fn write32(&self, offset: u32, value: u32) {
        if offset == 0x10 {
            *self.sacr.borrow_mut() = value;
            return;
        }
        // Before r2p0 nothing protects ACTLR.
        let locked = self.major >= 2 && (self.is_locked || *self.sacr.borrow() & CACHE_LOCK != 0);
        let mut actlr = self.actlr.borrow_mut();
        let register = actlr.get_mut(&offset).expect("a context bank's ACTLR");
        if !locked {
            *register = value;
        }
    }
}

#[test]
fn the_prefetcher_is_disabled_in_every_bank() {
    for (major, lock_left) in [(1, CACHE_LOCK), (2, 0)] {
        let registers = Mmu500::new(major, false);
        assert_eq!(disable_prefetch(&registers), Ok(()));
        assert!(registers.actlr.borrow().values().all(|actlr| *actlr == 0x1), "CPRE alone");
        assert_eq!(*registers.sacr.borrow(), 0x100 | lock_left);
    }
}

#[test]
fn a_lock_that_stays_is_an_error() {
    let error = disable_prefetch(&Mmu500::new(2, true)).unwrap_err();
    assert_eq!(error, PrefetchError { bank: 0 });
    assert!(error.to_string().contains("SMMU_SACR.CACHE_LOCK"));
}

#[test]
fn implementations_have_the_errata_of_linux_s_list() {
    let of = Erratum::of;
    assert_eq!(of(&["arm,mmu-500"]), [Erratum::ArmMmu500Prefetch]);
    let marvell = of(&["marvell,ap806-smmu-500", "arm,mmu-500"]);
    assert_eq!(marvell, [Erratum::ArmMmu500Prefetch, Erratum::Marvell582743]);
    assert_eq!(of(&["cavium,smmu-v2"]), [Erratum::Cavium27704]);
    assert_eq!(of(&["arm,smmu-v2"]), []);
    let texts: Vec<_> = Erratum::ALL.iter().map(ToString::to_string).collect();
    for number in ["841119", "27704", "582743"] {
        assert_eq!(texts.iter().filter(|text| text.contains(number)).count(), 1);
    }
}
