//! A controller that holds a lock between processes during each message.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use barewire::controller::{Controller, Preset, Unfinished};
use barewire::middleware::Layer;
#[cfg(doc)]
use barewire::spi::Error;
use barewire::spi::Transfer;
use rustix::io::Errno;

use super::error::SharedError;
use super::lock::{Holder, NO_USER, OnWait, SharedLock};
use crate::sys;
use crate::sys::robust::{HeldMutex, MutexState};

/// A controller that other processes use too.
pub struct ProcessShared<C> {
    /// Dropped before the lock: registers that are mapped without it belong to a stranger.
    inner: C,
    lock: Arc<SharedLock>,
    opener: Opener,
}

/// One user of a lock.
struct Opener {
    /// Its number.
    user: u32,
    /// The process that has the number.
    process: u32,
    times: Arc<AtomicU32>,
    on_recovered: Option<Box<dyn FnMut(Recovered) + Send>>,
    waiting: Waiting,
}

/// What a message does while another process has the lock.
enum Waiting {
    /// It waits.
    Waits,
    /// It asks every 100 ms whether to wait longer.
    Asks(OnWait),
    /// It does not wait now. The field keeps the callback for calls that may wait.
    Not(Option<OnWait>),
}

/// Reports that the bus was recovered after a process died within a message, or close to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// How many times this opener has recovered the bus.
    pub times: u32,
    /// How many times all openers have recovered the bus since the lock was made.
    pub total: u32,
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bus was recovered {} times, {} times in all", self.times, self.total)
    }
}

/// Counts recoveries after the controller was moved into its bus.
#[derive(Clone, Debug)]
pub struct Recoveries {
    lock: Arc<SharedLock>,
    times: Arc<AtomicU32>,
}

impl Recoveries {
    /// How many times this opener recovered the bus after a process died.
    #[must_use]
    pub fn times(&self) -> u32 {
        self.times.load(Ordering::Relaxed)
    }

    /// How many times all openers did, since the lock was made.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.lock.deaths().load(Ordering::Relaxed)
    }
}

impl Waiting {
    fn with(on_wait: Option<OnWait>) -> Self {
        on_wait.map_or(Self::Waits, Self::Asks)
    }

    fn set(&mut self, waits: bool) {
        let on_wait = match std::mem::replace(self, Self::Waits) {
            Self::Waits => None,
            Self::Asks(tell) => Some(tell),
            Self::Not(on_wait) => on_wait,
        };
        *self = if waits { Self::with(on_wait) } else { Self::Not(on_wait) };
    }
}

impl Opener {
    fn new(lock: &mut SharedLock) -> Self {
        Self {
            user: lock.new_user(),
            process: sys::process_number(),
            times: Arc::default(),
            on_recovered: None,
            waiting: Waiting::with(lock.take_on_wait()),
        }
    }

    /// Acquires the lock; waits as [`SharedLock::on_wait`] says.
    #[inline]
    fn acquire<'l>(&mut self, lock: &'l SharedLock) -> Result<(HeldMutex<'l>, MutexState), Errno> {
        match &mut self.waiting {
            Waiting::Waits => lock.mutex().acquire(),
            Waiting::Asks(tell) => acquire_while(lock, tell),
            Waiting::Not(_) => lock.mutex().try_acquire(),
        }
    }

    /// Whether the block is in the state in which this opener left it.
    #[inline]
    fn was_last(&self, lock: &SharedLock, found: MutexState) -> bool {
        found == MutexState::Free
            && lock.last_user().load(Ordering::Relaxed) == self.user
            && self.process == sys::process_number()
    }

    /// Step 2 of the module; `reclaim` brings the block to a known state.
    #[cold]
    #[inline(never)]
    fn settle<T>(
        &mut self,
        lock: &SharedLock,
        found: MutexState,
        reclaim: impl FnOnce() -> T,
    ) -> Result<T, Errno> {
        // Comes first, even for a caller that is refused below: acquiring has cleared a dead
        // owner's mark.
        lock.last_user().store(NO_USER, Ordering::Relaxed);
        if found == MutexState::OwnerDied {
            lock.deaths().fetch_add(1, Ordering::Relaxed);
            self.times.fetch_add(1, Ordering::Relaxed);
        }
        if sys::is_memory_borrowed() {
            return Err(Errno::CHILD);
        }
        if self.process != sys::process_number() {
            // A child's: the number is the parent's, and the PID namespace may be another one.
            lock.is_of_this_process()?;
            self.user = lock.new_user();
            self.process = sys::process_number();
        }
        let reclaimed = reclaim();
        lock.last_user().store(self.user, Ordering::Relaxed);
        if found == MutexState::OwnerDied {
            if let Some(tell) = &mut self.on_recovered {
                let times = self.times.load(Ordering::Relaxed);
                tell(Recovered { times, total: lock.deaths().load(Ordering::Relaxed) });
            }
        }
        Ok(reclaimed)
    }
}

/// Acquires the lock; `tell` decides whether to wait.
fn acquire_while<'l>(
    lock: &'l SharedLock,
    tell: &mut dyn FnMut(Holder) -> ControlFlow<()>,
) -> Result<(HeldMutex<'l>, MutexState), Errno> {
    let mut begun = None;
    lock.mutex().acquire_while(&mut |thread| {
        let begun: Instant = *begun.get_or_insert_with(Instant::now);
        tell(Holder { waited: begun.elapsed(), thread })
    })
}

