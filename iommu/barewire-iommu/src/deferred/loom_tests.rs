//! The queue under a model checker: `RUSTFLAGS="--cfg loom" cargo test --release --lib loom`.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;

/// The tables of two entries: 0 mapped, 1 unhooked, 2 invalidated. Their loads and stores are
/// relaxed, so only the queue's lock orders them.
struct Hardware {
    tables: [AtomicUsize; 2],
    released: [AtomicUsize; 2],
    /// Whether the next flush fails.
    fails: AtomicUsize,
}

impl Keeper for Hardware {
    type Held = usize;
    /// A bitmap of tables.
    type Gathered = usize;
    type Error = ();

    fn join(&self, all: &mut usize, more: usize) {
        assert_eq!(*all & more, 0, "gathered twice");
        *all |= more;
    }

    fn invalidate(&self, gathered: &usize) -> Result<(), ()> {
        if self.fails.swap(0, Relaxed) == 1 {
            return Err(());
        }
        for (i, table) in self.tables.iter().enumerate() {
            if gathered >> i & 1 == 1 {
                assert_eq!(table.load(Relaxed), 1, "flushed before it was seen to be unhooked");
                table.store(2, Relaxed);
            }
        }
        Ok(())
    }

    fn free(&self, _: usize) {}

    fn release(&self, held: usize) {
        assert_eq!(self.tables[held].load(Relaxed), 2, "released before it was invalidated");
        assert_eq!(self.released[held].fetch_add(1, Relaxed), 0, "released twice");
    }
}

/// Two threads unhook, push and wait. Either thread may flush; both entries are released when the
/// waits end.
fn two_threads(fails: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.max_branches = 10_000;
    model.check(move || {
        let hardware = Arc::new(Hardware {
            tables: [AtomicUsize::new(0), AtomicUsize::new(0)],
            released: [AtomicUsize::new(0), AtomicUsize::new(0)],
            fails: AtomicUsize::new(fails),
        });
        let queue = Arc::new(FlushQueue::<Hardware, 2>::new());
        let work = |me: usize| {
            let (hardware, queue) = (hardware.clone(), queue.clone());
            move || {
                hardware.tables[me].store(1, Relaxed);
                let number = queue
                    .push(&hardware, me, 1 << me, 1, &Bounds::default())
                    .expect("room for two");
                while queue.wait(&hardware, number).is_err() {}
                assert_eq!(hardware.released[me].load(Relaxed), 1);
            }
        };
        let other = loom::thread::spawn(work(1));
        work(0)();
        other.join().unwrap();
        assert_eq!(queue.waiting(), (0, 0));
    });
}

#[test]
fn both_are_released_once() {
    two_threads(0);
}

#[test]
fn both_are_released_once_after_a_failure() {
    two_threads(1);
}
