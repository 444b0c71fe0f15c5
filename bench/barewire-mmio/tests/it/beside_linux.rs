//! Register accesses of a message: Linux's drivers beside ours, on one model.
//!
//! Ours are counted twice: polling to the end, and sleeping on the interrupt from the first transfer on. Linux's
//! drivers choose by the transfer's length; each has its own limit.
//!
//! `beside_linux.txt` is the reviewed table. Linux's columns are those of `cargo xtask linux-on-sim`, which
//! compares them; ours are counted here. `BAREWIRE_BLESS=1` rewrites the columns of the drivers that run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use barewire::bus::Bus;
use barewire::spi::{Settings, Transfer};
use barewire_mmio::Machine;
use barewire_sim::bring_up::{SimInterrupt, any, any_interrupt};
use barewire_sim::{Board, BoardOptions, BoardSpec, SimPlatform};

/// The speed of both, and how many messages are counted after the first.
pub(crate) const SPEED_HZ: u32 = 10_000_000;
const MESSAGES: u32 = 16;

const HEAD: &str =
    "board      bytes  Linux: reads writes  polling: reads writes sleeping: reads writes\n";

/// A line of the table.
struct Line {
    board: String,
    bytes: usize,
    linux: [f64; 2],
    /// Polling, then sleeping.
    ours: [[f64; 2]; 2],
}

fn read(text: &str) -> Vec<Line> {
    let line = |line: &str| {
        let mut parts = line.split_whitespace();
        let (board, bytes) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
        let mut figure = || parts.next()?.parse().ok();
        let mut pair = || Some([figure()?, figure()?]);
        Some(Line { board, bytes, linux: pair()?, ours: [pair()?, pair()?] })
    };
    text.lines().skip(1).map(|text| line(text).unwrap_or_else(|| panic!("{text:?}"))).collect()
}

/// The chip select that Linux uses in the runs: the board's first, on a GPIO. On unleashed, which
/// has native lines only, the second.
pub(crate) fn chip_select(board: &str) -> u8 {
    if board == "unleashed" { 1 } else { 0 }
}

/// Reads and writes of the controller for a message of that many bytes.
fn count(board: &str, bytes: usize, sleeping: bool) -> [f64; 2] {
    let cs = chip_select(board);
    let spec = BoardSpec::find(board).expect("a board");
    let board = Board::new(spec, BoardOptions::default());
    let chip = format!("jumper@{cs}").parse().expect("a chip");
    let machine = Machine::new(board.clone(), &[chip]).expect("it fits");
    let controller = match sleeping {
        true => any_interrupt(&board, 0, SimInterrupt::new(&board)),
        false => any(&board),
    };
    let bus = Bus::with_platform(controller, &SimPlatform);
    let device = bus.device(&Settings::new(cs, SPEED_HZ)).expect("a device");
    let (sent, mut heard) = (vec![0xa5; bytes], vec![0; bytes]);
    // The first message gives the driver's memory of the settings a known content.
    for message in 0..=MESSAGES {
        if message == 1 {
            board.reset_marks();
        }
        device.sync(&mut [Transfer::exchange(&sent, &mut heard)]).expect("exchanged");
        assert_eq!(heard, sent);
    }
    let counts = machine.board().access_counts()[0];
    [counts.reads, counts.writes].map(|count| count as f64 / f64::from(MESSAGES))
}

#[test]
fn ours_are_never_more() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/beside_linux.txt");
    let text = fs::read_to_string(&path).expect("the table");
    let mut lines = read(&text);
    assert!(lines.len() >= 28, "seven boards, four lengths");
    let mut told = String::from(HEAD);
    for line in &mut lines {
        line.ours = [false, true].map(|sleeping| count(&line.board, line.bytes, sleeping));
        let Line { board, bytes, linux: [reads, writes], ours: [polling, sleeping] } = line;
        _ = write!(told, "{board:<10} {bytes:>5} {reads:>13} {writes:>6}");
        for [reads, writes] in [polling, sleeping] {
            _ = write!(told, " {reads:>15} {writes:>6}");
        }
        told.push('\n');
    }
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        fs::write(&path, &told).expect("written");
    }
    assert_eq!(told, text, "the table differs: review it, and bless it with BAREWIRE_BLESS=1");
    for Line { board, bytes, linux, ours } in &lines {
        let sum = |counts: &[f64; 2]| counts.iter().sum::<f64>();
        let (linux, ours) =
            (sum(linux), ours.each_ref().map(sum).into_iter().fold(f64::MAX, f64::min));
        assert!(ours <= linux, "{board}, {bytes} bytes: {ours} accesses beside Linux's {linux}");
    }
}
