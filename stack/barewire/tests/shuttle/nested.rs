//! An executor whose wake-ups run the woken task at once, inside the call that wakes it, as
//! executors for interrupts do.
//!
//! A task that is woken while it is being polled is polled once more afterwards, by the thread that
//! polls it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake};

/// See the module. Its waker is the task itself.
pub(crate) struct Task {
    slot: Mutex<Slot>,
}

struct Slot {
    /// `None` while it is polled, and after its end.
    future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    woken: bool,
}

impl Task {
    pub(crate) fn new(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        Arc::new(Self { slot: Mutex::new(Slot { future: Some(Box::pin(future)), woken: false }) })
    }

    /// Never kept while other threads run: shuttle knows nothing of this mutex.
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().expect("no panic")
    }

    /// The task's future, to be polled for all wake-ups until now.
    fn take(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let mut slot = self.slot();
        slot.woken = slot.future.is_none();
        slot.future.take()
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waker = self.clone().into();
        let mut cx = Context::from_waker(&waker);
        while let Some(mut future) = self.take() {
            if let Poll::Ready(()) = future.as_mut().poll(&mut cx) {
                return;
            }
            let mut slot = self.slot();
            slot.future = Some(future);
            if !slot.woken {
                return;
            }
        }
    }
}
