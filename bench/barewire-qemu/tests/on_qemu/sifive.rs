//! QEMU's SiFive SPI with raw registers: each line of `src/board/sifive_u.rs`, so that a driver can
//! count on them, and a QEMU that changes one is noticed.
//!
//! Registers and fields by their names in the *SiFive FU540-C000 Manual*, chapter "Serial Peripheral
//! Interface (SPI)".

use barewire::reg::Registers;
use barewire_qemu::{QemuBoard, QemuOptions, QemuRegisters};

use crate::support::open_board;

const SCKDIV: u32 = 0x00;
const SCKMODE: u32 = 0x04;
const CSID: u32 = 0x10;
const CSDEF: u32 = 0x14;
const CSMODE: u32 = 0x18;
const DELAY0: u32 = 0x28;
const DELAY1: u32 = 0x2c;
const FMT: u32 = 0x40;
const TXDATA: u32 = 0x48;
const RXDATA: u32 = 0x4c;
const TXMARK: u32 = 0x50;
const RXMARK: u32 = 0x54;
const FCTRL: u32 = 0x60;
const FFMT: u32 = 0x64;
const IE: u32 = 0x70;
const IP: u32 = 0x74;

const AUTO: u32 = 0;
const RESERVED: u32 = 1;
const HOLD: u32 = 2;
const OFF: u32 = 3;
/// TXDATA's full flag, and RXDATA's empty flag.
const FLAG: u32 = 1 << 31;
const TXWM: u32 = 1 << 0;
const RXWM: u32 = 1 << 1;

const FIFO_BYTES: usize = 8;
/// Read JEDEC ID, and what the IS25WP256 answers.
const RDID: [u32; 4] = [0x9f, 0, 0, 0];
const ID: [u32; 3] = [0x9d, 0x70, 0x19];

/// Runs `test` on the flash chip's block, and checks that each complaint of QEMU's models contains
/// one of `complaints`. Skips where QEMU is not there.
fn on_block(complaints: &[&str], test: impl FnOnce(&mut QemuRegisters, &QemuBoard)) {
    let Some(board) = open_board("sifive_u", &QemuOptions::default()) else { return };
    let mut spi = board.controller();
    test(&mut spi, &board);
    drop(spi);
    let misuse = board.misuse().expect("a log");
    assert_eq!(misuse.len(), complaints.len(), "{misuse:#?}");
    for (line, part) in misuse.iter().zip(complaints) {
        assert!(line.contains(part), "{misuse:#?}");
    }
    assert_eq!(board.lost(), None);
    board.close().expect("ends well");
}

fn exchange(spi: &mut QemuRegisters, bytes: &[u32]) -> Vec<u32> {
    spi.write_n(TXDATA, bytes);
    let mut received: Vec<u32> = bytes.iter().map(|_| spi.read(RXDATA)).collect();
    received.retain(|byte| byte & FLAG == 0);
    received
}

#[test]
fn registers_reset_and_keep_their_bits() {
    on_block(&[], |spi, _| {
        let read = |spi: &mut QemuRegisters, at| spi.read(at);
        let after_reset = [
            (SCKDIV, 3),
            (SCKMODE, 0),
            (CSID, 0),
            (CSDEF, 1),
            (CSMODE, AUTO),
            (DELAY0, 0x1001),
            (DELAY1, 1),
            (FMT, 0),
            (TXDATA, 0),
            (RXDATA, FLAG),
            (TXMARK, 0),
            (RXMARK, 0),
            (IE, 0),
            (IP, 0),
        ];
        for (register, value) in after_reset {
            assert_eq!(read(spi, register), value, "{register:#x}");
        }
        for register in [SCKDIV, SCKMODE, DELAY0, DELAY1, FMT] {
            spi.write(register, 0xa5a5_a5a5);
            assert_eq!(spi.read(register), 0xa5a5_a5a5, "{register:#x}: no field has a width");
        }
    });
}

