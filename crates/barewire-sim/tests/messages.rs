//! Random messages on the simulated board: the bytes are the model's, and no checker complains.

mod by_handler;

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::{Mode, Settings, Transfer};
use barewire_sim::bring_up::{bus, ecspi_interrupt};
use barewire_sim::chip::WireLimits;
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions, BoardSpec};
use by_handler::ByHandler;
use proptest::prelude::*;

/// One transfer, as numbers.
#[derive(Clone, Debug)]
struct Piece {
    words: usize,
    kind: u8,
    cs_change: bool,
    delay_ns: u32,
    cs_change_delay_ns: u32,
    word_delay_ns: u32,
    speed_hz: u32,
    bits: u8,
}

#[derive(Clone, Debug)]
struct Message {
    native: bool,
    mode: u8,
    speed_hz: u32,
    bits: u8,
    cs_setup_ns: u32,
    cs_hold_ns: u32,
    cs_inactive_ns: u32,
    pieces: Vec<Piece>,
}

fn a_speed() -> impl Strategy<Value = u32> {
    prop_oneof![Just(20_000_000), Just(80_000_000), Just(1_000_000), 20_000_u32..100_000_000]
}

fn a_delay() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(0), 1 => 1_u32..3_000]
}

fn bits() -> impl Strategy<Value = u8> {
    prop_oneof![Just(8), Just(16), Just(32)]
}

prop_compose! {
    fn a_piece()(
        words in prop_oneof![Just(0_usize), 1_usize..8, 1_usize..70, 60_usize..140, 500_usize..1_200],
        kind in 0_u8..4,
        cs_change in any::<bool>(),
        delay_ns in a_delay(),
        cs_change_delay_ns in a_delay(),
        word_delay_ns in prop_oneof![8 => Just(0_u32), 1 => 1_u32..3_000],
        speed_hz in prop_oneof![3 => Just(0), 1 => a_speed()],
        bits in prop_oneof![3 => Just(0), 1 => bits()],
    ) -> Piece {
        Piece { words, kind, cs_change, delay_ns, cs_change_delay_ns, word_delay_ns, speed_hz, bits }
    }
}

prop_compose! {
    fn a_message()(
        native in prop::bool::weighted(0.25),
        mode in 0_u8..4,
        speed_hz in a_speed(),
        bits in bits(),
        cs_setup_ns in a_delay(),
        cs_hold_ns in a_delay(),
        cs_inactive_ns in a_delay(),
        mut pieces in prop::collection::vec(a_piece(), 1..5),
    ) -> Message {
        let last = pieces.len() - 1;
        pieces[last].cs_change = false;
        if native {
            // What the block's own select line can do: one burst each, pulsed between.
            for (index, piece) in pieces.iter_mut().enumerate() {
                piece.words %= 129;
                piece.word_delay_ns = 0;
                piece.delay_ns = 0;
                piece.speed_hz = 0;
                piece.cs_change = index < last;
            }
            let cs_setup_ns = cs_setup_ns.min(700);
            return Message { native, mode, speed_hz, bits, cs_setup_ns, cs_hold_ns: 0, cs_inactive_ns, pieces };
        }
        Message { native, mode, speed_hz, bits, cs_setup_ns, cs_hold_ns, cs_inactive_ns, pieces }
    }
}

/// Memory order to wire order and back: words lie in the CPU's order and go out whole.
fn swapped(bytes: &[u8], bits: u8) -> Vec<u8> {
    let word = usize::from(bits / 8);
    let flip = |chunk: &[u8]| -> Vec<u8> {
        if cfg!(target_endian = "little") {
            chunk.iter().rev().copied().collect()
        } else {
            chunk.to_vec()
        }
    };
    bytes.chunks(word).flat_map(flip).collect()
}

/// What a piece has to take at least: its clocks at the asked speed and every delay asked.
fn asked_ns(message: &Message, piece: &Piece) -> u64 {
    let bits = if piece.bits == 0 { message.bits } else { piece.bits };
    let speed_hz = if piece.speed_hz == 0 { message.speed_hz } else { piece.speed_hz };
    let words = piece.words as u64;
    let clocks_ns = words * u64::from(bits) * 1_000_000_000 / u64::from(speed_hz);
    let gaps_ns = words.saturating_sub(1) * u64::from(piece.word_delay_ns);
    let inactive_ns =
        if piece.cs_change { piece.cs_change_delay_ns.max(message.cs_inactive_ns) } else { 0 };
    clocks_ns + gaps_ns + u64::from(piece.delay_ns) + u64::from(inactive_ns)
}

/// How the end of a transfer is awaited that takes longer than a limit in nanoseconds.
#[derive(Clone, Copy, Debug)]
enum Waits {
    Polling,
    Asleep(u32),
    ByHandler(u32),
}

fn run(board_name: &str, messages: &[Message], waits: Waits) -> Result<u64, TestCaseError> {
    let spec = BoardSpec::find(board_name).expect("a board");
    let board = Board::new(spec, BoardOptions::default());
    match waits {
        Waits::Polling => run_on(&board, &bus(&board), messages),
        Waits::Asleep(limit_ns) => {
            run_on(&board, &Bus::new(ecspi_interrupt(&board, limit_ns)), messages)
        }
        Waits::ByHandler(limit_ns) => {
            let inner = ecspi_interrupt(&board, limit_ns);
            let bus = Bus::new(ByHandler { inner, board: board.clone(), interrupts: 0 });
            run_on(&board, &bus, messages)
        }
    }
}

