//! A place in the bus's queue: what is to be run, for whom, and how that one is told.
//!
//! # How it works
//! A node belongs to its owner until it is pushed, to the holder of the bus from then until it is
//! settled, and to the owner again afterwards. Its state word says which, and carries what owner
//! and holder have to tell each other meanwhile, so that settling a node is one atomic.
//!
//! # Ordering
//! 1. Pushing is a release (by the bus word): the holder sees the task.
//! 2. Settling is a release, and every look that finds a settled node an acquire: the owner sees
//!    the outcome and the bytes received.
//! 3. Once settled, the holder may use nothing of the node but the address of its state, to wake
//!    who sleeps there: the node may be gone. A waker is therefore taken out before.
//!
//! # Safety
//! [`Node::task`] and [`Node::next`] are touched by whoever the node belongs to, as above.
#![allow(unsafe_code, reason = "a node's fields belong to its owner or to the holder in turn")]

use core::task::{Context, Poll, Waker};

use super::atomic::{AtomicU32, Cell, Ordering};
use super::platform::Platform;
use super::queued::Callback;
use super::statistics::Path;
use crate::controller::{Program, Unfinished};
use crate::spi::{MessageError, Transfer};

/// The owner's: never pushed, or fetched after it was settled.
const FREE: u32 = 0;
/// The holder's.
const QUEUED: u32 = 1;
/// Settled: it ran, and the outcome is there.
const DONE: u32 = 2;
/// Settled: the bus is the owner's.
const GRANTED: u32 = 3;
/// Settled: it was taken out and did not run.
const REMOVED: u32 = 4;
/// The bits of the above.
const STAGE: u32 = 7;
/// A thread sleeps on the state.
const SLEEPS: u32 = 1 << 3;
/// The waker's slot is the holder's, and filled.
const WAKER: u32 = 1 << 4;
/// The owner wants it out.
const CANCEL: u32 = 1 << 5;
/// The holder is settling it and has the waker's slot for good.
const FINISHING: u32 = 1 << 6;
/// The bus is the owner's, who is to run the queue, this node included.
const PUMP: u32 = 1 << 7;
/// The owner is a thread that waits for it, and can be given the queue to run.
const WAITS: u32 = 1 << 8;

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
    /// It was taken out.
    Removed,
    /// The bus is the owner's, who runs the queue; the node is still in it.
    Pump,
}

/// What the holder does when the node's turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Runs its message.
    Planned,
    /// Has the controller plan its message, and runs it.
    Unplanned,
    /// Gives the bus to its owner, a thread that waits.
    Turn,
    /// Offers the bus to its owner, a future.
    Offer,
}

/// What a node asks for.
pub(super) struct Task {
    pub(super) program: *const Program,
    pub(super) message: *mut [Transfer<'static>],
    pub(super) context: usize,
    pub(super) callback: Option<Callback>,
    pub(super) ran: Result<usize, Unfinished>,
    pub(super) refused: Option<MessageError>,
    pub(super) kind: Kind,
    pub(super) path: Path,
    pub(super) priority: u8,
    /// How many younger messages went before it.
    pub(super) overtaken: u8,
}

impl Task {
    /// How it ended, for its owner, whose message it is again.
    #[inline]
    pub(super) fn outcome(&self) -> Result<usize, MessageError> {
        match self.ran {
            Ok(len) => Ok(len),
            Err(unfinished) => Err(self.explain(unfinished)),
        }
    }

    #[cold]
    #[inline(never)]
    fn explain(&self, unfinished: Unfinished) -> MessageError {
        // SAFETY: settled.
        self.refused.unwrap_or_else(|| unfinished.explain(unsafe { &*self.message }))
    }

    pub(super) fn refuse(&mut self, refused: MessageError) {
        self.refused = Some(refused);
        self.ran = Err(Unfinished::os(0, 0));
    }

