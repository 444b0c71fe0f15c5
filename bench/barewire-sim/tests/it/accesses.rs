//! The judge of costs: what an exchange takes in register accesses and virtual time on every block, as reviewed
//! tables.
//!
//! Set `BAREWIRE_BLESS=1` to write them anew, then review the difference.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use barewire::bus::{Bus, Device};
use barewire::controller::Controller;
use barewire::middleware::Pointer;
use barewire::spi::{Settings, Transfer};
use barewire_sim::Board;
use barewire_sim::bring_up::Charged;
use barewire_sim::model::echo::Echo;

use crate::blocks::{Block, Exchanges, on_every_block};
use crate::snapshot;

const HEADER: &str = "\
lead, clocks and lag are nanoseconds from CS to the first cell, to the last one's end, to CS. call is
virtual nanoseconds with the profile's costs. Where two lengths stand, the first is written and the second read.

line    mode  speed_hz    bytes  writes   reads  barriers   lead    clocks    lag      call
";

/// Runs `message` twice. Returns the register accesses, reads and writes and barriers, and the nanoseconds of
/// the second time: the first has configured the block.
fn second_time(
    board: &Board,
    device: &Device<'_, impl Controller>,
    message: &mut [Transfer<'_>],
) -> ([u64; 3], u64) {
    let mut prepared = device.prepare_message(message).expect("prepares");
    prepared.run().expect("runs");
    board.cpu_work(10_000);
    board.reset_marks();
    board.start_selections();
    prepared.run().expect("runs");
    let call_ns = board.elapsed_ps() / 1_000;
    board.cpu_work(10_000);
    let counts = board.access_counts();
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    let sum = |of: fn(&barewire_sim::board::AccessCounts) -> u64| counts.iter().map(of).sum();
    ([sum(|block| block.writes), sum(|block| block.reads), sum(|block| block.barriers)], call_ns)
}

fn row(block: &Block, of: &Exchanges, shape: &[usize]) -> String {
    let way = &block.ways[of.way];
    let board = block.board(way, 0);
    assert!(board.attach(of.cs, Rc::new(RefCell::new(Echo::default()))));
    let bus = Bus::new(Charged::new(Pointer((way.start)(&board, None)), board.clone()));
    let device = bus.device(&Settings::new(of.cs, of.speed_hz).with_mode(of.mode)).expect("opens");
    let (tx, mut rx) = (vec![0x5a; shape[0]], vec![0; shape[shape.len() - 1]]);
    let mut message: Vec<Transfer<'_>> = match shape {
        [_] => vec![Transfer::exchange(&tx, &mut rx)],
        _ => vec![Transfer::write(&tx), Transfer::read(&mut rx)],
    };
    let ([writes, reads, barriers], call_ns) = second_time(&board, &device, &mut message);
    let [it] = board.take_selections()[..] else { panic!("one selection") };
    let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!(
        "{:<8}{:>4}{:>10}{:>9}{writes:>8}{reads:>8}{barriers:>10}{:>7}{:>10}{:>7}{call_ns:>10}\n",
        if of.cs == 0 { "gpio" } else { "native" },
        of.mode.number(),
        device.effective().speed_hz,
        lengths.join("+"),
        (it.first_clock_at - it.selected_at) / 1_000,
        (it.last_clock_at - it.first_clock_at) / 1_000,
        (it.deselected_at - it.last_clock_at) / 1_000,
    )
}

fn accesses_per_message_are_as_reviewed(block: &'static Block) {
    let mut table = format!(
        "Register accesses of {} per message, simulated on {}, the device's second message.\n{HEADER}",
        block.name, block.board
    );
    let mut way = 0;
    for of in block.exchanges {
        if way != of.way {
            way = of.way;
            let _ = writeln!(table, "{}:", block.ways[way].name);
        }
        of.shapes.iter().for_each(|shape| table += &row(block, of, shape));
    }
    snapshot::check(&format!("accesses/{}.txt", block.name), &table);
}
on_every_block! { accesses_per_message_are_as_reviewed }
