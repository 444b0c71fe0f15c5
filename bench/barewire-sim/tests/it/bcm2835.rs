//! The BCM2835 driver judged in simulation: the conformance suite through a jumper, random messages
//! in front of a chip that is strict, what a sample costs, and a reviewed table of accesses.
//!
//! Set `BAREWIRE_BLESS=1` to write the table anew; the difference is then for a reviewer.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::chip::mcp3008::{Input, MCP3008};
use barewire::controller::Controller;
use barewire::spi::{Mode, Settings};
use barewire_sim::bring_up::{Charged, bcm2835, bcm2835_interrupt};
use barewire_sim::model::BlockOptions;
use barewire_sim::model::bcm2835::Done;
use barewire_sim::model::jumper::Jumper;
use barewire_sim::{Board, BoardOptions, BoardSpec};
use proptest::prelude::*;

use crate::conforms::{self, Lengths};
use crate::driver::{Driver, Waits};
use crate::random;
use crate::random::{Asks, Message, USUAL, cases, messages};
use crate::selection;
use crate::snapshot;

fn board() -> Board {
    board_with(Done::ReadOnly, 0)
}

/// A board with this reading of DONE, whose every access may take `jitter_ns` longer.
fn board_with(done: Done, jitter_ns: u64) -> Board {
    let options = BoardOptions {
        blocks: BlockOptions::default().with(done),
        jitter_ps: jitter_ns * 1_000,
        seed: 5,
        ..BoardOptions::default()
    };
    Board::new(BoardSpec::find("rpi3").expect("a board"), options)
}

struct Bcm2835;

impl Driver for Bcm2835 {
    fn polled(&self, board: &Board) -> Bus<impl Controller> {
        Bus::new(bcm2835(board))
    }

    fn interrupted(&self, board: &Board, limit_ns: u32) -> impl Controller {
        bcm2835_interrupt(board, limit_ns)
    }
}

/// Under both readings of DONE, in time and late: with 20 us an access the block runs dry at 20 MHz.
fn passes_every_case(waits: Waits, settings: Settings, lengths: Lengths) {
    let short = Lengths::Short;
    let boards =
        [(Done::ReadOnly, 0, lengths), (Done::Needed, 0, short), (Done::Needed, 20_000, short)];
    for (done, jitter_ns, lengths) in boards {
        let board = board_with(done, jitter_ns);
        assert!(board.attach(settings.chip_select, Rc::new(RefCell::new(Jumper))));
        Bcm2835.on_bus(&board, waits, |bus| {
            conforms::passes_every_case(&board, bus, &settings, lengths)
        });
    }
}

#[test]
fn every_case_passes_on_a_pin() {
    passes_every_case(Waits::Polling, Settings::new(0, 20_000_000), Lengths::All);
}

#[test]
fn every_case_passes_on_the_block_s_own_line() {
    passes_every_case(
        Waits::Polling,
        Settings::new(1, 20_000_000).with_mode(Mode::CPHA),
        Lengths::Short,
    );
}

#[test]
fn every_case_passes_asleep_until_it_interrupts() {
    passes_every_case(
        Waits::Asleep(0),
        Settings::new(0, 20_000_000).with_mode(Mode::CPOL),
        Lengths::All,
    );
}

#[test]
fn every_case_passes_by_its_handler() {
    passes_every_case(Waits::ByHandler(0), Settings::new(1, 20_000_000), Lengths::All);
}

const ASKS: Asks = Asks {
    speed_hz: &[
        (1, 3_600_000..=3_600_000),
        (1, 200_000_000..=200_000_000),
        (1, 400_000_000..=400_000_000),
        (1, 20_000..=99_999_999),
    ],
    words: &[(1, 0..=0), (1, 1..=7), (1, 1..=69), (1, 60..=139), (1, 500..=699)],
    native: without_own_speeds,
    // Nine clocks a byte, the last one's ninth behind its back.
    rest_clocks: 1,
    unwaited_clocks: 1,
    selects_without_words: true,
    ..USUAL
};

/// What the block's own line cannot do.
fn without_own_speeds(message: &mut Message) {
    message.pieces.iter_mut().for_each(|piece| piece.speed_hz = 0);
}

