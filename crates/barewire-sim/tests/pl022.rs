//! The PL022 driver judged in simulation: the conformance suite by loopback and through a jumper,
//! random messages in front of a chip that is strict, the block's own select line, and what a
//! message costs, as a reviewed table.
//!
//! Set `BAREWIRE_BLESS=1` to write the table anew; the difference is then for a reviewer.

mod by_handler;
mod snapshot;

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::reg::Registers;
use barewire::spi::{Error, MODE_0, MODE_1, MODE_2, MODE_3, Mode, Settings, Transfer};
use barewire_conformance::{Clock, Options, run};
use barewire_sim::bring_up::{Charged, pl022, pl022_interrupt};
use barewire_sim::chip::WireLimits;
use barewire_sim::model::echo::Echo;
use barewire_sim::model::jumper::Jumper;
use barewire_sim::{Board, BoardOptions, BoardSpec, Rule};
use by_handler::ByHandler;
use proptest::prelude::*;

fn board() -> Board {
    late_board(0)
}

/// A board whose every access may take `jitter_ns` longer.
fn late_board(jitter_ns: u64) -> Board {
    let options = BoardOptions { jitter_ps: jitter_ns * 1_000, ..BoardOptions::default() };
    Board::new(BoardSpec::find("highbank").expect("a board"), options)
}

/// How the end of a transfer is awaited that takes longer than a limit in nanoseconds.
#[derive(Clone, Copy, Debug)]
enum Waits {
    Polling,
    Asleep(u32),
    ByHandler(u32),
}

/// Puts the driver on `board` and runs `judge` with a bus over it.
macro_rules! on_bus {
    ($board:expr, $waits:expr, |$bus:ident| $judge:expr) => {
        match $waits {
            Waits::Polling => {
                let $bus = Bus::new(pl022($board));
                $judge
            }
            Waits::Asleep(limit_ns) => {
                let $bus = Bus::new(pl022_interrupt($board, limit_ns));
                $judge
            }
            Waits::ByHandler(limit_ns) => {
                let inner = pl022_interrupt($board, limit_ns);
                let $bus = Bus::new(ByHandler { inner, board: $board.clone(), interrupts: 0 });
                $judge
            }
        }
    };
}

fn passes_every_case(waits: Waits, settings: Settings) {
    let board = board();
    if !settings.mode.contains(Mode::LOOP) {
        assert!(board.attach(settings.chip_select, Rc::new(RefCell::new(Jumper))));
    }
    on_bus!(&board, waits, |bus| conforms(&board, &bus, &settings));
}

fn conforms(board: &Board, bus: &Bus<impl Controller>, settings: &Settings) {
    let device = bus.device(settings).expect("opens");
    // The long transfers are for the optimised build.
    let max_len = if cfg!(debug_assertions) { 1_025 } else { Options::default().max_len };
    let mut now_ns = || board.engine().now_ps() / 1_000;
    let options = Options { max_len, loopback: true };
    let report = run(&device, &options, &mut Clock::Nanoseconds(&mut now_ns));
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    assert!(report.iterations > 1_000, "{}", report.iterations);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
}

const FAST: Settings = Settings::new(0, 20_000_000);

#[test]
fn every_case_passes_in_loopback() {
    passes_every_case(Waits::Polling, FAST.with_mode(Mode::LOOP));
}

#[test]
fn every_case_passes_through_a_jumper_where_frames_follow_at_once() {
    passes_every_case(Waits::Polling, FAST.with_mode(MODE_3));
}

#[test]
fn every_case_passes_asleep_until_it_interrupts() {
    passes_every_case(Waits::Asleep(0), FAST.with_mode(MODE_2));
    passes_every_case(Waits::Asleep(0), FAST.with_mode(MODE_1 | Mode::LOOP));
}

