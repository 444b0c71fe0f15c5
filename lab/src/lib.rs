//! The source threads' experiments, replayed: kernel paths as programs of named steps on the simulated bench, and the
//! score of what they predict.
//!
//! *Read first*: `lab/README.md` for the rules, which were written before any model.

pub mod band;
pub mod cost;
pub mod error;
pub mod experiment;
pub mod figure;
pub mod fit;
pub mod gain;
pub mod held_out;
pub mod kernel;
pub mod lab;
mod limits;
pub mod machine;
pub mod measured;
mod memo;
pub mod messages;
pub mod ours;
pub mod outcome;
pub mod own;
pub mod predict;
pub mod regime;
pub mod replay;
pub mod report;
pub mod rules;
pub mod score;
pub mod sweep;
pub mod walk;
pub mod workload;

pub use band::{Band, Kind};
pub use error::LabError;
pub use lab::{ExperimentLine, Lab};
pub use outcome::Outcome;
pub use regime::Regime;
