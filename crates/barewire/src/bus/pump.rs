//! The slow side of the bus word: what happens when the bus is not simply idle.
//!
//! # How it works
//! Whoever finds the bus taken pushes a node. The holder, when it is done with its own message,
//! fails to give the bus back, takes all that was pushed into its queue and runs it: a waiting
//! caller gets its result without the bus ever changing hands. After [`PUMP_MAX`] messages it
//! hands the queue on to a thread that waits in it, or to the worker: nobody serves others for
//! ever. Between two messages it looks for what was pushed meanwhile, so that a message of high
//! priority waits at most for the one on the wire.
//!
//! Whoever pushes a node onto a bus that nobody holds takes the bus with the same atomic and runs
//! the queue itself.
//!
//! # Ordering
//! 1. A push releases the node; taking the list acquires it.
//! 2. The word only becomes idle if nothing was pushed since the list was last taken, and the
//!    queue is empty. So what a context pushed is never overtaken by what it does next: that finds
//!    the word not idle.
//! 3. Handing the bus over releases what the holder did to it; being handed it acquires that.
//!
//! # Safety
//! A node's program and message belong to its owner, who keeps them alive and does not touch them
//! until the node is settled.
#![allow(unsafe_code, reason = "runs messages that lie with their owners")]

use core::mem;
use core::ptr;

use super::Bus;
use super::atomic::Ordering;
use super::lock::{
    BACKLOG, HELD, HELD_ALONE, Held, IDLE, INHERITS, OFFERED, Pump, SWEEP, node as node_of, tagged,
    tags, untagged,
};
use super::node::{Kind, Node, Stage, Task};
use super::queue::Queue;
use super::queued::{Callback, Completed, Then};
use super::statistics::Path;
use crate::controller::{Controller, Program, Unfinished};
use crate::spi::{Error, MessageError, Transfer};

/// How many messages of others a holder runs before it passes the queue on.
const PUMP_MAX: usize = 16;
/// How often a caller that found the bus held relaxes before it takes a place in the queue.
const SPINS_MAX: u32 = 63;

/// A message of the queue, as the holder sees it.
pub(super) struct Job<'j> {
    pub(super) program: &'j Program,
    pub(super) message: &'j mut [Transfer<'static>],
    pub(super) path: Path,
}

/// Lets `f` see a queued node's task.
///
/// # Safety
/// The caller holds the bus, and the node was pushed to it and is not settled.
pub(super) unsafe fn with_task<R>(node: *const Node, f: impl FnOnce(&mut Task) -> R) -> R {
    // SAFETY: a node that is not settled is alive.
    let node = unsafe { &*node };
    node.task.with_mut(|task| {
        // SAFETY: its task is the holder's.
        f(unsafe { &mut *task })
    })
}

/// The node's message.
///
/// # Safety
/// As [`with_task`]; and the job is let go before the node is settled.
pub(super) unsafe fn job<'j>(node: *const Node) -> Job<'j> {
    // SAFETY: the caller's promise.
    let (program, message, path) =
        unsafe { with_task(node, |task| (task.program, task.message, task.path)) };
    // SAFETY: module, Safety.
    let program = unsafe { &*program };
    // SAFETY: module, Safety.
    let message = unsafe { &mut *message };
    Job { program, message, path }
}

impl<C: ?Sized> Bus<C> {
    /// Pushes a node that is set queued. With `take` a bus that nobody holds is taken as well;
    /// returns whether it was, or without `take` whether nobody holds it.
    ///
    /// # Safety
    /// The node stays where it is, and its message untouched, until it is settled.
    pub(super) unsafe fn push(&self, node: &Node, take: bool) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            node.next.with_mut(|next| {
                // SAFETY: until it is pushed, the node is its owner's.
                unsafe { *next = node_of(seen) }
            });
            let held = if take { HELD } else { 0 };
            let wanted = tagged(node, tags(seen) | held);
            // 1. And the bus, if it is taken, with what its last holder did.
            match self.word.compare_exchange_weak(seen, wanted, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return tags(seen) & HELD == 0,
                Err(now) => seen = now,
            }
        }
    }

    /// Sets a tag of the word.
    fn set_tag(&self, tag: usize) {
        let mut seen = self.word.load(Ordering::Relaxed);
        while let Err(now) = self.word.compare_exchange_weak(
            seen,
            tagged(seen, tag),
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            seen = now;
        }
    }

    /// What panicked held the bus: passes it on without running anything.
    #[cold]
    pub(super) fn abandon(&self) {
        if self.platform.inheritance().is_some() {
            self.abandon_inherited();
            return;
        }
        // SAFETY: the panicking holder's, which is no more.
        unsafe { self.held() }.let_go_anyway();
    }
}

