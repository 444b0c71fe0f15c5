//! The Atmel SPI compared with the manual: registers, the pipe, selection, delays and interrupts.

mod select;

use proptest::prelude::*;

use super::regs::*;
use super::*;
use crate::model::{ByHand, ControllerBlock as _, rig};
use crate::wire::Driver;

/// 100 MHz: a period of MCK is 10 ns, and one of SPCK 50 ns with SCBR = 5.
const MCK_HZ: u64 = 100_000_000;
const MCK: Ps = 10_000;
const PERIOD: Ps = 5 * MCK;
const HALF: Ps = PERIOD / 2;

const SPIEN: u32 = 1;
const SPIDIS: u32 = 2;
const SWRST: u32 = 0x80;
const LASTXFER: u32 = 1 << 24;

/// SPI_MR: this block clocks, no mode faults, NPCS0.
const MR: u32 = 0x000e_0011;
const PS: u32 = 2;
const WDRBT: u32 = 1 << 5;
const LLB: u32 = 1 << 7;

/// SPI_CSR: mode 0, 8 bits, SCBR = 5.
const CSR: u32 = 0x0502;
const CSNAAT: u32 = 4;
const CSAAT: u32 = 8;

/// SPI_CSR of `mode` with words of `bits`.
fn csr(mode: u32, bits: u32) -> u32 {
    0x500 | (bits - 8) << 4 | (!mode & 1) << 1 | mode >> 1
}

type Rig = rig::Rig<AtmelSpi>;

impl Rig {
    fn new() -> Self {
        Self::with(AtmelSpi::new(MCK_HZ), &[0, 1].map(Driver::Native))
    }

    /// Enabled, with `mr` and SPI_CSR0; the other lines are in mode 0.
    fn on(mr: u32, csr0: u32) -> Self {
        let mut rig = Self::new();
        rig.write(SPI_MR, MR | mr);
        rig.write(SPI_CSR0, csr0);
        for index in 1..4 {
            rig.write(SPI_CSR0 + 4 * index, CSR);
        }
        rig.write(SPI_CR, SPIEN);
        rig
    }

    /// Whether SPI_SR has `bit`, without the side effects of a read.
    fn sr(&mut self, bit: u32) -> bool {
        self.block.catch_up(self.now, &mut self.wire);
        self.block.status() & bit != 0
    }

    /// The data of SPI_RDR.
    fn rd(&mut self) -> u32 {
        self.read(SPI_RDR) & 0xffff
    }

    fn selected_ps(&mut self) -> Ps {
        self.block.catch_up(self.now, &mut self.wire);
        self.wire.wire_use(self.now).selected_ps
    }

    fn both_selections(&self) -> [u64; 2] {
        [0, 1].map(|line| self.selections(line))
    }

    fn done(&mut self) -> Ps {
        self.until(|rig| rig.sr(sr::TXEMPTY))
    }
}

#[test]
fn reset_values() {
    let mut rig = Rig::new();
    for offset in (0x00..=0x1c).chain(0x30..=0x3c).step_by(4).chain([SPI_WPMR, SPI_WPSR]) {
        if name(offset).is_some() {
            assert_eq!(rig.read(offset), 0, "{offset:#x}");
        }
    }
    assert_eq!(rig.read(VERSION), VERSION_WITHOUT_PDC);
    assert_eq!(rig.block.due(), Ps::MAX);
    rig.write(SPI_CR, SPIEN);
    assert_eq!(rig.read(SPI_SR), 0x0001_0202, "SPIENS, TXEMPTY, TDRE");
    rig.write(SPI_CR, SPIEN | SPIDIS);
    assert_eq!(rig.read(SPI_SR), 0, "SPIDIS wins");
    assert!(rig.rules().is_empty());
}

#[test]
fn registers_keep_their_writable_bits() {
    let mut rig = Rig::new();
    rig.keeps(&[
        (SPI_MR, 0xff0f_00b7),
        (SPI_CSR0, u32::MAX),
        (0x34, u32::MAX),
        (0x38, u32::MAX),
        (SPI_CSR3, u32::MAX),
        (SPI_RDR, 0),
        (SPI_SR, 0),
        (SPI_IMR, 0),
        (SPI_WPMR, 0),
        (SPI_WPSR, 0),
    ]);
    rig.write(SPI_IER, u32::MAX);
    assert_eq!(rig.read(SPI_IMR), 0x70f);
    rig.write(SPI_IDR, 0x203);
    assert_eq!(rig.read(SPI_IMR), 0x50c);
    assert!(rig.rules().is_empty());
}

