//! The bus: its word, and the controller that the word guards.
//!
//! # How it works
//! The word is [`IDLE`], or the address of the node pushed last with tags in its low bits:
//! [`HELD`] while somebody drives the bus, [`BACKLOG`] if the holder's queue is not empty,
//! [`SWEEP`] if somebody wants a node out of it, [`OFFERED`] while a future is to be polled for its
//! turn (see [`super::offer`]), [`INHERITS`] for a bus whose lock is another word
//! (see [`super::inherit`]). Taking an idle bus is one compare-and-swap from [`IDLE`] to [`HELD`],
//! giving it back one from [`HELD`] to [`IDLE`]; whatever else is to be done makes one of the two
//! fail, and is in [`super::pump`].
//!
//! # Ordering
//! 1. Taking is an acquire: the taker sees every write of the holder before.
//! 2. Giving back is a release, and fails if something was pushed. An unconditional exchange would
//!    free the bus first and find the pushed messages then: in between a newcomer, of the very
//!    context that pushed one, could overtake them.
//! 3. The holder alone touches the controller and the queue.
//!
//! # Safety
//! There is at most one holder: only the compare-and-swaps that set [`HELD`] or clear [`OFFERED`]
//! make one, and only the holder clears the one and sets the other, or passes what it holds on to
//! exactly one other.
#![allow(unsafe_code, reason = "the controller lies in an UnsafeCell that the bus word guards")]

use core::cell::UnsafeCell;
// Not a checker's: a flag that nothing depends on.
use core::fmt;
use core::mem;
use core::ptr;
use core::sync::atomic::AtomicBool;

use super::Device;
use super::atomic::{AtomicPtr, AtomicU32, Cell, Ordering};
use super::node::Node;
use super::platform::{Platform, Spin};
use super::queue::Queue;
use super::statistics::{Counters, Path, Statistics};
use crate::controller::{Controller, Program, Unfinished};
use crate::spi::{Error, Settings, Transfer};

/// Nobody drives the bus, and nothing is queued.
pub(super) const IDLE: *mut Node = ptr::null_mut();
/// Somebody drives the bus, and nothing else is said.
pub(super) const HELD_ALONE: *mut Node = ptr::without_provenance_mut(HELD);
/// Tag: somebody drives the bus.
pub(super) const HELD: usize = 1;
/// Tag: the holder's queue is not empty.
pub(super) const BACKLOG: usize = 2;
/// Tag: somebody wants a node out of the queue.
pub(super) const SWEEP: usize = 4;
/// Tag, always set: the lock is another word.
pub(super) const INHERITS: usize = 8;
/// Tag, beside [`HELD`]: the bus is offered to a future; whoever clears this is the holder.
pub(super) const OFFERED: usize = 16;
const TAGS: usize = HELD | BACKLOG | SWEEP | INHERITS | OFFERED;

const _: () = assert!(mem::align_of::<Node>() > TAGS, "a node's address leaves room for the tags");

pub(super) fn tags(word: *mut Node) -> usize {
    word.addr() & TAGS
}

pub(super) fn node(word: *mut Node) -> *const Node {
    word.map_addr(|address| address & !TAGS)
}

pub(super) fn tagged(node: *const Node, tags: usize) -> *mut Node {
    node.cast_mut().map_addr(|address| address | tags)
}

pub(super) fn untagged(word: *mut Node, tags: usize) -> *mut Node {
    word.map_addr(|address| address & !tags)
}

/// Who runs what is submitted to a bus and not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pump {
    /// Whoever submits it, or, if the bus is taken then, whoever holds it: before it gives the bus
    /// back, and for as long as others submit. Streams without end are for the other two.
    Caller,
    /// A worker thread in [`Bus::serve`], or whoever holds the bus.
    Worker,
    /// The controller's interrupt handler, which calls [`Bus::interrupt`]. Messages are begun by
    /// whoever submits them or by the handler itself.
    Interrupt,
}

/// One controller, its lock and its queue.
///
/// `C` may be unsized: a `&Bus<Ecspi<…>>` coerces to `&Bus<dyn Controller>`.
#[repr(C)]
pub struct Bus<C: ?Sized> {
    // Hot fields first: a message on an idle bus looks at these two.
    pub(super) word: AtomicPtr<Node>,
    counting: AtomicBool,
    pub(super) platform: &'static dyn Platform,
    pub(super) pump: Pump,
    /// Whether the platform tells contexts apart.
    contexts: bool,
    /// Rung for the worker; odd while it sleeps.
    pub(super) bell: AtomicU32,
    /// The word of [`super::inherit`].
    pub(super) owner: AtomicU32,
    /// Who of [`super::inherit`] runs the queue.
    pub(super) pumping: AtomicU32,
    /// What of [`super::interrupt`] is going on.
    pub(super) flight: AtomicU32,
    /// The message on the wire while nobody attends to it.
    pub(super) flying: Cell<*const Node>,
    pub(super) queue: Cell<Queue>,
    counters: Counters,
    pub(super) controller: UnsafeCell<C>,
}

