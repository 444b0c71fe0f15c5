//! Two tasks of an embassy executor: one awaits long reads, the other runs each millisecond beside it.
//!
//! In QEMU: `cargo run --bin embassy`. QEMU's wire takes no time, and each instruction 32 ns: so what the second task is late by
//! is the instructions of one poll of the first, and of the handler.
#![no_std]
#![no_main]

use core::cell::Cell;

use panic_semihosting as _;

use barewire::bus::{Bus, Pump};
use barewire::controller::ALWAYS_POLL;
use barewire::hal::HalDevice;
use barewire::reg::{MmioBlock, Registers};
use barewire::spi::{Mode, Settings};
use cortex_m::interrupt::Mutex;
use cortex_m::peripheral::NVIC;
use cortex_m::singleton;
use cortex_m_rt::{entry, exception};
use cortex_m_semihosting::{debug, hprintln};
use embassy_executor::{Executor, Spawner};
use embassy_futures::select::{Either, select};
use embassy_futures::yield_now;
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::signal::Signal;
use embedded_hal_async::spi::SpiDevice;
use firmware::{CLOCK_HZ, Irq, OneCore, SpiBus};

/// Transfers above this wait by interrupt.
const POLL_LIMIT_NS: u32 = 20_000;
const BYTES: usize = 16 << 10;
const READS: usize = 4;
/// The timer's clocks of a millisecond.
const PERIOD: u32 = CLOCK_HZ / 1000;

/// CMSDK's timer: it counts down to 0, interrupts, and begins anew.
///
/// Cortex-M System Design Kit Technical Reference Manual (Arm DDI 0479), "APB timer".
struct Timer(MmioBlock<0x1000>);

impl Timer {
    const CTRL: u32 = 0x00;
    const VALUE: u32 = 0x04;
    const RELOAD: u32 = 0x08;
    const INTCLEAR: u32 = 0x0c;
    /// CTRL: counts, and interrupts.
    const ON: u32 = 1 << 0 | 1 << 3;

    /// The handler and one task use it: each of its registers has one user, or is only read.
    fn get() -> Self {
        // SAFETY: the address of AN386's memory map.
        Self(unsafe { MmioBlock::new(0x4000_0000 as *mut u32) })
    }

    fn start() {
        let mut timer = Self::get();
        timer.0.write(Self::RELOAD, PERIOD - 1);
        timer.0.write(Self::VALUE, PERIOD - 1);
        timer.0.write(Self::CTRL, Self::ON);
    }

    fn clear() {
        Self::get().0.write(Self::INTCLEAR, 1);
    }

    /// Clocks since the last interrupt.
    fn elapsed() -> u32 {
        PERIOD - 1 - Self::get().0.read(Self::VALUE)
    }
}

static BUS: Mutex<Cell<Option<&'static SpiBus>>> = Mutex::new(Cell::new(None));
/// The ticks that the task has not seen.
static TICKS: Signal<CriticalSectionRawMutex, u32> = Signal::new();

#[exception]
unsafe fn DefaultHandler(number: i16) {
    if number == Irq::Timer0 as i16 {
        Timer::clear();
        TICKS.signal(TICKS.try_take().unwrap_or(0) + 1);
    } else if number == Irq::Spi0 as i16 {
        let bus = cortex_m::interrupt::free(|cs| BUS.borrow(cs).get());
        assert!(bus.is_some_and(SpiBus::interrupt), "an interrupt without a message in flight");
    }
}

/// What the task that runs each millisecond saw, until it was told to begin anew: clocks it was late by, at most.
static LATE: Mutex<Cell<u32>> = Mutex::new(Cell::new(0));

#[embassy_executor::task]
async fn each_millisecond() {
    loop {
        let missed = TICKS.wait().await - 1;
        let late = missed * PERIOD + Timer::elapsed();
        cortex_m::interrupt::free(|cs| {
            let worst = LATE.borrow(cs);
            worst.set(worst.get().max(late));
        });
    }
}

/// Awaits reads of all the bytes. Returns by how many clocks the other task was late meanwhile, at most.
async fn read(device: &mut impl SpiDevice, bytes: &mut [u8]) -> u32 {
    bytes.iter_mut().zip(0..).for_each(|(byte, at): (_, usize)| *byte = at as u8);
    // What was late on that account is over.
    yield_now().await;
    cortex_m::interrupt::free(|cs| LATE.borrow(cs).set(0));
    for _ in 0..READS {
        device.transfer_in_place(bytes).await.expect("is exchanged");
    }
    yield_now().await;
    let late = cortex_m::interrupt::free(|cs| LATE.borrow(cs).get());
    assert!(bytes.iter().zip(0..).all(|(&byte, at): (_, usize)| byte == at as u8), "it comes back");
    late
}

#[embassy_executor::task]
async fn reads(bus: &'static SpiBus) {
    let looped = |poll_limit_ns| {
        let settings = Settings { poll_limit_ns, ..Settings::new(0, 10_000_000) };
        let settings = Settings { mode: settings.mode | Mode::LOOP, ..settings };
        HalDevice::new(bus.device(&settings).expect("opens"))
    };
    let (mut awaited, mut polled) = (looped(None), looped(Some(ALWAYS_POLL)));
    let bytes = singleton!(: [u8; BYTES] = [0; BYTES]).expect("once");

    let [late_awaited, late_polled] =
        [read(&mut awaited, bytes).await, read(&mut polled, bytes).await];

    // The future of a message in flight is dropped.
    let dropped = select(awaited.transfer_in_place(bytes), yield_now()).await;
    assert!(matches!(dropped, Either::Second(())), "the message takes longer");
    let mut answer = [0x9f, 0x5a];
    awaited.transfer_in_place(&mut answer).await.expect("the bus is free");
    assert_eq!(answer, [0x9f, 0x5a]);

    let us = |clocks: u32| u64::from(clocks) * 1_000_000 / u64::from(CLOCK_HZ);
    hprintln!(
        "{} reads of {} bytes; beside them a task of each millisecond was late by at most {} us awaited, {} us polled",
        READS,
        BYTES,
        us(late_awaited),
        us(late_polled)
    );
    assert!(late_awaited < late_polled / 10, "awaiting lets the other task run");
    debug::exit(debug::EXIT_SUCCESS);
}

#[entry]
fn main() -> ! {
    // SAFETY: the only call.
    let spi = unsafe { firmware::spi(POLL_LIMIT_NS) };
    let bus = singleton!(: SpiBus = Bus::with_uses(spi, OneCore).with_pump(Pump::Interrupt))
        .expect("once");
    cortex_m::interrupt::free(|cs| BUS.borrow(cs).set(Some(bus)));
    // SAFETY: what the handlers use is there.
    unsafe {
        NVIC::unmask(Irq::Timer0);
        NVIC::unmask(Irq::Spi0);
    }
    Timer::start();
    let executor = singleton!(: Executor = Executor::new()).expect("once");
    executor.run(|spawner: Spawner| {
        spawner.spawn(each_millisecond().expect("once"));
        spawner.spawn(reads(bus).expect("once"));
    })
}
