//! A controller whose messages hold a lock between processes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use barewire::controller::{Controller, Limits, Plan, Program, Unfinished};
use barewire::spi::{Effective, Error, MessageError, Settings, Transfer};
use rustix::io::Errno;

use super::error::SharedError;
use super::lock::{Holder, NOBODY, OnWait, SharedLock};
use crate::sys;
use crate::sys::mutex::{Found, Held};

/// A controller that other processes use too.
pub struct ProcessShared<C> {
    lock: Arc<SharedLock>,
    opener: Opener,
    inner: C,
}

/// One of those who use a lock.
struct Opener {
    /// Its number.
    user: u32,
    /// Of which process it is the number.
    forks: u32,
    times: Arc<AtomicU32>,
    on_recovered: Option<Box<dyn FnMut(Recovered) + Send>>,
    on_wait: Option<OnWait>,
}

/// A bus was taken over from a process that died in a message, or close to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// How often this opener has done that.
    pub times: u32,
    /// How often all have, since the lock was made.
    pub in_all: u32,
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bus was recovered {} times, {} times in all", self.times, self.in_all)
    }
}

/// Counts recoveries while the controller is in its bus.
#[derive(Clone, Debug)]
pub struct Recoveries {
    lock: Arc<SharedLock>,
    times: Arc<AtomicU32>,
}

impl Recoveries {
    /// How often this opener took the bus over from a process that died.
    #[must_use]
    pub fn times(&self) -> u32 {
        self.times.load(Ordering::Relaxed)
    }

    /// How often any did, since the lock was made.
    #[must_use]
    pub fn in_all(&self) -> u32 {
        self.lock.deaths().load(Ordering::Relaxed)
    }
}

impl Opener {
    fn new(lock: &mut SharedLock) -> Self {
        sys::fork::watch();
        Self {
            user: lock.new_user(),
            forks: sys::fork::forks(),
            times: Arc::default(),
            on_recovered: None,
            on_wait: lock.take_on_wait(),
        }
    }

    /// Takes the lock, as patiently as the opener is.
    #[inline]
    fn take<'l>(&mut self, lock: &'l SharedLock) -> Result<(Held<'l>, Found), Errno> {
        let Some(tell) = &mut self.on_wait else { return lock.mutex().take() };
        let mut begun = None;
        lock.mutex().take_while(&mut |thread| {
            let begun: Instant = *begun.get_or_insert_with(Instant::now);
            tell(Holder { waited: begun.elapsed(), thread })
        })
    }

    /// Whether the block is as this opener left it.
    #[inline]
    fn was_last(&self, lock: &SharedLock, found: Found) -> bool {
        found == Found::Free
            && lock.last_user().load(Ordering::Relaxed) == self.user
            && self.forks == sys::fork::forks()
    }

    /// Step 2 of the module: `reclaim` brings the block into order.
    #[cold]
    #[inline(never)]
    fn settle<T>(
        &mut self,
        lock: &SharedLock,
        held: &Held<'_>,
        found: Found,
        reclaim: impl FnOnce() -> T,
    ) -> Result<T, Errno> {
        lock.last_user().store(NOBODY, Ordering::Relaxed);
        if found == Found::OwnerDied {
            lock.deaths().fetch_add(1, Ordering::Relaxed);
            self.times.fetch_add(1, Ordering::Relaxed);
            held.make_consistent()?;
        }
        if self.forks != sys::fork::forks() {
            // The number is the parent's.
            self.user = lock.new_user();
            self.forks = sys::fork::forks();
        }
        let reclaimed = reclaim();
        lock.last_user().store(self.user, Ordering::Relaxed);
        if found == Found::OwnerDied
            && let Some(tell) = &mut self.on_recovered
        {
            let times = self.times.load(Ordering::Relaxed);
            tell(Recovered { times, in_all: lock.deaths().load(Ordering::Relaxed) });
        }
        Ok(reclaimed)
    }
}

impl<C> ProcessShared<C> {
    /// Shares `controller`, whose registers nobody has touched yet or that is idle: the first
    /// message reclaims it.
    pub fn new(mut lock: SharedLock, controller: C) -> Self {
        let opener = Opener::new(&mut lock);
        Self { lock: Arc::new(lock), opener, inner: controller }
    }

    /// Shares a controller that is brought up under the lock, while no other process is in a
    /// message.
    ///
    /// # Errors
    /// [`SharedError::Mutex`], with `EINTR` where [`SharedLock::on_wait`] broke the waiting off.
    pub fn bring_up(
        mut lock: SharedLock,
        controller: impl FnOnce() -> C,
    ) -> Result<Self, SharedError> {
        let mut opener = Opener::new(&mut lock);
        let (held, found) = opener.take(&lock).map_err(|errno| lock.mutex_error(errno))?;
        let settled = opener.settle(&lock, &held, found, controller);
        drop(held);
        let inner = settled.map_err(|errno| lock.mutex_error(errno))?;
        Ok(Self { lock: Arc::new(lock), opener, inner })
    }

    /// The same, calling `tell` when the bus was taken over from a process that died: in the
    /// thread whose message found it so, after the controller is in order and before that message.
    #[must_use]
    pub fn on_recovered(mut self, tell: impl FnMut(Recovered) + Send + 'static) -> Self {
        self.opener.on_recovered = Some(Box::new(tell));
        self
    }

    /// A view of the recoveries that can be kept when the controller goes into its bus.
    #[must_use]
    pub fn recoveries(&self) -> Recoveries {
        Recoveries { lock: Arc::clone(&self.lock), times: Arc::clone(&self.opener.times) }
    }

    /// The controller.
    pub fn inner(&self) -> &C {
        &self.inner
    }
}

/// An errno before anything was clocked.
fn refused(errno: Errno) -> Unfinished {
    Unfinished::os(0, errno.raw_os_error())
}

impl<C: Controller> ProcessShared<C> {
    /// Steps 1 and 2 of the module: the controller for step 3, and the lock, whose drop is step 4.
    // Not around a closure with the message in it, which the compiler would call where it has two callers.
    #[inline(always)]
    fn locked(&mut self) -> Result<(Held<'_>, &mut C), Unfinished> {
        let Self { lock, opener, inner } = self;
        // Step 1: the lock.
        let (held, found) = opener.take(lock).map_err(refused)?;
        // Step 2: another had the block, or its owner died.
        if !opener.was_last(lock, found) {
            opener.settle(lock, &held, found, || inner.reclaim()).map_err(refused)?;
        }
        Ok((held, inner))
    }
}

/// What does not touch the block needs no lock.
impl<C: Controller> Controller for ProcessShared<C> {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn configure(&self, settings: &Settings) -> Result<(Program, Effective), Error> {
        self.inner.configure(settings)
    }

    fn plan(&self, program: &Program, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.inner.plan(program, message)
    }

    /// Runs a planned message, waiting for other processes' first.
    ///
    /// # Errors
    /// The controller's; [`Error::Os`] with what libc said of the lock, nothing being clocked.
    #[inline]
    fn run(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let (_held, inner) = self.locked()?;
        inner.run(program, message)
    }

    // Always: a call would cost a fifth of the lock.
    #[inline(always)]
    fn run_exchange(
        &mut self,
        program: &Program,
        plan: &Plan,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        let (_held, inner) = self.locked()?;
        inner.run_exchange(program, plan, tx, rx)
    }

    /// Does nothing if the lock cannot be had: the next message says why.
    fn reclaim(&mut self) {
        let Self { lock, opener, inner } = self;
        if let Ok((held, found)) = opener.take(lock) {
            let _ = opener.settle(lock, &held, found, || inner.reclaim());
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