// SAFETY: controller, queue and flying are the holder's (module, Safety), one thread's at a time,
// so sharing the bus only ever sends the controller between threads. Nodes are made to be shared.
unsafe impl<C: ?Sized + Send> Sync for Bus<C> {}
// SAFETY: nodes in the queue stay where they are, and are made to be used from any thread.
unsafe impl<C: ?Sized + Send> Send for Bus<C> {}

impl<C: ?Sized> fmt::Debug for Bus<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.word.load(Ordering::Relaxed) != IDLE;
        f.debug_struct("Bus")
            .field("taken", &taken)
            .field("pump", &self.pump)
            .finish_non_exhaustive()
    }
}

macro_rules! bus {
    ($controller:expr, $platform:expr, $word:expr, $contexts:expr) => {
        Self {
            word: AtomicPtr::new($word),
            counting: AtomicBool::new(false),
            platform: $platform,
            pump: Pump::Caller,
            contexts: $contexts,
            bell: AtomicU32::new(0),
            owner: AtomicU32::new(0),
            pumping: AtomicU32::new(0),
            flight: AtomicU32::new(0),
            flying: Cell::new(ptr::null()),
            queue: Cell::new(Queue::new()),
            counters: Counters::with(AtomicU32::new(0)),
            controller: UnsafeCell::new($controller),
        }
    };
}

impl<C> Bus<C> {
    /// A bus over `controller`. Whoever waits for it spins.
    #[cfg(not(any(loom, shuttle)))]
    pub const fn new(controller: C) -> Self {
        bus!(controller, &Spin, IDLE, false)
    }

    /// The same under a model checker, whose atomics no constant can make.
    #[cfg(any(loom, shuttle))]
    pub fn new(controller: C) -> Self {
        bus!(controller, &Spin, IDLE, false)
    }

    /// A bus whose users wait as `platform` has it, with priority inheritance if it has that.
    pub fn with_platform(controller: C, platform: &'static dyn Platform) -> Self {
        let inherits = platform.inheritance().is_some();
        bus!(controller, platform, tagged(IDLE, if inherits { INHERITS } else { 0 }), true)
    }

    /// The same, with who runs what is submitted.
    ///
    /// # Panics
    /// If the bus has priority inheritance and is to be pumped by interrupts, which have no
    /// priority to inherit.
    #[must_use]
    pub fn with_pump(mut self, pump: Pump) -> Self {
        assert!(
            pump != Pump::Interrupt || self.platform.inheritance().is_none(),
            "a bus with priority inheritance is not pumped by interrupts"
        );
        self.pump = pump;
        self
    }

    /// The controller back.
    pub fn into_inner(self) -> C {
        self.controller.into_inner()
    }
}

impl<C: ?Sized> Bus<C> {
    /// The controller, which nobody else can be driving.
    pub fn get_mut(&mut self) -> &mut C {
        self.controller.get_mut()
    }

    /// Counts from now on, or no longer. What was counted stays.
    pub fn set_counting(&self, counting: bool) {
        self.counting.store(counting, Ordering::Relaxed);
    }

    /// What was counted.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.counters.read(self.platform)
    }

    /// The caller's context.
    #[inline]
    pub(super) fn context(&self) -> usize {
        if self.contexts { self.platform.context() } else { 0 }
    }

    /// Takes an idle bus.
    #[inline]
    pub(super) fn try_take_idle(&self) -> Option<Held<'_, C>> {
        self.word
            .compare_exchange(IDLE, HELD_ALONE, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            // Lazily: a `Held` made and dropped here would give back somebody else's bus.
            .then(|| Held { bus: self })
    }

    /// The bus as its holder has it.
    ///
    /// # Safety
    /// The caller is the holder, or was just made it.
    #[inline]
    pub(super) unsafe fn held(&self) -> Held<'_, C> {
        Held { bus: self }
    }
}

