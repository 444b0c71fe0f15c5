//! Measures what the lock between processes adds to an uncontended message.
//!
//! `cargo run --release -p barewire-linux --example process_shared`
//!
//! Writes one byte to the null controller and prints ns per message: on the plain bus, with the
//! lock held around it, and with two openers in turn, each of which finds the other as the last
//! user and reclaims. Each figure is the best of several runs, which alternate so that all see the
//! machine in one state.

use std::time::Instant;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::controller::null::Null;
use barewire::spi::{Settings, Transfer};
use barewire_linux::shared::{ProcessShared, SharedLock};

const MESSAGES: u32 = 200_000;
const ROUNDS: usize = 15;

fn ns_a_message(run: &mut dyn FnMut()) -> f64 {
    let begun = Instant::now();
    for _ in 0..MESSAGES {
        run();
    }
    begun.elapsed().as_nanos() as f64 / f64::from(MESSAGES)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = std::env::temp_dir().join(format!("barewire-example-{}", std::process::id()));
    std::fs::create_dir(&place)?;
    let (path, device) = (place.join("lock"), place.join("device"));
    std::fs::File::create(&device)?;
    let open = || SharedLock::open(&path, &device);

    let plain = Bus::new(Null::new());
    let shared = Bus::new(ProcessShared::new(open()?, Null::new()));
    let other = Bus::new(ProcessShared::new(open()?, Null::new()));
    std::fs::remove_dir_all(&place)?;

    let settings = Settings::new(0, 1_000_000);
    let (plain, shared, other) =
        (plain.device(&settings)?, shared.device(&settings)?, other.device(&settings)?);
    fn one<C: Controller>(device: &barewire::bus::Device<'_, C>) {
        device.sync(&mut [Transfer::write(&[0x05])]).expect("the null controller does not fail");
    }
    let mut best = [f64::INFINITY; 3];
    for _ in 0..ROUNDS {
        let rounds: [&mut dyn FnMut(); 3] =
            [&mut || one(&plain), &mut || one(&shared), &mut || {
                one(&shared);
                one(&other);
            }];
        for (best, run) in best.iter_mut().zip(rounds) {
            *best = best.min(ns_a_message(run));
        }
    }
    let [plain, shared, turns] = best;
    println!("plain bus:          {plain:5.1} ns");
    println!("process-shared bus: {shared:5.1} ns, {:.1} ns more", shared - plain);
    println!("two openers in turn: {:4.1} ns each", turns / 2.0);
    Ok(())
}
