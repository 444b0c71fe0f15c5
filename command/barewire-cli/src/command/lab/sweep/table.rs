//! A sweep as a table for readers, and as CSV.

use std::fmt::Write as _;

use barewire_lab::outcome::{BreakEven, Sweep};
use barewire_lab::report::{number, shown_in};

/// The table, with a line where columns cross, and what crosses below.
pub(super) fn text(sweep: &Sweep) -> String {
    let request = &sweep.request;
    let last = sweep.rows.iter().map(|row| row.0).fold(0.0, f64::max);
    let (unit, size) = shown_in(&sweep.unit, last);
    let mut text = format!(
        "{} on {}, simulated, {}: {} over {}\n\n",
        request.path, request.board, sweep.regime, sweep.value_unit, request.parameter
    );
    let wide = |name: &String| name.chars().count().max(10) + 2;
    let head = format!("{}, {unit}", request.parameter);
    let first = head.chars().count().max(10);
    let _ = write!(text, "{head:>first$}");
    for name in &sweep.columns {
        let _ = write!(text, "{name:>0$}", wide(name));
    }
    text.push('\n');
    let crossings = |text: &mut String, from: f64, to: f64| {
        for point in sweep.break_even.iter().filter(|point| from < point.at && point.at <= to) {
            let _ = writeln!(text, "{:>first$}  <- {}", number(point.at / size), point.what);
        }
    };
    let mut before = f64::NEG_INFINITY;
    for (value, figures) in &sweep.rows {
        crossings(&mut text, before, *value);
        before = *value;
        let _ = write!(text, "{:>first$}", number(value / size));
        for (name, figure) in sweep.columns.iter().zip(figures) {
            let _ = write!(text, "{:>1$}", number(*figure), wide(name));
        }
        text.push('\n');
    }
    crossings(&mut text, before, f64::INFINITY);
    text.push('\n');
    if sweep.break_even.is_empty() {
        text.push_str("no column begins to be better than another in this range\n");
    }
    for BreakEven { what, at } in &sweep.break_even {
        let _ = writeln!(text, "at {} {unit}: {what}", number(at / size));
    }
    text
}

/// The table as CSV: the parameter in its own unit, then a column for each figure.
pub(super) fn csv(sweep: &Sweep) -> String {
    let mut text = field(&format!("{}_{}", sweep.request.parameter, sweep.unit));
    for name in &sweep.columns {
        let _ = write!(text, ",{}", field(&format!("{name} ({})", sweep.value_unit)));
    }
    text.push('\n');
    for (value, figures) in &sweep.rows {
        let _ = write!(text, "{value}");
        for figure in figures {
            let _ = write!(text, ",{figure}");
        }
        text.push('\n');
    }
    text
}

/// A field, in quotes where it needs them (RFC 4180).
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use barewire_lab::Regime;

    use super::*;
    use barewire_lab::outcome::SweepRequest;

    fn sweep() -> Sweep {
        Sweep {
            request: SweepRequest {
                path: "p".into(),
                board: "b".into(),
                parameter: "delay".into(),
                values: vec![0.0, 5000.0],
            },
            unit: "ns".into(),
            value_unit: "1/s".into(),
            regime: Regime::InALoop,
            columns: vec!["one, alone".into(), "two".into()],
            rows: vec![(0.0, vec![1.5, 2.0]), (5000.0, vec![2.5, 1.0])],
            break_even: vec![BreakEven { what: "two stops paying".into(), at: 4750.0 }],
        }
    }

    #[test]
    fn a_crossing_stands_between_its_lines_and_below() {
        let text = text(&sweep());
        let lines: Vec<&str> = text.lines().collect();
        let at = lines
            .iter()
            .position(|line| line.contains("4.75  <- two stops paying"))
            .expect("marked");
        assert!(
            lines[at - 1].trim_start().starts_with("0 ")
                && lines[at + 1].trim_start().starts_with("5 "),
            "{text}"
        );
        assert!(text.ends_with("\nat 4.75 us: two stops paying\n"), "{text}");
    }

    #[test]
    fn csv_has_quotes_where_it_must() {
        assert_eq!(csv(&sweep()), "delay_ns,\"one, alone (1/s)\",two (1/s)\n0,1.5,2\n5000,2.5,1\n");
    }
}
