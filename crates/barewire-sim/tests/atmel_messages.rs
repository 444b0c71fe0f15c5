//! Random messages through Atmel's SPI on the simulated board: the bytes are the chip's, nothing
//! takes less time than it asked, and no checker complains.

mod by_handler;

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::controller::atmel::{PeripheralSelect, Pipe};
use barewire::spi::{Mode, Settings, Transfer};
use barewire_sim::bring_up::{Charged, atmel_interrupt_with, atmel_with};
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
    /// 0: on the pin; 1: on the block's own line.
    chip_select: u8,
    mode: u8,
    speed_hz: u32,
    bits: u8,
    cs_setup_ns: u32,
    cs_hold_ns: u32,
    cs_inactive_ns: u32,
    word_delay_ns: u32,
    pieces: Vec<Piece>,
}

fn a_speed() -> impl Strategy<Value = u32> {
    prop_oneof![Just(26_400_000), Just(66_000_000), Just(600_000), 520_000_u32..140_000_000]
}

fn a_delay() -> impl Strategy<Value = u32> {
    // What the block's own line can wait before its first clock.
    prop_oneof![4 => Just(0), 1 => 1_u32..1_900]
}

fn a_word_delay() -> impl Strategy<Value = u32> {
    // Beyond 61,818 ns it is the timer's.
    prop_oneof![8 => Just(0), 2 => 1_u32..3_000, 1 => 60_000_u32..64_000]
}

fn bits() -> impl Strategy<Value = u8> {
    prop_oneof![Just(8), Just(16)]
}

prop_compose! {
    fn a_piece()(
        words in prop_oneof![Just(0_usize), 1_usize..8, 1_usize..40],
        kind in 0_u8..4,
        cs_change in any::<bool>(),
        delay_ns in a_delay(),
        cs_change_delay_ns in a_delay(),
        word_delay_ns in a_word_delay(),
        speed_hz in prop_oneof![3 => Just(0), 1 => a_speed()],
        bits in prop_oneof![3 => Just(0), 1 => bits()],
    ) -> Piece {
        Piece { words, kind, cs_change, delay_ns, cs_change_delay_ns, word_delay_ns, speed_hz, bits }
    }
}

prop_compose! {
    fn a_message()(
        chip_select in 0_u8..2,
        mode in 0_u8..4,
        speed_hz in a_speed(),
        bits in bits(),
        cs_setup_ns in a_delay(),
        cs_hold_ns in a_delay(),
        cs_inactive_ns in prop_oneof![a_delay(), 1_900_u32..3_000],
        word_delay_ns in a_word_delay(),
        mut pieces in prop::collection::vec(a_piece(), 1..5),
    ) -> Message {
        let last = pieces.len() - 1;
        pieces[last].cs_change = false;
        Message {
            chip_select, mode, speed_hz, bits,
            cs_setup_ns, cs_hold_ns, cs_inactive_ns, word_delay_ns, pieces,
        }
    }
}

impl Message {
    fn bits_of(&self, piece: &Piece) -> u8 {
        if piece.bits == 0 { self.bits } else { piece.bits }
    }

    /// What a piece has to take at least: its clocks at the asked speed and every delay asked.
    fn asked_ns(&self, piece: &Piece) -> u64 {
        let speed_hz = if piece.speed_hz == 0 { self.speed_hz } else { piece.speed_hz };
        let words = piece.words as u64;
        let bits = words * u64::from(self.bits_of(piece));
        let gap_ns = piece.word_delay_ns.max(self.word_delay_ns);
        let clocks_ns = bits * 1_000_000_000 / u64::from(speed_hz);
        clocks_ns + words.saturating_sub(1) * u64::from(gap_ns) + u64::from(piece.delay_ns)
    }

    fn settings(&self) -> Settings {
        Settings {
            mode: Mode::from_number(self.mode).expect("0 to 3"),
            bits_per_word: self.bits,
            cs_setup_ns: self.cs_setup_ns,
            cs_hold_ns: self.cs_hold_ns,
            cs_inactive_ns: self.cs_inactive_ns,
            word_delay_ns: self.word_delay_ns,
            ..Settings::new(self.chip_select, self.speed_hz)
        }
    }

    fn transfers<'b>(&self, buffers: &'b mut [(Vec<u8>, Vec<u8>)]) -> Vec<Transfer<'b>> {
        let pairs = self.pieces.iter().zip(buffers);
        pairs
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
            .collect()
    }
}

/// Memory order to wire order and back: words lie in the CPU's order and go out whole.
fn swapped(bytes: &[u8], bits: u8) -> Vec<u8> {
    if bits == 8 || cfg!(target_endian = "big") {
        return bytes.to_vec();
    }
    bytes.chunks(2).flat_map(|word| [word[1], word[0]]).collect()
}

