//! The controllers that the judges judge: a table with a row for each block.
//!
//! A judge is a module beside this one. It says once what it asks of a driver and the model of its block, and
//! `on_every_block!` makes a test of it for each row. So a new block is one row in `rows` and its name in
//! `on_every_block!`, and a new judge is one module and its `mod` line in `main.rs`.

mod rows;
mod watched;

use barewire::controller::Controller;
use barewire::spi::Mode;
use barewire_sim::board::shipped::kinds_without;
use barewire_sim::board::spec::CsSpec;
use barewire_sim::bring_up::{SimInterrupt, any, any_interrupt};
use barewire_sim::model::{BlockOptions, ControllerKind};
use barewire_sim::profile::CostLevel;
use barewire_sim::wire::Driver;
use barewire_sim::{Board, BoardOptions, BoardSpec};

use crate::random::Asks;
pub(crate) use rows::*;
pub(crate) use watched::{Access, Claim, TapedBoard};

/// Starts a driver; with a limit in nanoseconds, transfers that take longer on the wire wait by interrupt.
pub(crate) type Start = fn(&Board, Option<u32>) -> Box<dyn Controller>;

/// A way in which a block is built, behaves where its manual leaves it open, or is driven.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub name: &'static str,
    pub start: Start,
    /// The same block with other build options. It supports only certain lengths and words, so
    /// random messages are not run on it.
    pub kind: Option<&'static ControllerKind>,
    pub options: fn() -> BlockOptions,
    /// The longest that an access may take longer in random messages, in nanoseconds.
    pub late_ns: u64,
    /// Whether only polling software is fast enough.
    pub polled_only: bool,
    /// The board's costs: some ways lose words where a register takes longer than a word.
    pub costs: CostLevel,
    /// Whether its register accesses differ from those of the other ways.
    pub scripted: bool,
}

/// The shipped driver, as it is started without choices.
const USUAL_WAY: Way = Way {
    name: "usual",
    start: |board, limit_ns| match limit_ns {
        None => Box::new(any(board)),
        Some(limit_ns) => Box::new(any_interrupt(board, limit_ns, SimInterrupt::new(board))),
    },
    kind: None,
    options: BlockOptions::default,
    late_ns: 3_000,
    polled_only: false,
    costs: CostLevel::Used,
    scripted: true,
};

/// Exchanges of the same kind whose cost is a row of a table each.
pub(crate) struct Exchanges {
    pub way: usize,
    pub cs: u8,
    pub mode: Mode,
    pub speed_hz: u32,
    /// Lengths of the transfers of a message.
    pub shapes: &'static [&'static [usize]],
}

/// Transfers of one mode and word length on a line that is active for one burst.
pub(crate) struct Burst {
    pub mode: Mode,
    pub bits: u8,
    /// Lengths that the block accepts.
    pub taken: &'static [usize],
    /// Lengths that are refused, and the longest that the error names.
    pub refused: &'static [(usize, usize)],
}

/// How another program makes a block lose words.
#[derive(Clone, Copy)]
pub(crate) struct Overfill {
    /// How many words the transmit FIFO takes.
    pub words: u32,
    /// A register and the bit of it that is set while words are on the wire.
    pub busy: (u32, u32),
}

/// Writes to registers: offsets and values.
pub(crate) type Writes = &'static [(u32, u32)];

/// A row: a block, a board that has it, and facts from its manual.
pub(crate) struct Block {
    pub name: &'static str,
    pub board: &'static str,
    /// The registers for reading and writing words.
    pub data_in: u32,
    pub data_out: u32,
    /// Starts the usual driver on a bank of pins with which every message takes the driver's loop.
    pub long: Start,
    /// The first is the usual one.
    pub ways: &'static [Way],
    /// The ranges that random messages draw from. Chip select 0 is on a GPIO, 1 is the block's own line.
    pub asks: Asks,
    /// Whether the block's own line stays active through messages of any form at one speed.
    pub holds: bool,
    /// Bytes of a message that does not fit its FIFO, and takes several interrupts.
    pub longer: usize,
    /// For a block whose own line is active for one burst: the bursts it takes.
    pub bursts: &'static [Burst],
    /// Whether a reset empties the transmit FIFO of a block whose clock stands still.
    pub forgets: bool,
    /// How another program makes it lose words so that the message misses some.
    pub overfill: Option<Overfill>,
    /// Where a block says that it lost a word: a register and its bit.
    pub lost: Option<(u32, u32)>,
    /// Where a block says that all is over: a register, its bit, and the bit that says that words are there.
    pub early: Option<(u32, u32, u32)>,
    /// Whether the block loops back.
    pub loops: bool,
    /// A clock so slow that the last half of it is longer than any access.
    pub slow_hz: u32,
    /// Register values that a previous owner may have left.
    pub left: &'static [Writes],
    /// The same of the GPIO bank.
    pub pins_left: Writes,
    /// How many bytes may reach the chip on the block's own line while the block is brought up.
    pub stray_max: usize,
    pub exchanges: &'static [Exchanges],
}

