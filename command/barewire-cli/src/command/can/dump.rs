//! `barewire can dump`: prints the frames that come, as candump does.

use std::path::PathBuf;

use barewire::chip::mcp251xfd::{CanError, Filter, Id};
use serde::Serialize;

use super::args::{CanArgs, Which};
use super::candump::{CandumpLine, Stamp};
use super::far::{Far, FarArgs};
use super::frame::{CanFrame, ERROR_FLAG, ErrorFrame, LogLine, id_of};
use super::node::{Counters, Node};

use crate::shared::failure::Failure;
use crate::shared::files::{NamedFile, Output};
use crate::shared::interrupt;
use crate::shared::output::{self, note};
use crate::shared::session::{self, Figures, Session};
use crate::shared::text::{figure, number};

/// The name of the interface in lines.
const INTERFACE: &str = "can0";
/// The longest single wait: Ctrl-C is checked between waits.
const SLICE_NS: u64 = 10_000_000;
/// Filters that the chip has.
const FILTERS_MAX: usize = 32;
/// In an identifier: of 29 bits; of a remote frame.
const EXTENDED_FLAG: u32 = 1 << 31;
const REMOTE_FLAG: u32 = 1 << 30;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    can: CanArgs,
    /// Take only frames whose identifier agrees with ID in the bits of MASK, both hex, as candump has
    /// it: 8 digits of ID are 29 bits, and MASK says by 80000000 whether that counts. The chip
    /// filters; several: any of them
    #[arg(long, value_name = "ID:MASK", value_delimiter = ',', value_parser = FrameFilter::parse)]
    filter: Vec<FrameFilter>,
    /// Print the time: a since the board's power-up (elsewhere since the start), d since the frame
    /// before, z since the first
    #[arg(short = 't', long = "time", value_name = "TYPE")]
    stamp: Option<Stamp>,
    /// Print candump's log format, which can gen --replay and canplayer read
    #[arg(short = 'l', long, conflicts_with = "stamp")]
    log: bool,
    /// Print into FILE, which exists when it is whole; the log format with --json
    #[arg(short = 'o', long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// End when this many milliseconds passed without a frame
    #[arg(short = 'T', long = "timeout-ms", value_name = "MS", value_parser = number::count::<u64>)]
    timeout_ms: Option<u64>,
    #[command(flatten)]
    far: FarArgs,
}

/// A filter as candump has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FrameFilter {
    text: String,
    filters: Vec<Filter>,
}

