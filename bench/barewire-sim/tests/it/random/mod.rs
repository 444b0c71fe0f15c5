//! Random messages in front of a chip that is strict: the bytes are the chip's, nothing takes less
//! time than it asked, and no checker complains.
//!
//! [`Asks`] says what a controller can do; its row in `blocks` says how it is driven.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::{Mode, Settings, Transfer};
use barewire_sim::chip::WireLimits;
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, Rule, Violation};
use proptest::prelude::*;
use proptest::strategy::Union;

use crate::blocks::Start;
use crate::driver::{Waits, on_bus};

/// Ranges, each with its weight.
pub(crate) type Weighted<T> = &'static [(u32, RangeInclusive<T>)];

/// The ranges that messages draw from, and properties from the controller's manual to judge them by.
#[derive(Debug)]
pub(crate) struct Asks {
    /// 0: on the pin; 1: on the block's own line.
    pub chip_select: Weighted<u8>,
    pub speed_hz: Weighted<u32>,
    pub bits: Weighted<u8>,
    /// A transfer's own word length; 0 for the device's.
    pub own_bits: Weighted<u8>,
    /// Words of a transfer.
    pub words: Weighted<usize>,
    pub delay_ns: Weighted<u32>,
    pub cs_inactive_ns: Weighted<u32>,
    /// Between words, for the device.
    pub word_delay_ns: Weighted<u32>,
    /// Between words, for a transfer.
    pub own_word_delay_ns: Weighted<u32>,
    /// Reduces a message to what the block's own line can do.
    pub native: fn(&mut Message),
    /// Clocks in which the block rests after each word.
    pub rest_clocks: u64,
    /// Clocks that a transfer may still have to run when its caller goes on.
    pub unwaited_clocks: u64,
    /// Whether a setup time on the block's own line takes the place of the first half clock, however
    /// short it is. It does on Atmel's SPI, where DLYBS = 0 alone stands for half a clock ("SAMA5D3
    /// Series", SPI_CSR).
    pub setup_is_first_half: bool,
    /// Whether the driver waits for a line's inactive time within a message, even if little of the
    /// message follows.
    pub waits_inactive: bool,
    /// Whether the block's own line falls for a transfer without words.
    pub selects_without_words: bool,
}

/// The usual controller with the usual line; each row has its own clock, words and word lengths.
pub(crate) const USUAL: Asks = Asks {
    chip_select: &[(1, 0..=0), (1, 1..=1)],
    speed_hz: &[(1, 20_000..=99_999_999)],
    bits: &[(1, 8..=8)],
    own_bits: &[(1, 0..=0)],
    words: &[(1, 0..=0), (1, 1..=7), (1, 1..=69), (1, 60..=139)],
    delay_ns: &[(4, 0..=0), (1, 1..=2_999)],
    cs_inactive_ns: &[(4, 0..=0), (1, 1..=2_999)],
    word_delay_ns: &[(1, 0..=0)],
    own_word_delay_ns: &[(8, 0..=0), (1, 1..=2_999)],
    native: |_| (),
    rest_clocks: 0,
    unwaited_clocks: 0,
    setup_is_first_half: false,
    waits_inactive: true,
    selects_without_words: false,
};

/// One transfer, as numbers.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub words: usize,
    pub kind: u8,
    pub cs_change: bool,
    pub delay_ns: u32,
    pub cs_change_delay_ns: u32,
    pub word_delay_ns: u32,
    pub speed_hz: u32,
    pub bits: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub chip_select: u8,
    pub mode: u8,
    pub speed_hz: u32,
    pub bits: u8,
    pub cs_setup_ns: u32,
    pub cs_hold_ns: u32,
    pub cs_inactive_ns: u32,
    pub word_delay_ns: u32,
    pub pieces: Vec<Piece>,
}

fn one_of<T>(ranges: Weighted<T>) -> Union<RangeInclusive<T>>
where
    T: Clone,
    RangeInclusive<T>: Strategy<Value = T>,
{
    Union::new_weighted(ranges.to_vec())
}

