//! Timers of bare metal: a counter register, extended to 64 bits by looking often enough.

use super::Registers;
use crate::time::Timer;

/// SysTick, control and status: the counter runs.
const SYST_CSR_ENABLE: u32 = 1;
/// SysTick, control and status: it counts the processor's clock.
const SYST_CSR_CLKSOURCE: u32 = 1 << 2;
const SYST_CSR: u32 = 0x0;
const SYST_RVR: u32 = 0x4;
const SYST_CVR: u32 = 0x8;
/// SysTick has 24 bits.
const SYST_MAX: u32 = 0x00ff_ffff;

const DWT_CTRL: u32 = 0x0;
const DWT_CYCCNT: u32 = 0x4;
const DWT_CTRL_CYCCNTENA: u32 = 1;

const MTIME_LO: u32 = 0x0;
const MTIME_HI: u32 = 0x4;

/// A timer that counts the processor's cycles: Arm's SysTick or DWT.
///
/// The register wraps, SysTick's after 2^24 cycles (0.1 s at 168 MHz), CYCCNT after 2^32 (25 s
/// there). If more time passes between two reads, whole wraps are lost: the timer falls behind, and
/// a wait that began before takes longer than asked, never shorter. A wait itself reads the register
/// continuously.
///
/// ```no_run
/// use barewire::reg::{CycleCounter, MmioBlock};
///
/// // SAFETY: SysTick's registers on every Cortex-M; this program uses them for nothing else.
/// let systick = unsafe { MmioBlock::<16>::new(0xe000_e010 as *mut u32) };
/// let timer = CycleCounter::systick(systick, 16_000_000);
/// ```
#[derive(Debug)]
pub struct CycleCounter<R> {
    regs: R,
    frequency_hz: u32,
    offset: u32,
    /// All ones up to the register's width.
    mask: u32,
    down: bool,
    last: u32,
    ticks: u64,
}

impl<R: Registers> CycleCounter<R> {
    /// SysTick, at `0xe000_e010` of every Arm Cortex-M that has it ("Armv7-M Architecture Reference
    /// Manual", Arm DDI 0403, B3.3). It is set to run over its whole range, without an interrupt,
    /// by the processor's clock of `frequency_hz`.
    ///
    /// # Panics
    /// If `frequency_hz` is 0.
    pub fn systick(mut regs: R, frequency_hz: u32) -> Self {
        regs.write(SYST_CSR, 0);
        regs.write(SYST_RVR, SYST_MAX);
        // Any write clears the counter, which then begins at the reload value.
        regs.write(SYST_CVR, 0);
        regs.write(SYST_CSR, SYST_CSR_CLKSOURCE | SYST_CSR_ENABLE);
        Self::new(regs, frequency_hz, SYST_CVR, SYST_MAX, true)
    }

    /// DWT's cycle counter, at `0xe000_1000` of a Cortex-M3 and larger ("Armv7-M Architecture
    /// Reference Manual", Arm DDI 0403, C1.8), by the processor's clock of `frequency_hz`. TRCENA
    /// in DEMCR (`0xe000_edfc`, bit 24) must be set before.
    ///
    /// # Panics
    /// If `frequency_hz` is 0.
    pub fn cyccnt(mut regs: R, frequency_hz: u32) -> Self {
        let control = regs.read(DWT_CTRL);
        regs.write(DWT_CTRL, control | DWT_CTRL_CYCCNTENA);
        Self::new(regs, frequency_hz, DWT_CYCCNT, u32::MAX, false)
    }

    fn new(mut regs: R, frequency_hz: u32, offset: u32, mask: u32, down: bool) -> Self {
        assert!(frequency_hz > 0, "the processor's clock runs");
        let last = regs.read(offset) & mask;
        Self { regs, frequency_hz, offset, mask, down, last, ticks: 0 }
    }
}

impl<R: Registers> Timer for CycleCounter<R> {
    #[inline]
    fn frequency_hz(&self) -> u32 {
        self.frequency_hz
    }

