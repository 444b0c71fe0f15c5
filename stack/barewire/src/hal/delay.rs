//! Our timer as `embedded-hal`'s `DelayNs`: never shorter than asked, to one tick.

use core::future::poll_fn;
use core::task::Poll;

use embedded_hal::delay::DelayNs;
use embedded_hal_async::delay::DelayNs as AsyncDelayNs;

use crate::time::{Timer, ticks_at_least};

const NS_PER_US: u64 = 1_000;
const NS_PER_MS: u64 = 1_000_000;

/// A delay by a timer.
///
/// Nanoseconds, microseconds and milliseconds are each one wait, reckoned in 64 bits. Blocking
/// waits spin, unless they are long ([`Delay::with_sleep_from_ns`]). As a future it looks at the
/// clock once a poll and asks to be polled again; dropped, it just ends.
#[derive(Clone, Debug)]
pub struct Delay<T> {
    timer: T,
    sleep_from_ns: u64,
}

impl<T: Timer> Delay<T> {
    /// Delays by `timer`, spinning.
    #[must_use]
    pub const fn new(timer: T) -> Self {
        Self { timer, sleep_from_ns: u64::MAX }
    }

    /// The same, with blocking delays of `ns` nanoseconds and more made by
    /// [`Timer::sleep_ns`], which may give the processor away.
    #[must_use]
    pub fn with_sleep_from_ns(mut self, ns: u64) -> Self {
        self.sleep_from_ns = ns;
        self
    }

    /// The timer back.
    pub fn release(self) -> T {
        self.timer
    }

    fn wait(&mut self, ns: u64) {
        if ns >= self.sleep_from_ns {
            return self.timer.sleep_ns(ns);
        }
        let ticks = ticks_at_least(ns, self.timer.frequency_hz());
        self.timer.wait_ticks(ticks);
    }

    async fn wait_polled(&mut self, ns: u64) {
        let ticks = ticks_at_least(ns, self.timer.frequency_hz());
        if ticks == 0 {
            return;
        }
        let begun = self.timer.now_ticks();
        poll_fn(|cx| {
            // The first tick may be partly over: one more edge, as in `Timer::wait_ticks`.
            if self.timer.now_ticks().wrapping_sub(begun) > ticks {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

impl<T: Timer> DelayNs for Delay<T> {
    fn delay_ns(&mut self, ns: u32) {
        self.wait(ns.into());
    }

    fn delay_us(&mut self, us: u32) {
        self.wait(u64::from(us) * NS_PER_US);
    }

    fn delay_ms(&mut self, ms: u32) {
        self.wait(u64::from(ms) * NS_PER_MS);
    }
}

impl<T: Timer> AsyncDelayNs for Delay<T> {
    async fn delay_ns(&mut self, ns: u32) {
        self.wait_polled(ns.into()).await;
    }

    async fn delay_us(&mut self, us: u32) {
        self.wait_polled(u64::from(us) * NS_PER_US).await;
    }

    async fn delay_ms(&mut self, ms: u32) {
        self.wait_polled(u64::from(ms) * NS_PER_MS).await;
    }
}
