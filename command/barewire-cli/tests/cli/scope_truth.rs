//! `scope --trace` of captures and traces whose truth is known: the simulator makes the capture, or the lab a kernel's
//! messages on it, and the trace is written here, by another clock.
//!
//! Nothing of `barewire_scope` is used to make or to judge them: the capture is read a second time here.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::rc::Rc;

use barewire_lab::cost::Costs;
use barewire_lab::kernel::imx::Imx;
use barewire_lab::kernel::{Host, Kernel, Path, Waiting, Xfer};
use barewire_lab::machine::Machine;
use barewire_lab::workload;
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;
use barewire_sim::random::SplitMix64;
use serde_json::{Value, json};

use super::command::{Dir, run};
use super::lab::number;

/// What the trace's clock has when the capture begins.
const OFFSET_NS: f64 = 5_000_000_123_456.0;

/// A kernel's clock beside the capture's.
#[derive(Clone, Copy)]
struct Clock {
    /// It is so much too fast, in millionths.
    ppm: f64,
    /// It counts in these.
    tick_ns: u64,
}

impl Clock {
    /// What it says at a time of the capture.
    fn at(self, ns: f64) -> u64 {
        let exact = OFFSET_NS + ns * (1.0 + self.ppm * 1e-6);
        exact as u64 / self.tick_ns * self.tick_ns
    }
}

/// What one chip select encloses, as the file has it, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Selected {
    from: f64,
    first_edge: f64,
    last_edge: f64,
    to: f64,
    mosi: Vec<u8>,
}

/// Reads what one chip select of a VCD in nanoseconds encloses: bytes in mode 0.
fn selections(vcd: &str, select: &str) -> Vec<Selected> {
    let mut names = BTreeMap::new();
    let mut level = BTreeMap::new();
    let (mut all, mut open, mut bits) = (Vec::new(), None::<Selected>, Vec::new());
    let mut now = 0.0;
    assert!(vcd.contains("$timescale 1 ns $end"), "{vcd:.200}");
    for line in vcd.lines() {
        let words: Vec<_> = line.split(' ').collect();
        if let ["$var", _, _, id, name, _] = words[..] {
            names.insert(id, name);
        } else if let Some(time) = line.strip_prefix('#') {
            now = time.parse().expect("a time");
        } else if let Some(high) = ["0", "1"].iter().position(|digit| line.starts_with(digit)) {
            let name = names[&line[1..]];
            let was = level.insert(name, high);
            if name == select && (was, high) == (Some(1), 0) {
                open = Some(Selected { from: now, ..Selected::default() });
            } else if name == select && high == 1 {
                let Some(mut one) = open.take() else { continue };
                let byte = |bits: &[usize]| bits.iter().fold(0, |byte, bit| byte << 1 | *bit as u8);
                (one.to, one.mosi) = (now, bits.chunks(8).map(byte).collect());
                bits.clear();
                all.push(one);
            } else if let ("sck", Some(one)) = (name, &mut open) {
                if bits.is_empty() {
                    one.first_edge = now;
                }
                one.last_edge = now;
                bits.extend((high == 1).then(|| level["mosi"]));
            }
        }
    }
    all
}

/// A message as the kernel had it, in nanoseconds of the capture.
#[derive(Clone, Debug, Default)]
struct Kernels {
    submit: f64,
    start: f64,
    /// Begin, end, what was sent, and whether chip select is released behind it.
    transfers: Vec<(f64, f64, Vec<u8>, bool)>,
    done: f64,
}