impl<C: ?Sized> Held<'_, C> {
    /// Takes what was pushed into the queue, and out of it what its owners want out. Returns the
    /// youngest that was pushed, to be compared only.
    #[cold]
    pub(super) fn gather(&mut self) -> *const Node {
        let bus = self.bus();
        let keep = tags(bus.word.load(Ordering::Relaxed)) & INHERITS;
        let rest = if keep == 0 { HELD_ALONE } else { tagged(IDLE, INHERITS) };
        let pushed = bus.word.swap(rest, Ordering::Acquire);
        self.queue(|queue| {
            // SAFETY: the list is ours by the swap, and nodes in it are queued.
            unsafe { queue.add_pushed(node_of(pushed)) };
        });
        if tags(pushed) & SWEEP != 0 {
            self.sweep();
        }
        node_of(pushed)
    }

    /// Takes out of the queue what its owners want out.
    pub(super) fn sweep(&mut self) {
        while let Some(node) = self.queue(|queue| queue.take_if(|node, _| node.is_cancelled())) {
            // SAFETY: it is out of the queue.
            unsafe { Node::settle_removed(node, self.bus().platform) };
        }
    }

    /// Whether something is in the word for the holder.
    #[inline]
    fn is_called(&self) -> bool {
        let word = self.bus().word.load(Ordering::Relaxed);
        !node_of(word).is_null() || tags(word) & SWEEP != 0
    }

    /// Settles what its owners want out of the queue, for a holder that keeps the bus.
    #[inline]
    pub(super) fn serve_cancels(&mut self) {
        if tags(self.bus().word.load(Ordering::Relaxed)) & SWEEP != 0 {
            self.gather();
            if !self.queue(|queue| queue.is_empty()) {
                self.bus().set_tag(BACKLOG);
            }
        }
    }

    /// Hands bus and queue to a thread that waits in it, if there is one.
    fn hand_over(mut self) -> Result<(), Self> {
        let bus = self.bus();
        match self.queue(|queue| queue.first_thread()) {
            None => Err(self),
            Some(node) => {
                // From the hand-over on the bus is not ours.
                self.pass_on();
                // SAFETY: it is queued, and we have passed the bus on.
                unsafe { Node::hand_pump(node, bus.platform) };
                Ok(())
            }
        }
    }

    /// Gives the bus back if nothing was pushed. The queue is empty. (2.)
    fn give_back(self) -> Result<(), Self> {
        let given = self
            .bus()
            .word
            .compare_exchange(HELD_ALONE, IDLE, Ordering::Release, Ordering::Relaxed)
            .is_ok();
        if !given {
            return Err(self);
        }
        self.pass_on();
        Ok(())
    }

    /// Gives the bus back without running anything: to a thread that waits in the queue, else to
    /// nobody, with what is in the queue left for the worker or whoever comes next.
    ///
    /// The bus is left to nobody only if nothing was pushed since the queue was last looked at, else
    /// it stays ours: who submitted to a held bus, or sleeps, counts on its holder.
    fn let_go(mut self) -> Result<(), Self> {
        let bus = self.bus();
        if self.queue(|queue| queue.is_empty()) {
            return self.give_back();
        }
        self = match self.hand_over() {
            Ok(()) => return Ok(()),
            Err(still) => still,
        };
        let left = tagged(IDLE, BACKLOG);
        let let_go = bus
            .word
            .compare_exchange(HELD_ALONE, left, Ordering::Release, Ordering::Relaxed)
            .is_ok();
        if !let_go {
            return Err(self);
        }
        self.pass_on();
        bus.ring();
        Ok(())
    }

    /// Lets go, whatever is pushed meanwhile.
    fn let_go_anyway(mut self) {
        loop {
            self.gather();
            match self.let_go() {
                Ok(()) => return,
                Err(still) => self = still,
            }
        }
    }
}

impl<C: ?Sized> Bus<C> {
    /// Takes a bus that nobody holds, whatever is queued.
    fn take_left(&self) -> Option<Held<'_, C>> {
        let mut seen = self.word.load(Ordering::Relaxed);
        while tags(seen) & HELD == 0 {
            match self.word.compare_exchange_weak(
                seen,
                tagged(seen, HELD),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                // SAFETY: HELD was clear, and we set it.
                Ok(_) => return Some(unsafe { self.held() }),
                Err(now) => seen = now,
            }
        }
        None
    }
}

