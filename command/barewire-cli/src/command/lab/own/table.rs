//! The figures of a user's experiment as tables: one for each message, with the steps of a call below.

use std::fmt::Write as _;

use barewire_lab::Band;
use barewire_lab::messages::{MessageFigure, MessageOutcome, OwnOutcome};
use barewire_lab::report::{exact, number};

/// Steps below this part of a call are put together.
const SMALL: f64 = 0.02;

/// All of it.
pub(in crate::command::lab) fn text(own: &OwnOutcome) -> String {
    let OwnOutcome { name, title, board, kernel, client, driver, messages } = own;
    let mut text = format!(
        "{name}: {title}\n{board}, {kernel}, {client}, {driver}. Simulated.\nbarewire: in user space, prepared, with the same \
         transfers and costs. low-high: over\nthe sets of costs that the lab's fit leaves, and the board's own costs at both \
         ends.\n"
    );
    for message in messages {
        one(&mut text, message);
    }
    text
}

fn range(band: Band) -> String {
    format!("{}-{}", number(band.low), number(band.high))
}

fn one(text: &mut String, message: &MessageOutcome) {
    let MessageOutcome { name, lengths, batch, speed_hz, waiting, regime, figures, .. } = message;
    let bytes: Vec<String> = lengths.iter().map(usize::to_string).collect();
    let batch = if *batch > 1 { format!(" x {batch}") } else { String::new() };
    let unit = if lengths[..] == [1] { "byte" } else { "bytes" };
    let _ = write!(
        text,
        "\n{name}: {} {unit}{batch} at {} MHz, {waiting}, {regime}\n  {:<13}{:<5}{:>10}{:>18}{:>11}{:>10}{:>9}{:>11}{:>18}\n",
        bytes.join(" + "),
        number(*speed_hz as f64 / 1e6),
        "figure",
        "unit",
        "simulated",
        "low-high",
        "published",
        "error",
        "in band",
        "barewire",
        "low-high"
    );
    for figure in figures {
        let MessageFigure { figure, unit, simulated, published, error, within, barewire } = figure;
        let line = format!(
            "  {figure:<13}{unit:<5}{:>10}{:>18}{:>11}{:>10}{:>9}{:>11}{:>18}",
            number(simulated.used),
            range(*simulated),
            published.map_or(String::new(), exact),
            error.map_or(String::new(), |error| format!("{:+.1} %", 100.0 * error)),
            within.map_or("", |within| if within { "yes" } else { "no" }),
            barewire.map_or("-".into(), |band| number(band.used)),
            barewire.map_or(String::new(), range),
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    steps(text, message);
}

fn steps(text: &mut String, message: &MessageOutcome) {
    let _ = writeln!(text, "  a call, {} us:", number(message.sum_us));
    let (large, small): (Vec<_>, Vec<_>) =
        message.steps.iter().partition(|step| step.us >= SMALL * message.sum_us);
    for step in large {
        let share = 100.0 * step.us / message.sum_us;
        let _ = writeln!(text, "    {:<34}{:>9.3} us{share:>7.1} %", step.step, step.us);
    }
    let rest: f64 = small.iter().map(|step| step.us).sum();
    if !small.is_empty() {
        let what = format!("{} smaller steps", small.len());
        let _ =
            writeln!(text, "    {what:<34}{rest:>9.3} us{:>7.1} %", 100.0 * rest / message.sum_us);
    }
}
