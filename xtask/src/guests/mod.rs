//! `cargo xtask guests`: the command under stock Debian kernels, on boards that QEMU emulates.
//!
//! How it works: [`packages`] fetches kernels, [`build`] compiles what goes into a guest, [`boot`]
//! makes an initramfs ([`newc`], [`modules`]), boots it and reads what its script says ([`protocol`]);
//! [`flash`] judges the flash's file afterwards, [`counts`] the instructions, and [`table`] tells all
//! of it. Boards are data ([`board`]); scripts, device trees and C files are in `guests/` of the
//! workspace. docs/guests.md says how to use it.

mod apt;
mod board;
mod boot;
mod build;
mod counts;
mod doc;
mod flash;
mod modules;
mod newc;
mod packages;
mod protocol;
mod table;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use crate::backports;
use crate::ci::{Context, Outcome};
use crate::nearest;
use crate::tally::Tally;
use crate::tools;
use board::{Arch, BOARDS, Board, Boot};
use build::Dirs;
use counts::Counts;
use packages::Packages;
use protocol::{Check, Verdict};
use table::Row;

/// The reviewed instruction counts.
const SNAPSHOT: &str = "guests/instructions.txt";

/// What the command line asked for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Options {
    /// Boards, or boots of them; all if empty.
    only: Vec<String>,
    json: bool,
    update: bool,
}

/// The help text of the command.
pub(crate) fn help() -> String {
    let mut text = String::from(
        "Boots stock Debian kernels on emulated boards and checks barewire beside their drivers.\n\n\
         usage: cargo xtask guests [BOARD[/BOOT]…] [--json] [--update]\n\n\
         options:\n  \
         --json     print one line of JSON on stdout; progress is on stderr\n  \
         --update   look for newer packages, instead of using those in target/guests\n\n\
         boards and their boots:\n",
    );
    for board in BOARDS {
        let boots: Vec<&str> = board.boots.iter().map(|boot| boot.name).collect();
        text += &format!("  {:<12}{}\n", board.name, boots.join(", "));
    }
    text += "\nenvironment:\n  \
             BAREWIRE_BLESS=1          write guests/instructions.txt anew, and fail\n";
    text
}

/// Reads what follows `guests`.
pub(crate) fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    for arg in args {
        match arg.as_str() {
            "--json" => options.json = true,
            "--update" => options.update = true,
            option if option.starts_with('-') => {
                return Err(nearest::unknown("option", option, &["--json", "--update", "--help"]));
            }
            name => options.only.push(known(name)?),
        }
    }
    Ok(options)
}

fn known(name: &str) -> Result<String, String> {
    let (board, boot) = name.split_once('/').map_or((name, None), |(b, boot)| (b, Some(boot)));
    let names: Vec<&str> = BOARDS.iter().map(|board| board.name).collect();
    let found = BOARDS.iter().find(|known| known.name == board);
    let found = found.ok_or_else(|| nearest::unknown("board", board, &names))?;
    let boots: Vec<&str> = found.boots.iter().map(|boot| boot.name).collect();
    match boot {
        Some(boot) if !boots.contains(&boot) => Err(nearest::unknown("boot", boot, &boots)),
        _ => Ok(name.to_owned()),
    }
}

/// One boot to be done.
type Job = (&'static Board, &'static Boot);

impl Options {
    fn jobs(&self) -> Vec<Job> {
        let wanted = |board: &Board, boot: &Boot| {
            let whole = format!("{}/{}", board.name, boot.name);
            self.only.is_empty()
                || self.only.iter().any(|name| *name == board.name || *name == whole)
        };
        let boots = |board: &'static Board| board.boots.iter().map(move |boot| (board, *boot));
        BOARDS.into_iter().flat_map(boots).filter(|(board, boot)| wanted(board, boot)).collect()
    }
}

/// What all guests came to.
#[derive(Debug, Default)]
struct Results {
    rows: Vec<Row>,
    counts: Counts,
}

