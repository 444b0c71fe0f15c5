//! Figures not seen before: published for set-ups of users, answered by experiments of the form of theirs, scored apart.
//!
//! *Read first*: `lab/held-out.toml`.

use std::sync::LazyLock;

use barewire_sim::BoardSpec;
use serde::{Deserialize, Serialize};

use crate::band::{Band, median};
use crate::cost::Costs;
use crate::messages;
use crate::own::OwnExperiment;

/// The experiments, by name.
const EXPERIMENTS: [(&str, &str); 6] = [
    ("pi3", include_str!("../held-out/pi3.toml")),
    ("pi3bp", include_str!("../held-out/pi3bp.toml")),
    ("pi-5.10", include_str!("../held-out/pi-5.10.toml")),
    ("toradex", include_str!("../held-out/toradex.toml")),
    ("toradex-refills", include_str!("../held-out/toradex-refills.toml")),
    ("beaglebone", include_str!("../held-out/beaglebone.toml")),
];

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Published {
    One(f64),
    Range([f64; 2]),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureForm {
    id: String,
    published: Published,
    source: String,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    experiment: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    figure: String,
    not_expressed: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    figure: Vec<FigureForm>,
}

/// A figure not seen before.
#[derive(Clone, Debug, Serialize)]
pub struct HeldOut {
    /// Its id.
    pub id: String,
    /// Where it was published.
    pub source: String,
    /// Its unit.
    pub unit: String,
    /// As published; the middle of a range.
    pub published: f64,
    /// The range, if the source gives one.
    pub published_range: Option<[f64; 2]>,
    /// The lab's, with its band; none if the lab cannot express the set-up.
    pub simulated: Option<Band>,
    /// (simulated - published) / published.
    pub error: Option<f64>,
    /// Whether the published value, or a part of its range, is in the band.
    pub within: Option<bool>,
    /// Why the lab cannot express it.
    pub not_expressed: Option<String>,
}

/// How well the figures not seen before are predicted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HeldOutScore {
    /// How many the lab can express.
    pub expressed: usize,
    /// Of these, how many are in the band.
    pub within: usize,
    /// The median of their |error|.
    pub median_error: f64,
    /// The largest.
    pub largest_error: f64,
    /// The median of (high - low) / simulated.
    pub median_width: f64,
}

impl HeldOutScore {
    /// That of `figures`.
    #[must_use]
    pub fn of(figures: &[HeldOut]) -> Self {
        let errors: Vec<f64> = figures.iter().filter_map(|one| one.error.map(f64::abs)).collect();
        let bands = figures.iter().filter_map(|one| one.simulated);
        Self {
            expressed: errors.len(),
            within: figures.iter().filter(|one| one.within == Some(true)).count(),
            median_width: median(bands.map(|band| (band.high - band.low) / band.used).collect()),
            largest_error: errors.iter().copied().fold(0.0, f64::max),
            median_error: median(errors),
        }
    }
}

/// The experiment called `name`.
fn experiment(name: &str) -> OwnExperiment {
    let found = EXPERIMENTS.iter().find(|one| one.0 == name);
    let (name, text) = found.unwrap_or_else(|| panic!("held-out.toml: no experiment {name:?}"));
    let board = |name: &str| BoardSpec::find(name).map_err(|error| error.to_string());
    OwnExperiment::read(name, text, &board)
        .unwrap_or_else(|error| panic!("held-out/{name}.toml: {error}"))
}

/// All of them with `costs`, in bands over `draws`.
///
/// # Panics
/// If an embedded file is malformed, which a test excludes.
#[must_use]
pub fn figures(costs: &Costs, draws: &[Costs]) -> Vec<HeldOut> {
    static ALL: LazyLock<File> =
        LazyLock::new(|| toml::from_str(include_str!("../held-out.toml")).expect("held-out.toml"));
    let outcomes: Vec<_> = EXPERIMENTS
        .iter()
        .map(|(name, _)| messages::outcome(&experiment(name), costs, draws).expect("it runs"))
        .collect();
    let answer = |form: &FigureForm| {
        let outcome = outcomes.iter().find(|one| one.name == form.experiment)?;
        let message = outcome.messages.iter().find(|one| one.name == form.message)?;
        message.figures.iter().find(|one| one.figure == form.figure)
    };
    let told = |form: &FigureForm| {
        let (published, range) = match form.published {
            Published::One(value) => (value, [value, value]),
            Published::Range([from, to]) => (f64::midpoint(from, to), [from, to]),
        };
        let answer = answer(form);
        assert!(
            answer.is_some() != form.not_expressed.is_some(),
            "held-out.toml: {} is answered, or says why it is not",
            form.id
        );
        let simulated = answer.map(|figure| figure.simulated);
        HeldOut {
            id: form.id.clone(),
            source: form.source.clone(),
            unit: answer.map_or(form.unit.clone(), |figure| figure.unit.into()),
            published,
            published_range: matches!(form.published, Published::Range(_)).then_some(range),
            simulated,
            error: simulated.map(|band| (band.used - published) / published),
            within: simulated.map(|band| band.low <= range[1] && range[0] <= band.high),
            not_expressed: form.not_expressed.clone(),
        }
    };
    ALL.figure.iter().map(told).collect()
}
