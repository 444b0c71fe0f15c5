//! The bus: a controller, and the rights to drive it and to have its queue.
//!
//! # How it works
//! [`Wire`] is the right to drive the controller, [`Tended`] the right to the queue, [`Held`] both.
//! Acquiring an idle bus is one compare-and-swap of the [word](super::word), releasing it another;
//! whatever else is to be done makes one of the two fail, and is in [`super::acquire`] and
//! [`super::serve`].
//!
//! # Safety
//! There is at most one `Wire` and one `Tended` of a bus: who may make one is in the word's
//! diagram, and who passes one on forgets it.
#![allow(unsafe_code, reason = "the controller lies in an UnsafeCell that the bus word guards")]

use core::cell::UnsafeCell;
use core::fmt;
use core::mem;
use core::ptr;

// AtomicBool and AtomicUsize are not a checker's: a flag that nothing depends on, and a word that each
// context only compares with itself.
use super::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Cell, Ordering};
use super::joined::run_or_join;
use super::node::Node;
use super::platform::{Platform, Spin};
use super::queue::{Queue, SERVE_MAX};
use super::statistics::{Counters, Path, Statistics};
use super::word::{HOLDER, IDLE, INHERITED, LOCK};
use crate::controller::{Controller, Plan, Program, Unfinished};
use crate::spi::{MessageError, Transfer};

/// Who runs what is submitted to a bus and not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
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
    /// Whether the platform is asked for contexts.
    contexts: bool,
    /// The context of the lock, or of the callback, that has the bus; 0 if there is none, or it is
    /// not known.
    user: AtomicUsize,
    /// The worker's context; 0 if there is none, or it is not known.
    pub(super) worker: AtomicUsize,
    /// Rung for the worker; odd while it sleeps.
    pub(super) bell: AtomicU32,
    /// With [inheritance](super::inherit): who has the wire.
    pub(super) wire_owner: AtomicU32,
    /// With inheritance: who has the queue.
    pub(super) queue_owner: AtomicU32,
    /// Whether a message [flies](super::interrupt).
    pub(super) flight: AtomicU32,
    /// The message on the wire while nobody attends to it.
    pub(super) flying: Cell<*const Node>,
    pub(super) queue: Cell<Queue>,
    counters: Counters,
    pub(super) controller: UnsafeCell<C>,
}

// SAFETY: controller, queue and flying are one thread's at a time (module, Safety), so sharing the
// bus only ever sends the controller between threads. Nodes are made to be shared.
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
            user: AtomicUsize::new(0),
            worker: AtomicUsize::new(0),
            bell: AtomicU32::new(0),
            wire_owner: AtomicU32::new(0),
            queue_owner: AtomicU32::new(0),
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
        bus!(controller, platform, if inherits { INHERITED } else { IDLE }, true)
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

    /// What was counted. Never waits for a message that is being counted: may be called from any
    /// handler.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.counters.read()
    }

    /// The caller's context.
    #[inline]
    pub(super) fn context(&self) -> usize {
        if self.contexts { self.platform.context() } else { 0 }
    }

    /// Notes that the caller's context has the bus while user code runs.
    pub(super) fn set_user(&self) {
        if self.contexts {
            self.user.store(self.platform.context(), Ordering::Relaxed);
        }
    }

    /// That user code ended.
    pub(super) fn clear_user(&self) {
        self.user.store(0, Ordering::Relaxed);
    }

    /// Whether the caller would wait for itself: its own context has the bus. Where contexts are
    /// not told apart this is never said.
    pub(super) fn is_ours(&self) -> bool {
        if let Some(inheriting) = self.inheriting() {
            return inheriting.owns_wire();
        }
        let user = self.user.load(Ordering::Relaxed);
        user != 0 && user == self.context()
    }

    /// The wire as whoever has it has it.
    ///
    /// # Safety
    /// The caller has the wire, and no other `Wire`.
    #[inline]
    pub(super) unsafe fn wire(&self) -> Wire<'_, C> {
        Wire { bus: self }
    }

    /// The queue as a tender has it.
    ///
    /// # Safety
    /// The caller has the queue, and no other `Tended`.
    #[inline]
    pub(super) unsafe fn tended(&self) -> Tended<'_, C> {
        Tended { bus: self }
    }
}

impl<C: Controller + ?Sized> Bus<C> {
    /// Acquires an idle bus.
    #[inline]
    pub(super) fn try_acquire_idle(&self) -> Option<Held<'_, C>> {
        self.word
            .compare_exchange(IDLE, HOLDER, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            // Lazily: a `Held` made and dropped here would release somebody else's bus.
            .then(|| Held { wire: Wire { bus: self } })
    }

