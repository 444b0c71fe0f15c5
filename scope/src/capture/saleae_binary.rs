//! The digital binary export of Saleae's Logic 2: a file for each channel, of the times at which its level changes.
//!
//! Files `digital_N.bin` of one directory are one capture. Version 0 has one stretch of data, version 1 (2025) several, with
//! gaps between them: the level before a gap lasts until its end, and the gaps are told.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use super::{CHANNELS_MAX, Channel, Edge, Format, Opened, Source, Tick};
use crate::error::io;

const PIECE_EDGES: usize = 4_096;

/// One channel's file.
struct Line {
    name: String,
    reader: BufReader<File>,
    version: i32,
    level: bool,
    /// Stretches of data that follow, and changes that follow in this one.
    stretches: u64,
    changes: u64,
    /// The time of the next change in picoseconds, and the level from then on.
    next: Option<(i64, bool)>,
    begin: i64,
    end: i64,
    read_bytes: u64,
    gaps: u64,
}

struct Lines {
    lines: Vec<Line>,
    levels: u64,
    base: i64,
    begun: bool,
}

/// All files beside the one at `path`, and their length.
pub(super) fn open_beside(path: &Path) -> Result<(Opened, u64), String> {
    let is_numbered = number(path).is_some();
    match path.parent().filter(|_| is_numbered) {
        Some(dir) if dir.as_os_str().is_empty() => open_dir(Path::new(".")),
        Some(dir) => open_dir(dir),
        None => open(&[(0, path.into())]),
    }
}

/// All files of a directory.
pub(super) fn open_dir(dir: &Path) -> Result<(Opened, u64), String> {
    let entries = std::fs::read_dir(dir).map_err(io)?.flatten().map(|entry| entry.path());
    let mut files: Vec<(usize, PathBuf)> =
        entries.filter_map(|path| Some((number(&path)?, path))).collect();
    files.sort();
    if files.is_empty() {
        return Err("a directory without files of Saleae's binary export (digital_0.bin, …)".into());
    }
    open(&files)
}

/// N of `digital_N.bin`.
fn number(path: &Path) -> Option<usize> {
    path.file_name()?.to_str()?.strip_prefix("digital_")?.strip_suffix(".bin")?.parse().ok()
}

