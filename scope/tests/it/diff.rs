//! Comparisons of distributions that are known: equal ones are told to be equal, shifts are found, and their size is in the
//! interval.

use std::fmt::Write as _;

use barewire_scope::Options;
use barewire_scope::diff::{Found, Group, How, Side, Values, compare};

use crate::wave::{CS, Shape, Wave};

/// A sequence of random numbers below 1, by its seed (Sebastiano Vigna, *SplitMix64*, public domain, 2015).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A pause with a long tail: 2 us and more, in samples of 40 ns.
    fn pause(&mut self, shift: f64) -> f64 {
        ((2_000.0 + shift - 800.0 * (1.0 - self.next()).ln()) / 40.0).round() * 40.0
    }
}

/// A kind of six figures with `n` values each.
fn side(random: &mut Random, n: usize, shift: f64) -> Side {
    let figures = ["cs_inactive_ns", "lead_ns", "clocked_ns", "gap_ns", "lag_ns", "sck_hz"];
    let values = |name: &&'static str| {
        // One figure is shifted.
        let shift = if *name == "lag_ns" { shift } else { 0.0 };
        (*name, Values::new((0..n).map(|_| (random.pause(shift), 1)).collect(), 40.0))
    };
    let figures = figures.iter().map(values).collect();
    Side {
        groups: vec![Group {
            kind: "06, 1 word".into(),
            messages: n as u64,
            figures,
            ..Group::default()
        }],
    }
}

#[test]
fn equal_distributions_do_not_differ() {
    let mut random = Random(42);
    for n in [12, 100, 700] {
        let differ = (0..300)
            .filter(|_| {
                compare([side(&mut random, n, 0.0), side(&mut random, n + n / 3, 0.0)], How::USUAL)
                    .differs()
            })
            .count();
        assert!(differ <= 15, "{differ} of 300 at n = {n}");
    }
}

#[test]
fn a_shift_is_found_with_its_size() {
    let mut random = Random(7);
    // Of medians that scatter by some 50 ns a shift of 480 ns is found always; its size is nearly always in the interval.
    let mut missed = 0;
    for seed in 0..100 {
        let diff =
            compare([side(&mut random, 300, 0.0), side(&mut random, 300, 480.0)], How::USUAL);
        let figures = &diff.pairs[0].figures;
        assert!(figures[4].is_changed(), "{seed}: {figures:?}");
        let Found::Changed([low, high]) = figures[4].found else { unreachable!("it changed") };
        assert!(high - low < 600.0, "{seed}: {low} {high}");
        missed += usize::from(low > 480.0 || high < 480.0);
    }
    assert!(missed <= 5, "{missed} of 100 intervals do not hold the shift");
    // And one of the same size in the tail, where the median stays.
    let tail = |value| {
        let mut values = vec![(1_000.0, 3_900), (value, 100)];
        values.reverse();
        let figures = vec![("lag_ns", Values::new(values, 1.0))];
        Side { groups: vec![Group { messages: 4_000, figures, ..Group::default() }] }
    };
    let how = How { quantile: 0.99, ..How::USUAL };
    assert!(!compare([tail(5_000.0), tail(9_000.0)], How::USUAL).differs());
    let found = compare([tail(5_000.0), tail(9_000.0)], how);
    assert_eq!(found.pairs[0].figures[0].found, Found::Changed([4_000.0, 4_000.0]));
}

