//! The MCP2518FD driver on a chip that is an array in memory: the instructions of a received and of
//! a sent frame, including those of its messages on the null controller.
//!
//! The chip's function has a name that callgrind toggles on: collection stops when it is entered and
//! resumes when it returns. So the chip does not count.

use std::hint::black_box;

use barewire::bus::Bus;
use barewire::chip::mcp251xfd::{
    BitRate, Config, Frame, Mcp251xfd, Oscillator, Received, StandardId,
};
use barewire::controller::null::Null;
use barewire::controller::{Controller, Plan, Preset, Stopped, Unfinished, Wire, run_message};
use barewire::middleware::Layer;
use barewire::regmap::OnDevice;
use barewire::spi::{Data, Settings, Transfer};

use super::still::Still;

/// The common part of the functions' names.
pub(super) const SYMBOL: &str = "bench_op_can";

type Dyn<'a> = dyn Controller + 'a;
type Driver<'b, 'a> = Mcp251xfd<OnDevice<'b, Dyn<'a>, 6>, Still>;

#[inline(never)]
fn bench_op_can_receive(driver: &mut Driver<'_, '_>, received: &mut Received) {
    // Uses the frame, and returns an error to the caller, as a real handler would.
    if let Ok(found) = driver.service(received) {
        black_box(found);
        black_box(&received.frame);
    }
}

#[inline(never)]
fn bench_op_can_transmit(driver: &mut Driver<'_, '_>, frame: &Frame) {
    let _ = black_box(driver.transmit(frame));
}

/// The chip as far as the driver needs it: registers and memory store what is written, the
/// requested mode is entered at once, and there is always a received frame and room for one to
/// send.
struct Memory {
    inner: Null,
    bytes: Box<[u8; 4096]>,
}

const CON: usize = 0x000;
const INT: usize = 0x01c;
const FIFO_2_STATUS: usize = 0x06c;
const RAM: usize = 0x400;
const OSC: usize = 0xe00;
/// Every object of the receive FIFO: identifier, length, time stamp, data.
const OBJECT: [u8; 20] = [0x77, 0, 0, 0, 8, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8];

impl Wire for Memory {
    #[inline(never)]
    fn select(&mut self, preset: &Preset) {
        self.inner.select(preset);
    }

    #[inline(never)]
    fn deselect(&mut self, preset: &Preset) {
        self.inner.deselect(preset);
    }

    #[inline(never)]
    fn exchange(
        &mut self,
        _preset: &Preset,
        _plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        bench_op_can_chip(&mut self.bytes, data);
        Ok(())
    }

    fn recover(&mut self) {}

    fn wait_ticks(&mut self, _ticks: u32) {}
}

#[inline(never)]
fn bench_op_can_chip(bytes: &mut [u8; 4096], data: &mut Data<'_>) {
    let Some(&[first, second, ..]) = data.tx() else { return };
    let at = usize::from(first & 0xf) << 8 | usize::from(second);
    let end = at + data.len() - 2;
    match first >> 4 {
        0 => {
            bytes.fill(0);
            bytes[CON..CON + 4].copy_from_slice(&0x0498_0760_u32.to_le_bytes());
            bytes[OSC..OSC + 4].copy_from_slice(&0x0460_u32.to_le_bytes());
        }
        2 => {
            let tx = data.tx().map(|tx| &tx[2..]).unwrap_or_default();
            bytes[at..end].copy_from_slice(tx);
        }
        _ => {
            if let Some(rx) = data.rx_mut() {
                let answer =
                    if !(RAM..OSC).contains(&at) { &bytes[at..end] } else { &OBJECT[..end - at] };
                rx[2..].copy_from_slice(answer);
            }
        }
    }
    let reqop = bytes[CON + 3] & 7;
    bytes[CON + 2] = bytes[CON + 2] & 0x1f | reqop << 5;
    bytes[INT] = 2;
    bytes[FIFO_2_STATUS] = 7;
    bytes[OSC + 1] |= 4;
}

impl Layer for Memory {
    barewire::wrapped_controller!(inner: Null);

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        run_message(self, preset, message)
    }
}

/// Which way the frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    In,
    Out,
}

/// Lets `calls` frames go that way.
pub(super) fn run(way: Way, calls: u32) {
    let bus = Bus::new(Memory { inner: Null::new(), bytes: Box::new([0; 4096]) });
    let bus: &Bus<Dyn<'_>> = black_box(&bus);
    let device = bus.device(&Settings::new(0, 16_000_000)).expect("the null controller takes all");
    let config = Config::classic(Oscillator::new(40_000_000), BitRate::new(250_000));
    let mut driver = Mcp251xfd::new(device, Still, config).expect("the chip is there");
    driver.start().expect("the chip joins");
    let mut received = Received::default();
    let id = StandardId::new(0x076).expect("11 bits");
    let frame = black_box(Frame::classic(id, &[0x55; 8]).expect("8 bytes"));
    for _ in 0..calls {
        match way {
            Way::In => bench_op_can_receive(&mut driver, &mut received),
            Way::Out => bench_op_can_transmit(&mut driver, &frame),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chip_has_a_frame_and_room() {
        let bus = Bus::new(Memory { inner: Null::new(), bytes: Box::new([0; 4096]) });
        let bus: &Bus<Dyn<'_>> = &bus;
        let device =
            bus.device(&Settings::new(0, 16_000_000)).expect("the null controller takes all");
        let config = Config::classic(Oscillator::new(40_000_000), BitRate::new(250_000));
        let mut driver = Mcp251xfd::new(device, Still, config).expect("the chip is there");
        driver.start().expect("the chip joins");
        let mut received = Received::default();
        for _ in 0..50 {
            assert!(driver.service(&mut received).expect("goes through").frame);
            assert_eq!(received.frame.data(), [1, 2, 3, 4, 5, 6, 7, 8]);
            driver.transmit(&received.frame).expect("there is room");
        }
    }
}
