//! The process's number: another one in each child that has memory of its own. What is cached for a process or a
//! thread is wrong there.
//!
//! # How it works
//! One page holds the number, and the process's id beside it. The kernel clears it in every child that gets a copy of the memory (madvise(2),
//! `MADV_WIPEONFORK`, Linux 4.14), however the child was made: fork, `_Fork`, clone or the bare system call. A child finds
//! 0 there and takes the next number. An older kernel does not clear it; there `pthread_atfork` counts, which
//! notices children of fork alone.
//!
//! Siblings may have the same number: they share no memory in which it could be compared.
//!
//! Children that share the memory (vfork, `CLONE_VM`) have the parent's number: for the parent they are threads. But they
//! are processes to the kernel, whose locks name their owner by its id. [`is_memory_borrowed`] tells them by theirs.
//!
//! # Safety
//! The page is mapped once and never unmapped. The handler that runs in the child writes an atomic and nothing else,
//! which is allowed there, whatever the parent's other threads were doing.
#![allow(unsafe_code, reason = "a page that the kernel clears, and pthread_atfork")]

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

/// A process's number and, once it is known, its id; each 0 if it is not.
#[repr(C)]
struct Process {
    number: AtomicU32,
    id: AtomicU32,
}

/// The place of the number; null until it is asked for.
static PLACE: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());
/// The last number that was given in this process or in those it comes from.
static GIVEN: AtomicU32 = AtomicU32::new(0);
/// The number's place where the kernel clears no page.
static COUNTED: Process = Process { number: AtomicU32::new(1), id: AtomicU32::new(0) };

extern "C" fn in_the_child() {
    COUNTED.id.store(std::process::id(), Ordering::Relaxed);
    COUNTED.number.fetch_add(1, Ordering::Relaxed);
}

/// The process's number, above 0. Two loads. May be called from a signal handler, after the first time.
#[inline]
pub fn process_number() -> u32 {
    // Relaxed: nothing but the word itself is read by the address.
    // SAFETY: null, or a place that stays (module, Safety).
    let place = unsafe { PLACE.load(Ordering::Relaxed).as_ref() };
    match place.map(|place| place.number.load(Ordering::Relaxed)) {
        Some(number) if number > 0 => number,
        _ => ask(),
    }
}

/// Whether this process is a child that shares its parent's memory (vfork, clone with `CLONE_VM`). Then it must not use what
/// its parent opened, nor open anything: the kernel would take it for another owner than the parent's thread that it
/// stands for. One system call.
#[must_use]
pub fn is_memory_borrowed() -> bool {
    process_number();
    // SAFETY: a place that stays (module, Safety), known since the line above.
    let id = unsafe { &*PLACE.load(Ordering::Relaxed) }.id.load(Ordering::Relaxed);
    id != 0 && id != std::process::id()
}

/// The first call in this process.
#[cold]
fn ask() -> u32 {
    let mut place = PLACE.load(Ordering::Acquire);
    if place.is_null() {
        let new = cleared_page().unwrap_or_else(counted);
        // Another thread's, if it was faster: a page is lost then.
        let set = PLACE.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        place = set.map_or_else(|other| other, |_| new);
    }
    // SAFETY: a place that stays.
    let place = unsafe { &*place };
    place.id.store(std::process::id(), Ordering::Relaxed);
    let next = GIVEN.fetch_add(1, Ordering::Relaxed) + 1;
    match place.number.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => next,
        // Another thread's.
        Err(number) => number,
    }
}

/// A page that holds 0, and does again in each child. `None` if the kernel has none.
fn cleared_page() -> Option<*mut Process> {
    // The kernel makes whole pages of it.
    let (len, rights) = (size_of::<Process>(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: a new mapping, where the kernel wants it.
    let page = unsafe { mmap_anonymous(ptr::null_mut(), len, rights, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the page, of which nobody knows yet.
    unsafe { madvise(page, len, Advice::LinuxWipeOnFork) }.ok()?;
    Some(page.cast())
}

/// The place that a handler changes in each child of fork.
fn counted() -> *mut Process {
    // SAFETY: the handler is a function of this program (module, Safety). Twice does no harm.
    let errno = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
    assert_eq!(errno, 0, "pthread_atfork has room for one handler");
    COUNTED.id.store(std::process::id(), Ordering::Relaxed);
    ptr::from_ref(&COUNTED).cast_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a child says, which is made by `make` and ends at once.
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
            // SAFETY: the child makes no call that another thread could keep from it.
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

    /// Whether memory is borrowed in a child that shares ours, on a stack of its own.
    extern "C" fn asks(_: *mut libc::c_void) -> libc::c_int {
        i32::from(is_memory_borrowed())
    }

    #[test]
    fn a_child_that_shares_the_memory_is_told_from_threads_and_other_children() {
        assert!(!is_memory_borrowed());
        std::thread::spawn(|| assert!(!is_memory_borrowed())).join().expect("a thread is none");
        assert_eq!(in_child(by_clone, || i32::from(is_memory_borrowed())), 0, "it has its own");
        // As vfork does: the parent's thread waits until the child has ended.
        let (flags, mut stack) = (libc::CLONE_VM | libc::CLONE_VFORK, vec![0_u128; 4096]);
        let shares = || {
            let top = stack.as_mut_ptr_range().end.cast();
            // SAFETY: a stack that lives until the child has ended, since this thread waits for it.
            unsafe { libc::clone(asks, top, flags | libc::SIGCHLD, ptr::null_mut()) }
        };
        assert_eq!(in_child(shares, || unreachable!("the child runs `asks`")), 1);
        assert!(!is_memory_borrowed(), "nothing changed here");
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
        let differs = || i32::from(place.number.load(Ordering::Relaxed) != ours);
        assert_eq!(in_child(fork, differs), 1);
    }
}
