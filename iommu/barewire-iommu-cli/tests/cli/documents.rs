//! The commands that the documents of this workspace and the help name: each parses, and runs.
//!
//! # How it works
//! 1. A command is a line of a code block, or a piece of text in backticks, that begins with the command's
//!    name or with `cargo`. Each part of a pipe is checked.
//! 2. A command of ours runs in a directory that has the files which the documents name, with a trace on its
//!    standard input, and has to succeed. A bench runs one round. If only a verb is named, its help is
//!    printed.
//! 3. In a command of `cargo` the names are checked: the packages, profiles and tests must exist.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::command::{Ran, barewire_iommu, run, run_with_input};
use super::devices;

const NAME: &str = "barewire-iommu";

/// The workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every document: of the workspace, of its crates, and in `docs`.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md")];
    for entry in fs::read_dir(root()).expect("the workspace") {
        let folder = entry.expect("an entry").path();
        found.push(folder.join("README.md"));
        if folder.ends_with("docs") {
            let pages = fs::read_dir(&folder).expect("documents");
            found.extend(pages.map(|page| page.expect("an entry").path()));
        }
    }
    found.retain(|path| path.extension().is_some_and(|ending| ending == "md") && path.is_file());
    found
}

/// Pieces of code: lines of blocks, and text in backticks.
fn code(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            pieces.push(line.trim().to_owned());
        } else {
            pieces.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    pieces
}

/// The words of each command in a piece, as a shell takes it apart. Without the environment that is
/// set before the command.
fn commands(piece: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote) = (None::<String>, None);
    for char in piece.chars().chain([' ']) {
        match (char, quote) {
            (_, Some(open)) if char == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (' ', None) => {
                let ended = word.take();
                if ended.as_ref().is_some_and(|word| ["|", "&&", ";"].contains(&word.as_str())) {
                    commands.push(Vec::new());
                } else {
                    commands.last_mut().expect("one at least").extend(ended);
                }
            }
            _ => word.get_or_insert_default().push(char),
        }
    }
    for command in &mut commands {
        let set = command.iter().take_while(|word| word.contains('=')).count();
        command.drain(..set);
    }
    commands
}

/// The arguments of a command of ours, if it is one.
fn arguments(words: &[String]) -> Option<&[String]> {
    match words {
        // In a manifest it is a dependency.
        [name, equals, ..] if name == NAME && equals == "=" => None,
        [name, arguments @ ..] if name == NAME => Some(arguments),
        [cargo, verb, ..] if cargo == "cargo" && verb == "run" => {
            let separator = words.iter().position(|word| word == "--")?;
            Some(&words[separator + 1..])
        }
        _ => None,
    }
}

/// A bench that ends soon; and a verb that is only mentioned.
fn shortened(arguments: &[String]) -> Vec<&str> {
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words.len() == 1 {
        words.push("--help");
    } else if words.first() == Some(&"bench") {
        if let Some(rounds) = words.iter().position(|word| *word == "--rounds") {
            words.drain(rounds..rounds + 2);
        }
        words.retain(|word| *word != "--no-instructions");
        words.extend(["--rounds", "1", "--no-instructions"]);
    }
    words
}

/// The files that the documents name.
fn files() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    // A page at 0xfffff000: the first, the fourth and twice the last of 512 entries.
    let mut tables = vec![0_u8; 0x1_4000];
    for (at, descriptor) in [
        (0x1_0000, 0x8001_1003_u64),
        (0x1_1000 + 3 * 8, 0x8001_2003),
        (0x1_2000 + 511 * 8, 0x8001_3003),
        (0x1_3000 + 511 * 8, 0x60_0000_5000_1f43),
    ] {
        tables[at..at + 8].copy_from_slice(&descriptor.to_le_bytes());
    }
    let write = |name: &str, bytes: &[u8]| {
        fs::write(dir.path().join(name), bytes).expect("a file is written");
    };
    write("tables.bin", &tables);
    write("vm.bin", &[0; 0x2000]);
    write("high.bin", &[0; 0x1000]);
    write("TRACE", devices::trace(&devices::several()).as_bytes());
    // Two gigabytes without content take no room.
    let low = File::create(dir.path().join("low.bin")).and_then(|file| file.set_len(0x8002_0000));
    low.expect("a large file");
    dir
}

