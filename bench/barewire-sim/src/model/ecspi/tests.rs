//! The ECSPI compared with the manual: registers, FIFOs, bursts and their times.

use proptest::prelude::*;

use super::regs::*;
use super::stat::*;
use super::*;
use crate::model::{ByHand, ControllerBlock as _, rig};

/// 20 MHz at the dividers used here: a period of 50 ns.
const REFERENCE_HZ: u64 = 20_000_000;
const PERIOD: Ps = 50_000;
const HALF: Ps = PERIOD / 2;

/// CONREG: enabled, all channels clock, dividers 1.
const ON: u32 = 0xf1;
const XCH: u32 = 1 << 2;
const SMC: u32 = 1 << 3;

fn burst(bits: u32) -> u32 {
    (bits - 1) << 20
}

type Rig = rig::Rig<Ecspi>;

impl Rig {
    fn new() -> Self {
        Self::with(Ecspi::new(REFERENCE_HZ), &[Driver::Native(0)])
    }

    fn on(conreg: u32, configreg: u32) -> Self {
        let mut rig = Self::new();
        rig.write(CONREG, ON | conreg);
        rig.write(CONFIGREG, configreg);
        rig
    }

    fn stat(&mut self, bit: u32) -> bool {
        self.read(STATREG) & bit != 0
    }

    fn xch(&mut self) -> bool {
        self.read(CONREG) & XCH != 0
    }
}

#[test]
fn reset_values() {
    for enabled in [false, true] {
        let mut rig = Rig::new();
        if enabled {
            rig.write(CONREG, 1);
        }
        rig.reads(
            &[TXDATA, CONFIGREG, INTREG, DMAREG, PERIODREG, TESTREG, MSGDATA]
                .map(|offset| (offset, 0)),
        );
        assert_eq!(rig.read(STATREG), 3);
        assert_eq!(rig.read(CONREG), u32::from(enabled));
        assert!(rig.rules().is_empty());
    }
}

#[test]
fn registers_keep_their_writable_bits() {
    let mut rig = Rig::on(0, 0);
    rig.keeps(&[
        (CONFIGREG, 0x1fff_ffff),
        (INTREG, 0xff),
        (DMAREG, 0xbfbf_00bf),
        (PERIODREG, 0x003f_ffff),
        (TESTREG, LBC),
        (MSGDATA, 0),
    ]);
    rig.write(CONREG, !XCH);
    assert_eq!(rig.read(CONREG), !XCH);
}

#[test]
fn a_disabled_block_ignores_and_forgets() {
    let mut rig = Rig::new();
    rig.write(TXDATA, 1);
    rig.write(CONFIGREG, 0xf0);
    rig.write(INTREG, 0);
    assert_eq!(rig.read(RXDATA), 0);
    assert_eq!((rig.read(CONFIGREG), rig.read(TESTREG)), (0, 0));
    assert_eq!(rig.rules(), [Rule::Disabled, Rule::Disabled]);

    let mut rig = Rig::on(burst(8), 0x10_0010);
    rig.write(PERIODREG, 5);
    rig.write(TXDATA, 1);
    rig.write(TXDATA, 2);
    rig.write(CONREG, ON | burst(8) | XCH);
    rig.until(|rig| rig.stat(TC));
    assert!(rig.stat(RR));
    rig.write(CONREG, burst(8));
    rig.reads(&[CONFIGREG, PERIODREG, TESTREG, RXDATA].map(|offset| (offset, 0)));
    assert_eq!((rig.read(STATREG), rig.read(CONREG)), (3, burst(8)));
    rig.write(CONREG, ON | burst(8));
    assert_eq!(rig.read(TESTREG), 0, "FIFOs were flushed");
    assert!(rig.rules().is_empty());
}

#[test]
fn disabling_ends_a_burst_in_the_middle() {
    let mut rig = Rig::on(burst(32), 0);
    rig.write(TXDATA, 0xabcd_ef01);
    rig.write(CONREG, ON | burst(32) | XCH);
    // Nine bits have been sampled.
    rig.now = 8 * PERIOD + HALF + 1;
    rig.write(CONREG, 0);
    assert_eq!(rig.rules(), [Rule::MidWord]);
    assert_eq!(rig.echoes[0].borrow().received(), [0xab]);
    assert_eq!(rig.wire.wire_use(rig.now).bits, 9);
    rig.now += 100 * PERIOD;
    assert!(!rig.xch());
}

