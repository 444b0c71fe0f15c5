//! The rules of `scoring.toml`: which differences count, what costs may be fitted to, what is assumed.
//!
//! *Read first*: `lab/scoring.toml`. The file was committed before any model existed, and its comments are the rules.
//! This module only reads it: nothing here decides what a figure is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::band::Kind;

/// The rules' file, embedded.
const TOML: &str = include_str!("../scoring.toml");

/// The meaning of a difference between two figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The change should change the figure, and the figures say that it did.
    Effect,
    /// The change should do nothing to the figure.
    Null,
    /// The difference is within what the thread prints, or shows where nothing should change.
    Unresolved,
}

/// A figure before a change and the same figure after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The thread of both figures.
    pub thread: String,
    /// The change, by name: `poll`. A change has one name within its thread.
    pub change: String,
    /// The id of the figure before the change.
    pub before: String,
    /// The figure after it, by id.
    pub after: String,
    /// The meaning of the difference.
    pub class: Class,
    /// The messages or MiB that the figure consists of. Without it, the constant time per message cannot be computed.
    pub units: Option<f64>,
    /// How far the predicted difference of a null may be from zero, in the figure's unit.
    pub null_bound: Option<f64>,
    /// Why it has this class.
    pub why: Option<String>,
}

/// A fact that a thread does not state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assumption {
    /// The thread.
    pub thread: String,
    /// The fact.
    pub what: String,
    /// The assumed value.
    pub value: String,
    /// Why.
    pub why: String,
}

/// The rules.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rules {
    /// The score that the lab is to reach.
    pub goal: f64,
    /// The threads whose figures are all called fitted.
    pub fitted_threads: Vec<String>,
    /// The figures that the experiments are made of.
    pub input: Vec<String>,
    /// The figures that the threads computed.
    pub arithmetic: Vec<String>,
    /// The figures that a cost may be fitted to, by thread.
    pub fit_set: BTreeMap<String, Vec<String>>,
    /// The assumptions about facts that a thread does not state.
    pub assumed: Vec<Assumption>,
    /// The differences.
    pub pairs: Vec<Pair>,
}

/// `scoring.toml` as it is laid out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    goal: f64,
    fitted_threads: Vec<String>,
    not_scored: NotScored,
    fit_set: BTreeMap<String, Vec<String>>,
    assumed: Vec<Assumption>,
    pair: Vec<Pair>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NotScored {
    input: Vec<String>,
    arithmetic: Vec<String>,
}

impl Rules {
    /// The rules as committed.
    ///
    /// # Panics
    /// If the embedded file is malformed, which a test excludes.
    #[must_use]
    pub fn published() -> Self {
        let file: File = toml::from_str(TOML).expect("scoring.toml");
        Self {
            goal: file.goal,
            fitted_threads: file.fitted_threads,
            input: file.not_scored.input,
            arithmetic: file.not_scored.arithmetic,
            fit_set: file.fit_set,
            assumed: file.assumed,
            pairs: file.pair,
        }
    }

    /// The role of the figure `id` in the lab.
    #[must_use]
    pub fn kind(&self, id: &str) -> Kind {
        let of_fitted_thread = self
            .fitted_threads
            .iter()
            .any(|thread| id.strip_prefix(thread).is_some_and(|rest| rest.starts_with('-')));
        if self.input.iter().any(|input| input == id) {
            Kind::Input
        } else if self.arithmetic.iter().any(|arithmetic| arithmetic == id) {
            Kind::Arithmetic
        } else if of_fitted_thread || self.in_fit_set(id) {
            Kind::Fitted
        } else {
            Kind::Predicted
        }
    }

    /// Whether a cost may be fitted to the figure `id`.
    #[must_use]
    pub fn in_fit_set(&self, id: &str) -> bool {
        self.fit_set.values().flatten().any(|fitted| fitted == id)
    }

    /// Whether all figures of `thread` are called fitted.
    #[must_use]
    pub fn is_fitted_thread(&self, thread: &str) -> bool {
        self.fitted_threads.iter().any(|fitted| fitted == thread)
    }

