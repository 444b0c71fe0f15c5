//! Wires, modes and words are found where names say nothing.

use barewire_scope::Options;
use barewire_scope::decode::Select;
use barewire_scope::find::Hints;

use crate::read_wave;
use crate::wave::{CS, MISO, MOSI, SCK, Shape, Wave};

const NAMELESS: [&str; 6] = ["0", "1", "2", "3", "4", "5"];

/// Words that look like data.
fn noise(count: usize, bits: u8, mut seed: u32) -> Vec<u32> {
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    };
    (0..count).map(|_| next() & (u32::MAX >> (32 - bits))).collect()
}

/// Some messages of a shape, on a wire that idles so.
fn messages(wave: &mut Wave, shape: &Shape, lengths: &[usize]) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    for (index, &length) in lengths.iter().enumerate() {
        let mosi = noise(length, shape.bits, 7 + index as u32);
        // Nothing in the first word: a chip hears the command first.
        let mut miso = noise(length, shape.bits, 99 + index as u32);
        miso[0] = 0;
        wave.message(shape, &mosi, &miso);
        all.push(mosi);
    }
    all
}

#[test]
fn every_mode_and_polarity_is_found_without_names() {
    for mode in 0..4 {
        for cs_high in [false, true] {
            let shape = Shape { mode, cs_high, ..Shape::USUAL };
            let idle = u64::from(mode & 2 != 0) << SCK | u64::from(!cs_high) << CS;
            let mut wave = Wave::new(idle);
            let sent = messages(&mut wave, &shape, &[3, 1, 4, 2, 5]);
            let (found, summary) = read_wave(&wave, &NAMELESS[..4], Options::default());
            let wires = &summary.wires;
            let why = &summary.why;
            assert_eq!(
                (wires.sck, wires.mosi, wires.miso),
                (SCK, Some(MOSI), Some(MISO)),
                "{why:?}"
            );
            assert_eq!(wires.selects, [Select { bit: CS, active_high: cs_high }], "{why:?}");
            assert_eq!((wires.mode, wires.word_bits), (mode, 8), "{why:?}");
            for message in &found {
                let Shape { lead, gap, lag, .. } = shape;
                assert_eq!((message.lead(), message.lag()), (Some(lead), Some(lag)), "mode {mode}");
                assert!(message.gaps.iter().all(|&seen| seen == gap), "mode {mode} {message:?}");
                assert_eq!(message.gaps.len() as u64, message.words - 1);
            }
            let words: Vec<_> = found.into_iter().map(|message| message.mosi).collect();
            assert_eq!(words, sent);
        }
    }
}

#[test]
fn two_chip_selects_and_a_line_of_commands_are_told_apart() {
    const OTHER: u8 = 4;
    const DC: u8 = 5;
    let mut wave = Wave::new(1 << CS | 1 << OTHER);
    for _ in 0..6 {
        wave.set(DC, false);
        messages(&mut wave, &Shape::USUAL, &[1]);
        wave.set(DC, true);
        messages(&mut wave, &Shape { cs: OTHER, ..Shape::USUAL }, &[4, 2]);
        messages(&mut wave, &Shape::USUAL, &[8]);
    }
    let (found, summary) = read_wave(&wave, &NAMELESS, Options::default());
    let bits: Vec<u8> = summary.wires.selects.iter().map(|select| select.bit).collect();
    assert_eq!(bits, [CS, OTHER], "{:?}", summary.why);
    let of_each =
        [0, 1].map(|place| found.iter().filter(|message| message.select == Some(place)).count());
    assert_eq!((of_each, summary.outside), ([12, 12], 0));
    assert_eq!((summary.wires.mosi, summary.wires.miso), (Some(MOSI), Some(MISO)));
}

#[test]
fn without_chip_selects_pauses_are_borders() {
    let mut wave = Wave::new(0);
    // A line of commands is none: SCK runs at both its levels.
    const DC: u8 = 4;
    let shape = Shape { cs: 5, cs_high: true, inactive: 900, ..Shape::USUAL };
    let mut sent = Vec::new();
    for command in [true, false, false, true, false] {
        wave.set(DC, !command);
        sent.extend(messages(&mut wave, &shape, &[if command { 1 } else { 6 }]));
    }
    let (found, summary) = read_wave(&wave, &NAMELESS[..5], Options::default());
    assert_eq!(summary.wires.selects, [], "{:?}", summary.why);
    assert_eq!(found.into_iter().map(|message| message.mosi).collect::<Vec<_>>(), sent);
    // Longer than each pause: all of it is one message.
    let options = Options { pause_ns: Some(5_000.0), ..Options::default() };
    let (found, _) = read_wave(&wave, &NAMELESS[..5], options);
    assert_eq!((found.len(), found[0].words), (1, 20));
}