impl FrameFilter {
    fn parse(text: &str) -> Result<Self, String> {
        if text.contains('~') {
            return Err("the chip has no filter for all but some identifiers: ID:MASK only".into());
        }
        let hex = |digits: &str| {
            let plain =
                (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
            plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
        };
        let (id, mask) = text.split_once(':').ok_or("write ID:MASK, as in 123:7FF")?;
        let both = hex(id).zip(hex(mask));
        let (raw, mask) = both.ok_or("write ID:MASK in hex digits, as in 123:7FF")?;
        if mask & REMOTE_FLAG != 0 {
            return Err("the chip does not tell remote frames from others in a filter".into());
        }
        let extended = id.len() == 8;
        let mask = mask & !ERROR_FLAG;
        let wanted = (raw | if extended { EXTENDED_FLAG } else { 0 }) & mask;
        Ok(Self { text: text.into(), filters: filters(wanted, mask) })
    }
}

/// The chip's filters for received identifiers that are `wanted` in the bits of `mask`: one for each
/// length of identifier that can be.
fn filters(wanted: u32, mask: u32) -> Vec<Filter> {
    let lengths = [(false, 0x7ff), (true, 0x1fff_ffff)];
    let possible = lengths.into_iter().filter(|&(extended, bits)| {
        let flag = mask & EXTENDED_FLAG == 0 || (wanted & EXTENDED_FLAG != 0) == extended;
        flag && wanted & !EXTENDED_FLAG & !bits == 0
    });
    let filter = |(extended, bits)| {
        let id: Id = id_of(wanted & bits, extended).expect("that many bits");
        Filter::masked(id, mask & bits)
    };
    possible.map(filter).collect()
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    which: Which,
    filters: Vec<String>,
    frames_received: u64,
    /// The frames that the far node sent.
    frames_sent: Option<u64>,
    frames_lost: Option<u64>,
    overflows: u64,
    errors: u64,
    #[serde(flatten)]
    counters: Counters,
    spi_accesses_per_frame: Option<f64>,
    timed_out: bool,
    interrupted: bool,
    #[serde(skip)]
    gave_up: Option<CanFrame>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    args.far.check_bus(&args.can.bus)?;
    let far = args.far.settle(args.can.fd, Far::default())?;
    let filters = args.filter.iter().map(|wanted| wanted.filters.len()).sum::<usize>();
    if filters > FILTERS_MAX {
        return Err(Failure::Usage(format!(
            "--filter: they take {filters} of the chip's {FILTERS_MAX} filters (one where MASK has \
             80000000, else one for each length of identifier)"
        )));
    }
    if !args.filter.is_empty() && filters == 0 {
        return Err(Failure::Usage("--filter: no identifier can pass".into()));
    }
    let named = args.out.as_deref().map(|path| NamedFile { by: "--out", path });
    let out = named.map(|out| Output::create(out, args.can.tell.json)).transpose()?;
    let mut request = args.can.request()?;
    if let Some(path) = args.far.replay() {
        request = request.reading("--replay", path);
    }
    if let Some(out) = named {
        request = request.writing(out);
    }
    session::run(&request, |session| dump(args, &far, out, session))
}

/// A line with `--json`, printed when its frame has come; the report is the last one.
#[derive(Serialize)]
struct Entry {
    log: String,
}

/// Where lines go.
struct Printer<'a> {
    args: &'a Args,
    out: Option<Output>,
    before_us: Option<u64>,
    first_us: u64,
}

impl Printer<'_> {
    fn print(&mut self, at_us: u64, what: LogLine) -> Result<(), Failure> {
        let line = CandumpLine { at_us, interface: INTERFACE.into(), what };
        let json = self.args.can.tell.json;
        let text = match self.args.log || json {
            true => line.to_string(),
            false => {
                let first_us = self.before_us.map_or(at_us, |_| self.first_us);
                self.first_us = first_us;
                Stamp::console(self.args.stamp, &line, self.before_us.replace(at_us), first_us)
            }
        };
        match &mut self.out {
            Some(out) => out.write_all(format!("{text}\n").as_bytes()),
            None if json => output::json(&Entry { log: text }),
            None => output::text(&format!("{text}\n")),
        }
    }
}

/// Counts of what has arrived.
#[derive(Default)]
struct Came {
    frames: u64,
    errors: u64,
    overflows: u64,
}

