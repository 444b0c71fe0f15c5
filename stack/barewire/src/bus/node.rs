//! A place in the bus's queue: what to run, for which owner, and how the owner is told.
//!
//! # How it works
//! A node belongs to its owner until it is pushed. Then it belongs to the tender of the queue, as
//! an [`Entry`], until it is settled; afterwards to the owner again. Its state word says which, and
//! carries the messages between the two, so that settling is one atomic.
//!
//! An owner is *present* while one of its threads waits, or while its future is inside `poll`. Only
//! a present owner can be given the bus. A future that was woken but not yet polled owns nothing.
//!
//! The waker is stored in two atomics. To settle a node, the tender reads both, then settles by a
//! compare-and-swap that fails if the slot changed meanwhile. To store another waker, the owner
//! first takes the slot back, counting [`VERSION`]. So neither ever waits for the other.
//!
//! # Ordering
//! 1. Pushing is a release (by the bus word): the thread that gathers the node sees its task.
//! 2. Settling is a release, and a load that finds the node settled is an acquire: the owner sees
//!    the outcome and the received bytes.
//! 3. Once a node is settled, it may be freed at any time: use only the address of its state, to
//!    wake the thread that sleeps on it.
//!
//! # Safety
//! Only the current owner of the node, as above, accesses [`Node::task`] and [`Node::next`].
#![allow(unsafe_code, reason = "a node's fields belong to its owner or to an entry in turn")]

use core::ptr;
use core::task::{Context, Poll, RawWakerVTable, Waker};

use super::atomic::{AtomicPtr, AtomicU32, Cell, Ordering};
use super::callback::Callback;
use super::statistics::Path;
use crate::controller::{Preset, Unfinished};
use crate::spi::{MessageError, Transfer};

/// The owner has the node: it was not pushed, or was fetched after it was settled.
const FREE: u32 = 0;
/// Queued, or on the wire.
const QUEUED: u32 = 1;
/// Settled: the message ran and has its outcome.
const DONE: u32 = 2;
/// Settled: the owner has the bus.
const GRANTED: u32 = 3;
/// Settled: removed from the queue without running.
const REMOVED: u32 = 4;
/// The bits of the above.
const STAGE: u32 = 7;
/// A thread sleeps on the state and needs waking.
const SLEEPS: u32 = 1 << 3;
/// The waker's slot is full.
const WAKER: u32 = 1 << 4;
/// The owner cancelled the node.
const CANCEL: u32 = 1 << 5;
/// The owner was handed the bus, to serve the queue, which still contains this node.
const SERVE: u32 = 1 << 6;
/// The owner is present and can be given the bus.
const PRESENT: u32 = 1 << 7;
/// One change of the waker's slot; this bit and those above count them.
const VERSION: u32 = 1 << 8;

/// The state of a node, for its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// With its owner.
    Free,
    /// Not settled yet.
    Queued,
    /// It ran.
    Done,
    /// The owner has the bus.
    Granted,
    /// Removed from the queue without running: it was cancelled, or it is the turn of a future,
    /// which now tries again.
    Removed,
    /// The owner has the bus and serves the queue; the node is still queued.
    Serve,
}

fn stage_of(state: u32) -> Stage {
    match state & STAGE {
        QUEUED if state & SERVE != 0 => Stage::Serve,
        QUEUED => Stage::Queued,
        DONE => Stage::Done,
        GRANTED => Stage::Granted,
        REMOVED => Stage::Removed,
        _ => Stage::Free,
    }
}

/// A node's request: to run a message, or, without a preset, the bus itself (a turn).
pub(super) struct Task {
    pub(super) preset: *const Preset,
    pub(super) message: *mut [Transfer<'static>],
    pub(super) context: usize,
    pub(super) callback: Option<Callback>,
    /// The outcome; until the message ran, the outcome if running it panics.
    pub(super) ran: Result<usize, Unfinished>,
    pub(super) path: Path,
    pub(super) priority: u8,
    /// How many younger messages overtook it.
    pub(super) overtaken: u8,
}

impl Task {
    /// A task that asks for the bus itself.
    pub(super) const fn turn(context: usize) -> Self {
        Self {
            preset: ptr::null(),
            message: ptr::slice_from_raw_parts_mut(ptr::null_mut(), 0),
            context,
            callback: None,
            ran: Err(Unfinished::ABORTED),
            path: Path::Async,
            priority: 0,
            overtaken: 0,
        }
    }

