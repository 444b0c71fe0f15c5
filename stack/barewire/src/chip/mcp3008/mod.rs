//! MCP3008 and its family: analog-to-digital converters read in one exchange.
//!
//! # Read first
//! Microchip DS21295 (MCP3004/3008: 10 bits, 4 and 8 channels), DS21298 (MCP3204/3208: 12 bits),
//! DS21294 (MCP3002: 10 bits, 2 channels), each chapter "Serial communication" and its figure of
//! an exchange in 8-bit segments.
//!
//! # How the chip works
//! The first 1 on DIN after CS has fallen is the start bit. The bits after it select the input:
//! SGL/DIFF and the channel. The chip samples the input, then DOUT has a null bit and the code,
//! most significant bit first. A selection is one conversion: CS must rise and stay high for tCSH
//! before the next.
//!
//! # How this driver uses it
//! 1. Exchange: whole bytes, with leading zeros chosen so that the code ends with the last byte: 3
//!    bytes, 2 for MCP3002. The sent bytes depend only on the input, so a conversion is one
//!    [prepared](crate::bus::Prepared) message ([`Command::bytes`], [`Part::decode`]).
//! 2. Scan: several conversions are one message with `cs_change` ([`Mcp3008::scan`]).
//! 3. Times: [`Part::settings`] requests the chip's times from the bus: tCSH always, and tSUCS as
//!    far as it exceeds half a clock (in MODE_0 data is stable half a clock before the first edge).
//! 4. Presence: DOUT floats until the null bit, and a pull-up makes it 1; the null bit is 0. So
//!    every exchange detects a missing chip: [`AdcError::NoChip`].
//! 5. Part: a code read as that of another part is plausible and wrong. A code read as that of
//!    another part is plausible and wrong. [`probe()`] returns the part that answers, or that it
//!    cannot be determined.
//!
//! # Not supported
//! Reading codes least significant bit first; MCP3001, 3201 and 3301, which have no DIN.
//!
//! # Example
//! ```
//! use barewire::bus::Bus;
//! use barewire::chip::mcp3008::{Input, MCP3008, Mcp3008};
//! # let bus = Bus::new(barewire::controller::null::Null::new());
//!
//! let settings = MCP3008.settings(0, 3_600_000, 5_000)?;
//! let mut adc = Mcp3008::new(bus.device(&settings)?, &MCP3008);
//! let code = adc.read(Input::Single(0))?;
//! assert_eq!(code, 0, "the null controller's");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod part;
mod probe;
#[cfg(test)]
mod tests;

pub use error::AdcError;
pub use part::{Command, MCP3002, MCP3004, MCP3008, MCP3204, MCP3208, PARTS, Part};
pub use probe::{Probed, probe, probe_settings};

use super::{AsyncPort, Port};
use crate::spi::Transfer;

/// The input of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Input {
    /// One channel against ground.
    Single(u8),
    /// The difference of a pair of channels (0 and 1, 2 and 3, …) as an unsigned code; zero if it
    /// is negative.
    Differential {
        /// IN+.
        plus: u8,
        /// IN-.
        minus: u8,
    },
}

/// The number of conversions that [`Mcp3008::scan`] puts into one message.
const SCAN_AT_ONCE: usize = 8;

/// A converter on any [`Port`] or [`AsyncPort`].
#[derive(Debug)]
pub struct Mcp3008<P> {
    port: P,
    part: &'static Part,
}

impl<P> Mcp3008<P> {
    /// Creates a driver on `port`, a [`Port`] or an [`AsyncPort`] with the settings of
    /// [`Part::settings`].
    pub const fn new(port: P, part: &'static Part) -> Self {
        Self { port, part }
    }

