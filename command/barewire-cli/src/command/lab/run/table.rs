//! The table of a run: a block for each thread, a line for each figure.

use std::fmt::Write as _;

use barewire_lab::outcome::{Row, UnpublishedResult};
use barewire_lab::report::{exact, number, threads};

/// The widest line.
const WIDTH: usize = 116;

/// All rows, thread by thread, and the footnotes.
pub(super) fn text(rows: &[Row], told: &[UnpublishedResult]) -> String {
    let mut text = String::from(
        "Published by the threads; kernels simulated, and barewire simulated on the same work: barewire measured nothing \
         of it.\nlow-high: the smallest and largest of seventeen sets of costs that the fit leaves; for barewire of all \
         costs at their\nlow and high ends.\n",
    );
    let mut notes: Vec<&str> = Vec::new();
    for block in rows.chunk_by(|one, other| one.thread == other.thread) {
        heading(&mut text, &block[0].thread);
        for row in block {
            let mark = row.unexplained.as_deref().map(|why| {
                let known = notes.iter().position(|note| *note == why);
                known.unwrap_or_else(|| {
                    notes.push(why);
                    notes.len() - 1
                })
            });
            line(&mut text, row, mark);
        }
        let told: Vec<&UnpublishedResult> =
            told.iter().filter(|told| told.thread == block[0].thread).collect();
        for of_one in told.chunk_by(|one, other| one.experiment == other.experiment) {
            let UnpublishedResult { experiment, citation, unexplained, .. } = of_one[0];
            let unexplained = unexplained.as_ref().map_or(String::new(), |why| format!("; {why}"));
            let said = format!("{experiment}: the thread says “{citation}”{unexplained}");
            let _ = writeln!(text, "{}", wrapped(&said, "  "));
            for UnpublishedResult { path, text: words, .. } in of_one {
                let _ = writeln!(text, "  {path:<25}{words}");
            }
        }
    }
    if !notes.is_empty() {
        text.push_str("\nNot explained by the lab:\n");
    }
    for (nth, note) in notes.iter().enumerate() {
        let indent = " ".repeat(5);
        let _ = writeln!(text, "{:>4} {}", format!("*{}", nth + 1), wrapped(note, &indent));
    }
    text
}

fn heading(text: &mut String, thread: &str) {
    match threads::source(thread) {
        Some(source) => {
            let _ = write!(
                text,
                "\n{thread}: {}, {}\n  {}\n",
                source.author, source.place, source.title
            );
        }
        None => {
            let _ = writeln!(text, "\n{thread}");
        }
    }
    let _ = writeln!(
        text,
        "{:<27}{:<5}{:>10}{:>10}{:>9}{:>17}  {:<10}{:>9}{:>17}",
        "id", "unit", "published", "simulated", "error", "low-high", "kind", "barewire", "low-high"
    );
}

fn line(text: &mut String, row: &Row, mark: Option<usize>) {
    let one = |value: Option<f64>| value.map_or("-".into(), number);
    let range = |ends: Option<(f64, f64)>| {
        ends.map_or("-".into(), |(low, high)| format!("{}-{}", number(low), number(high)))
    };
    let error = row.error.map_or("-".into(), |error| format!("{:+.1} %", 100.0 * error));
    let _ = write!(
        text,
        "{:<27}{:<5}{:>10}{:>10}{:>9}{:>17}  {:<10}{:>9}{:>17}",
        row.id,
        row.unit,
        exact(row.published),
        one(row.replayed),
        error,
        range(row.low.zip(row.high)),
        row.kind.name(),
        one(row.barewire.map(|band| band.used)),
        range(row.barewire.map(|band| (band.low, band.high))),
    );
    if let Some(nth) = mark {
        let _ = write!(text, " *{}", nth + 1);
    }
    text.push('\n');
}

/// Text in lines that are not too wide, each but the first after `indent`.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    let mut wrapped = String::new();
    let mut column = indent.len();
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent.len() {
            if column + 1 + length > WIDTH {
                wrapped += "\n";
                wrapped += indent;
                column = indent.len();
            } else {
                wrapped.push(' ');
                column += 1;
            }
        }
        wrapped += word;
        column += length;
    }
    wrapped
}
