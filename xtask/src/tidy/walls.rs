//! Which crate may import which. A simulated model that shares a constant with the driver would also
//! share the driver's misreading of the manual; no test would find it.

use super::manifest::{Dependency, dependencies};
use super::{Finding, Source};

/// Manifests of the libraries that stand alone: none names a sibling, nor another.
const LIBRARIES: [(&str, &str); 3] = [
    ("stack/barewire/Cargo.toml", "the core"),
    ("iommu/barewire-iommu/Cargo.toml", "barewire-iommu"),
    ("iommu/barewire-qtest/Cargo.toml", "barewire-qtest"),
];

/// The IO page tables: a workspace of their own, which builds alone.
const IOMMU: &str = "iommu/";

/// Its crates, by the beginnings of their names.
const IOMMU_CRATES: [&str; 2] = ["barewire-iommu", "barewire-qtest"];

/// Manifests outside of that workspace that may use one of its crates, and which.
const DOORS: [(&str, &str); 5] = [
    ("Cargo.toml", "barewire-iommu"),
    ("Cargo.toml", "barewire-qtest"),
    ("lab/Cargo.toml", "barewire-iommu"),
    ("fuzz/Cargo.toml", "barewire-iommu"),
    ("bench/barewire-qemu/Cargo.toml", "barewire-qtest"),
];

/// Files that both workspaces have, so that a copy of either builds as it does here, and may be passed on.
const TWINS: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "rust-toolchain.toml", "rustfmt.toml"];

/// The model that judges the page tables. Of our crates it may use only `barewire-iommu`.
const IOMMU_MODEL: &str = "iommu/barewire-iommu-model/";

/// Types of the format that the model defines itself, and must not import from the crate it judges.
const IOMMU_FORMAT: [&str; 3] = ["Geometry", "Attributes", "Descriptor"];

/// Platforms for the core, none of which knows another.
const PLATFORMS: [&str; 3] = ["barewire-linux", "barewire-sim", "barewire-qemu"];

/// Where the simulated models live: one file, or a folder.
const MODELS: [&str; 2] = ["bench/barewire-sim/src/model.rs", "bench/barewire-sim/src/model/"];

/// How a model would name the driver. In pieces: see the parent module.
const DRIVER_NAMES: [&str; 2] = [concat!("bare", "wire::"), concat!("bare", "wire as ")];

/// Every rule of this file.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        findings.extend(libraries(source));
        findings.extend(iommu(source));
        findings.extend(iommu_files(source));
        findings.extend(doors(source));
        findings.extend(iommu_model(source));
        findings.extend(platforms(source));
        findings.extend(models(source));
        findings.extend(lints(source));
    }
    findings.extend(twins(sources));
    findings
}

fn is_sibling(dependency: &Dependency) -> bool {
    dependency.name.starts_with("barewire") || dependency.value.contains("\"barewire")
}

/// Dependencies of any kind on crates of ours.
fn siblings(source: &Source) -> impl Iterator<Item = Dependency> {
    dependencies(&source.text).into_iter().filter(is_sibling)
}

fn libraries(source: &Source) -> Vec<Finding> {
    let library = LIBRARIES.iter().find(|(manifest, _)| source.path == *manifest);
    let Some((_, library)) = library else { return Vec::new() };
    siblings(source)
        .map(|d| {
            let message = format!(
                "{library} depends on {}; turn it round, everything rests on {library}",
                d.name
            );
            source.finding(d.line, message)
        })
        .collect()
}

fn is_of_iommu(name: &str) -> bool {
    IOMMU_CRATES.iter().any(|begin| name.starts_with(begin))
}

/// No manifest of the page tables names a crate or a path outside of their folder. Some crates have
/// stricter rules of their own.
fn iommu(source: &Source) -> Vec<Finding> {
    let is_manifest = source.path.starts_with(IOMMU) && source.path.ends_with("/Cargo.toml");
    let is_stricter = LIBRARIES.iter().any(|(manifest, _)| source.path == *manifest)
        || source.path.starts_with(IOMMU_MODEL);
    if !is_manifest || is_stricter {
        return Vec::new();
    }
    dependencies(&source.text)
        .into_iter()
        .filter(|d| is_sibling(d) && !is_of_iommu(&d.name) || d.value.contains(".."))
        .map(|d| {
            let message = format!("a crate of {IOMMU} depends on {}; it builds alone", d.name);
            source.finding(d.line, message)
        })
        .collect()
}

