//! The barrier between accesses to two peripherals.
//!
//! Read first: Arm Architecture Reference Manual for A-profile (DDI 0487), B2.3, *Memory barriers*
//! and *Device memory*; ARM Architecture Reference Manual ARMv7-A and ARMv7-R (DDI 0406), A3.5 and
//! A3.8; BCM2835 ARM Peripherals, section 1.3; RISC-V Unprivileged ISA, *Memory Ordering
//! Instructions*.
//!
//! Accesses to one peripheral arrive in program order. Accesses to two peripherals are not ordered:
//! each may go through a different bridge. A chip select on a GPIO is such a second peripheral.
//!
//! * DMB orders accesses as other observers see them, but does not complete them (DDI 0487, *Data
//!   Memory Barrier*). A chip sees two wires and no memory. Linux uses it on AArch64 (`writel`
//!   begins with DMB OSHST), but the manual does not promise that it is enough. Rust's `fence` is
//!   DMB ISH, for the inner shareable domain, which need not include peripherals.
//! * DSB waits until the accesses before it are complete. A write to memory of type Device-nGnRnE
//!   (ARMv7: Strongly-ordered) is complete when the peripheral has it. `/dev/mem` opened with
//!   `O_SYNC`, and UIO, give a process such memory. This driver uses DSB.
//! * A write to memory of type Device-nGnRE (ARMv7: Device) may be acknowledged before it arrives.
//!   Only a read from the same peripheral, whose data DSB awaits, proves that it arrived. So map
//!   registers without early acknowledgement.
#![allow(unsafe_code, reason = "a barrier instruction")]

/// Completes every access before it, to any peripheral, before any access after it.
#[inline]
pub fn barrier() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier only waits.
    unsafe {
        core::arch::asm!("dsb sy", options(nostack, preserves_flags));
    }
    #[cfg(barewire_dsb)]
    // SAFETY: a barrier only waits.
    unsafe {
        core::arch::asm!("dsb", options(nostack, preserves_flags));
    }
    // There the language's fence does not order device input and output.
    #[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
    // SAFETY: a barrier only waits.
    unsafe {
        core::arch::asm!("fence iorw, iorw", options(nostack, preserves_flags));
    }
    // x86 orders uncached accesses itself, so only the compiler needs the fence. Other processors,
    // such as ARMv6 (whose DMB is a CP15 access), get the strongest fence the language has.
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
    #[cfg(not(any(
        target_arch = "aarch64",
        target_arch = "x86",
        target_arch = "x86_64",
        target_arch = "riscv32",
        target_arch = "riscv64",
        barewire_dsb,
    )))]
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
}
