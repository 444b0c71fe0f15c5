//! The bus: a controller, and the rights to its wire and its queue.
//!
//! # How it works
//! [`WireRight`] is the right to drive the controller, [`QueueRight`] the right to the queue, [`Held`] both.
//! One compare-and-swap of the [word](super::word) acquires an idle bus, another releases it. Any
//! contention makes one of the two fail; [`super::acquire`] and [`super::serve`] handle that.
//!
//! # Safety
//! A bus has at most one `WireRight` and one `QueueRight`. The diagram of the word says when one may be
//! made; a holder that passes its right on forgets the value instead of dropping it.
#![allow(unsafe_code, reason = "the controller lies in an UnsafeCell that the bus word guards")]

use core::cell::UnsafeCell;
use core::fmt;
use core::mem;
use core::ptr;

// Not the checker's AtomicBool and AtomicUsize: nothing depends on the order of the flag, and a
// context compares the `user` word only with its own number.
use super::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Cell, Ordering};
use super::joined::run_or_join;
use super::node::Node;
use super::platform::{Inheritance, Platform, Spin};
use super::queue::{Queue, SERVE_MAX};
use super::statistics::{Counters, Path, Statistics};
use super::uses::{Alone, AnyPlatform, Uses};
use super::word::{HOLDER, IDLE, INHERITED, LOCK};
use crate::controller::{Controller, Preset, Unfinished, plan_plain, refusal};
use crate::spi::{Error, MessageError, Transfer};

/// The code that runs submitted messages for which no caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Pump {
    /// The submitter, if the bus is free. Otherwise the current holder: it runs submitted messages
    /// before it releases the bus, for as long as others submit. For endless streams use one of the
    /// other two.
    Caller,
    /// A worker thread in [`Bus::serve`], or the current holder.
    Worker,
    /// The controller's interrupt handler, which calls [`Bus::interrupt`]. The submitter or the
    /// handler starts each message.
    Interrupt,
}

/// One controller, its lock and its queue.
///
/// `C` may be unsized: a `&Bus<Ecspi<…>>` coerces to `&Bus<dyn Controller>`.
#[repr(C)]
pub struct Bus<C: ?Sized, U: Uses = AnyPlatform> {
    // Hot fields first: a message on an idle bus reads these two.
    pub(super) word: AtomicPtr<Node>,
    counting: AtomicBool,
    pub(super) uses: U,
    /// The platform's locks, if it has inheritance.
    pub(super) locks: Option<&'static dyn Inheritance>,
    pub(super) pump: Pump,
    /// Whether the platform identifies contexts.
    contexts: bool,
    /// Whether each message's context is noted, because the [controller may use the
    /// bus](Controller::may_use_its_bus).
    noting: bool,
    /// The context that has the bus while code of users runs in it: a lock, a callback, a controller of
    /// theirs. 0 if there is none or it is unknown.
    user: AtomicUsize,
    /// Whether that context has the queue too. A lock has not.
    user_tends: AtomicBool,
    /// The worker's context; 0 if there is no worker or it is unknown.
    pub(super) worker: AtomicUsize,
    /// Rung to wake the worker; odd while it sleeps.
    pub(super) bell: AtomicU32,
    /// With [inheritance](super::inherit): the id of the wire's owner.
    pub(super) wire_owner: AtomicU32,
    /// With inheritance: the id of the queue's owner.
    pub(super) queue_owner: AtomicU32,
    /// Whether a message is [in flight](super::interrupt).
    pub(super) flight: AtomicU32,
    /// The message in flight, while no thread attends to it.
    pub(super) flying: Cell<*const Node>,
    pub(super) queue: Cell<Queue>,
    pub(super) counters: Counters,
    pub(super) controller: UnsafeCell<C>,
}

