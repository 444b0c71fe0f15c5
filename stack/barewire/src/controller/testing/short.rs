//! Judges a block's shorter path beside the loop for any message: what it writes, reads and reports is the same, in the
//! same order, whenever the block is early or late.
//!
//! The block is a model that loops back. Its accesses and the edges of the select line are recorded in one list. A bank
//! whose edges are not short sends the same message through the loop.

use core::cell::RefCell;
use std::collections::VecDeque;
use std::format;
use std::vec;
use std::vec::Vec;

use super::sample;
use crate::bus::Bus;
use crate::controller::gpio::GpioBank;
use crate::controller::{Controller, CsLine};
use crate::reg::Access::{self, Read, Write};
use crate::reg::Registers;
use crate::spi::{Error, MODE_3, MessageError, Settings, Transfer};

/// A driver on a block that loops back.
pub(in crate::controller) trait Case {
    /// The block.
    type Block: Registers;
    /// How many kinds of it there are.
    const KINDS: usize = 1;
    /// The register that a word to send is written to.
    const DATA: u32;

    /// The block of one kind.
    fn block(kind: usize) -> Self::Block;

    /// The driver, with [`LINES`] and a clock of 20 MHz.
    fn start<'r>(
        kind: usize,
        regs: Regs<'r, Self::Block>,
        bank: Bank<'r, Self::Block>,
    ) -> impl Controller + 'r;

    /// What a register answers while nothing has been received or the block is busy. `None` if it does not tell.
    fn early(offset: u32) -> Option<u32>;

    /// Whether an access was a question alone, which is asked once more where the block is late.
    fn is_look(access: Access) -> bool {
        matches!(access, Read(offset, _) if Self::early(offset).is_some())
    }

    /// What the block found wrong: words lost or written over.
    fn offences(block: &Self::Block) -> u32;
}

/// The select lines of the two devices.
pub(in crate::controller) const LINES: [CsLine; 4] = [
    CsLine::Gpio { bit: 9, active_high: false },
    CsLine::Gpio { bit: 10, active_high: true },
    CsLine::Absent,
    CsLine::Absent,
];
/// Where an edge is recorded: the mask, and the level above it.
const EDGE: u32 = 0xffff_0000;

/// A block whose accesses are recorded, and that may be late.
pub(in crate::controller) struct Recorded<B> {
    block: B,
    data: u32,
    early: fn(u32) -> Option<u32>,
    accesses: Vec<Access>,
    /// For each coming look: whether it comes too early.
    late: VecDeque<bool>,
    /// Words after which the block gets stuck.
    works_for: Option<usize>,
}

/// The registers of a recorded block.
pub(in crate::controller) struct Regs<'r, B>(&'r RefCell<Recorded<B>>);

impl<B: Registers> Registers for Regs<'_, B> {
    fn read(&mut self, offset: u32) -> u32 {
        let mut this = self.0.borrow_mut();
        let early = (this.early)(offset)
            .filter(|_| this.works_for == Some(0) || this.late.pop_front().unwrap_or(false));
        let value = early.unwrap_or_else(|| this.block.read(offset));
        this.accesses.push(Read(offset, value));
        value
    }

    fn write(&mut self, offset: u32, value: u32) {
        let mut this = self.0.borrow_mut();
        this.accesses.push(Write(offset, value));
        if offset == this.data
            && let Some(words) = &mut this.works_for
        {
            *words = words.saturating_sub(1);
        }
        this.block.write(offset, value);
    }

    fn barrier(&mut self) {}
}

/// Lines whose edges are recorded; `short` is whether the shorter path may drive them.
pub(in crate::controller) struct Bank<'r, B> {
    regs: &'r RefCell<Recorded<B>>,
    short: bool,
}

impl<B> GpioBank for Bank<'_, B> {
    fn drive(&mut self, mask: u32, high: bool) {
        self.regs.borrow_mut().accesses.push(Write(EDGE | mask, high.into()));
    }
    fn output(&mut self, _mask: u32, _high: bool) {}
    fn is_short(&self) -> bool {
        self.short
    }
}

/// What a transfer moves, and how many bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::controller) enum Part {
    Write(usize),
    Read(usize),
    Exchange(usize),
    InPlace(usize),
    /// An exchange at a clock of its own, for which the short path is fast enough too.
    Slower(usize),
}
use Part::{Exchange, InPlace, Slower};

/// How a message is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::controller) enum How {
    Sync,
    Prepared,
}

/// What running a message did.
pub(in crate::controller) struct Ran<B> {
    pub(in crate::controller) accesses: Vec<Access>,
    pub(in crate::controller) block: B,
    pub(in crate::controller) result: Result<usize, MessageError>,
    pub(in crate::controller) rx: Vec<Vec<u8>>,
}