impl Results {
    fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|(_, check)| check.verdict == verdict).count()
    }
}

/// Why nothing ran.
enum Stop {
    /// This machine lacks something: a skip for people, a failure for a build machine.
    Lacks(String),
    /// Something that should work here did not.
    Broke(String),
}

/// The command; `false` if a check failed.
pub(crate) fn run(options: &Options, cx: &Context) -> Result<bool, String> {
    match all(options, cx) {
        Ok(results) => {
            cx.console.say(&told(options, &results));
            Ok(results.count(Verdict::Failed) == 0)
        }
        Err(Stop::Lacks(why)) if options.json => {
            let results = Results { rows: skipped(options, &why), ..Results::default() };
            cx.console.say(&told(options, &results));
            Ok(!cx.ci)
        }
        Err(Stop::Lacks(why)) => Ok(cx.lacks(&format!("guests: {why}")).counts().1 == 0),
        Err(Stop::Broke(why)) => Err(why),
    }
}

/// The step of CI: each check counts as a test.
pub(crate) fn step(cx: &Context) -> Outcome {
    let options = Options::default();
    tools::for_guests(cx);
    match all(&options, cx) {
        Ok(results) => {
            cx.console.say(&told(&options, &results));
            let skips = results.rows.iter().filter(|(_, check)| check.verdict == Verdict::Skipped);
            let skips = skips.map(|(board, check)| {
                format!("SKIPPED: guest {board}, {}: {}", check.name, check.why)
            });
            let failed = results.count(Verdict::Failed) as u64;
            let wrong = results.rows.iter().filter(|(_, check)| check.verdict == Verdict::Failed);
            let wrong =
                wrong.map(|(board, check)| format!("{board}, {}: {}", check.name, check.why));
            let tally = Tally {
                passed: results.count(Verdict::Passed) as u64,
                failed,
                skipped: skips.collect(),
                failures: wrong.collect(),
                ..Tally::default()
            };
            Outcome::of_tests(failed == 0, tally)
        }
        Err(Stop::Lacks(why)) => cx.lacks(&format!("guests: {why}")),
        Err(Stop::Broke(why)) => {
            cx.console.say(&why);
            Outcome::failed().with_note("guests could not be made".into()).with_failure(why)
        }
    }
}

fn told(options: &Options, results: &Results) -> String {
    if options.json {
        return table::json(&results.rows, &results.counts);
    }
    let mut boards: Vec<&str> = Vec::new();
    for (board, _) in options.jobs() {
        if !boards.contains(&board.name) {
            boards.push(board.name);
        }
    }
    let [passed, failed, skipped] =
        [Verdict::Passed, Verdict::Failed, Verdict::Skipped].map(|verdict| results.count(verdict));
    let mut text = table::text(&boards, &results.rows);
    if !results.counts.is_empty() {
        text += &format!("\n{}", counts::table(&results.counts));
    }
    text + &format!("\nguests: {passed} passed, {failed} failed, {skipped} skipped")
}

fn skipped(options: &Options, why: &str) -> Vec<Row> {
    let check = |(board, boot): Job| (board.name, Check::new(boot.name, Verdict::Skipped, why));
    options.jobs().into_iter().map(check).collect()
}

/// Prepares and boots what was asked for.
fn all(options: &Options, cx: &Context) -> Result<Results, Stop> {
    let say = |line: &str| cx.console.aside(&format!("guests: {line}"));
    let jobs = options.jobs();
    let mut arches: Vec<Arch> = Vec::new();
    for (board, _) in &jobs {
        if !arches.contains(&board.arch) {
            arches.push(board.arch);
        }
    }
    if let Some(why) = lacking(cx, &arches) {
        return Err(Stop::Lacks(why));
    }
    let base = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let dirs = Dirs { work: cx.root.join(base).join("guests"), root: cx.root.clone() };
    let packages = Packages::obtain(&dirs.work, options.update, &say).map_err(Stop::Lacks)?;
    let set = prepare(&dirs, &packages, &jobs, &say).map_err(Stop::Broke)?;
    let mut results = boot_all(set, &say).map_err(Stop::Broke)?;
    let without = jobs.iter().filter(|(_, boot)| boot.newer && packages.newer.is_none());
    results.rows.extend(without.map(|(board, boot)| {
        let why = "no Linux 6.12 for arm64 in apt's sources";
        (board.name, Check::new(boot.name, Verdict::Skipped, why))
    }));
    judge_counts(&dirs, &jobs, &mut results).map_err(Stop::Broke)?;
    Ok(results)
}

