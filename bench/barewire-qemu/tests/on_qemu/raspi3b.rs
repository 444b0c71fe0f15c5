//! QEMU's BCM2835 SPI0 with raw registers: each line of `src/board/raspi3b.rs`, so that a driver
//! can count on them, and a QEMU that changes one is noticed.
//!
//! Registers and bits by their names in BCM2835 ARM Peripherals, chapter 10.

use barewire::controller::Interrupt;
use barewire::reg::Registers;
use barewire::time::Timer;
use barewire_qemu::{QemuBoard, QemuOptions, QemuRegisters};

use crate::support::open_board;

const CS: u32 = 0x00;
const FIFO: u32 = 0x04;
const CLK: u32 = 0x08;
const DLEN: u32 = 0x0c;
const LTOH: u32 = 0x10;
const DC: u32 = 0x14;

const CLEAR_TX: u32 = 1 << 4;
const CLEAR_RX: u32 = 1 << 5;
const CLEAR: u32 = CLEAR_RX | CLEAR_TX;
const TA: u32 = 1 << 7;
const DMAEN: u32 = 1 << 8;
const INTD: u32 = 1 << 9;
const INTR: u32 = 1 << 10;
const REN: u32 = 1 << 12;
const LEN: u32 = 1 << 13;
const DONE: u32 = 1 << 16;
const RXD: u32 = 1 << 17;
const TXD: u32 = 1 << 18;
const RXR: u32 = 1 << 19;
const RXF: u32 = 1 << 20;

const FIFO_BYTES: usize = 64;
const RXR_BYTES: usize = 48;

/// The board, or `None` and a line that says what is skipped.
fn board() -> Option<(QemuBoard, QemuRegisters)> {
    let board = open_board("raspi3b", &QemuOptions::default())?;
    let spi = board.controller();
    Some((board, spi))
}

/// TA set, both FIFOs empty.
fn begin(spi: &mut QemuRegisters, more: u32) {
    spi.write(CS, CLEAR);
    spi.write(CS, TA | more);
}

fn send(spi: &mut QemuRegisters, bytes: usize) {
    spi.write_n(FIFO, &vec![0x5a; bytes]);
}

/// Reads while RXD is set; how many bytes there were, all 0.
fn drain(spi: &mut QemuRegisters) -> usize {
    let mut bytes = 0;
    while spi.read(CS) & RXD != 0 {
        assert_eq!(spi.read(FIFO), 0, "nothing is on the bus");
        bytes += 1;
        assert!(bytes < 1_000, "RXD never clears");
    }
    bytes
}

/// QEMU has nothing to complain about but `complaints`, is still there, and ends well.
fn settle(board: QemuBoard, complaints: &[&str]) {
    let misuse = board.misuse().expect("a log");
    assert_eq!(misuse.len(), complaints.len(), "{misuse:#?}");
    for (line, part) in misuse.iter().zip(complaints) {
        assert!(line.contains(part), "{misuse:#?}");
    }
    assert_eq!(board.lost(), None);
    board.close().expect("ends well");
}

#[test]
fn registers_reset_and_keep_their_bits() {
    let Some((board, mut spi)) = board() else { return };
    assert_eq!(spi.read(CS), TXD | REN);
    assert_eq!([CLK, DLEN, LTOH, DC].map(|at| spi.read(at)), [0, 0, 1, 0x3020_1020]);
    for (register, kept) in [(CLK, 0xffff), (DLEN, 0xffff), (LTOH, 0xf), (DC, u32::MAX)] {
        spi.write(register, u32::MAX);
        assert_eq!(spi.read(register), kept, "{register:#x}");
    }
    spi.write(CLK, 0x2345);
    assert_eq!(spi.read(CLK), 0x2345, "an odd divider is not rounded");
    // Sets every bit except those of which QEMU complains: the lines, the clock's shape, REN, ADCS,
    // the reserved bits.
    let stored = 0xffe0_ffff & !(TA | CLEAR | DMAEN | LEN);
    spi.write(CS, stored);
    assert_eq!(spi.read(CS), stored | TXD);
    spi.write(CS, LEN);
    spi.write(CS, DMAEN);
    settle(board, &["LoSSI not supported", "DMA not supported"]);
}

