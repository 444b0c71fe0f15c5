//! `docs/traces.md`: every register access of a message of four bytes, Linux's driver beside ours, on one model.
//!
//! Linux's are the files of `traces/`, which `cargo xtask linux-on-sim` compares with what it sees. Ours are made here: one device,
//! its second message, polled. `BAREWIRE_BLESS=1` writes the page's columns anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use barewire::bus::Bus;
use barewire::spi::{Settings, Transfer};
use barewire_mmio::Machine;
use barewire_sim::board::{MANY_ACCESSES, folded};
use barewire_sim::bring_up::any;
use barewire_sim::{Board, BoardOptions, BoardSpec, SimPlatform};

use crate::beside_linux::{SPEED_HZ, chip_select};

/// The bytes that the guest's check sends also.
const BYTES: [u8; 4] = [0xa5, 0xc3, 0x5a, 0x3c];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/traces")
}

/// The controller's accesses of ours.
fn ours(board: &str) -> Vec<String> {
    let cs = chip_select(board);
    let board = Board::new(BoardSpec::find(board).expect("a board"), BoardOptions::default());
    let chip = format!("jumper@{cs}").parse().expect("a chip");
    let machine = Machine::new(board.clone(), &[chip]).expect("it fits");
    let bus = Bus::with_platform(any(&board), &SimPlatform);
    let device = bus.device(&Settings::new(cs, SPEED_HZ)).expect("a device");
    for _ in 0..2 {
        board.start_accesses(MANY_ACCESSES);
        let mut heard = [0; 4];
        device.sync(&mut [Transfer::exchange(&BYTES, &mut heard)]).expect("exchanged");
        assert_eq!(heard, BYTES);
    }
    let accesses = machine.board().take_accesses();
    let of_block = accesses.iter().filter(|access| access.block == 0);
    of_block.map(|access| access.told(board.spec())).collect()
}

/// Two columns.
fn beside(linux: &[String], ours: &[String]) -> String {
    let mut text = format!("{:<34} {}\n", "Linux 6.1", "barewire");
    let [mut linux, mut ours] = [linux, ours].map(folded);
    loop {
        let row = (linux.next(), ours.next());
        if row == (None, None) {
            return text;
        }
        let row = [row.0, row.1].map(Option::unwrap_or_default);
        let _ = writeln!(text, "{}", format!("{:<34} {}", row[0], row[1]).trim_end());
    }
}

#[test]
fn the_page_has_each_boards_accesses() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/traces.md");
    let page = fs::read_to_string(&path).expect("the page");
    let mut made = page.clone();
    let mut boards: Vec<String> = fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    boards.sort();
    assert!(boards.len() >= 7, "a block each: {boards:?}");
    for board in &boards {
        let linux = fs::read_to_string(folder().join(format!("{board}.txt"))).expect("a trace");
        let linux: Vec<String> = linux.lines().map(str::to_owned).collect();
        let text = beside(&linux, &ours(board));
        let begin = format!("\n```text {board}\n");
        let at = made.find(&begin).unwrap_or_else(|| panic!("no block of {board}")) + begin.len();
        let end = at + made[at..].find("```").expect("the block ends");
        made.replace_range(at..end, &text);
    }
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        fs::write(&path, &made).expect("written");
    }
    assert!(made == page, "the page differs: review it, and bless it with BAREWIRE_BLESS=1");
}
