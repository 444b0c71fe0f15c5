//! Simulated threads that share a processor: which one runs when, and what it costs.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use barewire::bus::Platform;
use barewire::bus::platform::WAITERS;
use barewire_sim::SimPlatform;
use barewire_sim::engine::{Costs, Engine, Thread};

/// Each cost has its own decimal place, so that a sum shows which costs were charged.
const COSTS: Costs = Costs {
    context_switch_ps: 10,
    wake_ps: 100,
    wake_call_ps: 1_000,
    futex_call_ps: 1,
    interrupt_latency_ps: 10_000,
    interrupt_exit_ps: 100_000,
    irq_thread_ps: 1_000_000,
};

fn engine() -> Engine {
    let engine = Engine::new();
    engine.set_costs(COSTS);
    engine
}

/// The events, with their times.
#[derive(Default)]
struct EventLog(RefCell<Vec<(u64, &'static str)>>);

impl EventLog {
    fn at(&self, engine: &Engine, what: &'static str) {
        self.0.borrow_mut().push((engine.now_ps(), what));
    }
}

fn panic_text(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("panics");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).expect("a text")
}

#[test]
fn a_thread_that_is_preempted_spends_the_rest_later() {
    let (engine, seen) = (engine(), EventLog::default());
    let low = Thread::new("low", || {
        engine.spend_ps(5_000_000);
        seen.at(&engine, "low");
    });
    let high = Thread::new("high", || {
        // Ready again 1,000,000 after the deadline: the kernel's handler.
        engine.sleep_until(2_000_000);
        seen.at(&engine, "high wakes");
        engine.spend_ps(700);
        seen.at(&engine, "high");
    });
    engine.run(vec![low.on(0, 1), high.on(0, 2)]);
    // High begins, being higher, and low is switched to when it sleeps.
    let high_wakes = 2_000_000 + 1_000_000 + 10;
    assert_eq!(
        seen.0.into_inner(),
        [
            (high_wakes, "high wakes"),
            (high_wakes + 700, "high"),
            // From 1 (the call) on, one switch to it before, one after: nothing lost.
            (1 + 10 + 5_000_000 + 10 + 700 + 10, "low"),
        ]
    );
    assert_eq!(engine.now_ps(), 5_000_731);
}

#[test]
fn other_processors_go_on_meanwhile() {
    let (engine, seen) = (engine(), EventLog::default());
    let mark = |what: &'static str, ps| {
        let (engine, seen) = (&engine, &seen);
        Thread::new(what, move || {
            engine.spend_ps(ps);
            seen.at(engine, what);
        })
    };
    let threads = vec![
        mark("a", 300).on(7, 1),
        mark("b", 300).on(7, 2),
        mark("c", 300).on(8, 0),
        mark("d", 300),
    ];
    engine.run(threads);
    assert_eq!(seen.0.into_inner(), [(300, "b"), (300, "c"), (300, "d"), (610, "a")]);
}

#[test]
fn equals_run_in_the_order_they_became_ready_without_slices() {
    let (engine, seen) = (engine(), EventLog::default());
    let thread = |what: &'static str| {
        let (engine, seen) = (&engine, &seen);
        Thread::new(what, move || {
            for _ in 0..2 {
                engine.spend_ps(100);
                seen.at(engine, what);
            }
            engine.sleep_until(engine.now_ps() + 50);
            seen.at(engine, what);
        })
    };
    engine.run(vec![thread("a").on(0, 3), thread("b").on(0, 3), thread("c").on(0, 3)]);
    let seen = seen.0.into_inner();
    let names: String = seen.iter().map(|&(_, name)| name).collect();
    assert_eq!(names, "aabbccabc");
    assert_eq!(seen[0].0, 100, "the first begins on a processor that nobody used");
    assert_eq!(seen[2].0, 201 + 10 + 100, "the switch to the second begins with the first's sleep");
}

