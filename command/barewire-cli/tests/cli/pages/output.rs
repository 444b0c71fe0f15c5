//! Blocks of pages that show what a command prints: `<!-- output: barewire … -->` stands before them. And paragraphs with
//! figures of a command: `<!-- figures: barewire … -->` stands before them, and each number with a point in them is in
//! what the command prints.
//!
//! Set `BAREWIRE_BLESS=1` to write the blocks anew, then review the difference.

use std::fs;

use super::Findings;
use crate::command::run;

/// The commands of a page's marks, each with the block behind it. The errors are marks without a block.
fn marked(page: &str) -> Vec<Result<(Vec<&str>, &str), String>> {
    let parts = page.split("<!-- output: ").skip(1);
    parts
        .map(|part| {
            let (command, rest) = part.split_once(" -->\n").ok_or("a mark has no end")?;
            let block = rest.strip_prefix("```text\n").and_then(|rest| rest.split_once("```\n"));
            let (block, _) = block.ok_or_else(|| format!("no block behind {command:?}"))?;
            let words =
                command.strip_prefix("barewire ").ok_or_else(|| format!("not ours: {command}"))?;
            Ok((words.split(' ').collect(), block))
        })
        .collect()
}

#[test]
fn a_marked_block_is_what_its_command_prints() {
    let findings = Findings::new();
    let mut seen = 0;
    for page in findings.pages() {
        let text = fs::read_to_string(findings.root.join(&page)).expect("a page");
        for found in marked(&text) {
            let (words, block) = found.unwrap_or_else(|why| panic!("{page}: {why}"));
            let printed = run(&words).ok().text();
            seen += 1;
            if block != printed && std::env::var_os("BAREWIRE_BLESS").is_some() {
                let path = findings.root.join(&page);
                let now = fs::read_to_string(&path).expect("a page");
                let old = format!("-->\n```text\n{block}```\n");
                assert!(now.contains(&old), "{page}: the block is there");
                let new = now.replacen(&old, &format!("-->\n```text\n{printed}```\n"), 1);
                fs::write(&path, new).expect("the page can be written");
                continue;
            }
            assert_eq!(block, printed, "{page}: barewire {}", words.join(" "));
        }
    }
    assert!(seen > 0, "README.md has one");
}

/// The commands of a page's marks of figures, each with the numbers of the paragraph behind it.
fn paragraphs(page: &str) -> Vec<(Vec<&str>, Vec<&str>)> {
    let parts = page.split("<!-- figures: barewire ").skip(1);
    parts
        .map(|part| {
            let (command, rest) = part.split_once(" -->\n").expect("a mark has an end");
            let paragraph = rest.split("\n\n").next().unwrap_or(rest);
            (command.split(' ').collect(), numbers(paragraph))
        })
        .collect()
}

/// The numbers with a point, as they stand there.
fn numbers(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ',');
    let words = words.map(|word| word.trim_matches(['.', ',']));
    words.filter(|word| word.contains('.') && word.split('.').count() == 2).collect()
}

#[test]
fn a_marked_paragraph_has_figures_of_its_command() {
    let findings = Findings::new();
    let mut wrong = Vec::new();
    for page in findings.pages() {
        let text = fs::read_to_string(findings.root.join(&page)).expect("a page");
        for (command, figures) in paragraphs(&text) {
            assert!(!figures.is_empty(), "{page}: no figure behind {command:?}");
            let printed = run(&command).ok().text();
            let there = numbers(&printed);
            let missing = figures.into_iter().filter(|figure| !there.contains(figure));
            wrong.extend(missing.map(|figure| format!("{page}: {figure}, of {command:?}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_numbers_of_a_paragraph_are_those_with_a_point() {
    let text = "By 0.260 (2,048.5 of 37), in 2.62–4.51 us, not 5.18-rc1. 6.1.0 neither, 7 neither.";
    assert_eq!(numbers(text), ["0.260", "2,048.5", "2.62", "4.51", "5.18"]);
    let page = "<!-- figures: barewire lab run -->\nIt is 0.5.\n\nThis 0.7 is no figure of it.\n";
    assert_eq!(paragraphs(page), [(vec!["lab", "run"], vec!["0.5"])]);
}

#[test]
fn a_mark_has_a_command_of_ours_and_a_block() {
    let page = "a\n<!-- output: barewire demo -->\n```text\nx\ny\n```\nb\n";
    assert_eq!(marked(page), [Ok((vec!["demo"], "x\ny\n"))]);
    for wrong in [
        page.replace("```text", "```"),
        page.replace("barewire demo", "ls"),
        page.replace(" -->", ""),
    ] {
        assert!(matches!(marked(&wrong)[..], [Err(_)]), "{wrong}");
    }
}

/// A reader decides on the first screen.
#[test]
fn the_first_screen_of_the_readme_ends_with_the_status() {
    let root = Findings::new().root;
    let readme = fs::read_to_string(root.join("README.md")).expect("a page");
    let screen = readme.lines().take(60).collect::<Vec<_>>();
    let at = |begin: &str| screen.iter().position(|line| line.starts_with(begin));
    let places = [
        "```\ncargo install",
        "**Use it if**",
        "**Not if**",
        "## Two commands",
        "**Not on silicon yet.**",
    ];
    let places = places.map(|begin| at(begin.trim_start_matches("```\n")));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    assert!(
        readme.lines().nth(60).is_some_and(|line| line.starts_with("## ")),
        "line 61 begins the rest"
    );
    let long = readme.lines().find(|line| !line.starts_with('|') && line.chars().count() > 125);
    assert_eq!(long, None);
}
