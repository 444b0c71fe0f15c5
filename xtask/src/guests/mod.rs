//! `cargo xtask guests`: the command under stock Debian kernels, on boards that QEMU emulates.
//!
//! How it works: [`packages`] fetches kernels, [`build`] compiles what goes into a guest, [`boot`]
//! makes an initramfs ([`newc`], [`modules`]), boots it and reads what its script says ([`protocol`]);
//! [`flash`] judges the flash's file afterwards, [`counts`] and [`steps`] the instructions, and [`table`]
//! prints the report. Boards are data ([`board`]); scripts, device trees and C files are in `guests/` of the
//! workspace. docs/guests.md says how to use it.

pub(crate) mod apt;
mod board;
mod boot;
mod build;
mod choice;
mod counts;
mod doc;
mod flash;
pub(crate) mod module;
mod modules;
pub(crate) mod newc;
mod packages;
mod priced;
mod protocol;
mod reviewed;
mod steps;
mod table;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use clap::builder::PossibleValuesParser;

use crate::check::{Check, Verdict, is_blessing};
use crate::context::{Context, Outcome, Stop};
use crate::needs::{self, Need};
use crate::report::End;
use crate::static_build;
use crate::step::{Lane, Step};
use crate::tally::Tally;
use board::{Arch, Board, Boot, Flavour};
use build::Dirs;
use counts::Counts;
use packages::{Kernel, Packages};
use table::Row;

/// The reviewed instruction counts.
const SNAPSHOT: &str = "guests/instructions.txt";

/// What a step of guests needs, besides its own.
macro_rules! guest_needs {
    ($($own:expr),* $(,)?) => {
        &[
            Need::Qemu("qemu-system-aarch64"),
            Need::Qemu("qemu-system-arm"),
            Need::package("gcc"),
            Need::package("make"),
            Need::program("device-tree-compiler", "dtc"),
            Need::program("dpkg", "dpkg-deb"),
            Need::package("tar"),
            Need::program("xz-utils", "xz"),
            Need::program("util-linux", "setpriv"),
            Need::program("gcc-aarch64-linux-gnu", "aarch64-linux-gnu-gcc"),
            Need::program("gcc-arm-linux-gnueabihf", "arm-linux-gnueabihf-gcc"),
            // The C library comes with the compiler by recommendation only.
            Need::program("libc6-dev-arm64-cross", "/usr/aarch64-linux-gnu/lib/libc.a"),
            Need::program("libc6-dev-armhf-cross", "/usr/arm-linux-gnueabihf/lib/libc.a"),
            $($own,)*
        ]
    };
}
use guest_needs;

/// The step of CI.
pub(crate) const STEP: Step = Step {
    name: "guests",
    about: "the command beside stock kernels on emulated boards",
    lane: Lane::Boots,
    minutes: 14,
    needs: guest_needs![
        Need::Target(static_build::ARM64),
        Need::Target(static_build::ARMHF),
        Need::Target(static_build::LIBRARY_ARM64),
    ],
    paths: &[
        "stack/",
        "bench/",
        "bindings/",
        "scope/",
        "command/",
        "guests/",
        "contrib/",
        "docs/boards.md",
    ],
    run: step,
};

/// The options of the command line.
#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct Options {
    /// Boards, or boots of them; all unless told
    #[arg(value_name = "BOARD[/BOOT]", value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    only: Vec<String>,
    /// Print one line of JSON on stdout; progress is on stderr
    #[arg(long)]
    json: bool,
    /// Look for newer packages, instead of using those in target/guests
    #[arg(long)]
    update: bool,
    #[command(flatten)]
    priced: priced::Pricing,
}

/// The boots of the command.
const BOOTS: choice::Boots = |board| board.boots;

/// Those of `--priced`, of the same boards.
fn names() -> Vec<&'static str> {
    let priced = choice::names(priced::BOOTS).into_iter().filter(|name| name.contains('/'));
    choice::names(BOOTS).into_iter().chain(priced).collect()
}

/// The boards for the help text.
pub(crate) fn list() -> String {
    choice::list(BOOTS)
        + "\nBAREWIRE_BLESS=1 writes guests/instructions.txt and guests/steps.txt anew, or with --priced\nguests/priced.txt, and fails."
}

/// One boot to be done.
type Job = (&'static Board, &'static Boot);

impl Options {
    fn jobs(&self) -> Vec<Job> {
        choice::jobs(if self.priced.is_asked() { priced::BOOTS } else { BOOTS }, &self.only)
    }
}

