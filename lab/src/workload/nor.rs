//! A NOR flash read by `dd` through mtd's character device, Linux 3.14.
//!
//! *Read first*: Cyrille Pitchen, *SPI: performance regression when using the common message queuing infrastructure*,
//! 6 July 2016; S25FL512S data sheet for Read Status (05h) and the 4-byte Read (13h).
//!
//! # How it works
//! For each block `dd` reads and writes. The flash's driver asks the status in a message of two transfers, the command
//! and its answer, and reads in a message of two more, the command with its address and the data. mtd's work on a read
//! is split: half before the status, a fifth between the two messages, the rest after the data.
//!
//! Block after block takes the same time from the third on, so [`SIMULATED_MAX`] are simulated: the first and the last
//! are those of a long read, and [`Read::time_ps`] adds the ones left out.
//!
//! The pump, the interrupts and the first block run cold (see the cost `cold`): each follows a wait. From the second
//! block on `dd`'s own way through the kernel is a loop and runs warm. Two choices were made when the long figures were
//! known: this one, and the value of `idle-exit`. So the long figures are no blind predictions.

use std::cell::RefCell;
use std::rc::Rc;

use barewire_sim::chip::Ps;
use barewire_sim::engine::Thread;
use barewire_sim::model::nor::Nor;

use crate::kernel::atmel::{Atmel, Linux314};
use crate::kernel::{Path, Xfer};
use crate::machine::{Machine, Parts, Record, add_parts};

const READ_STATUS: u8 = 0x05;
const READ_4_BYTE: u8 = 0x13;
const BUSY: u8 = 1;

/// The most blocks that are simulated.
pub const SIMULATED_MAX: usize = 4;

/// The longest block: spi-atmel splits what is longer than a DMA transfer, which is not modelled.
pub(crate) const BLOCK_MAX: usize = 65_535;

/// The result of a run.
pub struct Read {
    /// Where the time went.
    pub record: Record,
    /// From chip select's fall before the first status to its rise after the last data, as simulated.
    pub window: (Ps, Ps),
    /// One block of several in the simulation: from the fall of chip select before its status read to that of the
    /// next block. `None` if there is only one block.
    pub block: Option<(Ps, Ps)>,
    /// How many such blocks the simulation left out.
    pub left_out: usize,
}

impl Read {
    /// From the first fall to the last rise, with the blocks that the simulation left out.
    #[must_use]
    pub fn time_ps(&self) -> Ps {
        let (from, to) = self.block.unwrap_or_default();
        self.window.1 - self.window.0 + self.left_out as Ps * (to - from)
    }

    /// The steps of [`Read::time_ps`], which add up to it.
    #[must_use]
    pub fn parts(&self) -> Parts {
        let mut parts = self.record.attribute(self.window.0, self.window.1).0;
        let Some((from, to)) = self.block else { return parts };
        add_parts(&mut parts, &self.record.attribute(from, to).0, self.left_out as u64);
        parts
    }
}

/// `dd` of `blocks` with `block` bytes each, through `path`.
///
/// # Panics
/// If the board has no flash behind Atmel's SPI, `path` is not one of Linux 3.14, the data is wrong, or a rule of the
/// wire is broken.
#[must_use]
pub fn run(machine: &Machine, path: &Path, speed_hz: u64, block: usize, blocks: usize) -> Read {
    let blocks = blocks.max(1);
    let simulated = blocks.min(SIMULATED_MAX);
    let read = simulate(machine, path, speed_hz, block, simulated);
    Read { left_out: blocks - simulated, ..read }
}

