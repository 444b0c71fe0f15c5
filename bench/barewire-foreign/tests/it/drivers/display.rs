//! `max7219`, on a chain of two.

use barewire_sim::model::max7219::Max7219;
use max7219::{DecodeMode, MAX7219};

use super::{BOARDS, Bench};

#[test]
fn it_shows_what_it_is_told_on_the_display_it_is_told() {
    for board in BOARDS {
        let bench = Bench::new(board, Max7219::new(2));
        let mut display = MAX7219::from_spi(2, bench.device(10_000_000)).expect("is set up");
        let off = bench.chip.borrow().registers().to_vec();
        assert!(off.iter().all(|chip| !chip.normal && chip.scan_limit == 7 && !chip.display_test));
        display.power_on().expect("runs");
        let picture = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x81];
        display.write_raw(0, &picture).expect("runs");
        display.set_intensity(1, 9).expect("runs");
        display.set_decode_mode(1, DecodeMode::CodeBDigits7_0).expect("runs");
        // The word sent first moves to the end of the chain: the driver's display 0 is the chain's
        // last chip.
        let chip = bench.chip.borrow();
        let [near, far] = chip.registers() else { panic!("two chips") };
        assert_eq!(far.segments(), picture);
        assert_eq!((near.intensity, far.intensity), (9, 0));
        assert_eq!((near.decode_mode, far.decode_mode), (0xff, 0));
        drop(chip);
        bench.assert_no_violations();
    }
}

#[test]
fn its_text_and_numbers_are_legible() {
    for board in BOARDS {
        let bench = Bench::new(board, Max7219::new(1));
        let mut display = MAX7219::from_spi(1, bench.device(10_000_000)).expect("is set up");
        display.power_on().expect("runs");
        display.write_integer(0, -42).expect("runs");
        // Digit 0 is the rightmost. Segments A to G are bits 6 to 0: a 2, a 4, a minus, blanks.
        let lit = bench.chip.borrow().registers()[0].segments();
        assert_eq!(lit[..4], [0b110_1101, 0b011_0011, 0b000_0001, 0]);
        display.write_bcd(0, b"12345678").expect("runs");
        display.set_decode_mode(0, DecodeMode::CodeBDigits7_0).expect("runs");
        let lit = bench.chip.borrow().registers()[0].segments();
        assert_eq!(
            (lit[7], lit[0]),
            (0b011_0000, 0b111_1111),
            "a 1 on the left, an 8 on the right"
        );
        display.power_off().expect("runs");
        assert_eq!(bench.chip.borrow().registers()[0].segments(), [0; 8]);
        bench.assert_no_violations();
    }
}
