//! The steps of figures: a bar for each figure.

use super::{Colours, Scale, exact, number};
use crate::outcome::Explanation;
use crate::report::svg::{Anchor, Svg, fitted, width_of};

const WIDTH: f64 = 1080.0;
const HEIGHT: f64 = 26.0;

/// A chart of explanations. Those with the same name before the last `-` are of one measurement, and share a scale.
pub(in crate::report) fn draw(
    [id, label]: [&str; 2],
    explanations: &[&Explanation],
    colours: &Colours,
) -> String {
    let mut svg = Svg::new(id, label, WIDTH);
    let mut y = 4.0;
    for explanation in explanations {
        let family = |explanation: &Explanation| {
            explanation.id.rsplit_once('-').map(|(family, _)| family.to_owned())
        };
        let of_family = explanations.iter().filter(|other| family(other) == family(explanation));
        let top = of_family.map(|other| other.sum_us).fold(0.0, f64::max);
        let scale = Scale::linear([0.0, top], [0.0, WIDTH]);
        bar(&mut svg, explanation, colours, scale, y);
        y += HEIGHT + 26.0;
    }
    let steps = explanations.iter().flat_map(|explanation| &explanation.steps);
    let drawn = steps.filter(|step| step.us > 0.0).map(|step| step.step.as_str());
    let end = colours.key(&mut svg, drawn, [WIDTH, y]);
    svg.inline(end)
}

fn bar(svg: &mut Svg, explanation: &Explanation, colours: &Colours, scale: Scale, y: f64) {
    let Explanation { id, unit, published, replayed, sum_us, .. } = explanation;
    let told = format!(
        "{id}: simulated {} {unit}{}; steps {} us",
        number(*replayed),
        published.map_or(String::new(), |value| format!(", published {} {unit}", exact(value))),
        number(*sum_us)
    );
    svg.text(2.0, y + 10.0, Anchor::Start, "", &told);
    let mut steps: Vec<_> = explanation.steps.iter().filter(|step| step.us > 0.0).collect();
    // One order for all bars, so that a step is found at the same place.
    steps.sort_by_key(|step| colours.nth(&step.step));
    let mut at = 0.0;
    for step in steps {
        let (from, to) = (scale.at(at), scale.at(at + step.us));
        let share = 100.0 * step.us / sum_us.max(f64::MIN_POSITIVE);
        let title = format!("{}: {} us, {share:.1} %", step.step, number(step.us));
        svg.rect([from, y + 15.0, to - from, HEIGHT], &colours.class(&step.step), &title);
        let long = format!("{} {}", step.step, number(step.us));
        let name = if width_of(&long, 11.0) < to - from - 8.0 { long } else { step.step.clone() };
        if to - from > 40.0 {
            let name = fitted(&name, to - from - 8.0, 11.0);
            svg.text(from + 5.0, y + 15.0 + HEIGHT / 2.0 + 4.0, Anchor::Start, "on", &name);
        }
        at += step.us;
    }
}
