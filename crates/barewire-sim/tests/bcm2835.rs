//! The BCM2835 driver judged in simulation: the conformance suite through a jumper, random messages
//! in front of a chip that is strict, what a sample costs, and a reviewed table of accesses.
//!
//! Set `BAREWIRE_BLESS=1` to write the table anew; the difference is then for a reviewer.

mod by_handler;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::chip::mcp3008::{Input, MCP3008};
use barewire::controller::Controller;
use barewire::spi::{Mode, Settings, Transfer};
use barewire_conformance::{Clock, Options, run};
use barewire_sim::bring_up::{Charged, bcm2835, bcm2835_interrupt};
use barewire_sim::chip::WireLimits;
use barewire_sim::model::echo::Echo;
use barewire_sim::model::jumper::Jumper;
use barewire_sim::{Board, BoardOptions, BoardSpec};
use by_handler::ByHandler;
use proptest::prelude::*;

fn board() -> Board {
    Board::new(BoardSpec::find("rpi3").expect("a board"), BoardOptions::default())
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
                let $bus = Bus::new(bcm2835($board));
                $judge
            }
            Waits::Asleep(limit_ns) => {
                let $bus = Bus::new(bcm2835_interrupt($board, limit_ns));
                $judge
            }
            Waits::ByHandler(limit_ns) => {
                let inner = bcm2835_interrupt($board, limit_ns);
                let $bus = Bus::new(ByHandler { inner, board: $board.clone(), interrupts: 0 });
                $judge
            }
        }
    };
}

fn passes_every_case(waits: Waits, settings: Settings) {
    let board = board();
    assert!(board.attach(settings.chip_select, Rc::new(RefCell::new(Jumper))));
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

#[test]
fn every_case_passes_on_a_pin() {
    passes_every_case(Waits::Polling, Settings::new(0, 20_000_000));
}

#[test]
fn every_case_passes_on_the_block_s_own_line() {
    passes_every_case(Waits::Polling, Settings::new(1, 20_000_000).with_mode(Mode::CPHA));
}

#[test]
fn every_case_passes_asleep_until_it_interrupts() {
    passes_every_case(Waits::Asleep(0), Settings::new(0, 20_000_000).with_mode(Mode::CPOL));
}

#[test]
fn every_case_passes_by_its_handler() {
    passes_every_case(Waits::ByHandler(0), Settings::new(1, 20_000_000));
}

/// One transfer, as numbers.
#[derive(Clone, Debug)]
struct Piece {
    bytes: usize,
    kind: u8,
    cs_change: bool,
    delay_ns: u32,
    cs_change_delay_ns: u32,
    word_delay_ns: u32,
    speed_hz: u32,
}

#[derive(Clone, Debug)]
struct Message {
    cs: u8,
    mode: u8,
    speed_hz: u32,
    cs_setup_ns: u32,
    cs_hold_ns: u32,
    cs_inactive_ns: u32,
    pieces: Vec<Piece>,
}

fn a_speed() -> impl Strategy<Value = u32> {
    prop_oneof![Just(3_600_000), Just(200_000_000), Just(400_000_000), 20_000_u32..100_000_000]
}

fn a_delay() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(0), 1 => 1_u32..3_000]
}

prop_compose! {
    fn a_piece()(
        bytes in prop_oneof![Just(0_usize), 1_usize..8, 1_usize..70, 60_usize..140, 500_usize..700],
        kind in 0_u8..4,
        cs_change in any::<bool>(),
        delay_ns in a_delay(),
        cs_change_delay_ns in a_delay(),
        word_delay_ns in prop_oneof![8 => Just(0_u32), 1 => 1_u32..3_000],
        speed_hz in prop_oneof![3 => Just(0), 1 => a_speed()],
    ) -> Piece {
        Piece { bytes, kind, cs_change, delay_ns, cs_change_delay_ns, word_delay_ns, speed_hz }
    }
}

prop_compose! {
    fn a_message()(
        cs in 0_u8..2,
        mode in 0_u8..4,
        speed_hz in a_speed(),
        cs_setup_ns in a_delay(),
        cs_hold_ns in a_delay(),
        cs_inactive_ns in a_delay(),
        mut pieces in prop::collection::vec(a_piece(), 1..5),
    ) -> Message {
        let last = pieces.len() - 1;
        pieces[last].cs_change = false;
        if cs == 1 {
            // What the block's own line cannot do.
            pieces.iter_mut().for_each(|piece| piece.speed_hz = 0);
        }
        Message { cs, mode, speed_hz, cs_setup_ns, cs_hold_ns, cs_inactive_ns, pieces }
    }
}

