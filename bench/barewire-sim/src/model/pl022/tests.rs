//! The PL022 compared with the manual: registers, FIFOs, frames and their times, interrupts.

use proptest::prelude::*;

use super::regs::*;
use super::*;
use crate::model::{ByHand, ControllerBlock as _, rig};

/// 40 MHz over the least divisor: a period of 50 ns.
const SSPCLK_HZ: u64 = 40_000_000;
const PERIOD: Ps = 50_000;
const HALF: Ps = PERIOD / 2;

const LBM: u32 = 1;
const SSE: u32 = 2;
const MS: u32 = 4;

/// SSPCR0 of `mode` with words of `bits`.
fn cr0(mode: u32, bits: u32) -> u32 {
    (mode & 1) << 7 | (mode >> 1) << 6 | (bits - 1)
}

type Rig = rig::Rig<Pl022>;

impl Rig {
    fn new() -> Self {
        Self::with(Pl022::new(SSPCLK_HZ), &[Driver::Native(0)])
    }

    /// Enabled, in `mode`, words of `bits`, the least divisor.
    fn on(mode: u32, bits: u32) -> Self {
        let mut rig = Self::new();
        rig.write(SSPCPSR, 2);
        rig.write(SSPCR0, cr0(mode, bits));
        rig.write(SSPCR1, SSE);
        rig
    }

    fn sr(&mut self, bit: u32) -> bool {
        self.read(SSPSR) & bit != 0
    }

    fn ris(&mut self, bit: u32) -> bool {
        self.read(SSPRIS) & bit != 0
    }
}

#[test]
fn reset_values() {
    let mut rig = Rig::new();
    for offset in [SSPCR0, SSPCR1, SSPCPSR, SSPIMSC, SSPMIS, SSPICR, SSPDMACR] {
        assert_eq!(rig.read(offset), 0, "{offset:#x}");
    }
    assert_eq!(rig.read(SSPSR), 0x3);
    assert_eq!(rig.read(SSPRIS), 0x8, "the transmit FIFO is empty, enabled or not");
    let ids: Vec<u32> = (0..8).map(|index| rig.read(0xfe0 + 4 * index)).collect();
    assert_eq!(ids, [0x22, 0x10, 0x34, 0x00, 0x0d, 0xf0, 0x05, 0xb1]);
    assert_eq!(rig.block.due(), Ps::MAX);
    assert!(rig.rules().is_empty());
}

#[test]
fn registers_keep_their_writable_bits() {
    let mut rig = Rig::new();
    rig.keeps(&[
        (SSPCR0, 0xffff),
        (SSPCPSR, 0xfe),
        (SSPIMSC, 0xf),
        (SSPDMACR, 0x3),
        (SSPSR, 0x3),
        (SSPRIS, 0x8),
        (SSPMIS, 0),
        (0xfe0, 0x22),
        (0xffc, 0xb1),
    ]);
    rig.write(SSPCR1, u32::MAX);
    assert_eq!(rig.read(SSPCR1), 0xf);
    rig.write(SSPCR1, 0);
    assert_eq!(rig.read(SSPCR1), MS, "MS is kept while SSE was 1");
    rig.write(SSPCR1, 0);
    assert_eq!(rig.read(SSPCR1), 0);
    rig.write(SSPCR1, SSE);
    rig.write(SSPCR1, SSE | MS);
    assert_eq!(rig.read(SSPCR1), SSE);
    assert!(rig.rules().is_empty());
}

#[test]
fn a_single_frame_starts_and_ends_at_its_times() {
    for mode in 0..4 {
        let mut rig = Rig::on(mode, 8);
        rig.at(1_000_000).write(SSPDR, 0x5a);
        let (begin, captured) = (1_000_000 + HALF, 1_000_000 + 8 * PERIOD);
        assert!(rig.sr(sr::BSY));
        rig.at(begin - 1);
        assert!(!rig.sr(sr::TFE), "the word leaves the FIFO with its first cell");
        rig.at(begin);
        assert!(rig.sr(sr::TFE) && rig.sr(sr::BSY));
        assert_eq!(rig.until(|rig| rig.sr(sr::RNE)), captured, "mode {mode}: the last capture");
        rig.at(captured + PERIOD - 1);
        assert!(rig.sr(sr::BSY));
        rig.at(captured + PERIOD);
        assert!(!rig.sr(sr::BSY), "mode {mode}");
        let used = rig.wire.wire_use(rig.now);
        assert_eq!((used.bits, used.clock_ps, used.span_ps), (8, 8 * PERIOD, 8 * PERIOD));
        assert_eq!(used.selected_ps, 9 * PERIOD);
        assert_eq!(rig.echoes[0].borrow().received(), [0x5a]);
        assert!(rig.rules().is_empty());
    }
}

