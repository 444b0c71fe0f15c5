//! The queue: first in, first out, unless a device has priority.
//!
//! # How it works
//! A singly linked list through the nodes. While no queued node has a priority above 0, the oldest
//! is next. Otherwise the oldest of the highest priority is next, but
//! 1. an older node of the same context goes before it, so that a context's messages keep their
//!    order;
//! 2. a node that was overtaken [`OVERTAKEN_MAX`] times goes first, so that none starves.
//!
//! # Safety
//! Every [`ListedNode`] node is queued, hence alive. Its `next` and `task` belong to the queue, which
//! one thread at a time owns.
#![allow(unsafe_code, reason = "an intrusive list of nodes that lie with their owners")]

use core::iter;
use core::ptr;

use super::node::{Entry, Node, Task};

/// How many messages of others a holder runs before it hands the bus over.
pub(super) const SERVE_MAX: usize = 16;

/// How many younger messages may go before a node.
pub(super) const OVERTAKEN_MAX: u8 = 16;

/// A node in the list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ListedNode(*const Node);

impl ListedNode {
    fn node(&self) -> &Node {
        // SAFETY: module, Safety.
        unsafe { &*self.0 }
    }

    /// Lets `f` see the task.
    fn with_task<R>(self, f: impl FnOnce(&mut Task) -> R) -> R {
        self.node().task.with_mut(|task| {
            // SAFETY: module, Safety; `f` cannot reach the task otherwise.
            f(unsafe { &mut *task })
        })
    }

    /// The next, younger one.
    fn next(self) -> Option<ListedNode> {
        let next = self.node().next.with(|next| {
            // SAFETY: module, Safety.
            unsafe { *next }
        });
        (!next.is_null()).then_some(ListedNode(next))
    }

    fn set_next(self, to: Option<ListedNode>) {
        let to = to.map_or(ptr::null(), |to| to.0);
        self.node().next.with_mut(|next| {
            // SAFETY: module, Safety.
            unsafe { *next = to }
        });
    }

    fn is_urgent(self) -> bool {
        self.with_task(|task| task.priority) > 0
    }
}

/// The queue (see the module).
pub(super) struct Queue {
    ends: Option<Ends>,
    /// Nodes with a priority above 0.
    urgent: usize,
}

/// The oldest and the youngest.
#[derive(Clone, Copy)]
struct Ends {
    head: ListedNode,
    tail: ListedNode,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { ends: None, urgent: 0 }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// Whether a node of priority above 0 is queued.
    #[inline]
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent > 0
    }

    fn iter(&self) -> impl Iterator<Item = ListedNode> + use<> {
        iter::successors(self.ends.map(|ends| ends.head), |listed| listed.next())
    }

    /// Adds pushed nodes: a list from the youngest to the oldest. Returns the oldest of them.
    ///
    /// # Safety
    /// The nodes are queued, and in no other list.
    pub(super) unsafe fn add_pushed(&mut self, youngest: *const Node) -> Option<ListedNode> {
        if youngest.is_null() {
            return None;
        }
        let tail = ListedNode(youngest);
        let (mut first, mut rest) = (None, Some(tail));
        while let Some(node) = rest {
            rest = node.next();
            node.set_next(first);
            first = Some(node);
            self.urgent += usize::from(node.is_urgent());
        }
        let head = match self.ends {
            Some(ends) => {
                ends.tail.set_next(first);
                ends.head
            }
            None => first.unwrap_or(tail),
        };
        self.ends = Some(Ends { head, tail });
        first
    }

    /// Whether a node from `oldest` on is as `is_it` says.
    pub(super) fn any_from(oldest: Option<ListedNode>, is_it: impl Fn(&Task) -> bool) -> bool {
        iter::successors(oldest, |listed| listed.next())
            .any(|node| node.with_task(|task| is_it(task)))
    }

    /// Whether any node is as `is_it` says.
    pub(super) fn any(&self, is_it: impl Fn(&Task) -> bool) -> bool {
        Self::any_from(self.ends.map(|ends| ends.head), is_it)
    }

    /// Adds a node at the end.
    pub(super) fn add(&mut self, entry: Entry) {
        let node = entry.into_node();
        ListedNode(node).set_next(None);
        // SAFETY: type `Entry`: the node is queued, and was in no list.
        let _ = unsafe { self.add_pushed(node) };
    }

    /// Removes the node that is next.
    pub(super) fn take_next(&mut self) -> Option<Entry> {
        let head = self.ends?.head;
        if self.urgent == 0 || head.with_task(|task| task.overtaken) >= OVERTAKEN_MAX {
            return Some(self.unlink(None, head));
        }
        let context = self.most_urgent_context();
        // The oldest node of that context: it may be older than the urgent one.
        let (mut before, mut node) = (None, head);
        while node.with_task(|task| task.context) != context {
            node.with_task(|task| task.overtaken = task.overtaken.saturating_add(1));
            (before, node) = (Some(node), node.next()?);
        }
        Some(self.unlink(before, node))
    }

    /// The context of the oldest node of the highest priority; 0 if the queue is empty.
    fn most_urgent_context(&self) -> usize {
        let (mut priority, mut context) = (None, 0);
        for node in self.iter() {
            node.with_task(|task| {
                if priority.is_none_or(|priority| task.priority > priority) {
                    (priority, context) = (Some(task.priority), task.context);
                }
            });
        }
        context
    }

    /// Removes the oldest node for which `is_it` returns true.
    pub(super) fn take_if(&mut self, is_it: impl Fn(&Node, &Task) -> bool) -> Option<Entry> {
        let mut before = None;
        for node in self.iter() {
            if node.with_task(|task| is_it(node.node(), task)) {
                return Some(self.unlink(before, node));
            }
            before = Some(node);
        }
        None
    }

    /// Counts the nodes for which `is_it` returns true.
    pub(super) fn count(&self, is_it: impl Fn(&Task) -> bool) -> usize {
        self.iter().filter(|node| node.with_task(|task| is_it(task))).count()
    }

    /// The oldest node whose owner is present, to be [handed](Node::hand_over) the bus.
    pub(super) fn first_present(&self) -> Option<*const Node> {
        self.iter().find(|listed| listed.node().is_present()).map(|listed| listed.0)
    }

    fn unlink(&mut self, before: Option<ListedNode>, node: ListedNode) -> Entry {
        let next = node.next();
        if let Some(before) = before {
            before.set_next(next);
        }
        if let Some(ends) = self.ends {
            let head = if before.is_some() { Some(ends.head) } else { next };
            let tail = if next.is_some() { Some(ends.tail) } else { before };
            self.ends = head.zip(tail).map(|(head, tail)| Ends { head, tail });
        }
        self.urgent -= usize::from(node.is_urgent());
        // SAFETY: the node is queued, and no longer in the list.
        unsafe { Entry::new(node.0) }
    }
}

#[cfg(test)]
impl Queue {
    /// [`Queue::add`] of a node that outlives the queue.
    pub(super) fn add_for_test(&mut self, node: &Node) {
        // SAFETY: tests keep their nodes, and add each to one queue.
        self.add(unsafe { Entry::new(node) });
    }

    /// [`Queue::add_pushed`] of nodes, the oldest first.
    pub(super) fn add_pushed_for_test(&mut self, nodes: &[Node]) {
        let mut youngest = None;
        for node in nodes {
            ListedNode(node).set_next(youngest);
            youngest = Some(ListedNode(node));
        }
        // SAFETY: tests keep their nodes.
        let _ = unsafe { self.add_pushed(youngest.map_or(ptr::null(), |node| node.0)) };
    }
}
