//! One chip: its lines, the open files that have requested them, and what those files read.
//!
//! # How it works
//! A line is free, the board's own, or requested by one open file. What a request sets it to is kept as the
//! flags of version 2; version 1's are translated. An output that is an open drain drives its low level and
//! is an input for its high one, as the kernel does it where the hardware cannot; an open source likewise.
//!
//! When a line's state is told to a file that watches it, and when a watched line changes, a packet is kept
//! for the file until [`GpioChip::deliver`] has sent it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use rustix::io::Errno;

use super::config::{LineConfig, flag, of_config, of_event, of_handle, told_1};
use super::edges::{Now, Watched};
use super::layout::{self, Fields, Filled};
use super::request::GpioRequest;
use super::{ChipName, LINES_MAX, Pins};
use crate::protocol::OpenId;

/// An error number, and what lies behind it where more is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What the program gets.
    pub errno: Errno,
    /// More than that.
    pub why: Option<String>,
}

impl From<Errno> for Failed {
    fn from(errno: Errno) -> Self {
        Self { errno, why: None }
    }
}

/// What a board says of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineSpec {
    /// Its name; may be empty.
    pub name: String,
    /// What the board itself uses it for, as an output: no program may.
    pub used_as: Option<String>,
}

/// Who has a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Nobody,
    Board,
    File(OpenId),
}

/// A line's state.
struct Line {
    name: String,
    user: User,
    consumer: Vec<u8>,
    /// Flags of version 2, without `USED`; one of the directions always.
    flags: u64,
    debounce_us: u32,
}

/// What kind of open file has requested lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Version 2.
    Lines,
    /// Version 1, without events.
    Handle,
    /// Version 1, with events.
    Event,
}

/// A line of a request.
struct Requested {
    line: u32,
    watched: Option<Watched>,
    /// Events of this line so far.
    sequence: u32,
}

/// An open file that has lines.
struct Request {
    kind: Kind,
    lines: Vec<Requested>,
    /// Events so far.
    sequence: u32,
    queue: Queue,
}

/// An open file of the chip that watches lines' states.
struct Watcher {
    /// Which version's structures it reads: that of its first watch.
    version: u8,
    lines: u64,
    queue: Queue,
}

/// Packets that wait to be sent.
struct Queue {
    packets: VecDeque<Vec<u8>>,
    max: usize,
}

/// Which packet is lost when a queue is full.
enum Lost {
    Oldest,
    Newest,
}

impl Queue {
    fn new(max: usize) -> Self {
        Self { packets: VecDeque::new(), max }
    }

    fn push(&mut self, packet: Vec<u8>, lost: &Lost) {
        if self.packets.len() >= self.max {
            match lost {
                Lost::Oldest => drop(self.packets.pop_front()),
                Lost::Newest => return,
            }
        }
        self.packets.push_back(packet);
    }
}

/// Packets of a file that watches lines' states, as many as the kernel keeps.
const WATCHER_PACKETS: usize = 32;
/// Events for each line of a request, unless it says how many.
const EVENTS_A_LINE: usize = 16;

/// `gpio_v2_line_changed_type`, the same in version 1.
#[derive(Clone, Copy)]
enum Changed {
    Requested = 1,
    Released = 2,
    Config = 3,
}

/// A chip.
pub struct GpioChip<P> {
    name: ChipName,
    label: String,
    lines: Vec<Line>,
    requests: BTreeMap<OpenId, Request>,
    watchers: BTreeMap<OpenId, Watcher>,
    pins: P,
}

impl<P: Pins> GpioChip<P> {
    /// A chip with these pins, of which nobody has requested any. Lines without a spec have no name.
    pub fn new(name: ChipName, label: &str, specs: Vec<LineSpec>, pins: P) -> Self {
        let mut specs = specs.into_iter();
        let lines = (0..pins.lines().min(LINES_MAX)).map(|_| {
            let LineSpec { name, used_as } = specs.next().unwrap_or_default();
            let (user, consumer, flags) = match used_as {
                Some(used_as) => (User::Board, used_as.into_bytes(), flag::OUTPUT),
                None => (User::Nobody, Vec::new(), flag::INPUT),
            };
            Line { name, user, consumer, flags, debounce_us: 0 }
        });
        Self {
            name,
            label: label.into(),
            lines: lines.collect(),
            requests: BTreeMap::new(),
            watchers: BTreeMap::new(),
            pins,
        }
    }