// SAFETY: one thread at a time uses controller, queue and flying (module, Safety), so sharing the
// bus only ever sends the controller between threads. Nodes may be shared.
unsafe impl<C: ?Sized + Send, U: Uses> Sync for Bus<C, U> {}
// SAFETY: nodes in the queue do not move with the bus, and any thread may use them.
unsafe impl<C: ?Sized + Send, U: Uses> Send for Bus<C, U> {}

impl<C: ?Sized, U: Uses> fmt::Debug for Bus<C, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let idle = if self.inherits() { INHERITED } else { IDLE };
        let (word, owner) =
            (self.word.load(Ordering::Relaxed), self.wire_owner.load(Ordering::Relaxed));
        let taken = word != idle || owner != 0;
        f.debug_struct("Bus")
            .field("taken", &taken)
            .field("pump", &self.pump)
            .finish_non_exhaustive()
    }
}

macro_rules! bus {
    ($controller:expr, $uses:expr, $locks:expr, $word:expr, $contexts:expr, $noting:expr) => {
        Self {
            word: AtomicPtr::new($word),
            counting: AtomicBool::new(false),
            uses: $uses,
            locks: $locks,
            pump: Pump::Caller,
            contexts: $contexts,
            noting: $noting,
            user: AtomicUsize::new(0),
            user_tends: AtomicBool::new(false),
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
    /// A bus over `controller` whose waiting callers spin.
    #[cfg(not(any(loom, shuttle)))]
    pub const fn new(controller: C) -> Self {
        bus!(controller, AnyPlatform(&Spin), None, IDLE, false, false)
    }

    /// [`Bus::new`] under a model checker, whose atomics cannot be constructed in a constant.
    #[cfg(any(loom, shuttle))]
    pub fn new(controller: C) -> Self {
        bus!(controller, AnyPlatform(&Spin), None, IDLE, false, false)
    }

    /// A bus whose callers wait through `platform`; with priority inheritance if the platform has
    /// it.
    pub fn with_platform(controller: C, platform: &'static dyn Platform) -> Self
    where
        C: Controller,
    {
        let locks = platform.inheritance();
        let word = if locks.is_some() { INHERITED } else { IDLE };
        // With inheritance, the wire's word names its owner.
        let noting = locks.is_none() && controller.may_use_its_bus();
        bus!(controller, AnyPlatform(platform), locks, word, true, noting)
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<C> Bus<C, Alone> {
    /// A bus with one user at a time, in a few kilobytes of code: no queue, no futures, no statistics.
    ///
    /// It is still safe to share. A call that finds the bus taken, for example in an interrupt handler that interrupted a
    /// message, returns [`Error::Busy`] and has touched nothing.
    ///
    /// ```
    /// use barewire::bus::Bus;
    /// use barewire::controller::null::Null;
    /// use barewire::spi::{Error, Settings, Transfer};
    ///
    /// let bus = Bus::alone(Null::new());
    /// let device = bus.device(&Settings::new(0, 1_000_000))?;
    /// device.sync(&mut [Transfer::write(&[0x06])])?;
    ///
    /// let lock = bus.lock();
    /// let error = device.sync(&mut [Transfer::write(&[0x06])]).unwrap_err();
    /// assert_eq!(error.error, Error::Busy);
    /// # drop(lock);
    /// # Ok::<(), Error>(())
    /// ```
    pub const fn alone(controller: C) -> Self {
        bus!(controller, Alone, None, IDLE, false, false)
    }
}

impl<C, U: Uses> Bus<C, U> {
    /// A bus for a program that uses of it what `uses` says. Its callers tell no contexts apart.
    #[cfg(not(any(loom, shuttle)))]
    pub const fn with_uses(controller: C, uses: U) -> Self {
        const { assert!(!U::CONTEXTS, "a platform with contexts is passed to Bus::with_platform") }
        bus!(controller, uses, None, IDLE, false, false)
    }

    /// Selects what runs submitted messages. The default is [`Pump::Caller`].
    ///
    /// # Panics
    /// If `pump` is [`Pump::Interrupt`] and the bus has priority inheritance: an interrupt has no
    /// priority to inherit. If the program [uses](Uses) neither a queue nor interrupts.
    #[must_use]
    pub fn with_pump(mut self, pump: Pump) -> Self {
        assert!(
            U::QUEUE && (U::INTERRUPT || pump != Pump::Interrupt),
            "the bus's type says that the program has no such pump"
        );
        assert!(
            pump != Pump::Interrupt || !self.inherits(),
            "a bus with priority inheritance is not pumped by interrupts"
        );
        self.pump = pump;
        self
    }

    /// Takes the controller out of the bus.
    pub fn into_inner(self) -> C {
        self.controller.into_inner()
    }
}

impl<C: ?Sized, U: Uses> Bus<C, U> {
    /// The controller; the exclusive borrow of the bus guarantees that no other code drives it.
    pub fn get_mut(&mut self) -> &mut C {
        self.controller.get_mut()
    }

    /// Whether it counts: [`Bus::set_counting`].
    #[inline(always)]
    #[must_use]
    pub fn is_counting(&self) -> bool {
        U::STATISTICS && self.counting.load(Ordering::Relaxed)
    }

    /// Turns counting on or off. The counters keep their values.
    pub fn set_counting(&self, counting: bool) {
        const { assert!(U::STATISTICS, "the bus's type says that nothing is counted") }
        self.counting.store(counting, Ordering::Relaxed);
    }

    /// The counters, as of one moment. Never waits for the message being counted, so any handler
    /// may call it.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        const { assert!(U::STATISTICS, "the bus's type says that nothing is counted") }
        self.counters.read()
    }

    /// Whether it has priority inheritance.
    #[inline]
    pub(super) fn inherits(&self) -> bool {
        U::CONTEXTS && self.locks.is_some()
    }

    /// The platform.
    #[inline(always)]
    pub(super) fn platform(&self) -> &U::Platform {
        self.uses.platform()
    }

    /// Whether messages end by the controller's interrupt.
    #[inline(always)]
    pub(super) fn is_interrupted(&self) -> bool {
        U::INTERRUPT && self.pump == Pump::Interrupt
    }

    /// Whether each message's context is noted.
    #[inline(always)]
    fn notes(&self) -> bool {
        U::CONTEXTS && self.noting
    }

    /// The caller's context.
    #[inline]
    pub(super) fn context(&self) -> usize {
        if U::CONTEXTS && self.contexts { self.platform().context() } else { 0 }
    }

    /// Records that the caller's context has the bus while user code runs, and whether it has the queue
    /// too. No context has the bus already.
    pub(super) fn set_user(&self, tends: bool) {
        if U::CONTEXTS && self.contexts {
            self.user.store(self.platform().context(), Ordering::Relaxed);
            self.user_tends.store(tends, Ordering::Relaxed);
        }
    }

    /// Ends what [`Bus::set_user`] began.
    pub(super) fn clear_user(&self) {
        if U::CONTEXTS {
            self.user.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the caller's own context has the bus, so that waiting would deadlock. Always false
    /// if the platform does not tell contexts apart.
    pub(super) fn is_ours(&self) -> bool {
        if let Some(inheriting) = self.inheriting() {
            return inheriting.owns_wire();
        }
        let user = if U::CONTEXTS { self.user.load(Ordering::Relaxed) } else { 0 };
        user != 0 && user == self.context()
    }

    /// Whether the caller's own context has the queue, further up its stack. Never with inheritance,
    /// where a holder has the wire only.
    pub(super) fn user_tends(&self) -> bool {
        !self.inherits() && self.is_ours() && self.user_tends.load(Ordering::Relaxed)
    }

    /// The wire, for the thread that owns it.
    ///
    /// # Safety
    /// The caller owns the wire and has no other `WireRight`.
    #[inline]
    pub(super) unsafe fn wire(&self) -> WireRight<'_, C, U> {
        WireRight { bus: self }
    }

    /// The queue, for a tender.
    ///
    /// # Safety
    /// The caller owns the queue and has no other `QueueRight`.
    #[inline]
    pub(super) unsafe fn tended(&self) -> QueueRight<'_, C, U> {
        QueueRight { bus: self }
    }
}

impl<C: Controller + ?Sized, U: Uses> Bus<C, U> {
    /// Acquires an idle bus.
    #[inline]
    pub(super) fn try_acquire_idle(&self) -> Option<Held<'_, C, U>> {
        self.word
            .compare_exchange(IDLE, HOLDER, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            // Lazily: an eager `Held` dropped here would release another holder's bus.
            .then(|| Held { wire: WireRight { bus: self } })
    }

    /// Acquires the wire of an idle bus, for a lock.
    #[inline]
    pub(super) fn try_acquire_wire(&self) -> Option<WireRight<'_, C, U>> {
        self.word
            .compare_exchange(IDLE, LOCK, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then_some(WireRight { bus: self })
    }

    /// Runs `with` on the controller, while no message runs: waits for the bus as [`Bus::device`]
    /// does. For work that is not a message, such as taking the hardware out from under the bus.
    ///
    /// The bus is held meanwhile, as in a callback: a call that would wait for the bus fails or waits for
    /// ever.
    ///
    /// # Errors
    /// [`Error::WouldDeadlock`] if the caller's context has the bus.
    pub fn with_controller<R>(&self, with: impl FnOnce(&mut C) -> R) -> Result<R, Error> {
        let mut held = self.acquire()?;
        let user = User::new(self);
        let result = held.wire.drive(with);
        drop(user);
        held.release();
        Ok(result)
    }

    /// Runs a message on a bus that notes each message's context.
    ///
    /// # Safety
    /// As [`Bus::wire`], for as long as this runs.
    // A function of its own, so that the driver's code stands once in its caller; of the bus and not of a borrowed
    // `WireRight`, which would have to be in memory then.
    #[cold]
    #[inline(never)]
    unsafe fn run_noted(
        &self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        // SAFETY: the caller's promise.
        let mut wire = unsafe { self.wire() };
        wire.drive(|controller| controller.run(preset, message))
    }

    /// [`Bus::run_noted`] for one exchange, which it counts.
    ///
    /// # Safety
    /// As [`Bus::run_noted`].
    #[cold]
    #[inline(never)]
    unsafe fn run_noted_exchange(
        &self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        // SAFETY: the caller's promise.
        let mut wire = unsafe { self.wire() };
        wire.run(preset, &mut [Transfer::of_plan(tx, rx, preset.plan)], Path::Immediate)
    }

    /// The bus, for its holder.
    ///
    /// # Safety
    /// The caller is the holder, or was just made the holder.
    #[inline]
    pub(super) unsafe fn held(&self) -> Held<'_, C, U> {
        Held { wire: WireRight { bus: self } }
    }
}

/// [`Bus::set_user`] of a holder for as long as it lives, also if user code panics.
pub(super) struct User<'b, C: ?Sized, U: Uses = AnyPlatform>(&'b Bus<C, U>);

impl<'b, C: ?Sized, U: Uses> User<'b, C, U> {
    pub(super) fn new(bus: &'b Bus<C, U>) -> Self {
        bus.set_user(true);
        Self(bus)
    }

    /// For code of a controller that may use the bus. `None` if it is noted already: by a lock, which
    /// has no queue.
    #[inline]
    fn of_controller(bus: &'b Bus<C, U>) -> Option<Self> {
        (bus.notes() && bus.user.load(Ordering::Relaxed) == 0).then(|| Self::new(bus))
    }
}

impl<C: ?Sized, U: Uses> Drop for User<'_, C, U> {
    fn drop(&mut self) {
        self.0.clear_user();
    }
}

/// The wire: the right to drive the controller.
pub(super) struct WireRight<'b, C: ?Sized, U: Uses = AnyPlatform> {
    pub(super) bus: &'b Bus<C, U>,
}

