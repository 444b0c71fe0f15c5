//! The SSI against its manuals: registers, FIFOs, frames and their times.

use super::regs::*;
use super::*;
use crate::model::{ByHand, ControllerBlock as _, rig};
use crate::wire::Driver;

/// 20 MHz at the divisor used here: a period of 50 ns.
const SSI_CLK_HZ: u64 = 200_000_000;
const SCKDV: u32 = 10;
const PERIOD: Ps = 50_000;
const HALF: Ps = PERIOD / 2;
/// Frames of 8 bits.
const BYTES: u32 = 7 << 16;
const SCPH: u32 = 1 << 6;
const SCPOL: u32 = 1 << 7;
const SRL: u32 = 1 << 11;
const SSTE: u32 = 1 << 24;

/// The line of the second echo.
const GPIO: Driver = Driver::Gpio { block: 0, bit: 8 };

type Rig = rig::Rig<DwSsi>;

impl Rig {
    fn built(build: Build) -> Self {
        Self::with(DwSsi::new(SSI_CLK_HZ, build), &[Driver::Native(0), GPIO])
    }

    fn new() -> Self {
        Self::built(Build::RP1)
    }

    /// Enabled with `ctrlr0` and `ser`.
    fn on(ctrlr0: u32, ser: u32) -> Self {
        let mut rig = Self::new();
        rig.enable(ctrlr0, ser);
        rig
    }

    fn enable(&mut self, ctrlr0: u32, ser: u32) {
        self.write_pairs(&[(CTRLR0, ctrlr0), (BAUDR, SCKDV), (SER, ser), (SSIENR, 1)]);
    }

    fn stat(&mut self, bit: u32) -> bool {
        self.read(SR) & bit != 0
    }

    fn idle(&mut self) -> Ps {
        self.until(|rig| rig.read(SR) & (sr::TFE | sr::BUSY) == sr::TFE)
    }

    fn read_all(&mut self) -> Vec<u32> {
        (0..self.read(RXFLR)).map(|_| self.read(DR0)).collect()
    }
}

#[test]
fn reset_values() {
    let mut rig = Rig::new();
    rig.reads(&[
        (CTRLR0, BYTES),
        (CTRLR1, 0),
        (SSIENR, 0),
        (SER, 0),
        (BAUDR, 0),
        (TXFTLR, 0),
        (RXFTLR, 0),
        (TXFLR, 0),
        (RXFLR, 0),
        (SR, 6),
        (IMR, 0x3f),
        (ISR, 0),
        (RISR, 0),
        (ICR, 0),
        (DMACR, 0),
        (IDR, 0x5153_5049),
        (SSI_VERSION_ID, 0x3430_312a),
    ]);
    assert!(!rig.block.interrupt() && rig.block.due() == Ps::MAX);
    assert!(rig.rules().is_empty());
}

#[test]
fn registers_keep_their_writable_bits() {
    for (wide, ctrlr0) in [(true, 0x011f_fff0), (false, 0x0100_ffff)] {
        let mut rig = Rig::built(Build { wide, ..Build::RP1 });
        for (offset, kept) in [
            (CTRLR0, ctrlr0),
            (CTRLR1, 0xffff),
            (MWCR, 7),
            (SER, 3),
            (BAUDR, 0xfffe),
            (IMR, 0x3f),
            (DMACR, 3),
            (RX_SAMPLE_DLY, 0xff),
        ] {
            rig.write(offset, u32::MAX);
            assert_eq!(rig.read(offset), kept, "{offset:#x}");
        }
        assert!(rig.rules().is_empty());
    }
}

#[test]
fn thresholds_keep_what_their_fifo_can_reach() {
    let mut rig = Rig::built(Build { tx_words: 16, rx_words: 256, ..Build::RP1 });
    for (offset, kept, refused) in [(TXFTLR, 15, 16), (RXFTLR, 255, 256)] {
        rig.write(offset, kept);
        rig.write(offset, refused);
        assert_eq!(rig.read(offset), kept);
    }
}

