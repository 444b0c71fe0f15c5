//! `docs/accesses.md` lists the register accesses of the shortest message on each controller: they are those that the
//! simulated board sees.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::spi::Settings;
use barewire_sim::board::MANY_ACCESSES;
use barewire_sim::board::shipped::kinds_without;
use barewire_sim::bring_up::any;
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions, BoardSpec};

/// A board of each kind.
const BOARDS: [&str; 8] =
    ["imx8mp", "rpi3", "highbank", "rpi5", "sama5d36", "unleashed", "beaglebone", "zynq"];

/// An access: the register by its name in the manual, and whether it was written.
type Row = (String, String);

/// The accesses of a device's second message; reads that were repeated are one.
fn accesses(spec: &'static BoardSpec) -> Vec<Row> {
    let board = Board::new(spec, BoardOptions::default());
    assert!(board.attach(0, Rc::new(RefCell::new(Echo::default()))));
    let bus = Bus::new(any(&board));
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    let mut message = device.prepare([0x5a]).expect("prepares");
    message.run().expect("runs");
    board.start_accesses(MANY_ACCESSES);
    message.run().expect("runs");
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    let row = |access: &barewire_sim::board::Access| {
        let name = spec.register_name(access.block, access.offset);
        let how = if access.write { "write" } else { "read" };
        (name.map_or_else(|| format!("{:#x}", access.offset), str::to_owned), how.to_owned())
    };
    let mut rows: Vec<Row> = board.take_accesses().iter().map(row).collect();
    rows.dedup_by(|next, before| next == before && next.1 == "read");
    rows
}

/// The rows of a section of the page.
fn rows(page: &str, section: &str) -> Vec<Row> {
    let begin = format!("\n## {section}\n");
    let (_, text) = page.split_once(&begin).unwrap_or_else(|| panic!("no section {section}"));
    let text = text.split("\n## ").next().unwrap_or_default();
    let lines = text.lines().filter(|line| line.contains("| `"));
    let row = |(index, line): (usize, &str)| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(cells[1], (index + 1).to_string(), "{section}: rows are numbered: {line}");
        (cells[2].trim_matches('`').to_owned(), cells[3].to_owned())
    };
    lines.enumerate().map(row).collect()
}

#[test]
fn the_page_lists_the_accesses_of_the_shortest_message() {
    assert_eq!(kinds_without(&BOARDS), [""; 0], "add the controller's accesses to the page");
    let page = include_str!("../../../../docs/accesses.md");
    let specs = BOARDS.map(|name| BoardSpec::find(name).expect("a board"));
    let of = |what: &dyn Fn(&'static BoardSpec) -> Vec<Row>| {
        specs.map(|spec| (spec.kind.name, what(spec)))
    };
    assert_eq!(of(&|spec| rows(page, spec.kind.name)), of(&accesses), "docs/accesses.md");
}
