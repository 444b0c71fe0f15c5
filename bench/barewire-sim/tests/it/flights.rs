//! A bus that the controller's interrupt handler pumps, on a simulated processor: messages fly while
//! their submitter computes, others wait their turn, and a handler that never comes loses none.

use std::cell::{Cell, RefCell};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Waker};

use barewire::bus::Bus;
use barewire::spi::{Settings, Transfer};
use barewire_sim::Board;
use barewire_sim::bring_up::{AnyController, Charged, handled_bus, run_handled};
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;

const SETTINGS: Settings = Settings::new(0, 20_000_000);

struct Bench {
    board: Board,
    chip: Rc<RefCell<Echo>>,
    bus: Bus<Charged<AnyController>>,
}

/// A board whose every transfer waits by interrupt.
fn bench() -> Bench {
    let board = crate::board("imx8mp");
    let chip = Rc::new(RefCell::new(Echo::default()));
    board.attach(0, chip.clone());
    let bus = handled_bus(&board, 0);
    Bench { board, chip, bus }
}

#[test]
fn messages_fly_while_their_submitter_computes() {
    let Bench { board, chip, bus } = bench();
    let computed = Cell::new(0_u32);
    let app = Thread::new("app", || {
        let device = bus.device(&SETTINGS).expect("opens");
        let mut first = pin!(device.queued([1; 64]).expect("plans"));
        let mut second = pin!(device.queued([2; 64]).expect("plans"));
        first.as_mut().submit().expect("is free");
        second.as_mut().submit().expect("is free");
        let begun = board.engine().now_ps();
        let mut results = (None, None);
        while results.0.is_none() || results.1.is_none() {
            board.cpu_work(1_000);
            computed.set(computed.get() + 1);
            results.0 = results.0.or_else(|| first.as_mut().result());
            results.1 = results.1.or_else(|| second.as_mut().result());
        }
        assert_eq!(results, (Some(Ok(64)), Some(Ok(64))));
        let wire_ps = 2 * 64 * 8 * 50_000;
        let took = board.engine().now_ps() - begun;
        assert!(took < wire_ps * 2, "{took} ps for {wire_ps} ps of clocks");
    });
    let handled = run_handled(&board, &bus, vec![app.on(0, 1)]);
    assert_eq!(handled.in_vain, 0, "no interrupt without a flight");
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    assert_eq!(chip.borrow().received(), [[1; 64], [2; 64]].concat());
    assert!(handled.interrupts >= 2, "{handled:?}");
    assert!(computed.get() > 40, "the processor computed meanwhile: {} turns", computed.get());
}

#[test]
fn contexts_that_mix_paths_keep_their_order_beside_the_handler() {
    let Bench { board, chip, bus } = bench();
    let ended = Cell::new(0);
    let app = |number: u8| {
        let (bus, board, ended) = (&bus, &board, &ended);
        Thread::new(&format!("app {number}"), move || {
            let device = bus.device(&SETTINGS).expect("opens");
            let mut queued = pin!(device.queued([0; 8]).expect("plans"));
            for round in (0..30).step_by(2) {
                *queued.as_mut().tx_mut().expect("is free") = [number << 6 | round; 8];
                queued.as_mut().submit().expect("is free");
                device.sync(&mut [Transfer::write(&[number << 6 | (round + 1); 8])]).expect("runs");
                assert_eq!(queued.as_mut().result(), Some(Ok(8)), "it came before");
                board.cpu_work(u64::from(number) * 700);
            }
            ended.set(ended.get() + 1);
        })
    };
    run_handled(&board, &bus, vec![app(1).on(0, 1), app(2).on(1, 1)]);
    assert_eq!(ended.get(), 2);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    let mut next = [0; 4];
    let received = chip.borrow().received().to_vec();
    assert_eq!(received.len(), 2 * 30 * 8);
    for message in received.chunks(8) {
        assert!(message.iter().all(|&byte| byte == message[0]), "broken into: {message:?}");
        let (number, round) = (usize::from(message[0] >> 6), message[0] & 63);
        assert_eq!(round, next[number], "context {number} out of its order");
        next[number] += 1;
    }
}

#[test]
fn without_a_handler_whoever_waits_looks_after_the_flight() {
    let Bench { board, chip, bus } = bench();
    let app = Thread::new("app", || {
        let device = bus.device(&SETTINGS).expect("opens");
        let mut queued = pin!(device.queued([7; 16]).expect("plans"));
        queued.as_mut().submit().expect("is free");
        assert_eq!(queued.as_mut().wait(), Some(Ok(16)));
        // Dropping a message that is on the wire waits for its end, and the bus works afterwards.
        let mut dropped = Box::pin(device.queued([8; 16]).expect("plans"));
        dropped.as_mut().submit().expect("is free");
        drop(dropped);
        let mut future = Box::pin(async { queued.as_mut().run().await });
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::as_mut(&mut future).poll(&mut cx).is_pending());
        drop(future);
        device.sync(&mut [Transfer::write(&[9])]).expect("runs");
    });
    board.engine().run(vec![app]);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    assert_eq!(chip.borrow().received(), [vec![7; 16], vec![8; 16], vec![7; 16], vec![9]].concat());
}
