//! The holder's queue: first in, first out, unless a device has priority.
//!
//! # How it works
//! A singly linked list through the nodes. While no queued node has a priority above 0, the oldest
//! is next. Otherwise the oldest of the highest priority is next, but
//! 1. an older node of the same context goes before it: a context's messages keep their order;
//! 2. a node that was overtaken [`OVERTAKEN_MAX`] times goes before all: nobody starves.
//!
//! # Safety
//! Every node in the list is queued, hence alive, and its `next` and `task` are the holder's, who
//! is the only one to have the queue.
#![allow(unsafe_code, reason = "an intrusive list of nodes that lie with their owners")]

use core::ptr;

use super::node::{Node, Task};

/// How many younger messages may go before a node.
pub(super) const OVERTAKEN_MAX: u8 = 16;

/// See the module.
pub(super) struct Queue {
    head: *const Node,
    tail: *const Node,
    /// Nodes with a priority above 0.
    urgent: usize,
    /// Whom the bus is offered to; null if nobody.
    pub(super) offered: *const Node,
}

/// Lets `f` see a queued node's task.
pub(super) fn with_task<R>(node: *const Node, f: impl FnOnce(&mut Task) -> R) -> R {
    // SAFETY: module, Safety.
    let node = unsafe { &*node };
    node.task.with_mut(|task| {
        // SAFETY: module, Safety; `f` cannot reach the task otherwise.
        f(unsafe { &mut *task })
    })
}

fn next_of(node: *const Node) -> *const Node {
    // SAFETY: module, Safety.
    let node = unsafe { &*node };
    node.next.with(|next| {
        // SAFETY: module, Safety.
        unsafe { *next }
    })
}

fn set_next(node: *const Node, to: *const Node) {
    // SAFETY: module, Safety.
    let node = unsafe { &*node };
    node.next.with_mut(|next| {
        // SAFETY: module, Safety.
        unsafe { *next = to }
    });
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { head: ptr::null(), tail: ptr::null(), urgent: 0, offered: ptr::null() }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Whether somebody of priority above 0 waits.
    #[inline]
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent > 0
    }

    /// Adds what was pushed: a list from the youngest to the oldest.
    ///
    /// # Safety
    /// The nodes are queued, and in no other list.
    pub(super) unsafe fn add_pushed(&mut self, mut youngest: *const Node) {
        let last = youngest;
        let mut first = ptr::null();
        while !youngest.is_null() {
            let older = next_of(youngest);
            set_next(youngest, first);
            first = youngest;
            self.urgent += usize::from(with_task(youngest, |task| task.priority) > 0);
            youngest = older;
        }
        if first.is_null() {
            return;
        }
        if self.head.is_null() {
            self.head = first;
        } else {
            set_next(self.tail, first);
        }
        self.tail = last;
    }

    /// Adds one node at the end.
    ///
    /// # Safety
    /// As [`Queue::add_pushed`].
    pub(super) unsafe fn add(&mut self, node: *const Node) {
        set_next(node, ptr::null());
        // SAFETY: the caller's promise.
        unsafe { self.add_pushed(node) };
    }

    /// Adds one node before all others.
    ///
    /// # Safety
    /// As [`Queue::add_pushed`].
    pub(super) unsafe fn add_first(&mut self, node: *const Node) {
        set_next(node, self.head);
        if self.head.is_null() {
            self.tail = node;
        }
        self.head = node;
        self.urgent += usize::from(with_task(node, |task| task.priority) > 0);
    }

    /// Takes out who is next.
    pub(super) fn take_next(&mut self) -> Option<*const Node> {
        let head = self.head;
        if head.is_null() {
            return None;
        }
        if self.urgent == 0 || with_task(head, |task| task.overtaken) >= OVERTAKEN_MAX {
            self.unlink(ptr::null(), head);
            return Some(head);
        }
        let context = self.most_urgent_context();
        // 1.
        let (mut before, mut node) = (ptr::null(), head);
        while with_task(node, |task| task.context) != context {
            with_task(node, |task| task.overtaken = task.overtaken.saturating_add(1));
            (before, node) = (node, next_of(node));
        }
        self.unlink(before, node);
        Some(node)
    }

    /// Whose the oldest message of the highest priority is. The queue is not empty.
    fn most_urgent_context(&self) -> usize {
        let (mut node, mut priority, mut context) = (self.head, None, 0);
        while !node.is_null() {
            with_task(node, |task| {
                if priority.is_none_or(|priority| task.priority > priority) {
                    (priority, context) = (Some(task.priority), task.context);
                }
            });
            node = next_of(node);
        }
        context
    }

    /// Takes out the oldest node `is_it` says yes to.
    pub(super) fn take_if(&mut self, is_it: impl Fn(&Node, &Task) -> bool) -> Option<*const Node> {
        let (mut before, mut node) = (ptr::null(), self.head);
        while !node.is_null() {
            // SAFETY: module, Safety.
            let found = with_task(node, |task| is_it(unsafe { &*node }, task));
            if found {
                self.unlink(before, node);
                return Some(node);
            }
            (before, node) = (node, next_of(node));
        }
        None
    }

    /// Whether there is a node `is_it` says yes to.
    pub(super) fn any(&self, is_it: impl Fn(&Task) -> bool) -> bool {
        let mut node = self.head;
        while !node.is_null() {
            if with_task(node, |task| is_it(task)) {
                return true;
            }
            node = next_of(node);
        }
        false
    }

    /// The oldest node that a thread waits for.
    pub(super) fn first_thread(&self) -> Option<*const Node> {
        let mut node = self.head;
        while !node.is_null() {
            // SAFETY: module, Safety.
            if unsafe { &*node }.is_waited_for() {
                return Some(node);
            }
            node = next_of(node);
        }
        None
    }

    fn unlink(&mut self, before: *const Node, node: *const Node) {
        let next = next_of(node);
        if before.is_null() {
            self.head = next;
        } else {
            set_next(before, next);
        }
        if next.is_null() {
            self.tail = before;
        }
        self.urgent -= usize::from(with_task(node, |task| task.priority) > 0);
    }
}

#[cfg(test)]
impl Queue {
    /// [`Queue::add`] of a node that outlives the queue.
    pub(super) fn add_for_test(&mut self, node: &Node) {
        // SAFETY: tests keep their nodes.
        unsafe { self.add(node) };
    }

    /// [`Queue::add_pushed`] of nodes, the oldest first.
    pub(super) fn add_pushed_for_test(&mut self, nodes: &[Node]) {
        let mut youngest = ptr::null();
        for node in nodes {
            set_next(node, youngest);
            youngest = node;
        }
        // SAFETY: tests keep their nodes.
        unsafe { self.add_pushed(youngest) };
    }
}
