//! The conformance suite on ECSPI, in simulation, by the block's loopback.

mod by_handler;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::middleware::{Fault, FaultInjector, When};
use barewire::spi::{Mode, Settings};
use barewire_conformance::{Clock, Options, run};
use barewire_sim::bring_up::{bus, ecspi, ecspi_interrupt};
use barewire_sim::{Board, BoardOptions, BoardSpec};
use by_handler::ByHandler;

fn board() -> Board {
    Board::new(BoardSpec::find("imx8mp").expect("a board"), BoardOptions::default())
}

#[test]
fn ecspi_passes_every_case() {
    let board = board();
    passes_every_case(&board, &bus(&board));
}

#[test]
fn ecspi_passes_every_case_asleep_until_it_interrupts() {
    let board = board();
    passes_every_case(&board, &Bus::new(ecspi_interrupt(&board, 0)));
}

#[test]
fn ecspi_passes_every_case_by_its_handler() {
    let board = board();
    let inner = ecspi_interrupt(&board, 0);
    let bus = Bus::new(ByHandler { inner, board: board.clone(), interrupts: 0 });
    passes_every_case(&board, &bus);
    assert!(bus.into_inner().interrupts > 1_000);
}

fn passes_every_case(board: &Board, bus: &Bus<impl Controller>) {
    let settings = Settings::new(0, 40_000_000).with_mode(Mode::LOOP);
    let device = bus.device(&settings).expect("opens");
    // The long transfers are for the optimised build.
    let max_len = if cfg!(debug_assertions) { 4_099 } else { Options::default().max_len };
    let mut now_ns = || board.engine().now_ps() / 1_000;
    let options = Options { max_len, loopback: true };
    let report = run(&device, &options, &mut Clock::Nanoseconds(&mut now_ns));
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    let expected = if cfg!(debug_assertions) { 1_541 } else { 1_801 };
    assert_eq!(report.iterations, expected);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    println!("{} iterations, {} bytes", report.iterations, report.bytes);
}

#[test]
fn injected_faults_fail_it() {
    let options = Options { max_len: 64, loopback: true };
    for (fault, when) in [
        (Fault::Timeout, When::Transfer(100)),
        (Fault::StuckLow, When::Transfer(100)),
        (Fault::StuckHigh, When::From(100)),
        (Fault::BitFlip { bit: 5 }, When::Random { seed: 1, one_in: 100 }),
    ] {
        let spec = BoardSpec::find("imx8mp").expect("a board");
        let board = Board::new(spec, BoardOptions::default());
        let bus = Bus::new(FaultInjector::new(ecspi(&board), fault, when));
        let settings = Settings::new(0, 40_000_000).with_mode(Mode::LOOP);
        let device = bus.device(&settings).expect("opens");
        let report = run(&device, &options, &mut Clock::None);
        assert!(report.failed > 0, "{fault:?} {when:?} went unnoticed");
        assert!(bus.into_inner().injected() >= report.failed as u64, "{fault:?}");
    }
}