    /// Its name.
    pub fn name(&self) -> ChipName {
        self.name
    }

    /// Its pins.
    pub fn pins(&self) -> &P {
        &self.pins
    }

    /// The lines that a file has requested.
    pub fn requested(&self, file: OpenId) -> impl Iterator<Item = (u32, &str)> {
        let request = self.requests.get(&file).into_iter();
        let lines = request.flat_map(|request| request.lines.iter().map(|one| one.line));
        lines.map(|line| (line, self.lines[line as usize].name.as_str()))
    }

    /// Whether any line is watched, so that [`look`](Self::look) is to be called again and again.
    pub fn is_watching(&self) -> bool {
        self.requests.values().any(|request| request.lines.iter().any(|one| one.watched.is_some()))
    }

    /// An open file was closed: its lines are free, and it watches none.
    pub fn closed(&mut self, file: OpenId, now: &Now) {
        self.watchers.remove(&file);
        if let Some(request) = self.requests.remove(&file) {
            request.lines.iter().for_each(|one| self.release(one.line, now));
        }
    }

    /// An ioctl of an open file of the chip, or of one that has requested lines. The answer is the structure
    /// to be written back; empty if none is.
    ///
    /// A request that [makes a file](GpioRequest::makes_a_file) has that file's id behind its structure.
    ///
    /// # Errors
    /// The kernel's.
    pub fn ioctl(
        &mut self,
        file: OpenId,
        number: u32,
        body: &[u8],
        now: &Now,
    ) -> Result<Vec<u8>, Failed> {
        let request = GpioRequest::decode(number)?;
        let argument = request.argument();
        let made = usize::from(request.makes_a_file()) * 4;
        if argument.read && body.len() != argument.bytes + made {
            return Err(Errno::PROTO.into());
        }
        let fields = Fields(body);
        match self.requests.get(&file).map(|request| request.kind) {
            None => self.chip_ioctl(file, request, fields, now),
            Some(kind) => self.lines_ioctl(file, (kind, request), fields, now),
        }
    }

    fn chip_ioctl(
        &mut self,
        file: OpenId,
        request: GpioRequest,
        fields: Fields<'_>,
        now: &Now,
    ) -> Result<Vec<u8>, Failed> {
        let made = OpenId(fields.u32(request.argument().bytes));
        match request {
            GpioRequest::ChipInfo => {
                let lines = u32::try_from(self.lines.len()).unwrap_or(LINES_MAX);
                let info = Filled::new(layout::CHIP_INFO).name(0, self.name.name().as_bytes());
                Ok(info.name(layout::NAME, self.label.as_bytes()).u32(64, lines).0)
            }
            GpioRequest::LineInfo | GpioRequest::Watch => {
                if fields.bytes(240, 16).iter().any(|byte| *byte != 0) {
                    return Err(Errno::INVAL.into());
                }
                let line = self.existing(fields.u32(64))?;
                if request == GpioRequest::Watch {
                    self.watch(file, line, 2)?;
                }
                Ok(self.info(line))
            }
            GpioRequest::LineInfo1 | GpioRequest::Watch1 => {
                let line = self.existing(fields.u32(0))?;
                if request == GpioRequest::Watch1 {
                    self.watch(file, line, 1)?;
                }
                Ok(self.info_1(line))
            }
            GpioRequest::Unwatch => {
                let line = self.existing(fields.u32(0))?;
                let watcher = self.watchers.get_mut(&file);
                let watcher = watcher.filter(|watcher| watcher.lines >> line & 1 != 0);
                watcher.ok_or(Errno::BUSY)?.lines &= !(1 << line);
                Ok(Vec::new())
            }
            GpioRequest::Lines => {
                let count = self.count(fields.u32(560))?;
                if fields.bytes(568, 20).iter().any(|byte| *byte != 0) {
                    return Err(Errno::INVAL.into());
                }
                let configs = of_config(Fields(fields.bytes(288, layout::LINE_CONFIG)), count)?;
                let lines: Vec<_> = (0..count).map(|index| fields.u32(4 * index)).collect();
                let events = match fields.u32(564) as usize {
                    0 => count * EVENTS_A_LINE,
                    asked => asked.min(layout::REQUEST_LINES * EVENTS_A_LINE),
                };
                self.request(made, (Kind::Lines, events), (&lines, &configs), fields.name(256), now)
            }
            GpioRequest::Handle1 => {
                let count = self.count(fields.u32(356))?;
                let flags = of_handle(fields.u32(256))?;
                let lines: Vec<_> = (0..count).map(|index| fields.u32(4 * index)).collect();
                let configs = handle_configs(flags, fields.bytes(260, count));
                self.request(made, (Kind::Handle, 0), (&lines, &configs), fields.name(324), now)
            }
            GpioRequest::Event1 => {
                let line = self.existing(fields.u32(0))?;
                let flags = of_event(fields.u32(4), fields.u32(8))?;
                let config = LineConfig { flags, ..LineConfig::default() };
                let kind = (Kind::Event, EVENTS_A_LINE);
                self.request(made, kind, (&[line], &[config]), fields.name(12), now)
            }
            _ => Err(Errno::INVAL.into()),
        }
    }

