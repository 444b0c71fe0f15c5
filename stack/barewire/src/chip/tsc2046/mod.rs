//! TSC2046 and ADS7846: controllers for four-wire resistive touch screens, read in one exchange.
//!
//! # Read first
//! Texas Instruments SBAS265 (TSC2046) and SBAS125 (ADS7846), chapters "Digital interface", "Touch
//! screen settling", "Pressure measurement" and "PENIRQ output".
//!
//! # How the chip works
//! The first 1 on DIN begins a control byte: S, A2 to A0 (the input), MODE (12 or 8 bits), SER/DFR
//! (against the reference, or against the driven plate), PD1 and PD0 (what stays on afterwards). In
//! its last three clocks the input is sampled. After one clock of BUSY comes the code, most
//! significant bit first, then zeros. The next control byte may begin 16 clocks after the previous
//! one, during the end of its code. While PD0 is set, the plate stays driven from one conversion to
//! the next.
//!
//! With PD0 clear, and between conversions, PENIRQ is low while the pen is down. During a
//! conversion it has no meaning: it is low for positions and high for other inputs.
//!
//! # How this driver uses it
//! 1. Sample: a sample is one exchange, one long transfer in one selection: X, Y, Z1, Z2, each
//!    repeated, with 16 clocks per conversion ([`Config::conversions`]; 344 µs at 1 MHz by
//!    default). It is built once and sent many times, as a prepared message if the port is a bus's
//!    device.
//! 2. Settling: when a plate is first driven, the capacitors on its wires must charge. So the first
//!    conversions of X, of Y and of Z1 are discarded ([`Config::settle`]). Z2 is measured in the
//!    state that Z1 leaves.
//! 3. Pressure comes last: if the pen was down then, the positions before it are valid. The last
//!    conversion powers down, so that PENIRQ works again.
//! 4. Presence: DOUT is 0 during BUSY and after a code, and Z2 is never 0. So every sample detects
//!    a missing chip and a stuck MISO.
//! 5. Times: [`Tsc2046::settings`] requests the chip's times from the bus. Its clock is 2 MHz at
//!    most: the edges would allow 2.5 MHz, but three clocks are the sampling time, which is at
//!    least 1.5 µs.
//!
//! # Not supported
//! - Codes of 8 bits.
//! - An external reference.
//! - Supplies below 2.7 V.
//! - The pressure from the Y plate's resistance.
//!
//! A pen that is lifted while its pressure is sampled may be reported once more, at the right
//! position with another pressure.
//!
//! # Example
//! ```
//! use barewire::bus::Bus;
//! use barewire::chip::tsc2046::{Config, TouchError, Tsc2046};
//! # let bus = Bus::new(barewire::controller::null::Null::new());
//!
//! const PANEL: Config = Config { x_plate_ohms: 400, ..Config::DEFAULT };
//! type Touch<F> = Tsc2046<F, { PANEL.message_bytes() }>;
//!
//! let device = bus.device(&Tsc2046::settings(1, 1_000_000)?)?;
//! let mut touch = Touch::new(device, PANEL)?;
//! // The null controller receives zeros.
//! assert_eq!(touch.read(), Err(TouchError::StuckLow));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod control;
mod error;
mod sample;
mod service;
#[cfg(test)]
mod tests;

pub use config::{Config, Filter};
pub use control::Aux;
pub use error::{Axis, TouchError};
pub use sample::{Sample, Touch, temperature_millikelvin};
pub use service::Served;

use super::{OnPort, Port};
use crate::bus::{Device, Uses};
use crate::controller::Controller;
use crate::regmap::{Frames, OnDevice};
use crate::spi::{Settings, Transfer};
use config::SETTLE_MAX;
use control::{ALL_ON, POWER_DOWN, code, word};

/// tACQ is 1.5 µs and three clocks; 125,000 conversions a second of 16 clocks are the same.
const SPEED_MAX_HZ: u32 = 2_000_000;
/// tCSS: CS active to the first rising edge of the clock.
const CS_SETUP_NS: u32 = 100;
/// tCSH: last edge of the clock to CS inactive.
const CS_HOLD_NS: u32 = 10;
const NS_PER_S: u32 = 1_000_000_000;

/// A touch controller; `BYTES` is its configuration's [`Config::message_bytes`].
#[derive(Debug)]
pub struct Tsc2046<F, const BYTES: usize> {
    frames: F,
    config: Config,
    message: [u8; BYTES],
}

impl Tsc2046<(), 0> {
    /// The settings of a device for the chip on line `chip_select`.
    ///
    /// # Errors
    /// [`TouchError::TooFast`].
    pub fn settings(chip_select: u8, speed_hz: u32) -> Result<Settings, TouchError> {
        check_speed(speed_hz)?;
        // A slower clock than requested has a longer half period, so this is never too short.
        let half_ns = NS_PER_S / 2 / speed_hz.max(1);
        let cs_setup_ns = CS_SETUP_NS.saturating_sub(half_ns);
        Ok(Settings { cs_setup_ns, cs_hold_ns: CS_HOLD_NS, ..Settings::new(chip_select, speed_hz) })
    }
}