#[test]
fn a_single_word_starts_and_ends_at_its_times() {
    for mode in 0..4 {
        let mut rig = Rig::on(0, csr(mode, 8));
        rig.at(1_000_000).write(SPI_TDR, 0x5a);
        assert!(rig.sr(sr::TDRE) && !rig.sr(sr::TXEMPTY), "in the shift register at once");
        // DLYBS = 0: half a period to the first edge.
        let begin = 1_000_000 + if mode & 1 == 1 { HALF } else { 0 };
        let end = begin + 8 * PERIOD;
        assert_eq!(rig.until(|rig| rig.sr(sr::RDRF)), end - HALF, "mode {mode}");
        assert_eq!(rig.done(), end);
        assert_eq!(rig.at(end + 1_000_000).selected_ps(), end + MCK - 1_000_000);
        let used = rig.wire.wire_use(rig.now);
        assert_eq!((used.bits, used.clock_ps, used.span_ps), (8, 8 * PERIOD, 8 * PERIOD));
        assert_eq!(rig.received(0), [0x5a]);
        assert_eq!(rig.read(SPI_RDR), 0x000e_0000, "the NPCS lines stand above the data");
        assert!(!rig.sr(sr::RDRF));
        assert_eq!(rig.read(SPI_RDR), 0x000e_0000, "a register keeps its word");
        assert!(rig.rules().is_empty());
    }
}

#[test]
fn scbr_divides_mck() {
    for scbr in [1, 2, 66, 255] {
        let mut rig = Rig::on(0, scbr << 8 | 2);
        rig.write(SPI_TDR, 0);
        rig.now = 10_000_000_000;
        assert!(rig.sr(sr::RDRF));
        assert_eq!(rig.wire.wire_use(rig.now).clock_ps, 8 * MCK * u64::from(scbr));
    }
    // 132 MHz / 2: 15,151.5 ps, never faster than that.
    let mut rig = Rig::on(0, 0x202);
    rig.block.mck_hz = 132_000_000;
    rig.write(SPI_TDR, 0);
    rig.now = 1_000_000;
    assert_eq!(rig.wire.wire_use(rig.now).clock_ps, 0, "nothing happens between accesses");
    assert!(rig.sr(sr::RDRF));
    assert_eq!(rig.wire.wire_use(rig.now).clock_ps, 8 * 15_152);
}

#[test]
fn words_of_8_to_16_bits() {
    for bits in 8..=16 {
        let mut rig = Rig::on(LLB, csr(0, bits));
        rig.write(SPI_TDR, 0xa5a5);
        rig.done();
        assert_eq!(rig.rd(), 0xa5a5 & ((1 << bits) - 1), "{bits}");
        assert_eq!(rig.wire.wire_use(rig.now).bits, u64::from(bits));
    }
}

#[test]
fn two_words_are_in_the_pipe_and_follow_without_a_gap() {
    let mut rig = Rig::on(0, CSR);
    rig.write(SPI_TDR, 0x11);
    assert!(rig.sr(sr::TDRE));
    rig.write(SPI_TDR, 0x22);
    assert!(!rig.sr(sr::TDRE));
    assert_eq!(rig.until(|rig| rig.sr(sr::TDRE)), 8 * PERIOD);
    rig.read(SPI_RDR);
    rig.write(SPI_TDR, 0x33);
    rig.at(16 * PERIOD).read(SPI_RDR);
    assert_eq!(rig.done(), 24 * PERIOD);
    let used = rig.wire.wire_use(rig.now);
    assert_eq!((used.span_ps, used.clock_ps), (24 * PERIOD, 24 * PERIOD));
    assert_eq!((rig.received(0), rig.both_selections()), (vec![0x11, 0x22, 0x33], [1, 0]));
    assert!(rig.rules().is_empty());
    // A third word loses the second.
    rig.now += 1_000_000;
    for word in [1, 2, 3] {
        rig.now += MCK;
        rig.write(SPI_TDR, word);
    }
    assert_eq!(rig.rules(), [Rule::TxFull]);
}

