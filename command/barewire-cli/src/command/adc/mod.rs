//! `barewire adc`: read and stream an analog-to-digital converter of the MCP3008 family.

mod capture;
mod plot;
mod published;
mod read;
mod signal;
mod stream;
mod which_part;

use std::ops::RangeInclusive;

use barewire::bus::Device;
use barewire::chip::mcp3008::{AdcError, Input, PARTS, Part};
use barewire::controller::Controller;
use barewire::spi::Settings;
use serde::Serialize;

use crate::shared::bus_name::{self, BusName};
use crate::shared::failure::Failure;
use crate::shared::real_time::RealTimeArgs;
use crate::shared::session::{ChipRequest, EndState, Place, Request, Session, TellArgs};
use crate::shared::text::{near, number};

/// `barewire adc`.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Verb {
    /// Convert each input once
    Read(read::Args),
    /// Convert the inputs again and again, and tell how fast that went, what the time was made of,
    /// and what the signal was
    Stream(stream::Args),
}

/// What both take.
#[derive(clap::Args, Clone, Debug)]
struct AdcArgs {
    /// The bus, as for the other commands; sim:rpi3 has a converter
    #[arg(long, value_name = "BUS", env = "BAREWIRE_BUS")]
    bus: String,
    /// The chip select, by its number in `barewire list` [default: a simulated board's converter's, else 0]
    #[arg(long = "cs", value_name = "N", value_parser = number::count::<u8>)]
    chip_select: Option<u8>,
    /// The converter: mcp3002, mcp3004, mcp3008, mcp3204 or mcp3208
    #[arg(long, value_name = "PART", default_value = "mcp3008", value_parser = part)]
    chip: &'static Part,
    /// Ask the converter which part it is, by a conversion of every channel, and fail if it is another than --chip.
    /// Not told: MCP3004 from MCP3008, MCP3204 from MCP3208; any part while all its inputs are at ground
    #[arg(long)]
    probe: bool,
    /// The channels, each against ground: 3, 0,2,5 or 0-7
    #[arg(long, value_name = "N[-N][,N…]", value_delimiter = ',', value_parser = channels)]
    channel: Vec<RangeInclusive<u8>>,
    /// Pairs of channels, the first against the second: 0-1 or 1-0, 2-3, …
    #[arg(long, value_name = "P-M[,P-M…]", value_delimiter = ',', value_parser = pair)]
    differential: Vec<Input>,
    /// The converter's supply in volts: it limits the clock
    #[arg(long, value_name = "VOLTS", default_value = "5", value_parser = millivolts)]
    vdd: u32,
    /// Its reference in volts, which the highest code stands for [default: the supply]
    #[arg(long, value_name = "VOLTS", value_parser = millivolts)]
    vref: Option<u32>,
    /// The fastest clock allowed (k and M: by 1000) [default: the converter's limit at its supply]
    #[arg(long, value_name = "HZ", value_parser = number::hertz)]
    speed_hz: Option<u32>,
    #[command(flatten)]
    real_time: RealTimeArgs,
    #[command(flatten)]
    tell: TellArgs,
}

fn part(name: &str) -> Result<&'static Part, String> {
    let names: Vec<String> = PARTS.iter().map(|part| part.name.to_lowercase()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Part::find(name).ok_or_else(|| near::unknown("converter", name, &names))
}

fn channels(text: &str) -> Result<RangeInclusive<u8>, String> {
    let one = |text: &str| text.parse().ok();
    let parsed = match text.split_once('-') {
        None => one(text).map(|channel| channel..=channel),
        Some((first, last)) => one(first).zip(one(last)).map(|(first, last)| first..=last),
    };
    let parsed = parsed.filter(|channels| !channels.is_empty());
    parsed.ok_or_else(|| "write channels as in 3, 0,2,5 or 0-7".into())
}

fn pair(text: &str) -> Result<Input, String> {
    let parsed = text.split_once('-').and_then(|(plus, minus)| {
        Some(Input::Differential { plus: plus.parse().ok()?, minus: minus.parse().ok()? })
    });
    parsed.ok_or_else(|| "write IN+ and IN- as in 0-1".into())
}

