//! The conformance suite on ECSPI, in simulation, by the block's loopback.

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::middleware::{Fault, FaultInjector, When};
use barewire::spi::{Mode, Settings};
use barewire_conformance::{Clock, Options, run};
use barewire_sim::bring_up::{bus, ecspi, ecspi_interrupt};
use barewire_sim::{Board, BoardOptions, BoardSpec};

use crate::conforms::{self, Lengths};
use crate::driver::{Driver, Waits};

fn board() -> Board {
    Board::new(BoardSpec::find("imx8mp").expect("a board"), BoardOptions::default())
}

struct OnEcspi;

impl Driver for OnEcspi {
    fn polled(&self, board: &Board) -> Bus<impl Controller> {
        bus(board)
    }

    fn interrupted(&self, board: &Board, limit_ns: u32) -> impl Controller {
        ecspi_interrupt(board, limit_ns)
    }
}

#[test]
fn ecspi_passes_every_case() {
    let board = board();
    OnEcspi.on_bus(&board, Waits::Polling, |bus| passes_every_case(&board, bus));
}

#[test]
fn ecspi_passes_every_case_asleep_until_it_interrupts() {
    let board = board();
    OnEcspi.on_bus(&board, Waits::Asleep(0), |bus| passes_every_case(&board, bus));
}

#[test]
fn ecspi_passes_every_case_by_its_handler() {
    let board = board();
    let ((), interrupts) =
        OnEcspi.on_bus(&board, Waits::ByHandler(0), |bus| passes_every_case(&board, bus));
    assert!(interrupts > 1_000);
}

fn passes_every_case(board: &Board, bus: &Bus<dyn Controller + '_>) {
    let settings = Settings::new(0, 40_000_000).with_mode(Mode::LOOP);
    let report = conforms::passes_every_case(board, bus, &settings, Lengths::All);
    let expected = if crate::runs_whole() { 1_801 } else { 1_233 };
    assert_eq!(report.iterations, expected);
    println!("{} iterations, {} bytes", report.iterations, report.bytes);
}

#[test]
fn injected_faults_fail_it() {
    let options = Options { max_len: 64, loopback: true, ..Options::default() };
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
