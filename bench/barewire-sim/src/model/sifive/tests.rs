//! SiFive SPI compared with the manual: registers, FIFOs, frames, select lines and their times.

use super::regs::*;
use super::*;
use crate::model::{ByHand, ControllerBlock as _, rig};
use crate::wire::Driver;

/// 20 MHz at the divisor used here: a period of 50 ns, a cycle of 5 ns.
const CLK_HZ: u64 = 200_000_000;
const DIV: u32 = 4;
const CYCLE: Ps = 5_000;
const PERIOD: Ps = 50_000;
const HALF: Ps = PERIOD / 2;
/// CSMODE: the line stays active after the first frame.
const HOLD: u32 = 2;
const BYTES: u32 = 8 << 16;
const ENDIAN: u32 = 1 << 2;
const DIR: u32 = 1 << 3;

type Rig = rig::Rig<SiFive>;

impl Rig {
    fn new() -> Self {
        let mut rig = Self::with(SiFive::new(CLK_HZ, 2), &[0, 1].map(Driver::Native));
        rig.wire.start_selections();
        rig
    }

    /// The flash interface off, the clock set, CSMODE `csmode`.
    fn on(csmode: u32) -> Self {
        let mut rig = Self::new();
        rig.write_pairs(&[(FCTRL, 0), (SCKDIV, DIV), (CSMODE, csmode)]);
        rig
    }

    fn read_all(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| Some(self.read(RXDATA)).filter(|byte| byte & FLAG == 0)).collect()
    }

    /// When a line became active and inactive, of the selections that are over.
    fn selected(&mut self) -> Vec<(Ps, Ps)> {
        let over = self.wire.take_selections();
        self.wire.start_selections();
        over.iter().map(|one| (one.selected_at, one.deselected_at)).collect()
    }
}

#[test]
fn reset_values() {
    let mut rig = Rig::new();
    rig.reads(&[
        (SCKDIV, 3),
        (SCKMODE, 0),
        (CSID, 0),
        (CSDEF, 3),
        (CSMODE, AUTO),
        (DELAY0, 0x0001_0001),
        (DELAY1, 1),
        (FMT, BYTES),
        (TXDATA, 0),
        (TXMARK, 0),
        (RXMARK, 0),
        (FCTRL, 1),
        (FFMT, 0x0003_0007),
        (IE, 0),
        (IP, 0),
    ]);
    assert_eq!(rig.read(RXDATA) & FLAG, FLAG);
    assert_eq!(rig.block.due(), Ps::MAX);
    assert!(rig.rules().is_empty());
}

#[test]
fn registers_keep_their_writable_bits() {
    let mut rig = Rig::new();
    for (offset, kept) in [
        (SCKDIV, 0xfff),
        (SCKMODE, 3),
        (CSID, 1),
        (CSDEF, 3),
        (CSMODE, OFF),
        (DELAY0, 0x00ff_00ff),
        (DELAY1, 0x00ff_00ff),
        (FMT, 0x000f_000f),
        (TXMARK, 0xf),
        (RXMARK, 0xf),
        (FCTRL, 1),
        (FFMT, u32::MAX),
        (IE, 3),
    ] {
        rig.write(offset, u32::MAX);
        assert_eq!(rig.read(offset), kept, "{offset:#x}");
    }
    rig.write(IP, 0);
    rig.write(RXDATA, 0);
    assert!(rig.rules().is_empty());
    for offset in [0x08, 0x1c, 0x3c, 0x44, 0x58, 0x78, 1] {
        rig.read(offset);
        rig.write(offset, 0);
    }
    rig.write(CSMODE, 1);
    assert_eq!(rig.read(CSMODE), OFF, "a reserved value is not taken");
    assert_eq!(rig.rules(), [Rule::BadAccess; 15]);
    let mut one = SiFive::new(CLK_HZ, 1);
    one.write(CSID, 1, 0, &mut rig.wire);
    assert_eq!(one.read(CSID, 0, &mut rig.wire), 0, "with one line CSID has no bits");
}

#[test]
fn hold_selects_with_the_first_frame_and_frames_follow_without_a_gap() {
    let mut rig = Rig::on(HOLD);
    assert_eq!(rig.by(10 * PERIOD).selections(0), 0, "no byte, no selection");
    let falls = rig.now + CYCLE;
    rig.write(TXDATA, 0x9f);
    rig.write(TXDATA, 0x01);
    let first_cell = falls + PERIOD;
    let captured = first_cell + 8 * PERIOD - HALF;
    rig.by(captured - 1);
    assert_eq!(rig.read(RXDATA) & FLAG, FLAG);
    rig.by(captured);
    assert_eq!(rig.read_all(), [0], "half a period before the frame ends");
    rig.by(captured + 8 * PERIOD);
    assert_eq!(rig.read_all(), [0x9f], "what the echo got before");
    rig.by(captured + 100 * PERIOD);
    assert_eq!((rig.selections(0), rig.block.due()), (1, Ps::MAX), "still selected");
    let rises = rig.now + CYCLE + PERIOD;
    rig.write(CSMODE, AUTO);
    rig.by(rises + PERIOD);
    assert_eq!(rig.selected(), [(falls, rises)]);
    assert_eq!(rig.received(0), [0x9f, 0x01]);
    assert!(rig.rules().is_empty());
}

