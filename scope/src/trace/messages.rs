//! Lines in, messages out.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::line::{Event, Sent, TraceLine, bus_of, parse};

/// Skipped lines whose reason is kept. The others are counted.
const REASONS_MAX: usize = 5;

/// A stretch of a message's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Between what: `start to CS on`, `transfer 1, 4 bytes`.
    pub name: String,
    /// How long.
    pub us: f64,
}

/// Something that happened to a message. Transfers are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// It was given to the controller's queue, or to its short path.
    Submit,
    /// The controller began it.
    Start,
    /// Its chip was selected.
    CsOn,
    /// Its chip was not selected any more.
    CsOff,
    /// A transfer began.
    Begin(usize),
    /// A transfer ended.
    End(usize),
    /// It ended.
    Done,
}

/// A transfer of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Its length in bytes.
    pub len: u64,
    /// When it began, on the tracer's clock.
    pub start_ns: u64,
    /// When it ended.
    pub stop_ns: u64,
    /// The first bytes that were sent, at most 64; empty if the trace has none.
    pub tx: Vec<u8>,
    /// The same of those that came back.
    pub rx: Vec<u8>,
}

impl Transfer {
    /// How long it took.
    #[must_use]
    pub fn us(&self) -> f64 {
        us(self.stop_ns - self.start_ns)
    }
}

/// A message that the trace has from its submission to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Its device: `spi0.0`.
    pub device: String,
    /// What happened to it, from its submission to its end, in order of time.
    pub marks: Vec<(u64, Mark)>,
    /// Its transfers.
    pub transfers: Vec<Transfer>,
    /// The task that submitted it, where the trace says it.
    pub submitter: Option<u32>,
    /// The task that began it.
    pub runner: Option<u32>,
    /// Where the runner is another task: when it was woken and when it ran, between submission and begin.
    pub pump_ns: Option<(u64, u64)>,
    /// When the submitter, which slept, ran again after the end.
    pub waiter_ns: Option<u64>,
    /// Within transfers, from each time the runner was woken until it ran, in nanoseconds.
    pub wakes_ns: Vec<u64>,
    /// Interrupts within transfers, by the handler's name.
    pub interrupts: BTreeMap<String, u32>,
    /// When the device's next message was submitted; `None` for the device's last message, or if the next one was submitted
    /// before this one ended.
    pub next_submit_ns: Option<u64>,
}

/// A line that was not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedLine {
    /// Its number, from 1.
    pub line: usize,
    /// Why.
    pub why: String,
}

/// A trace as read.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// How many lines it has.
    pub lines: usize,
    /// The lines that could not be read.
    pub skipped_lines: usize,
    /// The first of them.
    pub skipped: Vec<SkippedLine>,
    /// Messages that lack their begin, their end, or something between, or last where events were lost.
    pub incomplete: usize,
    /// Places where the tracer lost events.
    pub lost: usize,
    /// The events lost there, as far as it says.
    pub lost_events: u64,
    /// Lines earlier than a line of another processor before them. They are put in order.
    pub reordered: usize,
    /// Times at which the clock of a processor went back: another recording begins.
    pub restarts: usize,
    /// What times are multiples of, in nanoseconds: 1,000 or 1.
    pub tick_ns: u64,
    /// From the first event to the last, of all recordings.
    pub duration_ns: u64,
    /// The messages, in the order of their ends.
    pub messages: Vec<Message>,
}

/// A line in its place, or where events may miss.
#[derive(Clone, Copy)]
enum Step<'a> {
    Line(TraceLine<'a>),
    LossBegins,
    LossEnds,
}

