//! Causes of pauses, as a section of each table and of its JSON.

use barewire_scope::meaning::{Meaning, Of};
use serde::Serialize;

/// A cause. Scripts rely on its field names.
#[derive(Debug, Serialize)]
pub(super) struct MeaningReport {
    cause: &'static str,
    /// The chip select's channel or the device; none for a bus without chip selects.
    of: Option<String>,
    what: String,
    evidence: String,
    sure: &'static str,
}

/// The causes, of chip selects that have a `name`.
pub(super) fn reports(
    all: Vec<Meaning>,
    name: impl Fn(usize) -> Option<String>,
) -> Vec<MeaningReport> {
    let report = |meaning: Meaning| MeaningReport {
        cause: meaning.cause,
        of: match meaning.of {
            Of::Select(place) => place.and_then(&name),
            Of::Device(device) => Some(device),
        },
        what: meaning.what,
        evidence: meaning.evidence,
        sure: meaning.sure.name(),
    };
    all.into_iter().map(report).collect()
}

/// The section; nothing without causes.
pub(super) fn text(all: &[MeaningReport]) -> String {
    let of = |one: &MeaningReport| one.of.as_ref().map_or_else(String::new, |of| format!("{of}  "));
    let lines = all.iter().map(|one| {
        format!("  {}{} ({}): {}\n      {}\n", of(one), one.cause, one.sure, one.what, one.evidence)
    });
    if all.is_empty() {
        String::new()
    } else {
        format!("\nWhat it means\n{}", lines.collect::<String>())
    }
}
