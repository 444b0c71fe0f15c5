//! The simulator's platform, watched: whether a call found the bus idle; and an executor for a
//! few futures.
//!
//! # How it works
//! The bus reads [`Platform::context`] when it cannot serve a call at once, and once for each
//! callback that its holder calls. A call that caused reads for callbacks only was therefore never
//! queued. This is the judge's own count of `spi_sync_immediate`.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};

use barewire::bus::Platform;
use barewire::bus::platform::{AtomicU32, Inheritance, WaitWord};
use barewire_sim::SimPlatform;

use super::frame::CONTEXTS_MAX;

thread_local! {
    static LOOKS: Cell<u32> = const { Cell::new(0) };
    /// By context; the first entry belongs to none. Simulated threads share the host thread's.
    static ASKED: [Cell<u64>; CONTEXTS_MAX + 1] = const { [const { Cell::new(0) }; CONTEXTS_MAX + 1] };
}

/// After this many looks without the end of a message, the contexts are taken to wait for each
/// other.
const LOOKS_MAX: u32 = 200_000;

/// Counts a call to the platform since the last message ended.
///
/// # Panics
/// At [`LOOKS_MAX`] calls.
fn look() {
    let looks = LOOKS.get() + 1;
    LOOKS.set(looks);
    assert!(
        looks < LOOKS_MAX,
        "no message ended while {looks} times somebody waited: messages are lost, or contexts keep \
         each other from going on"
    );
}

/// A message ended: counts from 0 again.
pub(super) fn goes_on() {
    LOOKS.set(0);
}

/// [`SimPlatform`], watched.
#[derive(Debug)]
pub(super) struct WatchedPlatform {
    inherits: bool,
}

impl WatchedPlatform {
    /// With priority inheritance or without.
    pub(super) fn of(inherits: bool) -> &'static Self {
        if inherits { &Self { inherits: true } } else { &Self { inherits: false } }
    }
}

impl Platform for WatchedPlatform {
    fn context(&self) -> usize {
        look();
        let context = SimPlatform.context();
        ASKED.with(|asked| asked[context].set(asked[context].get() + 1));
        context
    }

    fn relax(&self) {
        look();
        SimPlatform.relax();
    }

    /// Few: spinning costs little virtual time and much of the host's.
    fn spins(&self) -> u32 {
        4
    }

    fn wait(&self, word: WaitWord<'_>, expected: u32) {
        look();
        SimPlatform.wait(word, expected);
    }

    fn wake(&self, word: *const AtomicU32) {
        SimPlatform.wake(word);
    }

    fn inheritance(&self) -> Option<&dyn Inheritance> {
        self.inherits.then_some(&SimPlatform::WITH_INHERITANCE)
    }
}

/// A callback of the stress run was called: the bus asked for its context then.
pub(super) fn called_back() {
    let place = SimPlatform.context();
    ASKED.with(|asked| asked[place].set(asked[place].get() - 1));
}

/// Runs `call`, and says whether the bus was idle for it.
pub(super) fn found_idle<R>(call: impl FnOnce() -> R) -> (R, bool) {
    let place = SimPlatform.context();
    let asked = || ASKED.with(|asked| asked[place].get());
    let before = asked();
    let result = call();
    (result, asked() == before)
}

/// Wakes the simulated thread that runs futures.
struct Bell(AtomicU32);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(1, Ordering::Release);
        SimPlatform.wake(&self.0);
    }
}

/// A pinned future in a box.
pub(super) type BoxedFuture<'f, T> = Pin<Box<dyn Future<Output = T> + 'f>>;

/// Polls `futures`, in their order first, until all are ready or `patience` rounds have passed;
/// what is not ready then is dropped. Between rounds the thread sleeps until it is woken.
pub(super) fn join<T>(futures: Vec<BoxedFuture<'_, T>>, mut patience: u32) -> Vec<Option<T>> {
    let bell = Arc::new(Bell(AtomicU32::new(0)));
    let waker = Waker::from(bell.clone());
    let mut cx = Context::from_waker(&waker);
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    let mut futures: Vec<_> = futures.into_iter().map(Some).collect();
    loop {
        bell.0.store(0, Ordering::Relaxed);
        for (place, result) in futures.iter_mut().zip(&mut results) {
            let Some(future) = place else { continue };
            if let Poll::Ready(ready) = future.as_mut().poll(&mut cx) {
                *result = Some(ready);
                *place = None;
            }
        }
        if patience == 0 || futures.iter().all(Option::is_none) {
            return results;
        }
        patience -= 1;
        look();
        while bell.0.load(Ordering::Acquire) == 0 {
            SimPlatform.wait((&bell.0).into(), 0);
        }
    }
}
