//! Messages that wait by interrupt: what is accessed when, and what is left behind.

use core::cell::Cell;
use core::task::Poll;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

/// A counter that stands where a test puts it, at 19.2 MHz.
struct Clock<'c>(&'c Cell<u64>);

impl Timer for Clock<'_> {
    fn frequency_hz(&self) -> u32 {
        19_200_000
    }
    fn now_ticks(&mut self) -> u64 {
        self.0.get()
    }
    fn wait_ticks(&mut self, ticks: u64) {
        self.0.set(self.0.get() + ticks + 1);
    }
}

const BELL: u32 = 0x3000;

/// An interrupt on the script: being let come is a write of 1, a wait one of its microseconds.
struct Bell<'f, 's>(Shared<'f, 's>);

impl Interrupt for Bell<'_, '_> {
    fn enable(&mut self) {
        self.0.write(0, 1);
    }
    fn wait(&mut self, timeout_us: u32) -> bool {
        self.0.write(4, timeout_us);
        true
    }
}

/// The limit at which everything waits by interrupt.
fn eager() -> Bcm2835Config {
    Bcm2835Config { poll_limit_ns: 0, ..config(PIN_8) }
}

const ARMED_RXR: Access = Write(0x00, 0x482);
const ARMED_DONE: Access = Write(0x00, 0x282);
const SILENT: Access = Write(0x00, 0x82);
const THREE_QUARTERS: u32 = 0x000e_0082;
/// Twice the 64 bytes that may be in flight, and a millisecond.
const TIMEOUT_US: u32 = 1_323;
const TIMEOUT_TICKS: u64 = TIMEOUT_US as u64 * 192 / 10;

/// The driver brought up, and its first message selected.
fn selected() -> Vec<Access> {
    let mut script = Vec::from(CS_OUT);
    script.extend(RESET);
    script.extend(CONFIGURED);
    script.push(FALLS);
    script
}

fn sent(bytes: usize) -> Vec<Access> {
    vec![Write(0x04, 0); bytes]
}

fn received(bytes: usize) -> Vec<Access> {
    vec![Read(0x04, 7); bytes]
}

/// Runs `drive` on a driver held to `script`.
fn hold<'s>(
    script: &'s [Access],
    drive: impl FnOnce(
        &mut Bcm2835<Shared<'_, 's>, Bcm2835Gpio<Shared<'_, 's>>, Clock<'_>>,
        &Program,
        &Cell<u64>,
    ),
) {
    let (fake, now) = (RefCell::new(Fake::new(script)), Cell::new(0));
    let gpio = Bcm2835Gpio::new(Shared { fake: &fake, base: GPIO });
    let mut spi = Bcm2835::new(Shared { fake: &fake, base: 0 }, gpio, Clock(&now), eager());
    let (program, _) = spi.configure(&SETTINGS).expect("opens");
    drive(&mut spi, &program, &now);
    assert_eq!(fake.borrow().remaining(), 0);
}

#[test]
fn two_hundred_bytes_are_four_interrupts() {
    let mut script = selected();
    script.extend(sent(64));
    script.push(ARMED_RXR);
    // Two more came while the 48 were read.
    script.extend([SILENT, Read(0x00, THREE_QUARTERS)]);
    script.extend(received(48));
    script.extend([Read(0x00, BYTE), Read(0x04, 7), Read(0x00, BYTE), Read(0x04, 7)]);
    script.push(Read(0x00, EMPTY));
    script.extend(sent(50));
    script.push(ARMED_RXR);
    script.extend([SILENT, Read(0x00, THREE_QUARTERS)]);
    script.extend(received(48));
    script.push(Read(0x00, EMPTY));
    script.extend(sent(48));
    script.push(ARMED_RXR);
    // Late: all 64 are there, and the block has nothing to send.
    script.extend([SILENT, Read(0x00, 0x001f_0082)]);
    script.extend(received(64));
    script.extend(sent(38));
    // The rest is sent: the next to do is at the end.
    script.push(ARMED_DONE);
    script.extend([SILENT, Read(0x00, ENDED)]);
    script.extend(received(38));
    script.push(RISES);
    hold(&script, |spi, program, _| {
        let mut rx = vec![0; 200];
        let mut message = [Transfer::read(&mut rx)];
        spi.plan(program, &mut message).expect("a good message");
        assert_eq!(spi.start(program, &mut message), Poll::Pending);
        for _ in 0..3 {
            spi.arm();
            assert_eq!(spi.resume(program, &mut message), Poll::Pending);
        }
        spi.arm();
        assert_eq!(spi.resume(program, &mut message), Poll::Ready(Ok(200)));
        assert!(rx.iter().all(|&byte| byte == 7));
    });
}