#[test]
fn every_case_passes_by_its_handler() {
    passes_every_case(Waits::ByHandler(0), FAST);
    passes_every_case(Waits::ByHandler(0), FAST.with_mode(MODE_3));
}

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
}

#[derive(Clone, Debug)]
struct Message {
    mode: u8,
    bits_per_word: u8,
    speed_hz: u32,
    cs_setup_ns: u32,
    cs_hold_ns: u32,
    cs_inactive_ns: u32,
    pieces: Vec<Piece>,
}

fn a_speed() -> impl Strategy<Value = u32> {
    prop_oneof![Just(3_600_000), Just(75_000_000), Just(400_000_000), 20_000_u32..100_000_000]
}

fn a_delay() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(0), 1 => 1_u32..3_000]
}

prop_compose! {
    fn a_piece()(
        words in prop_oneof![Just(0_usize), 1_usize..10, 4_usize..40, 120_usize..140],
        kind in 0_u8..4,
        cs_change in any::<bool>(),
        delay_ns in a_delay(),
        cs_change_delay_ns in a_delay(),
        word_delay_ns in prop_oneof![8 => Just(0_u32), 1 => 1_u32..3_000],
        speed_hz in prop_oneof![3 => Just(0), 1 => a_speed()],
    ) -> Piece {
        Piece { words, kind, cs_change, delay_ns, cs_change_delay_ns, word_delay_ns, speed_hz }
    }
}

prop_compose! {
    fn a_message()(
        mode in 0_u8..4,
        bits_per_word in prop_oneof![2 => Just(8_u8), 1 => Just(16)],
        speed_hz in a_speed(),
        cs_setup_ns in a_delay(),
        cs_hold_ns in a_delay(),
        cs_inactive_ns in a_delay(),
        mut pieces in prop::collection::vec(a_piece(), 1..5),
    ) -> Message {
        let last = pieces.len() - 1;
        pieces[last].cs_change = false;
        Message { mode, bits_per_word, speed_hz, cs_setup_ns, cs_hold_ns, cs_inactive_ns, pieces }
    }
}

impl Message {
    fn word_bytes(&self) -> usize {
        usize::from(self.bits_per_word / 8)
    }

    /// What a piece has to take at least: its bits and every delay asked.
    fn least_ns(&self, piece: &Piece) -> u64 {
        let speed_hz = if piece.speed_hz == 0 { self.speed_hz } else { piece.speed_hz };
        let bits = (piece.words * usize::from(self.bits_per_word)) as u64;
        let clocks_ns = bits.saturating_sub(1) * 1_000_000_000 / u64::from(speed_hz);
        let gaps_ns = piece.words.saturating_sub(1) as u64 * u64::from(piece.word_delay_ns);
        let inactive_ns =
            if piece.cs_change { piece.cs_change_delay_ns.max(self.cs_inactive_ns) } else { 0 };
        clocks_ns + gaps_ns + u64::from(piece.delay_ns) + u64::from(inactive_ns)
    }

    /// A chip that asks of the wire exactly what the device is asked to give.
    fn limits(&self) -> WireLimits {
        WireLimits {
            modes: 1 << self.mode,
            cs_setup_ns: self.cs_setup_ns.into(),
            cs_hold_ns: self.cs_hold_ns.into(),
            cs_inactive_ns: self.cs_inactive_ns.into(),
            max_clock_hz: self
                .pieces
                .iter()
                .map(|piece| piece.speed_hz)
                .fold(self.speed_hz, u32::max),
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            mode: Mode::from_number(self.mode).expect("0 to 3"),
            bits_per_word: self.bits_per_word,
            cs_setup_ns: self.cs_setup_ns,
            cs_hold_ns: self.cs_hold_ns,
            cs_inactive_ns: self.cs_inactive_ns,
            ..Settings::new(0, self.speed_hz)
        }
    }

