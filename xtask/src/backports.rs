//! A newer QEMU than Debian's release has, from its backports.
//!
//! How it works: the entry for `CODENAME-backports` is derived from the machine's own entry for
//! `CODENAME`: the same mirror, keys and options, so that no host is written here and a machine
//! behind a mirror of its own stays behind it. It goes to a file of its own, which is removed again
//! if nothing could be installed from it: `apt-get update` must work afterwards as before.
//!
//! [`needs`](crate::needs) asks for it, and prints the exact commands where it may not install.

use std::path::{Path, PathBuf};

use crate::child::Task;
use crate::console::Console;

/// The oldest QEMU that every board was tried with: raspi3b's SPI controller needs it.
const WANTED: (u32, u32) = (10, 0);
/// The release of Debian's whose own QEMU is older.
const OLD: &str = "bookworm";
/// Debian's packages of it.
pub(crate) const PACKAGES: [&str; 2] = ["qemu-system-arm", "qemu-system-misc"];
const SOURCES_DIR: &str = "/etc/apt/sources.list.d";
/// The name of the file written there, without its ending.
const OWN_FILE: &str = "barewire-backports";

/// An entry for apt, in the format that it was derived from.
#[derive(Debug, PartialEq)]
struct Entry {
    /// The file's ending, which tells apt the format.
    ending: &'static str,
    /// A whole file of sources.
    text: String,
}

/// Whether a QEMU is installed that is as new as every board wants.
pub(crate) fn is_new_enough(root: &Path, program: &'static str) -> bool {
    let said = Task::new(program, &["--version"]).answer(root);
    said.and_then(|said| version_in(&said)).is_some_and(|version| version >= WANTED)
}

/// How this machine comes to a newer QEMU: by the packages of its release (`None`), or of its backports.
///
/// # Errors
/// If no way is known.
pub(crate) fn way() -> Result<Option<Way>, String> {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    match debian_codename(&release) {
        Some(OLD) => Way::among(&sources(), OLD).map(Some),
        Some(_) => Ok(None),
        None => {
            let (major, minor) = WANTED;
            Err(format!("QEMU {major}.{minor} or later, as your system has it"))
        }
    }
}

/// How a machine comes to a newer QEMU.
#[derive(Debug, PartialEq)]
pub(crate) struct Way {
    suite: String,
    /// The entry to add, and its file, if apt's sources do not have it yet.
    entry: Option<(PathBuf, Entry)>,
}

