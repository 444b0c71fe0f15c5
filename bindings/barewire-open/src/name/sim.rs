//! `sim:BOARD[,option[=value]]…`: a simulated board, its flash file, and faults to inject.

use std::path::{Path, PathBuf};

use barewire_sim::board::spec::BOARDS;
use barewire_sim::model::BlockOptions;
use barewire_sim::model::bcm2835::{self, Done};
use barewire_sim::model::ecspi::{self, Dry, Over, Readings};
use barewire_sim::model::gpio::pl061::{self, InputLevel};
use barewire_sim::model::mcp2518fd::ChipFaults;
use barewire_sim::model::nor::{NorFaults, Part};
use barewire_sim::model::signal::SignalSpec;
use barewire_sim::profile::CostLevel;
use barewire_sim::{BoardOptions, BoardSpec, Faults};

use super::{OledOptions, WiringOptions, oled, read_options, wiring};
use crate::files::NamedFile;
use crate::{near, number};

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
    /// Which costs it charges. The name does not say.
    pub costs: CostLevel,
    /// Whether the flash's file is made if there is none. The name does not say.
    pub makes_files: bool,
    /// How BCM2835's SPI0 treats DONE when the driver does not write it.
    pub done: Done,
    /// The effect of a level that is written to an input of PL061.
    pub input_level: InputLevel,
    /// How an ECSPI behaves where its manual does not say.
    pub ecspi: Readings,
}

impl SimOptions {
    /// Options of the board that differ from its defaults.
    pub fn board_options(&self) -> BoardOptions {
        BoardOptions {
            profile: Some(self.board.profile.at(self.costs)),
            faults: Faults { timing_corrupts: self.faults.timing_corrupts },
            jitter_ps: self.jitter_ns.saturating_mul(PS_PER_NS),
            seed: self.seed,
            blocks: self.block_options(),
            ..BoardOptions::default()
        }
    }

    /// The flash chip: the one asked for, else the board's.
    #[must_use]
    pub fn part(&self) -> Part {
        self.flash_part.as_deref().cloned().unwrap_or_else(self.board.flash().part)
    }

    /// The files that its options name.
    pub(crate) fn files(&self) -> Vec<NamedFile<'_>> {
        let flash = self.flash.iter().map(|path| NamedFile { by: "flash=", path: path.as_path() });
        let signals = self.inputs.iter().filter_map(|(_, signal)| match signal {
            SignalSpec::File { path, .. } => {
                Some(NamedFile { by: "input=", path: Path::new(path) })
            }
            SignalSpec::Ready(_) => None,
        });
        let picture = self.oled.iter().filter_map(|oled| oled.picture.as_deref());
        let picture = picture.map(|path| NamedFile { by: "oled=", path });
        flash.chain(signals).chain(picture).collect()
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

const OPTIONS: [&str; 18] = [
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

/// The boards' names.
pub(crate) fn board_names() -> [&'static str; BOARDS.len()] {
    BOARDS.each_ref().map(|board| board.name)
}

/// Reads what follows `sim:`.
pub(crate) fn parse(text: &str) -> Result<SimOptions, String> {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default();
    let board = BOARDS
        .iter()
        .find(|board| board.name == name)
        .ok_or_else(|| near::unknown("simulated board", name, &board_names()))?;
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
        costs: CostLevel::Used,
        makes_files: true,
        done: Done::default(),
        input_level: InputLevel::default(),
        ecspi: Readings::default(),
    };
    let mut all = false;
    read_options(parts, &OPTIONS, |key, value| {
        all |= (key, value) == ("protect", "all");
        options.set(key, value)
    })?;
    options.check_jumper()?;
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

    /// Refuses options of a flash that a jumper replaces.
    fn check_jumper(&self) -> Result<(), String> {
        let flash = self.board.flash().cs;
        if self.wiring.jumper != Some(flash) {
            return Ok(());
        }
        let of_flash = [
            ("flash=", self.flash.is_some()),
            ("flash-part=", self.flash_part.is_some()),
            ("protect=", self.status.is_some()),
        ];
        match of_flash.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((option, _)) => {
                Err(format!("jumper={flash} is in the place of the flash: leave {option} out"))
            }
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