fn run_all(messages: &[Message], waits: Waits, late: Late) -> Result<u64, TestCaseError> {
    random::run(&ASKS, &Bcm2835, &board_with(late.0, late.1), waits, messages)
}

/// How DONE is read, and how late accesses may be.
type Late = (Done, u64);

proptest! {
    #![proptest_config(cases(48, 512))]

    #[test]
    fn random_messages_arrive_whole_and_in_time(
        messages in messages(&ASKS),
        limit_ns in prop_oneof![Just(0), 0_u32..200_000],
        done in prop_oneof![Just(Done::ReadOnly), Just(Done::Needed)],
        jitter_ns in prop_oneof![Just(0), 0_u64..30_000],
    ) {
        let late = (done, jitter_ns);
        let once = run_all(&messages, Waits::Polling, late)?;
        let again = run_all(&messages, Waits::Polling, late)?;
        prop_assert_eq!(once, again, "the same program has the same trace");
        run_all(&messages, Waits::Asleep(limit_ns), late)?;
        run_all(&messages, Waits::ByHandler(limit_ns), late)?;
    }
}

/// The chip's tCSH and tSUCS are checked at the wire.
#[test]
fn a_converter_is_read_more_than_115_000_times_a_second() {
    const SAMPLES: u64 = 1_000;
    let board = board();
    board.attach_adc().expect("the board has a converter");
    let bus = Bus::new(Charged::new(bcm2835(&board), board.clone()));
    let settings = MCP3008.settings(0, 3_600_000, 5_000).expect("its clock's limit");
    for settings in [settings, Settings { cs_setup_ns: 100, cs_inactive_ns: 270, ..settings }] {
        let device = bus.device(&settings).expect("opens");
        assert_eq!(device.effective().speed_hz, 3_571_428);
        let command = MCP3008.command(Input::Single(0)).expect("a channel");
        let bytes: [u8; 3] = command.bytes().try_into().expect("of 3 bytes");
        let mut sample = device.prepare(bytes).expect("prepares");
        sample.run().expect("runs");
        board.reset_marks();
        for _ in 0..SAMPLES {
            let rx = sample.run().expect("runs");
            MCP3008.decode(rx).expect("a converter answers");
        }
        let samples_per_s = SAMPLES * 1_000_000_000_000 / board.elapsed_ps();
        let writes: u64 = board.access_counts().iter().map(|block| block.writes).sum();
        assert_eq!(writes, 6 * SAMPLES, "two edges, three bytes and DONE");
        assert!(samples_per_s >= 115_000, "{samples_per_s}");
        assert!(board.violations().is_empty(), "{:#?}", board.violations());
    }
}

const HEADER: &str = "\
BCM2835 SPI0 register accesses per message, simulated on rpi3, the device's second message.
lead, clocks and lag are nanoseconds from CS to the first cell, to the last one's end, to CS; lag
begins with the last byte's ninth clock. call is virtual nanoseconds with the profile's costs.

line  speed_hz  bytes  writes   reads  barriers  lead    clocks  lag      call
";

fn row(cs: u8, speed_hz: u32, bytes: usize) -> String {
    let board = board();
    let settings = Settings::new(cs, speed_hz);
    let it = selection::exchange(&board, bcm2835, &settings, bytes);
    format!(
        "{:<6}{:>8}{:>7}{:>8}{:>8}{:>10}{:>6}{:>10}{:>5}{:>10}\n",
        if cs == 0 { "gpio" } else { "ce1" },
        it.speed_hz,
        bytes,
        it.cost.writes,
        it.cost.reads,
        it.cost.barriers,
        it.lead_ns,
        it.clocks_ns,
        it.lag_ns,
        it.cost.call_ns,
    )
}

#[test]
fn accesses_per_message_are_as_reviewed() {
    let mut table = String::from(HEADER);
    for (cs, speed_hz) in [(0, 3_600_000), (0, 20_000_000), (1, 3_600_000)] {
        for bytes in [1, 3, 16, 64, 256, 4096] {
            table += &row(cs, speed_hz, bytes);
        }
    }
    snapshot::check("bcm2835_accesses.txt", &table);
}
