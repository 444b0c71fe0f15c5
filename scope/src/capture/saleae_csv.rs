//! The digital CSV of Saleae's Logic 2: a row for each time at which a channel changes.
//!
//! `Time [s],Channel 0,…` stands first. A level of `X` (no data, from 2025 on) keeps the level before it, and is told.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::text::{picoseconds, read_until};
use super::{CHANNELS_MAX, Channel, Edge, Format, Opened, Source, Tick};
use crate::error::io;

const LINE_MAX: usize = 64 << 10;
const PIECE_ROWS: usize = 4_096;

struct Csv {
    reader: BufReader<File>,
    line: Vec<u8>,
    row: u64,
    columns: usize,
    /// The first row's time.
    base: Option<i64>,
    at: u64,
    levels: u64,
    read_bytes: u64,
    without_data: u64,
}

pub(super) fn open(path: &Path) -> Result<Opened, String> {
    let mut reader = BufReader::with_capacity(256 << 10, File::open(path).map_err(io)?);
    let mut line = Vec::new();
    let len = read_until(&mut reader, b'\n', LINE_MAX, &mut line)?;
    let text = String::from_utf8_lossy(&line);
    let names = fields(text.trim_start_matches('\u{feff}').trim_end());
    let time = names.first().map(String::as_str).unwrap_or_default();
    if !matches!(time.to_ascii_lowercase().replace(' ', "").as_str(), "time[s]" | "time") {
        return Err(format!("a CSV whose first column is \"{time}\": Saleae's is \"Time [s]\""));
    }
    let columns = names.len() - 1;
    if columns == 0 || columns > CHANNELS_MAX {
        return Err(format!("a CSV with {columns} channels: 1 to 64 are read"));
    }
    let channels =
        names.into_iter().skip(1).zip(0..).map(|(name, bit)| Channel { name, bit }).collect();
    let source = Csv {
        reader,
        line,
        row: 1,
        columns,
        base: None,
        at: 0,
        levels: 0,
        read_bytes: len as u64,
        without_data: 0,
    };
    Ok(Opened { format: Format::SaleaeCsv, channels, tick: Tick::PS, source: Box::new(source) })
}

/// The fields of a line; one in quotes may have commas.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().expect("it has one").push(character),
        }
    }
    fields.into_iter().map(|field| field.trim().to_owned()).collect()
}

/// `2025-06-01T12:00:00.123456789+02:00`, in picoseconds from an arbitrary time. The zone is that of all rows.
fn timestamp(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('T')?;
    let time = time.split(['Z', '+', '-']).next()?;
    let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    if !(2000..2100).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let leap = |year: i64| i64::from(year % 4 == 0);
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month as usize - 1];
    let years: i64 = (2020.min(year)..year).map(|year| 365 + leap(year)).sum();
    let days = years + before + if month > 2 { leap(year) } else { 0 } + day - 1;
    let mut parts = time.split(':');
    let (hour, minute, second) =
        (parts.next()?.parse::<i64>().ok()?, parts.next()?.parse::<i64>().ok()?, parts.next()?);
    let seconds = (days * 24 + hour).checked_mul(60)?.checked_add(minute)?.checked_mul(60)?;
    // Microseconds of a century fit, picoseconds of one month's days do.
    let whole = (seconds % 8_000_000).checked_mul(1_000_000_000_000)?;
    whole.checked_add(picoseconds(second)?)
}

impl Csv {
    /// Reads a row. Returns whether there was one.
    fn row(&mut self, edges: &mut Vec<Edge>) -> Result<bool, String> {
        let len = read_until(&mut self.reader, b'\n', LINE_MAX, &mut self.line)?;
        if len == 0 {
            return Ok(false);
        }
        (self.row, self.read_bytes) = (self.row + 1, self.read_bytes + len as u64);
        let line = self.line.trim_ascii();
        if line.is_empty() {
            return Ok(true);
        }
        let wrong = |what: String| format!("line {}: {what}", self.row);
        let mut fields = line.split(|&byte| byte == b',').map(|field| field.trim_ascii());
        let time = String::from_utf8_lossy(fields.next().unwrap_or_default());
        let ps = if time.contains('T') { timestamp(&time) } else { picoseconds(&time) };
        let ps = ps.ok_or_else(|| wrong(format!("\"{time}\" is no time in seconds")))?;
        let (mut levels, mut columns) = (self.levels, 0);
        for field in fields {
            let mask = 1_u64.checked_shl(columns).unwrap_or(0);
            match field {
                b"0" => levels &= !mask,
                b"1" => levels |= mask,
                b"X" | b"x" => self.without_data += 1,
                _ => {
                    return Err(wrong(format!(
                        "\"{}\" is no level: 0 or 1",
                        String::from_utf8_lossy(field)
                    )));
                }
            }
            columns += 1;
        }
        if columns as usize != self.columns {
            return Err(wrong(format!(
                "{columns} levels, and the first line names {} channels",
                self.columns
            )));
        }
        let is_first = self.base.is_none();
        let at = ps.checked_sub(*self.base.get_or_insert(ps)).and_then(|at| u64::try_from(at).ok());
        let at = at
            .filter(|&at| at >= self.at)
            .ok_or_else(|| wrong(format!("its time {time} s is before the line's above")))?;
        if self.levels != levels || is_first {
            edges.push(Edge { at, levels });
        }
        (self.at, self.levels) = (at, levels);
        Ok(true)
    }
}

impl Source for Csv {
    fn fill(&mut self, edges: &mut Vec<Edge>) -> Result<bool, String> {
        for _ in 0..PIECE_ROWS {
            if !self.row(edges)? {
                return if self.base.is_none() {
                    Err("a CSV without rows".into())
                } else {
                    Ok(false)
                };
            }
        }
        Ok(true)
    }

    fn end(&self) -> u64 {
        self.at
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    fn notes(&self) -> Vec<String> {
        let note =
            || format!("{} levels are X, no data: the level before is taken", self.without_data);
        if self.without_data > 0 { vec![note()] } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_times_are_read() {
        assert_eq!(fields("Time [s], Channel 0,\"a, b\""), ["Time [s]", "Channel 0", "a, b"]);
        let [a, b, c] =
            ["2025-02-28T23:59:59.5+00:00", "2025-03-01T00:00:00.25+00:00", "2025-03-01T00:01:00Z"]
                .map(timestamp);
        let [a, b, c] = [a, b, c].map(|time| time.expect("a time"));
        assert_eq!((b - a, c - b), (750_000_000_000, 59_750_000_000_000));
        assert_eq!(["2025-02-28", "T", "2025-13-01T00:00:00Z"].map(timestamp), [None; 3]);
    }
}