fn lacking(cx: &Context, arches: &[Arch]) -> Option<String> {
    if let Some(missing) = build::missing(arches) {
        return Some(missing);
    }
    if !backports::is_new_enough(cx) {
        return Some("QEMU is older than 10".to_owned());
    }
    let mut targets = arches.iter().flat_map(|arch| [arch.target(), arch.library()]);
    let target = targets.find(|name| !tools::has_target(cx, name));
    target.map(|target| format!("no standard library for {target}"))
}

/// Builds everything that the jobs boot.
fn prepare<'a>(
    dirs: &'a Dirs,
    packages: &Packages,
    jobs: &[Job],
    say: &dyn Fn(&str),
) -> Result<Vec<boot::Parts<'a>>, String> {
    let mut parts: Vec<boot::Parts<'_>> = Vec::new();
    let wiring = build::wiring(dirs)?;
    for &(board, boot) in jobs {
        let kernel = match (boot.newer, &packages.newer) {
            (false, _) => packages.kernel(board.arch),
            (true, Some(newer)) => newer,
            (true, None) => continue,
        };
        let built = parts.iter().find(|other| other.board.arch == board.arch);
        let built = built.map(|other| {
            (other.command.clone(), other.hand_written.clone(), other.programs.clone())
        });
        let (command, hand_written, programs) = match built {
            Some(built) => built,
            None => {
                say(&format!("building the command for {}", board.arch.target()));
                let (command, hand_written) =
                    (build::command(dirs, board.arch)?, build::hand_written(dirs, board.arch)?);
                say(&format!("building the library for {}", board.arch.library()));
                (command, hand_written, programs(dirs, board.arch)?)
            }
        };
        let uio_module = match boot.modules.contains(&"uio") {
            true => Some(build::uio_module(dirs, kernel, board.arch, &packages.uio_source)?),
            false => None,
        };
        let modules = modules::Index::read(&kernel.modules())?
            .closure(&[board.modules, boot.modules].concat())?;
        let fragment = format!("{}-{}", board.name, boot.tree);
        parts.push(boot::Parts {
            dirs,
            board,
            boot,
            kernel: kernel.boot(),
            device_tree: build::device_tree(
                dirs,
                kernel,
                board.tree,
                &fragment,
                boot.merged.then_some(board.name),
            )?,
            wiring: wiring.clone(),
            busybox: packages.busybox(board.arch),
            command,
            hand_written,
            programs,
            modules,
            uio_module,
        });
    }
    Ok(parts)
}

fn programs(dirs: &Dirs, arch: Arch) -> Result<boot::Programs, String> {
    let (library, clients) = (build::library(dirs, arch)?, build::clients(dirs, arch)?);
    Ok(boot::Programs { library, clients, c_library: build::c_library(arch)? })
}