/// The messages as tracefs prints them, or perf in nanoseconds.
fn traced(messages: &[Kernels], clock: Clock) -> String {
    let mut text = String::new();
    for (nth, message) in messages.iter().enumerate() {
        let mut line = |ns: f64, event: String| {
            let at = clock.at(ns);
            let (seconds, ns) = (at / 1_000_000_000, at % 1_000_000_000);
            let _ = match clock.tick_ns {
                1 => writeln!(text, "app 7/7 [001] {seconds}.{ns:09}: spi:{event}"),
                _ => writeln!(text, "  app-7 [001] ..... {seconds}.{:06}: {event}", ns / 1_000),
            };
        };
        let (address, mut len) = (format!("spi1.0 {:016x}", 0xffff_0000_usize + nth % 3), 0);
        line(message.submit, format!("spi_message_submit: {address}"));
        line(message.start, format!("spi_message_start: {address}"));
        let mut is_selected = false;
        for (begin, end, tx, is_last) in &message.transfers {
            if !is_selected {
                line(*begin, "spi_set_cs: spi1.0 activate".into());
            }
            let hex: Vec<_> = tx.iter().take(64).map(|byte| format!("{byte:02x}")).collect();
            let data = format!(
                "spi1.0 00000000cafe{nth:04x} len={} tx=[{}] rx=[]",
                tx.len(),
                hex.join("-")
            );
            line(*begin, format!("spi_transfer_start: {data}"));
            line(*end, format!("spi_transfer_stop: {data}"));
            if *is_last {
                line(*end, "spi_set_cs: spi1.0 deactivate".into());
            }
            (is_selected, len) = (!is_last, len + tx.len());
        }
        line(message.done, format!("spi_message_done: {address} len={len}/{len}"));
    }
    text
}

/// Joins the capture with the trace of `messages`, and judges all that is said by what is known. Each message is the
/// next of `wire`, one for each transfer with chip select released behind it; `clock_ns` is the period of
/// SCK, `alike` whether the traffic has a rhythm.
#[track_caller]
fn judge(
    vcd: &str,
    wire: &[Selected],
    messages: &[Kernels],
    (clock_ns, alike): (f64, bool),
    clock: Clock,
) {
    let dir = Dir::new();
    let [capture, trace] = ["wire.vcd", "trace.txt"].map(|name| dir.path(name));
    fs::write(&capture, vcd).expect("written");
    fs::write(&trace, traced(messages, clock)).expect("written");
    let (lines, report) =
        run(&["scope", &capture, "--trace", &trace, "--messages", "--json"]).ok().json_lines();
    assert_eq!(report["selects"], json!({"spi1.0": "cs0"}));
    let notes: Vec<_> = report["notes"].as_array().expect("notes").iter().collect();
    // The pages of a flash chip are written in one rhythm: that is said, and the rest is no less right.
    let is_alike = notes.iter().any(|note| note.to_string().contains("alike and evenly spaced"));
    assert_eq!((notes.len(), is_alike), (usize::from(alike), alike), "{notes:?}");
    assert_eq!((lines.len(), number(&report["pairs"]) as usize), (messages.len(), wire.len()));

    // The clocks: what the join says of the trace's time in the capture, at both ends.
    let told = &report["clock"];
    let residual = number(&told["residual_ns"]);
    let slack = residual + clock.tick_ns as f64 + 1.0;
    let drift = 1.0 / (1.0 + clock.ppm * 1e-6) - 1.0;
    let (at, offset) = (number(&told["at_ns"]), number(&told["offset_ns"]));
    let truth = (at - OFFSET_NS) * (1.0 + drift) - at;
    assert!((offset - truth).abs() <= slack, "{told}: {}", offset - truth);
    let [least, most] = [0, 1].map(|end| number(&told["drift_ppm_range"][end]));
    let rounding = 0.001;
    assert!(
        least - rounding <= drift * 1e6 && drift * 1e6 <= most + rounding,
        "{told}: {}",
        drift * 1e6
    );
    // Else all of it could be true of anything.
    let lasts = messages[messages.len() - 1].done - messages[0].submit;
    assert!(residual < 6_000.0 && most - least < 4e6 * slack / lasts, "{told} {lasts}");

    let (mut next, mut last_edge) = (wire.iter(), None);
    // Of messages with the same lengths: their clocks, their whole time, and how many there are.
    let mut by_lens: BTreeMap<String, [f64; 3]> = BTreeMap::new();
    for (line, message) in lines.iter().zip(messages) {
        let selections = message.transfers.iter().filter(|(.., is_last)| *is_last).count();
        let wire: Vec<_> = next.by_ref().take(selections).collect();
        let (first, last) = (wire[0].first_edge, wire[selections - 1].last_edge);
        let bits = wire.iter().map(|one| one.mosi.len() * 8).sum::<usize>() as f64;
        let clocks = bits * clock_ns;
        let close = |name: &str, truth: f64, slack: f64| {
            assert!((number(&line[name]) - truth).abs() <= slack, "{name} is {truth} in {line}");
        };
        close("start_ns", wire[0].from, 1.0);
        close("queue_ns", message.start - message.submit, 2.0 * slack);
        close("begin_ns", first - message.start, slack);
        close("end_ns", message.done - last, slack);
        close("lead_ns", first - wire[0].from, 1.0);
        close("lag_ns", wire[selections - 1].to - last, 1.0);
        // From the first edge to the last is half a clock less than all clocks: there are no pauses below 0.
        // The period is timed between edges that are rounded to a nanosecond.
        close("wire_ns", clocks, 1.0 + bits * 0.2);
        close("pauses_ns", (last - first - clocks).max(0.0), 2.0 + bits * 0.2);
        close("software_ns", message.done - message.submit - clocks, 4.0 * slack + bits * 0.4);
        match last_edge {
            Some(before) => close("gap_ns", first - before, 1.0),
            None => assert_eq!(line["gap_ns"], Value::Null),
        }
        last_edge = Some(last);
        let lens: Vec<_> = message.transfers.iter().map(|(_, _, tx, _)| tx.len()).collect();
        let sums = by_lens.entry(json!(lens).to_string()).or_default();
        *sums = [sums[0] + clocks, sums[1] + message.done - message.submit, sums[2] + 1.0];
    }
    for kind in report["kinds"].as_array().expect("kinds") {
        let [clocks, whole, count] = by_lens[&kind["transfers"].to_string()];
        let share = number(&kind["wire_share"]);
        let slack = (4.0 * slack * count + 0.01 * clocks) / whole;
        assert!((share - clocks / whole).abs() <= slack, "{kind}: {clocks} of {whole}");
    }
}

