//! Checks that a guest reports, line by line, and their verdicts.

/// Whether reviewed files are to be written anew.
pub(crate) fn is_blessing() -> bool {
    std::env::var_os("BAREWIRE_BLESS").is_some_and(|value| value == "1")
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    Passed,
    Failed,
    Skipped,
}

impl Verdict {
    /// The word of the protocol, and of the JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Passed, Self::Failed, Self::Skipped].into_iter().find(|kind| kind.word() == word)
    }
}

/// One check on one board.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    /// Why it failed or was skipped; empty where it passed.
    pub(crate) why: String,
}

impl Check {
    /// A check of the host's own.
    pub(crate) fn new(name: &str, verdict: Verdict, why: impl Into<String>) -> Self {
        Self { name: name.to_owned(), verdict, why: why.into() }
    }

    /// Reads `NAME VERDICT [WHY]`, what follows the word CHECK. A check that did not pass must give its reason.
    pub(crate) fn parse(rest: &str) -> Option<Self> {
        let mut parts = rest.splitn(3, ' ');
        let (name, verdict) = (parts.next()?, Verdict::parse(parts.next()?)?);
        let why = parts.next().unwrap_or("").trim();
        (!name.is_empty() && (verdict == Verdict::Passed || !why.is_empty()))
            .then(|| Self::new(name, verdict, why))
    }

    /// A line of the protocol that cannot be read: a check that is not counted must not look like one that passed.
    pub(crate) fn unreadable(line: &str) -> Self {
        Self::new("protocol", Verdict::Failed, format!("cannot read `{line}`"))
    }
}

/// A JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            c if c < ' ' => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