fn open(files: &[(usize, PathBuf)]) -> Result<(Opened, u64), String> {
    if files.len() > CHANNELS_MAX {
        return Err(format!("{} files: 1 to 64 are read", files.len()));
    }
    let (mut lines, mut channels, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (bit, (number, path)) in (0..).zip(files) {
        let file =
            File::open(path).map_err(|error| format!("{}: {}", path.display(), io(error)))?;
        bytes += file.metadata().map_err(io)?.len();
        lines.push(Line::new(path, file)?);
        channels.push(Channel { name: format!("Channel {number}"), bit });
    }
    let base = lines.iter().map(|line| line.begin).min().unwrap_or(0);
    let levels =
        (0..).zip(&lines).fold(0, |levels, (bit, line)| levels | u64::from(line.level) << bit);
    let source = Lines { lines, levels, base, begun: false };
    let opened =
        Opened { format: Format::SaleaeBinary, channels, tick: Tick::PS, source: Box::new(source) };
    Ok((opened, bytes))
}

impl Line {
    fn new(path: &Path, file: File) -> Result<Self, String> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut line = Self {
            name,
            reader: BufReader::with_capacity(64 << 10, file),
            version: 0,
            level: false,
            stretches: 1,
            changes: 0,
            next: None,
            begin: 0,
            end: 0,
            read_bytes: 0,
            gaps: 0,
        };
        line.header().map_err(|what| format!("{}: {what}", line.name))?;
        Ok(line)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                format!("it ends {} changes early: the file is cut", self.changes.max(1))
            }
            _ => io(error),
        })?;
        self.read_bytes += N as u64;
        Ok(bytes)
    }

    fn count(&mut self) -> Result<u64, String> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn time(&mut self) -> Result<i64, String> {
        let seconds = f64::from_le_bytes(self.bytes()?);
        let ps = (seconds * 1e12).round();
        // Not a number is not below either.
        if ps.abs() < 9e18 {
            Ok(ps as i64)
        } else {
            Err(format!("{seconds} is no time in seconds"))
        }
    }

    fn header(&mut self) -> Result<(), String> {
        if self.bytes()? != *b"<SALEAE>" {
            return Err("it does not begin with <SALEAE>".into());
        }
        self.version = i32::from_le_bytes(self.bytes()?);
        let kind = i32::from_le_bytes(self.bytes()?);
        match (self.version, kind) {
            (0, 0) => {}
            (1, 0) => self.stretches = self.count()?,
            (0 | 1, 1) => return Err("it has analog samples; digital ones are read".into()),
            (version, kind) => {
                return Err(format!(
                    "version {version}, type {kind}: versions 0 and 1 of type 0 are read"
                ));
            }
        }
        if self.stretches == 0 {
            return Err("it has no data".into());
        }
        self.stretch()?;
        self.level = self.next.take().is_some_and(|(_, level)| level);
        self.end = self.begin;
        self.step()
    }

    /// The beginning of a stretch of data: its level is a change.
    fn stretch(&mut self) -> Result<(), String> {
        self.stretches -= 1;
        let level = u32::from_le_bytes(self.bytes()?) != 0;
        if self.version == 1 {
            self.bytes::<8>()?; // The sample rate: times are in seconds.
        }
        let (begin, end) = (self.time()?, self.time()?);
        self.changes = self.count()?;
        if end < begin || begin < self.end && self.read_bytes > 64 {
            return Err("its times go back".into());
        }
        if self.read_bytes < 64 {
            self.begin = begin;
        }
        (self.next, self.end) = (Some((begin, level)), end);
        Ok(())
    }

    /// Finds the next change.
    fn step(&mut self) -> Result<(), String> {
        self.next = None;
        if self.changes > 0 {
            let at = self.time()?;
            self.changes -= 1;
            self.next = Some((at, !self.level));
        } else if self.stretches > 0 {
            self.gaps += 1;
            self.stretch()?;
        }
        Ok(())
    }
}

impl Source for Lines {
    fn fill(&mut self, edges: &mut Vec<Edge>) -> Result<bool, String> {
        if !std::mem::replace(&mut self.begun, true) {
            edges.push(Edge { at: 0, levels: self.levels });
        }
        for _ in 0..PIECE_EDGES {
            let Some(at) = self.lines.iter().filter_map(|line| Some(line.next?.0)).min() else {
                return Ok(false);
            };
            let mut levels = self.levels;
            for (bit, line) in self.lines.iter_mut().enumerate() {
                while let Some((_, level)) = line.next.filter(|&(time, _)| time == at) {
                    levels = levels & !(1 << bit) | u64::from(level) << bit;
                    line.level = level;
                    line.step().map_err(|what| format!("{}: {what}", line.name))?;
                    if line.next.is_some_and(|(time, _)| time < at) {
                        return Err(format!("{}: its times go back", line.name));
                    }
                }
                line.end = line.end.max(at);
            }
            let at = u64::try_from(at.saturating_sub(self.base))
                .map_err(|_| "a change before the capture's beginning")?;
            if levels != self.levels {
                edges.push(Edge { at, levels });
            }
            self.levels = levels;
        }
        Ok(true)
    }

    fn end(&self) -> u64 {
        let end = self.lines.iter().map(|line| line.end).max().unwrap_or(self.base);
        u64::try_from(end.saturating_sub(self.base)).unwrap_or(0)
    }

    fn read_bytes(&self) -> u64 {
        self.lines.iter().map(|line| line.read_bytes).sum()
    }

    fn notes(&self) -> Vec<String> {
        let with_gaps = self.lines.iter().filter(|line| line.gaps > 0);
        with_gaps.map(|line| format!("{} has {} gaps without data", line.name, line.gaps)).collect()
    }
}
