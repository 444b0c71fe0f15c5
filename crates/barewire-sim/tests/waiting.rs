//! What waiting for an ECSPI transfer costs, by polling and by interrupt: a reviewed table.
//!
//! Set `BAREWIRE_BLESS=1` to write it anew; the difference is then for a reviewer.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use barewire::bus::Platform;
use barewire::controller::ALWAYS_POLL;
use barewire::controller::{Controller, Interrupt};
use barewire::spi::{Settings, Transfer};
use barewire_sim::bring_up::{SimEcspi, SimInterrupt, ecspi_interrupt};
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions, BoardSpec, SimPlatform};

const HEADER: &str = "\
Waiting for one exchange at 20 MHz, simulated on imx8mp, a GPIO chip select of a shared bank, the
device's second message, the driver alone. polled: in the call. asleep: the caller's thread sleeps
in the kernel until UIO's interrupt. handler: a hard interrupt goes on with it and wakes the caller.
accesses of the ECSPI and its GPIO bank; call: virtual nanoseconds until the caller goes on; cpu:
those that no other thread of the same processor had. The time that the kernel's own handler takes
from others (asleep) is not in the model.

        polled                     asleep                                  handler
 bytes  accesses     call      cpu accesses interrupts     call      cpu accesses interrupts     call      cpu
";

/// What other work is done in, in picoseconds: what is measured is as exact.
const QUANTUM_PS: u64 = 10_000;

#[derive(Clone, Copy, PartialEq)]
enum Waits {
    Polled,
    Asleep,
    Handler,
}

/// The board's interrupt, counted.
struct Counted(SimInterrupt, Rc<Cell<u64>>);

impl Interrupt for Counted {
    fn enable(&mut self) {
        self.0.enable();
    }
    fn wait(&mut self, timeout_us: u32) -> bool {
        let came = self.0.wait(timeout_us);
        self.1.set(self.1.get() + u64::from(came));
        came
    }
}

struct Cost {
    accesses: u64,
    interrupts: u64,
    call_ns: u64,
    cpu_ns: u64,
}

fn cost(bytes: usize, waits: Waits) -> Cost {
    let spec = BoardSpec::find("imx8mp").expect("a board");
    let board = Board::new(spec, BoardOptions::default());
    board.attach(0, Rc::new(RefCell::new(Echo::default())));
    let engine = board.engine();
    let interrupts = Rc::new(Cell::new(0));
    let limit_ns = if waits == Waits::Polled { ALWAYS_POLL } else { 0 };
    let counted = Counted(SimInterrupt::new(&board), interrupts.clone());
    let mut ecspi: SimEcspi<Counted> = ecspi_interrupt(&board, limit_ns).with_interrupt(counted);
    let (program, _) = ecspi.configure(&Settings::new(0, 20_000_000)).expect("opens");
    let tx = vec![0x5a; bytes];
    let mut rx = vec![0; bytes];
    let mut message = [Transfer::exchange(&tx, &mut rx)];
    ecspi.plan(&program, &mut message).expect("a good message");
    // The first configures the block.
    ecspi.run(&program, &mut message).expect("runs");
    board.cpu_work(10_000);
    board.reset_marks();
    interrupts.set(0);

    let shared = RefCell::new((ecspi, message));
    let (done, over, other_ps) = (AtomicU32::new(0), Cell::new(false), Cell::new(0));
    let (call_ps, cpu_ps) = (Cell::new(0), Cell::new(0));
    let caller = Thread::new("caller", || {
        let begun_ps = engine.now_ps();
        if waits == Waits::Handler {
            let polled = {
                let (ecspi, message) = &mut *shared.borrow_mut();
                let polled = ecspi.start(&program, message);
                ecspi.arm();
                polled
            };
            assert_eq!(polled, Poll::Pending);
            while done.load(Relaxed) == 0 {
                SimPlatform.wait(&done, 0);
            }
        } else {
            let (ecspi, message) = &mut *shared.borrow_mut();
            assert_eq!(ecspi.run(&program, message), Ok(bytes));
        }
        call_ps.set(engine.now_ps() - begun_ps);
        cpu_ps.set(call_ps.get() - other_ps.get());
        over.set(true);
    });
    let handler = Thread::new("handler", || {
        while waits == Waits::Handler && board.wait_interrupt(None) {
            interrupts.set(interrupts.get() + 1);
            let (ecspi, message) = &mut *shared.borrow_mut();
            match ecspi.resume(&program, message) {
                Poll::Pending => ecspi.arm(),
                Poll::Ready(ran) => {
                    assert_eq!(ran, Ok(bytes));
                    done.store(1, Relaxed);
                    SimPlatform.wake(&raw const done);
                }
            }
        }
    });
    let other_work = Thread::new("other work", || {
        while !over.get() {
            engine.spend_ps(QUANTUM_PS);
            other_ps.set(other_ps.get() + QUANTUM_PS);
        }
    });
    engine.run(vec![caller.on(0, 9), handler.interrupt(0), other_work.on(0, 1)]);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    Cost {
        accesses: board.access_counts().iter().map(|block| block.reads + block.writes).sum(),
        interrupts: interrupts.get(),
        call_ns: call_ps.get() / 1_000,
        cpu_ns: cpu_ps.get() / 1_000,
    }
}

#[test]
fn waiting_costs_what_was_reviewed() {
    let mut table = String::from(HEADER);
    for bytes in [1, 4, 16, 64, 256, 512, 4096] {
        let Cost { accesses, call_ns, cpu_ns, .. } = cost(bytes, Waits::Polled);
        let _ = write!(table, "{bytes:>6}{accesses:>10}{call_ns:>9}{cpu_ns:>9}");
        for waits in [Waits::Asleep, Waits::Handler] {
            let Cost { accesses, interrupts, call_ns, cpu_ns } = cost(bytes, waits);
            let _ = write!(table, "{accesses:>9}{interrupts:>11}{call_ns:>9}{cpu_ns:>9}");
            // Three a burst of 512 bytes, and one that TC may take.
            assert!(interrupts <= 4 * bytes.div_ceil(512) as u64, "{bytes} bytes");
        }
        table.push('\n');
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/ecspi_interrupts.txt");
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        std::fs::write(&path, &table).expect("the snapshot is writable");
    }
    let reviewed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(table == reviewed, "not as reviewed in {}:\n{table}", path.display());
}
