//! Which process this is: a number that differs in each child with memory of its own, and whether the memory is
//! borrowed. In such a child, values cached for the process or the thread are wrong.
//!
//! # How it works
//! One page holds the number. The kernel clears it in every child that gets a copy of the memory (madvise(2),
//! `MADV_WIPEONFORK`, Linux 4.14), however the child was made: fork, `_Fork`, clone or the bare system call. A child finds
//! 0 there and takes the next number. An older kernel does not clear it; there `pthread_atfork` counts, which
//! notices children of fork alone.
//!
//! Siblings may have the same number: they share no memory in which it could be compared.
//!
//! A child that shares the memory (vfork, `CLONE_VM`) reads what its parent reads, also in thread-local storage. Only
//! the kernel tells them apart: the page holds the process's id beside the number, and [`is_memory_borrowed`] asks for the
//! caller's. It need not ask if the same thread was seen a moment ago, on the same part of its stack: no process can be
//! made in that time ([`clock`]), and a child that was made before runs elsewhere on the stack.
//!
//! # Not supported
//! A child with borrowed memory whose call is the first of its process: it is taken for the process.
//!
//! # Safety
//! The page is mapped once and never unmapped. The handler that runs in the child writes atomics and asks for the process's
//! id, which is allowed there, whatever the parent's other threads were doing.
#![allow(
    unsafe_code,
    reason = "a page that the kernel clears, pthread_atfork, and the processor's clock"
)]

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::process::getpid;

/// The record of a process; zeros until the first call asks for it.
struct KnownProcess {
    number: AtomicU32,
    /// The kernel's id.
    id: AtomicU32,
}

/// Its place; null until it is asked for.
static KNOWN: AtomicPtr<KnownProcess> = AtomicPtr::new(ptr::null_mut());
/// The last number that was given in this process or in those it comes from.
static GIVEN: AtomicU32 = AtomicU32::new(0);
/// The place where the kernel clears no page.
static COUNTED: KnownProcess = KnownProcess { number: AtomicU32::new(1), id: AtomicU32::new(0) };

/// The calling process's id.
fn id() -> u32 {
    getpid().as_raw_nonzero().get() as u32
}

extern "C" fn in_the_child() {
    COUNTED.number.fetch_add(1, Ordering::Relaxed);
    COUNTED.id.store(id(), Ordering::Relaxed);
}

/// The process's number, above 0. Two loads. May be called from a signal handler, after the first time.
#[inline]
pub fn process_number() -> u32 {
    // Relaxed: nothing but the word itself is read by the address.
    // SAFETY: null, or a place that stays (module, Safety).
    let known = unsafe { KNOWN.load(Ordering::Relaxed).as_ref() };
    match known.map(|known| known.number.load(Ordering::Relaxed)) {
        Some(number) if number > 0 => number,
        _ => ask(),
    }
}

/// The first call in this process.
#[cold]
fn ask() -> u32 {
    let known = known();
    let next = GIVEN.fetch_add(1, Ordering::Relaxed) + 1;
    known.id.store(id(), Ordering::Relaxed);
    match known.number.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => next,
        // Another thread's.
        Err(number) => number,
    }
}

/// The process's record, which is allocated if there is none yet.
fn known() -> &'static KnownProcess {
    let mut place = KNOWN.load(Ordering::Acquire);
    if place.is_null() {
        let new = cleared_page().unwrap_or_else(counted);
        // If another thread was faster, its record is used, and this page is lost.
        let set = KNOWN.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        place = set.map_or_else(|other| other, |_| new);
    }
    // SAFETY: a place that stays.
    unsafe { &*place }
}

