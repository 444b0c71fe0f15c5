//! A place in the bus's queue: what is to be run, for whom, and how the owner is told.
//!
//! # How it works
//! A node belongs to its owner until it is pushed, then to whoever tends the queue, as an
//! [`Entry`], until it is settled, and to the owner again afterwards. Its state word says which,
//! and carries what the two have to tell each other meanwhile, so that settling is one atomic.
//!
//! An owner is *present* while a thread of its waits, or its future is inside `poll`: only then it
//! can be given the bus. A future that was woken and not polled yet holds nothing.
//!
//! The waker lies in two atomics. Who settles a node reads both, and settles by a compare-and-swap
//! that fails if they were changed meanwhile: the owner takes the slot back, counting
//! [`VERSION`], before it puts another waker in. So neither ever waits for the other.
//!
//! # Ordering
//! 1. Pushing is a release (by the bus word): whoever gathers the node sees its task.
//! 2. Settling is a release, and every look that finds a settled node an acquire: the owner sees
//!    the outcome and the bytes received.
//! 3. Once settled, nothing of the node may be used but the address of its state, to wake who
//!    sleeps there: the node may be gone.
//!
//! # Safety
//! [`Node::task`] and [`Node::next`] are touched by whoever the node belongs to, as above.
#![allow(unsafe_code, reason = "a node's fields belong to its owner or to an entry in turn")]

use core::ptr;
use core::task::{Context, Poll, RawWakerVTable, Waker};

use super::atomic::{AtomicPtr, AtomicU32, Cell, Ordering};
use super::callback::Callback;
use super::statistics::Path;
use crate::controller::{Program, Unfinished};
use crate::spi::{MessageError, Transfer};

/// The owner's: never pushed, or fetched after it was settled.
const FREE: u32 = 0;
/// In the queue, or on the wire.
const QUEUED: u32 = 1;
/// Settled: it ran, and the outcome is there.
const DONE: u32 = 2;
/// Settled: the bus is the owner's.
const GRANTED: u32 = 3;
/// Settled: it is out of the queue and did not run.
const REMOVED: u32 = 4;
/// The bits of the above.
const STAGE: u32 = 7;
/// A thread sleeps and is to be woken.
const SLEEPS: u32 = 1 << 3;
/// The waker's slot is filled.
const WAKER: u32 = 1 << 4;
/// The owner wants it out.
const CANCEL: u32 = 1 << 5;
/// The bus is the owner's, who is to serve the queue, this node included.
const SERVE: u32 = 1 << 6;
/// The owner is there and can be given the bus.
const PRESENT: u32 = 1 << 7;
/// One change of the waker's slot; the bits above count them.
const VERSION: u32 = 1 << 8;

/// What the owner of a node finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing is asked of it.
    Free,
    /// Not settled yet.
    Queued,
    /// It ran.
    Done,
    /// The bus is the owner's.
    Granted,
    /// It is out of the queue and did not run: cancelled, or a future whose turn has come, which
    /// tries again.
    Removed,
    /// The bus is the owner's, who serves the queue; the node is still in it.
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

/// What a node asks for: that a message is run, or, without a program, the bus itself.
pub(super) struct Task {
    pub(super) program: *const Program,
    pub(super) message: *mut [Transfer<'static>],
    pub(super) context: usize,
    pub(super) callback: Option<Callback>,
    /// How it ended; until it has, how it ends if running it panics.
    pub(super) ran: Result<usize, Unfinished>,
    pub(super) path: Path,
    pub(super) priority: u8,
    /// How many younger messages went before it.
    pub(super) overtaken: u8,
}

impl Task {
    /// The owner's turn on the bus.
    pub(super) const fn turn(context: usize) -> Self {
        Self {
            program: ptr::null(),
            message: ptr::slice_from_raw_parts_mut(ptr::null_mut(), 0),
            context,
            callback: None,
            ran: Err(Unfinished::ABORTED),
            path: Path::Async,
            priority: 0,
            overtaken: 0,
        }
    }

