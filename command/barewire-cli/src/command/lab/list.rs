//! `barewire lab list`: the experiments, or the published figures with their role in the lab
//! (fitted, predicted, checked).

use std::fmt::Write as _;

use barewire_lab::report::exact;
use barewire_lab::{ExperimentLine, Kind, Lab};
use serde::Serialize;

use super::given::{CostFile, Experiments};
use crate::shared::failure::Failure;
use crate::shared::output;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// List the published figures by id instead
    #[arg(long)]
    figures: bool,
    #[command(flatten)]
    experiments: Experiments,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// A figure; these names are an interface.
#[derive(Serialize)]
struct Figure {
    id: String,
    thread: String,
    kind: Kind,
    published: f64,
    unit: String,
    variant: String,
    metric: String,
}

/// Lists.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let lab = args.experiments.lab(&CostFile::default())?;
    if args.figures {
        let figures = figures(&lab);
        return if args.json {
            output::json(&figures)
        } else {
            output::text(&figures_text(&figures))
        };
    }
    let experiments = lab.list();
    if args.json { output::json(&experiments) } else { output::text(&text(&experiments)) }
}

fn figures(lab: &Lab) -> Vec<Figure> {
    let figure = |figure: &barewire_lab::figure::Figure| Figure {
        id: figure.id.clone(),
        thread: figure.thread.clone(),
        kind: lab.rules().kind(&figure.id),
        published: figure.value,
        unit: figure.unit.clone(),
        variant: figure.variant.clone(),
        metric: figure.metric.clone(),
    };
    lab.figures().iter().map(figure).collect()
}

fn figures_text(figures: &[Figure]) -> String {
    let mut text = format!("{:<27}{:<11}{:>11}      what\n", "id", "kind", "published");
    for Figure { id, kind, published, unit, variant, metric, .. } in figures {
        let (kind, published) = (kind.name(), exact(*published));
        let _ = writeln!(text, "{id:<27}{kind:<11}{published:>11} {unit:<5}{metric}; {variant}");
    }
    text + "\ninput, arithmetic: not scored; fitted: a cost was fitted to it; predicted: nothing was\n"
}

fn text(experiments: &[ExperimentLine]) -> String {
    let mut text = String::new();
    for experiment in experiments {
        let ExperimentLine { name, thread, title, board, paths, figures, .. } = experiment;
        let count = match figures.len() {
            1 => "1 figure".into(),
            count => format!("{count} figures"),
        };
        let _ = writeln!(text, "{name}: {title}");
        let _ = writeln!(
            text,
            "    {thread}; simulated board {board}; {count}; paths: {}",
            paths.join(", ")
        );
    }
    text
}
