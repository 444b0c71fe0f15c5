//! A timeline as text: a line for each lane, a letter for each step.

use std::fmt::Write as _;

use barewire_lab::outcome::Explanation;
use barewire_lab::report::{lanes, number};

/// Columns of time.
const COLUMNS: usize = 90;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The timeline, or nothing where there is none.
pub(super) fn text(explanation: &Explanation) -> String {
    let timeline = &explanation.timeline;
    let from = timeline.iter().map(|stretch| stretch.from_us).fold(0.0, f64::min);
    let to = timeline.iter().map(|stretch| stretch.to_us).fold(0.0, f64::max);
    if to <= from {
        return String::new();
    }
    let column_us = (to - from) / COLUMNS as f64;
    let mut text = format!(
        "\none occurrence, {} to {} us, a column is {} us\n",
        number(from),
        number(to),
        number(column_us)
    );
    let mut steps: Vec<&str> = Vec::new();
    for stretch in timeline {
        if !steps.contains(&stretch.step.as_str()) {
            steps.push(&stretch.step);
        }
    }
    let letter = |step: &str| {
        let nth = steps.iter().position(|name| *name == step);
        nth.and_then(|nth| LETTERS.get(nth)).map_or('+', |letter| char::from(*letter))
    };
    let lanes = lanes(explanation);
    let name = lanes.iter().map(|lane| lane.chars().count()).max().unwrap_or(0).min(24);
    let mut seen = String::new();
    for lane in lanes {
        let mut line = String::with_capacity(COLUMNS);
        for column in 0..COLUMNS {
            let begin = from + column as f64 * column_us;
            let end = begin + column_us;
            // The step that has most of the column.
            let share = |stretch: &barewire_lab::outcome::Stretch| {
                stretch.to_us.min(end) - stretch.from_us.max(begin)
            };
            let most = timeline
                .iter()
                .filter(|stretch| stretch.lane == lane && share(stretch) > 0.0)
                .max_by(|one, other| share(one).total_cmp(&share(other)));
            line.push(most.map_or('.', |stretch| letter(&stretch.step)));
        }
        let short: String = lane.chars().take(name).collect();
        let _ = writeln!(text, "  {short:<name$} {line}");
        seen += &line;
    }
    text.push('\n');
    for step in &steps {
        let us: f64 = timeline
            .iter()
            .filter(|stretch| stretch.step == *step)
            .map(|stretch| stretch.to_us - stretch.from_us)
            .sum();
        let letter = letter(step);
        let hidden = if seen.contains(letter) { "" } else { " (too short for a column)" };
        let _ = writeln!(text, "  {letter} {step}, {} us{hidden}", number(us));
    }
    text
}
