//! A kernel's trace as a profile of its board.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use barewire_lab::report::number;
use barewire_scope::trace::{self, PhaseTime, Profile, Shape, SkippedLine, Trace, TransferCost};
use serde::Serialize;

use crate::shared::failure::Failure;
use crate::shared::output::{self, note};

/// Said when no board is named.
const CLOCK: &str = "times are of the trace's clock; an emulator's clock is not a board's (--board NAME names the board)";

/// The printed result. Scripts rely on the names.
#[derive(Serialize)]
struct Report<'a> {
    /// As given.
    board: Option<&'a str>,
    /// The clock of the times, if no board was named.
    clock: Option<&'static str>,
    lines: usize,
    skipped_lines: usize,
    skipped: &'a [SkippedLine],
    messages: usize,
    incomplete: usize,
    lost: usize,
    #[serde(flatten)]
    profile: Profile,
}

/// Reads the trace and prints its profile.
pub(super) fn run(
    path: &Path,
    strict: bool,
    board: Option<&str>,
    json: bool,
) -> Result<(), Failure> {
    let trace = trace::read(&text_of(path)?);
    let skipped = |skipped: &SkippedLine| {
        format!("{} line {}: {}", path.display(), skipped.line, skipped.why)
    };
    if let Some(first) = trace.skipped.first().filter(|_| strict) {
        return Err(Failure::Failed(skipped(first)));
    }
    for line in &trace.skipped {
        note!("{}: skipped", skipped(line));
    }
    if trace.messages.is_empty() {
        return Err(empty(path, &trace));
    }
    let report = Report {
        board,
        clock: board.is_none().then_some(CLOCK),
        lines: trace.lines,
        skipped_lines: trace.skipped_lines,
        skipped: &trace.skipped,
        messages: trace.messages.len(),
        incomplete: trace.incomplete,
        lost: trace.lost,
        profile: Profile::of(&trace.messages),
    };
    if json { output::json(&report) } else { output::text(&(text(&report, &trace) + &next(path))) }
}

fn empty(path: &Path, trace: &Trace) -> Failure {
    Failure::Failed(format!(
        "{} has no whole message in its {} lines, of which {} cannot be read: trace events/spi",
        path.display(),
        trace.lines,
        trace.skipped_lines
    ))
}

/// A trace that has a message, for the verbs that make an experiment of it.
pub(in crate::command::lab) fn trace_of(path: &Path) -> Result<Trace, Failure> {
    let trace = trace::read(&text_of(path)?);
    if trace.messages.is_empty() { Err(empty(path, &trace)) } else { Ok(trace) }
}

/// What can be done with the trace.
fn next(path: &Path) -> String {
    let trace = if path == Path::new("-") { "TRACE".into() } else { path.display().to_string() };
    format!(
        "\nNext, with the board and the kernel that the trace is of: what would save how much,\n  \
         barewire lab gain --trace {trace} --board imx8mp --kernel 6.1\n\
         or an experiment to be changed, and the costs of your board:\n  \
         barewire lab new mine.toml --trace {trace} --board imx8mp --kernel 6.1\n  \
         barewire lab fit --experiment mine.toml --out mine-costs.toml\n  \
         barewire lab gain mine.toml --costs mine-costs.toml\n"
    )
}

/// The file, or stdin for `-`. A task may have a name that is no UTF-8: no reason to refuse the rest.
fn text_of(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes),
        false => fs::read(path),
    };
    let bytes =
        read.map_err(|error| Failure::io(format_args!("read {}", path.display()), &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn text(report: &Report<'_>, trace: &Trace) -> String {
    let mut text = match report.board {
        Some(board) => format!("{board}, by its kernel's trace\n"),
        None => format!("Note: {CLOCK}.\n"),
    };
    let _ = writeln!(
        text,
        "{} whole messages and {} incomplete in {} lines, of which {} cannot be read; events were lost {} times",
        report.messages, trace.incomplete, trace.lines, trace.skipped_lines, trace.lost
    );
    for each in &report.profile.shapes {
        shape(&mut text, each);
    }
    if let Some(cost) = &report.profile.transfer {
        transfer(&mut text, cost);
    }
    text
}

fn shape(text: &mut String, shape: &Shape) {
    let lens: Vec<String> = shape.transfers.iter().map(u64::to_string).collect();
    let (messages, s) = (shape.messages, if shape.messages == 1 { "" } else { "s" });
    let _ = write!(
        text,
        "\n{}: {messages} message{s} of transfers of {} bytes\n",
        shape.device,
        lens.join(" + ")
    );
    let _ = writeln!(text, "  {:<32}{:>12}{:>12}{:>12}", "us", "median", "quarter", "3 quarters");
    let mut line = |phase: &PhaseTime| {
        let [median, q1, q3] = [phase.median_us, phase.q1_us, phase.q3_us].map(number);
        let _ = writeln!(text, "  {:<32}{median:>12}{q1:>12}{q3:>12}", phase.phase);
    };
    shape.phases.iter().for_each(&mut line);
    line(&shape.whole);
    shape.done_to_submit.iter().for_each(&mut line);
    let _ = writeln!(
        text,
        "  {:<32}{:>12}\n  {:<32}{:>12}",
        "sum of the phases' medians",
        number(shape.profile_us),
        "residual: median distance to it",
        number(shape.residual_us)
    );
}

fn transfer(text: &mut String, cost: &TransferCost) {
    let _ = write!(
        text,
        "\na transfer is {} us and {} us a byte, by least squares through the medians\n  {:<32}{:>12}{:>12}\n",
        number(cost.fixed_us),
        number(cost.us_per_byte),
        "bytes",
        "median, us",
        "residual"
    );
    for (len, median, residual) in &cost.residuals_us {
        let _ = writeln!(text, "  {len:<32}{:>12}{:>12}", number(*median), number(*residual));
    }
}
