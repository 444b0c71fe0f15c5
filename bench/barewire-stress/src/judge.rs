//! The judge compares the traffic on the wire with the results that the contexts were told.
//!
//! # How it works
//! Behind each chip select sits a [`Recorder`], which hands every selection's bytes to the one
//! [`Judge`], in the order of the wire. Contexts tell the judge which messages they submit, and
//! each message's outcome. The judge keeps one byte for each message and the bytes of one
//! selection, no more.
//!
//! A message that failed was on the wire as far as its error says, and no further.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use barewire::spi::MessageError;
use barewire_sim::chip::{Chip, Clocking, Ps, WireLimits};
use barewire_sim::model::echo::NO_LIMITS;

use super::frame::{Header, checksum};

/// The whole message was on the wire.
const WHOLE: u8 = 1;
/// A part of the message was on the wire.
const BROKEN: u8 = 2;
/// Its context was told that it ran.
const DONE: u8 = 4;
/// Its context was told that it failed.
const FAILED: u8 = 8;
/// Its context was told that it did not run.
const NOT_RUN: u8 = 16;
const SETTLED: u8 = DONE | FAILED | NOT_RUN;

/// A message's outcome, as its context was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It ran.
    Done(usize),
    /// It failed on the wire.
    Failed(MessageError),
    /// It did not run: cancelled, or the bus was busy.
    NotRun,
}

/// Broken promises, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BrokenPromises {
    pub(super) order_violations: u64,
    pub(super) interleavings: u64,
    pub(super) lost: u64,
    pub(super) duplicated: u64,
}

/// Other counts from the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WireCounts {
    /// Whole messages.
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) selections: u64,
    /// Messages that began while an older one of lower priority waited.
    pub(super) priority_overtakes: u64,
    /// The largest number of times one message was overtaken before it began.
    pub(super) overtaken_max: u64,
}

/// A message that was given and has not begun.
struct Waiting {
    number: u32,
    given: u64,
    priority: u8,
    overtaken: u64,
}

/// One context, as the judge sees it.
#[derive(Default)]
struct Context {
    messages: Vec<u8>,
    /// The highest number of a message that was on the wire.
    latest: Option<u32>,
    waiting: VecDeque<Waiting>,
}

/// A message whose further selections have not arrived yet.
struct Open {
    header: Header,
    chip_select: u8,
    part: usize,
    sum: u8,
}

/// See the module.
pub(super) struct Judge {
    contexts: Vec<Context>,
    given: u64,
    selected: Option<u8>,
    bytes: Vec<u8>,
    open: Option<Open>,
    /// Bytes of messages that broke off and are not settled.
    broken_off: HashMap<(usize, u32), usize>,
    locked_by: Option<usize>,
    broken: BrokenPromises,
    seen: WireCounts,
}

impl Judge {
    pub(super) fn new(contexts: usize) -> Self {
        Self {
            contexts: (0..contexts).map(|_| Context::default()).collect(),
            given: 0,
            selected: None,
            bytes: Vec::new(),
            open: None,
            broken_off: HashMap::new(),
            locked_by: None,
            broken: BrokenPromises::default(),
            seen: WireCounts::default(),
        }
    }

    /// Registers a further message of `context`, and returns its number.
    pub(super) fn give(&mut self, context: usize, priority: u8) -> u32 {
        let given = self.given;
        self.given += 1;
        let context = &mut self.contexts[context];
        let number = context.messages.len() as u32;
        context.messages.push(0);
        context.waiting.push_back(Waiting { number, given, priority, overtaken: 0 });
        number
    }

    /// The message is handed to the bus only now, so messages that ran before now did not overtake
    /// it.
    pub(super) fn hands_over(&mut self, context: usize, number: u32) {
        let given = self.given;
        let mut waiting = self.contexts[context].waiting.iter_mut();
        if let Some(waiting) = waiting.find(|waiting| waiting.number == number) {
            (waiting.given, waiting.overtaken) = (given, 0);
        }
    }

    /// How many messages were given.
    pub(super) fn given(&self) -> u64 {
        self.given
    }

