//! Two devices of one bus as futures: neither waits for the other's whole work.
//!
//! `cargo run -p barewire-sim --example async_two_devices`. Any executor will do; this one polls.

use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use barewire::hal::{Async, HalDevice};
use barewire::spi::Settings;
use barewire_sim::{Board, BoardOptions, BoardSpec, bring_up};
use embedded_hal_async::spi::SpiDevice;

/// Polls both until both are done.
fn join<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut done_a, mut done_b) = (None, None);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if done_a.is_none()
            && let Poll::Ready(output) = a.as_mut().poll(&mut cx)
        {
            done_a = Some(output);
        }
        if done_b.is_none()
            && let Poll::Ready(output) = b.as_mut().poll(&mut cx)
        {
            done_b = Some(output);
        }
        if done_a.is_some() && done_b.is_some() {
            return (done_a.take().expect("is there"), done_b.take().expect("is there"));
        }
    }
}

/// Reads a status register until the chip is ready, at most `tries` times.
async fn ready<S: SpiDevice>(mut chip: S, tries: u32) -> Result<bool, S::Error> {
    for _ in 0..tries {
        let mut bytes = [0x05, 0];
        chip.transfer_in_place(&mut bytes).await?;
        if bytes[1] & 1 == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let board = Board::new(BoardSpec::find("imx8mp")?, BoardOptions::default());
    board.attach_flash(None)?;
    let bus = bring_up::bus(&board);
    let fast = Async(HalDevice::new(bus.device(&Settings::new(0, 20_000_000))?));
    let slow = Async(HalDevice::new(bus.device(&Settings::new(0, 1_000_000))?));

    let (fast, slow) = join(ready(fast, 10), ready(slow, 10));
    println!("ready at 20 MHz: {}, at 1 MHz: {} (simulated)", fast?, slow?);
    assert!(board.violations().is_empty());
    Ok(())
}
