//! The mapped GPIO chips: each ioctl of a program, run on a simulated board's pins.
//!
//! # How it works
//! A chip's lines are the pads of the board's GPIO block, by number. Lines that drive chip selects belong
//! to the board, as on a real machine they belong to the kernel's SPI driver; a program that asks for one is told
//! by which option it gets a line of its own. If a chip's output pin is
//! wired to a pad, as a CAN controller's INT, the pad's line shows its level.

mod map;
mod pins;

use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;

use barewire_sim::board::spec::GpioSpec;
use barewire_sim::{Board, Pad};
use barewire_spidev_abi::Errno;
use barewire_spidev_abi::gpio::{ChipName, GpioChip, GpioError, LineSpec, Now, Pins as _, tree};
use barewire_spidev_abi::protocol::OpenId;
use rustix::time::{ClockId, clock_gettime};

pub(crate) use map::{GpioMap, check, likely_slip};
use pins::BoardPins;

use super::clock::Clock;
use super::identity::ToldChip;
use crate::shared::failure::Failure;
use crate::shared::output::note;
use crate::shared::session::Session;

struct MappedChip<'s> {
    chip: GpioChip<BoardPins>,
    clock: Rc<Clock<'s>>,
}

/// All chips.
pub(super) struct Gpio<'s> {
    chips: Vec<MappedChip<'s>>,
    verbose: bool,
    quiet: bool,
    told: HashSet<String>,
}

impl<'s> Gpio<'s> {
    /// The chips of `maps` on `sessions`, each with its bus's name, whose clocks are `clocks`. The first looks to programs
    /// like `told`. `verbose` tells why calls fail; `quiet` leaves out the advice for a program that wants a chip select's
    /// line.
    pub(super) fn open(
        maps: &[GpioMap],
        sessions: &[(&str, &'s Session)],
        clocks: &[Rc<Clock<'s>>],
        mut told: Option<&ToldChip>,
        (verbose, quiet): (bool, bool),
    ) -> Result<Self, Failure> {
        let mut chips = Vec::with_capacity(maps.len());
        for map in maps {
            let found = sessions.iter().zip(clocks).find(|((name, _), _)| *name == map.bus);
            let simulated = found.and_then(|((_, session), clock)| {
                session.open.board().map(|simulated| (simulated, clock))
            });
            let Some((simulated, clock)) = simulated else {
                return Err(Failure::Failed(format!("{} is no simulated board", map.bus)));
            };
            let board = &simulated.board;
            if let Some(can) = &simulated.can {
                let connected = board.connect_can_int(&can.chip.borrow());
                connected.map_err(|error| Failure::Failed(format!("{}: {error}", map.bus)))?;
            }
            let pins = BoardPins::new(board)?;
            let told = told.take();
            let own = || board.spec().gpio.first().map_or_else(String::new, GpioSpec::linux_label);
            let label = told.map_or_else(own, |told| told.label.into());
            let chip = GpioChip::new(map.chip, &label, specs(board, pins.lines(), told), pins);
            chips.push(MappedChip { chip, clock: clock.clone() });
        }
        Ok(Self { chips, verbose, quiet, told: HashSet::new() })
    }

    /// Adds the chips to `tree`, which stands in for `/`.
    pub(super) fn make_tree(&self, dir: &Path) -> Result<(), Failure> {
        let names: Vec<ChipName> = self.chips.iter().map(|mapped| mapped.chip.name()).collect();
        let failed = |error| Failure::io("write a temporary directory", &error);
        tree::make(dir, &names).map_err(failed)
    }

    /// The index of a chip.
    pub(super) fn find(&self, name: ChipName) -> Option<usize> {
        self.chips.iter().position(|mapped| mapped.chip.name() == name)
    }

    /// A chip's name.
    pub(super) fn name(&self, index: usize) -> Option<ChipName> {
        self.chips.get(index).map(|mapped| mapped.chip.name())
    }

    /// An ioctl of an open file of the chip, or of its lines.
    pub(super) fn ioctl(
        &mut self,
        index: usize,
        file: OpenId,
        number: u32,
        body: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        let MappedChip { chip, clock } = self.chips.get_mut(index).ok_or(Errno::BADF)?;
        let answer = clock.during(|| chip.ioctl(file, number, body, &now()));
        let path = chip.name().path();
        let pad = |line| u8::try_from(line).ok().map(|bit| Pad { block: 0, bit });
        let board = chip.pins().board();
        let advice = |line| {
            let cs = board.line_at(pad(line)?)?;
            Some(format!(
                "{path}: line {line} is busy: the SPI controller has it as chip select {cs}. For a program that \
                 selects chips itself, add to the bus in --map and --map-gpio: select={cs}:PIN (another pin), \
                 select={cs}:{line} (this one), or no-cs (all of them)"
            ))
        };
        answer.map_err(|GpioError { errno, why, of_board }| {
            let why = why.filter(|_| self.verbose).map(|why| format!("{path}: {errno}: {why}"));
            let advice = of_board.filter(|_| !self.quiet).and_then(advice);
            for text in [why, advice].into_iter().flatten() {
                if self.told.insert(text.clone()) {
                    note!("barewire: {text}");
                }
            }
            errno
        })
    }

    /// An open file of the chip, or of its lines, was closed.
    pub(super) fn closed(&mut self, index: usize, file: OpenId) {
        if let Some(mapped) = self.chips.get_mut(index) {
            mapped.chip.closed(file, &now());
        }
    }

    /// Whether something is to be done without a request.
    pub(super) fn waits(&self) -> bool {
        self.chips.iter().any(|mapped| mapped.chip.is_watching() || mapped.chip.has_packets())
    }

    /// Reads the level of all watched lines now, and sends the events to their files until `send` has no
    /// more room.
    pub(super) fn look(&mut self, send: &mut dyn FnMut(OpenId, &[u8]) -> bool) {
        for MappedChip { chip, clock } in &mut self.chips {
            if chip.is_watching() {
                clock.during(|| chip.look(&now()));
            }
            if chip.has_packets() {
                chip.deliver(send);
            }
        }
    }
}

/// The lines of a board that has `pins`, with their names and its own uses. A chip that is told to be another board's has that
/// board's names, and its number of lines: those that are more than the pins have none.
fn specs(board: &Board, pins: u32, told: Option<&ToldChip>) -> Vec<LineSpec> {
    let lines = told.map_or(0, |told| told.lines).max(pins);
    let own = |bit| board.spec().gpio.first().map_or_else(String::new, |gpio| gpio.pad_name(bit));
    let of_line = |bit| LineSpec {
        name: match told {
            Some(told) => told.names.get(usize::from(bit)).copied().unwrap_or_default().into(),
            None => own(bit),
        },
        used_as: board.line_at(Pad { block: 0, bit }).map(|cs| format!("spi0 CS{cs}")),
    };
    (0..).take(lines as usize).map(of_line).collect()
}

fn now() -> Now {
    let read = |clock| {
        let time = clock_gettime(clock);
        let [seconds, nanoseconds] = [time.tv_sec, time.tv_nsec].map(i64::unsigned_abs);
        seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
    };
    Now { monotonic_ns: read(ClockId::Monotonic), realtime_ns: read(ClockId::Realtime) }
}