    /// The outcome, for the owner or the callback.
    #[inline]
    pub(super) fn outcome(&self) -> Result<usize, MessageError> {
        // SAFETY: the message ran or never will: no other code changes it.
        self.ran.map_err(|unfinished| unfinished.explain(unsafe { &*self.message }))
    }

    /// Whether it asks for the bus itself.
    pub(super) fn is_turn(&self) -> bool {
        self.preset.is_null()
    }

    /// Whether it asks to run a message.
    pub(super) fn is_message(&self) -> bool {
        !self.is_turn()
    }
}

/// The two words of a waker, or one word each of two wakers.
type Halves = (*const (), *const RawWakerVTable);

fn halves_of(waker: &Waker) -> Halves {
    (waker.data(), waker.vtable())
}

/// # Safety
/// The halves are of one waker, which [`Slot::put`] forgot, and this function remakes it only once.
unsafe fn waker_of((data, vtable): Halves) -> Waker {
    // SAFETY: a waker's vtable is `'static`.
    let vtable = unsafe { &*vtable };
    // SAFETY: the caller's promise.
    unsafe { Waker::new(data, vtable) }
}

/// A waker stored in two words.
struct Slot {
    data: AtomicPtr<()>,
    vtable: AtomicPtr<RawWakerVTable>,
}

impl Slot {
    fn put(&self, waker: Waker) {
        let (data, vtable) = halves_of(&waker);
        self.data.store(data.cast_mut(), Ordering::Relaxed);
        self.vtable.store(vtable.cast_mut(), Ordering::Relaxed);
        core::mem::forget(waker);
    }

    fn read(&self) -> Halves {
        (self.data.load(Ordering::Relaxed), self.vtable.load(Ordering::Relaxed))
    }
}

/// A place in the queue. The alignment leaves room for the tags of the bus word.
#[repr(align(32))]
pub(super) struct Node {
    state: AtomicU32,
    pub(super) next: Cell<*const Node>,
    pub(super) task: Cell<Task>,
    slot: Slot,
}

impl Node {
    pub(super) fn new(task: Task) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            next: Cell::new(ptr::null()),
            task: Cell::new(task),
            slot: Slot {
                data: AtomicPtr::new(ptr::null_mut()),
                vtable: AtomicPtr::new(ptr::null_mut()),
            },
        }
    }

    /// Its state (Ordering 2).
    #[inline]
    pub(super) fn stage(&self) -> Stage {
        stage_of(self.state.load(Ordering::Acquire))
    }

    /// Prepares the node for a push; no other thread knows it yet.
    #[inline]
    pub(super) fn set_queued(&self) {
        self.state.store(QUEUED, Ordering::Relaxed);
    }

    /// [`Node::set_queued`], for an owner that is present.
    #[inline]
    pub(super) fn set_queued_present(&self) {
        self.state.store(QUEUED | PRESENT, Ordering::Relaxed);
    }

    /// The owner has seen the result; the node can be pushed again.
    #[inline]
    pub(super) fn set_free(&self) {
        self.state.store(FREE, Ordering::Relaxed);
    }

    /// Marks the owner present. Returns the state before.
    pub(super) fn set_present(&self) -> Stage {
        stage_of(self.state.fetch_or(PRESENT, Ordering::Acquire))
    }

    /// Marks the owner absent. Returns the state before: a bus that was granted or handed over
    /// until then is the owner's.
    pub(super) fn set_absent(&self) -> Stage {
        stage_of(self.state.fetch_and(!PRESENT, Ordering::Acquire))
    }

    /// Cancels the node and marks the owner present until it is settled. Returns the state before, and
    /// the waker, which nobody needs now. Dropping it is user code, and so the owner's: whoever settles
    /// the node may have the bus or its queue.
    pub(super) fn set_cancelled(&self) -> (Stage, Option<Waker>) {
        let cancel = |seen: u32| {
            let cancelled = seen | CANCEL | PRESENT;
            Some(if seen & WAKER != 0 {
                (cancelled & !WAKER).wrapping_add(VERSION)
            } else {
                cancelled
            })
        };
        let (Ok(seen) | Err(seen)) =
            self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, cancel);
        // SAFETY: without `WAKER` the slot is the owner's, and its content was put there by a poll.
        let waker = (seen & WAKER != 0).then(|| unsafe { waker_of(self.slot.read()) });
        (stage_of(seen), waker)
    }

    /// The owner found [`Stage::Serve`] and becomes the holder.
    pub(super) fn accept_bus(&self) {
        // This acquire makes the previous holder's work on the bus visible.
        self.state.fetch_and(!SERVE, Ordering::Acquire);
    }

    /// Announces that the owner goes to sleep. Returns the word to sleep on and its value; `None`
    /// if the node was settled or the bus handed over meanwhile.
    pub(super) fn set_asleep(&self) -> Option<(&AtomicU32, u32)> {
        let seen = self.state.load(Ordering::Acquire);
        let asleep = seen | SLEEPS;
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let said = stage_of(seen) == Stage::Queued
            && (seen == asleep
                || self.state.compare_exchange(seen, asleep, success, failure).is_ok());
        said.then_some((&self.state, asleep))
    }

    /// Checks whether the node is settled. If not, arranges that settling it wakes the task of
    /// `cx`.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Stage> {
        // Dropping a waker is user code: both are dropped on return, when the state is consistent.
        let mut old = None;
        let mut new = None;
        let mut seen = self.state.load(Ordering::Acquire);
        loop {
            let stage = stage_of(seen);
            if stage != Stage::Queued {
                return Poll::Ready(stage);
            }
            let filled = seen & WAKER != 0;
            if filled && self.slot.read() == halves_of(cx.waker()) {
                return Poll::Pending;
            }
            let wanted = if filled {
                (seen & !WAKER).wrapping_add(VERSION)
            } else {
                let waker = new.take().unwrap_or_else(|| cx.waker().clone());
                self.slot.put(waker);
                seen | WAKER
            };
            let change =
                self.state.compare_exchange(seen, wanted, Ordering::AcqRel, Ordering::Acquire);
            if filled == change.is_ok() {
                // SAFETY: without `WAKER` the slot is the owner's, and its content was put there
                // above or by an earlier poll.
                let taken = unsafe { waker_of(self.slot.read()) };
                *(if filled { &mut old } else { &mut new }) = Some(taken);
            }
            match change {
                Ok(_) if !filled => return Poll::Pending,
                Ok(_) => seen = wanted,
                Err(now) => seen = now,
            }
        }
    }
}