fn millivolts(text: &str) -> Result<u32, String> {
    match text.trim_end_matches(['V', 'v']).parse::<f64>() {
        Ok(volts) if (0.001..=100.0).contains(&volts) => Ok((volts * 1e3).round() as u32),
        _ => Err("write volts, as in 3.3".into()),
    }
}

/// Runs it.
pub(crate) fn run(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Read(args) => read::run(args),
        Verb::Stream(args) => stream::run(args),
    }
}

/// Which converter, and how it is talked to: the first fields of both commands' JSON.
#[derive(Clone, Debug, Serialize)]
struct Which {
    #[serde(flatten)]
    place: Place,
    chip_select: u8,
    chip: &'static str,
    bits: u8,
    supply_mv: u32,
    vref_mv: u32,
    speed_hz: u32,
    effective_speed_hz: u32,
    /// With `--probe`: the parts that answer as the converter does; none if that cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    probed: Option<Vec<&'static str>>,
}

impl AdcArgs {
    fn request(&self) -> Result<Request<'_>, Failure> {
        self.check_board()?;
        self.real_time.apply()?;
        Ok(Request::at(&self.bus, self.chip_select(), &self.tell, EndState::Promised)
            .for_chip(ChipRequest::Converter)
            .for_linux_process())
    }

    /// The chip select of the options, else the one of a simulated board's converter.
    fn chip_select(&self) -> u8 {
        let of_board = || match bus_name::parse(&self.bus) {
            Ok(BusName::Sim(options)) => options.board.adc().map(|adc| adc.cs),
            _ => None,
        };
        self.chip_select.or_else(of_board).unwrap_or(0)
    }

    /// The inputs in the order they are converted in, single-ended ones first; channel 0 if none
    /// is named. Refused before a bus is opened if the part has not got them.
    fn inputs(&self) -> Result<Vec<Input>, AdcError> {
        let single = self.channel.iter().cloned().flatten().map(Input::Single);
        let mut inputs: Vec<Input> = single.chain(self.differential.iter().copied()).collect();
        if inputs.is_empty() {
            inputs.push(Input::Single(0));
        }
        inputs.iter().try_for_each(|&input| self.chip.command(input).map(|_| ()))?;
        Ok(inputs)
    }

    fn vref_mv(&self) -> u32 {
        self.vref.unwrap_or(self.vdd)
    }

    /// The settings of its device, the clock held against its limit.
    fn settings(&self) -> Result<Settings, AdcError> {
        let speed_hz = match self.speed_hz {
            Some(speed_hz) => speed_hz,
            None => self.chip.max_speed_hz(self.vdd)?,
        };
        self.chip.settings(self.chip_select(), speed_hz, self.vdd)
    }

    fn open<'s>(
        &self,
        session: &'s Session,
    ) -> Result<(Device<'s, dyn Controller + 's>, Which), Failure> {
        let settings = self.settings()?;
        let mode = session.mode(settings.chip_select);
        let probed = self.probe.then(|| self.probe(session, mode)).transpose()?;
        let settings = settings.with_mode(settings.mode | mode);
        let device = session.open.bus().device(&settings)?;
        let effective = device.effective();
        session.note_clock(settings.speed_hz, effective.speed_hz);
        let which = Which {
            place: session.place.clone(),
            chip_select: self.chip_select(),
            chip: self.chip.name,
            bits: self.chip.bits,
            supply_mv: self.vdd,
            vref_mv: self.vref_mv(),
            speed_hz: settings.speed_hz,
            effective_speed_hz: effective.speed_hz,
            probed,
        };
        Ok((device, which))
    }

    /// The voltage a code stands for: a code is a step of VREF / 2^bits.
    fn volts(&self, code: f64) -> f64 {
        code * f64::from(self.vref_mv()) / 1e3 / f64::from(1_u32 << self.chip.bits)
    }
}

/// An input as the command line writes it: `3`, or `2-3`.
fn name(input: Input) -> String {
    match input {
        Input::Single(channel) => channel.to_string(),
        Input::Differential { plus, minus } => format!("{plus}-{minus}"),
    }
}