/// Reads a trace. Bytes that are no UTF-8 are for the caller to replace.
///
/// Lines are put in the order of their times first: those of several processors may be one after the other. Where a
/// processor lost events, no message is given that lasted between its last event before and its first one behind.
#[must_use]
pub fn read(text: &str) -> Trace {
    let mut reader = Reader::default();
    let mut steps = Vec::new();
    // Of each processor the time of its last line; those that lost events since.
    let mut last: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    let mut losing = BTreeSet::new();
    let mut newest_ns = 0;
    for (nth, line) in text.lines().enumerate() {
        reader.trace.lines += 1;
        let parsed = match parse(line) {
            Ok(TraceLine { event: Event::Other, .. }) => continue,
            Ok(TraceLine { cpu, event: Event::Lost(count), .. }) => {
                reader.trace.lost += 1;
                reader.trace.lost_events += count.unwrap_or(0);
                let cpu = cpu.filter(|cpu| last.contains_key(&Some(*cpu)));
                // Of a processor that is not known, or had no event yet: since the last line at all.
                let since = cpu.map_or(newest_ns, |cpu| last[&Some(cpu)]);
                steps.push((since, Step::LossBegins));
                losing.insert(cpu);
                continue;
            }
            Ok(line) if line.cpu.is_none() && last.keys().any(Option::is_some) => {
                Err("it has no processor, as others have: was the line cut?".into())
            }
            parsed => parsed.map_err(|why| why.to_string()),
        };
        let line = match parsed {
            Ok(line) => line,
            Err(why) => {
                reader.trace.skipped_lines += 1;
                if reader.trace.skipped.len() < REASONS_MAX {
                    reader.trace.skipped.push(SkippedLine { line: nth + 1, why });
                }
                continue;
            }
        };
        if last.get(&line.cpu).is_some_and(|&before| line.time_ns < before) {
            reader.trace.restarts += 1;
            reader.run(&mut steps);
            (last, newest_ns) = (BTreeMap::new(), 0);
            losing.clear();
        }
        reader.trace.reordered += usize::from(line.time_ns < newest_ns);
        newest_ns = newest_ns.max(line.time_ns);
        last.insert(line.cpu, line.time_ns);
        for cpu in [line.cpu, None] {
            if losing.remove(&cpu) {
                steps.push((line.time_ns, Step::LossEnds));
            }
        }
        reader.trace.tick_ns = reader.trace.tick_ns.max(line.tick_ns);
        steps.push((line.time_ns, Step::Line(line)));
    }
    reader.run(&mut steps);
    reader.trace
}

/// A message that has not begun.
struct Submitted {
    at_ns: u64,
    task: Option<u32>,
}

/// A message in the making.
struct Open {
    message: Message,
    address: String,
    /// A transfer ended that is not the one that began.
    is_broken: bool,
}

/// A submitter that sleeps until its message, which has ended, wakes it.
struct Waiter {
    message: usize,
    is_woken: bool,
}

#[derive(Default)]
struct Reader {
    trace: Trace,
    /// What the recording has at all.
    has_wakes: bool,
    has_transfers: bool,
    /// Processors that lose events now.
    losing: usize,
    /// By device and address.
    submitted: BTreeMap<(String, String), Submitted>,
    /// The message that each controller runs.
    running: BTreeMap<u32, Open>,
    /// The last finished message of each device, by its place in the trace.
    last: BTreeMap<String, usize>,
    /// Tasks that left their processor.
    off: BTreeSet<u32>,
    /// Tasks that were woken and have not run since, and when.
    woken: BTreeMap<u32, u64>,
    /// When a task was woken last, and ran then.
    ran: BTreeMap<u32, (u64, u64)>,
    waiters: BTreeMap<u32, Waiter>,
}