#[test]
fn auto_selects_each_frame_with_the_delays_around_it() {
    let mut rig = Rig::on(AUTO);
    rig.write(DELAY0, 3 << 16 | 2);
    rig.write(DELAY1, 4);
    rig.write(TXDATA, 1);
    rig.write(TXDATA, 2);
    rig.by(100 * PERIOD);
    let (falls, lasts) = (CYCLE, (2 + 8 + 3) * PERIOD);
    let again = falls + lasts + 4 * PERIOD;
    assert_eq!(rig.selected(), [(falls, falls + lasts), (again, again + lasts)]);
    assert_eq!(rig.received(0), [1, 2]);
}

#[test]
fn frames_that_stay_selected_are_interxfr_apart() {
    let mut rig = Rig::on(HOLD);
    rig.write(DELAY1, 5 << 16 | 1);
    rig.write(TXDATA, 1);
    rig.write(TXDATA, 2);
    let first = CYCLE + PERIOD + 8 * PERIOD - HALF;
    rig.by(first + 13 * PERIOD - 1);
    assert_eq!(rig.read_all().len(), 1);
    rig.by(first + 13 * PERIOD);
    assert_eq!(rig.read_all().len(), 1);
}

#[test]
fn off_moves_no_line_and_stays_selected() {
    let mut rig = Rig::on(OFF);
    rig.write(TXDATA, 0xa5);
    rig.by(20 * PERIOD);
    assert_eq!(rig.read_all(), [0xff], "nothing answers");
    assert_eq!(rig.selections(0), 0);
    assert!(rig.rules().contains(&Rule::ClockWithoutCs));
    // The clock changes only once the block is not selected any more.
    rig.write(SCKDIV, 2 * DIV + 1);
    rig.write(TXDATA, 0xa5);
    let begun = rig.now;
    rig.by(begun + CYCLE + 8 * PERIOD);
    assert_eq!(rig.read_all(), [0xff], "at the old clock");
    rig.write(CSMODE, AUTO);
    rig.by(begun + 20 * PERIOD);
    rig.write(CSMODE, OFF);
    rig.write(TXDATA, 0xa5);
    let begun = rig.now;
    rig.by(begun + CYCLE + 2 * 9 * PERIOD - PERIOD - 1);
    assert_eq!(rig.read_all(), []);
    rig.by(begun + CYCLE + 2 * 9 * PERIOD - PERIOD);
    assert_eq!(rig.read_all(), [0xff], "at half the old clock");
}

#[test]
fn a_clock_written_while_selected_is_taken_at_the_release() {
    let mut rig = Rig::on(HOLD);
    rig.write(TXDATA, 1);
    rig.by(20 * PERIOD);
    rig.write(SCKMODE, 2);
    rig.write(TXDATA, 2);
    rig.by(40 * PERIOD);
    assert!(rig.rules().is_empty(), "SCK stays low");
    rig.write(CSMODE, AUTO);
    rig.by(60 * PERIOD);
    rig.write(TXDATA, 3);
    rig.by(80 * PERIOD);
    assert_eq!(rig.received(0), [1, 2, 3]);
    assert!(rig.rules().is_empty());
}

#[test]
fn a_line_that_is_named_no_more_is_released() {
    let mut rig = Rig::on(HOLD);
    rig.write(TXDATA, 1);
    rig.by(20 * PERIOD);
    rig.write(CSID, 1);
    rig.by(40 * PERIOD);
    assert_eq!(rig.selected().len(), 1);
    rig.write(TXDATA, 2);
    rig.by(60 * PERIOD);
    assert_eq!((rig.received(0), rig.received(1)), (vec![1], vec![2]));
    // Line 1 is active high now.
    rig.write(CSDEF, 1);
    rig.by(80 * PERIOD);
    assert_eq!(rig.selected().len(), 1);
}

#[test]
fn bytes_that_wait_when_hold_ends_are_selected_by_themselves() {
    let mut rig = Rig::on(HOLD);
    rig.write_each(TXDATA, 1..=3);
    rig.by(5 * PERIOD);
    rig.write(CSMODE, AUTO);
    rig.by(100 * PERIOD);
    assert_eq!((rig.selections(0), rig.received(0)), (3, vec![1, 2, 3]));
}

