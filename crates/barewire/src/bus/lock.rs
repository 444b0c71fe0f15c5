//! The bus word: one compare-and-swap takes the bus, one exchange gives it back.
//!
//! # Ordering
//! 1. Taking is an acquire: the taker sees every write of the holder before.
//! 2. Giving back is a release, and an exchange rather than a store, because the word is also
//!    where messages that found the bus taken will be pushed: the exchange then takes them all,
//!    atomically with the release, so that none can be missed. Until that queue exists the word
//!    has two values and the exchange can only find [`HELD`].
//! 3. The holder alone touches the controller.
//!
//! # Safety
//! `Bus` hands out `&mut` to the controller through [`Held`], of which there is at most one: it
//! is made only by the compare-and-swap from [`IDLE`] to [`HELD`], which only [`Held`]'s
//! destructor undoes.
#![allow(unsafe_code, reason = "the controller lies in an UnsafeCell that the bus word guards")]

use core::cell::UnsafeCell;
use core::fmt;
use core::ops::{Deref, DerefMut};
#[cfg(not(loom))]
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering;

#[cfg(loom)]
use loom::sync::atomic::AtomicUsize;

use super::Device;
use crate::controller::Controller;
use crate::spi::{Error, Settings};

/// Nobody drives the bus.
const IDLE: usize = 0;
/// Somebody does. Any other value is the queue's place: the address of the message pushed last.
const HELD: usize = 1;

/// One controller, its lock, and in time its queue.
///
/// `C` may be unsized: a `&Bus<Ecspi<…>>` coerces to `&Bus<dyn Controller>`.
pub struct Bus<C: ?Sized> {
    word: AtomicUsize,
    relax: fn(),
    controller: UnsafeCell<C>,
}

// SAFETY: the controller is reached through `Held` alone, by one thread at a time (module,
// Safety), so sharing the bus only ever sends the controller between threads.
unsafe impl<C: ?Sized + Send> Sync for Bus<C> {}

impl<C: ?Sized> fmt::Debug for Bus<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.word.load(Ordering::Relaxed) != IDLE;
        f.debug_struct("Bus").field("taken", &taken).finish_non_exhaustive()
    }
}

impl<C> Bus<C> {
    /// A bus over `controller`. Whoever finds it taken spins.
    #[cfg(not(loom))]
    pub const fn new(controller: C) -> Self {
        Self::with_relax(controller, core::hint::spin_loop)
    }

    /// The same, with what to do between two looks at a taken bus: yield to a scheduler, wait
    /// for an event, let virtual time pass.
    #[cfg(not(loom))]
    pub const fn with_relax(controller: C, relax: fn()) -> Self {
        Self { word: AtomicUsize::new(IDLE), relax, controller: UnsafeCell::new(controller) }
    }

    /// The same for the model checker, whose atomics no constant can make.
    #[cfg(loom)]
    pub fn with_relax(controller: C, relax: fn()) -> Self {
        Self { word: AtomicUsize::new(IDLE), relax, controller: UnsafeCell::new(controller) }
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

    /// Takes the bus if it is free.
    #[inline]
    pub(super) fn try_take(&self) -> Option<Held<'_, C>> {
        self.word
            .compare_exchange(IDLE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            // Lazily: a `Held` made and dropped here would give back somebody else's bus.
            .then(|| Held { bus: self })
    }

    /// Takes the bus, waiting for it.
    #[inline]
    pub(super) fn take(&self) -> Held<'_, C> {
        match self.try_take() {
            Some(held) => held,
            None => self.take_slowly(),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_slowly(&self) -> Held<'_, C> {
        loop {
            // Look without writing first: spinning on the swap would keep taking the cache line
            // away from the holder.
            while self.word.load(Ordering::Relaxed) != IDLE {
                (self.relax)();
            }
            if let Some(held) = self.try_take() {
                return held;
            }
        }
    }
}

impl<C: Controller + ?Sized> Bus<C> {
    /// Opens a device: computes what its settings imply, waiting for the bus.
    ///
    /// # Errors
    /// Whatever the controller cannot do (see [`Controller::configure`]); a chip select that may
    /// sleep ([`Error::CsCanSleep`]) among it.
    pub fn device(&self, settings: &Settings) -> Result<Device<'_, C>, Error> {
        let (program, effective) = self.take().configure(settings)?;
        Ok(Device::new(self, *settings, program, effective))
    }
}

/// The bus, held: the one way to its controller.
pub(super) struct Held<'b, C: ?Sized> {
    bus: &'b Bus<C>,
}

impl<C: ?Sized> Deref for Held<'_, C> {
    type Target = C;

    #[inline]
    fn deref(&self) -> &C {
        // SAFETY: this is the only `Held` of the bus (module, Safety), and it is borrowed.
        unsafe { &*self.bus.controller.get() }
    }
}

impl<C: ?Sized> DerefMut for Held<'_, C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut C {
        // SAFETY: this is the only `Held` of the bus (module, Safety), borrowed mutably.
        unsafe { &mut *self.bus.controller.get() }
    }
}

impl<C: ?Sized> Drop for Held<'_, C> {
    #[inline]
    fn drop(&mut self) {
        let found = self.bus.word.swap(IDLE, Ordering::Release);
        debug_assert_eq!(found, HELD, "only the holder gives the bus back");
    }
}