/// Nor does any of their sources take in a file from outside of it.
fn iommu_files(source: &Source) -> Vec<Finding> {
    if !source.path.starts_with(IOMMU) || !source.is_rust() {
        return Vec::new();
    }
    let folders = source.path.matches('/').count();
    let takes = ["#[path = \"", "include!(\"", "include_str!(\"", "include_bytes!(\""];
    let leaves = |line: &str| {
        let file = takes.iter().find_map(|take| line.split_once(take)).map(|(_, file)| file);
        file.is_some_and(|file| file.starts_with(&"../".repeat(folders)))
    };
    let lines = source.lines().filter(|(_, line)| leaves(line));
    let message = "takes in a file from outside of iommu/, which builds alone; move it there";
    lines.map(|(number, _)| source.finding(number, message)).collect()
}

/// The SPI product uses only the crates of `iommu/` that it needs, not those that the page tables are
/// measured beside.
fn doors(source: &Source) -> Vec<Finding> {
    let is_manifest = source.path == "Cargo.toml" || source.path.ends_with("/Cargo.toml");
    if !is_manifest || source.path.starts_with(IOMMU) {
        return Vec::new();
    }
    dependencies(&source.text)
        .into_iter()
        .filter(|d| is_of_iommu(&d.name) && !DOORS.contains(&(&source.path, &d.name)))
        .map(|d| {
            let message =
                format!("depends on {}, of another product; the list of doors has who may", d.name);
            source.finding(d.line, message)
        })
        .collect()
}

/// Files and lints that both workspaces have, and that differ.
fn twins(sources: &[Source]) -> Vec<Finding> {
    let find = |path: &str| sources.iter().find(|source| source.path == path);
    let mut findings = Vec::new();
    for name in TWINS {
        if let (Some(one), Some(other)) = (find(name), find(&format!("{IOMMU}{name}")))
            && one.text != other.text
        {
            findings.push(other.finding(1, format!("differs from {name}; copy it")));
        }
    }
    if let (Some(one), Some(other)) = (find("Cargo.toml"), find(&format!("{IOMMU}Cargo.toml")))
        && lint_tables(one) != lint_tables(other)
    {
        findings.push(other.finding(1, "has other lints than Cargo.toml; copy them"));
    }
    findings
}

/// The lines of a workspace's lints.
fn lint_tables(manifest: &Source) -> Vec<&str> {
    let mut within = false;
    let mut lines = Vec::new();
    for (_, line) in manifest.lines() {
        if line.starts_with('[') {
            within = line.starts_with("[workspace.lints.");
        }
        if within && !line.is_empty() && !line.starts_with('#') {
            lines.push(line);
        }
    }
    lines
}

/// The judge depends only on the crate that it judges, and not on that crate's reading of the
/// manual; its tests may compare.
fn iommu_model(source: &Source) -> Vec<Finding> {
    let Some(within) = source.path.strip_prefix(IOMMU_MODEL) else { return Vec::new() };
    if within == "Cargo.toml" {
        return siblings(source)
            .filter(|d| d.name != "barewire-iommu")
            .map(|d| {
                let message = format!(
                    "the IOMMU model depends on {}; it knows barewire-iommu and nobody else",
                    d.name
                );
                source.finding(d.line, message)
            })
            .collect();
    }
    if !within.starts_with("src/") {
        return Vec::new();
    }
    let code = source.lines().take_while(|(_, line)| !line.starts_with("#[cfg(test)]"));
    let naming = |line: &str| IOMMU_FORMAT.into_iter().find(|name| line.contains(name));
    code.filter_map(|(number, line)| Some((number, naming(line)?)))
        .map(|(number, name)| {
            let message = format!(
                "the IOMMU model names {name}; write it from the manual, or both share one \
                 misreading"
            );
            source.finding(number, message)
        })
        .collect()
}

fn platforms(source: &Source) -> Vec<Finding> {
    let folder = source.path.split('/').nth(1);
    let Some(own) = PLATFORMS.iter().find(|&&name| folder == Some(name)) else {
        return Vec::new();
    };
    let code = source.is_rust() || source.path.ends_with("/Cargo.toml");
    let others = PLATFORMS.iter().filter(|name| code && *name != own);
    let mut findings = Vec::new();
    for other in others {
        let path_form = other.replace('-', "_");
        for (number, line) in source.lines() {
            if line.contains(other) || line.contains(&path_form) {
                let message = format!("{own} names {other}; what both need belongs in the core");
                findings.push(source.finding(number, message));
            }
        }
    }
    findings
}

