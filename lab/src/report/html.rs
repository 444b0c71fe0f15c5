//! The page.

use std::fmt::Write as _;

use super::own::OwnOnPage;
use super::svg::escaped;
use super::{chart, own, style, tables, threads, timeline};
use crate::held_out::HeldOut;
use crate::lab::ExperimentLine;
use crate::outcome::{Explanation, Outcome, Row, Sweep};
use crate::rules::Rules;
use crate::score::Score;

/// The content of the page.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// All figures, and the score.
    pub outcome: &'a Outcome,
    /// The experiments that replay them.
    pub experiments: &'a [ExperimentLine],
    /// The figures that are taken apart.
    pub explanations: &'a [Explanation],
    /// The sweeps.
    pub sweeps: &'a [Sweep],
    /// The rules of scoring, and the assumptions.
    pub rules: &'a Rules,
    /// Experiments of users.
    pub own: &'a [OwnOnPage],
    /// The figures not seen before.
    pub held_out: &'a [HeldOut],
}

/// The page as HTML: one file that needs no other.
#[must_use]
pub fn html(page: &Page<'_>) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>barewire: the lab</title>\
         <link rel=\"icon\" href=\"data:,\"><style>{}{}{}</style></head><body>\n",
        style::COLOURS,
        style::CHARTS,
        style::PAGE
    );
    let own_calls = page.own.iter().flat_map(|own| &own.calls);
    let colours = chart::Colours::of(page.explanations.iter().chain(own_calls));
    head(&mut html, page);
    for block in page.outcome.figures.chunk_by(|one, other| one.thread == other.thread) {
        thread(&mut html, page, block, &colours);
    }
    own::held_out(&mut html, page.held_out);
    own::experiments(&mut html, page.own, &colours);
    sweeps(&mut html, page.sweeps);
    rules(&mut html, page);
    html + "</body></html>\n"
}

/// The head of the page: its subject, and how far the figures may be believed.
fn head(html: &mut String, page: &Page<'_>) {
    let score = &page.outcome.score;
    html.push_str("<header><h1>barewire: the lab</h1>\n");
    let _ = writeln!(
        html,
        "<p class=\"worth\">Score out of sample: <strong>{:.3}</strong>; goal: at most {}, {}.</p>",
        score.leave_one_out,
        score.goal,
        if score.leave_one_out <= score.goal { "reached" } else { "not reached" }
    );
    html.push_str(
        "<p>Five public threads print 95 figures about SPI under Linux and about unmapping IO memory. The lab replays \
         their experiments: each kernel’s path is a program of named steps on a simulated board, and barewire does the \
         same work beside it.</p>\n\
         <p><strong>Published</strong> figures are the threads’. All others are <strong>simulated</strong>: barewire \
         measured nothing for this page. A whisker goes from the smallest to the largest of what several sets of costs give; \
         it is left out where they give the same.</p>\n<nav>",
    );
    for thread in &score.threads {
        let name = escaped(&thread.thread);
        let _ = write!(html, "<a href=\"#{name}\">{name}</a>");
    }
    html.push_str("<a href=\"#held-out\">not seen before</a>");
    for own in page.own {
        let name = escaped(&own.outcome.name);
        let _ = write!(html, "<a href=\"#own-{name}\">{name}</a>");
    }
    html.push_str("<a href=\"#sweeps\">sweeps</a><a href=\"#rules\">rules</a></nav></header>\n");
    html.push_str("<h2 id=\"score\">Does it predict?</h2>\n");
    let _ = writeln!(html, "<p>{}</p>", escaped(&verdict(score)));
    let _ = writeln!(html, "<figure>{}</figure>", chart::score::draw("score-chart", score));
    html.push_str(&tables::score(score));
    html.push_str(
        "<p class=\"dim\">Covered: predicted figures whose published value is from low to high. Width: the median of \
         (high − low) / simulated. The simple predictors know the same fit set: a constant ratio, constant time a message \
         or MiB, the author’s own formula.</p>\n",
    );
    let counted: Vec<_> = score.nulls.iter().filter(|null| !null.by_construction).collect();
    let within = counted.iter().filter(|null| null.within).count();
    let _ = writeln!(
        html,
        "<details><summary>{within} of {} changes that should do nothing do nothing; {} more cannot do anything, since the \
         processor polls</summary>{}</details>",
        counted.len(),
        score.nulls.len() - counted.len(),
        tables::nulls(score)
    );
    let checks = &page.outcome.checks;
    let _ = writeln!(
        html,
        "<h3>What the fit is worth</h3>\n<p>Without any fit the score of all is {:.3}; fitted to figures \
         that were dealt out anew, {:.3} or more. Scores of threads whose own figures are not fitted to: {}.</p>\n{}",
        checks.unfitted,
        checks.shuffled_range().0,
        escaped(&checks.without_each()),
        tables::across_boards(page.outcome)
    );
}

