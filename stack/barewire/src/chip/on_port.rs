//! A register map's exchanges over any port.

use super::Port;
use crate::regmap::Frames;
use crate::spi::{MessageError, Transfer};

/// Makes any [`Port`], for example another HAL's `SpiDevice`, usable by a
/// [`RegMap`](crate::regmap::RegMap).
#[derive(Debug)]
pub struct OnPort<P, const N: usize> {
    port: P,
    both: [u8; N],
}

impl<P: Port, const N: usize> OnPort<P, N> {
    /// Creates exchanges over `port`.
    pub const fn new(port: P) -> Self {
        Self { port, both: [0; N] }
    }
}

impl<P: Port, const N: usize> Frames<N> for OnPort<P, N> {
    fn exchange(&mut self, tx: [u8; N]) -> Result<&[u8; N], MessageError> {
        self.both = tx;
        self.port.run(&mut [Transfer::in_place(&mut self.both)])?;
        Ok(&self.both)
    }

    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.port.run(message)
    }
}