impl<C: Controller + ?Sized> Bus<C> {
    /// Gets a node back that was pushed: out of the queue if its turn has not come, else when it
    /// is settled. Waits at most for what is on the wire.
    pub(super) fn cancel(&self, node: &Node) -> Stage {
        match node.set_cancelled() {
            Stage::Queued => {}
            Stage::Pump => return self.wait_settled(node),
            settled => return settled,
        }
        if self.platform.inheritance().is_some() {
            self.sweep_inherited();
        } else if let Some(Taken { mut held, left, offered }) = self.take_or_call() {
            // What was pushed since we took the bus was submitted to a held bus; so was the turn
            // that we took back.
            let called = held.gather() != left || offered;
            held.sweep();
            let still = if called { Err(held) } else { held.let_go() };
            match still {
                Ok(()) => {}
                Err(held) if self.pump == Pump::Worker => held.let_go_anyway(),
                Err(held) => {
                    held.pump();
                }
            }
        }
        self.wait_settled(node)
    }

    /// Takes the bus if nobody holds it or it is but offered, or else calls its holder to look at the
    /// queue, before it gives the bus back and between any two messages.
    fn take_or_call(&self) -> Option<Taken<'_, C>> {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let (free, offered) = (tags(seen) & HELD == 0, tags(seen) & OFFERED != 0);
            let wanted = match (free, offered) {
                (true, _) => tagged(seen, HELD),
                (false, true) => untagged(seen, OFFERED),
                (false, false) => tagged(seen, SWEEP),
            };
            if let Err(now) =
                self.word.compare_exchange_weak(seen, wanted, Ordering::AcqRel, Ordering::Relaxed)
            {
                seen = now;
                continue;
            }
            if !free && !offered {
                return None;
            }
            // SAFETY: HELD was clear and we set it, or OFFERED was set and we cleared it.
            let mut held = unsafe { self.held() };
            if offered {
                held.queue_offered();
            }
            return Some(Taken { held, left: node_of(seen), offered });
        }
    }
}

/// A bus that nobody was driving.
struct Taken<'b, C: ?Sized> {
    held: Held<'b, C>,
    /// The youngest node that was pushed before, to be compared only.
    left: *const Node,
    /// It was offered to a future, whose turn is first in the queue again.
    offered: bool,
}

/// Settles a message whose run panicked, and passes the bus on.
struct Guard<'b, C: ?Sized> {
    bus: &'b Bus<C>,
    node: *const Node,
}

impl<C: ?Sized> Drop for Guard<'_, C> {
    #[cold]
    fn drop(&mut self) {
        let refused = MessageError::refused(Error::Aborted, 0);
        // SAFETY: the node is the holder's, and not settled: we are unwinding from its run.
        unsafe { with_task(self.node, |task| task.refuse(refused)) };
        // SAFETY: it is out of the queue.
        unsafe { Node::settle_done(self.node, self.bus.platform) };
    }
}

/// Gets a node back whose owner unwinds.
struct TakeBack<'b, C: Controller + ?Sized> {
    bus: &'b Bus<C>,
    node: &'b Node,
}

impl<C: Controller + ?Sized> Drop for TakeBack<'_, C> {
    #[cold]
    fn drop(&mut self) {
        if self.bus.cancel(self.node) == Stage::Granted {
            // SAFETY: the turn was granted, and nobody will use it.
            unsafe { self.bus.held() }.let_go_anyway();
        }
    }
}

