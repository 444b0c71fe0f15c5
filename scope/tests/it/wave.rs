//! Captures made for tests: a wire that is drawn tick by tick, and files of it in every format.

use std::fmt::Write as _;
use std::io::Write as _;

use barewire_scope::capture::Edge;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// Bits of the drawn wire.
pub(crate) const SCK: u8 = 0;
pub(crate) const MOSI: u8 = 1;
pub(crate) const MISO: u8 = 2;
pub(crate) const CS: u8 = 3;

/// A wire as it is drawn: levels from a time on.
#[derive(Clone, Debug)]
pub(crate) struct Wave {
    pub(crate) at: u64,
    pub(crate) levels: u64,
    pub(crate) edges: Vec<Edge>,
}

/// How a message is drawn, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) mode: u8,
    pub(crate) bits: u8,
    pub(crate) half: u64,
    pub(crate) lead: u64,
    pub(crate) gap: u64,
    pub(crate) lag: u64,
    pub(crate) inactive: u64,
    pub(crate) cs: u8,
    pub(crate) cs_high: bool,
}

impl Shape {
    pub(crate) const USUAL: Self = Self {
        mode: 0,
        bits: 8,
        half: 4,
        lead: 20,
        gap: 11,
        lag: 15,
        inactive: 300,
        cs: CS,
        cs_high: false,
    };
}

impl Wave {
    /// Idle wires with that SCK and those levels.
    pub(crate) fn new(levels: u64) -> Self {
        Self { at: 0, levels, edges: vec![Edge { at: 0, levels }] }
    }

    pub(crate) fn set(&mut self, bit: u8, high: bool) {
        let levels = self.levels & !(1 << bit) | u64::from(high) << bit;
        if levels != self.levels {
            self.levels = levels;
            match self.edges.last_mut().filter(|last| last.at == self.at) {
                Some(last) => last.levels = levels,
                None => self.edges.push(Edge { at: self.at, levels }),
            }
        }
    }

    /// Draws a message. Returns the ticks at which CS becomes active and inactive.
    pub(crate) fn message(&mut self, shape: &Shape, mosi: &[u32], miso: &[u32]) -> (u64, u64) {
        let (cpol, cpha) = (shape.mode & 2 != 0, shape.mode & 1 != 0);
        self.at += shape.inactive;
        self.set(shape.cs, shape.cs_high);
        let begin = self.at;
        let words: Vec<_> = mosi.iter().zip(miso).collect();
        for (index, (mosi, miso)) in words.iter().enumerate() {
            let pause = if index == 0 { shape.lead } else { shape.gap };
            for bit in (0..shape.bits).rev() {
                let first = bit + 1 == shape.bits;
                let data = |wave: &mut Self| {
                    wave.set(MOSI, *mosi >> bit & 1 == 1);
                    wave.set(MISO, *miso >> bit & 1 == 1);
                };
                let wait = if first { pause } else { shape.half };
                if !cpha && !first {
                    data(self);
                } else if !cpha {
                    // Before the first clock, half a clock ahead where there is room.
                    self.at += wait - wait.min(shape.half);
                    data(self);
                    self.at -= wait - wait.min(shape.half);
                }
                self.at += wait;
                self.set(SCK, !cpol);
                if cpha {
                    data(self);
                }
                self.at += shape.half;
                self.set(SCK, cpol);
            }
        }
        self.at += shape.lag;
        self.set(shape.cs, !shape.cs_high);
        (begin, self.at)
    }

    /// The levels of each tick, up to `end`, in `unit` bytes.
    pub(crate) fn samples(&self, unit: usize, end: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (index, edge) in self.edges.iter().enumerate() {
            let until = self.edges.get(index + 1).map_or(end, |next| next.at);
            let sample = &edge.levels.to_le_bytes()[..unit];
            (edge.at..until).for_each(|_| bytes.extend_from_slice(sample));
        }
        bytes
    }

    /// A VCD of the wire, a tick a nanosecond.
    pub(crate) fn vcd(&self, names: &[&str], end: u64) -> String {
        let mut text = String::from("$timescale 1 ns $end\n$scope module top $end\n");
        let code = |bit: usize| char::from(b'!' + bit as u8);
        for (bit, name) in names.iter().enumerate() {
            let _ = writeln!(text, "$var wire 1 {} {name} $end", code(bit));
        }
        text += "$upscope $end\n$enddefinitions $end\n";
        let mut last = !self.edges[0].levels;
        for edge in &self.edges {
            let _ = write!(text, "#{}", edge.at);
            for bit in (0..names.len()).filter(|bit| (last ^ edge.levels) >> bit & 1 == 1) {
                let _ = write!(text, " {}{}", edge.levels >> bit & 1, code(bit));
            }
            text.push('\n');
            last = edge.levels;
        }
        text + &format!("#{end}\n")
    }

