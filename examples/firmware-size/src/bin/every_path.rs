//! Every path: sync, a future, a submitted message, and the interrupt that ends them.
#![no_std]
#![no_main]

use core::future::Future;
use core::hint::black_box;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicPtr, Ordering};
use core::task::{Context, Poll, Waker};

use barewire::bus::platform::Spin;
use barewire::bus::{Bus, Pump};
use barewire::spi::{Settings, Transfer};
use cortex_m_rt::{entry, exception};
use firmware_size::Interrupted;
use panic_halt as _;

static BUS: AtomicPtr<Bus<Interrupted, Spin>> = AtomicPtr::new(core::ptr::null_mut());

#[exception]
fn SysTick() {
    // SAFETY: the bus lives in `main`, which never returns.
    if let Some(bus) = unsafe { BUS.load(Ordering::Relaxed).as_ref() } {
        bus.interrupt();
    }
}

fn wait<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

#[entry]
fn main() -> ! {
    let bus = Bus::with_uses(firmware_size::interrupted(), Spin).with_pump(Pump::Interrupt);
    BUS.store((&raw const bus).cast_mut(), Ordering::Relaxed);
    let Ok(device) = bus.device(&Settings::new(0, 10_000_000)) else { loop {} };
    let Ok(queued) = device.queued([0x9f, 0, 0, 0]) else { loop {} };
    let mut queued = pin!(queued);
    let (mut rx4, mut rx64) = ([0; 4], [0; 64]);
    loop {
        let _ = black_box(device.sync(&mut [Transfer::exchange(&[0x9f, 0, 0, 0], &mut rx4)]));
        let mut message = [Transfer::write(&[3, 0, 0, 0]), Transfer::read(&mut rx64)];
        let _ = black_box(wait(pin!(device.transact(&mut message))));
        let _ = black_box(wait(pin!(queued.as_mut().run())));
    }
}