#[test]
fn overrun_loses_the_word_that_was_not_read() {
    let mut rig = Rig::on(0, CSR | CSAAT);
    for word in [0x11, 0x22, 0x33] {
        rig.write(SPI_TDR, word);
        rig.until(|rig| rig.sr(sr::TDRE));
    }
    rig.done();
    assert!(rig.sr(sr::OVRES) && rig.sr(sr::RDRF));
    assert_eq!(rig.rules(), [Rule::RxOverrun, Rule::RxOverrun]);
    assert_ne!(rig.read(SPI_SR) & sr::OVRES, 0);
    assert_eq!(rig.read(SPI_SR) & sr::OVRES, 0, "its read clears it");
    assert_eq!(rig.rd(), 0x22, "the answer to the last word");
    assert!(!rig.sr(sr::RDRF));
}

#[test]
fn wdrbt_waits_for_the_reader() {
    let mut rig = Rig::on(WDRBT, CSR);
    rig.write(SPI_TDR, 0x11);
    rig.write(SPI_TDR, 0x22);
    rig.now = 100 * PERIOD;
    assert!(!rig.sr(sr::TDRE) && !rig.sr(sr::TXEMPTY), "the second word waits");
    assert_eq!(rig.received(0), [0x11]);
    assert_eq!(rig.rd(), 0);
    assert!(rig.sr(sr::TDRE));
    assert_eq!(rig.done(), 108 * PERIOD);
    assert_eq!(rig.rd(), 0x11);
    assert_eq!((rig.received(0), rig.both_selections()), (vec![0x11, 0x22], [1, 0]));
    // An unread word also holds back the first word of the next selection.
    rig.write(SPI_TDR, 0x33);
    rig.done();
    rig.now += PERIOD;
    rig.write(SPI_TDR, 0x44);
    rig.now += 100 * PERIOD;
    assert!(!rig.sr(sr::TDRE) && rig.both_selections() == [2, 0]);
    rig.read(SPI_RDR);
    rig.done();
    assert_eq!((rig.received(0), rig.both_selections()), (vec![0x11, 0x22, 0x33, 0x44], [3, 0]));
    assert!(!rig.sr(sr::OVRES) && rig.rules().is_empty());
}

#[test]
fn loopback_hears_itself() {
    let mut rig = Rig::on(LLB, csr(3, 16));
    rig.write(SPI_TDR, 0x1234);
    rig.until(|rig| rig.sr(sr::RDRF));
    assert_eq!(rig.rd(), 0x1234);
    rig.write(SPI_TDR, 0xabcd);
    rig.until(|rig| rig.sr(sr::RDRF));
    assert_eq!(rig.rd(), 0xabcd);
    // NPCS3 has no line: clocks without a chip select are intended here.
    rig.write(SPI_MR, 0x0007_0091);
    rig.write(SPI_TDR, 0x55);
    rig.done();
    assert!(rig.rules().is_empty());
}

#[test]
fn disabling_finishes_the_word_on_the_wire() {
    let mut rig = Rig::on(0, CSR | CSAAT);
    rig.write(SPI_TDR, 0x11);
    rig.write(SPI_TDR, 0x22);
    rig.at(PERIOD).write(SPI_CR, SPIDIS);
    assert_eq!(rig.rules(), [Rule::Disabled], "the second word is lost");
    assert!(rig.sr(sr::SPIENS));
    rig.write(SPI_TDR, 0x33);
    assert_eq!(rig.until(|rig| !rig.sr(sr::SPIENS)), 8 * PERIOD + MCK);
    assert_eq!(rig.received(0), [0x11]);
    assert!(rig.sr(sr::RDRF) && !rig.sr(sr::TDRE) && !rig.sr(sr::TXEMPTY));
    rig.now += 1_000_000;
    assert_eq!(rig.selected_ps(), 8 * PERIOD + MCK, "NPCS is released, CSAAT or not");
    rig.write(SPI_TDR, 0x44);
    assert_eq!(rig.rules(), [Rule::Disabled; 3]);
    // At rest it acts at once.
    rig.write(SPI_CR, SPIEN);
    rig.read(SPI_RDR);
    rig.write(SPI_TDR, 0x55);
    rig.done();
    rig.write(SPI_CR, SPIDIS);
    assert_eq!(rig.read(SPI_SR), sr::RDRF);
    assert_eq!(rig.received(0), [0x11, 0x55]);
}

