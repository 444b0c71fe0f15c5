//! `barewire lab explain`: a figure, step by step.

mod gantt;

use std::fmt::Write as _;
use std::path::PathBuf;

use barewire_lab::outcome::Explanation;
use barewire_lab::report::{self, exact, number};

use super::given::{self, CostFile, Experiments};
use super::own;
use crate::shared::failure::Failure;
use crate::shared::files::{self, NamedFile, Output};
use crate::shared::output;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The figure; `barewire lab list --figures` has all. Of your own experiment: FILE.toml:MESSAGE, whose call it is, or FILE.toml:MESSAGE:FIGURE
    #[arg(value_name = "ID")]
    id: String,
    /// Switch this step off; may be given several times
    #[arg(long, value_name = "STEP")]
    without: Vec<String>,
    /// Draw the timeline into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    experiments: Experiments,
    #[command(flatten)]
    costs: CostFile,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Explains.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let outputs: Vec<NamedFile<'_>> =
        args.svg.iter().map(|path| NamedFile { by: "--svg", path }).collect();
    args.experiments.check(&outputs)?;
    let named = own::named(&args.id);
    if let (Some(named), Some(&svg)) = (&named, outputs.first()) {
        files::check(&[svg], &[NamedFile { by: "the experiment", path: named.file }])?;
    }
    let lab = args.experiments.lab(&args.costs)?;
    let explain = |without: &[String]| match &named {
        Some(named) => named.explain(&lab, without),
        None => lab.explain(&args.id, without).map_err(given::refused),
    };
    let explanation = explain(&args.without)?;
    if let Some(&svg) = outputs.first() {
        Output::create(svg, args.json)?.write(&report::timeline_svg(&explanation))?;
    }
    if args.json {
        return output::json(&explanation);
    }
    let whole = match args.without.is_empty() {
        true => None,
        false => Some(explain(&[])?),
    };
    output::text(&text(&explanation, whole.as_ref()))
}

fn text(explanation: &Explanation, whole: Option<&Explanation>) -> String {
    let Explanation { id, unit, published, replayed, sum_us, relation, .. } = explanation;
    let published =
        published.map_or(String::new(), |value| format!("published {} {unit}, ", exact(value)));
    let mut text = format!("{id}: {published}simulated {} {unit}\n", number(*replayed));
    if let Some(whole) = whole {
        let _ = writeln!(
            text,
            "without {}: {} {unit} instead of {}, the steps {} us instead of {}",
            explanation.without.join(", "),
            number(*replayed),
            number(whole.replayed),
            number(*sum_us),
            number(whole.sum_us)
        );
    }
    let longest = explanation.steps.iter().map(|step| step.step.chars().count()).max();
    let name = longest.unwrap_or(0).max("sum".len()) + 2;
    let _ = writeln!(
        text,
        "\n{:<name$}{:>11}{:>9}{:>9}{:>14}{:>9}{:>9}{:>8}  --without",
        "step", "us", "share", "times", "instructions", "reads", "writes", "wakes"
    );
    for step in &explanation.steps {
        let share = if *sum_us > 0.0 { 100.0 * step.us / sum_us } else { 0.0 };
        let line = format!(
            "{:<name$}{:>11.3}{:>7.1} %{:>9}{:>14}{:>9}{:>9}{:>8}  {}",
            step.step,
            step.us,
            share,
            number(step.times),
            number(step.instructions),
            number(step.reads),
            number(step.writes),
            number(step.wakes),
            if step.removable { "takes it off" } else { "" }
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let _ = writeln!(text, "{:<name$}{sum_us:>11.3}", "sum");
    let _ = writeln!(text, "\nthe figure is {relation}, sum in us: {} {unit}", number(*replayed));
    if let Some(why) = &explanation.unexplained {
        let _ = writeln!(text, "not explained by the lab: {why}");
    }
    text + &gantt::text(explanation) + &moves(explanation)
}

/// The most costs that are listed.
const MOVES: usize = 8;

/// What the costs that move the figure most do to it.
fn moves(explanation: &Explanation) -> String {
    let Explanation { unit, moves, .. } = explanation;
    let Some(longest) = moves.iter().take(MOVES).map(|one| one.cost.chars().count()).max() else {
        return String::new();
    };
    let name = longest.max("cost".len()) + 2;
    let mut text = format!(
        "\nwhat a cost makes of it at the ends of its range, all others as used, in {unit}\n{:<name$}{:>11}{:>11}  barewire\n",
        "cost", "low", "high"
    );
    for one in moves.iter().take(MOVES) {
        let ours = one
            .barewire
            .map_or(String::new(), |(low, high)| format!("  {} to {}", number(low), number(high)));
        let (low, high) = (number(one.at_low), number(one.at_high));
        let _ = writeln!(text, "{:<name$}{low:>11}{high:>11}{ours}", one.cost);
    }
    text
}
