//! A command's request to a bus, as far as it is known before the bus is opened.

use std::path::{Path, PathBuf};

use barewire_qemu::{BOARDS, BoardSpec, Medium};
use barewire_sim::model::can::BitTimes;
use serde::Serialize;

use super::{InjectedFault, Selftest};
use crate::shared::bus_name::{self, BusName};
use crate::shared::costs::Costs;
use crate::shared::failure::Failure;
use crate::shared::files::{self, NamedFile};
use crate::shared::output::note;
use crate::shared::text::number;

/// What is recorded unless told: 13 pictures of 320 × 240 dots of 16 bits on a controller with words of 8 bits.
pub(crate) const VCD_LIMIT: usize = 2_000_000;

/// Which bus, how fast, and how to report.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct BusArgs {
    /// The bus: sim:BOARD, qemu:BOARD, spidev:/dev/spidevB.C, barewire:N, uio:… or mem:…, and options; `barewire list` names
    /// them, `barewire --help` the options
    #[arg(long, value_name = "BUS", env = "BAREWIRE_BUS")]
    pub(crate) bus: String,
    /// The chip select, by its number in `barewire list` [default: 0; for flash commands, where the chip is on a
    /// simulated board]
    #[arg(long = "cs", value_name = "N", value_parser = number::count::<u8>)]
    pub(crate) chip_select: Option<u8>,
    /// The fastest clock allowed; the controller's next slower one is used (k and M: by 1000)
    #[arg(long, value_name = "HZ", default_value = "20000000", value_parser = number::hertz)]
    pub(crate) speed_hz: u32,
    #[command(flatten)]
    pub(crate) tell: TellArgs,
}

impl BusArgs {
    /// Refuses a name of no bus, before a file is looked for.
    pub(crate) fn check_name(&self) -> Result<(), Failure> {
        bus_name::parse(&self.bus).map(drop).map_err(Failure::Usage)
    }
}

/// How to report what happened.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TellArgs {
    /// Print the result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Record the wire into FILE, for sigrok, PulseView or GTKWave (simulated boards)
    #[arg(long, value_name = "FILE")]
    pub(crate) vcd: Option<PathBuf>,
    /// The most words and level changes that --vcd records; each takes some 50 bytes of memory, and some 250 of
    /// the file
    #[arg(long, value_name = "N", default_value_t = VCD_LIMIT, value_parser = number::count::<usize>, hide_short_help = true)]
    pub(crate) vcd_limit: usize,
    /// Count what goes over the bus, by the names of Linux's spi statistics, and print it after the
    /// command
    #[arg(long)]
    pub(crate) stats: bool,
    /// Time each message in the controller, and print the distribution after the command
    #[arg(long)]
    pub(crate) latency: bool,
    /// Charge each cost at the lowest or the highest value that its sources allow (simulated boards)
    /// [default: used; adc stream and can echo then print their figures at all three]
    #[arg(long, value_name = "WHICH", value_enum)]
    pub(crate) costs: Option<Costs>,
    /// Print no progress bar, summary or notes, only errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Whether the command promises to leave the chip unselected and write-disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndState {
    /// The command promises it, and that is checked even if the command fails.
    Promised,
    /// The user's own bytes decide.
    AsSent,
    /// The program chooses the bytes, and its exit code counts: broken rules are only reported.
    AsServed,
}

/// A chip that a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChipRequest {
    /// A flash chip.
    Flash,
    /// An analog-to-digital converter.
    Converter,
    /// A chip of that name, with registers.
    Registers(&'static str),
}

/// A command's request to a bus.
#[derive(Clone, Debug)]
pub(crate) struct Request<'r> {
    pub(super) name: &'r str,
    chip_select: Option<u8>,
    pub(super) tell: &'r TellArgs,
    pub(super) settled: EndState,
    pub(super) selftest: Option<Selftest>,
    wanted: Option<ChipRequest>,
    /// It programs or erases the chip, or writes its registers.
    changes: bool,
    /// It only reads the chip, so a missing flash file is a mistake.
    pub(super) only_reads: bool,
    input: Option<NamedFile<'r>>,
    output: Option<NamedFile<'r>>,
    /// The board's time is that of a Linux process, its ticks charged.
    pub(super) linux_process: bool,
    /// The bit times of a simulated board's CAN bus.
    pub(super) can: BitTimes,
}