/// The right to a node that was taken out of the queue. Until the node is settled or queued again,
/// its task belongs to the entry, and the node and its message are alive.
pub(super) struct Entry {
    node: *const Node,
}

/// The message of an entry.
pub(super) struct Job<'j> {
    pub(super) preset: &'j Preset,
    pub(super) message: &'j mut [Transfer<'static>],
    pub(super) path: Path,
}

/// The thread or task to wake after a node was settled.
#[must_use = "somebody waits for it"]
pub(super) struct Wakeup {
    /// The word on which a thread sleeps. Only its address may be used: the node may be freed.
    pub(super) sleeper: Option<*const AtomicU32>,
    pub(super) waker: Option<Waker>,
}

impl Entry {
    /// # Safety
    /// The node is queued and in no list, and no other entry of it exists.
    pub(super) unsafe fn new(node: *const Node) -> Self {
        Self { node }
    }

    /// Turns the entry into its node; the caller must not lose it.
    pub(super) fn into_node(self) -> *const Node {
        self.node
    }

    pub(super) fn node(&self) -> &Node {
        // SAFETY: type `Entry`: the node is queued, hence alive.
        unsafe { &*self.node }
    }

    /// Lets `f` see the task.
    #[inline]
    pub(super) fn with_task<R>(&mut self, f: impl FnOnce(&mut Task) -> R) -> R {
        self.node().task.with_mut(|task| {
            // SAFETY: type `Entry`: the task is the entry's, which is borrowed mutably.
            f(unsafe { &mut *task })
        })
    }

    /// Whether it asks for the bus itself.
    pub(super) fn is_turn(&self) -> bool {
        self.node().task.with(|task| {
            // SAFETY: type `Entry`: the task is the entry's.
            unsafe { (*task).is_turn() }
        })
    }

