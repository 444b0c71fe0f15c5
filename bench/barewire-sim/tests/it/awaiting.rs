//! An executor of one thread on the processor of every board: a task that must run each millisecond, beside one that awaits
//! reads of 64 KiB. The bus's messages end by the block's interrupt.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use barewire::bus::{Bus, Pump};
use barewire::controller::ALWAYS_POLL;
use barewire::hal::HalDevice;
use barewire::spi::Settings;
use barewire_sim::board::spec::BOARDS;
use barewire_sim::bring_up::{Charged, SimInterrupt, any_interrupt};
use barewire_sim::chip::PS_PER_NS;
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions, BoardSpec, SimPlatform};
use embedded_hal_async::spi::SpiDevice;

/// Transfers above this wait by interrupt.
const POLL_LIMIT_NS: u32 = 20_000;
const PERIOD_NS: u64 = 1_000_000;
const BYTES: usize = 64 << 10;
const READS: usize = 2;
/// What the executor does when nobody is woken.
const IDLE_NS: u64 = 500;

/// A task's waker.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The worst lateness of the task that must run each millisecond, in nanoseconds, and how many interrupts came. Transfers
/// that take longer than `limit_ns` wait by interrupt.
fn lateness(spec: &'static BoardSpec, limit_ns: u32) -> (u64, u64) {
    let board = Board::new(spec, BoardOptions::default());
    let chip = Rc::new(RefCell::new(Echo::default()));
    board.attach(0, chip.clone());
    let controller = any_interrupt(&board, limit_ns, SimInterrupt::new(&board));
    let controller = Charged::new(controller, board.clone());
    let bus = Bus::with_platform(controller, &SimPlatform).with_pump(Pump::Interrupt);
    let (worst, interrupts) = (Cell::new(0), Cell::new(0));
    let app = Thread::new("executor", || {
        let now_ns = || board.engine().now_ps() / PS_PER_NS;
        let mut device = HalDevice::new(bus.device(&Settings::new(0, 8_000_000)).expect("opens"));
        let mut bytes = vec![0; BYTES];
        let mut reads = pin!(async {
            for _ in 0..READS {
                device.read(&mut bytes).await.expect("reads");
                assert!(bytes.iter().all(|&byte| byte == 0), "the chip answers what it was sent");
            }
        });
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(woken.clone());
        let mut due_ns = now_ns() + PERIOD_NS;
        let mut reading = true;
        while reading {
            if now_ns() >= due_ns {
                due_ns += PERIOD_NS;
            } else if woken.0.swap(false, Ordering::Relaxed) {
                reading = reads.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
            } else {
                board.cpu_work(IDLE_NS);
            }
            worst.set(worst.get().max(now_ns().saturating_sub(due_ns)));
        }
    });
    let handler = Thread::new("handler", || {
        while board.wait_interrupt(None) {
            interrupts.set(interrupts.get() + 1);
            assert!(bus.interrupt(), "no interrupt without a flight");
        }
    });
    board.engine().run(vec![app.on(0, 1), handler.interrupt(0)]);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    assert_eq!(chip.borrow().received().len(), READS * BYTES);
    (worst.get(), interrupts.get())
}

/// The page that has the table.
const PAGE: &str = include_str!("../../../../docs/library.md");
/// The longest that the executor is in one poll, beside the limit: a block's FIFO is emptied and filled again.
const LOAD_NS: u64 = 30_000;

#[test]
fn a_task_beside_long_reads_is_late_by_the_poll_limit_and_a_load_of_the_fifo() {
    let mut missing = Vec::new();
    for spec in &BOARDS {
        let (polled_ns, none) = lateness(spec, ALWAYS_POLL);
        let (worst_ns, interrupts) = lateness(spec, POLL_LIMIT_NS);
        let (worst_us, polled_ms) = (worst_ns as f64 / 1e3, polled_ns as f64 / 1e6);
        let row = format!("| {} | {worst_us:.1} | {polled_ms:.0} | {interrupts} |", spec.name);
        println!("FIGURE: {row} (simulated)");
        assert!(worst_ns <= u64::from(POLL_LIMIT_NS) + LOAD_NS, "{row}");
        // As long as the rest of a read.
        assert!(polled_ns > 60_000_000 && none == 0, "{row}");
        if !PAGE.contains(&row) {
            missing.push(row);
        }
    }
    assert!(missing.is_empty(), "docs/library.md has not:\n{}", missing.join("\n"));
}
