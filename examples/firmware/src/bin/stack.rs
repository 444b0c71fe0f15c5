//! How deep the stack is in each path: the memory below it is filled with a pattern, the path runs,
//! and the bytes that it overwrote are counted.
//!
//! In QEMU: `cargo run --bin stack`. A path that needs more than its row allows fails.
#![no_std]
#![no_main]

use core::cell::Cell;
use core::hint::black_box;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use panic_semihosting as _;

use barewire::bus::{Bus, Device, Pump};
use barewire::controller::ALWAYS_POLL;
use barewire::hal::HalDevice;
use barewire::spi::{Mode, Settings, Transfer};
use cortex_m::interrupt::Mutex;
use cortex_m::peripheral::NVIC;
use cortex_m::register::msp;
use cortex_m_rt::{entry, exception};
use cortex_m_semihosting::{debug, hprintln};
use embedded_hal_async::spi::SpiDevice as _;
use firmware::{Irq, OneCore, Spi, SpiBus};

/// Transfers above this wait by interrupt.
const POLL_LIMIT_NS: u32 = 20_000;

static BUS: Mutex<Cell<Option<&'static SpiBus>>> = Mutex::new(Cell::new(None));

#[exception]
unsafe fn DefaultHandler(_: i16) {
    let bus = cortex_m::interrupt::free(|cs| BUS.borrow(cs).get());
    assert!(bus.is_some_and(SpiBus::interrupt), "an interrupt without a message in flight");
}

unsafe extern "C" {
    /// The end of the memory that the program has, by the linker: the stack may grow down to here.
    static __sheap: u32;
}

const PAINT: u32 = 0x5a5a_a5a5;
/// What stays between the painter's own frame and the paint, in bytes.
const MARGIN: usize = 64;

fn bottom() -> *mut u32 {
    (&raw const __sheap).cast_mut()
}

/// The bytes of stack that `path` needs.
#[inline(never)]
fn depth(path: impl FnOnce()) -> usize {
    let top = msp::read() as usize - MARGIN;
    let words = (top - bottom() as usize) / 4;
    for index in 0..words {
        // SAFETY: memory between the program's data and the stack, which nothing uses.
        unsafe { bottom().add(index).write_volatile(PAINT) };
    }
    path();
    // SAFETY: as above; what a path has left there is dead.
    let is_clean = |index: &usize| unsafe { bottom().add(*index).read_volatile() } == PAINT;
    let clean = (0..words).take_while(is_clean).count();
    top - (bottom() as usize + clean * 4)
}

/// Prints a row; false if it is over what is allowed.
fn row(name: &str, deep: usize, allowed: usize) -> bool {
    hprintln!("stack: {}: {} bytes (at most {})", name, deep, allowed);
    deep <= allowed
}

fn looped(bus: &SpiBus, poll_limit_ns: Option<u32>) -> Device<'_, Spi, OneCore> {
    let settings = Settings { poll_limit_ns, ..Settings::new(0, 10_000_000) };
    let settings = Settings { mode: settings.mode | Mode::LOOP, ..settings };
    bus.device(&settings).expect("a device")
}

#[entry]
fn main() -> ! {
    // SAFETY: the only call.
    let spi = unsafe { firmware::spi(POLL_LIMIT_NS) };
    let bus =
        cortex_m::singleton!(: SpiBus = Bus::with_uses(spi, OneCore).with_pump(Pump::Interrupt));
    let bus: &'static SpiBus = bus.expect("the only call");
    cortex_m::interrupt::free(|cs| BUS.borrow(cs).set(Some(bus)));
    // SAFETY: the handler may run from here on.
    unsafe { NVIC::unmask(Irq::Spi0) };

    let device = looped(bus, Some(ALWAYS_POLL));
    let mut access = device.prepare([0x9f, 0, 0, 0]).expect("an access");
    let mut hal = HalDevice::new(looped(bus, None));
    let (tx, mut rx) = ([0x9f, 1, 2, 3], [0; 64]);
    let rows = [
        ("an empty path", depth(|| {}), 64),
        ("a device is opened", depth(|| _ = black_box(looped(bus, None))), 1600),
        ("an access is prepared", depth(|| _ = black_box(device.prepare([0; 4]))), 320),
        ("a prepared access", depth(|| _ = black_box(access.run())), 320),
        (
            "sync: 4 written, 64 read",
            depth(|| {
                let mut message = [Transfer::write(&tx), Transfer::read(&mut rx)];
                device.sync(&mut message).expect("runs");
            }),
            400,
        ),
        (
            "`embedded-hal`, awaited, with its handler: 4 written, 64 read",
            depth(|| {
                use embedded_hal_async::spi::Operation;
                let mut read = [0; 64];
                let mut operations = [Operation::Write(&tx), Operation::Read(&mut read)];
                let mut run = pin!(hal.transaction(&mut operations));
                let mut context = Context::from_waker(Waker::noop());
                while let Poll::Pending = run.as_mut().poll(&mut context) {}
            }),
            1200,
        ),
    ];
    let good =
        rows.into_iter().fold(true, |good, (name, deep, allowed)| row(name, deep, allowed) & good);
    debug::exit(if good { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    loop {
        cortex_m::asm::nop();
    }
}
