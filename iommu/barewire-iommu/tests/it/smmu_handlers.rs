//! Interrupt handlers that come at every barrier and register access of an interrupted CPU, which stands
//! still until they return: here a thread that waits for another.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use barewire_iommu::FlushError;
use barewire_iommu::smmu::Polls;
use barewire_iommu::smmu::v3::{Command, Settings, Smmu};

use crate::smmu_fake::{Fake, Options, Ram};

/// Runs `work`, and runs `handler` at the interruption number `at` of `work`, counted from 0. Returns
/// whether `work` reached that interruption.
fn interrupted(ram: &Ram, at: usize, work: impl FnOnce(), handler: impl FnOnce() + Send) -> bool {
    let (come, comes) = mpsc::sync_channel(0);
    let (leave, left) = mpsc::sync_channel(0);
    let cpu = thread::current().id();
    let state = Mutex::new((0, left));
    ram.interrupt_with(Some(Arc::new(move || {
        if thread::current().id() != cpu {
            return;
        }
        let mut state = state.lock().unwrap();
        let (count, left) = &mut *state;
        if *count == at {
            come.send(()).unwrap();
            left.recv().unwrap();
        }
        *count += 1;
    })));
    thread::scope(|scope| {
        let handler = scope.spawn(move || {
            // The sender is gone if the work ends before.
            let comes = comes.recv().is_ok();
            if comes {
                handler();
                leave.send(()).unwrap();
            }
            comes
        });
        let worked = catch_unwind(AssertUnwindSafe(work));
        // Drops the sender, also after a panic: else the handler's thread would wait for ever.
        ram.interrupt_with(None);
        let comes = handler.join().unwrap();
        worked.unwrap_or_else(|panic| resume_unwind(panic));
        comes
    })
}

fn with_smmu(test: impl FnOnce(&Ram, &Fake<'_>, &Smmu<'_, &Fake<'_>, Ram>)) {
    let ram = Ram::new(1 << 18);
    let fake = Fake::new(&ram, Options::default());
    let settings = Settings { command_queue_log2: 3, patience: Polls(50), ..Settings::default() };
    let smmu = Smmu::new(&fake, &ram, settings).unwrap();
    fake.state().executed.clear();
    test(&ram, &fake, &smmu);
}

/// A handler deals with errors and events wherever it comes, and waits for nothing.
#[test]
fn flaw_7_a_handler_deals_with_errors_and_events_anywhere() {
    let mut points = 0;
    loop {
        let mut came = false;
        with_smmu(|ram, fake, smmu| {
            fake.options.lock().unwrap().illegal = vec![0x30];
            let work = || {
                let batch = [Command::cfgi_ste(1, true), Command::TLBI_NSNH_ALL];
                assert_eq!(smmu.run(&batch), Err(FlushError::Command(1)));
            };
            let mut reported = 0;
            came = interrupted(ram, points, work, || {
                fake.state().gerror ^= 1 << 2;
                fake.record([0x10, 0, 0x1000, 0]);
                reported = smmu.handle_errors().bits();
                let mut events = smmu.events().unwrap();
                assert!(events.pop().is_some() && events.pop().is_none());
            });
            if came {
                assert_eq!(fake.state().active_errors(), 0);
                // The interrupted CPU may have been the one to acknowledge: then it gets the error
                // now.
                assert_eq!(reported | smmu.handle_errors().bits(), 1 << 2, "point {points}");
            }
        });
        if !came {
            break;
        }
        points += 1;
    }
    assert!(points > 8, "{points} points");
}

/// A handler that issues commands of its own may have come between reserving and publishing. It waits no
/// longer than its patience, and the interrupted CPU goes on.
#[test]
fn flaw_7_a_handler_that_flushes_may_time_out_and_nothing_worse() {
    let (mut points, mut timeouts) = (0, 0);
    loop {
        let mut came = false;
        with_smmu(|ram, fake, smmu| {
            let [outer, inner] = [1, 2].map(|sid| Command::cfgi_ste(sid, true));
            let work = || assert_eq!(smmu.run(&[outer]), Ok(()));
            let mut result = Ok(());
            came = interrupted(ram, points, work, || result = smmu.run(&[inner]));
            timeouts += usize::from(result == Err(FlushError::Timeout));
            assert_eq!(smmu.run(&[]), Ok(()), "the queue goes on");
            let mut expected = vec![outer.0];
            expected.extend(came.then_some(inner.0));
            let mut executed = fake.take_executed();
            executed.sort_unstable();
            assert_eq!(executed, expected, "each command once, point {points}");
        });
        if !came {
            break;
        }
        points += 1;
    }
    assert!(timeouts > 0 && timeouts < points, "{timeouts} of {points}");
}

/// A handler that interrupts a CPU in the middle of acknowledging asks that CPU for another round.
/// Otherwise an error could stay active, for which no further interrupt is raised.
#[test]
fn flaw_7_a_handler_within_a_handler_leaves_no_error_active() {
    let mut points = 0;
    loop {
        let mut came = false;
        with_smmu(|ram, fake, smmu| {
            fake.state().gerror ^= 1 << 2;
            let (mut outer, mut inner) = (0, 0);
            let work = || outer = smmu.handle_errors().bits();
            came = interrupted(ram, points, work, || {
                fake.state().gerror ^= 1 << 3;
                inner = smmu.handle_errors().bits();
            });
            assert_eq!(fake.state().active_errors(), 0, "point {points}");
            let raised = if came { 1 << 2 | 1 << 3 } else { 1 << 2 };
            assert_eq!(outer | inner, raised, "point {points}");
            assert_eq!(outer & inner, 0, "each once");
        });
        if !came {
            break;
        }
        points += 1;
    }
    // GERRORN, GERROR, the barrier, GERRORN.
    assert!(points >= 4, "{points} points");
}