fn board() -> Board {
    Board::new(BoardSpec::find("sama5d36").expect("a board"), BoardOptions::default())
}

fn run_on(
    board: &Board,
    bus: &Bus<impl Controller>,
    messages: &[Message],
) -> Result<(), TestCaseError> {
    let mut counter = 0_u8;
    // The shift register of each chip: what it gives next.
    let mut held = [0_u8; 2];
    for message in messages {
        // A chip that asks of the wire exactly what the device was asked to give.
        let limits = WireLimits {
            modes: 1 << message.mode,
            cs_setup_ns: message.cs_setup_ns.into(),
            cs_hold_ns: message.cs_hold_ns.into(),
            cs_inactive_ns: message.cs_inactive_ns.into(),
            max_clock_hz: u32::MAX,
        };
        let chip = Rc::new(RefCell::new(Echo::new(limits)));
        prop_assert!(board.attach(message.chip_select, chip.clone()));
        let held = &mut held[usize::from(message.chip_select)];
        *held = 0;
        let settings = message.settings();
        let device = bus.device(&settings).expect("the block can do it");
        let effective = device.effective();
        prop_assert!(effective.speed_hz <= message.speed_hz);
        prop_assert!(effective.cs_setup_ns >= u64::from(message.cs_setup_ns));
        prop_assert!(effective.cs_inactive_ns >= u64::from(message.cs_inactive_ns));
        prop_assert!(effective.word_delay_ns >= u64::from(message.word_delay_ns));

        let mut buffers: Vec<(Vec<u8>, Vec<u8>)> = message
            .pieces
            .iter()
            .map(|piece| {
                let len = piece.words * usize::from(message.bits_of(piece) / 8);
                let tx = std::iter::repeat_with(|| {
                    counter = counter.wrapping_mul(5).wrapping_add(77);
                    counter
                });
                let tx: Vec<u8> = tx.take(len).collect();
                (tx.clone(), tx)
            })
            .collect();
        let begun_ps = board.engine().now_ps();
        let actual_length = device.sync(&mut message.transfers(&mut buffers));
        let took_ps = board.engine().now_ps() - begun_ps;
        let asked_ns: u64 = message.pieces.iter().map(|piece| message.asked_ns(piece)).sum();
        prop_assert!(took_ps >= asked_ns * 1_000, "{} ps for {} ns", took_ps, asked_ns);
        prop_assert_eq!(actual_length, Ok(buffers.iter().map(|(tx, _)| tx.len()).sum()));

        let mut wire = Vec::new();
        for (piece, (tx, rx)) in message.pieces.iter().zip(&buffers) {
            let bits = message.bits_of(piece);
            let sent = if piece.kind == 1 { vec![0; tx.len()] } else { swapped(tx, bits) };
            let returned: Vec<u8> =
                sent.iter().map(|&byte| std::mem::replace(held, byte)).collect();
            if piece.kind != 0 {
                prop_assert_eq!(rx, &swapped(&returned, bits));
            }
            wire.extend(sent);
        }
        let chip = chip.borrow().clone();
        prop_assert_eq!(chip.received(), &wire[..]);
        if message.chip_select == 0 || message.pieces.iter().all(|piece| piece.words > 0) {
            let changes = message.pieces.iter().filter(|piece| piece.cs_change).count();
            prop_assert_eq!(chip.selections(), 1 + changes as u64);
        }
        let violations = board.violations();
        prop_assert!(violations.is_empty(), "{:#?}", violations);
    }
    Ok(())
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
    #![proptest_config(cases(64, 512))]

    #[test]
    fn random_messages_arrive_whole_and_in_time(
        messages in prop::collection::vec(a_message(), 1..6),
    ) {
        for pipe in [Pipe::WaitDataRead, Pipe::OneWord] {
            for select in [PeripheralSelect::Fixed, PeripheralSelect::Variable] {
                let board = board();
                let inner = atmel_with(&board, pipe, select);
                run_on(&board, &Bus::new(Charged::new(inner, board.clone())), &messages)?;
            }
        }
    }

    /// The bytes are those that polling gives: the model's.
    #[test]
    fn random_messages_arrive_whole_by_interrupt(
        messages in prop::collection::vec(a_message(), 1..6),
        limit_ns in prop_oneof![Just(0), 0_u32..100_000],
    ) {
        for pipe in [Pipe::WaitDataRead, Pipe::OneWord] {
            let asleep = board();
            run_on(&asleep, &Bus::new(atmel_interrupt_with(&asleep, pipe, limit_ns)), &messages)?;
            let handled = board();
            let inner = atmel_interrupt_with(&handled, pipe, limit_ns);
            let bus = Bus::new(ByHandler { inner, board: handled.clone(), interrupts: 0 });
            run_on(&handled, &bus, &messages)?;
        }
    }
}
