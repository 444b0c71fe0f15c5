//! MCP3008 samples on a Raspberry Pi 3: the rate, and the parts of a sample's time.
//!
//! *Read first*: [`crate::selection`] for the parts; the figures beside are Scott Ellis's,
//! "Analyzing SPI driver performance on the Raspberry Pi", 2017: the same chip, board and clock.
//!
//! # How it works
//! Conversions of one channel, `batch` of them a prepared message, message after message. A Linux
//! process pays its kernel's ticks; bare metal has none.

use barewire::bus::Bus;
use barewire::chip::mcp3008::{Input, MCP3008};
use barewire::spi::Transfer;

use crate::bring_up::{Charged, any};
use crate::model::signal::Signal;
use crate::selection::Parts;
use crate::{Board, BoardOptions, BoardSpec, SimPlatform};

/// The board, by its name.
pub const BOARD: &str = "rpi3";
/// The clock asked; 3.571 MHz is made.
pub const SPEED_HZ: u32 = 3_600_000;

/// The code that samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Software {
    /// A process under Linux.
    LinuxProcess,
    /// A program that has the processor to itself.
    BareMetal,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Conversions a second.
    pub samples_per_s: f64,
    /// The parts of one conversion's time.
    pub parts: Parts,
}

/// How it samples.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Options of the board that differ from its defaults.
    pub board_options: BoardOptions,
    /// The code that samples.
    pub software: Software,
    /// The clock asked.
    pub speed_hz: u32,
    /// Chip select is inactive for at least so long between two conversions; the converter's own time counts if that
    /// is longer.
    pub cs_inactive_ns: u32,
    /// Conversions of a message.
    pub batch: usize,
    /// Messages.
    pub messages: usize,
}

/// Runs the scenario: `messages` of `batch` conversions.
///
/// # Panics
/// As [`Setup::run`].
#[must_use]
pub fn run(software: Software, batch: usize, messages: usize) -> Sampling {
    let board_options = BoardOptions::default();
    Setup { board_options, software, speed_hz: SPEED_HZ, cs_inactive_ns: 0, batch, messages }.run()
}

impl Setup {
    /// Runs the scenario.
    ///
    /// # Panics
    /// If the clock is beyond the converter's, a conversion fails or is wrong, or a rule of the wire is broken.
    #[must_use]
    pub fn run(self) -> Sampling {
        const LEVEL_UV: i64 = 1_234_000;
        let Self { board_options, software, speed_hz, cs_inactive_ns, batch, messages } = self;
        let board = Board::new(BoardSpec::find(BOARD).expect("the board is there"), board_options);
        let spec = board.spec().adc().expect("the board has a converter");
        let adc = board.attach_adc().expect("the board has a converter");
        adc.borrow_mut().set_input(0, Signal::Constant { level_uv: LEVEL_UV });
        let mut charged = Charged::new(any(&board), board.clone());
        if software == Software::LinuxProcess {
            charged = charged.for_linux_process();
        }
        let bus = Bus::with_platform(charged, &SimPlatform);
        let mut settings =
            MCP3008.settings(spec.cs, speed_hz, spec.supply_mv).expect("within its limits");
        settings.cs_inactive_ns = settings.cs_inactive_ns.max(cs_inactive_ns);
        let device = bus.device(&settings).expect("opens");
        let command = MCP3008.command(Input::Single(0)).expect("a channel it has");
        let mut received = vec![[0; 3]; batch];
        let mut message: Vec<Transfer<'_>> = received
            .iter_mut()
            .map(|rx| Transfer::exchange(command.bytes(), rx).with_cs_change())
            .collect();
        if let Some(last) = message.last_mut() {
            last.cs_change = false;
        }
        let mut prepared = device.prepare_message(&mut message).expect("prepares");
        // The first configures the block.
        prepared.run().expect("runs");
        board.start_selections();
        let expected = LEVEL_UV * 1_024 / i64::from(spec.vref_mv) / 1_000;
        for _ in 0..messages {
            prepared.run().expect("runs");
            for index in 0..batch {
                let code = MCP3008.decode(prepared.rx(index).unwrap_or_default()).expect("answers");
                assert_eq!(i64::from(code), expected);
            }
        }
        let selections = board.take_selections();
        assert!(board.violations().is_empty(), "{:#?}", board.violations());
        let parts = Parts::of(&selections, batch).expect("more than one message");
        Sampling { samples_per_s: 1e6 / parts.sum_us(), parts }
    }
}
