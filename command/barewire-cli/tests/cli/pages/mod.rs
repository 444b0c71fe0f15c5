//! Tests every command of every page: each is parsed, and run where that needs no board.
//!
//! # How it works
//! [`text`] finds what may be a command: fenced and indented blocks, spans in backticks, steps of workflows, comments of
//! examples, and what `--help` shows. [`shell`] takes it apart. [`barewire`](mod@barewire) parses by the command's own definition
//! and runs what it can in a temporary directory for each page, in the page's order. [`cargo`] asks `cargo metadata`. Everything
//! else in a block of shell must be shell (`bash -n`), and files of this repository that it names must exist. [`lists`] asks
//! whether lists of the controllers are whole.
//!
//! A remark behind a command says how it ends: `# exits 3`, `# must fail`. Names in capitals are filled in by a table.
//!
//! A block behind `<!-- output: COMMAND -->` must be what the command prints, to the letter ([`output`]). Figures have
//! marks that say where they are from ([`figures`]).
//!
//! # Not checked
//! The output of other commands. Pages of `iommu/`, whose workspace checks them itself.

mod barewire;
mod cargo;
mod figures;
mod lists;
mod output;
mod shell;
mod text;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use barewire::Run;
use cargo::Cargo;
use clap::error::ErrorKind;
use shell::Simple;
use text::Snippet;

/// Folders whose files a page may name.
const FOLDERS: &str = "bench bindings command contrib docs examples guests kernel lab stack xtask";
/// Programs whose commands are counted, and found in sentences too.
const OURS: &str = "barewire cargo pip python3 v/bin/pip v/bin/python";
/// Pages beside those of `docs/` and of the workflows.
const PAGES: &str = "README.md CONTRIBUTING.md ARCHITECTURE.md SECURITY.md contrib/README.md lab/README.md \
                     command/barewire-cli/README.md stack/barewire/README.md stack/barewire-linux/README.md \
                     bindings/c/README.md bindings/python/README.md examples/jedec.c examples/sine.py \
                     examples/firmware/src/main.rs";

/// All commands found, and their errors.
struct Findings {
    root: PathBuf,
    cargo: Cargo,
    found: usize,
    /// By page, so that a page's commands find what those before them made.
    runs: Vec<Vec<Run>>,
    seen: HashSet<Vec<String>>,
    problems: Vec<String>,
}

impl Findings {
    fn new() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (cargo, seen) = (Cargo::read(&root), HashSet::new());
        Self { root, cargo, found: 0, runs: Vec::new(), seen, problems: Vec::new() }
    }

    /// The files that are checked.
    fn pages(&self) -> Vec<String> {
        let folder = |folder: &str, ending: &str| {
            let entries = fs::read_dir(self.root.join(folder)).expect("a folder").flatten();
            let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
            let names = names.filter(|name| name.ends_with(ending));
            names.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
        };
        let mut pages: Vec<String> = PAGES.split_whitespace().map(String::from).collect();
        pages.extend(folder("docs", ".md").into_iter().chain(folder(".github/workflows", ".yml")));
        pages
    }

    fn page(&mut self, page: &str, snippets: Vec<Snippet>) {
        self.runs.push(Vec::new());
        for Snippet { line, text, inline } in snippets {
            if !inline && !is_shell(&text) {
                self.problems.push(format!("{page}:{line}: bash cannot read it"));
            }
            for simple in shell::commands(&text, line) {
                let place = format!("{page}:{}", simple.line);
                if let Err(why) = self.command(&place, &simple, inline) {
                    self.problems.push(format!("{place}: `{}`: {why}", simple.words.join(" ")));
                }
            }
        }
    }

    fn command(&mut self, place: &str, simple: &Simple, inline: bool) -> Result<(), String> {
        let words = &simple.words;
        let is_ours = OURS.split(' ').any(|program| program == words[0]);
        // A name alone, or a line of a manifest, is no command.
        if inline && (!is_ours || words.len() == 1 || words[1] == "=") {
            return Ok(());
        }
        self.found += usize::from(is_ours);
        words.iter().try_for_each(|word| self.exists(word))?;
        let (mut filled, partial) = barewire::filled(words);
        if words[0] == "cargo" {
            let Some(words) = self.cargo.check(&filled, &simple.dir)? else { return Ok(()) };
            filled = words;
        } else if words[0] != "barewire" {
            return Ok(());
        }
        barewire::check(&filled, inline || partial)?;
        // A command in a sentence that lacks arguments is only named, not to be run.
        let is_whole = !simple.piped && barewire::check(&filled, false).is_ok();
        // A command runs once, unless it depends on what a page's commands did before.
        let line = filled.join(" ");
        let depends = [".bin", ".vcd", "board.toml"].iter().any(|file| line.contains(file));
        let is_new = self.seen.insert(filled.clone()) || depends;
        if is_whole && is_new && barewire::runs(&filled) {
            let (place, code) = (place.into(), barewire::code(&simple.comment));
            self.runs.last_mut().expect("a page").push(Run { place, words: filled, code });
        }
        Ok(())
    }

    /// Files of the repository must be there.
    fn exists(&self, word: &str) -> Result<(), String> {
        let path = word.trim_start_matches("./");
        // A Python package's extras: `./bindings/python[fleet]`.
        let path = path.split_once('[').map_or(path, |(package, _)| package);
        let (folder, _) = path.split_once('/').unwrap_or_default();
        let ours = FOLDERS.split(' ').any(|known| known == folder);
        let missing = ours && !path.contains(['*', '$']) && !self.root.join(path).exists();
        if missing { Err(format!("there is no {path}")) } else { Ok(()) }
    }

    /// Runs the commands that can be run, two pages at a time. Returns their number.
    fn run(&mut self) -> usize {
        let (pages, wrong) = (Mutex::new(self.runs.iter()), Mutex::new(Vec::new()));
        let next = || pages.lock().expect("no thread panics").next();
        let root = &self.root;
        let work = || {
            while let Some(runs) = next() {
                let dir = tempfile::tempdir().expect("a temporary directory");
                barewire::fixtures(root, dir.path());
                let found: Vec<_> = runs.iter().filter_map(|run| run.run(dir.path())).collect();
                wrong.lock().expect("no thread panics").extend(found);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(work);
            work();
        });
        self.problems.extend(wrong.into_inner().expect("no thread panics"));
        self.runs.iter().map(Vec::len).sum()
    }
}

