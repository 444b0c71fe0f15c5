//! Puts the caller's own chip model on a simulated board, in one call.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use barewire::bus::{Bus, OwnedDevice};
use barewire::hal::Delay;
use barewire::spi::{Error, Settings};

use super::{AnyController, Charged, SimInput, SimOutput, bus, input, output};
use crate::board::shipped::UnknownBoard;
use crate::board::{Board, BoardOptions, BoardSpec, ChipLines, LineError, Pad, SimTimer};
use crate::check::Violation;
use crate::chip::{Chip, Ps};
use crate::vcd::Capture;

/// The bus of a simulated board.
pub type SimBus = Bus<Charged<AnyController>>;

/// Why a bench could not be set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BenchError {
    /// There is no board of this name.
    Board(UnknownBoard),
    /// A line could not be connected.
    Line(LineError),
    /// The board's controller cannot do what the settings ask for.
    Settings(Error),
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Board(error) => error.fmt(f),
            Self::Line(error) => error.fmt(f),
            Self::Settings(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BenchError {}

/// A board with one chip on it: its bus, and what happened on the wire.
pub struct ChipBench<C> {
    /// The board, recording.
    pub board: Board,
    /// Its bus, under the shipped driver.
    pub bus: Rc<SimBus>,
    /// The chip. Borrow it only while nothing runs on the wire.
    pub chip: Rc<RefCell<C>>,
    /// The interrupt lines of the chip's output pins.
    pub lines: ChipLines,
    settings: Settings,
}

/// What happened on a [`ChipBench`].
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The rules that were broken, the chip's complaints among them; oldest first.
    pub violations: Vec<Violation>,
    /// The recording of the wire and of the chip's input pins.
    pub capture: Capture,
    /// The virtual time since the bench was set up or last finished, in picoseconds.
    pub elapsed_ps: Ps,
}

/// Puts `chip` on the board of that name (`"imx8mp"`, `"rpi3"`, …), behind the chip select of
/// `settings`, connects `lines` as [`Board::attach_with_lines`] and starts a recording.
///
/// ```
/// use barewire::spi::{Settings, Transfer};
/// use barewire_sim::bring_up;
/// use barewire_sim::chip::NO_LIMITS;
/// use barewire_sim::model::echo::Echo;
///
/// let bench = bring_up::bench("rpi3", &Settings::new(0, 1_000_000), Echo::new(NO_LIMITS), &[])?;
/// bench.device().device().sync(&mut [Transfer::write(&[0xa5])])?;
/// bench.assert_clean();
/// assert!(bench.finish().capture.vcd.starts_with(b"$comment"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`BenchError`].
pub fn bench<C: Chip + 'static>(
    board: &str,
    settings: &Settings,
    chip: C,
    lines: &[(&str, Pad)],
) -> Result<ChipBench<C>, BenchError> {
    let spec = BoardSpec::find(board).map_err(BenchError::Board)?;
    let board = Board::new(spec, BoardOptions::default());
    let chip = Rc::new(RefCell::new(chip));
    let attached = board.attach_with_lines(settings.chip_select, chip.clone(), lines);
    let lines = attached.map_err(BenchError::Line)?;
    let bus = Rc::new(bus(&board));
    bus.device(settings).map_err(BenchError::Settings)?;
    board.reset_marks();
    board.start_vcd();
    Ok(ChipBench { board, bus, chip, lines, settings: *settings })
}

impl<C> ChipBench<C> {
    /// The device of the bench's settings. Drivers for `embedded-hal` take it as it is.
    #[must_use]
    pub fn device(&self) -> OwnedDevice<Rc<SimBus>> {
        OwnedDevice::new(self.bus.clone(), &self.settings).expect("opened once already")
    }

    /// `pad` as an output, already at `high`: an `embedded-hal` `OutputPin`.
    ///
    /// # Panics
    /// As [`output`].
    #[must_use]
    pub fn output(&self, pad: Pad, high: bool) -> SimOutput {
        output(&self.board, pad, high)
    }

    /// `pad` as an input: an `embedded-hal` `InputPin`.
    ///
    /// # Panics
    /// As [`input`].
    #[must_use]
    pub fn input(&self, pad: Pad) -> SimInput {
        input(&self.board, pad)
    }

    /// A delay in virtual time: an `embedded-hal` `DelayNs`.
    #[must_use]
    pub fn delay(&self) -> Delay<SimTimer> {
        Delay::new(self.board.timer())
    }

    /// What happened since the bench was set up or last finished. The recording, the time and the
    /// violations start anew.
    #[must_use]
    pub fn finish(&self) -> Outcome {
        let elapsed_ps = self.board.elapsed_ps();
        let violations = self.board.violations();
        let capture = self.board.take_vcd().expect("recording since set-up");
        self.board.clear_violations();
        self.board.reset_marks();
        self.board.start_vcd();
        Outcome { violations, capture, elapsed_ps }
    }

    /// Asserts that no rule that [harms](crate::Rule::harms) was broken.
    ///
    /// # Panics
    /// With the list, if one was.
    #[track_caller]
    pub fn assert_clean(&self) {
        let harms = self.board.violations().into_iter().filter(|one| one.rule.harms());
        let harms: Vec<String> = harms.map(|one| one.to_string()).collect();
        assert!(harms.is_empty(), "{} violations:\n{}", harms.len(), harms.join("\n"));
    }
}

impl<C> fmt::Debug for ChipBench<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChipBench").field("board", &self.board).finish_non_exhaustive()
    }
}
