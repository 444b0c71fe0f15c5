//! Threads with a processor each, and the end of a run.

use super::*;

#[test]
fn outside_a_thread_time_only_adds() {
    let engine = Engine::new();
    engine.spend_ps(5);
    engine.set_relax_ps(2);
    engine.relax();
    relax_current();
    assert_eq!(engine.now_ps(), 7);
    engine.spend_ps(END_OF_TIME_PS - 7);
    assert_eq!(engine.now_ps(), END_OF_TIME_PS);
}

/// It would go on for ever if it waited for a deadline then.
#[test]
#[should_panic(expected = "time ends 106 days after power-up")]
fn time_does_not_stand_still_at_its_end() {
    let engine = Engine::new();
    engine.spend_ps(Ps::MAX);
}

fn trace(steps: [(&'static str, Ps); 3]) -> Vec<(Ps, &'static str)> {
    let engine = Engine::new();
    let seen = RefCell::new(Vec::new());
    let threads = steps.map(|(name, step)| {
        let (engine, seen) = (&engine, &seen);
        Thread::new(name, move || {
            for _ in 0..4 {
                engine.spend_ps(step);
                assert_eq!(engine.running_name().as_deref(), Some(name));
                seen.borrow_mut().push((engine.now_ps(), name));
            }
        })
    });
    engine.run(threads.into());
    assert_eq!(engine.running_name(), None);
    seen.into_inner()
}

#[test]
fn the_earliest_runs_and_of_equals_the_first_given() {
    let seen = trace([("a", 10), ("b", 20), ("c", 10)]);
    let times: Vec<Ps> = seen.iter().map(|&(at, _)| at).collect();
    assert!(times.is_sorted(), "{seen:?}");
    let names: String = seen.iter().map(|&(_, name)| name).collect();
    assert_eq!(names, "acabcacabcbb");
    assert_eq!(seen, trace([("a", 10), ("b", 20), ("c", 10)]), "same program, same order");
}

#[test]
fn the_time_after_a_run_is_the_last_threads() {
    let engine = Engine::new();
    engine.spend_ps(100);
    engine.run(vec![
        Thread::new("long", || engine.spend_ps(50)),
        Thread::new("short", || engine.spend_ps(1)),
    ]);
    assert_eq!(engine.now_ps(), 150);
}

#[test]
fn a_single_thread_never_switches() {
    let engine = Engine::new();
    engine.run(vec![Thread::new("only", || (0..1000).for_each(|_| engine.spend_ps(1)))]);
    assert_eq!((engine.now_ps(), engine.switches()), (1000, 0));
}

#[test]
fn relax_lets_the_one_waited_for_go_on() {
    let engine = Engine::new();
    let done = Cell::new(false);
    engine.run(vec![
        Thread::new("waits", || {
            while !done.get() {
                relax_current();
            }
            assert!(engine.now_ps() >= 70_000);
        }),
        Thread::new("works", || {
            engine.spend_ps(70_000);
            done.set(true);
        }),
    ]);
}

/// Spends time when dropped, as a chip-select guard does.
struct Guard<'a>(&'a Engine, &'a Cell<u32>);
impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.spend_ps(1_000_000);
        self.1.set(self.1.get() + 1);
    }
}

#[test]
fn a_panic_unwinds_all_and_goes_on_in_the_caller() {
    let engine = Engine::new();
    let dropped = Cell::new(0);
    let ended = Cell::new(false);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        engine.run(vec![
            Thread::new("panics", || {
                let _guard = Guard(&engine, &dropped);
                engine.spend_ps(5);
                resume_unwind(Box::new("broken"));
            }),
            Thread::new("stands", || {
                let _guard = Guard(&engine, &dropped);
                loop {
                    // Even a thread that catches the panic which was to end it does end.
                    let _ = catch_unwind(AssertUnwindSafe(|| engine.spend_ps(1_000_000)));
                    if engine.now_ps() > 100 * felled::GRACE_PS {
                        break;
                    }
                    engine.spend_ps(1);
                }
                ended.set(true);
            }),
            Thread::new("far ahead", || {
                let _guard = Guard(&engine, &dropped);
                engine.spend_ps(2_000_000_000);
            }),
        ]);
    }));
    let panic = panic.expect_err("the panic goes on");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"broken"));
    assert_eq!(dropped.get(), 3);
    assert!(!ended.get());
    // The engine can be used again.
    engine.run(vec![Thread::new("after", || engine.spend_ps(1))]);
}

#[test]
fn a_panic_caught_within_a_thread_disturbs_no_other() {
    let engine = Engine::new();
    let dropped = Cell::new(0);
    engine.run(vec![
        Thread::new("catches", || {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _guard = Guard(&engine, &dropped);
                resume_unwind(Box::new("inner"));
            }));
            assert!(caught.is_err());
            engine.spend_ps(1);
        }),
        Thread::new("other", || {
            for _ in 0..10 {
                engine.spend_ps(300_000);
                assert!(!std::thread::panicking());
            }
        }),
    ]);
    assert_eq!(dropped.get(), 1);
}

#[test]
#[should_panic(expected = "called from a simulated thread")]
fn a_run_within_a_run_is_refused() {
    let engine = Engine::new();
    engine.run(vec![Thread::new("outer", || engine.run(vec![]))]);
}
