//! Requests in memory that this process shares with the server: two system calls each, and no descriptor.
//!
//! Read first: [`barewire_spidev_abi::slots`].
//!
//! # How it works
//! The first request of a process asks the server for the memory, by a connection. A child of `fork` asks anew. A child
//! that shares its parent's memory uses the slots that are there, but asks for none: they would end with it.
//!
//! `None` means that the caller must use a connection: there is no memory, the request or its answer is too long, or all
//! slots are in use.
//!
//! # Signals
//! They are blocked in a program that has a handler, as in [`crate::direct`].

use std::fs::File;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use barewire_linux::shared::Lifeline;
use barewire_linux::{SharedWords, is_memory_borrowed, process_number};
use barewire_spidev_abi::protocol::Head;
use barewire_spidev_abi::slots::{BELL_BYTES, BODY_BYTES, Bell, SLOTS_WORDS, Slot, Slots};
use rustix::io::Errno;
use rustix::thread::futex::{self, Timespec};

use crate::blocked::SignalsBlocked;
use crate::say::say_gone;
use crate::{connection, good, handlers};

/// How often a thread that waits looks whether the server lives.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The memory of a process.
struct Shared {
    /// The process's number.
    owner: u32,
    bell: Bell<'static>,
    slots: Slots<'static>,
}

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());
/// The number of a process that is asking for it, and of one whose server has none to give.
static ASKING: AtomicU32 = AtomicU32::new(0);
static REFUSED: AtomicU32 = AtomicU32::new(0);

impl Shared {
    /// Whether the server still looks at these slots.
    fn is_served(&self) -> bool {
        !self.slots.is_closed() && Lifeline::is_alive(self.bell.life())
    }

    fn ring(&self) {
        self.bell.count();
        // Perhaps no thread sleeps.
        let _ = futex::wake(self.bell.rings(), futex::Flags::empty(), 1);
    }

    /// Waits for the answer; `None` if the server will not see the request, which is revoked then.
    fn wait(&self, slot: &Slot<'_>) -> Option<Result<(), Errno>> {
        while let Some(state) = slot.asked() {
            if !self.is_served() {
                if slot.revoke() {
                    return None;
                }
                if !Lifeline::is_alive(self.bell.life()) && slot.asked().is_some() {
                    say_gone(false);
                    return Some(Err(Errno::SHUTDOWN));
                }
            }
            // Woken, interrupted, or woken in vain: look again.
            let _ = futex::wait(slot.state(), futex::Flags::empty(), state, Some(&LOOK_EVERY));
        }
        Some(Ok(()))
    }
}

/// The memory of this process.
fn shared() -> Option<&'static Shared> {
    // SAFETY: null, or what is never freed.
    let shared = unsafe { SHARED.load(Ordering::Acquire).as_ref() };
    match shared {
        Some(shared) if shared.owner == process_number() => Some(shared),
        _ => ask_for_it(),
    }
}

/// Asks for the memory, if this process has none yet.
pub(crate) fn prepare() {
    let _ = shared();
}

#[cold]
fn ask_for_it() -> Option<&'static Shared> {
    let this = process_number();
    // A handler of a signal must not call the functions of the C library's that mapping needs.
    if REFUSED.load(Ordering::Relaxed) == this || is_memory_borrowed() || handlers::may_be_in_one()
    {
        return None;
    }
    // One thread asks; the others use connections meanwhile. A parent that was asking does not count.
    let asking = ASKING.load(Ordering::Relaxed);
    let first = || ASKING.compare_exchange(asking, this, Ordering::Acquire, Ordering::Relaxed);
    if asking == this || first().is_err() {
        return None;
    }
    let shared = got(this);
    ASKING.store(0, Ordering::Release);
    shared
}

fn got(this: u32) -> Option<&'static Shared> {
    // SAFETY: null, or what is never freed.
    let before = unsafe { SHARED.load(Ordering::Acquire).as_ref() };
    match before {
        // Another thread's.
        Some(shared) if shared.owner == this => return Some(shared),
        // A parent's: which of its pages are there is not known of the child's.
        Some(_) => good::forget_all(),
        None => {}
    }
    match connection::share().and_then(|files| mapped(this, files)) {
        Ok(shared) => {
            let shared: &'static Shared = Box::leak(Box::new(shared));
            connection::note_life(shared.bell.life());
            SHARED.store(std::ptr::from_ref(shared).cast_mut(), Ordering::Release);
            Some(shared)
        }
        // No descriptor is free: try again later.
        Err(Errno::MFILE | Errno::NFILE) => None,
        Err(_) => {
            REFUSED.store(this, Ordering::Relaxed);
            None
        }
    }
}

fn mapped(owner: u32, [bell, slots]: [File; 2]) -> Result<Shared, Errno> {
    let map = |file: &File, words: usize| -> Result<&'static SharedWords, Errno> {
        Ok(Box::leak(Box::new(SharedWords::map(file, words)?)))
    };
    let bell = Bell::new(map(&bell, BELL_BYTES as usize / 4)?.words()).ok_or(Errno::PROTO)?;
    let slots = Slots::new(map(&slots, SLOTS_WORDS)?.words()).ok_or(Errno::PROTO)?;
    Ok(Shared { owner, bell, slots })
}

/// Makes a request and waits for its answer, whose body is appended to `answer`: not longer than `answer` has room.
pub(crate) fn ask(
    head: &Head,
    parts: &[&[u8]],
    answer: &mut Vec<u8>,
) -> Option<Result<u32, Errno>> {
    if head.body as usize > BODY_BYTES || answer.capacity() - answer.len() > BODY_BYTES {
        return None;
    }
    let shared = shared()?;
    let _undisturbed = handlers::any().then(SignalsBlocked::new);
    let slot = shared.slots.claim()?;
    if !slot.ask(head, parts) {
        slot.release();
        return None;
    }
    shared.ring();
    let waited = shared.wait(&slot);
    if shared.owner != process_number() {
        // A child, made by a handler that was installed while its parent's thread waited. The slot is the parent's.
        return Some(Err(Errno::INTR));
    }
    let answered = waited.map(|waited| waited.and_then(|()| slot.answer(answer)));
    // A server that died may have had it: nobody else writes it then.
    slot.release();
    answered
}
