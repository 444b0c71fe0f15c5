//! SPI0 compared with the manual: registers, FIFOs, bytes and their times.

use proptest::prelude::*;

use super::regs::*;
use super::stat::*;
use super::*;
use crate::model::{ByHand, ControllerBlock as _, rig};

/// 20 MHz at the divisor used here: a period of 50 ns.
const CORE_HZ: u64 = 400_000_000;
const CDIV: u32 = 20;
const PERIOD: Ps = 50_000;
const HALF: Ps = PERIOD / 2;
/// Nine clocks.
const BYTE: Ps = 9 * PERIOD;

const CPHA: u32 = 1 << 2;
const CPOL: u32 = 1 << 3;
const TA: u32 = 1 << 7;
const INTD: u32 = 1 << 9;
const INTR: u32 = 1 << 10;

type Rig = rig::Rig<Bcm2835Spi>;

/// The line of the second echo.
const GPIO: Driver = Driver::Gpio { block: 0, bit: 25 };

impl Rig {
    fn new() -> Self {
        Self::with(Bcm2835Spi::new(CORE_HZ), &[Driver::Native(0), GPIO])
    }

    /// With CLK set and `cs` written.
    fn on(cs: u32) -> Self {
        let mut rig = Self::new();
        rig.write(CLK, CDIV);
        rig.write(CS, cs);
        rig
    }

    /// With TA set in a block whose DONE has to be written.
    fn needing_done() -> Self {
        let mut rig = Self::new();
        rig.block = Bcm2835Spi::new(CORE_HZ).with_done(Done::Needed);
        rig.write(CLK, CDIV);
        rig.write(CS, TA);
        rig
    }

    fn stat(&mut self, bit: u32) -> bool {
        self.read(CS) & bit != 0
    }

    /// A byte from its write to DONE.
    fn send(&mut self, byte: u32) {
        self.write(FIFO, byte);
        self.until(|rig| rig.stat(DONE));
    }

    fn read_all(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.stat(RXD) {
            bytes.push(self.read(FIFO) as u8);
        }
        bytes
    }
}

#[test]
fn reset_values() {
    let mut rig = Rig::new();
    rig.reads(&[(CS, 0x0004_1000), (CLK, 0), (DLEN, 0), (LTOH, 1), (DC, 0x3020_1020)]);
    assert!(!rig.block.interrupt() && rig.block.due() == Ps::MAX);
    assert!(rig.rules().is_empty());
}

#[test]
fn registers_keep_their_writable_bits() {
    let mut rig = Rig::new();
    rig.keeps(&[(CS, 0x03e0_ffcf | DONE | TXD), (CLK, 0xffff), (DLEN, 0xffff), (LTOH, 0xf)]);
    rig.keeps(&[(DC, u32::MAX)]);
    assert_eq!(rig.read(CS), TXD, "the status is read-only, CLEAR reads as 0");
}

#[test]
fn accesses_to_no_register() {
    let mut rig = Rig::new();
    assert_eq!(rig.read(0x18), 0);
    rig.write(0x20, 1);
    rig.write(0x05, 1);
    assert_eq!(rig.rules(), [Rule::BadAccess; 3]);
}

#[test]
fn done_is_set_with_ta_and_cleared_by_data() {
    let mut rig = Rig::on(0);
    assert!(!rig.stat(DONE), "not active");
    rig.write(CS, TA);
    assert!(rig.stat(DONE), "nothing to send");
    rig.write(FIFO, 0x12);
    assert!(!rig.stat(DONE));
    rig.until(|rig| rig.stat(DONE));
    rig.write(CS, 0);
    assert!(!rig.stat(DONE) && rig.stat(RXD), "what was received outlives TA");
    assert_eq!(rig.read_all(), [0]);
    assert!(rig.rules().is_empty());
}

