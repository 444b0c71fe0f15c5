//! `barewire list`: lists the buses and the chips on them.
//!
//! Simulated boards are in this file; QEMU's are in [`qemu`], this machine's own in [`machine`], the flash chips that
//! any simulated board can have in [`flash_parts`].

mod flash_parts;
mod machine;
mod qemu;

use std::borrow::Cow;
use std::fmt::Write as _;

use barewire::chip::mcp251xfd::Oscillator;
use barewire::controller::{Controller, Limits};
use barewire_linux::Root;
use barewire_sim::board::boards;
use barewire_sim::board::spec::{AdcSpec, CanSpec, ChipSpec, CsSpec};
use barewire_sim::bring_up::any;
use barewire_sim::chip::Chip;
use barewire_sim::model::max7219::Max7219;
use barewire_sim::model::nor::Part;
use barewire_sim::model::ssd1306::Ssd1306;
use barewire_sim::model::tsc2046::{TouchOptions, Tsc2046};
use barewire_sim::profile::{Figure, Source};
use barewire_sim::wire::Driver;
use barewire_sim::{Board, BoardOptions, BoardSpec, Pad};
use serde::Serialize;

use machine::Machine;

use crate::shared::bus_name;
use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::text::figure;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// This simulated board alone: its name, or the file of your own
    #[arg(value_name = "BOARD", conflicts_with_all = ["flash_parts", "versions"])]
    board: Option<String>,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
    /// Print what each board's accesses cost, each figure with its source
    #[arg(long)]
    costs: bool,
    /// Print the flash chips that a simulated board can have (`flash-part=`), each with its source
    #[arg(long, conflicts_with = "costs")]
    flash_parts: bool,
    /// Ask each of QEMU's programs for its version, which takes up to half a second each
    #[arg(long)]
    versions: bool,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct List {
    buses: Vec<Bus>,
    machine: Machine,
}

/// A board of the simulator or of QEMU.
#[derive(Serialize)]
#[serde(untagged)]
enum Bus {
    Sim(Entry),
    Qemu(qemu::Entry),
}

#[derive(Serialize)]
struct Entry {
    bus: String,
    simulated: bool,
    title: &'static str,
    controller: &'static str,
    controller_base: u64,
    min_speed_hz: u32,
    max_speed_hz: u32,
    bits_per_word: Vec<u32>,
    delay_quantum_ns: u64,
    chip_selects: Vec<ChipSelect>,
    profile: &'static str,
    costs: Vec<Cost>,
}

#[derive(Serialize)]
struct ChipSelect {
    chip_select: u8,
    line: Cow<'static, str>,
    driver: &'static str,
    active_high: bool,
    chip: Option<BoardChip>,
}

#[derive(Serialize)]
struct BoardChip {
    name: &'static str,
    /// Bytes of a flash.
    size: Option<usize>,
    /// Channels of a converter.
    channels: Option<u8>,
    /// The oscillator of a CAN controller.
    oscillator_hz: Option<u32>,
    /// How many chips are in a chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_a_chain: Option<u8>,
    /// The board's pins at pins of the chip.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pins: Vec<ChipPin>,
    max_speed_hz: Option<u32>,
}

#[derive(Serialize)]
struct ChipPin {
    pin: &'static str,
    at: String,
}

