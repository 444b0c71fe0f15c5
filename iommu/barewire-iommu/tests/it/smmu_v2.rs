//! SMMUv2's operations on a register file that is written from IHI 0062: what is written, in which
//! order, and that SACTIVE is waited for.

use std::cell::RefCell;
use std::ptr::NonNull;

use barewire_iommu::smmu::v2::{ContextBank, GlobalSync};
use barewire_iommu::smmu::{Polls, Registers};
use barewire_iommu::{Context, FlushError, Invalidate, Iova, PhysAddr, Pool, Tlbi};

/// The recorded events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Barrier,
    Write(u32, u64),
    /// A wait was found over.
    Synced(u32),
}

/// The registers, and the barrier of the pool beside them.
#[derive(Default)]
struct File {
    idr1: u32,
    /// Looks at a status until it is no longer active.
    busy: u32,
    left: RefCell<u32>,
    done: RefCell<Vec<Event>>,
}

impl File {
    fn take(&self) -> Vec<Event> {
        self.done.take()
    }
}

impl Registers for File {
    fn read32(&self, offset: u32) -> u32 {
        if offset == 0x24 {
            return self.idr1;
        }
        assert!(matches!(offset & 0xfff, 0x7f4 | 0x74), "read of {offset:#x}");
        let mut left = self.left.borrow_mut();
        if *left > 0 {
            *left -= 1;
            // The other bits say nothing.
            return 0xffff_ffff;
        }
        self.done.borrow_mut().push(Event::Synced(offset));
        0xffff_fffe
    }

    fn write32(&self, offset: u32, value: u32) {
        let is_sync = matches!(offset & 0xfff, 0x7f0 | 0x70);
        *self.left.borrow_mut() = self.busy;
        // Any value begins a wait.
        let value = if is_sync { 0 } else { value.into() };
        self.done.borrow_mut().push(Event::Write(offset, value));
    }

    fn write64(&self, offset: u32, value: u64) {
        self.done.borrow_mut().push(Event::Write(offset, value));
    }
}

/// No memory, but a barrier.
struct Barrier<'f>(&'f File);

#[allow(unsafe_code, reason = "a pool is an unsafe trait")]
// SAFETY: it hands out nothing.
unsafe impl Pool for Barrier<'_> {
    fn alloc(&self, _bytes: usize) -> Option<PhysAddr> {
        None
    }

    unsafe fn free(&self, _table: PhysAddr, _bytes: usize) {}

    fn pointer(&self, _table: PhysAddr) -> NonNull<u64> {
        unreachable!("nothing was handed out")
    }

    fn barrier(&self) {
        self.0.done.borrow_mut().push(Event::Barrier);
    }
}

/// 4 KiB pages, 64 of them for the global space: context banks begin at 0x40000.
const IDR1_4K: u32 = 5 << 28;

fn check(context: Context, operations: &[Tlbi], expected: &[Event]) {
    let file = File { idr1: IDR1_4K, busy: 3, ..File::default() };
    let pool = Barrier(&file);
    let global = GlobalSync::new();
    let bank = ContextBank::new(&file, 2, &pool, &global, Polls(4));
    assert_eq!(bank.flush(context, operations), Ok(()));
    assert!(!bank.has_ranges());
    let done = file.take();
    assert_eq!(done, expected);
    let operation = |done: &&Event| match done {
        Event::Write(offset, _) => !matches!(offset & 0xfff, 0x7f0 | 0x70),
        _ => false,
    };
    let count = done.iter().filter(operation).count() as u64;
    assert_eq!(bank.commands(operations), count);
}

#[test]
fn stage_1() {
    let asid = Context::Asid(0xbeef);
    let (sync, synced) = (Event::Write(0x4_27f0, 0), Event::Synced(0x4_27f4));
    check(asid, &[Tlbi::Context], &[Event::Barrier, Event::Write(0x4_2610, 0xbeef), sync, synced]);
    let pages = |leaf| Tlbi::Pages {
        iova: Iova(0xffff_ffff_f000),
        stride: 12,
        count: 1,
        leaf,
        level: Some(3),
    };
    let va = 0xbeef_000f_ffff_ffff;
    check(asid, &[pages(false)], &[Event::Barrier, Event::Write(0x4_2600, va), sync, synced]);
    check(asid, &[pages(true)], &[Event::Barrier, Event::Write(0x4_2620, va), sync, synced]);
    // The pages are 64 KiB apart, but addresses are written in units of 4 KiB. One wait covers all
    // of them.
    let range =
        Tlbi::Range { iova: Iova(0x1_0000), page_shift: 16, pages: 3, leaf: true, level: None };
    let tag = 0xbeef << 48;
    check(
        asid,
        &[range, pages(false)],
        &[
            Event::Barrier,
            Event::Write(0x4_2620, tag | 0x10),
            Event::Write(0x4_2620, tag | 0x20),
            Event::Write(0x4_2620, tag | 0x30),
            Event::Write(0x4_2600, va),
            sync,
            synced,
        ],
    );
}