/// The score in a sentence or two.
fn verdict(score: &Score) -> String {
    let beaten: Vec<&str> = score
        .threads
        .iter()
        .filter(|thread| thread.beats)
        .map(|thread| thread.thread.as_str())
        .collect();
    let not: Vec<String> = score
        .threads
        .iter()
        .filter(|thread| !thread.beats)
        .map(|thread| format!("{} ({})", thread.thread, thread.strongest.name))
        .collect();
    let list = |names: &[String]| if names.is_empty() { "none".into() } else { names.join(", ") };
    let beaten: Vec<String> = beaten.into_iter().map(Into::into).collect();
    format!(
        "Out of sample, each thread by a fit that leaves it out, the lab’s score over the {} predicted effects is {:.3}, where 0 \
         is perfect and 1 is “nothing changes”; the goal is {}. In sample it is {:.3}; the median of random costs {:.3}; the \
         strongest simple predictor of each thread {:.3}. In sample it beats the strongest simple predictor in: {}. It \
         does not in: {}.",
        score.all.effects,
        score.leave_one_out,
        score.goal,
        score.all.lab,
        score.random,
        score.all.strongest.score,
        list(&beaten),
        list(&not)
    )
}

fn thread(html: &mut String, page: &Page<'_>, block: &[Row], colours: &chart::Colours) {
    let name = &block[0].thread;
    let _ = writeln!(html, "<h2 id=\"{0}\">{0}</h2>", escaped(name));
    if let Some(source) = threads::source(name) {
        let title = escaped(source.title);
        let title = match source.link {
            Some(link) => format!("<a href=\"{link}\">{title}</a>"),
            None => title,
        };
        let _ = writeln!(html, "<p class=\"dim\">{}, {title}, {}</p>", source.author, source.place);
    }
    for experiment in page.experiments.iter().filter(|experiment| experiment.thread == *name) {
        let ExperimentLine { title, board, citation, .. } = experiment;
        let _ = writeln!(
            html,
            "<p>{}, on the simulated board <code>{}</code>.<br><span class=\"dim\">“{}”</span></p>",
            escaped(title),
            escaped(board),
            escaped(citation)
        );
    }
    html.push_str(
        "<p class=\"key\"><i class=\"published\"></i>published<i class=\"replayed\"></i>simulated kernel\
         <i class=\"barewire\"></i>barewire, simulated</p>\n<div class=\"multiples\">\n",
    );
    for (nth, rows) in by_measurement(block).iter().enumerate() {
        let _ =
            writeln!(html, "<div>{}</div>", chart::bars::draw(&format!("bars-{name}-{nth}"), rows));
    }
    html.push_str("</div>\n");
    for told in page.outcome.told.iter().filter(|told| told.thread == *name) {
        let _ = writeln!(
            html,
            "<p>{}, <code>{}</code>: {}.<br><span class=\"dim\">{}</span></p>",
            escaped(&told.experiment),
            escaped(&told.path),
            escaped(&told.text),
            escaped(told.unexplained.as_deref().unwrap_or_default())
        );
    }
    unexplained(html, block);
    let rows: Vec<&Row> = block.iter().collect();
    let _ = writeln!(
        html,
        "<details><summary>All figures as a table</summary>{}</details>",
        tables::figures(&rows)
    );
    steps(html, page, block, colours);
}