#[test]
fn a_preempted_thread_goes_before_its_equals() {
    let (engine, seen) = (engine(), EventLog::default());
    let equal = |what: &'static str| {
        let (engine, seen) = (&engine, &seen);
        Thread::new(what, move || {
            engine.spend_ps(3_000_000);
            seen.at(engine, what);
        })
    };
    let high = Thread::new("high", || engine.sleep_until(5));
    engine.run(vec![equal("first").on(0, 1), equal("second").on(0, 1), high.on(0, 2)]);
    let names: Vec<&str> = seen.0.into_inner().iter().map(|&(_, name)| name).collect();
    assert_eq!(names, ["first", "second"]);
}

#[test]
fn a_wake_costs_both_and_another_processor_more() {
    for (cpu, extra) in [(0, 0), (1, COSTS.wake_ps)] {
        let (engine, seen) = (engine(), EventLog::default());
        let word = AtomicU32::new(0);
        let sleeper = Thread::new("sleeper", || {
            while word.load(Relaxed) == 0 {
                SimPlatform.wait((&word).into(), 0);
            }
            seen.at(&engine, "awake");
        });
        let waker = Thread::new("waker", || {
            engine.spend_ps(50_000);
            word.store(1, Relaxed);
            SimPlatform.wake(&raw const word);
            seen.at(&engine, "woke");
        });
        engine.run(vec![sleeper.on(cpu, 9), waker.on(0, 1)]);
        // On one processor the waker begins after the sleeper's call, by a switch.
        let called = if cpu == 0 { 1 + 10 } else { 0 } + 50_000 + 1_000;
        let mut expected = vec![(called + extra + 10, "awake")];
        // If the waker lost its processor, it is switched back to.
        expected.push(if cpu == 0 { (called + 20, "woke") } else { (called, "woke") });
        expected.sort_unstable();
        assert_eq!(seen.0.into_inner(), expected);
    }
}

#[test]
fn a_word_that_changed_before_the_wait_is_not_waited_for() {
    let engine = engine();
    let word = AtomicU32::new(0);
    let waits = Thread::new("waits", || {
        let expected = word.load(Relaxed);
        // The change, and a wake without a sleeper, come between the look and the wait.
        engine.spend_ps(1_000);
        engine.wait(&word, expected);
        assert_eq!(engine.now_ps(), 1_001);
        assert!(!engine.wait_timeout(&word, 1, 500), "nobody wakes");
        assert_eq!(engine.now_ps(), 1_001 + 1 + 500 + 1_000_000 + 10);
    });
    let changes = Thread::new("changes", || {
        engine.spend_ps(500);
        word.store(1, Relaxed);
        engine.wake(&raw const word);
        assert_eq!(engine.now_ps(), 501, "it wakes nobody");
    });
    engine.run(vec![waits, changes]);
}

#[test]
fn a_wake_is_by_address_and_wakes_all() {
    let engine = engine();
    let words = [AtomicU32::new(0), AtomicU32::new(0)];
    let awake = Cell::new(0);
    let sleeper = |index: usize| {
        let (engine, word, awake) = (&engine, &words[index], &awake);
        Thread::new("sleeper", move || {
            engine.wait(word, 0);
            awake.set(awake.get() + 1);
        })
    };
    let waker = Thread::new("waker", || {
        engine.spend_ps(100);
        engine.wake(&raw const words[0]);
        engine.spend_ps(100_000);
        assert_eq!(awake.get(), 2);
        engine.wake(&raw const words[1]);
    });
    engine.run(vec![sleeper(0), sleeper(0), sleeper(1), waker]);
    assert_eq!(awake.get(), 3);
}