    /// Saleae's CSV of the wire, a tick a nanosecond, begun `begin` nanoseconds into their time.
    pub(crate) fn saleae_csv(&self, names: &[&str], begin: i64) -> String {
        let mut text = format!("Time [s],{}\n", names.join(","));
        for edge in &self.edges {
            let ns = begin + edge.at as i64;
            let sign = if ns < 0 { "-" } else { "" };
            let _ =
                write!(text, "{sign}{}.{:09}", ns.abs() / 1_000_000_000, ns.abs() % 1_000_000_000);
            (0..names.len()).for_each(|bit| text += &format!(",{}", edge.levels >> bit & 1));
            text.push('\n');
        }
        text
    }

    /// Saleae's binary file of one channel, a tick a nanosecond.
    pub(crate) fn saleae_binary(&self, bit: u8, version: i32, end: u64) -> Vec<u8> {
        let seconds = |at: u64| (at as f64 / 1e9).to_le_bytes();
        let mut changes = Vec::new();
        for pair in
            self.edges.windows(2).filter(|pair| (pair[0].levels ^ pair[1].levels) >> bit & 1 == 1)
        {
            changes.push(pair[1].at);
        }
        let mut bytes = b"<SALEAE>".to_vec();
        bytes.extend(version.to_le_bytes().into_iter().chain(0_i32.to_le_bytes()));
        if version == 1 {
            bytes.extend(1_u64.to_le_bytes());
        }
        bytes.extend(((self.edges[0].levels >> bit & 1) as u32).to_le_bytes());
        if version == 1 {
            bytes.extend(500e6_f64.to_le_bytes());
        }
        bytes.extend(seconds(0).into_iter().chain(seconds(end)));
        bytes.extend((changes.len() as u64).to_le_bytes());
        changes.iter().for_each(|&at| bytes.extend(seconds(at)));
        bytes
    }
}

/// A zip archive that is being written.
pub(crate) struct Zip<W> {
    out: W,
    at: u64,
    directory: Vec<u8>,
    count: u16,
}

impl<W: std::io::Write> Zip<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, at: 0, directory: Vec::new(), count: 0 }
    }

    /// Adds a member, deflated or stored.
    pub(crate) fn add(&mut self, name: &str, content: &[u8], deflated: bool) {
        let mut crc = Crc::new();
        crc.update(content);
        let packed = if deflated {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(content).expect("memory takes it");
            encoder.finish().expect("memory takes it")
        } else {
            content.to_vec()
        };
        let mut facts = vec![20, 0, 0, 0, if deflated { 8 } else { 0 }, 0, 0, 0, 0, 0];
        facts.extend(crc.sum().to_le_bytes());
        facts.extend(
            (packed.len() as u32)
                .to_le_bytes()
                .into_iter()
                .chain((content.len() as u32).to_le_bytes()),
        );
        facts.extend((name.len() as u16).to_le_bytes().into_iter().chain([0, 0]));
        let header = [&b"PK\x03\x04"[..], &facts, name.as_bytes()].concat();
        let entry = [
            b"PK\x01\x02",
            &[20, 0][..],
            &facts,
            &[0; 10],
            &(self.at as u32).to_le_bytes(),
            name.as_bytes(),
        ];
        self.directory.extend(entry.concat());
        self.count += 1;
        self.at += (header.len() + packed.len()) as u64;
        self.out
            .write_all(&header)
            .and_then(|()| self.out.write_all(&packed))
            .expect("the file takes it");
    }

    /// Writes the directory.
    pub(crate) fn finish(mut self) -> W {
        let (count, len) = (self.count.to_le_bytes(), self.directory.len() as u32);
        let at = (self.at as u32).to_le_bytes();
        let end =
            [&b"PK\x05\x06\0\0\0\0"[..], &count, &count, &len.to_le_bytes(), &at, &[0, 0]].concat();
        self.out
            .write_all(&self.directory)
            .and_then(|()| self.out.write_all(&end))
            .expect("the file takes it");
        self.out
    }
}

/// sigrok's metadata of channels `names`, one a bit.
pub(crate) fn metadata(names: &[&str], unit: usize, samplerate: &str) -> String {
    let mut text = format!(
        "[global]\nsigrok version=0.5.2\n\n[device 1]\ncapturefile=logic-1\ntotal probes={}\n",
        names.len()
    );
    let _ = writeln!(text, "samplerate={samplerate}\ntotal analog=0");
    (1..).zip(names).for_each(|(number, name)| text += &format!("probe{number}={name}\n"));
    text + &format!("unitsize={unit}\n")
}

/// A session of sigrok with `samples` in chunks of `chunk` bytes, every other one stored.
pub(crate) fn sigrok(
    names: &[&str],
    unit: usize,
    samplerate: &str,
    samples: &[u8],
    chunk: usize,
) -> Vec<u8> {
    let mut zip = Zip::new(Vec::new());
    zip.add("version", b"2", false);
    zip.add("metadata", metadata(names, unit, samplerate).as_bytes(), true);
    for (index, chunk) in samples.chunks(chunk).enumerate() {
        zip.add(&format!("logic-1-{}", index + 1), chunk, index % 2 == 0);
    }
    zip.finish()
}