#[test]
fn sspfssout_pulses_between_words_with_sph_0_and_stays_low_with_sph_1() {
    for mode in 0..4 {
        let mut rig = Rig::on(mode, 16);
        rig.write_each(SSPDR, [0x0102, 0x0304, 0x0506]);
        rig.until(|rig| !rig.sr(sr::BSY));
        let used = rig.wire.wire_use(rig.now);
        if mode & 1 == 0 {
            assert_eq!(rig.now, 3 * 17 * PERIOD + 2 * PERIOD);
            assert_eq!(used.selected_ps, 3 * 17 * PERIOD);
            assert_eq!(rig.echoes[0].borrow().selections(), 3);
        } else {
            assert_eq!(rig.now, 49 * PERIOD);
            assert_eq!(used.selected_ps, 49 * PERIOD);
            assert_eq!(used.span_ps, used.clock_ps, "no gap");
            assert_eq!(rig.echoes[0].borrow().selections(), 1);
        }
        assert_eq!(rig.echoes[0].borrow().received(), [1, 2, 3, 4, 5, 6]);
        assert!(rig.rules().is_empty());
    }
}

#[test]
fn a_word_that_comes_late_begins_a_frame_of_its_own() {
    for mode in [0, 1] {
        let mut rig = Rig::on(mode, 8);
        rig.write(SSPDR, 0x11);
        // After the last cell's end, before SSPFSSOUT rises.
        rig.at(9 * PERIOD - 1).write(SSPDR, 0x22);
        rig.at(10 * PERIOD - 1);
        assert_eq!(rig.echoes[0].borrow().selections(), 1);
        assert!(rig.sr(sr::BSY));
        // High for a period, then the second frame.
        rig.at(19 * PERIOD - 1);
        assert!(rig.sr(sr::BSY));
        rig.at(19 * PERIOD);
        assert!(!rig.sr(sr::BSY));
        assert_eq!(rig.echoes[0].borrow().selections(), 2);
        // And still for a period if the word comes later.
        rig.write(SSPDR, 0x33);
        rig.at(29 * PERIOD - 1);
        assert!(rig.sr(sr::BSY));
        rig.at(29 * PERIOD);
        assert!(!rig.sr(sr::BSY));
        assert_eq!(rig.echoes[0].borrow().received(), [0x11, 0x22, 0x33]);
    }
}

#[test]
fn fifos_hold_8_words() {
    let mut rig = Rig::on(0, 8);
    rig.write(SSPCR1, 0);
    for word in 0..8 {
        assert_eq!(rig.sr(sr::TFE), word == 0);
        assert!(rig.sr(sr::TNF));
        assert_eq!(rig.sr(sr::BSY), word > 0, "BSY: the FIFO is not empty");
        rig.write(SSPDR, word);
    }
    assert!(!rig.sr(sr::TNF));
    rig.write(SSPDR, 8);
    assert_eq!(rig.rules(), [Rule::TxFull]);
    rig.now = 1_000_000_000;
    assert!(rig.sr(sr::BSY) && !rig.sr(sr::RNE), "what is written while SSE = 0 waits");

    rig.write(SSPCR1, SSE);
    rig.until(|rig| !rig.sr(sr::BSY));
    assert!(rig.sr(sr::RFF) && !rig.ris(int::ROR));
    assert_eq!(rig.echoes[0].borrow().received(), [0, 1, 2, 3, 4, 5, 6, 7]);
    // The ninth is lost, the eight stay.
    rig.write(SSPDR, 8);
    rig.until(|rig| !rig.sr(sr::BSY));
    assert!(rig.ris(int::ROR) && rig.sr(sr::RFF));
    assert_eq!(rig.rules(), [Rule::TxFull, Rule::RxOverrun]);
    let answers: Vec<u32> = (0..8).map(|_| rig.read(SSPDR)).collect();
    assert_eq!(answers, [0, 0, 1, 2, 3, 4, 5, 6]);
    assert!(!rig.sr(sr::RNE) && rig.ris(int::ROR), "ROR stays until RORIC");
    rig.write(SSPICR, int::ROR);
    assert!(!rig.ris(int::ROR));
    assert_eq!(rig.read(SSPDR), UNDEFINED_SSPDR);
    assert_eq!(rig.rules().last(), Some(&Rule::RxEmpty));
}

