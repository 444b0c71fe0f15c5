//! Figures of pages: each stands in what a command prints, in a reviewed file, or is said to be measured.
//!
//! # How it works
//! A block (paragraph, table, list, fenced text) of a page holds its marks, as comments:
//!
//! - `<!-- figures: SOURCE; SOURCE -->`: each figure of the block is in a source. A source is a command, `barewire …`, or
//!   `file PATH` of this repository: a reviewed snapshot, published figures, or code that has a limit.
//! - `<!-- measured: WHAT, DATE -->`: by a clock, or on another machine. It informs, and nothing compares it. With
//!   `: FIGURE FIGURE …` behind the date it covers these alone, and the block's other figures need sources.
//! - `<!-- no figure: REASON -->`, a reason of [`REASONS`].
//!
//! A figure is as its source has it: nothing is rounded, and only the signs between thousands may differ. On the pages of
//! [`MARKED`] each block with a figure needs a mark.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::Findings;
use crate::command::run;

/// Pages on which no figure may stand without a mark.
const MARKED: [&str; 4] = ["README.md", "docs/can.md", "docs/figures.md", "docs/lab.md"];
/// Why a block's numbers need no source.
const REASONS: [&str; 2] = ["versions of kernels", "bits and times of the protocol"];
/// Marks of figures; pages have other comments too.
const KINDS: [&str; 4] = ["output", "figures", "measured", "no figure"];
/// Words before the version of something.
const VERSIONED: [&str; 7] = ["Apache", "CPython", "Linux", "code", "compiler", "kernel", "until"];
/// Languages of fenced blocks whose numbers are input, but for sessions, which show output too.
const INPUT: [&str; 4] = ["", "sh", "rust", "toml"];

/// What a page promises of a block's figures.
#[derive(Debug, PartialEq)]
enum Mark<'p> {
    Output,
    Figures(Vec<&'p str>),
    /// Those it covers; none: all.
    Measured(Vec<&'p str>),
    NoFigure,
}

/// Paragraphs, tables, lists and fenced blocks, each with its first line's number.
fn blocks(page: &str) -> Vec<(usize, String)> {
    let (mut blocks, mut fenced, mut block) = (Vec::new(), false, String::new());
    for (number, line) in (1..).zip(page.lines().chain([""])) {
        fenced ^= line.starts_with("```");
        if !line.is_empty() || fenced {
            block += &format!("{line}\n");
        } else if !block.is_empty() {
            blocks.push((number - block.lines().count(), std::mem::take(&mut block)));
        }
    }
    blocks
}

/// A block's marks, and what is wrong with them.
fn marks(block: &str) -> Result<Vec<Mark<'_>>, String> {
    let comments = block.split("<!-- ").skip(1).filter_map(|part| part.split_once(" -->"));
    let marks = comments.filter_map(|(comment, _)| comment.split_once(": "));
    let marks = marks.filter(|(kind, _)| KINDS.contains(kind));
    let read = marks.map(|(kind, text)| match kind {
        "output" => Ok(Mark::Output),
        "figures" => Ok(Mark::Figures(text.split("; ").collect())),
        "measured" => {
            let (what, list) = text.split_once(": ").unwrap_or((text, ""));
            let date = what.rsplit_once(", ").map_or("", |(_, date)| date);
            let is_date = date.len() == 10 && date.split('-').count() == 3;
            let dated = Mark::Measured(list.split_whitespace().collect());
            if is_date { Ok(dated) } else { Err(format!("{what:?} ends with no date")) }
        }
        "no figure" if REASONS.contains(&text) => Ok(Mark::NoFigure),
        _ => Err(format!("{text:?} is no reason")),
    });
    read.collect()
}

