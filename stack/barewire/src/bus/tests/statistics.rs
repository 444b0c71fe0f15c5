//! The counters equal what was on the wire, and are read consistently.

use std::cell::RefCell;
use std::pin::pin;
use std::string::ToString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::vec::Vec;

use super::park::{Park, ParkInheriting};
use super::{SETTINGS, wired};
use crate::bus::atomic::AtomicU32;
use crate::bus::platform::Spin;
use crate::bus::statistics::{Counters, Path, bucket, count_in};
use crate::bus::{Platform, Statistics};
use crate::controller::null::Null;
use crate::controller::{Controller, Preset, Stopped};
use crate::spi::Transfer;

#[test]
fn off_nothing_is_counted_and_on_every_path_is() {
    for platform in [&Spin as &dyn Platform, &Park, &ParkInheriting] {
        let bus = wired(platform, |len| match len {
            3 => Err(Stopped::TimedOut { timeout_us: 1 }),
            _ => Ok(()),
        });
        let device = bus.device(&SETTINGS).expect("opens");
        let mut register = device.prepare([1, 2]).expect("plans");
        let mut queued = pin!(device.queued([1; 8]).expect("plans"));
        register.run().expect("runs");
        assert_eq!(bus.statistics(), Statistics::default(), "it is off");
        bus.set_counting(true);
        register.run().expect("runs");
        register.try_run().expect("runs");
        let mut rx = [0; 70];
        device
            .sync(&mut [Transfer::write(&[1]).with_cs_change(), Transfer::read(&mut rx)])
            .expect("runs");
        queued.as_mut().submit().expect("is free");
        assert_eq!(queued.as_mut().wait(), Some(Ok(8)));
        device.sync(&mut [Transfer::write(&[1; 2]), Transfer::write(&[0; 3])]).expect_err("fails");
        device.sync(&mut []).expect_err("is refused, and never was on the wire");
        bus.lock().sync(&device, &mut [Transfer::write(&[1])]).expect("runs");
        let mut expected = Statistics {
            messages: 6,
            transfers: 7,
            errors: 1,
            timedout: 1,
            spi_sync: 5,
            spi_sync_immediate: 5,
            spi_async: 1,
            bytes: 2 + 2 + 1 + 70 + 8 + 2 + 1,
            bytes_rx: 2 + 2 + 70 + 8,
            bytes_tx: 2 + 2 + 1 + 8 + 2 + 1,
            ..Statistics::default()
        };
        expected.transfer_bytes_histo[0] = 2;
        expected.transfer_bytes_histo[1] = 3;
        expected.transfer_bytes_histo[3] = 1;
        expected.transfer_bytes_histo[6] = 1;
        assert_eq!(bus.statistics(), expected);
        bus.set_counting(false);
        register.run().expect("runs");
        assert_eq!(bus.statistics(), expected, "counts stay when counting ends");
    }
}

#[test]
fn a_caller_that_waited_is_counted_as_one_that_waited() {
    let bus = wired(&Park, |_| Ok(()));
    bus.set_counting(true);
    let device = bus.device(&SETTINGS).expect("opens");
    std::thread::scope(|scope| {
        let lock = bus.lock();
        scope.spawn(|| device.sync(&mut [Transfer::write(&[1])]).expect("runs"));
        // The word changes once the other thread has pushed.
        while bus.word.load(Ordering::Relaxed) == crate::bus::word::LOCK {
            std::thread::yield_now();
        }
        drop(lock);
    });
    let statistics = bus.statistics();
    assert_eq!((statistics.spi_sync, statistics.spi_sync_immediate), (1, 0));
}

#[test]
fn a_reader_never_sees_half_a_message() {
    let (rounds, stop) = (if cfg!(miri) { 30 } else { 20_000 }, AtomicBool::new(false));
    let bus = wired(&Park, |_| Ok(()));
    bus.set_counting(true);
    let device = bus.device(&SETTINGS).expect("opens");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..rounds {
                device.sync(&mut [Transfer::write(&[1; 3]), Transfer::write(&[2])]).expect("runs");
            }
            stop.store(true, Ordering::Relaxed);
        });
        while !stop.load(Ordering::Relaxed) {
            let seen = bus.statistics();
            assert_eq!(seen.transfers, 2 * seen.messages, "{seen:?}");
            assert_eq!(seen.bytes, 4 * seen.messages, "{seen:?}");
            assert_eq!(seen.spi_sync, seen.messages, "{seen:?}");
        }
    });
    assert_eq!(bus.statistics().messages, rounds);
}

#[test]
fn a_reader_that_interrupts_a_count_waits_for_nobody_and_sees_a_whole_message_or_none() {
    let counters = Counters::with(AtomicU32::new(0));
    let (preset, _) = Null::new().configure(&SETTINGS).expect("opens");
    let message = [Transfer::write(&[1; 3]), Transfer::write(&[2])];
    let seen = RefCell::new(Vec::new());
    for _ in 0..2 {
        // Reads as an interrupt handler would, while either copy changes.
        counters.in_both(|copy| {
            copy[0].add(1);
            seen.borrow_mut().push(counters.read());
            copy[0].add(usize::MAX);
            count_in(copy, Path::Immediate, &preset, &message, Ok(4));
        });
    }
    let messages: Vec<_> = seen.borrow().iter().map(|seen| seen.messages).collect();
    assert_eq!(messages, [0, 1, 1, 2], "readers see the copy that is not being changed");
    assert!(seen.borrow().iter().all(|seen| seen.bytes == 4 * seen.messages));
}

#[test]
fn an_exchange_that_the_block_takes_in_pieces_is_counted_as_split() {
    let (preset, _) = Null::new().configure(&SETTINGS).expect("opens");
    let preset = Preset { max_transfer_bytes: 4, ..preset };
    for (len, split) in [(4, 0), (5, 1)] {
        let counters = Counters::with(AtomicU32::new(0));
        counters.count_exchange_apart(&preset, Ok(len));
        let seen = counters.read();
        assert_eq!((seen.messages, seen.transfers, seen.transfers_split_maxsize), (1, 1, split));
        assert_eq!((seen.bytes_tx, seen.bytes_rx), (len as u64, len as u64));
    }
}

#[test]
fn buckets_are_the_kernel_s() {
    let of = [0, 1, 2, 3, 4, 7, 8, 65_535, 65_536, usize::MAX].map(bucket);
    assert_eq!(of, [0, 0, 1, 1, 2, 2, 3, 15, 16, 16]);
    let names = [0, 1, 4, 15, 16].map(|index| Statistics::bucket_name(index).to_string());
    assert_eq!(names, ["0-1", "2-3", "16-31", "32768-65535", "65536+"]);
    assert_eq!(Statistics::bucket_begin(4), 16);
}
