//! What the kernel does for a controller: edges of GPIO lines, time, sleep.
#![allow(unsafe_code, reason = "calls of the module's C half")]

use core::ffi::c_void;

use barewire::controller::gpio::GpioBank;
use barewire::reg::barrier;
use barewire::time::Timer;

/// A controller of the C half (`struct bw_host`).
pub(crate) type Context = *mut c_void;

unsafe extern "C" {
    /// Drives the GPIO of chip select `line` (an index of the board's table) to its logical level `active`. Never sleeps.
    fn bw_line_set(context: Context, line: u32, active: bool);
    /// Nanoseconds of the monotonic clock.
    fn bw_now_ns() -> u64;
    /// Waits at least that many nanoseconds: sleeps for a long wait where that is allowed, else spins.
    fn bw_wait_ns(ns: u64);
}

/// The next edge that selects a chip panics.
#[cfg(feature = "provoke")]
pub(crate) static PROVOKED: core::sync::atomic::AtomicBool =
    core::sync::atomic::AtomicBool::new(false);

/// The GPIO lines of a controller's chip selects, by gpiolib. Pin `n` is the line of chip select `n`, high while the chip
/// is selected: gpiolib knows each line's polarity.
#[derive(Debug)]
pub(crate) struct Lines(pub(crate) Context);

impl GpioBank for Lines {
    #[inline(always)]
    fn drive(&mut self, mask: u32, high: bool) {
        // Accesses to two blocks are ordered by barriers alone.
        barrier();
        // SAFETY: the host's context, as long as the host lives; one bit of the board's table.
        unsafe { bw_line_set(self.0, mask.trailing_zeros(), high) };
        barrier();
        #[cfg(feature = "provoke")]
        assert!(
            !(high && PROVOKED.swap(false, core::sync::atomic::Ordering::Relaxed)),
            "as provoked"
        );
    }

    fn output(&mut self, mask: u32, high: bool) {
        // Linux's SPI core has made it an output.
        self.drive(mask, high);
    }
}

/// The kernel's monotonic clock, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Clock;

impl Timer for Clock {
    /// Accesses to registers are what a message may have no more of than Linux's driver has.
    #[inline(always)]
    fn waits_for_words(&self) -> bool {
        true
    }

    #[inline(always)]
    fn frequency_hz(&self) -> u32 {
        1_000_000_000
    }

    fn now_ticks(&mut self) -> u64 {
        // SAFETY: needs nothing.
        unsafe { bw_now_ns() }
    }

    fn wait_ticks(&mut self, ticks: u64) {
        if ticks > 0 {
            // SAFETY: needs nothing; the C half looks where it is.
            unsafe { bw_wait_ns(ticks) };
        }
    }
}
