//! The page as a reader sees it: where its texts stand, and which colours it uses.
//!
//! There is no browser here. A text's box is estimated from above: by [`width_of`], and by the height of DejaVu Sans.

use std::collections::{BTreeMap, BTreeSet};

use barewire_sim::BoardSpec;

use super::svg::{HEAD, width_of};
use super::{OwnOnPage, Page, TELLING, html, sweep_svg, timeline_svg};
use crate::lab::Lab;
use crate::outcome::{BreakEven, Sweep, SweepRequest};
use crate::own::OwnExperiment;
use crate::sweep::OwnSweepRequest;

/// A text of a chart: left, top, right, bottom.
struct TextBox {
    text: String,
    sides: [f64; 4],
}

impl TextBox {
    /// The box of what stands between `<text ` and `</text>`.
    fn of(element: &str) -> Self {
        let (tag, text) = element.split_once('>').expect("a tag ends");
        let text = text.replace("&lt;", "<").replace("&gt;", ">");
        let text = text.replace("&quot;", "\"").replace("&amp;", "&");
        let pixels = |name| attribute(tag, name).parse::<f64>().expect("a number");
        let (x, y) = (pixels("x"), pixels("y"));
        let (size, wide) = match attribute(tag, "class") {
            "head" => (12.0, width_of(&text, HEAD)),
            _ => (11.0, width_of(&text, 11.0)),
        };
        let left = match attribute(tag, "text-anchor") {
            "start" => x,
            "middle" => x - wide / 2.0,
            "end" => x - wide,
            other => panic!("an anchor {other}"),
        };
        Self { text, sides: [left, y - 0.95 * size, left + wide, y + 0.27 * size] }
    }

    fn told(&self) -> String {
        format!("\"{}\" at {:.1?}", self.text, self.sides)
    }

    fn overlaps(&self, other: &Self) -> bool {
        let ([left, top, right, bottom], [l, t, r, b]) = (self.sides, other.sides);
        // Positions are written with one digit.
        left.max(l) + 0.1 < right.min(r) && top.max(t) + 0.1 < bottom.min(b)
    }
}

fn attribute<'t>(tag: &'t str, name: &str) -> &'t str {
    let begin = format!("{name}=\"");
    let at = tag.match_indices(&begin).find(|(at, _)| *at == 0 || tag[..*at].ends_with(' '));
    let at = at.unwrap_or_else(|| panic!("no {name} in {tag}")).0 + begin.len();
    tag[at..].split('"').next().unwrap_or_default()
}

/// What stands between each `begin` and the `end` after it.
fn between<'t>(text: &'t str, begin: &'t str, end: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(begin).skip(1).map(move |rest| rest.split(end).next().unwrap_or_default())
}

/// What is wrong with the places of texts in the charts of a page or a file; and how many texts there are.
fn misplaced(page: &str) -> (Vec<String>, usize) {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for chart in between(page, "<svg ", "</svg>") {
        let id = attribute(chart, "id");
        let view: Vec<f64> = attribute(chart, "viewBox")
            .split(' ')
            .map(|one| one.parse().expect("a number"))
            .collect();
        let boxes: Vec<_> = between(chart, "<text ", "</text>").map(TextBox::of).collect();
        count += boxes.len();
        for (nth, one) in boxes.iter().enumerate() {
            let [left, top, right, bottom] = one.sides;
            let (far, low) = (view[0] + view[2], view[1] + view[3]);
            if left < view[0] - 0.1
                || top < view[1] - 0.1
                || right > far + 0.1
                || bottom > low + 0.1
            {
                wrong.push(format!("{id}: {} is outside of {view:?}", one.told()));
            }
            let over = boxes[..nth].iter().filter(|other| one.overlaps(other));
            wrong.extend(
                over.map(|other| format!("{id}: {} and {} overlap", other.told(), one.told())),
            );
        }
    }
    (wrong, count)
}

#[track_caller]
fn texts_are_apart(page: &str, at_least: usize) {
    let (wrong, count) = misplaced(page);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= at_least, "{count} texts");
}

/// The classes of each step's rectangles, by the step.
fn classes(page: &str) -> BTreeMap<String, BTreeSet<&str>> {
    let mut classes: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for rect in between(page, "<rect class=\"step ", "</title>") {
        let class = rect.split('"').next().unwrap_or_default();
        let title = rect.split_once("<title>").expect("a step has a title").1;
        let step = title.split(": ").next().unwrap_or_default();
        classes.entry(step.into()).or_default().insert(class);
    }
    classes
}

fn own() -> OwnExperiment {
    let text = "board = \"rpi3\"\nkernel = \"4.9\"\nspeed_hz = 3_000_000\n\
         [[message]]\nname = \"short\"\nlengths = [3]\n\
         [[message]]\nname = \"a-batch-whose-name-is-of-40-letters-mmmm\"\nlengths = [1, 200]\nbatch = 3\n";
    OwnExperiment::read("mine", text, &|name| {
        BoardSpec::find(name).map_err(|error| error.to_string())
    })
    .expect("an experiment")
}

