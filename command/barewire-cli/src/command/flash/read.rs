//! `barewire flash read`: the chip into a file.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{FlashArgs, FlashChip, PIECE, Which, extent, with_chip};
use crate::shared::failure::Failure;
use crate::shared::files::{NamedFile, Output};
use crate::shared::interrupt;
use crate::shared::session::{self, BusProgress, ChipRequest, EndState, Figures, Request, Session};
use crate::shared::text::{figure, number};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The file to make; - is stdout. It gets its name only when it is whole
    out: PathBuf,
    /// Where to begin
    #[arg(long, value_name = "N", default_value = "0", value_parser = number::bytes)]
    offset: u64,
    /// How many bytes [default: to the chip's end]
    #[arg(long, value_name = "N", value_parser = number::bytes)]
    length: Option<u64>,
    #[command(flatten)]
    flash: FlashArgs,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    which: Which,
    out: PathBuf,
    offset: u64,
    bytes: u64,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let bus = &args.flash.bus;
    let out = NamedFile { by: "OUT", path: &args.out };
    let request = Request::of(bus, EndState::Promised)
        .for_chip(ChipRequest::Flash)
        .that_only_reads()
        .writing(out);
    let out = Output::create(out, bus.tell.json)?;
    session::run(&request, |session| {
        with_chip(session, &args.flash, |chip, which| read(args, out, session, chip, which))
    })
}

fn read(
    args: &Args,
    mut out: Output,
    session: &Session,
    chip: &mut FlashChip<'_>,
    which: Which,
) -> Result<Report, Failure> {
    let bytes = extent(chip.size(), args.offset, args.length)?;
    if bytes == 0 {
        return Err(Failure::Failed("nothing to read: no byte of the chip was asked for".into()));
    }
    let progress = BusProgress::new(session, "reading", bytes);
    let mut piece = vec![0; PIECE];
    let mut done = 0;
    session.begin_figures();
    while done < bytes {
        interrupt::check()?;
        let len = (bytes - done).min(PIECE as u64) as usize;
        let piece = &mut piece[..len];
        chip.read(args.offset + done, piece)?;
        out.write_all(piece)?;
        done += len as u64;
        progress.set(done);
    }
    drop(progress);
    session.check_rules()?;
    out.commit()?;
    Ok(Report { which, out: args.out.clone(), offset: args.offset, bytes })
}

impl session::Report for Report {
    const IS_SUMMARY: bool = true;

    fn text(&self, figures: Option<&Figures>) -> String {
        // Stdout holds the data then.
        if self.out == Path::new("-") {
            return String::new();
        }
        let pace = figures.map(|figures| figures.pace(self.bytes)).unwrap_or_default();
        let (size, out) = (figure::size(self.bytes), self.out.display());
        format!("read {size} at {:#x} into {out}{pace}\n", self.offset)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
