//! Buses whose type says what the program uses.

use super::*;
use crate::bus::{Alone, Plain, Prepared, Uses};

fn sync<C: Controller, U: Uses>(
    device: &Device<'_, C, U>,
    message: &mut [Transfer<'_>],
) -> Result<usize, Error> {
    device.sync(message).map_err(|error| error.error)
}

fn device<C: Controller, U: Uses>(bus: &Bus<C, U>) -> Device<'_, C, U> {
    bus.device(&Settings::new(0, 1_000_000)).expect("opens")
}

fn logged<U: Uses>(
    uses: U,
    hook: impl FnMut(usize) -> Result<(), Stopped>,
) -> Bus<Scripted<impl FnMut(usize) -> Result<(), Stopped>>, U> {
    Bus::with_uses(Scripted { log: Vec::new(), hook }, uses)
}

#[test]
fn a_bus_with_one_user_is_busy_while_it_is_taken_and_free_afterwards() {
    let mut bus = logged(Alone, |_| Ok(()));
    {
        let device = device(&bus);
        let mut prepared = device.prepare([1, 2]).expect("planned");
        let mut message = [Transfer::write(&[3])];
        let mut several = device.prepare_message(&mut message).expect("planned");
        let lock = bus.lock();
        assert!(bus.try_lock().is_none());
        assert_eq!(sync(&device, &mut [Transfer::write(&[1])]), Err(Error::Busy));
        assert_eq!(
            sync(&device, &mut [Transfer::write(&[1]), Transfer::write(&[2])]),
            Err(Error::Busy)
        );
        assert_eq!(device.try_sync(&mut [Transfer::write(&[1])]).unwrap_err().error, Error::Busy);
        assert_eq!(prepared.run().unwrap_err().error, Error::Busy);
        assert_eq!(prepared.try_run().unwrap_err().error, Error::Busy);
        assert_eq!(several.run().unwrap_err().error, Error::Busy);
        assert_eq!(bus.device(&Settings::new(0, 1)).err(), Some(Error::Busy));
        assert_eq!(bus.with_controller(|_| ()), Err(Error::Busy));
        drop(lock);
        assert_eq!(sync(&device, &mut [Transfer::write(&[1])]), Ok(1));
        assert!(prepared.run().is_ok() && several.run().is_ok());
        assert_eq!(device.try_sync(&mut [Transfer::write(&[1])]), Ok(1));
        assert_eq!(
            sync(&device, &mut [Transfer::write(&[1]).with_delay_ns(1), Transfer::write(&[2])]),
            Ok(2)
        );
    }
    let exchanges = bus.get_mut().log.iter().filter(|&&call| call == "exchange").count();
    assert_eq!(exchanges, 6, "what was refused was not clocked");
}

#[test]
#[should_panic(expected = "Bus::lock: ")]
fn a_lock_of_a_bus_with_one_user_does_not_wait() {
    let bus = logged(Alone, |_| Ok(()));
    let _lock = bus.lock();
    let _second = bus.lock();
}

#[test]
fn a_panic_leaves_a_bus_with_one_user_free() {
    let panics = Cell::new(true);
    let bus = logged(Alone, |_| if panics.get() { panic!("on the wire") } else { Ok(()) });
    let device = device(&bus);
    for times in 0..3 {
        panics.set(true);
        let panicked = catch_unwind(AssertUnwindSafe(|| match times {
            0 => device.sync(&mut [Transfer::write(&[1])]),
            1 => device.try_sync(&mut [Transfer::write(&[1])]),
            _ => device.prepare([1]).and_then(|mut prepared| prepared.run().map(|_| 1)),
        }));
        assert!(panicked.is_err(), "{times}");
        panics.set(false);
        assert_eq!(sync(&device, &mut [Transfer::write(&[1])]), Ok(1), "{times}");
    }
}