/// Tells that it was dropped.
struct Guard<'a>(&'a Cell<u32>);
impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn a_deadlock_is_told_by_name_and_everything_is_dropped() {
    let engine = engine();
    let (word, dropped) = (AtomicU32::new(0), Cell::new(0));
    let lock = AtomicU32::new(0);
    let text = panic_text(|| {
        let owner = Thread::new("owner", || {
            let _guard = Guard(&dropped);
            let inheritance = SimPlatform::WITH_INHERITANCE;
            let inheritance = inheritance.inheritance().expect("has it");
            lock.store(inheritance.id(), Relaxed);
            engine.wait(&word, 0);
        });
        let waiter = Thread::new("waiter", || {
            let _guard = Guard(&dropped);
            engine.spend_ps(5);
            let inheritance = SimPlatform::WITH_INHERITANCE;
            inheritance.inheritance().expect("has it").lock(&lock);
        });
        let line = barewire_sim::IntLine::new(&engine);
        let handler = Thread::new("handler", || {
            let _guard = Guard(&dropped);
            while line.wait(None) {}
        });
        let ends = Thread::new("ends", || ());
        engine.run(vec![owner, waiter.on(0, 1), handler.interrupt(0), ends]);
    });
    assert_eq!(
        text,
        "all simulated threads are asleep and nothing will wake them: \"owner\" waits for a wake of \
         its word, \"waiter\" waits for the owner of its lock, \"handler\" waits for an interrupt"
    );
    assert_eq!(dropped.get(), 3);
    engine.run(vec![Thread::new("after", || engine.spend_ps(1))]);
}

#[test]
fn a_panic_unwinds_sleepers_too_and_its_own_wakes_count() {
    let engine = engine();
    let (word, dropped) = (AtomicU32::new(0), Cell::new(0));
    let text = panic_text(|| {
        let sleeps = Thread::new("sleeps", || {
            let _guard = Guard(&dropped);
            engine.wait(&word, 0);
        });
        let panics = Thread::new("panics", || {
            engine.spend_ps(100);
            panic!("broken");
        });
        engine.run(vec![sleeps.on(0, 1), panics.on(0, 1)]);
    });
    assert_eq!((text.as_str(), dropped.get()), ("broken", 1));

    /// Wakes a sleeper when dropped, as a bus does when it is released.
    struct Wakes<'a>(&'a Engine, &'a AtomicU32);
    impl Drop for Wakes<'_> {
        fn drop(&mut self) {
            self.1.store(1, Relaxed);
            self.0.wake(self.1);
            assert!(std::thread::panicking(), "the sleeper does not run in between");
        }
    }
    let awake = Cell::new(false);
    word.store(0, Relaxed);
    let sleeps = Thread::new("sleeps", || {
        engine.wait(&word, 0);
        assert!(!std::thread::panicking());
        awake.set(true);
        engine.spend_ps(10);
    });
    let catches = Thread::new("catches", || {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _wakes = Wakes(&engine, &word);
            std::panic::resume_unwind(Box::new("inner"));
        }));
        assert!(caught.is_err() && !awake.get());
        engine.spend_ps(1);
        assert!(awake.get(), "it had the processor first");
    });
    engine.run(vec![sleeps.on(0, 2), catches.on(0, 1)]);
}

#[test]
fn platforms_tell_contexts_and_spin_only_with_a_processor_of_their_own() {
    let engine = engine();
    let seen = RefCell::new(Vec::new());
    let thread = |name| {
        Thread::new(name, || {
            seen.borrow_mut().push((SimPlatform.context(), SimPlatform.spins() > 0));
        })
    };
    engine.run(vec![thread("a"), thread("b").on(0, 1), thread("c").on(0, 2)]);
    seen.borrow_mut().sort_unstable();
    assert_eq!(seen.into_inner(), [(1, true), (2, false), (3, false)]);
    // Outside, waiting is looking.
    let word = AtomicU32::new(0);
    assert_eq!(SimPlatform.context(), 0);
    SimPlatform.wait((&word).into(), 0);
    SimPlatform.wake(&raw const word);
    engine.wait(&word, 0);
    engine.sleep_until(1_000_000);
    assert_eq!(engine.now_ps(), 1_000_000);
}

