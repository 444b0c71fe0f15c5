//! sigrok's session files: a zip archive of `metadata` and of samples in chunks.
//!
//! `metadata` is an INI file. `capturefile=logic-1` names the samples: the member of that name (version 1), or the members
//! `logic-1-1`, `logic-1-2` and so on (version 2), `unitsize` bytes for each sample, the lowest first. `probeN=NAME` names
//! bit N − 1; a bit without a name was not captured.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use super::samples::Samples;
use super::zip::{self, Member, Open};
use super::{CHANNELS_MAX, Channel, Edge, Format, Opened, Source, Tick};
use crate::error::io;

/// Samples are scanned in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;
const METADATA_MAX: u64 = 1 << 20;

/// What `metadata` says of the first device with digital samples.
#[derive(Debug, Default, PartialEq)]
struct Metadata {
    capturefile: String,
    unit: Option<usize>,
    rate: Option<u64>,
    channels: Vec<Channel>,
    /// Names of bits beyond the 64th.
    beyond: usize,
}

struct Sigrok {
    file: File,
    chunks: VecDeque<Member>,
    open: Option<Open>,
    samples: Samples,
    piece: Vec<u8>,
    /// What of `piece` is the beginning of a sample.
    rest: usize,
    /// Of chunks that were read whole.
    read_bytes: u64,
    notes: Vec<String>,
}

pub(super) fn open(path: &Path, samplerate: Option<u64>) -> Result<Opened, String> {
    let mut file = File::open(path).map_err(io)?;
    let members = zip::list(&mut file)?;
    let find = |name: &str| members.iter().find(|member| member.name == name);
    let Some(metadata) = find("metadata") else {
        let hint = if find("meta.json").is_some() {
            "a project of Saleae's Logic 2; export it: File, Export Data, CSV or binary"
        } else {
            "a zip archive without sigrok's member `metadata`"
        };
        return Err(hint.into());
    };
    if metadata.bytes > METADATA_MAX {
        return Err(format!("its metadata are {} bytes", metadata.bytes));
    }
    let (mut text, mut open) = (vec![0; metadata.bytes as usize], Open::new(&file, metadata)?);
    let mut at = 0;
    while at < text.len() {
        at += open.read(&mut text[at..])?;
    }
    let found = parse(&String::from_utf8_lossy(&text))?;
    let rate = samplerate.or(found.rate).filter(|&rate| rate > 0);
    let rate =
        rate.ok_or("its metadata have no samplerate, or one of 0 Hz: give it with --samplerate")?;
    let unit = found.unit.unwrap_or(1);
    if !(1..=8).contains(&unit) {
        return Err(format!("unitsize={unit}: samples of 1 to 8 bytes are read"));
    }
    let chunks = chunks(&members, &found.capturefile)?;
    let mask = found.channels.iter().fold(0, |mask, channel| mask | channel.mask());
    let width = if unit == 8 { u64::MAX } else { (1 << (8 * unit)) - 1 };
    if mask & !width != 0 {
        return Err(format!(
            "its metadata name a channel that samples of unitsize={unit} do not have"
        ));
    }
    let mut notes = Vec::new();
    if found.beyond > 0 {
        notes.push(format!("{} channels beyond the first 64 are left out", found.beyond));
    }
    let samples = Samples { unit, mask, at: 0, last: None };
    let source = Sigrok {
        file,
        chunks,
        open: None,
        samples,
        piece: vec![0; PIECE_BYTES],
        rest: 0,
        read_bytes: 0,
        notes,
    };
    Ok(Opened {
        format: Format::Sigrok,
        channels: found.channels,
        tick: Tick::of_rate(rate),
        source: Box::new(source),
    })
}

