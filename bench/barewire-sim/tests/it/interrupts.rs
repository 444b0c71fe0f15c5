//! Interrupt lines in virtual time: the controller's, and a chip's INT pin.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use barewire::reg::Registers;
use barewire::time::Timer;
use barewire_sim::chip::{Chip, Clocking, Ps, WireLimits};
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, IntLine};

const TXDATA: u32 = 0x04;
const CONREG: u32 = 0x08;
const CONFIGREG: u32 = 0x0c;
const INTREG: u32 = 0x10;
const STATREG: u32 = 0x18;
const RR: u32 = 1 << 3;
const TC: u32 = 1 << 7;

fn board() -> Board {
    let board = crate::board("imx8mp");
    board.attach(1, Rc::new(RefCell::new(Echo::default())));
    board
}

/// One word of 32 bits at 1 MHz under the native chip select, started by its data (SMC), MODE_0.
fn start_word(board: &Board) {
    let mut ecspi = board.controller();
    // 80 MHz / 10 / 8.
    ecspi.write(CONREG, 0xf9 | 1 << 18 | 9 << 12 | 3 << 8 | 31 << 20);
    ecspi.write(CONFIGREG, 0);
    ecspi.read(STATREG);
}

/// When the word's transfer completes by the manual, its data written at `written`: the cells from
/// there on, and half a period of lag.
fn completes(written: Ps) -> Ps {
    written + 32 * 1_000_000 + 500_000
}

/// When its last bit is sampled: half a period before the end of its cell.
fn received(written: Ps) -> Ps {
    written + 32 * 1_000_000 - 500_000
}

#[test]
fn a_handler_runs_at_the_lines_rise_to_the_picosecond() {
    for (bit, rises) in [(TC, completes as fn(Ps) -> Ps), (RR, received)] {
        let board = board();
        let (written, handled) = (Cell::new(0), Cell::new(Vec::new()));
        let handler = Thread::new("handler", || {
            let mut ecspi = board.controller();
            while board.wait_interrupt(None) {
                let mut seen = handled.take();
                seen.push(board.engine().now_ps());
                handled.set(seen);
                ecspi.write(INTREG, 0);
            }
        });
        let main = Thread::new("main", || {
            let mut ecspi = board.controller();
            start_word(&board);
            ecspi.write(INTREG, bit);
            ecspi.write(TXDATA, 0x1234_5678);
            written.set(board.engine().now_ps());
            // Long enough to be interrupted in the middle.
            board.engine().spend_ps(100_000_000);
            let profile = board.profile();
            let write = profile.register_write_ps.value + profile.instructions_ps(4);
            let took = board.engine().now_ps() - written.get() - 100_000_000;
            let stolen = profile.interrupt_latency_ps.value + profile.interrupt_exit_ps.value;
            assert_eq!(took, stolen + write, "the interrupt took its own time, no more");
        });
        board.engine().run(vec![main.on(0, 255), handler.interrupt(0)]);
        let latency = board.profile().interrupt_latency_ps.value;
        assert_eq!(handled.take(), [rises(written.get()) + latency]);
    }
}

#[test]
fn an_access_of_another_thread_raises_the_line_at_once() {
    let board = board();
    let handled = Cell::new(0);
    let handler = Thread::new("handler", || {
        assert!(board.wait_interrupt(None));
        handled.set(board.engine().now_ps());
    });
    let other = Thread::new("other", || {
        start_word(&board);
        board.engine().spend_ps(1_000_000);
        // TE: the TXFIFO is empty, so it asks as soon as it may.
        board.controller().write(INTREG, 1);
        let written = board.engine().now_ps();
        board.engine().spend_ps(10_000_000);
        assert_eq!(handled.get(), written + board.profile().interrupt_latency_ps.value);
    });
    board.engine().run(vec![other, handler.interrupt(0)]);
}

#[test]
fn a_thread_is_woken_by_a_kernels_handler() {
    let board = board();
    let line = board.line();
    line.raise_at(7_000_001);
    let idle = Thread::new("idle", || board.engine().spend_ps(100_000_000));
    let thread = Thread::new("thread", || {
        assert!(line.wait(None));
        let profile = board.profile();
        let costs = profile.irq_thread_ps.value + profile.context_switch_ps.value;
        assert_eq!(board.engine().now_ps(), 7_000_001 + costs);
        assert_eq!(line.risen_at(), Some(7_000_001));
        assert!(line.is_high() && line.wait(None), "a level, not an edge");
        line.lower();
        assert!(!line.wait(Some(1_000_000)), "nobody raises it");
    });
    board.engine().run(vec![idle.on(0, 1), thread.on(0, 2)]);
}

