//! The virtual counter of 64-bit Arm processors.

#![allow(unsafe_code, reason = "system registers, which only an instruction reads")]

use core::arch::asm;

use crate::time::Timer;

/// The processor's virtual counter, CNTVCT_EL0 ("Arm Architecture Reference Manual for A-profile
/// architecture", Arm DDI 0487, "The Generic Timer"): a timer without a register block, for bare metal
/// and for Linux user space, which may read it on every kernel with the vDSO's clock.
///
/// 64 bits that never wrap, the same on all processors. Its frequency is some megahertz (8 MHz on an
/// i.MX 8M, 54 MHz on a Raspberry Pi 5), so a tick is 10 to 130 ns.
///
/// ```no_run
/// use barewire::reg::Cntvct;
/// use barewire::time::Timer;
///
/// let mut timer = Cntvct::new();
/// let begun = timer.now_ticks();
/// // …
/// let passed_ns = (timer.now_ticks() - begun) * 1_000_000_000 / u64::from(timer.frequency_hz());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cntvct {
    frequency_hz: u32,
}

impl Cntvct {
    /// The counter at the frequency that the boot firmware wrote into CNTFRQ_EL0.
    ///
    /// # Panics
    /// If that is 0: the firmware did not set it. [`Cntvct::with_frequency_hz`] is for such a board.
    #[must_use]
    pub fn new() -> Self {
        let frequency: u64;
        // SAFETY: reads a system register and touches no memory. Exception level 1 and above may always
        // read it, level 0 where CNTKCTL_EL1.EL0VCTEN or EL0PCTEN is set, as Linux does.
        unsafe {
            asm!("mrs {}, cntfrq_el0", out(reg) frequency, options(nomem, nostack, preserves_flags));
        }
        // The upper half is reserved.
        Self::with_frequency_hz(frequency as u32)
    }

    /// The counter at a frequency that the caller knows, in hertz.
    ///
    /// # Panics
    /// If `frequency_hz` is 0.
    #[must_use]
    pub fn with_frequency_hz(frequency_hz: u32) -> Self {
        assert!(frequency_hz > 0, "the counter has a frequency (CNTFRQ_EL0)");
        Self { frequency_hz }
    }
}

impl Default for Cntvct {
    fn default() -> Self {
        Self::new()
    }
}

impl Timer for Cntvct {
    #[inline]
    fn frequency_hz(&self) -> u32 {
        self.frequency_hz
    }

    #[inline]
    fn now_ticks(&mut self) -> u64 {
        let ticks: u64;
        // SAFETY: as in `new`. Without ISB the processor may read the counter before the instructions in
        // front of it are done, for example a device's register that was just read. Not `nomem`: for the
        // compiler, accesses to memory stay on their side of the read.
        unsafe {
            asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags));
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_up_at_its_frequency() {
        let mut timer = Cntvct::new();
        // The counter is read within a time by the clock, and around another, however long they take.
        let around = std::time::Instant::now();
        let begun = timer.now_ticks();
        let within = std::time::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let within_ns = within.elapsed().as_nanos();
        let ticks = timer.now_ticks() - begun;
        let around_ns = around.elapsed().as_nanos();
        let counted_ns = u128::from(ticks) * 1_000_000_000 / u128::from(timer.frequency_hz());
        let text = format!("{within_ns}, counted {counted_ns}, {around_ns} ns");
        assert!(counted_ns * 20 >= within_ns * 19 && counted_ns * 20 <= around_ns * 21, "{text}");
    }
}