#[test]
fn fifos_hold_eight_bytes_and_say_nothing_of_those_lost() {
    let mut rig = Rig::on(HOLD);
    for byte in 0..8 {
        assert_eq!(rig.read(TXDATA), 0);
        rig.write(TXDATA, byte);
    }
    assert_eq!(rig.read(TXDATA), FLAG);
    rig.write(TXDATA, 8);
    assert_eq!(rig.rules(), [Rule::TxFull]);
    rig.by(100 * PERIOD);
    assert_eq!(rig.read(TXDATA), 0);
    rig.write(TXDATA, 9);
    rig.by(120 * PERIOD);
    assert_eq!(rig.rules(), [Rule::TxFull, Rule::RxOverrun]);
    assert_eq!(rig.read_all(), [0, 0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(rig.received(0), [0, 1, 2, 3, 4, 5, 6, 7, 9]);
}

#[test]
fn watermarks_interrupt_below_and_above() {
    let mut rig = Rig::on(HOLD);
    rig.write(IE, TXWM);
    assert!(!rig.block.interrupt(), "nothing is below 0");
    rig.write(TXMARK, 2);
    assert!(rig.block.interrupt());
    rig.write_each(TXDATA, 1..=3);
    assert!(!rig.block.interrupt(), "3 bytes are not below 2");
    rig.write(RXMARK, 1);
    rig.write(IE, RXWM);
    let first = CYCLE + PERIOD + 8 * PERIOD - HALF;
    rig.by(first);
    assert!(!rig.block.interrupt(), "one byte is not above 1");
    rig.by(first + 8 * PERIOD);
    assert!(rig.block.interrupt());
    assert_eq!(rig.read(IP), TXWM | RXWM);
    rig.read(RXDATA);
    assert!(!rig.block.interrupt());
}

#[test]
fn formats_are_taken_by_each_frame() {
    let mut rig = Rig::on(HOLD);
    rig.write(FMT, BYTES | ENDIAN);
    rig.write(TXDATA, 0x01);
    rig.by(20 * PERIOD);
    assert_eq!(rig.read_all(), [0]);
    rig.write(FMT, BYTES);
    rig.write(TXDATA, 0x02);
    rig.by(40 * PERIOD);
    assert_eq!((rig.received(0), rig.read_all()), (vec![0x80, 0x02], vec![0x80]));
    rig.write(FMT, BYTES | DIR);
    rig.write(TXDATA, 0x03);
    rig.by(60 * PERIOD);
    assert_eq!((rig.received(0).len(), rig.read_all().len()), (3, 0), "sent, not received");
    rig.write(FMT, 7 << 16);
    rig.write(TXDATA, 0x04);
    rig.by(80 * PERIOD);
    rig.write(FMT, BYTES | 1);
    rig.write(TXDATA, 0x05);
    rig.by(100 * PERIOD);
    assert_eq!((rig.received(0).len(), rig.rules()), (3, vec![Rule::BadAccess; 2]));
}

#[test]
fn the_flash_interface_keeps_bytes_waiting() {
    let mut rig = Rig::on(HOLD);
    rig.write(FCTRL, 1);
    rig.write(TXDATA, 1);
    rig.by(20 * PERIOD);
    assert_eq!(rig.selections(0), 0);
    rig.write(FCTRL, 0);
    rig.by(40 * PERIOD);
    assert_eq!(rig.received(0), [1]);
}

#[test]
fn the_slowest_clock_is_the_divisors_largest() {
    let mut rig = Rig::on(HOLD);
    rig.write(SCKDIV, 0xfff);
    rig.write(TXDATA, 1);
    let period = 8_192 * CYCLE;
    rig.by(CYCLE + 9 * period - period / 2 - 1);
    assert_eq!(rig.read_all(), []);
    rig.by(CYCLE + 9 * period - period / 2);
    assert_eq!(rig.read_all(), [0]);
}

/// Exchanges one word by the manual: see [`ControllerKind`].
pub(super) fn exchange(spi: &mut dyn ByHand, bits: u32, word: u32, cs: &mut dyn FnMut()) -> u32 {
    // Bytes without a line, at a twenty-fourth of the clock.
    for (offset, value) in [(FCTRL, 0), (SCKDIV, 11), (FMT, BYTES), (CSMODE, OFF)] {
        spi.write(offset, value);
    }
    cs();
    for byte in (0..bits / 8).rev() {
        spi.write(TXDATA, word >> (8 * byte) & 0xff);
    }
    (0..bits / 8).fold(0, |answer, _| {
        let received = std::iter::repeat_with(|| spi.read(RXDATA)).find(|byte| byte & FLAG == 0);
        answer << 8 | received.expect("an endless iterator")
    })
}