impl<C> ProcessShared<C> {
    /// Shares `controller`, which must be idle or not brought up yet: the first message reclaims
    /// it.
    pub fn new(mut lock: SharedLock, controller: C) -> Self {
        let opener = Opener::new(&mut lock);
        Self { lock: Arc::new(lock), opener, inner: controller }
    }

    /// Shares a controller that `controller` brings up while this process holds the lock, so that
    /// no other process is within a message. Waits for the lock as [`SharedLock::on_wait`] says.
    ///
    /// # Errors
    /// [`SharedError::Mutex`], with `EINTR` if the waiting was stopped.
    pub fn bring_up(lock: SharedLock, controller: impl FnOnce() -> C) -> Result<Self, SharedError> {
        Self::bring_up_by(lock, controller, |opener, lock| opener.acquire(lock))
    }

    /// [`ProcessShared::bring_up`] that asks `tell` every 100 ms whether to wait longer for the lock.
    /// Later messages wait as [`SharedLock::on_wait`] says.
    ///
    /// # Errors
    /// As [`ProcessShared::bring_up`].
    pub fn bring_up_while(
        lock: SharedLock,
        tell: &mut dyn FnMut(Holder) -> ControlFlow<()>,
        controller: impl FnOnce() -> C,
    ) -> Result<Self, SharedError> {
        Self::bring_up_by(lock, controller, |_, lock| acquire_while(lock, tell))
    }

    fn bring_up_by(
        mut lock: SharedLock,
        controller: impl FnOnce() -> C,
        acquire: impl for<'l> FnOnce(
            &mut Opener,
            &'l SharedLock,
        ) -> Result<(HeldMutex<'l>, MutexState), Errno>,
    ) -> Result<Self, SharedError> {
        let mut opener = Opener::new(&mut lock);
        let (held, found) = acquire(&mut opener, &lock).map_err(|errno| lock.mutex_error(errno))?;
        let settled = opener.settle(&lock, found, controller);
        drop(held);
        let inner = settled.map_err(|errno| lock.mutex_error(errno))?;
        Ok(Self { lock: Arc::new(lock), opener, inner })
    }

    /// Sets a callback for recoveries. It runs in the thread whose message found that a process had
    /// died, after the controller was reclaimed and before that message.
    #[must_use]
    pub fn on_recovered(mut self, tell: impl FnMut(Recovered) + Send + 'static) -> Self {
        self.opener.on_recovered = Some(Box::new(tell));
        self
    }

    /// A view of the recoveries, to keep when the controller moves into its bus.
    #[must_use]
    pub fn recoveries(&self) -> Recoveries {
        Recoveries { lock: Arc::clone(&self.lock), times: Arc::clone(&self.opener.times) }
    }

    /// The controller.
    pub fn inner(&self) -> &C {
        &self.inner
    }
}

/// An error before anything was clocked.
fn refused(errno: Errno) -> Unfinished {
    match errno {
        Errno::AGAIN => Unfinished::BUSY,
        errno => Unfinished::os(0, errno.raw_os_error()),
    }
}

impl<C: Controller> ProcessShared<C> {
    /// Steps 1 and 2 of the module. Returns the controller for step 3, and the lock, whose drop is
    /// step 4.
    // Takes no closure with the message in it: with two callers the compiler would not inline that.
    #[inline(always)]
    fn locked(&mut self) -> Result<(HeldMutex<'_>, &mut C), Unfinished> {
        let Self { lock, opener, inner } = self;
        // Step 1: acquire the lock.
        let (held, found) = opener.acquire(lock).map_err(refused)?;
        // Step 2: another opener used the block last, or its user died.
        if !opener.was_last(lock, found) {
            opener.settle(lock, found, || inner.reclaim()).map_err(refused)?;
        }
        Ok((held, inner))
    }
}

/// Methods that do not access the block need no lock.
impl<C: Controller> Layer for ProcessShared<C> {
    barewire::wrapped_controller!(inner: C);

    /// Runs a planned message; waits for other processes' messages first.
    ///
    /// # Errors
    /// The controller's error; or [`Error::Os`] with the kernel's error about the lock, with nothing
    /// clocked.
    #[inline]
    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let (_held, inner) = self.locked()?;
        inner.run(preset, message)
    }

    // Always: a call would cost a fifth of the lock.
    #[inline(always)]
    fn run_exchange_layer(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        let (_held, inner) = self.locked()?;
        inner.run_exchange(preset, tx, rx)
    }

    fn set_waiting_layer(&mut self, waits: bool) {
        self.opener.waiting.set(waits);
        self.inner.set_waiting(waits);
    }

    /// Does nothing if the lock cannot be acquired: the next message reports why.
    fn reclaim_layer(&mut self) {
        let Self { lock, opener, inner } = self;
        if let Ok((_held, found)) = opener.acquire(lock) {
            let _ = opener.settle(lock, found, || inner.reclaim());
        }
    }
}

impl<C: fmt::Debug> fmt::Debug for ProcessShared<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessShared")
            .field("lock", &self.lock)
            .field("user", &self.opener.user)
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
