//! Simulated threads on one bus, in virtual time: never interleaved, each in its own order, and
//! the same seed gives the same trace.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::spi::{Error, Settings, Transfer};
use barewire_sim::bring_up::bus;
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions, BoardSpec};

const ROUNDS: u8 = 40;

/// Three threads send their own number and a counter; what the chip received, and the trace.
fn run(seed: u64) -> (Vec<u8>, u64, u64) {
    let spec = BoardSpec::find("imx8mp").expect("a board");
    let options = BoardOptions { jitter_ps: 200_000, seed, ..BoardOptions::default() };
    let board = Board::new(spec, options);
    let chip = Rc::new(RefCell::new(Echo::default()));
    board.attach(0, chip.clone());
    let bus = bus(&board);
    let settings = Settings::new(0, 20_000_000);
    let threads = (1..=3_u8)
        .map(|number| {
            let (bus, board) = (&bus, &board);
            Thread::new(&format!("thread {number}"), move || {
                let device = bus.device(&settings).expect("opens");
                let mut register = device.prepare([number, 0]).expect("prepares");
                for round in 0..ROUNDS {
                    if round % 2 == 0 {
                        register.tx_mut()[1] = round;
                        register.run().expect("runs");
                    } else {
                        let halves = [[number], [round]];
                        let [one, two] = &halves;
                        let mut message = [Transfer::write(one), Transfer::write(two)];
                        device.sync(&mut message).expect("runs");
                    }
                    board.cpu_work(u64::from(number) * 300);
                }
            })
        })
        .collect();
    board.engine().run(threads);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    let received = chip.borrow().received().to_vec();
    (received, board.trace_hash(), board.engine().switches())
}

#[test]
fn messages_of_simulated_threads_stay_whole_and_in_order() {
    let (received, _, switches) = run(1);
    assert!(switches > 100, "the threads did not meet: {switches} switches");
    assert_eq!(received.len(), 3 * usize::from(ROUNDS) * 2);
    let mut next = [0; 4];
    for message in received.chunks(2) {
        let [number, round] = message else { panic!("messages are of two bytes") };
        assert_eq!(next[usize::from(*number)], *round, "thread {number} out of its order");
        next[usize::from(*number)] += 1;
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_another() {
    let (received, trace, _) = run(7);
    assert_eq!((received, trace), {
        let (received, trace, _) = run(7);
        (received, trace)
    });
    assert_ne!(trace, run(8).1);
}

#[test]
fn try_calls_find_the_bus_busy_and_do_not_wait() {
    let board = crate::board("imx8mp");
    board.attach(0, Rc::new(RefCell::new(Echo::default())));
    let bus = bus(&board);
    let device = bus.device(&Settings::new(0, 1_000_000)).expect("opens");
    let waited_ps = RefCell::new(Vec::new());
    let long = Thread::new("long", || {
        device.sync(&mut [Transfer::write(&[0; 400])]).expect("runs");
    });
    let hasty = Thread::new("hasty", || {
        board.cpu_work(100_000);
        for _ in 0..10 {
            let begun = board.engine().now_ps();
            let error = device
                .try_sync(&mut [Transfer::write(&[1])])
                .expect_err("a message is on the wire");
            assert_eq!(error.error, Error::Busy);
            waited_ps.borrow_mut().push(board.engine().now_ps() - begun);
            board.cpu_work(10_000);
        }
    });
    board.engine().run(vec![long, hasty]);
    assert_eq!(waited_ps.into_inner(), [0; 10]);
}