    /// The bytes in the order of the wire.
    fn on_wire(&self, bytes: &[u8]) -> Vec<u8> {
        if self.word_bytes() == 1 {
            return bytes.to_vec();
        }
        let word = |pair: &[u8]| u16::from_ne_bytes([pair[0], pair[1]]).to_be_bytes();
        bytes.chunks(2).flat_map(word).collect()
    }

    fn run(
        &self,
        board: &Board,
        bus: &Bus<impl Controller>,
        counter: &mut u8,
    ) -> Result<(), TestCaseError> {
        let chip = Rc::new(RefCell::new(Echo::new(self.limits())));
        prop_assert!(board.attach(0, chip.clone()));
        let device = bus.device(&self.settings()).expect("the block can do it");
        prop_assert!(device.effective().speed_hz <= self.speed_hz);
        let mut next = || {
            *counter = counter.wrapping_mul(5).wrapping_add(77);
            *counter
        };
        let bytes = |piece: &Piece| piece.words * self.word_bytes();
        let sent: Vec<Vec<u8>> =
            self.pieces.iter().map(|piece| (0..bytes(piece)).map(|_| next()).collect()).collect();
        let mut received = sent.clone();
        let pieces = self.pieces.iter().zip(&sent).zip(&mut received);
        let mut transfers: Vec<Transfer<'_>> = pieces
            .map(|((piece, tx), rx)| {
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
                transfer
            })
            .collect();
        let begun_ps = board.engine().now_ps();
        let actual_length = device.sync(&mut transfers);
        let took_ps = board.engine().now_ps() - begun_ps;
        prop_assert_eq!(actual_length, Ok(sent.iter().map(Vec::len).sum()));
        let least_ns: u64 = self.pieces.iter().map(|piece| self.least_ns(piece)).sum();
        prop_assert!(took_ps >= least_ns * 1_000, "{took_ps} ps for {least_ns} ns");

        // The chip gives what it was sent a byte before.
        let (mut wire, mut held) = (Vec::new(), 0);
        for ((piece, tx), rx) in self.pieces.iter().zip(&sent).zip(&received) {
            let tx = if piece.kind == 1 { vec![0; tx.len()] } else { self.on_wire(tx) };
            let back: Vec<u8> = tx.iter().map(|&byte| std::mem::replace(&mut held, byte)).collect();
            if piece.kind != 0 {
                prop_assert_eq!(self.on_wire(rx), back);
            }
            wire.extend(tx);
        }
        let chip = chip.borrow().clone();
        prop_assert_eq!(chip.received(), &wire[..]);
        let selections = 1 + self.pieces.iter().filter(|piece| piece.cs_change).count();
        prop_assert_eq!(chip.selections(), selections as u64);
        let violations = board.violations();
        prop_assert!(violations.is_empty(), "{:#?}", violations);
        Ok(())
    }
}

fn run_all(messages: &[Message], waits: Waits, jitter_ns: u64) -> Result<u64, TestCaseError> {
    let board = late_board(jitter_ns);
    let mut counter = 0;
    on_bus!(&board, waits, |bus| for message in messages {
        message.run(&board, &bus, &mut counter)?;
    });
    Ok(board.trace_hash())
}

