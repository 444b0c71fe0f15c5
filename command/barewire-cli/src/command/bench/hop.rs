//! The cost of a hop: from handing a message to a worker thread until its result is back.
//!
//! # How it works
//! The worker serves a bus of its own ([`Pump::Worker`]). *Awake*: messages follow each other,
//! so the worker is still polling for work when the next arrives. *Asleep*: the caller lets the
//! worker fall asleep before each message, as when messages are rare. Caller and worker are pinned
//! to a processor each, if there are two ([`processors`]).

use std::pin::pin;
use std::thread;
use std::time::{Duration, Instant};

use barewire::bus::{Bus, Pump};
use barewire::controller::null::Null;
use barewire::spi::{Error, Settings};
use barewire_linux::platform::FUTEX;
use barewire_linux::worker::serve;

use crate::shared::processors::{self, spawn_on};

/// A row each: its name, how many messages of a round, and how long the caller waits before each.
pub(super) const HOPS: [(&str, u32, Duration); 2] = [
    ("worker_hop", 20, Duration::ZERO),
    // A worker looks for some microseconds before it sleeps.
    ("worker_hop_asleep", 2, Duration::from_micros(50)),
];

/// The mean of one round of each of [`HOPS`], for each of `rounds` rounds.
pub(super) fn measure(rounds: u32) -> Result<[Vec<f64>; HOPS.len()], String> {
    let bus = Bus::with_platform(Null::new(), &FUTEX).with_pump(Pump::Worker);
    let processors = processors::allowed();
    thread::scope(|scope| {
        let worker =
            spawn_on(scope, &processors, 1, |stop| serve(&bus, stop))?.ringing(|| bus.ring());
        let caller = spawn_on(scope, &processors, 0, |_| call(&bus, rounds))?;
        let times = caller.join().map_err(|_| "the caller panicked")?;
        worker.stop().map_err(|_| "the worker panicked")?;
        times.map_err(|error| error.to_string())
    })
}

fn call(bus: &Bus<Null>, rounds: u32) -> Result<[Vec<f64>; HOPS.len()], Error> {
    let device = bus.device(&Settings::new(0, 20_000_000))?;
    let mut message = pin!(device.queued([0x9f, 0, 0, 0])?);
    let mut times = HOPS.map(|_| Vec::with_capacity(rounds as usize));
    // The first round warms.
    for round in 0..=rounds {
        for (&(_, messages, pause), times) in HOPS.iter().zip(&mut times) {
            let mut spent = Duration::ZERO;
            for _ in 0..messages {
                let paused = Instant::now();
                while paused.elapsed() < pause {
                    std::hint::spin_loop();
                }
                let begun = Instant::now();
                message.as_mut().submit()?;
                let ran = message.as_mut().wait();
                spent += begun.elapsed();
                debug_assert_eq!(ran, Some(Ok(4)));
            }
            if round > 0 {
                times.push(spent.as_nanos() as f64 / f64::from(messages));
            }
        }
    }
    Ok(times)
}