impl Reader {
    /// Takes the steps of a recording, whose messages end with it.
    fn run(&mut self, steps: &mut Vec<(u64, Step<'_>)>) {
        // Stable: of one time, the order of the lines.
        steps.sort_by_key(|(time_ns, _)| *time_ns);
        let mut lines = steps.iter().filter(|(_, step)| matches!(step, Step::Line(_)));
        let first_ns = lines.next().map_or(0, |first| first.0);
        self.trace.duration_ns += lines.next_back().map_or(0, |last| last.0 - first_ns);
        let has = |is: fn(&Event<'_>) -> bool| {
            steps.iter().any(|(_, step)| matches!(step, Step::Line(line) if is(&line.event)))
        };
        self.has_wakes = has(|event| matches!(event, Event::Wake(_)));
        self.has_transfers = has(|event| matches!(event, Event::TransferStart(_)));
        for (time_ns, step) in steps.drain(..) {
            match step {
                Step::LossBegins => {
                    self.losing += 1;
                    self.forget();
                }
                Step::LossEnds => self.losing = self.losing.saturating_sub(1),
                Step::Line(TraceLine { event: Event::Done { .. }, .. }) if self.losing > 0 => {
                    self.trace.incomplete += 1;
                }
                Step::Line(_) if self.losing > 0 => {}
                Step::Line(line) => self.event(time_ns, &line),
            }
        }
        self.trace.incomplete += self.submitted.len() + self.running.len();
        self.losing = 0;
        self.forget();
    }

    fn event(&mut self, time_ns: u64, line: &TraceLine<'_>) {
        match line.event {
            Event::Submit { device, message } => {
                if let Some(nth) = self.last.remove(device) {
                    self.trace.messages[nth].next_submit_ns = Some(time_ns);
                }
                line.task.and_then(|task| self.waiters.remove(&task));
                let submitted = Submitted { at_ns: time_ns, task: line.task };
                if self.submitted.insert((device.into(), message.into()), submitted).is_some() {
                    self.trace.incomplete += 1;
                }
            }
            Event::Start { device, message } => self.start(time_ns, line.task, device, message),
            Event::SetCs { device, active } => {
                let mark = if active { Mark::CsOn } else { Mark::CsOff };
                self.of(device, |open| open.message.marks.push((time_ns, mark)));
            }
            Event::TransferStart(sent) => self.of(sent.device, |open| open.begin(time_ns, sent)),
            Event::TransferStop(sent) => self.of(sent.device, |open| open.end(time_ns, sent)),
            Event::Done { device, message, frame } => {
                self.done(time_ns, line.task, device, message, frame);
            }
            Event::Switch { from, to } => {
                self.off.insert(from);
                self.switch(time_ns, to);
            }
            Event::Wake(task) => {
                self.woken.entry(task).or_insert(time_ns);
                self.waiters.entry(task).and_modify(|waiter| waiter.is_woken = true);
            }
            Event::Interrupt(name) => {
                for open in self.running.values_mut().filter(|open| open.is_in_transfer()) {
                    *open.message.interrupts.entry(name.into()).or_default() += 1;
                }
            }
            Event::Lost(_) | Event::Other => {}
        }
    }

    fn start(&mut self, time_ns: u64, runner: Option<u32>, device: &str, address: &str) {
        let Some(bus) = bus_of(device) else { return };
        // A message whose submission is not in the trace is counted when it ends.
        let Some(submitted) = self.submitted.remove(&(device.to_owned(), address.to_owned()))
        else {
            return;
        };
        let ran = runner.filter(|_| runner != submitted.task).and_then(|task| self.ran.get(&task));
        let message = Message {
            device: device.into(),
            marks: vec![(submitted.at_ns, Mark::Submit), (time_ns, Mark::Start)],
            submitter: submitted.task,
            runner,
            pump_ns: ran.copied().filter(|(woken_ns, _)| *woken_ns >= submitted.at_ns),
            ..Message::default()
        };
        let open = Open { message, address: address.into(), is_broken: false };
        if self.running.insert(bus, open).is_some() {
            self.trace.incomplete += 1;
        }
    }

    /// A chip select may change outside of messages: when its device is set up.
    fn of(&mut self, device: &str, then: impl FnMut(&mut Open)) {
        let open = bus_of(device).and_then(|bus| self.running.get_mut(&bus));
        open.filter(|open| open.message.device == device).into_iter().for_each(then);
    }

    fn switch(&mut self, time_ns: u64, to: u32) {
        self.off.remove(&to);
        if let Some(woken_ns) = self.woken.remove(&to) {
            self.ran.insert(to, (woken_ns, time_ns));
            for open in self.running.values_mut() {
                if open.message.runner == Some(to) && open.is_in_transfer() {
                    open.message.wakes_ns.push(time_ns - woken_ns);
                }
            }
        }
        let waiter = self.waiters.remove(&to);
        if let Some(waiter) = waiter.filter(|waiter| waiter.is_woken || !self.has_wakes) {
            self.trace.messages[waiter.message].waiter_ns = Some(time_ns);
        }
    }

    fn done(
        &mut self,
        time_ns: u64,
        task: Option<u32>,
        device: &str,
        address: &str,
        frame: Option<u64>,
    ) {
        let open = bus_of(device).and_then(|bus| self.running.remove(&bus));
        let open = open.filter(|open| open.message.device == device && open.address == address);
        let whole = open.and_then(|mut open| {
            open.message.marks.push((time_ns, Mark::Done));
            let bytes: u64 = open.message.transfers.iter().map(|transfer| transfer.len).sum();
            let is_whole = !self.has_transfers || frame.is_none_or(|frame| frame == bytes);
            (is_whole && !open.is_broken && open.message.is_consistent()).then_some(open.message)
        });
        let Some(message) = whole else {
            self.trace.incomplete += 1;
            return;
        };
        let nth = self.trace.messages.len();
        // The next message was not submitted yet: else nothing lies between them.
        if !self.submitted.keys().any(|(other, _)| other == device) {
            self.last.insert(device.into(), nth);
        }
        if let Some(submitter) = message.submitter.filter(|_| message.submitter != task)
            && self.off.contains(&submitter)
        {
            self.waiters.insert(submitter, Waiter { message: nth, is_woken: false });
        }
        self.trace.messages.push(message);
    }

    /// Forgets unfinished messages, and the tasks. If the trace has the end of one later, it is counted there.
    fn forget(&mut self) {
        self.submitted.clear();
        self.running.clear();
        self.last.clear();
        self.off.clear();
        self.woken.clear();
        self.ran.clear();
        self.waiters.clear();
    }
}

impl Open {
    fn is_in_transfer(&self) -> bool {
        matches!(self.message.marks.last(), Some((_, Mark::Begin(_))))
    }

