//! One wire in every format gives the same messages.

use std::fs;

use barewire_scope::capture::Format;
use barewire_scope::decode::Message;
use barewire_scope::{Options, Scope};

use crate::read;
use crate::wave::{CS, MISO, MOSI, SCK, Shape, Wave, metadata, sigrok};

const NAMES: [&str; 4] = ["SCK", "MOSI", "MISO", "CS"];

/// Two messages, of a tick of 1 ns.
fn wave() -> Wave {
    let mut wave = Wave::new(1 << CS);
    wave.message(&Shape::USUAL, &[0x9f, 0, 0, 0], &[0xff, 0xc2, 0x20, 0x15]);
    wave.message(&Shape { lag: 33, ..Shape::USUAL }, &[0x05, 0xff], &[0xff, 3]);
    wave
}

/// Times in nanoseconds, so that ticks of any length compare.
fn facts(messages: &[Message], scope: f64) -> Vec<String> {
    let ns = |ticks: u64| (ticks as f64 * scope).round();
    let fact = |m: &Message| {
        let gaps: Vec<_> = m.gaps.iter().map(|&gap| ns(gap)).collect();
        let times = [Some(m.end - m.start), m.lead(), m.lag(), m.inactive].map(|time| time.map(ns));
        format!("{:02x?} {:02x?} {times:?} {gaps:?} {} {}", m.mosi, m.miso, m.words, m.cut)
    };
    messages.iter().map(fact).collect()
}

#[test]
fn all_formats_have_the_same_messages() {
    let (wave, dir) = (wave(), tempfile::tempdir().expect("a directory"));
    let end = wave.at + 500;
    let write = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("one"))
            .and_then(|()| fs::write(&path, content))
            .expect("written");
        path
    };
    let mut files = vec![
        (write("a.vcd", wave.vcd(&NAMES, end).as_bytes()), Format::Vcd),
        (write("a.csv", wave.saleae_csv(&NAMES, 0).as_bytes()), Format::SaleaeCsv),
        // Times may begin before the trigger; lines may end as Windows' do.
        (
            write("b.csv", wave.saleae_csv(&NAMES, -777).replace('\n', "\r\n").as_bytes()),
            Format::SaleaeCsv,
        ),
    ];
    for unit in 1..=8 {
        let samples = wave.samples(unit, end);
        // Chunks that end within a sample, and hundreds of them.
        for chunk in [7 * unit, samples.len(), 1_000 + 1] {
            let name = format!("{unit}-{chunk}.sr");
            files.push((
                write(&name, &sigrok(&NAMES, unit, "1 GHz", &samples, chunk)),
                Format::Sigrok,
            ));
        }
    }
    for version in [0, 1] {
        for (number, bit) in [SCK, MOSI, MISO, CS].into_iter().enumerate() {
            let file = write(
                &format!("v{version}/digital_{number}.bin"),
                &wave.saleae_binary(bit, version, end),
            );
            files.push((file, Format::SaleaeBinary));
        }
        files.push((dir.path().join(format!("v{version}")), Format::SaleaeBinary));
    }
    let mut expected = None;
    for (path, format) in files {
        let mut options = Options::default();
        if format == Format::SaleaeBinary {
            let name = |number: u8| Some(format!("D{number}"));
            (options.hints.clk, options.hints.mosi, options.hints.miso) =
                (name(SCK), name(MOSI), name(MISO));
        }
        let scope =
            Scope::open(&path, Options::default()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scope.capture().format(), format, "{}", path.display());
        let tick_ns = scope.capture().tick().ns(1);
        let (messages, summary) = read(&path, options).unwrap_or_else(|error| panic!("{error}"));
        let found = facts(&messages, tick_ns);
        assert_eq!(&found, expected.get_or_insert(found.clone()), "{}", path.display());
        assert_eq!(summary.notes, [""; 0], "{}", path.display());
    }
    let expected = expected.expect("there were files");
    let gaps = "[11.0, 11.0, 11.0]";
    let first = format!(
        "[9f, 00, 00, 00] [ff, c2, 20, 15] [Some(308.0), Some(20.0), Some(15.0), None] {gaps} 4 false"
    );
    assert_eq!(expected[0], first);
    assert_eq!(
        expected[1],
        "[05, ff] [ff, 03] [Some(184.0), Some(20.0), Some(33.0), Some(300.0)] [11.0] 2 false"
    );
}

#[test]
fn a_wrong_rate_is_overridden() {
    let (wave, dir) = (wave(), tempfile::tempdir().expect("a directory"));
    let path = dir.path().join("a.sr");
    let samples = wave.samples(1, wave.at + 10);
    for (rate, option, sck_hz) in [
        ("8 MHz", None, 1_000_000),
        ("8 MHz", Some(5_000_000), 625_000),
        ("0 Hz", Some(16_000_000), 2_000_000),
    ] {
        fs::write(&path, sigrok(&NAMES, 1, rate, &samples, 4_096)).expect("written");
        let (_, summary) =
            read(&path, Options { samplerate: option, ..Options::default() }).expect("is read");
        assert_eq!(summary.kinds[0].sck_hz.max(), Some(sck_hz), "{rate} {option:?}");
    }
    assert!(metadata(&NAMES, 1, "0 Hz").contains("samplerate=0 Hz"));
}
