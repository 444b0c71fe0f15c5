//! Costs in a file: measured on a board by `barewire measure`, or written by hand.
//!
//! *Read first*: [`super`]'s page.
//!
//! # How it works
//! The file has a list `cost` (or `costs`) of rows with `name`, `value`, `low` and `high`; other fields of a row, and of the
//! file, do not matter, but for these two: `provenance` says in words where the costs come from, and `profile` names the
//! profile of the board that they are of. A row's name is a field of [`Profile`], its numbers are in the unit of that field.
//! [`CostFile::profile`] puts them in the places of a profile's own. The text is read, as JSON or TOML, by `barewire-open`.
//!
//! A file may instead have costs of the lab's table; the lab takes both kinds.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{Figure, Profile};
use crate::near;

/// A row of the file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FileCost {
    /// A field of [`Profile`], or a cost of the lab.
    pub name: String,
    /// The value charged, in the field's unit.
    pub value: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

/// A file of costs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CostFile {
    /// The profile of the board that the costs are of; none if they are of no board.
    #[serde(default)]
    pub profile: Option<String>,
    /// Where they come from, in words: `measured on …`, `simulated`, `emulated`.
    #[serde(default)]
    pub provenance: Option<String>,
    /// The costs.
    #[serde(alias = "costs")]
    pub cost: Vec<FileCost>,
}

impl CostFile {
    /// Looks at the numbers.
    ///
    /// # Errors
    /// If a cost is not above 0, outside its own range, or there twice.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for FileCost { name, value, low, high } in &self.cost {
            if !(*low > 0.0 && low <= value && value <= high && high.is_finite()) {
                return Err(format!(
                    "{name} is {value} ({low} to {high}): a cost is above 0 and in its own range"
                ));
            }
            if !seen.insert(name) {
                return Err(format!("{name} is there twice: leave one out"));
            }
        }
        Ok(())
    }

    /// The file's costs of a board, by which `of` is charged, and the others.
    #[must_use]
    pub fn split(self) -> (Self, Vec<FileCost>) {
        let fields = fields();
        let is_field = |cost: &FileCost| fields.contains(&&*cost.name);
        let (of_board, others) = self.cost.into_iter().partition(is_field);
        (Self { cost: of_board, ..self }, others)
    }

    /// The profile `of` with the file's costs in the places of its own.
    ///
    /// # Errors
    /// * The file has costs of another board's profile.
    /// * It has no cost of a board, or one that no profile has.
    pub fn profile(&self, of: &Profile) -> Result<Profile, String> {
        if let Some(other) = self.profile.as_deref().filter(|name| *name != of.name) {
            return Err(format!(
                "its costs are those of {other}, and this board's are {}'s: they say nothing of it",
                of.name
            ));
        }
        if self.cost.is_empty() {
            return Err("it has no costs".into());
        }
        let mut profile = of.clone();
        for cost in &self.cost {
            let Some(figure) = profile.figure_mut(&cost.name) else {
                return Err(near::unknown("cost of a board", &cost.name, &fields()));
            };
            *figure = self.figure(cost);
        }
        Ok(profile)
    }

    /// A cost as a figure. Its source lives as long as the program, as those of the shipped profiles do: a file is read once.
    fn figure(&self, FileCost { value, low, high, .. }: &FileCost) -> Figure {
        let said = self.provenance.as_deref().unwrap_or("a file of costs");
        let source: &'static str = Box::leak(format!("{said} (costs=)").into_boxed_str());
        let whole = |value: f64| (value.round() as u64).max(1);
        let [value, low, high] = [*value, *low, *high].map(whole);
        Figure { value, low, high, source, low_source: source, high_source: source }
    }
}

/// The names of a profile's fields.
fn fields() -> Vec<&'static str> {
    Profile::IMX8MP.sources().map(|source| source.field).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::CostLevel;

    fn row(name: &str, [low, value, high]: [f64; 3]) -> FileCost {
        FileCost { name: name.into(), value, low, high }
    }

    fn of(profile: Option<&str>, cost: Vec<FileCost>) -> CostFile {
        let provenance = Some("measured on a board".into());
        CostFile { profile: profile.map(Into::into), provenance, cost }
    }

    #[test]
    fn costs_of_a_file_take_the_places_of_the_board_s_own_with_their_range_and_source() {
        let file = of(Some("imx8mp"), vec![row("register_read_ps", [240e3 + 0.4, 250e3, 300e3])]);
        let profile = file.profile(&Profile::IMX8MP).expect("its own board");
        let Figure { value, low, high, source, .. } = profile.register_read_ps;
        assert_eq!((low, value, high), (240_000, 250_000, 300_000));
        assert!(source.starts_with("measured on a board"), "{source}");
        assert_eq!(profile.at(CostLevel::High).register_read_ps.value, 300_000);
        assert_eq!(profile.register_write_ps, Profile::IMX8MP.register_write_ps);
        let other = file.profile(&Profile::RPI3).expect_err("another board");
        assert!(other.contains("imx8mp") && other.contains("rpi3"), "{other}");
    }

    #[test]
    fn every_field_of_a_profile_can_be_set_by_its_name() {
        for field in fields() {
            let mut profile = Profile::IMX8MP;
            profile.figure_mut(field).expect("a field").value = 77;
            let set = profile.sources().into_iter().find(|source| source.field == field);
            assert_eq!(set.map(|source| source.figure.value), Some(77), "{field}");
        }
    }

    #[test]
    fn a_wrong_file_says_what_is_wrong() {
        let good = row("timer_read_ps", [1.0, 2.0, 3.0]);
        for (rows, said) in [
            (vec![row("timer_read_ps", [3.0, 2.0, 3.0])], "its own range"),
            (vec![row("timer_read_ps", [0.0, 2.0, 3.0])], "above 0"),
            (vec![good.clone(), good], "twice"),
        ] {
            let error = of(None, rows).check().expect_err("wrong");
            assert!(error.contains(said), "{error}");
        }
        let mistyped = of(None, vec![row("register_reed_ps", [1.0, 2.0, 3.0])]);
        let error = mistyped.profile(&Profile::RPI3).expect_err("no such cost");
        assert!(error.contains("did you mean \"register_read_ps\""), "{error}");
        let (of_board, others) = mistyped.split();
        assert_eq!((of_board.cost.len(), others.len()), (0, 1));
        assert_eq!(of_board.profile(&Profile::RPI3), Err("it has no costs".into()));
    }
}