#[test]
fn software_reset_forgets_everything() {
    let mut rig = Rig::on(WDRBT, csr(0, 16));
    rig.write(SPI_IER, sr::RDRF);
    rig.write(SPI_TDR, 0xabcd);
    // Nine bits have been sampled.
    rig.at(8 * PERIOD + HALF + 1).write(SPI_CR, SWRST | SPIEN);
    assert_eq!(rig.rules(), [Rule::MidWord]);
    assert_eq!(rig.received(0), [0xab]);
    for offset in [SPI_MR, SPI_SR, SPI_IMR, SPI_CSR0, 0x34, SPI_RDR] {
        assert_eq!(rig.read(offset), 0, "{offset:#x}");
    }
    rig.now += 1_000_000;
    assert_eq!(rig.selected_ps(), 8 * PERIOD + HALF + 1);
}

#[test]
fn interrupts_follow_the_status() {
    let mut rig = Rig::on(0, CSR);
    assert!(!rig.block.interrupt());
    rig.write(SPI_IER, sr::TDRE);
    assert!(rig.block.interrupt());
    rig.write(SPI_IDR, sr::TDRE);
    rig.write(SPI_IER, sr::RDRF | sr::OVRES);
    rig.write(SPI_TDR, 0x11);
    rig.write(SPI_TDR, 0x22);
    let due = rig.block.due();
    assert_eq!(due, 8 * PERIOD - HALF, "the interrupt can be waited for");
    rig.at(due - 1).sr(0);
    assert!(!rig.block.interrupt());
    rig.at(due).sr(0);
    assert!(rig.block.interrupt());
    rig.done();
    rig.read(SPI_RDR);
    assert!(rig.block.interrupt(), "OVRES still");
    rig.read(SPI_SR);
    assert!(!rig.block.interrupt());
    rig.write(SPI_IER, sr::TXEMPTY);
    assert!(rig.block.interrupt());
}

#[test]
fn write_protection() {
    let mut rig = Rig::on(0, CSR);
    rig.write(SPI_WPMR, 1);
    assert_eq!(rig.read(SPI_WPMR), 0, "without its key");
    rig.write(SPI_WPMR, WPKEY << 8 | 1);
    assert_eq!(rig.read(SPI_WPMR), 1);
    rig.write(0x38, 0);
    rig.write(SPI_MR, 0);
    assert_eq!((rig.read(0x38), rig.read(SPI_MR)), (CSR, MR));
    assert_eq!(rig.rules(), [Rule::Disabled; 2]);
    assert_eq!(rig.read(SPI_WPSR), 0x3801);
    assert_eq!(rig.read(SPI_WPSR), 0, "its read clears it");
    rig.write(SPI_TDR, 0x11);
    rig.done();
    rig.write(SPI_WPMR, WPKEY << 8);
    rig.write(SPI_MR, 0);
    assert_eq!((rig.read(SPI_MR), rig.read(SPI_WPSR)), (0, 0));
}

#[test]
fn spck_rests_at_the_cpol_of_the_line_that_is_selected() {
    // Every mode at once: no chip sees an edge to the idle level.
    let mut rig = Rig::on(0, csr(3, 8));
    rig.write(SPI_TDR, 0x11);
    rig.done();
    rig.read(SPI_RDR);
    rig.now += PERIOD;
    rig.write(SPI_MR, 0x000d_0011);
    rig.write(SPI_TDR, 0x22);
    rig.done();
    rig.now += PERIOD;
    assert!(rig.rules().is_empty());
    // Under an NPCS that CSAAT keeps active the edge is seen.
    rig.read(SPI_RDR);
    rig.write(SPI_MR, MR);
    rig.write(SPI_CSR0, csr(3, 8) | CSAAT);
    rig.write(SPI_TDR, 0x33);
    rig.done();
    rig.write(SPI_CSR0, csr(0, 8) | CSAAT);
    assert_eq!(rig.rules(), [Rule::SckIdle]);
}