#[test]
fn a_byte_takes_no_time_and_the_fifo_that_overruns_keeps_the_first() {
    on_block(&[], |spi, _| {
        spi.write(CSMODE, HOLD);
        assert_eq!(exchange(spi, &RDID)[1..], ID);
        assert_eq!(spi.read(RXDATA), FLAG);
        spi.write(CSMODE, AUTO);
        spi.write(CSMODE, HOLD);
        // The answer begins with the second byte. The FIFO takes 8 of 11 bytes, and says nothing.
        let (sent, kept) = ([RDID[0], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], FIFO_BYTES);
        let received = exchange(spi, &sent);
        assert_eq!((received.len(), &received[1..4]), (kept, &ID[..]));
        assert_eq!(spi.read(TXDATA), 0, "never full");
    });
}

#[test]
fn the_direction_of_fmt_decides_whether_bytes_are_received() {
    const DIR_TX: u32 = 1 << 3;
    on_block(&[], |spi, _| {
        spi.write(CSMODE, HOLD);
        spi.write(FMT, DIR_TX | 8 << 16);
        assert_eq!(exchange(spi, &RDID[..1]), []);
        spi.write(FMT, 8 << 16);
        assert_eq!(exchange(spi, &[0; 3]), ID, "the command was sent");
    });
}

#[test]
fn every_mode_but_auto_selects_and_auto_never_does() {
    on_block(&[], |spi, _| {
        for (mode, selected) in [(AUTO, false), (RESERVED, true), (HOLD, true), (OFF, true)] {
            spi.write(CSMODE, AUTO);
            spi.write(CSMODE, mode);
            let received = exchange(spi, &RDID);
            assert_eq!(received[1..] == ID, selected, "CSMODE {mode}: {received:x?}");
        }
    });
}

#[test]
fn other_lines_are_refused() {
    on_block(&["invalid csid 1", "invalid csdef 3"], |spi, _| {
        spi.write(CSID, 1);
        assert_eq!(spi.read(CSID), 0);
        spi.write(CSDEF, 3);
        assert_eq!(spi.read(CSDEF), 1);
    });
}

#[test]
fn clock_delays_and_mode_are_kept_and_have_no_effect() {
    on_block(&[], |spi, _| {
        for register in [SCKDIV, SCKMODE, DELAY0, DELAY1] {
            spi.write(register, u32::MAX);
        }
        spi.write(CSMODE, HOLD);
        assert_eq!(exchange(spi, &RDID)[1..], ID);
    });
}

#[test]
fn the_flash_interface_is_not_there() {
    // QEMU complains of these writes. The board's row tolerates that, because the driver makes one.
    on_block(&[], |spi, _| {
        spi.write(FCTRL, 1);
        spi.write(FFMT, 1);
        assert_eq!([FCTRL, FFMT].map(|at| spi.read(at)), [0, 0]);
    });
}

#[test]
fn the_receive_watermark_interrupts_above_its_level() {
    on_block(&[], |spi, board| {
        let line = board.interrupt().expect("the line");
        spi.write(RXMARK, 2);
        spi.write(IE, RXWM);
        spi.write(CSMODE, HOLD);
        spi.write_n(TXDATA, &[0x9f, 0]);
        assert_eq!((spi.read(IP) & RXWM, line.is_raised()), (0, false), "2 are not above 2");
        spi.write(TXDATA, 0);
        assert_eq!((spi.read(IP) & RXWM, line.is_raised()), (RXWM, true));
        spi.read(RXDATA);
        assert_eq!((spi.read(IP) & RXWM, line.is_raised()), (0, false));
        // The transmit FIFO is always empty, and so below every level but 0.
        spi.write(TXMARK, 1);
        assert_eq!((spi.read(IP) & TXWM, line.is_raised()), (TXWM, false));
        spi.write(IE, TXWM);
        assert!(line.is_raised());
    });
}
