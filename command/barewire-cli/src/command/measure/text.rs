//! The result as a table.

use std::fmt::Write as _;

use barewire_lab::measured::{Measured, Origin};
use barewire_lab::report::number;

pub(super) fn text(measured: &Measured) -> String {
    let mut text = format!("{}: {}\n", measured.bus, measured.provenance);
    for reason in &measured.evidence {
        let _ = writeln!(text, "NOT A BOARD'S TIME: {reason}");
    }
    let name = match measured.origin {
        Origin::Measured => "measured",
        Origin::Simulated => "simulated",
        Origin::Emulated => "emulated",
    };
    let _ = writeln!(
        text,
        "\n{:<23}{:<6}{:>36}{:>36}{:>12}",
        "ns",
        "beside",
        format!("predicted, {}", measured.profile),
        name,
        "with costs"
    );
    let range = |[used, low, high]: [f64; 3]| {
        format!("{} ({}-{})", number(used), number(low), number(high))
    };
    for figure in &measured.figures {
        let ns = &figure.ns;
        let predicted = figure.predicted.map_or("-".into(), |it| range([it.used, it.low, it.high]));
        let _ = writeln!(
            text,
            "{:<23}{:<6}{predicted:>36}{:>36}{:>12}",
            figure.id,
            figure.condition.name(),
            range([ns.median, ns.low, ns.high]),
            figure.with_costs.map_or("-".into(), number),
        );
    }
    if let Some(test) = &measured.selftest {
        let _ = writeln!(
            text,
            "\nself-test: {} messages in loopback, {} failed",
            test.iterations, test.failed
        );
    }
    for missing in &measured.missing {
        let _ = writeln!(text, "missing: {}: {}", missing.part, missing.why);
    }
    text
}
