//! The turn of a future: offered, until the future is polled.
//!
//! # How it works
//! A thread that is given the bus goes on at once. A future goes on when its task is polled, which
//! may be late, and on the very thread that waits meanwhile to get another node back: so a future is
//! not made the holder. The bus is *offered* to it: the word stays [`HELD`] and has [`OFFERED`]
//! beside it, and whoever clears that is the holder. The future does it when it is polled
//! ([`Bus::claim`]). Who wants a node out of the queue takes the offer back
//! ([`Bus::take_offer_back`]), puts its node first in the queue again, gets the other out, and
//! runs the queue, which makes the offer again.
//!
//! # Ordering
//! 1. An offer is made only while nobody wants a node out: who does so later sees the offer.
//! 2. The node is settled before [`OFFERED`] is set, and nothing of it is touched afterwards: who has
//!    cleared the tag has all that was done to the node behind him.
//! 3. The owner of a granted node does not leave before it has the bus, or the node is queued again.
//!    Where it finds no offer, that is about to be made, or was taken back.
//! 4. Between two looks of an owner its offer may be taken back and made to another. So who has
//!    claimed an offer looks whose it was, and leaves another's as it was.
//!
//! # Safety
//! Who clears the tag is the holder of the bus, one at a time.
#![allow(unsafe_code, reason = "an offer makes a holder, and its node lies with its owner")]

use core::ptr;

use super::Bus;
use super::atomic::Ordering;
use super::lock::{BACKLOG, Held, OFFERED, SWEEP, tagged, tags, untagged};
use super::node::Node;

impl<C: ?Sized> Held<'_, C> {
    /// Offers the bus to the future behind `node`, which is out of the queue.
    pub(super) fn offer(mut self, node: *const Node) {
        let bus = self.bus();
        self.queue(|queue| queue.offered = node);
        // 2.
        // SAFETY: it was queued, is in no queue, and its owner waits for the offer.
        unsafe { Node::settle_granted(node, bus.platform) };
        self.make_offer();
    }

    /// Sets the tag. (1.)
    fn make_offer(mut self) {
        let bus = self.bus();
        let mut seen = bus.word.load(Ordering::Relaxed);
        loop {
            if tags(seen) & SWEEP != 0 {
                self.gather();
                seen = bus.word.load(Ordering::Relaxed);
                continue;
            }
            let backlog = if self.queue(|queue| queue.is_empty()) { 0 } else { BACKLOG };
            let wanted = tagged(seen, OFFERED | backlog);
            match bus.word.compare_exchange_weak(seen, wanted, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return self.pass_on(),
                Err(now) => seen = now,
            }
        }
    }

    /// Puts the node that the bus was offered to first in the queue.
    pub(super) fn queue_offered(&mut self) {
        let node = self.queue(|queue| core::mem::replace(&mut queue.offered, ptr::null()));
        // SAFETY: its owner waits for the offer or for this. (3.)
        unsafe { &*node }.set_queued_again();
        self.queue(|queue| {
            // SAFETY: it is queued, and in no list.
            unsafe { queue.add_first(node) };
        });
    }
}

impl<C: ?Sized> Bus<C> {
    /// Takes an offer, whosever it is: the caller is the holder then.
    fn take_offer(&self) -> Option<Held<'_, C>> {
        let mut seen = self.word.load(Ordering::Relaxed);
        while tags(seen) & OFFERED != 0 {
            let wanted = untagged(seen, OFFERED);
            match self.word.compare_exchange_weak(
                seen,
                wanted,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                // SAFETY: the tag was set, and we cleared it.
                Ok(_) => return Some(unsafe { self.held() }),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// The bus, for the owner of `node`, which is granted. `None` if the offer is not made yet, or was
    /// taken back.
    pub(super) fn claim(&self, node: &Node) -> Option<Held<'_, C>> {
        let mut held = self.take_offer()?;
        // 4.
        let mine = held.queue(|queue| ptr::eq(queue.offered, node));
        if !mine {
            held.make_offer();
            return None;
        }
        held.queue(|queue| queue.offered = ptr::null());
        node.set_free();
        Some(held)
    }
}