impl Way {
    /// The way with these sources: file ending and content.
    fn among(sources: &[(&'static str, String)], codename: &str) -> Result<Self, String> {
        let suite = format!("{codename}-backports");
        if sources.iter().any(|(ending, text)| entry_of(ending, text, &suite).is_some()) {
            return Ok(Self { suite, entry: None });
        }
        let entry = sources
            .iter()
            .find_map(|(ending, text)| derived(ending, text, codename))
            .ok_or_else(|| format!("apt's sources have no entry for {codename} to derive from"))?;
        let path = Path::new(SOURCES_DIR).join(format!("{OWN_FILE}.{}", entry.ending));
        Ok(Self { suite, entry: Some((path, entry)) })
    }

    fn update() -> Task {
        Task::new("apt-get", &["update"])
    }

    fn install(&self) -> Task {
        let options = ["install", "-y", "-t", &self.suite, "--no-install-recommends"];
        Task::new("apt-get", &[&options[..], &PACKAGES].concat())
    }

    /// The line for a user to type.
    pub(crate) fn line(&self, root: bool) -> String {
        let sudo = if root { "" } else { "sudo " };
        let entry = self.entry.as_ref().map(|(path, entry)| {
            let lines: String = entry.text.lines().map(|line| format!(" '{line}'")).collect();
            format!("printf '%s\\n'{lines} | {sudo}tee {} && ", path.display())
        });
        let (update, install) = (Self::update().line(), self.install().line());
        format!("{}{sudo}{update} && {sudo}{install}", entry.unwrap_or_default())
    }

    /// Installs it, as root.
    pub(crate) fn go(&self, root: &Path, console: Console) {
        if let Some((path, entry)) = &self.entry {
            console.say(&format!("writing {}:\n{}", path.display(), entry.text.trim_end()));
            if let Err(error) = std::fs::write(path, &entry.text) {
                console.say(&format!("cannot write {}: {error}", path.display()));
                return;
            }
        }
        let run =
            |task: Task| task.env("DEBIAN_FRONTEND", "noninteractive").run(root, console).success;
        if run(Self::update()) && run(self.install()) {
            return;
        }
        if let Some((path, _)) = &self.entry {
            // Best effort: the entry was ours, and led nowhere.
            let _ = std::fs::remove_file(path);
            run(Self::update());
        }
    }
}

/// apt's sources: the ending that tells their format, and their content.
fn sources() -> Vec<(&'static str, String)> {
    let mut paths = vec![PathBuf::from("/etc/apt/sources.list")];
    let listed = std::fs::read_dir(SOURCES_DIR).into_iter().flatten().flatten();
    let mut more: Vec<PathBuf> = listed.map(|entry| entry.path()).collect();
    more.sort();
    paths.extend(more);
    let read = |path: PathBuf| {
        let ending = match path.extension()?.to_str()? {
            "list" => "list",
            "sources" => "sources",
            // As apt does.
            _ => return None,
        };
        Some((ending, std::fs::read_to_string(path).ok()?))
    };
    paths.into_iter().filter_map(read).collect()
}

/// `bookworm`, say, if this is Debian itself.
fn debian_codename(os_release: &str) -> Option<&str> {
    let value = |name: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.map(|value| value.trim().trim_matches('"'))
    };
    (value("ID") == Some("debian")).then(|| value("VERSION_CODENAME")).flatten()
}

/// The entry for the backports of `codename`, from the entry for `codename` in `text`.
fn derived(ending: &str, text: &str, codename: &str) -> Option<Entry> {
    let entry = entry_of(ending, text, codename)?;
    let suite = format!("{codename}-backports");
    match ending {
        "list" => {
            let line = one_line(entry)?;
            let options = line.options.map(|options| format!("{options} ")).unwrap_or_default();
            let text = format!("deb {options}{} {suite} main\n", line.uri);
            Some(Entry { ending: "list", text })
        }
        _ => {
            let mut text = String::new();
            for (name, value) in fields(entry) {
                let value = match name.to_ascii_lowercase().as_str() {
                    "types" => "deb",
                    "suites" => &suite,
                    "components" => "main",
                    _ => &value,
                };
                // A value that began on the next line stays there.
                let gap = if value.starts_with('\n') { "" } else { " " };
                text += &format!("{name}:{gap}{value}\n");
            }
            Some(Entry { ending: "sources", text })
        }
    }
}

/// The first enabled entry of binary packages for `suite` with the component main.
fn entry_of<'t>(ending: &str, text: &'t str, suite: &str) -> Option<&'t str> {
    if ending == "list" {
        return text
            .lines()
            .find(|line| one_line(line).is_some_and(|line| line.suite == suite && line.has_main));
    }
    stanzas(text).into_iter().find(|stanza| {
        let fields = fields(stanza);
        let has = |name: &str, wanted: &str| {
            let field = fields.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
            field.is_some_and(|(_, value)| value.split_whitespace().any(|word| word == wanted))
        };
        has("Types", "deb")
            && has("Suites", suite)
            && has("Components", "main")
            && !has("Enabled", "no")
    })
}

/// `deb [options] uri suite component…`
struct OneLine<'t> {
    options: Option<&'t str>,
    uri: &'t str,
    suite: &'t str,
    has_main: bool,
}

fn one_line(line: &str) -> Option<OneLine<'_>> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb").filter(|rest| rest.starts_with([' ', '\t']))?.trim_start();
    let (options, rest) = match rest.starts_with('[') {
        true => {
            let (options, rest) = rest.split_at(rest.find(']')? + 1);
            (Some(options), rest)
        }
        false => (None, rest),
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    Some(OneLine { options, uri, suite, has_main: words.any(|word| word == "main") })
}

/// The paragraphs of a deb822 file.
fn stanzas(text: &str) -> Vec<&str> {
    let mut stanzas = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if line.trim().is_empty() {
            stanzas.push(&text[start..at]);
            start = at + line.len();
        }
        at += line.len();
    }
    stanzas.push(&text[start..]);
    stanzas
}

/// A paragraph's fields; comments left out, values of several lines kept as they are.
fn fields(stanza: &str) -> Vec<(&str, String)> {
    let mut fields: Vec<(&str, String)> = Vec::new();
    for line in stanza.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                *value += &format!("\n{}", line.trim_end());
            }
        } else if let Some((name, value)) = line.split_once(':') {
            fields.push((name, value.trim().to_owned()));
        }
    }
    fields
}