/// The results of all guests.
#[derive(Debug, Default)]
struct Results {
    rows: Vec<Row>,
    counts: Counts,
    /// The kernels' steps, of the boots that counted them.
    steps: Vec<steps::Steps>,
}

impl Results {
    /// Those of one boot.
    fn of(parts: &boot::Parts<'_>, said: boot::GuestReport) -> Self {
        let (board, boot) = (parts.board.name, parts.boot.name);
        let mut results = Self::default();
        if !said.steps.is_empty() {
            let kernel = parts.version.clone();
            results.steps.push(steps::Steps { board, boot, kernel, counted: said.steps });
        }
        results.rows = said.checks.into_iter().map(|check| (board, check)).collect();
        let counts = said.counts.into_iter();
        results.counts = counts.map(|(path, count)| ((board.to_owned(), path), count)).collect();
        results
    }

    fn add(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.counts.extend(other.counts);
        self.steps.extend(other.steps);
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|(_, check)| check.verdict == verdict).count()
    }

    /// The end of a command. Guests of which none ran have shown nothing.
    fn end(&self) -> End {
        match (self.count(Verdict::Failed), self.count(Verdict::Passed)) {
            (0, 0) => End::Incomplete,
            (0, _) => End::Passed,
            _ => End::Failed,
        }
    }

    /// Those of boots that did not run.
    fn skipped(jobs: Vec<Job>, why: &str) -> Self {
        let check = |(board, boot): Job| (board.name, Check::new(boot.name, Verdict::Skipped, why));
        Self { rows: jobs.into_iter().map(check).collect(), ..Self::default() }
    }

    /// The end of a step in which each check counts as a test.
    fn outcome(&self) -> Outcome {
        let of = |verdict| self.rows.iter().filter(move |(_, check)| check.verdict == verdict);
        let line = |(board, check): &Row| format!("{board}, {}: {}", check.name, check.why);
        let skips = of(Verdict::Skipped).map(|row| format!("SKIPPED: guest {}", line(row)));
        let failed = self.count(Verdict::Failed) as u64;
        let tally = Tally {
            passed: self.count(Verdict::Passed) as u64,
            failed,
            skipped: skips.collect(),
            failures: of(Verdict::Failed).map(line).collect(),
            ..Tally::default()
        };
        Outcome::of_tests(failed == 0, tally)
    }
}

/// The command.
pub(crate) fn run(options: &Options, cx: &Context) -> Result<End, String> {
    if options.priced.is_asked() {
        return priced::run(options, cx);
    }
    if options.jobs().is_empty() {
        return Err(format!("{} is a boot of --priced", options.only.join(" ")));
    }
    let results = match needs::obtain(STEP.needs, cx) {
        None => all(options, cx),
        Some(lacking) => Err(Stop::Lacks(lacking)),
    };
    match results {
        Ok(results) => {
            cx.console.say(&told(options, &results));
            Ok(results.end())
        }
        Err(Stop::Lacks(why)) if options.json => {
            cx.console.say(&told(options, &Results::skipped(options.jobs(), &why)));
            Ok(if cx.ci { End::Failed } else { End::Incomplete })
        }
        Err(stop) => Ok(End::of(&stop.outcome(STEP.name, cx))),
    }
}

/// Each check counts as a test.
pub(crate) fn step(cx: &Context) -> Outcome {
    let options = Options { only: choice::of_ci(BOOTS), ..Options::default() };
    let results = match all(&options, cx) {
        Ok(results) => results,
        Err(stop) => return stop.outcome(STEP.name, cx),
    };
    cx.console.say(&told(&options, &results));
    results.outcome()
}