prop_compose! {
    fn a_piece(asks: &'static Asks)(
        words in one_of(asks.words),
        kind in 0_u8..4,
        cs_change in any::<bool>(),
        delay_ns in one_of(asks.delay_ns),
        cs_change_delay_ns in one_of(asks.delay_ns),
        word_delay_ns in one_of(asks.own_word_delay_ns),
        speed_hz in prop_oneof![3 => Just(0), 1 => one_of(asks.speed_hz)],
        bits in one_of(asks.own_bits),
    ) -> Piece {
        Piece { words, kind, cs_change, delay_ns, cs_change_delay_ns, word_delay_ns, speed_hz, bits }
    }
}

prop_compose! {
    fn a_message(asks: &'static Asks)(
        chip_select in one_of(asks.chip_select),
        mode in 0_u8..4,
        speed_hz in one_of(asks.speed_hz),
        bits in one_of(asks.bits),
        cs_setup_ns in one_of(asks.delay_ns),
        cs_hold_ns in one_of(asks.delay_ns),
        cs_inactive_ns in one_of(asks.cs_inactive_ns),
        word_delay_ns in one_of(asks.word_delay_ns),
        pieces in prop::collection::vec(a_piece(asks), 1..5),
    ) -> Message {
        let mut message = Message {
            chip_select, mode, speed_hz, bits,
            cs_setup_ns, cs_hold_ns, cs_inactive_ns, word_delay_ns, pieces,
        };
        let last = message.pieces.len() - 1;
        message.pieces[last].cs_change = false;
        if chip_select == 1 {
            (asks.native)(&mut message);
        }
        message
    }
}

/// Messages for one run.
pub(crate) fn messages(asks: &'static Asks) -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(a_message(asks), 1..6)
}

/// `PROPTEST_CASES` where it is set, else `few` in a debug build and `whole` where tests run whole.
pub(crate) fn cases(few: u32, whole: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        default.cases
    } else if crate::runs_whole() {
        whole
    } else {
        few
    };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

