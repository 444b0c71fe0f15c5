//! The shorter path beside the loop for any message: what it writes, reads and reports is the same.

use core::cell::RefCell;
use std::collections::BTreeSet;
use std::format;

use super::*;
use crate::controller::testing::sample;

/// A block whose accesses are recorded, and that may be late.
#[derive(Default)]
struct Recorded {
    block: Looped,
    accesses: Vec<Access>,
    /// Levels of the select line, as they were driven.
    edges: Vec<bool>,
    /// For each coming read of a status: whether it comes before anything was received or is over.
    late: VecDeque<bool>,
    /// TXDATA writes after which the block gets stuck.
    works_for: Option<usize>,
}

struct Regs<'r>(&'r RefCell<Recorded>);

impl Registers for Regs<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        let mut this = self.0.borrow_mut();
        let late = matches!(offset, 0x08 | 0x18) && this.late.pop_front().unwrap_or(false);
        let value = match offset {
            0x08 if late => this.block.read(offset) | 4,
            0x18 if late => 1,
            _ => this.block.read(offset),
        };
        this.accesses.push(Read(offset, value));
        value
    }

    fn write(&mut self, offset: u32, value: u32) {
        let mut this = self.0.borrow_mut();
        this.accesses.push(Write(offset, value));
        if offset == 0x04
            && let Some(words) = &mut this.works_for
        {
            match words.checked_sub(1) {
                Some(left) => *words = left,
                None => this.block.wedged = true,
            }
        }
        this.block.write(offset, value);
    }

    fn barrier(&mut self) {}
}

/// A line whose edges are recorded; `short` is whether the shorter path may drive it.
struct Line<'r> {
    regs: &'r RefCell<Recorded>,
    short: bool,
}

impl GpioBank for Line<'_> {
    fn drive(&mut self, _mask: u32, high: bool) {
        self.regs.borrow_mut().edges.push(high);
    }
    fn output(&mut self, _mask: u32, _high: bool) {}
    fn is_short(&self) -> bool {
        self.short
    }
}

/// What a transfer moves, and how many bytes.
#[derive(Clone, Copy, Debug)]
enum Part {
    Write(usize),
    Read(usize),
    Exchange(usize),
    InPlace(usize),
    /// An exchange at a clock of its own, for which the short path is fast enough too.
    Slower(usize),
}
use Part::{Exchange, InPlace, Slower};

/// Runs a message twice, the first time to configure the block, and returns what the second did to `after`.
fn run(
    parts: &[Part],
    short: bool,
    set: impl Fn(&mut Recorded),
    prepared: bool,
) -> (Recorded, Result<usize, MessageError>, Vec<Vec<u8>>) {
    let regs = RefCell::new(Recorded::default());
    let line = Line { regs: &regs, short };
    let bus = Bus::new(Ecspi::new(Regs(&regs), line, Ticker::default(), config(PIN_9)));
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    device.sync(&mut [Transfer::write(&[0; 9])]).expect("configures");
    let len = |part: &Part| match *part {
        Part::Write(len) | Part::Read(len) | Exchange(len) | InPlace(len) | Slower(len) => len,
    };
    let tx: Vec<_> = parts.iter().map(|part| sample(len(part))).collect();
    let mut rx: Vec<_> = parts
        .iter()
        .zip(&tx)
        .map(|(part, tx)| if let InPlace(_) = part { tx.clone() } else { vec![0xee; tx.len()] })
        .collect();
    let mut message: Vec<_> = parts
        .iter()
        .zip(&tx)
        .zip(&mut rx)
        .map(|((part, tx), rx)| match part {
            Part::Write(_) => Transfer::write(tx),
            Part::Read(_) => Transfer::read(rx),
            Exchange(_) => Transfer::exchange(tx, rx),
            InPlace(_) => Transfer::in_place(rx),
            Slower(_) => Transfer { speed_hz: 12_000_000, ..Transfer::exchange(tx, rx) },
        })
        .collect();
    regs.borrow_mut().accesses.clear();
    regs.borrow_mut().edges.clear();
    set(&mut regs.borrow_mut());
    let ran = match prepared {
        true => device.prepare_message(&mut message).and_then(|mut message| message.run()),
        false => device.sync(&mut message),
    };
    (regs.into_inner(), ran, rx)
}