/// Clap's verdict on a command line. With `named`, the line may lack arguments, and its last option may lack a value.
fn parsed(result: Result<(), clap::Error>, named: bool) -> Result<(), String> {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    use ErrorKind::{InvalidValue, MissingRequiredArgument, MissingSubcommand};
    let Err(error) = result else { return Ok(()) };
    match error.kind() {
        DisplayHelp | DisplayVersion => Ok(()),
        DisplayHelpOnMissingArgumentOrSubcommand if named => Ok(()),
        MissingRequiredArgument | MissingSubcommand if named => Ok(()),
        InvalidValue if named && error.to_string().contains("none was supplied") => Ok(()),
        DisplayHelpOnMissingArgumentOrSubcommand => Err("it lacks a subcommand".into()),
        _ => Err(error.to_string().lines().next().unwrap_or_default().to_owned()),
    }
}

/// Whether bash can read it; true where there is no bash.
fn is_shell(text: &str) -> bool {
    let mut bash = Command::new("bash");
    bash.args(["-n", "-c", text]).stderr(Stdio::null());
    bash.status().is_ok_and(|status| status.success()) || bash.status().is_err()
}

#[test]
fn every_command_of_every_page_holds() {
    let mut findings = Findings::new();
    for page in findings.pages() {
        let text = fs::read_to_string(findings.root.join(&page)).expect("a page");
        let snippets = match page.rsplit('.').next() {
            Some("md") => text::of_page(&text),
            Some("yml") => text::of_workflow(&text),
            _ => text::of_source(&text),
        };
        findings.page(&page, snippets);
    }
    for (page, snippets) in text::of_help(&barewire_cli::command(), "barewire") {
        findings.page(&page, snippets);
    }
    let (found, ran) = (findings.found, findings.run());
    println!("FIGURE: pages: {found} commands of barewire, cargo and pip parsed, {ran} run");
    assert!(found > 150 && ran > 30, "{found} found, {ran} run");
    assert!(findings.problems.is_empty(), "\n{}", findings.problems.join("\n"));
}

#[test]
fn what_is_wrong_on_a_page_is_found() {
    let mut findings = Findings::new();
    let mut wrong = |page: &str| {
        findings.page("page", text::of_page(page));
        std::mem::take(&mut findings.problems).join("\n")
    };
    for (page, why) in [
        ("a\n`barewire flash id --jsn`", "page:2: `barewire flash id --jsn`: error: unexpected"),
        ("`barewire flsh id`", "unrecognized subcommand 'flsh'"),
        ("```\nbarewire flash\n```", "lacks a subcommand"),
        ("```\nbarewire serve --serprog /tmp/chip\n```", "required arguments were not provided"),
        ("```\nbarewire flash id --bus sim:imx8mq\n```", "imx8mq"),
        ("`barewire run --map /dev/spidev0.0=sim:rpi33,cs=1 -- a`", "rpi33"),
        ("`cargo xtask ci --step clipy`", "invalid value 'clipy'"),
        ("`cargo xtask guests all boards`", "invalid value 'all'"),
        ("`cargo test -p barewire --test lom`", "no test \"lom\""),
        ("`cargo test -p barewire --lib no_such_test`", "no test with the name \"no_such_test\""),
        ("`cargo test -p barewir`", "no package \"barewir\""),
        ("`cargo run -p barewire-sim --example no_chip`", "no example"),
        ("`cargo build -p barewire --features defnt`", "no feature"),
        ("`cargo test --profile cii`", "no profile"),
        ("`cargo tst`", "invalid value 'tst'"),
        ("`cargo run --release -- dmo`", "unrecognized subcommand 'dmo'"),
        ("```\ncc examples/none.c\n```", "there is no examples/none.c"),
        ("```\nfor x in y; do\n```", "bash cannot read it"),
    ] {
        let said = wrong(page);
        assert!(said.contains(why), "{page:?}: {why:?} is not in {said:?}");
    }
    for page in [
        "`barewire flash` and `barewire` and `barewire = \"0.2\"`, `other --thing`",
        "`barewire flash … --read-speed-hz 8M`, `barewire run --map …`, `barewire COMMAND --help`",
        "`cargo xtask guests [BOARD[/BOOT]…]`, `cargo xtask ci --help`",
        "```\nwhat a command prints: barewire flsh\n```",
    ] {
        assert_eq!(wrong(page), "", "{page}");
    }
    let read = "barewire flash read --bus null: x.bin";
    let xfer = "barewire xfer --bus sim:imx8mp";
    let page = format!("```\n{read}\n{xfer} 9f  # must fail\n{xfer} 05\n```\n");
    assert_eq!((wrong(&page), findings.run()), (String::new(), 4));
    let said = findings.problems.join("\n");
    assert!(said.contains("page:2: `barewire flash read") && said.lines().count() == 2, "{said}");
    assert!(said.contains(&format!("page:3: `{xfer} 9f` ends with Some(0), not 1: ")), "{said}");
}