fn told(options: &Options, results: &Results) -> String {
    if options.json {
        return table::json(&results.rows, &results.counts, &results.steps);
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
    if !results.steps.is_empty() {
        text += &format!("\n{}", steps::table(&results.steps));
    }
    text + &format!("\nguests: {passed} passed, {failed} failed, {skipped} skipped")
}

/// Prepares and boots what was asked for, and judges the counts.
fn all(options: &Options, cx: &Context) -> Result<Results, Stop> {
    let jobs = options.jobs();
    let reviewed = Reviewed::read(&cx.root).map_err(Stop::Broke)?;
    let mut results = boots(
        cx,
        "guests",
        &jobs,
        options.update,
        build,
        |dirs, packages, compiled, job, kernel| files(dirs, packages, compiled, job, kernel),
        |job, one| reviewed.judge(&[job], one),
    )?;
    if is_blessing() {
        reviewed.bless(&cx.root, &results).map_err(Stop::Broke)?;
    }
    results.rows.extend(reviewed.judge(&jobs, &results));
    Ok(results)
}

/// Boots all jobs: `build` compiles for their architectures while packages are fetched, `files` names those of a
/// boot, and `judge` compares what one counted with what was reviewed. `who` is the subcommand.
fn boots<B: Send>(
    cx: &Context,
    who: &str,
    jobs: &[Job],
    update: bool,
    build: impl FnOnce(&Dirs, &[Arch], &dyn Fn(&str)) -> Result<B, String> + Send,
    files: impl Fn(&Dirs, &Packages, &B, Job, &Kernel) -> Result<boot::Files, String>,
    judge: impl Fn(Job, &Results) -> Vec<Row> + Sync,
) -> Result<Results, Stop> {
    let say = |line: &str| cx.console.aside(&format!("{who}: {line}"));
    let dirs = Dirs { work: cx.target().join("guests"), root: cx.root.clone() };
    let arches = arches(jobs);
    // One waits for the network, the other computes.
    let (packages, built) = std::thread::scope(|scope| {
        let building = scope.spawn(|| build(&dirs, &arches, &say));
        let packages = Packages::obtain(&dirs.work, update, &say);
        (packages, building.join().expect("no build panics"))
    });
    let (packages, built) = (packages.map_err(Stop::Lacks)?, built.map_err(Stop::Broke)?);
    let files = |job, kernel: &Kernel| files(&dirs, &packages, &built, job, kernel);
    let set = prepare(&dirs, &packages, jobs, files).map_err(Stop::Broke)?;
    let mut results = boot_all(set, &say, &judge).map_err(Stop::Broke)?;
    let without =
        jobs.iter().filter(|(board, boot)| packages.kernel(board.arch, boot.kernel).is_none());
    results.rows.extend(without.map(|(board, boot)| {
        let what = boot.kernel.describe();
        let why = format!(
            "no {what} for arm64 in apt's sources; once they have it: cargo xtask {who} --update {}/{}",
            board.name, boot.name
        );
        (board.name, Check::new(boot.name, Verdict::Skipped, why))
    }));
    Ok(results)
}

/// The architectures of the boards whose jobs run something of ours, each once.
fn arches(jobs: &[Job]) -> Vec<Arch> {
    let mut arches: Vec<Arch> = Vec::new();
    for (board, _) in jobs.iter().filter(|(_, boot)| !boot.stepped) {
        if !arches.contains(&board.arch) {
            arches.push(board.arch);
        }
    }
    arches
}

/// What is compiled for an architecture, by its place in a guest.
type Compiled = (Arch, boot::Files);

/// Compiles for architectures: the command, the hand-written loop, and the programs with their C library.
fn build(dirs: &Dirs, arches: &[Arch], say: &dyn Fn(&str)) -> Result<Vec<Compiled>, String> {
    if arches.is_empty() {
        return Ok(Vec::new());
    }
    let targets: Vec<_> = arches.iter().map(|arch| arch.target()).collect();
    say(&format!("building the command for {}", targets.join(" and ")));
    let built = build::cargo(dirs, arches)?.into_iter().map(|made| {
        let mut files = placed("bin", build::clients(dirs, made.arch)?);
        files.extend(placed("lib", build::c_library(made.arch)?));
        files.push(("bin/spibench".into(), build::marked(dirs, made.arch, "spibench")?));
        files.push(("bin/barewire".into(), made.command));
        files.push(("bin/libbarewire_spidev.so".into(), made.library));
        Ok((made.arch, files))
    });
    built.collect()
}

/// Files under their own names in a directory of a guest.
fn placed(directory: &str, files: Vec<PathBuf>) -> boot::Files {
    let name = |file: &PathBuf| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    files.into_iter().map(|file| (format!("{directory}/{}", name(&file)), file)).collect()
}

/// The files of a boot.
fn files(
    dirs: &Dirs,
    packages: &Packages,
    compiled: &[Compiled],
    (board, boot): Job,
    kernel: &Kernel,
) -> Result<boot::Files, String> {
    if boot.stepped {
        let source = dirs.source("steps_spi.c");
        return Ok(vec![
            ("bin/spisteps".into(), build::marked(dirs, board.arch, "spisteps")?),
            ("m/steps_spi.ko".into(), build::module(dirs, kernel, board.arch, &source)?),
        ]);
    }
    let own = compiled.iter().find(|(arch, _)| *arch == board.arch);
    let mut files = own.map(|(_, files)| files.clone()).unwrap_or_default();
    if boot.modules.contains(&"uio") {
        let module = build::module(dirs, kernel, board.arch, &packages.uio_source)?;
        files.push(("m/uio_pdrv_genirq.ko".into(), module));
    }
    if boot.judged {
        files.push(("bin/under_load".into(), build::judge(dirs, board.arch)?));
    }
    Ok(files)
}

/// Makes everything else that the jobs boot.
fn prepare<'a>(
    dirs: &'a Dirs,
    packages: &Packages,
    jobs: &[Job],
    files: impl Fn(Job, &Kernel) -> Result<boot::Files, String>,
) -> Result<Vec<boot::Parts<'a>>, String> {
    let mut parts: Vec<boot::Parts<'_>> = Vec::new();
    let wiring = build::plugin(dirs, "wire")?;
    for &(board, boot) in jobs {
        let Some(kernel) = packages.kernel(board.arch, boot.kernel) else { continue };
        let modules = modules::Index::read(&kernel.modules())?
            .closure(&[board.modules, boot.modules].concat())?;
        let fragment = format!("{}-{}", board.name, boot.tree);
        parts.push(boot::Parts {
            dirs,
            board,
            boot,
            version: kernel.version.clone(),
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
            stepping: boot.stepped.then(|| build::plugin(dirs, "steps")).transpose()?,
            pricing: boot.priced.then(|| build::plugin(dirs, "priced")).transpose()?,
            modules,
            files: files((board, boot), kernel)?,
        });
    }
    Ok(parts)
}