impl Block {
    /// The usual board, whose accesses take up to `jitter_ns` longer.
    pub(crate) fn board(&self, way: &Way, jitter_ns: u64) -> Board {
        let options = BoardOptions {
            blocks: (way.options)(),
            jitter_ps: jitter_ns * 1_000,
            seed: 5,
            ..BoardOptions::default()
        };
        Board::new(self.spec(way), options)
    }

    fn spec(&self, way: &Way) -> &'static BoardSpec {
        let spec = BoardSpec::find(self.board).expect("a board");
        match (way.kind, way.costs) {
            (None, CostLevel::Used) => spec,
            (kind, costs) => {
                let kind = kind.unwrap_or(spec.kind);
                let profile = spec.profile.at(costs);
                Box::leak(Box::new(BoardSpec { kind, profile, ..spec.clone() }))
            }
        }
    }

    /// A board whose controller's accesses are on a tape.
    pub(crate) fn taped(&'static self, way: &Way) -> TapedBoard {
        TapedBoard::new(self.spec(way), (way.options)())
    }

    /// The same, with other chip selects: a driver and whether it is active high.
    pub(crate) fn taped_with(&'static self, lines: &[(Driver, bool)]) -> TapedBoard {
        let line = |&(driver, active_high): &_| CsSpec {
            active_high,
            driver,
            ..CsSpec::native("a line", 0)
        };
        let cs: Vec<CsSpec> = lines.iter().map(line).collect();
        let spec = BoardSpec { cs: cs.leak(), ..self.spec(self.usual()).clone() };
        TapedBoard::new(Box::leak(Box::new(spec)), (self.usual().options)())
    }

    /// The pin of chip select 0.
    pub(crate) fn pin(&self) -> Driver {
        self.spec(self.usual()).cs[0].driver
    }

    /// Whether a chip on a GPIO and one on the block's own line can be beside each other.
    pub(crate) fn has_both_lines(&self) -> bool {
        self.asks.chip_select.iter().any(|(_, lines)| lines.contains(&1))
    }

    /// The name of the register at `offset`.
    pub(crate) fn register(&self, offset: u32) -> &'static str {
        let found = self.spec(self.usual()).register_name(0, offset);
        found.unwrap_or_else(|| panic!("{}: name the register at {offset:#x}", self.name))
    }

    pub(crate) fn usual(&self) -> &'static Way {
        &self.ways[0]
    }
}

/// Makes a test of a judge for each row; `list [rows]` is an array of the rows.
macro_rules! on_every_block {
    (list $what:tt) => {
        crate::blocks::on_every_block! { $what atmel ATMEL, bcm2835 BCM2835, cadence CADENCE, dw_ssi DW_SSI, ecspi ECSPI,
        mcspi MCSPI, pl022 PL022, sifive SIFIVE }
    };
    ([rows] $($name:ident $row:ident),+) => {
        [$(&crate::blocks::$row),+]
    };
    ([tests $judge:ident] $($name:ident $row:ident),+) => {
        mod $judge {
            $(#[test]
            fn $name() {
                super::$judge(&crate::blocks::$row);
            })+
        }
    };
    ($judge:ident) => {
        crate::blocks::on_every_block! { list [tests $judge] }
    };
}
pub(crate) use on_every_block;

#[test]
fn every_block_has_a_row() {
    let rows = on_every_block! { list [rows] };
    let missing = kinds_without(&rows.map(|row| row.board));
    assert_eq!(missing, [""; 0], "add a row to blocks/rows.rs, and its name to `on_every_block!`");
}
