//! The score of each thread beside the strongest simple predictor's.

use super::Scale;
use crate::band::Kind;
use crate::report::svg::{Anchor, Svg};
use crate::score::{Score, ThreadScore};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 150.0;
/// Scores above are cut: "nothing changes" scores 1.
const TOP: f64 = 1.2;

/// The chart.
pub(in crate::report) fn draw(id: &str, score: &Score) -> String {
    let mut svg = Svg::new(
        id,
        "Score of each thread, the lab and the strongest simple predictor; less is better",
        WIDTH,
    );
    let x = Scale::linear([0.0, TOP], [LEFT, WIDTH - 130.0]);
    let rows: Vec<&ThreadScore> = score.threads.iter().chain([&score.all]).collect();
    let bottom = 24.0 + 38.0 * rows.len() as f64;
    for tick in x.ticks(6.0) {
        svg.line([x.at(tick), 20.0, x.at(tick), bottom], if tick == 0.0 { "axis" } else { "grid" });
        svg.text(x.at(tick), bottom + 14.0, Anchor::Middle, "dim", &format!("{tick:.1}"));
    }
    svg.line([x.at(score.goal), 16.0, x.at(score.goal), bottom], "cross");
    svg.text(x.at(score.goal) + 4.0, 14.0, Anchor::Start, "", &format!("goal {}", score.goal));
    let mut y = 26.0;
    for row in rows {
        let name = if row.thread == score.all.thread { "all predicted" } else { &row.thread };
        let head = if row.thread == score.all.thread { "head" } else { "" };
        svg.text(0.0, y + 12.0, Anchor::Start, head, name);
        let about = if row.kind == Kind::Fitted {
            "fitted".into()
        } else {
            format!("{} effects", row.effects)
        };
        svg.text(0.0, y + 25.0, Anchor::Start, "dim", &about);
        let bars =
            [("replayed", "lab", row.lab), ("published", row.strongest.name, row.strongest.score)];
        for (class, name, value) in bars {
            let (end, told) = match value.is_finite() {
                true => (x.at(value.min(TOP)), format!("{value:.3} {name}")),
                false => (LEFT, format!("- {name}")),
            };
            svg.rect([LEFT, y, end - LEFT, 12.0], class, &told);
            svg.text(end + 6.0, y + 10.0, Anchor::Start, "", &told);
            y += 14.0;
        }
        y += 10.0;
    }
    svg.inline(bottom + 22.0)
}