    /// Acquires the wire of an idle bus, for a lock.
    #[inline]
    pub(super) fn try_acquire_wire(&self) -> Option<Wire<'_, C>> {
        self.word
            .compare_exchange(IDLE, LOCK, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then_some(Wire { bus: self })
    }

    /// The bus as its holder has it.
    ///
    /// # Safety
    /// The caller is the holder, or was just made it.
    #[inline]
    pub(super) unsafe fn held(&self) -> Held<'_, C> {
        Held { wire: Wire { bus: self } }
    }
}

/// The wire: the right to drive the controller.
pub(super) struct Wire<'b, C: ?Sized> {
    pub(super) bus: &'b Bus<C>,
}

impl<C: ?Sized> Wire<'_, C> {
    #[inline]
    pub(super) fn controller(&self) -> &C {
        // SAFETY: this is the only `Wire` of the bus (module, Safety), and it is borrowed.
        unsafe { &*self.bus.controller.get() }
    }

    #[inline]
    pub(super) fn controller_mut(&mut self) -> &mut C {
        // SAFETY: this is the only `Wire` of the bus (module, Safety), borrowed mutably.
        unsafe { &mut *self.bus.controller.get() }
    }
}

impl<C: Controller + ?Sized> Wire<'_, C> {
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
        path: Path,
    ) -> Result<usize, Unfinished> {
        let ran = self.controller_mut().run(program, message);
        if self.bus.counting.load(Ordering::Relaxed) {
            self.bus.counters.count_apart(path, program, message, ran);
        }
        ran
    }

    /// Runs a planned exchange of `tx` and `rx` at once, counted apart as well.
    #[inline(always)]
    pub(super) fn run_exchange(
        &mut self,
        program: &Program,
        plan: &Plan,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        let ran = self.controller_mut().run_exchange(program, plan, tx, rx);
        if self.bus.counting.load(Ordering::Relaxed) {
            self.bus.counters.count_exchange_apart(program, tx, rx, ran);
        }
        ran
    }

    /// The same for a caller that must not sleep: the wire is polled, whatever was planned.
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

    /// Runs a message, planned here if it is not yet, and joined where its chip select would pulse;
    /// with `polled` as [`Wire::run_polled`].
    pub(super) fn plan_and_run(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
        mut planned: bool,
        path: Path,
        polled: bool,
    ) -> Result<usize, MessageError> {
        run_or_join(message, |message| {
            if !planned {
                self.controller().plan(program, message)?;
            }
            // A joined message is another one.
            planned = false;
            let ran = match polled {
                true => self.run_polled(program, message, path),
                false => self.run(program, message, path),
            };
            ran.map_err(|unfinished| unfinished.explain(message))
        })
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
}

/// The queue: the right to take what was pushed, and to take nodes out.
pub(super) struct Tended<'b, C: ?Sized> {
    pub(super) bus: &'b Bus<C>,
}

impl<C: ?Sized> Tended<'_, C> {
    #[inline]
    pub(super) fn queue<R>(&mut self, with: impl FnOnce(&mut Queue) -> R) -> R {
        self.bus.queue.with_mut(|queue| {
            // SAFETY: this is the only `Tended` of the bus (module, Safety), borrowed mutably; `with`
            // cannot reach it.
            with(unsafe { &mut *queue })
        })
    }
}

/// The bus, held: the wire and the queue; on a bus with inheritance the wire alone.
///
/// To be [released](Held::release). Dropping it is what a panic does: the bus is released without
/// raising another.
pub(super) struct Held<'b, C: Controller + ?Sized> {
    pub(super) wire: Wire<'b, C>,
}

impl<C: Controller + ?Sized> Held<'_, C> {
    /// The holder is somebody else from here on.
    #[inline]
    pub(super) fn pass_on(self) {
        mem::forget(self);
    }

    /// [`Held::release`] for a caller of that priority: an urgent one does not serve the queue if
    /// anybody else can.
    #[inline]
    pub(super) fn release_for(self, priority: impl FnOnce() -> u8) {
        if self.wire.bus.release_idle() {
            self.pass_on();
        } else {
            let budget = if priority() > 0 { 0 } else { SERVE_MAX };
            self.release_contended(budget);
        }
    }

    /// Releases the bus; if something was queued meanwhile, serves it first or hands the bus over.
    #[inline]
    pub(super) fn release(self) {
        self.release_for(|| 0);
    }
}

impl<C: ?Sized> Bus<C> {
    /// Releases a bus that is held and nothing else.
    #[inline]
    pub(super) fn release_idle(&self) -> bool {
        self.word.compare_exchange(HOLDER, IDLE, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}

impl<C: Controller + ?Sized> Drop for Held<'_, C> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: ours, which is no more.
        unsafe { self.wire.bus.held() }.abandon();
    }
}
