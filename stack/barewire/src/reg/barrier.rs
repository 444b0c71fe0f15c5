//! What stands between accesses to two peripherals.
//!
//! Read first: Arm Architecture Reference Manual for A-profile (DDI 0487), B2.3, *Memory barriers*
//! and *Device memory*; ARM Architecture Reference Manual ARMv7-A and ARMv7-R (DDI 0406), A3.5 and
//! A3.8; BCM2835 ARM Peripherals, section 1.3; RISC-V Unprivileged ISA, *Memory Ordering
//! Instructions*.
//!
//! Accesses to one peripheral arrive in program order. Accesses to two are not ordered: each may be
//! on its way through another bridge. A chip select on a GPIO is such a second peripheral.
//!
//! * DMB orders accesses as other observers see them and completes none (DDI 0487, *Data Memory
//!   Barrier*). A chip sees two wires and no memory. Linux makes do with it on AArch64 (`writel`
//!   begins with DMB OSHST); the manual does not promise it. Rust's `fence` is DMB ISH, of the inner
//!   shareable domain, in which peripherals need not be.
//! * DSB waits until the accesses before it are complete. A write to memory of type Device-nGnRnE
//!   (ARMv7: Strongly-ordered) is complete when the peripheral has it: this is what `/dev/mem`
//!   opened with `O_SYNC` and UIO give a process. This driver uses DSB.
//! * A write to memory of type Device-nGnRE (ARMv7: Device) may be acknowledged on its way. Only a
//!   read from the same peripheral, whose data DSB awaits, proves that it arrived. Map registers
//!   without early acknowledgement.
#![allow(unsafe_code, reason = "a barrier instruction")]

/// Every access before, to whatever peripheral, is complete before any access after.
#[inline]
pub fn barrier() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier has no effect but to wait.
    unsafe {
        core::arch::asm!("dsb sy", options(nostack, preserves_flags));
    }
    #[cfg(barewire_dsb)]
    // SAFETY: a barrier has no effect but to wait.
    unsafe {
        core::arch::asm!("dsb", options(nostack, preserves_flags));
    }
    // The language's fence leaves out device input and output there.
    #[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
    // SAFETY: a barrier has no effect but to wait.
    unsafe {
        core::arch::asm!("fence iorw, iorw", options(nostack, preserves_flags));
    }
    // x86 orders uncached accesses itself: the compiler alone is told. Elsewhere, ARMv6 among it (DMB
    // by CP15), the strongest the language has.
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