fn models(source: &Source) -> Vec<Finding> {
    if !MODELS.iter().any(|model| source.path.starts_with(model)) {
        return Vec::new();
    }
    let naming = |line: &str| DRIVER_NAMES.iter().any(|name| line.contains(name));
    let lines = source.lines().filter(|(_, line)| naming(line));
    lines
        .map(|(number, _)| {
            let message = "a model names the driver's crate; write it from the manual, with constants of its own";
            source.finding(number, message)
        })
        .collect()
}

/// If a crate does not inherit the workspace's lints, its unsafe code is not noticed.
fn lints(source: &Source) -> Option<Finding> {
    // A workspace of its own, as the fuzz targets are, has nothing to inherit from.
    let manifest = source.path.ends_with("/Cargo.toml")
        && source.text.contains("[package]")
        && !source.text.contains("[workspace]");
    let inherits = source.text.contains("[lints]\nworkspace = true\n");
    let message =
        "the crate does not take the workspace's lints; add `[lints]` with `workspace = true`";
    (manifest && !inherits).then(|| source.finding(1, message))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, source};
    use super::*;

    fn check_one(path: &str, text: &str) -> Vec<String> {
        found(&check(&[source(path, text)]))
    }

    /// What is found at `path` in a line of code, after the doc.
    fn in_code(path: &str, line: &str) -> Vec<String> {
        check_one(path, &format!("//! x\n{line}\n"))
    }

    /// What is found in the manifest `path` with one dependency of any kind, on its fifth line.
    fn with_dependency(path: &str, dependency: &str) -> Vec<String> {
        let of = |kind| check_one(path, &format!("{LINTS}[{kind}]\n{dependency}\n"));
        let found = of("dependencies");
        assert_eq!(of("dev-dependencies"), found);
        found
    }

    const LINTS: &str = "[package]\n[lints]\nworkspace = true\n";

    #[test]
    fn a_library_rests_on_no_sibling() {
        let (core, iommu) = (LIBRARIES[0].0, LIBRARIES[1].0);
        for (path, dependency, expected) in [
            (core, "proptest = \"1\"", &[][..]),
            (
                core,
                "barewire-sim.workspace = true",
                &["stack/barewire/Cargo.toml:5: the core depends on barewire-sim"],
            ),
            (
                iommu,
                "barewire.workspace = true",
                &["iommu/barewire-iommu/Cargo.toml:5: barewire-iommu depends on barewire"],
            ),
            (iommu, "proptest = \"1\"", &[]),
            ("lab/Cargo.toml", "barewire-iommu.workspace = true", &[]),
        ] {
            assert_eq!(with_dependency(path, dependency), expected, "{path}: {dependency}");
        }
        assert_eq!(with_dependency(core, "sim = { package = \"barewire-sim\" }").len(), 1);
    }

    #[test]
    fn the_page_tables_build_alone() {
        let bench = "iommu/barewire-iommu-bench/Cargo.toml";
        let found = with_dependency(bench, "barewire-sim.workspace = true");
        assert_eq!(found, [format!("{bench}:5: a crate of iommu/ depends on barewire-sim")]);
        for own in ["barewire-iommu-model.workspace", "barewire-qtest.workspace"] {
            assert!(with_dependency(bench, &format!("{own} = true")).is_empty(), "{own}");
        }
        assert!(with_dependency(bench, "tempfile = \"3\"").is_empty());
        let outside = "tempfile = { path = \"../../tempfile\" }";
        assert_eq!(with_dependency(bench, outside).len(), 1);
        let manifest = "[workspace.dependencies]\nx = { path = \"../stack/barewire\" }\n";
        assert_eq!(check_one("iommu/Cargo.toml", manifest).len(), 1);
        let test = "iommu/barewire-iommu/tests/x.rs";
        let outside = "//! x\n#[path = \"../../../stack/x.rs\"]\nmod x;\n";
        assert_eq!(
            check_one(test, outside),
            [format!("{test}:2: takes in a file from outside of iommu/")]
        );
        let within = "#[path = \"../../x.rs\"]\nmod x;\nconst Y: &str = include_str!(\"../y\");\n";
        assert!(check_one(test, within).is_empty());
        assert!(check_one("stack/barewire/tests/x.rs", outside).is_empty());
    }

    #[test]
    fn the_other_product_comes_in_by_its_doors() {
        for (manifest, name) in DOORS {
            assert!(with_dependency(manifest, &format!("{name}.workspace = true")).is_empty());
        }
        let command = "command/barewire-cli/Cargo.toml";
        for name in ["barewire-iommu", "barewire-iommu-bench", "barewire-qtest"] {
            let found = with_dependency(command, &format!("{name}.workspace = true"));
            assert_eq!(found, [format!("{command}:5: depends on {name}")]);
        }
    }

    #[test]
    fn both_workspaces_have_the_same_toolchain_licences_and_lints() {
        for name in TWINS {
            let other = format!("{IOMMU}{name}");
            assert!(check(&[source(name, "a\n"), source(&other, "a\n")]).is_empty());
            let differ = found(&check(&[source(name, "a\n"), source(&other, "b\n")]));
            assert_eq!(differ, [format!("{other}:1: differs from {name}")]);
        }
        let lints = |level: &str| {
            let text = format!("[workspace.lints.rust]\nx = \"{level}\"\n\n# y\n[profile.y]\n");
            source(&format!("{IOMMU}Cargo.toml"), &text)
        };
        let root = source("Cargo.toml", "[workspace.lints.rust]\nx = \"deny\"\n\n[profile.z]\n");
        assert!(check(&[root.clone(), lints("deny")]).is_empty());
        let differ = found(&check(&[root, lints("warn")]));
        assert_eq!(differ, ["iommu/Cargo.toml:1: has other lints than Cargo.toml"]);
    }

    #[test]
    fn the_judge_of_page_tables_knows_them_alone() {
        let model = format!("{IOMMU_MODEL}Cargo.toml");
        for sibling in ["barewire", "barewire-sim"] {
            let named = format!("{sibling} = {{ path = \"../{sibling}\" }}");
            let only = format!("{model}:5: the IOMMU model depends on {sibling}");
            assert_eq!(with_dependency(&model, &named), [only]);
        }
        assert!(with_dependency(&model, "barewire-iommu = { path = \"../x\" }").is_empty());
    }

    #[test]
    fn the_judge_of_page_tables_reads_the_manual_itself() {
        let path = format!("{IOMMU_MODEL}src/shape.rs");
        for name in IOMMU_FORMAT {
            let line = format!("use barewire_iommu::{name};\n");
            let only = format!("{path}:1: the IOMMU model names {name}");
            assert_eq!(check_one(&path, &line), [only]);
            assert!(check_one(&path, &format!("#[cfg(test)]\n{line}")).is_empty());
            assert!(check_one(&format!("{IOMMU_MODEL}tests/random.rs"), &line).is_empty());
        }
        assert!(check_one(&path, "use barewire_iommu::{Config, Pool};\n").is_empty());
    }

    #[test]
    fn platforms_do_not_name_each_other() {
        let (sim, linux) = ("bench/barewire-sim/src/lib.rs", "use barewire_linux::Gpio;");
        assert_eq!(in_code(sim, linux), [format!("{sim}:2: barewire-sim names barewire-linux")]);
        let sims = "use barewire_sim::Board;";
        assert_eq!(in_code("bench/barewire-qemu/src/lib.rs", sims).len(), 1);
        let manifest = "bench/barewire-sim/Cargo.toml";
        assert_eq!(with_dependency(manifest, "barewire-qemu.workspace = true").len(), 1);
        for (path, line) in [
            (sim, sims),
            ("bench/barewire-sim/README.md", "not barewire-linux"),
            ("command/barewire-cli/src/main.rs", linux),
        ] {
            assert!(in_code(path, line).is_empty(), "{path}");
        }
    }

    #[test]
    fn models_do_not_name_the_driver() {
        for name in DRIVER_NAMES {
            let line = format!("use {name}x;");
            for model in ["model/ecspi.rs", "model.rs"] {
                let model = format!("bench/barewire-sim/src/{model}");
                let only = format!("{model}:2: a model names the driver's crate");
                assert_eq!(in_code(&model, &line), [only]);
            }
            assert!(in_code("bench/barewire-sim/src/board.rs", &line).is_empty());
        }
        let own = "use crate::Pins;\nuse barewire_sim::Pins;";
        assert!(in_code("bench/barewire-sim/src/model/ecspi.rs", own).is_empty());
    }

    #[test]
    fn every_crate_takes_the_lints() {
        assert!(check_one("xtask/Cargo.toml", LINTS).is_empty());
        assert_eq!(check_one("xtask/Cargo.toml", "[package]\n").len(), 1);
        assert!(check_one("Cargo.toml", "[workspace]\n").is_empty());
    }
}