/// Boots all, two at a time where there are two processors, and gathers in the order of the jobs.
fn boot_all(parts: Vec<boot::Parts<'_>>, say: &(dyn Fn(&str) + Sync)) -> Result<Results, String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let total = parts.len();
    let waiting: Mutex<VecDeque<_>> = Mutex::new(parts.into_iter().enumerate().collect());
    let ended = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..processors.min(2) {
            scope.spawn(|| {
                // The lock is not held while a guest runs.
                let next = || waiting.lock().expect("no panic under this lock").pop_front();
                while let Some((index, parts)) = next() {
                    let name = format!("{}/{}", parts.board.name, parts.boot.name);
                    say(&format!("{name} boots ({} of {total})", index + 1));
                    let started = Instant::now();
                    let said = parts.run();
                    say(&format!("{name}: {}", brief(&said, started.elapsed().as_secs_f64())));
                    let mut ended = ended.lock().expect("no panic under this lock");
                    ended.push((index, parts.board.name, said));
                }
            });
        }
    });
    let mut ended = ended.into_inner().expect("no panic under this lock");
    ended.sort_by_key(|(index, ..)| *index);
    let mut results = Results::default();
    for (_, board, said) in ended {
        let said = said?;
        results.rows.extend(said.checks.into_iter().map(|check| (board, check)));
        let counts = said.counts.into_iter();
        results.counts.extend(counts.map(|(path, count)| ((board.to_owned(), path), count)));
    }
    Ok(results)
}

/// A guest's end in a line.
fn brief(said: &Result<boot::Said, String>, seconds: f64) -> String {
    match said {
        Ok(said) => {
            let count = |verdict| said.checks.iter().filter(|c| c.verdict == verdict).count();
            let (passed, failed) = (count(Verdict::Passed), count(Verdict::Failed));
            format!("{passed} passed, {failed} failed, {seconds:.1} s")
        }
        Err(why) => format!("could not run: {why}"),
    }
}

/// Compares what was counted with the reviewed table, or writes it.
fn judge_counts(dirs: &Dirs, jobs: &[Job], results: &mut Results) -> Result<(), String> {
    let path = dirs.root.join(SNAPSHOT);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let reviewed = counts::parse(&text).map_err(|why| format!("{SNAPSHOT}: {why}"))?;
    let bless = std::env::var_os("BAREWIRE_BLESS").is_some_and(|value| value == "1");
    if bless && !results.counts.is_empty() {
        let blessed = counts::table(&counts::blessed(&reviewed, &results.counts));
        std::fs::write(&path, blessed).map_err(|e| format!("cannot write {SNAPSHOT}: {e}"))?;
    }
    for (board, _) in jobs.iter().filter(|(_, boot)| boot.counted) {
        let check = if bless {
            Check::new("instructions", Verdict::Failed, "snapshot written: review and run again")
        } else {
            counts::judge(board.name, &results.counts, &reviewed)
        };
        results.rows.push((board.name, check));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn boards_and_boots_are_chosen_by_name() {
        let all = parsed("").expect("nothing is all").jobs().len();
        assert_eq!(all, BOARDS.iter().map(|board| board.boots.len()).sum::<usize>());
        let one = parsed("raspi3b/uio").expect("a boot").jobs();
        assert_eq!((one.len(), one[0].0.name, one[0].1.name), (1, "raspi3b", "uio"));
        let board = parsed("sabrelite --json").expect("a board");
        assert!(board.json && board.jobs().iter().all(|(board, _)| board.name == "sabrelite"));
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_near_one() {
        for (line, near) in [
            ("sabrelit", "`sabrelite`"),
            ("raspi3b/maped", "`mapped`"),
            ("sabrelite/overlay", "known"),
            ("--jsn", "`--json`"),
        ] {
            let message = parsed(line).expect_err("no such name");
            assert!(message.contains(near), "{message}");
        }
    }

    #[test]
    fn what_cannot_run_is_skipped_boot_by_boot() {
        let options = parsed("highbank").expect("a board");
        let rows = skipped(&options, "no QEMU");
        assert_eq!(rows.len(), 5);
        assert!(rows.iter().all(|(board, check)| {
            *board == "highbank" && check.verdict == Verdict::Skipped && check.why == "no QEMU"
        }));
    }

    #[test]
    fn help_names_every_board() {
        assert!(BOARDS.iter().all(|board| help().contains(board.name)));
    }
}
