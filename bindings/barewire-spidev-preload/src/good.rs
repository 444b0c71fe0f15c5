//! The program's memory, without a system call where a call before has shown that it is there.
//!
//! # How it works
//! The first access to a page is the kernel's ([`memory`]), which checks it: a bad address is `EFAULT`. Then the
//! page is known, to be read or to be written, and is accessed here. A program that unmaps or protects memory
//! ends that: those functions are taken over (`calls::map`).
//!
//! A page has [`WAYS`] places, so that a message's own pages (the transfer and its bytes, each perhaps on two) do not
//! drive each other out wherever the kernel's random layout puts them.
//!
//! # Not supported
//! Memory that the C library itself unmaps, as `free` does with large blocks, or that is gone because a file was
//! cut: a program that passes such an address ends by SIGSEGV or SIGBUS instead of `EFAULT`. No message is in
//! the middle then: memory is copied before and after.

use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rustix::io::Errno;

use crate::memory;

/// Places that a page may have.
const WAYS: usize = 4;
/// Sets of places, a power of two.
const SETS: usize = 16;
/// A page of any machine is a multiple of this.
const PAGE_SHIFT: usize = 12;
/// The most pages of a buffer that are looked up; a longer one is the kernel's to copy.
const LOOKED_UP: usize = 3;

/// No page has this number.
const NONE: usize = usize::MAX;

/// The numbers of known pages. A page belongs to the set with index `number % SETS`.
type KnownPages = [[AtomicUsize; WAYS]; SETS];

static READABLE: KnownPages = [const { [const { AtomicUsize::new(NONE) }; WAYS] }; SETS];
static WRITABLE: KnownPages = [const { [const { AtomicUsize::new(NONE) }; WAYS] }; SETS];
/// The place that the next page takes in a full set: each in turn.
static TAKEN_NEXT: AtomicUsize = AtomicUsize::new(0);
/// How often all were forgotten.
static FORGOTTEN: AtomicU32 = AtomicU32::new(0);

/// Forgets all pages: the program's memory changes.
pub(crate) fn forget_all() {
    FORGOTTEN.fetch_add(1, Ordering::SeqCst);
    let places = READABLE.iter().chain(&WRITABLE).flatten();
    places.for_each(|place| place.store(NONE, Ordering::SeqCst));
}

#[inline]
fn is_known_page(known: &KnownPages, page: usize) -> bool {
    known[page % SETS].iter().any(|place| place.load(Ordering::Relaxed) == page)
}

/// Whether all pages of `len` bytes are known; `len` is not 0.
#[inline(always)]
fn are_known(known: &KnownPages, address: usize, len: usize) -> bool {
    let first = address >> PAGE_SHIFT;
    // A sum that ends in a known page does not overflow.
    let last = address.wrapping_add(len - 1) >> PAGE_SHIFT;
    is_known_page(known, first) && (first == last || others_are_known(known, first, last))
}

#[inline(never)]
fn others_are_known(known: &KnownPages, first: usize, last: usize) -> bool {
    (first..last).len() < LOOKED_UP && (first + 1..=last).all(|page| is_known_page(known, page))
}

#[cold]
fn remember(known: &KnownPages, address: usize, len: usize, forgotten: u32) {
    let (first, last) = (address >> PAGE_SHIFT, address.wrapping_add(len - 1) >> PAGE_SHIFT);
    for page in (first..=last).take(LOOKED_UP) {
        if is_known_page(known, page) {
            continue;
        }
        let places = &known[page % SETS];
        let free = places.iter().find(|place| place.load(Ordering::Relaxed) == NONE);
        let taken = || &places[TAKEN_NEXT.fetch_add(1, Ordering::Relaxed) % WAYS];
        free.unwrap_or_else(taken).store(page, Ordering::SeqCst);
    }
    if FORGOTTEN.load(Ordering::SeqCst) != forgotten {
        forget_all();
    }
}

/// Fills `into` from `address`.
///
/// # Errors
/// `EFAULT` if not all of it is there.
#[inline(always)]
pub(crate) fn read(address: u64, into: &mut [u8]) -> Result<(), Errno> {
    let from = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    if into.is_empty() {
        return Ok(());
    }
    if are_known(&READABLE, from, into.len()) {
        let from = ptr::with_exposed_provenance(from);
        // SAFETY: pages that the program has; `into` is this library's own.
        unsafe { copy(from, into.as_mut_ptr(), into.len()) };
        return Ok(());
    }
    read_unknown(address, from, into)
}

#[cold]
fn read_unknown(address: u64, from: usize, into: &mut [u8]) -> Result<(), Errno> {
    let forgotten = FORGOTTEN.load(Ordering::SeqCst);
    memory::read(address, into)?;
    remember(&READABLE, from, into.len(), forgotten);
    Ok(())
}

/// Writes `bytes` at `address`.
///
/// # Errors
/// `EFAULT` if not all of it can be written.
#[inline(always)]
pub(crate) fn write(address: u64, bytes: &[u8]) -> Result<(), Errno> {
    let to = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    if bytes.is_empty() {
        return Ok(());
    }
    if are_known(&WRITABLE, to, bytes.len()) {
        let to = ptr::with_exposed_provenance_mut(to);
        // SAFETY: pages that the program has and may write; `bytes` are this library's own.
        unsafe { copy(bytes.as_ptr(), to, bytes.len()) };
        return Ok(());
    }
    write_unknown(address, to, bytes)
}

#[cold]
fn write_unknown(address: u64, to: usize, bytes: &[u8]) -> Result<(), Errno> {
    let forgotten = FORGOTTEN.load(Ordering::SeqCst);
    memory::write(address, bytes)?;
    remember(&WRITABLE, to, bytes.len(), forgotten);
    Ok(())
}

/// Copies; a chip's register without a call.
///
/// # Safety
/// As `ptr::copy_nonoverlapping`.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    if len == size_of::<u32>() {
        // SAFETY: the caller's promise.
        let word = unsafe { from.cast::<u32>().read_unaligned() };
        // SAFETY: the caller's promise.
        unsafe { to.cast::<u32>().write_unaligned(word) };
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { ptr::copy_nonoverlapping(from, to, len) };
}
