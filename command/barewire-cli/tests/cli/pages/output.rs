//! Blocks of pages that show what a command prints: `<!-- output: barewire … -->` stands before them.
//!
//! Set `BAREWIRE_BLESS=1` to write the blocks anew, then review the difference.

use std::fs;
use std::path::Path;

use super::Findings;
use crate::command::{Ran, barewire};

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

/// What a command prints at the repository's root, where pages have their files.
pub(super) fn in_root(root: &Path, words: &[&str]) -> String {
    let ran = barewire(words).current_dir(root).output().expect("the command starts");
    Ran::from(ran).ok().text()
}

#[test]
fn a_marked_block_is_what_its_command_prints() {
    let findings = Findings::new();
    let mut seen = 0;
    for page in findings.pages() {
        let text = fs::read_to_string(findings.root.join(&page)).expect("a page");
        for found in marked(&text) {
            let (words, block) = found.unwrap_or_else(|why| panic!("{page}: {why}"));
            let printed = in_root(&findings.root, &words);
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