    /// The message.
    #[inline]
    pub(super) fn job(&mut self) -> Job<'_> {
        let (preset, message, path) = self.with_task(|task| (task.preset, task.message, task.path));
        // SAFETY: type `Entry`: the owner keeps the preset until the node is settled.
        let preset = unsafe { &*preset };
        // SAFETY: type `Entry`: the owner keeps the message, and does not access it until then.
        let message = unsafe { &mut *message };
        Job { preset, message, path }
    }

    /// Sets the message, which [`Entry::job`] may then refer to.
    pub(super) fn set_message(&mut self, message: *mut [Transfer<'static>]) {
        self.with_task(|task| task.message = message);
    }

    /// Takes the waker of the node, which stays as it is. The owner stores another with its next poll.
    pub(super) fn take_waker(&mut self) -> Option<Waker> {
        let node = self.node();
        let mut seen = node.state.load(Ordering::Acquire);
        while seen & WAKER != 0 {
            let halves = node.slot.read();
            let taken = (seen & !WAKER).wrapping_add(VERSION);
            match node.state.compare_exchange(seen, taken, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: the owner has not taken the slot back since `seen`, so the halves are of one waker, and the
                // exchange made it ours.
                Ok(_) => return Some(unsafe { waker_of(halves) }),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Whether the owner cancelled the node.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        self.node().is_cancelled()
    }

    /// Whether the owner is present.
    pub(super) fn is_present(&self) -> bool {
        self.node().is_present()
    }

    /// Settles the node: its message ran.
    #[inline]
    pub(super) fn settle_done(self) -> Option<Wakeup> {
        self.settle(|_| DONE).1
    }

    /// Settles the node: it was removed and does not run.
    pub(super) fn settle_removed(self) -> Option<Wakeup> {
        self.settle(|_| REMOVED).1
    }

    /// Settles a turn: grants the bus to a present owner, else the owner has to try again. Returns
    /// whether the bus was granted; then bus and queue are no longer the caller's.
    pub(super) fn settle_turn(self) -> (bool, Option<Wakeup>) {
        let wants_it = |seen| seen & (PRESENT | CANCEL) == PRESENT;
        let (stage, wakeup) = self.settle(|seen| if wants_it(seen) { GRANTED } else { REMOVED });
        (stage == GRANTED, wakeup)
    }

    #[inline]
    fn settle(self, to: impl Fn(u32) -> u32) -> (u32, Option<Wakeup>) {
        let node = self.node();
        let sleeper = &raw const node.state;
        let mut seen = node.state.load(Ordering::Acquire);
        loop {
            let halves = if seen & WAKER != 0 { Some(node.slot.read()) } else { None };
            let (stage, release) = (to(seen), Ordering::Release);
            // After success the node is not accessed (Ordering 3).
            match node.state.compare_exchange_weak(seen, stage, release, Ordering::Acquire) {
                Ok(_) if seen & (SLEEPS | WAKER) == 0 => return (stage, None),
                Ok(_) => {
                    // SAFETY: the owner has not taken the slot back since `seen`, so the halves are
                    // of one waker, and settling made it ours.
                    let waker = halves.map(|halves| unsafe { waker_of(halves) });
                    let sleeper = (seen & SLEEPS != 0).then_some(sleeper);
                    return (stage, Some(Wakeup { sleeper, waker }));
                }
                Err(now) => seen = now,
            }
        }
    }
}

// Methods for nodes in the queue.
impl Node {
    /// Whether the owner cancelled the node.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Relaxed) & CANCEL != 0
    }

    /// Whether the owner is present.
    #[inline]
    pub(super) fn is_present(&self) -> bool {
        self.state.load(Ordering::Relaxed) & PRESENT != 0
    }

    /// Hands the bus and the queue to the owner if it is still present. Returns `Some` with the
    /// word to wake it by, if it sleeps; from then on bus and queue are no longer the caller's.
    ///
    /// # Safety
    /// The node is queued. The caller holds the bus and keeps no reference into the queue.
    pub(super) unsafe fn hand_over(node: *const Node) -> Option<Option<*const AtomicU32>> {
        // SAFETY: a queued node is alive.
        let state = unsafe { &raw const (*node).state };
        // SAFETY: likewise alive.
        let word = unsafe { &*state };
        let mut seen = word.load(Ordering::Relaxed);
        while seen & PRESENT != 0 {
            let handed = seen | SERVE;
            match word.compare_exchange_weak(seen, handed, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Some((seen & SLEEPS != 0).then_some(state)),
                Err(now) => seen = now,
            }
        }
        None
    }
}