impl<'r> Request<'r> {
    /// The request that the command line makes.
    pub(crate) fn of(args: &'r BusArgs, settled: EndState) -> Self {
        Self { chip_select: args.chip_select, ..Self::at(&args.bus, 0, &args.tell, settled) }
    }

    /// A request for that bus. The command promises to leave the bus settled.
    pub(crate) fn named(name: &'r str, tell: &'r TellArgs) -> Self {
        Self::at(name, 0, tell, EndState::Promised)
    }

    /// A request for that chip select of that bus.
    pub(crate) fn at(
        name: &'r str,
        chip_select: u8,
        tell: &'r TellArgs,
        settled: EndState,
    ) -> Self {
        Self {
            name,
            chip_select: Some(chip_select),
            tell,
            settled,
            selftest: None,
            wanted: None,
            changes: false,
            only_reads: false,
            input: None,
            output: None,
            linux_process: false,
            can: BitTimes::from_rates(500_000, 2_000_000),
        }
    }

    /// Requires that chip: a session without it is of no use.
    pub(crate) fn for_chip(self, wanted: ChipRequest) -> Self {
        Self { wanted: Some(wanted), ..self }
    }

    /// The command changes the chip. A note says so if a simulated chip forgets the change.
    pub(crate) fn that_changes_the_chip(self) -> Self {
        Self { changes: true, ..self }
    }

    /// The command reads the chip and changes nothing. A simulated chip's file must be there.
    pub(crate) fn that_only_reads(self) -> Self {
        Self { only_reads: true, ..self }
    }

    /// The command reads that file.
    pub(crate) fn reading(self, by: &'static str, path: &'r Path) -> Self {
        Self { input: Some(NamedFile { by, path }), ..self }
    }

    /// The command writes that file.
    pub(crate) fn writing(self, output: NamedFile<'r>) -> Self {
        Self { output: Some(output), ..self }
    }

    /// Lets Linux's timer ticks interrupt a simulated board's processor.
    pub(crate) fn for_linux_process(self) -> Self {
        Self { linux_process: true, ..self }
    }

    /// Gives a simulated board's CAN bus those bit times.
    pub(crate) fn for_can(self, times: BitTimes) -> Self {
        Self { can: times, ..self }
    }

    /// Prepares a self-test: the controller must receive what it sends. `fault`, if given, is
    /// injected.
    pub(crate) fn for_selftest(self, fault: Option<InjectedFault>, wired: bool) -> Self {
        Self { selftest: Some(Selftest { fault, wired }), ..self }
    }

    /// The chip select that the user gave; else that of the chip on a simulated board; else 0.
    pub(super) fn chip_select(&self, name: &BusName) -> u8 {
        let of_the_chip = || match (name, self.wanted) {
            (BusName::Sim(options), Some(ChipRequest::Flash)) => {
                options.board.first_flash().map(|flash| flash.cs)
            }
            _ => None,
        };
        self.chip_select.or_else(of_the_chip).unwrap_or(0)
    }

    /// Refuses an output that is another file of the command.
    fn check_files(&self, name: &BusName) -> Result<(), Failure> {
        let vcd = self.tell.vcd.as_deref().map(|path| NamedFile { by: "--vcd", path });
        let outputs: Vec<_> = self.output.into_iter().chain(vcd).collect();
        let inputs: Vec<_> = name.files().into_iter().chain(self.input).collect();
        files::check(&outputs, &inputs)
    }

    /// Whether only errors are told. A command that changes a chip itself also says, in spite of `--quiet`, what
    /// is likely a slip; a program that is served may not use that chip at all.
    pub(super) fn is_hushed(&self) -> bool {
        self.tell.quiet && self.settled == EndState::AsServed
    }

    /// Notes what a simulated chip does not keep.
    pub(super) fn note_forgotten(&self, name: &BusName) {
        if self.changes
            && !self.is_hushed()
            && let BusName::Sim(options) = name
            && options.flash_file().is_none()
        {
            note!(
                "{name} is simulated: without flash=FILE, what is written is gone after the command"
            );
        }
    }

