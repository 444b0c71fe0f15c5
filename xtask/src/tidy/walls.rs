//! Which crate may know which. The house stands on these walls: a simulated model that shares a
//! constant with the driver shares its misreading of the manual too.

use super::manifest::{Dependency, dependencies};
use super::{Finding, Source};

/// Manifests of the two libraries that stand alone: neither names a sibling, nor the other.
const LIBRARIES: [(&str, &str); 2] = [
    ("crates/barewire/Cargo.toml", "the core"),
    ("crates/barewire-iommu/Cargo.toml", "barewire-iommu"),
];

/// Platforms for the core, none of which knows another.
const PLATFORMS: [&str; 3] = ["barewire-linux", "barewire-sim", "barewire-qemu"];

/// Where the simulated models live: one file, or a folder.
const MODELS: [&str; 2] = ["crates/barewire-sim/src/model.rs", "crates/barewire-sim/src/model/"];

/// How a model would name the driver. In pieces: see the parent module.
const DRIVER_NAMES: [&str; 2] = [concat!("bare", "wire::"), concat!("bare", "wire as ")];

/// Every rule of this file.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        findings.extend(libraries(source));
        findings.extend(platforms(source));
        findings.extend(models(source));
        findings.extend(lints(source));
    }
    findings
}

fn libraries(source: &Source) -> Vec<Finding> {
    let library = LIBRARIES.iter().find(|(manifest, _)| source.path == *manifest);
    let Some((_, library)) = library else { return Vec::new() };
    let sibling = |d: &Dependency| d.name.starts_with("barewire") || d.value.contains("\"barewire");
    let siblings = dependencies(&source.text).into_iter().filter(sibling);
    siblings
        .map(|d| {
            let message = format!(
                "{library} depends on {}; turn it round, everything rests on {library}",
                d.name
            );
            source.finding(d.line, message)
        })
        .collect()
}

fn platforms(source: &Source) -> Vec<Finding> {
    let Some(own) =
        PLATFORMS.iter().find(|name| source.path.starts_with(&format!("crates/{name}/")))
    else {
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

/// A crate that does not take the workspace's lints may use unsafe code without anybody noticing.
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

    const LINTS: &str = "[package]\n[lints]\nworkspace = true\n";

    #[test]
    fn a_library_rests_on_no_sibling() {
        let core = LIBRARIES[0].0;
        let text = |deps: &str| format!("{LINTS}[dev-dependencies]\n{deps}\n");
        assert!(check_one(core, &text("proptest = \"1\"")).is_empty());
        assert_eq!(
            check_one(core, &text("barewire-sim.workspace = true")),
            ["crates/barewire/Cargo.toml:5: the core depends on barewire-sim"]
        );
        assert_eq!(check_one(core, &text("sim = { package = \"barewire-sim\" }")).len(), 1);
        let iommu = LIBRARIES[1].0;
        assert_eq!(
            check_one(iommu, &text("barewire.workspace = true")),
            ["crates/barewire-iommu/Cargo.toml:5: barewire-iommu depends on barewire"]
        );
        assert!(check_one(iommu, &text("proptest = \"1\"")).is_empty());
        let other = text("barewire-iommu.workspace = true");
        assert!(check_one("crates/barewire-qemu/Cargo.toml", &other).is_empty());
    }

    #[test]
    fn platforms_do_not_name_each_other() {
        assert_eq!(
            check_one("crates/barewire-sim/src/lib.rs", "//! x\nuse barewire_linux::Gpio;\n"),
            ["crates/barewire-sim/src/lib.rs:2: barewire-sim names barewire-linux"]
        );
        let manifest = format!("{LINTS}[dependencies]\nbarewire-qemu.workspace = true\n");
        assert_eq!(check_one("crates/barewire-sim/Cargo.toml", &manifest).len(), 1);
        assert_eq!(
            check_one("crates/barewire-qemu/src/lib.rs", "use barewire_sim::Board;\n").len(),
            1
        );
        assert!(
            check_one("crates/barewire-sim/src/lib.rs", "use barewire_sim::Board;\n").is_empty()
        );
        assert!(check_one("crates/barewire-sim/README.md", "not barewire-linux\n").is_empty());
        assert!(
            check_one("crates/barewire-cli/src/main.rs", "use barewire_linux::Gpio;\n").is_empty()
        );
    }

    #[test]
    fn models_do_not_name_the_driver() {
        for name in DRIVER_NAMES {
            let line = format!("//! x\nuse {name}x;\n");
            for model in
                ["crates/barewire-sim/src/model/ecspi.rs", "crates/barewire-sim/src/model.rs"]
            {
                assert_eq!(
                    check_one(model, &line),
                    [format!("{model}:2: a model names the driver's crate")]
                );
            }
            assert!(check_one("crates/barewire-sim/src/board.rs", &line).is_empty());
        }
        let own = "use crate::Pins;\nuse barewire_sim::Pins;\n";
        assert!(check_one("crates/barewire-sim/src/model/ecspi.rs", own).is_empty());
    }

    #[test]
    fn every_crate_takes_the_lints() {
        assert!(check_one("xtask/Cargo.toml", LINTS).is_empty());
        assert_eq!(check_one("xtask/Cargo.toml", "[package]\n").len(), 1);
        assert!(check_one("Cargo.toml", "[workspace]\n").is_empty());
    }
}