#[test]
fn no_texts_of_the_page_overlap_a_step_has_one_colour_and_the_score_is_on_top() {
    if cfg!(debug_assertions) && std::env::var_os("BAREWIRE_WHOLE").is_none() {
        println!(
            "SKIPPED: the whole lab takes minutes in a debug build: cargo xtask ci --step whole"
        );
        return;
    }
    let (lab, own) = (Lab::new(), own());
    let explanations: Vec<_> =
        TELLING.iter().map(|id| lab.explain(id, &[]).expect("it is explained")).collect();
    let sweeps = [lab.sweep(&delay()).expect("it runs")];
    let outcome = lab.messages(&own).expect("it runs");
    let call = |name: &String| lab.explain_message(&own, (name, None), &[]).expect("it runs");
    let calls = outcome.messages.iter().map(|message| call(&message.name)).collect();
    let with_own = [OwnOnPage { calls, outcome }];
    let (all, list, held_out) = (lab.run(&mut |_, _| ()), lab.list(), lab.held_out());
    for own in [&[][..], &with_own] {
        let page = html(&Page {
            outcome: &all,
            experiments: &list,
            explanations: &explanations,
            sweeps: &sweeps,
            rules: lab.rules(),
            own,
            held_out: &held_out,
        });
        texts_are_apart(&page, 800);
        let classes = classes(&page);
        assert!(classes.len() > 30, "{classes:?}");
        let several: Vec<_> = classes.iter().filter(|(_, classes)| classes.len() != 1).collect();
        assert!(several.is_empty(), "steps of several colours: {several:?}");
        // The page begins with the score out of sample, and nothing folds it or the fit's worth away.
        let told = format!(
            "Score out of sample: <strong>{:.3}</strong>; goal: at most {}",
            all.score.leave_one_out, all.score.goal
        );
        let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part} is not there"));
        assert!(at("<h1>") < at(&told) && at(&told) < at("<p>Five public threads"));
        let worth = &page[..at("<h3>What the fit is worth</h3>")];
        assert_eq!(worth.matches("<details>").count(), worth.matches("</details>").count());
        for whisker in between(&page, "<line class=\"whisker\" ", "/>") {
            let end = |name| attribute(whisker, name).parse::<f64>().expect("a number");
            let (wide, high) = (end("x2") - end("x1"), end("y2") - end("y1"));
            assert!(wide.max(high) >= 0.9, "a whisker without a width: {whisker}");
        }
        for unit in ["us", "ns", "ms", "s", "%"] {
            assert!(!page.contains(&format!("simulated 0 {unit}")), "0 {unit}");
        }
    }
    for explanation in &explanations {
        texts_are_apart(&timeline_svg(explanation), 5);
    }
}

fn delay() -> SweepRequest {
    SweepRequest {
        path: "spidev-4.4".into(),
        board: "rpi3".into(),
        parameter: "delay".into(),
        values: (0..25).map(|nth| f64::from(nth) * 500.0).collect(),
    }
}

#[test]
fn no_texts_of_a_sweep_overlap() {
    let request = OwnSweepRequest {
        kernels: ["3.14", "4.4", "5.18", "5.19", "6.1", "6.12"].map(Into::into).into(),
        parameter: "length".into(),
        values: (0..10).map(|power| f64::from(1 << power)).collect(),
        ..OwnSweepRequest::default()
    };
    let sweep = crate::sweep::own_sweep(&own(), &crate::cost::Costs::fitted(), &request);
    texts_are_apart(&sweep_svg(&sweep.expect("it runs")), 15);
}

#[test]
fn break_evens_at_one_place_and_lines_that_meet_are_told_apart() {
    let columns = 9;
    for places in [[0.0; 7], [12.0; 7], [0.0, 1.0, 2.0, 6.0, 6.0, 11.0, 12.0]] {
        let sweep = Sweep {
            regime: crate::Regime::InALoop,
            request: delay(),
            unit: "ns".into(),
            value_unit: "transfers a second".into(),
            columns: (0..columns).map(|nth| format!("a column of a long name, {nth}")).collect(),
            rows: [0.0, 12.0]
                .map(|value| (value, vec![if value > 6.0 { 0.0 } else { 9.0 }; columns]))
                .into(),
            break_even: places
                .map(|at| BreakEven {
                    at,
                    what: "barewire is faster than batch of 1 below this".into(),
                })
                .into(),
        };
        texts_are_apart(&sweep_svg(&sweep), 16 + columns);
    }
}

#[test]
fn boxes_that_overlap_are_found() {
    let page = |x, y| {
        format!(
            "<svg id=\"c\" viewBox=\"0 0 100 40\"><text class=\"\" x=\"0\" y=\"12\" text-anchor=\"start\">wide</text>\
             <text class=\"dim\" x=\"{x}\" y=\"{y}\" text-anchor=\"end\">wide</text></svg>"
        )
    };
    for (x, y, wrong) in
        [(99, 12, 0), (40, 12, 1), (40, 25, 1), (40, 26, 0), (120, 12, 1), (99, 39, 1)]
    {
        assert_eq!(misplaced(&page(x, y)).0.len(), wrong, "{x}, {y}: {:?}", misplaced(&page(x, y)));
    }
}
