//! The conformance suite on QEMU's PL022, whose model loops back: polled, and by interrupt.
//!
//! Lengths end where QEMU would take too long; the simulated PL022 runs them all.

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::{Mode, Settings};
use barewire::time::Timer;
use barewire_conformance::{Clock, Options, run};
use barewire_qemu::{QemuBoard, QemuOptions};

use crate::support::open_board;

fn passes(board: &QemuBoard, controller: impl Controller, max_len: usize) {
    let bus = Bus::new(board.watch(controller));
    // No select line of the board leads to a chip.
    let settings = Settings::new(0, 10_000_000).with_mode(Mode::LOOP | Mode::NO_CS);
    let device = bus.device(&settings).expect("opens");
    let mut timer = board.timer();
    assert_eq!(timer.frequency_hz(), 1_000_000_000);
    let mut now_ns = || timer.now_ticks();
    let options = Options { max_len, ..Options::default() };
    let report = run(&device, &options, &mut Clock::Nanoseconds(&mut now_ns));
    assert_eq!((report.failed, report.bytes), (0, options.bytes()), "{:#?}", report.failures);
    assert_eq!((board.lost(), board.misuse()), (None, Ok(vec![])));
}

#[test]
fn every_case_passes_polled() {
    let Some(board) = open_board("highbank", &QemuOptions::default()) else { return };
    passes(&board, board.bring_up(), 1_031);
    board.close().expect("ends well");
}

#[test]
fn every_case_passes_by_interrupt() {
    let Some(board) = open_board("highbank", &QemuOptions::default()) else { return };
    let line = board.interrupt().expect("the line");
    passes(&board, board.bring_up_interrupt(0).expect("the line"), 256);
    assert!(line.raises() > 1_000, "{}", line.raises());
    board.close().expect("ends well");
}