    /// The part.
    pub const fn part(&self) -> &'static Part {
        self.part
    }

    /// Returns the port.
    pub fn release(self) -> P {
        self.port
    }

    fn check(&self, inputs: &[Input], codes: &[u16]) -> Result<(), AdcError> {
        assert_eq!(inputs.len(), codes.len(), "a code for each input");
        inputs.iter().try_for_each(|&input| self.part.command(input).map(|_| ()))
    }

    /// The bytes to send for `inputs`; the answers replace them.
    fn exchanges(&self, inputs: &[Input]) -> Result<Exchanges, AdcError> {
        let mut exchanges = [[0; Command::LEN_MAX]; SCAN_AT_ONCE];
        for (exchange, &input) in exchanges.iter_mut().zip(inputs) {
            let command = self.part.command(input)?;
            exchange[..command.bytes().len()].copy_from_slice(command.bytes());
        }
        Ok(exchanges)
    }

    /// The exchanges as transfers, with CS released between two of `count`.
    fn message<'e>(
        &self,
        exchanges: &'e mut Exchanges,
        count: usize,
    ) -> [Transfer<'e>; SCAN_AT_ONCE] {
        let len = self.part.exchange_bytes();
        let mut message = exchanges.each_mut().map(|bytes| Transfer::in_place(&mut bytes[..len]));
        for transfer in &mut message[..count - 1] {
            transfer.cs_change = true;
        }
        message
    }

    fn decode(&self, exchanges: &Exchanges, codes: &mut [u16]) -> Result<(), AdcError> {
        for (code, exchange) in codes.iter_mut().zip(exchanges) {
            *code = self.part.decode(&exchange[..self.part.exchange_bytes()])?;
        }
        Ok(())
    }
}

/// The bytes of a message.
type Exchanges = [[u8; Command::LEN_MAX]; SCAN_AT_ONCE];

/// Splits inputs and codes into messages.
fn messages<'s>(
    inputs: &'s [Input],
    codes: &'s mut [u16],
) -> impl Iterator<Item = (&'s [Input], &'s mut [u16])> {
    inputs.chunks(SCAN_AT_ONCE).zip(codes.chunks_mut(SCAN_AT_ONCE))
}

impl<P: Port> Mcp3008<P> {
    /// Converts `input` once: a code from 0 to [`Part::code_max`].
    ///
    /// # Errors
    /// [`AdcError::NoSuchChannel`] and [`AdcError::NoPair`], before anything is clocked;
    /// [`AdcError::NoChip`]; [`AdcError::Message`].
    pub fn read(&mut self, input: Input) -> Result<u16, AdcError> {
        let mut code = [0];
        self.scan(&[input], &mut code)?;
        Ok(code[0])
    }

    /// Converts every input in turn and stores the code of `inputs[n]` in `codes[n]`. Messages have
    /// up to 8 conversions, with CS inactive for tCSH between two.
    ///
    /// # Errors
    /// As [`Mcp3008::read`]. Codes before the failed message are valid. All inputs are checked
    /// before anything is clocked.
    ///
    /// # Panics
    /// If `inputs` and `codes` differ in length.
    pub fn scan(&mut self, inputs: &[Input], codes: &mut [u16]) -> Result<(), AdcError> {
        self.check(inputs, codes)?;
        for (inputs, codes) in messages(inputs, codes) {
            let mut exchanges = self.exchanges(inputs)?;
            let mut message = self.message(&mut exchanges, inputs.len());
            self.port.run(&mut message[..inputs.len()])?;
            self.decode(&exchanges, codes)?;
        }
        Ok(())
    }
}

impl<P: AsyncPort> Mcp3008<P> {
    /// [`Mcp3008::read`] without blocking the thread.
    ///
    /// # Errors
    /// As [`Mcp3008::read`].
    pub async fn read_async(&mut self, input: Input) -> Result<u16, AdcError> {
        let mut code = [0];
        self.scan_async(&[input], &mut code).await?;
        Ok(code[0])
    }

    /// [`Mcp3008::scan`] without blocking the thread. If it is dropped, it has run whole messages
    /// only.
    ///
    /// # Errors
    /// As [`Mcp3008::scan`].
    ///
    /// # Panics
    /// As [`Mcp3008::scan`].
    pub async fn scan_async(
        &mut self,
        inputs: &[Input],
        codes: &mut [u16],
    ) -> Result<(), AdcError> {
        self.check(inputs, codes)?;
        for (inputs, codes) in messages(inputs, codes) {
            let mut exchanges = self.exchanges(inputs)?;
            let mut message = self.message(&mut exchanges, inputs.len());
            self.port.run_async(&mut message[..inputs.len()]).await?;
            self.decode(&exchanges, codes)?;
        }
        Ok(())
    }
}