#[test]
fn accesses_to_no_register() {
    let mut rig = Rig::new();
    assert_eq!(rig.read(0xf4), 0);
    rig.write(0x100, 1);
    rig.write(0x61, 1);
    assert_eq!(rig.rules(), [Rule::BadAccess; 3]);
}

#[test]
fn a_frame_and_its_times() {
    let mut rig = Rig::on(BYTES, 1);
    rig.write(DR0, 0xffff_ff9f);
    assert!(!rig.stat(sr::TFE) && !rig.stat(sr::BUSY), "not noticed yet");
    // Ordering 1 and 2.
    assert_eq!(rig.until(|rig| rig.stat(sr::BUSY)), PERIOD);
    assert!(!rig.stat(sr::TFE));
    assert_eq!(rig.until(|rig| rig.stat(sr::TFE)), PERIOD + HALF);
    // Ordering 3: half a period before the last cell ends.
    let begun = PERIOD + HALF;
    assert_eq!(rig.until(|rig| rig.stat(sr::RFNE)), begun + 8 * PERIOD - HALF);
    assert!(rig.stat(sr::BUSY), "the last bit is not out");
    // Ordering 5.
    assert_eq!(rig.idle(), begun + 8 * PERIOD + HALF);
    assert_eq!(rig.read_all(), [0]);
    assert_eq!(rig.echoes[0].borrow().received(), [0x9f]);
    assert!(rig.rules().is_empty());
}

#[test]
fn frames_follow_each_other_without_a_gap() {
    let mut rig = Rig::on(BYTES | SCPH | SCPOL, 1);
    rig.write_each(DR0, [1, 2, 3, 4]);
    assert_eq!(rig.idle(), PERIOD + HALF + 32 * PERIOD + HALF);
    assert_eq!(rig.read_all(), [0, 1, 2, 3]);
    assert_eq!(rig.echoes[0].borrow().received(), [1, 2, 3, 4]);
    assert!(rig.rules().is_empty());
}

#[test]
fn frames_of_every_size() {
    for bits in 4..=32 {
        let mut rig = Rig::on((bits - 1) << 16 | SRL, 1);
        rig.write(DR0, 0xa5c3_9687);
        assert_eq!(rig.idle(), PERIOD + HALF + u64::from(bits) * PERIOD + HALF);
        assert_eq!(rig.read_all(), [0xa5c3_9687 & u32::MAX >> (32 - bits)], "{bits} bits");
    }
    let mut rig = Rig::built(Build { wide: false, ..Build::RP1 });
    rig.enable(15 | SRL, 1);
    rig.write(DR0, 0x1_2345);
    rig.idle();
    assert_eq!(rig.read_all(), [0x2345]);
}

#[test]
fn the_line_rises_when_the_transmit_fifo_runs_empty() {
    let mut rig = Rig::on(BYTES, 1);
    rig.wire.start_selections();
    rig.write(DR0, 0x9f);
    rig.idle();
    // Late: the chip sees a second command.
    rig.write(DR0, 0x55);
    rig.idle();
    assert_eq!(rig.echoes[0].borrow().received(), [0x9f, 0x55]);
    assert_eq!(rig.wire.take_selections().len(), 2);
}

#[test]
fn nothing_is_sent_while_no_line_is_enabled() {
    let mut rig = Rig::on(BYTES, 0);
    rig.write_each(DR0, [1, 2]);
    rig.now += 100 * PERIOD;
    assert_eq!((rig.read(TXFLR), rig.read(RXFLR)), (2, 0));
    let begun = rig.now;
    rig.write(SER, 1);
    assert_eq!(rig.idle() - begun, PERIOD + HALF + 16 * PERIOD + HALF, "one selection");
    assert_eq!(rig.echoes[0].borrow().received(), [1, 2]);
}

