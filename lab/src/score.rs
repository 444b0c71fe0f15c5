//! How well differences are predicted, beside simple predictors fitted on the same figures.

/// The score.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Score {}
