//! `barewire flash erase`: a part of the chip, or all of it, to ones.

use serde::Serialize;

use super::{FlashArgs, FlashChip, Which, extent, with_chip};
use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::session::{self, BusProgress, ChipRequest, EndState, Figures, Request, Session};
use crate::shared::text::{figure, number};

#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("extent").required(true).args(["length", "all"])))]
pub(crate) struct Args {
    /// Where to begin: a multiple of the chip's smallest erase block
    #[arg(long, value_name = "N", default_value = "0", value_parser = number::bytes, conflicts_with = "all")]
    offset: u64,
    /// How many bytes: a multiple of the same
    #[arg(long, value_name = "N", value_parser = number::bytes)]
    length: Option<u64>,
    /// Erase the whole chip
    #[arg(long)]
    all: bool,
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
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let bus = &args.flash.bus;
    let request = Request::of(bus, EndState::Promised).for_chip(ChipRequest::Flash);
    session::run(&request.that_changes_the_chip(), |session| {
        with_chip(session, &args.flash, |chip, which| erase(args, session, chip, which))
    })
}

fn erase(
    args: &Args,
    session: &Session,
    chip: &mut FlashChip<'_>,
    which: Which,
) -> Result<Report, Failure> {
    let bytes = extent(chip.size(), args.offset, args.length)?;
    if bytes == 0 {
        return Err(Failure::Failed(
            "nothing to erase: --length is 0, or --offset the chip's end".into(),
        ));
    }
    session.begin_figures();
    if args.unprotect {
        chip.unprotect()?;
    }
    let progress = BusProgress::new(session, "erasing", bytes);
    chip.erase(args.offset..args.offset + bytes, &mut |done| {
        progress.set(done);
        interrupt::flow()
    })?;
    Ok(Report { which: which.after(chip), offset: args.offset, bytes })
}

impl session::Report for Report {
    const IS_SUMMARY: bool = true;

    fn text(&self, figures: Option<&Figures>) -> String {
        let pace = figures.map(|figures| figures.pace(self.bytes)).unwrap_or_default();
        format!("erased {} at {:#x}{pace}\n", figure::size(self.bytes), self.offset)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
