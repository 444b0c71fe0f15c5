//! `cargo …` as pages write it: packages, targets, features, profiles and tests must exist. `cargo xtask …` too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Arg, ArgAction, ArgMatches};
use serde_json::Value;

const COMMANDS: &str = "bench build check clippy deny doc fmt fuzz install login metadata package publish run rustc test yank";
const VALUED: &str = "test example bin features profile target-dir target exclude manifest-path format-version path version";
const FLAGS: &str = "release workspace all lib bins doc all-targets no-fail-fast no-deps open locked dry-run undo no-run check \
                     quiet";
/// Programs of other authors that pages install from crates.io.
const TOOLS: [&str; 2] = ["cargo-deny", "cargo-fuzz"];

/// The workspaces of this repository. The workspace in `iommu/` tests its own pages.
pub(super) struct Cargo {
    root: PathBuf,
    workspaces: Vec<(&'static str, Workspace)>,
}

struct Workspace {
    packages: Vec<Value>,
    manifest: String,
}

impl Cargo {
    pub(super) fn read(root: &Path) -> Self {
        let workspaces = ["", "fuzz", "examples/firmware", "kernel"]
            .map(|dir| (dir, Workspace::read(&root.join(dir))));
        Self { root: root.into(), workspaces: workspaces.into() }
    }

    /// Checks a command that runs in `dir`. Returns the command line of `barewire`, if it runs that.
    pub(super) fn check(&self, words: &[String], dir: &str) -> Result<Option<Vec<String>>, String> {
        let words = words[1..].iter().filter(|word| !word.starts_with('+') && *word != "miri");
        let words: Vec<&str> = words.map(String::as_str).collect();
        if let ["xtask", rest @ ..] = &words[..] {
            return xtask(rest).map(|()| None);
        }
        let mut found = None;
        let parsed = definition().try_get_matches_from(&words).map(|matches| found = Some(matches));
        super::parsed(parsed, false)?;
        let Some(matches) = found else { return Ok(None) };
        let command = all(&matches, "command").next().unwrap_or_default();
        let manifest = all(&matches, "manifest-path").next();
        let place =
            manifest.map_or(dir, |path| path.trim_end_matches("Cargo.toml").trim_end_matches('/'));
        // Commands of another workspace, with a loop's variable, or of a tool with its own options,
        // are not checked.
        if place == "iommu" || place.contains('$') || command == "deny" {
            return Ok(None);
        }
        let workspace = self.workspaces.iter().find(|(dir, _)| *dir == place);
        let (_, workspace) = workspace.ok_or_else(|| format!("no workspace in {place:?}"))?;
        if let Some(path) = all(&matches, "path").find(|path| !self.root.join(path).is_dir()) {
            return Err(format!("no directory {path}"));
        }
        workspace.check(&matches, command)?;
        let ours = all(&matches, "package").all(|name| name == "barewire-cli");
        let other = all(&matches, "example").chain(all(&matches, "bin")).next().is_some();
        let behind: Vec<_> = all(&matches, "behind").map(String::from).collect();
        let is_ours = command == "run" && dir.is_empty() && ours && !other && !behind.is_empty();
        Ok(is_ours.then(|| ["barewire".to_owned()].into_iter().chain(behind).collect()))
    }
}

/// Cargo's command line, as far as pages use it.
fn definition() -> clap::Command {
    let command =
        Arg::new("command").required(true).value_parser(COMMANDS.split(' ').collect::<Vec<_>>());
    let package = Arg::new("package").short('p').long("package").action(ArgAction::Append);
    let plain = [Arg::new("plain").num_args(0..), Arg::new("behind").last(true).num_args(0..)];
    let valued =
        VALUED.split_whitespace().map(|name| Arg::new(name).long(name).action(ArgAction::Append));
    let flags =
        FLAGS.split_whitespace().map(|name| Arg::new(name).long(name).action(ArgAction::SetTrue));
    let cargo = clap::Command::new("cargo").no_binary_name(true).args([command, package]);
    cargo.args(plain).args(valued).args(flags)
}

fn all<'m>(matches: &'m ArgMatches, name: &str) -> impl Iterator<Item = &'m str> {
    matches.get_many::<String>(name).into_iter().flatten().map(String::as_str)
}

impl Workspace {
    fn read(dir: &Path) -> Self {
        let manifest = dir.join("Cargo.toml");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
            .arg(&manifest);
        let said = cargo.output().expect("cargo starts");
        let said: Value = serde_json::from_slice(&said.stdout).expect("metadata is JSON");
        let packages = list(&said["packages"]).cloned().collect();
        Self { packages, manifest: fs::read_to_string(manifest).expect("a manifest") }
    }

    fn check(&self, matches: &ArgMatches, command: &str) -> Result<(), String> {
        let all = |name| all(matches, name);
        let must = |what: &str, name: &str, is: bool| match is {
            true => Ok(()),
            false => Err(format!("no {what} {name:?}")),
        };
        let plain: Vec<_> = all("plain").filter(|word| !TOOLS.contains(word)).collect();
        let others = plain.iter().copied().filter(|_| ["install", "yank"].contains(&command));
        let named: Vec<_> = all("package").chain(all("exclude")).chain(others).collect();
        let is_named =
            |package: &&Value| named.is_empty() || named.iter().any(|n| package["name"] == *n);
        let scope = || self.packages.iter().filter(is_named);
        for name in &named {
            must("package", name, scope().any(|package| package["name"] == **name))?;
        }
        let fuzzed = plain.last().filter(|_| command == "fuzz").map(|name| ("bin", *name));
        let targets = ["test", "example", "bin"].into_iter();
        let targets = targets.flat_map(|kind| all(kind).map(move |name| (kind, name)));
        for (kind, name) in targets.chain(fuzzed) {
            let begins =
                |known: &str| name.strip_suffix('*').is_some_and(|begin| known.starts_with(begin));
            let is_it = |known: &str| known == name || begins(known);
            let of_kind = |target: &&Value| target["kind"][0] == kind;
            let mut targets = scope().flat_map(|package| list(&package["targets"])).filter(of_kind);
            must(kind, name, targets.any(|target| target["name"].as_str().is_some_and(is_it)))?;
        }
        for name in all("features").flat_map(|names| names.split(',')) {
            must("feature", name, scope().any(|package| !package["features"][name].is_null()))?;
        }
        for name in all("profile") {
            let own = self.manifest.contains(&format!("[profile.{name}]"));
            must("profile", name, own || ["dev", "release", "test", "bench"].contains(&name))?;
        }
        for filter in plain.iter().filter(|_| command == "test") {
            must("test with the name", filter, scope().any(|package| has_test(package, filter)))?;
        }
        Ok(())
    }
}

/// Whether each part of `path::of::a_test` stands in a source of the package.
fn has_test(package: &Value, filter: &str) -> bool {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let folder = manifest.parent().expect("a folder");
    filter.split("::").filter(|part| !part.is_empty()).all(|part| {
        let mut grep = Command::new("grep");
        grep.args(["-rqF", "--include=*.rs", "--exclude-dir=target", part]).arg(folder);
        grep.status().is_ok_and(|status| status.success())
    })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Parses what follows `cargo xtask`, by its own definition.
fn xtask(words: &[&str]) -> Result<(), String> {
    let xtask = xtask::command().no_binary_name(true);
    super::parsed(xtask.try_get_matches_from(words).map(drop), true)
}
