//! Messages of any length, submitted and prepared.

#![allow(unsafe_code, reason = "promises that buffers outlive a message")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use barewire::controller::null::Null;
use barewire::spi::{Error, Settings};
use barewire::{bus::Bus, controller::Controller};
use barewire_open::{AnyBus, OwnedMessage, Shape};

const ID: [u8; 4] = [0x9f, 0, 0, 0];

#[test]
fn the_bytes_are_changed_between_two_runs() {
    let bus = AnyBus::open("sim:imx8mp").expect("opened");
    bus.start_worker().expect("a worker");
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("a device");
    let device = device.device();
    let message = OwnedMessage::new().with_exchange(&[0xff; 4], Shape::default());
    let mut queued = Box::pin(message.queued(&device).expect("planned"));
    for bytes in [ID, [0x05, 0, 0, 0], ID] {
        let fill = |message: Pin<&mut OwnedMessage>| {
            message.get_mut().tx_mut(0).expect("it sends").copy_from_slice(&bytes);
        };
        queued.as_mut().with_payload(fill).expect("not queued");
        queued.as_mut().submit().expect("submitted");
        assert_eq!(queued.as_mut().wait(), Some(Ok(4)));
        let read = queued.as_mut().with_payload(|message| message.rx(0).map(<[u8]>::to_vec));
        let expected = if bytes == ID { [0xff, 0xef, 0x40, 0x19] } else { [0xff, 0, 0, 0] };
        assert_eq!(read, Ok(Some(expected.to_vec())));
    }
    let message =
        OwnedMessage::new().with_write(&[0x9f], Shape::default()).with_read(3, Shape::default());
    assert_eq!((message.transfers(), message.bytes()), (2, 4));
    let mut prepared = message.prepared(&device).expect("planned");
    assert_eq!(prepared.run(), Ok(4));
    assert_eq!(prepared.rx(1), Some(&[0xef, 0x40, 0x19][..]));
    assert_eq!(prepared.rx(0), None, "it only sends");
    assert_eq!(prepared.rx(2), None, "there is none");
    prepared.tx_mut(0).expect("it sends")[0] = 0x05;
    let mut locked = bus.lock();
    assert_eq!(locked.run_message(prepared.bound()), Ok(4));
    drop(locked);
    assert_eq!(prepared.rx(1), Some(&[0, 0, 0][..]), "the status");
}

/// A callback may exchange a lent message for another. The new one is planned before it runs.
#[test]
fn a_message_that_was_changed_while_lent_is_planned_again() {
    let bus = AnyBus::open("sim:imx8mp").expect("opened");
    bus.start_worker().expect("a worker");
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("a device");
    let of = |bytes: &[u8], shape| OwnedMessage::new().with_exchange(bytes, shape);
    let mut queued = Box::pin(of(&ID, Shape::default()).queued(&device.device()).expect("planned"));
    let refused = [
        of(&ID, Shape { cs_change: true, ..Shape::default() }),
        of(&ID[..3], Shape { bits_per_word: 16, ..Shape::default() }),
        of(&ID, Shape { speed_hz: 1, ..Shape::default() }),
    ];
    for message in refused {
        queued.as_mut().with_payload(|place| *place.get_mut() = message).expect("not queued");
        let submitted = queued.as_mut().submit();
        assert!(submitted.is_err(), "{submitted:?}");
        assert_eq!(queued.as_mut().enqueue(), submitted, "it stays refused");
        assert_eq!(queued.as_mut().result(), None, "nothing was clocked");
    }
    let longer =
        of(&ID, Shape { speed_hz: 1_000_000, ..Shape::default() }).with_read(8, Shape::default());
    queued.as_mut().with_payload(|place| *place.get_mut() = longer).expect("not queued");
    let panicked =
        catch_unwind(AssertUnwindSafe(|| queued.as_mut().with_payload(|_| panic!("ours"))));
    assert!(panicked.is_err());
    queued.as_mut().submit().expect("planned again");
    assert_eq!(queued.as_mut().wait(), Some(Ok(12)));
    let read = queued.as_mut().with_payload(|message| message.rx(0).map(<[u8]>::to_vec));
    assert_eq!(read, Ok(Some(vec![0xff, 0xef, 0x40, 0x19])));
}

#[test]
fn a_message_that_is_queued_lends_nothing() {
    let bus = AnyBus::open("null:").expect("opened");
    let device = bus.device(&Settings::new(0, 1_000_000)).expect("a device");
    let message = OwnedMessage::new().with_exchange(&ID, Shape::default());
    let mut queued = Box::pin(message.queued(&device.device()).expect("planned"));
    let locked = bus.lock();
    queued.as_mut().submit().expect("submitted");
    let lent = queued.as_mut().with_payload(|message| message.rx(0).map(<[u8]>::len));
    assert_eq!(lent, Err(Error::Busy));
    assert!(queued.as_mut().cancel(), "the message waits behind the lock");
    drop(locked);
}

#[test]
fn buffers_of_others_are_used_where_they_are() {
    let bus = Bus::new(Null::new());
    let device = bus.device(&Settings::new(0, 1_000_000)).expect("a device");
    let (tx, mut rx, mut both) = ([1_u8, 2, 3], [9_u8; 3], [4_u8, 5]);
    let message = OwnedMessage::new();
    let pointers = (tx.as_ptr(), rx.as_mut_ptr(), both.as_mut_ptr());
    // SAFETY: the arrays outlive the message.
    let message = unsafe { message.with_borrowed(pointers.0, pointers.1, 3, Shape::default()) };
    let in_place = Shape { cs_change_delay_ns: 10, ..Shape::default() };
    // SAFETY: likewise.
    let message = unsafe { message.with_borrowed(pointers.2, pointers.2, 2, in_place) };
    let empty = Shape { delay_ns: 5, ..Shape::default() };
    // SAFETY: the transfer has no bytes.
    let message = unsafe { message.with_borrowed(std::ptr::null(), pointers.1, 0, empty) };
    let mut prepared = message.prepared(&device).expect("planned");
    assert_eq!(prepared.run(), Ok(5));
    drop(prepared);
    // The null controller zeroes the first byte received.
    assert_eq!((rx, both), ([0, 9, 9], [0, 5]));
}

#[test]
fn a_message_that_is_refused_frees_its_buffers() {
    let bus = Bus::new(Null::new());
    let device = bus.device(&Settings::new(0, 1_000_000)).expect("a device");
    let bits = Shape { bits_per_word: 9, ..Shape::default() };
    let refused = |message: OwnedMessage| message.prepared(&device).map(drop).expect_err("refused");
    let error = refused(OwnedMessage::new().with_exchange(&ID, bits)).error;
    assert_eq!(error, Error::BitsPerWord { bits: 9 });
    assert_eq!(refused(OwnedMessage::new()).error, Error::Empty);
    let queued = OwnedMessage::new().with_read(3, bits).queued(&device);
    assert_eq!(queued.map(drop).expect_err("refused").error, Error::BitsPerWord { bits: 9 });
    assert_eq!(bus.into_inner().limits().timer_hz, 1_000_000_000);
}
