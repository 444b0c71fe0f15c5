//! `cargo xtask kernel`: this project's kernel module under stock Debian kernels, on boards that QEMU emulates.
//!
//! How it works: [`dkms`] installs this project's package, which builds the module against a kernel's headers; [`build`] builds the
//! one that panics. The boots
//! are those of `cargo xtask guests` with scripts `module*.sh`: they bind the module in place of the kernel's driver, judge
//! it by the kernel's own clients, and bind the kernel's driver again. [`counts`] compares what clients cost with either.
//! docs/kernel.md says how to use it.

pub(crate) mod build;
mod counts;
mod dkms;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;

use super::board::{Arch, Board, Boot, Flavour};
use super::boot::Files;
use super::build::{Dirs, commands};
use super::packages::{Kernel, Packages};
use super::table::Row;
use super::{Job, Results, choice, guest_needs, reviewed, table};
use crate::check::{Verdict, is_blessing};
use crate::child::Task;
use crate::context::{self, Context, Outcome, Stop};
use crate::needs::{self, Need};
use crate::report::End;
use crate::static_build::{ARM64, ARMHF, KERNEL_ARM64, KERNEL_ARMHF};
use crate::step::{Lane, Step};
use counts::{Kind, Pairs};

/// The reviewed counts.
const SNAPSHOT: &str = "guests/kernel.txt";
/// The ending of rows that are counted on the newer kernel.
const NEWER: &str = "-6.12";

/// The step of CI.
pub(crate) const STEP: Step = Step {
    name: "kernel",
    about: "the kernel module in place of Linux's drivers",
    lane: Lane::Boots,
    minutes: 7,
    needs: guest_needs![
        Need::Target(KERNEL_ARM64),
        Need::Target(KERNEL_ARMHF),
        Need::Target(ARM64),
        Need::Target(ARMHF),
    ],
    paths: &["kernel/", "stack/", "guests/", "xtask/src/guests/"],
    run: step,
};

/// The options of the command line.
#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct Options {
    /// Boards, or boots of them; all unless told
    #[arg(long = "board", value_name = "BOARD[/BOOT]", value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    only: Vec<String>,
    /// Print one line of JSON on stdout; progress is on stderr
    #[arg(long)]
    json: bool,
    /// Look for newer packages, instead of using those in target/guests
    #[arg(long)]
    update: bool,
}

/// The boots of the module.
const BOOTS: choice::Boots = |board| board.module_boots;

fn names() -> Vec<&'static str> {
    choice::names(BOOTS)
}

/// The boards for the help text.
pub(crate) fn list() -> String {
    choice::list(BOOTS) + "\nBAREWIRE_BLESS=1 writes guests/kernel.txt anew, and fails."
}

impl Options {
    fn jobs(&self) -> Vec<Job> {
        choice::jobs(BOOTS, &self.only)
    }
}

/// What ran, and the counts in pairs.
struct Ran {
    results: Results,
    pairs: Pairs,
}

/// The command.
pub(crate) fn run(options: &Options, cx: &Context) -> Result<End, String> {
    let ran = match needs::obtain(STEP.needs, cx) {
        None => all(options, cx),
        Some(lacking) => Err(Stop::Lacks(lacking)),
    };
    match ran {
        Ok(ran) => {
            cx.console.say(&told(options, &ran));
            Ok(ran.results.end())
        }
        Err(Stop::Lacks(why)) if options.json => {
            let results = Results::skipped(options.jobs(), &why);
            cx.console.say(&told(options, &Ran { results, pairs: Pairs::new() }));
            Ok(if cx.ci { End::Failed } else { End::Incomplete })
        }
        Err(stop) => Ok(End::of(&stop.outcome(STEP.name, cx))),
    }
}

/// Lints the Rust half, which no step of the workspace does; then each check of a guest counts as a test.
fn step(cx: &Context) -> Outcome {
    let lint = [
        "clippy",
        "--locked",
        "--all-features",
        "--manifest-path",
        "kernel/Cargo.toml",
        "--",
        "-D",
        "warnings",
    ];
    let linted = cx.run(&Task::new("cargo", &lint));
    if linted.verdict == context::Verdict::Failed {
        return linted;
    }
    let options = Options { only: choice::of_ci(BOOTS), ..Options::default() };
    match all(&options, cx) {
        Ok(ran) => {
            cx.console.say(&told(&options, &ran));
            ran.results.outcome()
        }
        Err(stop) => stop.outcome(STEP.name, cx),
    }
}

fn told(options: &Options, ran: &Ran) -> String {
    let Ran { results, pairs } = ran;
    if options.json {
        return table::json(&results.rows, &results.counts, &results.steps);
    }
    let names: Vec<&str> = choice::boards(BOOTS).map(|board| board.name).collect();
    let [passed, failed, skipped] =
        [Verdict::Passed, Verdict::Failed, Verdict::Skipped].map(|verdict| results.count(verdict));
    let mut text = table::text(&names, &results.rows);
    if !pairs.is_empty() {
        text += &format!("\n{}", counts::table(pairs));
    }
    text + &format!("\nkernel: {passed} passed, {failed} failed, {skipped} skipped")
}

/// The feature of the Rust half that a message makes panic.
const PROVOKE: &str = "provoke";

/// What is built whatever the kernel: the package, and for each architecture the Rust half with [`PROVOKE`] and programs.
pub(super) struct Built {
    package: PathBuf,
    arches: Vec<(Arch, PathBuf, Files)>,
}