fn check_speed(speed_hz: u32) -> Result<(), TouchError> {
    match speed_hz <= SPEED_MAX_HZ {
        true => Ok(()),
        false => Err(TouchError::TooFast { speed_hz, max_hz: SPEED_MAX_HZ }),
    }
}

impl<'b, C: Controller + ?Sized, U: Uses, const BYTES: usize>
    Tsc2046<OnDevice<'b, C, BYTES, U>, BYTES>
{
    /// Creates a driver on `device`, whose settings are [`Tsc2046::settings`]. Nothing is clocked.
    /// If PENIRQ does not work yet, call [`Tsc2046::power_down`].
    ///
    /// # Errors
    /// [`TouchError::TooFast`], [`TouchError::Config`], [`TouchError::Message`].
    ///
    /// # Panics
    /// If `BYTES` is not the configuration's [`Config::message_bytes`].
    pub fn new(device: Device<'b, C, U>, config: Config) -> Result<Self, TouchError> {
        check_speed(device.effective().speed_hz)?;
        Self::over(OnDevice::new(device)?, config)
    }
}

impl<P: Port, const BYTES: usize> Tsc2046<OnPort<P, BYTES>, BYTES> {
    /// [`Tsc2046::new`] on any [`Port`], for example another HAL's `SpiDevice`.
    ///
    /// # Errors
    /// As [`Tsc2046::new`].
    ///
    /// # Panics
    /// As [`Tsc2046::new`].
    pub fn on_port(port: P, config: Config) -> Result<Self, TouchError> {
        check_speed(port.speed_hz())?;
        Self::over(OnPort::new(port), config)
    }
}

impl<F: Frames<BYTES>, const BYTES: usize> Tsc2046<F, BYTES> {
    fn over(frames: F, config: Config) -> Result<Self, TouchError> {
        config.check()?;
        assert_eq!(BYTES, config.message_bytes(), "BYTES is Config::message_bytes");
        let mut message = [0; BYTES];
        for (index, control) in config.controls().enumerate() {
            message[2 * index] = control;
        }
        Ok(Self { frames, config, message })
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// One exchange: both positions and the pressure, filtered, whether the pen is down or not.
    /// Afterwards PENIRQ works again, even after an error, unless the message failed.
    ///
    /// # Errors
    /// [`TouchError::Message`], [`TouchError::NoChip`], [`TouchError::StuckLow`].
    pub fn sample(&mut self) -> Result<Sample, TouchError> {
        let received = self.frames.exchange(self.message)?;
        Sample::decode(&self.config, received)
    }

    /// [`Tsc2046::sample`], evaluated: the position of the pen.
    ///
    /// # Errors
    /// The errors of [`Tsc2046::sample`]; [`TouchError::PenUp`] if the pen was up, at least at the
    /// end; [`TouchError::Inconsistent`] if the repeats of a position differ too much.
    pub fn read(&mut self) -> Result<Touch, TouchError> {
        let sample = self.sample()?;
        sample.judge(&self.config)
    }

    /// Converts an input against the chip's own reference of 2.5 V. Returns a code of 12 bits,
    /// after [`Config::reference_settle`] discarded conversions. Powers down at its end.
    ///
    /// # Errors
    /// [`TouchError::Message`], [`TouchError::NoChip`].
    pub fn convert(&mut self, input: Aux) -> Result<u16, TouchError> {
        // The discarded conversions, the one that counts, and one that powers down. The last one's
        // code is not used, because the reference is switched off with its control byte.
        let settle = usize::from(self.config.reference_settle);
        let conversions = settle + 2;
        let mut buffer = [0; 2 * (SETTLE_MAX as usize + 2) + 1];
        let both = &mut buffer[..2 * conversions + 1];
        for index in 0..=settle {
            both[2 * index] = input.control(ALL_ON);
        }
        both[2 * conversions - 2] = input.control(POWER_DOWN);
        self.frames.run(&mut [Transfer::in_place(both)])?;
        for index in 0..conversions {
            code(word(both, index))?;
        }
        code(word(both, settle))
    }

    /// One conversion that powers down, so that PENIRQ works: call it after power-up, or after a
    /// message that failed.
    ///
    /// # Errors
    /// [`TouchError::Message`], [`TouchError::NoChip`].
    pub fn power_down(&mut self) -> Result<(), TouchError> {
        let mut both = [self.message[BYTES - 3], 0, 0];
        self.frames.run(&mut [Transfer::in_place(&mut both)])?;
        code(word(&both, 0)).map(drop)
    }
}
