//! tokio's executor of one thread, beside a worker that has the wire: its other task runs meanwhile.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use barewire::bus::{Bus, Pump};
use barewire::controller::null::Null;
use barewire::controller::{Controller, Preset, Unfinished};
use barewire::hal::HalDevice;
use barewire::middleware::Layer;
use barewire::spi::{Settings, Transfer};
use barewire_linux::platform::FUTEX;
use barewire_linux::worker::{WorkerOptions, serve, spawn_scoped};
use embedded_hal_async::spi::SpiDevice;
use tokio::runtime;
use tokio::task::yield_now;

const SETTINGS: Settings = Settings::new(0, 1_000_000);
/// A message of this length takes until the other task had this many turns.
const LONG: usize = 64;
const TURNS: u64 = 100;
/// After which a message ends all the same: its task had the thread.
const TOO_LONG: Duration = Duration::from_secs(10);

/// What the other task did.
#[derive(Default)]
struct Other {
    turns: AtomicU64,
    ends: AtomicBool,
}

impl Other {
    async fn run(&self) {
        while !self.ends.load(Ordering::Relaxed) {
            self.turns.fetch_add(1, Ordering::Relaxed);
            yield_now().await;
        }
    }
}

/// A wire whose long messages last as long as the other task goes on.
struct LongWire {
    inner: Null,
    other: Arc<Other>,
}

impl Layer for LongWire {
    barewire::wrapped_controller!(inner: Null);

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let turns = || self.other.turns.load(Ordering::Relaxed);
        let (begun, at_first) = (Instant::now(), turns());
        let is_long = message.iter().map(|transfer| transfer.data().len()).sum::<usize>() == LONG;
        while is_long && turns() < at_first + TURNS && begun.elapsed() < TOO_LONG {
            thread::yield_now();
        }
        self.inner.run(preset, message)
    }
}

#[test]
fn other_tasks_run_while_the_worker_has_the_wire() {
    let other = Arc::new(Other::default());
    let wire = LongWire { inner: Null::new(), other: other.clone() };
    let bus = Bus::with_platform(wire, &FUTEX).with_pump(Pump::Worker);
    let executor = runtime::Builder::new_current_thread().build().expect("is built");
    thread::scope(|scope| {
        let worker = spawn_scoped(scope, &WorkerOptions::default(), |stop| serve(&bus, stop));
        let worker = worker.expect("is made").ringing(|| bus.ring());
        let reads = async {
            let device = bus.device(&SETTINGS).expect("opens");
            let mut queued = pin!(device.queued([0; LONG]).expect("plans"));
            for _ in 0..3 {
                let before = other.turns.load(Ordering::Relaxed);
                assert_eq!(queued.as_mut().run().await, Ok(LONG));
                let turns = other.turns.load(Ordering::Relaxed) - before;
                assert!(turns >= TURNS, "the other task had {turns} turns");
            }
            // Borrowed bytes wait for their turn behind a message that the worker has.
            queued.as_mut().submit().expect("is free");
            let mut borrowed = HalDevice::new(device);
            borrowed.write(&[1, 2, 3]).await.expect("runs");
            assert_eq!(queued.as_mut().result(), Some(Ok(LONG)), "in the order of one thread");
            other.ends.store(true, Ordering::Relaxed);
        };
        executor.block_on(async { tokio::join!(reads, other.run()) });
        assert!(worker.stop().expect("no panic") > 0, "the worker ran what was submitted");
    });
}