#[test]
fn words_of_4_to_16_bits_ignore_what_stands_above_them() {
    for bits in 4..=16 {
        let mut rig = Rig::on(0, bits);
        rig.write(SSPCR1, SSE | LBM);
        rig.write(SSPDR, 0xffff_a5a5);
        rig.until(|rig| rig.sr(sr::RNE));
        assert_eq!(rig.read(SSPDR), 0xa5a5 & ((1 << bits) - 1), "{bits}");
        assert_eq!(rig.wire.wire_use(rig.now).bits, u64::from(bits));
    }
}

#[test]
fn dividers() {
    for (cpsdvsr, scr) in [(2, 0), (3, 1), (4, 9), (254, 0), (254, 255)] {
        let mut rig = Rig::on(0, 8);
        rig.write(SSPCPSR, cpsdvsr);
        rig.write(SSPCR0, scr << 8 | cr0(0, 8));
        rig.write(SSPDR, 0);
        rig.now = Ps::MAX / 2;
        assert!(rig.sr(sr::RNE));
        let period = 25_000 * u64::from(cpsdvsr & !1) * u64::from(scr + 1);
        assert_eq!(rig.wire.wire_use(rig.now).clock_ps, 8 * period);
    }
    // 150 MHz / 2: 13,333.3 ps, never faster than that.
    let mut rig = Rig::on(0, 8);
    rig.block.sspclk_hz = 150_000_000;
    rig.write(SSPDR, 0);
    rig.now = PERIOD * 20;
    assert_eq!(rig.wire.wire_use(rig.now).clock_ps, 0, "nothing happens between accesses");
    assert!(rig.sr(sr::RNE));
    assert_eq!(rig.wire.wire_use(rig.now).clock_ps, 8 * 13_334);
}

#[test]
fn loopback_hears_itself_and_leaves_the_pins_alone() {
    let mut rig = Rig::on(3, 12);
    rig.write(SSPCR1, SSE | LBM);
    rig.write(SSPDR, 0x123);
    rig.write(SSPDR, 0xabc);
    rig.until(|rig| !rig.sr(sr::BSY));
    assert_eq!((rig.read(SSPDR), rig.read(SSPDR)), (0x123, 0xabc));
    assert_eq!(rig.echoes[0].borrow().received(), [0x12, 0x3a, 0xbc]);
    assert!(rig.rules().is_empty());
}

#[test]
fn half_full_and_half_empty_interrupt() {
    let mut rig = Rig::on(0, 8);
    rig.write(SSPCR1, 0);
    for words in 0..=8 {
        assert_eq!(rig.ris(int::TX), words <= 4, "{words} to send");
        rig.write(SSPDR, 0);
    }
    rig.write(SSPIMSC, int::RX);
    assert!(!rig.block.interrupt());
    rig.write(SSPCR1, SSE);
    let mut seen = Vec::new();
    while rig.sr(sr::BSY) {
        rig.now += PERIOD;
        let rx = rig.read(SSPRIS) & int::RX;
        assert_eq!(rig.read(SSPMIS), rx);
        assert_eq!(rig.block.interrupt(), rx != 0);
        seen.push((rig.block.rx.count(), rx != 0));
    }
    assert!(seen.iter().all(|&(count, rx)| rx == (count >= 4)));
    for left in (0..8).rev() {
        rig.read(SSPDR);
        assert_eq!(rig.block.interrupt(), left >= 4);
    }
    // RX and TX are levels: ICR does not clear them.
    rig.write(SSPICR, u32::MAX);
    assert_eq!(rig.read(SSPRIS), int::TX);
    rig.write(SSPIMSC, int::TX);
    assert!(rig.block.interrupt());
}