/// Boots all, and gathers in the order of the jobs. With two processors, three at a time, because a guest often waits.
/// Those with the latest deadline are first, so that the last one to end is a short one.
fn boot_all(
    parts: Vec<boot::Parts<'_>>,
    say: &(dyn Fn(&str) + Sync),
    judge: &(dyn Fn(Job, &Results) -> Vec<Row> + Sync),
) -> Result<Results, String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = if processors < 2 { 1 } else { 3 };
    let total = parts.len();
    let mut waiting: Vec<_> = parts.into_iter().enumerate().collect();
    waiting.sort_by_key(|(_, parts)| Reverse(parts.boot.timeout_s));
    let waiting = Mutex::new(VecDeque::from(waiting));
    let ended = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                // The lock is not held while a guest runs.
                let next = || waiting.lock().expect("no panic under this lock").pop_front();
                while let Some((index, parts)) = next() {
                    let name = format!("{}/{}", parts.board.name, parts.boot.name);
                    say(&format!("{name} boots ({} of {total})", index + 1));
                    let once = || {
                        let started = Instant::now();
                        let one = parts.run().map(|said| Results::of(&parts, said));
                        say(&format!("{name}: {}", brief(&one, started.elapsed().as_secs_f64())));
                        one
                    };
                    // While the tables are written, nothing is compared.
                    let judged = |one: &Results| match is_blessing() {
                        true => Vec::new(),
                        false => judge((parts.board, parts.boot), one),
                    };
                    let one = twice_if_off(once, judged, |why| {
                        say(&format!("{name} boots again, since a count may be of luck: {why}"));
                    });
                    let mut ended = ended.lock().expect("no panic under this lock");
                    ended.push((index, one));
                }
            });
        }
    });
    let mut ended = ended.into_inner().expect("no panic under this lock");
    ended.sort_by_key(|(index, _)| *index);
    let mut results = Results::default();
    for (_, one) in ended {
        results.add(one?);
    }
    Ok(results)
}

/// A boot, or another one if all went well in it but what it counted is not what was reviewed: on which processor a thread sleeps, and how many
/// interrupts come together, differs from boot to boot (in one of twenty, by 6 %). What changed, changed in both.
fn twice_if_off(
    once: impl Fn() -> Result<Results, String>,
    judge: impl Fn(&Results) -> Vec<Row>,
    say: impl Fn(&str),
) -> Result<Results, String> {
    let one = once()?;
    // What went wrong once is said, whatever the next boot would say.
    if one.count(Verdict::Failed) != 0 {
        return Ok(one);
    }
    match judge(&one).iter().find(|(_, check)| check.verdict == Verdict::Failed) {
        Some((_, check)) => {
            say(&check.why);
            once()
        }
        None => Ok(one),
    }
}

/// A guest's end in a line.
fn brief(one: &Result<Results, String>, seconds: f64) -> String {
    match one {
        Ok(one) => {
            let (passed, failed) = (one.count(Verdict::Passed), one.count(Verdict::Failed));
            format!("{passed} passed, {failed} failed, {seconds:.1} s")
        }
        Err(why) => format!("could not run: {why}"),
    }
}

/// The reviewed tables.
struct Reviewed {
    counts: Counts,
    steps: steps::Table,
}

impl Reviewed {
    fn read(root: &Path) -> Result<Self, String> {
        let counts = reviewed::read(root, SNAPSHOT, counts::parse)?;
        Ok(Self { counts, steps: steps::Table::read(root)? })
    }

