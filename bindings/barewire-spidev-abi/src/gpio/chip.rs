//! One chip: its lines, the open files that have requested them, and what those files read.
//!
//! # How it works
//! A line is free, the board's own, or requested by one open file. The configuration that a request sets is
//! kept as the flags of version 2; version 1's are translated. An output that is an open drain drives its
//! low level and is an input for its high one, as the kernel does it where the hardware cannot; an open
//! source likewise.
//!
//! * `asked`: what each ioctl asks. `told`: what files read. `queue`: packets that wait.
//!
//! When a line's state is reported to a file that watches it, and when a watched line changes, a
//! packet is kept for the file until [`GpioChip::deliver`] has sent it.

mod asked;
mod queue;
mod told;

use std::collections::BTreeMap;
use std::fmt;

use rustix::io::Errno;

use super::config::{LineConfig, flag};
use super::edges::{Now, WatchedLine};
use super::layout::{self, Fields};
use super::request::GpioRequest;
use super::{ChipName, LINES_MAX, Pins};
use crate::protocol::OpenId;
use queue::Queue;
use told::{LineChange, Watcher};

/// An error number, and its cause if that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpioError {
    /// The error number that the program gets.
    pub errno: Errno,
    /// The cause, in words.
    pub why: Option<String>,
    /// The line that was asked for, if the board itself uses it.
    pub of_board: Option<u32>,
}

impl From<Errno> for GpioError {
    fn from(errno: Errno) -> Self {
        Self { errno, why: None, of_board: None }
    }
}

impl GpioError {
    fn new(errno: Errno, why: String) -> Self {
        Self { errno, why: Some(why), of_board: None }
    }
}

/// A line's properties on its board.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineSpec {
    /// Its name; may be empty.
    pub name: String,
    /// The board's own use of the line, as an output. No program may then use it.
    pub used_as: Option<String>,
}

/// The user of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Nobody,
    Board,
    /// The line has no pin: it exists only for programs that look at it.
    NoPin,
    File(OpenId),
}

/// A line's state.
struct LineState {
    name: String,
    user: User,
    consumer: Vec<u8>,
    /// Flags of version 2, without `USED`; one of the directions always.
    flags: u64,
    debounce_us: u32,
}

/// The kind of an open file that has requested lines.
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
struct RequestedLine {
    line: u32,
    watched: Option<WatchedLine>,
    /// Events of this line so far.
    sequence: u32,
}

/// An open file that has lines.
struct Request {
    kind: Kind,
    lines: Vec<RequestedLine>,
    /// Events so far.
    sequence: u32,
    queue: Queue,
}

/// A chip.
pub struct GpioChip<P> {
    name: ChipName,
    label: String,
    lines: Vec<LineState>,
    requests: BTreeMap<OpenId, Request>,
    watchers: BTreeMap<OpenId, Watcher>,
    pins: P,
}

impl<P: Pins> GpioChip<P> {
    /// A chip with these pins, none of them requested. Lines without a spec have no name. Lines with a spec and no pin
    /// are listed, and busy.
    pub fn new(name: ChipName, label: &str, specs: Vec<LineSpec>, pins: P) -> Self {
        let specified = u32::try_from(specs.len()).unwrap_or(u32::MAX);
        let mut specs = specs.into_iter();
        let lines = (0..pins.lines().max(specified).min(LINES_MAX)).map(|line| {
            let LineSpec { name, used_as } = specs.next().unwrap_or_default();
            let (user, consumer, flags) = match used_as {
                _ if line >= pins.lines() => (User::NoPin, b"no pin".to_vec(), flag::INPUT),
                Some(used_as) => (User::Board, used_as.into_bytes(), flag::OUTPUT),
                None => (User::Nobody, Vec::new(), flag::INPUT),
            };
            LineState { name, user, consumer, flags, debounce_us: 0 }
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
    ) -> Result<Vec<u8>, GpioError> {
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

    fn existing(&self, line: u32) -> Result<u32, GpioError> {
        if (line as usize) < self.lines.len() {
            return Ok(line);
        }
        let why = format!("line {line} of a chip with {} lines", self.lines.len());
        Err(GpioError::new(Errno::INVAL, why))
    }

    fn count(&self, lines: u32) -> Result<usize, GpioError> {
        let count = lines as usize;
        match (1..=layout::REQUEST_LINES).contains(&count) {
            true => Ok(count),
            false => Err(Errno::INVAL.into()),
        }
    }

    fn writable(&self, line: u32) -> Result<(), GpioError> {
        if self.lines[line as usize].flags & flag::OUTPUT != 0 {
            return Ok(());
        }
        Err(GpioError::new(Errno::PERM, format!("line {line} is an input")))
    }

    /// Requests lines for the open file `made`: all or none.
    fn request(
        &mut self,
        made: OpenId,
        (kind, events): (Kind, usize),
        (lines, configs): (&[u32], &[LineConfig]),
        consumer: Vec<u8>,
        now: &Now,
    ) -> Result<Vec<u8>, GpioError> {
        if made == OpenId(0) || self.requests.contains_key(&made) {
            return Err(Errno::PROTO.into());
        }
        let consumer = if consumer.is_empty() { b"?".to_vec() } else { consumer };
        for (index, line) in lines.iter().enumerate() {
            let free = self.existing(*line).and_then(|line| self.free(line));
            // The same line twice is busy the second time.
            let free = free.and_then(|()| match lines[..index].contains(line) {
                true => Err(GpioError::new(Errno::BUSY, format!("line {line} twice"))),
                false => Ok(()),
            });
            free?;
        }
        let requested =
            lines.iter().map(|line| RequestedLine { line: *line, watched: None, sequence: 0 });
        let (lines_of, queue) = (requested.collect(), Queue::new(events));
        self.requests.insert(made, Request { kind, lines: lines_of, sequence: 0, queue });
        for (index, (line, config)) in lines.iter().zip(configs).enumerate() {
            let state = &mut self.lines[*line as usize];
            state.user = User::File(made);
            state.consumer.clone_from(&consumer);
            self.apply(made, index, *line, config, now);
            self.tell(*line, LineChange::Requested, now);
        }
        Ok(Vec::new())
    }

    fn free(&self, line: u32) -> Result<(), GpioError> {
        let LineState { user, consumer, .. } = &self.lines[line as usize];
        if *user == User::Nobody {
            return Ok(());
        }
        if *user == User::NoPin {
            let why = format!("line {line} has no pin on the mapped board");
            return Err(GpioError::new(Errno::BUSY, why));
        }
        let used_as = String::from_utf8_lossy(consumer);
        let busy = GpioError::new(Errno::BUSY, format!("line {line} is used as {used_as:?}"));
        Err(GpioError { of_board: (*user == User::Board).then_some(line), ..busy })
    }

    fn configure(&mut self, file: OpenId, lines: &[u32], configs: &[LineConfig], now: &Now) {
        for (index, (line, config)) in lines.iter().zip(configs).enumerate() {
            self.apply(file, index, *line, config, now);
            self.tell(*line, LineChange::Config, now);
        }
    }

    /// Configures a requested line as asked.
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
            requested.watched = Some(WatchedLine::new(&look, config.debounce_us, now));
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
        let LineState { flags, debounce_us, .. } = self.lines[line as usize];
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
        self.tell(line, LineChange::Released, now);
    }
}

impl<P> fmt::Debug for GpioChip<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpioChip").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
