//! A controller block whose register accesses are on a tape, and whose clock can be stopped.
//!
//! The block is the board's own, wrapped: it answers every access as before. While its clock is stopped,
//! no time passes for the block: registers store writes, and no word moves.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use barewire::controller::Interrupt;
use barewire_sim::bring_up::SimInterrupt;
use barewire_sim::chip::Ps;
use barewire_sim::model::{BlockOptions, ControllerBlock, ControllerKind};
use barewire_sim::wire::Wire;
use barewire_sim::{Board, BoardOptions, BoardSpec};

use super::Block;

#[derive(Clone, Debug)]
enum Entry {
    Read(u32, u32),
    Write(u32, u32),
    Note(String),
}

/// An access to the controller's registers: its offset and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read(u32, u32),
    Write(u32, u32),
}

/// Bits of a register that read as set although they are not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub offset: u32,
    pub bits: u32,
    /// The claim is made while all of these bits of the register are clear,
    pub while_clear: u32,
    /// and the clock is stopped, or always.
    pub when_stopped: bool,
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<(Ps, Entry)>,
    /// Accesses after which the clock stops.
    stops_after: Option<u64>,
    stopped_at: Option<Ps>,
    /// Sleeps of the caller before the one that panics.
    dies_after: Option<u32>,
    /// The interrupt line does not reach its controller.
    mute: bool,
    claim: Option<Claim>,
}

/// State shared by a board and its judge. It lies in leaked memory, because a board's options must be `Send`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tape(&'static Mutex<State>);

impl Tape {
    fn state(self) -> MutexGuard<'static, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the block's clock at the access that comes after `accesses` more.
    pub(crate) fn stop_after(self, accesses: u64) {
        self.state().stops_after = Some(accesses);
    }

    /// Lets the clock run again. Returns whether it was stopped.
    pub(crate) fn go_on(self) -> bool {
        let mut state = self.state();
        state.stops_after = None;
        state.stopped_at.take().is_some()
    }

    /// Lets a register claim something.
    pub(crate) fn claim(self, claim: Claim) {
        self.state().claim = Some(claim);
    }

    /// Cuts the interrupt line.
    pub(crate) fn mute(self) {
        self.state().mute = true;
    }

    /// Lets the caller panic in the sleep that comes after `sleeps` more.
    pub(crate) fn die_after(self, sleeps: u32) {
        self.state().dies_after = Some(sleeps);
    }

    /// Cancels the caller's panic. Returns whether it had not happened yet.
    pub(crate) fn live_on(self) -> bool {
        self.state().dies_after.take().is_some()
    }

    /// Counts a sleep. Returns whether the caller must panic in this sleep.
    fn dies(self) -> bool {
        let mut state = self.state();
        match state.dies_after {
            Some(0) => {
                state.dies_after = None;
                true
            }
            left => {
                state.dies_after = left.map(|left| left - 1);
                false
            }
        }
    }

    fn add(self, at: Ps, entry: Entry) {
        self.state().entries.push((at, entry));
    }

    /// The time that the block sees.
    fn time(self, now: Ps) -> Ps {
        self.state().stopped_at.unwrap_or(now)
    }

    /// The time of an access.
    fn access(self, now: Ps) -> Ps {
        let mut state = self.state();
        if let Some(accesses) = &mut state.stops_after {
            match accesses.checked_sub(1) {
                Some(left) => *accesses = left,
                None => (state.stops_after, state.stopped_at) = (None, Some(now)),
            }
        }
        state.stopped_at.unwrap_or(now)
    }
}

/// The data of a block's wrapper; [`BlockOptions`] carry it.
#[derive(Clone, Copy)]
struct Watch {
    kind: &'static ControllerKind,
    tape: Tape,
}

#[derive(Debug)]
struct WatchedBlock {
    inner: Box<dyn ControllerBlock>,
    tape: Tape,
}

