//! The library's own allocator, for calls that POSIX lets a signal handler make.
//!
//! # Why
//! `ioctl`, `open` or `read` may be called by a handler that interrupted the program's `malloc`. Calling
//! `malloc` from there would wait for a lock that the interrupted code holds.
//!
//! # How it works
//! Two pools of 64 pieces, each claimed by a bit of an atomic word, so there is no lock to wait for. An
//! allocation that is larger than a piece, or finds its pool full, gets pages from the kernel.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The alignment of every piece.
const ALIGN: usize = 64;
/// Bytes of a path, or of an ioctl's argument.
const SMALL: usize = 512;
/// Bytes of a message of the default `bufsiz`, both ways.
const LARGE: usize = 16384;
/// Every machine's page size is a multiple of this. Allocations from the kernel are whole pages.
const PAGE_ALIGN: usize = 4096;

#[repr(C, align(64))]
struct Pool<const BYTES: usize> {
    memory: UnsafeCell<[[u8; BYTES]; 64]>,
    /// A bit for each piece: it is in use.
    used: AtomicU64,
}

// SAFETY: a piece belongs to the one that set its bit, until that one clears it.
unsafe impl<const BYTES: usize> Sync for Pool<BYTES> {}

impl<const BYTES: usize> Pool<BYTES> {
    const fn new() -> Self {
        const { assert!(BYTES.is_multiple_of(ALIGN)) };
        Self { memory: UnsafeCell::new([[0; BYTES]; 64]), used: AtomicU64::new(0) }
    }

    fn claim(&self) -> Option<*mut u8> {
        let mut used = self.used.load(Ordering::Relaxed);
        while used != u64::MAX {
            let piece = (!used).trailing_zeros();
            let claimed = used | 1 << piece;
            match self.used.compare_exchange(used, claimed, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    let begin = self.memory.get().cast::<u8>();
                    return Some(begin.wrapping_add(piece as usize * BYTES));
                }
                Err(other) => used = other,
            }
        }
        None
    }

    /// Gives a piece back; false if the memory is another allocator's.
    fn give_back(&self, memory: *mut u8) -> bool {
        let Some(offset) = memory.addr().checked_sub(self.memory.get().addr()) else {
            return false;
        };
        let piece = offset / BYTES;
        if piece >= 64 {
            return false;
        }
        self.used.fetch_and(!(1 << piece), Ordering::Release);
        true
    }
}

struct Pools {
    small: Pool<SMALL>,
    large: Pool<LARGE>,
}

#[global_allocator]
static POOLS: Pools = Pools { small: Pool::new(), large: Pool::new() };

// SAFETY: pieces are apart, live until they are given back, and are as large and aligned as asked.
unsafe impl GlobalAlloc for Pools {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > PAGE_ALIGN {
            return ptr::null_mut();
        }
        let in_pools = layout.align() <= ALIGN;
        let small = (in_pools && layout.size() <= SMALL).then(|| self.small.claim());
        let large = || (in_pools && layout.size() <= LARGE).then(|| self.large.claim());
        if let Some(piece) = small.flatten().or_else(|| large().flatten()) {
            return piece;
        }
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: new pages, at an address of the kernel's choice.
        unsafe { mmap_anonymous(ptr::null_mut(), layout.size(), protection, flags) }
            .map_or(ptr::null_mut(), <*mut _>::cast)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if !self.small.give_back(memory) && !self.large.give_back(memory) {
            // SAFETY: pages that `alloc` got, whose last user calls this.
            let _ = unsafe { munmap(memory.cast(), layout.size()) };
        }
    }
}