    fn lines_ioctl(
        &mut self,
        file: OpenId,
        (kind, request): (Kind, GpioRequest),
        fields: Fields<'_>,
        now: &Now,
    ) -> Result<Vec<u8>, Failed> {
        let lines: Vec<u32> = match self.requests.get(&file) {
            Some(request) => request.lines.iter().map(|one| one.line).collect(),
            None => return Err(Errno::BADF.into()),
        };
        match (kind, request) {
            (Kind::Lines, GpioRequest::GetValues) => {
                let mask = fields.u64(8) & all(lines.len());
                if mask == 0 {
                    return Err(Errno::INVAL.into());
                }
                let asked = (0..).zip(&lines).filter(|(index, _)| mask >> index & 1 != 0);
                let mut bits = 0;
                for (index, line) in asked {
                    bits |= u64::from(self.value(file, index, *line)) << index;
                }
                Ok(Filled::new(layout::LINE_VALUES).u64(0, bits).u64(8, fields.u64(8)).0)
            }
            (Kind::Lines, GpioRequest::SetValues) => {
                let mask = fields.u64(8) & all(lines.len());
                let asked = (0..).zip(&lines).filter(|(index, _)| mask >> index & 1 != 0);
                let asked: Vec<_> =
                    asked.map(|(index, line)| (*line, fields.u64(0) >> index & 1 != 0)).collect();
                for (line, _) in &asked {
                    self.writable(*line)?;
                }
                if asked.is_empty() {
                    return Err(Errno::INVAL.into());
                }
                self.drive(&asked);
                Ok(Vec::new())
            }
            (Kind::Lines, GpioRequest::SetConfig) => {
                let configs = of_config(fields, lines.len())?;
                self.configure(file, &lines, &configs, now);
                Ok(Vec::new())
            }
            (Kind::Handle | Kind::Event, GpioRequest::GetValues1) => {
                let values = lines.iter().map(|line| u8::from(self.value(file, 0, *line)));
                let values: Vec<_> = values.collect();
                Ok(Filled::new(layout::HANDLE_DATA).bytes(0, &values).0)
            }
            (Kind::Handle, GpioRequest::SetValues1) => {
                // All lines were requested alike, so the kernel looks at the first.
                self.writable(lines[0])?;
                let values = lines.iter().zip(fields.bytes(0, lines.len()));
                let values: Vec<_> = values.map(|(line, value)| (*line, *value != 0)).collect();
                self.drive(&values);
                Ok(Vec::new())
            }
            (Kind::Handle, GpioRequest::SetConfig1) => {
                let flags = of_handle(fields.u32(0))?;
                let configs = handle_configs(flags, fields.bytes(4, lines.len()));
                self.configure(file, &lines, &configs, now);
                Ok(Vec::new())
            }
            _ => Err(Errno::INVAL.into()),
        }
    }

