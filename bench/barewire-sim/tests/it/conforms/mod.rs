//! The conformance suite on a simulated board.

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::Settings;
use barewire_conformance::{Clock, Options, Report, run};
use barewire_sim::Board;

/// Runs every case on what loops back to a device of `settings`; nothing may fail, and no checker
/// complain.
pub(crate) fn passes_every_case(
    board: &Board,
    bus: &Bus<dyn Controller + '_>,
    settings: &Settings,
    debug_max_len: usize,
) -> Report {
    let device = bus.device(settings).expect("opens");
    let max_len = if crate::runs_whole() { Options::default().max_len } else { debug_max_len };
    let mut now_ns = || board.engine().now_ps() / 1_000;
    let options = Options { max_len, loopback: true, ..Options::default() };
    let report = run(&device, &options, &mut Clock::Nanoseconds(&mut now_ns));
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    assert!(report.iterations > 1_000, "{}", report.iterations);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    report
}
