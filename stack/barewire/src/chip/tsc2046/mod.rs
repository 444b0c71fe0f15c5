//! TSC2046 and ADS7846: resistive touch screens of four wires, read in one exchange.
//!
//! # Read first
//! Texas Instruments SBAS265 (TSC2046) and SBAS125 (ADS7846), chapters "Digital interface", "Touch
//! screen settling", "Pressure measurement" and "PENIRQ output".
//!
//! # How the chip works
//! A first 1 on DIN begins a control byte: S, A2 to A0 (what), MODE (12 or 8 bits), SER/DFR (against
//! the reference, or against the plate that is driven), PD1 and PD0 (what stays on afterwards). In
//! its last three clocks the input is sampled; after a clock of BUSY the code comes, most significant
//! bit first, then zeros. The next control byte may begin 16 clocks after the one before, over the
//! end of its code. As long as PD0 is set, the plate stays driven from one conversion to the next.
//!
//! With PD0 clear, and between conversions, PENIRQ is low while the pen is down. In a
//! conversion it says nothing: it is low for positions and high for the others.
//!
//! # How this driver uses it
//! 1. A sample is one exchange, one long transfer under one chip select: X, Y, Z1, Z2, each repeated, 16
//!    clocks a conversion ([`Config::conversions`]; 344 µs at 1 MHz by default). It is built once and
//!    sent many times, prepared where the port is a bus's device.
//! 2. A plate that begins to be driven charges what hangs on its wires. So the first conversions of X,
//!    of Y and of Z1 are thrown away ([`Config::settle`]); Z2 is measured in the state that Z1 leaves.
//! 3. Pressure comes last: if the pen was down then, positions before it were measured. The last
//!    conversion powers down, which lets PENIRQ work again.
//! 4. DOUT is 0 while BUSY and behind a code, and Z2 is never 0. So a chip that is not there, and a MISO
//!    that is stuck, are seen in every sample.
//! 5. [`Tsc2046::settings`] asks the bus for the chip's times. Its clock is 2 MHz at most: the edges
//!    alone would allow 2.5 MHz, but three clocks are the time to sample, which is 1.5 µs at least.
//!
//! # Not supported
//! Codes of 8 bits; an external reference; supplies below 2.7 V; the pressure from Y plate's resistance.
//! A pen that leaves while its pressure is sampled may be told once more, in the right place, pressed
//! differently.
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
use crate::bus::Device;
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
    /// A device's settings for the chip on line `chip_select`.
    ///
    /// # Errors
    /// [`TouchError::TooFast`].
    pub fn settings(chip_select: u8, speed_hz: u32) -> Result<Settings, TouchError> {
        check_speed(speed_hz)?;
        // A slower clock than asked has a longer half, so this is never too short.
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

impl<'b, C: Controller + ?Sized, const BYTES: usize> Tsc2046<OnDevice<'b, C, BYTES>, BYTES> {
    /// The controller behind `device`, whose settings are [`Tsc2046::settings`]. Nothing is clocked:
    /// [`Tsc2046::power_down`] lets PENIRQ work if it does not already.
    ///
    /// # Errors
    /// [`TouchError::TooFast`], [`TouchError::Config`], [`TouchError::Message`].
    ///
    /// # Panics
    /// If `BYTES` is not the configuration's [`Config::message_bytes`].
    pub fn new(device: Device<'b, C>, config: Config) -> Result<Self, TouchError> {
        check_speed(device.effective().speed_hz)?;
        Self::over(OnDevice::new(device)?, config)
    }
}

impl<P: Port, const BYTES: usize> Tsc2046<OnPort<P, BYTES>, BYTES> {
    /// [`Tsc2046::new`] behind any [`Port`], another HAL's `SpiDevice` for one.
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

    /// What it is set up as.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// One exchange: both positions and the pressure, filtered, whether the pen is down or not.
    /// PENIRQ works again when it returns, whatever it returns, unless the message failed.
    ///
    /// # Errors
    /// [`TouchError::Message`], [`TouchError::NoChip`], [`TouchError::StuckLow`].
    pub fn sample(&mut self) -> Result<Sample, TouchError> {
        let received = self.frames.exchange(self.message)?;
        Sample::decode(&self.config, received)
    }

    /// [`Tsc2046::sample`], judged: where the pen is.
    ///
    /// # Errors
    /// Those of [`Tsc2046::sample`]; [`TouchError::PenUp`] if the pen was up, at the end at least;
    /// [`TouchError::Inconsistent`] if the repeats of a position lie too far apart.
    pub fn read(&mut self) -> Result<Touch, TouchError> {
        let sample = self.sample()?;
        sample.judge(&self.config)
    }

    /// Converts an input against the chip's own reference of 2.5 V: a code of 12 bits, after
    /// [`Config::reference_settle`] conversions that are thrown away. Powers down at its end.
    ///
    /// # Errors
    /// [`TouchError::Message`], [`TouchError::NoChip`].
    pub fn convert(&mut self, input: Aux) -> Result<u16, TouchError> {
        // Those that settle, the one that counts, and one that powers down, whose code is nobody's: the
        // reference goes off with its control byte.
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

    /// One conversion that powers down, which lets PENIRQ work: after power-up, or after a message that
    /// failed.
    ///
    /// # Errors
    /// [`TouchError::Message`], [`TouchError::NoChip`].
    pub fn power_down(&mut self) -> Result<(), TouchError> {
        let mut both = [self.message[BYTES - 3], 0, 0];
        self.frames.run(&mut [Transfer::in_place(&mut both)])?;
        code(word(&both, 0)).map(drop)
    }
}
