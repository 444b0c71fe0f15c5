//! The DW_apb_ssi driver judged in simulation: the conformance suite by loopback and through a jumper,
//! random messages in front of a chip that is strict, the block's own select line, and what a message
//! costs, as a reviewed table.
//!
//! Set `BAREWIRE_BLESS=1` to write the table anew; the difference is then for a reviewer.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::reg::Registers;
use barewire::spi::{Error, MODE_0, MODE_1, MODE_2, MODE_3, Mode, Settings, Transfer};
use barewire_sim::bring_up::{dw_ssi, dw_ssi_interrupt};
use barewire_sim::model::echo::Echo;
use barewire_sim::model::jumper::Jumper;
use barewire_sim::{Board, BoardOptions, BoardSpec, Rule};
use proptest::prelude::*;

use crate::conforms::{self, Lengths};
use crate::driver::{Driver, Waits};
use crate::random;
use crate::random::{Asks, Message, USUAL, cases, messages};
use crate::selection;
use crate::snapshot;

fn board() -> Board {
    late_board(0)
}

/// A board whose every access may take `jitter_ns` longer.
fn late_board(jitter_ns: u64) -> Board {
    let options = BoardOptions { jitter_ps: jitter_ns * 1_000, ..BoardOptions::default() };
    Board::new(BoardSpec::find("rpi5").expect("a board"), options)
}

struct DwSsi;

impl Driver for DwSsi {
    fn polled(&self, board: &Board) -> Bus<impl Controller> {
        Bus::new(dw_ssi(board))
    }

    fn interrupted(&self, board: &Board, limit_ns: u32) -> impl Controller {
        dw_ssi_interrupt(board, limit_ns)
    }
}

fn passes_every_case(waits: Waits, settings: Settings, lengths: Lengths) {
    let board = board();
    if !settings.mode.contains(Mode::LOOP) {
        assert!(board.attach(settings.chip_select, Rc::new(RefCell::new(Jumper))));
    }
    DwSsi.on_bus(&board, waits, |bus| conforms::passes_every_case(&board, bus, &settings, lengths));
}

const FAST: Settings = Settings::new(0, 20_000_000);

#[test]
fn every_case_passes_in_loopback() {
    passes_every_case(Waits::Polling, FAST.with_mode(Mode::LOOP), Lengths::All);
}

#[test]
fn every_case_passes_through_a_jumper() {
    passes_every_case(Waits::Polling, FAST.with_mode(MODE_3), Lengths::Short);
    passes_every_case(Waits::Polling, Settings::new(0, 50_000_000), Lengths::Short);
}

#[test]
fn every_case_passes_asleep_until_it_interrupts() {
    passes_every_case(Waits::Asleep(0), FAST.with_mode(MODE_2), Lengths::All);
    passes_every_case(Waits::Asleep(0), FAST.with_mode(MODE_1 | Mode::LOOP), Lengths::Short);
}

#[test]
fn every_case_passes_by_its_handler() {
    passes_every_case(Waits::ByHandler(0), FAST, Lengths::All);
    passes_every_case(Waits::ByHandler(0), FAST.with_mode(MODE_3), Lengths::Short);
}

const ASKS: Asks = Asks {
    chip_select: &[(3, 0..=0), (1, 1..=1)],
    speed_hz: &[
        (1, 3_600_000..=3_600_000),
        (1, 100_000_000..=100_000_000),
        (1, 20_000..=99_999_999),
    ],
    bits: &[(2, 8..=8), (1, 16..=16), (1, 32..=32)],
    own_bits: &[(9, 0..=0), (1, 8..=8), (1, 16..=16), (1, 32..=32)],
    words: &[(1, 0..=0), (1, 1..=9), (1, 4..=39), (1, 60..=139), (1, 250..=599)],
    native: one_fifo_each,
    ..USUAL
};

/// What the block's own select line can do: what its FIFO holds each, pulsed between.
fn one_fifo_each(message: &mut Message) {
    let last = message.pieces.len() - 1;
    for (index, piece) in message.pieces.iter_mut().enumerate() {
        piece.words %= 65;
        piece.word_delay_ns = 0;
        piece.delay_ns = 0;
        piece.cs_change = index < last;
    }
    (message.cs_setup_ns, message.cs_hold_ns) = (0, 0);
}

fn run_all(messages: &[Message], waits: Waits, jitter_ns: u64) -> Result<u64, TestCaseError> {
    random::run(&ASKS, &DwSsi, &late_board(jitter_ns), waits, messages)
}

proptest! {
    #![proptest_config(cases(48, 512))]

    #[test]
    fn random_messages_arrive_whole_and_in_time(
        messages in messages(&ASKS),
        limit_ns in prop_oneof![Just(0), 0_u32..200_000],
        jitter_ns in prop_oneof![Just(0), 0_u64..3_000],
    ) {
        let once = run_all(&messages, Waits::Polling, jitter_ns)?;
        let again = run_all(&messages, Waits::Polling, jitter_ns)?;
        prop_assert_eq!(once, again, "the same program has the same trace");
        run_all(&messages, Waits::Asleep(limit_ns), jitter_ns)?;
        run_all(&messages, Waits::ByHandler(limit_ns), jitter_ns)?;
    }
}

