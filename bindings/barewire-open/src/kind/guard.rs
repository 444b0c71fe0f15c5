//! A thread that checks whether a mapped controller is still this process's.
//!
//! How it works: every 100 ms it checks whether a kernel driver took the controller back. If so, the next message
//! fails, so at most 100 ms of messages go over the wire beside that driver. A program that sends no further message
//! learns of it from [`Guard::taken`], or at the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use barewire_linux::map::Watch;

use crate::OpenError;

/// The thread that checks whether the controller is still this process's. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Guard {
    watch: Watch,
    stop: Arc<AtomicBool>,
    /// The driver that took the controller, once one was seen.
    taken: Arc<OnceLock<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Guard {
    pub(super) fn start(watch: Watch) -> Result<Self, OpenError> {
        let (stop, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(OnceLock::new()));
        let (looking, stopped, seen) = (watch.clone(), Arc::clone(&stop), Arc::clone(&taken));
        let look = move || {
            while !stopped.load(Ordering::Relaxed) {
                if let Err(error) = looking.still_ours() {
                    let _ = seen.set(error.to_string());
                    return;
                }
                thread::park_timeout(Watch::INTERVAL);
            }
        };
        let thread = thread::Builder::new().name("still-ours".into()).spawn(look);
        let thread = thread.map_err(|error| OpenError::io("start a thread", &error))?;
        Ok(Self { watch, stop, taken, thread: Some(thread) })
    }

    /// The driver that took the controller, as seen now or before.
    pub(super) fn taken(&self) -> Option<String> {
        let now = || self.watch.still_ours().err().map(|error| error.to_string());
        self.taken.get().cloned().or_else(now)
    }

    /// Ends the thread. Returns the driver that took the controller, if one did by now.
    pub(super) fn end(&mut self) -> Option<String> {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread does not panic. If it did, the final check below still decides.
            let _ = thread.join();
        }
        let last = || self.watch.final_check().err().map(|error| error.to_string());
        self.taken().or_else(last)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