#[test]
fn receive_timeout_after_32_periods() {
    let mut rig = Rig::on(0, 8);
    rig.write(SSPIMSC, int::RT);
    rig.write(SSPDR, 0);
    rig.write(SSPDR, 0);
    rig.write(SSPDR, 0);
    let done = rig.until(|rig| !rig.sr(sr::BSY));
    assert_eq!(rig.block.due(), done + 32 * PERIOD, "the interrupt can be waited for");
    rig.at(done + 32 * PERIOD - 1);
    assert!(!rig.ris(int::RT));
    rig.at(done + 32 * PERIOD);
    assert!(rig.ris(int::RT) && rig.block.interrupt());
    assert_eq!(rig.read(SSPMIS), int::RT);

    // RTIC clears it, until a read restarts the timeout.
    rig.write(SSPICR, int::RT);
    rig.now += 100 * PERIOD;
    assert!(!rig.ris(int::RT) && rig.block.due() == Ps::MAX);
    rig.read(SSPDR);
    let read = rig.now;
    rig.at(read + 31 * PERIOD).read(SSPDR);
    rig.at(read + 63 * PERIOD - 1);
    assert!(!rig.ris(int::RT), "no read prior to the timeout");
    rig.at(read + 63 * PERIOD);
    assert!(rig.ris(int::RT));
    // Empty: deasserted.
    rig.read(SSPDR);
    assert!(!rig.ris(int::RT) && rig.block.due() == Ps::MAX);

    // New data deasserts it too and restarts the timeout.
    rig.write(SSPDR, 0);
    rig.until(|rig| rig.ris(int::RT));
    rig.write(SSPDR, 0);
    assert!(rig.ris(int::RT));
    rig.until(|rig| rig.sr(sr::RNE) && rig.block.rx.count() == 2);
    assert!(!rig.ris(int::RT));
    let done = rig.until(|rig| !rig.sr(sr::BSY));
    assert_eq!(rig.until(|rig| rig.ris(int::RT)), done + 32 * PERIOD);
}

#[test]
fn no_receive_timeout_while_disabled() {
    let mut rig = Rig::on(0, 8);
    rig.write(SSPDR, 0);
    rig.until(|rig| !rig.sr(sr::BSY));
    rig.write(SSPCR1, 0);
    rig.now += 100 * PERIOD;
    assert!(!rig.ris(int::RT) && rig.sr(sr::RNE));
    rig.write(SSPCR1, SSE);
    let enabled = rig.now;
    assert_eq!(rig.until(|rig| rig.ris(int::RT)), enabled + 32 * PERIOD);
}

#[test]
fn disabling_stops_in_the_middle_of_a_word() {
    let mut rig = Rig::on(0, 16);
    rig.write(SSPDR, 0xabcd);
    rig.write(SSPDR, 0x1234);
    // Nine bits have been captured.
    rig.at(9 * PERIOD + 1).write(SSPCR1, 0);
    assert_eq!(rig.rules(), [Rule::MidWord]);
    assert_eq!(rig.echoes[0].borrow().received(), [0xab]);
    assert_eq!(rig.wire.wire_use(rig.now).bits, 9);
    rig.now += 100 * PERIOD;
    assert!(rig.sr(sr::BSY) && !rig.sr(sr::RNE), "the second word waits");
    rig.write(SSPCR1, SSE);
    rig.until(|rig| !rig.sr(sr::BSY));
    assert_eq!(rig.echoes[0].borrow().received(), [0xab, 0x12, 0x34]);
}

#[test]
fn spo_moves_sspclkout_when_sse_is_set_and_not_before() {
    // Set up before it is enabled: no chip sees an edge.
    let mut rig = Rig::on(3, 8);
    rig.write(SSPDR, 0x77);
    rig.until(|rig| !rig.sr(sr::BSY));
    assert!(rig.rules().is_empty());
    // Changed while enabled: the edge comes with the word, under the chip select.
    rig.write(SSPCR0, cr0(0, 8));
    rig.write(SSPDR, 0x77);
    rig.until(|rig| !rig.sr(sr::BSY));
    assert_eq!(rig.rules(), [Rule::SckIdle]);
    // Disabled and enabled again: the edge comes before the word.
    rig.write(SSPCR0, cr0(2, 8));
    rig.write(SSPCR1, 0);
    rig.write(SSPCR1, SSE);
    rig.write(SSPDR, 0x77);
    rig.until(|rig| !rig.sr(sr::BSY));
    assert_eq!(rig.rules(), [Rule::SckIdle]);
}