#[test]
fn fifos_hold_64_words() {
    let mut rig = Rig::on(burst(8), 0);
    for word in 0..64 {
        assert!(!rig.stat(TF));
        assert_eq!(rig.stat(TE), word == 0);
        rig.write(TXDATA, word);
        assert_eq!(rig.read(TESTREG), word + 1);
    }
    assert!(rig.stat(TF));
    rig.write(TXDATA, 64);
    assert_eq!(rig.read(TESTREG), 64, "the 65th is lost");
    assert_eq!(rig.rules(), [Rule::TxFull]);

    // SS_CTL: one burst after the other. The echo's answer to word n is word n - 1.
    rig.write(CONFIGREG, 0xf00);
    rig.write(CONREG, ON | burst(8) | XCH);
    rig.until(|rig| rig.stat(TC));
    assert_eq!(rig.read(TESTREG), 64 << 8);
    assert!(rig.stat(RF) && !rig.stat(RO));
    // One more and RXFIFO overflows; the sticky bits go by writing ones.
    rig.write(TXDATA, 64);
    rig.write(STATREG, TC);
    assert!(!rig.stat(TC));
    rig.write(CONREG, ON | burst(8) | XCH);
    rig.until(|rig| rig.stat(TC));
    assert!(rig.stat(RO) && rig.stat(RF));
    assert_eq!(rig.rules(), [Rule::TxFull, Rule::RxOverrun]);
    rig.write(STATREG, RO);
    assert!(!rig.stat(RO) && rig.stat(TC), "each is cleared by its own bit");
    let answers: Vec<u32> = (0..64).map(|_| rig.read(RXDATA) & 0xff).collect();
    assert_eq!(answers[1..], (0..63).collect::<Vec<u32>>());
    assert!(!rig.stat(RR));
    assert_eq!(rig.read(RXDATA), UNDEFINED_RXDATA);
    assert_eq!(rig.rules().last(), Some(&Rule::RxEmpty));
}

#[test]
fn thresholds_and_interrupts() {
    let mut rig = Rig::on(burst(32), 0);
    rig.write(DMAREG, 1 << 16 | 2);
    let sent = [true, true, true, false];
    for (word, expected) in sent.into_iter().enumerate() {
        assert_eq!(rig.stat(TDR), expected, "{word} words");
        rig.write(TXDATA, 0);
    }
    rig.write(TESTREG, LBC);
    rig.write(INTREG, RDR);
    rig.write(CONREG, ON | burst(128) | XCH);
    rig.until(|rig| rig.read(TESTREG) >> 8 & 0x7f == 1);
    assert!(!rig.stat(RDR) && !rig.block.interrupt());
    rig.until(|rig| rig.read(TESTREG) >> 8 & 0x7f == 2);
    assert!(rig.stat(RDR) && rig.block.interrupt());
}

#[test]
fn a_burst_starts_and_ends_at_its_times() {
    for (mode, csd) in [(0, 0), (1, 0), (2, 3), (3, 63)] {
        let (pol, pha) = (mode >> 1, mode & 1);
        let mut rig = Rig::on(burst(8), pol << 20 | pol << 4 | pha);
        rig.write(PERIODREG, csd << 16);
        rig.write(TXDATA, 0x5a);
        rig.now = 1_000_000;
        rig.write(CONREG, ON | burst(8) | XCH);
        assert!(rig.xch() && !rig.stat(TC));
        // With CPHA = 1 the cell begins with the first edge, half a period after SS.
        let begin = 1_000_000 + u64::from(csd) * PERIOD + if pha == 1 { HALF } else { 0 };
        let end = begin + 8 * PERIOD;
        assert_eq!(rig.until(|rig| rig.stat(RR)), end - HALF, "mode {mode}: the last sample");
        assert!(rig.xch() && !rig.stat(TC));
        rig.now = end + HALF - 1;
        assert!(rig.xch() && !rig.stat(TC));
        rig.now = end + HALF;
        assert!(!rig.xch() && rig.stat(TC), "mode {mode}");
        let used = rig.wire.wire_use(rig.now);
        assert_eq!((used.bits, used.clock_ps, used.span_ps), (8, 8 * PERIOD, 8 * PERIOD));
        assert_eq!(used.selected_ps, end + HALF - 1_000_000);
        assert!(rig.rules().is_empty());
    }
}