    /// The owner's turn on the bus.
    pub(super) const fn turn(context: usize) -> Self {
        Self {
            program: core::ptr::null(),
            message: core::ptr::slice_from_raw_parts_mut(core::ptr::null_mut(), 0),
            context,
            callback: None,
            ran: Ok(0),
            refused: None,
            kind: Kind::Turn,
            path: Path::Async,
            priority: 0,
            overtaken: 0,
        }
    }
}

/// A place in the queue. Aligned so that the bus word has room for its tags.
#[repr(align(32))]
pub(super) struct Node {
    state: AtomicU32,
    pub(super) next: Cell<*const Node>,
    pub(super) task: Cell<Task>,
    waker: Cell<Option<Waker>>,
}

impl Node {
    pub(super) fn new(task: Task) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            next: Cell::new(core::ptr::null()),
            task: Cell::new(task),
            waker: Cell::new(None),
        }
    }

    fn stage_of(state: u32) -> Stage {
        match state & STAGE {
            QUEUED if state & PUMP != 0 => Stage::Pump,
            QUEUED => Stage::Queued,
            DONE => Stage::Done,
            GRANTED => Stage::Granted,
            REMOVED => Stage::Removed,
            _ => Stage::Free,
        }
    }

    /// Where it stands. (2.)
    #[inline]
    pub(super) fn stage(&self) -> Stage {
        Self::stage_of(self.state.load(Ordering::Acquire))
    }

    // The owner's.

    /// Makes it ready to be pushed; nobody else knows it yet.
    #[inline]
    pub(super) fn set_queued(&self) {
        self.state.store(QUEUED, Ordering::Relaxed);
    }

    /// The same, by a thread that waits for it.
    #[inline]
    pub(super) fn set_queued_and_waited_for(&self) {
        self.state.store(QUEUED | WAITS, Ordering::Relaxed);
    }

    /// A thread waits for it from now on. Returns how it stood.
    pub(super) fn set_waited_for(&self) -> Stage {
        Self::stage_of(self.state.fetch_or(WAITS, Ordering::Acquire))
    }

    /// Takes note of how it was settled; it can be pushed again.
    #[inline]
    pub(super) fn set_free(&self) {
        self.state.store(FREE, Ordering::Relaxed);
    }

    /// Wants it out, and waits for that. Returns how it stood.
    pub(super) fn set_cancelled(&self) -> Stage {
        Self::stage_of(self.state.fetch_or(CANCEL | WAITS, Ordering::Acquire))
    }

    /// Waits until it is settled or the queue is the owner's to run. `meanwhile` is called between
    /// looks and says whether the thread may sleep.
    pub(super) fn wait(&self, platform: &dyn Platform, meanwhile: &dyn Fn() -> bool) -> Stage {
        let mut spins = platform.spins();
        loop {
            let state = self.state.load(Ordering::Acquire);
            let stage = Self::stage_of(state);
            if stage == Stage::Pump {
                // What the one before us did with the bus comes with this acquire.
                self.state.fetch_and(!PUMP, Ordering::Acquire);
                return Stage::Pump;
            }
            if stage != Stage::Queued {
                return stage;
            }
            if !meanwhile() || spins > 0 {
                spins = spins.saturating_sub(1);
                platform.relax();
                continue;
            }
            let asleep = state | SLEEPS;
            if state == asleep
                || self
                    .state
                    .compare_exchange(state, asleep, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                platform.wait(&self.state, asleep);
            }
        }
    }

    /// Looks whether it is settled, and if not has the task of `cx` woken when it is.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Stage> {
        loop {
            let state = self.state.load(Ordering::Acquire);
            let stage = Self::stage_of(state);
            if stage != Stage::Queued {
                return Poll::Ready(stage);
            }
            if state & FINISHING != 0 {
                // The holder is about to wake whom we told last; ours has to come back by itself.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if state & WAKER != 0 {
                // Take the slot back to see whose waker it is. Nobody but us sets the bit.
                let _ = self.state.compare_exchange(
                    state,
                    state & !WAKER,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
                continue;
            }
            self.waker.with_mut(|slot| {
                // SAFETY: without WAKER and FINISHING the slot is the owner's (module, Safety).
                let slot = unsafe { &mut *slot };
                match slot {
                    Some(waker) => waker.clone_from(cx.waker()),
                    None => *slot = Some(cx.waker().clone()),
                }
            });
            let told = self.state.compare_exchange(
                state,
                state | WAKER,
                Ordering::Release,
                Ordering::Relaxed,
            );
            if told.is_ok() {
                return Poll::Pending;
            }
        }
    }

    // The holder's.

    /// What was granted was taken back by the holder, who queues it again.
    pub(super) fn set_queued_again(&self) {
        self.state.store(QUEUED, Ordering::Release);
    }

    /// Whether the queue can be handed to its owner.
    #[inline]
    pub(super) fn is_waited_for(&self) -> bool {
        self.state.load(Ordering::Relaxed) & WAITS != 0
    }

    /// Whether the owner wants it out.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Relaxed) & CANCEL != 0
    }

    /// Gives the bus and the queue to the owner, a thread that waits.
    ///
    /// # Safety
    /// The node is queued, and the caller, who holds the bus, will not touch it or the bus again.
    pub(super) unsafe fn hand_pump(node: *const Node, platform: &dyn Platform) {
        // SAFETY: a queued node is alive.
        let state = unsafe { &raw const (*node).state };
        // SAFETY: likewise.
        let before = unsafe { &*state }.fetch_or(PUMP, Ordering::Release);
        if before & SLEEPS != 0 {
            platform.wake(state);
        }
    }

    /// Settles the node, and tells its owner.
    ///
    /// # Safety
    /// The node was queued, is in no queue any more, and the caller will not touch it again.
    unsafe fn settle(node: *const Node, stage: u32, platform: &dyn Platform) {
        // SAFETY: a node that is not settled is alive.
        let state_at = unsafe { &raw const (*node).state };
        // SAFETY: likewise.
        let state = unsafe { &*state_at };
        let mut seen = state.load(Ordering::Relaxed);
        while seen & WAKER == 0 {
            match state.compare_exchange_weak(seen, stage, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => {
                    if seen & SLEEPS != 0 {
                        platform.wake(state_at);
                    }
                    return;
                }
                Err(now) => seen = now,
            }
        }
        let taken = state.fetch_or(FINISHING, Ordering::Acquire) & WAKER != 0;
        // SAFETY: likewise.
        let slot = unsafe { &(*node).waker };
        let waker = taken
            .then(|| {
                slot.with_mut(|slot| {
                    // SAFETY: FINISHING over WAKER makes the slot the holder's.
                    unsafe { &mut *slot }.take()
                })
            })
            .flatten();
        // 3.
        let before = state.swap(stage, Ordering::Release);
        if before & SLEEPS != 0 {
            platform.wake(state_at);
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// It ran.
    ///
    /// # Safety
    /// As [`Node::settle`].
    #[inline]
    pub(super) unsafe fn settle_done(node: *const Node, platform: &dyn Platform) {
        // SAFETY: the caller's promise.
        unsafe { Self::settle(node, DONE, platform) }
    }

    /// The bus is its owner's.
    ///
    /// # Safety
    /// As [`Node::settle`].
    pub(super) unsafe fn settle_granted(node: *const Node, platform: &dyn Platform) {
        // SAFETY: the caller's promise.
        unsafe { Self::settle(node, GRANTED, platform) }
    }

    /// It is out and did not run.
    ///
    /// # Safety
    /// As [`Node::settle`].
    pub(super) unsafe fn settle_removed(node: *const Node, platform: &dyn Platform) {
        // SAFETY: the caller's promise.
        unsafe { Self::settle(node, REMOVED, platform) }
    }
}