/// Major and minor in `QEMU emulator version 7.2.22 (Debian …)`.
fn version_in(said: &str) -> Option<(u32, u32)> {
    let (_, rest) = said.split_once("QEMU emulator version ")?;
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEB822: &str = "\
# A comment
Types: deb deb-src
# an address of another time
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 /usr/share/keyrings/one.gpg
Architectures: amd64

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
";

    const ONE_LINE: &str = "\
# deb http://old.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/debian-security bookworm-security main
deb\t[ arch=amd64 signed-by=/k.gpg ] http://mirror.example/debian/ bookworm contrib main # ours
";

    #[test]
    fn a_stanza_is_taken_over_with_its_mirror_and_keys() {
        let entry = derived("sources", DEB822, "bookworm").expect("an entry");
        let text = "\
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm-backports
Components: main
Signed-By:
 /usr/share/keyrings/one.gpg
Architectures: amd64
";
        assert_eq!(entry, Entry { ending: "sources", text: text.into() });
        assert!(entry_of("sources", &entry.text, "bookworm-backports").is_some());
    }

    #[test]
    fn a_line_is_taken_over_with_its_mirror_and_options() {
        let entry = derived("list", ONE_LINE, "bookworm").expect("an entry");
        let text = "deb [ arch=amd64 signed-by=/k.gpg ] http://mirror.example/debian/ \
                    bookworm-backports main\n";
        assert_eq!(entry, Entry { ending: "list", text: text.into() });
        assert!(entry_of("list", &entry.text, "bookworm-backports").is_some());
        let plain = derived("list", "deb http://m.example/d bookworm main", "bookworm");
        assert_eq!(
            plain.expect("an entry").text,
            "deb http://m.example/d bookworm-backports main\n"
        );
    }

    #[test]
    fn what_is_no_entry_of_the_release_is_left_alone() {
        for text in [
            "",
            "deb",
            "deb [arch=amd64 http://m.example/d bookworm main",
            "deb http://m.example/d bookworm contrib",
            "deb http://m.example/d trixie main",
            "debug http://m.example/d bookworm main",
            "#deb http://m.example/d bookworm main",
        ] {
            assert_eq!(derived("list", text, "bookworm"), None, "{text}");
        }
        for text in [
            "",
            "Suites: bookworm",
            "Types: deb-src\nURIs: u\nSuites: bookworm\nComponents: main\n",
            "Types: deb\nURIs: u\nSuites: bookworm-security\nComponents: main\n",
            "Enabled: no\nTypes: deb\nURIs: u\nSuites: bookworm\nComponents: main\n",
            "Types: deb\nURIs: u\n\nSuites: bookworm\nComponents: main\n",
        ] {
            assert_eq!(derived("sources", text, "bookworm"), None, "{text}");
        }
        let lower = "types: deb\nuris: u\nsuites: bookworm\ncomponents: main\n";
        assert!(derived("sources", lower, "bookworm").is_some(), "names have no case");
    }

    #[test]
    fn an_entry_that_is_there_is_used_and_another_is_named_exactly() {
        let there = "deb http://m.example/d bookworm-backports main".to_owned();
        let sources = [("sources", DEB822.to_owned()), ("list", there)];
        let way = Way::among(&sources, "bookworm").expect("a way");
        assert_eq!(
            way.line(false),
            "sudo apt-get update && sudo apt-get install -y -t bookworm-backports \
             --no-install-recommends qemu-system-arm qemu-system-misc"
        );
        let sources = [("list", ONE_LINE.to_owned()), ("sources", DEB822.to_owned())];
        let way = Way::among(&sources, "bookworm").expect("a way");
        assert_eq!(
            way.line(true),
            "printf '%s\\n' 'deb [ arch=amd64 signed-by=/k.gpg ] http://mirror.example/debian/ \
             bookworm-backports main' | tee /etc/apt/sources.list.d/barewire-backports.list && \
             apt-get update && apt-get install -y -t bookworm-backports \
             --no-install-recommends qemu-system-arm qemu-system-misc"
        );
        let why = Way::among(&sources, "trixie").expect_err("not its sources");
        assert!(why.contains("trixie"), "{why}");
    }

    #[test]
    fn only_debian_itself_is_debian() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(debian_codename(text), Some("bookworm"));
        assert_eq!(debian_codename("ID=ubuntu\nVERSION_CODENAME=noble\nID_LIKE=debian\n"), None);
        assert_eq!(debian_codename("ID=debian\n"), None);
        assert_eq!(debian_codename(""), None);
    }

    #[test]
    fn versions_are_read_and_compare_as_numbers() {
        assert_eq!(version_in("QEMU emulator version 7.2.22 (Debian 1:7.2)\n"), Some((7, 2)));
        assert!(version_in("QEMU emulator version 10.0.2") >= Some(WANTED));
        assert_eq!(version_in("GNU bash, version 5.2"), None);
    }
}
