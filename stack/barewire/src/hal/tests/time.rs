//! Delays by a timer, and pins.

use embedded_hal::delay::DelayNs;
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs as AsyncDelayNs;

use super::block_on;
use crate::controller::gpio::{ImxGpio, Ownership};
use crate::hal::{BankPin, Delay};
use crate::reg::Access::{Read, Write};
use crate::reg::Fake;
use crate::spi::{MODE_0, MODE_1, MODE_2, MODE_3, Mode};
use crate::time::{Timer, ticks_at_least};

/// A counter that advances by `step` at each read, and records its use.
struct Counter {
    hz: u32,
    now: u64,
    step: u64,
    waited: u64,
    slept_ns: u64,
}

impl Counter {
    fn new(hz: u32, step: u64) -> Self {
        Self { hz, now: 0, step, waited: 0, slept_ns: 0 }
    }
}

impl Timer for Counter {
    fn frequency_hz(&self) -> u32 {
        self.hz
    }
    fn now_ticks(&mut self) -> u64 {
        self.now += self.step;
        self.now
    }
    fn wait_ticks(&mut self, ticks: u64) {
        self.waited += ticks;
    }
    fn sleep_ns(&mut self, ns: u64) {
        self.slept_ns += ns;
    }
}

#[test]
fn every_unit_is_one_wait_without_overflow() {
    let hz = 3_000_000_000;
    let waited = |delay: fn(&mut Delay<Counter>)| {
        let mut by = Delay::new(Counter::new(hz, 0));
        delay(&mut by);
        by.release().waited
    };
    let max = u64::from(u32::MAX);
    assert_eq!(waited(|by| DelayNs::delay_ns(by, 1)), 3);
    assert_eq!(waited(|by| DelayNs::delay_ns(by, u32::MAX)), ticks_at_least(max, hz));
    assert_eq!(waited(|by| DelayNs::delay_us(by, u32::MAX)), ticks_at_least(max * 1_000, hz));
    assert_eq!(waited(|by| DelayNs::delay_ms(by, u32::MAX)), ticks_at_least(max * 1_000_000, hz));
    let mut slow = Delay::new(Counter::new(32_768, 0));
    DelayNs::delay_ns(&mut slow, 30_518);
    assert_eq!(slow.release().waited, 2, "a tick is 30,517.6 ns: rounded up");
}

#[test]
fn long_waits_sleep_where_that_was_asked() {
    let mut delay = Delay::new(Counter::new(1_000_000, 0)).with_sleep_from_ns(50_000);
    DelayNs::delay_us(&mut delay, 49);
    DelayNs::delay_us(&mut delay, 50);
    let timer = delay.release();
    assert_eq!((timer.waited, timer.slept_ns), (49, 50_000));
}

#[test]
fn a_future_yields_between_looks_and_spans_whole_ticks() {
    let mut delay = Delay::new(Counter::new(1_000_000, 1));
    // Begins within tick 1; only tick 5 proves that 3 whole ticks have passed.
    assert_eq!(block_on(AsyncDelayNs::delay_us(&mut delay, 3)), ((), 4));
    assert_eq!(delay.release().now, 5);
    let mut delay = Delay::new(Counter::new(1_000_000, 1));
    assert_eq!(block_on(AsyncDelayNs::delay_ns(&mut delay, 0)), ((), 1));
    assert_eq!(delay.release().now, 0, "without a delay the time is not read");
    // Years, on a counter that leaps.
    let mut delay = Delay::new(Counter::new(1_000_000_000, 1 << 52));
    block_on(AsyncDelayNs::delay_ms(&mut delay, u32::MAX));
    block_on(AsyncDelayNs::delay_ns(&mut delay, u32::MAX));
    let now = delay.release().now;
    assert!(now > u64::from(u32::MAX) * 1_000_000, "{now}");
}

#[test]
fn a_pin_has_its_level_before_it_drives_and_follows() {
    let script = [
        Read(0, 0),
        Write(0, 8),
        Read(4, 0),
        Write(4, 8),
        Read(0, 0x18),
        Write(0, 0x10),
        Read(0, 0x10),
        Write(0, 0x18),
    ];
    let mut fake = Fake::new(&script);
    let mut pin = BankPin::new(ImxGpio::new(&mut fake, Ownership::Shared), 3, true);
    pin.set_low().expect("cannot fail");
    pin.set_high().expect("cannot fail");
    let _ = pin.release();
    assert_eq!(fake.remaining(), 0);
}

#[test]
fn modes_are_the_same_modes() {
    use embedded_hal::spi;
    let theirs = [spi::MODE_0, spi::MODE_1, spi::MODE_2, spi::MODE_3];
    assert_eq!(theirs.map(Mode::from), [MODE_0, MODE_1, MODE_2, MODE_3]);
}
