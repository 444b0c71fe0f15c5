//! Captures: files of logic analyzers and simulators, read as changes of levels, in constant memory.
//!
//! # Read first
//! sigrok's wiki, *File format:Sigrok/v2*; IEEE 1364, clause 18 (value change dump); Saleae's *Binary Export Format - Version
//! 0* and *Binary and CSV Export Formats - Logic 2 - 2025 Update*.
//!
//! # How it works
//! [`Capture::open`] recognises a format by the file's first bytes, not by its name. Each format is a source, which
//! turns a piece of its file into [`Edge`]s. A time is a count of ticks: a sample, a VCD's unit, or a picosecond.
//!
//! # Not supported
//! Analog channels, more than 64 channels, and projects of Logic 2 (`.sal`), whose format is not published: export them.

mod saleae_binary;
mod saleae_csv;
mod samples;
mod sigrok;
mod text;
mod vcd;
mod zip;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::error::{ScopeError, io};

/// The most channels of a capture: a bit each in [`Edge::levels`].
pub(crate) const CHANNELS_MAX: usize = 64;

/// A time, and the levels from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// In ticks from the capture's beginning.
    pub at: u64,
    /// A bit for each channel.
    pub levels: u64,
}

/// How long a tick is: `seconds.0 / seconds.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    seconds: (u64, u64),
}

impl Tick {
    /// A nanosecond.
    pub const NS: Self = Self { seconds: (1, 1_000_000_000) };
    pub(crate) const PS: Self = Self { seconds: (1, 1_000_000_000_000) };

    /// The time from one sample to the next.
    pub(crate) fn of_rate(hz: u64) -> Self {
        Self { seconds: (1, hz) }
    }

    /// `ticks` in nanoseconds, rounded to picoseconds.
    #[must_use]
    pub fn ns(self, ticks: u64) -> f64 {
        let (over, under) = (u128::from(self.seconds.0), u128::from(self.seconds.1));
        let ps = (u128::from(ticks) * over * 1_000_000_000_000 + under / 2) / under;
        ps as f64 / 1_000.0
    }

    /// `ns` nanoseconds in whole ticks, rounded up.
    #[must_use]
    pub fn at_least(self, ns: f64) -> u64 {
        (ns * self.seconds.1 as f64 / self.seconds.0 as f64 / 1e9 - 1e-6).ceil().max(0.0) as u64
    }

    /// The frequency of something that takes `ticks / count` on average, in hertz.
    #[must_use]
    pub fn hz(self, ticks: u64, count: u64) -> Option<u64> {
        let under = u128::from(ticks) * u128::from(self.seconds.0);
        let over = u128::from(count) * u128::from(self.seconds.1);
        u64::try_from((over + under / 2).checked_div(under)?).ok()
    }
}

/// A channel of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its name in the file.
    pub name: String,
    /// Its bit in [`Edge::levels`].
    pub bit: u8,
}

/// The name of the channel with that bit.
#[must_use]
pub fn name_of(channels: &[Channel], bit: u8) -> Option<&str> {
    channels.iter().find(|channel| channel.bit == bit).map(|channel| channel.name.as_str())
}

impl Channel {
    pub(crate) fn mask(&self) -> u64 {
        1 << self.bit
    }
}

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// sigrok's session file, `.sr`.
    Sigrok,
    /// A value change dump.
    Vcd,
    /// The digital CSV of Saleae's Logic 2.
    SaleaeCsv,
    /// The digital binary export of Saleae's Logic 2, a file for each channel.
    SaleaeBinary,
}

impl Format {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sigrok => "sigrok",
            Self::Vcd => "vcd",
            Self::SaleaeCsv => "saleae-csv",
            Self::SaleaeBinary => "saleae-binary",
        }
    }
}

/// A file that is read piece by piece. Errors are texts without the file's name.
pub(crate) trait Source: Send {
    /// Appends the changes of the next piece, at least the capture's first levels at its beginning. Returns whether there is
    /// more.
    fn fill(&mut self, edges: &mut Vec<Edge>) -> Result<bool, String>;

