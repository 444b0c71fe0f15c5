//! The fuse: it counts the calls of each user hook, and makes one of them panic.
//!
//! Every thread of a run knows the run, so that hooks, some of which are `'static` functions, find
//! their fuse, and runs can go on beside each other.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::case::Case;
use crate::ops::InjectedPanic;
use crate::threads::lock;
use crate::wire::Hook;

/// How many hooks there are.
const HOOKS_COUNT: usize = Hook::Sink as usize + 1;

/// Which calls panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fuse {
    pub(crate) hook: Hook,
    /// The first call that panics, from 1.
    pub(crate) nth: u32,
    /// Whether all later ones do as well.
    pub(crate) ever_after: bool,
}

/// The record of a run.
#[derive(Default)]
pub(crate) struct Log {
    /// The calls that panicked, each with its message's byte; 0 if the hook does not know.
    pub(crate) fired: Vec<(Hook, u8)>,
    /// The messages whose callback was called, as often as it was.
    pub(crate) called_back: Vec<u8>,
    pub(crate) sent: Vec<u8>,
    pub(crate) selected: bool,
    pub(crate) interleaved: bool,
}

impl Log {
    /// Whether the controller panicked and had this message, as far as is known.
    pub(crate) fn controller_fired_on(&self, byte: u8) -> bool {
        self.fired.iter().any(|fired| match fired.0 {
            Hook::Plan | Hook::Run | Hook::Start | Hook::Resume | Hook::Arm => fired.1 == byte,
            // A tracer is not told which message begins.
            Hook::Sink => true,
            _ => false,
        })
    }

    pub(crate) fn times_called_back(&self, byte: u8) -> usize {
        self.called_back.iter().filter(|&&called| called == byte).count()
    }
}

/// One run of a case: its fuse and its log.
pub(crate) struct Run {
    pub(crate) case: Case,
    armed: AtomicBool,
    calls: [AtomicU32; HOOKS_COUNT],
    /// The second thread waits for the bus.
    pub(crate) second_waits: AtomicBool,
    log: Mutex<Log>,
}

std::thread_local! {
    static RUN: RefCell<Option<Arc<Run>>> = const { RefCell::new(None) };
    static IS_SECOND: Cell<bool> = const { Cell::new(false) };
}

impl Run {
    pub(crate) fn new(case: Case) -> Arc<Self> {
        Arc::new(Self {
            case,
            armed: AtomicBool::new(false),
            calls: [const { AtomicU32::new(0) }; HOOKS_COUNT],
            second_waits: AtomicBool::new(false),
            log: Mutex::default(),
        })
    }

    /// Makes this run the thread's.
    pub(crate) fn enter(self: &Arc<Self>, is_second: bool) {
        RUN.set(Some(self.clone()));
        IS_SECOND.set(is_second);
    }

    /// No hook panics from here on.
    pub(crate) fn disarm(&self) {
        self.armed.store(false, Ordering::SeqCst);
    }

    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    /// How often `hook` was called before [`Run::disarm`].
    pub(crate) fn calls(&self, hook: Hook) -> u32 {
        self.calls[hook as usize].load(Ordering::SeqCst)
    }

    /// Not to be kept over a call into the bus: its hooks write it.
    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    /// A call of `hook` about a message. Panics if the fuse says so.
    fn call(&self, hook: Hook, byte: u8) {
        if !self.armed.load(Ordering::SeqCst) {
            return;
        }
        let nth = self.calls[hook as usize].fetch_add(1, Ordering::SeqCst) + 1;
        let Some(fuse) = self.case.fuse else { return };
        if fuse.hook == hook && (nth == fuse.nth || fuse.ever_after && nth > fuse.nth) {
            self.log().fired.push((hook, byte));
            // As `panic_any`, but silent.
            resume_unwind(Box::new(InjectedPanic));
        }
    }
}

/// The thread's run.
pub(crate) fn run() -> Arc<Run> {
    RUN.with_borrow(|run| run.clone()).expect("a thread of a run")
}

/// The case that the thread runs, for messages.
pub(crate) fn case() -> Option<Case> {
    RUN.try_with(|run| run.try_borrow().ok()?.as_ref().map(|run| run.case)).ok().flatten()
}

/// A hook is called about a message.
pub(crate) fn at(hook: Hook, byte: u8) {
    run().call(hook, byte);
}

/// The thread is about to wait for the bus.
pub(crate) fn waits() {
    if IS_SECOND.get() {
        run().second_waits.store(true, Ordering::SeqCst);
    }
}

/// What a panic says.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| {
        if payload.is::<InjectedPanic>() { "an injected panic".into() } else { "a panic".into() }
    })
}
