//! A place for a submitted message, of any length: given, fetched, called back, cancelled.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use barewire::bus::queued::{Completed, Exchange, Queued};
use barewire::bus::{Device, Then};
use barewire::controller::Controller;
use barewire::spi::MessageError;

use super::platform::{BoxedFuture, called_back};

/// The result of a message.
pub(super) type Ran = Result<usize, MessageError>;

/// A message that owns its bytes, of any length, and can be submitted.
pub(super) trait Slot {
    /// Its length.
    fn len(&self) -> usize;
    /// Its device's priority.
    fn priority(&self) -> u8;
    /// The bytes it sends. The message must not be submitted now.
    fn tx(&mut self) -> &mut [u8];
    fn submit(&mut self);
    fn enqueue(&mut self);
    fn result(&mut self) -> Option<Ran>;
    fn wait(&mut self) -> Option<Ran>;
    fn cancel(&mut self) -> bool;
    /// Runs the message as a future.
    fn run(&mut self) -> BoxedFuture<'_, Ran>;
    /// Whether the received bytes are the sent bytes, one byte later.
    fn received_well(&mut self) -> bool;
    /// How often the message ran and how often it failed, as its callback was told; `None` without
    /// a callback.
    fn called_back(&self) -> Option<(u64, u64)>;
}

/// Counts of successful and of failed runs.
#[derive(Default)]
struct Calls {
    done: AtomicU64,
    failed: AtomicU64,
}

struct Queueing<'b, C: Controller + ?Sized, const N: usize> {
    queued: Pin<Box<Queued<'b, C, Exchange<N>>>>,
    priority: u8,
    calls: Option<Arc<Calls>>,
}

/// A slot for messages of `N` bytes on `device`.
pub(super) fn slot<'b, C: Controller + ?Sized, const N: usize>(
    device: &Device<'b, C>,
    with_callback: bool,
) -> Result<Box<dyn Slot + 'b>, MessageError> {
    let queued = device.queued([0; N])?;
    let priority = device.priority();
    if !with_callback {
        return Ok(Box::new(Queueing { queued: Box::pin(queued), priority, calls: None }));
    }
    let calls = Arc::new(Calls::default());
    let told = calls.clone();
    // Callbacks must live for ever, so these few for each context are leaked.
    let callback = Box::leak(Box::new(move |completed: &mut Completed<'_>| {
        called_back();
        let count = if completed.result().is_ok() { &told.done } else { &told.failed };
        count.fetch_add(1, Ordering::Relaxed);
        Then::Done
    }));
    let queued = Box::pin(queued.with_callback(callback));
    Ok(Box::new(Queueing { queued, priority, calls: Some(calls) }))
}

impl<C: Controller + ?Sized, const N: usize> Slot for Queueing<'_, C, N> {
    fn len(&self) -> usize {
        N
    }

    fn priority(&self) -> u8 {
        self.priority
    }

    fn tx(&mut self) -> &mut [u8] {
        self.queued.as_mut().tx_mut().expect("a free slot's bytes are its owner's")
    }

    fn submit(&mut self) {
        self.queued.as_mut().submit().expect("a free slot can be submitted");
    }

    fn enqueue(&mut self) {
        self.queued.as_mut().enqueue().expect("a free slot can be submitted");
    }

    fn result(&mut self) -> Option<Ran> {
        self.queued.as_mut().result()
    }

    fn wait(&mut self) -> Option<Ran> {
        self.queued.as_mut().wait()
    }

    fn cancel(&mut self) -> bool {
        self.queued.as_mut().cancel()
    }

    fn run(&mut self) -> BoxedFuture<'_, Ran> {
        Box::pin(self.queued.as_mut().run())
    }

    fn received_well(&mut self) -> bool {
        let rx = self.queued.as_ref().rx().expect("a message that ran is its owner's");
        let tx = self.queued.as_mut().tx_mut().expect("a message that ran is its owner's");
        rx[0] == 0 && rx[1..] == tx[..N - 1]
    }

    fn called_back(&self) -> Option<(u64, u64)> {
        let calls = self.calls.as_ref()?;
        Some((calls.done.load(Ordering::Relaxed), calls.failed.load(Ordering::Relaxed)))
    }
}
