//! Input of the verbs: a lab with the user's experiments, names that may be mistyped, files to write.

use std::path::PathBuf;

use barewire_lab::{Lab, LabError};

use crate::shared::failure::Failure;
use crate::shared::files::{self, NamedFile};
use crate::shared::text::near;

/// More names than these are not listed in an error.
const NAMES_MAX: usize = 24;

/// The user's own experiments.
#[derive(clap::Args, Debug)]
pub(super) struct Experiments {
    /// Add an experiment of your own: a file like those of the lab; may be given several times
    #[arg(long = "experiment", value_name = "FILE.toml")]
    files: Vec<PathBuf>,
}

impl Experiments {
    /// Whether there are any experiments.
    pub(super) fn is_given(&self) -> bool {
        !self.files.is_empty()
    }

    /// The lab with the user's experiments.
    pub(super) fn lab(&self) -> Result<Lab, Failure> {
        let mut lab = Lab::new();
        for path in &self.files {
            let text = files::read_text(path)?;
            lab.with_experiment(&text).map_err(|error| {
                Failure::Failed(format!("{}: {}", path.display(), words(&error)))
            })?;
        }
        Ok(lab)
    }

    /// Refuses an output that is one of the experiment files.
    pub(super) fn check(&self, outputs: &[NamedFile<'_>]) -> Result<(), Failure> {
        let inputs: Vec<NamedFile<'_>> =
            self.files.iter().map(|path| NamedFile { by: "--experiment", path }).collect();
        files::check(outputs, &inputs)
    }
}

/// The failure for an error of the lab. The user gave a name or a combination that the lab refuses.
pub(super) fn refused(error: LabError) -> Failure {
    Failure::Usage(words(&error))
}

/// The error's text: the refused name or combination, and the names that the lab knows.
fn words(error: &LabError) -> String {
    match error {
        LabError::Unknown { what, name, known } => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            if known.len() <= NAMES_MAX {
                near::unknown(what, name, &known)
            } else {
                let meant = near::nearest(name, &known);
                let meant = meant.map_or(String::new(), |name| format!(": did you mean {name:?}?"));
                let list = if *what == "figure" { " (barewire lab list --figures)" } else { "" };
                format!("{error}{meant}{list}")
            }
        }
        LabError::Experiment(text) | LabError::Refused(text) => text.clone(),
    }
}

/// A name that must be one of `known`.
pub(super) fn one_of(what: &'static str, name: &str, known: &[&str]) -> Result<(), Failure> {
    if known.contains(&name) {
        return Ok(());
    }
    let known = known.iter().map(|name| (*name).into()).collect();
    Err(refused(LabError::Unknown { what, name: name.into(), known }))
}
