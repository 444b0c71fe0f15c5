//! SMMUv2's TLBSYNC on several CPUs: registers that take one wait at a time.

use std::ptr::NonNull;
use std::sync::Mutex;
use std::thread;

use barewire_iommu::smmu::v2::{ContextBank, GlobalSync};
use barewire_iommu::smmu::{Patience, Polls, Registers};
use barewire_iommu::{Context, FlushError, Invalidate, Iova, PhysAddr, Pool, Tlbi};

/// Waits as long as it takes, and lets other threads run.
struct Yields;

impl Patience for Yields {
    fn more(&self, _started: u64, _looks: u32) -> bool {
        thread::yield_now();
        true
    }
}

/// A wait that TLBSYNC began.
#[derive(Clone, Copy, Default)]
struct Wait {
    /// Looks at its status until it is over.
    left: u32,
    /// Waits begun.
    begun: u32,
    /// Waits begun before the last one was over.
    overlaps: u32,
}

/// The registers: one wait in the global space, and one in each bank.
struct File {
    busy: u32,
    waits: Mutex<[Wait; 3]>,
}

/// The wait of a status or sync register.
fn wait_of(offset: u32) -> usize {
    match offset {
        0x70 | 0x74 => 0,
        0x4_07f0 | 0x4_07f4 => 1,
        0x4_17f0 | 0x4_17f4 => 2,
        other => panic!("{other:#x}"),
    }
}

impl Registers for File {
    fn read32(&self, offset: u32) -> u32 {
        if offset == 0x24 {
            // 4 KiB pages, 64 of them in the global space.
            return 5 << 28;
        }
        let wait = &mut self.waits.lock().unwrap()[wait_of(offset)];
        wait.left = wait.left.saturating_sub(1);
        u32::from(wait.left != 0)
    }

    fn write32(&self, offset: u32, _value: u32) {
        if matches!(offset & 0xfff, 0x64 | 0x610) {
            return;
        }
        let wait = &mut self.waits.lock().unwrap()[wait_of(offset)];
        wait.begun += 1;
        // A sync in progress does not start over: it does not wait for operations issued after it
        // began.
        if wait.left != 0 {
            wait.overlaps += 1;
        } else {
            wait.left = self.busy + 1;
        }
    }

    fn write64(&self, _offset: u32, _value: u64) {}
}

/// No memory.
struct NoMemory;

#[allow(unsafe_code, reason = "a pool is an unsafe trait")]
// SAFETY: it hands out nothing.
unsafe impl Pool for NoMemory {
    fn alloc(&self, _bytes: usize) -> Option<PhysAddr> {
        None
    }

    unsafe fn free(&self, _table: PhysAddr, _bytes: usize) {}

    fn pointer(&self, _table: PhysAddr) -> NonNull<u64> {
        unreachable!("nothing was handed out")
    }
}

fn page() -> Tlbi {
    Tlbi::Pages { iova: Iova(0), stride: 12, count: 1, leaf: true, level: None }
}

const ROUNDS: u32 = if cfg!(miri) { 5 } else { 100 };

/// Two CPUs in one context bank.
#[test]
fn flaw_7_the_waits_of_a_bank_do_not_overlap() {
    let file = File { busy: 30, waits: Mutex::default() };
    let global = GlobalSync::new();
    let bank = ContextBank::new(&file, 0, &NoMemory, &global, Yields);
    thread::scope(|scope| {
        for cpu in 0..2 {
            let bank = &bank;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    assert_eq!(bank.flush(Context::Asid(cpu), &[page()]), Ok(()));
                }
            });
        }
    });
    let wait = file.waits.lock().unwrap()[1];
    assert_eq!((wait.begun, wait.overlaps), (2 * ROUNDS, 0));
}

/// Two banks of one SMMU, whose operations by VMID have one wait in the global space.
#[test]
fn flaw_7_the_waits_of_the_global_space_do_not_overlap() {
    let file = File { busy: 30, waits: Mutex::default() };
    let global = GlobalSync::new();
    thread::scope(|scope| {
        for index in 0..2 {
            let (file, global) = (&file, &global);
            scope.spawn(move || {
                let bank = ContextBank::new(file, index, &NoMemory, global, Yields);
                for _ in 0..ROUNDS {
                    assert_eq!(bank.flush(Context::Vmid(1), &[Tlbi::Context]), Ok(()));
                }
            });
        }
    });
    let wait = file.waits.lock().unwrap()[0];
    assert_eq!((wait.begun, wait.overlaps), (2 * ROUNDS, 0));
}

/// After a caller gives up a wait, the sync is still under way. The next wait begins only when that
/// sync is over.
#[test]
fn flaw_7_a_wait_that_was_given_up_is_waited_for() {
    let file = File { busy: 10, waits: Mutex::default() };
    let global = GlobalSync::new();
    let bank = ContextBank::new(&file, 0, &NoMemory, &global, Polls(4));
    for _ in 0..2 {
        assert_eq!(bank.flush(Context::Asid(1), &[page()]), Err(FlushError::Timeout));
    }
    assert_eq!(file.waits.lock().unwrap()[1].overlaps, 0);
    let results = [(); 6].map(|()| bank.flush(Context::Asid(1), &[page()]));
    assert!(results.iter().all(Result::is_err), "each call needs more polls than it may take");
    assert_eq!(file.waits.lock().unwrap()[1].overlaps, 0);
}