fn parse(text: &str) -> Result<Metadata, String> {
    let mut found = Metadata::default();
    for line in text.lines() {
        if line.trim_start().starts_with("[device") && !found.capturefile.is_empty() {
            break;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        match key {
            "capturefile" => found.capturefile = value.into(),
            "unitsize" => {
                found.unit =
                    Some(value.parse().map_err(|_| format!("unitsize={value} is no number"))?);
            }
            "samplerate" => {
                let rate = super::text::hertz(value);
                found.rate = Some(rate.ok_or_else(|| {
                    format!("samplerate={value} is no frequency: give it with --samplerate")
                })?);
            }
            _ => {
                let number: Option<usize> =
                    key.strip_prefix("probe").and_then(|number| number.parse().ok());
                match number.and_then(|number| number.checked_sub(1)) {
                    Some(bit) if bit < CHANNELS_MAX => {
                        found.channels.push(Channel { name: value.into(), bit: bit as u8 });
                    }
                    Some(_) => found.beyond += 1,
                    None => {}
                }
            }
        }
    }
    if found.capturefile.is_empty() {
        return Err("its metadata name no capturefile: it has no digital samples".into());
    }
    if found.channels.is_empty() {
        return Err("its metadata name no channels (probe1=…)".into());
    }
    Ok(found)
}

/// The members with samples, in their order.
fn chunks(members: &[Member], name: &str) -> Result<VecDeque<Member>, String> {
    if let Some(whole) = members.iter().find(|member| member.name == name) {
        return Ok(VecDeque::from([whole.clone()]));
    }
    let number = |member: &Member| -> Option<u64> {
        member.name.strip_prefix(name)?.strip_prefix('-')?.parse().ok()
    };
    let mut chunks: Vec<(u64, &Member)> =
        members.iter().filter_map(|member| Some((number(member)?, member))).collect();
    chunks.sort_by_key(|&(number, _)| number);
    if chunks.is_empty() {
        return Err(format!(
            "its metadata name the samples {name}, and the archive has no such member"
        ));
    }
    let missing = (1..).zip(&chunks).find(|&(expected, &(number, _))| number != expected);
    if let Some((expected, _)) = missing {
        return Err(format!("the samples {name}-{expected} are missing, or there twice"));
    }
    Ok(chunks.into_iter().map(|(_, member)| member.clone()).collect())
}

impl Source for Sigrok {
    fn fill(&mut self, edges: &mut Vec<Edge>) -> Result<bool, String> {
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let Some(chunk) = self.chunks.pop_front() else {
                    return match self.rest {
                        _ if self.samples.at == 0 => Err("it has no samples".into()),
                        0 => Ok(false),
                        rest => Err(format!(
                            "its samples end {rest} bytes into one of {} bytes",
                            self.samples.unit
                        )),
                    };
                };
                self.open.insert(Open::new(&self.file, &chunk)?)
            }
        };
        let len = open.read(&mut self.piece[self.rest..])?;
        if len == 0 {
            self.read_bytes += open.read_bytes();
            self.open = None;
        }
        let have = self.rest + len;
        let whole = have - have % self.samples.unit;
        self.samples.scan(&self.piece[..whole], edges);
        self.piece.copy_within(whole..have, 0);
        self.rest = have - whole;
        Ok(true)
    }

    fn end(&self) -> u64 {
        self.samples.at
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes + self.open.as_ref().map_or(0, Open::read_bytes)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_read_in_both_spellings() {
        let text = "[global]\nsigrok version=0.5.0\n\n[device 1]\ncapturefile = logic-1\ntotal probes=16\nsamplerate=12.5 MHz\n\
                    probe1=CS#\nprobe12=D11\nunitsize=2\n[device 2]\ncapturefile=logic-2\nunitsize=4\n";
        let found = parse(text).expect("is right");
        let channel = |name: &str, bit| Channel { name: name.into(), bit };
        assert_eq!(found.channels, [channel("CS#", 0), channel("D11", 11)]);
        assert_eq!((found.unit, found.rate), (Some(2), Some(12_500_000)));
        assert_eq!(found.capturefile, "logic-1");
        for (wrong, said) in [
            ("samplerate=fast", "samplerate=fast"),
            ("unitsize=", "unitsize="),
            ("", "no capturefile"),
            ("capturefile=logic-1", "no channels"),
        ] {
            assert!(parse(wrong).expect_err(wrong).contains(said));
        }
    }
}
