//! `sim:BOARD[,option[=value]]…`: a simulated board, its flash file, and faults to inject. BOARD is a shipped board's
//! name or the file of a user's own.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use barewire_sim::board::board_names;
use barewire_sim::board::spec::{ChipSpec, FlashSpec};
use barewire_sim::model::BlockOptions;
use barewire_sim::model::bcm2835::{self, Done};
use barewire_sim::model::ecspi::{self, Dry, Over, Readings};
use barewire_sim::model::gpio::pl061::{self, InputLevel};
use barewire_sim::model::mcp2518fd::ChipFaults;
use barewire_sim::model::nor::{NorFaults, Part};
use barewire_sim::model::signal::SignalSpec;
use barewire_sim::profile::{CostLevel, Profile};
use barewire_sim::{BoardOptions, BoardSpec, Faults};

use super::{OledOptions, WiringOptions, oled, read_options, wiring};
use crate::files::NamedFile;
use crate::{costs, near, number};

/// A simulated board as asked for.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// Which board.
    pub board: &'static BoardSpec,
    /// The file that holds the flash's content.
    pub flash: Option<PathBuf>,
    /// A flash chip in the place of the board's.
    pub flash_part: Option<Box<Part>>,
    /// The flash's status register 1 at power-up.
    pub status: Option<u8>,
    /// Signals on the converter's inputs, by channel.
    pub inputs: Vec<(u8, SignalSpec)>,
    /// A display in the place of another chip.
    pub oled: Option<OledOptions>,
    /// Wires that the board does not have.
    pub wiring: WiringOptions,
    /// The faults to inject.
    pub faults: SimFaults,
    /// Register accesses take up to this much longer, at random.
    pub jitter_ns: u64,
    /// The seed of that randomness.
    pub seed: u64,
    /// A file of costs in the places of the board's own, and what the profile is with them.
    pub cost_file: Option<(PathBuf, Box<Profile>)>,
    /// Which costs it charges. The name does not say.
    pub costs: CostLevel,
    /// What happens with the files that it names. The name does not say.
    pub file_use: FileUse,
    /// How BCM2835's SPI0 treats DONE when the driver does not write it.
    pub done: Done,
    /// The effect of a level that is written to an input of PL061.
    pub input_level: InputLevel,
    /// How an ECSPI behaves where its manual does not say.
    pub ecspi: Readings,
}

/// What happens with the files of a board's chips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileUse {
    /// They are used. A flash's file is made if there is none.
    #[default]
    Made,
    /// They are used. A flash's file has to be there.
    There,
    /// They are neither read nor written.
    Unused,
}

impl SimOptions {
    /// Options of the board that differ from its defaults.
    pub fn board_options(&self) -> BoardOptions {
        BoardOptions {
            profile: Some(self.profile().at(self.costs)),
            faults: Faults { timing_corrupts: self.faults.timing_corrupts },
            jitter_ps: self.jitter_ns.saturating_mul(PS_PER_NS),
            seed: self.seed,
            blocks: self.block_options(),
            ..BoardOptions::default()
        }
    }

