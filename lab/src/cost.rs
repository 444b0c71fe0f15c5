//! The costs of the steps of kernel paths, each with its unit, its range and its source.
//!
//! *Read first*: `lab/costs.toml`.
//!
//! # How it works
//! The file has the counted and the assumed costs. For the assumed ones, `fitted.toml` has the fitted values and the
//! narrower ranges that the fit set allows. [`Costs::at`] puts all costs at their low or high ends. The costs of the
//! boards themselves are those of `barewire_sim`'s profiles, which factors of this table scale: one factor for all
//! boards of a kind, so that a fit on one board also changes the others.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use barewire_sim::profile::{CostFile, CostLevel, Profile};
use serde::{Deserialize, Serialize};

use crate::band::median;

const COSTS: &str = include_str!("../costs.toml");
const FITTED: &str = include_str!("../fitted.toml");
const OWN: &str = include_str!("../costs-own.toml");

/// Where a cost is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// A data sheet's, or stated by the thread.
    Known,
    /// Counted in an emulator.
    Counted,
    /// Taken to be so, within a range.
    #[default]
    Assumption,
    /// Moved to the fit set.
    Fitted,
}

/// A cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Its name.
    pub name: String,
    /// `instructions`, `ns` or `x`.
    pub unit: String,
    /// The value used.
    pub value: f64,
    /// The lowest; none if it has no range.
    pub low: Option<f64>,
    /// The highest.
    pub high: Option<f64>,
    /// The kind of its source.
    #[serde(default)]
    pub basis: Basis,
    /// The same in words.
    pub source: String,
}

impl Cost {
    /// Whether a fit may move it.
    #[must_use]
    pub fn is_free(&self) -> bool {
        matches!((self.low, self.high), (Some(low), Some(high)) if low < high)
    }
}

/// The amount of a charge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Amount {
    /// Instructions.
    Instructions(f64),
    /// Picoseconds.
    Ps(f64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cost: Vec<Cost>,
}

/// A fitted value, as `fitted.toml` has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FittedValue {
    /// The cost's name.
    pub name: String,
    /// The value.
    pub value: f64,
    /// The low end after the fit.
    pub low: f64,
    /// The high end after the fit.
    pub high: f64,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FittedFile {
    #[serde(default)]
    cost: Vec<FittedValue>,
    #[serde(default)]
    draw: Vec<BTreeMap<String, f64>>,
    #[serde(default)]
    check: Checks,
}

/// The results of refits that check the fit, as `fitted.toml` keeps them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checks {
    /// The score of the costs as assumed, without any fit, over all effects.
    #[serde(default)]
    pub unfitted: f64,
    /// By thread, the score on the thread's effects of a fit that leaves the thread out.
    #[serde(default)]
    pub leave_one_out: BTreeMap<String, f64>,
    /// The total scores of fits to shuffled figures.
    #[serde(default)]
    pub shuffled: Vec<f64>,
    /// The scores in all of costs drawn at random from their assumed ranges, without any fit.
    #[serde(default)]
    pub random: Vec<f64>,
    /// How far bands are moved out, a factor.
    #[serde(default = "one")]
    pub bands_widened: f64,
    /// By id, a figure by the costs of the fit that leaves its thread out, in its unit.
    #[serde(default)]
    pub left_out: BTreeMap<String, f64>,
    /// By id, a figure of another board by costs that were fitted to the RFC's board alone, in its unit.
    #[serde(default)]
    pub across_boards: BTreeMap<String, f64>,
}

fn one() -> f64 {
    1.0
}

impl Checks {
    /// The checks of the embedded fit.
    ///
    /// # Panics
    /// If the embedded file is malformed, which a test excludes.
    #[must_use]
    pub fn kept() -> Self {
        toml::from_str::<FittedFile>(FITTED).expect("fitted.toml").check
    }

    /// The median of [`random`](Self::random); not a number of none.
    #[must_use]
    pub fn random_median(&self) -> f64 {
        median(self.random.clone())
    }

    /// The lowest and the highest score of fits to shuffled figures.
    #[must_use]
    pub fn shuffled_range(&self) -> (f64, f64) {
        let ends = |(low, high): (f64, f64), &score: &f64| (low.min(score), high.max(score));
        self.shuffled.iter().fold((f64::INFINITY, f64::NEG_INFINITY), ends)
    }