#[test]
fn a_byte_takes_nine_clocks_the_last_one_too() {
    for mode in 0..4 {
        let mut rig = Rig::on(mode << 2);
        rig.now = 1_000_000;
        rig.write(CS, mode << 2 | TA);
        rig.write(FIFO, 0x5a);
        rig.write(FIFO, 0xa5);
        let begin = 1_000_000;
        let sampled = begin + 7 * PERIOD + HALF;
        assert_eq!(rig.until(|rig| rig.stat(RXD)), sampled, "mode {mode}: the last sample");
        assert_eq!(rig.read(FIFO), 0);
        assert_eq!(rig.until(|rig| rig.stat(RXD)), sampled + BYTE, "mode {mode}: a clock between");
        assert_eq!(rig.read(FIFO), 0x5a);
        rig.now = begin + 2 * BYTE - 1;
        assert!(!rig.stat(DONE));
        rig.now += 1;
        assert!(rig.stat(DONE), "mode {mode}");
        rig.write(CS, mode << 2);
        let used = rig.wire.wire_use(rig.now);
        assert_eq!((used.bits, used.clock_ps), (16, 16 * PERIOD));
        assert_eq!(used.span_ps, 17 * PERIOD);
        assert_eq!(used.selected_ps, 2 * BYTE);
        assert!(rig.rules().is_empty());
    }
}

#[test]
fn a_byte_written_in_the_ninth_clock_waits_for_its_end() {
    let mut rig = Rig::on(TA);
    rig.write(FIFO, 1);
    rig.now = 8 * PERIOD + 1_000;
    rig.write(FIFO, 2);
    assert!(!rig.stat(DONE));
    rig.until(|rig| rig.stat(DONE));
    assert_eq!(rig.now, 2 * BYTE);
    // A byte written later begins when it is written.
    rig.now += 7_000;
    let begin = rig.now;
    rig.write(FIFO, 3);
    assert_eq!(rig.until(|rig| rig.stat(DONE)), begin + BYTE);
    assert_eq!(rig.echoes[0].borrow().received(), [1, 2, 3]);
}

#[test]
fn cdiv_is_even_and_its_zero_is_65536() {
    let cases =
        [(2, 2), (3, 2), (20, 20), (21, 20), (112, 112), (0xfffe, 0xfffe), (0xffff, 0xfffe)];
    for (cdiv, divisor) in cases.into_iter().chain([(0, 65_536), (1, 65_536), (0x1_0004, 4)]) {
        let mut rig = Rig::on(TA);
        rig.write(CLK, cdiv);
        rig.write(FIFO, 0);
        rig.now = 9 * 2_500 * divisor - 1;
        assert!(!rig.stat(DONE), "{cdiv}");
        rig.now += 1;
        assert!(rig.stat(DONE), "{cdiv}");
        assert_eq!(rig.wire.wire_use(rig.now).clock_ps, 8 * 2_500 * divisor);
    }
    // 333 MHz / 2: 6,006.006 ps, never faster than that.
    let mut rig = Rig::on(TA);
    rig.block.core_hz = 333_000_000;
    rig.write(CLK, 2);
    rig.write(FIFO, 0);
    rig.now = 1_000_000;
    assert!(rig.stat(DONE));
    assert_eq!(rig.wire.wire_use(rig.now).clock_ps, 8 * 6_007);
}

#[test]
fn a_byte_keeps_the_clock_it_began_with() {
    let mut rig = Rig::on(TA);
    rig.write(FIFO, 1);
    rig.write(CLK, 2 * CDIV);
    assert_eq!(rig.until(|rig| rig.stat(DONE)), BYTE);
    rig.write(FIFO, 1);
    assert_eq!(rig.until(|rig| rig.stat(DONE)), 3 * BYTE);
}

#[test]
fn tx_fifo_holds_64_bytes_with_the_one_on_the_wire() {
    let mut rig = Rig::on(TA);
    for byte in 0..64 {
        assert!(rig.stat(TXD));
        rig.write(FIFO, byte);
    }
    assert!(!rig.stat(TXD));
    rig.write(FIFO, 64);
    assert_eq!(rig.rules(), [Rule::TxFull], "the 65th is lost");
    assert_eq!(rig.until(|rig| rig.stat(TXD)), 7 * PERIOD + HALF);
    // So a driver with 64 bytes under way may write one byte for each it reads.
    assert_eq!(rig.read(FIFO), 0);
    rig.write(FIFO, 64);
    assert!(!rig.stat(TXD));
    assert_eq!(rig.until(|rig| rig.stat(DONE)), 65 * BYTE);
    assert_eq!(rig.echoes[0].borrow().received(), (0..65).collect::<Vec<u8>>());
    assert_eq!(rig.read_all(), (0..64).collect::<Vec<u8>>());
    assert_eq!(rig.rules(), [Rule::TxFull]);
}

