//! The bus word: who has the wire, who has the queue, and what was pushed.
//!
//! # How it works
//! The word is the address of the node pushed last, with tags in its low bits:
//!
//! | tag | means |
//! |---|---|
//! | [`HELD`] | somebody has the wire: drives the controller, or may |
//! | [`TENDED`] | somebody has the queue: takes what was pushed into it, and out of it |
//! | [`BACKLOG`] | the queue is not empty, for whoever has it next |
//! | [`SWEEP`] | somebody wants a node out of the queue; whoever tends it looks before it stops |
//! | [`INHERITS`] | always, on a bus with [priority inheritance](super::inherit) |
//!
//! A *holder* has both. A [lock](super::Locked) has the wire alone, so that others can get their
//! messages out of the queue behind it; who does that is a *tender*.
//!
//! ```text
//!            acquire: sync, prepared, submit         hand over: to a thread that is present
//!          ┌────────────────────────────────┐        in the queue, which is the holder then
//!          │                                ▼                     ┌───┐
//!   idle or left ◄──── release ─────── HELD|TENDED ◄──────────────┘   │
//!    (BACKLOG)  ▲                        │    ▲   └──────────────────┘
//!     │    ▲    │                   park │    │ unpark: the lock is dropped,
//!     │    │    └─── lock, dropped ──┐   ▼    │ and something was pushed
//!     │    │       (nothing pushed)  │        │
//!     └────┼─────── lock ─────────► HELD ─────┘
//!          │                         │  ▲
//!          │                    tend │  │ tended
//!          │                         ▼  │
//!          │                    HELD|TENDED  (a lock, and a tender beside it)
//!          │                         │
//!          │                         │ the lock is dropped
//!          │                         ▼
//!          └── as a holder ──────  TENDED    (the tender has the wire too)
//! ```
//!
//! Pushing changes the address alone, in any state; a push that may take the bus does so in the
//! same step if neither [`HELD`] nor [`TENDED`] is set. Only the compare-and-swaps of the diagram
//! change the two.
//!
//! On a bus with priority inheritance the wire and the queue are guarded by two other words. The
//! word is the place where messages are pushed; [`HELD`] is always set, and [`TENDED`] says that
//! somebody serves the queue.
//!
//! # Ordering
//! 1. Whoever sets [`HELD`] or [`TENDED`] acquires; whoever clears it releases: the next has all
//!    that was done to the controller, or the queue.
//! 2. A push releases its node; taking the list acquires it.
//! 3. The word becomes idle only if nothing was pushed since the list was last taken and the queue
//!    is empty. An unconditional exchange would free the bus first and find the pushed messages
//!    then: in between a newcomer, of the very context that pushed one, could overtake them.

use core::mem;
use core::ptr;

use super::node::Node;

/// Tag: somebody has the wire.
pub(super) const HELD: usize = 1;
/// Tag: somebody has the queue.
pub(super) const TENDED: usize = 2;
/// Tag: the queue is not empty, for whoever has it next.
pub(super) const BACKLOG: usize = 4;
/// Tag: somebody wants a node out of the queue.
pub(super) const SWEEP: usize = 8;
/// With inheritance the same tag: turns are queued, and [`BACKLOG`] says that messages are.
pub(super) const TURNS: usize = SWEEP;
/// Tag, always set: wire and queue are guarded by other words.
pub(super) const INHERITS: usize = 16;
/// The tags that pushing and gathering leave as they are.
pub(super) const RIGHTS: usize = HELD | TENDED | INHERITS;
const TAGS: usize = RIGHTS | BACKLOG | SWEEP;

const _: () = assert!(mem::align_of::<Node>() > TAGS, "a node's address leaves room for the tags");

/// Nobody has the wire or the queue, and nothing is queued.
pub(super) const IDLE: *mut Node = ptr::null_mut();
/// A holder, and nothing else is said.
pub(super) const HOLDER: *mut Node = ptr::without_provenance_mut(HELD | TENDED);
/// A lock, and nothing else is said.
pub(super) const LOCK: *mut Node = ptr::without_provenance_mut(HELD);
/// With inheritance: nothing is queued, and nobody serves the queue.
pub(super) const INHERITED: *mut Node = ptr::without_provenance_mut(HELD | INHERITS);

#[inline]
pub(super) fn tags(word: *mut Node) -> usize {
    word.addr() & TAGS
}

/// The node pushed last.
#[inline]
pub(super) fn pushed(word: *mut Node) -> *const Node {
    word.map_addr(|address| address & !TAGS)
}

#[inline]
pub(super) fn tagged(word: *mut Node, tags: usize) -> *mut Node {
    word.map_addr(|address| address | tags)
}

#[inline]
pub(super) fn untagged(word: *mut Node, tags: usize) -> *mut Node {
    word.map_addr(|address| address & !tags)
}

/// Whether nobody has the wire or the queue.
#[inline]
pub(super) fn is_free(word: *mut Node) -> bool {
    tags(word) & (HELD | TENDED) == 0
}

/// The word with more rights taken, the queue's among them: what is in it need not be said any
/// longer.
#[inline]
pub(super) fn tended(word: *mut Node, rights: usize) -> *mut Node {
    tagged(untagged(word, BACKLOG), rights | TENDED)
}