    fn existing(&self, line: u32) -> Result<u32, Failed> {
        if (line as usize) < self.lines.len() {
            return Ok(line);
        }
        let why = format!("line {line} of a chip with {} lines", self.lines.len());
        Err(Failed { errno: Errno::INVAL, why: Some(why) })
    }

    fn count(&self, lines: u32) -> Result<usize, Failed> {
        let count = lines as usize;
        match (1..=layout::REQUEST_LINES).contains(&count) {
            true => Ok(count),
            false => Err(Errno::INVAL.into()),
        }
    }

    fn writable(&self, line: u32) -> Result<(), Failed> {
        if self.lines[line as usize].flags & flag::OUTPUT != 0 {
            return Ok(());
        }
        Err(Failed { errno: Errno::PERM, why: Some(format!("line {line} is an input")) })
    }

    /// Requests lines for the open file `made`: all or none.
    fn request(
        &mut self,
        made: OpenId,
        (kind, events): (Kind, usize),
        (lines, configs): (&[u32], &[LineConfig]),
        consumer: Vec<u8>,
        now: &Now,
    ) -> Result<Vec<u8>, Failed> {
        if made == OpenId(0) || self.requests.contains_key(&made) {
            return Err(Errno::PROTO.into());
        }
        let consumer = if consumer.is_empty() { b"?".to_vec() } else { consumer };
        for (index, line) in lines.iter().enumerate() {
            let free = self.existing(*line).and_then(|line| self.free(line));
            // The same line twice is busy the second time.
            let free = free.and_then(|()| match lines[..index].contains(line) {
                true => Err(Failed { errno: Errno::BUSY, why: Some(format!("line {line} twice")) }),
                false => Ok(()),
            });
            free?;
        }
        let requested =
            lines.iter().map(|line| Requested { line: *line, watched: None, sequence: 0 });
        let (lines_of, queue) = (requested.collect(), Queue::new(events));
        self.requests.insert(made, Request { kind, lines: lines_of, sequence: 0, queue });
        for (index, (line, config)) in lines.iter().zip(configs).enumerate() {
            let state = &mut self.lines[*line as usize];
            state.user = User::File(made);
            state.consumer.clone_from(&consumer);
            self.apply(made, index, *line, config, now);
            self.tell(*line, Changed::Requested, now);
        }
        Ok(Vec::new())
    }

    fn free(&self, line: u32) -> Result<(), Failed> {
        let Line { user, consumer, .. } = &self.lines[line as usize];
        if *user == User::Nobody {
            return Ok(());
        }
        let used_as = String::from_utf8_lossy(consumer);
        Err(Failed { errno: Errno::BUSY, why: Some(format!("line {line} is used as {used_as:?}")) })
    }

    fn configure(&mut self, file: OpenId, lines: &[u32], configs: &[LineConfig], now: &Now) {
        for (index, (line, config)) in lines.iter().zip(configs).enumerate() {
            self.apply(file, index, *line, config, now);
            self.tell(*line, Changed::Config, now);
        }
    }

    /// Makes a requested line what it is to be.
    fn apply(&mut self, file: OpenId, index: usize, line: u32, config: &LineConfig, now: &Now) {
        let state = &mut self.lines[line as usize];
        let before = (state.flags & flag::EDGES, state.debounce_us);
        let direction = match config.flags & flag::DIRECTION {
            0 => state.flags & flag::DIRECTION,
            direction => direction,
        };
        state.flags = config.flags & !flag::DIRECTION | direction;
        state.debounce_us = config.debounce_us;
        let after = (state.flags & flag::EDGES, state.debounce_us);
        match config.flags & flag::BIAS {
            flag::PULL_UP => self.pins.pull(line, true),
            flag::PULL_DOWN => self.pins.pull(line, false),
            _ => {}
        }
        match config.flags & flag::DIRECTION {
            flag::OUTPUT => match self.driven(line, config.value) {
                Some(level) => self.pins.output(line, level),
                None => self.pins.input(line),
            },
            flag::INPUT => self.pins.input(line),
            _ => {}
        }
        let Some(request) = self.requests.get_mut(&file) else { return };
        let Some(requested) = request.lines.get_mut(index) else { return };
        if after == (0, 0) {
            requested.watched = None;
        } else if requested.watched.is_none() || before != after {
            let look = self.pins.look(line);
            requested.watched = Some(Watched::new(&look, config.debounce_us, now));
        }
    }

