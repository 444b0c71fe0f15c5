//! The published figures, by id.

/// The figures' file, embedded.
const CSV: &str = include_str!("../figures.csv");

/// A published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its id: `jander-rfc-gap-A`.
    pub id: String,
    /// Its thread: `jander-rfc`.
    pub thread: String,
    /// The value as the thread prints it.
    pub value: f64,
    /// `us`, `ms`, `s`, `%`, `1/s`, `ops`, `count`.
    pub unit: String,
    /// The kernel or the set-up.
    pub variant: String,
    /// The metric.
    pub metric: String,
}

/// All of them, in the file's order: thread by thread.
///
/// # Panics
/// If the embedded file is malformed, which a test excludes.
#[must_use]
pub fn published() -> Vec<Figure> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let [id, thread, value, unit, variant, metric] = fields[..] else {
            panic!("figures.csv: six fields in {line:?}")
        };
        Figure {
            id: id.into(),
            thread: thread.into(),
            value: value.parse().expect("figures.csv: a number"),
            unit: unit.into(),
            variant: variant.into(),
            metric: metric.into(),
        }
    };
    CSV.lines().skip(1).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_95_with_an_id_each() {
        let figures = published();
        let ids: std::collections::BTreeSet<_> = figures.iter().map(|figure| &figure.id).collect();
        assert_eq!((figures.len(), ids.len()), (95, 95));
        assert!(
            figures
                .iter()
                .all(|figure| figure.value > 0.0 && figure.id.starts_with(&figure.thread))
        );
    }
}
