//! The conformance suite on a simulated board.

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::Settings;
use barewire_conformance::{Clock, Options, Report, run};
use barewire_sim::Board;

/// Up to which length the cases run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lengths {
    /// To 128 KiB, where tests run whole. These are 28 MB, seconds of simulation. One run for each way of
    /// waiting is enough: beyond its FIFO and its counters a driver only repeats itself.
    All,
    /// To 1,024 bytes: several times every FIFO.
    Short,
}

/// Runs every case on what loops back to a device of `settings`; nothing may fail, and no checker
/// complain.
pub(crate) fn passes_every_case(
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
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    assert!(report.iterations > 1_000, "{}", report.iterations);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    report
}
