//! What is wrong in an experiment's file, and where.

use std::ops::Range;

use toml::Spanned;

/// What is wrong, and the bytes of the text that say it.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) at: Range<usize>,
    pub(super) what: String,
}

impl Wrong {
    pub(super) fn at<T>(place: &Spanned<T>, what: impl Into<String>) -> Self {
        Self { at: place.span(), what: what.into() }
    }

    /// With the line and the column, both from 1.
    pub(super) fn in_text(&self, text: &str) -> String {
        let before = text.get(..self.at.start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        format!("line {line}, column {column}: {}", self.what)
    }
}