#[test]
fn a_byte_takes_no_time_and_done_comes_with_ta() {
    let Some((board, mut spi)) = board() else { return };
    begin(&mut spi, 0);
    assert_eq!(spi.read(CS), TA | TXD | DONE, "before anything was sent");
    for _ in 0..3 {
        spi.write(FIFO, 0xffff_ff5a);
        assert_eq!(spi.read(CS), TA | TXD | DONE | RXD);
        assert_eq!(spi.read(FIFO), 0);
        assert_eq!(spi.read(CS), TA | TXD | DONE);
    }
    assert_eq!(spi.read(FIFO), 0, "an empty FIFO");
    spi.write(CS, 0);
    assert_eq!(spi.read(CS), TXD, "DONE clears with TA");
    send(&mut spi, 1);
    assert_eq!(spi.read(CS), TXD, "without TA bytes are lost");
    settle(board, &[]);
}

#[test]
fn fifos_hold_64_bytes_and_rxr_means_48() {
    let Some((board, mut spi)) = board() else { return };
    begin(&mut spi, 0);
    for bytes in 1..=FIFO_BYTES {
        send(&mut spi, 1);
        let mut expected = TA | TXD | DONE | RXD;
        if bytes >= RXR_BYTES {
            expected |= RXR;
        }
        if bytes == FIFO_BYTES {
            expected |= RXF;
        }
        assert_eq!(spi.read(CS), expected, "{bytes} bytes");
    }
    for waiting in 1..=FIFO_BYTES {
        send(&mut spi, 1);
        let room = if waiting < FIFO_BYTES { TXD } else { 0 };
        assert_eq!(spi.read(CS), TA | RXD | RXR | RXF | room, "{waiting} bytes wait");
    }
    send(&mut spi, 5);
    assert_eq!(drain(&mut spi), 2 * FIFO_BYTES, "what a full TX FIFO was given is lost");
    assert_eq!(spi.read(CS), TA | TXD | DONE);
    settle(board, &[]);
}

#[test]
fn what_waits_in_tx_fifo_moves_only_when_fifo_is_accessed() {
    let Some((board, mut spi)) = board() else { return };
    begin(&mut spi, 0);
    send(&mut spi, FIFO_BYTES + 1);
    spi.read(FIFO);
    // There is room, but the FIFO does not drain, however often CS is read or written.
    for _ in 0..3 {
        assert_eq!(spi.read(CS), TA | TXD | RXD | RXR);
        spi.write(CS, TA);
    }
    spi.read(FIFO);
    assert_eq!(spi.read(CS) & DONE, DONE, "the read moved the FIFO on first");
    assert_eq!(drain(&mut spi), FIFO_BYTES - 1);

    send(&mut spi, FIFO_BYTES + 6);
    spi.write(CS, TA | CLEAR_RX);
    spi.write(CS, TA);
    assert_eq!(spi.read(CS), TA | TXD, "neither received nor done");
    spi.read(FIFO);
    assert_eq!(spi.read(CS), TA | TXD | DONE | RXD);
    assert_eq!(drain(&mut spi), 5);
    settle(board, &[]);
}

#[test]
fn clear_stays_set_and_clears_again() {
    let Some((board, mut spi)) = board() else { return };
    begin(&mut spi, 0);
    send(&mut spi, 3);
    spi.write(CS, TA | CLEAR);
    assert_eq!(spi.read(CS), TA | TXD | DONE | CLEAR, "read back as 0, says the manual");
    send(&mut spi, 1);
    let cs = spi.read(CS);
    assert_eq!(cs, TA | TXD | DONE | CLEAR | RXD);
    spi.write(CS, cs);
    assert_eq!(spi.read(CS) & RXD, 0, "a read-modify-write cleared it");
    spi.write(CS, TA);
    assert_eq!(spi.read(CS), TA | TXD | DONE);
    settle(board, &[]);
}