    /// The threads with their scores if they take no part in the fit, as a list in words.
    #[must_use]
    pub fn without_each(&self) -> String {
        let one = |(thread, score): (&String, &f64)| format!("{thread} {score:.3}");
        self.leave_one_out.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The text of `fitted.toml` for a fit.
#[must_use]
pub fn fitted_text(
    moved: &[FittedValue],
    draws: &[BTreeMap<String, f64>],
    checks: &Checks,
) -> String {
    let mut text = String::from(
        "# Made by `BAREWIRE_BLESS=1 cargo test --profile models -p barewire-lab --test fit`: costs.toml moved to the fit set of\n\
         # scoring.toml. cost: the value and what is left of its range. draw: whole sets of costs, for bands. check: the\n\
         # score of each thread's effects if it takes no part in the fit, its figures then (left_out), the score of all if the\n\
         # figures are dealt out anew or the costs are random, and figures of other boards by costs fitted to the RFC's alone.\n\n",
    );
    let _ = writeln!(
        text,
        "[check]\nunfitted = {}\nshuffled = {:?}\nrandom = {:?}\nbands_widened = {:?}\n\n[check.leave_one_out]",
        checks.unfitted, checks.shuffled, checks.random, checks.bands_widened
    );
    for (thread, score) in &checks.leave_one_out {
        let _ = writeln!(text, "{thread} = {score}");
    }
    let tables = [("left_out", &checks.left_out), ("across_boards", &checks.across_boards)];
    for (name, values) in tables {
        let _ = writeln!(text, "\n[check.{name}]");
        for (id, value) in values {
            let _ = writeln!(text, "{id} = {value:?}");
        }
    }
    for FittedValue { name, value, low, high } in moved {
        let _ = writeln!(
            text,
            "\n[[cost]]\nname = {name:?}\nvalue = {value:?}\nlow = {low:?}\nhigh = {high:?}"
        );
    }
    for draw in draws {
        text.push_str("\n[[draw]]\n");
        for (name, value) in draw {
            let _ = writeln!(text, "{name} = {value:?}");
        }
    }
    text
}

/// All costs, by name; the names asked for; and a board's own costs from a file, which no factor scales.
#[derive(Clone, Debug)]
pub struct Costs(BTreeMap<String, Cost>, RefCell<BTreeSet<String>>, Option<CostFile>);

/// The cost that is the same as `wake_ps` of a profile, in nanoseconds.
const WAKE_OTHER: &str = "wake-other";

impl Costs {
    /// The costs of the file, before any fit.
    ///
    /// # Panics
    /// If the embedded file is malformed, which a test excludes.
    #[must_use]
    pub fn assumed() -> Self {
        let File { cost } = toml::from_str(COSTS).expect("costs.toml");
        let costs = cost.into_iter().map(|cost| (cost.name.clone(), cost)).collect();
        Self(costs, RefCell::default(), None)
    }

    /// The costs of the file, fitted to the fit set.
    ///
    /// # Panics
    /// As [`Costs::assumed`].
    #[must_use]
    pub fn fitted() -> Self {
        let FittedFile { cost, .. } = toml::from_str(FITTED).expect("fitted.toml");
        let mut costs = Self::assumed();
        costs.apply(&cost);
        costs
    }

    /// Sets of costs drawn from the fit's distribution. Bands are computed from them.
    ///
    /// # Panics
    /// As [`Costs::assumed`].
    #[must_use]
    pub fn drawn() -> Vec<Self> {
        let FittedFile { draw, .. } = toml::from_str(FITTED).expect("fitted.toml");
        let fitted = Self::fitted();
        draw.iter().map(|draw| fitted.with(draw)).collect()
    }

    /// These costs, with the values of `draw` in the places of those that have a range.
    #[must_use]
    pub fn with(&self, draw: &BTreeMap<String, f64>) -> Self {
        let mut costs = self.fresh();
        for (name, &value) in draw {
            if costs.cost(name).is_free() {
                costs.set(name, value);
            }
        }
        costs.fresh()
    }

    /// The same with the costs of steps that only users' experiments run: `costs-own.toml`.
    ///
    /// # Panics
    /// As [`Costs::assumed`].
    #[must_use]
    pub fn with_drivers(mut self) -> Self {
        let File { cost } = toml::from_str(OWN).expect("costs-own.toml");
        for cost in cost {
            self.0.entry(cost.name.clone()).or_insert(cost);
        }
        self
    }

    /// The same with costs of a user's file, which has some or all of them.
    ///
    /// # Errors
    /// If one is not there, twice there, not above 0, or outside its own range.
    pub fn moved(mut self, moved: &[FittedValue]) -> Result<Self, String> {
        let mut seen = BTreeSet::new();
        for FittedValue { name, value, low, high } in moved {
            if !self.0.contains_key(name) {
                let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
                return Err(barewire_sim::near::unknown("cost", name, &known));
            }
            if !(*low > 0.0 && low <= value && value <= high && high.is_finite()) {
                return Err(format!(
                    "{name} is {value} ({low} to {high}): a cost is above 0 and in its own range"
                ));
            }
            if !seen.insert(name) {
                return Err(format!("{name} is there twice: leave one out"));
            }
        }
        self.apply(moved);
        Ok(self)
    }

    /// The same, with costs of a board in the places of its profile's, and of what this table's factors make of those. A
    /// measured `wake_ps` is `wake-other` here.
    ///
    /// # Errors
    /// If the file has a cost that is no profile's, or does not say which profile's they are.
    pub fn with_board(mut self, file: CostFile) -> Result<Self, String> {
        let Some(name) = &file.profile else {
            return Err("it has costs of a board, and no `profile` says of which".into());
        };
        let Some(of) = Profile::named(name) else {
            return Err(barewire_sim::near::unknown("profile", name, &Profile::names()));
        };
        file.profile(of)?;
        if let Some(wake) = file.cost.iter().find(|cost| cost.name == "wake_ps") {
            let [value, low, high] = [wake.value, wake.low, wake.high].map(|ps| ps / 1e3);
            self.apply(&[FittedValue { name: WAKE_OTHER.into(), value, low, high }]);
        }
        self.2 = Some(file);
        Ok(self)
    }

    /// The profile whose costs a file replaces; none if no file does.
    #[must_use]
    pub fn board(&self) -> Option<&str> {
        self.2.as_ref()?.profile.as_deref()
    }

    /// Moves costs. One that has no range is left as it is: it was counted after a fit had moved it.
    ///
    /// # Panics
    /// If one is not there.
    pub fn apply(&mut self, moved: &[FittedValue]) {
        for FittedValue { name, value, low, high } in moved {
            let cost = self.0.get_mut(name).unwrap_or_else(|| panic!("there is no cost {name:?}"));
            if !cost.is_free() {
                continue;
            }
            *cost = Cost {
                value: *value,
                low: Some(*low),
                high: Some(*high),
                basis: Basis::Fitted,
                ..cost.clone()
            };
        }
    }

    /// The same costs, none of them marked as asked for.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self(self.0.clone(), RefCell::default(), self.2.clone())
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Cost> {
        self.0.values()
    }

    /// The value used of `name`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> f64 {
        self.cost(name).value
    }

    /// The cost `name`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn cost(&self, name: &str) -> &Cost {
        if !self.1.borrow().contains(name) {
            self.1.borrow_mut().insert(name.into());
        }
        self.0.get(name).unwrap_or_else(|| panic!("there is no cost {name:?} in costs.toml"))
    }