/// What readers see as text: without comments, code, commands of sessions and the targets of links.
fn prose(block: &str) -> String {
    let without = |text: &str, open: &str, close: &str| {
        let mut parts = text.split(open);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |kept, part| {
            kept + "|" + part.split_once(close).map_or("", |(_, rest)| rest)
        })
    };
    let text = without(block, "<!-- ", " -->");
    let is_code = |index: usize| index % 2 == 1 && !text.contains("```");
    let spans = text.split('`').enumerate();
    let kept: String = spans.map(|(index, part)| if is_code(index) { "|" } else { part }).collect();
    let shown = without(&kept, "](", ")");
    shown.lines().filter(|line| !line.starts_with("$ ")).map(|line| format!("{line}\n")).collect()
}

/// The numbers of a text as they stand there, each with the word before it. Names with digits are none.
fn numbers(text: &str) -> Vec<(&str, &str)> {
    let is_inside = |c: char| c.is_alphanumeric() || "_.,".contains(c);
    let words = text.split(|c: char| !is_inside(c)).map(|word| word.trim_matches(['.', ',']));
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let is_number = |word: &str| {
        word.split(['.', ',', '_']).all(|part| part.parse::<u64>().is_ok())
            && word.matches('.').count() < 2
    };
    let before = [""].into_iter().chain(words.iter().copied());
    before.zip(&words).filter(|(_, word)| is_number(word)).map(|(old, word)| (old, *word)).collect()
}

/// Those that are figures: with a point, a sign between thousands, or three digits. Years and versions are none.
fn figures(text: &str) -> Vec<&str> {
    let mut version = "";
    let found = numbers(text).into_iter().filter(|(before, number)| {
        let is_year = number.len() == 4 && (number.starts_with("20") || number.starts_with("19"));
        let is_long = number.len() > 2 && !is_year;
        let is_version = VERSIONED.contains(before) || (!version.is_empty() && *before == version);
        let is_version = is_version && !number.contains(',');
        version = if is_version && number.contains('.') { number } else { "" };
        !is_version && (is_long || number.contains(['.', ',']))
    });
    found.map(|(_, number)| number).collect()
}

fn plain(number: &str) -> String {
    number.replace([',', '_'], "")
}

/// The numbers of sources, each read once.
struct Sources<'r> {
    root: &'r Path,
    read: BTreeMap<String, BTreeSet<String>>,
}

impl Sources<'_> {
    fn numbers(&mut self, source: &str) -> Result<&BTreeSet<String>, String> {
        if !self.read.contains_key(source) {
            let text = if let Some(command) = source.strip_prefix("barewire ") {
                let ran = run(&command.split(' ').collect::<Vec<_>>()).ok();
                ran.text() + &ran.stderr
            } else {
                let path = source.strip_prefix("file ").ok_or(format!("{source} is no source"))?;
                let read = fs::read_to_string(self.root.join(path));
                let text = read.map_err(|error| format!("{path}: {error}"))?;
                if path.ends_with(".csv") { text.replace(',', " ") } else { text }
            };
            let found = numbers(&text).into_iter().map(|(_, number)| plain(number)).collect();
            self.read.insert(source.to_owned(), found);
        }
        Ok(&self.read[source])
    }

    /// What is wrong with the figures of a block.
    fn check(&mut self, block: &str, needs_mark: bool) -> Result<(), String> {
        let (marks, text) = (marks(block)?, prose(block));
        let fence = block.lines().find_map(|line| line.strip_prefix("```"));
        let is_input = fence.is_some_and(|it| INPUT.contains(&it)) && !block.contains("\n$ ");
        let mut left = figures(&text);
        if left.is_empty() {
            let sourced = marks.iter().any(|mark| matches!(mark, Mark::Figures(_)));
            return if sourced { Err("its mark is of no figure".into()) } else { Ok(()) };
        }
        if marks.is_empty() {
            let wrong = needs_mark && !is_input;
            return if wrong { Err(format!("{left:?} have no mark")) } else { Ok(()) };
        }
        for mark in &marks {
            match mark {
                Mark::Output | Mark::NoFigure => left.clear(),
                Mark::Measured(list) if list.is_empty() => left.clear(),
                Mark::Measured(list) => {
                    if let Some(gone) = list.iter().find(|figure| !left.contains(figure)) {
                        return Err(format!("{gone}, measured, is not there"));
                    }
                    left.retain(|figure| !list.contains(figure));
                }
                Mark::Figures(sources) => {
                    for source in sources {
                        let there = self.numbers(source)?;
                        left.retain(|figure| !there.contains(&plain(figure)));
                    }
                }
            }
        }
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?} are not in its sources")) }
    }
}

