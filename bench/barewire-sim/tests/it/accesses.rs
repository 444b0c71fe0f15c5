//! What an ECSPI transfer costs in register accesses and virtual time: a reviewed table.
//!
//! Set `BAREWIRE_BLESS=1` to write it anew; the difference is then for a reviewer.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::gpio::Ownership;
use barewire::spi::{Settings, Transfer};
use barewire_sim::bring_up::{Charged, ecspi_with};
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions, BoardSpec};

use crate::second_message;
use crate::snapshot;

const HEADER: &str = "\
ECSPI register accesses per message, simulated on imx8mp at 20 MHz, the device's second message.
needed: the least the block can be asked for with this chip select; polls: status reads beyond it.
cs_to_clock, clock_to_cs, wire and call are virtual nanoseconds with the profile's costs.

chip_select     bytes  needed  accesses  polls  barriers  cs_to_clock  wire    clock_to_cs  call
";

/// The hand-written minimum, from the manual: every FIFO word is written and read once (RXDATA
/// must be drained); one word needs one look at STATREG, since RXDATA is undefined before RR; more
/// words need XCH written and seen clear, once for every burst of 128 words, CONREG being right
/// already; STATREG must be asked at least once for every 64 words in flight, since XCH may clear
/// before the last word is over. Plus the chip select's two edges.
fn needed(bytes: usize, edges: u64) -> u64 {
    let words = bytes.div_ceil(4) as u64;
    let bursts = bytes.div_ceil(512) as u64;
    let status = match words {
        1 => 1,
        _ => 2 * bursts + words.div_ceil(64),
    };
    2 * words + status + edges
}

struct Line {
    name: &'static str,
    cs: u8,
    ownership: Ownership,
    edges: u64,
}

const LINES: [Line; 3] = [
    Line { name: "native", cs: 1, ownership: Ownership::Shared, edges: 0 },
    Line { name: "gpio_exclusive", cs: 0, ownership: Ownership::Exclusive, edges: 2 },
    Line { name: "gpio_shared", cs: 0, ownership: Ownership::Shared, edges: 4 },
];

fn row(line: &Line, bytes: usize) -> String {
    let spec = BoardSpec::find("imx8mp").expect("a board");
    let board = Board::new(spec, BoardOptions::default());
    board.attach(line.cs, Rc::new(RefCell::new(Echo::default())));
    let ecspi = ecspi_with(&board, line.ownership);
    let bus = Bus::new(Charged::new(ecspi, board.clone()));
    let device = bus.device(&Settings::new(line.cs, 20_000_000)).expect("opens");
    let tx = vec![0x5a; bytes];
    let mut rx = vec![0; bytes];
    let mut message = [Transfer::exchange(&tx, &mut rx)];
    let cost = second_message::cost(&board, &device, &mut message, || board.start_vcd());
    let accesses = cost.reads + cost.writes;
    let vcd = board.take_vcd().expect("was begun");
    let [falls, first, last, rises] = edges(&vcd.vcd, line.cs);
    let needed = needed(bytes, line.edges);
    format!(
        "{:<14}{:>7}{:>8}{:>10}{:>7}{:>10}{:>13}{:>8}{:>13}{:>8}\n",
        line.name,
        bytes,
        needed,
        accesses,
        accesses - needed,
        cost.barriers,
        (first - falls) / 1_000,
        (last - first) / 1_000,
        (rises - last) / 1_000,
        cost.call_ns,
    )
}

/// When CS falls, SCK first rises and last falls, and CS rises, in picoseconds.
fn edges(vcd: &[u8], cs: u8) -> [u64; 4] {
    let text = std::str::from_utf8(vcd).expect("VCD is text");
    let id_of = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with("$var") && line.split_whitespace().nth(4) == Some(name));
        line.and_then(|line| line.split_whitespace().nth(3)).expect("the signal is declared")
    };
    let (sck, select) = (id_of("sck"), id_of(&format!("cs{cs}")));
    let picoseconds = text.contains("1 ps") || text.contains("1ps");
    let (mut now, mut sck_edges, mut cs_edges) = (0, Vec::new(), Vec::new());
    for line in text.lines() {
        if let Some(time) = line.strip_prefix('#') {
            now = time.parse::<u64>().expect("a time") * if picoseconds { 1 } else { 1_000 };
        } else if now > 0 && line.len() > 1 && line.starts_with(['0', '1']) {
            if &line[1..] == sck {
                sck_edges.push(now);
            } else if &line[1..] == select {
                cs_edges.push(now);
            }
        }
    }
    let [falls, rises] = cs_edges[..] else { panic!("two edges of CS, not {cs_edges:?}") };
    [falls, sck_edges[0], sck_edges[sck_edges.len() - 1], rises]
}

#[test]
fn accesses_per_transfer_are_as_reviewed() {
    let mut table = String::from(HEADER);
    for line in &LINES {
        for bytes in [1, 4, 5, 13, 64, 256, 512, 4096] {
            // What the block's own line takes in one burst.
            if line.cs == 1 && bytes > 256 {
                continue;
            }
            let _ = write!(table, "{}", row(line, bytes));
        }
    }
    snapshot::check("ecspi_accesses.txt", &table);
}