#[test]
fn what_is_not_supported_never_starts() {
    let forbidden = [
        (SPI_MR, 0x000e_0010),
        (SPI_MR, 0x000e_0015),
        (SPI_MR, 0x000f_0011),
        (SPI_CSR0, 0x0002),
        (SPI_CSR0, 0x0592),
    ];
    for (offset, value) in forbidden {
        let mut rig = Rig::on(0, CSR);
        rig.write(offset, value);
        rig.write(SPI_TDR, 0x11);
        rig.now = 1_000_000_000;
        assert!(!rig.sr(sr::TDRE) && !rig.sr(sr::TXEMPTY), "{offset:#x} {value:#x}");
        assert_eq!(rig.both_selections(), [0, 0]);
        // Corrected, the transfer starts.
        rig.write(SPI_MR, MR);
        rig.write(SPI_CSR0, CSR);
        rig.done();
        assert_eq!(rig.received(0), [0x11]);
    }
}

#[test]
fn accesses_to_no_register() {
    let mut rig = Rig::on(0, CSR);
    assert_eq!(rig.read(0x20), 0);
    rig.write(0x2c, 1);
    rig.write(0x31, 1);
    assert_eq!(rig.read(0x32), 0);
    assert_eq!(rig.rules(), [Rule::BadAccess; 4]);
}

proptest! {
    /// Any words in any mode, with any delays, reach the chip in one selection.
    #[test]
    fn words_reach_the_chip(
        words in prop::collection::vec(any::<u16>(), 1..30),
        bits in 8..=16_u32,
        mode in 0..4_u32,
        delays in (0..=255_u32, 0..=3_u32, 0..=255_u32),
        wdrbt in any::<bool>(),
    ) {
        let (dlybs, dlybct, dlybcs) = delays;
        let mr = dlybcs << 24 | if wdrbt { WDRBT } else { 0 };
        let mut rig = Rig::on(mr, csr(mode, bits) | CSAAT | dlybs << 16 | dlybct << 24);
        let (mut sent, mut received) = (words.iter(), Vec::new());
        while received.len() < words.len() {
            if rig.sr(sr::TDRE) && let Some(&word) = sent.next() {
                rig.write(SPI_TDR, word.into());
            }
            rig.now += PERIOD;
            if rig.sr(sr::RDRF) {
                received.push(rig.rd());
            }
        }
        let mask = (1_u32 << bits) - 1;
        let bits_of = |words: &[u32]| -> Vec<bool> {
            words.iter().flat_map(|&word| (0..bits).rev().map(move |bit| word >> bit & 1 != 0)).collect()
        };
        let out: Vec<u32> = words.iter().map(|&word| u32::from(word) & mask).collect();
        let (out, back) = (bits_of(&out), bits_of(&received));
        prop_assert_eq!(&back[8..], &out[..out.len() - 8]);
        rig.done();
        rig.write(SPI_CR, LASTXFER);
        prop_assert_eq!(rig.both_selections(), [1, 0]);
        let used = rig.wire.wire_use(rig.now);
        prop_assert_eq!(used.clock_ps, words.len() as u64 * u64::from(bits) * PERIOD);
        prop_assert!(rig.rules().is_empty(), "{:?}", rig.rules());
    }
}

/// Exchanges one word by the manual: see [`ControllerKind`].
pub(super) fn exchange(spi: &mut dyn ByHand, bits: u32, word: u32, cs: &mut dyn FnMut()) -> u32 {
    let width = bits.min(16);
    let parts = || (0..bits / width).rev().map(|part| word >> (part * width) & 0xffff);
    let mut answer = 0;
    // NPCS3 has no line on the board.
    spi.write(0x04, 0x0007_0011);
    spi.write(0x3c, 8 << 8 | (width - 8) << 4 | 2);
    spi.write(0x00, 1);
    cs();
    for part in parts() {
        spi.write(0x0c, part);
        while spi.read(0x10) & 1 == 0 {}
        answer = answer << width | spi.read(0x08) & 0xffff;
    }
    while spi.read(0x10) & 1 << 9 == 0 {}
    answer
}