    /// The costs, at all levels: the board's own, with those of a file in their places.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        self.cost_file.as_ref().map_or(&self.board.profile, |(_, profile)| &**profile)
    }

    /// The file that keeps what is written to the flash: the one asked for, else the board's; `None` if there is none.
    #[must_use]
    pub fn flash_file(&self) -> Option<&Path> {
        self.flash.as_deref().or_else(|| self.board.first_flash()?.file)
    }

    /// What is asked of the flash at chip select `cs`: its part and file. The name's options are about the board's first
    /// flash.
    pub(crate) fn of_flash(&self, row: &FlashSpec) -> (Part, Option<&Path>) {
        let (part, file) = match self.board.first_flash().is_some_and(|first| first.cs == row.cs) {
            true => {
                let part = self.flash_part.as_deref().cloned().unwrap_or_else(row.part);
                (part, self.flash_file())
            }
            false => ((row.part)(), row.file),
        };
        (part, file.filter(|_| self.file_use != FileUse::Unused))
    }

    /// The file of a display's picture, if files are used.
    pub(crate) fn picture<'p>(&self, picture: Option<&'p Path>) -> Option<&'p Path> {
        picture.filter(|_| self.file_use != FileUse::Unused)
    }

    /// The files that its options name.
    pub(crate) fn files(&self) -> Vec<NamedFile<'_>> {
        let flash = self.flash.iter().map(|path| NamedFile { by: "flash=", path: path.as_path() });
        let costs = self.cost_file.iter().map(|(path, _)| NamedFile { by: "costs=", path });
        let name = self.board.name;
        let board = is_file(name).then(|| NamedFile { by: "sim:", path: Path::new(name) });
        let signals = self.inputs.iter().filter_map(|(_, signal)| match signal {
            SignalSpec::File { path, .. } => {
                Some(NamedFile { by: "input=", path: Path::new(path) })
            }
            SignalSpec::Ready(_) => None,
        });
        let picture = self.oled.iter().filter_map(|oled| oled.picture.as_deref());
        let picture = picture.map(|path| NamedFile { by: "oled=", path });
        let first = self.board.first_flash().map(|flash| flash.cs);
        let of_board = self.board.chips.iter().filter_map(|chip| match chip {
            ChipSpec::Flash(row) if self.flash.is_some() && first == Some(row.cs) => None,
            ChipSpec::Flash(row) => Some(NamedFile { by: "the board's file =", path: row.file? }),
            ChipSpec::Display(row) => {
                Some(NamedFile { by: "the board's picture =", path: row.picture? })
            }
            _ => None,
        });
        board
            .into_iter()
            .chain(flash)
            .chain(costs)
            .chain(signals)
            .chain(picture)
            .chain(of_board)
            .collect()
    }

    /// How the blocks behave where their manuals leave it open.
    pub fn block_options(&self) -> BlockOptions {
        BlockOptions::default().with(self.done).with(self.input_level).with(self.ecspi)
    }

    /// The faults of the CAN controller: those of the chip's faults that a CAN controller can have.
    pub fn can_faults(&self) -> ChipFaults {
        let NorFaults { absent, miso_stuck_low, .. } = self.faults.chip;
        ChipFaults { absent, sdo_stuck_low: miso_stuck_low, ..ChipFaults::default() }
    }
}

/// The faults to inject: in the chip, and on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimFaults {
    /// Faults of the chip.
    pub chip: NorFaults,
    /// A broken timing rule corrupts the data.
    pub timing_corrupts: bool,
}

const PS_PER_NS: u64 = 1_000;

/// BP3 to BP0 of status register 1, which the boards' parts have in bits 5 to 2.
const PROTECT_ALL: u8 = 0x3c;

/// The longest jitter of a register access: a millisecond. With more, a controller does nothing but
/// time out.
const JITTER_MAX_NS: u64 = 1_000_000;

/// As long as the longest jitter.
const START_DELAY_MAX_NS: u64 = JITTER_MAX_NS;

const OPTIONS: [&str; 19] = [
    "flash",
    "flash-part",
    "protect",
    "input",
    "oled",
    "select",
    "no-cs",
    "jumper",
    "wire",
    "fault",
    "jitter-ns",
    "seed",
    "costs",
    "xch",
    "tc",
    "dry",
    "start-delay-ns",
    "done",
    "input-level",
];
const FAULTS: [&str; 7] = [
    "no-chip",
    "stuck-low",
    "stuck-busy",
    "power-loss-program",
    "power-loss-erase",
    "ignore-program",
    "timing-corrupts",
];

/// Whether a board's name is that of a file.
fn is_file(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|ending| ending == "toml")
}

/// The longest file of a board, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// The board of that name, or in that file.
///
/// # Errors
/// There is no such board, or the file cannot be read or is wrong; then its name, line and column are told.
pub fn board(name: &str) -> Result<&'static BoardSpec, String> {
    if !is_file(name) {
        return BoardSpec::find(name).map_err(|_| {
            let beside = format!("{name}.toml");
            match Path::new(&beside).is_file() {
                true => format!(
                    "there is no simulated board {name:?}: did you mean the file {beside:?}?"
                ),
                false => near::unknown("simulated board", name, &board_names()),
            }
        });
    }
    let refused = |why: &str| format!("cannot read the board's file {name}: {why}");
    let file = File::open(name).map_err(|error| refused(&error.to_string()))?;
    if file.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(refused("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(|error| refused(&error.to_string()))?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(refused("it has more than 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter();
        refused(&format!("line {} is no text", line.filter(|&&byte| byte == b'\n').count() + 1))
    })?;
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    BoardSpec::from_toml(name, &text, folder).map_err(|error| format!("{name}: {error}"))
}

