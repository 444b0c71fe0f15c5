//! Bars: one access to scale, at the lowest, the used and the highest costs; and figures beside each other.

/// Characters of the longest access.
const ACCESS: f64 = 56.0;
/// Characters of the longest bar of a figure.
pub(super) const BAR: usize = 28;

/// The parts of an access, each drawn by its own character.
pub(super) const PARTS: [char; 4] = ['=', '/', '#', '-'];

/// One access: each part as long as it takes, where an access of `longest_ns` takes the whole line. The edges are
/// rounded, not the lengths, so no error adds up.
pub(super) fn access(parts_ns: [f64; 4], longest_ns: f64) -> String {
    let (mut bar, mut end_ns, mut drawn) = (String::new(), 0.0, 0);
    for (part, ns) in PARTS.into_iter().zip(parts_ns) {
        end_ns += ns;
        let edge = column(end_ns, longest_ns, ACCESS);
        bar.extend(std::iter::repeat_n(part, edge - drawn));
        drawn = edge;
    }
    bar
}

/// A figure: `#` to its lowest value, `=` to the one used, `-` to its highest, where `longest` takes the whole line.
/// A figure that is not 0 has at least one character.
pub(super) fn figure([low, used, high]: [f64; 3], longest: f64) -> String {
    let edge = |value| column(value, longest, BAR as f64);
    let low_edge = edge(low).max(1);
    let used_edge = edge(used).max(low_edge);
    let high_edge = edge(high).max(used_edge);
    let run = |mark: &str, from: usize, to: usize| mark.repeat(to - from);
    run("#", 0, low_edge) + &run("=", low_edge, used_edge) + &run("-", used_edge, high_edge)
}

/// The column in which a value ends.
fn column(value: f64, longest: f64, width: f64) -> usize {
    (value * width / longest).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_access_are_as_long_as_they_take() {
        assert_eq!(access([100.0, 50.0, 300.0, 50.0], 500.0).len(), 56);
        assert_eq!(access([2.0, 1.0, 3.0, 1.0], 56.0), "==/###-");
        // Each part is shorter than half a column; together they are one.
        assert_eq!(access([0.4, 0.4, 0.0, 0.0], 56.0), "/");
    }

    #[test]
    fn a_figures_range_is_drawn_behind_its_lowest_value() {
        assert_eq!(figure([3.0, 4.0, 7.0], 28.0), "###=---");
        assert_eq!(figure([28.0; 3], 28.0), "#".repeat(BAR));
        assert_eq!(figure([0.01; 3], 28.0), "#");
    }
}