    /// Sets the value of `name`.
    ///
    /// # Panics
    /// If there is none.
    pub fn set(&mut self, name: &str, value: f64) {
        self.0.get_mut(name).unwrap_or_else(|| panic!("there is no cost {name:?}")).value = value;
    }

    /// The names asked for since these costs were made or cloned from fresh ones.
    #[must_use]
    pub fn used(&self) -> BTreeSet<String> {
        self.1.borrow().clone()
    }

    /// Marks costs as asked for.
    pub(crate) fn mark(&self, names: &BTreeSet<String>) {
        let there = names.iter().filter(|name| self.0.contains_key(*name));
        self.1.borrow_mut().extend(there.cloned());
    }

    pub(crate) fn amount(&self, name: &str) -> Amount {
        let cost = self.cost(name);
        match cost.unit.as_str() {
            "instructions" => Amount::Instructions(cost.value),
            "ns" => Amount::Ps(cost.value * 1e3),
            unit => panic!("{name} is {unit} and cannot be charged"),
        }
    }

    /// All costs at the given level: at an end of their range if they have one, or unchanged.
    #[must_use]
    pub fn at(&self, level: CostLevel) -> Self {
        let mut costs = self.clone();
        costs.1.take();
        for cost in costs.0.values_mut() {
            let end = match level {
                CostLevel::Low => cost.low,
                CostLevel::Used => None,
                CostLevel::High => cost.high,
            };
            cost.value = end.unwrap_or(cost.value);
        }
        for cost in costs.2.iter_mut().flat_map(|file| &mut file.cost) {
            cost.value = match level {
                CostLevel::Low => cost.low,
                CostLevel::Used => cost.value,
                CostLevel::High => cost.high,
            };
        }
        costs
    }