impl<C: ?Sized, U: Uses> WireRight<'_, C, U> {
    /// Asks the controller.
    pub(super) fn ask<R>(&self, ask: impl FnOnce(&C) -> R) -> R {
        let _user = User::of_controller(self.bus);
        // SAFETY: this is the only `WireRight` of the bus (module, Safety), and it is borrowed.
        ask(unsafe { &*self.bus.controller.get() })
    }

    /// Drives the controller.
    #[inline]
    pub(super) fn drive<R>(&mut self, drive: impl FnOnce(&mut C) -> R) -> R {
        let _user = User::of_controller(self.bus);
        drive(self.controller_mut())
    }

    /// The controller, if it never uses its bus.
    #[inline]
    fn controller_mut(&mut self) -> &mut C {
        // SAFETY: this is the only `WireRight` of the bus (module, Safety), borrowed mutably.
        unsafe { &mut *self.bus.controller.get() }
    }
}

impl<C: Controller + ?Sized, U: Uses> WireRight<'_, C, U> {
    /// Runs a planned message, and counts it if the bus counts.
    #[inline]
    pub(super) fn run(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
        path: Path,
    ) -> Result<usize, Unfinished> {
        let ran = self.run_uncounted(preset, message);
        self.count(preset, message, path, ran);
        ran
    }

    /// [`WireRight::run`] with the counting in a function of its own, which keeps the code of a prepared
    /// access short.
    #[inline(always)]
    pub(super) fn run_prepared(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
        path: Path,
    ) -> Result<usize, Unfinished> {
        let ran = self.run_uncounted(preset, message);
        if self.bus.is_counting() {
            self.bus.counters.count_apart(path, preset, message, ran);
        }
        ran
    }

    /// Runs a planned message for a caller that counts it.
    #[inline(always)]
    pub(super) fn run_uncounted(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        if self.bus.notes() {
            // SAFETY: the wire is ours, and this returns before it is used again.
            return unsafe { self.bus.run_noted(preset, message) };
        }
        self.controller_mut().run(preset, message)
    }

    /// Runs a planned exchange of `tx` and `rx` at once; counts as [`WireRight::run_prepared`] does.
    #[inline(always)]
    pub(super) fn run_exchange(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        if self.bus.notes() {
            // SAFETY: the wire is ours, and this returns before it is used again.
            return unsafe { self.bus.run_noted_exchange(preset, tx, rx) };
        }
        let ran = self.controller_mut().run_exchange(preset, tx, rx);
        if self.bus.is_counting() {
            self.bus.counters.count_exchange_apart(preset, ran);
        }
        ran
    }

    /// [`WireRight::run`] for a caller that must not sleep: polls the wire even if interrupts were
    /// planned.
    pub(super) fn run_polled(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
        path: Path,
    ) -> Result<usize, Unfinished> {
        if !message.iter().any(|transfer| transfer.plan.by_interrupt()) {
            return self.run_unless_busy(preset, message, path);
        }
        // A prepared message keeps its plan for its next runs.
        for transfer in message.iter_mut() {
            transfer.plan = transfer.plan.polled_once();
        }
        let ran = self.run_unless_busy(preset, message, path);
        for transfer in message {
            transfer.plan = transfer.plan.as_planned();
        }
        ran
    }

    /// [`WireRight::run`]; a message that found the hardware taken does not count.
    fn run_unless_busy(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
        path: Path,
    ) -> Result<usize, Unfinished> {
        let ran = self.run_uncounted(preset, message);
        if ran != Err(Unfinished::BUSY) {
            self.count(preset, message, path, ran);
        }
        ran
    }

    /// Runs a message. Plans it first if it is not planned, and joins it if its chip select would
    /// pulse. If `POLLED`, as [`WireRight::run_polled`].
    pub(super) fn plan_and_run<const POLLED: bool>(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
        mut planned: bool,
        path: Path,
    ) -> Result<usize, MessageError> {
        if !U::PLANS {
            return match planned || plan_plain(preset, message) {
                true => self.run_planned::<POLLED>(preset, message, path),
                false => Err(refusal(preset, message)),
            };
        }
        run_or_join(message, |message| {
            if !planned {
                self.ask(|controller| controller.plan(preset, message))?;
            }
            // The joined message needs a plan of its own.
            planned = false;
            self.run_planned::<POLLED>(preset, message, path)
        })
    }

    #[inline]
    fn run_planned<const POLLED: bool>(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
        path: Path,
    ) -> Result<usize, MessageError> {
        let ran = match POLLED {
            true => self.run_polled(preset, message, path),
            false => self.run(preset, message, path),
        };
        ran.map_err(|unfinished| unfinished.explain(message))
    }

    /// Counts a message that was run, if the bus counts.
    #[inline]
    pub(super) fn count(
        &self,
        preset: &Preset,
        message: &[Transfer<'_>],
        path: Path,
        ran: Result<usize, Unfinished>,
    ) {
        if self.bus.is_counting() {
            self.bus.counters.count(path, preset, message, ran);
        }
    }
}

