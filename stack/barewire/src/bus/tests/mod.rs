//! The bus's promises, on controllers that misbehave on purpose.

use core::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::vec::Vec;

mod auto_traits;
mod interrupt;
mod park;
mod queue;
mod queued;
mod statistics;
mod turns;
mod uses;
mod visit;

use std::boxed::Box;

use super::*;
use crate::controller::null::Null;
use crate::controller::{Controller, Limits, Plan, Preset, Stopped, Unfinished, Wire, run_message};
use crate::spi::{Data, Effective, Error, MessageError, Settings, Transfer};

/// A controller that answers like the null controller, but runs its own wire.
macro_rules! as_the_null_controller {
    () => {
        fn limits(&self) -> Limits {
            Null::new().limits()
        }
        fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
            Null::new().configure(settings)
        }
        fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
            Null::new().plan(preset, message)
        }
        fn run(
            &mut self,
            preset: &Preset,
            message: &mut [Transfer<'_>],
        ) -> Result<usize, Unfinished> {
            run_message(self, preset, message)
        }
        fn reclaim(&mut self) {}
    };
}

/// A wire that logs its calls and runs a hook at each exchange.
struct Scripted<F> {
    log: Vec<&'static str>,
    hook: F,
}

impl<F: FnMut(usize) -> Result<(), Stopped>> Wire for Scripted<F> {
    fn select(&mut self, _: &Preset) {
        self.log.push("select");
    }
    fn deselect(&mut self, _: &Preset) {
        self.log.push("deselect");
    }
    fn exchange(&mut self, _: &Preset, _: &Plan, data: &mut Data<'_>) -> Result<(), Stopped> {
        self.log.push("exchange");
        (self.hook)(data.len())
    }
    fn recover(&mut self) {
        self.log.push("recover");
    }
    fn wait_ticks(&mut self, _: u32) {
        self.log.push("wait");
    }
}

impl<F: FnMut(usize) -> Result<(), Stopped>> Controller for Scripted<F> {
    as_the_null_controller!();
}

type Hook<'h> = Box<dyn FnMut(usize) -> Result<(), Stopped> + Send + 'h>;

/// A wire that stores what it is sent, returns it inverted, and runs a hook at each exchange.
struct Wired<'h> {
    sent: Vec<u8>,
    selected: bool,
    hook: Hook<'h>,
}

impl Wire for Wired<'_> {
    fn select(&mut self, _: &Preset) {
        assert!(!self.selected, "one message inside another");
        self.selected = true;
    }
    fn deselect(&mut self, _: &Preset) {
        self.selected = false;
    }
    fn exchange(&mut self, _: &Preset, _: &Plan, data: &mut Data<'_>) -> Result<(), Stopped> {
        (self.hook)(data.len())?;
        let sent = data.tx().unwrap_or_default().to_vec();
        if let Some(rx) = data.rx_mut() {
            rx.iter_mut().zip(&sent).for_each(|(rx, tx)| *rx = !tx);
        }
        self.sent.extend(sent);
        Ok(())
    }
    fn recover(&mut self) {}
    fn wait_ticks(&mut self, _: u32) {}
}

impl Controller for Wired<'_> {
    as_the_null_controller!();
}

fn wired<'h>(
    platform: &'static dyn Platform,
    hook: impl FnMut(usize) -> Result<(), Stopped> + Send + 'h,
) -> Bus<Wired<'h>> {
    let wire = Wired { sent: Vec::new(), selected: false, hook: Box::new(hook) };
    Bus::with_platform(wire, platform)
}

fn scripted<F: FnMut(usize) -> Result<(), Stopped>>(hook: F) -> Bus<Scripted<F>> {
    scripted_on(&platform::Spin, hook)
}

fn scripted_on<F: FnMut(usize) -> Result<(), Stopped>>(
    platform: &'static dyn Platform,
    hook: F,
) -> Bus<Scripted<F>> {
    Bus::with_platform(Scripted { log: Vec::new(), hook }, platform)
}

const SETTINGS: Settings = Settings::new(0, 1_000_000);