/// [`run`] with all blocks simulated.
fn simulate(machine: &Machine, path: &Path, speed_hz: u64, block: usize, blocks: usize) -> Read {
    let board = machine.board();
    let flash = board.spec().flash();
    // As much of the part as is read: an erased rest of 64 MiB would only take the host's time.
    let mut part = (flash.part)();
    part.size = (blocks * block).next_power_of_two().max(1 << 20);
    let content = super::content(part.size, blocks * block);
    let expected = content[..blocks * block].to_vec();
    let nor = Nor::new(part, content).expect("the part's size");
    board.attach(flash.cs, Rc::new(RefCell::new(nor)));
    let host = Atmel::new(board, flash.cs, speed_hz);
    let kernel = Linux314::new(machine, &host, path);
    // A switch costs what it does when the run begins, and each here follows a wait.
    machine.set_cold(true);
    machine.start();
    let dd = || {
        for (index, expected) in expected.chunks(block).enumerate() {
            kernel.set_caller_cold(index == 0);
            machine.charge("read", &["syscall"]);
            machine.charge_times("mtd", 0.5, &["mtd"]);
            let status = kernel.sync(vec![Xfer::new(&[READ_STATUS]), Xfer::new(&[0])]);
            assert!(status[1].rx[0] & BUSY == 0, "the flash is busy");
            machine.charge_times("flash driver", 0.2, &["mtd"]);
            let [high, upper, lower, low] = ((index * block) as u32).to_be_bytes();
            let command = [READ_4_BYTE, high, upper, lower, low];
            let data = kernel.sync(vec![Xfer::new(&command), Xfer::new(&vec![0; block])]);
            assert!(data[1].rx == expected, "block {index} is wrong");
            machine.charge_times("mtd", 0.3, &["mtd"]);
            machine.charge_times("copy to user", block as f64, &["copy"]);
            machine.charge("write", &["syscall"]);
        }
        kernel.stop();
    };
    let mut threads = vec![Thread::new("dd", dd).on(0, 0)];
    threads.extend(kernel.threads());
    board.engine().run(threads);
    let record = machine.finish();
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    let wire = record.wire();
    assert_eq!(wire.len(), 2 * blocks, "a selection for each message");
    let window = (wire[0].selected_at, wire[2 * blocks - 1].deselected_at);
    let block = (blocks > 1).then(|| {
        let last = 2 * blocks - 2;
        (wire[last - 2].selected_at, wire[last].selected_at)
    });
    Read { record, window, block, left_out: 0 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::rc::Rc;

    use barewire_sim::profile::CostLevel;

    use super::*;
    use crate::cost::Costs;
    use crate::kernel::atmel::DMA_BYTES;

    const SPEED_HZ: u64 = 44_000_000;
    const QUEUE: &str = "linux-3.14-queue";
    const TASKLET: &str = "linux-3.14-tasklet";

    fn machine(costs: &Costs) -> Machine {
        let costs = Rc::new(costs.clone());
        super::super::machine("sama5d36", &costs, &Rc::new(BTreeSet::new())).expect("a board")
    }

    fn read_with(costs: &Costs, name: &str, block: usize, blocks: usize) -> Read {
        run(&machine(costs), Path::find(name).unwrap(), SPEED_HZ, block, blocks)
    }

    fn read(name: &str, block: usize, blocks: usize) -> Read {
        read_with(&Costs::assumed(), name, block, blocks)
    }

    /// The four published figures: 512 bytes through queue and tasklet, in us, and 1000 x 1024 bytes through both, in
    /// ms.
    fn four(costs: &Costs) -> [f64; 4] {
        [(QUEUE, 512, 1), (TASKLET, 512, 1), (QUEUE, 1024, 1000), (TASKLET, 1024, 1000)].map(
            |(name, block, blocks)| {
                let time_us = read_with(costs, name, block, blocks).time_ps() as f64 / 1e6;
                if blocks == 1 { time_us } else { time_us / 1e3 }
            },
        )
    }

    /// A switch.
    fn hand_over_ps(costs: &Costs) -> Ps {
        let machine = machine(costs);
        machine.set_scheduler(costs.get("scheduler-3-14"));
        machine.threads().context_switch_ps
    }

    /// The time that doubling the costs of threads adds to `once`, in hand-overs.
    fn hand_overs(once: &Costs, of: impl Fn(&Costs) -> Ps) -> f64 {
        let mut twice = once.clone();
        twice.set("context-switch", 2.0 * once.get("context-switch"));
        let added = of(&twice) - of(once);
        added as f64 / (hand_over_ps(&twice) - hand_over_ps(once)) as f64
    }

    #[test]
    fn the_same_read_takes_the_same_time_and_its_steps_add_up_to_it() {
        for name in [QUEUE, TASKLET] {
            for (block, blocks) in [(512, 1), (1024, 1000)] {
                let [one, two] = [read(name, block, blocks), read(name, block, blocks)];
                assert_eq!(one.window, two.window);
                assert_eq!(one.parts(), two.parts());
                let sum: Ps = one.parts().values().map(|part| part.ps).sum();
                assert_eq!(sum, one.time_ps(), "{name}: {blocks} blocks");
            }
        }
    }

    #[test]
    fn the_pump_costs_three_hand_overs_in_a_window_and_four_in_a_block() {
        for level in CostLevel::ALL {
            let costs = Costs::assumed().at(level);
            // To the caller after the status, to the pump for the read, to the pump after the data.
            let window =
                |name| hand_overs(&costs, |costs| read_with(costs, name, 512, 1).time_ps());
            assert!((window(QUEUE) - 3.0).abs() < 1e-3, "{level:?}: {}", window(QUEUE));
            assert!(window(TASKLET).abs() < 1e-3, "{level:?}: {}", window(TASKLET));
            // To the pump for the status and to the caller after the data, the latter in both.
            let block = |name| {
                hand_overs(&costs, |costs| {
                    let (from, to) = read_with(costs, name, 1024, 4).block.unwrap();
                    to - from
                })
            };
            assert!((block(QUEUE) - 5.0).abs() < 1e-3, "{level:?}: {}", block(QUEUE));
            assert!((block(TASKLET) - 1.0).abs() < 1e-3, "{level:?}: {}", block(TASKLET));
        }
    }

    #[test]
    fn each_short_byte_interrupts_and_the_data_once() {
        for name in [QUEUE, TASKLET] {
            let parts = read(name, 512, 1).parts();
            // 05h and its answer, 13h and four bytes of address.
            assert_eq!(parts["handler"].times, 7, "{name}");
            assert_eq!(parts["interrupt entry"].times, 8, "{name}");
            assert_eq!(parts["set up DMA"].times, 1, "{name}");
            let times = |step| parts.get(step).map_or(0, |part| part.times);
            assert_eq!(times("tasklet"), if name == TASKLET { 4 } else { 0 }, "one for a transfer");
            // The caller of the tasklet's message leaves idle after the window.
            assert_eq!(times("leave idle"), if name == QUEUE { 1 } else { 0 }, "{name}");
        }
        let parts = read(TASKLET, DMA_BYTES - 1, 1).parts();
        assert_eq!(parts["handler"].times, 7 + 15, "a short read is moved by interrupts");
        assert!(!parts.contains_key("set up DMA"));
        assert_eq!(read(TASKLET, DMA_BYTES, 1).parts()["set up DMA"].times, 1);
    }

    #[test]
    fn blocks_left_out_take_what_they_take_when_simulated() {
        let path = Path::find(QUEUE).unwrap();
        let all = simulate(&machine(&Costs::assumed()), path, SPEED_HZ, 256, 9);
        let some = read(QUEUE, 256, 9);
        assert_eq!((some.left_out, all.left_out), (9 - SIMULATED_MAX, 0));
        assert_eq!(some.time_ps(), all.time_ps());
    }

    #[test]
    fn blocks_of_any_length_read_right() {
        for name in [QUEUE, TASKLET] {
            for block in [1, 2, 4096, BLOCK_MAX] {
                // 44 MHz is no whole number of picoseconds.
                let read = read(name, block, 2);
                assert!(read.time_ps() > 2 * 8 * block as Ps * 22_727, "{name}: {block}");
            }
        }
    }

    #[test]
    fn the_wire_waits_for_a_slower_engine() {
        let mut costs = Costs::assumed();
        let time = |costs: &Costs| read_with(costs, TASKLET, 512, 1).time_ps();
        let wire = time(&costs);
        costs.set("hdmac-byte", 60.0);
        assert_eq!(
            time(&costs),
            wire,
            "8 clocks of 22,728 ps are 182 ns, and a read of RDR is longer"
        );
        costs.set("hdmac-byte", 250.0);
        let longer = time(&costs) as f64 - wire as f64;
        let machine = machine(&costs);
        let profile = machine.board().profile();
        let around_ps = profile.instructions_ps(profile.instructions_per_access.value);
        let read_ps = (profile.register_read_ps.value + around_ps) as f64;
        let expected = 511.0 * (250_000.0 - read_ps.max(8.0 * 22_728.0));
        assert!((longer - expected).abs() < 2_000.0, "{longer} {expected}");
    }

    #[test]
    fn either_end_of_all_costs_reads_right() {
        for level in [CostLevel::Low, CostLevel::High] {
            let costs = Costs::assumed().at(level);
            let [queue, tasklet, queue_ms, tasklet_ms] = four(&costs);
            assert!(tasklet < queue && tasklet_ms < queue_ms, "{level:?}");
        }
    }

    #[test]
    #[should_panic = "is not a path of Linux 3.14"]
    fn a_later_path_is_refused() {
        let _ = read("linux-5.18-A", 512, 1);
    }
}