/// A page that holds zeros, and does again in each child. `None` if the kernel has none.
fn cleared_page() -> Option<*mut KnownProcess> {
    // The kernel makes whole pages of it.
    let (len, rights) = (size_of::<KnownProcess>(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: a new mapping, where the kernel wants it.
    let page = unsafe { mmap_anonymous(ptr::null_mut(), len, rights, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the pointer leads to the new page, which no other code knows yet.
    unsafe { madvise(page, len, Advice::LinuxWipeOnFork) }.ok()?;
    Some(page.cast())
}

/// The place that a handler changes in each child of fork.
fn counted() -> *mut KnownProcess {
    COUNTED.id.store(id(), Ordering::Relaxed);
    // SAFETY: the handler is a function of this program (module, Safety). Twice does no harm.
    let errno = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
    assert_eq!(errno, 0, "pthread_atfork has room for one handler");
    ptr::from_ref(&COUNTED).cast_mut()
}

/// How far apart a thread's calls may be on its stack.
const NEAR_BYTES: usize = 2_048;

/// When and where on its stack a thread was seen.
#[derive(Clone, Copy)]
struct Sighting {
    ticks: u64,
    stack: usize,
}

thread_local! {
    static SEEN: Cell<Sighting> = const { Cell::new(Sighting { ticks: 0, stack: 0 }) };
}

/// The processor's counter, where a program may read it at the cost of some instructions; and the ticks within which no
/// process can be made and run, for which the kernel executes some ten thousand instructions at least.
#[inline(always)]
fn clock() -> Option<(u64, u64)> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every such processor has the counter.
        let ticks = unsafe { core::arch::x86_64::_rdtsc() };
        // Less than 4 µs from 2 GHz on.
        Some((ticks, 8_000))
    }
    #[cfg(target_arch = "aarch64")]
    {
        let (ticks, hz): (u64, u64);
        // SAFETY: reads a register that Linux lets programs read.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        // SAFETY: as above.
        unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack)) };
        // 4 µs.
        Some((ticks, hz / 250_000))
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

/// Whether the caller is a child that shares its parent's memory (vfork, `CLONE_VM`), which is then in use by two
/// processes at once. Such a child must not use a bus: a lock that it holds at its end would be held for ever.
///
/// Calls that follow each other within microseconds cost some instructions, others a system call.
#[inline]
#[must_use]
pub fn is_memory_borrowed() -> bool {
    let here = 0_u8;
    let (ticks, soon) = clock().unwrap_or_default();
    let seen = Sighting { ticks, stack: (&raw const here).addr() };
    let before = SEEN.get();
    let is_near = seen.stack.abs_diff(before.stack) < NEAR_BYTES;
    // Without a clock no time counts as short.
    if ticks.wrapping_sub(before.ticks) < soon && is_near {
        SEEN.set(seen);
        return false;
    }
    ask_whose(seen)
}

#[cold]
#[inline(never)]
fn ask_whose(seen: Sighting) -> bool {
    process_number();
    let owner = known().id.load(Ordering::Relaxed);
    // 0 while another thread is about to write it.
    if owner != 0 && owner != id() {
        return true;
    }
    SEEN.set(seen);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a child reports that `make` makes and that ends at once.
    fn in_child(make: impl FnOnce() -> libc::pid_t, says: impl FnOnce() -> i32) -> i32 {
        let child = make();
        assert!(child >= 0, "a child is made");
        if child == 0 {
            // SAFETY: ends the child, and runs nothing of the parent's.
            unsafe { libc::_exit(says()) };
        }
        let mut status = 0;
        // SAFETY: waits for the child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status), "{status:#x}");
        libc::WEXITSTATUS(status)
    }

    /// A child by the bare system call, of which no library hears.
    fn by_clone() -> libc::pid_t {
        // SAFETY: a child with a copy of the memory, as of fork.
        let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
        child.try_into().expect("an id")
    }

    #[test]
    fn every_child_with_memory_of_its_own_has_another_number() {
        let ours = process_number();
        assert_eq!(ours, process_number());
        let fork = || {
            // SAFETY: the child makes no call for which it would need a lock of another thread.
            unsafe { libc::fork() }
        };
        let differs =
            || i32::from(process_number() != ours && process_number() == process_number());
        assert_eq!(in_child(fork, differs), 1, "by fork");
        assert_eq!(in_child(by_clone, differs), 1, "by clone");
        let grandchild = || {
            let child = process_number();
            in_child(by_clone, || i32::from(![ours, child].contains(&process_number())))
        };
        assert_eq!(in_child(by_clone, grandchild), 1, "a grandchild");
        assert_eq!(process_number(), ours, "nothing changed here");
    }

    #[test]
    fn where_the_kernel_clears_no_page_forks_are_counted() {
        // SAFETY: a place that stays.
        let place = unsafe { &*counted() };
        let ours = place.number.load(Ordering::Relaxed);
        let fork = || {
            // SAFETY: as above.
            unsafe { libc::fork() }
        };
        let differs = || {
            let is_known = place.id.load(Ordering::Relaxed) == id();
            i32::from(place.number.load(Ordering::Relaxed) != ours && is_known)
        };
        assert_eq!(in_child(fork, differs), 1);
    }

    /// Returns the result of `says` in a child that shares the memory. Depending on `flags`, the parent
    /// continues at once or when the child has ended.
    fn in_borrower(flags: i32, says: fn() -> i32) -> i32 {
        extern "C" fn run(says: *mut libc::c_void) -> i32 {
            // SAFETY: `says` points to the function that is passed below.
            (unsafe { says.cast::<fn() -> i32>().read() })()
        }
        let (mut says, mut stack) = (says, vec![0_u128; 8_192]);
        let top = stack.as_mut_ptr_range().end.cast();
        let flags = libc::CLONE_VM | libc::SIGCHLD | flags;
        // SAFETY: a stack of its own, and a function that lives until the child has ended.
        let child = unsafe { libc::clone(run, top, flags, (&raw mut says).cast()) };
        assert!(child >= 0, "a child is made");
        let mut status = 0;
        // Asks all the while, so that this thread is seen just before its child asks.
        let ended = || {
            assert!(!is_memory_borrowed());
            // SAFETY: waits for the child.
            unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) }
        };
        assert_eq!(std::iter::repeat_with(ended).find(|&pid| pid != 0), Some(child));
        assert!(libc::WIFEXITED(status), "{status:#x}");
        libc::WEXITSTATUS(status)
    }

    #[test]
    fn a_child_with_borrowed_memory_is_known_and_only_that() {
        let ours = process_number();
        assert!(!is_memory_borrowed());
        for flags in [libc::CLONE_VFORK, 0] {
            let borrows = || (0..1_000).map(|_| i32::from(is_memory_borrowed())).min().unwrap_or(0);
            for _ in 0..20 {
                assert_eq!(in_borrower(flags, borrows), 1, "{flags:#x}");
            }
        }
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!is_memory_borrowed(), "a thread")).join().expect("runs");
        });
        let own = || i32::from(is_memory_borrowed());
        assert_eq!(in_child(by_clone, own), 0, "memory of its own");
        assert_eq!(process_number(), ours);
    }

    #[test]
    fn calls_close_together_ask_the_kernel_once() {
        // In a child, where the id may be another's for a moment.
        let says = || {
            let known = known();
            let ours = id();
            let soon = (0..1_000).filter(|_| {
                known.id.store(ours, Ordering::Relaxed);
                let here = is_memory_borrowed();
                known.id.store(1, Ordering::Relaxed);
                !here && !is_memory_borrowed()
            });
            let soon = soon.count();
            std::thread::sleep(std::time::Duration::from_millis(1));
            let expected = if clock().is_some() { 500 } else { 0 };
            i32::from(soon >= expected) | i32::from(is_memory_borrowed()) << 1
        };
        let by_number = || {
            process_number();
            says()
        };
        assert_eq!(in_child(by_clone, by_number), 3, "few system calls, and one a moment later");
    }
}
