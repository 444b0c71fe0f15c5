//! The frames that a node sends, set by the options of `cangen`: the far node of a simulated board,
//! or our own chip.
//!
//! *Read first*: the manual page of can-utils' `cangen`.
//!
//! # How it works
//! [`FarArgs`] are the options. [`FarArgs::settle`] checks them against the bus and fills in
//! defaults. [`Far::frames`] are then the frames, each with the time at which it is due, counted
//! from the first. A frame that the bus cannot carry yet waits; this does not delay the due times
//! of later frames. Random values come from a seed: equal options give equal frames.
//!
//! # What differs from cangen
//! 1. Fixed data without a length sets the length; cangen takes a random length.
//! 2. A sender waits for the bus for a second unless `-p` says otherwise; cangen fails at once.
//! 3. An impossible frame (an identifier of more than 11 bits without `-e`, 9 bytes of CAN FD) is
//!    refused; cangen cuts or rounds it.

use std::cell::RefCell;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use barewire_sim::model::can::{Feed, Pattern, Traffic};

use super::candump;
use super::frame::{CLASSIC_MAX, CanFrame, DATA_MAX, FD_LENGTHS_TEXT, Kind, LogLine, id_of};
use crate::shared::bus_name::{self, BusName};
use crate::shared::failure::Failure;
use crate::shared::files;
use crate::shared::session::SimCan;
use crate::shared::text::{hex, number};

/// The time from the chip joining the bus to the first frame.
pub(super) const FIRST_PS: u64 = 1_000_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_US: u64 = 1_000_000;
/// The longest gap accepted: a day.
const GAP_MAX_MS: f64 = 86_400_000.0;

/// The options.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct FarArgs {
    /// Time from one frame to the next in milliseconds, fractions too; 0: back to back
    /// [default: 200; can echo: 10]
    #[arg(short = 'g', long = "gap-ms", value_name = "MS", value_parser = gap_ps, help_heading = FRAMES)]
    gap_ps: Option<u64>,
    /// Frames back to back: -g 0
    #[arg(long, conflicts_with = "gap_ps", help_heading = FRAMES)]
    full_load: bool,
    /// How many frames; without, there is no end but Ctrl-C (can echo: 1000)
    #[arg(short = 'n', long = "frames", value_name = "COUNT", help_heading = FRAMES, value_parser = number::count::<NonZeroU64>)]
    pub(super) count: Option<NonZeroU64>,
    /// How long a sender waits in milliseconds while its queue is full or its frame does not get
    /// through, before it gives up [default: 1000]
    #[arg(short = 'p', long = "poll-ms", value_name = "MS", help_heading = FRAMES, value_parser = number::count::<u32>)]
    pub(super) poll_ms: Option<u32>,
    /// The identifier: hex, or r random, e random and even, o random and odd, i increment
    /// [default: r; can echo: 077]
    #[arg(short = 'I', long = "id", value_name = "ID", value_parser = id_mode, help_heading = FRAMES)]
    id: Option<IdMode>,
    /// The length in bytes, or r random, i increment [default: r, or the data's; can echo: 8]
    #[arg(short = 'L', long = "length", value_name = "LEN", value_parser = length_mode, help_heading = FRAMES)]
    length: Option<Pattern<u8>>,
    /// The data: hex, or r random, i a counter; hex shorter than the length is filled up with zeros
    /// [default: r]
    #[arg(short = 'D', long = "data", value_name = "DATA", value_parser = data_mode, help_heading = FRAMES)]
    data: Option<Pattern<Vec<u8>>>,
    /// Identifiers of 29 bits
    #[arg(short = 'e', long, help_heading = FRAMES)]
    extended: bool,
    /// Frames of CAN FD (with --fd)
    #[arg(short = 'f', long, help_heading = FRAMES)]
    fd_frames: bool,
    /// Frames of CAN FD whose data is at the higher bit rate (with --fd)
    #[arg(short = 'b', long = "brs", help_heading = FRAMES)]
    brs: bool,
    /// Remote frames
    #[arg(short = 'R', long, conflicts_with_all = ["fd_frames", "brs"], help_heading = FRAMES)]
    remote: bool,
    /// A mix of all those kinds that there are on the bus
    #[arg(short = 'm', long, conflicts_with_all = ["extended", "fd_frames", "brs", "remote"], help_heading = FRAMES)]
    mix: bool,
    /// What random values are made from [default: 1]
    #[arg(long, value_name = "N", help_heading = FRAMES, value_parser = number::count::<u64>)]
    seed: Option<u64>,
    /// Send the frames of a candump log instead, at its times
    #[arg(long, value_name = "FILE", help_heading = FRAMES, conflicts_with_all = [
        "gap_ps", "full_load", "count", "id", "length", "data", "extended", "fd_frames", "brs",
        "remote", "mix", "seed",
    ])]
    replay: Option<PathBuf>,
}

