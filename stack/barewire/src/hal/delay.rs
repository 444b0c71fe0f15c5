//! A timer as `embedded-hal`'s `DelayNs`: never shorter than asked, exact to one tick.

use core::future::poll_fn;
use core::task::Poll;

use embedded_hal::delay::DelayNs;
use embedded_hal_async::delay::DelayNs as AsyncDelayNs;

use crate::time::{Timer, ticks_at_least};

const NS_PER_US: u64 = 1_000;
const NS_PER_MS: u64 = 1_000_000;

/// Delays made by a timer.
///
/// Each call, in nanoseconds, microseconds or milliseconds, is one wait, computed in 64 bits.
/// Blocking waits spin, unless they are long ([`Delay::with_sleep_from_ns`]). The async form reads
/// the clock once per poll and wakes its task to be polled again; it may be dropped at any time.
#[derive(Clone, Debug)]
pub struct Delay<T> {
    timer: T,
    sleep_from_ns: u64,
}

impl<T: Timer> Delay<T> {
    /// Makes delays with `timer`, spinning.
    #[must_use]
    pub const fn new(timer: T) -> Self {
        Self { timer, sleep_from_ns: u64::MAX }
    }

    /// Makes blocking delays of `ns` nanoseconds and more by [`Timer::sleep_ns`], which may yield
    /// the processor.
    #[must_use]
    pub fn with_sleep_from_ns(mut self, ns: u64) -> Self {
        self.sleep_from_ns = ns;
        self
    }

    /// Returns the timer.
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
            // The first tick may have partly passed: wait for one more, as `Timer::wait_ticks`
            // does.
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