#[test]
fn a_message_runs_under_one_chip_select() {
    let mut bus = scripted(|_| Ok(()));
    let mut rx = [9; 3];
    let sent = bus
        .device(&SETTINGS)
        .and_then(|device| Ok(device.sync(&mut [Transfer::write(&[1]), Transfer::read(&mut rx)])?))
        .expect("runs");
    assert_eq!(sent, 4);
    assert_eq!(bus.get_mut().log, ["select", "exchange", "exchange", "deselect"]);
}

#[test]
fn cs_change_pulses_and_delays_wait() {
    let mut bus = scripted(|_| Ok(()));
    let device = bus.device(&SETTINGS).expect("opens");
    device
        .sync(&mut [
            Transfer::write(&[1]).with_cs_change(),
            Transfer::write(&[2]).with_delay_ns(5),
            Transfer::write(&[3]),
        ])
        .expect("runs");
    assert_eq!(
        bus.get_mut().log,
        ["select", "exchange", "deselect", "select", "exchange", "wait", "exchange", "deselect"]
    );
}

#[test]
fn device_delays_stand_around_every_selection() {
    let mut bus = scripted(|_| Ok(()));
    let settings = Settings { cs_setup_ns: 1, cs_hold_ns: 2, cs_inactive_ns: 3, ..SETTINGS };
    bus.device(&settings).expect("opens").sync(&mut [Transfer::write(&[1])]).expect("runs");
    assert_eq!(bus.get_mut().log, ["select", "wait", "exchange", "wait", "deselect", "wait"]);
}

#[test]
fn an_error_releases_cs_and_says_where() {
    let timeout = Stopped::TimedOut { timeout_us: 7 };
    let mut bus = scripted(move |len| if len == 2 { Err(timeout) } else { Ok(()) });
    let device = bus.device(&SETTINGS).expect("opens");
    let error = device
        .sync(&mut [Transfer::write(&[1, 2, 3]), Transfer::write(&[1, 2]), Transfer::write(&[1])])
        .expect_err("the second transfer fails");
    assert_eq!(
        error,
        MessageError {
            error: Error::Timeout { timeout_us: 7 },
            transfer_index: 1,
            actual_length: 3
        }
    );
    device.try_sync(&mut [Transfer::write(&[1])]).expect("the bus was given back");
    assert_eq!(bus.get_mut().log[..5], ["select", "exchange", "exchange", "deselect", "recover"]);
}

#[test]
fn a_panic_releases_cs_and_the_bus() {
    let panics = Cell::new(true);
    let mut bus = scripted(|_| {
        assert!(!panics.get(), "the hook panics");
        Ok(())
    });
    let device = bus.device(&SETTINGS).expect("opens");
    let unwound =
        catch_unwind(AssertUnwindSafe(|| device.sync(&mut [Transfer::write(&[1])]).is_ok()));
    assert!(unwound.is_err());
    panics.set(false);
    device.try_sync(&mut [Transfer::write(&[1])]).expect("the bus was given back");
    assert_eq!(
        bus.get_mut().log,
        ["select", "exchange", "deselect", "recover", "select", "exchange", "deselect"]
    );
}

#[test]
fn try_calls_inside_a_message_are_busy_and_leave_the_bus_held() {
    // A handler that interrupts the holder sees the bus from inside a message. The queue of
    // answers is filled by the hook below.
    static BUS: Bus<Probe> = Bus::new(Probe);
    static ANSWERS: AtomicUsize = AtomicUsize::new(0);
    struct Probe;
    impl Wire for Probe {
        fn select(&mut self, _: &Preset) {}
        fn deselect(&mut self, _: &Preset) {}
        fn recover(&mut self) {}
        fn wait_ticks(&mut self, _: u32) {}
        fn exchange(&mut self, _: &Preset, _: &Plan, _: &mut Data<'_>) -> Result<(), Stopped> {
            for _ in 0..3 {
                // Not even a first refusal may free the bus for a second call.
                if BUS.try_lock().is_none() {
                    ANSWERS.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(())
        }
    }
    impl Controller for Probe {
        as_the_null_controller!();
    }
    BUS.device(&SETTINGS).expect("opens").sync(&mut [Transfer::write(&[1])]).expect("runs");
    assert_eq!(ANSWERS.load(Ordering::Relaxed), 3);
    assert!(BUS.try_lock().is_some(), "and after it the bus is free");
}

#[test]
fn messages_of_threads_are_never_interleaved() {
    static INSIDE: AtomicBool = AtomicBool::new(false);
    let rounds = if cfg!(miri) { 20 } else { 2_000 };
    let bus = scripted_on(&park::Park, |_| {
        assert!(!INSIDE.swap(true, Ordering::Relaxed), "two messages on the wire");
        std::thread::yield_now();
        INSIDE.store(false, Ordering::Relaxed);
        Ok(())
    });
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let device = bus.device(&SETTINGS).expect("opens");
                let mut register = device.prepare([1, 2]).expect("prepares");
                for _ in 0..rounds {
                    device.sync(&mut [Transfer::write(&[1])]).expect("runs");
                    register.run().expect("runs");
                }
            });
        }
    });
    let log = bus.into_inner().log;
    assert_eq!(log.len(), 3 * rounds * 2 * 3);
    assert!(log.chunks(3).all(|message| message == ["select", "exchange", "deselect"]));
}

