//! A capture and a trace of one traffic, made with a known truth: offset, drift and shares.

use std::fmt::Write as _;

use barewire_scope::joined::{Joined, Wired, join};
use barewire_scope::meaning::of_joined;
use barewire_scope::trace::{self, Trace};
use barewire_scope::{Options, Scope};

use crate::wave::{CS, Shape, Wave};

/// The trace's clock at the traffic's begin.
const TRACE_NS: u64 = 77_000_000_000;
/// Half a clock: 5 MHz.
const HALF: u64 = 100;

/// A message as it really was, in nanoseconds.
#[derive(Clone, Debug)]
struct Sent {
    lens: Vec<usize>,
    bytes: Vec<u32>,
    submit: u64,
    /// Of the CS's edge, of the first clock, of the last.
    cs: u64,
    first: u64,
    last: u64,
    done: u64,
}

/// How the traffic differs from one to another.
#[derive(Clone, Copy)]
struct Traffic {
    count: usize,
    /// Bytes and pauses are the same for all.
    alike: bool,
}

/// Numbers that look random, always the same.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn traffic(traffic: Traffic) -> Vec<Sent> {
    let mut random = Random(42);
    let mut at = 40_000;
    let message = |_| {
        let pick = if traffic.alike { 0 } else { random.below(4) as usize };
        let lens = [vec![1, 3], vec![2], vec![1, 4, 16], vec![5]][pick].clone();
        let len: usize = lens.iter().sum();
        let bytes =
            (0..len).map(|_| if traffic.alike { 7 } else { random.below(256) as u32 }).collect();
        let mut jitter = |most: u64| if traffic.alike { most / 2 } else { random.below(most) };
        let submit = at + 20_000 + jitter(300_000);
        let cs = submit + 9_000 + jitter(5_000);
        let first = cs + 1_500;
        let last = first + (len as u64 * 16 - 1) * HALF + (len as u64 - 1) * HALF;
        let done = last + 6_000 + jitter(4_000);
        at = done;
        Sent { lens, bytes, submit, cs, first, last, done }
    };
    (0..traffic.count).map(message).collect()
}

/// The trace as a kernel writes it, in microseconds: a transfer begins 400 ns before its clocks and ends 2 us behind.
fn traced(sent: &[Sent], with_bytes: bool) -> String {
    let mut text = String::from("# tracer: nop\n");
    for (nth, sent) in sent.iter().enumerate() {
        let mut line = |ns: u64, event: String| {
            let us = (TRACE_NS + ns).div_ceil(1_000);
            let _ = writeln!(
                text,
                "  app-7 [000] ..... {}.{:06}: {event}",
                us / 1_000_000,
                us % 1_000_000
            );
        };
        let address = format!("{nth:016x}");
        line(sent.submit, format!("spi_message_submit: spi0.0 {address}"));
        line(sent.submit + 2_000, format!("spi_message_start: spi0.0 {address}"));
        line(sent.cs - 1_000, "spi_set_cs: spi0.0 activate".into());
        let (mut begin, mut at) = (sent.first, 0);
        for &len in &sent.lens {
            let end = begin + (len as u64 * 16 - 1) * HALF + (len as u64 - 1) * HALF;
            let last = at + len == sent.bytes.len();
            let hex: Vec<String> =
                sent.bytes[at..at + len].iter().map(|byte| format!("{byte:02x}")).collect();
            let hex = if with_bytes { hex.join("-") } else { String::new() };
            let data = format!("spi0.0 ffff len={len} tx=[{hex}] rx=[]");
            line(begin - if at == 0 { 400 } else { HALF }, format!("spi_transfer_start: {data}"));
            line(end + if last { 2_000 } else { 0 }, format!("spi_transfer_stop: {data}"));
            (begin, at) = (end + 2 * HALF, at + len);
        }
        line(sent.last + 3_000, "spi_set_cs: spi0.0 deactivate".into());
        line(sent.done, format!("spi_message_done: spi0.0 {address} len={at}/{at}"));
    }
    text
}

/// The capture's time of a true one.
fn on_wire(ns: u64, ppm: f64) -> u64 {
    (ns as f64 * (1.0 + ppm * 1e-6)).round() as u64
}