    /// `context` acquired the lock of the bus.
    pub(super) fn locks(&mut self, context: usize) {
        if self.locked_by.replace(context).is_some() {
            self.broken.interleavings += 1;
        }
    }

    /// The lock of the bus was released.
    pub(super) fn unlocks(&mut self) {
        self.locked_by = None;
    }

    /// The context is told its message's outcome. By then everything of the message that reached the
    /// wire was recorded.
    pub(super) fn settle(&mut self, context: usize, number: u32, outcome: Outcome) {
        let is_open = |open: &Open| (open.header.context, open.header.number) == (context, number);
        if self.open.as_ref().is_some_and(is_open) {
            self.break_off();
        }
        let state = &mut self.contexts[context];
        state.waiting.retain(|waiting| waiting.number != number);
        let flags = &mut state.messages[number as usize];
        let was = *flags;
        *flags |= match outcome {
            Outcome::Done(_) => DONE,
            Outcome::Failed(_) => FAILED,
            Outcome::NotRun => NOT_RUN,
        };
        let broken_off = self.broken_off.remove(&(context, number));
        match outcome {
            Outcome::Done(_) => self.broken.interleavings += u64::from(was & BROKEN != 0),
            Outcome::NotRun => self.broken.duplicated += u64::from(was != 0),
            Outcome::Failed(error) => match broken_off.unwrap_or(0).cmp(&error.actual_length) {
                _ if was & WHOLE != 0 => self.broken.duplicated += 1,
                std::cmp::Ordering::Less => self.broken.lost += 1,
                std::cmp::Ordering::Equal => {}
                std::cmp::Ordering::Greater => self.broken.duplicated += 1,
            },
        }
    }

    /// The verdict, after all contexts have ended.
    pub(super) fn close(&mut self) -> (BrokenPromises, WireCounts) {
        self.break_off();
        for context in &self.contexts {
            for &flags in &context.messages {
                let never = flags & SETTLED == 0;
                let nowhere = flags & DONE != 0 && flags & (WHOLE | BROKEN) == 0;
                self.broken.lost += u64::from(never || nowhere);
            }
        }
        (self.broken, self.seen)
    }

    fn select(&mut self, chip_select: u8) {
        if self.selected.replace(chip_select).is_some() {
            self.broken.interleavings += 1;
        }
        self.seen.selections += 1;
        self.bytes.clear();
    }

    fn deselect(&mut self, chip_select: u8) {
        self.selected = None;
        let bytes = std::mem::take(&mut self.bytes);
        self.seen.bytes += bytes.len() as u64;
        // Nothing was clocked: an error between two selections of a message.
        if !bytes.is_empty() {
            self.selection(chip_select, &bytes);
        }
        self.bytes = bytes;
    }

    /// One selection's bytes.
    fn selection(&mut self, chip_select: u8, bytes: &[u8]) {
        if let Some(open) = &mut self.open {
            let Open { header, part, .. } = *open;
            let len = header.part_at(part + 1) - header.part_at(part);
            if open.chip_select == chip_select && header.goes_on(bytes[0]) && bytes.len() <= len {
                if bytes.len() < len {
                    self.break_off_at(header.part_at(part) + bytes.len());
                } else if part + 1 < header.parts {
                    open.sum = checksum(open.sum, bytes);
                    open.part += 1;
                } else {
                    let sum = open.sum;
                    self.open = None;
                    self.end(header, sum, bytes);
                }
                return;
            }
            self.break_off();
        }
        let header = Header::read(bytes).filter(|header| {
            let numbers = self.contexts.get(header.context).map(|context| context.messages.len());
            numbers.is_some_and(|numbers| (header.number as usize) < numbers)
        });
        let Some(header) = header else {
            self.broken.interleavings += 1;
            return;
        };
        self.begin(header);
        let len = header.part_at(1);
        if bytes.len() > len {
            self.broken.interleavings += 1;
        } else if bytes.len() == len && header.parts == 1 {
            self.end(header, 0, bytes);
        } else {
            let sum = checksum(0, bytes);
            self.open = Some(Open { header, chip_select, part: 1, sum });
            if bytes.len() < len {
                self.break_off_at(bytes.len());
            }
        }
    }

