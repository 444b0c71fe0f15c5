//! An executor of one thread on the processor of every board: a task that must run each millisecond, beside one that awaits
//! reads of 64 KiB. The bus's messages end by the block's interrupt.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Context;

use barewire::controller::ALWAYS_POLL;
use barewire::hal::HalDevice;
use barewire::spi::Settings;
use barewire_sim::board::boards;
use barewire_sim::bring_up::{Woken, handled_bus, run_handled};
use barewire_sim::chip::PS_PER_NS;
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions, BoardSpec};
use embedded_hal_async::spi::SpiDevice;

/// Transfers above this wait by interrupt.
const POLL_LIMIT_NS: u32 = 20_000;
const PERIOD_NS: u64 = 1_000_000;
const BYTES: usize = 64 << 10;
const READS: usize = 2;
/// What the executor does when nobody is woken.
const IDLE_NS: u64 = 500;

/// The worst lateness of the task that must run each millisecond, in nanoseconds, and how many interrupts came. Transfers
/// that take longer than `limit_ns` wait by interrupt.
fn lateness(spec: &'static BoardSpec, limit_ns: u32) -> (u64, u64) {
    let board = Board::new(spec, BoardOptions::default());
    let chip = Rc::new(RefCell::new(Echo::default()));
    board.attach(0, chip.clone());
    let bus = handled_bus(&board, limit_ns);
    let worst = Cell::new(0);
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
        let (woken, waker) = Woken::new();
        let mut due_ns = now_ns() + PERIOD_NS;
        let mut reading = true;
        while reading {
            if now_ns() >= due_ns {
                due_ns += PERIOD_NS;
            } else if woken.take() {
                reading = reads.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
            } else {
                board.cpu_work(IDLE_NS);
            }
            worst.set(worst.get().max(now_ns().saturating_sub(due_ns)));
        }
    });
    let handled = run_handled(&board, &bus, vec![app.on(0, 1)]);
    assert_eq!(handled.in_vain, 0, "no interrupt without a flight");
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    assert_eq!(chip.borrow().received().len(), READS * BYTES);
    (worst.get(), handled.interrupts)
}

/// The page that has the table.
const PAGE: &str = include_str!("../../../../docs/library.md");
/// The longest that the executor is in one poll, beside the limit and a FIFO's words.
const LOAD_NS: u64 = 30_000;
/// Words of the largest FIFO, which is emptied, a read each, and filled again.
const WORDS: u64 = 64;

#[test]
fn a_task_beside_long_reads_is_late_by_the_poll_limit_and_a_load_of_the_fifo() {
    let mut missing = Vec::new();
    for spec in boards() {
        let (polled_ns, none) = lateness(spec, ALWAYS_POLL);
        let (worst_ns, interrupts) = lateness(spec, POLL_LIMIT_NS);
        let (worst_us, polled_ms) = (worst_ns as f64 / 1e3, polled_ns as f64 / 1e6);
        let row = format!("| {} | {worst_us:.1} | {polled_ms:.0} | {interrupts} |", spec.name);
        println!("FIGURE: {row} (simulated)");
        let load_ns = LOAD_NS + WORDS * spec.profile.register_read_ps.value / 1_000;
        assert!(worst_ns <= u64::from(POLL_LIMIT_NS) + load_ns, "{row}");
        // As long as the rest of a read.
        assert!(polled_ns > 60_000_000 && none == 0, "{row}");
        if !PAGE.contains(&row) {
            missing.push(row);
        }
    }
    assert!(missing.is_empty(), "docs/library.md has not:\n{}", missing.join("\n"));
}