fn run_on(
    board: &Board,
    bus: &Bus<impl Controller>,
    messages: &[Message],
) -> Result<u64, TestCaseError> {
    let mut counter = 0_u8;
    // The shift register of each chip: what it gives next.
    let mut held = [0_u8; 2];
    for message in messages {
        // A chip that asks of the wire exactly what the device was asked to give.
        let limits = WireLimits {
            modes: 0b1111,
            cs_setup_ns: message.cs_setup_ns.into(),
            cs_hold_ns: message.cs_hold_ns.into(),
            cs_inactive_ns: message.cs_inactive_ns.into(),
            max_clock_hz: u32::MAX,
        };
        let cs = u8::from(message.native);
        let chip = Rc::new(RefCell::new(Echo::new(limits)));
        prop_assert!(board.attach(cs, chip.clone()));
        held[usize::from(cs)] = 0;
        let settings = Settings {
            mode: Mode::from_number(message.mode).expect("0 to 3"),
            bits_per_word: message.bits,
            cs_setup_ns: message.cs_setup_ns,
            cs_hold_ns: message.cs_hold_ns,
            cs_inactive_ns: message.cs_inactive_ns,
            ..Settings::new(cs, message.speed_hz)
        };
        let device = bus.device(&settings).expect("the block can do it");
        prop_assert!(device.effective().speed_hz <= message.speed_hz);
        prop_assert!(device.effective().cs_setup_ns >= u64::from(message.cs_setup_ns));

        let bits_of = |piece: &Piece| if piece.bits == 0 { message.bits } else { piece.bits };
        let mut buffers: Vec<(Vec<u8>, Vec<u8>)> = message
            .pieces
            .iter()
            .map(|piece| {
                let len = piece.words * usize::from(bits_of(piece) / 8);
                let tx = std::iter::repeat_with(|| {
                    counter = counter.wrapping_mul(5).wrapping_add(77);
                    counter
                });
                let tx: Vec<u8> = tx.take(len).collect();
                (tx.clone(), tx)
            })
            .collect();
        let mut transfers: Vec<Transfer<'_>> = message
            .pieces
            .iter()
            .zip(&mut buffers)
            .map(|(piece, (tx, rx))| {
                let mut transfer = match piece.kind {
                    0 => Transfer::write(tx),
                    1 => Transfer::read(rx),
                    2 => Transfer::exchange(tx, rx),
                    _ => Transfer::in_place(rx),
                };
                transfer.cs_change = piece.cs_change;
                transfer.delay_ns = piece.delay_ns;
                transfer.cs_change_delay_ns = piece.cs_change_delay_ns;
                transfer.word_delay_ns = piece.word_delay_ns;
                transfer.speed_hz = piece.speed_hz;
                transfer.bits_per_word = piece.bits;
                transfer
            })
            .collect();
        let begun_ps = board.engine().now_ps();
        let actual_length = device.sync(&mut transfers);
        let took_ps = board.engine().now_ps() - begun_ps;
        let asked_ns: u64 = message.pieces.iter().map(|piece| asked_ns(message, piece)).sum();
        prop_assert!(
            took_ps >= asked_ns * 1_000,
            "{took_ps} ps for {asked_ns} ns of delays and clocks"
        );
        let expected_length: usize = buffers.iter().map(|(tx, _)| tx.len()).sum();
        prop_assert_eq!(actual_length, Ok(expected_length));

        let mut wire = Vec::new();
        for (piece, (tx, rx)) in message.pieces.iter().zip(&buffers) {
            let bits = bits_of(piece);
            let sent = if piece.kind == 1 { vec![0; tx.len()] } else { swapped(tx, bits) };
            let mut returned = Vec::with_capacity(sent.len());
            for &byte in &sent {
                returned.push(std::mem::replace(&mut held[usize::from(cs)], byte));
            }
            if piece.kind != 0 {
                prop_assert_eq!(rx, &swapped(&returned, bits));
            }
            wire.extend(sent);
        }
        let chip = chip.borrow().clone();
        prop_assert_eq!(chip.received(), &wire[..]);
        let selections = 1 + message.pieces.iter().filter(|piece| piece.cs_change).count();
        if !message.native || message.pieces.iter().all(|piece| piece.words > 0) {
            prop_assert_eq!(chip.selections(), selections as u64);
        }
        let violations = board.violations();
        prop_assert!(violations.is_empty(), "{:#?}", violations);
    }
    Ok(board.trace_hash())
}

/// `PROPTEST_CASES` where it is set, else few in a debug build, many in release.
fn cases(debug: u32, release: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        default.cases
    } else if cfg!(debug_assertions) {
        debug
    } else {
        release
    };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(cases(48, 512))]

    #[test]
    fn random_messages_arrive_whole_and_in_time(
        messages in prop::collection::vec(a_message(), 1..6),
        board in prop_oneof![Just("imx8mp"), Just("sabrelite")],
    ) {
        let once = run(board, &messages, Waits::Polling)?;
        let again = run(board, &messages, Waits::Polling)?;
        prop_assert_eq!(once, again, "the same program has the same trace");
    }

    /// The bytes are those that polling gives: the model's.
    #[test]
    fn random_messages_arrive_whole_by_interrupt(
        messages in prop::collection::vec(a_message(), 1..6),
        board in prop_oneof![Just("imx8mp"), Just("sabrelite")],
        limit_ns in prop_oneof![Just(0), 0_u32..200_000],
    ) {
        run(board, &messages, Waits::Asleep(limit_ns))?;
        run(board, &messages, Waits::ByHandler(limit_ns))?;
    }
}
