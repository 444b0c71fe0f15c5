//! Accesses of this project's module, and of CAN frames with either driver, beside the reviewed table.
//!
//! The table is `bench/barewire-mmio/tests/it/module.txt`: a run, what was counted (a message of so many bytes, or a CAN
//! frame there and back), reads, writes. Time in the guest is virtual, so a message takes the same on every machine. What
//! frames take together depends a little on which interrupts come together (0.01 % in 100,000).

use std::fs;
use std::path::Path;

use super::protocol::RunReport;
use super::table::Row;
use crate::check::{Check, Verdict, is_blessing};

const TABLE: &str = "bench/barewire-mmio/tests/it/module.txt";
const HEAD: &str = "run                      of         reads    writes\n";

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    /// `BOARD/RUN`.
    run: String,
    /// A number of bytes, or `frame`.
    of: String,
    reads: f64,
    writes: f64,
}

impl Figure {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split_whitespace();
        let (run, of) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        let (reads, writes) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { run, of, reads, writes })
    }

    fn told(&self) -> String {
        let Self { run, of, reads, writes } = self;
        format!("{run:<24} {of:<7} {reads:>8} {writes:>9}\n")
    }
}

/// The share by which what a frame takes may differ from the table.
const TOLERANCE: f64 = 0.001;

/// Whether a figure is as it was reviewed.
fn is_as(now: &Figure, was: &Figure) -> bool {
    let tolerance = if now.of == "frame" { TOLERANCE } else { 0.0 };
    let near = |now: f64, was: f64| (now - was).abs() <= was * tolerance;
    (&now.run, &now.of) == (&was.run, &was.of)
        && near(now.reads, was.reads)
        && near(now.writes, was.writes)
}

/// The reviewed table.
pub(super) fn read(root: &Path) -> Result<Vec<Figure>, String> {
    let text =
        fs::read_to_string(root.join(TABLE)).map_err(|e| format!("cannot read {TABLE}: {e}"))?;
    let line =
        |line: &str| Figure::parse(line).ok_or_else(|| format!("{TABLE}: cannot read `{line}`"));
    text.lines().skip(1).map(line).collect()
}

/// What a run counted: messages of the module's (Linux's drivers have a table of their own), and frames where nothing else is
/// on the bus.
fn counted(run: &str, is_module: bool, said: &RunReport) -> Vec<Figure> {
    let figure = |of: String, reads, writes| Figure { run: run.to_owned(), of, reads, writes };
    let messages = said.accesses.iter().filter(|_| is_module);
    let messages = messages.map(|of| figure(of.bytes.to_string(), of.reads, of.writes));
    let plain = run.ends_with("/can") || run.ends_with("/module-can");
    let frame = said.frame.filter(|_| plain);
    let frame = frame.map(|(reads, writes)| figure("frame".into(), reads, writes));
    messages.chain(frame).collect()
}

/// Compares what a run counted with the reviewed figures. There is no check if it counted nothing.
pub(super) fn judge(
    run: &str,
    is_module: bool,
    said: &RunReport,
    reviewed: &[Figure],
) -> Option<Check> {
    let counted = counted(run, is_module, said);
    if counted.is_empty() {
        return None;
    }
    let own: Vec<&Figure> = reviewed.iter().filter(|figure| figure.run == run).collect();
    if own.len() == counted.len() && counted.iter().zip(&own).all(|(now, was)| is_as(now, was)) {
        return Some(Check::new("figures", Verdict::Passed, ""));
    }
    let why = match is_blessing() {
        true => "table written: review it and run again".into(),
        false => {
            let told = |figures: &[&Figure]| {
                let each = |figure: &&Figure| {
                    format!("{}: {} + {}", figure.of, figure.reads, figure.writes)
                };
                figures.iter().map(each).collect::<Vec<_>>().join(", ")
            };
            let now = told(&counted.iter().collect::<Vec<_>>());
            format!("counted {now}; {TABLE} has {}", told(&own))
        }
    };
    Some(Check::new("figures", Verdict::Failed, why))
}