impl ControllerBlock for WatchedBlock {
    fn read(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> u32 {
        let mut value = self.inner.read(offset, self.tape.access(now), wire);
        let (stopped_at, claim) = {
            let state = self.tape.state();
            (state.stopped_at, state.claim)
        };
        if let Some(claim) = claim
            && claim.offset == offset
            && value & claim.while_clear == 0
            && (stopped_at.is_some() || !claim.when_stopped)
        {
            value |= claim.bits;
        }
        self.tape.add(now, Entry::Read(offset, value));
        value
    }

    fn write(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) {
        self.inner.write(offset, value, self.tape.access(now), wire);
        self.tape.add(now, Entry::Write(offset, value));
    }

    fn catch_up(&mut self, now: Ps, wire: &mut Wire) {
        self.inner.catch_up(self.tape.time(now), wire);
    }

    fn due(&self) -> Ps {
        let state = self.tape.state();
        if state.stopped_at.is_some() || state.mute { Ps::MAX } else { self.inner.due() }
    }

    fn interrupt(&self) -> bool {
        !self.tape.state().mute && self.inner.interrupt()
    }
}

fn watched(reference_hz: u64, options: &BlockOptions) -> Box<dyn ControllerBlock> {
    let Watch { kind, tape } = options.get::<Option<Watch>>().expect("made by `TapedBoard`");
    Box::new(WatchedBlock { inner: (kind.model)(reference_hz, options), tape })
}

/// A board with a watched block.
pub(crate) struct TapedBoard {
    pub board: Board,
    pub tape: Tape,
}

impl TapedBoard {
    pub(super) fn new(spec: &'static BoardSpec, options: BlockOptions) -> Self {
        let tape = Tape(Box::leak(Box::default()));
        let ControllerKind { name, bytes, registers, .. } = *spec.kind;
        let kind = Box::leak(Box::new(ControllerKind { name, bytes, registers, model: watched }));
        let blocks = options.with(Some(Watch { kind: spec.kind, tape }));
        let spec = Box::leak(Box::new(BoardSpec { kind, ..spec.clone() }));
        let board = Board::new(spec, BoardOptions { blocks, ..BoardOptions::default() });
        board.start_selections();
        Self { board, tape }
    }

    /// The block's interrupt, with its calls on the tape.
    pub(crate) fn interrupt(&self) -> TapedInterrupt {
        let (inner, board) = (SimInterrupt::new(&self.board), self.board.clone());
        TapedInterrupt { inner, board, tape: self.tape }
    }

    /// Writes a line of its own on the tape.
    pub(crate) fn note(&self, text: String) {
        self.tape.add(self.board.engine().now_ps(), Entry::Note(text));
    }

    /// The accesses on the tape, and an empty tape.
    pub(crate) fn accesses(&self) -> Vec<Access> {
        let entries = std::mem::take(&mut self.tape.state().entries);
        let access = |(_, entry)| match entry {
            Entry::Read(offset, value) => Some(Access::Read(offset, value)),
            Entry::Write(offset, value) => Some(Access::Write(offset, value)),
            Entry::Note(_) => None,
        };
        entries.into_iter().filter_map(access).collect()
    }

    /// The tape as text, and an empty tape.
    pub(crate) fn text(&self, block: &Block) -> String {
        let mut entries = std::mem::take(&mut self.tape.state().entries);
        for selection in self.board.take_selections() {
            entries.push((selection.selected_at, Entry::Note(String::from("(select)"))));
            entries.push((selection.deselected_at, Entry::Note(String::from("(deselect)"))));
        }
        self.board.start_selections();
        entries.sort_by_key(|(at, _)| *at);
        let entries = with_waits(entries);
        let words: Vec<Word> =
            entries.chunk_by(|a, b| is_one_run(block, a, b)).map(|run| told(block, run)).collect();
        let (mut text, mut line) = (String::new(), String::new());
        for word in folded(&words) {
            let alone = word.starts_with('=');
            if !line.is_empty() && (alone || line.len() + word.len() > LINE_MAX) {
                let _ = writeln!(text, "   {line}");
                line.clear();
            }
            let _ = write!(line, " {word}");
            if alone {
                let _ = writeln!(text, "   {line}");
                line.clear();
            }
        }
        if !line.is_empty() {
            let _ = writeln!(text, "   {line}");
        }
        text
    }
}

const LINE_MAX: usize = 105;
/// The longest cycle of words that is folded.
const CYCLE_MAX: usize = 8;

/// The entries, with a note where nothing happened for longer than an access takes. A caller's sleep gets no such
/// note: it has an entry of its own.
fn with_waits(entries: Vec<(Ps, Entry)>) -> Vec<Entry> {
    let mut all = Vec::new();
    let mut before: Option<(Ps, bool)> = None;
    for (at, entry) in entries {
        if let Some((last, false)) = before
            && at - last >= WAIT_PS_MIN
        {
            all.push(Entry::Note(format!("(wait {} us)", (at - last) / PS_PER_US)));
        }
        before = Some((at, matches!(&entry, Entry::Note(text) if text.starts_with("(sleep"))));
        all.push(entry);
    }
    all
}

const PS_PER_US: Ps = 1_000_000;
/// A read of RP1's registers takes a microsecond.
const WAIT_PS_MIN: Ps = 1_500_000;

/// A word of a script: its text, and the part that makes two words alike, which is all but the data.
struct Word {
    text: String,
    like: String,
}

/// The words, with cycles that repeat more than three times shown once.
fn folded(words: &[Word]) -> Vec<String> {
    let mut told = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let alike = |len: usize| {
            let next = |times: &usize| {
                let (a, b) = (at, at + times * len);
                b + len <= words.len()
                    && (0..len).all(|index| words[a + index].like == words[b + index].like)
            };
            (1..).take_while(next).count() + 1
        };
        let cycle = (1..=CYCLE_MAX).find(|&len| at + len <= words.len() && alike(len) > 3);
        let Some(len) = cycle else {
            told.push(words[at].text.clone());
            at += 1;
            continue;
        };
        let times = alike(len);
        let once: Vec<&str> = words[at..at + len].iter().map(|word| word.text.as_str()).collect();
        told.push(format!("[{}] and {} alike", once.join(" "), times - 1));
        at += times * len;
    }
    told
}

