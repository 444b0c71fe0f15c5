//! The lab: the figures, the rules, the costs and the experiments together.

use crate::outcome::{Explanation, Outcome, Sweep, SweepRequest};

/// An experiment as `barewire lab list` shows it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Listed {
    /// Its name, the file's: `jander-rfc-echo`.
    pub name: String,
    /// Its thread, or none for a user's own.
    pub thread: String,
    /// In words.
    pub title: String,
    /// The simulated board.
    pub board: String,
    /// The workload.
    pub workload: String,
    /// The thread's words for the set-up.
    pub citation: String,
    /// The paths that it runs, by name.
    pub paths: Vec<String>,
    /// The ids of the figures that it answers.
    pub figures: Vec<String>,
}

/// Why the lab cannot do what is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabError {
    /// A name that is not there, with the names that are.
    Unknown {
        /// What was to be named: `figure`, `step`, `path`, `board`, `parameter`.
        what: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// An experiment's text that cannot be read.
    Experiment(String),
    /// Something cannot be done, with the reason.
    Refused(String),
}

impl std::fmt::Display for LabError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown { what, name, .. } => write!(f, "there is no {what} {name:?}"),
            Self::Experiment(text) | Self::Refused(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for LabError {}

/// The lab.
#[derive(Debug)]
pub struct Lab {}

impl Lab {
    /// The lab as it comes: the five threads.
    #[must_use]
    pub fn new() -> Self {
        Self {}
    }

    /// Its experiments.
    #[must_use]
    pub fn list(&self) -> Vec<Listed> {
        todo!()
    }

    /// Runs every experiment three times and scores the result; `progress` is told how many of how many runs are done.
    pub fn run(&self, _progress: &mut dyn FnMut(usize, usize)) -> Outcome {
        todo!()
    }

    /// Takes the figure `id` apart, with the steps in `without` switched off.
    ///
    /// # Errors
    /// If there is no such figure or step, or the figure is one that nothing replays.
    pub fn explain(&self, _id: &str, _without: &[String]) -> Result<Explanation, LabError> {
        todo!()
    }

    /// A figure over a parameter.
    ///
    /// # Errors
    /// If there is no such path, board or parameter, or they do not go together.
    pub fn sweep(&self, _request: &SweepRequest) -> Result<Sweep, LabError> {
        todo!()
    }
}

impl Default for Lab {
    fn default() -> Self {
        Self::new()
    }
}