/// Reads what follows `sim:`.
pub(crate) fn parse(text: &str) -> Result<SimOptions, String> {
    let mut parts = text.split(',');
    let board = board(parts.next().unwrap_or_default())?;
    let mut options = SimOptions {
        board,
        flash: None,
        flash_part: None,
        status: None,
        inputs: Vec::new(),
        oled: None,
        wiring: WiringOptions::default(),
        faults: SimFaults::default(),
        jitter_ns: 0,
        seed: 0,
        cost_file: None,
        costs: CostLevel::Used,
        file_use: FileUse::default(),
        done: Done::default(),
        input_level: InputLevel::default(),
        ecspi: Readings::default(),
    };
    let mut all = false;
    read_options(parts, &OPTIONS, |key, value| {
        all |= (key, value) == ("protect", "all");
        options.set(key, value)
    })?;
    options.check_flash()?;
    // Another part may have its bits elsewhere.
    if let Some(part) = options.flash_part.as_ref().filter(|_| all) {
        options.status = Some(part.level_mask());
    }
    Ok(options)
}

impl SimOptions {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "flash" if value.is_empty() => return Err("name a file: flash=FILE".into()),
            "flash" => self.flash = Some(value.into()),
            "flash-part" => self.flash_part = Some(Box::new(flash_part(value)?)),
            "protect" => self.status = Some(protect(value)?),
            "input" => {
                for input in value.split('+') {
                    self.inputs.push(channel_signal(input)?);
                }
            }
            "oled" => self.oled = Some(oled::parse(value)?),
            "select" => self.wiring.selects = wiring::selects(value)?,
            "no-cs" if value.is_empty() => self.wiring.no_cs = true,
            "no-cs" => return Err("it takes no value".into()),
            "jumper" => self.wiring.jumper = Some(wiring::jumper(value)?),
            "wire" => self.wiring.wires = wiring::wires(value)?,
            "fault" => value.split('+').try_for_each(|fault| self.faults.add(fault))?,
            "jitter-ns" => self.jitter_ns = at_most(value, JITTER_MAX_NS)?,
            "seed" => self.seed = number::bytes(value)?,
            "costs" => self.cost_file = Some(cost_file(value, self.board)?),
            "done" => {
                self.has(key, "BCM2835's SPI0", *self.board.kind == bcm2835::KIND)?;
                self.done = match value {
                    "read-only" => Done::ReadOnly,
                    "needed" => Done::Needed,
                    _ => return Err(format!("{value:?} is neither read-only nor needed")),
                };
            }
            "input-level" => {
                let gpio = self.board.gpio;
                self.has(key, "PL061", gpio.iter().any(|block| *block.kind == pl061::KIND))?;
                self.input_level = match value {
                    "lost" => InputLevel::Lost,
                    "kept" => InputLevel::Kept,
                    _ => return Err(format!("{value:?} is neither lost nor kept")),
                };
            }
            _ if *self.board.kind != ecspi::KIND => self.has(key, "ECSPI", false)?,
            "xch" => self.ecspi.xch = over(value)?,
            "tc" => self.ecspi.tc = over(value)?,
            "dry" => self.ecspi.dry = dry(value)?,
            _ => self.ecspi.start_delay_ps = at_most(value, START_DELAY_MAX_NS)? * PS_PER_NS,
        }
        Ok(())
    }

    /// Refuses options of a flash that is not there: the board has none, or a jumper replaces it.
    fn check_flash(&self) -> Result<(), String> {
        let of_flash = [
            ("flash=", self.flash.is_some()),
            ("flash-part=", self.flash_part.is_some()),
            ("protect=", self.status.is_some()),
        ];
        let Some((option, _)) = of_flash.iter().find(|(_, given)| *given) else { return Ok(()) };
        match (self.board.first_flash(), self.wiring.jumper) {
            (None, _) => Err(format!("sim:{} has no flash: leave {option} out", self.board.name)),
            (Some(FlashSpec { cs, .. }), Some(jumper)) if cs == jumper => {
                Err(format!("jumper={cs} is in the place of the flash: leave {option} out"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a reading of a block that the board has not.
    fn has(&self, key: &str, block: &str, has: bool) -> Result<(), String> {
        if has {
            Ok(())
        } else {
            Err(format!("{key} is about {block}, which {} has not", self.board.name))
        }
    }
}

/// The costs in a file, for a board. The profile's name tells of the file.
fn cost_file(path: &str, board: &BoardSpec) -> Result<(PathBuf, Box<Profile>), String> {
    if path.is_empty() {
        return Err("name a file: costs=FILE".into());
    }
    let file = costs::read(Path::new(path))?;
    let profile = file.profile(&board.profile).map_err(|why| format!("{path}: {why}"))?;
    let name = format!("{} with the costs of {path}", profile.name);
    Ok((path.into(), Box::new(Profile { name: Box::leak(name.into_boxed_str()), ..profile })))
}

/// A flash chip by its name.
fn flash_part(name: &str) -> Result<Part, String> {
    Part::named(name).ok_or_else(|| {
        let names: Vec<String> = Part::all().map(|part| part.option_name()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        near::unknown("flash part", name, &names)
    })
}

fn at_most(value: &str, max: u64) -> Result<u64, String> {
    match number::bytes(value)? {
        number if number <= max => Ok(number),
        _ => Err(format!("{value} is more than {max}, the most there is")),
    }
}

/// When a bit of the ECSPI says that all is over.
fn over(value: &str) -> Result<Over, String> {
    match value {
        "word-end" => Ok(Over::WordEnd),
        "fifo-empty" => Ok(Over::FifoEmpty),
        _ => Err(format!("{value:?} is not word-end or fifo-empty")),
    }
}

/// The behaviour of an ECSPI's burst that runs out of words.
fn dry(value: &str) -> Result<Dry, String> {
    match value {
        "stalls" => Ok(Dry::Stalls),
        "needs-xch" => Ok(Dry::NeedsXch),
        _ => Err(format!("{value:?} is not stalls or needs-xch")),
    }
}

/// `CHANNEL:SIGNAL`.
fn channel_signal(text: &str) -> Result<(u8, SignalSpec), String> {
    let (channel, signal) = text.split_once(':').unwrap_or((text, ""));
    let channel = channel
        .parse()
        .map_err(|_| format!("{channel:?} is not a channel: write input=0:sine:100:2000:2500"))?;
    let signal = signal.parse::<SignalSpec>().map_err(|error| error.to_string())?;
    Ok((channel, signal))
}

fn protect(value: &str) -> Result<u8, String> {
    let status = match value {
        "all" => Some(PROTECT_ALL),
        "none" => Some(0),
        _ => value.starts_with("0x").then(|| number::hex_byte(value)).flatten(),
    };
    status.ok_or_else(|| format!("{value:?} is not all, none or 0x and a status byte"))
}

impl SimFaults {
    /// Adds `NAME` or `NAME:N`.
    fn add(&mut self, fault: &str) -> Result<(), String> {
        let (name, count) = match fault.split_once(':') {
            Some((name, count)) => (name, Some(count)),
            None => (fault, None),
        };
        if !FAULTS.contains(&name) {
            return Err(near::unknown("fault", name, &FAULTS));
        }
        let nth = count.map(number::bytes).transpose()?;
        let chip = &mut self.chip;
        match name {
            "power-loss-program" => chip.power_loss_in_program = Some(nth.unwrap_or(0)),
            "power-loss-erase" => chip.power_loss_in_erase = Some(nth.unwrap_or(0)),
            _ if count.is_some() => return Err(format!("{name} takes no number")),
            "no-chip" => chip.absent = true,
            "stuck-low" => chip.miso_stuck_low = true,
            "stuck-busy" => chip.stuck_busy = true,
            "ignore-program" => chip.ignore_program = true,
            _ => self.timing_corrupts = true,
        }
        Ok(())
    }
}