const FRAMES: &str = "Frames, as cangen's";

/// How identifiers go on from frame to frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IdMode {
    /// Identifiers by a pattern: fixed, counted up, or at random.
    Like(Pattern<u32>),
    /// At random, all even.
    Even,
    /// At random, all odd.
    Odd,
}

fn gap_ps(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(ms) if (0.0..=GAP_MAX_MS).contains(&ms) => Ok((ms * PS_PER_MS as f64).round() as u64),
        _ => Err(format!("milliseconds, as in 10 or 0.5, at most {GAP_MAX_MS} (a day)")),
    }
}

fn id_mode(text: &str) -> Result<IdMode, String> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text {
        "r" => Ok(IdMode::Like(Pattern::Random)),
        "i" => Ok(IdMode::Like(Pattern::Increment)),
        // As in cangen the letter is a mode: the identifier is written E.
        "e" => Ok(IdMode::Even),
        "o" => Ok(IdMode::Odd),
        _ if plain => match u32::from_str_radix(text, 16) {
            Ok(id) if id < 1 << 29 => Ok(IdMode::Like(Pattern::Fixed(id))),
            _ => Err("more than 29 bits".into()),
        },
        _ => Err("hex digits without 0x, or r, i, e or o".into()),
    }
}

fn length_mode(text: &str) -> Result<Pattern<u8>, String> {
    match text {
        "r" => Ok(Pattern::Random),
        "i" => Ok(Pattern::Increment),
        _ => match number::bytes(text) {
            Ok(length) if length <= DATA_MAX as u64 => Ok(Pattern::Fixed(length as u8)),
            _ => Err("0 to 64, or r or i".into()),
        },
    }
}

fn data_mode(text: &str) -> Result<Pattern<Vec<u8>>, String> {
    match text {
        "r" => Ok(Pattern::Random),
        "i" => Ok(Pattern::Increment),
        _ => match hex::parse(text) {
            Ok(data) if data.len() <= DATA_MAX => Ok(Pattern::Fixed(data)),
            Ok(_) => Err("more than 64 bytes".into()),
            Err(error) => Err(error),
        },
    }
}

/// Frames to come, each with its time from the first one's.
pub(super) type Frames = Box<dyn Iterator<Item = (u64, CanFrame)>>;

/// The frames that a node sends: the options, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Far {
    pub(super) gap_ps: u64,
    /// `None`: no end.
    pub(super) count: Option<NonZeroU64>,
    /// How long the sender waits before it gives up.
    pub(super) patience_ps: u64,
    pub(super) id: IdMode,
    /// `None`: the data's, or random.
    pub(super) length: Option<Pattern<u8>>,
    pub(super) data: Pattern<Vec<u8>>,
    pub(super) extended: bool,
    /// CAN FD, and whether with bit rate switch.
    pub(super) fd: Option<bool>,
    pub(super) remote: bool,
    /// All kinds; and whether CAN FD is among them.
    pub(super) mix: Option<bool>,
    pub(super) seed: u64,
    pub(super) replay: Option<Vec<(u64, CanFrame)>>,
}

impl Default for Far {
    /// cangen's.
    fn default() -> Self {
        Self {
            gap_ps: 200 * PS_PER_MS,
            count: None,
            patience_ps: 1_000 * PS_PER_MS,
            id: IdMode::Like(Pattern::Random),
            length: None,
            data: Pattern::Random,
            extended: false,
            fd: None,
            remote: false,
            mix: None,
            seed: 1,
            replay: None,
        }
    }
}

