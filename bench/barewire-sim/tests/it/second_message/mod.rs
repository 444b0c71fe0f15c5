//! What a device's second message costs: the first has configured the block.

use barewire::bus::Device;
use barewire::controller::Controller;
use barewire::spi::Transfer;
use barewire_sim::Board;

/// Register accesses, and virtual time with the profile's costs.
pub(crate) struct Cost {
    pub writes: u64,
    pub reads: u64,
    pub barriers: u64,
    pub call_ns: u64,
}

/// Runs `message` twice, and calls `record` before the second time.
pub(crate) fn cost(
    board: &Board,
    device: &Device<'_, impl Controller>,
    message: &mut [Transfer<'_>],
    record: impl FnOnce(),
) -> Cost {
    let mut prepared = device.prepare_message(message).expect("prepares");
    prepared.run().expect("runs");
    board.cpu_work(10_000);
    board.reset_marks();
    record();
    prepared.run().expect("runs");
    let call_ns = board.elapsed_ps() / 1_000;
    board.cpu_work(10_000);
    let counts = board.access_counts();
    let writes = counts.iter().map(|block| block.writes).sum();
    let reads = counts.iter().map(|block| block.reads).sum();
    let barriers = counts.iter().map(|block| block.barriers).sum();
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    Cost { writes, reads, barriers, call_ns }
}