/// Builds that.
pub(super) fn built(dirs: &Dirs, arches: &[Arch], say: &dyn Fn(&str)) -> Result<Built, String> {
    say("building the module's Rust half");
    let of = |&arch: &Arch| -> Result<_, String> {
        Ok((arch, build::rust(dirs, arch, PROVOKE)?, build::programs(dirs, arch)?))
    };
    let arches = arches.iter().map(of).collect::<Result<_, _>>()?;
    Ok(Built { package: dkms::packed(dirs)?, arches })
}

/// The programs of a boot and the module that DKMS builds for its kernel; and the one with [`PROVOKE`], beside which the list
/// of symbols is.
fn modules(
    dirs: &Dirs,
    packages: &Packages,
    built: &Built,
    board: &Board,
    kernel: &Kernel,
) -> Result<(Files, Arch, PathBuf), String> {
    let own = built.arches.iter().find(|(arch, ..)| *arch == board.arch);
    let (arch, provoked, programs) = own.ok_or("what an architecture needs is not built")?;
    let mut files = programs.clone();
    let module = dkms::module(dirs, packages, kernel, *arch, &built.package)?;
    files.push(("m/barewire.ko".into(), module));
    Ok((files, *arch, build::module(dirs, kernel, *arch, PROVOKE, provoked)?))
}

/// What a boot needs whose operations are priced.
pub(super) fn priced(
    dirs: &Dirs,
    packages: &Packages,
    built: &Built,
    board: &Board,
    kernel: &Kernel,
) -> Result<Files, String> {
    let (mut files, arch, module) = modules(dirs, packages, built, board, kernel)?;
    files.extend(build::priced(dirs, kernel, arch, &module)?);
    Ok(files)
}

/// Builds, boots and judges.
fn all(options: &Options, cx: &Context) -> Result<Ran, Stop> {
    let jobs = options.jobs();
    let with_command = |dirs: &Dirs, arches: &[Arch], say: &dyn Fn(&str)| -> Result<_, String> {
        let mut all = built(dirs, arches, say)?;
        say("building the command");
        for ((_, _, files), command) in all.arches.iter_mut().zip(commands(dirs, arches)?) {
            files.push(("bin/barewire".into(), command));
        }
        Ok(all)
    };
    let reviewed = reviewed::read(&cx.root, SNAPSHOT, counts::parse).map_err(Stop::Broke)?;
    let mut results = super::boots(
        cx,
        "kernel",
        &jobs,
        options.update,
        with_command,
        |dirs, packages, built: &Built, (board, boot), kernel| {
            let (mut files, arch, module) = modules(dirs, packages, built, board, kernel)?;
            // The same symbols as the other's, whose list DKMS does not keep.
            files.extend(build::clients(dirs, kernel, arch, &module)?);
            // Their source is of this kernel.
            if boot.kernel == Flavour::Stock {
                files.extend(build::mtd_tests(dirs, kernel, arch, &packages.mtd_tests)?);
            }
            files.push(("m/barewire-provoked.ko".into(), module));
            Ok(files)
        },
        |job, one| judge(&[job], &counts::pairs(&one.counts), &reviewed, &one.rows),
    )?;
    let pairs = counts::pairs(&results.counts);
    if is_blessing() && !pairs.is_empty() {
        let blessed = counts::table(&counts::blessed(&reviewed, &pairs));
        reviewed::write(&cx.root, SNAPSHOT, blessed).map_err(Stop::Broke)?;
    }
    let judged = judge(&jobs, &pairs, &reviewed, &results.rows);
    results.rows.extend(judged);
    Ok(Ran { results, pairs })
}

/// Compares what was counted with the reviewed table.
fn judge(jobs: &[Job], pairs: &Pairs, reviewed: &Pairs, rows: &[Row]) -> Vec<Row> {
    let kind = |boot: &Boot| match (boot.accesses, boot.counted, boot.kernel) {
        (true, ..) => Some(Kind::Accesses),
        (_, true, Flavour::Stock) => Some(Kind::Stock),
        (_, true, _) => Some(Kind::Newer),
        _ => None,
    };
    // A kernel that was not there is skipped, and its counts with it.
    let ran = |board: &Board, boot: &Boot| {
        !rows.iter().any(|(on, check)| *on == board.name && check.name == boot.name)
    };
    let check = |&(board, boot): &Job| {
        let kind = kind(boot).filter(|_| ran(board, boot))?;
        let judged = || counts::judge(board.name, kind, pairs, reviewed);
        Some((board.name, reviewed::unless_blessing(kind.name(), judged)))
    };
    jobs.iter().filter_map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boots_are_chosen_by_name() {
        let of = |name: &str| Options { only: vec![name.into()], ..Options::default() }.jobs();
        assert_eq!(of("imx8mp-evk/module").len(), 1);
        assert!(of("imx8mp-evk").len() > 1);
        assert_eq!(Options::default().jobs().len() + choice::boards(BOOTS).count(), names().len());
    }

    #[test]
    fn every_boot_that_counts_has_rows_in_the_reviewed_table() {
        let reviewed =
            counts::parse(include_str!("../../../../guests/kernel.txt")).expect("a table");
        for (board, boot) in Options::default().jobs() {
            let there = reviewed.keys().any(|(on, _)| on == board.name);
            assert!(there || !(boot.counted || boot.accesses), "{}/{}", board.name, boot.name);
        }
    }
}
