//! A slower clock for messages that read.
//!
//! A bit that a controller sends is on the wire half a clock before the chip samples it. A bit that a controller
//! reads must wait for the clock's way to the chip, the chip's own delay and the way back, all within half a
//! clock. So with long wires, reads fail at a lower clock than writes. LinuxCNC's `hm2_spix` has two clocks for
//! this reason: `spiclk_rate` and `spiclk_rate_rd` (LinuxCNC, *hm2_spix(9)*,
//! <https://linuxcnc.org/docs/devel/html/man/man9/hm2_spix.9.html>).

use super::{AsyncPort, Port, Sharing};
use crate::spi::{MessageError, Transfer};

/// A port whose messages run at a clock of their own if they read.
///
/// ```
/// use barewire::chip::{Port as _, ReadSpeed};
/// # use barewire::bus::Bus;
/// # use barewire::controller::null::Null;
/// # use barewire::spi::{Settings, Transfer};
/// # let bus = Bus::new(Null::new());
/// let device = bus.device(&Settings::new(0, 20_000_000))?;
/// let mut port = ReadSpeed::new(device, 8_000_000);
/// port.run(&mut [Transfer::write(&[0x06])])?; // at 20 MHz
/// let mut status = [0x05, 0];
/// port.run(&mut [Transfer::in_place(&mut status)])?; // at 8 MHz
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReadSpeed<P> {
    port: P,
    read_speed_hz: u32,
}

impl<P> ReadSpeed<P> {
    /// `port` with messages that read at `read_speed_hz` at most, in hertz; 0 means the port's own clock.
    /// A transfer with a clock of its own keeps it; the others are changed, and stay so after the call.
    pub const fn new(port: P, read_speed_hz: u32) -> Self {
        Self { port, read_speed_hz }
    }

    /// The port.
    pub fn into_inner(self) -> P {
        self.port
    }

    /// Gives a message that reads its clock, in each transfer that has none of its own. The command before
    /// the data gets it too, since not every block can change its clock within a message.
    fn slow_down(&self, message: &mut [Transfer<'_>]) {
        if self.read_speed_hz == 0 || message.iter().all(|transfer| transfer.data().rx().is_none())
        {
            return;
        }
        for transfer in message.iter_mut().filter(|transfer| transfer.speed_hz == 0) {
            transfer.speed_hz = self.read_speed_hz;
        }
    }
}

impl<P: Port> Port for ReadSpeed<P> {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.slow_down(message);
        self.port.run(message)
    }

    fn speed_hz(&self) -> u32 {
        self.port.speed_hz()
    }

    fn max_message_bytes(&self) -> usize {
        self.port.max_message_bytes()
    }

    fn begin(&mut self) -> Result<Sharing, MessageError> {
        self.port.begin()
    }

    fn end(&mut self) {
        self.port.end();
    }
}

impl<P: AsyncPort> AsyncPort for ReadSpeed<P> {
    async fn run_async(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.slow_down(message);
        self.port.run_async(message).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Remembers each message's clocks.
    struct Clocks(Vec<Vec<u32>>);

    impl Port for Clocks {
        fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
            self.0.push(message.iter().map(|transfer| transfer.speed_hz).collect());
            Ok(())
        }

        fn speed_hz(&self) -> u32 {
            20_000_000
        }
    }

    fn clocks(read_speed_hz: u32) -> Vec<Vec<u32>> {
        let mut port = ReadSpeed::new(Clocks(Vec::new()), read_speed_hz);
        let (mut both, mut read) = ([5, 0], [0; 4]);
        port.run(&mut [Transfer::write(&[6])]).expect("runs");
        port.run(&mut [Transfer::in_place(&mut both)]).expect("runs");
        port.run(&mut [Transfer::write(&[3, 0, 0, 0]), Transfer::read(&mut read)]).expect("runs");
        let own = Transfer::read(&mut read).with_speed_hz(1_000);
        port.run(&mut [Transfer::write(&[3]), own]).expect("runs");
        assert_eq!(port.speed_hz(), 20_000_000);
        port.into_inner().0
    }

    #[test]
    fn only_messages_that_read_are_slower() {
        let slow = 8_000_000;
        let expected: [&[u32]; 4] = [&[0], &[slow], &[slow, slow], &[slow, 1_000]];
        assert_eq!(clocks(slow), expected);
        let expected: [&[u32]; 4] = [&[0], &[0], &[0, 0], &[0, 1_000]];
        assert_eq!(clocks(0), expected);
    }
}
