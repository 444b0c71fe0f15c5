//! Predictions: figures of barewire on boards that nobody has measured.
//!
//! *Read first*: docs/measured.md. `lab/predictions.csv` has them as they were frozen, and is never written anew.
//!
//! # How it works
//! Each board has a flash chip, an MCP2518FD and an MCP3008 (`lab/predictions/`). Its costs are those of [`Costs::process`], so the
//! figures share one physics with the lab's. A band goes from the smallest to the largest of the sets of costs that the
//! lab's fit leaves, and of the board's own costs at both ends: the rule of [`crate::messages`], by which nine of eleven
//! figures not seen before are in their bands.
//!
//! # Not supported
//! Idle states, clocks that change, other work on the processor.

mod rpi4;

use std::path::Path;

use barewire::bus::Bus;
use barewire::chip::mcp3008::{Input, MCP3008};
use barewire::spi::Settings;
use barewire_sim::bring_up::{Charged, any};
use barewire_sim::chip::Ps;
use barewire_sim::profile::{CostLevel, Profile};
use barewire_sim::{Board, BoardOptions, BoardSpec, SimPlatform};

use crate::band::Band;
use crate::cost::Costs;
use crate::ours::echoed;
use crate::regime::Regime;

/// SPI's clock of an access, at most.
const ACCESS_HZ: u32 = 20_000_000;
/// Of the echo.
const ECHO_HZ: u32 = 16_000_000;
/// Of the converter, at 5 V.
const ADC_HZ: u32 = 3_600_000;
/// Calls that a mean is of.
const CALLS: u32 = 1_000;
/// Frames of the echo, and the time from one to the next.
const FRAMES: (u64, Ps) = (4, 10_000_000_000);

const BOARDS: [(&str, &str); 5] = [
    ("imx8mp", include_str!("../../predictions/imx8mp.toml")),
    ("rpi4", include_str!("../../predictions/rpi4.toml")),
    ("rpi5", include_str!("../../predictions/rpi5.toml")),
    ("beaglebone", include_str!("../../predictions/beaglebone.toml")),
    ("zynq", include_str!("../../predictions/zynq.toml")),
];

/// Figure, unit, regime, and the command that measures it on a board.
const FIGURES: [(&str, &str, &str, &str); 5] = [
    ("register-read", "ns", "any", "a loop of reads of the controller's status through the map"),
    ("access-4", "us", "in a loop", "barewire bench --board BUS --speed-hz 20M: row prepared 4"),
    ("echo-int-low", "us", "after idle", CAN),
    ("echo-gap", "us", "after idle", CAN),
    (
        "mcp3008-rate",
        "1/s",
        "in a loop",
        "barewire adc stream --bus BUS --channel 0 --speed-hz 3600000",
    ),
];
/// The thread's echo: a frame of 8 bytes every 10 ms at 250 kbit/s, one process beside the chip and one behind sockets.
const CAN: &str =
    "barewire can bridge --bus BUS --int LINE --iface vcan0; canecho vcan0; a logic analyzer";

/// A prediction: a line of `lab/predictions.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The board: a file of `lab/predictions/`.
    pub board: String,
    /// What is predicted: `access-4`.
    pub figure: String,
    /// Its unit: `ns`, `us` or `1/s`.
    pub unit: String,
    /// The figure and its range, in that unit.
    pub band: Band,
    /// What the code did a moment before: `after idle`, `in a loop`, or `any`.
    pub regime: String,
    /// How it is measured on a board.
    pub command: String,
}

/// The predictions as they were frozen.
///
/// # Panics
/// If the embedded file is malformed, which a test excludes.
#[must_use]
pub fn frozen() -> Vec<Prediction> {
    read(include_str!("../../predictions.csv")).expect("predictions.csv")
}

