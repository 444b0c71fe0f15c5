//! The lists that ARCHITECTURE.md must have: every file that allows unsafe code, every external
//! dependency.
//!
//! The lists are for reviewers: a new line in one of them is the moment to ask whether it must be.

use super::manifest::dependencies;
use super::text::has_word;
use super::{Finding, Source};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// The manifests of the two workspaces.
const WORKSPACES: [&str; 2] = ["Cargo.toml", "iommu/Cargo.toml"];
const SECTION: &str = "Files that allow unsafe";
/// The lint by which a file opts in.
const LINT: &str = "unsafe_code";

/// Every rule of this file.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let Some(architecture) = sources.iter().find(|source| source.path == ARCHITECTURE) else {
        let path = ARCHITECTURE.to_string();
        let message =
            "no such tracked file; write it, it lists unsafe files and dependencies".into();
        return vec![Finding { path, line: 1, message }];
    };
    let mut findings = unlisted(sources, architecture);
    findings.extend(stale(sources, architecture));
    findings.extend(unexplained(sources, architecture));
    findings
}

/// Files that opt in without standing in the list.
fn unlisted(sources: &[Source], architecture: &Source) -> Vec<Finding> {
    let listed = listed(architecture);
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let Some(line) = opts_in(source) else {
            continue;
        };
        if !listed.iter().any(|(_, path)| *path == source.path) {
            let message = format!(
                "allows unsafe code unlisted; add its path under \"{SECTION}\" in {ARCHITECTURE}"
            );
            findings.push(source.finding(line, message));
        }
    }
    findings
}

/// Listed paths that are gone, or need no unsafe code any more.
fn stale(sources: &[Source], architecture: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, path) in listed(architecture) {
        let message = match sources.iter().find(|source| source.path == path) {
            None => format!("`{path}` is no tracked file; correct or delete the entry"),
            Some(source) if opts_in(source).is_none() => {
                format!("`{path}` does not allow unsafe code; delete the entry")
            }
            Some(_) => continue,
        };
        findings.push(architecture.finding(line, message));
    }
    findings
}

/// External dependencies that ARCHITECTURE.md does not account for.
fn unexplained(sources: &[Source], architecture: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in sources.iter().filter(|source| WORKSPACES.contains(&source.path.as_str())) {
        for dependency in dependencies(&manifest.text) {
            let ours = has_word(&dependency.value, "path");
            let shared = dependency.table == "workspace.dependencies";
            if shared && !ours && !has_word(&architecture.text, &dependency.name) {
                let message = format!(
                    "dependency `{}` is not in {ARCHITECTURE}; name it there with the reason we need it",
                    dependency.name
                );
                findings.push(manifest.finding(dependency.line, message));
            }
        }
    }
    findings
}

/// The paths in the section, each with its line: words that contain a slash and end in `.rs`.
fn listed(architecture: &Source) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    let mut depth = None;
    let mut fenced = false;
    for (number, line) in architecture.lines() {
        fenced ^= line.starts_with("```");
        // In a fenced block `#` opens a comment, not a section.
        let level = line.chars().take_while(|c| *c == '#').count();
        if level > 0 && !fenced && depth.is_none_or(|open| level <= open) {
            depth = line.contains(SECTION).then_some(level);
        } else if depth.is_some() {
            let part_of_path = |c: char| c.is_alphanumeric() || "/_-.".contains(c);
            let words = line.split(|c| !part_of_path(c)).map(|word| word.trim_end_matches('.'));
            let found = words.filter(|word| word.contains('/') && word.ends_with(".rs"));
            paths.extend(found.map(|path| (number, path.to_string())));
        }
    }
    paths
}

/// The line of the attribute by which the file allows unsafe code.
///
/// Read over line ends, because rustfmt breaks an attribute with a long reason.
fn opts_in(source: &Source) -> Option<usize> {
    let text = &source.text;
    let mut calls: Vec<usize> = Vec::new();
    for opener in ["allow(", "expect("] {
        calls.extend(text.match_indices(opener).map(|(at, _)| at + opener.len()));
    }
    calls.sort_unstable();
    let found = calls.into_iter().find(|&at| !in_comment(text, at) && names_lint(&text[at..]));
    found.map(|at| text[..at].matches('\n').count() + 1)
}

/// Whether the list that `inner` opens names the lint.
fn names_lint(inner: &str) -> bool {
    let list = inner.split([')', '=']).next().unwrap_or_default();
    list.split(',').any(|lint| lint.trim() == LINT)
}