fn captured(sent: &[Sent], ppm: f64) -> Vec<Wired> {
    let mut wave = Wave::new(1 << CS);
    for sent in sent {
        let at = on_wire(sent.cs, ppm);
        let shape = Shape {
            half: HALF,
            gap: 2 * HALF,
            lead: 1_500,
            lag: 3_100,
            inactive: at - wave.at,
            ..Shape::USUAL
        };
        wave.message(&shape, &sent.bytes, &vec![0xff; sent.bytes.len()]);
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("wave.vcd");
    std::fs::write(&path, wave.vcd(&["SCK", "MOSI", "MISO", "CS"], wave.at + 500))
        .expect("written");
    let mut scope = Scope::open(&path, Options::default()).expect("a capture");
    let (tick, mut wired) = (scope.capture().tick(), Vec::new());
    while scope
        .step(&mut |wires, message, _| wired.extend(Wired::new(message, wires, tick)))
        .expect("right")
    {}
    wired
}

fn joined(wired: &[Wired], text: &str) -> Result<Joined, String> {
    let trace: Trace = trace::read(text);
    assert_eq!(trace.incomplete, 0);
    join(wired, barewire_scope::capture::Tick::NS, &trace)
}

/// Offset, drift and each share against the truth. `wired` and `traced` are the first messages that the two have.
#[track_caller]
fn is_true(joined: &Joined, sent: &[Sent], ppm: f64, from: usize) {
    let clock = joined.clock;
    let residual = clock.residual_ns;
    // Rounded up to a microsecond by the trace, which its tick allows.
    assert!(residual < 3_000.0, "{clock:?}");
    for sent in sent {
        let wrong = clock.capture_ns(TRACE_NS + sent.first) - on_wire(sent.first, ppm) as f64;
        assert!(wrong.abs() <= residual, "{wrong} of {residual}");
    }
    let (least, most) = clock.drift_range.expect("long enough");
    assert!(least <= ppm * 1e-6 && ppm * 1e-6 <= most, "{clock:?}");
    for shares in &joined.shares {
        let sent = &sent[from + shares.message];
        let close = |told: f64, truth: u64| {
            assert!((told - truth as f64).abs() <= residual + 2_000.0, "{told} {truth} {shares:?}");
        };
        close(shares.queue_ns, 2_000);
        close(shares.begin_ns, sent.first - sent.submit - 2_000);
        close(shares.end_ns, sent.done - sent.last);
        let clocks = sent.bytes.len() as u64 * 16 * HALF;
        assert!((shares.clocks_ns - clocks as f64).abs() < 40.0, "{shares:?}");
        assert!((shares.lead_ns - 1_500.0).abs() < 2.0 && (shares.lag_ns - 3_100.0).abs() < 2.0);
    }
}

#[test]
fn offset_drift_and_shares_are_the_true_ones() {
    for ppm in [0.0, 60.0, -150.0] {
        let sent = traffic(Traffic { count: 200, alike: false });
        let wired = captured(&sent, ppm);
        let whole = joined(&wired, &traced(&sent, true)).expect("one traffic");
        assert_eq!(
            (whole.pairs, whole.shares.len(), whole.wired_alone, whole.traced_alone),
            (200, 200, 0, 0)
        );
        assert!(whole.notes.is_empty(), "{:?}", whole.notes);
        is_true(&whole, &sent, ppm, 0);
        let gap = whole.shares[7].gap_ns.expect("the one before is known");
        assert!((gap - (sent[7].first - sent[6].last) as f64).abs() < 300.0, "{gap}");
        // By lengths and times alone.
        let blind = joined(&wired, &traced(&sent, false)).expect("lengths tell");
        assert_eq!((blind.pairs, blind.notes.len()), (200, 1));
        is_true(&blind, &sent, ppm, 0);
        // Each has what the other has not, and one message is in neither.
        let part = joined(&wired[..170], &traced(&sent[30..], true)).expect("140 are common");
        assert_eq!((part.pairs, part.wired_alone, part.traced_alone), (140, 0, 0));
        is_true(&part, &sent, ppm, 30);
    }
}

#[test]
fn messages_that_one_side_lacks_are_alone() {
    let sent = traffic(Traffic { count: 120, alike: false });
    let mut wired = captured(&sent, 0.0);
    let fewer: Vec<Sent> =
        (0..).zip(&sent).filter(|(nth, _)| nth % 20 != 9).map(|(_, sent)| sent.clone()).collect();
    wired.remove(55);
    let joined = joined(&wired, &traced(&fewer, true)).expect("most are common");
    assert_eq!((joined.pairs, joined.wired_alone, joined.traced_alone), (113, 6, 1));
    assert_eq!(joined.shares.iter().filter(|shares| shares.gap_ns.is_none()).count(), 1 + 6 + 1);
}

#[test]
fn no_message_is_joined_with_another() {
    let sent = traffic(Traffic { count: 80, alike: false });
    let wired = captured(&sent, 40.0);
    let mut joined_count = 0;
    for seed in 0..40 {
        let mut random = Random(seed);
        let keep = 3 + seed / 10 * 2;
        let [on_wire, in_trace] = [(); 2]
            .map(|()| (0..sent.len()).filter(|_| random.below(10) < keep).collect::<Vec<_>>());
        let wired: Vec<Wired> = on_wire.iter().map(|&nth| wired[nth].clone()).collect();
        let kept: Vec<Sent> = in_trace.iter().map(|&nth| sent[nth].clone()).collect();
        let Ok(joined) = joined(&wired, &traced(&kept, seed % 2 == 0)) else { continue };
        joined_count += 1;
        for shares in &joined.shares {
            assert_eq!(on_wire[shares.wired[0]], in_trace[shares.message], "seed {seed}");
        }
    }
    assert!(joined_count >= 20, "{joined_count}");
}

/// Longer than a way is followed while others are tried.
#[test]
fn a_long_traffic_is_one() {
    let sent = traffic(Traffic { count: 2_600, alike: false });
    let long = joined(&captured(&sent, 0.0), &traced(&sent[7..], true)).expect("most are common");
    assert_eq!((long.pairs, long.notes.len()), (2_593, 0));
}

#[test]
fn what_cannot_be_aligned_says_why() {
    let sent = traffic(Traffic { count: 40, alike: false });
    let wired = captured(&sent, 0.0);
    let fails = |wired: &[Wired], text: &str, said: &str| {
        let why = joined(wired, text).expect_err(said);
        assert!(why.contains(said), "{said:?} is not in {why:?}");
    };
    let mut other = sent.clone();
    for sent in &mut other {
        let len = sent.bytes.len() + 8;
        (sent.lens, sent.bytes) = (vec![len], vec![0; len]);
        sent.last += 8 * 17 * HALF;
        sent.done += 8 * 17 * HALF;
    }
    fails(
        &wired,
        &traced(&other[..9], true),
        "the wire has messages of 2, 4, 5, 21 bytes, the trace selections of 1",
    );
    let bare: String = traced(&sent, true)
        .lines()
        .filter(|line| !line.contains("_transfer_"))
        .map(|line| format!("{line}\n"))
        .collect();
    fails(&wired, &bare, "the trace has no transfers");
    fails(&[], &traced(&sent, true), "no whole message");
    // Evenly spaced and alike: nothing tells which is which, unless all are there.
    let alike = traffic(Traffic { count: 40, alike: true });
    let wired = captured(&alike, 0.0);
    fails(&wired, &traced(&alike[3..], true), "too much alike");
    let all = joined(&wired, &traced(&alike, true)).expect("all are there");
    assert!(all.notes[0].contains("evenly spaced"), "{:?}", all.notes);
    // The same lengths in another order and rhythm.
    let mut late = sent.clone();
    late.reverse();
    let mut at = 0;
    for sent in &mut late {
        let by = at + 20_000;
        let from = sent.submit;
        for ns in [&mut sent.submit, &mut sent.cs, &mut sent.first, &mut sent.last, &mut sent.done]
        {
            *ns = *ns - from + by;
        }
        at = sent.done;
    }
    assert!(joined(&captured(&sent, 0.0), &traced(&late, true)).is_err());
}

#[test]
fn a_set_up_that_long_transfers_alone_have_is_told() {
    let sent = traffic(Traffic { count: 120, alike: false });
    let wired = captured(&sent, 0.0);
    let text = traced(&sent, true);
    let meant = |text: &str| {
        let trace = trace::read(text);
        let joined = join(&wired, barewire_scope::capture::Tick::NS, &trace).expect("one traffic");
        of_joined(&joined, &wired, &trace)
    };
    assert_eq!(meant(&text), []);
    // Transfers of 5 bytes begin 8 us earlier: so long it takes until they clock.
    let earlier = |line: &str| {
        let Some((head, rest)) =
            line.split_once(": spi_transfer_start: ").filter(|(_, rest)| rest.contains("len=5 "))
        else {
            return format!("{line}\n");
        };
        let (head, us) = head.rsplit_once('.').expect("a time");
        format!(
            "{head}.{:06}: spi_transfer_start: {rest}\n",
            us.parse::<u32>().expect("a time") - 8
        )
    };
    let lines = text.lines().filter(|line| !line.contains("spi_set_cs"));
    let set_up: String = lines.map(earlier).collect();
    let [meaning] = &meant(&set_up)[..] else { panic!("one cause") };
    assert_eq!(meaning.cause, "dma-set-up");
    assert!(meaning.what.starts_with("transfers from 5 bytes on"), "{meaning:?}");
}
