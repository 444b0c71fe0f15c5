//! Converters of the MCP3008 family.

use std::sync::Arc;
use std::time::{Duration, Instant};

use barewire::chip::mcp3008::{self, AdcError, Command, Input, PARTS, Part};
use barewire::spi::Transfer;
use barewire::time::{Pacer, Timer};
use barewire_linux::shared::ChipLock;
use barewire_open::{AnyDevice, AnyTimer, near};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::bus::Bus;
use crate::error;
use crate::port::{DevicePort, Exclusive, chip_lock, simulated};
use crate::shared::SharedBus;

/// Conversions go on for so long before other threads and signals have their turn.
const PIECE: Duration = Duration::from_millis(20);
/// At most so many samples in one call: 2 GiB of time stamps and codes.
const SAMPLES_MAX: usize = 200_000_000;

/// A converter: MCP3002, MCP3004, MCP3008, MCP3204 or MCP3208.
#[pyclass(frozen, subclass, module = "barewire", name = "Mcp3008")]
pub(crate) struct Mcp3008 {
    shared: Arc<SharedBus>,
    part: &'static Part,
    vref_mv: u32,
    chip: Exclusive<ConverterChip>,
}

struct ConverterChip {
    port: DevicePort,
    timer: AnyTimer,
    lock: Option<ChipLock>,
}

/// Samples under way.
struct Capture {
    codes: Vec<u16>,
    /// When each was taken, in seconds from the first turn.
    at_s: Vec<f64>,
    begun_ticks: u64,
    pacer: Option<Pacer>,
}

fn part(name: &str) -> PyResult<&'static Part> {
    let names: Vec<String> = PARTS.iter().map(|part| part.name.to_lowercase()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Part::find(name).ok_or_else(|| error::argument(near::unknown("converter", name, &names)))
}

impl ConverterChip {
    fn device(&self) -> &AnyDevice {
        &self.port.device
    }

    /// Keeps other processes off the chip for the length of `work`.
    fn alone<R>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<R, AdcError>,
    ) -> Result<R, AdcError> {
        if let Some(lock) = &mut self.lock {
            lock.acquire().map_err(|errno| {
                let error = barewire::spi::Error::Os { errno: errno.raw_os_error() };
                AdcError::Message(barewire::spi::MessageError::refused(error, 0))
            })?;
        }
        let done = work(self);
        if let Some(lock) = &mut self.lock {
            lock.release();
        }
        done
    }

    /// Takes samples of `commands` in turn until there are `wanted`, or for a while.
    fn capture(
        &mut self,
        part: &Part,
        commands: &[Command],
        wanted: usize,
        capture: &mut Capture,
    ) -> Result<(), AdcError> {
        let begun = Instant::now();
        let bytes = part.exchange_bytes();
        let mut rx = [0; Command::LEN_MAX];
        let s_per_tick = 1.0 / f64::from(self.timer.frequency_hz());
        while capture.codes.len() < wanted * commands.len() && begun.elapsed() < PIECE {
            if let Some(pacer) = &mut capture.pacer {
                pacer.wait(&mut self.timer);
            }
            for command in commands {
                let before = self.timer.now_ticks();
                let mut message = [Transfer::exchange(command.bytes(), &mut rx[..bytes])];
                self.port
                    .shared
                    .sync(&self.port.device, &mut message)
                    .map_err(AdcError::Message)?;
                let ticks = before.wrapping_sub(capture.begun_ticks);
                capture.at_s.push(ticks as f64 * s_per_tick);
                capture.codes.push(part.decode(&rx[..bytes])?);
            }
        }
        Ok(())
    }
}

#[pymethods]
impl Mcp3008 {
    /// Opens the converter. Its supply limits the clock; `speed_hz` is that limit if it is not given. `vref_mv` is what
    /// the highest code stands for: the supply if it is not given.
    #[new]
    #[pyo3(signature = (bus, chip_select=None, *, part="mcp3008", supply_mv=5_000, vref_mv=None, speed_hz=None))]
    fn new(
        py: Python<'_>,
        bus: &Bus,
        chip_select: Option<u8>,
        part: &str,
        supply_mv: u32,
        vref_mv: Option<u32>,
        speed_hz: Option<u32>,
    ) -> PyResult<Self> {
        let shared = Arc::clone(&bus.shared);
        let part = self::part(part)?;
        let board = simulated(&shared).map(|options| options.board);
        let first = board.and_then(|board| board.adc()).map(|adc| adc.cs);
        let chip_select = chip_select.or(first).unwrap_or(0);
        let there = board.and_then(|board| board.chip_at(chip_select)?.adc());
        let there = there.map(|adc| adc.part.name());
        if let Some(there) = there.filter(|there| *there != part.name) {
            return Err(error::argument(format!(
                "the simulated board's converter is an {there}; read as an {}, its codes would be wrong",
                part.name
            )));
        }
        let refused = |error| error::of_adc(py, &shared.any, error);
        let speed_hz = match speed_hz {
            Some(speed_hz) => speed_hz,
            None => part.max_speed_hz(supply_mv).map_err(refused)?,
        };
        let settings = part.settings(chip_select, speed_hz, supply_mv).map_err(refused)?;
        let lock = chip_lock(py, &shared, chip_select)?;
        let device = shared.device(py, &settings)?;
        let port = DevicePort { shared: Arc::clone(&shared), device };
        let chip = Exclusive::new(ConverterChip { port, timer: shared.any.timer(), lock });
        let vref_mv = vref_mv.unwrap_or(supply_mv);
        Ok(Self { shared, part, vref_mv, chip })
    }

