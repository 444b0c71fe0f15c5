//! Whether a list of the controllers on a page names all of them, and whether a page counts them right: a new
//! controller does not change a page by itself.

use std::fs;

use super::Findings;
use crate::command::run;

/// A list that lacks more controllers than this is taken for a list of some of them: QEMU models four.
const LACKED: usize = 1;

/// Small numbers as pages write them.
const NUMBERS: [&str; 10] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/// The controllers that the command drives, by the names of `controller=`.
fn controllers() -> Vec<String> {
    let said = run(&["selftest", "--bus", "mem:0x0,controller=none"]).stderr;
    let names = said.rsplit_once("(known: ").and_then(|(_, rest)| rest.split_once(')'));
    let (names, _) = names.unwrap_or_else(|| panic!("no list in {said:?}"));
    names.split(", ").map(str::to_owned).collect()
}

/// Whether a text names the controller.
fn is_named(controller: &str, text: &str) -> bool {
    let also: &[&str] = match controller {
        "dw-ssi" => &["dw_apb_ssi", "dw-apb-ssi", "dw_ssi", "designware"],
        _ => &[],
    };
    std::iter::once(&controller).chain(also).any(|name| text.contains(name))
}

/// A page's paragraphs, points of lists and rows of tables, with their first lines' numbers.
fn items(page: &str) -> Vec<(usize, String)> {
    let mut items: Vec<(usize, String)> = Vec::new();
    let mut fresh = true;
    for (index, line) in page.lines().enumerate() {
        let text = line.trim_start();
        let number = text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(". ");
        let begins = text.starts_with(['|', '-', '*', '#']) || number;
        match items.last_mut() {
            Some((_, item)) if !fresh && !begins => {
                item.push(' ');
                item.push_str(text);
            }
            _ => items.push((index + 1, text.to_owned())),
        }
        fresh = text.is_empty();
    }
    items
}

/// The errors in a page's lists and counts of `controllers`.
fn wrong(page: &str, text: &str, controllers: &[String]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (line, item) in items(text) {
        let item = item.to_lowercase();
        let lacks: Vec<_> = controllers.iter().filter(|name| !is_named(name, &item)).collect();
        if !lacks.is_empty() && lacks.len() <= LACKED {
            wrong.push(format!("{page}:{line}: names all controllers but {lacks:?}"));
        }
        let counts = NUMBERS.iter().enumerate().filter(|(count, _)| *count != controllers.len());
        for (_, number) in counts {
            for what in
                ["of the N blocks", "all N blocks", "the N controllers", "all N controllers"]
            {
                if item.contains(&what.replace('N', number)) {
                    wrong.push(format!(
                        "{page}:{line}: {number} of {} controllers",
                        controllers.len()
                    ));
                }
            }
        }
    }
    wrong
}

#[test]
fn lists_of_the_controllers_name_all_of_them() {
    let (findings, controllers) = (Findings::new(), controllers());
    assert!(controllers.len() > 4, "{controllers:?}");
    let mut problems = Vec::new();
    let mut listed = 0;
    for page in findings.pages().iter().filter(|page| page.ends_with(".md")) {
        let text = fs::read_to_string(findings.root.join(page)).expect("a page");
        problems.extend(wrong(page, &text, &controllers));
        let whole = |(_, item): &(usize, String)| {
            controllers.iter().all(|name| is_named(name, &item.to_lowercase()))
        };
        listed += items(&text).iter().filter(|item| whole(item)).count();
    }
    assert!(listed > 2, "the pages list them");
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn a_list_that_lacks_one_is_found() {
    let known =
        ["ecspi", "bcm2835", "pl022", "atmel", "dw-ssi", "sifive", "cadence"].map(str::to_owned);
    for (text, count) in [
        ("- ECSPI, BCM2835, PL022, Atmel's,\n  DW_apb_ssi, SiFive\n- Cadence", 1),
        ("- ECSPI, BCM2835, PL022, Atmel's,\n  DW_apb_ssi, SiFive's and Cadence's", 0),
        ("ECSPI and BCM2835 have it", 0),
        ("| ECSPI, BCM2835 |\n| PL022, Atmel, dw-ssi |", 0),
        ("a board with one of the\nfour blocks", 1),
        ("a board with one of the seven blocks", 0),
    ] {
        assert_eq!(wrong("page", text, &known).len(), count, "{text}");
    }
}
