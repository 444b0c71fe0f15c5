//! A user's own experiments: their file, their figures as a table, and the figure that an explanation names.

mod captured;
pub(super) mod new;
mod table;
mod traced;

use std::path::Path;

use barewire_lab::Lab;
use barewire_lab::messages::OwnOutcome;
use barewire_lab::outcome::Explanation;

use super::given;
use crate::shared::failure::Failure;

pub(super) use captured::Captured;
pub(super) use table::text;
pub(super) use traced::{Origin, text as traced};

/// An error of an experiment's text without its place, for a text that the user does not have.
pub(super) fn without_place(what: &str) -> String {
    what.split_once(": ").map_or(what, |(_, what)| what).to_owned()
}

/// The figures of the experiment in the file `path`.
pub(super) fn outcome(lab: &Lab, path: &Path) -> Result<OwnOutcome, Failure> {
    let own = given::own(path)?;
    lab.messages(&own).map_err(|error| given::in_file(path, &error))
}

/// A figure that an argument names, as `mine.toml:read` or `mine.toml:read:cs-low`.
pub(super) struct Named<'n> {
    /// The file.
    pub(super) file: &'n Path,
    message: &'n str,
    figure: Option<&'n str>,
}

/// The figure that `text` names, if it begins with a file.
pub(super) fn named(text: &str) -> Option<Named<'_>> {
    let at = text.find(".toml")? + ".toml".len();
    let (file, rest) = text.split_at(at);
    let rest = rest.strip_prefix(':')?;
    let (message, figure) = match rest.split_once(':') {
        Some((message, figure)) => (message, Some(figure)),
        None => (rest, None),
    };
    Some(Named { file: Path::new(file), message, figure })
}

impl Named<'_> {
    /// The figure taken apart.
    pub(super) fn explain(&self, lab: &Lab, without: &[String]) -> Result<Explanation, Failure> {
        let own = given::own(self.file)?;
        given::check_board(lab, &own)?;
        lab.explain_message(&own, (self.message, self.figure), without).map_err(given::refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_a_message_and_a_figure_are_told_apart() {
        let parts = |text| named(text).map(|one| (one.file.to_str(), one.message, one.figure));
        assert_eq!(parts("a/mine.toml:read"), Some((Some("a/mine.toml"), "read", None)));
        let all = Some((Some("mine.toml"), "read", Some("cs-low")));
        assert_eq!(parts("mine.toml:read:cs-low"), all);
        for text in ["mine.toml", "jander-rfc-irq-A", "mine:read", ""] {
            assert!(parts(text).is_none(), "{text}");
        }
    }
}
