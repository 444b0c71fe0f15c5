//! The bus word under a model checker: every interleaving of threads that sync, run prepared
//! accesses and try.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p barewire --release --test loom`
#![cfg(loom)]
#![allow(unsafe_code, reason = "loom's cell hands out pointers, and watches their use")]

use barewire::bus::Bus;
use barewire::controller::null::Null;
use barewire::controller::{
    Controller, Limits, Plan, Program, TimedOut, Unfinished, Wire, run_message,
};
use barewire::spi::{Data, Effective, Error, MessageError, Settings, Transfer};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A wire whose bytes loom watches: two accesses that are not ordered fail the run, and so does a
/// message that finds another inside.
struct Watched {
    sent: UnsafeCell<Vec<u8>>,
    selected: UnsafeCell<bool>,
}

impl Watched {
    fn new() -> Self {
        Self { sent: UnsafeCell::new(Vec::new()), selected: UnsafeCell::new(false) }
    }

    fn set_selected(&self, to: bool) {
        // SAFETY: whether this access is alone is what loom checks here.
        let was = self.selected.with_mut(|selected| unsafe { core::ptr::replace(selected, to) });
        assert_ne!(was, to, "one message inside another");
    }
}

impl Wire for Watched {
    fn select(&mut self, _: &Program) {
        self.set_selected(true);
    }

    fn deselect(&mut self, _: &Program) {
        self.set_selected(false);
    }

    fn exchange(&mut self, _: &Program, _: &Plan, data: &mut Data<'_>) -> Result<(), TimedOut> {
        let bytes = data.tx().unwrap_or_default();
        // SAFETY: whether this access is alone is what loom checks here.
        self.sent.with_mut(|sent| unsafe { &mut *sent }.extend_from_slice(bytes));
        Ok(())
    }

    fn recover(&mut self) {}

    fn wait_ticks(&mut self, _: u32) {}
}

impl Controller for Watched {
    fn limits(&self) -> Limits {
        Null::new().limits()
    }

    fn configure(&self, settings: &Settings) -> Result<(Program, Effective), Error> {
        Null::new().configure(settings)
    }

    fn plan(&self, program: &Program, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        Null::new().plan(program, message)
    }

    fn run(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        run_message(self, program, message)
    }
    fn reclaim(&mut self) {}
}

const SETTINGS: Settings = Settings::new(0, 1_000_000);

fn sent(bus: Arc<Bus<Watched>>) -> Vec<u8> {
    // Opening takes the bus once more, which orders everything sent before this read.
    bus.device(&SETTINGS).expect("opens");
    let bus = Arc::try_unwrap(bus).unwrap_or_else(|_| panic!("the threads have ended"));
    // SAFETY: the bus is ours alone.
    bus.into_inner().sent.with_mut(|sent| unsafe { core::mem::take(&mut *sent) })
}

/// Each thread's bytes came in its own order.
fn assert_order(sent: &[u8], thread: u8, count: usize) {
    let own: Vec<u8> = sent.iter().copied().filter(|byte| byte >> 4 == thread).collect();
    let expected: Vec<u8> = (0..count as u8).map(|n| thread << 4 | n).collect();
    assert_eq!(own, expected, "thread {thread} out of order in {sent:02x?}");
}

// Each thread takes the bus three times (opening takes it too); at most three of the switches
// between them are preemptions, the rest wait for the bus.
#[test]
fn two_threads_keep_their_own_order() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let bus = Arc::new(Bus::with_relax(Watched::new(), thread::yield_now));
        let threads: Vec<_> = (1..=2_u8)
            .map(|number| {
                let bus = bus.clone();
                thread::spawn(move || {
                    let device = bus.device(&SETTINGS).expect("opens");
                    device.sync(&mut [Transfer::write(&[number << 4])]).expect("runs");
                    device.sync(&mut [Transfer::write(&[number << 4 | 1])]).expect("runs");
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        let sent = sent(bus);
        assert_eq!(sent.len(), 4);
        assert_order(&sent, 1, 2);
        assert_order(&sent, 2, 2);
    });
}

#[test]
fn prepared_beside_try() {
    loom::model(|| {
        let bus = Arc::new(Bus::with_relax(Watched::new(), thread::yield_now));
        let prepared = {
            let bus = bus.clone();
            thread::spawn(move || {
                let device = bus.device(&SETTINGS).expect("opens");
                device.prepare([0x10]).expect("prepares").run().map(|_| ()).expect("runs");
            })
        };
        let tries = {
            let bus = bus.clone();
            thread::spawn(move || {
                let device = bus.device(&SETTINGS).expect("opens");
                match device.try_sync(&mut [Transfer::write(&[0x20])]) {
                    Ok(_) => 1,
                    Err(error) => {
                        assert_eq!(error.error, Error::Busy);
                        0
                    }
                }
            })
        };
        prepared.join().expect("no panic");
        let tried = tries.join().expect("no panic");
        let sent = sent(bus);
        assert_eq!(sent.len(), 1 + tried);
        assert_order(&sent, 1, 1);
        assert_order(&sent, 2, tried);
    });
}