#[test]
fn a_write_is_a_byte() {
    let mut rig = Rig::on(TA);
    rig.send(0x1234_5678);
    assert_eq!(rig.echoes[0].borrow().received(), [0x78]);
}

#[test]
fn a_full_rx_fifo_stalls_the_clock_and_loses_nothing() {
    let mut rig = Rig::on(TA);
    rig.write_each(FIFO, 0..64);
    rig.now = BYTE;
    for byte in 64..67 {
        rig.until(|rig| rig.stat(TXD));
        rig.write(FIFO, byte);
    }
    rig.until(|rig| rig.stat(RXF));
    assert_eq!(rig.now, 63 * BYTE + 7 * PERIOD + HALF);
    rig.now += 1_000 * BYTE;
    assert!(rig.stat(RXF) && !rig.stat(DONE) && rig.stat(TXD));
    assert_eq!(rig.wire.wire_use(rig.now).bits, 64 * 8);
    assert_eq!(rig.block.due(), Ps::MAX);
    // Reading one byte from the full FIFO lets the next byte start at once.
    let begin = rig.now;
    assert_eq!(rig.read(FIFO), 0);
    assert!(!rig.stat(RXF));
    assert_eq!(rig.until(|rig| rig.stat(RXF)), begin + 7 * PERIOD + HALF);
    let mut answers = Vec::new();
    while !rig.stat(DONE) {
        rig.now += PERIOD;
        answers.extend(rig.read_all());
    }
    assert_eq!(answers, (0..66).collect::<Vec<u8>>());
    assert_eq!(rig.echoes[0].borrow().received(), (0..67).collect::<Vec<u8>>());
    assert!(rig.rules().is_empty());
}

#[test]
fn rxr_is_three_quarters_and_goes_with_ta() {
    let mut rig = Rig::on(TA);
    rig.write_each(FIFO, [0; 48]);
    assert_eq!(rig.until(|rig| rig.stat(RXR)), 47 * BYTE + 7 * PERIOD + HALF);
    rig.until(|rig| rig.stat(DONE));
    rig.write(CS, 0);
    assert!(!rig.stat(RXR), "not active");
    rig.write(CS, TA);
    assert!(rig.stat(RXR));
    rig.read(FIFO);
    assert!(!rig.stat(RXR));
}

#[test]
fn clear_drops_what_it_names_before_the_frame_starts() {
    let mut rig = Rig::on(TA);
    rig.write_each(FIFO, [1, 2, 3]);
    rig.now = BYTE;
    rig.write(CS, TA | CLEAR_TX);
    assert!(rig.stat(RXD), "RX FIFO is left alone");
    assert_eq!(rig.until(|rig| rig.stat(DONE)), 2 * BYTE, "the byte on the wire is finished");
    assert_eq!(rig.echoes[0].borrow().received(), [1, 2]);
    rig.write(CS, TA | CLEAR_RX);
    assert!(!rig.stat(RXD) && rig.stat(DONE));
    assert!(rig.rules().is_empty());
}

#[test]
fn an_empty_rx_fifo_reads_a_pattern() {
    let mut rig = Rig::on(TA);
    assert_eq!(rig.read(FIFO), UNDEFINED_FIFO);
    rig.write(FIFO, 0);
    rig.now = 7 * PERIOD + HALF - 1;
    assert_eq!(rig.read(FIFO), UNDEFINED_FIFO, "a byte too early");
    assert_eq!(rig.rules(), [Rule::RxEmpty; 2]);
}

#[test]
fn without_ta_bytes_are_lost() {
    let mut rig = Rig::on(0);
    rig.write(FIFO, 0x99);
    assert_eq!(rig.rules(), [Rule::Disabled]);
    rig.write(CS, TA);
    assert!(rig.stat(DONE));
    rig.now += 10 * BYTE;
    assert_eq!(rig.echoes[0].borrow().received(), []);
}

