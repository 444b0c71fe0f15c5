//! `barewire flash verify`: the chip against a file.

use std::path::PathBuf;

use serde::Serialize;

use super::input::Input;
use super::{FlashArgs, FlashChip, PIECE, Which, with_chip};
use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::progress::Progress;
use crate::shared::session::{self, ChipRequest, EndState, Figures, Request, Session};
use crate::shared::text::{figure, number};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The file to compare with; - is stdin
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to begin
    #[arg(long, value_name = "N", default_value = "0", value_parser = number::bytes)]
    offset: u64,
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
    equal: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let bus = &args.flash.bus;
    let input = Input::open(&args.input)?;
    let request = Request::of(bus, EndState::Promised).for_chip(ChipRequest::Flash);
    let request = request.reading("IN", &args.input);
    session::run(&request, |session| {
        with_chip(session, &args.flash, |chip, which| verify(args, input, session, chip, which))
    })
}

fn verify(
    args: &Args,
    input: Input,
    session: &Session,
    chip: &mut FlashChip<'_>,
    which: Which,
) -> Result<Report, Failure> {
    let data = input.read(chip.size(), args.offset)?;
    let bytes = data.len() as u64;
    if bytes == 0 {
        return Err(Failure::Failed("nothing to verify: the file is empty".into()));
    }
    session.begin_figures();
    let progress = Progress::new("verifying", bytes, session.silent);
    chip.verify(args.offset, &data, &mut vec![0; PIECE], &mut |done| {
        progress.set(done);
        interrupt::flow()
    })?;
    Ok(Report { which, offset: args.offset, bytes, equal: true })
}

impl session::Report for Report {
    fn text(&self, figures: Option<&Figures>) -> String {
        let pace = figures.map(|figures| figures.pace(self.bytes)).unwrap_or_default();
        format!("verified {} at {:#x}: equal{pace}\n", figure::size(self.bytes), self.offset)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
