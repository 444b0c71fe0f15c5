//! Reading a device out when its INT pin rises, from the hard interrupt and from threads: a
//! reviewed table.
//!
//! Set `BAREWIRE_BLESS=1` to write it anew, then review the difference.

use std::fmt::Write as _;

use barewire_sim::profile::CostLevel;
use barewire_sim::scenario::readout::{READERS, run};

use crate::snapshot;

const HEADER: &str = "\
Reading a device out: one prepared read of 4 bytes at 20 MHz, simulated on imx8mp, a GPIO chip
select of a shared bank, when the device's INT line rises in the middle of other work.
hard interrupt: try_run in the handler. woken thread: the handler wakes a thread that runs the
read, on its own processor or another. UIO: a thread that a kernel's handler wakes.
entry: line to the reader's first instruction. read: the call. in_hand: line to the bytes being
there. Virtual nanoseconds with the profile's costs: mean, and the largest, of 100 events.

reader                        entry   read  in_hand  in_hand_max
";

#[test]
fn reading_a_device_out_costs_what_was_reviewed() {
    let mut table = String::from(HEADER);
    for (name, reader) in READERS {
        let times = run(reader, CostLevel::Used);
        let _ = writeln!(
            table,
            "{name:<27}{:>8}{:>7}{:>9}{:>13}",
            times.entry_ns, times.read_ns, times.in_hand_ns, times.in_hand_max_ns,
        );
    }
    snapshot::check("readout.txt", &table);
}