#[test]
fn words_of_other_lengths_are_found() {
    // By the lengths of messages.
    for bits in [5, 7, 9, 12, 17, 20] {
        let mut wave = Wave::new(1 << CS);
        let sent = messages(&mut wave, &Shape { bits, gap: 4, ..Shape::USUAL }, &[1, 3, 2, 1, 5]);
        let (found, summary) = read_wave(&wave, &NAMELESS[..4], Options::default());
        assert_eq!(summary.wires.word_bits, bits, "{:?}", summary.why);
        assert_eq!(found.into_iter().map(|message| message.mosi).collect::<Vec<_>>(), sent);
    }
    // By the pauses between words.
    for (bits, gap, expected) in [(16, 12, 16), (32, 30, 32), (16, 4, 8), (8, 12, 8)] {
        let mut wave = Wave::new(1 << CS);
        messages(&mut wave, &Shape { bits, gap, ..Shape::USUAL }, &[4, 3, 2]);
        let (_, summary) = read_wave(&wave, &NAMELESS[..4], Options::default());
        assert_eq!(summary.wires.word_bits, expected, "{bits} {gap} {:?}", summary.why);
    }
}

#[test]
fn glitches_are_counted_and_left_out() {
    let mut wave = Wave::new(1 << CS);
    let glitch = |wave: &mut Wave, bit: u8| {
        let level = wave.levels >> bit & 1 == 1;
        wave.at += 50;
        wave.set(bit, !level);
        wave.at += 2;
        wave.set(bit, level);
    };
    let sent = messages(&mut wave, &Shape::USUAL, &[2, 3]);
    glitch(&mut wave, CS);
    glitch(&mut wave, CS);
    glitch(&mut wave, SCK);
    let more = messages(&mut wave, &Shape::USUAL, &[4]);
    let (found, summary) =
        read_wave(&wave, &NAMELESS[..4], Options { glitch_ns: 3.0, ..Options::default() });
    let words: Vec<_> = found.iter().map(|message| message.mosi.clone()).collect();
    assert_eq!(words, [&sent[..], &more].concat());
    assert_eq!(summary.glitches, [("0".to_owned(), 1), ("3".to_owned(), 2)]);
    // Not asked for: selections without a clock, which are told.
    let (found, summary) = read_wave(&wave, &NAMELESS[..4], Options::default());
    assert_eq!((found.len(), summary.empty), (5, 2));
    assert!(summary.notes.iter().any(|note| note.contains("--glitch")), "{:?}", summary.notes);
}

#[test]
fn what_is_said_overrides_what_is_found() {
    let mut wave = Wave::new(1 << CS);
    wave.message(&Shape::USUAL, &[0x81, 0x23], &[0, 0]);
    let named = |name: &str| Some(name.to_owned());
    // Three wires: both directions on one line; the lowest bit first; words of four bits.
    let hints = Hints {
        mosi: named("mosi"),
        miso: named("MOSI"),
        word_bits: Some(4),
        lsb_first: true,
        ..Hints::default()
    };
    let names = ["CLK", "MOSI", "x", "CS"];
    let (found, summary) = read_wave(&wave, &names, Options { hints, ..Options::default() });
    assert_eq!((&found[0].mosi, &found[0].miso), (&vec![1, 8, 4, 12], &vec![1, 8, 4, 12]));
    assert_eq!(summary.wires.mosi, summary.wires.miso);
    // Another mode, by number.
    let hints = Hints {
        clk: named("D0"),
        mosi: named("1"),
        cs: Some(vec!["D3".into()]),
        mode: Some(1),
        ..Hints::default()
    };
    let (found, _) = read_wave(&wave, &names, Options { hints, ..Options::default() });
    assert_ne!(found[0].mosi, [0x81, 0x23]);
    // No chip select at all.
    let hints = Hints { cs: Some(Vec::new()), ..Hints::default() };
    let (found, _) = read_wave(&wave, &names, Options { hints, ..Options::default() });
    assert_eq!(
        (found[0].select, found[0].lead(), &found[0].mosi[..]),
        (None, None, &[0x81, 0x23][..])
    );
}

#[test]
fn an_edge_in_the_sample_of_the_release_is_left_out_unless_taken() {
    // CPHA 1 without lag: the last bit is sampled as CS is released.
    let mut wave = Wave::new(1 << CS);
    messages(&mut wave, &Shape { mode: 1, lag: 0, ..Shape::USUAL }, &[2, 1]);
    let (found, summary) = read_wave(&wave, &NAMELESS[..4], Options::default());
    assert_eq!((found[0].words, found[0].bits_over), (1, 7));
    assert!(summary.notes.iter().any(|note| note.contains("--late-edges")), "{:?}", summary.notes);
    let hints = Hints { late_edges: true, ..Hints::default() };
    let (found, _) = read_wave(&wave, &NAMELESS[..4], Options { hints, ..Options::default() });
    assert_eq!((found[0].words, found[0].bits_over, found[0].lag()), (2, 0, Some(0)));
}

#[test]
fn names_of_one_bus_belong_together() {
    let mut wave = Wave::new(1 << CS);
    let sent = messages(&mut wave, &Shape::USUAL, &[2, 3]);
    let names = ["b_CLK", "b_MOSI", "b_MISO", "b_CS", "a_MOSI", "a_CS"];
    let (found, summary) = read_wave(&wave, &names, Options::default());
    assert_eq!(
        (summary.wires.mosi, summary.wires.miso),
        (Some(MOSI), Some(MISO)),
        "{:?}",
        summary.why
    );
    assert_eq!(found.into_iter().map(|message| message.mosi).collect::<Vec<_>>(), sent);
}
