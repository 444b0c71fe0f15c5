//! Rules on single files: white space, length, module docs, leftovers, machine paths.

use super::{Finding, Source};

/// For a Rust file this long, tidy asks whether it should be two.
const LINES_LIMIT: usize = 800;

/// Words that mean unfinished, and what to do instead. In pieces: see the parent module.
const LEFTOVERS: [(&str, &str); 6] = [
    (concat!("to", "do!("), "write it, or return a typed error"),
    (concat!("un", "implemented!("), "write it, or return a typed error"),
    (concat!("FIX", "ME"), "fix it, or open an issue"),
    (concat!("X", "XX"), "say what is meant, or open an issue"),
    (concat!("d", "bg!("), "delete it"),
    (concat!("#[", "ignore"), "print a line beginning SKIPPED: where the test cannot run"),
];

/// Directories that exist on one machine only.
const MACHINE_PATHS: [&str; 3] =
    [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/")];

/// Every rule of this file on one source.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = line_ends(source);
    findings.extend(machine_paths(source));
    if source.is_rust() {
        findings.extend(tabs(source));
        findings.extend(length(source));
        findings.extend(module_doc(source));
        findings.extend(leftovers(source));
    }
    findings
}

fn line_ends(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.lines() {
        if line.ends_with('\r') {
            findings.push(
                source
                    .finding(number, "carriage return at the end of the line; use plain newlines"),
            );
        } else if line.ends_with(char::is_whitespace) {
            findings.push(source.finding(number, "trailing white space; delete it"));
        }
    }
    if !source.text.is_empty() && !source.text.ends_with('\n') {
        let last = source.lines().count();
        findings.push(source.finding(last, "no newline at the end of the file; add one"));
    }
    findings
}

fn tabs(source: &Source) -> Vec<Finding> {
    let tabbed = source.lines().filter(|(_, line)| line.contains('\t'));
    tabbed
        .map(|(number, _)| source.finding(number, "tab in Rust source; use spaces or `\\t`"))
        .collect()
}

fn length(source: &Source) -> Option<Finding> {
    let count = source.lines().count();
    let message =
        format!("{count} lines, {LINES_LIMIT} or more; this file is two rooms, give each its own");
    (count >= LINES_LIMIT).then(|| source.finding(LINES_LIMIT, message))
}

fn module_doc(source: &Source) -> Option<Finding> {
    let message = "no module doc on the first line; begin with `//!` and what belongs in this file";
    (!source.text.starts_with("//!")).then(|| source.finding(1, message))
}

fn leftovers(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.lines() {
        for (word, remedy) in LEFTOVERS {
            if has_word(line, word) {
                findings.push(source.finding(number, format!("leftover `{word}`; {remedy}")));
            }
        }
    }
    findings
}

fn machine_paths(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.lines() {
        for path in MACHINE_PATHS {
            if has_absolute(line, path) {
                let message =
                    format!("`{path}` is a path of one machine; make it relative, or an argument");
                findings.push(source.finding(number, message));
            }
        }
    }
    findings
}

/// Whether `line` has `path` where an absolute path can begin: not inside a longer path or in that
/// of a URL.
fn has_absolute(line: &str, path: &str) -> bool {
    let part_of_longer = |c: char| c.is_alphanumeric() || "_-.)}".contains(c);
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(part_of_longer))
}

/// Whether `text` has `word` standing alone: no letter, digit, `_` or `-` on a side where the
/// word itself ends in one.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let open_start = word.starts_with(joins);
    let open_end = word.ends_with(joins);
    text.match_indices(word).any(|(at, _)| {
        let before = open_start && text[..at].ends_with(joins);
        let after = open_end && text[at + word.len()..].starts_with(joins);
        !before && !after
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, source};
    use super::*;

    const CLEAN: &str = "//! A room.\n\nfn f() {}\n";

    fn rust(text: &str) -> Vec<String> {
        found(&check(&source("a.rs", text)))
    }

    #[test]
    fn clean_files_have_no_findings() {
        assert!(rust(CLEAN).is_empty());
        assert!(check(&source("empty.txt", "")).is_empty());
        assert!(check(&source("Makefile", "all:\n\tcargo build\n")).is_empty());
    }

    #[test]
    fn line_ends_are_checked_in_every_file() {
        let findings = check(&source("a.md", "one \ntwo\t\nthree\r\nfour"));
        assert_eq!(
            found(&findings),
            [
                "a.md:1: trailing white space",
                "a.md:2: trailing white space",
                "a.md:3: carriage return at the end of the line",
                "a.md:4: no newline at the end of the file",
            ]
        );
    }

    #[test]
    fn tabs_are_refused_in_rust() {
        assert_eq!(rust("//! A room.\n\tfn f() {}\n"), ["a.rs:2: tab in Rust source"]);
    }

    #[test]
    fn the_limit_is_exact() {
        let lines = |count: usize| format!("//! A room.\n{}", "\n".repeat(count - 1));
        assert!(rust(&lines(799)).is_empty());
        assert_eq!(rust(&lines(800)), ["a.rs:800: 800 lines"]);
        assert_eq!(rust(&lines(801)).len(), 1);
    }

    #[test]
    fn rust_begins_with_its_doc() {
        assert_eq!(rust("use std::fmt;\n"), ["a.rs:1: no module doc on the first line"]);
        assert_eq!(rust(""), ["a.rs:1: no module doc on the first line"]);
    }

    #[test]
    fn each_leftover_is_found() {
        for (word, _) in LEFTOVERS {
            assert_eq!(rust(&format!("//! A room.\n{word}\n")).len(), 1, "{word}");
        }
        assert!(check(&source("a.md", concat!("FIX", "ME\n"))).is_empty());
    }

    #[test]
    fn longer_words_are_no_leftovers() {
        let mask = format!(
            "//! A mask of {0}{0}.\nlet not_{1};\n",
            concat!("X", "XX"),
            concat!("d", "bg!()")
        );
        assert!(rust(&mask).is_empty(), "{:?}", rust(&mask));
    }

    #[test]
    fn machine_paths_are_found_in_every_file() {
        for path in MACHINE_PATHS {
            let findings = check(&source("a.toml", &format!("dir = \"{path}x\"\n")));
            assert_eq!(findings.len(), 1, "{path}");
        }
        let relative = format!("see docs{0}page and example.org{0}page\n", MACHINE_PATHS[1]);
        assert!(check(&source("a.md", &relative)).is_empty());
    }

    #[test]
    fn words_end_where_names_end() {
        assert!(has_word("uses `clap` for", "clap"));
        assert!(has_word("clap", "clap"));
        assert!(!has_word("clap_derive, clap-complete, eclap", "clap"));
        assert!(has_word("clap_derive and clap", "clap"));
    }
}
