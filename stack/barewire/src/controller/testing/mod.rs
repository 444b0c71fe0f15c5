//! Shared by the drivers' tests: timers, blocks on one script of accesses, an interrupt on that
//! script, and the calls of a handler.

pub(super) mod short;

use core::cell::{Cell, RefCell};
use core::fmt::Debug;
use core::task::Poll;
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec;
use std::vec::Vec;

use super::gpio::GpioBank;
use super::{Controller, Interrupt, Program, Unfinished};
use crate::bus::{Bus, Device};
use crate::reg::{Access, Fake, Registers};
use crate::spi::{Settings, Transfer};
use crate::time::Timer;

/// A counter that counts its reads.
#[derive(Debug, Default)]
pub(super) struct Ticker<const HZ: u32>(pub u64);

impl<const HZ: u32> Timer for Ticker<HZ> {
    fn frequency_hz(&self) -> u32 {
        HZ
    }
    fn now_ticks(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// A counter whose value the test sets.
#[derive(Debug)]
pub(super) struct Clock<'c, const HZ: u32>(&'c Cell<u64>);

impl<'c, const HZ: u32> Clock<'c, HZ> {
    pub(super) fn new(now: &'c Cell<u64>) -> Self {
        Self(now)
    }
}

impl<const HZ: u32> Timer for Clock<'_, HZ> {
    fn frequency_hz(&self) -> u32 {
        HZ
    }
    fn now_ticks(&mut self) -> u64 {
        self.0.get()
    }
    fn wait_ticks(&mut self, ticks: u64) {
        self.0.set(self.0.get() + ticks + 1);
    }
}

/// Blocks on one script, so that the order of accesses between them is checked too.
#[derive(Debug)]
pub(super) struct Blocks<'s>(RefCell<Fake<'s>>);

impl<'s> Blocks<'s> {
    pub(super) fn on(script: &'s [Access]) -> Self {
        Self(RefCell::new(Fake::new(script)))
    }

    /// The block whose registers begin at `base`.
    pub(super) fn at(&self, base: u32) -> Shared<'_, 's> {
        Shared { fake: &self.0, base }
    }

    /// Asserts that the whole script was used.
    #[track_caller]
    pub(super) fn end(&self) {
        assert_eq!(self.0.borrow().remaining(), 0);
    }
}

/// One of [`Blocks`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared<'f, 's> {
    fake: &'f RefCell<Fake<'s>>,
    base: u32,
}

impl Registers for Shared<'_, '_> {
    fn read(&mut self, offset: u32) -> u32 {
        self.fake.borrow_mut().read(self.base + offset)
    }
    fn write(&mut self, offset: u32, value: u32) {
        self.fake.borrow_mut().write(self.base + offset, value);
    }
    fn barrier(&mut self) {
        self.fake.borrow_mut().barrier();
    }
}

/// An interrupt on the script: enabling it is a write of 1, a wait is a write of its microseconds.
pub(super) struct Bell<'f, 's>(pub Shared<'f, 's>);

impl Interrupt for Bell<'_, '_> {
    fn enable(&mut self) {
        self.0.write(0, 1);
    }
    fn wait(&mut self, timeout_us: u32) -> bool {
        self.0.write(4, timeout_us);
        true
    }
}

/// A bank that does nothing.
#[derive(Debug)]
pub(super) struct NoPins;

impl GpioBank for NoPins {
    fn drive(&mut self, _mask: u32, _high: bool) {}
    fn output(&mut self, _mask: u32, _high: bool) {}
}

/// Runs a device's messages step by step, by the calls of their caller and of the block's handler.
pub(super) struct Steps<'d, C: ?Sized> {
    pub driver: &'d mut C,
    program: Program,
}

impl<'d, C: Controller + ?Sized> Steps<'d, C> {
    pub(super) fn new(driver: &'d mut C, settings: &Settings) -> Self {
        let (program, _) = driver.configure(settings).expect("opens");
        Self { driver, program }
    }

