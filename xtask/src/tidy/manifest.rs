//! Reads what the rules need of a Cargo.toml: its dependencies, with their lines.
//!
//! Not supported: a table of dependencies written inline (`dependencies = { … }`), which no
//! manifest here uses.

/// One dependency of a manifest.
#[derive(Debug, PartialEq)]
pub(super) struct Dependency {
    /// Its line.
    pub(super) line: usize,
    /// `dependencies`, `workspace.dependencies`, `target.….dev-dependencies` and so on.
    pub(super) table: String,
    /// The key.
    pub(super) name: String,
    /// Everything said about it.
    pub(super) value: String,
}

const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Where the lines being read belong.
enum Section {
    Other,
    /// `[dependencies]`: each key is one.
    Table(String),
    /// `[dependencies.name]`: the keys describe the last one found.
    Single,
}

/// Every dependency of the manifest, of every kind.
pub(super) fn dependencies(text: &str) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut section = Section::Other;
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        if content.starts_with('#') {
            continue;
        }
        if let Some(header) = content.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = enter(header, line, &mut found);
            continue;
        }
        match (&section, content.split_once('=')) {
            (Section::Table(table), Some((key, value))) => {
                // `name.workspace = true` is a key of two parts.
                let (name, rest) = key.split_once('.').unwrap_or((key, ""));
                let value = format!("{rest} {value}");
                found.push(Dependency { line, table: table.clone(), name: bare(name), value });
            }
            (Section::Single, Some(_)) => {
                if let Some(last) = found.last_mut() {
                    last.value += content;
                }
            }
            _ => {}
        }
    }
    found
}

/// Reads a section's header; one that is itself a dependency is added to `found`.
fn enter(header: &str, line: usize, found: &mut Vec<Dependency>) -> Section {
    for kind in KINDS {
        if header == kind || header.ends_with(&format!(".{kind}")) {
            return Section::Table(header.to_string());
        }
        let single = header
            .rsplit_once('.')
            .filter(|(table, _)| *table == kind || table.ends_with(&format!(".{kind}")));
        if let Some((table, name)) = single {
            let (table, name, value) = (table.to_string(), bare(name), String::new());
            found.push(Dependency { line, table, name, value });
            return Section::Single;
        }
    }
    Section::Other
}

fn bare(key: &str) -> String {
    key.trim().trim_matches('"').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        dependencies(text)
            .into_iter()
            .map(|d| format!("{}:{}/{}", d.line, d.table, d.name))
            .collect()
    }

    #[test]
    fn every_kind_of_table_is_read() {
        let text = "[package]\nname = \"x\"\n[dependencies]\n# no = \"1\"\na = \"1\"\n\
                    b.workspace = true\n\n[dev-dependencies]\n\"c\" = { version = \"1\" }\n\
                    [target.'cfg(unix)'.build-dependencies]\nd = \"1\"\n[features]\ne = []\n";
        assert_eq!(
            names(text),
            [
                "5:dependencies/a",
                "6:dependencies/b",
                "9:dev-dependencies/c",
                "11:target.'cfg(unix)'.build-dependencies/d",
            ]
        );
    }

    #[test]
    fn a_dependency_may_be_a_section() {
        let text =
            "[workspace.dependencies.a]\nversion = \"1\"\npath = \"stack/a\"\n[lib]\nb = 1\n";
        let found = dependencies(text);
        assert_eq!(names(text), ["1:workspace.dependencies/a"]);
        assert!(found[0].value.contains("path"), "{found:?}");
    }
}