    /// How it ended, for its owner, whose message it is again, or for its callback.
    #[inline]
    pub(super) fn outcome(&self) -> Result<usize, MessageError> {
        // SAFETY: it ran or will not: nobody changes the message.
        self.ran.map_err(|unfinished| unfinished.explain(unsafe { &*self.message }))
    }

    /// Whether it asks for the bus itself.
    pub(super) fn is_turn(&self) -> bool {
        self.program.is_null()
    }

    /// Whether it asks that a message is run.
    pub(super) fn is_message(&self) -> bool {
        !self.is_turn()
    }
}

/// A waker's two halves, or halves of two.
type Halves = (*const (), *const RawWakerVTable);

fn halves_of(waker: &Waker) -> Halves {
    (waker.data(), waker.vtable())
}

/// # Safety
/// They are of one waker, which [`Slot::put`] forgot, and this makes it once.
unsafe fn waker_of((data, vtable): Halves) -> Waker {
    // SAFETY: a waker's vtable is `'static`.
    let vtable = unsafe { &*vtable };
    // SAFETY: the caller's promise.
    unsafe { Waker::new(data, vtable) }
}

/// Where a waker lies in two words.
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

/// A place in the queue. Aligned so that the bus word has room for its tags.
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

    /// Where it stands. (Ordering 2.)
    #[inline]
    pub(super) fn stage(&self) -> Stage {
        stage_of(self.state.load(Ordering::Acquire))
    }

    /// Makes it ready to be pushed; nobody else knows it yet.
    #[inline]
    pub(super) fn set_queued(&self) {
        self.state.store(QUEUED, Ordering::Relaxed);
    }

    /// The same, of an owner that is present.
    #[inline]
    pub(super) fn set_queued_present(&self) {
        self.state.store(QUEUED | PRESENT, Ordering::Relaxed);
    }

    /// The owner takes note of how it was settled; it can be pushed again.
    #[inline]
    pub(super) fn set_free(&self) {
        self.state.store(FREE, Ordering::Relaxed);
    }

    /// The owner is present from now on. Returns how it stood.
    pub(super) fn set_present(&self) -> Stage {
        stage_of(self.state.fetch_or(PRESENT, Ordering::Acquire))
    }

    /// The owner is not present any longer. Returns how it stood: what it was given, it has.
    pub(super) fn set_absent(&self) -> Stage {
        stage_of(self.state.fetch_and(!PRESENT, Ordering::Acquire))
    }

    /// The owner wants it out, and is present until it is. Returns how it stood.
    pub(super) fn set_cancelled(&self) -> Stage {
        stage_of(self.state.fetch_or(CANCEL | PRESENT, Ordering::Acquire))
    }

    /// The owner, who found [`Stage::Serve`], is the holder.
    pub(super) fn accept_bus(&self) {
        // What the holder before did with the bus comes with this acquire.
        self.state.fetch_and(!SERVE, Ordering::Acquire);
    }

    /// Says that the owner sleeps, unless it is settled or given the bus meanwhile: then `None`,
    /// else the word to sleep on and its value.
    pub(super) fn set_asleep(&self) -> Option<(&AtomicU32, u32)> {
        let seen = self.state.load(Ordering::Acquire);
        let asleep = seen | SLEEPS;
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let said = stage_of(seen) == Stage::Queued
            && (seen == asleep
                || self.state.compare_exchange(seen, asleep, success, failure).is_ok());
        said.then_some((&self.state, asleep))
    }

    /// Looks whether it is settled, and if not has the task of `cx` woken when it is.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Stage> {
        // Both are dropped on the way out, when nothing is half done: that is user code.
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
                // SAFETY: without `WAKER` the slot is the owner's, and what lies in it was put
                // there above or by an earlier poll.
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

/// The right to a queued node, of whoever took it out of the queue: until it is settled or queued
/// again its task is the entry's, and the node and its message are alive.
pub(super) struct Entry {
    node: *const Node,
}

/// A message of the queue.
pub(super) struct Job<'j> {
    pub(super) program: &'j Program,
    pub(super) message: &'j mut [Transfer<'static>],
    pub(super) path: Path,
}

