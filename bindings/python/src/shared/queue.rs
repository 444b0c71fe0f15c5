//! A bus's thread for queued work: it starts with the first work and ends with the bus.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// One piece of work for the thread.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// The way to the thread.
#[derive(Default)]
pub(crate) struct Queue(Mutex<Option<Sender<Work>>>);

impl Queue {
    /// Puts work behind all other.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn push(&self, work: Work) -> io::Result<()> {
        let mut sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.is_none() {
            let (to, from) = mpsc::channel::<Work>();
            let thread = thread::Builder::new().name("barewire-aio".into());
            thread.spawn(move || from.into_iter().for_each(|work| work()))?;
            *sender = Some(to);
        }
        if let Some(sender) = &*sender {
            // The thread ends with the last sender only.
            let _ = sender.send(work);
        }
        Ok(())
    }
}
