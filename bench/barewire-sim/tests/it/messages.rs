//! Random messages through ECSPI on the simulated board.

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire_sim::bring_up::{bus, ecspi_interrupt};
use barewire_sim::{Board, BoardOptions, BoardSpec};
use proptest::prelude::*;

use crate::driver::{Driver, Waits};
use crate::random;
use crate::random::{Asks, Message, USUAL, cases, messages};

const ASKS: Asks = Asks {
    chip_select: &[(3, 0..=0), (1, 1..=1)],
    speed_hz: &[
        (1, 20_000_000..=20_000_000),
        (1, 80_000_000..=80_000_000),
        (1, 1_000_000..=1_000_000),
        (1, 20_000..=99_999_999),
    ],
    bits: &[(1, 8..=8), (1, 16..=16), (1, 32..=32)],
    own_bits: &[(9, 0..=0), (1, 8..=8), (1, 16..=16), (1, 32..=32)],
    words: &[(1, 0..=0), (1, 1..=7), (1, 1..=69), (1, 60..=139), (1, 500..=1_199)],
    native: one_burst_each,
    ..USUAL
};

/// What the block's own select line can do: one burst each, pulsed between.
fn one_burst_each(message: &mut Message) {
    let last = message.pieces.len() - 1;
    for (index, piece) in message.pieces.iter_mut().enumerate() {
        piece.words %= 65;
        piece.word_delay_ns = 0;
        piece.delay_ns = 0;
        piece.speed_hz = 0;
        piece.cs_change = index < last;
    }
    message.cs_setup_ns = message.cs_setup_ns.min(700);
    message.cs_hold_ns = 0;
}

struct Ecspi;

impl Driver for Ecspi {
    fn polled(&self, board: &Board) -> Bus<impl Controller> {
        bus(board)
    }

    fn interrupted(&self, board: &Board, limit_ns: u32) -> impl Controller {
        ecspi_interrupt(board, limit_ns)
    }
}

fn run(board: &str, messages: &[Message], waits: Waits) -> Result<u64, TestCaseError> {
    let board = Board::new(BoardSpec::find(board).expect("a board"), BoardOptions::default());
    random::run(&ASKS, &Ecspi, &board, waits, messages)
}

proptest! {
    #![proptest_config(cases(48, 512))]

    #[test]
    fn random_messages_arrive_whole_and_in_time(
        messages in messages(&ASKS),
        board in prop_oneof![Just("imx8mp"), Just("sabrelite")],
    ) {
        let once = run(board, &messages, Waits::Polling)?;
        let again = run(board, &messages, Waits::Polling)?;
        prop_assert_eq!(once, again, "the same program has the same trace");
    }

    /// The bytes are those that polling gives: the model's.
    #[test]
    fn random_messages_arrive_whole_by_interrupt(
        messages in messages(&ASKS),
        board in prop_oneof![Just("imx8mp"), Just("sabrelite")],
        limit_ns in prop_oneof![Just(0), 0_u32..200_000],
    ) {
        run(board, &messages, Waits::Asleep(limit_ns))?;
        run(board, &messages, Waits::ByHandler(limit_ns))?;
    }
}