impl FarArgs {
    /// Refuses options of a sender where the bus has no simulated node.
    pub(super) fn check_bus(&self, bus: &str) -> Result<(), Failure> {
        let name = bus_name::parse(bus).map_err(Failure::Usage)?;
        match self.sending() {
            Some(option) if !matches!(name, BusName::Sim(_)) => Err(Failure::Usage(format!(
                "{option} is for the far node of a simulated board (sim:imx8mp); on {name} whoever is \
                 there sends"
            ))),
            _ => Ok(()),
        }
    }

    /// The log whose frames are sent.
    pub(super) fn replay(&self) -> Option<&Path> {
        self.replay.as_deref()
    }

    /// The first given option that only a sender uses. Buses without a simulated sender refuse it.
    /// -n does not count.
    pub(super) fn sending(&self) -> Option<&'static str> {
        let Self { gap_ps, full_load, poll_ms, id, length, data, .. } = self;
        let Self { extended, fd_frames, brs, remote, mix, seed, replay, .. } = self;
        let given = [
            (gap_ps.is_some(), "-g"),
            (*full_load, "--full-load"),
            (poll_ms.is_some(), "-p"),
            (id.is_some(), "-I"),
            (length.is_some(), "-L"),
            (data.is_some(), "-D"),
            (*extended, "-e"),
            (*fd_frames, "-f"),
            (*brs, "-b"),
            (*remote, "-R"),
            (*mix, "-m"),
            (seed.is_some(), "--seed"),
            (replay.is_some(), "--replay"),
        ];
        given.iter().find(|(given, _)| *given).map(|&(_, name)| name)
    }

    /// The options, checked for a bus with or without CAN FD; those not given are `default`'s.
    pub(super) fn settle(&self, fd_bus: bool, default: Far) -> Result<Far, Failure> {
        let refused = |what: String| Err(Failure::Usage(what));
        let fd = (self.fd_frames || self.brs).then_some(self.brs);
        if fd.is_some() && !fd_bus {
            return refused("frames of CAN FD (-f, -b) need a bus with it: --fd".into());
        }
        let replay = self.replay.as_ref().map(|path| read(path, fd_bus)).transpose()?;
        let far = Far {
            gap_ps: if self.full_load { 0 } else { self.gap_ps.unwrap_or(default.gap_ps) },
            count: self.count.or(default.count),
            patience_ps: self.poll_ms.map_or(default.patience_ps, |ms| u64::from(ms) * PS_PER_MS),
            id: self.id.clone().unwrap_or(default.id),
            length: self.length.or(default.length),
            data: self.data.clone().unwrap_or(default.data),
            extended: self.extended || default.extended,
            fd: fd.or(default.fd),
            remote: self.remote || default.remote,
            mix: if self.mix { Some(fd_bus) } else { default.mix },
            seed: self.seed.unwrap_or(default.seed),
            replay: replay.or(default.replay),
        };
        if let IdMode::Like(Pattern::Fixed(id)) = far.id
            && id > 0x7ff
            && !far.extended
            && far.mix.is_none()
        {
            return refused(format!("-I {id:X} has more than 11 bits: say -e"));
        }
        far.check_length()?;
        Ok(far)
    }
}

/// The frames of a log, all of which can be sent.
fn read(path: &Path, fd_bus: bool) -> Result<Vec<(u64, CanFrame)>, Failure> {
    let shown = path.display();
    let text = files::read_text(path)?;
    let lines = candump::read_log(&text).map_err(|e| Failure::Failed(format!("{shown}: {e}")))?;
    let first_us = lines.iter().map(|(_, line)| line.at_us).min().unwrap_or(0);
    let mut frames = Vec::with_capacity(lines.len());
    for (number, line) in lines {
        let refused = |what| Err(Failure::Failed(format!("{shown}: line {number}: {what}")));
        let LogLine::Frame(frame) = line.what else {
            return refused("an error is no frame that could be sent");
        };
        if frame.is_fd() && !fd_bus {
            return refused("a frame of CAN FD needs a bus with it: --fd");
        }
        if frame.to_chip().is_none() {
            return refused("a classic DLC above 8 is sent by nobody here");
        }
        frames.push(((line.at_us - first_us).saturating_mul(PS_PER_US), frame));
    }
    if frames.is_empty() {
        return Err(Failure::Failed(format!("{shown}: no frame in it")));
    }
    Ok(frames)
}

