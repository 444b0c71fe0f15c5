//! Measures how long a spin and a sleep take on this machine; `platform::SPINS` follows from the
//! two.
//!
//! `cargo run --release -p barewire-linux --example futex`

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use barewire::bus::Platform;
use barewire_linux::platform::{FUTEX, SPINS};

fn main() {
    const RELAXES: u32 = 1_000_000;
    let begun = Instant::now();
    for _ in 0..RELAXES {
        FUTEX.relax();
    }
    let relax_ns = begun.elapsed().as_nanos() as f64 / f64::from(RELAXES);
    println!(
        "one look: {relax_ns:.1} ns; {SPINS} looks: {:.1} us",
        relax_ns * f64::from(SPINS) / 1e3
    );

    let word = AtomicU32::new(0);
    let begun = Instant::now();
    for _ in 0..100_000 {
        FUTEX.wake(&word);
    }
    println!("waking nobody: {:.2} us", begun.elapsed().as_nanos() as f64 / 100_000.0 / 1e3);

    // Two threads hand a word back and forth; each sleeps while the other has it.
    const ROUNDS: u32 = 20_000;
    let begun = Instant::now();
    let hand_over = |mine: u32| {
        for _ in 0..ROUNDS {
            while word.load(Ordering::Acquire) != mine {
                FUTEX.wait((&word).into(), 1 - mine);
            }
            word.store(1 - mine, Ordering::Release);
            FUTEX.wake(&word);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| hand_over(0));
        scope.spawn(|| hand_over(1));
    });
    let each_us = begun.elapsed().as_nanos() as f64 / f64::from(2 * ROUNDS) / 1e3;
    println!("waking a sleeper, until it runs: {each_us:.1} us");
}