#[test]
fn every_figure_of_a_page_has_its_source() {
    let findings = Findings::new();
    let mut sources = Sources { root: &findings.root, read: BTreeMap::new() };
    let mut wrong = Vec::new();
    for page in findings.pages().iter().filter(|page| page.ends_with(".md")) {
        let text = fs::read_to_string(findings.root.join(page)).expect("a page");
        for (line, block) in blocks(&text) {
            let checked = sources.check(&block, MARKED.contains(&page.as_str()));
            wrong.extend(checked.err().map(|why| format!("{page}:{line}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn figures_are_numbers_with_a_point_or_three_digits() {
    let text = "By 0.260 (2,048.5 of 37), in 2.62–4.51 us on Linux 6.1, an MCP2518FD of 2016, with 104 or 2042.";
    assert_eq!(figures(text), ["0.260", "2,048.5", "2.62", "4.51", "104"]);
    assert_eq!(figures("Linux 3.14, 4.4 and Linux 6.12 take 1.5"), ["1.5"], "a list of versions");
    let shown = prose("a `--x 0.5` b [0.25](c.md#1.5) <!-- measured: x, 2026-01-02 --> 0.75");
    assert_eq!(figures(&shown), ["0.25", "0.75"]);
}

#[test]
fn a_figure_without_a_source_is_found() {
    let root = tempfile::tempdir().expect("a temporary directory");
    fs::write(root.path().join("a.txt"), "x 1_024 y 0.5").expect("a file is written");
    let mut sources = Sources { root: root.path(), read: BTreeMap::new() };
    for (block, why) in [
        ("It is 0.5.", "[\"0.5\"] have no mark"),
        ("| a | 120 |\n|---|---|", "have no mark"),
        ("```text\n0.5\n```", "have no mark"),
        ("```\n$ barewire demo\n0.5\n```", "have no mark"),
        ("<!-- figures: file a.txt -->\n0.51", "[\"0.51\"] are not in its sources"),
        ("<!-- figures: file a.txt -->\nnone", "its mark is of no figure"),
        ("<!-- figures: file b.txt -->\n0.5", "b.txt: No such file"),
        ("<!-- figures: ls -->\n0.5", "ls is no source"),
        ("<!-- measured: by hand -->\n0.5", "\"by hand\" ends with no date"),
        ("<!-- measured: by hand, 2026-01-02: 0.5 -->\n0.5 0.6", "[\"0.6\"] are not in"),
        ("<!-- measured: by hand, 2026-01-02: 0.5 -->\n0.6", "0.5, measured, is not there"),
        ("<!-- no figure: I like it -->\n0.5", "is no reason"),
    ] {
        let said = sources.check(block, true).expect_err(block);
        assert!(said.contains(why), "{block}: {said}");
    }
    for block in [
        "<!-- figures: file a.txt -->\n1,024 of 0.5",
        "0.5, 0.6 <!-- figures: file a.txt --> <!-- measured: a clock, 2026-01-02: 0.6 -->",
        "```\nbarewire demo --x 0.5\n```",
        "<!-- measured: barewire bench, 2026-01-02 -->\n| 0.5 |\n|---|",
    ] {
        assert_eq!(sources.check(block, true), Ok(()), "{block}");
    }
    assert_eq!(
        blocks("a\nb\n\n```\nc\n\nd\n```\n"),
        [(1, "a\nb\n".into()), (4, "```\nc\n\nd\n```\n".into())]
    );
}