    fn begin(&mut self, time_ns: u64, sent: Sent<'_>) {
        self.message.marks.push((time_ns, Mark::Begin(self.message.transfers.len())));
        self.message.transfers.push(Transfer {
            len: sent.len,
            start_ns: time_ns,
            ..Transfer::default()
        });
    }

    fn end(&mut self, time_ns: u64, sent: Sent<'_>) {
        let count = self.message.transfers.len();
        match self.message.transfers.last_mut() {
            Some(last) if last.len == sent.len => {
                last.stop_ns = time_ns;
                (last.tx, last.rx) = (bytes(sent.tx), bytes(sent.rx));
                self.message.marks.push((time_ns, Mark::End(count - 1)));
            }
            _ => self.is_broken = true,
        }
    }
}

/// `9f-00-1a`; nothing, if it is something else.
fn bytes(hex: &str) -> Vec<u8> {
    let bytes = hex.split(['-', ' ']).map(|byte| u8::from_str_radix(byte, 16).ok());
    bytes.collect::<Option<_>>().unwrap_or_default()
}

impl Message {
    /// Whether each transfer that began ended next. Marks are in the order of time already.
    fn is_consistent(&self) -> bool {
        self.marks.windows(2).all(|pair| match (pair[0].1, pair[1].1) {
            (Mark::Begin(begun), Mark::End(ended)) => begun == ended,
            (Mark::Begin(_), _) | (_, Mark::End(_)) => false,
            _ => true,
        })
    }

    /// The time of the first of such marks.
    #[must_use]
    pub fn first_ns(&self, is: impl Fn(Mark) -> bool) -> Option<u64> {
        self.marks.iter().find(|(_, mark)| is(*mark)).map(|(time_ns, _)| *time_ns)
    }

    /// When it was submitted.
    #[must_use]
    pub fn submit_ns(&self) -> u64 {
        self.marks.first().map_or(0, |mark| mark.0)
    }

    /// When it ended.
    #[must_use]
    pub fn done_ns(&self) -> u64 {
        self.marks.last().map_or(0, |mark| mark.0)
    }

    /// From submission to end.
    #[must_use]
    pub fn us(&self) -> f64 {
        us(self.done_ns() - self.submit_ns())
    }

    /// The lengths of its transfers in bytes.
    pub fn lengths(&self) -> impl Iterator<Item = u64> {
        self.transfers.iter().map(|transfer| transfer.len)
    }

    /// Its time, divided: these add up to [`us`](Self::us).
    #[must_use]
    pub fn phases(&self) -> Vec<Phase> {
        let of = |pair: &[(u64, Mark)]| {
            let name = match (pair[0].1, pair[1].1) {
                (Mark::Begin(nth), Mark::End(_)) => {
                    let len = self.transfers[nth].len;
                    format!("transfer {}, {len} byte{}", nth + 1, if len == 1 { "" } else { "s" })
                }
                (from, to) => format!("{} to {}", from.name(), to.name()),
            };
            Phase { name, us: us(pair[1].0 - pair[0].0) }
        };
        self.marks.windows(2).map(of).collect()
    }
}

impl Mark {
    /// In words.
    fn name(self) -> String {
        match self {
            Self::Submit => "submit".into(),
            Self::Start => "start".into(),
            Self::CsOn => "CS on".into(),
            Self::CsOff => "CS off".into(),
            Self::Begin(nth) | Self::End(nth) => format!("transfer {}", nth + 1),
            Self::Done => "done".into(),
        }
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}