/// The pins of a chip that are at pins of the board.
fn named_pins<const N: usize>(
    spec: &BoardSpec,
    pins: [(&'static str, Option<Pad>); N],
) -> Vec<ChipPin> {
    let at = |pad: Pad| spec.gpio[usize::from(pad.block)].pad_name(pad.bit);
    pins.into_iter().filter_map(|(pin, pad)| pad.map(|pad| ChipPin { pin, at: at(pad) })).collect()
}

#[derive(Serialize)]
struct Cost {
    figure: &'static str,
    value: u64,
    low: u64,
    high: u64,
    unit: &'static str,
    source: &'static str,
    low_source: &'static str,
    high_source: &'static str,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.flash_parts {
        return flash_parts::run(args.json);
    }
    if let Some(name) = &args.board {
        return one(name, args);
    }
    let sim = boards().map(|spec| Bus::Sim(Entry::of(spec)));
    let mut versions = args.versions.then(qemu::Versions::default);
    let qemu = |spec| Bus::Qemu(qemu::Entry::of(spec, versions.as_mut()));
    let qemu = barewire_qemu::BOARDS.iter().map(qemu);
    let machine = Machine::of(&Root::system());
    let list = List { buses: sim.chain(qemu).collect(), machine };
    if args.json {
        return output::json(&list);
    }
    let text = |bus: &Bus| match bus {
        Bus::Sim(entry) => Some(entry.text(args.costs)),
        // With `--costs` QEMU's boards are left out: their costs are not known.
        Bus::Qemu(entry) => (!args.costs).then(|| entry.text()),
    };
    let mut texts: Vec<String> = list.buses.iter().filter_map(text).collect();
    if !args.costs {
        texts.push(list.machine.text());
        texts.push("All costs, each with its source: barewire list --costs\n".into());
    }
    output::text(&texts.join("\n"))
}

/// Lists one simulated board.
fn one(name: &str, args: &Args) -> Result<(), Failure> {
    let name = name.strip_prefix("sim:").unwrap_or(name);
    let entry = Entry::of(bus_name::sim_board(name).map_err(Failure::Usage)?);
    if args.json {
        return output::json(&entry);
    }
    output::text(&entry.text(args.costs))
}

impl Entry {
    fn of(spec: &'static BoardSpec) -> Self {
        let board = Board::new(spec, BoardOptions::default());
        let Limits { max_speed_hz, min_speed_hz, bits_per_word_mask, timer_hz, .. } =
            any(&board).limits();
        Self {
            bus: format!("sim:{}", spec.name),
            simulated: true,
            title: spec.title,
            controller: spec.controller,
            controller_base: spec.controller_base,
            min_speed_hz,
            max_speed_hz,
            bits_per_word: (1..=32)
                .filter(|bits| bits_per_word_mask >> (bits - 1) & 1 != 0)
                .collect(),
            delay_quantum_ns: barewire::time::effective_ns(1, timer_hz),
            chip_selects: (0..).zip(spec.cs).map(|(n, cs)| ChipSelect::of(spec, n, cs)).collect(),
            profile: spec.profile.name,
            costs: spec.profile.sources().map(|row| Cost::of(&row)).into(),
        }
    }

    fn text(&self, costs: bool) -> String {
        let mut text = format!("{:<14}  {}, simulated\n", self.bus, self.title);
        if costs {
            self.costs.iter().for_each(|cost| text += &cost.text());
            return text;
        }
        let bits: Vec<String> = self.bits_per_word.iter().map(u32::to_string).collect();
        let [slowest, fastest] =
            [self.min_speed_hz, self.max_speed_hz].map(|hz| figure::clock(hz.into()));
        let _ = writeln!(
            text,
            "  controller    {} at {:#x}, {slowest} to {fastest}, words of {} bits",
            self.controller,
            self.controller_base,
            bits.join(", ")
        );
        for cs in &self.chip_selects {
            let behind = match &cs.chip {
                Some(chip) => chip.text(),
                None => "nothing attached".into(),
            };
            let ChipSelect { chip_select, line, driver, .. } = cs;
            let _ = writeln!(text, "  --cs {chip_select}        {line} ({driver}): {behind}");
        }
        let cost = |name: &str| {
            let found = self.costs.iter().find(|cost| cost.figure == name);
            figure::time(found.map_or(0.0, |cost| cost.value as f64 / 1e3))
        };
        let _ = writeln!(
            text,
            "  costs         register read {}, write {}; delays in steps of {} ns",
            cost("register_read_ps"),
            cost("register_write_ps"),
            self.delay_quantum_ns
        );
        text
    }
}

impl Cost {
    fn of(row: &Source) -> Self {
        let Figure { value, low, high, source, low_source, high_source } = row.figure;
        let Source { field, unit, .. } = *row;
        Self { figure: field, value, low, high, unit, source, low_source, high_source }
    }

    fn text(&self) -> String {
        let Self { figure, value, low, high, unit, source, low_source, high_source } = self;
        let [value, low_text, high_text] = [value, low, high].map(|&cost| figure::grouped(cost));
        let mut text = format!("  {figure:<24}{value:>14}");
        let ranged = self.low < self.value || self.value < self.high;
        if ranged {
            let _ = write!(text, " ({low_text}–{high_text})");
        }
        let _ = writeln!(text, " {unit}\n      {source}");
        if ranged {
            let _ = writeln!(text, "      {low_text}: {low_source}");
            let _ = writeln!(text, "      {high_text}: {high_source}");
        }
        text
    }
}

impl BoardChip {
    /// The board's chip behind a chip select; `None` if there is none.
    fn behind(chip_select: u8, spec: &BoardSpec) -> Option<Self> {
        Some(match spec.chip_at(chip_select)? {
            ChipSpec::Flash(row) => Self::flash(&(row.part)()),
            ChipSpec::Adc(row) => Self::adc(row),
            ChipSpec::Can(row) => Self::can(spec, row),
            ChipSpec::Touch(row) => Self {
                pins: named_pins(spec, [("PENIRQ", row.int)]),
                ..Self::of("TSC2046", &Tsc2046::new(TouchOptions::default()))
            },
            ChipSpec::Display(row) => Self {
                pins: named_pins(spec, [("D/C#", Some(row.dc)), ("RES#", Some(row.reset))]),
                ..Self::of("SSD1306", &Ssd1306::new())
            },
            ChipSpec::Leds(row) => {
                Self { in_a_chain: Some(row.chips), ..Self::of("MAX7219", &Max7219::new(1)) }
            }
            ChipSpec::Jumper(_) => Self::named("a wire from MOSI to MISO"),
        })
    }

    fn of(name: &'static str, chip: &dyn Chip) -> Self {
        Self { max_speed_hz: Some(chip.limits().max_clock_hz), ..Self::named(name) }
    }

    fn named(name: &'static str) -> Self {
        Self {
            name,
            size: None,
            channels: None,
            oscillator_hz: None,
            in_a_chain: None,
            pins: Vec::new(),
            max_speed_hz: None,
        }
    }

    fn flash(part: &Part) -> Self {
        let max_speed_hz = Some(part.limits.max_clock_hz);
        Self { size: Some(part.size), max_speed_hz, ..Self::named(part.name) }
    }

    fn adc(row: &AdcSpec) -> Self {
        let AdcSpec { part, supply_mv, .. } = *row;
        let max_speed_hz = Some(part.limits(supply_mv).max_clock_hz);
        Self { channels: Some(part.channels()), max_speed_hz, ..Self::named(part.name()) }
    }

    fn can(spec: &BoardSpec, row: &CanSpec) -> Self {
        let CanSpec { part, oscillator_hz, int, .. } = *row;
        let max_speed_hz = Some(Oscillator::new(oscillator_hz).spi_max_hz());
        let oscillator_hz = Some(oscillator_hz);
        let pins = named_pins(spec, [("INT", int)]);
        Self { oscillator_hz, pins, max_speed_hz, ..Self::named(part.name()) }
    }

    fn text(&self) -> String {
        let mut text = String::from(self.name);
        if let Some(size) = self.size {
            let _ = write!(text, ", {}", figure::size(size as u64));
        }
        if let Some(channels) = self.channels {
            let _ = write!(text, ", {channels} channels");
        }
        if let Some(hz) = self.oscillator_hz {
            let _ = write!(text, " at {}", figure::clock(hz.into()));
        }
        if let Some(chips) = self.in_a_chain.filter(|&chips| chips > 1) {
            let _ = write!(text, ", {chips} in a chain");
        }
        for ChipPin { pin, at } in &self.pins {
            let _ = write!(text, ", {pin} at {at}");
        }
        if let Some(hz) = self.max_speed_hz {
            let _ = write!(text, ", up to {}", figure::clock(hz.into()));
        }
        text
    }
}

impl ChipSelect {
    fn of(spec: &BoardSpec, chip_select: u8, cs: &CsSpec) -> Self {
        Self {
            chip_select,
            line: cs.name.into(),
            driver: match cs.driver {
                _ if cs.by_program || spec.no_cs => "the program",
                Driver::Native(_) => "native",
                Driver::Gpio { .. } => "gpio",
            },
            active_high: cs.active_high,
            chip: BoardChip::behind(chip_select, spec),
        }
    }
}