impl Message {
    /// What a piece has to take at least: nine clocks a byte and every delay asked.
    fn least_ns(&self, piece: &Piece) -> u64 {
        let speed_hz = if piece.speed_hz == 0 { self.speed_hz } else { piece.speed_hz };
        let bytes = piece.bytes as u64;
        let clocks_ns = (bytes * 9).saturating_sub(1) * 1_000_000_000 / u64::from(speed_hz);
        let gaps_ns = bytes.saturating_sub(1) * u64::from(piece.word_delay_ns);
        let inactive_ns =
            if piece.cs_change { piece.cs_change_delay_ns.max(self.cs_inactive_ns) } else { 0 };
        clocks_ns + gaps_ns + u64::from(piece.delay_ns) + u64::from(inactive_ns)
    }

    /// A chip that asks of the wire exactly what the device is asked to give.
    fn limits(&self) -> WireLimits {
        WireLimits {
            modes: 0b1111,
            cs_setup_ns: self.cs_setup_ns.into(),
            cs_hold_ns: self.cs_hold_ns.into(),
            cs_inactive_ns: self.cs_inactive_ns.into(),
            max_clock_hz: u32::MAX,
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            mode: Mode::from_number(self.mode).expect("0 to 3"),
            cs_setup_ns: self.cs_setup_ns,
            cs_hold_ns: self.cs_hold_ns,
            cs_inactive_ns: self.cs_inactive_ns,
            ..Settings::new(self.cs, self.speed_hz)
        }
    }

    fn run(
        &self,
        board: &Board,
        bus: &Bus<impl Controller>,
        counter: &mut u8,
    ) -> Result<(), TestCaseError> {
        let chip = Rc::new(RefCell::new(Echo::new(self.limits())));
        prop_assert!(board.attach(self.cs, chip.clone()));
        let device = bus.device(&self.settings()).expect("the block can do it");
        prop_assert!(device.effective().speed_hz <= self.speed_hz);
        let mut next = || {
            *counter = counter.wrapping_mul(5).wrapping_add(77);
            *counter
        };
        let sent: Vec<Vec<u8>> =
            self.pieces.iter().map(|piece| (0..piece.bytes).map(|_| next()).collect()).collect();
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
            let tx = if piece.kind == 1 { vec![0; tx.len()] } else { tx.clone() };
            let back: Vec<u8> = tx.iter().map(|&byte| std::mem::replace(&mut held, byte)).collect();
            if piece.kind != 0 {
                prop_assert_eq!(rx, &back);
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

fn run_all(messages: &[Message], waits: Waits) -> Result<u64, TestCaseError> {
    let board = board();
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
    ) {
        let once = run_all(&messages, Waits::Polling)?;
        let again = run_all(&messages, Waits::Polling)?;
        prop_assert_eq!(once, again, "the same program has the same trace");
        run_all(&messages, Waits::Asleep(limit_ns))?;
        run_all(&messages, Waits::ByHandler(limit_ns))?;
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
        assert_eq!(writes, 5 * SAMPLES, "two edges and three bytes");
        assert!(samples_per_s >= 115_000, "{samples_per_s}");
        assert!(board.violations().is_empty(), "{:#?}", board.violations());
    }
}

const HEADER: &str = "\
BCM2835 SPI0 register accesses per message, simulated on rpi3, the device's second message.
lead, clocks and lag are nanoseconds from CS to the first cell, to the last one's end, to CS; lag
begins with the last byte's ninth clock. call is virtual nanoseconds with the profile's costs.

line  speed_hz  bytes  writes   reads  lead    clocks  lag      call
";

fn row(cs: u8, speed_hz: u32, bytes: usize) -> String {
    let board = board();
    assert!(board.attach(cs, Rc::new(RefCell::new(Echo::default()))));
    let bus = Bus::new(Charged::new(bcm2835(&board), board.clone()));
    let device = bus.device(&Settings::new(cs, speed_hz)).expect("opens");
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
    let counts = board.access_counts();
    let writes: u64 = counts.iter().map(|block| block.writes).sum();
    let reads: u64 = counts.iter().map(|block| block.reads).sum();
    let [it] = board.take_selections()[..] else { panic!("one selection") };
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    format!(
        "{:<6}{:>8}{:>7}{:>8}{:>8}{:>6}{:>10}{:>5}{:>10}\n",
        if cs == 0 { "gpio" } else { "ce1" },
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
    for (cs, speed_hz) in [(0, 3_600_000), (0, 20_000_000), (1, 3_600_000)] {
        for bytes in [1, 3, 16, 64, 256, 4096] {
            let _ = write!(table, "{}", row(cs, speed_hz, bytes));
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/bcm2835_accesses.txt");
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        std::fs::write(&path, &table).expect("the snapshot is writable");
    }
    let reviewed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(table == reviewed, "not as reviewed in {}:\n{table}", path.display());
}