#[test]
fn a_line_without_a_chip_clocks_for_one_on_a_gpio() {
    let mut rig = Rig::on(BYTES, 2);
    rig.wire.start_selections();
    rig.drive(GPIO, false);
    rig.write(DR0, 0x12);
    rig.idle();
    rig.write(DR0, 0x34);
    rig.idle();
    rig.drive(GPIO, true);
    assert_eq!(rig.echoes[1].borrow().received(), [0x12, 0x34]);
    assert_eq!(rig.read_all(), [0, 0x12]);
    assert_eq!(rig.wire.take_selections().len(), 1);
    assert!(rig.echoes[0].borrow().received().is_empty() && rig.rules().is_empty());
}

#[test]
fn a_chip_select_released_with_the_last_word_is_seen() {
    let mut rig = Rig::on(BYTES, 2);
    rig.drive(GPIO, false);
    rig.write(DR0, 0x12);
    rig.until(|rig| rig.stat(sr::RFNE));
    rig.drive(GPIO, true);
    assert!(rig.rules().contains(&Rule::SckIdle), "{:?}", rig.rules());
}

#[test]
fn sste_toggles_the_line_between_frames_of_scph_0() {
    for (ctrlr0, apart) in [(BYTES | SSTE, true), (BYTES | SSTE | SCPH | SCPOL, false)] {
        let mut rig = Rig::on(ctrlr0, 1);
        rig.wire.start_selections();
        rig.write(DR0, 1);
        rig.write(DR0, 2);
        rig.until(|rig| rig.read(RXFLR) == 2);
        rig.idle();
        assert_eq!(rig.wire.take_selections().len(), if apart { 2 } else { 1 });
    }
}

#[test]
fn settings_written_while_enabled_are_ignored_and_reported() {
    let mut rig = Rig::on(BYTES, 1);
    for (offset, kept) in [(CTRLR0, BYTES), (CTRLR1, 0), (MWCR, 0), (BAUDR, SCKDV)] {
        rig.write(offset, 4);
        assert_eq!(rig.read(offset), kept, "{offset:#x}");
    }
    rig.write(DR0, 1);
    rig.until(|rig| rig.stat(sr::BUSY));
    rig.write(SER, 0);
    assert_eq!(rig.read(SER), 1);
    assert_eq!(rig.rules(), [Rule::Disabled; 5]);
}

#[test]
fn a_word_for_a_disabled_block_is_lost() {
    let mut rig = Rig::new();
    rig.write(DR0, 1);
    assert_eq!((rig.read(TXFLR), rig.rules()), (0, vec![Rule::Disabled]));
}

#[test]
fn fifos_have_limits() {
    let mut rig = Rig::on(BYTES, 0);
    rig.write_each(DR35, 0..65);
    assert_eq!(rig.rules(), [Rule::TxFull]);
    assert!(!rig.stat(sr::TFNF));
    assert_eq!((rig.read(RISR), rig.read(TXOICR), rig.read(TXOICR)), (int::TXO, 1, 0));
    rig.write(SER, 1);
    rig.until(|rig| rig.stat(sr::TFNF));
    // One is on the wire: room for one more, which overruns the receive FIFO.
    rig.write(DR0, 64);
    rig.idle();
    assert!(rig.stat(sr::RFF));
    assert_eq!(rig.rules(), [Rule::TxFull, Rule::RxOverrun]);
    assert_ne!(rig.read(RISR) & int::RXO, 0);
    assert_eq!((rig.read(RXOICR), rig.read(RISR) & int::RXO), (1, 0));
    assert_eq!(rig.read_all().len(), 64);
    assert_eq!(rig.read(DR0), UNDEFINED_DR);
    assert_eq!(rig.rules().last(), Some(&Rule::RxEmpty));
    assert_eq!((rig.read(RXUICR), rig.read(ICR)), (1, 0));
}

