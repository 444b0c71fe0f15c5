//! `barewire regs`: read, write and dump a chip's registers by name.

mod chips;
mod dump;
mod name;
mod read;
mod registers;
mod value;
mod write;

use barewire::spi::Settings;
use barewire_sim::board::spec::{CanSpec, ChipSpec};
use serde::Serialize;

use crate::shared::bus_name::{self, BusName};
use crate::shared::failure::Failure;
use crate::shared::session::{ChipRequest, EndState, Place, Request, Session, TellArgs};
use crate::shared::text::{figure, number};
use chips::RegisterChip;
use registers::Registers;

/// `barewire regs`.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Verb {
    /// Read registers, by name, address or field
    Read(read::Args),
    /// Write registers or fields of them, and read back
    Write(write::Args),
    /// Read all registers
    Dump(dump::Args),
}

/// What all of them take.
#[derive(clap::Args, Clone, Debug)]
struct RegsArgs {
    /// The bus, as for the other commands; sim:imx8mp has such a chip
    #[arg(long, value_name = "BUS", env = "BAREWIRE_BUS")]
    bus: String,
    /// The chip: mcp2518fd or mcp2517fd
    #[arg(long, value_name = "CHIP", value_parser = RegisterChip::find)]
    chip: &'static RegisterChip,
    /// The chip select, by its number in `barewire list` [default: the chip's on a simulated board,
    /// else 0]
    #[arg(long = "cs", value_name = "N", value_parser = number::count::<u8>)]
    chip_select: Option<u8>,
    /// The fastest clock allowed (k and M: by 1000) [default: what the chip takes with its oscillator,
    /// or, if that is not known, with the slowest]
    #[arg(long, value_name = "HZ", value_parser = number::hertz)]
    speed_hz: Option<u32>,
    /// The chip's oscillator, which limits the clock [default: the simulated board's]
    #[arg(long, value_name = "HZ", value_parser = number::hertz)]
    oscillator_hz: Option<u32>,
    #[command(flatten)]
    tell: TellArgs,
}

/// Runs it.
pub(crate) fn run(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Read(args) => read::run(args),
        Verb::Write(args) => write::run(args),
        Verb::Dump(args) => dump::run(args),
    }
}

/// Which chip, and how it is talked to: the first fields of every command's JSON.
#[derive(Clone, Debug, Serialize)]
struct Which {
    #[serde(flatten)]
    place: Place,
    chip_select: u8,
    chip: &'static str,
    speed_hz: u32,
    effective_speed_hz: u32,
}

/// Where the chip is, and how fast it is talked to.
struct Target<'a> {
    args: &'a RegsArgs,
    chip: &'static RegisterChip,
    settings: Settings,
}

impl RegsArgs {
    /// Checks the arguments as far as that is possible before the bus is opened.
    fn target(&self) -> Result<Target<'_>, Failure> {
        let chip = self.chip;
        let bus_name = bus_name::parse(&self.bus).map_err(Failure::Usage)?;
        let on_board = match &bus_name {
            BusName::Sim(options) => {
                let at = |can: &CanSpec| self.chip_select.is_none_or(|cs| cs == can.cs);
                let mut all = options.board.chips.iter().filter_map(ChipSpec::can);
                all.find(|can| is(can, chip) && at(can))
            }
            _ => None,
        };
        let chip_select = match (self.chip_select, on_board, &bus_name) {
            (Some(chip_select), ..) => chip_select,
            (None, Some(can), _) => can.cs,
            (None, None, BusName::Sim(options)) => {
                let what = chip.map.name();
                return Err(Failure::Failed(match options.board.can() {
                    Some(can) => format!("{bus_name} has no {what}, but an {}", can.part.name()),
                    None => format!("{bus_name} has no {what}: `barewire list` says which has"),
                }));
            }
            (None, None, _) => 0,
        };
        let takes = &chip.clock_hz;
        if let Some(hz) = self.oscillator_hz.filter(|hz| !takes.contains(hz)) {
            return Err(Failure::Failed(format!(
                "an oscillator of {}: the {} takes {} up to {} (--oscillator-hz)",
                figure::clock(hz.into()),
                chip.map.name(),
                figure::clock((*takes.start()).into()),
                figure::clock((*takes.end()).into())
            )));
        }
        let known_hz = self.oscillator_hz.or(on_board.map(|can| can.oscillator_hz));
        let [slowest_hz, fastest_hz] = known_hz.map_or(chip.oscillator_hz, |hz| [hz; 2]);
        let max_hz = (chip.max_speed_hz)(fastest_hz);
        let speed_hz = self.speed_hz.unwrap_or_else(|| (chip.max_speed_hz)(slowest_hz));
        if speed_hz > max_hz {
            return Err(Failure::Failed(format!(
                "{speed_hz} Hz is above the {}'s limit of {max_hz} Hz with an oscillator of \
                 {fastest_hz} Hz (--speed-hz, --oscillator-hz)",
                chip.map.name()
            )));
        }
        Ok(Target { args: self, chip, settings: Settings::new(chip_select, speed_hz) })
    }
}

fn is(can: &CanSpec, chip: &RegisterChip) -> bool {
    can.part.name() == chip.map.name()
}

impl Target<'_> {
    fn request(&self) -> Request<'_> {
        let Self { args, chip, settings } = self;
        Request::at(&args.bus, settings.chip_select, &args.tell, EndState::Promised)
            .for_chip(ChipRequest::Registers(chip.map.name()))
    }

    /// Opens the chip's registers.
    fn open<'s>(&self, session: &'s Session) -> Result<(Box<dyn Registers + 's>, Which), Failure> {
        let Settings { chip_select, speed_hz, .. } = self.settings;
        let settings = self.settings.with_mode(self.settings.mode | session.mode(chip_select));
        let device = session.open.bus().device(&settings)?;
        let effective = device.effective();
        // The clock is reported only if the user asked for one.
        if self.args.speed_hz.is_some() {
            session.note_clock(speed_hz, effective.speed_hz);
        }
        let which = Which {
            place: session.place.clone(),
            chip_select,
            chip: self.chip.map.name(),
            speed_hz,
            effective_speed_hz: effective.speed_hz,
        };
        let mut registers = registers::open(device, self.chip.map)?;
        registers::prove(&mut *registers, self.chip, chip_select)?;
        session.begin_figures();
        Ok((registers, which))
    }
}