impl<C: Controller + ?Sized> Bus<C> {
    /// Takes the bus if it is free and no message waits.
    #[inline]
    pub(super) fn try_take(&self) -> Option<Held<'_, C>> {
        match self.try_take_idle() {
            None => self.try_take_slowly(),
            held => held,
        }
    }

    /// Takes the bus, waiting for it.
    #[inline]
    pub(super) fn take(&self) -> Held<'_, C> {
        match self.try_take_idle() {
            Some(held) => held,
            None => self.take_slowly(),
        }
    }

    /// Opens a device: computes what its settings imply, waiting for the bus.
    ///
    /// # Errors
    /// Whatever the controller cannot do (see [`Controller::configure`]); a chip select that may
    /// sleep ([`Error::CsCanSleep`]) among it.
    pub fn device(&self, settings: &Settings) -> Result<Device<'_, C>, Error> {
        let held = self.take();
        let configured = held.controller().configure(settings);
        held.release();
        let (program, effective) = configured?;
        Ok(Device::new(self, *settings, program, effective))
    }
}

/// The bus, held: the one way to its controller and its queue.
///
/// To be [released](Held::release). Dropping it is what a panic does: the bus is passed on, and
/// nothing of the queue is run on the way.
pub(super) struct Held<'b, C: ?Sized> {
    bus: &'b Bus<C>,
}

impl<'b, C: ?Sized> Held<'b, C> {
    #[inline]
    pub(super) fn controller(&self) -> &C {
        // SAFETY: this is the only `Held` of the bus (module, Safety), and it is borrowed.
        unsafe { &*self.bus.controller.get() }
    }

    #[inline]
    pub(super) fn controller_mut(&mut self) -> &mut C {
        // SAFETY: this is the only `Held` of the bus (module, Safety), borrowed mutably.
        unsafe { &mut *self.bus.controller.get() }
    }

    /// The holder's queue.
    #[inline]
    pub(super) fn queue<R>(&mut self, with: impl FnOnce(&mut Queue) -> R) -> R {
        self.bus.queue.with_mut(|queue| {
            // SAFETY: this is the only `Held` of the bus (module, Safety), borrowed mutably; `with`
            // cannot reach it.
            with(unsafe { &mut *queue })
        })
    }

    #[inline]
    pub(super) fn bus(&self) -> &'b Bus<C> {
        self.bus
    }

    /// The holder is somebody else from here on.
    #[inline]
    pub(super) fn pass_on(self) {
        mem::forget(self);
    }
}

impl<C: Controller + ?Sized> Held<'_, C> {
    /// Runs a planned message, and counts it if the bus counts.
    #[inline]
    pub(super) fn run(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
        path: Path,
    ) -> Result<usize, Unfinished> {
        let ran = self.controller_mut().run(program, message);
        self.count(program, message, path, ran);
        ran
    }

    /// The same with the counting out of the way: what is in the way of a prepared access is all
    /// there is of it.
    #[inline]
    pub(super) fn run_prepared(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let ran = self.controller_mut().run(program, message);
        if self.bus.counting.load(Ordering::Relaxed) {
            self.bus.counters.count_prepared(program, message, ran);
        }
        ran
    }

    /// The same for who must not sleep: the wire is polled, whatever the message was planned for.
    pub(super) fn run_polled(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
        path: Path,
    ) -> Result<usize, Unfinished> {
        if !message.iter().any(|transfer| transfer.plan.by_interrupt()) {
            return self.run(program, message, path);
        }
        // A prepared message keeps its plan for its next runs.
        for transfer in message.iter_mut() {
            transfer.plan = transfer.plan.polled_once();
        }
        let ran = self.run(program, message, path);
        for transfer in message {
            transfer.plan = transfer.plan.as_planned();
        }
        ran
    }

    /// Counts a message that was run, if the bus counts.
    #[inline]
    pub(super) fn count(
        &self,
        program: &Program,
        message: &[Transfer<'_>],
        path: Path,
        ran: Result<usize, Unfinished>,
    ) {
        if self.bus.counting.load(Ordering::Relaxed) {
            self.bus.counters.count(path, program, message, ran);
        }
    }

    /// [`Held::release`] for a caller of that priority: an urgent one does not run the queue if
    /// anybody else can.
    #[inline]
    pub(super) fn release_for(self, priority: impl FnOnce() -> u8) {
        let idle = self
            .bus
            .word
            .compare_exchange(HELD_ALONE, IDLE, Ordering::Release, Ordering::Relaxed)
            .is_ok();
        if idle {
            mem::forget(self);
        } else if priority() > 0 {
            self.release_urgently();
        } else {
            self.release_slowly();
        }
    }

    /// Gives the bus back; if something was queued meanwhile, runs it first or passes it on.
    #[inline]
    pub(super) fn release(self) {
        let idle = self
            .bus
            .word
            .compare_exchange(HELD_ALONE, IDLE, Ordering::Release, Ordering::Relaxed)
            .is_ok();
        if idle {
            mem::forget(self);
        } else {
            self.release_slowly();
        }
    }
}

impl<C: ?Sized> Drop for Held<'_, C> {
    #[cold]
    fn drop(&mut self) {
        self.bus.abandon();
    }
}
