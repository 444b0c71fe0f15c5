//! Foreign drivers on this crate's devices and buses: transactions and bus calls.

use core::future::Future;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Waker};
use std::boxed::Box;
use std::rc::Rc;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use embedded_hal::spi::{Error as _, ErrorKind, Operation, SpiBus, SpiDevice};
use embedded_hal_async::spi::{SpiBus as AsyncSpiBus, SpiDevice as AsyncSpiDevice};
use proptest::prelude::*;

use super::Event::{Deselect, Exchange, Recover, Select, Ticks};
use super::{Event, Log, Recorder, block_on};
use crate::bus::{Bus, OwnedDevice};
use crate::controller::Controller;
use crate::controller::null::Null;
use crate::hal::{Async, Blocking, HalBus, HalDevice};
use crate::spi::{Error, MessageError, Mode, Settings, Transfer};
use crate::time::ticks_at_least;

const SETTINGS: Settings = Settings::new(0, 1_000_000);

/// A bus with a timer of 8 MHz, and the calls of its wire.
fn recorded() -> (Bus<Recorder>, Log) {
    let (recorder, log) = Recorder::new(8_000_000);
    (Bus::new(recorder), log)
}

/// Runs a transaction with a timer of 8 MHz, blocking and async, and returns its result and the
/// calls of the wire.
fn told(operations: &mut [Operation<'_, u8>]) -> (Result<(), MessageError>, Vec<Event>) {
    let (bus, log) = recorded();
    let mut device = HalDevice::new(bus.device(&SETTINGS).expect("opens"));
    let ran = SpiDevice::transaction(&mut device, operations);
    (ran, log.take())
}

fn told_async(operations: &mut [Operation<'_, u8>]) -> (Result<(), MessageError>, Vec<Event>) {
    let (bus, log) = recorded();
    let mut device = HalDevice::new(bus.device(&SETTINGS).expect("opens"));
    let (ran, polls) = block_on(AsyncSpiDevice::transaction(&mut device, operations));
    assert_eq!(polls, 1, "the bus is free");
    (ran, log.take())
}

/// As `told`, on a device that keeps its bus, through either half.
fn told_owned(operations: &mut [Operation<'_, u8>]) -> (Result<(), MessageError>, Vec<Event>) {
    let (bus, log) = recorded();
    let device = OwnedDevice::new(Rc::new(bus), &SETTINGS).expect("opens");
    let ran = Blocking(device).transaction(operations);
    (ran, log.take())
}

fn told_owned_async(
    operations: &mut [Operation<'_, u8>],
) -> (Result<(), MessageError>, Vec<Event>) {
    let (bus, log) = recorded();
    let device = OwnedDevice::new(Rc::new(bus), &SETTINGS).expect("opens");
    let mut half = Async(device);
    let (ran, polls) = block_on(half.transaction(operations));
    assert_eq!(polls, 1, "the bus is free");
    (ran, log.take())
}

fn exchange(tx: &[u8], listens: bool) -> Event {
    Exchange(tx.to_vec(), listens)
}

#[test]
fn a_transaction_is_one_message_in_the_order_of_its_operations() {
    for told in [told, told_async, told_owned, told_owned_async] {
        let (mut read, mut both, mut in_place) = ([0; 2], [0; 2], [8, 9]);
        let (ran, log) = told(&mut [
            Operation::Write(&[1, 2]),
            Operation::Read(&mut read),
            Operation::DelayNs(125),
            Operation::Transfer(&mut both, &[5, 6]),
            Operation::TransferInPlace(&mut in_place),
        ]);
        assert_eq!(ran, Ok(()));
        assert_eq!(
            log,
            [
                Select,
                exchange(&[1, 2], false),
                exchange(&[0, 0], true),
                Ticks(1),
                exchange(&[5, 6], true),
                exchange(&[8, 9], true),
                Deselect,
            ]
        );
        assert_eq!((read, both, in_place), ([3, 4], [5, 6], [7, 8]));
    }
}

#[test]
fn delays_stand_where_they_were_asked_and_are_never_shorter() {
    let delay = Operation::DelayNs;
    let only = |ns: u32| told(&mut [Operation::DelayNs(ns)]).1;
    assert_eq!(only(1), [Select, exchange(&[], false), Ticks(1), Deselect]);
    assert_eq!(only(126), [Select, exchange(&[], false), Ticks(2), Deselect]);
    assert_eq!(only(0), [Select, exchange(&[], false), Deselect], "nothing asked");
    let (_, log) = told(&mut [delay(200), delay(1), Operation::Write(&[1]), delay(1), delay(300)]);
    let ticks = |ns| ticks_at_least(ns, 8_000_000) as u32;
    assert_eq!(
        log,
        [
            Select,
            exchange(&[], false),
            Ticks(ticks(201)),
            exchange(&[1], false),
            Ticks(ticks(301)),
            Deselect
        ]
    );
    // Eight times the longest delay: the sum exceeds 32 bits of nanoseconds.
    let (ran, log) = told(&mut [delay(u32::MAX), Operation::Write(&[1]), delay(u32::MAX)]);
    assert_eq!(ran, Ok(()));
    let waited: u64 =
        log.iter().map(|event| if let Ticks(n) = event { u64::from(*n) } else { 0 }).sum();
    assert!(waited >= 2 * ticks_at_least(u32::MAX.into(), 8_000_000));
    assert!(waited < 2 * ticks_at_least(u32::MAX.into(), 8_000_000) + 10);
    let bytes = log.iter().position(|event| *event == exchange(&[1], false)).expect("was sent");
    let before = &log[..bytes];
    assert_eq!(before.iter().filter(|event| matches!(event, Ticks(_))).count(), 5);
}

#[test]
fn delays_beyond_32_bits_of_ticks_are_made_in_pieces() {
    // The fastest possible timer: 4.3 s are about four times 32 bits of its ticks.
    let (recorder, log) = Recorder::new(u32::MAX);
    let bus = Bus::new(recorder);
    let mut device = HalDevice::new(bus.device(&SETTINGS).expect("opens"));
    SpiDevice::transaction(&mut device, &mut [Operation::DelayNs(u32::MAX)]).expect("runs");
    let sum = |log: Vec<Event>| -> u64 {
        log.iter().map(|event| if let Ticks(n) = event { u64::from(*n) } else { 0 }).sum()
    };
    assert!(sum(log.take()) >= ticks_at_least(u32::MAX.into(), u32::MAX));
    // Pieces of another length, for a controller with shorter delays.
    let mut device = HalDevice::new(*device.device()).with_delay_max_ns(65_535_000);
    let mut operations = [Operation::Write(&[1]), Operation::DelayNs(130_000_000)];
    SpiDevice::transaction(&mut device, &mut operations).expect("runs");
    let pieces: Vec<_> = log.take();
    assert_eq!(pieces.iter().filter(|event| matches!(event, Ticks(_))).count(), 2);
    assert!(sum(pieces) >= ticks_at_least(130_000_000, u32::MAX));
}

#[test]
fn delays_are_made_in_pieces_as_long_as_the_controller_can() {
    // As spidev: 65,535 us, which the delay shares with cs_hold.
    let (mut recorder, log) = Recorder::new(1_000_000);
    recorder.max_delay_ns = Some(65_535_000);
    let bus = Bus::new(recorder);
    let settings = Settings { cs_hold_ns: 35_000, ..SETTINGS };
    let device = bus.device(&settings).expect("opens");
    assert_eq!(device.limits().max_delay_ns, 65_535_000);
    let mut device = HalDevice::new(device);
    for (delay_ns, expected) in [
        (65_500_000, &[65_500][..]),
        (65_500_001, &[65_500, 1]),
        (200_000_000, &[65_500, 65_500, 65_500, 3_500]),
    ] {
        let mut operations = [Operation::Write(&[1]), Operation::DelayNs(delay_ns)];
        SpiDevice::transaction(&mut device, &mut operations).expect("runs");
        let ticks = |event: &Event| if let Ticks(n) = event { Some(*n) } else { None };
        let log = log.take();
        let pieces: Vec<u32> = log.iter().filter_map(ticks).filter(|&n| n != 35_000).collect();
        assert_eq!(pieces, expected, "{delay_ns}");
    }
    // A longer limit than the controller's has no effect.
    let mut device = HalDevice::new(*device.device()).with_delay_max_ns(u32::MAX);
    let mut operations = [Operation::Write(&[1]), Operation::DelayNs(65_500_001)];
    SpiDevice::transaction(&mut device, &mut operations).expect("runs");
    assert!(log.take().contains(&Ticks(65_500)));
}

#[test]
fn a_delay_without_room_for_its_pieces_is_refused_with_the_remedy() {
    let (mut recorder, log) = Recorder::new(1_000_000);
    recorder.max_delay_ns = Some(65_535_000);
    let bus = Bus::new(recorder);
    let mut device = HalDevice::new(bus.device(&SETTINGS).expect("opens"));
    let operations = &mut [Operation::Write(&[1]), Operation::DelayNs(2_000_000_000)];
    let refused = SpiDevice::transaction(&mut device, operations).expect_err("31 pieces");
    assert_eq!(refused.error, Error::TooManyTransfers { transfers: 31, max: 16 });
    assert!(std::format!("{refused}").contains("`with_room::<31>()`"), "{refused}");
    assert!(log.take().is_empty());
    assert_eq!(SpiDevice::transaction(&mut device.with_room::<31>(), operations), Ok(()));
}

#[test]
fn a_transfer_of_two_lengths_sends_zeros_or_throws_away() {
    let mut long = [0xee; 4];
    let (_, log) = told(&mut [Operation::Transfer(&mut long, &[1, 2])]);
    assert_eq!(log[1..3], [exchange(&[1, 2], true), exchange(&[0, 0], true)]);
    assert_eq!(long, [1, 2, 3, 4]);
    let mut short = [0xee; 1];
    let (_, log) = told(&mut [Operation::Transfer(&mut short, &[1, 2, 3])]);
    assert_eq!(log[1..3], [exchange(&[1], true), exchange(&[2, 3], false)]);
    assert_eq!(short, [1]);
    let (_, log) = told(&mut [Operation::Transfer(&mut [], &[1, 2])]);
    assert_eq!(log, [Select, exchange(&[1, 2], false), Deselect]);
    let mut only = [0; 2];
    let (_, log) = told(&mut [Operation::Transfer(&mut only, &[])]);
    assert_eq!(log, [Select, exchange(&[0, 0], true), Deselect]);
}

#[test]
fn a_transaction_without_bytes_selects_and_deselects() {
    assert_eq!(told(&mut []), (Ok(()), vec![Select, exchange(&[], false), Deselect]));
    let (ran, log) = told(&mut [Operation::Write(&[])]);
    assert_eq!((ran, log.len()), (Ok(()), 3));
    let (ran, log) = told(&mut [Operation::Transfer(&mut [], &[])]);
    assert_eq!((ran, log.len()), (Ok(()), 3));
}

#[test]
fn more_operations_than_room_are_refused_before_anything_is_clocked() {
    let (bus, log) = recorded();
    let mut device = HalDevice::new(bus.device(&SETTINGS).expect("opens")).with_room::<3>();
    let mut rx = [0; 3];
    let full =
        &mut [Operation::Write(&[1]), Operation::Transfer(&mut rx, &[2]), Operation::DelayNs(9)];
    assert_eq!(SpiDevice::transaction(&mut device, full), Ok(()));
    log.take();
    let over =
        &mut [Operation::Write(&[1]), Operation::Write(&[1]), Operation::Transfer(&mut rx, &[2])];
    let error = Error::TooManyTransfers { transfers: 4, max: 3 };
    let refused = SpiDevice::transaction(&mut device, over).expect_err("is too long");
    assert_eq!(refused, MessageError::refused(error, 2));
    let (also, _) = block_on(AsyncSpiDevice::transaction(&mut device, over));
    assert_eq!(also, Err(refused));
    assert!(log.take().is_empty());
}

#[test]
fn a_failed_transaction_releases_the_chip_and_names_the_operation() {
    let (mut recorder, log) = Recorder::new(8_000_000);
    // The second half of the second operation.
    recorder.fails_at = Some(3);
    let bus = Bus::new(recorder);
    let mut device = HalDevice::new(bus.device(&SETTINGS).expect("opens"));
    let mut rx = [0; 2];
    let mut operations = [
        Operation::DelayNs(5),
        Operation::Write(&[1]),
        Operation::Transfer(&mut rx, &[1]),
        Operation::Write(&[9]),
    ];
    let error = SpiDevice::transaction(&mut device, &mut operations).expect_err("times out");
    assert_eq!(error.transfer_index, 2);
    assert_eq!(error.actual_length, 2);
    assert_eq!(error.error, Error::Timeout { timeout_us: 7 });
    assert_eq!(error.kind(), ErrorKind::Other);
    let log = log.take();
    assert_eq!(log[log.len() - 2..], [Deselect, Recover]);
    assert!(!log.contains(&exchange(&[9], false)));
    // And the next one runs.
    assert_eq!(SpiDevice::write(&mut device, &[4]), Ok(()));
}

#[test]
fn kinds_of_errors_are_honest() {
    let chip_select = [
        Error::NoSuchChipSelect { chip_select: 3 },
        Error::NoIdleChipSelect,
        Error::CsCanSleep,
        Error::NativeCsWouldPulse { max_bytes: 512 },
    ];
    for error in chip_select {
        assert_eq!(error.kind(), ErrorKind::ChipSelectFault, "{error}");
    }
    for error in
        [Error::Busy, Error::Timeout { timeout_us: 1 }, Error::Empty, Error::Os { errno: 5 }]
    {
        assert_eq!(error.kind(), ErrorKind::Other, "{error}");
    }
    let foreign = Error::Foreign { kind: ErrorKind::Overrun };
    assert_eq!(MessageError::refused(foreign, 0).kind(), ErrorKind::Overrun);
    assert!(foreign.to_string().contains("overrun"));
}

#[test]
fn words_have_8_bits_whatever_the_device_s_are() {
    // The recorder asserts that.
    let bus = Bus::new(Recorder::new(8_000_000).0);
    let device = bus.device(&SETTINGS.with_bits_per_word(32)).expect("opens");
    assert_eq!(SpiDevice::write(&mut HalDevice::new(device), &[1, 2, 3]), Ok(()));
}

#[test]
fn a_future_that_is_dropped_clocked_nothing() {
    let (bus, log) = recorded();
    let mut device = HalDevice::new(bus.device(&SETTINGS).expect("opens"));
    drop(Box::pin(AsyncSpiDevice::write(&mut device, &[1])));
    let mut cx = Context::from_waker(Waker::noop());
    let lock = bus.lock();
    let mut granted = Box::pin(AsyncSpiDevice::write(&mut device, &[2]));
    assert!(granted.as_mut().poll(&mut cx).is_pending());
    drop(lock);
    drop(granted);
    assert!(log.take().is_empty());
    let (ran, polls) = block_on(AsyncSpiDevice::write(&mut device, &[3]));
    assert_eq!((ran, polls), (Ok(()), 1), "no earlier call left anything behind");
    assert_eq!(log.take(), [Select, exchange(&[3], false), Deselect]);
}

#[test]
fn a_future_dropped_in_the_queue_takes_its_place_with_it() {
    let bus = Bus::new(Null::new());
    let (locked, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut device = HalDevice::new(bus.device(&SETTINGS).expect("opens"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let device = bus.device(&SETTINGS).expect("opens");
            let mut lock = bus.lock();
            locked.store(true, Ordering::Release);
            while !stop.load(Ordering::Acquire) {
                lock.sync(&device, &mut [Transfer::write(&[])]).expect("runs");
                std::thread::yield_now();
            }
        });
        while !locked.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let mut queued = Box::pin(AsyncSpiDevice::write(&mut device, &[1, 2, 3]));
        assert!(queued.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(queued);
        stop.store(true, Ordering::Release);
        assert_eq!(block_on(AsyncSpiDevice::write(&mut device, &[4])).0, Ok(()));
    });
    assert_eq!(bus.into_inner().bytes(), 1);
}

#[test]
fn a_transaction_s_future_may_go_to_another_thread() {
    fn assert_send<T: Send>(_: &T) {}
    fn check(device: &mut HalDevice<'_, Null>) {
        assert_send(&AsyncSpiDevice::transaction(device, &mut [Operation::Write(&[1])]));
    }
    let bus = Bus::new(Null::new());
    check(&mut HalDevice::new(bus.device(&SETTINGS).expect("opens")));
}

#[test]
fn a_bus_is_held_and_its_calls_are_messages() {
    let (bus, log) = recorded();
    let erased: &Bus<dyn Controller> = &bus;
    let other = erased.device(&SETTINGS).expect("opens");
    let lock = erased.lock();
    let mut spi = HalBus::new(lock, &SETTINGS.with_bits_per_word(16)).expect("opens");
    assert!(spi.device().settings().mode.contains(Mode::NO_CS));
    assert_eq!(
        other.try_sync(&mut [Transfer::write(&[1])]).map_err(|refused| refused.error),
        Err(Error::Busy)
    );
    let (mut one, mut three, mut both) = ([0; 1], [0; 3], [5, 6]);
    SpiBus::write(&mut spi, &[1, 2, 3]).expect("runs");
    SpiBus::read(&mut spi, &mut one).expect("runs");
    SpiBus::transfer(&mut spi, &mut three, &[4]).expect("runs");
    SpiBus::transfer_in_place(&mut spi, &mut both).expect("runs");
    SpiBus::flush(&mut spi).expect("is idle");
    assert_eq!((one, three, both), ([4], [5, 6, 7], [8, 9]));
    let sent: Vec<u8> = log.take().into_iter().flat_map(bytes_sent).collect();
    assert_eq!(sent, [1, 2, 3, 0, 4, 0, 0, 5, 6]);
    let run = async {
        AsyncSpiBus::write(&mut spi, &[7]).await?;
        AsyncSpiBus::read(&mut spi, &mut one).await?;
        AsyncSpiBus::transfer(&mut spi, &mut one, &[8, 9]).await?;
        AsyncSpiBus::transfer_in_place(&mut spi, &mut both).await?;
        AsyncSpiBus::flush(&mut spi).await
    };
    assert_eq!(block_on(run), (Ok(()), 1));
    let sent: Vec<u8> = log.take().into_iter().flat_map(bytes_sent).collect();
    assert_eq!(sent, [7, 0, 8, 9, 8, 9]);
    drop(spi.into_lock());
    other.try_sync(&mut [Transfer::write(&[1])]).expect("is given back");
}

fn bytes_sent(event: Event) -> Vec<u8> {
    if let Exchange(tx, _) = event { tx } else { Vec::new() }
}

/// An operation, as numbers.
#[derive(Clone, Debug)]
enum Step {
    Read(usize),
    Write(usize),
    Transfer(usize, usize),
    InPlace(usize),
    Delay(u32),
}

fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0_usize..5).prop_map(Step::Read),
        (0_usize..5).prop_map(Step::Write),
        (0_usize..5, 0_usize..5).prop_map(|(read, write)| Step::Transfer(read, write)),
        (0_usize..5).prop_map(Step::InPlace),
        prop_oneof![0_u32..2_000, Just(u32::MAX)].prop_map(Step::Delay),
    ]
}

/// The bytes sent, with the ticks waited before each byte and, last, after all.
fn timeline(log: &[Event]) -> (Vec<u8>, Vec<u64>) {
    let (mut bytes, mut waits, mut waited) = (Vec::new(), Vec::new(), 0);
    for event in log {
        match event {
            Ticks(ticks) => waited += u64::from(*ticks),
            Exchange(tx, _) => {
                for byte in tx {
                    bytes.push(*byte);
                    waits.push(core::mem::take(&mut waited));
                }
            }
            _ => {}
        }
    }
    waits.push(waited);
    (bytes, waits)
}

proptest! {
    /// Compares with the contract, computed from the operations only.
    #[test]
    fn the_contract_holds_of_any_transaction(
        steps in prop::collection::vec(a_step(), 0..12),
        as_future in any::<bool>(),
    ) {
        let (recorder, log) = Recorder::new(8_000_000);
        let bus = Bus::new(recorder);
        let device = HalDevice::new(bus.device(&SETTINGS).expect("opens"));
        let mut device = device.with_room::<128>();
        let tx = [0xa1, 0xa2, 0xa3, 0xa4, 0xa5];
        let mut buffers: Vec<Vec<u8>> = steps.iter().map(|step| match step {
            Step::Read(len) | Step::Transfer(len, _) => vec![0; *len],
            Step::InPlace(len) => tx[..*len].to_vec(),
            _ => Vec::new(),
        }).collect();
        let mut operations: Vec<Operation<'_, u8>> = Vec::new();
        for (step, buffer) in steps.iter().zip(&mut buffers) {
            operations.push(match step {
                Step::Read(_) => Operation::Read(buffer),
                Step::Write(len) => Operation::Write(&tx[..*len]),
                Step::Transfer(_, len) => Operation::Transfer(buffer, &tx[..*len]),
                Step::InPlace(_) => Operation::TransferInPlace(buffer),
                Step::Delay(ns) => Operation::DelayNs(*ns),
            });
        }
        let ran = if as_future {
            block_on(AsyncSpiDevice::transaction(&mut device, &mut operations)).0
        } else {
            SpiDevice::transaction(&mut device, &mut operations)
        };
        prop_assert_eq!(ran, Ok(()));
        let log = log.take();
        prop_assert_eq!(log.first(), Some(&Select));
        prop_assert_eq!(log.last(), Some(&Deselect));
        prop_assert_eq!(log.iter().filter(|event| matches!(event, Select | Deselect)).count(), 2);

        let (mut expected, mut asked_ns, mut owed_ns) = (Vec::new(), Vec::new(), 0_u64);
        for (step, buffer) in steps.iter().zip(&buffers) {
            let at = expected.len();
            let (read_len, sent) = match step {
                Step::Read(len) => (*len, vec![0; *len]),
                Step::Write(len) => (0, tx[..*len].to_vec()),
                Step::InPlace(len) => (*len, tx[..*len].to_vec()),
                Step::Transfer(read, write) => {
                    let mut sent = tx[..*write].to_vec();
                    sent.resize((*read).max(*write), 0);
                    (*read, sent)
                }
                Step::Delay(ns) => {
                    owed_ns += u64::from(*ns);
                    (0, Vec::new())
                }
            };
            for byte in sent {
                expected.push(byte);
                asked_ns.push(core::mem::take(&mut owed_ns));
            }
            let places: Vec<u8> = (0..read_len).map(|index| (at + index + 1) as u8).collect();
            prop_assert_eq!(buffer, &places);
        }
        asked_ns.push(owed_ns);
        let (bytes, waits) = timeline(&log);
        prop_assert_eq!(bytes, expected);
        for (ticks, ns) in waits.iter().zip(&asked_ns) {
            // Never shorter, and at most a tick longer for each delay and each second of it.
            let least = ticks_at_least(*ns, 8_000_000);
            let most = least + steps.len() as u64 + ns / 1_000_000_000;
            prop_assert!((least..=most).contains(ticks), "{} {}", ticks, ns);
        }
    }
}

#[test]
fn an_owned_device_is_the_borrowed_one() {
    let bus = Rc::new(Bus::new(Null::new()));
    let settings = Settings { cs_setup_ns: 2_000, ..SETTINGS };
    let owned = OwnedDevice::new(Rc::clone(&bus), &settings).expect("opens").with_priority(7);
    let (lent, opened) = (owned.device(), bus.device(&settings).expect("opens"));
    assert_eq!(lent.priority(), 7);
    assert_eq!(lent.settings(), opened.settings());
    assert_eq!(lent.effective(), opened.effective());
    assert_eq!(lent.limits(), opened.limits());
    assert!(core::ptr::eq(lent.bus(), &raw const *bus));
    drop(bus);
    assert_eq!(owned.device().sync(&mut [Transfer::write(&[1, 2])]), Ok(2));
    let refused = OwnedDevice::new(Rc::new(Bus::new(Null::new())), &Settings::new(0, 0));
    assert_eq!(refused.map(drop), Err(Error::SpeedZero));
}