const CLOCKS: [Clock; 3] = [
    Clock { ppm: 0.0, tick_ns: 1 },
    Clock { ppm: 37.0, tick_ns: 1 },
    Clock { ppm: -80.0, tick_ns: 1_000 },
];

/// A flash chip of a simulated i.MX 8M Plus is written, with a kernel that is made up around each message.
#[test]
fn a_simulated_capture_is_joined_with_the_trace_that_belongs_to_it() {
    let dir = Dir::new();
    let [path, image] = ["wire.vcd", "image"].map(|name| dir.path(name));
    let mut random = SplitMix64::new(5);
    let mut below = |limit: u64| (random.next_u64() % limit) as f64;
    fs::write(&image, (0..2_048).map(|_| below(256) as u8).collect::<Vec<_>>()).expect("written");
    let write = ["flash", "write", &image, "--bus", "sim:imx8mp", "-q", "--speed-hz", "10M"];
    run(&[&write[..], &["--vcd", &path]].concat()).ok();
    let vcd = fs::read_to_string(&path).expect("it was made");
    let wire = selections(&vcd, "cs0");
    let lens: std::collections::BTreeSet<_> = wire.iter().map(|one| one.mosi.len()).collect();
    assert!(wire.len() > 30 && lens.len() > 4, "{} messages of {lens:?} bytes", wire.len());
    let mut before = 0.0_f64;
    let message = |one: &Selected| {
        let start = (one.from - 300.0 - below(300)).max(before);
        let end = one.last_edge + 20.0 + below(90);
        let submit = (start - 50.0 - below(200)).max(before);
        before = end + below(100);
        let begin = one.first_edge - 20.0 - below(90);
        let transfers = vec![(begin.max(start), end, one.mosi.clone(), true)];
        Kernels { submit, start, transfers, done: before }
    };
    let messages: Vec<_> = wire.iter().map(message).collect();
    for clock in CLOCKS {
        judge(&vcd, &wire, &messages, (100.0, true), clock);
    }
}