/// Whether two accesses in a row are shown as one. They must be to the same register in the same
/// direction, and must not configure the block.
fn is_one_run(block: &Block, a: &Entry, b: &Entry) -> bool {
    match (a, b) {
        (Entry::Read(a, _), Entry::Read(b, _)) => a == b,
        (Entry::Write(a, _), Entry::Write(b, _)) => a == b && *a == block.data_out,
        _ => false,
    }
}

/// `REG=value` for a write, `REG:value` for a read; data as its first and last word and their number; of
/// a register that is polled, each value that differs from the one before.
fn told(block: &Block, run: &[Entry]) -> Word {
    let (offset, sign, values): (u32, char, Vec<u32>) = match run {
        [Entry::Note(text)] => return Word { text: text.clone(), like: text.clone() },
        [Entry::Read(offset, _), ..] => (*offset, ':', values(run)),
        [Entry::Write(offset, _), ..] => (*offset, '=', values(run)),
        _ => unreachable!("a note is alone"),
    };
    let data = if sign == '=' { block.data_out } else { block.data_in };
    let name = block.register(offset);
    let text = match values[..] {
        [value] => format!("{name}{sign}{value:x}"),
        [first, .., last] if offset == data => {
            format!("{name}{sign}{first:x}..{last:x} ({})", values.len())
        }
        _ => {
            let mut values = values.clone();
            values.dedup();
            let shown: Vec<String> =
                values.iter().take(6).map(|value| format!("{value:x}")).collect();
            let more = if values.len() > 6 {
                format!("..{:x}", values[values.len() - 1])
            } else {
                String::new()
            };
            format!("{name}{sign}{}{more} polled", shown.join(","))
        }
    };
    let like =
        if offset == data { format!("{name}{sign}({})", values.len()) } else { text.clone() };
    Word { text, like }
}

fn values(run: &[Entry]) -> Vec<u32> {
    let value = |entry: &Entry| match entry {
        Entry::Read(_, value) | Entry::Write(_, value) => *value,
        Entry::Note(_) => 0,
    };
    run.iter().map(value).collect()
}

/// The interrupt of a watched block.
pub(crate) struct TapedInterrupt {
    inner: SimInterrupt,
    board: Board,
    tape: Tape,
}

impl Interrupt for TapedInterrupt {
    fn enable(&mut self) {
        self.tape.add(self.board.engine().now_ps(), Entry::Note(String::from("(unmask)")));
        self.inner.enable();
    }

    fn wait(&mut self, timeout_us: u32) -> bool {
        let text = format!("(sleep {timeout_us} us)");
        self.tape.add(self.board.engine().now_ps(), Entry::Note(text));
        assert!(!self.tape.dies(), "was killed while it slept");
        self.inner.wait(timeout_us)
    }
}
