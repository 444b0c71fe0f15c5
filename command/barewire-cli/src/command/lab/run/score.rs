//! The score of a run, thread by thread, beside the simple predictors.

use std::fmt::Write as _;

use barewire_lab::report::number;
use barewire_lab::score::{Coverage, Score, ThreadScore};

use super::table::wrapped;

/// Keeps only the entries of one thread.
pub(super) fn retain(score: &mut Score, thread: &str) {
    score.threads.retain(|row| row.thread == thread);
    score.nulls.retain(|null| null.thread == thread);
    score.coverage_by_thread.retain(|name, _| name == thread);
    score.pairs.retain(|pair| pair.thread == thread);
    score
        .not_replayed
        .retain(|id| id.strip_prefix(thread).is_some_and(|rest| rest.starts_with('-')));
}

/// The score as text; with `whole`, that of all threads together too.
pub(super) fn text(score: &Score, whole: bool) -> String {
    let mut text = String::new();
    if whole {
        let _ = writeln!(
            text,
            "\nOut of sample, the score over all {} predicted effects is {:.3} (goal {:.2}): each thread by a fit that leaves \
             it out.\nIn sample {:.3}; the median of random costs {:.3}; the strongest simple predictor of each thread {:.3}.",
            score.all.effects,
            score.leave_one_out,
            score.goal,
            score.all.lab,
            score.random,
            score.all.strongest.score
        );
    }
    let _ = write!(
        text,
        "\nScore of the differences: sum of |predicted - published| by sum of |published|; 0 is perfect, 1 is what \
         'nothing\nchanges' gets. The simple predictors know the same fit set.\n\n\
         {:<13}{:<10}{:>8}{:>7}{:>8}{:>10}{:>9}  {:<12}{:>12}{:>8}\n",
        "thread",
        "kind",
        "effects",
        "lab",
        "ratio",
        "constant",
        "formula",
        "lab beats",
        "covered",
        "width"
    );
    for row in &score.threads {
        line(&mut text, row, score.coverage_by_thread.get(&row.thread));
    }
    if whole {
        line(&mut text, &score.all, Some(&score.coverage));
        line(
            &mut text,
            &ThreadScore { thread: "with fitted".into(), ..score.with_fitted.clone() },
            None,
        );
        let _ = writeln!(
            text,
            "\nThe lab beats the strongest simple predictor in {} of {} threads, of which {} are predicted.",
            score.beaten,
            score.threads.len(),
            score.beaten_predicted
        );
    }
    let _ = writeln!(
        text,
        "covered: predicted figures whose published value is from low to high; width: the median of (high - low) / \
         simulated.\nEach end of a band is {:.2} times as far out as the fit's costs make it: {:.0} % of the predicted figures are in \
         it around\nwhat the fit that leaves their thread out says.",
        score.bands_widened,
        100.0 * score.covered_left_out
    );
    nulls(&mut text, score);
    if !score.not_replayed.is_empty() {
        let _ = writeln!(text, "not replayed: {}", wrapped(&score.not_replayed.join(", "), "    "));
    }
    text
}

fn line(text: &mut String, row: &ThreadScore, coverage: Option<&Coverage>) {
    let kind = row.kind.name();
    let missing = if row.missing > 0 {
        format!("{} (-{})", row.effects, row.missing)
    } else {
        row.effects.to_string()
    };
    // If there are several threads, each has its own strongest predictor.
    let beats = match row.strongest.name {
        _ if row.beats => "yes".into(),
        name if name.contains(' ') => "no".into(),
        name => format!("no: {name}"),
    };
    let covered = coverage
        .map_or(String::new(), |coverage| format!("{} of {}", coverage.covered, coverage.of));
    let width = coverage.and_then(|coverage| coverage.median_width);
    let line = format!(
        "{:<13}{kind:<10}{missing:>8}{:>7}{:>8}{:>10}{:>9}  {beats:<12}{covered:>12}{:>8}",
        row.thread,
        share(Some(row.lab)),
        share(Some(row.ratio)),
        share(Some(row.constant)),
        share(row.formula),
        width.map_or(String::new(), |width| format!("{:.0} %", 100.0 * width)),
    );
    let _ = writeln!(text, "{}", line.trim_end());
}

/// A score; one of no pairs is no number.
fn share(score: Option<f64>) -> String {
    score.filter(|score| score.is_finite()).map_or("-".into(), |score| format!("{score:.3}"))
}

fn nulls(text: &mut String, score: &Score) {
    if score.nulls.is_empty() {
        return;
    }
    let (trivial, counted): (Vec<_>, Vec<_>) =
        score.nulls.iter().partition(|null| null.by_construction);
    let within = counted.iter().filter(|null| null.within).count();
    let _ = writeln!(
        text,
        "\nnulls: {within} of {} changes that should do nothing do nothing; {} more cannot do anything, since the \
         processor polls",
        counted.len(),
        trivial.len()
    );
    for null in score.nulls.iter().filter(|null| !null.within) {
        let predicted = null.predicted.map_or("not replayed".into(), number);
        let _ = writeln!(text, "    {}: {predicted}, at most {}", null.after, number(null.bound));
    }
}