    /// The profile of a board with this table's factors in it.
    #[must_use]
    pub fn profile(&self, of: &Profile) -> Profile {
        let mut profile = of.clone();
        let scale = |ps: &mut u64, by: f64| *ps = ((*ps as f64 * by).round() as u64).max(1);
        let registers = match of.name {
            // Their reads are published for the board itself, and no thread's bus is theirs.
            "rpi4" | "rpi5" => 1.0,
            "rpi3" => self.get("registers-rpi"),
            "sama5d36" => self.get("registers-sam"),
            _ => self.get("registers-imx"),
        };
        for figure in [
            &mut profile.register_read_ps,
            &mut profile.register_write_ps,
            &mut profile.gpio_read_ps,
            &mut profile.gpio_write_ps,
            &mut profile.write_ack_ps,
        ] {
            scale(&mut figure.value, registers);
        }
        scale(&mut profile.irq_thread_ps.value, self.get("interrupts"));
        match &self.2 {
            // A board's own costs are not scaled.
            Some(file) if file.profile.as_deref() == Some(of.name) => {
                file.profile(&profile).expect("its costs were looked at")
            }
            _ => profile,
        }
    }
}

#[cfg(test)]
mod tests {
    use barewire_sim::profile::FileCost;

    use super::*;

    #[test]
    fn every_cost_is_above_zero_within_its_range_and_has_a_source() {
        for costs in [Costs::assumed().with_drivers(), Costs::fitted()] {
            for cost in costs.iter() {
                let Cost { name, value, low, high, source, .. } = cost;
                assert!(*value > 0.0 && source.len() > 20, "{name}");
                assert!(
                    low.is_none_or(|low| 0.0 < low && low <= *value),
                    "{name}: {low:?} {value}"
                );
                assert!(high.is_none_or(|high| *value <= high), "{name}: {value} {high:?}");
                assert_eq!(
                    low.is_some(),
                    matches!(cost.basis, Basis::Assumption | Basis::Fitted),
                    "{name}"
                );
            }
        }
    }

    /// The counts of `guests/steps.txt` by step: on an i.MX8M Plus under Linux 6.1, and what only another board has.
    fn counted() -> BTreeMap<String, f64> {
        let text = include_str!("../../guests/steps.txt");
        let mut counted = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [board, kernel, step, middle, ..] = words[..] else { panic!("{line}") };
            let middle = middle.parse().expect("a number");
            match board {
                _ if !kernel.starts_with("6.1.") => {}
                "imx8mp-evk" => drop(counted.insert(step.to_owned(), middle)),
                _ => drop(counted.entry(step.to_owned()).or_insert(middle)),
            }
        }
        counted
    }

    #[test]
    fn what_the_guests_count_is_what_the_lab_uses() {
        let counted = counted();
        let costs = Costs::assumed();
        for cost in costs.iter() {
            let count = counted.get(&cost.name);
            assert_eq!(
                cost.basis == Basis::Counted || cost.source.starts_with("counted"),
                count.is_some(),
                "{}",
                cost.name
            );
            if let Some(count) = count {
                assert_eq!(cost.value, *count, "{}", cost.name);
            }
        }
    }

    #[test]
    fn a_factor_fitted_to_another_bus_leaves_reads_that_are_published_as_they_are() {
        let [rpi3, rpi5] = [&Profile::RPI3, &Profile::RPI5].map(|of| Costs::fitted().profile(of));
        assert_eq!(rpi5.register_read_ps, Profile::RPI5.register_read_ps);
        assert_ne!(rpi3.register_read_ps, Profile::RPI3.register_read_ps);
    }

    #[test]
    fn a_board_s_own_costs_are_not_scaled_and_reach_no_other_board() {
        let row = |name: &str, value: f64| FileCost {
            name: name.into(),
            value,
            low: value / 2.0,
            high: value * 2.0,
        };
        let cost = vec![row("register_read_ps", 300e3), row("wake_ps", 7e6)];
        let file = CostFile { profile: Some("imx8mp".into()), provenance: None, cost };
        let costs = Costs::fitted().with_board(file.clone()).expect("its own");
        let profile = costs.profile(&Profile::IMX8MP);
        assert_eq!(profile.register_read_ps.value, 300_000);
        assert_eq!(
            costs.at(CostLevel::High).profile(&Profile::IMX8MP).register_read_ps.value,
            600_000
        );
        assert_eq!(profile.gpio_read_ps, Costs::fitted().profile(&Profile::IMX8MP).gpio_read_ps);
        assert_eq!(costs.profile(&Profile::RPI3), Costs::fitted().profile(&Profile::RPI3));
        assert_eq!((costs.get("wake-other"), costs.board()), (7e3, Some("imx8mp")));
        let nobody = CostFile { profile: None, ..file };
        assert!(Costs::fitted().with_board(nobody).is_err_and(|why| why.contains("profile")));
    }

    #[test]
    fn a_fit_leaves_no_more_than_the_assumed_range() {
        let assumed = Costs::assumed();
        for cost in Costs::fitted().iter().filter(|cost| cost.basis == Basis::Fitted) {
            let before = assumed.cost(&cost.name);
            assert!(
                before.is_free() && before.low <= cost.low && cost.high <= before.high,
                "{}",
                cost.name
            );
        }
    }
}