/// Who is to be woken, now that a node is settled.
#[must_use = "somebody waits for it"]
pub(super) struct Wakeup {
    /// The word that a thread sleeps on. Its address alone: the node may be gone.
    pub(super) sleeper: Option<*const AtomicU32>,
    pub(super) waker: Option<Waker>,
}

impl Entry {
    /// # Safety
    /// The node is queued and in no list, and the caller has no other entry of it.
    pub(super) unsafe fn new(node: *const Node) -> Self {
        Self { node }
    }

    /// The node, which is the caller's to keep track of.
    pub(super) fn into_node(self) -> *const Node {
        self.node
    }

    fn node(&self) -> &Node {
        // SAFETY: of the type: it is queued, hence alive.
        unsafe { &*self.node }
    }

    /// Lets `f` see the task.
    #[inline]
    pub(super) fn with_task<R>(&mut self, f: impl FnOnce(&mut Task) -> R) -> R {
        self.node().task.with_mut(|task| {
            // SAFETY: of the type: it is the entry's, which is borrowed.
            f(unsafe { &mut *task })
        })
    }

    /// Whether it asks for the bus itself.
    pub(super) fn is_turn(&self) -> bool {
        self.node().task.with(|task| {
            // SAFETY: of the type: it is the entry's.
            unsafe { (*task).is_turn() }
        })
    }

    /// The message.
    #[inline]
    pub(super) fn job(&mut self) -> Job<'_> {
        let (program, message, path) =
            self.with_task(|task| (task.program, task.message, task.path));
        // SAFETY: of the type: its owner keeps it until the node is settled.
        let program = unsafe { &*program };
        // SAFETY: likewise, and touches it not.
        let message = unsafe { &mut *message };
        Job { program, message, path }
    }

    /// Whether the owner wants it out.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        self.node().is_cancelled()
    }

    /// Whether the owner can be given the bus.
    pub(super) fn is_present(&self) -> bool {
        self.node().is_present()
    }

    /// It ran.
    #[inline]
    pub(super) fn settle_done(self) -> Option<Wakeup> {
        self.settle(|_| DONE).1
    }

    /// It is out and does not run.
    pub(super) fn settle_removed(self) -> Option<Wakeup> {
        self.settle(|_| REMOVED).1
    }

    /// Its turn has come: an owner that is present is granted the bus, another tries again. Whether
    /// it was granted: then the bus, and the queue, are not the caller's any more.
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
            // From a success on nothing of the node is used. (Ordering 3.)
            match node.state.compare_exchange_weak(seen, stage, release, Ordering::Acquire) {
                Ok(_) if seen & (SLEEPS | WAKER) == 0 => return (stage, None),
                Ok(_) => {
                    // SAFETY: the owner has not taken the slot back since `seen`, so the halves are
                    // of one waker, and with the node settled it is ours.
                    let waker = halves.map(|halves| unsafe { waker_of(halves) });
                    let sleeper = (seen & SLEEPS != 0).then_some(sleeper);
                    return (stage, Some(Wakeup { sleeper, waker }));
                }
                Err(now) => seen = now,
            }
        }
    }
}

// What the queue does with the nodes in it.
impl Node {
    /// Whether the owner wants it out.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Relaxed) & CANCEL != 0
    }

    /// Whether the owner can be given the bus.
    #[inline]
    pub(super) fn is_present(&self) -> bool {
        self.state.load(Ordering::Relaxed) & PRESENT != 0
    }

    /// Gives the bus and the queue to the owner if it is still present: `Some` with the word to
    /// wake it by, if it sleeps. From then on neither is the caller's.
    ///
    /// # Safety
    /// The node is queued, and the caller holds the bus and refers to nothing of the queue.
    pub(super) unsafe fn hand_over(node: *const Node) -> Option<Option<*const AtomicU32>> {
        // SAFETY: a queued node is alive.
        let state = unsafe { &raw const (*node).state };
        // SAFETY: likewise.
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