#[test]
fn stage_2() {
    let vmid = Context::Vmid(0xfe);
    let pages =
        |leaf| Tlbi::Pages { iova: Iova(0x8000_0000), stride: 21, count: 2, leaf, level: Some(2) };
    let (sync, synced) = (Event::Write(0x4_27f0, 0), Event::Synced(0x4_27f4));
    let both = |register| {
        [
            Event::Barrier,
            Event::Write(register, 0x8_0000),
            Event::Write(register, 0x8_0200),
            sync,
            synced,
        ]
    };
    check(vmid, &[pages(false)], &both(0x4_2630));
    check(vmid, &[pages(true)], &both(0x4_2638));
    // By VMID: the global space, and its own wait.
    let global =
        [Event::Barrier, Event::Write(0x64, 0xfe), Event::Write(0x70, 0), Event::Synced(0x74)];
    check(vmid, &[Tlbi::Context], &global);
    check(
        vmid,
        &[pages(true), Tlbi::Context],
        &[
            Event::Barrier,
            Event::Write(0x4_2638, 0x8_0000),
            Event::Write(0x4_2638, 0x8_0200),
            Event::Write(0x64, 0xfe),
            sync,
            synced,
            Event::Write(0x70, 0),
            Event::Synced(0x74),
        ],
    );
}

#[test]
fn the_thread_s_buffer_by_page_and_by_asid() {
    let file = File { idr1: IDR1_4K, ..File::default() };
    let pool = Barrier(&file);
    let global = GlobalSync::new();
    let bank = ContextBank::new(&file, 0, &pool, &global, Polls(1));
    let pages = Tlbi::Pages { iova: Iova(0), stride: 12, count: 8192, leaf: false, level: None };
    for (operation, count) in [(pages, 8192), (Tlbi::Context, 1)] {
        bank.flush(Context::Asid(1), &[operation]).unwrap();
        assert_eq!(bank.commands(&[operation]), count);
        // The barrier, the operations, TLBSYNC and its end.
        assert_eq!(file.take().len() as u64, count + 3);
    }
}

#[test]
fn a_wait_that_does_not_end() {
    for (context, operation) in
        [(Context::Asid(1), Tlbi::Context), (Context::Vmid(1), Tlbi::Context)]
    {
        let file = File { idr1: IDR1_4K, busy: 4, ..File::default() };
        let pool = Barrier(&file);
        let global = GlobalSync::new();
        let patient = ContextBank::new(&file, 0, &pool, &global, Polls(5));
        assert_eq!(patient.flush(context, &[operation]), Ok(()));
        let impatient = ContextBank::new(&file, 0, &pool, &global, Polls(4));
        assert_eq!(impatient.flush(context, &[operation]), Err(FlushError::Timeout));
    }
}

/// Where a context bank's page is.
#[test]
fn pages_of_either_size() {
    // PAGESIZE, NUMPAGENDXB; bank 3's TLBIASID.
    for (idr1, at) in
        [(0, (2 + 3) << 12), (7 << 28, (256 + 3) << 12), (1 << 31 | 2 << 28, (8 + 3) << 16)]
    {
        let file = File { idr1, ..File::default() };
        let pool = Barrier(&file);
        let global = GlobalSync::new();
        let bank = ContextBank::new(&file, 3, &pool, &global, Polls(1));
        bank.flush(Context::Asid(5), &[Tlbi::Context]).unwrap();
        assert_eq!(file.take()[1], Event::Write(at + 0x610, 5));
    }
}

/// A register file of 32 bits sets an operation off by its lower half.
#[test]
fn halves_end_with_the_lower() {
    struct Halves(RefCell<Vec<(u32, u32)>>);
    impl Registers for Halves {
        fn read32(&self, offset: u32) -> u32 {
            offset
        }
        fn write32(&self, offset: u32, value: u32) {
            self.0.borrow_mut().push((offset, value));
        }
    }
    let halves = Halves(RefCell::default());
    halves.write64(0x600, 0x1234_5678_9abc_def0);
    assert_eq!(halves.0.take(), [(0x604, 0x1234_5678), (0x600, 0x9abc_def0)]);
    assert_eq!(halves.read64(0x600), 0x604_0000_0600);
}
