//! The bus word: the owner of the wire, the owner of the queue, and the last node pushed.
//!
//! # How it works
//! The word is the address of the node pushed last, with tags in its low bits:
//!
//! | tag | means |
//! |---|---|
//! | [`HELD`] | the wire is owned: its owner may drive the controller |
//! | [`TENDED`] | the queue is owned: its owner takes pushed nodes into it and removes nodes from it |
//! | [`BACKLOG`] | the queue is not empty; a note for its next owner |
//! | [`SWEEP`] | a node was cancelled; the tender looks for it before it releases the queue |
//! | [`INHERITS`] | always set on a bus with [priority inheritance](super::inherit) |
//!
//! A *holder* owns both. A [lock](super::Locked) owns the wire only, so that other threads can
//! remove their messages from the queue behind it. A thread that owns the queue only is a *tender*.
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
//! A push changes only the address, in any state. A push that may acquire the bus sets [`HELD`] and
//! [`TENDED`] in the same step if both are clear. No other operation than those in the diagram
//! changes the two tags.
//!
//! On a bus with priority inheritance, two other words guard the wire and the queue, and this word
//! only collects pushed messages. [`HELD`] is then always set, and [`TENDED`] says that a thread
//! serves the queue.
//!
//! # Ordering
//! 1. Setting [`HELD`] or [`TENDED`] is an acquire, clearing it a release: the next owner sees what
//!    the previous one did to the controller or the queue.
//! 2. A push releases its node; taking the list acquires it.
//! 3. The word becomes idle only if nothing was pushed since the list was last taken and the queue
//!    is empty. An unconditional exchange would free the bus first and find the pushed messages
//!    afterwards: in between, a newcomer could overtake them, even one of the context that pushed
//!    them.

use core::mem;
use core::ptr;

use super::node::Node;

/// Tag: the wire is owned.
pub(super) const HELD: usize = 1;
/// Tag: the queue is owned.
pub(super) const TENDED: usize = 2;
/// Tag: the queue is not empty; a note for its next owner.
pub(super) const BACKLOG: usize = 4;
/// Tag: a queued node was cancelled.
pub(super) const SWEEP: usize = 8;
/// With inheritance, the tag of [`SWEEP`] means that turns are queued, and [`BACKLOG`] that
/// messages are.
pub(super) const TURNS: usize = SWEEP;
/// Tag, always set with inheritance: other words guard the wire and the queue.
pub(super) const INHERITS: usize = 16;
/// The tags that pushing and gathering leave unchanged.
pub(super) const RIGHTS: usize = HELD | TENDED | INHERITS;
const TAGS: usize = RIGHTS | BACKLOG | SWEEP;

const _: () = assert!(mem::align_of::<Node>() > TAGS, "a node's address leaves room for the tags");

/// A free bus with an empty queue.
pub(super) const IDLE: *mut Node = ptr::null_mut();
/// A holder, nothing pushed.
pub(super) const HOLDER: *mut Node = ptr::without_provenance_mut(HELD | TENDED);
/// A lock, nothing pushed.
pub(super) const LOCK: *mut Node = ptr::without_provenance_mut(HELD);
/// With inheritance: nothing is queued, and no thread serves the queue.
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

/// Whether neither the wire nor the queue is owned.
#[inline]
pub(super) fn is_free(word: *mut Node) -> bool {
    tags(word) & (HELD | TENDED) == 0
}

/// The word after its owner acquired the queue and `rights`. BACKLOG is cleared: the new owner
/// looks at the queue itself.
#[inline]
pub(super) fn tended(word: *mut Node, rights: usize) -> *mut Node {
    tagged(untagged(word, BACKLOG), rights | TENDED)
}