#[test]
fn a_caller_who_blocks_lets_it_come_arms_sleeps_and_looks() {
    let sleep = [Write(BELL, 1), ARMED_DONE, Write(BELL + 4, TIMEOUT_US + 1)];
    let mut script = selected();
    script.extend(sent(2));
    script.extend(sleep);
    // Woken by somebody else's interrupt.
    script.extend([SILENT, Read(0x00, EMPTY), Read(0x00, EMPTY)]);
    script.extend(sleep);
    script.extend([SILENT, Read(0x00, ENDED)]);
    script.extend(received(2));
    script.push(RISES);
    let (fake, now) = (RefCell::new(Fake::new(&script)), Cell::new(0));
    let block = |base| Shared { fake: &fake, base };
    let gpio = Bcm2835Gpio::new(block(GPIO));
    let spi = Bcm2835::new(block(0), gpio, Clock(&now), eager()).with_interrupt(Bell(block(BELL)));
    let bus = Bus::new(spi);
    let mut rx = [0; 2];
    let device = bus.device(&SETTINGS).expect("opens");
    assert_eq!(device.sync(&mut [Transfer::read(&mut rx)]), Ok(2));
    assert_eq!(rx, [7, 7]);
    assert_eq!(fake.borrow().remaining(), 0);
}

#[test]
fn what_does_not_come_in_time_is_given_up_deselected_and_reset() {
    let mut script = selected();
    script.extend(sent(64));
    script.extend([ARMED_RXR, SILENT, Read(0x00, EMPTY), Read(0x00, EMPTY)]);
    script.extend([ARMED_RXR, SILENT, Read(0x00, EMPTY), Read(0x00, EMPTY), RISES]);
    script.extend(RESET);
    hold(&script, |spi, program, now| {
        let mut rx = vec![0; 512];
        let mut message = [Transfer::read(&mut rx)];
        spi.plan(program, &mut message).expect("a good message");
        assert_eq!(spi.start(program, &mut message), Poll::Pending);
        spi.arm();
        assert_eq!(spi.resume(program, &mut message), Poll::Pending, "not yet");
        now.set(now.get() + TIMEOUT_TICKS);
        spi.arm();
        let unfinished = Unfinished::stopped(0, Stopped::TimedOut { timeout_us: TIMEOUT_US });
        assert_eq!(spi.resume(program, &mut message), Poll::Ready(Err(unfinished)));
    });
}

#[test]
fn a_handler_that_comes_late_still_sees_that_the_block_was_in_time() {
    let mut script = selected();
    script.extend(sent(1));
    script.extend([ARMED_DONE, SILENT, Read(0x00, EMPTY), Read(0x00, ENDED), Read(0x04, 7)]);
    script.push(RISES);
    hold(&script, |spi, program, now| {
        let mut message = [Transfer::write(&[0])];
        spi.plan(program, &mut message).expect("a good message");
        assert_eq!(spi.start(program, &mut message), Poll::Pending);
        spi.arm();
        now.set(now.get() + TIMEOUT_TICKS);
        assert_eq!(spi.resume(program, &mut message), Poll::Ready(Ok(1)));
    });
}

#[test]
fn the_last_byte_may_come_before_done() {
    let mut script = selected();
    script.extend(sent(1));
    script.extend([ARMED_DONE, SILENT, Read(0x00, BYTE), Read(0x04, 7)]);
    script.extend([Read(0x00, EMPTY), Read(0x00, ENDED_EMPTY), RISES]);
    hold(&script, |spi, program, _| {
        let mut message = [Transfer::write(&[0])];
        spi.plan(program, &mut message).expect("a good message");
        assert_eq!(spi.start(program, &mut message), Poll::Pending);
        spi.arm();
        assert_eq!(spi.resume(program, &mut message), Poll::Ready(Ok(1)));
    });
}

#[test]
fn an_abandoned_message_is_silenced_deselected_and_cleared() {
    let mut script = selected();
    script.extend(sent(64));
    script.extend([ARMED_RXR, Read(0x00, 0x0004_0482), SILENT]);
    script.extend([RISES, Read(GPIO, 1 << 24)]);
    script.extend(RESET);
    // The next message relies on nothing.
    script.extend(CONFIGURED);
    script.push(FALLS);
    script.extend(sent(64));
    hold(&script, |spi, program, _| {
        let mut rx = vec![0; 512];
        let mut message = [Transfer::read(&mut rx)];
        spi.plan(program, &mut message).expect("a good message");
        assert_eq!(spi.start(program, &mut message), Poll::Pending);
        spi.arm();
        spi.reclaim();
        let mut message = [Transfer::read(&mut rx)];
        spi.plan(program, &mut message).expect("a good message");
        assert_eq!(spi.start(program, &mut message), Poll::Pending);
    });
}

