//! Worker threads: real-time priority, CPU affinity, locked memory.
//!
//! A thread serves a bus with [`Pump::Worker`]. This module starts one with the scheduling that its
//! user asks for, and reports what the system refused and how to get it.
//!
//! Read first: sched(7), mlockall(2).
//!
//! # Ordering
//! 1. Apply: the new thread locks memory, then sets its processors, then its priority. So a thread
//!    that is refused something never runs with priority.
//! 2. Report: the spawner learns of a refusal; then the body does not run, and the thread ends.
//! 3. Run: only if nothing was refused, the body runs and the spawner gets its worker.
//!
//! Locked memory belongs to the process: it stays locked after the worker ended, and if a later
//! step was refused.
//!
//! ```
//! use barewire_linux::worker::{Worker, WorkerOptions};
//!
//! let options = WorkerOptions { name: "spi0".into(), ..WorkerOptions::default() };
//! // With a bus: `|stop| serve(&bus, stop)`, followed by `ringing(|| bus.ring())`.
//! let worker = Worker::spawn(&options, |stop| {
//!     while !stop.is_set() {
//!         std::thread::park();
//!     }
//! })?;
//! let thread = worker.thread().clone();
//! worker.ringing(move || thread.unpark()).stop().expect("it did not panic");
//! # Ok::<(), barewire_linux::worker::WorkerError>(())
//! ```
//!
//! # Panics in a worker
//! With [`serve`] as the body, a panic of a callback, a waker or a controller ends neither the
//! worker nor its bus. The worker continues; [`Worker::stop`] and [`Worker::join`] return its first
//! panic.
//!
//! # Not supported
//! SCHED_RR and SCHED_DEADLINE. More than 1,024 processors, the limit of `cpu_set_t`.
//!
//! [`Pump::Worker`]: barewire::bus

mod error;
mod options;
mod priority;
#[cfg(test)]
mod tests;

pub(crate) use error::Limit;
pub use error::{Refused, WorkerError};
pub use options::WorkerOptions;
pub use priority::FifoPriority;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle, Scope, ScopedJoinHandle, Thread};

use barewire::bus::Bus;
use barewire::controller::Controller;
use rustix::io::Errno;

/// Asks a worker to end.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Whether the worker was asked to end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// The flag itself, for [`Bus::serve`].
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

/// Serves `bus` until `stop` is set and the bus [rung](Bus::ring): a worker's body. Returns how
/// many messages it ran, except in calls that panicked.
///
/// # Panics
/// With the first panic of a message that the worker ran, after the worker has ended. It continues
/// to serve until then.
pub fn serve<C: Controller + ?Sized>(bus: &Bus<C>, stop: &Stop) -> u64 {
    let mut ran = 0;
    let mut first_panic = None;
    loop {
        // The bus stays consistent after a panic of code that it called: that is its promise.
        match catch_unwind(AssertUnwindSafe(|| bus.serve(stop.flag()))) {
            Ok(more) => {
                ran += more;
                break;
            }
            // The panic hook has reported the later ones.
            Err(panic) => {
                first_panic.get_or_insert(panic);
            }
        }
    }
    match first_panic {
        Some(panic) => resume_unwind(panic),
        None => ran,
    }
}

/// A worker thread that borrows for `'s`.
///
/// Dropping it asks the thread to end and does not wait; a scope waits.
pub struct Worker<'s, T = ()> {
    stop: Arc<Stop>,
    thread: Thread,
    // `None` once joined.
    handle: Option<Handle<'s, T>>,
    ring: Option<Box<dyn FnOnce() + Send + 's>>,
}

/// A thread that was refused something returns `None`.
enum Handle<'s, T> {
    Free(JoinHandle<Option<T>>),
    Scoped(ScopedJoinHandle<'s, Option<T>>),
}