#[test]
fn plain_messages_run_and_others_are_refused_by_name() {
    let mut bus = logged(Plain, |_| Ok(()));
    let field = |field, asked| Error::NotPerTransfer { field, asked };
    {
        let device = device(&bus);
        let write = || Transfer::write(&[1]);
        let refused = [
            (write().with_speed_hz(5), field("speed_hz", 5)),
            (write().with_bits_per_word(16), field("bits_per_word", 16)),
            (write().with_delay_ns(7), field("delay_ns", 7)),
            (write().with_word_delay_ns(8), field("delay_ns", 8)),
            (write().with_cs_change().with_cs_change_delay_ns(9), field("delay_ns", 9)),
        ];
        for (transfer, error) in refused {
            let mut message = [write(), transfer, write()];
            let refused = device.sync(&mut message).unwrap_err();
            assert_eq!((refused.error, refused.transfer_index), (error, 1));
            assert_eq!(device.try_sync(&mut message).unwrap_err(), refused);
            assert_eq!(device.prepare_message(&mut message).unwrap_err(), refused);
            assert_eq!(bus.lock().sync(&device, &mut message).unwrap_err(), refused);
        }
        let kept = device.sync_keeping_cs(&mut [write()]).unwrap_err();
        assert_eq!((kept.error, kept.transfer_index), (Error::CsChangeOnLast, 0));
        assert_eq!(sync(&device, &mut []), Err(Error::Empty));
        assert_eq!(sync(&device, &mut [write().with_cs_change()]), Err(Error::CsChangeOnLast));
        let words = Settings { bits_per_word: 16, ..Settings::new(0, 1_000_000) };
        let words = bus.device(&words).expect("opens");
        let odd = Error::Length { len: 1, word_bytes: 2 };
        assert_eq!(sync(&words, &mut [write()]), Err(odd));
        assert_eq!(sync(&words, &mut [Transfer::write(&[1, 2])]), Ok(2));
        assert_eq!(sync(&device, &mut [write().with_cs_change(), write()]), Ok(2));
        assert_eq!(bus.lock().sync(&device, &mut [write()]), Ok(1));
        let mut prepared: Prepared<'_, _, 1, Plain> = device.prepare([1]).expect("plain");
        assert!(prepared.run().is_ok() && prepared.try_run().is_ok());
    }
    let exchanges = bus.get_mut().log.iter().filter(|&&call| call == "exchange").count();
    assert_eq!(exchanges, 6);
}

/// A controller that must check every message, and plans long transfers.
struct Asking;

impl Controller for Asking {
    fn limits(&self) -> Limits {
        Null::new().limits()
    }
    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        let (preset, effective) = Null::new().configure(settings)?;
        Ok((Preset { asks: settings.chip_select == 1, poll_bytes_max: 1, ..preset }, effective))
    }
    fn plan(&self, _: &Preset, _: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        panic!("a bus of plain messages never asks");
    }
    fn run(&mut self, _: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        Ok(message.iter().map(|transfer| transfer.data().len()).sum())
    }
    fn reclaim(&mut self) {}
}

#[test]
fn a_bus_of_plain_messages_never_asks_the_controller() {
    let bus = Bus::with_uses(Asking, Plain);
    let native = bus.device(&Settings::new(1, 1_000_000));
    assert_eq!(native.err(), Some(Error::NativeCsWouldPulse { max_bytes: 0 }));
    assert_eq!(
        sync(&device(&bus), &mut [Transfer::write(&[1; 9]), Transfer::write(&[2; 8])]),
        Ok(17)
    );
    assert_eq!(sync(&device(&bus), &mut [Transfer::write(&[1; 9])]), Ok(9));
}

#[test]
fn a_platform_known_by_its_type_queues() {
    let bus = Bus::with_uses(Null::new(), platform::Spin);
    let device = device(&bus);
    let mut queued = Box::pin(device.queued([1, 2]).expect("planned"));
    let lock = bus.lock();
    queued.as_mut().enqueue().expect("idle");
    drop(lock);
    assert_eq!(queued.as_mut().wait(), Some(Ok(2)));
}

#[test]
#[should_panic(expected = "no such pump")]
fn a_bus_without_a_queue_has_no_pump() {
    let _ = Bus::alone(Null::new()).with_pump(Pump::Worker);
}

#[test]
#[should_panic(expected = "no such pump")]
fn a_bus_without_interrupts_is_not_pumped_by_them() {
    struct NoInterrupts;
    impl Uses for NoInterrupts {
        const INTERRUPT: bool = false;
        type Platform = platform::Spin;
        fn platform(&self) -> &platform::Spin {
            &platform::Spin
        }
    }
    let _ = Bus::with_uses(Null::new(), NoInterrupts).with_pump(Pump::Interrupt);
}
