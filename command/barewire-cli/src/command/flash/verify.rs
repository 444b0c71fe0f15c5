//! `barewire flash verify`: the chip against a file.

use std::path::PathBuf;

use barewire::chip::spi_nor::NorError;
use serde::Serialize;

use super::input::Input;
use super::{FlashArgs, FlashChip, PIECE, Which, with_chip};
use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::session::{self, BusProgress, ChipRequest, EndState, Figures, Request, Session};
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
    different_bytes: u64,
    /// None if all are equal.
    first_difference: Option<Difference>,
}

#[derive(Clone, Copy, Serialize)]
struct Difference {
    address: u64,
    expected: u8,
    actual: u8,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let bus = &args.flash.bus;
    bus.check_name()?;
    let input = Input::open(&args.input)?;
    let request =
        Request::of(bus, EndState::Promised).for_chip(ChipRequest::Flash).that_only_reads();
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
    let progress = BusProgress::new(session, "verifying", bytes);
    let (mut different_bytes, mut first_difference) = (0, None);
    let mut scratch = vec![0; PIECE];
    let mut done = 0;
    for piece in data.chunks(PIECE) {
        let held = &mut scratch[..piece.len()];
        chip.read(args.offset + done, held)?;
        let pairs = (args.offset + done..).zip(piece.iter().zip(&*held));
        for (address, (&expected, &actual)) in pairs.filter(|(_, (one, other))| one != other) {
            different_bytes += 1;
            first_difference.get_or_insert(Difference { address, expected, actual });
        }
        done += piece.len() as u64;
        progress.set(done);
        interrupt::check()?;
    }
    let equal = different_bytes == 0;
    Ok(Report { which, offset: args.offset, bytes, equal, different_bytes, first_difference })
}

impl session::Report for Report {
    const IS_SUMMARY: bool = true;

    fn text(&self, figures: Option<&Figures>) -> String {
        let pace = figures.map(|figures| figures.pace(self.bytes)).unwrap_or_default();
        let result = match self.different_bytes {
            0 => "equal".to_owned(),
            1 => "1 byte differs".to_owned(),
            bytes => format!("{} bytes differ", figure::grouped(bytes)),
        };
        format!("verified {} at {:#x}: {result}{pace}\n", figure::size(self.bytes), self.offset)
    }

    fn verdict(&self) -> Result<(), Failure> {
        let Some(Difference { address, expected, actual }) = self.first_difference else {
            return Ok(());
        };
        // As the driver says it.
        Err(NorError::Verify { address, expected, actual }.into())
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