    /// The level that a line drives for a value; none where it is not driven.
    fn driven(&self, line: u32, value: bool) -> Option<bool> {
        let flags = self.lines[line as usize].flags;
        let level = value != (flags & flag::ACTIVE_LOW != 0);
        let lets_go = match level {
            true => flags & flag::OPEN_DRAIN != 0,
            false => flags & flag::OPEN_SOURCE != 0,
        };
        (!lets_go).then_some(level)
    }

    /// Drives outputs to values.
    fn drive(&mut self, values: &[(u32, bool)]) {
        let (mut mask, mut levels) = (0, 0);
        for &(line, value) in values {
            let level = self.driven(line, value);
            match level {
                Some(level) if self.lines[line as usize].flags & flag::DRIVE == 0 => {
                    mask |= 1 << line;
                    levels |= u64::from(level) << line;
                }
                Some(level) => self.pins.output(line, level),
                None => self.pins.input(line),
            }
        }
        if mask != 0 {
            self.pins.drive(mask, levels);
        }
    }

    /// A line's value: what a debounced one is counted as, or its level.
    fn value(&mut self, file: OpenId, index: usize, line: u32) -> bool {
        let Line { flags, debounce_us, .. } = self.lines[line as usize];
        let requested = self.requests.get(&file).and_then(|request| request.lines.get(index));
        let watched = requested.and_then(|requested| requested.watched.as_ref());
        let level = match watched.filter(|_| debounce_us > 0) {
            Some(watched) => watched.stable(),
            None => self.pins.level(line),
        };
        level != (flags & flag::ACTIVE_LOW != 0)
    }

    fn release(&mut self, line: u32, now: &Now) {
        let state = &mut self.lines[line as usize];
        state.user = User::Nobody;
        state.consumer.clear();
        state.flags &= flag::DIRECTION;
        state.debounce_us = 0;
        self.tell(line, Changed::Released, now);
    }

    fn watch(&mut self, file: OpenId, line: u32, version: u8) -> Result<(), Failed> {
        let queue = Queue::new(WATCHER_PACKETS);
        let watcher = self.watchers.entry(file).or_insert(Watcher { version, lines: 0, queue });
        if watcher.version != version {
            return Err(Errno::PERM.into());
        }
        if watcher.lines >> line & 1 != 0 {
            return Err(Errno::BUSY.into());
        }
        watcher.lines |= 1 << line;
        Ok(())
    }

    fn info(&self, line: u32) -> Vec<u8> {
        let Line { name, user, consumer, flags, debounce_us } = &self.lines[line as usize];
        let used = if *user == User::Nobody { 0 } else { flag::USED };
        let info = Filled::new(layout::LINE_INFO)
            .name(0, name.as_bytes())
            .name(layout::NAME, consumer)
            .u32(64, line)
            .u64(72, flags | used);
        match debounce_us {
            0 => info.0,
            // One attribute, the debounce period's.
            period => info.u32(68, 1).u32(80, 3).u32(88, *period).0,
        }
    }

    fn info_1(&self, line: u32) -> Vec<u8> {
        let Line { name, user, consumer, flags, .. } = &self.lines[line as usize];
        let used = if *user == User::Nobody { 0 } else { flag::USED };
        Filled::new(layout::LINE_INFO_1)
            .u32(0, line)
            .u32(4, told_1(flags | used))
            .name(8, name.as_bytes())
            .name(8 + layout::NAME, consumer)
            .0
    }