/// The last word is there half a clock before the last clock is over: at a slow clock that is longer
/// than any access, and a chip select that moved before would be seen.
#[test]
fn a_slow_clock_is_over_before_its_chip_is_released() {
    for waits in [Waits::Polling, Waits::Asleep(0), Waits::ByHandler(0)] {
        for mode in [MODE_0, MODE_1, MODE_2, MODE_3] {
            let board = board();
            assert!(board.attach(0, Rc::new(RefCell::new(Jumper))));
            DwSsi.on_bus(&board, waits, |bus| {
                let device = bus.device(&Settings::new(0, 50_000).with_mode(mode)).expect("opens");
                for len in [1, 2, 3, 4, 5, 8, 9, 16] {
                    let mut bytes: Vec<u8> = (1..=len).collect();
                    let ran = device.sync(&mut [Transfer::in_place(&mut bytes)]);
                    assert_eq!((ran, bytes), (Ok(len.into()), (1..=len).collect()));
                }
            });
            assert!(board.violations().is_empty(), "{waits:?} {mode:?}: {:#?}", board.violations());
        }
    }
}

/// What is taken on the block's own line is under one select, however slow the processor or long
/// an interrupt takes.
#[test]
fn what_is_taken_on_the_block_s_own_line_does_not_pulse() {
    for (mode, speed_hz, jitter_ns) in
        [(MODE_0, 1_000_000, 0), (MODE_1, 100_000_000, 0), (MODE_3, 100_000_000, 5_000)]
    {
        for waits in [Waits::Polling, Waits::Asleep(0), Waits::ByHandler(0)] {
            let board = late_board(jitter_ns);
            let chip = Rc::new(RefCell::new(Echo::default()));
            assert!(board.attach(1, chip.clone()));
            let settings = Settings::new(1, speed_hz).with_mode(mode);
            let lengths = [1, 2, 3, 4, 5, 63, 64, 66, 128, 192, 256];
            DwSsi.on_bus(&board, waits, |bus| {
                let device = bus.device(&settings).expect("opens");
                for len in lengths {
                    let bytes: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
                    let mut message =
                        [Transfer::write(&bytes).with_cs_change(), Transfer::write(&bytes)];
                    assert_eq!(device.sync(&mut message), Ok(2 * bytes.len()));
                }
                for (len, max_bytes) in [(260, 256), (65, 64), (130, 128), (195, 192)] {
                    let mut beyond = [Transfer::write(&[0; 260][..len])];
                    let error = device.sync(&mut beyond).expect_err("would pulse").error;
                    assert_eq!(error, Error::NativeCsWouldPulse { max_bytes }, "{len}");
                }
            });
            assert_eq!(chip.borrow().selections(), 2 * lengths.len() as u64);
            assert!(board.violations().is_empty(), "{:#?}", board.violations());
        }
    }
}

/// A previous owner of the block died in the middle of a message.
#[test]
fn whatever_was_left_in_the_block_no_chip_hears() {
    for (enabled, words) in [(0, 0), (1, 0), (1, 1), (1, 64)] {
        let board = board();
        let chip = Rc::new(RefCell::new(Echo::default()));
        assert!(board.attach(0, chip.clone()));
        let mut regs = board.controller();
        for (offset, value) in [(0x00, 31 << 16), (0x14, 1_000), (0x10, 1), (0x4c, 3)] {
            regs.write(offset, value);
        }
        regs.write(0x08, enabled);
        (0..words).for_each(|word| regs.write(0x60, word));
        let bus = Bus::new(dw_ssi(&board));
        let device = bus.device(&FAST.with_mode(MODE_3)).expect("opens");
        let mut bytes = [1, 2, 3, 4, 5];
        device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
        assert_eq!(bytes, [0, 1, 2, 3, 4], "the chip's byte before, and nothing left over");
        assert_eq!(chip.borrow().received(), [1, 2, 3, 4, 5]);
        let rules: Vec<Rule> = board.violations().iter().map(|found| found.rule).collect();
        assert!(rules.iter().all(|&rule| rule == Rule::ClockWithoutCs), "{rules:?}");
    }
}

const HEADER: &str = "\
DW_apb_ssi register accesses per message, simulated on rpi5, the device's second message.
lead, clocks and lag are nanoseconds from CS to the first cell, to the last one's end, to CS. call
is virtual nanoseconds with the profile's costs: a read takes a microsecond, a write 25 ns.

line    speed_hz  bytes  writes   reads  barriers  lead   clocks    lag     call
";

fn row(cs: u8, speed_hz: u32, bytes: usize) -> String {
    let board = board();
    let settings = Settings::new(cs, speed_hz);
    let it = selection::exchange(&board, dw_ssi, &settings, bytes);
    format!(
        "{:<7}{:>9}{:>7}{:>8}{:>8}{:>10}{:>6}{:>9}{:>7}{:>9}\n",
        if cs == 0 { "gpio" } else { "native" },
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
    for (cs, speed_hz, lengths) in [
        (0, 3_600_000, &[1, 3, 16, 64, 256][..]),
        (0, 20_000_000, &[1, 3, 4, 5, 16, 64, 256, 257, 4096]),
        (0, 50_000_000, &[1, 4, 256, 4096]),
        (1, 20_000_000, &[1, 3, 4, 16, 256]),
    ] {
        for &bytes in lengths {
            table += &row(cs, speed_hz, bytes);
        }
    }
    snapshot::check("dw_ssi_accesses.txt", &table);
}