    /// The first bytes of a message arrived.
    fn begin(&mut self, header: Header) {
        if self.locked_by.is_some_and(|by| by != header.context) {
            self.broken.interleavings += 1;
        }
        let context = &mut self.contexts[header.context];
        let again = context.messages[header.number as usize] & (WHOLE | BROKEN) != 0;
        if context.latest.is_some_and(|latest| header.number < latest) && !again {
            self.broken.order_violations += 1;
        }
        context.latest = context.latest.max(Some(header.number));
        let at = context.waiting.iter().position(|waiting| waiting.number == header.number);
        let begun = at.and_then(|at| context.waiting.remove(at));
        let Some(Waiting { given, priority, overtaken, .. }) = begun else { return };
        self.seen.overtaken_max = self.seen.overtaken_max.max(overtaken);
        // A message run under the lock does not overtake: the holder of the lock had its turn before.
        if priority == 0 || self.locked_by.is_some() {
            return;
        }
        let mut overtakes = false;
        let others = self.contexts.iter_mut().flat_map(|context| &mut context.waiting);
        for other in others.filter(|other| other.priority < priority && other.given < given) {
            other.overtaken += 1;
            overtakes = true;
        }
        self.seen.priority_overtakes += u64::from(overtakes);
    }

    /// The last selection of a message arrived.
    fn end(&mut self, header: Header, sum: u8, bytes: &[u8]) {
        let (last, before) = bytes.split_last().expect("a selection with bytes");
        if checksum(sum, before) != *last {
            self.break_off_header(header, header.len);
            return;
        }
        self.seen.messages += 1;
        let flags = &mut self.contexts[header.context].messages[header.number as usize];
        if *flags & (WHOLE | FAILED | NOT_RUN) != 0 {
            self.broken.duplicated += 1;
        }
        *flags |= WHOLE;
    }

    /// The open message broke off: its remaining selections did not arrive.
    fn break_off(&mut self) {
        if let Some(open) = &self.open {
            self.break_off_at(open.header.part_at(open.part));
        }
    }

    fn break_off_at(&mut self, len: usize) {
        if let Some(Open { header, .. }) = self.open.take() {
            self.break_off_header(header, len);
        }
    }

    fn break_off_header(&mut self, header: Header, len: usize) {
        let flags = &mut self.contexts[header.context].messages[header.number as usize];
        if *flags & (DONE | FAILED | NOT_RUN) != 0 {
            self.broken.interleavings += 1;
        } else {
            self.broken_off.insert((header.context, header.number), len);
        }
        *flags |= BROKEN;
    }
}

/// The chip behind a chip select. It reports each byte to the judge, and answers with the bytes
/// that it received before.
pub(super) struct Recorder {
    chip_select: u8,
    judge: Rc<RefCell<Judge>>,
    shift: u8,
}

impl Recorder {
    pub(super) fn new(chip_select: u8, judge: Rc<RefCell<Judge>>) -> Self {
        Self { chip_select, judge, shift: 0 }
    }
}

impl Chip for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn limits(&self) -> WireLimits {
        NO_LIMITS
    }

    fn select(&mut self, _at: Ps) {
        self.shift = 0;
        self.judge.borrow_mut().select(self.chip_select);
    }

    fn deselect(&mut self, _at: Ps) {
        self.judge.borrow_mut().deselect(self.chip_select);
    }

    /// Whole bytes: the stress asks for words of eight bits, and ECSPI's bursts are of whole words.
    fn exchange(&mut self, _clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        let through = u64::from(self.shift) << bits | u64::from(mosi);
        let mut judge = self.judge.borrow_mut();
        for at in (0..bits / 8).rev() {
            judge.bytes.push((mosi >> (8 * at)) as u8);
        }
        self.shift = mosi as u8;
        (through >> 8) as u32
    }
}

#[cfg(test)]
mod tests {
    use barewire::spi::Error;

