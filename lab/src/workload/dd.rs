//! A SPI NOR flash read by `dd` through mtdblock, 512 bytes at a time.
//!
//! *Read first*: David Jander's message of 17 June 2022 in "Optimize spi_sync path"; its histogram says that a read is
//! three transfers of 1, 3 and 512 bytes.
//!
//! # How it works
//! A few reads in the steady state, the caches warm. Processor 0 has `dd` and the interrupts, processor 1 the SPI pump.

use std::cell::Cell;

use barewire_sim::chip::Ps;
use barewire_sim::engine::{Costs, Thread};

use super::{Intervals, content};
use crate::kernel::imx::Imx;
use crate::kernel::{Kernel, Path, Xfer};
use crate::machine::{Machine, Record};

/// Bytes of a read.
const BLOCK: usize = 512;
/// Reads before the first one measured.
const BEFORE: usize = 2;

/// The result of a run.
pub struct Read {
    /// Where the time went.
    pub record: Record,
    /// One interval for each read, from its beginning to that of the next.
    pub reads: Intervals,
    /// The first read's beginning and the last one's end.
    pub elapsed: (Ps, Ps),
    /// The costs of threads.
    pub threads: Costs,
}

/// Reads `reads` blocks through `path`.
///
/// # Panics
/// If the board has no ECSPI, if what was read is wrong, or a rule of the wire is broken.
#[must_use]
pub fn run(machine: &Machine, path: &Path, speed_hz: u64, reads: usize) -> Read {
    let board = machine.board();
    let content = content((board.spec().flash().part)().size, (BEFORE + reads) * BLOCK);
    board.attach_flash(Some(content.clone())).expect("the part's size");
    let host = Imx::new(board, board.spec().flash().cs, speed_hz);
    let kernel = Kernel::new(machine, &host, path);
    machine.set_cold(false);
    machine.start();
    let begun: Vec<Cell<Ps>> = vec![Cell::new(0); BEFORE + reads + 1];
    let dd = || {
        for (index, at) in begun.iter().enumerate() {
            at.set(machine.now());
            if index == BEFORE + reads {
                break;
            }
            read(machine, &kernel, &content, index);
        }
        kernel.stop();
    };
    let mut threads =
        vec![Thread::new("dd", dd).on(0, 10), Thread::new("pump", || kernel.pump()).on(1, 50)];
    threads.extend(host.threads(machine));
    board.engine().run(threads);
    assert_eq!(board.harms_total(), 0, "{:#?}", board.violations());
    let times: Vec<Ps> = begun.iter().skip(BEFORE).map(Cell::get).collect();
    let all = times.windows(2).map(|pair| (pair[0], pair[1])).collect();
    Read {
        record: machine.finish(),
        reads: Intervals { all },
        elapsed: (times[0], times[reads]),
        threads: machine.threads(),
    }
}

/// dd's read of block `index`, checked against the flash's `content`.
pub(super) fn read(machine: &Machine, kernel: &Kernel<'_, Imx>, content: &[u8], index: usize) {
    machine.charge("dd, page cache and mtdblock", &["page-cache"]);
    machine.charge("mtd, spi-nor and spi-mem", &["mtd"]);
    let address = index * BLOCK;
    let message = vec![
        Xfer::new(&[0x03]),
        Xfer::new(&(address as u32).to_be_bytes()[1..]),
        Xfer::new(&[0; BLOCK]),
    ];
    let data = kernel.sync(message).remove(2).rx;
    assert!(data == content[address..address + BLOCK], "block {index} is wrong");
    machine.charge_times("copy to dd", BLOCK as f64, &["copy"]);
}
