//! `barewire flash`: identify, read, write, erase and verify a SPI NOR chip.
//!
//! A chip is identified at no more than 20 MHz, since its own limit is not known yet. Then the
//! speed asked for is checked against that limit.

mod assume;
mod erase;
mod id;
mod input;
mod read;
mod verify;
mod write;

use barewire::bus::Device;
use barewire::chip::ReadSpeed;
use barewire::chip::spi_nor::{Assume, NorError, SpiNor};
use barewire::controller::Controller;
use barewire::spi::{Effective, MODE_0, MODE_3, Mode, Settings};
use barewire::time::Timer;
use barewire_linux::shared::ChipPort;
use serde::Serialize;

use crate::shared::failure::Failure;
use crate::shared::output::note;
use crate::shared::session::{BusArgs, Place, Session};
use crate::shared::text::{hex, number};

/// Bytes between two looks at Ctrl-C and two steps of a progress bar.
pub(crate) const PIECE: usize = 64 << 10;

/// A clock that every SPI NOR chip in use accepts.
const IDENTIFY_MAX_HZ: u32 = 20_000_000;

/// `barewire flash`.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Verb {
    /// Identify the chip: size, pages, erase types, addresses, protection
    Id(id::Args),
    /// Read the chip, or a part of it, into a file
    Read(read::Args),
    /// Write a file: erase and program only what differs, and read it back
    Write(write::Args),
    /// Erase a part of the chip, or all of it
    Erase(erase::Args),
    /// Compare the chip with a file
    Verify(verify::Args),
}

/// What all flash commands take.
#[derive(clap::Args, Clone, Debug)]
struct FlashArgs {
    #[command(flatten)]
    bus: BusArgs,
    /// The SPI mode; flash chips take 0 and 3
    #[arg(long, value_name = "0|3", default_value = "0", value_parser = flash_mode)]
    mode: Mode,
    /// The fastest clock of messages that read (k and M: by 1000): long wires delay what the chip answers
    /// [default: as the others]
    #[arg(long, value_name = "HZ", value_parser = number::hertz)]
    read_speed_hz: Option<u32>,
    #[command(flatten)]
    assume: assume::AssumeArgs,
}

fn flash_mode(text: &str) -> Result<Mode, String> {
    match text {
        "0" => Ok(MODE_0),
        "3" => Ok(MODE_3),
        _ => Err("flash chips take modes 0 and 3 only".into()),
    }
}

/// Runs it.
pub(crate) fn run(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Id(args) => id::run(args),
        Verb::Read(args) => read::run(args),
        Verb::Write(args) => write::run(args),
        Verb::Erase(args) => erase::run(args),
        Verb::Verify(args) => verify::run(args),
    }
}

/// A chip on any bus.
pub(crate) type FlashChip<'b> =
    SpiNor<ReadSpeed<ChipPort<Device<'b, dyn Controller + 'b>>>, &'b mut (dyn Timer + 'b)>;

/// Which chip, and how it is talked to: the first fields of every flash command's JSON.
#[derive(Clone, Debug, Serialize)]
struct Which {
    #[serde(flatten)]
    place: Place,
    chip_select: u8,
    jedec_id: String,
    name: Option<&'static str>,
    mode: u8,
    speed_hz: u32,
    effective_speed_hz: u32,
    /// The clock of messages that read, if the user asked for one.
    read_speed_hz: Option<u32>,
    /// Contradictions, unknowns, and actions that were not asked for.
    notes: Vec<String>,
}

impl Which {
    fn of(
        session: &Session,
        args: &FlashArgs,
        chip: &FlashChip<'_>,
        effective: &Effective,
    ) -> Self {
        Self {
            place: session.place.clone(),
            chip_select: session.chip_select,
            jedec_id: hex::format(&chip.jedec_id().0, ""),
            name: chip.geometry().name,
            mode: args.mode.number(),
            speed_hz: args.bus.speed_hz,
            effective_speed_hz: effective.speed_hz,
            read_speed_hz: args.read_speed_hz,
            notes: notes_on(chip),
        }
    }

    /// Adds the notes made since.
    fn after(self, chip: &FlashChip<'_>) -> Self {
        Self { notes: notes_on(chip), ..self }
    }
}

fn notes_on(chip: &FlashChip<'_>) -> Vec<String> {
    chip.geometry().notes.iter().map(|note| note.to_string()).collect()
}

/// Runs `with` on the identified chip.
fn with_chip<R>(
    session: &Session,
    args: &FlashArgs,
    with: impl FnOnce(&mut FlashChip<'_>, Which) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let mut timer = session.open.timer();
    let chip_select = session.chip_select;
    let mode = args.mode | session.mode(chip_select);
    let settings = Settings::new(chip_select, args.bus.speed_hz).with_mode(mode);
    let assume = args.assume.assumed();
    let (mut chip, effective) =
        open(session, &mut *timer, settings, args.read_speed_hz.unwrap_or(0), &assume)?;
    let which = Which::of(session, args, &chip, &effective);
    session.note_clock(settings.speed_hz, effective.speed_hz);
    let told = which.notes.clone();
    told.iter().for_each(|text| note!("{text}"));
    let ended = with(&mut chip, which);
    for text in notes_on(&chip).iter().filter(|text| !told.contains(text)) {
        note!("{text}");
    }
    ended
}

/// The chip behind `settings`, identified, and its speed known to be within its limit. Messages that read
/// have a clock of their own if `read_speed_hz` is not 0.
pub(crate) fn open<'b>(
    session: &'b Session,
    timer: &'b mut dyn Timer,
    settings: Settings,
    read_speed_hz: u32,
    assume: &Assume,
) -> Result<(FlashChip<'b>, Effective), Failure> {
    let bus = session.open.bus();
    let device = bus.device(&settings)?;
    if settings.speed_hz > IDENTIFY_MAX_HZ {
        let slow = bus.device(&Settings { speed_hz: IDENTIFY_MAX_HZ, ..settings })?;
        let slow = ChipPort::new(slow, session.chip_lock(settings.chip_select)?);
        let slow = ReadSpeed::new(slow, read_speed_hz.min(IDENTIFY_MAX_HZ));
        let chip = SpiNor::assuming(slow, &mut *timer, assume)?;
        // The speed asked, not the controller's next slower one: on another board it would be
        // what the chip gets.
        if let Some(max_hz) = chip.geometry().max_hz
            && settings.speed_hz > max_hz
        {
            return Err(NorError::TooFast { speed_hz: settings.speed_hz, max_hz }.into());
        }
    }
    let effective = *device.effective();
    let port = ChipPort::new(device, session.chip_lock(settings.chip_select)?);
    let port = ReadSpeed::new(port, read_speed_hz.min(settings.speed_hz));
    Ok((SpiNor::assuming(port, timer as &mut dyn Timer, assume)?, effective))
}

/// `length` if it was given, else the bytes from `offset` to the chip's end.
fn extent(size: u64, offset: u64, length: Option<u64>) -> Result<u64, Failure> {
    if offset > size {
        let end = format!("the chip's end at {size:#x}");
        return Err(Failure::Failed(format!("--offset {offset:#x} is beyond {end}")));
    }
    let len = length.unwrap_or(size - offset);
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(len),
        _ => Err(NorError::OutOfRange { offset, len, size }.into()),
    }
}