#[test]
fn a_wait_gives_up_at_its_deadline() {
    let board = board();
    let handler = Thread::new("handler", || {
        assert!(!board.wait_interrupt(Some(5_000)));
        let latency = board.profile().interrupt_latency_ps.value;
        assert_eq!(board.engine().now_ps(), 5_000 + latency);
    });
    board.engine().run(vec![handler.interrupt(0)]);
}

#[test]
fn bare_metal_without_threads_waits_for_the_event() {
    let board = board();
    start_word(&board);
    let mut ecspi = board.controller();
    ecspi.write(INTREG, TC);
    ecspi.write(TXDATA, 1);
    let written = board.engine().now_ps();
    assert!(!board.wait_interrupt(Some(1_000)));
    assert_eq!(board.engine().now_ps(), written + 1_000);
    assert!(board.wait_interrupt(None));
    let latency = board.profile().interrupt_latency_ps.value;
    assert_eq!(board.engine().now_ps(), completes(written) + latency);
}

#[test]
fn a_sleep_of_the_timer_gives_a_shared_processor_away() {
    let board = board();
    let done = Cell::new(0);
    let sleeps = Thread::new("sleeps", || {
        board.timer().sleep_ns(50_000);
        assert!(board.engine().now_ps() >= 50_000_000 && done.get() > 0);
    });
    let works = Thread::new("works", || {
        board.cpu_work(16_000);
        done.set(board.engine().now_ps());
    });
    board.engine().run(vec![sleeps.on(0, 2), works.on(0, 1)]);
    assert!((10_000_000..20_000_000).contains(&done.get()), "{}", done.get());
}

/// A chip that raises its INT pin when its word is in, and lowers it when selected.
struct Ready(IntLine);

impl Chip for Ready {
    fn name(&self) -> &'static str {
        "ready"
    }
    fn limits(&self) -> WireLimits {
        Echo::default().limits()
    }
    fn select(&mut self, _at: Ps) {
        self.0.lower();
    }
    fn deselect(&mut self, at: Ps) {
        self.0.raise_at(at + 250_000);
    }
    fn exchange(&mut self, _clocking: Clocking, _mosi: u32, _bits: u32) -> u32 {
        0
    }
}

#[test]
fn a_chips_model_raises_its_pin_in_time_though_nobody_looks() {
    let board = crate::board("imx8mp");
    let line = board.line();
    board.attach(1, Rc::new(RefCell::new(Ready(line.clone()))));
    let (written, handled) = (Cell::new(0), Cell::new(0));
    let handler = Thread::new("handler", || {
        while line.wait(None) {
            handled.set(board.engine().now_ps());
            assert_eq!(line.risen_at(), Some(completes(written.get()) + 250_000));
            line.lower();
        }
    });
    let main = Thread::new("main", || {
        start_word(&board);
        board.controller().write(TXDATA, 1);
        written.set(board.engine().now_ps());
    });
    board.engine().run(vec![main.on(0, 1), handler.interrupt(0)]);
    let latency = board.profile().interrupt_latency_ps.value;
    assert_eq!(handled.get(), completes(written.get()) + 250_000 + latency);
}

#[test]
fn two_lines_of_a_processor_are_handled_one_after_the_other() {
    let board = board();
    let lines = [board.line(), board.line()];
    let seen = RefCell::new(Vec::new());
    let handler = |index: usize| {
        let (board, line, seen) = (&board, &lines[index], &seen);
        Thread::new("handler", move || {
            while line.wait(None) {
                seen.borrow_mut().push((board.engine().now_ps(), index));
                board.engine().spend_ps(3_000_000);
                line.lower();
            }
        })
    };
    lines[0].raise_at(1_000_000);
    lines[1].raise_at(1_500_000);
    board.engine().run(vec![handler(0).interrupt(0), handler(1).interrupt(0)]);
    let profile = board.profile();
    let (latency, exit) = (profile.interrupt_latency_ps.value, profile.interrupt_exit_ps.value);
    let first = 1_000_000 + latency;
    assert_eq!(seen.into_inner(), [(first, 0), (first + 3_000_000 + exit + latency, 1)]);
}