    /// Whether both ends of `pair` are in the fit set. Such a pair is not in the score.
    #[must_use]
    pub fn is_fit_pair(&self, pair: &Pair) -> bool {
        self.in_fit_set(&pair.before) && self.in_fit_set(&pair.after)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::figure::{Figure, published};

    fn figures() -> BTreeMap<String, Figure> {
        published().into_iter().map(|figure| (figure.id.clone(), figure)).collect()
    }

    #[test]
    fn every_id_is_a_figure_and_every_thread_a_thread() {
        let (rules, figures) = (Rules::published(), figures());
        let threads: BTreeSet<_> = figures.values().map(|figure| figure.thread.as_str()).collect();
        for id in rules.input.iter().chain(&rules.arithmetic) {
            assert!(figures.contains_key(id), "{id}");
        }
        for (thread, ids) in &rules.fit_set {
            for id in ids {
                assert_eq!(&figures[id].thread, thread, "{id}");
            }
        }
        for pair in &rules.pairs {
            assert!(figures.contains_key(&pair.before), "{}", pair.before);
            assert!(figures.contains_key(&pair.after), "{}", pair.after);
        }
        let named =
            rules.fitted_threads.iter().chain(rules.assumed.iter().map(|assumed| &assumed.thread));
        for thread in named {
            assert!(threads.contains(thread.as_str()), "{thread}");
        }
        assert_eq!(threads, rules.fit_set.keys().map(String::as_str).collect());
    }

    #[test]
    fn no_figure_is_named_twice() {
        let rules = Rules::published();
        let mut ids = BTreeSet::new();
        for id in
            rules.input.iter().chain(&rules.arithmetic).chain(rules.fit_set.values().flatten())
        {
            assert!(ids.insert(id), "{id}");
        }
        let mut pairs = BTreeSet::new();
        for pair in &rules.pairs {
            assert!(pairs.insert((&pair.before, &pair.after)), "{} {}", pair.before, pair.after);
        }
    }

    #[test]
    fn a_figure_that_is_in_no_pair_is_not_scored_or_is_fitted_to() {
        let rules = Rules::published();
        let paired: BTreeSet<_> =
            rules.pairs.iter().flat_map(|pair| [&pair.before, &pair.after]).collect();
        for id in figures().keys() {
            let not_scored = matches!(rules.kind(id), Kind::Input | Kind::Arithmetic);
            assert!(paired.contains(id) || not_scored || rules.in_fit_set(id), "{id}");
            assert!(!(paired.contains(id) && not_scored), "{id}");
        }
    }

    #[test]
    fn nulls_have_a_bound_and_others_have_none() {
        for pair in Rules::published().pairs {
            assert_eq!(
                pair.class == Class::Null,
                pair.null_bound.is_some_and(|bound| bound > 0.0),
                "{}",
                pair.after
            );
            assert_eq!(pair.class == Class::Null, pair.null_bound.is_some(), "{}", pair.after);
            assert!(pair.class == Class::Effect || pair.why.is_some(), "{}", pair.after);
            assert!(pair.units.is_none_or(|units| units != 0.0), "{}", pair.after);
        }
    }

    #[test]
    fn the_ends_of_a_pair_have_its_thread_and_one_unit() {
        let (rules, figures) = (Rules::published(), figures());
        for pair in &rules.pairs {
            let (before, after) = (&figures[&pair.before], &figures[&pair.after]);
            assert_eq!(
                (&before.thread, &after.thread),
                (&pair.thread, &pair.thread),
                "{}",
                pair.after
            );
            assert_eq!(before.unit, after.unit, "{}", pair.after);
            assert_ne!(before.id, after.id);
            // The score divides by the sum of these.
            assert!(pair.class != Class::Effect || before.value != after.value, "{}", pair.after);
        }
    }

    #[test]
    fn a_figure_has_the_kind_of_its_list_or_its_thread() {
        let rules = Rules::published();
        for (id, kind) in [
            ("jander-v2-histo-1", Kind::Input),
            ("ellis-stock-toggle", Kind::Input),
            ("ranjan-tlbi-va", Kind::Arithmetic),
            ("ellis-clocks", Kind::Arithmetic),
            ("jander-rfc-irq-C", Kind::Fitted),
            ("ellis-cs-setup", Kind::Fitted),
            ("ranjan-32M-unmap_after", Kind::Fitted),
            ("jander-rfc-irq-A", Kind::Predicted),
            ("pitchen-1000k-queue", Kind::Predicted),
            ("ranjan2-32M", Kind::Predicted),
        ] {
            assert_eq!(rules.kind(id), kind, "{id}");
        }
        let count = |kind| figures().keys().filter(|id| rules.kind(id) == kind).count();
        let counts = [Kind::Input, Kind::Arithmetic, Kind::Fitted, Kind::Predicted].map(count);
        // Fitted: 32 of Ranjan's page sizes, and 3 + 4 + 2 + 2 of the other threads' fit sets.
        assert_eq!(counts, [4, 5, 43, 43]);
    }

    #[test]
    fn the_classes_are_counted() {
        let rules = Rules::published();
        let count = |class| rules.pairs.iter().filter(|pair| pair.class == class).count();
        // Effects: 11 of the RFC, 7 of Ellis, 5 of Ranjan, 19 of v2, 2 of Pitchen.
        assert_eq!([Class::Effect, Class::Null, Class::Unresolved].map(count), [44, 14, 7]);
        assert!((rules.goal - 0.25).abs() < 1e-12);
    }
}