    /// Refuses what no bus of that name can do, before it is opened.
    pub(super) fn check(&self, name: &BusName) -> Result<(), Failure> {
        self.check_files(name)?;
        match name {
            BusName::Sim(options) => {
                let flash = self.chip_select.is_some() || options.board.first_flash().is_some();
                return match self.wanted {
                    Some(ChipRequest::Flash) if !flash => Err(Failure::Failed(format!(
                        "{name} has no flash: `barewire list {}` says what it has",
                        options.board.name
                    ))),
                    _ => Ok(()),
                };
            }
            BusName::Qemu(name) => self.check_board(name.board)?,
            BusName::Spidev(_) if self.chip_select(name) != 0 => {
                return Err(Failure::Usage(format!(
                    "--cs {}: a spidev node is one chip select, the C in its name; name that node, \
                     and leave --cs out",
                    self.chip_select(name)
                )));
            }
            BusName::Spidev(_) | BusName::Mapped(_) | BusName::Null => {}
        }
        if self.tell.costs.is_some() {
            return Err(Failure::Usage(format!(
                "--costs is for simulated boards (sim:BOARD); {name} costs what it costs"
            )));
        }
        if self.tell.vcd.is_some() {
            return Err(Failure::Usage(format!(
                "--vcd records the wire of simulated boards (sim:BOARD); there is no wire to \
                 record on {name}"
            )));
        }
        Ok(())
    }
}

impl Request<'_> {
    /// Refuses requests that `board` is known not to support.
    fn check_board(&self, board: &BoardSpec) -> Result<(), Failure> {
        let refused = |what: String| Err(Failure::Failed(format!("qemu:{}: {what}", board.name)));
        if self.selftest.is_some() && !board.loopback {
            let controller = board.silicon.block.name;
            let instead = boards(|board| board.loopback);
            let mut what = format!("QEMU's {controller} has no loopback; that of {instead} has");
            if holds(board, Medium::Flash) {
                what += "; `barewire flash write` and `flash verify` read back through the chip";
            }
            return refused(what);
        }
        match self.wanted {
            Some(ChipRequest::Flash) if !holds(board, Medium::Flash) => {
                let there = match board.storage {
                    Some(part) => format!("the chip is an {}", part.name),
                    None => "nothing is on the bus".into(),
                };
                let instead = boards(|board| holds(board, Medium::Flash));
                refused(format!("{there}; a flash chip is on {instead}"))
            }
            Some(ChipRequest::Registers(chip)) => {
                refused(format!("no board of QEMU's has an {chip}"))
            }
            Some(ChipRequest::Converter) => refused("no board of QEMU's has a converter".into()),
            _ => Ok(()),
        }
    }
}

fn holds(board: &BoardSpec, medium: Medium) -> bool {
    board.storage.is_some_and(|part| part.medium == medium)
}

/// QEMU's boards of a kind, by name.
fn boards(kind: impl Fn(&BoardSpec) -> bool) -> String {
    let names: Vec<_> =
        BOARDS.iter().filter(|board| kind(board)).map(|b| format!("qemu:{}", b.name)).collect();
    names.join(", ")
}

/// Which bus it was: the first fields of a command's JSON.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Place {
    /// The bus's name, without options.
    pub(crate) bus: String,
    /// Whether the board is simulated, by this program's own models.
    pub(crate) simulated: bool,
    /// The program that emulates the board, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) emulator: Option<&'static str>,
}

impl Place {
    pub(crate) fn of(name: &BusName) -> Self {
        let (simulated, emulator) = match name {
            BusName::Sim(_) => (true, None),
            BusName::Qemu(name) => (false, Some(name.board.program.command)),
            BusName::Spidev(_) | BusName::Mapped(_) | BusName::Null => (false, None),
        };
        Self { bus: name.to_string(), simulated, emulator }
    }

    /// The suffix of the bus's name in text for people, with a comma before it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self { simulated: true, .. } => ", simulated",
            Self { emulator: Some(_), .. } => ", QEMU's model",
            _ => "",
        }
    }
}