impl Far {
    fn check_length(&self) -> Result<(), Failure> {
        let refused = |what: String| Err(Failure::Usage(what));
        let data_len = match &self.data {
            Pattern::Fixed(data) => data.len(),
            _ => 0,
        };
        let len = match self.length {
            Some(Pattern::Fixed(len)) => len.into(),
            None => data_len,
            Some(_) => 0,
        };
        let (max, kind) = match self.fd {
            Some(_) => (DATA_MAX, Kind::Fd { brs: false, esi: false }),
            None => (CLASSIC_MAX, Kind::Data),
        };
        if len > max {
            return refused(format!(
                "{len} bytes: a classic frame has at most 8 (CAN FD: --fd -f)"
            ));
        }
        // Any valid identifier will do, because the allowed lengths do not depend on it.
        let id = id_of(0, false).expect("11 bits");
        if CanFrame::new(id, kind, &vec![0; len]).is_none() {
            return refused(format!("{len} bytes: a frame of CAN FD has {FD_LENGTHS_TEXT}"));
        }
        if data_len > len && matches!(self.length, Some(Pattern::Fixed(_))) {
            return refused(format!("-D has {data_len} bytes and -L {len}"));
        }
        Ok(())
    }

    /// Puts it on a simulated bus, where it sends from a millisecond after `now_ps` on.
    pub(super) fn attach(&self, can: &SimCan, now_ps: u64) -> Rc<RefCell<Feed>> {
        let start_ps = now_ps + FIRST_PS;
        let frames = self.frames();
        let frames = frames.map(move |(at, frame)| (start_ps.saturating_add(at), frame.to_sim()));
        let feed = Feed::new("far", frames).with_patience(self.patience_ps);
        let feed = Rc::new(RefCell::new(feed));
        can.bus.attach(feed.clone());
        feed
    }

    /// A node that sends nothing, otherwise with these settings.
    pub(super) fn silent(self) -> Self {
        Self { replay: Some(Vec::new()), ..self }
    }

    /// Whether all frames have one identifier, and an identifier one less exists.
    pub(super) fn leaves_room_below(&self) -> bool {
        matches!(self.id, IdMode::Like(Pattern::Fixed(id)) if id > 0)
    }

    /// The time from one frame to the next in milliseconds; a log has its own.
    pub(super) fn gap_ms(&self) -> Option<f64> {
        self.replay.is_none().then_some(self.gap_ps as f64 / PS_PER_MS as f64)
    }

    /// The longest time from one frame to the next.
    pub(super) fn longest_gap_ps(&self) -> u64 {
        let Some(frames) = &self.replay else { return self.gap_ps };
        frames.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).max().unwrap_or(0)
    }

    /// How many frames there will be, if there is an end.
    pub(super) fn total(&self) -> Option<u64> {
        match &self.replay {
            Some(frames) => Some(frames.len() as u64),
            None => self.count.map(NonZeroU64::get),
        }
    }

    /// The frames.
    pub(super) fn frames(&self) -> Frames {
        if let Some(frames) = &self.replay {
            return Box::new(frames.clone().into_iter());
        }
        Box::new(self.traffic().frames().map(|(at, frame)| (at, CanFrame::from_sim(&frame))))
    }

    /// These settings as the simulator's traffic generator takes them.
    fn traffic(&self) -> Traffic {
        let (id, id_bit) = match self.id {
            IdMode::Like(id) => (id, None),
            IdMode::Even => (Pattern::Random, Some(false)),
            IdMode::Odd => (Pattern::Random, Some(true)),
        };
        let data_len = match &self.data {
            Pattern::Fixed(data) => Pattern::Fixed(data.len() as u8),
            Pattern::Random | Pattern::Increment => Pattern::Random,
        };
        Traffic {
            gap_ps: self.gap_ps,
            count: self.count,
            start_ps: 0,
            id,
            id_bit,
            extended: self.extended,
            length: self.length.unwrap_or(data_len),
            data: match &self.data {
                Pattern::Fixed(data) => {
                    let mut bytes = [0; DATA_MAX];
                    bytes[..data.len()].copy_from_slice(data);
                    Pattern::Fixed(bytes)
                }
                Pattern::Random => Pattern::Random,
                Pattern::Increment => Pattern::Increment,
            },
            fd: self.fd,
            remote: self.remote,
            mix: self.mix,
            seed: self.seed,
        }
    }
}

#[cfg(test)]
mod tests;
