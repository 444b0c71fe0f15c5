//! Random messages through Atmel's SPI on the simulated board.

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::controller::atmel::{PeripheralSelect, Pipe};
use barewire_sim::bring_up::{Charged, atmel_interrupt_with, atmel_with};
use barewire_sim::{Board, BoardOptions, BoardSpec};
use proptest::prelude::*;

use crate::driver::{Driver, Waits};
use crate::random::{Asks, USUAL, Weighted, cases, messages, run};

/// Beyond 61,818 ns it is the timer's.
const WORD_DELAYS_NS: Weighted<u32> = &[(8, 0..=0), (2, 1..=2_999), (1, 60_000..=63_999)];

const ASKS: Asks = Asks {
    speed_hz: &[
        (1, 26_400_000..=26_400_000),
        (1, 66_000_000..=66_000_000),
        (1, 600_000..=600_000),
        (1, 520_000..=139_999_999),
    ],
    bits: &[(1, 8..=8), (1, 16..=16)],
    own_bits: &[(6, 0..=0), (1, 8..=8), (1, 16..=16)],
    words: &[(1, 0..=0), (1, 1..=7), (1, 1..=39)],
    // What the block's own line can wait before its first clock.
    delay_ns: &[(4, 0..=0), (1, 1..=1_899)],
    cs_inactive_ns: &[(4, 0..=0), (1, 1..=1_899), (5, 1_900..=2_999)],
    word_delay_ns: WORD_DELAYS_NS,
    own_word_delay_ns: WORD_DELAYS_NS,
    setup_is_first_half: true,
    // The block does, before it selects again.
    waits_inactive: false,
    ..USUAL
};

fn board() -> Board {
    Board::new(BoardSpec::find("sama5d36").expect("a board"), BoardOptions::default())
}

struct Atmel(Pipe, PeripheralSelect);

impl Driver for Atmel {
    fn polled(&self, board: &Board) -> Bus<impl Controller> {
        Bus::new(Charged::new(atmel_with(board, self.0, self.1), board.clone()))
    }

    fn interrupted(&self, board: &Board, limit_ns: u32) -> impl Controller {
        atmel_interrupt_with(board, self.0, limit_ns)
    }
}

proptest! {
    #![proptest_config(cases(64, 512))]

    #[test]
    fn random_messages_arrive_whole_and_in_time(messages in messages(&ASKS)) {
        for pipe in [Pipe::WaitDataRead, Pipe::OneWord] {
            for select in [PeripheralSelect::Fixed, PeripheralSelect::Variable] {
                run(&ASKS, &Atmel(pipe, select), &board(), Waits::Polling, &messages)?;
            }
        }
    }

    /// The bytes are those that polling gives: the model's.
    #[test]
    fn random_messages_arrive_whole_by_interrupt(
        messages in messages(&ASKS),
        limit_ns in prop_oneof![Just(0), 0_u32..100_000],
    ) {
        for pipe in [Pipe::WaitDataRead, Pipe::OneWord] {
            for waits in [Waits::Asleep(limit_ns), Waits::ByHandler(limit_ns)] {
                run(&ASKS, &Atmel(pipe, PeripheralSelect::Fixed), &board(), waits, &messages)?;
            }
        }
    }
}
