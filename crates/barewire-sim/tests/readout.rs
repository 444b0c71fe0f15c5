//! Reading a device out when its INT pin rises, from the hard interrupt and from threads: a
//! reviewed table.
//!
//! Set `BAREWIRE_BLESS=1` to write it anew; the difference is then for a reviewer.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use barewire::bus::Platform;
use barewire::spi::Settings;
use barewire_sim::bring_up::bus;
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions, BoardSpec, SimPlatform};

const HEADER: &str = "\
Reading a device out: one prepared read of 4 bytes at 20 MHz, simulated on imx8mp, a GPIO chip
select of a shared bank, when the device's INT line rises in the middle of other work.
hard interrupt: try_run in the handler. woken thread: the handler wakes a thread that runs the
read, on its own processor or another. UIO: a thread that a kernel's handler wakes.
entry: line to the reader's first instruction. read: the call. in_hand: line to the bytes being
there. Virtual nanoseconds with the profile's costs: mean, and the largest, of 100 events.

reader                        entry   read  in_hand  in_hand_max
";

const EVENTS: u32 = 100;

#[derive(Clone, Copy, PartialEq)]
enum Reader {
    Interrupt,
    Woken { cpu: usize },
    Uio,
}

/// Sums of the times of events.
#[derive(Default)]
struct Times {
    events: u32,
    entry_ps: u64,
    read_ps: u64,
    in_hand_ps: u64,
    in_hand_max_ps: u64,
}

fn row(name: &str, reader: Reader) -> String {
    let spec = BoardSpec::find("imx8mp").expect("a board");
    let board = Board::new(spec, BoardOptions::default());
    board.attach(0, Rc::new(RefCell::new(Echo::default())));
    let bus = bus(&board);
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    let prepared = RefCell::new(device.prepare([0x5a; 4]).expect("prepares"));
    // The block's first message configures it.
    prepared.borrow_mut().run().expect("runs");
    let (line, times) = (board.line(), RefCell::new(Times::default()));
    let engine = board.engine();
    let (bell, over) = (AtomicU32::new(0), Cell::new(false));

    let read_out = || {
        let entered = engine.now_ps();
        let rose = line.risen_at().expect("it rose");
        prepared.borrow_mut().try_run().expect("runs");
        let done = engine.now_ps();
        let times = &mut *times.borrow_mut();
        times.events += 1;
        times.entry_ps += entered - rose;
        times.read_ps += done - entered;
        times.in_hand_ps += done - rose;
        times.in_hand_max_ps = times.in_hand_max_ps.max(done - rose);
    };
    let handler = Thread::new("handler", || {
        while line.wait(None) {
            line.lower();
            if reader == Reader::Interrupt {
                read_out();
            } else {
                bell.fetch_add(1, Relaxed);
                SimPlatform.wake(&raw const bell);
            }
        }
    });
    let worker = Thread::new("worker", || {
        let mut answered = 0;
        loop {
            while bell.load(Relaxed) == answered {
                SimPlatform.wait(&bell, answered);
            }
            if over.get() {
                return;
            }
            answered += 1;
            read_out();
        }
    });
    let uio = Thread::new("uio", || {
        while !over.get() {
            if line.wait(Some(1_000_000_000)) {
                line.lower();
                read_out();
            }
        }
    });
    let other_work = Thread::new("other work", || {
        for event in 0..EVENTS {
            // Never at the same place of what goes on meanwhile.
            line.raise_at(engine.now_ps() + 20_000_000 + u64::from(event) * 7_001);
            board.cpu_work(96_000);
        }
        over.set(true);
        bell.fetch_add(1, Relaxed);
        SimPlatform.wake(&raw const bell);
    });
    let other_work = other_work.on(0, 1);
    let threads = match reader {
        Reader::Interrupt => vec![handler.interrupt(0), other_work],
        Reader::Woken { cpu } => vec![handler.interrupt(0), worker.on(cpu, 9), other_work],
        Reader::Uio => vec![uio.on(0, 9), other_work],
    };
    engine.run(threads);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    let times = times.take();
    assert_eq!(times.events, EVENTS, "{name}: one read for each rise");
    let mean_ns = |sum: u64| sum / u64::from(EVENTS) / 1_000;
    format!(
        "{name:<27}{:>8}{:>7}{:>9}{:>13}\n",
        mean_ns(times.entry_ps),
        mean_ns(times.read_ps),
        mean_ns(times.in_hand_ps),
        times.in_hand_max_ps / 1_000,
    )
}

#[test]
fn reading_a_device_out_costs_what_was_reviewed() {
    let mut table = String::from(HEADER);
    for (name, reader) in [
        ("hard interrupt", Reader::Interrupt),
        ("woken thread, same cpu", Reader::Woken { cpu: 0 }),
        ("woken thread, other cpu", Reader::Woken { cpu: 1 }),
        ("UIO thread, same cpu", Reader::Uio),
    ] {
        let _ = write!(table, "{}", row(name, reader));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/readout.txt");
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        std::fs::write(&path, &table).expect("the snapshot is writable");
    }
    let reviewed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(table == reviewed, "not as reviewed in {}:\n{table}", path.display());
}