#[test]
fn masked_keeps_the_processor_and_a_sleep_in_it_is_refused() {
    let engine = engine();
    let line = barewire_sim::IntLine::new(&engine);
    line.raise_at(2_000);
    let handled = Cell::new(0);
    let handler = Thread::new("handler", || {
        while line.wait(None) {
            handled.set(engine.now_ps());
            line.lower();
        }
    });
    let masks = Thread::new("masks", || {
        SimPlatform.masked(&mut || {
            engine.spend_ps(5_000);
            assert_eq!((engine.now_ps(), handled.get()), (5_000, 0));
        });
        assert_eq!(handled.get(), 5_000 + 10_000, "the handler runs at once afterwards");
        assert_eq!(engine.now_ps(), 5_000 + 10_000 + 100_000, "entry and exit, and no switch");
    });
    engine.run(vec![masks.on(0, 1), handler.interrupt(0)]);
    let text = panic_text(|| {
        let sleeps = Thread::new("sleeps", || {
            engine.masked(&mut || engine.sleep_until(u64::MAX / 4));
        });
        engine.run(vec![sleeps]);
    });
    assert_eq!(text, "sleeps sleeps with interrupts masked");
}

#[test]
fn a_handler_may_mask_interrupts_and_what_it_wakes_comes_afterwards() {
    let engine = engine();
    let (first, second) =
        (barewire_sim::IntLine::new(&engine), barewire_sim::IntLine::new(&engine));
    first.raise_at(2_000);
    second.raise_at(2_500);
    let (word, seen) = (AtomicU32::new(0), EventLog::default());
    let handler = Thread::new("handler", || {
        while first.wait(None) {
            // All that a handler does, its wake-ups included, as a bus's interrupt handler does it.
            SimPlatform.masked(&mut || {
                first.lower();
                engine.spend_ps(5_000);
                word.store(1, Relaxed);
                SimPlatform.wake(&raw const word);
                engine.spend_ps(5_000);
                // A nested masked section changes nothing.
                SimPlatform.masked(&mut || engine.spend_ps(1));
                seen.at(&engine, "handled");
            });
            seen.at(&engine, "unmasked");
        }
    });
    let other = Thread::new("other", || {
        while second.wait(None) {
            second.lower();
            seen.at(&engine, "other handler");
        }
    });
    let waits = Thread::new("waits", || {
        while word.load(Relaxed) == 0 {
            SimPlatform.wait((&word).into(), 0);
        }
        seen.at(&engine, "woken");
    });
    engine.run(vec![waits.on(0, 200), handler.interrupt(0), other.interrupt(0)]);
    // The wait's call, the entry, the handler with its wake's call.
    let handled = 2_000 + 10_000 + 5_000 + 1_000 + 5_000 + 1;
    let other = handled + 100_000 + 10_000;
    assert_eq!(
        seen.0.into_inner(),
        [
            (handled, "handled"),
            (handled, "unmasked"),
            (other, "other handler"),
            (other + 100_000 + 10, "woken"),
        ]
    );
}

/// Low takes a lock, medium takes the processor for a millisecond, high wants the lock: how long
/// high waits for it.
fn inversion(inherit: bool) -> u64 {
    let engine = engine();
    let word = AtomicU32::new(0);
    let had = Cell::new(0);
    let platform: &'static dyn Platform =
        if inherit { &SimPlatform::WITH_INHERITANCE } else { &SimPlatform };
    // As the core does: its own compare-and-swap first, then the platform.
    let lock = || match platform.inheritance() {
        Some(inheritance) => {
            let id = inheritance.id();
            if word.compare_exchange(0, id, Relaxed, Relaxed).is_err() {
                inheritance.lock(&word);
            }
            assert_eq!(word.load(Relaxed) & !WAITERS, id);
        }
        None => {
            while word.compare_exchange(0, 1, Relaxed, Relaxed).is_err() {
                platform.wait((&word).into(), 1);
            }
        }
    };
    let unlock = || match platform.inheritance() {
        Some(inheritance) => {
            if word.compare_exchange(inheritance.id(), 0, Relaxed, Relaxed).is_err() {
                inheritance.unlock(&word);
            }
        }
        None => {
            word.store(0, Relaxed);
            platform.wake(&raw const word);
        }
    };
    let low = Thread::new("low", || {
        lock();
        engine.spend_ps(20_000_000);
        unlock();
        assert_eq!(engine.priority(), Some(1), "what was lent is given back");
    });
    let medium = Thread::new("medium", || {
        engine.sleep_until(5_000_000);
        engine.spend_ps(1_000_000_000);
    });
    let high = Thread::new("high", || {
        engine.sleep_until(6_000_000);
        let asked = engine.now_ps();
        lock();
        had.set(engine.now_ps() - asked);
        unlock();
    });
    engine.run(vec![low.on(0, 1), medium.on(0, 2), high.on(0, 3)]);
    assert_eq!(word.load(Relaxed), 0);
    had.get()
}