#[test]
fn what_was_not_sent_leads_the_next_transfer() {
    let mut rig = Rig::on(TA);
    rig.write_each(FIFO, [1, 2, 3]);
    // In the middle of the second byte, five bits sampled.
    rig.now = BYTE + 4 * PERIOD + HALF + 1;
    rig.write(CS, 0);
    assert_eq!(rig.rules(), [Rule::MidWord]);
    assert_eq!(rig.wire.wire_use(rig.now).bits, 13);
    rig.now += 100 * PERIOD;
    assert_eq!(rig.read_all(), [0], "the second byte's answer is lost");
    rig.write(CS, TA);
    rig.until(|rig| rig.stat(DONE));
    assert_eq!(rig.echoes[0].borrow().received(), [1, 3]);
    assert_eq!(rig.echoes[0].borrow().selections(), 2);
}

#[test]
fn interrupts_follow_done_and_rxr() {
    let mut rig = Rig::on(INTD | INTR);
    assert!(!rig.block.interrupt());
    rig.write(CS, INTD | INTR | TA);
    assert!(rig.block.interrupt(), "DONE comes with TA: the manual's first interrupt");
    rig.write_each(FIFO, 0..64);
    assert!(!rig.block.interrupt());
    let at_rxr = rig.until(|rig| rig.read(CLK) != 0 && rig.block.interrupt());
    assert_eq!(at_rxr, 47 * BYTE + 7 * PERIOD + HALF);
    for _ in 0..48 {
        rig.read(FIFO);
    }
    assert!(!rig.block.interrupt());
    // TX FIFO has 16 bytes left: the recipe's 48 find room.
    rig.write_each(FIFO, 64..112);
    rig.until(|rig| rig.read(CLK) != 0 && rig.block.interrupt());
    assert!(rig.stat(RXR) && !rig.stat(DONE));
    assert_eq!(rig.now, 95 * BYTE + 7 * PERIOD + HALF);
    rig.write(CS, INTD | TA);
    assert!(!rig.block.interrupt(), "INTR alone is about RXR");
    rig.until(|rig| rig.read(CLK) != 0 && rig.block.interrupt());
    assert_eq!(rig.now, 112 * BYTE);
    rig.write(CS, INTR | TA);
    assert!(rig.block.interrupt(), "64 bytes are there");
    rig.write(CS, INTD | INTR);
    assert!(!rig.block.interrupt(), "TA = 0 ends both");
    assert_eq!(rig.read_all(), (47..111).collect::<Vec<u8>>());
    assert!(rig.rules().is_empty());
}

#[test]
fn due_tells_when_an_interrupt_may_come() {
    let mut rig = Rig::on(INTD | TA);
    rig.write(FIFO, 0);
    assert_eq!(rig.block.due(), 7 * PERIOD + HALF);
    rig.now = rig.block.due();
    rig.block.catch_up(rig.now, &mut rig.wire);
    assert!(!rig.block.interrupt());
    assert_eq!(rig.block.due(), BYTE);
    rig.now = BYTE;
    rig.block.catch_up(rig.now, &mut rig.wire);
    assert!(rig.block.interrupt());
    assert_eq!(rig.block.due(), Ps::MAX);
}

#[test]
fn native_ce_is_active_from_ta_to_ta() {
    let mut rig = Rig::on(0);
    assert_eq!(rig.echoes[0].borrow().selections(), 0);
    rig.write(CS, TA);
    assert_eq!(rig.echoes[0].borrow().selections(), 1);
    for byte in [1, 2] {
        rig.send(byte);
        rig.now += 10 * BYTE;
    }
    rig.write(CS, 0);
    let used = rig.wire.wire_use(rig.now);
    assert_eq!(used.selected_ps, 22 * BYTE, "no pulse between bytes");
    assert_eq!(rig.echoes[0].borrow().selections(), 1);
    // Other lines, and no line.
    for line in [1, 2, 3] {
        rig.write(CS, line | TA);
        rig.write(CS, line);
    }
    assert_eq!(rig.echoes[0].borrow().selections(), 1);
    assert!(rig.rules().is_empty());
}

