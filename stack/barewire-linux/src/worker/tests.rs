//! Workers with and without permissions.

use std::pin::pin;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use barewire::bus::queued::Completed;
use barewire::bus::{Pump, Then};
use barewire::controller::null::Null;
use barewire::spi::Settings;

use super::*;
use crate::platform::FUTEX;

fn status(key: &str) -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("a known key");
    line.trim_start_matches(':').trim().to_owned()
}

/// Waits for the body's first round: a worker stopped earlier would have none.
fn begins(turns: &AtomicU32) {
    while turns.load(Ordering::Relaxed) == 0 {
        thread::yield_now();
    }
}

#[test]
fn a_worker_runs_until_it_is_told() {
    let turns = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&turns);
    let options = WorkerOptions { name: "spi-worker".into(), ..WorkerOptions::default() };
    let worker = Worker::spawn(&options, move |stop| {
        while !stop.is_set() {
            counted.fetch_add(1, Ordering::Relaxed);
            thread::park();
        }
        status("Name")
    });
    let worker = worker.expect("nothing was asked for");
    begins(&turns);
    let thread = worker.thread().clone();
    let name = worker.ringing(move || thread.unpark()).stop().expect("it did not panic");
    assert_eq!(name, "spi-worker");
}

#[test]
fn a_scoped_worker_borrows_and_ends_with_its_scope() {
    let turns = AtomicU32::new(0);
    thread::scope(|scope| {
        let worker = spawn_scoped(scope, &WorkerOptions::default(), |stop| {
            while !stop.flag().load(Ordering::Acquire) {
                turns.fetch_add(1, Ordering::Relaxed);
                thread::park_timeout(Duration::from_secs(60));
            }
        })
        .expect("nothing was asked for");
        begins(&turns);
        let thread = worker.thread().clone();
        // Dropped, as a panic in this closure would: the scope must still end.
        drop(worker.ringing(move || thread.unpark()));
    });
}

#[test]
fn a_panic_of_the_body_comes_back() {
    let worker = Worker::spawn(&WorkerOptions::default(), |_| panic!("on purpose"));
    let panic = worker.expect("it started").join().expect_err("the body panicked");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
}

/// A bus that a worker serves, and a message whose callback panics.
#[test]
fn a_panic_of_a_callback_ends_no_worker_and_is_told_at_its_end() {
    static FIRST: &(dyn Fn(&mut Completed<'_>) -> Then + Sync) = &|_| panic!("the first");
    static SECOND: &(dyn Fn(&mut Completed<'_>) -> Then + Sync) = &|_| panic!("the second");
    let bus = Bus::with_platform(Null::new(), &FUTEX).with_pump(Pump::Worker);
    let device = bus.device(&Settings::new(0, 1_000_000)).expect("opens");
    thread::scope(|scope| {
        let worker = spawn_scoped(scope, &WorkerOptions::default(), |stop| serve(&bus, stop));
        let worker = worker.expect("nothing was asked for").ringing(|| bus.ring());
        for callback in [FIRST, SECOND] {
            let panics = device.queued([1; 4]).expect("plans").with_callback(callback);
            let (mut panics, mut behind) =
                (pin!(panics), pin!(device.queued([2; 4]).expect("plans")));
            panics.as_mut().submit().expect("is free");
            behind.as_mut().submit().expect("is free");
            assert_eq!(panics.as_mut().wait(), Some(Ok(4)), "it ran, whatever its callback did");
            assert_eq!(behind.as_mut().wait(), Some(Ok(4)));
        }
        let panic = worker.stop().expect_err("the callbacks' panic");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the first"));
    });
    assert_eq!(bus.into_inner().bytes(), 16);
}

#[test]
fn a_worker_stays_on_its_processors() {
    let allowed = status("Cpus_allowed_list");
    // The first number of a list as `0-3,8`.
    let first: usize = allowed.split(['-', ',']).next().and_then(|n| n.parse().ok()).expect("one");
    let options = WorkerOptions { affinity: Some(vec![first]), ..WorkerOptions::default() };
    let worker = Worker::spawn(&options, |_| status("Cpus_allowed_list")).expect("one of ours");
    assert_eq!(worker.join().expect("runs"), first.to_string());
    assert_eq!(status("Cpus_allowed_list"), allowed, "the spawner's affinity is as it was");
}

#[test]
fn what_cannot_be_is_refused_before_the_body_runs() {
    let spawn = |options: &WorkerOptions| {
        let worker = Worker::spawn(options, |_| unreachable!("the body ran"));
        worker.map(drop).expect_err("refused")
    };
    let on = |processors: &[usize]| WorkerOptions {
        affinity: Some(processors.to_vec()),
        ..WorkerOptions::default()
    };
    assert!(matches!(spawn(&on(&[])), WorkerError::Processors { .. }));
    assert!(matches!(spawn(&on(&[0, 1 << 20])), WorkerError::Processors { .. }));
    // A number that a set can hold and no test machine has.
    let refused = spawn(&on(&[1023]));
    assert!(
        matches!(&refused, WorkerError::Refused(Refused::Affinity { errno: Errno::INVAL, .. })),
        "{refused}"
    );
    let named = WorkerOptions { name: "a\0b".into(), ..WorkerOptions::default() };
    assert!(matches!(spawn(&named), WorkerError::Name { .. }));
}

#[test]
fn priorities_are_1_to_99() {
    let priority = |n| FifoPriority::new(n).map(FifoPriority::get);
    assert_eq!([0, 1, 99, 100].map(priority), [None, Some(1), Some(99), None]);
}

#[test]
fn a_worker_gets_the_priority_it_has_a_right_to() {
    let options = WorkerOptions { scheduler: FifoPriority::new(20), ..WorkerOptions::default() };
    let worker = match Worker::spawn(&options, |_| {
        std::fs::read_to_string("/proc/thread-self/stat").expect("Linux")
    }) {
        Ok(worker) => worker,
        Err(error) => {
            println!("SKIPPED: no right to real-time priorities here: {error}");
            return;
        }
    };
    let stat = worker.join().expect("runs");
    let fields: Vec<_> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
    // The 18th field, the 40th and the 41st, less the two before the closing parenthesis.
    assert_eq!((fields[15], fields[37], fields[38]), ("-21", "20", "1"), "{stat}");
}