#[test]
fn rx_fifo_outlives_ta_and_rxr_comes_back_late() {
    let Some((board, mut spi)) = board() else { return };
    begin(&mut spi, 0);
    send(&mut spi, RXR_BYTES + 2);
    assert_eq!(spi.read(CS) & RXR, RXR);
    spi.write(CS, 0);
    assert_eq!(spi.read(CS), TXD | RXD);
    spi.read(FIFO);
    assert_eq!(spi.read(CS), TXD | RXD | RXR, "the access sets RXR, not TA");
    spi.write(CS, 0);
    spi.write(CS, TA);
    assert_eq!(spi.read(CS), TA | TXD | RXD | DONE);
    assert_eq!(drain(&mut spi), RXR_BYTES + 1);
    settle(board, &[]);
}

#[test]
fn the_interrupt_is_done_and_rxr_by_level() {
    let Some((board, mut spi)) = board() else { return };
    let line = board.interrupt().expect("the line");
    assert!(!line.is_raised());
    begin(&mut spi, INTD);
    assert!(line.is_raised(), "DONE comes with TA");
    send(&mut spi, 1);
    assert!(line.is_raised());
    spi.write(CS, INTD);
    assert!(!line.is_raised(), "TA off silences it");
    assert_eq!(line.raises(), 1);

    begin(&mut spi, INTR);
    for bytes in 1..=FIFO_BYTES {
        send(&mut spi, 1);
        assert_eq!(line.is_raised(), bytes >= RXR_BYTES, "{bytes} bytes");
    }
    for bytes in (0..FIFO_BYTES).rev() {
        spi.read(FIFO);
        assert_eq!(line.is_raised(), bytes >= RXR_BYTES, "{bytes} bytes");
    }
    assert_eq!(line.raises(), 2);

    // The manual's procedure (10.6.2) with a message of 200 bytes.
    let (mut to_send, mut received) = (200, 0);
    begin(&mut spi, INTD | INTR);
    while to_send > 0 || received < 200 {
        assert!(line.is_raised(), "{to_send} to send, {received} received");
        let cs = spi.read(CS);
        let n = if cs & RXR != 0 { RXR_BYTES } else { 0 };
        spi.discard_n(FIFO, n);
        received += n;
        if cs & DONE != 0 && to_send == 0 {
            received += drain(&mut spi);
        }
        let room = if cs & RXR != 0 { RXR_BYTES } else { FIFO_BYTES };
        let n = to_send.min(room);
        send(&mut spi, n);
        to_send -= n;
    }
    assert_eq!((to_send, received), (0, 200));
    spi.write(CS, 0);
    assert!(!line.is_raised());
    settle(board, &[]);
}

#[test]
fn a_wait_for_an_interrupt_that_will_not_come_takes_the_boards_time() {
    let Some((board, mut spi)) = board() else { return };
    let mut line = board.interrupt().expect("the line");
    let mut timer = board.timer();
    let before = timer.now_ticks();
    line.enable();
    assert!(!line.wait(3_600_000_000));
    assert!(timer.now_ticks() - before >= 3_600_000_000_000);
    begin(&mut spi, INTD);
    let before = timer.now_ticks();
    assert!(line.wait(3_600_000_000));
    assert!(timer.now_ticks() - before < 3_600_000_000_000);
    // Twice is once.
    assert!(board.interrupt().expect("the line").is_raised());
    settle(board, &[]);
}

#[test]
fn gpio_levels_are_what_was_set_whatever_the_function() {
    const GPFSEL0: u32 = 0x00;
    const GPFSEL1: u32 = 0x04;
    const GPSET0: u32 = 0x1c;
    const GPCLR0: u32 = 0x28;
    const GPLEV0: u32 = 0x34;
    let Some((board, _)) = board() else { return };
    let mut gpio = board.gpio();
    // GPIO8, an output; then ALT0 (SPI0_CE0_N) as after the firmware.
    for function in [1, 4] {
        gpio.write(GPFSEL0, function << 24);
        assert_eq!(gpio.read(GPFSEL0), function << 24);
        gpio.write(GPSET0, 1 << 8);
        assert_eq!(gpio.read(GPLEV0), 1 << 8);
        gpio.write(GPCLR0, 1 << 8);
        assert_eq!(gpio.read(GPLEV0), 0);
    }
    assert_eq!([gpio.read(GPFSEL1), gpio.read(GPSET0), gpio.read(GPCLR0)], [0; 3]);
    settle(board, &[]);
}