#[test]
fn a_line_is_active_high_by_cspoln_or_cspol() {
    for polarity in [1 << 6, 1 << 21, 1 << 6 | 1 << 21] {
        let mut rig = Rig::on(polarity);
        assert_eq!(rig.echoes[0].borrow().selections(), 1, "{polarity:#x}: low at rest");
        rig.write(CS, polarity | TA);
        rig.send(0xff);
        assert_eq!(rig.echoes[0].borrow().received(), []);
        assert_eq!(rig.rules(), [Rule::ClockWithoutCs]);
    }
    let mut rig = Rig::on(1 << 22 | 1 << 23);
    assert_eq!(rig.echoes[0].borrow().selections(), 0, "other lines' polarities");
    assert!(rig.rules().is_empty());
}

#[test]
fn a_ce_line_released_with_the_last_byte_is_seen() {
    for (mode, rules) in [(0, vec![Rule::SckIdle]), (3, vec![])] {
        let mut rig = Rig::on(mode << 2);
        rig.write(CS, mode << 2 | TA);
        rig.write(FIFO, 0);
        rig.until(|rig| rig.stat(RXD));
        rig.write(CS, mode << 2);
        assert_eq!(rig.rules(), rules, "mode {mode}");
    }
    // The field CS is part of the register: lines move while a byte is on the wire.
    let mut rig = Rig::on(TA);
    rig.write(FIFO, 0);
    rig.now = 3 * PERIOD;
    rig.write(CS, TA | 1);
    assert!(rig.rules().contains(&Rule::MidWord));
}

#[test]
fn a_gpio_line_moved_within_a_byte_is_seen() {
    let mut rig = Rig::on(3 | TA);
    rig.drive(GPIO, false);
    rig.write(FIFO, 0xc3);
    rig.now = 4 * PERIOD;
    rig.drive(GPIO, true);
    assert_eq!(rig.rules(), [Rule::MidWord]);

    // Kept: from before the first byte to DONE.
    let mut rig = Rig::on(3 | TA);
    rig.drive(GPIO, false);
    rig.send(0xc3);
    rig.drive(GPIO, true);
    assert_eq!(rig.echoes[1].borrow().received(), [0xc3]);
    assert_eq!(rig.echoes[0].borrow().selections(), 0);
    assert!(rig.rules().is_empty());

    // The ninth clock is internal to the block: SCLK rests, and the chip may be deselected.
    let mut rig = Rig::on(3 | TA);
    rig.drive(GPIO, false);
    rig.write(FIFO, 0xc3);
    rig.now = 8 * PERIOD;
    rig.drive(GPIO, true);
    assert!(rig.rules().is_empty() && !rig.stat(DONE));
}

#[test]
fn sclk_follows_cpol_without_ta() {
    // Before the chip is selected no chip counts the edge.
    let mut rig = Rig::on(0);
    rig.write(CS, CPOL | CPHA | 3);
    rig.drive(GPIO, false);
    rig.write(CS, CPOL | CPHA | 3 | TA);
    rig.send(0x81);
    rig.drive(GPIO, true);
    rig.write(CS, 0);
    assert_eq!(rig.echoes[1].borrow().received(), [0x81]);
    assert!(rig.rules().is_empty());
    // Afterwards a chip does.
    let mut rig = Rig::on(0);
    rig.drive(GPIO, false);
    rig.write(CS, CPOL | 3 | TA);
    assert_eq!(rig.rules(), [Rule::SckIdle]);
    // CE moves after SCLK, even in one write.
    let mut rig = Rig::on(0);
    rig.write(CS, CPOL | TA);
    assert!(rig.rules().is_empty());
    // During a byte SCLK waits for its end.
    rig.write(FIFO, 0);
    rig.now = PERIOD;
    rig.write(CS, TA);
    assert!(rig.rules().is_empty());
    rig.until(|rig| rig.stat(DONE));
    assert_eq!(rig.wire.violations(0).kept()[0].at_ps, BYTE);
    assert_eq!(rig.rules(), [Rule::SckIdle]);
}

#[test]
fn what_is_not_supported_never_starts() {
    for bit in [8, 13] {
        let mut rig = Rig::on(TA | 1 << bit);
        rig.write(FIFO, 1);
        rig.now = 1_000_000_000;
        assert!(!rig.stat(DONE) && !rig.stat(RXD), "bit {bit}");
        assert!(rig.wire.wire_use(rig.now).bits == 0);
        rig.write(CS, TA);
        rig.until(|rig| rig.stat(DONE));
        assert_eq!(rig.echoes[0].borrow().received(), [1]);
    }
}

