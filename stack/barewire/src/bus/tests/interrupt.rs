//! Messages in flight: one thread starts them, the interrupt handler continues them.

use std::boxed::Box;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::vec::Vec;

use core::task::Poll;

use super::SETTINGS;
use super::park::{Park, ParkInheriting};
use crate::bus::platform::Spin;
use crate::bus::{Bus, Platform, Pump};
use crate::controller::null::Null;
use crate::controller::{Controller, Limits, Preset, Stopped, Unfinished};
use crate::spi::{Effective, Error, MessageError, Settings, Transfer};

/// A controller that needs one interrupt per byte of a message, and never finishes one of 9 bytes.
#[derive(Default)]
struct Stepping {
    sent: Vec<u8>,
    left: usize,
    armed: bool,
    asked: usize,
}

impl Controller for Stepping {
    fn limits(&self) -> Limits {
        Null::new().limits()
    }
    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        let (preset, effective) = Null::new().configure(settings)?;
        // The controller plans 16-bit words itself, so that both kinds of message are started.
        Ok((Preset { asks: settings.bits_per_word == 16, ..preset }, effective))
    }
    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        Null::new().plan(preset, message)
    }
    fn run(&mut self, _: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        assert_eq!(self.left, 0, "one message inside another");
        let bytes = message[0].data().tx().unwrap_or_default();
        self.sent.extend(bytes);
        Ok(bytes.len())
    }
    fn start(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.left = message[0].data().len();
        self.asked = 0;
        if self.left == 0 { Poll::Ready(self.run(preset, message)) } else { Poll::Pending }
    }
    fn resume(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        assert!(core::mem::take(&mut self.armed), "no interrupt comes unasked");
        if message[0].data().len() == 9 {
            self.asked += 1;
            if self.asked < 50 {
                return Poll::Pending;
            }
            self.left = 0;
            return Poll::Ready(Err(Unfinished::stopped(0, Stopped::TimedOut { timeout_us: 7 })));
        }
        self.left -= 1;
        if self.left == 0 { Poll::Ready(self.run(preset, message)) } else { Poll::Pending }
    }
    fn arm(&mut self) {
        self.armed = true;
    }
    fn reclaim(&mut self) {}
}

fn stepping(platform: &'static dyn Platform) -> Bus<Stepping> {
    Bus::with_platform(Stepping::default(), platform).with_pump(Pump::Interrupt)
}

#[test]
fn the_handler_goes_on_with_the_message_and_with_the_queue() {
    let bus = stepping(&Spin);
    {
        let device = bus.device(&SETTINGS).expect("opens");
        let mut first = pin!(device.queued([1, 2]).expect("plans"));
        let mut second = pin!(device.queued([3]).expect("plans"));
        assert!(!bus.interrupt(), "nothing flies");
        first.as_mut().submit().expect("is free");
        second.as_mut().submit().expect("is free");
        let busy = device.try_sync(&mut [Transfer::write(&[9])]).expect_err("on the wire");
        assert_eq!(busy.error, Error::Busy);
        assert!(bus.interrupt());
        assert_eq!(first.as_mut().result(), None);
        assert!(bus.interrupt());
        assert_eq!(first.as_mut().result(), Some(Ok(2)));
        assert_eq!(second.as_mut().result(), None, "it flies now");
        assert!(bus.interrupt());
        assert_eq!(second.as_mut().result(), Some(Ok(1)));
        assert!(!bus.interrupt());
        device.try_sync(&mut [Transfer::write(&[4])]).expect("is free");
    }
    assert_eq!(bus.into_inner().sent, [1, 2, 3, 4]);
}