fn run_in(dir: &Path, arguments: &[String]) -> Ran {
    let mut command = barewire_iommu(&shortened(arguments));
    command.current_dir(dir);
    run_with_input(command, &devices::trace(&devices::several()))
}

/// Runs each command of ours in `text`, and says how many there are.
fn run_all(dir: &Path, source: &str, text: &str) -> usize {
    let mut ran = 0;
    for piece in code(text) {
        for words in commands(&piece) {
            // A name alone is no command.
            let Some(arguments) = arguments(&words).filter(|arguments| !arguments.is_empty())
            else {
                continue;
            };
            let left = run_in(dir, arguments);
            assert_eq!(left.code, Some(0), "{source}: {piece}\n{}", left.stderr);
            ran += 1;
        }
    }
    ran
}

/// The README has the two commands that a new reader needs: one that shows the main job, and the tests.
#[test]
fn the_readme_has_two_commands() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let (_, block) = readme.split_once("```sh\n").expect("a block of commands");
    let (block, rest) = block.split_once("```\n").expect("its end");
    assert_eq!(block, "cargo run --release -- replay --example camera\ncargo test\n");
    assert!(!rest.contains("```sh"), "further commands are in docs");
}

#[test]
fn the_commands_of_the_documents_run() {
    let (dir, mut ran) = (files(), 0);
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        ran += run_all(dir.path(), &path.display().to_string(), &text);
    }
    assert!(ran >= 8, "{ran} commands found");
}

#[test]
fn the_commands_of_the_help_run() {
    let (dir, mut ran) = (files(), 0);
    for verb in [None, Some("bench"), Some("walk"), Some("explain"), Some("replay")] {
        let help: Vec<&str> = verb.into_iter().chain(["--help"]).collect();
        let help = run(&help).ok().text();
        // What stands under "Examples:" is indented by two.
        let (_, examples) = help.split_once("Examples:\n").unwrap_or_default();
        let examples = examples.replace("  ", "    ");
        ran += run_all(dir.path(), &format!("{verb:?} --help"), &examples);
    }
    assert!(ran >= 12, "{ran} commands found");
}

#[test]
fn what_the_documents_give_cargo_exists() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let mut found = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        for words in code(&text).iter().flat_map(|piece| commands(piece)) {
            if words.first().is_none_or(|first| first != "cargo") {
                continue;
            }
            found += 1;
            for pair in words.windows(2) {
                let [option, name] = pair else { continue };
                let exists = match option.as_str() {
                    "-p" => root().join(name).join("Cargo.toml").is_file(),
                    "--profile" => manifest.contains(&format!("[profile.{name}]")),
                    "--test" => documents_test(name),
                    _ => true,
                };
                assert!(exists, "{}: {}", path.display(), words.join(" "));
            }
        }
    }
    assert!(found >= 4, "{found} commands found");
}

/// Whether some crate has a test program of that name, which may end in a star.
fn documents_test(name: &str) -> bool {
    let folders = fs::read_dir(root()).expect("the workspace");
    let tests = folders.filter_map(|folder| fs::read_dir(folder.ok()?.path().join("tests")).ok());
    let mut names = tests.flatten().filter_map(|entry| {
        let path = entry.ok()?.path();
        Some(path.file_stem()?.to_str()?.to_owned())
    });
    match name.strip_suffix('*') {
        Some(begin) => names.any(|test| test.starts_with(begin)),
        None => names.any(|test| test == name),
    }
}

#[test]
fn commands_are_found_as_a_shell_finds_them() {
    let text = "Say `barewire-iommu walk 1`.\n```sh\nA=b trace-cmd report | barewire-iommu replay - --device 'a b*'\n```\n";
    let found: Vec<_> = code(text).iter().flat_map(|piece| commands(piece)).collect();
    let ours: Vec<_> = found.iter().filter_map(|words| arguments(words)).collect();
    assert_eq!(ours, [&["walk", "1"][..], &["replay", "-", "--device", "a b*"]]);
    let built = commands("X='y z' cargo run --release -- replay --example camera");
    assert_eq!(arguments(&built[0]).map(<[_]>::len), Some(3));
}