    use super::*;
    use crate::message::sign;

    const LEN: usize = 12;

    fn on_wire(judge: &mut Judge, context: usize, number: u32, len: usize) {
        let mut bytes = [0; LEN];
        sign(&mut bytes, context, number);
        judge.select(0);
        judge.bytes.extend_from_slice(&bytes[..len]);
        judge.deselect(0);
    }

    fn judged(with: impl FnOnce(&mut Judge)) -> [u64; 4] {
        let mut judge = Judge::new(2);
        for context in [0, 0, 0, 1] {
            judge.give(context, 0);
        }
        with(&mut judge);
        for (context, number) in [(0, 0), (0, 1), (0, 2), (1, 0)] {
            if judge.contexts[context].messages[number as usize] & SETTLED == 0 {
                judge.settle(context, number, Outcome::NotRun);
            }
        }
        let BrokenPromises { order_violations, interleavings, lost, duplicated } = judge.close().0;
        [order_violations, interleavings, lost, duplicated]
    }

    fn failed(actual_length: usize) -> Outcome {
        Outcome::Failed(MessageError { error: Error::Busy, transfer_index: 0, actual_length })
    }

    #[test]
    fn each_broken_promise_has_its_field() {
        let done = Outcome::Done(LEN);
        assert_eq!(judged(|_| {}), [0; 4]);
        assert_eq!(
            judged(|judge| {
                on_wire(judge, 0, 1, LEN);
                judge.settle(0, 1, done);
                on_wire(judge, 0, 0, LEN);
                judge.settle(0, 0, done);
            }),
            [1, 0, 0, 0]
        );
        assert_eq!(judged(|judge| judge.settle(0, 0, done)), [0, 0, 1, 0]);
        assert_eq!(judged(|judge| on_wire(judge, 0, 0, LEN)), [0, 0, 0, 1], "but cancelled");
        let twice = |judge: &mut Judge| {
            on_wire(judge, 0, 0, LEN);
            judge.settle(0, 0, done);
            on_wire(judge, 0, 0, LEN);
        };
        assert_eq!(judged(twice), [0, 0, 0, 1]);
        let foreign = |judge: &mut Judge| {
            judge.locks(1);
            on_wire(judge, 0, 0, LEN);
            judge.settle(0, 0, done);
            judge.unlocks();
        };
        assert_eq!(judged(foreign), [0, 1, 0, 0]);
        let both_selected = |judge: &mut Judge| {
            judge.select(1);
            judge.select(0);
        };
        assert_eq!(judged(both_selected), [0, 1, 0, 0]);
    }

    #[test]
    fn a_failed_message_is_there_as_far_as_its_error_says() {
        for (on_the_wire, told, broken) in [
            (0, 0, [0; 4]),
            (9, 9, [0; 4]),
            (9, 10, [0, 0, 1, 0]),
            (10, 9, [0, 0, 0, 1]),
            (LEN, 9, [0, 0, 0, 1]),
        ] {
            let with = |judge: &mut Judge| {
                on_wire(judge, 0, 0, on_the_wire);
                judge.settle(0, 0, failed(told));
                on_wire(judge, 0, 1, LEN);
                judge.settle(0, 1, Outcome::Done(LEN));
            };
            assert_eq!(judged(with), broken, "{on_the_wire} bytes, told {told}");
        }
        let broken_off = |judge: &mut Judge| {
            on_wire(judge, 0, 0, 9);
            judge.settle(0, 0, Outcome::Done(LEN));
        };
        assert_eq!(judged(broken_off), [0, 1, 0, 0]);
    }

    #[test]
    fn a_message_that_waits_too_long_is_noticed() {
        let mut judge = Judge::new(2);
        judge.give(0, 0);
        for number in 0..3 {
            judge.give(1, 1);
            on_wire(&mut judge, 1, number, LEN);
        }
        on_wire(&mut judge, 0, 0, LEN);
        let seen = judge.close().1;
        assert_eq!((seen.priority_overtakes, seen.overtaken_max, seen.messages), (3, 3, 4));
    }
}
