//! A simulated board's pads as a GPIO chip's pins.
//!
//! # How it works
//! Levels are read and driven by the GPIO block's registers, at their cost, as a kernel's driver would. A look
//! at a watched line costs no time, since on a real board an interrupt controller looks. If the wire is
//! recorded, a pad that a program makes an output is recorded from then on.

use barewire_sim::bring_up::GpioLines;
use barewire_sim::{Board, Pad};
use barewire_spidev_abi::gpio::{Look, Pins};

use crate::shared::failure::Failure;

/// The GPIO block that has the lines, on all boards.
const BLOCK: u8 = 0;
const PS_PER_NS: u64 = 1_000;

/// The pads of a board.
pub(super) struct BoardPins {
    board: Board,
    lines: GpioLines,
}

impl BoardPins {
    pub(super) fn new(board: &Board) -> Result<Self, Failure> {
        let lines = GpioLines::new(board, BLOCK).ok_or_else(|| {
            Failure::Failed(format!("sim:{} has no GPIO pins to be mapped", board.spec().name))
        })?;
        Ok(Self { board: board.clone(), lines })
    }

    /// The board.
    pub(super) fn board(&self) -> &Board {
        &self.board
    }

    fn pad(line: u32) -> Pad {
        // Below 32.
        Pad { block: BLOCK, bit: bit(line) }
    }
}

fn bit(line: u32) -> u8 {
    u8::try_from(line).unwrap_or(u8::MAX)
}

impl Pins for BoardPins {
    fn lines(&self) -> u32 {
        self.lines.lines().into()
    }

    fn level(&mut self, line: u32) -> bool {
        self.lines.level(bit(line))
    }

    fn output(&mut self, line: u32, high: bool) {
        let pad = Self::pad(line);
        if let Some(block) = self.board.spec().gpio.get(usize::from(BLOCK)) {
            self.board.record(pad, &block.pad_name(pad.bit));
        }
        self.lines.output(bit(line), high);
    }

    fn drive(&mut self, mask: u64, levels: u64) {
        for high in [true, false] {
            let pins = mask & if high { levels } else { !levels };
            // Only the low half has lines.
            if let Ok(pins @ 1..) = u32::try_from(pins) {
                self.lines.drive(pins, high);
            }
        }
    }

    fn input(&mut self, line: u32) {
        self.lines.input(bit(line));
    }

    fn pull(&mut self, line: u32, up: bool) {
        self.board.pull(Self::pad(line), up);
    }

    fn look(&mut self, line: u32) -> Look {
        let (level, since_ps) = self.board.look_at(Self::pad(line));
        let now_ps = self.board.engine().now_ps();
        let asserted = since_ps.map(|ps| (ps, now_ps.saturating_sub(ps) / PS_PER_NS));
        Look { level, asserted }
    }
}
