//! Published figures and barewire's beside them, like beside like: by the costs that the lab fitted to the kernels.
//!
//! *Read first*: [`barewire_lab::regime`].

use std::fmt::Write as _;

use barewire_lab::ours::Beside;

/// A figure of the lab in a column: three digits from 100 on, four below.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// barewire's figure with its band: `56.5 (40.7–80.4)`.
pub(crate) fn ours(beside: &Beside) -> String {
    let band = beside.barewire;
    format!("{} ({}–{})", number(band.used), number(band.low), number(band.high))
}

/// A table of published figures, a line for each row of `rows`: its name and what stands beside its ids, which have the
/// columns' order.
pub(crate) fn table(columns: &[&str], rows: &[(&str, &[Beside])]) -> String {
    const NAME: usize = 31;
    const THEIRS: usize = 8;
    let mut text = format!("{:<NAME$}", rows.first().map_or("", |row| &row.1[0].unit));
    for column in columns {
        let _ = write!(text, "{column:>THEIRS$}");
    }
    text += "   barewire\n";
    for (name, figures) in rows {
        let _ = write!(text, "{name:<NAME$}");
        for figure in *figures {
            let _ = write!(text, "{:>THEIRS$}", figure.published);
        }
        if let Some(last) = figures.last() {
            let _ = writeln!(text, "   {}", ours(last));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use barewire_lab::ours::beside;

    use super::*;

    #[test]
    fn a_row_has_what_was_published_and_ours_with_its_band() {
        let figures = beside(&["jander-rfc-irq-A", "jander-rfc-irq-C"]);
        let text = table(&["A", "C"], &[("interrupt line low", &figures)]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["us", "A", "C", "barewire"]);
        assert!(lines[1].starts_with("interrupt line low"), "{text}");
        assert!(lines[1].contains(" 160 ") && lines[1].contains(" 55 "), "{text}");
        assert!(lines[1].ends_with(&ours(&figures[1])) && lines[1].contains('–'), "{text}");
    }
}
