//! `barewire regs dump`: all registers.

use std::collections::HashMap;
use std::fmt::Write as _;

use barewire::regmap::{Location, Map};
use serde::Serialize;

use super::value::{self, Value};
use super::{RegsArgs, Which, registers};
use crate::shared::failure::Failure;
use crate::shared::session::{self, Figures};
use crate::shared::text::figure;

/// Bytes of values in a line of `--raw`.
const RAW_LINE_BYTES: usize = 16;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    regs: RegsArgs,
    /// Print elements of arrays (FIFOs, filters) that are as after a reset, too
    #[arg(long)]
    all: bool,
    /// Print values by address alone
    #[arg(long, conflicts_with_all = ["all", "json"])]
    raw: bool,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    which: Which,
    registers: Vec<Value>,
    #[serde(skip)]
    text: String,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let map = args.regs.chip.map;
    let target = args.regs.target()?;
    session::run(&target.request(), |session| {
        let (mut registers, which) = target.open(session)?;
        let read = registers::read_all(&mut *registers, map)?;
        let text = match args.raw {
            true => raw(map, &read),
            false => table(map, &which, &read, args.all),
        };
        let value = |&(at, value)| Value::new(map.format(), at, value, None);
        Ok(Report { which, registers: read.iter().map(value).collect(), text })
    })
}

impl session::Report for Report {
    fn text(&self, _: Option<&Figures>) -> String {
        self.text.clone()
    }
}

/// A key that an element shares with the elements of the arrays interleaved with its own, such as
/// all registers of FIFO 3.
fn family(at: &Location<'_>) -> Option<(u16, u32, u16)> {
    let register = at.register();
    let step = match register.count() {
        1 => return None,
        _ => register.nth(1).address() - register.nth(0).address(),
    };
    Some((register.count(), step, at.index()))
}

fn table(map: &Map, which: &Which, read: &[(Location<'_>, u32)], all: bool) -> String {
    // Whether any register of this array index is known to differ from its reset value.
    let mut used = HashMap::new();
    for (at, value) in read {
        if let (Some(family), Some(reset)) = (family(at), at.register().reset_value()) {
            *used.entry(family).or_insert(false) |= reset != *value;
        }
    }
    let shown = |at: &Location<'_>| {
        all || family(at).is_none_or(|family| used.get(&family).copied().unwrap_or(true))
    };
    let Which { place, chip_select, chip, effective_speed_hz, .. } = which;
    let mut text = format!(
        "{chip} on {}{}, chip select {chip_select}, at {}\n",
        place.bus,
        place.kind(),
        figure::clock((*effective_speed_hz).into())
    );
    for (at, value) in read.iter().filter(|(at, _)| shown(at)) {
        text += &Value::new(map.format(), *at, *value, None).line();
    }
    text += "* not as after a reset";
    match read.iter().filter(|(at, _)| !shown(at)).count() {
        0 => text.push('\n'),
        hidden => {
            let _ =
                writeln!(text, "; {hidden} registers of unused FIFOs or filters left out (--all)");
        }
    }
    text
}

fn raw(map: &Map, read: &[(Location<'_>, u32)]) -> String {
    let format = map.format();
    let bytes = usize::from(format.val_bits).div_ceil(8);
    let columns = (RAW_LINE_BYTES / bytes) as u32;
    let stride = u32::from(format.reg_stride);
    let hole = "-".repeat(value::hex(format, 0).len());
    let line_of = |address: u32| address / (columns * stride);
    let mut text = String::new();
    for line in
        read.chunk_by(|(one, _), (next, _)| line_of(one.address()) == line_of(next.address()))
    {
        let begin = line_of(line[0].0.address()) * columns * stride;
        let _ = write!(text, "{begin:#05x} ");
        for address in (begin..).step_by(stride as usize).take(columns as usize) {
            let found = line.iter().find(|(at, _)| at.address() == address);
            let cell = found.map_or(hole.clone(), |(_, value)| value::hex(format, *value));
            let _ = write!(text, " {cell}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use barewire::chip::mcp251xfd::MAP;

    use super::*;
    use crate::shared::session::Place;

    /// A dump of all registers at their reset values (5 if unknown), except one that is changed.
    fn dump(changed: &str, to: u32) -> String {
        let mut read: Vec<_> =
            MAP.locations().map(|at| (at, at.register().reset_value().unwrap_or(5))).collect();
        read.sort_by_key(|(at, _)| at.address());
        let changed = MAP.find(changed).expect("a register");
        read.iter_mut().filter(|(at, _)| *at == changed).for_each(|(_, value)| *value = to);
        let place = Place { bus: "spidev:x".into(), simulated: false, emulator: None };
        let (chip, speed_hz) = (MAP.name(), 1_700_000);
        let which = Which { place, chip_select: 0, chip, speed_hz, effective_speed_hz: 1_000_000 };
        table(&MAP, &which, &read, false)
    }

    #[test]
    fn a_fifo_or_filter_in_use_is_shown_with_all_that_is_its() {
        let text = dump("C1FIFOCON3", 0xe060_0480);
        for part in [
            "MCP2518FD on spidev:x, chip select 0, at 1 MHz\n",
            "\n* 0x074  C1FIFOCON3  e0600480  PLSIZE=7 TXAT=3 FRESET TXEN\n",
            "\n  0x078  C1FIFOSTA3  00000000\n",
            "\n  0x07c  C1FIFOUA3   00000005\n",
            "; 162 registers of unused",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert_eq!(text.matches("\n* ").count(), 1 + 1, "the register and the legend:\n{text}");
        let text = dump("C1MASK31", 1);
        assert!(text.contains("  C1FLTOBJ31 ") && text.contains("* 0x2ec  C1MASK31 "), "{text}");
        assert!(!text.contains("C1MASK30"), "{text}");
    }
}
