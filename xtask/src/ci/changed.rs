//! `--changed`: which steps have something to check since the branch left its base.

use std::fmt;
use std::path::Path;

use crate::child::Task;
use crate::report::plural;
use crate::step::Step;

/// Paths that concern every step.
const EVERYWHERE: [&str; 6] =
    ["Cargo.toml", "Cargo.lock", ".cargo/", "rust-toolchain.toml", "xtask/", ".ci/"];

/// Branches that changes are made for, the first that exists.
const BASES: [&str; 4] = ["@{upstream}", "origin/main", "origin/HEAD", "main"];

/// The files that differ from the merge base.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChangedFiles {
    base: String,
    files: Vec<String>,
}

impl ChangedFiles {
    /// The files that changed under `root` since the branch left `base`, committed or not. If `base` is empty,
    /// the branch is searched for.
    pub(super) fn since(root: &Path, base: &str) -> Result<Self, String> {
        let git = |args: &[&str]| Task::new("git", args).answer(root);
        let merge_base = |base: &str| Some(git(&["merge-base", "HEAD", base])?.trim().to_owned());
        let found = match base {
            "" => BASES.iter().find_map(|name| Some(((*name).to_owned(), merge_base(name)?))),
            name => merge_base(name).map(|commit| (name.to_owned(), commit)),
        };
        let (base, commit) = found.ok_or_else(|| match base {
            "" => "since when? no upstream branch and no `main`: --changed=COMMIT".to_owned(),
            name => format!("`{name}` has no commit in common with this branch"),
        })?;
        let listed = git(&["diff", "--name-only", "-z", &commit]).unwrap_or_default();
        let new = git(&["ls-files", "-z", "--others", "--exclude-standard"]).unwrap_or_default();
        let files = listed.split('\0').chain(new.split('\0')).filter(|name| !name.is_empty());
        Ok(Self { base, files: files.map(str::to_owned).collect() })
    }

    /// The base of the comparison, as the user named it.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Whether a step has something to check. A step without paths always has.
    pub(super) fn touches(&self, step: &Step) -> bool {
        let among = |paths: &[&str]| {
            self.files.iter().any(|file| paths.iter().any(|path| file.starts_with(path)))
        };
        step.paths.is_empty() || among(step.paths) || among(&EVERYWHERE)
    }
}

impl fmt::Display for ChangedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} changed since {}", plural(self.files.len(), "file"), self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::super::STEPS;
    use super::*;

    fn touched(files: &[&str]) -> Vec<&'static str> {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        let changed = ChangedFiles { base: "main".into(), files };
        STEPS.iter().filter(|step| changed.touches(step)).map(|step| step.name).collect()
    }

    #[test]
    fn a_change_of_the_core_asks_for_its_checkers() {
        let steps = touched(&["stack/barewire/src/bus/word.rs"]);
        for name in ["fmt", "test", "loom", "shuttle", "miri", "no_std", "guests"] {
            assert!(steps.contains(&name), "{name} is not among {steps:?}");
        }
        assert!(!steps.contains(&"iommu"), "{steps:?}");
    }

    #[test]
    fn a_change_of_a_page_asks_for_the_tests_alone() {
        let steps = touched(&["docs/users.md"]);
        assert_eq!(steps, ["fmt", "tidy", "clippy", "test"]);
    }

    #[test]
    fn a_change_of_the_page_tables_asks_for_their_lane_and_not_for_guests() {
        let steps = touched(&["iommu/barewire-iommu-model/src/tlb.rs"]);
        assert!(steps.contains(&"iommu") && !steps.contains(&"guests"), "{steps:?}");
    }

    #[test]
    fn a_change_of_the_manifest_asks_for_all() {
        assert_eq!(touched(&["Cargo.lock"]).len(), STEPS.len());
    }

    #[test]
    fn each_path_of_a_step_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for step in STEPS {
            for path in step.paths {
                assert!(root.join(path).exists(), "{}: {path}", step.name);
            }
        }
    }

    #[test]
    fn an_unknown_base_is_an_error() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let why = ChangedFiles::since(root, "no-such-branch").expect_err("unknown");
        assert!(why.contains("no-such-branch"), "{why}");
        assert_eq!(
            ChangedFiles::since(root, "HEAD").map(|changed| changed.base),
            Ok("HEAD".into())
        );
    }
}
