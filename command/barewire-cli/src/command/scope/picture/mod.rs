//! `-o`: a page or a trace of the whole capture, or one message as an SVG.
//!
//! The capture is read twice: for its messages, and for the changes of levels that are drawn.

mod charts;
mod page;
mod wave;

use std::path::Path;

use barewire_scope::capture::{Channel, Tick, name_of};
use barewire_scope::chip::Told;
use barewire_scope::decode::{Message, Wires};
use barewire_scope::picture::perfetto::Trace;
use barewire_scope::picture::{self, Gathered, Kept, Wave, Waves};
use barewire_scope::{Capture, Kind, Options, Summary};

use super::failed;
use crate::shared::failure::Failure;
use crate::shared::files::{self, NamedFile, Output};
use crate::shared::interrupt;
use crate::shared::output::note;
use crate::shared::progress::{BYTES, Progress};
use crate::shared::text::figure;
use page::page;
pub(super) use wave::svg;

/// Changes that are kept of a message: those of 256 bytes and more.
pub(super) const EDGES_MAX: usize = 6_000;
/// Changes of all wires that a trace has.
const TRACE_EDGES_MAX: usize = 1_000_000;

/// What is drawn of.
pub(super) struct Subject<'a> {
    pub(super) file: String,
    pub(super) tick: Tick,
    pub(super) channels: &'a [Channel],
    pub(super) wires: &'a Wires,
}

impl Subject<'_> {
    /// The chip select's name, with a space behind it.
    fn select(&self, select: Option<usize>) -> String {
        let found = select.and_then(|place| name_of(self.channels, self.wires.selects[place].bit));
        found.map(|name| format!("{name} ")).unwrap_or_default()
    }

    /// What a message is called.
    pub(super) fn name(&self, kept: &Kept, kinds: &[Kind]) -> String {
        let message = &kept.message;
        let first = message.mosi.first().or(message.miso.first()).copied();
        let length = (message.words, message.bits_over);
        let bits = self.wires.word_bits;
        let kind = picture::kind_of(kinds, message.select, &kept.told.kind, length, first, bits);
        let kind = kind.map_or_else(|| kept.told.kind.clone(), |kind| kinds[kind].name.clone());
        let name = format!("{}{kind} {}", self.select(message.select), kept.told.detail);
        name.trim_end().to_owned()
    }
}

/// Begins an output: an SVG of one message, or a picture of all.
pub(super) fn begin(out: &Path, file: &Path, json: bool, is_one: bool) -> Result<Output, Failure> {
    let named = NamedFile { by: "--out", path: out };
    let extension = out.extension().map(|extension| extension.to_ascii_lowercase());
    let usage = |text: &str| Err(Failure::Usage(format!("--out {}: {text}", out.display())));
    match (extension.as_ref().and_then(|extension| extension.to_str()), is_one) {
        (Some("svg"), true) | (Some("html" | "pftrace"), false) => {}
        (Some("svg"), false) => return usage("an SVG has one message: name it with --draw N"),
        (Some("html" | "pftrace"), true) => {
            return usage("it has more than one message: leave --draw out, or name a .svg");
        }
        _ => {
            return usage(
                "name a .html for a page, a .pftrace for Perfetto, or with --draw N a .svg",
            );
        }
    }
    files::check(&[named], &[NamedFile { by: "FILE", path: file }])?;
    Output::create(named, json)
}

/// Writes an output, and says so.
pub(super) fn end(out: Output, path: &Path, text: &str) -> Result<(), Failure> {
    let to_stdout = out.is_stdout();
    out.write(text)?;
    if !to_stdout {
        note!("written: {}", path.display());
    }
    Ok(())
}

/// The changes around messages.
pub(super) fn waves(
    path: &Path,
    options: &Options,
    wires: &Wires,
    kept: &[Kept],
    edges_max: usize,
    silent: bool,
) -> Result<Vec<Wave>, Failure> {
    let messages: Vec<_> = kept.iter().map(|kept| kept.message.clone()).collect();
    let mut waves = Waves::open(path, options, wires, &messages, edges_max).map_err(failed)?;
    let progress = Progress::with_template("drawing", waves.capture().file_bytes(), silent, BYTES);
    while waves.step().map_err(failed)? {
        progress.set(waves.capture().read_bytes());
        interrupt::check()?;
    }
    Ok(waves.finish())
}

/// All that a page has.
pub(super) struct Content<'a> {
    pub(super) subject: Subject<'a>,
    pub(super) summary: &'a Summary,
    pub(super) gathered: &'a Gathered,
    pub(super) kept: &'a [Kept],
    pub(super) waves: &'a [Wave],
    pub(super) table: &'a str,
}

/// A picture of a whole capture in the making.
pub(super) struct Whole {
    out: Output,
    what: What,
}

enum What {
    Page(Box<Gathered>),
    Trace(Box<Trace>),
}

impl Whole {
    pub(super) fn new(out: Output, path: &Path, file: &Path, capture: &Capture) -> Self {
        let is_page =
            path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("html"));
        let file = file.display().to_string();
        let what = match is_page {
            true => What::Page(Box::new(Gathered::new())),
            false => What::Trace(Box::new(Trace::new(&file, capture.tick(), capture.channels()))),
        };
        Self { out, what }
    }

    pub(super) fn add(&mut self, wires: &Wires, message: &Message, told: &Told) {
        match &mut self.what {
            What::Page(gathered) => gathered.add(message, told),
            What::Trace(trace) => trace.message(wires, message, told),
        }
    }

    /// Writes what is done.
    pub(super) fn write(&mut self) -> Result<(), Failure> {
        match &mut self.what {
            What::Page(_) => Ok(()),
            What::Trace(trace) => self.out.write_all(&trace.take()),
        }
    }

    /// Reads what is to be drawn, and writes the rest.
    pub(super) fn finish(
        mut self,
        (path, file): (&Path, &Path),
        options: &Options,
        (subject, summary, table): (Subject<'_>, &Summary, &str),
        silent: bool,
    ) -> Result<(), Failure> {
        match self.what {
            What::Page(gathered) => {
                let kept = gathered.messages();
                let waves = waves(file, options, &summary.wires, &kept, EDGES_MAX, silent)?;
                let (gathered, kept, waves) = (&*gathered, &kept[..], &waves[..]);
                let page = page(&Content { subject, summary, gathered, kept, waves, table })?;
                end(self.out, path, &page)
            }
            What::Trace(mut trace) => {
                let message = picture::all(summary);
                let all = [Kept { nth: 0, message, told: Told::default() }];
                let waves = waves(file, options, &summary.wires, &all, TRACE_EDGES_MAX, silent)?;
                let Subject { channels, wires, .. } = subject;
                let mut lines = picture::lines(wires, channels, None);
                let selects = (0..wires.selects.len()).rev();
                selects.for_each(|select| {
                    lines.splice(0..0, picture::lines(wires, channels, Some(select)).drain(..1));
                });
                for wave in &waves {
                    trace.lines(&lines, wave);
                    if wave.shortened {
                        let max = figure::grouped(TRACE_EDGES_MAX as u64);
                        note!(
                            "the trace has all messages, and the first {max} changes of the wires"
                        );
                    }
                }
                self.out.write_all(&trace.take())?;
                end(self.out, path, "")
            }
        }
    }
}
