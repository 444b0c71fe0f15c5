//! The house rules that no compiler knows, checked over every tracked text file.
//!
//! How it works: [`run`] reads what git tracks into a list of [`Source`]s; each rule is a function
//! from sources to [`Finding`]s, so that its test is a string and not a directory. [`text`] has
//! the rules on single files, [`register`] those that compare the code with ARCHITECTURE.md, and
//! [`walls`] those on which crate may import which. [`layers`] rules on the imports between the
//! modules of a crate, which [`imports`] reads.
//!
//! A finding says where, what is wrong, and the remedy.
//!
//! Forbidden words stand in these sources in pieces joined by `concat!`: tidy reads itself too.

mod imports;
mod layers;
mod manifest;
mod register;
mod text;
mod walls;

use std::fmt;
use std::path::Path;

use crate::child::Task;
use crate::console::{Console, Tone};
use crate::report::plural;

/// A tracked text file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    /// From the root, with forward slashes.
    path: String,
    text: String,
}

/// Something against the rules.
#[derive(Clone, Debug, PartialEq)]
struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Lines with their numbers, as editors count them. Not `str::lines`, which hides a carriage
    /// return.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.strip_suffix('\n').unwrap_or(&self.text).split('\n');
        (1..).zip(lines).filter(|_| !self.text.is_empty())
    }

    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Checks the tree under `root`, prints what it finds, and returns how many findings there are.
///
/// # Errors
/// If git cannot list the files, or one of them cannot be read.
pub(crate) fn run(root: &Path, console: &Console) -> Result<usize, String> {
    let sources = tracked(root)?;
    let findings = check(&sources);
    for finding in &findings {
        console.say(&console.paint(Tone::Bad, &finding.to_string()));
    }
    let unseen = untracked(root);
    if unseen > 0 {
        let files = plural(unseen, "untracked file");
        console.say(
            &console.paint(Tone::Warning, &format!("note: {files} not looked at; git add first")),
        );
    }
    let (files, count) = (plural(sources.len(), "file"), plural(findings.len(), "finding"));
    console.say(&format!("tidy: {files}, {count}"));
    Ok(findings.len())
}

/// All rules over all sources, in the order of the files.
fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = sources.iter().flat_map(text::check).collect();
    findings.extend(register::check(sources));
    findings.extend(walls::check(sources));
    findings.extend(layers::check(sources));
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    findings
}

/// Reads every tracked text file that still exists.
fn tracked(root: &Path) -> Result<Vec<Source>, String> {
    let listed = Task::new("git", &["ls-files", "-z"])
        .answer(root)
        .ok_or("tidy needs `git ls-files` to work here: a checkout, and git installed")?;
    let mut sources = Vec::new();
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        let file = root.join(path);
        // Deleted but not yet committed, a link or a submodule: nothing of ours to read.
        if !file.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            continue;
        }
        let bytes = std::fs::read(&file).map_err(|e| format!("cannot read {path}: {e}"))?;
        if let Some(text) = as_text(bytes) {
            sources.push(Source { path: path.to_string(), text });
        }
    }
    Ok(sources)
}

/// How many files git neither tracks nor ignores.
fn untracked(root: &Path) -> usize {
    Task::new("git", &["ls-files", "-z", "--others", "--exclude-standard"])
        .answer(root)
        .map_or(0, |listed| listed.matches('\0').count())
}

/// The bytes as text; `None` for captures and images.
fn as_text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    /// Findings as `line: message` cut at the comma: what is wrong, without the remedy.
    pub(super) fn found(findings: &[Finding]) -> Vec<String> {
        let short = |f: &Finding| {
            let what = f.message.split([';', ',']).next().unwrap_or_default();
            format!("{}:{}: {what}", f.path, f.line)
        };
        findings.iter().map(short).collect()
    }

    #[test]
    fn lines_are_numbered_as_editors_do() {
        let numbered = |text: &str| {
            source("a", text).lines().map(|(n, l)| format!("{n}{l}")).collect::<Vec<_>>()
        };
        assert!(numbered("").is_empty());
        assert_eq!(numbered("a"), ["1a"]);
        assert_eq!(numbered("a\n"), ["1a"]);
        assert_eq!(numbered("a\r\n\nb"), ["1a\r", "2", "3b"]);
    }

    #[test]
    fn binary_files_are_left_alone() {
        assert_eq!(as_text(b"plain\n".to_vec()).as_deref(), Some("plain\n"));
        assert_eq!(as_text(b"a\0b".to_vec()), None);
        assert_eq!(as_text(vec![0xff, 0xd8]), None);
    }

    #[test]
    fn findings_are_sorted_and_say_where() {
        let findings = check(&[source("b.txt", "x \ny "), source("a.txt", "x \n")]);
        let places: Vec<_> = findings.iter().map(|f| format!("{}:{}", f.path, f.line)).collect();
        assert_eq!(places, ["ARCHITECTURE.md:1", "a.txt:1", "b.txt:1", "b.txt:2", "b.txt:2"]);
        assert!(findings[1].to_string().starts_with("a.txt:1: trailing"), "{}", findings[1]);
    }
}