    /// The tick at which what was read so far ends.
    fn end(&self) -> u64;

    /// How much of the file was read, in bytes.
    fn read_bytes(&self) -> u64;

    /// What the reader of a result should know of the file.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a reader of a format found at the beginning of a file.
pub(crate) struct Opened {
    pub(crate) format: Format,
    pub(crate) channels: Vec<Channel>,
    pub(crate) tick: Tick,
    pub(crate) source: Box<dyn Source>,
}

/// An open capture.
pub struct Capture {
    path: PathBuf,
    file_bytes: u64,
    opened: Opened,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Capture {
    /// Opens the file at `path`: of Saleae's binary export one of its files, or their directory. `samplerate` in hertz is
    /// used in place of what a sigrok file says.
    ///
    /// # Errors
    /// The file cannot be read, is of none of the formats, or its beginning is not as the format demands.
    pub fn open(path: &Path, samplerate: Option<u64>) -> Result<Self, ScopeError> {
        let wrong = |what: String| ScopeError::new(path, what);
        let meta = std::fs::metadata(path).map_err(|error| wrong(io(error)))?;
        if meta.is_dir() {
            let (opened, file_bytes) = saleae_binary::open_dir(path).map_err(wrong)?;
            return Ok(Self { path: path.into(), file_bytes, opened });
        }
        let mut file = File::open(path).map_err(|error| wrong(io(error)))?;
        let mut head = Vec::new();
        file.by_ref().take(512).read_to_end(&mut head).map_err(|error| wrong(io(error)))?;
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head).trim_ascii_start();
        let mut file_bytes = meta.len();
        let opened = if head.is_empty() {
            Err("it is empty".into())
        } else if head.starts_with(b"PK") {
            sigrok::open(path, samplerate)
        } else if head.starts_with(b"<SALEAE>") {
            saleae_binary::open_beside(path).map(|(opened, bytes)| {
                file_bytes = bytes;
                opened
            })
        } else if text.starts_with(b"$") || text.starts_with(b"#0") {
            vcd::open(path)
        } else if text.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"time"))
            || text.starts_with(b"\"Time")
        {
            saleae_csv::open(path)
        } else {
            Err(unknown(&head))
        };
        let opened = opened.map_err(wrong)?;
        if samplerate.is_some() && opened.format != Format::Sigrok {
            return Err(wrong(
                "its times are in the file: --samplerate is for sigrok's files".into(),
            ));
        }
        Ok(Self { path: path.into(), file_bytes, opened })
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.opened.format
    }

    /// The channels.
    #[must_use]
    pub fn channels(&self) -> &[Channel] {
        &self.opened.channels
    }

    /// The unit of its times.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.opened.tick
    }

    /// Its length in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// How much of that was read.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.opened.source.read_bytes()
    }

    /// The tick at which what was read so far ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.opened.source.end()
    }

    /// What is to be known of the file, as far as it was read.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.opened.source.notes()
    }

    /// Appends the changes of the file's next piece, in their order. Returns whether there is more.
    ///
    /// # Errors
    /// The file cannot be read on, or is not as its format demands.
    pub fn fill(&mut self, edges: &mut Vec<Edge>) -> Result<bool, ScopeError> {
        self.opened.source.fill(edges).map_err(|what| ScopeError::new(&self.path, what))
    }

    pub(crate) fn error(&self, what: impl std::fmt::Display) -> ScopeError {
        ScopeError::new(&self.path, what)
    }
}

/// The error of a file of no known format.
fn unknown(head: &[u8]) -> String {
    let begin: String = head
        .iter()
        .take(24)
        .flat_map(|&byte| std::ascii::escape_default(byte))
        .map(char::from)
        .collect();
    let hint = if head.starts_with(b"# tracer:") || head.starts_with(b"cpus=") {
        "; it seems to be a kernel's trace, and is no capture"
    } else {
        ", nor a kernel's trace"
    };
    format!(
        "no capture of sigrok (.sr), VCD, or Saleae's CSV or binary export: it begins with \"{begin}\"{hint}"
    )
}