    /// Tells the files that watch a line of its state.
    fn tell(&mut self, line: u32, changed: Changed, now: &Now) {
        if self.watchers.values().all(|watcher| watcher.lines >> line & 1 == 0) {
            return;
        }
        let (info, info_1) = (self.info(line), self.info_1(line));
        for watcher in self.watchers.values_mut().filter(|watcher| watcher.lines >> line & 1 != 0) {
            let packet = match watcher.version {
                1 => Filled::new(layout::LINE_INFO_CHANGED_1)
                    .bytes(0, &info_1)
                    .u64(72, now.monotonic_ns)
                    .u32(80, changed as u32),
                _ => Filled::new(layout::LINE_INFO_CHANGED)
                    .bytes(0, &info)
                    .u64(256, now.monotonic_ns)
                    .u32(264, changed as u32),
            };
            watcher.queue.push(packet.0, &Lost::Newest);
        }
    }

    /// Looks at the lines that are watched, and keeps their events.
    pub fn look(&mut self, now: &Now) {
        for request in self.requests.values_mut() {
            for requested in &mut request.lines {
                let Some(watched) = &mut requested.watched else { continue };
                let line = requested.line;
                let changes = watched.look(&self.pins.look(line), now);
                let flags = self.lines[line as usize].flags;
                for change in changes {
                    let rising = change.level != (flags & flag::ACTIVE_LOW != 0);
                    let edge = if rising { flag::EDGE_RISING } else { flag::EDGE_FALLING };
                    if flags & edge == 0 {
                        continue;
                    }
                    let id = if rising { 1 } else { 2 };
                    let packet = match request.kind {
                        Kind::Lines => {
                            request.sequence = request.sequence.wrapping_add(1);
                            requested.sequence = requested.sequence.wrapping_add(1);
                            let at_ns = match flags & flag::REALTIME {
                                0 => change.at_ns,
                                _ => now.realtime_of(change.at_ns),
                            };
                            Filled::new(layout::LINE_EVENT)
                                .u64(0, at_ns)
                                .u32(8, id)
                                .u32(12, line)
                                .u32(16, request.sequence)
                                .u32(20, requested.sequence)
                        }
                        _ => Filled::new(layout::EVENT_DATA).u64(0, change.at_ns).u32(8, id),
                    };
                    let lost = match request.kind {
                        Kind::Lines => Lost::Oldest,
                        _ => Lost::Newest,
                    };
                    request.queue.push(packet.0, &lost);
                }
            }
        }
    }

    /// Passes on the packets that are kept, oldest first, each with the file that reads it, until `send` says
    /// that it could not be sent: then the file's are kept.
    pub fn deliver(&mut self, send: &mut dyn FnMut(OpenId, &[u8]) -> bool) {
        let requests = self.requests.iter_mut().map(|(file, one)| (*file, &mut one.queue));
        let watchers = self.watchers.iter_mut().map(|(file, one)| (*file, &mut one.queue));
        for (file, queue) in requests.chain(watchers) {
            while let Some(packet) = queue.packets.front() {
                if !send(file, packet) {
                    break;
                }
                queue.packets.pop_front();
            }
        }
    }

    /// Whether packets are kept.
    pub fn has_packets(&self) -> bool {
        let requests = self.requests.values().map(|one| &one.queue);
        let mut queues = requests.chain(self.watchers.values().map(|one| &one.queue));
        queues.any(|queue| !queue.packets.is_empty())
    }
}

impl<P> fmt::Debug for GpioChip<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpioChip").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A bit for each of `lines` lines.
fn all(lines: usize) -> u64 {
    match lines {
        0..64 => (1 << lines) - 1,
        _ => u64::MAX,
    }
}

/// Version 1's lines of a handle: alike but for their values.
fn handle_configs(flags: u64, values: &[u8]) -> Vec<LineConfig> {
    let config = |value: &u8| LineConfig { flags, value: *value != 0, debounce_us: 0 };
    values.iter().map(config).collect()
}

#[cfg(test)]
#[path = "chip/tests.rs"]
mod tests;
