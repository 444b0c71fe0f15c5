//! Captures of others, beside sigrok's decoder: `../shared/captures` beside the repository, or the folder that
//! `BAREWIRE_CAPTURES` names. sigrok's own dumps are such captures (`sigrok-dumps`).

use std::path::{Path, PathBuf};
use std::process::Command;

use barewire_scope::decode::{Message, Wires};
use barewire_scope::{Options, Scope};

fn folder() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/captures");
    std::env::var_os("BAREWIRE_CAPTURES").map_or(beside, PathBuf::from)
}

/// All files of sigrok under a folder.
fn captures(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            captures(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "sr") {
            found.push(path);
        }
    }
}

/// The options of sigrok's decoder for wires as we found them.
fn decoder(wires: &Wires, name: impl Fn(u8) -> String) -> String {
    let mut decoder = format!("spi:clk={}", name(wires.sck));
    for (role, bit) in [("mosi", wires.mosi), ("miso", wires.miso)] {
        decoder += &bit.map_or_else(String::new, |bit| format!(":{role}={}", name(bit)));
    }
    for select in &wires.selects {
        let level = if select.active_high { "high" } else { "low" };
        decoder += &format!(":cs={}:cs_polarity=active-{level}", name(select.bit));
    }
    decoder
        + &format!(":cpol={}:cpha={}:wordsize={}", wires.mode >> 1, wires.mode & 1, wires.word_bits)
}

/// What sigrok says of one class: begin, end and text of each.
fn sigrok(path: &Path, decoder: &str, class: &str) -> Option<Vec<(u64, u64, String)>> {
    let mut command = Command::new("sigrok-cli");
    command.arg("-i").arg(path).args(["-P", decoder, "-A", class, "--protocol-decoder-samplenum"]);
    let output = command.output().ok()?;
    assert!(output.status.success(), "{decoder}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |line: &str| {
        let (place, text) = line.split_once(' ')?;
        let (begin, end) = place.split_once('-')?;
        Some((
            begin.parse().ok()?,
            end.parse().ok()?,
            text.rsplit(' ').next()?.to_ascii_lowercase(),
        ))
    };
    Some(text.lines().map(|text| line(text).unwrap_or_else(|| panic!("{text}"))).collect())
}

#[test]
fn words_are_sigrok_s_in_the_messages_where_it_sees_them() {
    let mut paths = Vec::new();
    captures(&folder(), &mut paths);
    paths.sort();
    if paths.is_empty() || Command::new("sigrok-cli").arg("--version").output().is_err() {
        eprintln!(
            "SKIPPED: {} has no captures, or sigrok-cli is not installed",
            folder().display()
        );
        return;
    }
    let (mut words, mut compared) = (0, 0);
    for path in &paths {
        let mut scope =
            Scope::open(path, Options::default()).unwrap_or_else(|error| panic!("{error}"));
        let channels = scope.capture().channels().to_vec();
        let name = |bit: u8| {
            channels.iter().find(|channel| channel.bit == bit).expect("a channel").name.clone()
        };
        let mut messages: Vec<Message> = Vec::new();
        while scope
            .step(&mut |_, message, _| messages.push(message.clone()))
            .unwrap_or_else(|error| panic!("{error}"))
        {}
        let wires = scope.finish().expect("wires were found").wires;
        // sigrok's decoder is slow: of a long capture it would take minutes.
        let count: u64 = messages.iter().map(|message| message.words).sum();
        if count > 5_000 && std::env::var_os("BAREWIRE_WHOLE").is_none() {
            eprintln!("SKIPPED: {}: {count} words, with BAREWIRE_WHOLE alone", path.display());
            continue;
        }
        let decoder = decoder(&wires, name);
        let class = if wires.mosi.is_some() { "mosi" } else { "miso" };
        let theirs = sigrok(path, &decoder, &format!("spi={class}-data")).expect("sigrok-cli runs");
        let ours: Vec<(&Message, u32)> = messages
            .iter()
            .flat_map(|message| {
                let words = if class == "mosi" { &message.mosi } else { &message.miso };
                words.iter().map(move |&word| (message, word))
            })
            .collect();
        let width = usize::from(wires.word_bits).div_ceil(4);
        let texts = |words: Vec<String>| words.join(" ");
        let our_text = texts(ours.iter().map(|(_, word)| format!("{word:0width$x}")).collect());
        let their_text =
            texts(theirs.iter().map(|(.., word)| format!("{word:0>width$}")).collect());
        assert_eq!(our_text, their_text, "{} {decoder}", path.display());
        // Each word begins within the message in which we see it.
        for ((message, _), (begin, ..)) in ours.iter().zip(&theirs) {
            let (first, last) = message.clocked.expect("it has words");
            assert!((first..=last).contains(begin), "{} {begin} {first} {last}", path.display());
        }
        (words, compared) = (words + ours.len(), compared + 1);
    }
    println!("FIGURE: {words} words of {compared} captures are sigrok's");
}