fn dump(args: &Args, far: &Far, out: Option<Output>, session: &Session) -> Result<Report, Failure> {
    let (mut node, which) = args.can.open(session, args.can.config())?;
    let filters: Vec<Filter> = args.filter.iter().flat_map(|w| w.filters.clone()).collect();
    node.set_filters(&filters)?;
    node.start()?;
    session.begin_figures();
    let simulated = node.simulated();
    let feed = simulated.map(|can| far.attach(can, node.now_ns() * 1_000));
    let before = simulated.map(|can| can.chip.borrow().taken_and_dropped());
    let accesses_before = node.accesses();
    let mut printer = Printer { args, out, before_us: None, first_us: 0 };
    let mut came = Came::default();
    // Without a simulated sender, -n limits the frames received instead of those sent.
    let limit = match feed {
        None => args.far.count.map_or(u64::MAX, |count| count.get()),
        Some(_) => u64::MAX,
    };
    let timeout_ns = args.timeout_ms.map(|ms| ms.saturating_mul(1_000_000));
    let mut last_ns = node.now_ns();
    let (mut timed_out, mut interrupted) = (false, false);
    while came.frames < limit {
        if interrupt::asked() {
            interrupted = true;
            break;
        }
        let frames = came.frames;
        let something = node.wait(SLICE_NS.min(timeout_ns.unwrap_or(u64::MAX)))
            && listen(&mut node, &mut printer, &mut came, limit)?;
        if !something && feed.as_ref().is_some_and(|feed| feed.borrow().is_done()) {
            break;
        }
        let now_ns = node.now_ns();
        if came.frames != frames {
            last_ns = now_ns;
        } else if timeout_ns.is_some_and(|timeout_ns| now_ns - last_ns >= timeout_ns) {
            timed_out = true;
            break;
        }
    }
    let accesses = node.accesses().zip(accesses_before).map(|(now, before)| now - before);
    let counters = Counters::of(node.error_counters()?);
    node.stop()?;
    printer.out.map_or(Ok(()), Output::commit)?;
    let lost = simulated.zip(before).map(|(can, (taken, dropped))| {
        let (now_taken, now_dropped) = can.chip.borrow().taken_and_dropped();
        // Frames that are in the chip at Ctrl-C or at the timeout are still printed.
        let unread = (now_taken - taken).saturating_sub(came.frames);
        now_dropped - dropped + if interrupted || timed_out { 0 } else { unread }
    });
    let report = Report {
        which,
        filters: args.filter.iter().map(|wanted| wanted.text.clone()).collect(),
        frames_received: came.frames,
        frames_sent: feed.as_ref().map(|feed| feed.borrow().sent_frames()),
        frames_lost: lost,
        overflows: came.overflows,
        errors: came.errors,
        counters,
        spi_accesses_per_frame: accesses
            .filter(|_| came.frames > 0)
            .map(|accesses| accesses as f64 / came.frames as f64),
        timed_out,
        interrupted,
        gave_up: feed.and_then(|feed| feed.borrow().gave_up()).map(|f| CanFrame::from_sim(&f)),
    };
    if !session.silent {
        report.tell();
    }
    Ok(report)
}

/// Prints all that the chip has to say, `limit` frames at most. False: the chip reported nothing.
fn listen(
    node: &mut Node<'_>,
    printer: &mut Printer<'_>,
    came: &mut Came,
    limit: u64,
) -> Result<bool, Failure> {
    let (now_us, clock) = (node.now_ns() / 1_000, node.clock());
    node.serve(|seen| {
        if seen.found.frame && came.frames < limit {
            came.frames += 1;
            let frame = CanFrame::from_chip(&seen.received.frame);
            printer.print(clock.at_us(seen.received.timestamp), LogLine::Frame(frame))?;
        }
        came.overflows += u64::from(seen.found.overflow);
        if let Some(error) = ErrorFrame::of(seen.found, seen.counters) {
            came.errors += 1;
            printer.print(now_us, LogLine::Error(error))?;
        }
        Ok(())
    })
}

impl Report {
    /// One line for people, on stderr: stdout has the frames.
    fn tell(&self) {
        let Self { frames_received, errors, .. } = self;
        let mut text = format!("{} frames", figure::grouped(*frames_received));
        if let Some(sent) = self.frames_sent {
            text += &format!(" of {} that the far node sent", figure::grouped(sent));
        }
        if let Some(lost) = self.frames_lost {
            text += &format!(", {lost} lost");
        }
        text += &format!(", {errors} errors told");
        if let Some(accesses) = self.spi_accesses_per_frame {
            text += &format!(", {accesses:.2} SPI accesses a frame");
        }
        let Counters { transmit_errors, receive_errors, error_state } = self.counters;
        note!("{text}; TEC {transmit_errors}, REC {receive_errors}, error {error_state}");
    }
}

impl session::Report for Report {
    fn text(&self, _: Option<&Figures>) -> String {
        String::new()
    }