#[test]
fn dividers() {
    for (pre, post) in [(0, 0), (1, 0), (15, 0), (0, 1), (2, 3), (15, 15)] {
        let mut rig = Rig::on(0, 0);
        rig.write(TXDATA, 0);
        rig.write(CONREG, ON | burst(1) | pre << 12 | post << 8 | XCH);
        rig.now = Ps::MAX / 2;
        assert!(rig.stat(TC));
        let period = (PERIOD * u64::from(pre + 1)) << post;
        assert_eq!(rig.wire.wire_use(rig.now).clock_ps, period);
    }
    // 60 MHz: 16,666.7 ps, never faster than that.
    let mut rig = Rig::on(0, 0);
    rig.block.reference_hz = 60_000_000;
    rig.write(TXDATA, 0);
    rig.write(CONREG, ON | XCH);
    rig.now = PERIOD * 10;
    assert_eq!(rig.wire.wire_use(rig.now).clock_ps, 0, "nothing happens between accesses");
    assert!(rig.stat(TC));
    assert_eq!(rig.wire.wire_use(rig.now).clock_ps, 16_667);
}

#[test]
fn one_burst_for_each_xch() {
    let mut rig = Rig::on(burst(8), 0);
    rig.write_each(TXDATA, [1, 2, 3]);
    for (selections, left) in [(1, 2), (2, 1)] {
        rig.write(STATREG, TC);
        rig.write(CONREG, ON | burst(8) | XCH);
        rig.until(|rig| !rig.xch());
        assert!(rig.stat(TC));
        assert_eq!(rig.read(TESTREG) & 0x7f, left, "what is left stays for the next XCH");
        assert_eq!(rig.echoes[0].borrow().selections(), selections);
    }
    assert_eq!(rig.echoes[0].borrow().received(), [1, 2]);
    assert!(rig.rules().is_empty());
}

#[test]
fn ss_ctl_repeats_bursts_until_txfifo_is_empty() {
    for (period, slow) in [(0, 0), (4, 0), (2, 1)] {
        let mut rig = Rig::on(burst(16), 0xf00);
        rig.write(PERIODREG, slow << 15 | period);
        rig.write_each(TXDATA, [0x0102, 0x0304, 0x0506]);
        rig.write(CONREG, ON | burst(16) | XCH);
        rig.now = 16 * PERIOD + HALF;
        assert!(rig.xch() && !rig.stat(TC), "TC comes with the end of all");
        let wait = if slow == 1 { 61_035_157 } else { u64::from(period) * PERIOD };
        let each = 16 * PERIOD + 2 * HALF + wait;
        rig.now = 2 * each + 16 * PERIOD + HALF - 1;
        assert!(rig.xch());
        rig.now += 1;
        assert!(!rig.xch() && rig.stat(TC));
        let used = rig.wire.wire_use(rig.now);
        assert_eq!(used.selected_ps, 3 * (16 * PERIOD + HALF));
        assert_eq!(rig.echoes[0].borrow().selections(), 3);
        assert_eq!(rig.echoes[0].borrow().received(), [1, 2, 3, 4, 5, 6]);
        // SS stays negated for its time before the next XCH too.
        rig.write(TXDATA, 0x0708);
        rig.write(CONREG, ON | burst(16) | XCH);
        let begun = rig.now;
        rig.now = begun + HALF + wait + 16 * PERIOD + HALF - 1;
        assert!(rig.xch());
        rig.now += 1;
        assert!(!rig.xch());
        assert!(rig.rules().is_empty());
    }
}

#[test]
fn smc_starts_with_data_and_ignores_ss_ctl() {
    for configreg in [0, 0xf00] {
        let mut rig = Rig::on(burst(8) | SMC, configreg);
        rig.write(TXDATA, 0x11);
        assert!(!rig.xch(), "XCH is not used");
        rig.now = 4 * PERIOD;
        rig.write(TXDATA, 0x22);
        rig.until(|rig| rig.stat(TC));
        assert_eq!(rig.now, 16 * PERIOD + 3 * HALF);
        assert_eq!(rig.echoes[0].borrow().received(), [0x11, 0x22]);
        assert_eq!(rig.echoes[0].borrow().selections(), 2);
    }
    // Data written before SMC is set starts when it is.
    let mut rig = Rig::on(burst(8), 0);
    rig.write(TXDATA, 0x33);
    rig.now = 1_000_000;
    assert!(!rig.stat(TC));
    rig.write(CONREG, ON | burst(8) | SMC);
    rig.until(|rig| rig.stat(TC));
    assert_eq!(rig.echoes[0].borrow().received(), [0x33]);
    assert!(rig.rules().is_empty());
}

