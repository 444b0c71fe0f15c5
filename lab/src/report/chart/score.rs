//! The score of each thread beside the strongest simple predictor's.

use super::{Scale, names_of_ticks};
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
    let bottom = 24.0 + 38.0 * (1 + rows.len()) as f64;
    let ticks = x.ticks(6.0);
    for &tick in &ticks {
        svg.line([x.at(tick), 20.0, x.at(tick), bottom], if tick == 0.0 { "axis" } else { "grid" });
    }
    names_of_ticks(&mut svg, x, &ticks, [bottom + 14.0, WIDTH], |tick| format!("{tick:.1}"));
    svg.line([x.at(score.goal), 16.0, x.at(score.goal), bottom], "cross");
    svg.text(x.at(score.goal) + 4.0, 14.0, Anchor::Start, "", &format!("goal {}", score.goal));
    let mut y = 26.0;
    let bar = |svg: &mut Svg, y: f64, (class, name, value): (&str, &str, f64)| {
        let (end, told) = match value.is_finite() {
            true => (x.at(value.min(TOP)), format!("{value:.3} {name}")),
            false => (LEFT, format!("- {name}")),
        };
        svg.rect([LEFT, y, end - LEFT, 12.0], class, &told);
        svg.text(end + 6.0, y + 10.0, Anchor::Start, "", &told);
    };
    svg.text(2.0, y + 12.0, Anchor::Start, "head", "out of sample");
    svg.text(2.0, y + 26.0, Anchor::Start, "dim", &format!("{} effects", score.all.effects));
    bar(&mut svg, y, ("replayed", "lab", score.leave_one_out));
    y += 38.0;
    for row in rows {
        let name = if row.thread == score.all.thread { "all predicted" } else { &row.thread };
        let head = if row.thread == score.all.thread { "head" } else { "" };
        svg.text(2.0, y + 12.0, Anchor::Start, head, name);
        let about = if row.kind == Kind::Fitted {
            "fitted".into()
        } else {
            format!("{} effects", row.effects)
        };
        svg.text(2.0, y + 26.0, Anchor::Start, "dim", &about);
        let bars =
            [("replayed", "lab", row.lab), ("published", row.strongest.name, row.strongest.score)];
        for one in bars {
            bar(&mut svg, y, one);
            y += 14.0;
        }
        y += 10.0;
    }
    svg.inline(bottom + 22.0)
}