fn in_comment(text: &str, at: usize) -> bool {
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    line.contains("//")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, source};
    use super::*;

    const OPTED_IN: &str =
        concat!("//! x\n#![al", "low(unsafe_code, reason = \"volatile access, see the doc\")]\n");

    fn architecture(list: &str) -> Source {
        source(
            ARCHITECTURE,
            &format!("# A\n\n## {SECTION}\n\n{list}\n\n## Next\n`c/src/other.rs`\n"),
        )
    }

    #[test]
    fn an_attribute_opts_in_however_it_is_written() {
        let line = |text: &str| opts_in(&source("a.rs", text));
        assert_eq!(line(OPTED_IN), Some(2));
        assert_eq!(line(concat!("#[ex", "pect(unsafe_code)]")), Some(1));
        assert_eq!(
            line(concat!("\n#![al", "low(\n    unsafe_code,\n    reason = \"x\"\n)]")),
            Some(2)
        );
        assert_eq!(line(concat!("#[al", "low(dead_code, unsafe_code)]")), Some(1));
        assert_eq!(line(concat!("#![cfg_attr(miri, al", "low(unsafe_code))]")), Some(1));
    }

    #[test]
    fn other_lints_and_comments_do_not_opt_in() {
        let line = |text: &str| opts_in(&source("a.rs", text));
        assert_eq!(line(concat!("// #![al", "low(unsafe_code)]")), None);
        assert_eq!(line(concat!("#![al", "low(dead_code, reason = \"no unsafe_code\")]")), None);
        assert_eq!(line(concat!("#![al", "low(unsafe_code_not)]")), None);
        assert_eq!(line("value.expect(\"unsafe_code\")"), None);
        assert_eq!(line("#![deny(unsafe_code)]"), None);
    }

    #[test]
    fn list_and_files_must_agree() {
        let file = source("c/src/mmio.rs", OPTED_IN);
        assert!(check(&[architecture("- `c/src/mmio.rs`: volatile"), file.clone()]).is_empty());
        assert_eq!(
            found(&check(&[architecture("None yet."), file])),
            ["c/src/mmio.rs:2: allows unsafe code unlisted"]
        );
    }

    #[test]
    fn entries_without_a_reason_to_be_there_are_stale() {
        let plain = source("c/src/plain.rs", "//! x\n");
        let list = "| file | why |\n| c/src/gone.rs | x |\n| `c/src/plain.rs` | x |";
        assert_eq!(
            found(&check(&[architecture(list), plain])),
            [
                "ARCHITECTURE.md:6: `c/src/gone.rs` is no tracked file",
                "ARCHITECTURE.md:7: `c/src/plain.rs` does not allow unsafe code",
            ]
        );
    }

    #[test]
    fn only_paths_in_the_section_are_entries() {
        let list = "See `mmio.rs`.\n### Why\n```\n# not a heading c/a.rs\n```\n(c/b.rs), c/d.rs.";
        let paths: Vec<_> = listed(&architecture(list)).into_iter().map(|(_, path)| path).collect();
        assert_eq!(paths, ["c/a.rs", "c/b.rs", "c/d.rs"]);
    }

    #[test]
    fn external_dependencies_are_accounted_for() {
        let manifest = "[workspace.dependencies]\nbarewire = { path = \"stack/barewire\" }\n\
                        clap = \"4\"\nserde = \"1\"\n";
        let mut tree = [architecture("None."), source("Cargo.toml", manifest)];
        assert_eq!(
            found(&check(&tree)),
            [
                "Cargo.toml:3: dependency `clap` is not in ARCHITECTURE.md",
                "Cargo.toml:4: dependency `serde` is not in ARCHITECTURE.md",
            ]
        );
        tree[0].text += "- `clap`: the command line; `serde_json`: JSON\n- `serde`: JSON\n";
        assert!(check(&tree).is_empty());
        tree[1].path = "iommu/Cargo.toml".into();
        tree[1].text += "loom = \"0.7\"\n";
        assert_eq!(
            found(&check(&tree)),
            ["iommu/Cargo.toml:5: dependency `loom` is not in ARCHITECTURE.md"]
        );
    }

    #[test]
    fn a_missing_file_is_one_finding() {
        assert_eq!(
            found(&check(&[source("a.rs", OPTED_IN)])),
            ["ARCHITECTURE.md:1: no such tracked file"]
        );
    }
}
