//! Time: a free-running tick counter, and the arithmetic that never waits shorter than asked.
//!
//! Delays are given in nanoseconds and rounded up to the hardware's unit: a tick of the [`Timer`].
//! For example, the i.MX 8M system counter ticks at 8 MHz (125 ns), so a delay of 1 ns takes 125 ns
//! there, and [`effective_ns`] returns that.

mod pacer;
mod ratio;

pub use pacer::Pacer;
pub(crate) use ratio::{div_ceil, divide, mul_div, mul_div_ceil, quotient, quotient_ceil};

/// Nanoseconds a second.
pub(crate) const NS_PER_S: u32 = 1_000_000_000;

/// A free-running counter, and waits that use it.
pub trait Timer {
    /// Whether it makes the delays of devices and transfers: always the same. If not ([`NoDelays`]), settings with a delay are
    /// refused.
    #[inline(always)]
    fn makes_delays(&self) -> bool {
        true
    }

    /// Whether a driver whose look at its block found no received word lets the time of words that cannot have come pass on this
    /// timer before it looks again: fewer register accesses, more readings of the timer. Drivers whose looks find a single word
    /// do.
    #[inline(always)]
    fn waits_for_words(&self) -> bool {
        false
    }

    /// The ticks per second, above zero.
    fn frequency_hz(&self) -> u32;

    /// The counter's value. It never decreases.
    fn now_ticks(&mut self) -> u64;

    /// Waits until at least `ticks` *whole* ticks have passed, spinning.
    ///
    /// The first tick may be partly over when the wait begins, so it waits for one more edge.
    fn wait_ticks(&mut self, ticks: u64) {
        if ticks > 0 {
            let begun = self.now_ticks();
            while self.now_ticks().wrapping_sub(begun) <= ticks {
                core::hint::spin_loop();
            }
        }
    }

    /// Waits at least `ns` nanoseconds in which the caller has nothing to do, for example during a
    /// flash chip's erase. An implementation may sleep; the provided method spins.
    fn sleep_ns(&mut self, ns: u64) {
        let ticks = ticks_at_least(ns, self.frequency_hz());
        self.wait_ticks(ticks);
    }
}

/// A timer that makes no delays, but ends what hangs: the code for delays is not in the program, and a device or a transfer with
/// one is refused ([`Error::DelayTooLong`](crate::spi::Error::DelayTooLong)).
#[derive(Clone, Copy, Debug)]
pub struct NoDelays<T>(pub T);

impl<T: Timer> Timer for NoDelays<T> {
    #[inline(always)]
    fn makes_delays(&self) -> bool {
        false
    }

    fn waits_for_words(&self) -> bool {
        self.0.waits_for_words()
    }

    fn frequency_hz(&self) -> u32 {
        self.0.frequency_hz()
    }

    fn now_ticks(&mut self) -> u64 {
        self.0.now_ticks()
    }

    fn wait_ticks(&mut self, ticks: u64) {
        self.0.wait_ticks(ticks);
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.0.sleep_ns(ns);
    }
}

impl<T: Timer + ?Sized> Timer for &mut T {
    fn makes_delays(&self) -> bool {
        (**self).makes_delays()
    }

    fn waits_for_words(&self) -> bool {
        (**self).waits_for_words()
    }

    fn frequency_hz(&self) -> u32 {
        (**self).frequency_hz()
    }

    fn now_ticks(&mut self) -> u64 {
        (**self).now_ticks()
    }

    fn wait_ticks(&mut self, ticks: u64) {
        (**self).wait_ticks(ticks);
    }

    fn sleep_ns(&mut self, ns: u64) {
        (**self).sleep_ns(ns);
    }
}

/// The smallest number of ticks of `frequency_hz` that lasts at least `ns` nanoseconds.
///
/// Saturates at `u64::MAX`.
///
/// # Panics
/// If `frequency_hz` is 0.
#[must_use]
pub const fn ticks_at_least(ns: u64, frequency_hz: u32) -> u64 {
    mul_div_ceil(ns, frequency_hz, NS_PER_S)
}

/// The effective delay in nanoseconds for a requested `ns` on a counter of `frequency_hz`, rounded
/// up.
///
/// # Panics
/// If `frequency_hz` is 0.
#[must_use]
pub const fn effective_ns(ns: u64, frequency_hz: u32) -> u64 {
    mul_div_ceil(ticks_at_least(ns, frequency_hz), NS_PER_S, frequency_hz)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_imx8m_quantum_is_125_ns() {
        assert_eq!(effective_ns(0, 8_000_000), 0);
        assert_eq!(effective_ns(1, 8_000_000), 125);
        assert_eq!(effective_ns(125, 8_000_000), 125);
        assert_eq!(effective_ns(126, 8_000_000), 250);
        assert_eq!(effective_ns(1_000_000, 8_000_000), 1_000_000);
    }

    #[test]
    fn a_quantum_that_is_no_whole_number_of_nanoseconds_is_never_cut() {
        // 3 MHz: 333.33 ns a tick.
        assert_eq!(effective_ns(1, 3_000_000), 334);
        assert_eq!(ticks_at_least(334, 3_000_000), 2);
        assert_eq!(effective_ns(334, 3_000_000), 667);
    }

    #[test]
    fn a_wait_spans_whole_ticks_even_when_begun_in_the_middle_of_one() {
        struct Script(u64);
        impl Timer for Script {
            fn frequency_hz(&self) -> u32 {
                1
            }
            fn now_ticks(&mut self) -> u64 {
                self.0 += 1;
                self.0
            }
        }
        let mut timer = Script(0);
        timer.wait_ticks(3);
        // Begun within tick 1: only the edge to tick 5 proves that 3 whole ticks have passed.
        assert_eq!(timer.0, 5);
        timer.wait_ticks(0);
        assert_eq!(timer.0, 5, "without a delay the time is not read");
    }

    proptest::proptest! {
        #[test]
        fn never_shorter_than_asked(ns in 0..u64::MAX / 8, hz in 1..=u32::MAX) {
            let ticks = ticks_at_least(ns, hz);
            proptest::prop_assert!(u128::from(ticks) * u128::from(NS_PER_S) >= u128::from(ns) * u128::from(hz));
            proptest::prop_assert!(effective_ns(ns, hz) >= ns);
        }
    }
}
