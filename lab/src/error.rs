//! Errors of the lab.

/// Why the lab cannot do what is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabError {
    /// A name that is not there, with the names that are.
    Unknown {
        /// The kind of thing that was named: `figure`, `step`, `path`, `board`, `metric`,
        /// `parameter`.
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