/// Writes what was counted, if that is asked. Runs that were not done keep their lines.
pub(super) fn bless(root: &Path, reviewed: &[Figure], rows: &[Row]) -> Result<(), String> {
    if !is_blessing() {
        return Ok(());
    }
    let name = |row: &Row| format!("{}/{}", row.board, row.run);
    let new = rows.iter().flat_map(|row| counted(&name(row), row.module, &row.said));
    let new: Vec<Figure> = new.collect();
    let is_old = |figure: &&Figure| new.iter().all(|newer| newer.run != figure.run);
    let mut all: Vec<Figure> = reviewed.iter().filter(is_old).chain(&new).cloned().collect();
    // Stable: the figures of a run keep their order.
    all.sort_by(|one, other| one.run.cmp(&other.run));
    let text = all.iter().map(Figure::told).fold(HEAD.to_owned(), |text, line| text + &line);
    fs::write(root.join(TABLE), text).map_err(|e| format!("cannot write {TABLE}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Accesses;
    use super::*;

    fn said() -> RunReport {
        let accesses = vec![Accesses { bytes: 4, reads: 9.0, writes: 1.0 }];
        RunReport { accesses, frame: Some((180.5, 90.0)), ..RunReport::default() }
    }

    #[test]
    fn a_line_is_read_and_written() {
        let figure = Figure::parse("imx8mp/can frame 180.5 90").expect("a line");
        assert_eq!(Figure::parse(&figure.told()), Some(figure));
        assert_eq!(Figure::parse("imx8mp/can frame 180.5"), None);
    }

    #[test]
    fn a_frame_may_differ_a_little_and_a_message_not() {
        let line = |text: &str| Figure::parse(text).expect("a line");
        assert!(is_as(&line("a/can frame 107.452 119.382"), &line("a/can frame 107.438 119.382")));
        assert!(!is_as(&line("a/can frame 108.1 119.382"), &line("a/can frame 107.438 119.382")));
        assert!(!is_as(&line("a/can 1024 513 2"), &line("a/can 1024 512 2")));
        assert!(!is_as(&line("b/can frame 1 1"), &line("a/can frame 1 1")));
    }

    #[test]
    fn messages_are_the_modules_and_frames_are_of_both() {
        let lines = |run, module| counted(run, module, &said()).len();
        assert_eq!((lines("a/module-can", true), lines("a/can", false)), (2, 1));
        assert_eq!(lines("a/can+adc", false), 0);
    }

    #[test]
    fn a_frame_takes_the_module_no_more_than_linuxs_driver() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let figures = read(root).expect("the table");
        let of =
            |run: &str| figures.iter().find(|figure| figure.run == run && figure.of == "frame");
        let mut boards = 0;
        for linux in figures.iter().filter(|figure| figure.run.ends_with("/can")) {
            let module = linux.run.replace("/can", "/module-can");
            let module = of(&module).expect("the module's run");
            assert!(module.reads + module.writes <= linux.reads + linux.writes, "{}", linux.run);
            boards += 1;
        }
        assert!(boards >= 5, "{boards} boards");
    }

    #[test]
    fn a_message_takes_the_module_no_more_than_linuxs_driver() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let linux = super::super::accesses::read(root).expect("Linux's table");
        let mut compared = 0;
        for figure in read(root).expect("the table") {
            let Some(board) = figure.run.strip_suffix("/module-spidev") else { continue };
            let same = |line: &&super::super::accesses::Line| {
                line.board == board && line.linux.bytes.to_string() == figure.of
            };
            let line = linux.iter().find(same).expect("Linux's driver has a line for each");
            let most = line.linux.reads + line.linux.writes;
            assert!(figure.reads + figure.writes <= most, "{board}, {} bytes", figure.of);
            compared += 1;
        }
        assert!(compared >= 28, "{compared} messages");
    }

    #[test]
    fn another_figure_fails() {
        let figures = counted("a/module-can", true, &said());
        let verdict =
            |figures: &[Figure]| judge("a/module-can", true, &said(), figures).map(|c| c.verdict);
        assert_eq!(verdict(&figures), Some(Verdict::Passed));
        assert_eq!(verdict(&figures[..1]), Some(Verdict::Failed));
        let mut other = figures.clone();
        other[1].reads += 0.5;
        assert_eq!(verdict(&other), Some(Verdict::Failed));
        assert_eq!(judge("a/module-can", true, &RunReport::default(), &figures), None);
    }
}