#[test]
fn inheritance_bounds_what_inversion_does_not() {
    let (without, with) = (inversion(false), inversion(true));
    assert!(without > 1_000_000_000, "high waits for medium too: {without}");
    // Low had done 6 of its 20 µs when medium came, so high waits for the other 14, a wake's call
    // and a few switches.
    assert!((14_000_000..14_002_000).contains(&with), "{with}");
}

#[test]
fn a_lock_goes_to_the_highest_waiter_and_the_rest_stay() {
    let engine = engine();
    let word = AtomicU32::new(0);
    let order = RefCell::new(Vec::new());
    let inheritance = SimPlatform::WITH_INHERITANCE;
    let inheritance = inheritance.inheritance().expect("has it");
    let thread = |name: &'static str, from: u64| {
        let (engine, word, order) = (&engine, &word, &order);
        Thread::new(name, move || {
            engine.spend_ps(from);
            let id = inheritance.id();
            if word.compare_exchange(0, id, Relaxed, Relaxed).is_err() {
                inheritance.lock(word);
            }
            order.borrow_mut().push((name, word.load(Relaxed), engine.priority()));
            engine.spend_ps(1_000_000);
            if word.compare_exchange(id, 0, Relaxed, Relaxed).is_err() {
                inheritance.unlock(word);
            }
        })
    };
    engine.run(vec![
        thread("first", 0).on(0, 4),
        thread("middle", 100).on(1, 5),
        thread("late middle", 200).on(2, 5),
        thread("high", 300).on(3, 6),
        thread("low", 50).on(4, 3),
    ]);
    let id_of = |index: u32| index + 1;
    assert_eq!(
        order.into_inner(),
        [
            ("first", id_of(0), Some(4)),
            ("high", id_of(3) | WAITERS, Some(6)),
            ("middle", id_of(1) | WAITERS, Some(5)),
            ("late middle", id_of(2) | WAITERS, Some(5)),
            ("low", id_of(4), Some(3)),
        ]
    );
}

#[test]
fn the_same_program_gives_the_same_order() {
    let run = || {
        let (engine, seen) = (engine(), EventLog::default());
        let word = AtomicU32::new(0);
        let mut threads = Vec::new();
        for (index, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            let (engine, seen, word) = (&engine, &seen, &word);
            let thread = Thread::new(name, move || {
                for round in 0..50 {
                    engine.spend_ps(7 * index as u64 + round);
                    if (index + round as usize).is_multiple_of(3) {
                        word.fetch_add(1, Relaxed);
                        engine.wake(word);
                    } else {
                        engine.wait_timeout(word, word.load(Relaxed), 900);
                    }
                    seen.at(engine, name);
                }
            });
            threads.push(if index < 4 { thread.on(index % 2, index as u8) } else { thread });
        }
        engine.run(threads);
        (seen.0.into_inner(), engine.switches())
    };
    let (seen, switches) = run();
    assert!(seen.is_sorted_by_key(|&(at, _)| at), "in the order of virtual time");
    assert!(switches > 100);
    assert_eq!((seen, switches), run());
}