#[test]
fn interrupts_follow_the_levels_and_the_mask() {
    let mut rig = Rig::on(BYTES, 0);
    rig.write(IMR, int::TXE);
    assert!(rig.block.interrupt(), "the transmit FIFO is empty");
    rig.write(TXFTLR, 1);
    rig.write(DR0, 1);
    assert!(rig.block.interrupt(), "as many as the threshold");
    rig.write(DR0, 2);
    assert!(!rig.block.interrupt());
    rig.write(RXFTLR, 1);
    rig.write(IMR, int::RXF);
    rig.write(SER, 1);
    let begun = PERIOD + HALF;
    let came = rig.until(|rig| {
        rig.block.catch_up(rig.now, &mut rig.wire);
        rig.block.interrupt()
    });
    assert_eq!(came, begun + 16 * PERIOD - HALF, "with the second word");
    assert_eq!((rig.read(ISR), rig.read(RISR)), (int::RXF, int::RXF | int::TXE));
    rig.read(DR0);
    assert!(!rig.block.interrupt());
}

#[test]
fn a_block_that_is_disabled_stops_and_forgets() {
    let mut rig = Rig::on(BYTES, 1);
    rig.write_each(DR0, [1, 2, 3]);
    rig.until(|rig| rig.stat(sr::RFNE));
    rig.now += 5 * PERIOD;
    rig.write(SSIENR, 0);
    assert_eq!((rig.read(TXFLR), rig.read(RXFLR), rig.read(SR)), (0, 0, 6));
    assert_eq!(rig.block.due(), Ps::MAX);
    assert!(rig.rules().contains(&Rule::MidWord), "the line rose in the middle of a frame");
    rig.write(SSIENR, 1);
    rig.now += 100 * PERIOD;
    assert_eq!(rig.read(RXFLR), 0);
}

#[test]
fn no_clock_without_a_divisor_and_no_frame_of_another_format() {
    for (ctrlr0, baudr) in [(BYTES, 1), (BYTES | 1 << 4, 2), (BYTES | 1 << 8, 2), (2 << 16, 2)] {
        let mut rig = Rig::new();
        rig.write_pairs(&[(CTRLR0, ctrlr0), (BAUDR, baudr), (SER, 1), (SSIENR, 1), (DR0, 1)]);
        assert_eq!(rig.block.due(), Ps::MAX, "{ctrlr0:#x} {baudr}");
    }
}

#[test]
fn sck_takes_its_level_when_the_block_is_enabled() {
    let mut rig = Rig::new();
    rig.drive(GPIO, false);
    rig.write(CTRLR0, BYTES | SCPOL);
    assert!(rig.rules().is_empty());
    rig.write(SSIENR, 1);
    assert_eq!(rig.rules(), [Rule::SckIdle]);
}

#[test]
#[should_panic(expected = "tx_words: 257")]
fn a_fifo_has_256_words_at_most() {
    let _ = DwSsi::new(1, Build { tx_words: 257, ..Build::RP1 });
}

/// Exchanges one word by the manual: see [`ControllerKind`].
pub(super) fn exchange(spi: &mut dyn ByHand, bits: u32, word: u32, cs: &mut dyn FnMut()) -> u32 {
    // Line 0 has no chip on the board; 20 MHz.
    spi.write(0x08, 0);
    spi.write(0x00, (bits - 1) << 16);
    spi.write(0x14, 10);
    spi.write(0x10, 1);
    spi.write(0x08, 1);
    cs();
    spi.write(0x60, word);
    while spi.read(0x28) & 0b101 != 0b100 {}
    spi.read(0x60)
}

#[test]
fn icr_clears_all_that_was_lost() {
    let mut rig = Rig::on(BYTES, 0);
    rig.read(DR0);
    rig.write_each(DR0, 0..=Build::RP1.tx_words as u32);
    rig.write(SER, 1);
    rig.idle();
    rig.write_each(DR0, 0..2);
    rig.idle();
    let lost = int::TXO | int::RXU | int::RXO;
    assert_eq!(rig.read(RISR) & lost, lost);
    rig.read(ICR);
    assert_eq!(rig.read(RISR) & lost, 0);
}

#[test]
fn the_word_on_the_wire_is_not_in_the_fifo() {
    let mut rig = Rig::on(BYTES, 1);
    rig.write(DR0, 0x9f);
    assert_eq!(rig.read(TXFLR), 1);
    rig.until(|rig| rig.stat(sr::TFE));
    assert!(rig.stat(sr::BUSY));
    assert_eq!(rig.read(TXFLR), 0);
}
