//! The shipped PL022 driver on QEMU's PL022: loopback of all lengths, polled and by interrupt, and
//! an SD card's first answers.

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::{Mode, Settings, Transfer};
use barewire_qemu::{QemuBoard, QemuOptions};

use crate::support::{Random, open_board};

fn loops_back(board: &QemuBoard, controller: impl Controller, lengths: &[usize]) {
    let bus = Bus::new(board.watch(controller));
    let mut random = Random::new(7);
    for number in 0..4 {
        for bits in [8, 16] {
            let mode = Mode::from_number(number).expect("a mode") | Mode::LOOP | Mode::NO_CS;
            let settings = Settings::new(0, 1_000_000).with_mode(mode).with_bits_per_word(bits);
            let device = bus.device(&settings).expect("opens");
            for len in lengths.iter().map(|len| len.next_multiple_of(usize::from(bits / 8))) {
                let tx = random.bytes(len);
                let mut rx = vec![0; len];
                let mut both = tx.clone();
                let mut message = [
                    Transfer::write(&tx),
                    Transfer::exchange(&tx, &mut rx).with_cs_change(),
                    Transfer::in_place(&mut both),
                ];
                assert_eq!(device.sync(&mut message), Ok(3 * len), "{settings:?}");
                assert_eq!((&rx, &both), (&tx, &tx), "{settings:?}, {len} bytes");
            }
        }
    }
}

fn settle(board: QemuBoard) {
    assert_eq!(board.misuse(), Ok(vec![]));
    assert_eq!(board.lost(), None);
    board.close().expect("ends well");
}

#[test]
fn every_length_loops_back() {
    for name in ["highbank", "lm3s6965evb"] {
        let Some(board) = open_board(name, &QemuOptions::default()) else { continue };
        loops_back(&board, board.bring_up(), &[0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 255, 256, 1_000]);
        settle(board);
    }
}

/// The model has no timeout interrupt, so a transfer of less than four frames is found done at its
/// deadline; every other ends with an interrupt.
#[test]
fn every_length_loops_back_by_interrupt() {
    for name in ["highbank", "lm3s6965evb"] {
        let Some(board) = open_board(name, &QemuOptions::default()) else { continue };
        let line = board.interrupt().expect("the line");
        let pl022 = board.bring_up_interrupt(0).expect("the line");
        loops_back(&board, pl022, &[1, 3, 4, 8, 9, 10, 11, 100]);
        assert!(line.raises() > 100, "{}", line.raises());
        settle(board);
    }
}

#[test]
fn an_sd_card_answers_by_its_chip_select() {
    let Some(board) = open_board("lm3s6965evb", &QemuOptions::default()) else { return };
    let bus = board.bus();
    let device = bus.device(&Settings::new(0, 400_000)).expect("opens");
    // A command, and the card's answer within it: CMD0, then CMD8 with its pattern.
    for (command, answer) in [
        ([0x40, 0, 0, 0, 0, 0x95], &[0x01][..]),
        ([0x48, 0, 0, 0x01, 0xaa, 0x87], &[0x01, 0, 0, 0x01, 0xaa]),
    ] {
        let mut bytes = [0xff; 14];
        let mut after = [0xff];
        bytes[..6].copy_from_slice(&command);
        let mut message = [Transfer::in_place(&mut bytes), Transfer::in_place(&mut after)];
        assert_eq!(device.sync(&mut message), Ok(15));
        let found = bytes[6..].windows(answer.len()).any(|window| window == answer);
        assert!(found, "{command:x?}: {bytes:x?}");
    }
    settle(board);
}
