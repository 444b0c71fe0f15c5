//! `cargo xtask guests --priced`: what operations in a guest count, at a price list: microseconds that nobody measured.
//!
//! How it works: the boots `priced…` run the kernel's paths, the module's and mapped registers between marks;
//! `guests/priced.c` writes down what ran ([`trace`]); [`prices`] has what each thing costs, and [`replay`] makes a time of
//! it, on a wire that takes time. [`rows`] picks an operation for each path, and `guests/priced.txt` has the reviewed
//! rows; [`published`] puts published times beside. docs/priced.md says what that is good for.

mod prices;
mod published;
mod replay;
mod rows;
mod trace;

use std::path::PathBuf;

use super::board::{Arch, Board, Boot};
use super::build::{self, Dirs};
use super::packages::{Kernel, Packages};
use super::{End, Job, Results, STEP, boot, choice, guest_needs, module, reviewed, table};
use crate::check::is_blessing;
use crate::context::{Context, Stop};
use crate::needs::{self, Need};
use crate::static_build;
use prices::{LIST, Level, List};
use published::{Compared, FIGURES};
use rows::{Row, SNAPSHOT};

/// What the guests of this command need: mapped registers, and the module, whose package has both architectures.
const NEEDS: &[Need] = guest_needs![
    Need::Target(static_build::ARM64),
    Need::Target(static_build::KERNEL_ARM64),
    Need::Target(static_build::KERNEL_ARMHF),
];

/// The options of the command line.
#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
pub(super) struct Pricing {
    /// Count operations of the kernel, the module and mapped registers, and price them (docs/priced.md)
    #[arg(long)]
    priced: bool,
    /// The end of each price's range
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t, requires = "priced")]
    costs: Level,
    /// Price what the last run counted, without booting
    #[arg(long, requires = "priced", conflicts_with = "update")]
    again: bool,
}

impl Pricing {
    pub(super) fn is_asked(&self) -> bool {
        self.priced
    }
}

pub(super) const BOOTS: choice::Boots = |board| board.priced_boots;

/// Where the version of its kernel is.
fn version(dirs: &Dirs, board: &Board, boot: &Boot) -> Result<PathBuf, String> {
    dirs.made("log", &format!("{}-{}.kernel", board.name, boot.name))
}

/// The command.
pub(super) fn run(options: &super::Options, cx: &Context) -> Result<End, String> {
    let jobs = options.jobs();
    if jobs.is_empty() {
        let boards: Vec<&str> = choice::boards(BOOTS).map(|board| board.name).collect();
        return Err(format!(
            "no operation is priced there; --priced knows {}",
            boards.join(" and ")
        ));
    }
    let dirs = Dirs { work: cx.target().join("guests"), root: cx.root.clone() };
    let booted = match (options.priced.again, needs::obtain(NEEDS, cx)) {
        (true, _) => Ok(Results::default()),
        (false, Some(lacking)) => Err(Stop::Lacks(lacking)),
        (false, None) => boots(options, cx, &jobs),
    };
    let mut results = match booted {
        Ok(results) => results,
        Err(stop) => return Ok(End::of(&stop.outcome(STEP.name, cx))),
    };
    let Priced { rows, list, compared } = priced(&dirs, &jobs)?;
    results.rows.extend(judged(&dirs, &rows)?);
    let level = options.priced.costs;
    cx.console.say(&if options.json {
        let checks = table::json(&results.rows, &results.counts, &results.steps);
        let checks = checks.trim_start_matches('{').trim_end_matches('}');
        let (rows, compared) = (rows::json(&rows, level), published::json(&compared));
        format!("{{{checks},\"priced\":[{rows}],\"published\":[{compared}]}}")
    } else {
        let mut boards: Vec<&str> = jobs.iter().map(|(board, _)| board.name).collect();
        boards.dedup();
        let lists = boards.iter().map(|board| format!("\n{board}\n{}", list.table(board)));
        let lists: String = lists.collect();
        let checks = table::text(&boards, &results.rows);
        format!("{checks}{lists}\n{}\n{}", rows::text(&rows, level), published::text(&compared))
    });
    Ok(results.end())
}

/// Boots the guests.
fn boots(options: &super::Options, cx: &Context, jobs: &[Job]) -> Result<Results, Stop> {
    let build = |dirs: &Dirs, arches: &[Arch], say: &dyn Fn(&str)| {
        let built = module::built(dirs, arches, say)?;
        say("building the program with mapped registers");
        Ok((built, build::example(dirs, Arch::Arm64, "priced")?, program(dirs)?))
    };
    let files = |dirs: &Dirs,
                 packages: &Packages,
                 (built, mapped, program): &(module::Built, PathBuf, PathBuf),
                 (board, boot): Job,
                 kernel: &Kernel|
     -> Result<boot::Files, String> {
        let path = version(dirs, board, boot)?;
        std::fs::write(&path, &kernel.version)
            .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        let mut files = module::priced(dirs, packages, built, board, kernel)?;
        files.push(("bin/priced".into(), mapped.clone()));
        files.push(("bin/spipriced".into(), program.clone()));
        Ok(files)
    };
    // Rows are priced after all boots.
    super::boots(cx, "guests --priced", jobs, options.update, build, files, |_, _| Vec::new())
}

/// Builds the program with the kernel's paths.
fn program(dirs: &Dirs) -> Result<PathBuf, String> {
    let out = dirs.made("made", "spipriced")?;
    let mut gcc = std::process::Command::new(format!("{}gcc", Arch::Arm64.cross()));
    gcc.args(["-O2", "-Wall", "-Werror", "-static", "-o"]).arg(&out);
    crate::tool::answer(gcc.arg(dirs.source("priced/spipriced.c")))?;
    Ok(out)
}

/// What was counted, priced.
struct Priced {
    rows: Vec<Row>,
    list: List,
    compared: Vec<Compared>,
}

/// Prices the traces of those boots.
fn priced(dirs: &Dirs, jobs: &[Job]) -> Result<Priced, String> {
    let text = |path: PathBuf| {
        std::fs::read_to_string(&path).map_err(|e| {
            format!("cannot read {}: {e}; without --again the guests are booted", path.display())
        })
    };
    let list = List::parse(&text(dirs.root.join(LIST))?)?;
    let figures = text(dirs.root.join(FIGURES))?;
    let (mut rows, mut compared) = (Vec::new(), Vec::new());
    for (board, of) in jobs {
        let operations = trace::parse(&text(boot::priced_trace(dirs, board, of)?)?)
            .map_err(|why| format!("{}/{}: {why}", board.name, of.name))?;
        let kernel = text(version(dirs, board, of)?)?;
        rows.extend(rows::of(board, &kernel, &operations, &list)?);
        compared.extend(published::compare(&figures, board, &kernel, &operations, &list)?);
    }
    Ok(Priced { rows, list, compared })
}

/// Compares rows with the reviewed ones, or writes them.
fn judged(dirs: &Dirs, rows: &[Row]) -> Result<Vec<table::Row>, String> {
    let known = std::fs::read_to_string(dirs.root.join(SNAPSHOT)).unwrap_or_default();
    if is_blessing() {
        reviewed::write(&dirs.root, SNAPSHOT, rows::blessed(&known, rows))?;
    }
    let mut boards: Vec<&'static str> = rows.iter().map(|row| row.board).collect();
    boards.dedup();
    let check = |board| reviewed::unless_blessing("priced", || rows::judge(board, rows, &known));
    Ok(boards.into_iter().map(|board| (board, check(board))).collect())
}