/// The queue: the right to take pushed nodes into it and to remove nodes.
pub(super) struct QueueRight<'b, C: ?Sized, U: Uses = AnyPlatform> {
    pub(super) bus: &'b Bus<C, U>,
}

impl<C: ?Sized, U: Uses> QueueRight<'_, C, U> {
    #[inline]
    pub(super) fn queue<R>(&mut self, with: impl FnOnce(&mut Queue) -> R) -> R {
        self.bus.queue.with_mut(|queue| {
            // SAFETY: this is the only `QueueRight` of the bus (module, Safety), borrowed mutably; `with`
            // cannot reach it.
            with(unsafe { &mut *queue })
        })
    }
}

/// The bus, held: the wire and the queue; on a bus with inheritance only the wire.
///
/// Ends in [`Held::release`]. It is dropped only when a panic unwinds: then the bus is released
/// without raising a second panic.
pub(super) struct Held<'b, C: Controller + ?Sized, U: Uses = AnyPlatform> {
    pub(super) wire: WireRight<'b, C, U>,
}

impl<C: Controller + ?Sized, U: Uses> Held<'_, C, U> {
    /// Forgets the right: another holder has it now.
    #[inline]
    pub(super) fn pass_on(self) {
        mem::forget(self);
    }

    /// [`Held::release`] for a caller of that priority: an urgent caller leaves the queue to
    /// others, if there are any that can serve it.
    #[inline]
    pub(super) fn release_for(self, priority: impl FnOnce() -> u8) {
        if self.wire.bus.release_idle() {
            self.pass_on();
        } else {
            let budget = if priority() > 0 { 0 } else { SERVE_MAX };
            self.release_contended(budget);
        }
    }

    /// Releases the bus. If something was queued meanwhile, serves it first or hands the bus over.
    #[inline]
    pub(super) fn release(self) {
        self.release_for(|| 0);
    }
}

impl<C: ?Sized, U: Uses> Bus<C, U> {
    /// Releases a bus that is held and has nothing pushed or queued.
    #[inline]
    pub(super) fn release_idle(&self) -> bool {
        if !U::QUEUE {
            self.word.store(IDLE, Ordering::Release);
            return true;
        }
        self.word.compare_exchange(HOLDER, IDLE, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}

impl<C: Controller + ?Sized, U: Uses> Drop for Held<'_, C, U> {
    #[cold]
    fn drop(&mut self) {
        if U::QUEUE {
            // SAFETY: the bus is ours, and `self` is not used again.
            unsafe { self.wire.bus.held() }.abandon();
        } else {
            self.wire.bus.release_idle();
        }
    }
}