/// A driver that notes when the core calls it.
struct Noted<'h> {
    host: &'h Imx,
    now: RefCell<Kernels>,
}

/// The time, in nanoseconds.
fn now_ns(machine: &Machine) -> f64 {
    machine.now() as f64 / 1e3
}

impl Host for Noted<'_> {
    fn prepare(&self, machine: &Machine) {
        self.now.borrow_mut().start = now_ns(machine);
        self.host.prepare(machine);
    }

    fn set_cs(&self, machine: &Machine, active: bool) {
        self.host.set_cs(machine, active);
        let mut now = self.now.borrow_mut();
        if let (Some(transfer), false) = (now.transfers.last_mut(), active) {
            transfer.3 = true;
        }
    }

    fn transfer(&self, machine: &Machine, waiting: Waiting, xfer: &mut Xfer) {
        let begin = now_ns(machine);
        self.host.transfer(machine, waiting, xfer);
        let transfer = (begin, now_ns(machine), xfer.tx.clone(), false);
        self.now.borrow_mut().transfers.push(transfer);
    }
}

/// Messages of the lab's kernels on a simulated i.MX 8M Plus: what each event's time is, the lab's steps say.
#[test]
fn the_labs_messages_are_joined_with_their_own_trace() {
    let costs = Rc::new(Costs::fitted());
    for path in ["linux-5.19-both-poll", "linux-5.18-A"] {
        let path = Path::find(path).expect("a path");
        let machine = workload::machine("imx8mp", &costs, &Rc::default()).expect("a board");
        let board = machine.board();
        board.attach(0, Rc::new(RefCell::new(Echo::default())));
        let imx = Imx::new(board, 0, 4_000_000);
        let noted = Noted { host: &imx, now: RefCell::default() };
        let kernel = Kernel::new(&machine, &noted, path);
        let mut random = SplitMix64::new(9);
        let mut messages = Vec::new();
        board.start_vcd();
        machine.start();
        let mut client = || {
            for _ in 0..60 {
                let until = machine.now() + 300_000_000 + random.next_u64() % 600_000_000;
                machine.wait("sleep", false, || board.engine().sleep_until(until));
                let submit = now_ns(&machine);
                let kinds: [&[usize]; 3] = [&[1, 3], &[4], &[2, 90, 8]];
                let lens = kinds[random.next_u64() as usize % 3];
                let mut xfer = |&len: &usize| {
                    let tx: Vec<_> = (0..len).map(|_| random.next_u64() as u8).collect();
                    Xfer { cs_change: len == 90, ..Xfer::new(&tx) }
                };
                kernel.sync(lens.iter().map(&mut xfer).collect());
                let message = noted.now.take();
                messages.push(Kernels { submit, done: now_ns(&machine), ..message });
            }
            kernel.stop();
        };
        let mut threads = vec![
            Thread::new("client", &mut client).on(0, 10),
            Thread::new("pump", || kernel.pump()).on(1, 50),
        ];
        threads.extend(imx.threads(&machine));
        board.engine().run(threads);
        let record = machine.finish();
        let vcd = String::from_utf8(board.take_vcd().expect("it was begun").vcd).expect("text");
        let wire = selections(&vcd, "cs0");
        // The recording is the wire that the lab saw, on its own clock.
        assert_eq!(wire.len(), record.wire().len());
        let begun = record.wire()[0].selected_at as f64 / 1e3 - wire[0].from;
        for (one, seen) in wire.iter().zip(record.wire()) {
            for (ns, at) in [(one.from, seen.selected_at), (one.to, seen.deselected_at)] {
                assert!((ns + begun - at as f64 / 1e3).abs() <= 1.0, "{one:?} {seen:?}");
            }
        }
        for message in &mut messages {
            let transfers = message.transfers.iter_mut().flat_map(|(begin, end, ..)| [begin, end]);
            let times =
                transfers.chain([&mut message.submit, &mut message.start, &mut message.done]);
            times.for_each(|ns| *ns -= begun);
        }
        for clock in CLOCKS {
            judge(&vcd, &wire, &messages, (1e9 / imx.clock_hz() as f64, false), clock);
        }
    }
}
