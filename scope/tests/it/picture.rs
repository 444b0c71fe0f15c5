//! Drawings of waves whose truth is known.

use barewire_scope::Options;
use barewire_scope::capture::{Capture, Edge};
use barewire_scope::decode::{Message, Wires};
use barewire_scope::picture::{self, Paper, Wave as Picture, Waves};

use crate::wave::{CS, MISO, MOSI, SCK, Shape, Wave};

const NAMES: [&str; 4] = ["SCK", "MOSI", "D2", "CS#"];

/// The waves of a capture's messages, with `edges_max` changes each, and what is drawn of them on 72 columns.
fn drawn(wave: &Wave, options: Options, edges_max: usize, ascii: bool) -> Vec<(Picture, String)> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("wave.vcd");
    std::fs::write(&path, wave.vcd(&NAMES, wave.at + 500)).expect("written");
    let (messages, summary) = crate::read(&path, options.clone()).expect("a capture");
    let wires: Wires = summary.wires;
    let mut waves = Waves::open(&path, &options, &wires, &messages, edges_max).expect("opens");
    while waves.step().expect("is read") {}
    let (tick, channels) =
        (waves.capture().tick(), Capture::open(&path, None).expect("opens").channels().to_vec());
    let paper = Paper { columns: 72, ascii, word_bits: wires.word_bits };
    let lines = |message: &Message| picture::lines(&wires, &channels, message.select);
    let draw = |wave: Picture| {
        let text = picture::draw(&wave, &lines(&wave.message), tick, paper);
        (wave, text)
    };
    waves.finish().into_iter().map(draw).collect()
}

#[test]
fn a_message_is_drawn_to_scale() {
    let mut wave = Wave::new(1 << CS);
    wave.message(&Shape { lead: 8, lag: 8, ..Shape::USUAL }, &[0x9f], &[0xa5]);
    let (picture, text) = drawn(&wave, Options::default(), 1_000, false).remove(0);
    assert_eq!(picture.words, [(308, 364)], "{picture:?}");
    let rows: Vec<&str> = text.trim_end().lines().collect();
    assert_eq!(rows.len(), 11, "{text}");
    assert!(rows[0].starts_with("CS#      ─"), "{text}");
    let count = |row: usize, what: char| rows[row].matches(what).count();
    assert_eq!(
        [count(0, '┐'), count(0, '┌'), count(2, '┌'), count(2, '┐')],
        [1, 1, 8, 8],
        "{text}"
    );
    assert!(rows[4].starts_with("MOSI") && rows[7].starts_with("MISO D2"), "{text}");
    assert!(rows[6].contains("9f") && rows[9].contains("a5"), "{text}");
    assert!(rows[10].contains("|0 ns") && rows[10].contains("|20 ns"), "{text}");
    // The axis begins at the edge of chip select.
    let column =
        |row: usize, what: char| rows[row].chars().position(|own| own == what).expect("is there");
    assert_eq!(column(10, '|'), column(0, '┐'));
    // 64 of 88 ticks from CS's edge to the last of SCK's are as many of the columns between CS's edges.
    let (first, last) = (column(0, '┐'), column(0, '┌'));
    let clock = rows[2].chars().collect::<Vec<_>>();
    let falls = clock.iter().rposition(|own| *own == '┐').expect("is there");
    let share = (falls - first) as f64 / (last - first) as f64;
    let message = &picture.message;
    let (_, end) = message.clocked.expect("clocked");
    let truth = (end - message.start) as f64 / (message.end - message.start) as f64;
    assert!((share - truth).abs() < 0.02, "{share} {truth}\n{text}");
}

#[test]
fn a_long_message_is_folded_and_what_is_left_out_is_said() {
    let mut wave = Wave::new(1 << CS);
    let words: Vec<u32> = (0..12).collect();
    wave.message(&Shape { lead: 2_000, ..Shape::USUAL }, &words, &words);
    let many = vec![0x55; 2_000];
    wave.message(&Shape::USUAL, &many, &many);
    let drawn = drawn(&wave, Options::default(), 10_000, true);
    let text = &drawn[0].1;
    assert!(text.is_ascii(), "{text}");
    assert!(text.contains(" in which nothing moves ..."), "{text}");
    for word in &words {
        assert!(text.contains(&format!("{word:02x}")), "{word:02x}:\n{text}");
    }
    assert_eq!(drawn[0].0.words.len(), 12);
    let rises = text.lines().filter(|line| line.starts_with("SCK")).count();
    assert!(rises > 3, "{rises} strips");
    let (picture, text) = &drawn[1];
    assert!(text.trim_end().ends_with("are not drawn"), "{text}");
    assert!(picture.shortened && picture.edges.len() == 10_000 && picture.to < picture.message.end);
}

/// What the wave has between its bounds is what the capture has: levels before, changes within, glitches left out.
#[test]
fn waves_have_the_captures_changes() {
    let mut wave = Wave::new(1 << CS);
    for byte in [0x12_u32, 0x34, 0x56] {
        let (_, end) = wave.message(&Shape::USUAL, &[byte, 0xff], &[0x80, byte]);
        wave.at = end + 30;
        wave.set(MISO, true);
        wave.at += 2;
        wave.set(MISO, false);
    }
    let options = Options { glitch_ns: 3.0, ..Options::default() };
    let drawn = drawn(&wave, options, 1_000, false);
    assert_eq!(drawn.len(), 3);
    for (picture, _) in &drawn {
        let Picture { message, from, to, edges, words, .. } = picture;
        let within: Vec<Edge> =
            wave.edges.iter().filter(|edge| edge.at > *from && edge.at <= *to).copied().collect();
        // A glitch behind the message, if it is still in the picture, was left out.
        let kept: Vec<Edge> = within.into_iter().filter(|edge| edge.at <= message.end).collect();
        assert_eq!(edges[1..], kept[..], "{from} {to}");
        let before = wave.edges.iter().rfind(|edge| edge.at <= *from).expect("levels");
        assert_eq!((edges[0].at, edges[0].levels), (*from, before.levels));
        assert_eq!(words.len(), 2);
        let sample = |at: u64| edges.iter().rfind(|edge| edge.at <= at).expect("levels").levels;
        for (word, &(first, _)) in message.mosi.iter().zip(words) {
            assert_eq!(sample(first) >> MOSI & 1, u64::from(*word >> 7), "the first bit");
            assert_eq!(sample(first) >> SCK & 1, 1, "SCK has risen");
        }
    }
}
