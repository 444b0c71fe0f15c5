//! Cadence SPI compared with the manual: registers, FIFOs, thresholds, select lines and their times.

use super::regs::*;
use super::*;
use crate::model::{ByHand, ControllerBlock as _, rig};

/// 25 MHz at the divisor used here, 8: a period of 40 ns, a cycle of 5 ns.
const CLK_HZ: u64 = 200_000_000;
const CYCLE: Ps = 5_000;
const PERIOD: Ps = 40_000;
const HALF: Ps = PERIOD / 2;
/// From a byte written to its last capture.
const CAPTURED: Ps = 2 * CYCLE + 8 * PERIOD - HALF;
/// A controller that divides by 8, its lines by software.
const MANUAL: u32 = 1 | 2 << 3 | 1 << 14;
const AUTO: u32 = 1 | 2 << 3;
const NO_LINE: u32 = 0xf << 10;

type Rig = rig::Rig<Cadence>;

impl Rig {
    fn new(disabled: Disabled) -> Self {
        let block = Cadence::new(CLK_HZ, disabled);
        let mut rig = Self::with(block, &[0, 1, 2].map(Driver::Native));
        rig.wire.start_selections();
        rig
    }

    /// Enabled, with this CONFIG.
    fn on(config: u32) -> Self {
        let mut rig = Self::new(Disabled::Keeps);
        rig.write(CONFIG, config);
        rig.write(ENABLE, 1);
        rig
    }

    fn read_all(&mut self) -> Vec<u32> {
        let mut bytes = Vec::new();
        while self.read(STATUS) & RX_REACHED != 0 {
            bytes.push(self.read(RXD));
        }
        bytes
    }
}

#[test]
fn reset_values_and_kept_bits() {
    let mut rig = Rig::new(Disabled::Keeps);
    rig.reads(&[
        (CONFIG, 0x0002_0000),
        (STATUS, TX_BELOW),
        (INT_MASK, 0),
        (ENABLE, 0),
        (DELAYS, 0),
        (SLAVE_IDLE, 0xff),
        (TX_LEVEL, 1),
        (RX_LEVEL, 1),
        (MOD_ID, 0x0009_0106),
    ]);
    rig.keeps(&[(DELAYS, u32::MAX), (SLAVE_IDLE, 0xff), (TX_LEVEL, 0x7f), (RX_LEVEL, 0x7f)]);
    rig.write(CONFIG, !(1 << 9));
    assert_eq!(rig.read(CONFIG), 0x0002_fd3f, "the manual start command reads 0");
    assert!(rig.rules().is_empty());
    for offset in [0x30, 0xf8] {
        rig.read(offset);
        rig.write(offset, 0);
    }
    rig.write(CONFIG, 1 << 9);
    rig.read(RXD);
    let bad = Rule::BadAccess;
    assert_eq!(rig.rules(), [bad, bad, bad, bad, bad, Rule::RxEmpty]);
}

#[test]
fn a_byte_leaves_the_transmit_fifo_when_it_was_received() {
    let mut rig = Rig::on(MANUAL | 0xe << 10);
    rig.write_each(TXD, [0x9f, 0x01]);
    rig.at(CAPTURED - 1);
    assert_eq!(rig.read(STATUS), 0);
    rig.write(TX_LEVEL, 2);
    assert_eq!(rig.read(STATUS), 0, "two, one of them on the wire");
    rig.at(CAPTURED);
    assert_eq!(rig.read(STATUS), TX_BELOW | RX_REACHED);
    rig.write(TX_LEVEL, 1);
    assert_eq!(rig.read(STATUS), RX_REACHED);
    rig.at(CAPTURED + 8 * PERIOD);
    assert_eq!(rig.read(STATUS), TX_BELOW | RX_REACHED, "the second follows without a gap");
    assert_eq!(rig.read_all(), [0, 0x9f]);
    assert_eq!(rig.received(0), [0x9f, 0x01]);
    assert!(rig.rules().is_empty());
}

#[test]
fn lines_follow_the_lowest_zero_under_manual_chip_select() {
    for (cs, line) in [(0xe, 0), (0xd, 1), (0xc, 0), (0xb, 2), (0x3, 2)] {
        let mut rig = Rig::on(MANUAL | cs << 10);
        rig.write(TXD, 5);
        rig.at(20 * PERIOD);
        rig.write(CONFIG, MANUAL | NO_LINE);
        let heard = [0, 1, 2].map(|line| rig.received(line).len());
        assert_eq!(heard.iter().sum::<usize>(), 1);
        assert_eq!(heard[line], 1, "{cs:#x}");
        assert_eq!(rig.wire.take_selections()[0].deselected_at, 20 * PERIOD);
    }
    let mut rig = Rig::on(MANUAL | 0x7 << 10);
    rig.write(TXD, 5);
    rig.at(20 * PERIOD);
    assert_eq!(rig.read_all(), [0xff], "reserved: no line");
}

#[test]
fn the_block_selects_from_the_first_byte_to_an_empty_fifo() {
    let mut rig = Rig::on(AUTO | 0xd << 10);
    rig.write(DELAYS, 100 << 16 | 4 << 8 | 6);
    rig.write(TXD, 1);
    rig.write(TXD, 2);
    rig.by(100 * PERIOD);
    let one = rig.wire.take_selections()[0];
    let lasts = CYCLE + 6 * CYCLE + 8 * PERIOD + 4 * CYCLE + 8 * PERIOD;
    assert_eq!((one.selected_at, one.deselected_at), (CYCLE, CYCLE + lasts));
    assert_eq!(rig.received(1), [1, 2]);
}