    /// Writes what was counted in their place.
    fn bless(&self, root: &Path, results: &Results) -> Result<(), String> {
        if !results.counts.is_empty() {
            let blessed = counts::table(&counts::blessed(&self.counts, &results.counts));
            reviewed::write(root, SNAPSHOT, blessed)?;
        }
        self.steps.bless(root, &results.steps)
    }

    /// Compares what was counted with them.
    fn judge(&self, jobs: &[Job], results: &Results) -> Vec<Row> {
        // Only paths of the kernel are counted on other kernels: they inform.
        let gates =
            |(_, boot): &&Job| boot.counted && !boot.stepped && boot.kernel == Flavour::Stock;
        let counts = jobs.iter().filter(gates).map(|(board, _)| {
            let judged = || counts::judge(board.name, &results.counts, &self.counts);
            (board.name, reviewed::unless_blessing("instructions", judged))
        });
        counts.chain(self.steps.judge_all(&self.counts, &results.steps)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::board::BOARDS;
    use super::*;

    fn of(names: &[&str]) -> Options {
        let only = names.iter().map(|name| (*name).to_owned()).collect();
        Options { only, ..Options::default() }
    }

    #[test]
    fn boards_and_boots_are_chosen_by_name() {
        let all = of(&[]).jobs().len();
        assert_eq!(all, BOARDS.iter().map(|board| board.boots.len()).sum::<usize>());
        let one = of(&["raspi3b/uio"]).jobs();
        assert_eq!((one.len(), one[0].0.name, one[0].1.name), (1, "raspi3b", "uio"));
        assert!(of(&["sabrelite"]).jobs().iter().all(|(board, _)| board.name == "sabrelite"));
    }

    #[test]
    fn boots_that_are_priced_are_asked_for_by_an_option() {
        assert!(of(&["raspi3b/priced"]).jobs().is_empty());
        assert!(names().contains(&"raspi3b/priced"));
    }

    #[test]
    fn boots_that_count_steps_need_no_build_of_ours() {
        let needed = |names: &[&str]| arches(&of(names).jobs());
        assert_eq!(needed(&["imx8mp-evk/steps", "sabrelite/steps"]), []);
        assert_eq!(needed(&["imx8mp-evk/steps", "sabrelite/count"]), [Arch::Armhf]);
    }

    #[test]
    fn each_board_and_each_boot_of_it_has_a_name() {
        let names = names();
        assert!(names.contains(&"sabrelite") && names.contains(&"raspi3b/mapped"), "{names:?}");
        assert!(!names.contains(&"sabrelite/overlay"), "{names:?}");
    }

    #[test]
    fn what_cannot_run_is_skipped_boot_by_boot() {
        let options = of(&["highbank"]);
        let rows = Results::skipped(options.jobs(), "no QEMU").rows;
        assert_eq!(rows.len(), BOARDS[0].boots.len());
        assert!(rows.iter().all(|(board, check)| {
            *board == "highbank" && check.verdict == Verdict::Skipped && check.why == "no QEMU"
        }));
    }

    #[test]
    fn a_count_that_is_off_twice_fails() {
        let counted = |guest, counts: &[f64]| {
            let boots = std::cell::Cell::new(0);
            let once = || {
                let count = counts[boots.replace(boots.get() + 1)];
                let counts = [(("evk".to_owned(), "sync".to_owned()), count)].into();
                let rows = vec![("evk", Check::new("guest", guest, ""))];
                Ok(Results { rows, counts, ..Results::default() })
            };
            let judge = |one: &Results| {
                let is_off = one.counts.values().any(|count| *count > 1.0);
                let verdict = if is_off { Verdict::Failed } else { Verdict::Passed };
                vec![("evk", Check::new("instructions", verdict, "sync"))]
            };
            let one = twice_if_off(once, judge, |_| {}).expect("a boot");
            (boots.get(), one.counts.into_values().next())
        };
        assert_eq!(counted(Verdict::Passed, &[1.0]), (1, Some(1.0)));
        assert_eq!(counted(Verdict::Passed, &[2.0, 1.0]), (2, Some(1.0)));
        assert_eq!(counted(Verdict::Passed, &[2.0, 3.0]), (2, Some(3.0)));
        // A failure of the guest's own is not booted away.
        assert_eq!(counted(Verdict::Failed, &[2.0, 1.0]), (1, Some(2.0)));
    }

    #[test]
    fn help_names_every_board() {
        assert!(BOARDS.iter().all(|board| list().contains(board.name)));
    }
}
