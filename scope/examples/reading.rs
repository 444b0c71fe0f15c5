//! How fast captures are read: makes one of sigrok, mostly idle or dense, and reads it.
//!
//! `cargo run --release -p barewire-scope --example reading -- FILE [MEBIBYTES]` makes FILE unless it is there: samples of one
//! byte at 25 MHz, in chunks of 4 MiB. A name with `dense` in it gets messages all the time, any other one of 4 bytes each
//! millisecond. With `--sigrok` sigrok-cli reads it too, with its SPI decoder, and must find as many words; a few mebibytes
//! will do.

#[path = "../tests/it/wave.rs"]
#[expect(dead_code, reason = "the tests' drawing, of which this takes a part")]
mod wave;

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use barewire_scope::{Options, Scope};
use wave::{SCK, Shape, Wave, Zip};

const CHUNK: usize = 4 << 20;
const NAMES: [&str; 4] = ["SCK", "MOSI", "MISO", "CS#"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<_> = std::env::args().skip(1).collect();
    let with_sigrok = arguments.iter().any(|argument| argument == "--sigrok");
    arguments.retain(|argument| argument != "--sigrok");
    let mut arguments = arguments.into_iter();
    let path = arguments.next().ok_or("name a file")?;
    let path = Path::new(&path);
    if !path.exists() {
        let mebibytes = arguments.next().map_or(Ok(1024), |text| text.parse())?;
        make(path, mebibytes, path.to_string_lossy().contains("dense"))?;
    }
    let begun = Instant::now();
    let mut scope = Scope::open(path, Options::default())?;
    let mut words = 0;
    while scope.step(&mut |_, message, _| words += message.words)? {}
    let samples = scope.capture().end();
    let seconds = begun.elapsed().as_secs_f64();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default().trim();
    let rate = samples as f64 / seconds / 1e6;
    println!(
        "{samples} samples of a byte, {words} words: {seconds:.2} s, {rate:.0} MB/s, at most {peak} of memory"
    );
    if with_sigrok {
        let theirs = sigrok(path, words)?;
        let rate = samples as f64 / theirs / 1e6;
        println!(
            "sigrok-cli: {theirs:.2} s, {rate:.1} MB/s: {:.1} times as long",
            theirs / seconds
        );
    }
    Ok(())
}

/// How long sigrok-cli takes for the capture, in seconds. It must find as many words.
fn sigrok(path: &Path, words: u64) -> Result<f64, Box<dyn Error>> {
    let decoder = "spi:clk=SCK:mosi=MOSI:miso=MISO:cs=CS#";
    let mut command = Command::new("sigrok-cli");
    command.arg("-i").arg(path).args(["-P", decoder, "-A", "spi=mosi-data"]);
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let theirs = lines.map_while(Result::ok).count() as u64;
    let seconds = begun.elapsed().as_secs_f64();
    match child.wait()?.success() && theirs == words {
        true => Ok(seconds),
        false => Err(format!("sigrok-cli found {theirs} words of {words}").into()),
    }
}

/// Writes a capture of so many samples.
fn make(path: &Path, mebibytes: usize, dense: bool) -> Result<(), Box<dyn Error>> {
    let mut zip = Zip::new(BufWriter::new(File::create(path)?));
    zip.add("version", b"2", false);
    zip.add("metadata", wave::metadata(&NAMES, 1, "25 MHz").as_bytes(), true);
    let inactive = if dense { 12 } else { 25_000 };
    let shape = Shape { half: 2, lead: 4, gap: 2, lag: 4, inactive, ..Shape::USUAL };
    let mut value = 1_u32;
    for chunk in 0..mebibytes * (1 << 20) / CHUNK {
        let mut wave = Wave::new(0b1000);
        while wave.at + 30_000 < CHUNK as u64 {
            let words = [(); 4].map(|()| {
                value = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                value >> 24
            });
            wave.message(&shape, &words, &[0xff, words[2], words[1], words[0]]);
        }
        wave.set(SCK, false);
        zip.add(&format!("logic-1-{}", chunk + 1), &wave.samples(1, CHUNK as u64), true);
    }
    zip.finish();
    Ok(())
}