impl<C: Controller + ?Sized> Held<'_, C> {
    /// Runs a queued message that is out of the queue, and settles it or queues it again.
    pub(super) fn run_node(&mut self, node: *const Node) {
        let bus = self.bus();
        let guard = Guard { bus, node };
        // SAFETY: the node is out of the queue and not settled; settling comes last.
        let Job { program, message, path } = unsafe { job(node) };
        // SAFETY: likewise.
        let kind = unsafe { with_task(node, |task| task.kind) };
        if kind == Kind::Unplanned
            && let Err(refused) = self.plan_late(program, message)
        {
            self.finish_refused(node, refused);
        } else {
            let ran = self.run(program, message, path);
            self.finish(node, ran);
        }
        mem::forget(guard);
    }

    /// Plans the message if that is still to be done, and runs it.
    pub(super) fn run_kind(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
        kind: Kind,
        path: Path,
    ) -> Result<usize, MessageError> {
        if kind == Kind::Unplanned {
            self.plan_late(program, message)?;
        }
        let ran = self.run(program, message, path);
        ran.map_err(|unfinished| unfinished.explain(message))
    }

    #[cold]
    #[inline(never)]
    fn plan_late(
        &self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<(), MessageError> {
        self.controller().plan(program, message)
    }

    /// The controller refused the message: it did not run.
    #[cold]
    #[inline(never)]
    pub(super) fn finish_refused(&mut self, node: *const Node, refused: MessageError) {
        // SAFETY: the node is out of the queue and not settled.
        unsafe { with_task(node, |task| task.refuse(refused)) };
        self.tell(node);
    }

    /// The message ran.
    #[inline]
    pub(super) fn finish(&mut self, node: *const Node, ran: Result<usize, Unfinished>) {
        // SAFETY: the node is out of the queue and not settled.
        unsafe { with_task(node, |task| task.ran = ran) };
        self.tell(node);
    }

    /// Tells whoever wants to know, and settles the message or queues it again.
    #[inline]
    fn tell(&mut self, node: *const Node) {
        // SAFETY: the node is out of the queue and not settled.
        let callback = unsafe { with_task(node, |task| task.callback) };
        if let Some(callback) = callback
            && self.call_back(node, callback)
        {
            return;
        }
        // SAFETY: it is out of the queue; this is the last of it here.
        unsafe { Node::settle_done(node, self.bus().platform) };
    }

    /// Calls back; whether the message is queued again.
    #[inline(never)]
    fn call_back(&mut self, node: *const Node, callback: Callback) -> bool {
        // SAFETY: the node is not settled yet.
        let outcome = unsafe { with_task(node, |task| task.outcome()) };
        // SAFETY: the node is not settled yet.
        let Job { message, .. } = unsafe { job(node) };
        let then = callback(&mut Completed::new(outcome, message));
        // SAFETY: likewise.
        let cancelled = unsafe { &*node }.is_cancelled();
        if then == Then::Again && !cancelled {
            self.queue(|queue| {
                // SAFETY: it is queued, and in no list.
                unsafe { queue.add(node) };
            });
            return true;
        }
        false
    }

    /// Runs one node of the queue. Returns whether the bus is still ours.
    #[must_use]
    fn attend(mut self, node: *const Node) -> Option<Self> {
        let bus = self.bus();
        // SAFETY: the node is out of the queue and not settled.
        if unsafe { &*node }.is_cancelled() {
            // SAFETY: it is out of the queue.
            unsafe { Node::settle_removed(node, bus.platform) };
            return Some(self);
        }
        // SAFETY: likewise.
        let kind = unsafe { with_task(node, |task| task.kind) };
        if kind == Kind::Offer {
            self.offer(node);
            return None;
        }
        if kind == Kind::Turn {
            if !self.queue(|queue| queue.is_empty()) {
                bus.set_tag(BACKLOG);
            }
            self.pass_on();
            // 3.
            // SAFETY: it is out of the queue, and we have passed the bus on.
            unsafe { Node::settle_granted(node, bus.platform) };
            return None;
        }
        if bus.pump == Pump::Interrupt {
            return self.start_node(node);
        }
        self.run_node(node);
        Some(self)
    }

    /// Runs the queue, then gives the bus back or passes it on. Returns how many nodes had their
    /// turn.
    #[cold]
    pub(super) fn pump(self) -> usize {
        self.pump_with(PUMP_MAX)
    }

    /// For who must not be kept: somebody else is to run the queue, if there is anybody.
    #[cold]
    #[inline(never)]
    pub(super) fn release_urgently(self) {
        if self.bus().platform.inheritance().is_some() {
            self.release_inherited();
            return;
        }
        self.pump_with(0);
    }

    fn pump_with(self, mut budget: usize) -> usize {
        let bus = self.bus();
        let mut held = self;
        let mut spent = 0;
        held.gather();
        loop {
            if held.is_called() {
                held.gather();
            }
            if held.queue(|queue| queue.is_empty()) {
                match held.give_back() {
                    Ok(()) => return spent,
                    Err(still) => held = still,
                }
                held.gather();
                continue;
            }
            // An urgent message is not made to wait for whoever takes over to wake up.
            let urgent = held.queue(|queue| queue.is_urgent());
            if spent >= budget && (!urgent || spent >= budget + PUMP_MAX) {
                match held.hand_over() {
                    Ok(()) => return spent,
                    Err(still) if bus.pump == Pump::Worker => {
                        still.let_go_anyway();
                        return spent;
                    }
                    Err(still) => held = still,
                }
                budget = spent + PUMP_MAX;
            }
            let Some(node) = held.queue(Queue::take_next) else { continue };
            spent += 1;
            match held.attend(node) {
                Some(still) => held = still,
                None => return spent,
            }
        }
    }

    /// The holder has run its own message and something else is in the word.
    #[cold]
    #[inline(never)]
    pub(super) fn release_slowly(self) {
        if self.bus().platform.inheritance().is_some() {
            self.release_inherited();
            return;
        }
        self.pump();
    }
}