/// `PROPTEST_CASES` where it is set, else few in a debug build, many in release.
fn cases() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        default.cases
    } else if cfg!(debug_assertions) {
        48
    } else {
        512
    };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn random_messages_arrive_whole_and_in_time(
        messages in prop::collection::vec(a_message(), 1..6),
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

/// What is taken on the block's own line is under one select, however slow the processor or long
/// an interrupt takes.
#[test]
fn what_is_taken_on_the_block_s_own_line_does_not_pulse() {
    for (mode, bits, most) in [(MODE_0, 8, 1), (MODE_2, 16, 2), (MODE_1, 8, 16), (MODE_3, 16, 16)] {
        for (speed_hz, jitter_ns) in [(1_000_000, 0), (75_000_000, 0), (75_000_000, 5_000)] {
            for waits in [Waits::Polling, Waits::Asleep(0), Waits::ByHandler(0)] {
                let board = late_board(jitter_ns);
                let chip = Rc::new(RefCell::new(Echo::default()));
                assert!(board.attach(1, chip.clone()));
                let settings = Settings {
                    cs_inactive_ns: 700,
                    ..Settings::new(1, speed_hz).with_mode(mode).with_bits_per_word(bits)
                };
                on_bus!(&board, waits, |bus| {
                    let device = bus.device(&settings).expect("opens");
                    let step = usize::from(bits / 8);
                    let sizes: Vec<usize> = (step..=most).step_by(step).collect();
                    let odd = |&len: &usize| bits == 8 && len % 2 == 1 && len > 8;
                    let taken: Vec<usize> = sizes.iter().copied().filter(|len| !odd(len)).collect();
                    for &len in &taken {
                        let bytes: Vec<u8> = (1..=len as u8).collect();
                        let mut message =
                            [Transfer::write(&bytes).with_cs_change(), Transfer::write(&bytes)];
                        assert_eq!(device.sync(&mut message), Ok(2 * len));
                    }
                    assert_eq!(chip.borrow().selections(), 2 * taken.len() as u64);
                    let mut beyond = [Transfer::write(&[0; 18])];
                    let max_bytes = most;
                    let error = device.sync(&mut beyond).expect_err("would pulse").error;
                    assert_eq!(error, Error::NativeCsWouldPulse { max_bytes });
                });
                assert!(board.violations().is_empty(), "{:#?}", board.violations());
            }
        }
    }
}

/// A delay asked between two selections by the block's own line is there at the chip.
#[test]
fn the_block_s_own_line_stays_inactive_as_long_as_asked() {
    for mode in [MODE_0, MODE_1, MODE_2, MODE_3] {
        let board = board();
        let limits = WireLimits { cs_inactive_ns: 2_000, ..barewire_sim::model::echo::NO_LIMITS };
        assert!(board.attach(1, Rc::new(RefCell::new(Echo::new(limits)))));
        let bus = Bus::new(pl022(&board));
        let settings =
            Settings { cs_inactive_ns: 2_000, ..Settings::new(1, 1_000_000).with_mode(mode) };
        let device = bus.device(&settings).expect("opens");
        for _ in 0..3 {
            let mut message = [Transfer::write(&[1]).with_cs_change(), Transfer::write(&[2])];
            assert_eq!(device.sync(&mut message), Ok(2));
        }
        assert!(board.violations().is_empty(), "{mode:?}: {:#?}", board.violations());
    }
}

/// Somebody who had the block before us and died.
#[test]
fn whatever_was_left_in_the_block_no_chip_hears() {
    for (cr1, words) in [(0, 3), (2, 8), (0, 0), (2, 0)] {
        let board = board();
        let chip = Rc::new(RefCell::new(Echo::default()));
        assert!(board.attach(0, chip.clone()));
        let mut regs = board.controller();
        regs.write(0x10, 10);
        regs.write(0x00, 0x0f07);
        regs.write(0x04, cr1);
        regs.write(0x14, 0xf);
        regs.write(0x24, 3);
        (0..words).for_each(|word| regs.write(0x08, word));
        let bus = Bus::new(pl022(&board));
        let device = bus.device(&FAST.with_mode(MODE_3)).expect("opens");
        let mut bytes = [1, 2, 3, 4, 5];
        device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
        assert_eq!(bytes, [0, 1, 2, 3, 4], "the chip's byte before, and nothing left over");
        assert_eq!(chip.borrow().received(), [1, 2, 3, 4, 5]);
        let rules: Vec<Rule> = board.violations().iter().map(|found| found.rule).collect();
        assert!(rules.iter().all(|&rule| rule == Rule::ClockWithoutCs), "{rules:?}");
    }
}

/// Words that came while nobody read are lost, and the message says so; the next one is good.
#[test]
fn an_overrun_is_told_and_drained() {
    for waits in [Waits::Polling, Waits::Asleep(0)] {
        let board = board();
        assert!(board.attach(0, Rc::new(RefCell::new(Jumper))));
        on_bus!(&board, waits, |bus| {
            let device = bus.device(&FAST).expect("opens");
            device.sync(&mut [Transfer::write(&[1])]).expect("runs");
            // Another program beside us, against all rules.
            let mut regs = board.controller();
            for _ in 0..2 {
                (0..8).for_each(|_| regs.write(0x08, 0xee));
                while regs.read(0x0c) & 0x10 != 0 {}
            }
            let mut bytes = [7; 20];
            let error = device.sync(&mut [Transfer::in_place(&mut bytes)]).expect_err("lost some");
            assert_eq!(error.error, Error::Overrun);
            let mut bytes = [7, 8, 9];
            device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
            assert_eq!(bytes, [7, 8, 9]);
        });
    }
}

const HEADER: &str = "\
PL022 register accesses per message, simulated on highbank, the device's second message.
lead, clocks and lag are nanoseconds from CS to the first cell, to the last one's end, to CS. call
is virtual nanoseconds with the profile's costs. In mode 3 even lengths go two bytes a frame.

line    mode  speed_hz  bytes  writes   reads  lead   clocks  lag     call
";

fn row(cs: u8, mode: Mode, speed_hz: u32, bytes: usize) -> String {
    let board = board();
    assert!(board.attach(cs, Rc::new(RefCell::new(Echo::default()))));
    let bus = Bus::new(Charged::new(pl022(&board), board.clone()));
    let device = bus.device(&Settings::new(cs, speed_hz).with_mode(mode)).expect("opens");
    let tx = vec![0x5a; bytes];
    let mut rx = vec![0; bytes];
    let mut message = [Transfer::exchange(&tx, &mut rx)];
    let mut prepared = device.prepare_message(&mut message).expect("prepares");
    prepared.run().expect("runs");
    board.cpu_work(10_000);
    board.reset_marks();
    board.start_selections();
    prepared.run().expect("runs");
    let call_ns = board.elapsed_ps() / 1_000;
    board.cpu_work(10_000);
    let counts = board.access_counts();
    let writes: u64 = counts.iter().map(|block| block.writes).sum();
    let reads: u64 = counts.iter().map(|block| block.reads).sum();
    let [it] = board.take_selections()[..] else { panic!("one selection") };
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    format!(
        "{:<8}{:>4}{:>10}{:>7}{:>8}{:>8}{:>6}{:>9}{:>5}{:>9}\n",
        if cs == 0 { "gpio" } else { "native" },
        mode.number(),
        device.effective().speed_hz,
        bytes,
        writes,
        reads,
        (it.first_clock_at - it.selected_at) / 1_000,
        (it.last_clock_at - it.first_clock_at) / 1_000,
        (it.deselected_at - it.last_clock_at) / 1_000,
        call_ns,
    )
}

#[test]
fn accesses_per_message_are_as_reviewed() {
    let mut table = String::from(HEADER);
    for (cs, mode, speed_hz, lengths) in [
        (0, MODE_0, 3_600_000, &[1, 3, 16, 64, 256][..]),
        (0, MODE_0, 20_000_000, &[1, 3, 4, 16, 64, 256, 4096]),
        (0, MODE_3, 20_000_000, &[1, 3, 4, 16, 64, 256, 4096]),
        (0, MODE_3, 75_000_000, &[4, 256]),
        (1, MODE_0, 20_000_000, &[1]),
        (1, MODE_3, 20_000_000, &[1, 3, 4, 16]),
    ] {
        for &bytes in lengths {
            table += &row(cs, mode, speed_hz, bytes);
        }
    }
    snapshot::check("pl022_accesses.txt", &table);
}