/// A trace of 60 messages of two kinds in microseconds, whose second kind waits `shift_us` longer in the queue.
fn trace(random: &mut Random, device: &str, shift_us: u64) -> Side {
    let mut text = String::new();
    let mut at = 5_000_000;
    for nth in 0..60 {
        let mut line = |after_us: u64, event: &str| {
            at += after_us;
            let _ =
                writeln!(text, "a-7 [000] ..... {}.{:06}: {event}", at / 1_000_000, at % 1_000_000);
        };
        let mut jitter = |most: f64| (random.next() * most) as u64;
        let (len, shift) = [(1, 0), (40, shift_us)][nth % 2];
        line(200 + jitter(90.0), &format!("spi_message_submit: {device} 1"));
        line(10 + jitter(20.0) + shift, &format!("spi_message_start: {device} 1"));
        for part in [len, 3] {
            line(
                3 + jitter(3.0),
                &format!("spi_transfer_start: {device} 2 len={part} tx=[] rx=[]"),
            );
            line(
                30 + jitter(5.0),
                &format!("spi_transfer_stop: {device} 2 len={part} tx=[] rx=[]"),
            );
        }
        let len = len + 3;
        line(4 + jitter(3.0), &format!("spi_message_done: {device} 1 len={len}/{len}"));
    }
    let trace = barewire_scope::trace::read(&text);
    assert_eq!((trace.messages.len(), trace.incomplete, trace.skipped_lines), (60, 0, 0));
    Side::of_trace(&trace)
}

/// Equal traces of 14 figures each, and one whose longer messages wait.
#[test]
fn traces_are_compared_by_their_kinds() {
    let mut random = Random(3);
    let mut differ = 0;
    for _ in 0..100 {
        let sides = [trace(&mut random, "spi0.0", 0), trace(&mut random, "spi1.0", 0)];
        differ += usize::from(compare(sides, How::USUAL).differs());
    }
    assert!(differ <= 8, "{differ} of 100");
    let sides = [trace(&mut random, "spi0.0", 0), trace(&mut random, "spi0.0", 60)];
    let diff = compare(sides, How::USUAL);
    assert_eq!(diff.intervals, 14);
    let changed = diff.pairs.iter().flat_map(|pair| {
        let figures = pair.figures.iter().filter(|figure| figure.is_changed());
        figures.map(|figure| (&*pair.kind, figure.figure, figure.found))
    });
    let changed: Vec<_> = changed.collect();
    let [first, second] = &changed[..] else { panic!("{changed:?}") };
    assert_eq!((first.0, first.1), ("40+3 bytes", "submit_to_start_ns"));
    assert_eq!((second.0, second.1), ("40+3 bytes", "submit_to_done_ns"));
    for found in [first.2, second.2] {
        let Found::Changed([low, high]) = found else { unreachable!("it changed") };
        assert!(low < 60e3 && 60e3 < high && high - low < 40e3, "{low} {high}");
    }
}

#[test]
fn captures_are_compared_by_their_kinds() {
    let capture = |lag: u64, command: u32| {
        let mut wave = Wave::new(1 << CS);
        for nth in 0..40 {
            let shape =
                Shape { lag: lag + nth % 3, inactive: 300 + 7 * (nth % 11), ..Shape::USUAL };
            wave.message(&shape, &[0x9f, 0, 0], &[0xff, 0xc2, 0x20]);
            wave.message(&shape, &[command], &[0xff]);
        }
        let (_, summary) =
            crate::read_wave(&wave, &["SCK", "MOSI", "MISO", "CS#"], Options::default());
        // A tick is a nanosecond.
        let channels = [barewire_scope::capture::Channel { name: "CS#".into(), bit: CS }];
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("one.vcd");
        std::fs::write(&path, wave.vcd(&["SCK", "MOSI", "MISO", "CS#"], wave.at)).expect("written");
        let tick = barewire_scope::Capture::open(&path, None).expect("opens").tick();
        Side::of(&summary, &channels, tick)
    };
    let diff = compare([capture(15, 0x06), capture(25, 0x04)], How::USUAL);
    assert_eq!(diff.pairs.len(), 1);
    let changed: Vec<_> = diff.pairs[0]
        .figures
        .iter()
        .filter(|figure| figure.is_changed())
        .map(|figure| (figure.figure, figure.found))
        .collect();
    assert!(
        matches!(changed[..], [("lag_ns", Found::Changed([low, high]))] if (8.0..=10.0).contains(&low) && (10.0..=12.0).contains(&high)),
        "{changed:?}"
    );
    assert_eq!(diff.only.each_ref().map(|only| &*only[0].kind), ["06, 1 word", "04, 1 word"]);
}