    /// Converts a channel once: a code from 0 to `code_max`. With `minus`, the difference of a pair of channels.
    #[pyo3(signature = (channel=0, *, minus=None))]
    fn read(&self, py: Python<'_>, channel: u8, minus: Option<u8>) -> PyResult<u16> {
        let input = match minus {
            Some(minus) => Input::Differential { plus: channel, minus },
            None => Input::Single(channel),
        };
        self.chip.with(py, |chip| {
            let read = self.shared.detached(py, || {
                chip.alone(|chip| {
                    let mut codes = [0];
                    mcp3008::Mcp3008::new(chip.device().device(), self.part)
                        .scan(&[input], &mut codes)
                        .map(|()| codes[0])
                        .or_else(|error| match error {
                            // On the thread's own lock.
                            AdcError::Message(message)
                                if message.error == barewire::spi::Error::WouldDeadlock =>
                            {
                                mcp3008::Mcp3008::new(&mut chip.port, self.part).read(input)
                            }
                            error => Err(error),
                        })
                })
            })?;
            read.map_err(|error| error::of_adc(py, &self.shared.any, error))
        })
    }

    /// Takes samples: the codes as bytes of 16-bit integers, the times as bytes of doubles, turns that were missed,
    /// and the time that all took, in seconds.
    #[pyo3(signature = (samples, rate_hz, channels))]
    fn _sample<'py>(
        &self,
        py: Python<'py>,
        samples: usize,
        rate_hz: Option<u32>,
        channels: Vec<u8>,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, u64, f64)> {
        if samples == 0 || channels.is_empty() || rate_hz == Some(0) {
            return Err(error::argument("samples, channels and the rate are at least one each"));
        }
        if samples.saturating_mul(channels.len()) > SAMPLES_MAX {
            return Err(error::argument(format!(
                "{samples} samples of {} channels: at most {SAMPLES_MAX} in one call",
                channels.len()
            )));
        }
        let refused = |error| error::of_adc(py, &self.shared.any, error);
        let commands = channels.iter().map(|channel| self.part.command(Input::Single(*channel)));
        let commands = commands.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        self.chip.with(py, |chip| {
            let max_hz = self.part.max_rate_hz(chip.device().device().effective());
            let max_hz = max_hz / u32::try_from(commands.len()).unwrap_or(u32::MAX);
            if let Some(asked_hz) = rate_hz.filter(|rate| *rate > max_hz) {
                return Err(refused(AdcError::TooOften { asked_hz, max_hz }));
            }
            // Turns are kept by the board's time: a pause of this process is none of a simulated board's.
            let _steady = self.shared.any.steady();
            let mut capture = Capture {
                codes: Vec::with_capacity(samples * commands.len()),
                at_s: Vec::with_capacity(samples * commands.len()),
                begun_ticks: chip.timer.now_ticks(),
                pacer: rate_hz.map(|rate_hz| Pacer::new(&mut chip.timer, 1, rate_hz)),
            };
            while capture.codes.len() < samples * commands.len() {
                let took = self.shared.detached(py, || {
                    chip.alone(|chip| chip.capture(self.part, &commands, samples, &mut capture))
                })?;
                took.map_err(refused)?;
                py.check_signals()?;
            }
            let ended = chip.timer.now_ticks().wrapping_sub(capture.begun_ticks);
            let elapsed_s = ended as f64 / f64::from(chip.timer.frequency_hz());
            let codes: Vec<u8> = capture.codes.iter().flat_map(|code| code.to_ne_bytes()).collect();
            let times: Vec<u8> = capture.at_s.iter().flat_map(|at| at.to_ne_bytes()).collect();
            let missed = capture.pacer.map_or(0, |pacer| pacer.missed());
            Ok((PyByteArray::new(py, &codes), PyByteArray::new(py, &times), missed, elapsed_s))
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "<barewire.Mcp3008 {} {} {} mV>",
            self.shared.any.name(),
            self.part.name,
            self.vref_mv
        )
    }

    /// The highest code.
    #[getter]
    fn code_max(&self) -> u16 {
        self.part.code_max()
    }

    /// How many channels there are.
    #[getter]
    fn channels(&self) -> u8 {
        self.part.channels
    }

    /// The voltage of the highest code plus one, in millivolts.
    #[getter]
    fn vref_mv(&self) -> u32 {
        self.vref_mv
    }

    /// The part's name.
    #[getter]
    fn part(&self) -> &'static str {
        self.part.name
    }

    /// The fastest rate of conversions, in hertz, by the clock alone.
    #[getter]
    fn max_rate_hz(&self, py: Python<'_>) -> PyResult<u32> {
        self.chip.with(py, |chip| Ok(self.part.max_rate_hz(chip.device().device().effective())))
    }
}