    fn verdict(&self) -> Result<(), Failure> {
        if self.interrupted {
            return Err(Failure::Interrupted("stopped as asked".into()));
        }
        if let Some(frame) = self.gave_up {
            return Err(Failure::Failed(format!(
                "the far node gave up: {frame} did not get through in time (-p)"
            )));
        }
        if self.overflows > 0 {
            let lost = self.frames_lost.map(|lost| format!("{} ", figure::grouped(lost)));
            return Err(Failure::Failed(format!(
                "{}{} (--speed-hz, or fewer by --filter)",
                lost.unwrap_or_default(),
                CanError::RxOverflow
            )));
        }
        match self.frames_lost {
            None | Some(0) => Ok(()),
            Some(lost) => Err(Failure::Failed(format!("{lost} frames were lost"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use barewire::chip::mcp251xfd::{ExtendedId, StandardId};

    use super::super::far::FIRST_PS;
    use super::super::rig;
    use super::*;
    use barewire_sim::model::can::Fault;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn errors_are_printed_among_the_frames() {
        let sim = ["dump", "--bus", "sim:imx8mp"];
        let words = ["-g", "1", "-n", "3", "-I", "7", "-D", "AA", "--json"];
        let words = sim.into_iter().chain(words);
        let Only { args } = Only::try_parse_from(words).expect("options");
        let far = args.far.settle(false, Far::default()).expect("a far node");
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let out =
            Some(Output::create(NamedFile { by: "--out", path: &path }, false).expect("creates"));
        let mut printer = Printer { args: &args, out, before_us: None, first_us: 0 };
        let (mut came, mut start_us) = (Came::default(), 0);
        rig::on_bus(
            |config| config,
            |node| {
                let can = node.simulated().expect("simulated");
                can.bus.inject(Fault::ErrorFlag { frame: 1, bit: 20 });
                start_us = node.now_ns() / 1_000 + FIRST_PS / 1_000_000;
                let feed = far.attach(can, node.now_ns() * 1_000);
                while !feed.borrow().is_done() || node.wait(SLICE_NS) {
                    node.wait(SLICE_NS);
                    listen(node, &mut printer, &mut came, u64::MAX).expect("goes");
                }
            },
        );
        assert_eq!((came.frames, came.errors, came.overflows), (3, 1, 0));
        let frame = |line: &str| {
            line.rsplit(' ').next().expect("a frame").split('#').next().map(String::from)
        };
        printer.out.take().expect("a file").commit().expect("writes");
        let log = std::fs::read_to_string(&path).expect("text");
        let ids: Vec<_> = log.lines().filter_map(frame).collect();
        assert_eq!(ids, ["007", "20000088", "007", "007"]);
        // The first frame's begin, on the board's line of time, but for half an SPI access.
        let first =
            super::super::candump::parse_line(log.lines().next().expect("a line")).expect("a line");
        assert!(first.at_us.abs_diff(start_us) <= 5, "{first}, {start_us}");
    }

    fn wanted(text: &str) -> Vec<Filter> {
        FrameFilter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).filters
    }

    #[test]
    fn filters_mean_what_candump_means() {
        let standard = |id, mask| Filter::masked(StandardId::new(id).expect("11 bits"), mask);
        let extended = |id, mask| Filter::masked(ExtendedId::new(id).expect("29 bits"), mask);
        // Without the flag in the mask both lengths pass.
        assert_eq!(wanted("123:7FF"), [standard(0x123, 0x7ff), extended(0x123, 0x7ff)]);
        assert_eq!(wanted("0:0"), [standard(0, 0), extended(0, 0)]);
        assert_eq!(wanted("123:C00007FF".replace('C', "8").as_str()), [standard(0x123, 0x7ff)]);
        assert_eq!(wanted("12345678:9FFFFFFF"), [extended(0x1234_5678, 0x1fff_ffff)]);
        // No standard identifier has bit 12.
        assert_eq!(wanted("1000:1000"), [extended(0x1000, 0x1000)]);
        assert_eq!(wanted("124:7F0"), [standard(0x120, 0x7f0), extended(0x120, 0x7f0)]);
        assert_eq!(wanted("1000:80001000"), [], "nothing is standard and has bit 12");
        for text in ["123", "123~7FF", "x:1", "123:40000000", ":", "123456789:1"] {
            assert!(FrameFilter::parse(text).is_err(), "{text}");
        }
    }
}
