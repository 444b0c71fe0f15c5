//! Busy threads beside the measurement.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::shared::processors;

/// One busy thread for each processor that the command may use; they end when this is dropped.
#[derive(Debug)]
pub(super) struct Load {
    enough: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// The number of threads that there will be.
    pub(super) fn threads() -> usize {
        processors::allowed().len().max(1)
    }

    /// Starts them.
    pub(super) fn start() -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let busy = |_| {
            let enough = enough.clone();
            thread::spawn(move || {
                while !enough.load(Ordering::Relaxed) {
                    for _ in 0..10_000 {
                        hint::spin_loop();
                    }
                }
            })
        };
        let threads = (0..Self::threads()).map(busy).collect();
        Self { enough, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