#[test]
fn a_burst_without_data_stalls_selected() {
    let mut rig = Rig::on(burst(64), 0);
    rig.write(TXDATA, 0x0102_0304);
    rig.write(CONREG, ON | burst(64) | XCH);
    rig.now = 100 * PERIOD;
    assert!(rig.xch() && !rig.stat(TC) && rig.stat(RR));
    assert_eq!(rig.rules(), [Rule::TxUnderrun]);
    assert_eq!(rig.wire.violations(0).kept()[0].at_ps, 32 * PERIOD);
    rig.write(TXDATA, 0x0506_0708);
    let done = rig.until(|rig| rig.stat(TC));
    assert_eq!(done, 132 * PERIOD + HALF);
    assert_eq!(rig.echoes[0].borrow().received(), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(rig.echoes[0].borrow().selections(), 1, "SS stayed asserted");
    let used = rig.wire.wire_use(rig.now);
    assert_eq!((used.clock_ps, used.span_ps), (64 * PERIOD, 132 * PERIOD));
}

#[test]
fn xch_without_a_word_clears_at_once() {
    let mut rig = Rig::on(burst(8), 0);
    rig.write(CONREG, ON | burst(8) | XCH);
    assert!(!rig.xch());
    rig.write(TXDATA, 0x99);
    rig.now = 10 * PERIOD;
    assert!(!rig.xch() && !rig.stat(TC));
    assert_eq!(rig.echoes[0].borrow().selections(), 0);
    rig.write(CONREG, ON | burst(8) | XCH);
    rig.until(|rig| rig.stat(TC));
    assert_eq!(rig.echoes[0].borrow().received(), [0x99]);
    assert!(rig.rules().is_empty());
}

/// A rig with `readings`, enabled.
fn rig_as(readings: Readings, conreg: u32, configreg: u32) -> Rig {
    let mut rig = Rig::new();
    rig.block = Ecspi::with_readings(REFERENCE_HZ, readings);
    rig.write(CONREG, ON | conreg);
    rig.write(CONFIGREG, configreg);
    rig
}

#[test]
fn each_combination_of_readings_is_there_once() {
    let each = Readings::each(1);
    assert_eq!(each[0], Readings::default());
    for (index, readings) in each.iter().enumerate() {
        assert!(!each[..index].contains(readings));
    }
}

#[test]
fn xch_and_tc_that_go_by_txfifo_come_before_the_last_word() {
    for (xch, tc) in [(Over::FifoEmpty, Over::WordEnd), (Over::WordEnd, Over::FifoEmpty)] {
        let readings = Readings { xch, tc, ..Readings::default() };
        let early = |rig: &mut Rig| (xch == Over::FifoEmpty) != rig.xch() || rig.stat(TC);
        let mut rig = rig_as(readings, burst(64), 0);
        rig.write(TXDATA, 0x0102_0304);
        rig.write(TXDATA, 0x0506_0708);
        rig.write(CONREG, ON | burst(64) | XCH);
        rig.now = 32 * PERIOD - 1;
        assert!(rig.xch() && !rig.stat(TC), "a word waits");
        rig.now = 32 * PERIOD;
        assert!(early(&mut rig) && rig.stat(RR), "{readings:?}");
        assert_eq!(rig.xch(), xch == Over::WordEnd);
        assert_eq!(rig.stat(TC), tc == Over::FifoEmpty);
        assert_eq!(rig.read(TESTREG) >> 8 & 0x7f, 1, "the last word is still to come");
        rig.now = 64 * PERIOD + HALF;
        assert!(!rig.xch() && rig.stat(TC));
        assert_eq!(rig.read(TESTREG) >> 8 & 0x7f, 2);
        // A single word is under way before its clocks begin.
        rig.write(STATREG, TC);
        rig.write(TXDATA, 0x0a);
        rig.write(CONREG, ON | burst(8) | XCH);
        assert_eq!((rig.xch(), rig.stat(TC)), (xch == Over::WordEnd, tc == Over::FifoEmpty));
        assert_eq!(rig.wire.wire_use(rig.now).bits, 64);
    }
}

#[test]
fn xch_that_reads_0_may_be_written_while_a_burst_ends() {
    let readings = Readings { xch: Over::FifoEmpty, ..Readings::default() };
    let mut rig = rig_as(readings, burst(8), 0);
    rig.write(TXDATA, 1);
    rig.write(CONREG, ON | burst(8) | XCH);
    rig.now = 8 * PERIOD;
    rig.write(TXDATA, 2);
    assert!(!rig.xch(), "the second word was not asked for");
    rig.write(CONREG, ON | burst(8) | XCH);
    assert!(rig.xch());
    rig.now = 30 * PERIOD;
    assert!(!rig.xch());
    assert_eq!(rig.echoes[0].borrow().received(), [1, 2]);
    assert_eq!(rig.echoes[0].borrow().selections(), 2);
}

#[test]
fn a_burst_that_needs_xch_stops_and_sends_the_rest_when_it_is_written() {
    let needs_xch = Readings { dry: Dry::NeedsXch, ..Readings::default() };
    // With SS_CTL = 1 it stops according to the manual too.
    for (readings, configreg) in [(needs_xch, 0), (Readings::default(), 0xf00)] {
        let mut rig = rig_as(readings, burst(72), configreg);
        rig.write(TXDATA, 0x01);
        rig.write(TXDATA, 0x0203_0405);
        rig.write(CONREG, ON | burst(72) | XCH);
        rig.now = 40 * PERIOD + HALF;
        assert!(!rig.xch() && rig.stat(TC));
        assert_eq!(rig.rules(), [Rule::TxUnderrun]);
        rig.write(TXDATA, 0x0607_0809);
        rig.now = 200 * PERIOD;
        assert!(!rig.stat(TE) && !rig.xch(), "data alone does not start it");
        rig.write(CONREG, ON | burst(72) | XCH);
        let done = rig.until(|rig| !rig.xch());
        assert_eq!(done, 232 * PERIOD + HALF, "the rest is 32 bits, not 72");
        assert_eq!(rig.echoes[0].borrow().received(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(rig.echoes[0].borrow().selections(), 2, "SS was negated");
        assert_eq!(rig.wire.violations(rig.now).harms(), 0);
    }
}

#[test]
fn a_start_delay_is_before_the_first_clock() {
    for conreg in [XCH, SMC] {
        let delay = Readings { start_delay_ps: 7 * PERIOD, ..Readings::default() };
        let mut rig = rig_as(delay, burst(8), 0);
        rig.write(TXDATA, 1);
        rig.write(CONREG, ON | burst(8) | conreg);
        assert_eq!(rig.until(|rig| rig.stat(RR)), 15 * PERIOD - HALF);
        assert_eq!(rig.wire.wire_use(rig.now).span_ps, 8 * PERIOD, "the delay is not clocked");
    }
}

#[test]
fn loopback_hears_itself_and_leaves_the_pins_alone() {
    let mut rig = Rig::on(burst(40), 0);
    rig.write(TESTREG, LBC);
    rig.write(TXDATA, 0x12);
    rig.write(TXDATA, 0x3456_789a);
    rig.write(CONREG, ON | burst(40) | XCH);
    rig.until(|rig| rig.stat(TC));
    assert_eq!((rig.read(RXDATA) & 0xff, rig.read(RXDATA)), (0x12, 0x3456_789a));
    assert_eq!(rig.echoes[0].borrow().received(), [0x12, 0x34, 0x56, 0x78, 0x9a]);
    assert_eq!(rig.read(TESTREG), LBC);
    // A channel without a line: clocks without a chip select are intended here.
    rig.write(TXDATA, 0);
    rig.write(CONREG, ON | 2 << 18 | burst(8) | XCH);
    rig.until(|rig| rig.stat(RR));
    assert!(rig.rules().is_empty());
}

#[test]
fn what_is_not_supported_never_starts() {
    for conreg in [1 | burst(8), ON | 2 | burst(8), ON | 1 << 16 | burst(8)] {
        let mut rig = Rig::on(0, 0);
        rig.write(TXDATA, 1);
        rig.write(CONREG, conreg | XCH);
        rig.now = 1_000_000_000;
        assert!(!rig.xch() && !rig.stat(TC));
        assert_eq!(rig.read(TESTREG), 1);
    }
}

#[test]
fn ss_polarity_and_resting_levels() {
    // SS_POL high on an active-low line: the chip is selected while SS rests, not in the burst.
    let mut rig = Rig::on(burst(8), 0xf000);
    assert_eq!(rig.echoes[0].borrow().selections(), 1);
    rig.write(TXDATA, 0xff);
    rig.write(CONREG, ON | burst(8) | XCH);
    rig.until(|rig| rig.stat(TC));
    assert_eq!(rig.read(RXDATA) & 0xff, 0xff, "nobody answers");
    assert_eq!(rig.rules(), [Rule::ClockWithoutCs]);

    // SCLK_POL without SCLK_CTL: SCLK rests low and is high in the burst; SS hides both changes.
    let mut rig = Rig::on(burst(8), 0x10);
    rig.write(TXDATA, 0xff);
    rig.write(CONREG, ON | burst(8) | XCH);
    rig.until(|rig| rig.stat(TC));
    assert!(rig.rules().is_empty());
}

#[test]
fn accesses_to_no_register() {
    let mut rig = Rig::on(0, 0);
    assert_eq!(rig.read(0x24), 0);
    rig.write(0x3c, 1);
    rig.write(0x19, 1);
    assert_eq!(rig.rules(), [Rule::BadAccess; 3]);
}

proptest! {
    /// Bursts of any length send the remainder first, then whole words, in any mode.
    #[test]
    fn a_burst_of_any_length_reaches_the_chip(
        bytes in 1..=512_usize,
        odd_bits in prop_oneof![Just(0_u32), 1..8_u32],
        mode in 0..4_u32,
        seed in any::<u32>(),
    ) {
        let bits = (bytes as u32 * 8).saturating_sub(odd_bits);
        let (pol, pha) = (mode >> 1, mode & 1);
        let mut rig = Rig::on(burst(bits), pol << 20 | pol << 4 | pha);
        let words: Vec<u32> =
            (0..bits.div_ceil(32)).map(|word| seed.wrapping_mul(word * 2 + 0x9e37_79b1)).collect();
        let mut sent = words.iter();
        for &word in sent.by_ref().take(64) {
            rig.write(TXDATA, word);
        }
        rig.write(CONREG, ON | burst(bits) | XCH);
        let mut received = Vec::new();
        while received.len() < words.len() {
            rig.now += PERIOD;
            if rig.stat(RR) {
                received.push(rig.read(RXDATA));
                if let Some(&word) = sent.next() {
                    rig.write(TXDATA, word);
                }
            }
        }
        rig.until(|rig| rig.stat(TC));
        // All bits in order, as the wire saw them.
        let in_order = |words: &[u32]| -> Vec<bool> {
            let first = match bits % 32 { 0 => 32, bits => bits };
            words.iter().enumerate().flat_map(|(index, &word)| {
                let bits = if index == 0 { first } else { 32 };
                (0..bits).rev().map(move |bit| word >> bit & 1 != 0)
            }).collect()
        };
        let (out, back) = (in_order(&words), in_order(&received));
        prop_assert_eq!(out.len(), bits as usize);
        prop_assert_eq!(&back[back.len().min(8)..], &out[..out.len().saturating_sub(8)]);
        prop_assert_eq!(rig.wire.wire_use(rig.now).bits, u64::from(bits));
        prop_assert_eq!(rig.echoes[0].borrow().selections(), 1);
        prop_assert!(rig.rules().is_empty(), "{:?}", rig.rules());
    }
}

/// Exchanges one word by the manual: see [`ControllerKind`].
pub(super) fn exchange(spi: &mut dyn ByHand, bits: u32, word: u32, cs: &mut dyn FnMut()) -> u32 {
    // Channel 2 has no line on any board.
    let conreg = 0xf1 | 2 << 18 | 3 << 12 | (bits - 1) << 20;
    spi.write(0x08, conreg);
    cs();
    spi.write(0x04, word);
    spi.write(0x08, conreg | 1 << 2);
    while spi.read(0x08) & 1 << 2 != 0 {}
    spi.read(0x00)
}

#[test]
fn sclk_rests_where_sclk_ctl_says_whatever_its_polarity() {
    // SCLK_POL and SCLK_CTL of channel 0.
    assert!(!Configreg(1 << 4).sclk_rests(0));
    assert!(Configreg(1 << 20).sclk_rests(0));
}

#[test]
fn sclk_takes_a_new_level_a_period_after_configreg() {
    let mut rig = Rig::on(burst(8), 0);
    rig.at(10 * PERIOD);
    rig.write(CONFIGREG, 1 << 20 | 1 << 4);
    assert_eq!(rig.block.due(), rig.now + PERIOD);
}