impl<T: Send + 'static> Worker<'static, T> {
    /// Starts a thread that runs `body` with `options`.
    ///
    /// # Errors
    /// [`WorkerError`]: the thread could not be made, or was refused something; the body has not run.
    pub fn spawn(
        options: &WorkerOptions,
        body: impl FnOnce(&Stop) -> T + Send + 'static,
    ) -> Result<Self, WorkerError> {
        let (stop, (report, outcome)) = (Arc::new(Stop::default()), mpsc::sync_channel(1));
        let run = begin(options.clone(), report, Arc::clone(&stop), body);
        let handle = builder(options)?.spawn(run).map_err(not_made)?;
        Worker {
            stop,
            thread: handle.thread().clone(),
            handle: Some(Handle::Free(handle)),
            ring: None,
        }
        .confirmed(&outcome)
    }
}

/// [`Worker::spawn`] for a body that borrows, for example from a bus on the stack. The scope ends
/// when the worker has: it must be asked to end, and woken by [`Worker::ringing`] if it sleeps.
///
/// # Errors
/// As [`Worker::spawn`].
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    options: &WorkerOptions,
    body: impl FnOnce(&Stop) -> T + Send + 'scope,
) -> Result<Worker<'scope, T>, WorkerError> {
    let (stop, (report, outcome)) = (Arc::new(Stop::default()), mpsc::sync_channel(1));
    let run = begin(options.clone(), report, Arc::clone(&stop), body);
    let handle = builder(options)?.spawn_scoped(scope, run).map_err(not_made)?;
    Worker {
        stop,
        thread: handle.thread().clone(),
        handle: Some(Handle::Scoped(handle)),
        ring: None,
    }
    .confirmed(&outcome)
}

fn builder(options: &WorkerOptions) -> Result<thread::Builder, WorkerError> {
    options.check()?;
    let builder = thread::Builder::new();
    Ok(if options.name.is_empty() { builder } else { builder.name(options.name.clone()) })
}

fn not_made(error: io::Error) -> WorkerError {
    WorkerError::Thread { errno: Errno::from_io_error(&error).unwrap_or(Errno::AGAIN) }
}

/// Runs in the new thread: steps 1 to 3 of the module.
fn begin<T>(
    options: WorkerOptions,
    report: SyncSender<Result<(), Refused>>,
    stop: Arc<Stop>,
    body: impl FnOnce(&Stop) -> T,
) -> impl FnOnce() -> Option<T> {
    move || {
        let applied = options.apply();
        let refused = applied.is_err();
        // The spawner waits for this, so the channel is open.
        let _ = report.send(applied);
        (!refused).then(|| body(&stop))
    }
}

impl<'s, T> Worker<'s, T> {
    fn confirmed(mut self, outcome: &Receiver<Result<(), Refused>>) -> Result<Self, WorkerError> {
        match outcome.recv() {
            Ok(Ok(())) => Ok(self),
            Ok(Err(refused)) => {
                let _ = self.wait();
                Err(WorkerError::Refused(refused))
            }
            Err(_) => unreachable!("the thread reports: applying options does not panic"),
        }
    }

    fn wait(&mut self) -> thread::Result<Option<T>> {
        match self.handle.take() {
            Some(Handle::Free(handle)) => handle.join(),
            Some(Handle::Scoped(handle)) => handle.join(),
            None => Ok(None),
        }
    }

    /// The thread.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Sets what wakes the body when it has to end: `|| bus.ring()`.
    #[must_use]
    pub fn ringing(mut self, ring: impl FnOnce() + Send + 's) -> Self {
        self.ring = Some(Box::new(ring));
        self
    }

    /// Asks the body to end.
    fn ask_to_end(&mut self) {
        self.stop.0.store(true, Ordering::Release);
        if let Some(ring) = self.ring.take() {
            ring();
        }
    }

    /// Asks the body to end, and waits for that.
    ///
    /// # Errors
    /// The body's panic.
    pub fn stop(mut self) -> thread::Result<T> {
        self.ask_to_end();
        self.join()
    }

    /// Waits for a body that ends by itself.
    ///
    /// # Errors
    /// The body's panic.
    pub fn join(mut self) -> thread::Result<T> {
        let ended = self.wait();
        ended.map(|value| value.expect("nothing was refused, and it is joined once"))
    }
}

impl<T> Drop for Worker<'_, T> {
    fn drop(&mut self) {
        if self.handle.is_some() {
            self.ask_to_end();
        }
    }
}

impl<T> fmt::Debug for Worker<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("thread", &self.thread).finish_non_exhaustive()
    }
}
