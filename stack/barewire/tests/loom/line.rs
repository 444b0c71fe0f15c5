//! The controller's interrupt under the model checker: a thread of its own, as on another processor.

use std::sync::Mutex;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread::{self, JoinHandle, Thread};

loom::lazy_static! {
    /// The controller may interrupt, and its transfer is done.
    static ref UP: AtomicBool = AtomicBool::new(false);
    /// Who is to look at the line. Not loom's mutex, as [`super::SLEEPERS`].
    static ref HANDLER: Mutex<Option<Thread>> = Mutex::new(None);
}

/// The line rises.
pub(crate) fn arm() {
    UP.store(true, Ordering::SeqCst);
    look();
}

/// The controller is silent.
pub(crate) fn disarm() {
    UP.store(false, Ordering::SeqCst);
}

fn look() {
    let handler = HANDLER.lock().expect("no panic").clone();
    if let Some(handler) = handler {
        handler.unpark();
    }
}

/// A thread that handles interrupts.
pub(crate) struct Handler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Calls `handler` for as long as the line is up.
pub(crate) fn handle(handler: impl Fn() -> bool + Send + 'static) -> Handler {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let thread = thread::spawn(move || {
        while !stopped.load(Ordering::SeqCst) {
            if !UP.load(Ordering::SeqCst) {
                thread::park();
            } else if !handler() {
                // Another processor has the flight, and silences the block.
                thread::yield_now();
            }
        }
    });
    *HANDLER.lock().expect("no panic") = Some(thread.thread().clone());
    Handler { stop, thread }
}

impl Handler {
    /// Ends it, when all other threads have ended.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        self.thread.join().expect("no panic");
    }
}