/// What is not a status: statuses are read once more where a word is late.
fn but_for_looks(accesses: &[Access]) -> Vec<Access> {
    let kept = accesses.iter().filter(|access| !matches!(access, Read(0x08 | 0x18, _)));
    kept.copied().collect()
}

#[track_caller]
fn is_the_same(parts: &[Part], late: &[bool]) {
    let set = |recorded: &mut Recorded| recorded.late = late.iter().copied().collect();
    for prepared in [false, true] {
        let what = format!("{parts:?}, late {late:?}, prepared {prepared}");
        let (short, ran, rx) = run(parts, true, set, prepared);
        let (long, ran_long, rx_long) = run(parts, false, set, prepared);
        assert!(ran.is_ok(), "{what}: {ran:?}");
        assert_eq!((ran, rx, &short.edges), (ran_long, rx_long, &long.edges), "{what}");
        assert_eq!(but_for_looks(&short.accesses), but_for_looks(&long.accesses), "{what}");
        if late.is_empty() {
            assert_eq!(short.accesses, long.accesses, "{what}");
        }
        assert_eq!((short.block.overruns, short.edges), (0, vec![false, true]), "{what}");
    }
}

#[test]
fn every_length_and_form_takes_the_accesses_of_the_loop() {
    let lengths: &[usize] = match cfg!(miri) {
        true => &[1, 4, 5, 9, 257],
        false => &[1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 25, 64, 253, 255, 256, 257, 300],
    };
    for &len in lengths {
        for part in [Part::Write(len), Part::Read(len), Exchange(len), InPlace(len)] {
            is_the_same(&[part], &[]);
            is_the_same(&[Part::Write(4), part], &[]);
            is_the_same(&[part, Exchange(5), Part::Read(4), part], &[]);
        }
    }
    is_the_same(&[Part::Write(0), Part::Read(4)], &[]);
    is_the_same(&[Part::Write(4), Part::Read(0), Exchange(0)], &[]);
    is_the_same(&[Exchange(6); 9], &[]);
}

#[test]
fn a_transfer_has_its_own_clock_on_the_shorter_path_too() {
    for len in [4, 6, 16] {
        for parts in [
            &[Slower(len)][..],
            &[Slower(len), Slower(4)],
            &[Exchange(4), Slower(len)],
            &[Slower(len), Exchange(4)],
        ] {
            is_the_same(parts, &[]);
            let (recorded, ran, _) = run(parts, true, |_| (), true);
            assert!(ran.is_ok(), "{ran:?}");
            let dividers: BTreeSet<u32> = recorded
                .accesses
                .iter()
                .filter_map(|access| match access {
                    Write(0x08, control) => Some(control & 0xff00),
                    _ => None,
                })
                .collect();
            let clocks = if parts.iter().all(|part| matches!(part, Slower(_))) { 1 } else { 2 };
            assert_eq!(dividers.len(), clocks, "{parts:?}");
        }
    }
}

#[test]
fn a_word_that_is_late_is_waited_for() {
    for len in [3, 5, 7, 8, 9, 16, 24, 256] {
        for part in [Part::Write(len), Part::Read(len), Exchange(len)] {
            for at in 0..6 {
                let mut late = [false; 8];
                late[at] = true;
                is_the_same(&[part], &late);
                late[at + 1] = true;
                is_the_same(&[Part::Write(4), part], &late);
            }
        }
    }
}

#[test]
fn an_error_names_its_transfer_and_releases_the_chip() {
    let parts = [Exchange(4), Exchange(6), Part::Write(9)];
    // Words that get through: 1 of the first transfer, 2 of the second, 3 of the third.
    for (works_for, index, before) in [(0, 0, 0), (1, 1, 4), (2, 1, 4), (3, 2, 10), (5, 2, 10)] {
        for short in [true, false] {
            let set = |recorded: &mut Recorded| recorded.works_for = Some(works_for);
            let (recorded, ran, rx) = run(&parts, short, set, true);
            let what = format!("{works_for} words, short {short}");
            let error = ran.expect_err(&what);
            assert!(matches!(error.error, Error::Timeout { .. }), "{what}: {error}");
            assert_eq!((error.transfer_index, error.actual_length), (index, before), "{what}");
            assert_eq!(recorded.edges, [false, true], "{what}");
            assert_eq!(recorded.block.resets, 2, "{what}: at start and after the error");
            let came = rx.iter().take_while(|rx| **rx == sample(rx.len())).count();
            assert_eq!(came, index, "{what}");
        }
    }
}