#[test]
fn a_sync_call_behind_a_flight_waits_for_it_and_looks_after_it() {
    let bus = stepping(&Spin);
    {
        let device = bus.device(&SETTINGS).expect("opens");
        let wide = bus.device(&Settings { bits_per_word: 16, ..SETTINGS }).expect("opens");
        let mut first = pin!(device.queued([1, 2, 3]).expect("plans"));
        first.as_mut().submit().expect("is free");
        // No interrupt ever comes here: the waiting caller attends to the flight.
        assert_eq!(wide.sync(&mut [Transfer::write(&[4, 5])]), Ok(2));
        assert_eq!(first.as_mut().result(), Some(Ok(3)));
        first.as_mut().submit().expect("is free");
        let odd = wide.sync(&mut [Transfer::write(&[4])]).expect_err("is refused");
        assert_eq!(odd.error, Error::Length { len: 1, word_bytes: 2 });
        first.as_mut().submit().expect("is free");
        assert!(!first.as_mut().cancel(), "a message on the wire cannot be cancelled");
        assert_eq!(first.as_mut().result(), Some(Ok(3)));
    }
    assert_eq!(bus.into_inner().sent, [1, 2, 3, 4, 5, 1, 2, 3, 1, 2, 3]);
}

#[test]
fn a_lost_interrupt_ends_in_the_timeout_of_its_message() {
    let bus = stepping(&Park);
    let device = bus.device(&SETTINGS).expect("opens");
    let mut lost = pin!(device.queued([0; 9]).expect("plans"));
    let mut good = pin!(device.queued([1]).expect("plans"));
    lost.as_mut().submit().expect("is free");
    good.as_mut().submit().expect("is free");
    assert_eq!(good.as_mut().wait(), Some(Ok(1)));
    let error = lost.as_mut().result().expect("it ended").expect_err("in a timeout");
    assert_eq!(error.error, Error::Timeout { timeout_us: 7 });
}

#[test]
fn handlers_of_several_processors_attend_one_at_a_time() {
    let bus = stepping(&Park);
    let (rounds, ended) = (if cfg!(miri) { 5 } else { 300 }, AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while ended.load(Ordering::Relaxed) < 2 {
                    if !bus.interrupt() {
                        std::thread::yield_now();
                    }
                }
            });
        }
        for number in [1_u8, 2] {
            let (bus, ended) = (&bus, &ended);
            scope.spawn(move || {
                let device = bus.device(&SETTINGS).expect("opens");
                let mut queued = Box::pin(device.queued([number, number]).expect("plans"));
                for _ in 0..rounds {
                    queued.as_mut().submit().expect("is free");
                    assert_eq!(queued.as_mut().wait(), Some(Ok(2)));
                    assert_eq!(device.sync(&mut [Transfer::write(&[number + 2])]), Ok(1));
                }
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(bus.into_inner().sent.len(), 2 * rounds * 3);
}

#[test]
#[should_panic(expected = "not pumped by interrupts")]
fn inheritance_and_interrupts_exclude_each_other() {
    let _ = stepping(&ParkInheriting);
}

/// A controller that plans everything to wait by interrupt, and notes how it was run.
#[derive(Default)]
struct Sleepy {
    slept: Vec<bool>,
}

impl Controller for Sleepy {
    fn limits(&self) -> Limits {
        Null::new().limits()
    }
    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        let (preset, effective) = Null::new().configure(settings)?;
        Ok((Preset { asks: true, ..preset }, effective))
    }
    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        Null::new().plan(preset, message)?;
        for transfer in message {
            transfer.plan = transfer.plan.with_interrupt(true);
        }
        Ok(())
    }
    fn run(&mut self, _: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        self.slept.push(message[0].plan.by_interrupt());
        Ok(message[0].data().len())
    }
    fn reclaim(&mut self) {}
}

#[test]
fn try_calls_poll_whatever_was_planned_and_leave_the_plan() {
    let bus = Bus::new(Sleepy::default());
    {
        let device = bus.device(&SETTINGS).expect("opens");
        let mut register = device.prepare([1]).expect("plans");
        let mut message = [Transfer::write(&[1, 2])];
        let mut prepared = device.prepare_message(&mut message).expect("plans");
        register.try_run().expect("runs");
        register.run().expect("runs");
        prepared.try_run().expect("runs");
        prepared.run().expect("runs");
        device.try_sync(&mut [Transfer::write(&[3])]).expect("runs");
        device.sync(&mut [Transfer::write(&[3])]).expect("runs");
    }
    assert_eq!(bus.into_inner().slept, [false, true, false, true, false, true]);
}