    /// Starts a message that waits by interrupt, as its caller does.
    #[track_caller]
    pub(super) fn begin(&mut self, message: &mut [Transfer<'_>]) {
        self.driver.plan(&self.program, message).expect("a good message");
        assert_eq!(self.start(message), Poll::Pending);
    }

    /// Starts a planned message, as its caller does.
    pub(super) fn start(
        &mut self,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.driver.start(&self.program, message)
    }

    /// Continues the message, as the handler does.
    pub(super) fn resume(
        &mut self,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.driver.resume(&self.program, message)
    }

    /// Arms the block, lets it interrupt, and continues the message.
    pub(super) fn interrupt(
        &mut self,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.driver.arm();
        self.resume(message)
    }

    /// Runs a message with as many interrupts as it takes; `work` lets the block work before each.
    pub(super) fn run(
        &mut self,
        message: &mut [Transfer<'_>],
        mut work: impl FnMut(&mut C),
    ) -> Poll<Result<usize, Unfinished>> {
        self.driver.plan(&self.program, message).expect("a good message");
        let mut polled = self.start(message);
        while polled.is_pending() {
            self.driver.arm();
            work(self.driver);
            polled = self.resume(message);
        }
        polled
    }

    /// Sends `len` bytes through a block that loops back.
    #[track_caller]
    pub(super) fn loop_back(&mut self, len: usize, what: impl Debug, work: impl FnMut(&mut C)) {
        let tx = sample(len);
        let mut rx = vec![0; len];
        let polled = self.run(&mut [Transfer::exchange(&tx, &mut rx)], work);
        assert_eq!(polled, Poll::Ready(Ok(len)));
        assert_eq!(rx, tx, "{len} bytes, {what:?}");
    }
}

/// Runs `drive` on a device of `settings` behind the driver that `bring_up` makes of a script's
/// blocks and a clock, and asserts that the whole script was used.
#[track_caller]
pub(super) fn hold_steps(
    script: &[Access],
    settings: &Settings,
    bring_up: impl for<'a> FnOnce(&'a Blocks<'_>, &'a Cell<u64>) -> Box<dyn Controller + 'a>,
    drive: impl FnOnce(&mut Steps<'_, dyn Controller + '_>, &Cell<u64>),
) {
    let (blocks, now) = (Blocks::on(script), Cell::new(0));
    let mut driver = bring_up(&blocks, &now);
    drive(&mut Steps::new(&mut *driver, settings), &now);
    blocks.end();
}

pub(super) fn sample(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + 1) as u8).collect()
}

/// Sends `len` bytes to a block that loops back, and returns them.
#[track_caller]
pub(super) fn loop_back(
    device: &Device<'_, impl Controller>,
    len: usize,
    what: impl Debug,
) -> Vec<u8> {
    let tx = sample(len);
    let mut rx = vec![0; len];
    device.sync(&mut [Transfer::exchange(&tx, &mut rx)]).expect("runs");
    assert_eq!(rx, tx, "{len} bytes, {what:?}");
    rx
}

/// Sends transfers of these lengths under one chip select to a block that loops back: prepared, twice.
#[track_caller]
pub(super) fn loop_back_several(device: &Device<'_, impl Controller>, lengths: [usize; 3]) {
    let tx = lengths.map(sample);
    let (mut first, mut last) = (vec![0; lengths[0]], vec![0; lengths[2]]);
    let mut message = [
        Transfer::exchange(&tx[0], &mut first),
        Transfer::write(&tx[1]),
        Transfer::exchange(&tx[2], &mut last),
    ];
    let mut prepared = device.prepare_message(&mut message).expect("is planned");
    for _ in 0..2 {
        prepared.rx_mut(0).expect("receives").fill(0);
        prepared.rx_mut(2).expect("receives").fill(0);
        assert_eq!(prepared.run(), Ok(lengths.iter().sum()), "{lengths:?}");
        assert_eq!(prepared.rx(0), Some(&tx[0][..]), "{lengths:?}");
        assert_eq!(prepared.rx(2), Some(&tx[2][..]), "{lengths:?}");
    }
}

/// Runs a message planned to wait by interrupt on a driver without an interrupt, on a block that
/// loops back.
pub(super) fn runs_without_interrupt(driver: impl Controller, settings: &Settings) {
    let bus = Bus::new(driver);
    let device = bus.device(settings).expect("opens");
    let mut bytes = [9; 300];
    assert_eq!(device.sync(&mut [Transfer::in_place(&mut bytes)]), Ok(300));
    assert_eq!(bytes, [9; 300]);
}

/// An interrupt whose wait panics.
pub(super) struct Fatal;

impl Interrupt for Fatal {
    fn enable(&mut self) {}
    fn wait(&mut self, _timeout_us: u32) -> bool {
        panic!("was killed while it slept")
    }
}

/// Lets a driver with [`Fatal`] panic within a message of 64 bytes, and returns the driver.
pub(super) fn die_asleep<C: Controller>(driver: C, settings: &Settings) -> C {
    let bus = Bus::new(driver);
    let device = bus.device(settings).expect("opens");
    let died = catch_unwind(AssertUnwindSafe(|| device.sync(&mut [Transfer::write(&[0; 64])])));
    died.expect_err("dies");
    bus.into_inner()
}
