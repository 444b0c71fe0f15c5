//! `barewire flash write`: a file onto the chip.

use std::path::PathBuf;

use barewire::chip::spi_nor::{NorError, Written};
use serde::Serialize;

use super::input::Input;
use super::{FlashArgs, FlashChip, PIECE, Which, with_chip};
use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::session::{self, BusProgress, ChipRequest, EndState, Figures, Request, Session};
use crate::shared::text::{figure, number};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The file to write; - is stdin
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to begin
    #[arg(long, value_name = "N", default_value = "0", value_parser = number::bytes)]
    offset: u64,
    /// Clear the chip's block protection first
    #[arg(long)]
    unprotect: bool,
    #[command(flatten)]
    flash: FlashArgs,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    which: Which,
    offset: u64,
    bytes: u64,
    unchanged_bytes: u64,
    programmed_bytes: u64,
    skipped_bytes: u64,
    restored_bytes: u64,
    erased_bytes: u64,
    programs: u32,
    erases: u32,
    verified: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let bus = &args.flash.bus;
    bus.check_name()?;
    let input = Input::open(&args.input)?;
    let request = Request::of(bus, EndState::Promised).for_chip(ChipRequest::Flash);
    let request = request.reading("IN", &args.input).that_changes_the_chip();
    session::run(&request, |session| {
        with_chip(session, &args.flash, |chip, which| write(args, input, session, chip, which))
    })
}

fn write(
    args: &Args,
    input: Input,
    session: &Session,
    chip: &mut FlashChip<'_>,
    which: Which,
) -> Result<Report, Failure> {
    let data = input.read(chip.size(), args.offset)?;
    let bytes = data.len() as u64;
    session.begin_figures();
    if args.unprotect {
        chip.unprotect()?;
    }
    let progress = BusProgress::new(session, "writing", bytes);
    let mut scratch = vec![0; PIECE.max(chip.geometry().scratch_size() as usize)];
    let mut done = 0;
    let written = chip.write(args.offset, &data, &mut scratch, &mut |bytes| {
        done = bytes;
        progress.set(bytes);
        interrupt::flow()
    });
    drop(progress);
    let written = written.map_err(|error| match error {
        NorError::Interrupted { .. } => {
            let [done, bytes] = [done, bytes].map(figure::grouped);
            Failure::Interrupted(format!(
                "stopped as asked after {done} of {bytes} bytes: write again to finish"
            ))
        }
        _ => error.into(),
    })?;
    let Written { unchanged_bytes, programmed_bytes, skipped_bytes, restored_bytes, .. } = written;
    let Written { erased_bytes, erases, programs, .. } = written;
    Ok(Report {
        which: which.after(chip),
        offset: args.offset,
        bytes,
        unchanged_bytes,
        programmed_bytes,
        skipped_bytes,
        restored_bytes,
        erased_bytes,
        programs,
        erases,
        // The driver reads back all it changes and has compared the rest.
        verified: bytes > 0,
    })
}

impl session::Report for Report {
    const IS_SUMMARY: bool = true;

    fn text(&self, figures: Option<&Figures>) -> String {
        if self.bytes == 0 {
            return "nothing to write: the file is empty\n".into();
        }
        let pace = figures.map(|figures| figures.pace(self.bytes)).unwrap_or_default();
        let [unchanged, programmed, erased] =
            [self.unchanged_bytes, self.programmed_bytes, self.erased_bytes].map(figure::size);
        // Parts of 0 bytes are left out; the others add up to the whole.
        let part = |what: &str, bytes| match bytes {
            0 => String::new(),
            bytes => format!(", {what} {}", figure::size(bytes)),
        };
        format!(
            "wrote {} at {:#x}, read back and verified{pace}\n  unchanged {unchanged}, programmed {programmed} ({} commands){}, erased {erased} ({} commands){}\n",
            figure::size(self.bytes),
            self.offset,
            figure::grouped(self.programs.into()),
            part("not sent", self.skipped_bytes),
            figure::grouped(self.erases.into()),
            part("restored", self.restored_bytes),
        )
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