proptest! {
    /// Any number of bytes in any mode reach the chip and come back, however late the driver is.
    #[test]
    fn bytes_reach_the_chip_in_order(
        bytes in prop::collection::vec(any::<u8>(), 1..300),
        mode in 0..4_u32,
        reads in 1..80_usize,
        step in 1..(3 * 64 * BYTE),
    ) {
        let mut rig = Rig::on(mode << 2 | CLEAR_RX | CLEAR_TX);
        rig.write(CS, mode << 2 | TA);
        let (mut sent, mut received) = (bytes.iter(), Vec::new());
        while received.len() < bytes.len() {
            while rig.stat(TXD) {
                let Some(&byte) = sent.next() else { break };
                rig.write(FIFO, byte.into());
            }
            for _ in 0..reads {
                if rig.stat(RXD) {
                    received.push(rig.read(FIFO) as u8);
                }
            }
            rig.now += step;
        }
        rig.until(|rig| rig.stat(DONE));
        rig.write(CS, mode << 2);
        prop_assert_eq!(rig.received(0), bytes.clone());
        prop_assert_eq!(&received[1..], &bytes[..bytes.len() - 1]);
        prop_assert_eq!(rig.wire.wire_use(rig.now).bits, 8 * bytes.len() as u64);
        prop_assert_eq!(rig.echoes[0].borrow().selections(), 1);
        prop_assert!(rig.rules().is_empty(), "{:?}", rig.rules());
    }
}

/// One byte, its answer and DONE. Returns what a status read shows at its beginning and at its end.
fn one_byte(rig: &mut Rig, byte: u8) -> (bool, bool) {
    rig.write(FIFO, byte.into());
    let set_at_once = rig.stat(DONE);
    rig.now += BYTE;
    let set = rig.stat(DONE);
    rig.read(FIFO);
    (set_at_once, set)
}

#[test]
fn done_falls_with_a_byte_whether_it_was_written_or_not_as_in_the_manual() {
    let mut rig = Rig::on(TA);
    for byte in 0..3 {
        assert_eq!(one_byte(&mut rig, byte), (false, true));
    }
}

#[test]
fn done_that_is_needed_and_not_written_stays_set_in_the_next_transfer() {
    let mut rig = Rig::needing_done();
    assert_eq!(one_byte(&mut rig, 1), (false, true), "no byte before it left DONE set");
    rig.write(CS, TA | DONE);
    assert_eq!(one_byte(&mut rig, 2), (false, true), "it was written");
    rig.write(CS, TA | INTD);
    assert_eq!(one_byte(&mut rig, 3), (true, true), "CS was written, but without DONE");
    rig.write(FIFO, 4);
    assert!(rig.block.interrupt() && rig.stat(DONE), "DONE stays until it is written");
    rig.write(CS, TA | DONE);
    assert!(!rig.stat(DONE), "DONE is clear while a byte is on the wire");
    rig.now += BYTE;
    assert!(rig.stat(DONE));
    rig.read(FIFO);
    assert_eq!(one_byte(&mut rig, 5), (true, true), "DONE was written before the end");
}

#[test]
fn a_block_that_ran_dry_with_bytes_unread_is_in_the_middle_of_a_transfer() {
    let mut rig = Rig::needing_done();
    rig.write(FIFO, 1);
    rig.now += BYTE;
    assert!(rig.stat(DONE));
    rig.write(FIFO, 2);
    assert!(!rig.stat(DONE));
    rig.now += BYTE;
    assert_eq!(rig.read_all().len(), 2);
}

/// Exchanges one word by the manual: see [`ControllerKind`].
pub(super) fn exchange(spi: &mut dyn ByHand, bits: u32, word: u32, cs: &mut dyn FnMut()) -> u32 {
    // 20 MHz; no CE line.
    spi.write(0x08, 20);
    spi.write(0x00, 1 << 7 | 1 << 5 | 1 << 4 | 3);
    cs();
    for byte in (0..bits / 8).rev() {
        spi.write(0x04, word >> (8 * byte) & 0xff);
    }
    while spi.read(0x00) & 1 << 16 == 0 {}
    (0..bits / 8).fold(0, |answer, _| answer << 8 | spi.read(0x04))
}