#[test]
fn a_waiter_relaxes_by_the_bus_s_own_means() {
    static RELAXED: AtomicUsize = AtomicUsize::new(0);
    struct Relaxing;
    impl Platform for Relaxing {
        fn relax(&self) {
            RELAXED.fetch_add(1, Ordering::Relaxed);
            std::thread::yield_now();
        }
        fn wait(&self, _: platform::WaitWord<'_>, _: u32) {
            self.relax();
        }
        fn wake(&self, _: *const platform::AtomicU32) {}
    }
    let bus = Bus::with_platform(Null::new(), &Relaxing);
    let device = bus.device(&SETTINGS).expect("opens");
    let held = bus.acquire().expect("is free");
    std::thread::scope(|scope| {
        scope.spawn(|| device.sync(&mut [Transfer::write(&[1])]).expect("runs"));
        while RELAXED.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        held.release();
    });
}

#[test]
fn prepared_keeps_what_it_sends_and_gives_what_it_gets() {
    let bus: Bus<Null> = Bus::new(Null::new());
    let erased: &Bus<dyn Controller + Send> = &bus;
    let device = erased.device(&SETTINGS).expect("opens");
    let mut register = device.prepare([0x05, 0xff]).expect("prepares");
    register.tx_mut()[1] = 7;
    assert_eq!(register.run(), Ok(&[0, 0]));
    assert_eq!(register.try_run(), Ok(&[0, 0]));
    let mut rx = [1; 4];
    let mut message = [Transfer::write(&[3, 0, 0, 0]), Transfer::read(&mut rx)];
    let mut prepared = device.prepare_message(&mut message).expect("prepares");
    assert_eq!(prepared.run(), Ok(8));
    assert_eq!(prepared.try_run(), Ok(8));
    assert_eq!(prepared.rx(0), None);
    assert_eq!(prepared.rx(1), Some(&[0, 1, 1, 1][..]));
    assert_eq!(bus.into_inner().bytes(), 2 + 2 + 8 + 8);
}

#[test]
fn refused_messages_clock_nothing() {
    let bus = Bus::new(Null::new());
    let device = bus.device(&Settings { bits_per_word: 16, ..SETTINGS }).expect("opens");
    let refused = |message: &mut [Transfer<'_>]| device.sync(message).expect_err("is refused");
    assert_eq!(refused(&mut []).error, Error::Empty);
    let error = refused(&mut [Transfer::write(&[1, 2]), Transfer::write(&[1])]);
    assert_eq!(error, MessageError::refused(Error::Length { len: 1, word_bytes: 2 }, 1));
    let error = refused(&mut [Transfer::write(&[1, 2]).with_cs_change()]);
    assert_eq!(error.error, Error::CsChangeOnLast);
    let kept = device.sync_keeping_cs(&mut [Transfer::write(&[1, 2])]).expect_err("no such line");
    assert_eq!(kept, MessageError::refused(Error::CsChangeOnLast, 0));
    let odd = Transfer { bits_per_word: 12, ..Transfer::write(&[1, 2]) };
    assert_eq!(refused(&mut [odd]).error, Error::BitsPerWord { bits: 12 });
    assert_eq!(
        device.prepare([0; 3]).expect_err("odd").error,
        Error::Length { len: 3, word_bytes: 2 }
    );
    assert_eq!(bus.device(&Settings::new(0, 0)).expect_err("no clock"), Error::SpeedZero);
    assert_eq!(bus.into_inner().selections(), 0);
}
