//! A small plot of the last samples in the terminal.
//!
//! Each column of text is two samples wide and each row four high, in Braille dots. The live plot
//! is redrawn in place on stderr, if that is a terminal.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::time::{Duration, Instant};

use crate::shared::text::figure;

/// Columns and rows of text.
const COLUMNS: usize = 64;
const ROWS: usize = 8;
/// The rows, and the axis.
const LINES: usize = ROWS + 1;
/// Samples and steps of level that fit.
const WIDTH: usize = COLUMNS * 2;
const HEIGHT: usize = ROWS * 4;
/// Drawings a second are fewer than ten.
const PAUSE: Duration = Duration::from_millis(100);
/// The Braille pattern without a dot, and the dots by row from the top, left and right.
const BLANK: u32 = 0x2800;
const DOTS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// Plots the last codes of the first of `inputs` inputs, with `code_max` at the top; lines end with a newline. Below
/// stands how long ago the first sample was: in time if the interval is known, else in samples.
pub(super) fn draw(
    codes: &[u16],
    inputs: usize,
    code_max: u16,
    top_v: f64,
    interval_ns: Option<f64>,
) -> String {
    let of_first: Vec<u16> = codes.iter().copied().step_by(inputs).rev().take(WIDTH).collect();
    let mut cells = [[BLANK; COLUMNS]; ROWS];
    for (x, &code) in of_first.iter().rev().enumerate() {
        let level = usize::from(code) * (HEIGHT - 1) / usize::from(code_max).max(1);
        let y = HEIGHT - 1 - level.min(HEIGHT - 1);
        cells[y / 4][x / 2] |= DOTS[y % 4][x % 2];
    }
    let mut text = String::new();
    for (row, cells) in cells.iter().enumerate() {
        let volts = match row {
            0 => top_v,
            _ if row == ROWS - 1 => 0.0,
            _ => f64::NAN,
        };
        match volts.is_nan() {
            true => text.push_str("         |"),
            false => drop(write!(text, "{volts:>7.3} V|")),
        }
        text.extend(cells.iter().filter_map(|&cell| char::from_u32(cell)));
        text.push('\n');
    }
    let before_last = of_first.len().saturating_sub(1);
    let first = match interval_ns {
        Some(ns) => format!("-{}", figure::time(ns * before_last as f64)),
        None => format!("-{before_last} samples"),
    };
    let _ = writeln!(text, "          {first:<width$}0", width = before_last / 2);
    text
}

/// The live plot.
#[derive(Debug)]
pub(super) struct Live {
    shown: bool,
    drawn: Option<Instant>,
    inputs: usize,
    code_max: u16,
    top_v: f64,
}

impl Live {
    /// A plot of the first of `inputs` inputs; none unless `asked` and stderr is a terminal.
    pub(super) fn new(asked: bool, inputs: usize, code_max: u16, top_v: f64) -> Self {
        let shown = asked && io::stderr().is_terminal();
        Self { shown, drawn: None, inputs, code_max, top_v }
    }

    /// Draws it anew, if the last drawing is old enough.
    pub(super) fn show(&mut self, codes: &[u16]) {
        if !self.shown || self.drawn.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        let over = if self.drawn.is_some() { format!("\x1b[{LINES}A") } else { String::new() };
        let text = draw(codes, self.inputs, self.code_max, self.top_v, None);
        // A picture that cannot be drawn is no reason to stop.
        let _ = write!(io::stderr(), "{over}{text}");
        self.drawn = Some(Instant::now());
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(io::stderr(), "\x1b[{LINES}A\x1b[J");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_stand_at_their_height() {
        let codes: Vec<u16> = [0, 1023].repeat(WIDTH);
        let text = draw(&codes, 1, 1023, 5.0, Some(8_000.0));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), LINES);
        // 127 times 8 us before the last; both ends are below theirs.
        let axis = lines[ROWS];
        assert!(axis.starts_with("          -1.02 ms") && axis.ends_with('0'), "{axis}");
        assert_eq!(axis.chars().count(), lines[0].chars().count());
        let dots = |line: &str| line.split('|').nth(1).expect("an axis").to_owned();
        // Every second sample is at the top: the right dot of each column's highest row.
        assert_eq!(dots(lines[0]), "\u{2808}".repeat(COLUMNS));
        assert_eq!(dots(lines[ROWS - 1]), "\u{2840}".repeat(COLUMNS));
        assert_eq!(dots(lines[3]), "\u{2800}".repeat(COLUMNS));
        assert!(lines[0].starts_with("  5.000 V|") && lines[ROWS - 1].starts_with("  0.000 V|"));
    }

    #[test]
    fn only_the_first_input_is_drawn_and_few_samples_too() {
        let codes = [1023, 0, 1023, 0];
        let text = draw(&codes, 2, 1023, 5.0, None);
        assert!(text.contains('\u{2809}') && !text.contains('\u{2840}'));
        assert!(text.ends_with("          -1 samples0\n"), "{text}");
        assert!(!draw(&[], 1, 1023, 5.0, None).contains('\u{2801}'));
    }
}