    #[inline]
    fn now_ticks(&mut self) -> u64 {
        let now = self.regs.read(self.offset) & self.mask;
        let passed =
            if self.down { self.last.wrapping_sub(now) } else { now.wrapping_sub(self.last) };
        self.last = now;
        self.ticks += u64::from(passed & self.mask);
        self.ticks
    }
}

/// RISC-V's `mtime`: 64 bits in two registers, which never wrap ("The RISC-V Instruction Set
/// Manual, Volume II: Privileged Architecture", "Machine Timer Registers").
///
/// Its address differs between SoCs: `0x0200_bff8` in SiFive's CLINT.
#[derive(Debug)]
pub struct Mtime<R> {
    regs: R,
    frequency_hz: u32,
}

impl<R: Registers> Mtime<R> {
    /// `mtime` at the registers' base, counting at `frequency_hz`: the device tree's
    /// `timebase-frequency`.
    ///
    /// # Panics
    /// If `frequency_hz` is 0.
    pub fn new(regs: R, frequency_hz: u32) -> Self {
        assert!(frequency_hz > 0, "the counter runs");
        Self { regs, frequency_hz }
    }
}

impl<R: Registers> Timer for Mtime<R> {
    #[inline]
    fn frequency_hz(&self) -> u32 {
        self.frequency_hz
    }

    #[inline]
    fn now_ticks(&mut self) -> u64 {
        let mut high = self.regs.read(MTIME_HI);
        loop {
            let low = self.regs.read(MTIME_LO);
            // The low half may have wrapped between the two reads.
            let again = self.regs.read(MTIME_HI);
            if again == high {
                return u64::from(high) << 32 | u64::from(low);
            }
            high = again;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reg::Access::{Read, Write};
    use crate::reg::Fake;

    #[test]
    fn systick_counts_down_and_over_its_end() {
        let script = [
            Write(0x0, 0),
            Write(0x4, 0x00ff_ffff),
            Write(0x8, 0),
            Write(0x0, 0b101),
            Read(0x8, 0x00ff_fff0),
            Read(0x8, 0x00ff_ff00),
            Read(0x8, 0x10),
            Read(0x8, 0x00ff_fffe),
        ];
        let mut timer = CycleCounter::systick(Fake::new(&script), 16_000_000);
        assert_eq!(timer.frequency_hz(), 16_000_000);
        assert_eq!(timer.now_ticks(), 0xf0);
        assert_eq!(timer.now_ticks(), 0xffffe0);
        // From 0x10 over 0 to the reload value and 1 further: 0x12 ticks.
        assert_eq!(timer.now_ticks(), 0xfffff2);
        assert_eq!(timer.regs.remaining(), 0);
    }

    #[test]
    fn cyccnt_counts_up_and_over_its_end() {
        let script = [
            Read(0x0, 0x4000_0000),
            Write(0x0, 0x4000_0001),
            Read(0x4, 0xffff_fff0),
            Read(0x4, 0xffff_ffff),
            Read(0x4, 0x0000_0010),
        ];
        let mut timer = CycleCounter::cyccnt(Fake::new(&script), 168_000_000);
        assert_eq!(timer.now_ticks(), 0xf);
        assert_eq!(timer.now_ticks(), 0x20);
        assert_eq!(timer.regs.remaining(), 0);
    }

    #[test]
    fn the_halves_of_mtime_belong_together() {
        let script = [
            Read(4, 1),
            Read(0, 0xffff_fffe),
            Read(4, 1),
            // The low half wraps between the looks.
            Read(4, 1),
            Read(0, 0xffff_ffff),
            Read(4, 2),
            Read(0, 0),
            Read(4, 2),
        ];
        let mut timer = Mtime::new(Fake::new(&script), 1_000_000);
        assert_eq!(timer.now_ticks(), 0x1_ffff_fffe);
        assert_eq!(timer.now_ticks(), 0x2_0000_0000);
        assert_eq!(timer.regs.remaining(), 0);
    }
}