#[test]
fn what_is_not_supported_never_starts() {
    for (offset, value) in
        [(SSPCR0, 2), (SSPCR0, 0x17), (SSPCR0, 0x27), (SSPCPSR, 0), (SSPCPSR, 1), (SSPCR1, MS)]
    {
        let mut rig = Rig::on(0, 8);
        rig.write(SSPCR1, 0);
        rig.write(offset, value);
        let ms = if offset == SSPCR1 { MS } else { 0 };
        rig.write(SSPCR1, SSE | ms);
        rig.write(SSPDR, 1);
        rig.now = 1_000_000_000;
        assert!(rig.sr(sr::BSY) && !rig.sr(sr::TFE), "{offset:#x} {value:#x}");
        assert_eq!(rig.echoes[0].borrow().selections(), 0);
        if ms == 0 {
            // Corrected, the transfer starts.
            rig.write(SSPCR0, cr0(0, 8));
            rig.write(SSPCPSR, 2);
            rig.until(|rig| !rig.sr(sr::BSY));
            assert_eq!(rig.echoes[0].borrow().received(), [1]);
        }
    }
}

#[test]
fn accesses_to_no_register() {
    let mut rig = Rig::on(0, 8);
    assert_eq!(rig.read(0x28), 0);
    rig.write(0x80, 1);
    rig.write(0x09, 1);
    assert_eq!(rig.read(0xfe1), 0);
    assert_eq!(rig.rules(), [Rule::BadAccess; 4]);
}

proptest! {
    /// Any words in any mode reach the chip, in the time the frames take while the FIFO has words.
    #[test]
    fn words_reach_the_chip(
        words in prop::collection::vec(any::<u16>(), 1..40),
        bits in 4..=16_u32,
        mode in 0..4_u32,
    ) {
        let mut rig = Rig::on(mode, bits);
        let mask = (1_u32 << bits) - 1;
        let (mut sent, mut received) = (words.iter(), Vec::new());
        while received.len() < words.len() {
            while rig.sr(sr::TNF) && received.len() + 8 > words.len() - sent.len() {
                let Some(&word) = sent.next() else { break };
                rig.write(SSPDR, word.into());
            }
            rig.now += PERIOD;
            while rig.sr(sr::RNE) {
                received.push(rig.read(SSPDR));
            }
        }
        let bits_of = |words: &[u32]| -> Vec<bool> {
            words.iter().flat_map(|&word| (0..bits).rev().map(move |bit| word >> bit & 1 != 0)).collect()
        };
        let out: Vec<u32> = words.iter().map(|&word| u32::from(word) & mask).collect();
        let (out, back) = (bits_of(&out), bits_of(&received));
        prop_assert_eq!(&back[back.len().min(8)..], &out[..out.len().saturating_sub(8)]);
        rig.until(|rig| !rig.sr(sr::BSY));
        let count = words.len() as u64;
        let expected = if mode & 1 == 0 { count } else { 1 };
        prop_assert_eq!(rig.echoes[0].borrow().selections(), expected);
        let frames = if mode & 1 == 0 {
            count * (u64::from(bits) + 1)
        } else {
            count * u64::from(bits) + 1
        };
        prop_assert_eq!(rig.wire.wire_use(rig.now).selected_ps, frames * PERIOD);
        prop_assert!(rig.rules().is_empty(), "{:?}", rig.rules());
    }
}

/// Exchanges one word by the manual: see [`ControllerKind`].
pub(super) fn exchange(spi: &mut dyn ByHand, bits: u32, word: u32, cs: &mut dyn FnMut()) -> u32 {
    let width = bits.min(16);
    let parts = || (0..bits / width).rev().map(|part| word >> (part * width) & 0xffff);
    let mut answer = 0;
    spi.write(0x04, 0);
    spi.write(0x10, 8);
    spi.write(0x00, width - 1);
    spi.write(0x04, 2);
    cs();
    for part in parts() {
        spi.write(0x08, part);
    }
    while spi.read(0x0c) & 1 << 4 != 0 {}
    for _ in parts() {
        answer = answer << width | spi.read(0x08);
    }
    answer
}
