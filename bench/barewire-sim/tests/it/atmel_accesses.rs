//! What a transfer of Atmel's SPI costs in register accesses and virtual time: a reviewed table.
//!
//! Set `BAREWIRE_BLESS=1` to write it anew; the difference is then for a reviewer.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::atmel::{PeripheralSelect, Pipe};
use barewire::spi::{Settings, Transfer};
use barewire_sim::bring_up::{Charged, atmel_with};
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions, BoardSpec};

use crate::second_message;
use crate::snapshot;

const HEADER: &str = "\
Atmel SPI register accesses per message, simulated on sama5d36, the device's second message.
needed: the least a word can be had for: TDR, SR, RDR; the chip select's edges; CSR where the word
changes. polls: reads of SR beyond it. clocks: what the wire alone takes. clocks and call are virtual
nanoseconds with the profile's costs. 6+512 is a fast read from a flash, 5+512 one without dummies.

pipe          chip_select   speed_hz     bytes  needed  accesses  polls  barriers   clocks     call
";

struct Case {
    pipe: Pipe,
    cs: u8,
    speed_hz: u32,
    lens: &'static [usize],
}

const SHAPES: [&[usize]; 7] = [&[1], &[2], &[3], &[4], &[64], &[6, 512], &[5, 512]];

fn row(case: &Case) -> String {
    let spec = BoardSpec::find("sama5d36").expect("a board");
    let board = Board::new(spec, BoardOptions::default());
    board.attach(case.cs, Rc::new(RefCell::new(Echo::default())));
    let inner = atmel_with(&board, case.pipe, PeripheralSelect::Fixed);
    let bus = Bus::new(Charged::new(inner, board.clone()));
    let device = bus.device(&Settings::new(case.cs, case.speed_hz)).expect("opens");
    let (command, mut rx) = ([0x5a; 64], [0; 512]);
    let mut message: Vec<Transfer<'_>> = match *case.lens {
        [len] => vec![Transfer::exchange(&command[..len], &mut rx[..len])],
        [command_len, len] => {
            vec![Transfer::write(&command[..command_len]), Transfer::read(&mut rx[..len])]
        }
        _ => unreachable!("one transfer or two"),
    };
    let cost = second_message::cost(&board, &device, &mut message, || ());
    let accesses = cost.reads + cost.writes;
    let words: usize = case.lens.iter().map(|len| if len % 2 == 0 { len / 2 } else { *len }).sum();
    let changes = if case.lens.iter().any(|len| len % 2 == 1) { case.lens.len() - 1 } else { 0 };
    // Both edges of the pin are ours; of the block's own line only the second.
    let needed = 3 * words as u64 + 2 * changes as u64 + 2 - u64::from(case.cs);
    let bytes: usize = case.lens.iter().sum();
    let clocks_ns = bytes as u64 * 8 * 1_000_000_000 / u64::from(case.speed_hz);
    let lens: Vec<String> = case.lens.iter().map(usize::to_string).collect();
    format!(
        "{:<14}{:<11}{:>11}{:>10}{:>8}{:>10}{:>7}{:>10}{:>9}{:>9}\n",
        format!("{:?}", case.pipe),
        if case.cs == 0 { "pin" } else { "native" },
        case.speed_hz,
        lens.join("+"),
        needed,
        accesses,
        accesses - needed,
        cost.barriers,
        clocks_ns,
        cost.call_ns,
    )
}

#[test]
fn accesses_per_transfer_are_as_reviewed() {
    let mut table = String::from(HEADER);
    for pipe in [Pipe::WaitDataRead, Pipe::OneWord, Pipe::TwoWords] {
        for lens in SHAPES {
            let _ = write!(table, "{}", row(&Case { pipe, cs: 0, speed_hz: 26_400_000, lens }));
        }
    }
    for speed_hz in [1_000_000, 44_000_000, 66_000_000] {
        for pipe in [Pipe::WaitDataRead, Pipe::TwoWords] {
            let _ = write!(table, "{}", row(&Case { pipe, cs: 0, speed_hz, lens: &[6, 512] }));
        }
    }
    for lens in [&[2][..], &[6, 512]] {
        let pipe = Pipe::WaitDataRead;
        let _ = write!(table, "{}", row(&Case { pipe, cs: 1, speed_hz: 26_400_000, lens }));
    }
    snapshot::check("atmel_accesses.txt", &table);
}