impl<C: Controller + ?Sized> Bus<C> {
    #[cold]
    #[inline(never)]
    pub(super) fn try_take_slowly(&self) -> Option<Held<'_, C>> {
        self.platform.inheritance().and_then(|inheritance| self.try_take_inherited(inheritance))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn take_slowly(&self) -> Held<'_, C> {
        if let Some(inheritance) = self.platform.inheritance() {
            return self.take_inherited(inheritance);
        }
        let node = Node::new(Task::turn(self.context()));
        let stage = self.push_and_wait(&node);
        debug_assert_eq!(stage, Stage::Granted, "a turn is granted");
        // SAFETY: the node was granted: we were handed the bus.
        unsafe { self.held() }
    }

    /// Looks a few times, ever more seldom, whether a bus that is merely held becomes idle: cheaper
    /// for both than a place in the queue that is given up at once. Who has a place in the queue
    /// is not overtaken by this, and nobody looks for long.
    fn spin_for_idle(&self) -> Option<Held<'_, C>> {
        let mut spins = self.platform.spins().min(SPINS_MAX);
        let mut pause = 1;
        while pause <= spins {
            (0..pause).for_each(|_| self.platform.relax());
            spins -= pause;
            pause *= 2;
            match self.word.load(Ordering::Relaxed) {
                IDLE => {
                    if let Some(held) = self.try_take_idle() {
                        return Some(held);
                    }
                }
                HELD_ALONE => {}
                _ => return None,
            }
        }
        None
    }

    /// Queues a message and waits until it has run.
    #[cold]
    #[inline(never)]
    pub(super) fn run_queued(
        &self,
        program: &Program,
        message: &mut [Transfer<'_>],
        kind: Kind,
        priority: u8,
    ) -> Result<usize, MessageError> {
        if let Some(inheritance) = self.platform.inheritance() {
            return self.run_inherited(inheritance, program, message, kind);
        }
        if priority == 0
            && let Some(mut held) = self.spin_for_idle()
        {
            let ran = held.run_kind(program, message, kind, Path::Immediate);
            held.release();
            return ran;
        }
        // A pointer: no lifetime of it is claimed, and we wait below until it is done with.
        let erased = ptr::slice_from_raw_parts_mut(message.as_mut_ptr().cast(), message.len());
        let node = Node::new(Task {
            program,
            message: erased,
            kind,
            path: Path::Waited,
            priority,
            ..Task::turn(self.context())
        });
        let stage = self.push_and_wait(&node);
        debug_assert_eq!(stage, Stage::Done, "a message runs");
        // SAFETY: it is settled: the task is ours again.
        node.task.with(|task| unsafe { (*task).outcome() })
    }

    /// Pushes a thread's node and waits until it is settled, running the queue whenever that is
    /// ours to do.
    fn push_and_wait(&self, node: &Node) -> Stage {
        node.set_queued_and_waited_for();
        // Whatever unwinds from below, a platform's wait say, must not leave the node behind.
        let guard = TakeBack { bus: self, node };
        // SAFETY: we wait below until it is settled.
        if unsafe { self.push(node, true) } {
            // SAFETY: the push took the bus.
            unsafe { self.held() }.pump();
        }
        let stage = self.wait_settled(node);
        mem::forget(guard);
        stage
    }

    /// Waits until a node is settled that is known to be waited for.
    fn wait_settled(&self, node: &Node) -> Stage {
        loop {
            let stage = node.wait(self.platform, &|| self.attend_flight());
            if stage != Stage::Pump {
                return stage;
            }
            // SAFETY: we were handed the bus.
            unsafe { self.held() }.pump();
        }
    }

    /// Waits until a message is settled that was submitted, running the queue if nobody does.
    pub(super) fn wait_for(&self, node: &Node) {
        if node.set_waited_for() != Stage::Queued {
            return;
        }
        if self.pump == Pump::Worker {
            self.ring();
        } else if self.platform.inheritance().is_some() {
            self.pump_inherited();
        } else if let Some(taken) = self.take_or_call() {
            taken.held.pump();
        }
        self.wait_settled(node);
    }

    /// Runs what is queued, if nobody holds the bus. Returns how many messages had their turn.
    pub fn pump(&self) -> usize {
        if self.platform.inheritance().is_some() {
            return self.pump_inherited();
        }
        if self.word.load(Ordering::Relaxed) == IDLE {
            return 0;
        }
        self.take_left().map_or(0, Held::pump)
    }
}
