//! Keeps the stacks of loom's threads for the next interleaving.
//!
//! Loom runs each thread of each interleaving on a new stack: `generator` maps it, protects its lowest
//! page and unmaps it at the end. For threads as short as ours the kernel's part is two thirds of the
//! time: three system calls and two page faults a thread. Loom has no setting for it.
//!
//! How it works: this file defines `mmap`, `mprotect` and `munmap` for the test program, and the linker prefers them to
//! the C library's. When a mapping made with `MAP_STACK` is unmapped, this file keeps it. The next request for a stack
//! of its length gets it back, with its guard page. All other calls go to the kernel unchanged. The C library's own
//! calls, for real threads and `malloc`, do not come here.
//!
//! A stack that is used again contains old bytes where a new one contains zeros. `generator` writes
//! each byte before it reads it.
#![allow(unsafe_code, reason = "definitions of the C library's functions")]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Mutex;
use std::sync::PoisonError;

/// As many stacks as the threads of all models that run at once; loom allows five threads a model.
const KEPT_MAX: usize = 64;

/// A stack that is kept, or that is in use and will be kept.
#[derive(Clone, Copy)]
struct Stack {
    at: usize,
    len: usize,
    guarded: bool,
    idle: bool,
}

/// The known stacks, the most recently used last. Not on the heap: `malloc` may map memory.
struct Stacks {
    known: [Stack; KEPT_MAX],
    count: usize,
}

static STACKS: Mutex<Stacks> = Mutex::new(Stacks {
    known: [Stack { at: 0, len: 0, guarded: false, idle: false }; KEPT_MAX],
    count: 0,
});

impl Stacks {
    fn find(&mut self, fits: impl Fn(&Stack) -> bool) -> Option<&mut Stack> {
        self.known[..self.count].iter_mut().find(|stack| fits(stack))
    }

    /// Notes a new stack; one too many is not kept.
    fn note(&mut self, at: usize, len: usize) {
        if let Some(free) = self.known.get_mut(self.count) {
            *free = Stack { at, len, guarded: false, idle: false };
            self.count += 1;
        }
    }
}

/// Runs `f` on the known stacks. A test that fails may poison the lock, and the others go on.
fn stacks<R>(f: impl FnOnce(&mut Stacks) -> R) -> R {
    f(&mut STACKS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Maps memory, or hands out a stack that is kept.
///
/// # Safety
/// As for mmap(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    at: *mut c_void,
    len: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    let is_stack = flags & libc::MAP_STACK != 0 && at.is_null();
    let kept = is_stack.then(|| {
        stacks(|all| {
            let kept = all.find(|stack| stack.idle && stack.len == len)?;
            kept.idle = false;
            Some(kept.at)
        })
    });
    if let Some(at) = kept.flatten() {
        return ptr::with_exposed_provenance_mut(at);
    }
    // SAFETY: the caller's arguments, in the order of mmap(2).
    let mapped = unsafe { libc::syscall(libc::SYS_mmap, at, len, access, flags, file, offset) };
    let mapped = mapped as usize;
    if is_stack && mapped != libc::MAP_FAILED.addr() {
        stacks(|all| all.note(mapped, len));
    }
    ptr::with_exposed_provenance_mut(mapped)
}

/// Changes the access to memory; the guard page of a kept stack has no access already.
///
/// # Safety
/// As for mprotect(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(at: *mut c_void, len: usize, access: c_int) -> c_int {
    let guarded = stacks(|all| {
        let stack = all.find(|stack| stack.at == at.addr() && access == libc::PROT_NONE)?;
        Some(std::mem::replace(&mut stack.guarded, true))
    });
    if guarded == Some(true) {
        return 0;
    }
    // SAFETY: the caller's arguments, in the order of mprotect(2).
    unsafe { libc::syscall(libc::SYS_mprotect, at, len, access) as c_int }
}

/// Unmaps memory, or keeps it if it is a stack.
///
/// # Safety
/// As for munmap(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(at: *mut c_void, len: usize) -> c_int {
    let kept = stacks(|all| {
        let stack = all.find(|stack| stack.at == at.addr() && stack.len == len)?;
        stack.idle = true;
        Some(())
    });
    if kept.is_some() {
        return 0;
    }
    // SAFETY: the caller's arguments, in the order of munmap(2).
    unsafe { libc::syscall(libc::SYS_munmap, at, len) as c_int }
}