impl<B> Ran<B> {
    /// The result, however long a timeout was: a block that takes no word is waited for once, or for each word.
    fn outcome(&self) -> Result<usize, MessageError> {
        self.result.map_err(|error| match error.error {
            Error::Timeout { .. } => {
                MessageError { error: Error::Timeout { timeout_us: 0 }, ..error }
            }
            _ => error,
        })
    }

    /// The edges of the select line.
    pub(in crate::controller) fn edges(&self) -> Vec<(u32, bool)> {
        let edges = self.accesses.iter().filter_map(|access| match *access {
            Write(offset, high) if offset & EDGE == EDGE => Some((offset & !EDGE, high != 0)),
            _ => None,
        });
        edges.collect()
    }
}

/// Conditions under which messages run.
#[derive(Clone, Debug, Default)]
pub(in crate::controller) struct Given {
    pub(in crate::controller) kind: usize,
    /// Which looks come too early.
    pub(in crate::controller) late: Vec<bool>,
    /// Words after which the block gets stuck.
    pub(in crate::controller) works_for: Option<usize>,
    /// Whether the other device's message runs before.
    pub(in crate::controller) after_other: bool,
}

/// Runs a message of `parts`, after one that configures the block, by the shorter path or by the loop.
pub(in crate::controller) fn run<C: Case>(
    parts: &[Part],
    how: How,
    short: bool,
    given: &Given,
) -> Ran<C::Block> {
    let recorded = Recorded {
        block: C::block(given.kind),
        data: C::DATA,
        early: C::early,
        accesses: Vec::new(),
        late: VecDeque::new(),
        works_for: None,
    };
    let regs = RefCell::new(recorded);
    let bus = Bus::new(C::start(given.kind, Regs(&regs), Bank { regs: &regs, short }));
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    let other = Settings::new(1, 12_000_000).with_mode(MODE_3 | crate::spi::Mode::CS_HIGH);
    let other = bus.device(&other).expect("opens");
    device.sync(&mut [Transfer::write(&[0; 9])]).expect("configures");
    if given.after_other {
        other.sync(&mut [Transfer::write(&[0; 5])]).expect("runs");
    }
    let len = |part: &Part| match *part {
        Part::Write(len) | Part::Read(len) | Exchange(len) | InPlace(len) | Slower(len) => len,
    };
    let tx: Vec<_> = parts.iter().map(|part| sample(len(part))).collect();
    let buffer = |(part, tx): (&Part, &Vec<u8>)| match part {
        InPlace(_) => tx.clone(),
        _ => vec![0xee; tx.len()],
    };
    let mut rx: Vec<_> = parts.iter().zip(&tx).map(buffer).collect();
    let buffers = tx.iter().zip(&mut rx);
    let mut message: Vec<_> = parts
        .iter()
        .zip(buffers)
        .map(|(part, (tx, rx))| match part {
            Part::Write(_) => Transfer::write(tx),
            Part::Read(_) => Transfer::read(rx),
            Exchange(_) => Transfer::exchange(tx, rx),
            InPlace(_) => Transfer::in_place(rx),
            Slower(_) => Transfer::exchange(tx, rx).with_speed_hz(12_000_000),
        })
        .collect();
    {
        let mut regs = regs.borrow_mut();
        regs.accesses.clear();
        regs.late = given.late.iter().copied().collect();
        regs.works_for = given.works_for;
    }
    let result = match how {
        How::Sync => device.sync(&mut message),
        How::Prepared => device.prepare_message(&mut message).and_then(|mut message| message.run()),
    };
    drop(message);
    drop(bus);
    let Recorded { block, accesses, .. } = regs.into_inner();
    Ran { accesses, block, result, rx }
}

/// What is no look: looks are repeated where a word is late.
fn but_for_looks<C: Case>(accesses: &[Access]) -> Vec<Access> {
    accesses.iter().copied().filter(|&access| !C::is_look(access)).collect()
}

/// Runs a message by both paths, and asserts that they do the same. Returns what the shorter one did.
#[track_caller]
pub(in crate::controller) fn is_the_same<C: Case>(
    parts: &[Part],
    how: How,
    given: &Given,
) -> Ran<C::Block> {
    let what = format!("{parts:?}, {how:?}, {given:?}");
    let short = run::<C>(parts, how, true, given);
    let long = run::<C>(parts, how, false, given);
    assert_eq!((short.outcome(), &short.rx), (long.outcome(), &long.rx), "{what}");
    let [short_but, long_but] = [&short, &long].map(|ran| but_for_looks::<C>(&ran.accesses));
    assert_eq!(short_but, long_but, "{what}");
    if given.late.is_empty() && given.works_for.is_none() {
        assert_eq!(short.accesses, long.accesses, "{what}");
    }
    assert_eq!(C::offences(&short.block), 0, "{what}");
    let edges = [(1 << 9, false), (1 << 9, true)];
    assert_eq!(short.edges(), edges, "{what}: selected once, whatever happens");
    short
}