/// Rows that share what was measured and a unit; those of one figure each are put together.
fn by_measurement(block: &[Row]) -> Vec<Vec<&Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in block {
        let alike =
            |group: &&mut Vec<&Row>| group[0].metric == row.metric && group[0].unit == row.unit;
        match groups.iter_mut().find(alike) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

fn unexplained(html: &mut String, block: &[Row]) {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in block {
        let Some(why) = row.unexplained.as_deref() else { continue };
        match reasons.iter_mut().find(|reason| reason.0 == why) {
            Some(reason) => reason.1.push(&row.id),
            None => reasons.push((why, vec![&row.id])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    html.push_str("<h3>† Not explained by the lab</h3>\n<ul>");
    for (why, ids) in reasons {
        let _ =
            writeln!(html, "<li><code>{}</code>: {}</li>", escaped(&ids.join(", ")), escaped(why));
    }
    html.push_str("</ul>\n");
}

/// The telling figures of a thread, taken apart.
fn steps(html: &mut String, page: &Page<'_>, block: &[Row], colours: &chart::Colours) {
    let id = &block[0].thread;
    let is_here = |explanation: &&Explanation| block.iter().any(|row| row.id == explanation.id);
    let explanations: Vec<&Explanation> = page.explanations.iter().filter(is_here).collect();
    if explanations.is_empty() {
        return;
    }
    let label = format!("{id}: what some figures are made of, step by step, simulated");
    let _ = writeln!(
        html,
        "<h3>What they are made of</h3>\n<figure>{}<figcaption>A bar for each figure, as long as its steps take; figures of \
         one measurement share a scale.</figcaption></figure>",
        chart::stack::draw([&format!("steps-{id}"), &label], &explanations, colours)
    );
    for explanation in explanations {
        let name = escaped(&explanation.id);
        let timeline = match explanation.timeline.is_empty() {
            true => String::new(),
            false => format!(
                "<figure>{}</figure>",
                timeline::draw(&format!("timeline-{}", explanation.id), explanation, colours)
            ),
        };
        let _ = writeln!(
            html,
            "<details><summary>{name}: timeline and steps</summary>{timeline}{}</details>",
            tables::steps(explanation)
        );
    }
}

fn sweeps(html: &mut String, sweeps: &[Sweep]) {
    if sweeps.is_empty() {
        return;
    }
    html.push_str("<h2 id=\"sweeps\">Where it stops paying</h2>\n");
    for (nth, sweep) in sweeps.iter().enumerate() {
        let _ = writeln!(
            html,
            "<figure>{}</figure>",
            chart::lines::draw(&format!("sweep-{nth}"), sweep)
        );
        if !sweep.break_even.is_empty() {
            let (unit, size) =
                chart::shown_in(&sweep.unit, sweep.rows.last().map_or(0.0, |row| row.0));
            let told = sweep.break_even.iter().map(|point| {
                format!(
                    "<li>at {} {unit}: {}</li>",
                    chart::number(point.at / size),
                    escaped(&point.what)
                )
            });
            let _ = writeln!(html, "<ul>{}</ul>", told.collect::<String>());
        }
        let _ = writeln!(
            html,
            "<details><summary>As a table</summary>{}</details>",
            tables::sweep(sweep)
        );
    }
}

fn rules(html: &mut String, page: &Page<'_>) {
    html.push_str(
        "<h2 id=\"rules\">What it rests on</h2>\n<p>Rules, fit set and assumptions were written down before any model \
         existed. A cost without a source outside the threads counts as fitted.</p>\n",
    );
    html.push_str(&tables::fit_set(page.rules));
    html.push_str(&tables::assumed(page.rules));
    let missing = &page.outcome.score.not_replayed;
    if !missing.is_empty() {
        let _ =
            writeln!(html, "<p>Not replayed: <code>{}</code>.</p>", escaped(&missing.join(", ")));
    }
}