#[test]
fn short_transfers_of_a_long_message_are_polled_and_speeds_are_their_own() {
    let mut script = selected();
    script.extend(ONE_BYTE);
    script.extend([Write(0x00, 0x02), Write(0x08, 400), Write(0x00, 0x82)]);
    script.extend(sent(64));
    script.push(ARMED_RXR);
    let (fake, now) = (RefCell::new(Fake::new(&script)), Cell::new(0));
    let gpio = Bcm2835Gpio::new(Shared { fake: &fake, base: GPIO });
    let config = Bcm2835Config { poll_limit_ns: 20_000, ..eager() };
    let mut spi = Bcm2835::new(Shared { fake: &fake, base: 0 }, gpio, Clock(&now), config);
    let (program, _) = spi.configure(&SETTINGS).expect("opens");
    let mut rx = vec![0; 512];
    let slow = Transfer::read(&mut rx).with_speed_hz(1_000_000);
    let mut message = [Transfer::write(&[9]), slow];
    spi.plan(&program, &mut message).expect("a good message");
    assert_eq!(spi.start(&program, &mut message), Poll::Pending);
    spi.arm();
    assert_eq!(fake.borrow().remaining(), 0);
}

#[test]
fn the_limit_counts_nine_clocks_a_byte_word_delays_and_own_speeds() {
    let config = Bcm2835Config { poll_limit_ns: 100_000, ..config(CE0) };
    let at = |settings| config.configure(&settings, 8_000_000).expect("opens").0;
    assert_eq!(at(SETTINGS).poll_bytes_max, 39, "2,520 ns a byte");
    let spaced = Settings { word_delay_ns: 600, ..SETTINGS };
    assert_eq!(at(spaced).poll_bytes_max, 31, "and 5 ticks of 125 ns");
    let always = Bcm2835Config { poll_limit_ns: ALWAYS_POLL, ..config };
    let (program, _) = always.configure(&SETTINGS, 8_000_000).expect("opens");
    assert_eq!(program.poll_bytes_max, usize::MAX);

    let config = Bcm2835Config { poll_limit_ns: 100_000, ..eager() };
    let spi = Bcm2835::new(Looped::default(), NoPins, Ticker(0), config);
    let (program, _) = spi.configure(&SETTINGS).expect("opens");
    let bytes = [0; 112];
    let mut message = [
        Transfer::write(&bytes[..39]),
        Transfer::write(&bytes[..40]),
        // 900 ns a byte.
        Transfer::write(&bytes[..111]).with_speed_hz(10_000_000),
        Transfer::write(&bytes).with_speed_hz(10_000_000),
        Transfer::write(&bytes[..32]).with_word_delay_ns(625),
        Transfer::write(&[]),
    ];
    spi.plan(&program, &mut message).expect("a good message");
    let waits = message.each_ref().map(|transfer| transfer.plan.by_interrupt());
    assert_eq!(waits, [false, true, false, true, true, false]);
}

/// A bank on which nothing is seen.
struct NoPins;

impl GpioBank for NoPins {
    fn drive(&mut self, _mask: u32, _high: bool) {}
    fn output(&mut self, _mask: u32, _high: bool) {}
}

#[test]
fn every_length_loops_back_by_interrupt() {
    let lengths: &[usize] =
        if cfg!(miri) { &[0, 1, 65] } else { &[0, 1, 2, 48, 63, 64, 65, 112, 128, 200] };
    for word_delay_ns in [0, 250] {
        let mut spi = Bcm2835::new(Looped::default(), NoPins, Ticker(0), eager());
        let (program, _) = spi.configure(&Settings { word_delay_ns, ..SETTINGS }).expect("opens");
        for &len in lengths {
            let tx: Vec<u8> = (0..len).map(|i| (i * 7 + 1) as u8).collect();
            let mut rx = vec![0; len];
            let mut message = [Transfer::exchange(&tx, &mut rx)];
            spi.plan(&program, &mut message).expect("a good message");
            let mut polled = spi.start(&program, &mut message);
            while polled.is_pending() {
                spi.arm();
                polled = spi.resume(&program, &mut message);
            }
            assert_eq!(polled, Poll::Ready(Ok(len)));
            assert_eq!(rx, tx, "{len} bytes");
        }
        let block = spi.release().0;
        assert_eq!((block.overruns, block.astray, block.cs), (0, 0, 0));
    }
}

/// An interrupt that ends the caller.
struct Fatal;

impl Interrupt for Fatal {
    fn enable(&mut self) {}
    fn wait(&mut self, _timeout_us: u32) -> bool {
        panic!("was killed while it slept")
    }
}

#[test]
fn a_caller_that_dies_asleep_leaves_an_idle_block() {
    let spi = Bcm2835::new(Looped::default(), NoPins, Ticker(0), eager()).with_interrupt(Fatal);
    let bus = Bus::new(spi);
    let device = bus.device(&SETTINGS).expect("opens");
    let died = catch_unwind(AssertUnwindSafe(|| device.sync(&mut [Transfer::write(&[0; 64])])));
    died.expect_err("dies");
    let block = bus.into_inner().release().0;
    // At start, for the device, after the death, at the end.
    assert_eq!((block.clears, block.cs), (4, 0));
}