/// Runs `messages` on a driver brought up on `board`, whose accesses may be `late`; returns the trace's hash.
pub(crate) fn run(
    asks: &Asks,
    start: Start,
    board: &Board,
    waits: Waits,
    messages: &[Message],
    late: bool,
) -> Result<u64, TestCaseError> {
    let mut counter = 0;
    let (ran, _) = on_bus(start, board, waits, |bus| {
        messages.iter().try_for_each(|message| message.run(asks, board, bus, &mut counter, late))
    });
    ran?;
    Ok(board.trace_hash())
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

impl Piece {
    fn transfer<'b>(&self, tx: &'b [u8], rx: &'b mut [u8]) -> Transfer<'b> {
        let mut transfer = match self.kind {
            0 => Transfer::write(tx),
            1 => Transfer::read(rx),
            2 => Transfer::exchange(tx, rx),
            _ => Transfer::in_place(rx),
        };
        transfer.cs_change = self.cs_change;
        transfer.delay_ns = self.delay_ns;
        transfer.cs_change_delay_ns = self.cs_change_delay_ns;
        transfer.word_delay_ns = self.word_delay_ns;
        transfer.speed_hz = self.speed_hz;
        transfer.bits_per_word = self.bits;
        transfer
    }
}

impl Message {
    fn bits_of(&self, piece: &Piece) -> u8 {
        if piece.bits == 0 { self.bits } else { piece.bits }
    }

    fn speed_of(&self, piece: &Piece) -> u32 {
        if piece.speed_hz == 0 { self.speed_hz } else { piece.speed_hz }
    }

    /// The shortest time that a piece may take: its clocks at the asked speed and every delay asked.
    fn asked_ns(&self, asks: &Asks, piece: &Piece) -> u64 {
        let words = piece.words as u64;
        let clocks = words * (u64::from(self.bits_of(piece)) + asks.rest_clocks);
        let waited_clocks = clocks.saturating_sub(asks.unwaited_clocks);
        let replaces_half =
            asks.setup_is_first_half && self.chip_select == 1 && self.cs_setup_ns > 0;
        let waited_halves = (2 * waited_clocks).saturating_sub(replaces_half.into());
        let clocks_ns = waited_halves * 500_000_000 / u64::from(self.speed_of(piece));
        let gap_ns = piece.word_delay_ns.max(self.word_delay_ns);
        let gaps_ns = words.saturating_sub(1) * u64::from(gap_ns);
        let inactive_ns = if piece.cs_change && asks.waits_inactive {
            piece.cs_change_delay_ns.max(self.cs_inactive_ns)
        } else {
            0
        };
        clocks_ns + gaps_ns + u64::from(piece.delay_ns) + u64::from(inactive_ns)
    }

    /// The limits of a strict chip: exactly the times that the device is asked to keep.
    fn limits(&self) -> WireLimits {
        let speeds_hz = self.pieces.iter().map(|piece| self.speed_of(piece));
        WireLimits {
            modes: 1 << self.mode,
            cs_setup_ns: self.cs_setup_ns.into(),
            cs_hold_ns: self.cs_hold_ns.into(),
            cs_inactive_ns: self.cs_inactive_ns.into(),
            max_clock_hz: speeds_hz.fold(self.speed_hz, u32::max),
        }
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

    fn run(
        &self,
        asks: &Asks,
        board: &Board,
        bus: &Bus<dyn Controller + '_>,
        counter: &mut u8,
        late: bool,
    ) -> Result<(), TestCaseError> {
        let chip = Rc::new(RefCell::new(Echo::new(self.limits())));
        prop_assert!(board.attach(self.chip_select, chip.clone()));
        let device = bus.device(&self.settings()).expect("the block can do it");
        let effective = device.effective();
        prop_assert!(effective.speed_hz <= self.speed_hz);
        prop_assert!(effective.cs_setup_ns >= u64::from(self.cs_setup_ns));
        prop_assert!(effective.cs_inactive_ns >= u64::from(self.cs_inactive_ns));
        prop_assert!(effective.word_delay_ns >= u64::from(self.word_delay_ns));

        let mut next = || {
            *counter = counter.wrapping_mul(5).wrapping_add(77);
            *counter
        };
        let len = |piece: &Piece| piece.words * usize::from(self.bits_of(piece) / 8);
        let tx_of = |piece: &Piece| -> Vec<u8> { (0..len(piece)).map(|_| next()).collect() };
        let sent: Vec<Vec<u8>> = self.pieces.iter().map(tx_of).collect();
        let mut received = sent.clone();
        let pieces = self.pieces.iter().zip(&sent).zip(&mut received);
        let mut transfers: Vec<Transfer<'_>> =
            pieces.map(|((piece, tx), rx)| piece.transfer(tx, rx)).collect();
        let begun_ps = board.engine().now_ps();
        let actual_length = device.sync(&mut transfers);
        let took_ps = board.engine().now_ps() - begun_ps;
        prop_assert_eq!(actual_length, Ok(sent.iter().map(Vec::len).sum()));
        let asked_ns: u64 = self.pieces.iter().map(|piece| self.asked_ns(asks, piece)).sum();
        prop_assert!(
            took_ps >= asked_ns * 1_000,
            "{took_ps} ps for {asked_ns} ns of delays and clocks"
        );

        // The chip sends each byte back one byte later.
        let (mut wire, mut held) = (Vec::new(), 0);
        for ((piece, tx), rx) in self.pieces.iter().zip(&sent).zip(&received) {
            let bits = self.bits_of(piece);
            let tx = if piece.kind == 1 { vec![0; tx.len()] } else { swapped(tx, bits) };
            let back: Vec<u8> = tx.iter().map(|&byte| std::mem::replace(&mut held, byte)).collect();
            if piece.kind != 0 {
                prop_assert_eq!(rx, &swapped(&back, bits));
            }
            wire.extend(tx);
        }
        let chip = chip.borrow().clone();
        prop_assert_eq!(chip.received(), &wire[..]);
        let all_have_words = self.pieces.iter().all(|piece| piece.words > 0);
        if self.chip_select == 0 || asks.selects_without_words || all_have_words {
            let changes = self.pieces.iter().filter(|piece| piece.cs_change).count();
            prop_assert_eq!(chip.selections(), 1 + changes as u64);
        }
        let mut violations = board.violations();
        // Late software lets the FIFO run dry, and so does a wire that is faster than the registers: SCLK stalls.
        let stalls = |violation: &Violation| late || violation.rule == Rule::TxUnderrun;
        violations.retain(|violation| violation.rule.harms() || !stalls(violation));
        prop_assert!(violations.is_empty(), "{:#?}", violations);
        Ok(())
    }
}