/// The predictions of a file: lines of board, figure, unit, low, used, high, regime, command, behind remarks and a line of names.
///
/// # Errors
/// At the first line that is not one, with its number.
pub fn read(text: &str) -> Result<Vec<Prediction>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    let one = |(at, line): (usize, &str)| {
        let fields: Vec<&str> = line.split(',').collect();
        let [board, figure, unit, low, used, high, regime, command] = fields[..] else {
            return Err(format!("line {}: {} fields, not 8", at + 1, fields.len()));
        };
        let number = |text: &str| {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            number.ok_or(format!("line {}: {text:?} is no number", at + 1))
        };
        let band = Band { low: number(low)?, used: number(used)?, high: number(high)? };
        let [board, figure, unit, regime, command] =
            [board, figure, unit, regime, command].map(String::from);
        Ok(Prediction { board, figure, unit, band, regime, command })
    };
    lines.skip(1).map(one).collect()
}

/// The same by the costs that the lab has today.
///
/// # Panics
/// If an embedded board is malformed or its chips do not answer.
#[must_use]
pub fn today() -> Vec<Prediction> {
    let (costs, draws) = (Costs::fitted(), Costs::drawn());
    let mut all = Vec::new();
    for (name, text) in BOARDS {
        let spec = BoardSpec::from_toml(name, text, Path::new(""));
        let spec = spec.unwrap_or_else(|error| panic!("predictions/{name}.toml: {error}"));
        let profile = if name == "rpi4" { rpi4::profile() } else { spec.profile.clone() };
        let used = figures(spec, &profile, &costs);
        let ends = [CostLevel::Low, CostLevel::High].map(|level| profile.at(level));
        let others = draws.iter().map(|costs| figures(spec, &profile, costs));
        let others: Vec<_> =
            others.chain(ends.iter().map(|end| figures(spec, end, &costs))).collect();
        for (at, (figure, unit, regime, command)) in FIGURES.into_iter().enumerate() {
            let band = Band::over(used[at], others.iter().map(|one| one[at]));
            let [board, figure, unit, regime, command] =
                [name, figure, unit, regime, command].map(String::from);
            all.push(Prediction { board, figure, unit, band, regime, command });
        }
    }
    all
}

/// The figures of a board in the order of [`FIGURES`].
fn figures(spec: &'static BoardSpec, of: &Profile, costs: &Costs) -> [f64; FIGURES.len()] {
    let looped = costs.process(of, Regime::InALoop);
    let idle = costs.process(of, Regime::AfterIdle);
    let echo = echoed(spec, idle, FRAMES, ECHO_HZ).expect("the chip answers");
    let p50 = |times: Option<barewire_sim::scenario::can_echo::Spread>| {
        times.expect("frames were echoed").p50_us
    };
    let flash = Settings::new(spec.flash().cs, ACCESS_HZ);
    let adc = spec.adc().expect("a converter");
    let sampled = MCP3008.settings(adc.cs, ADC_HZ, adc.supply_mv).expect("within its limits");
    let command = MCP3008.command(Input::Single(0)).expect("a channel it has");
    let mut sample = [0; 3];
    sample.copy_from_slice(command.bytes());
    [
        looped.register_read_ps.value as f64 / 1e3,
        call_us(spec, &looped, &flash, [0x9f, 0, 0, 0]),
        p50(echo.int_low),
        p50(echo.rx_eof_to_tx_sof),
        1e6 / call_us(spec, &looped, &sampled, sample),
    ]
}

/// The mean time of a prepared message by a Linux process, call after call.
fn call_us<const N: usize>(
    spec: &'static BoardSpec,
    profile: &Profile,
    settings: &Settings,
    tx: [u8; N],
) -> f64 {
    let options = BoardOptions { profile: Some(profile.clone()), ..BoardOptions::default() };
    let board = Board::new(spec, options);
    board.attach_flash(None).expect("a flash");
    board.attach_adc().expect("a converter");
    let charged = Charged::new(any(&board), board.clone()).for_linux_process();
    let bus = Bus::with_platform(charged, &SimPlatform);
    let device = bus.device(settings).expect("opens");
    let mut prepared = device.prepare(tx).expect("prepares");
    // The first configures the block.
    prepared.run().expect("runs");
    let before_ps = board.engine().now_ps();
    for _ in 0..CALLS {
        prepared.run().expect("runs");
    }
    let took_ps = board.engine().now_ps() - before_ps;
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    took_ps as f64 / f64::from(CALLS) / 1e6
}