/// [`is_the_same`] of a message that arrives whole.
#[track_caller]
fn arrives<C: Case>(parts: &[Part], late: &[bool]) {
    for kind in 0..C::KINDS {
        for how in [How::Sync, How::Prepared] {
            let given = Given { kind, late: late.to_vec(), ..Given::default() };
            let ran = is_the_same::<C>(parts, how, &given);
            assert!(ran.result.is_ok(), "{parts:?}, {given:?}: {:?}", ran.result);
        }
    }
}

const LENGTHS: &[usize] = match cfg!(miri) {
    true => &[1, 4, 5, 9],
    false => &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 21, 24, 25, 64, 65, 255, 256, 257, 300],
};

pub(in crate::controller) fn every_length_and_form<C: Case>() {
    for &len in LENGTHS {
        for part in [Part::Write(len), Part::Read(len), Exchange(len), InPlace(len)] {
            arrives::<C>(&[part], &[]);
            arrives::<C>(&[Part::Write(4), part], &[]);
            arrives::<C>(&[part, Exchange(5), Part::Read(4), part], &[]);
        }
    }
    arrives::<C>(&[Part::Write(0), Part::Read(4)], &[]);
    arrives::<C>(&[Part::Write(4), Part::Read(0), Exchange(0)], &[]);
    arrives::<C>(&[Exchange(6); 9], &[]);
}

pub(in crate::controller) fn a_clock_of_its_own<C: Case>() {
    for len in [4, 6, 16] {
        arrives::<C>(&[Slower(len)], &[]);
        arrives::<C>(&[Slower(len), Slower(4)], &[]);
        arrives::<C>(&[Exchange(4), Slower(len)], &[]);
        arrives::<C>(&[Slower(len), Exchange(4)], &[]);
    }
}

pub(in crate::controller) fn a_late_word<C: Case>() {
    for len in [1, 3, 4, 5, 6, 7, 8, 9, 16, 24, 256] {
        for part in [Part::Write(len), Part::Read(len), Exchange(len)] {
            for at in 0..8 {
                let mut late = vec![false; 10];
                late[at] = true;
                arrives::<C>(&[part], &late);
                late[at + 1] = true;
                arrives::<C>(&[Part::Write(4), part], &late);
            }
            // Every look is early once.
            let late: Vec<bool> = (0..1_000).map(|look| look % 2 == 0).collect();
            arrives::<C>(&[part, part], &late);
        }
    }
}

pub(in crate::controller) fn after_another_device<C: Case>() {
    for kind in 0..C::KINDS {
        for len in [1, 4, 5, 8, 16, 64] {
            for how in [How::Sync, How::Prepared] {
                let given = Given { kind, after_other: true, ..Given::default() };
                let ran = is_the_same::<C>(&[Exchange(len), Part::Write(4)], how, &given);
                assert!(ran.result.is_ok(), "{len}, {given:?}: {:?}", ran.result);
            }
        }
    }
}

/// The block gets stuck after each number of words.
pub(in crate::controller) fn an_error<C: Case>() {
    let parts = [Exchange(4), Exchange(6), Part::Write(9)];
    for kind in 0..C::KINDS {
        let mut indices = Vec::new();
        for works_for in 0..20 {
            let given = Given { kind, works_for: Some(works_for), ..Given::default() };
            let ran = is_the_same::<C>(&parts, How::Prepared, &given);
            let Err(error) = ran.result else { break };
            let what = format!("{works_for} words, kind {kind}");
            assert!(matches!(error.error, Error::Timeout { .. }), "{what}: {error}");
            let before = [0, 4, 10][error.transfer_index];
            assert_eq!(error.actual_length, before, "{what}");
            let came = ran.rx.iter().take_while(|rx| **rx == sample(rx.len())).count();
            assert!(came >= error.transfer_index, "{what}");
            indices.push(error.transfer_index);
        }
        assert!(indices.is_sorted() && indices.contains(&2) && indices.contains(&0), "{indices:?}");
    }
}

/// The tests of a [`Case`].
macro_rules! shorter_path {
    ($case:ty) => {
        #[test]
        fn every_length_and_form_takes_the_accesses_of_the_loop() {
            $crate::controller::testing::short::every_length_and_form::<$case>();
        }

        #[test]
        fn a_transfer_has_its_own_clock_on_the_shorter_path_too() {
            $crate::controller::testing::short::a_clock_of_its_own::<$case>();
        }

        #[test]
        fn a_word_that_is_late_is_waited_for() {
            $crate::controller::testing::short::a_late_word::<$case>();
        }

        #[test]
        fn another_device_before_it_changes_nothing() {
            $crate::controller::testing::short::after_another_device::<$case>();
        }

        #[test]
        fn an_error_names_its_transfer_and_releases_the_chip() {
            $crate::controller::testing::short::an_error::<$case>();
        }
    };
}
pub(in crate::controller) use shorter_path;
