//! A test: whatever has `Debug` and is plain data has `defmt::Format`.

extern crate std;

use std::path::{Path, PathBuf};
use std::string::String;
use std::vec::Vec;
use std::{format, fs, vec};

/// Types of a test's script and of this machine's memory, which firmware does not log.
const EXCEPT: [&str; 3] = ["reg/fake.rs: Access", "reg/mmio.rs: Mmio", "reg/cntvct.rs: Cntvct"];

fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .collect()
}

/// The public types of a source that derive `Clone` and `Debug`, have no parameters, and no `Format`.
fn lacking(source: &str) -> Vec<String> {
    let mut attributes = String::new();
    let mut found = Vec::new();
    for line in source.lines() {
        let name = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "));
        if line.starts_with("#[") {
            attributes += line;
            continue;
        }
        if let Some(name) = name
            && attributes.contains("Clone")
            && attributes.contains("Debug")
            && !attributes.contains("defmt::Format")
        {
            let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
            if !name[end..].starts_with('<') {
                found.push(name[..end].into());
            }
        }
        attributes.clear();
    }
    found
}

#[test]
fn plain_data_has_a_format_for_firmware() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut without = Vec::new();
    for path in sources(&root) {
        let place = path.strip_prefix(&root).expect("below it").display();
        let source = fs::read_to_string(&path).expect("a source");
        without.extend(lacking(&source).iter().map(|name| format!("{place}: {name}")));
    }
    without.retain(|name| !EXCEPT.contains(&name.as_str()));
    assert!(without.is_empty(), "add `derive(defmt::Format)` under the feature: {without:?}");
}

#[test]
fn a_type_without_it_is_found() {
    let with = "#[derive(Clone, Debug)]\n#[cfg_attr(feature = \"defmt\", derive(defmt::Format))]\n";
    assert_eq!(lacking("#[derive(Clone, Debug)]\npub enum Fault {"), ["Fault"]);
    assert!(lacking(&format!("{with}pub enum Fault {{")).is_empty());
    assert!(lacking("#[derive(Clone, Debug)]\npub struct Of<T>(T);").is_empty());
    assert!(lacking("#[derive(Clone, Debug)]\n\npub struct Other;").is_empty());
}