#[test]
fn a_manual_start_sends_what_is_there() {
    let mut rig = Rig::on(MANUAL | 0xe << 10 | 1 << 15);
    rig.write(TXD, 1);
    rig.write(TXD, 2);
    rig.at(50 * PERIOD);
    assert_eq!(rig.read(STATUS), 0);
    rig.write(CONFIG, MANUAL | 0xe << 10 | 1 << 15 | START);
    rig.at(100 * PERIOD);
    assert_eq!(rig.read_all(), [0, 1]);
    rig.write(TXD, 3);
    rig.at(150 * PERIOD);
    assert_eq!(rig.read(STATUS), 0, "the command is used up");
}

#[test]
fn a_mode_is_taken_when_the_block_is_enabled() {
    let mut rig = Rig::on(MANUAL | 0xe << 10);
    rig.write(CONFIG, MANUAL | 0xe << 10 | 2);
    rig.by(PERIOD);
    assert!(rig.rules().is_empty(), "SCK stays low");
    rig.write(ENABLE, 0);
    rig.write(ENABLE, 1);
    rig.by(2 * PERIOD);
    assert_eq!(rig.rules(), [Rule::SckIdle], "SCK rises under a selected chip");
}

#[test]
fn a_disabled_block_finishes_its_byte_and_keeps_or_loses_the_others() {
    for (disabled, sent) in [(Disabled::Keeps, 3), (Disabled::Empties, 1)] {
        let mut rig = Rig::new(disabled);
        rig.write(CONFIG, MANUAL | 0xe << 10);
        rig.write(ENABLE, 1);
        (1..=3).for_each(|byte| rig.write(TXD, byte));
        rig.at(PERIOD);
        rig.write(ENABLE, 0);
        rig.by(50 * PERIOD);
        assert_eq!(rig.received(0), [1]);
        rig.write(ENABLE, 1);
        rig.by(100 * PERIOD);
        assert_eq!(rig.received(0).len(), sent);
    }
}

#[test]
fn fifos_hold_128_bytes_and_an_overflow_is_latched() {
    let mut rig = Rig::on(MANUAL | 0xe << 10);
    (0..128).for_each(|byte| rig.write(TXD, byte));
    assert_eq!(rig.read(STATUS), TX_FULL);
    rig.write(TXD, 128);
    assert_eq!(rig.rules(), [Rule::TxFull]);
    rig.at(2_000 * PERIOD);
    rig.write(RX_LEVEL, 0x7f);
    assert_eq!(rig.read(STATUS), TX_BELOW | RX_REACHED | RX_FULL);
    rig.write(TXD, 129);
    rig.at(2_100 * PERIOD);
    assert_eq!(rig.read(STATUS), RX_LOST | TX_BELOW | RX_REACHED | RX_FULL);
    rig.write(STATUS, 0x7f);
    assert_eq!(rig.read(STATUS), TX_BELOW | RX_REACHED | RX_FULL, "levels stay");
    assert_eq!(rig.rules(), [Rule::TxFull, Rule::RxOverrun]);
}

#[test]
fn interrupts_are_enabled_and_disabled_by_ones() {
    let mut rig = Rig::on(MANUAL | 0xe << 10);
    assert!(!rig.block.interrupt());
    rig.write(INT_EN, TX_BELOW | RX_LOST);
    assert!(rig.block.interrupt());
    rig.write(TXD, 1);
    assert!(!rig.block.interrupt());
    rig.write(INT_DIS, RX_LOST);
    assert_eq!(rig.read(INT_MASK), TX_BELOW);
    rig.by(CAPTURED);
    assert!(rig.block.interrupt());
}

#[test]
fn dividers_are_powers_of_two() {
    for (baud, divisor) in [(1, 4), (2, 8), (7, 256)] {
        let mut rig = Rig::on(1 | baud << 3 | 1 << 14 | 0xe << 10);
        rig.write(TXD, 1);
        let captured = 2 * CYCLE + (16 - 1) * divisor * CYCLE / 2;
        rig.at(captured - 1);
        assert_eq!(rig.read(STATUS), 0);
        rig.at(captured);
        assert_eq!(rig.read(STATUS), TX_BELOW | RX_REACHED);
    }
    let mut rig = Rig::on(1 | 1 << 14 | 0xe << 10);
    rig.write(TXD, 1);
    rig.by(PERIOD);
    assert!(rig.rules().contains(&Rule::BadAccess));
}

/// Exchanges one word by the manual: see [`ControllerKind`].
pub(super) fn exchange(spi: &mut dyn ByHand, bits: u32, word: u32, cs: &mut dyn FnMut()) -> u32 {
    // Bytes without a line, at a sixteenth of the clock.
    for (offset, value) in [(CONFIG, 1 | 3 << 3 | 1 << 14 | NO_LINE), (ENABLE, 1)] {
        spi.write(offset, value);
    }
    cs();
    for byte in (0..bits / 8).rev() {
        spi.write(TXD, word >> (8 * byte) & 0xff);
    }
    while spi.read(STATUS) & TX_BELOW == 0 {}
    (0..bits / 8).fold(0, |answer, _| answer << 8 | spi.read(RXD))
}
