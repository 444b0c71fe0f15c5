//! The judge of lengths, words and forms: the conformance suite on every block, by its loopback or through a
//! jumper, polled, asleep and by the block's handler.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::middleware::{Fault, FaultInjector, When};
use barewire::spi::{MODE_0, MODE_1, MODE_2, MODE_3, Mode, Settings};
use barewire_conformance::{Clock, Options, Report, run};
use barewire_sim::Board;
use barewire_sim::bring_up::ecspi;
use barewire_sim::model::jumper::Jumper;

use crate::blocks::{Block, Way, on_every_block};
use crate::driver::{EACH, Waits, on_bus};

/// Up to which length the cases run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    /// Up to 128 KiB, where tests run in full. These are 28 MB, seconds of simulation. One run for each way of waiting
    /// is enough: beyond its FIFO and its counters a driver only repeats itself.
    All,
    /// To 1,024 bytes: several times every FIFO.
    Short,
}

/// Runs every case on a loopback behind a device with `settings`. No case may fail, and no checker
/// may complain.
fn passes_every_case(
    board: &Board,
    bus: &Bus<dyn Controller + '_>,
    settings: &Settings,
    lengths: Lengths,
) -> Report {
    let device = bus.device(settings).expect("opens");
    let whole = crate::runs_whole() && lengths == Lengths::All;
    let max_len = if whole { Options::default().max_len } else { 1_025 };
    let mut now_ns = || board.engine().now_ps() / 1_000;
    let options = Options { max_len, loopback: true, ..Options::default() };
    let report = run(&device, &options, &mut Clock::Nanoseconds(&mut now_ns));
    assert!(report.failures.is_empty(), "{settings:?}: {:#?}", report.failures);
    assert_eq!(report.iterations, if whole { 1_801 } else { 1_233 }, "{settings:?}");
    report
}

struct Case<'b> {
    block: &'b Block,
    way: &'b Way,
    late_ns: u64,
}

impl Case<'_> {
    fn passes(&self, waits: Waits, settings: Settings, lengths: Lengths) {
        let board = self.block.board(self.way, self.late_ns);
        if !settings.mode.contains(Mode::LOOP) {
            assert!(board.attach(settings.chip_select, Rc::new(RefCell::new(Jumper))));
        }
        let (report, interrupts) = on_bus(self.way.start, &board, waits, |bus| {
            passes_every_case(&board, bus, &settings, lengths)
        });
        let what = format!("{}, {waits:?}, {settings:?}", self.way.name);
        assert_eq!(board.harms_total(), 0, "{what}: {:#?}", board.violations());
        if let Waits::ByHandler(_) = waits {
            assert!(interrupts > report.iterations as u64 / 2, "{what}: {interrupts} interrupts");
        }
    }
}

fn every_case_passes(block: &'static Block) {
    let (lines, modes) = (if block.holds { 0..=1 } else { 0..=0 }, [MODE_0, MODE_2, MODE_1]);
    let fast = Settings::new(0, 20_000_000);
    let usual = Case { block, way: block.usual(), late_ns: 0 };
    for (waits, mode) in EACH.into_iter().zip(modes) {
        usual.passes(waits, fast.with_mode(mode), Lengths::All);
        usual.passes(waits, fast.with_mode(MODE_3), Lengths::Short);
        if block.loops {
            usual.passes(waits, fast.with_mode(mode | Mode::LOOP), Lengths::Short);
        }
    }
    for way in block.ways {
        let each = if way.polled_only { &EACH[..1] } else { &EACH };
        for (&waits, mode) in each.iter().zip([MODE_3, MODE_0, MODE_2]) {
            for line in lines.clone() {
                let settings = Settings::new(line, 33_000_000).with_mode(mode);
                Case { block, way, late_ns: 0 }.passes(waits, settings, Lengths::Short);
            }
            // With a late driver: at this speed the block runs out of words.
            Case { block, way, late_ns: way.late_ns }.passes(
                waits,
                fast.with_mode(mode),
                Lengths::Short,
            );
        }
    }
}
on_every_block! { every_case_passes }

#[test]
fn injected_faults_fail_it() {
    let options = Options { max_len: 64, loopback: true, ..Options::default() };
    for (fault, when) in [
        (Fault::Timeout, When::Transfer(100)),
        (Fault::StuckLow, When::Transfer(100)),
        (Fault::StuckHigh, When::From(100)),
        (Fault::BitFlip { bit: 5 }, When::Random { seed: 1, one_in: 100 }),
    ] {
        let board = crate::board("imx8mp");
        let bus = Bus::new(FaultInjector::new(ecspi(&board), fault, when));
        let settings = Settings::new(0, 40_000_000).with_mode(Mode::LOOP);
        let device = bus.device(&settings).expect("opens");
        let report = run(&device, &options, &mut Clock::None);
        assert!(report.failed > 0, "{fault:?} {when:?} went unnoticed");
        assert!(bus.into_inner().injected() >= report.failed as u64, "{fault:?}");
    }
}
