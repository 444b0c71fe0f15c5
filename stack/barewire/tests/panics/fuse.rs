//! The fuse: it counts the calls of each user hook, and makes one of them panic.
//!
//! Every thread of a run knows the run, so that hooks, some of which are `'static` functions, find
//! their fuse, and runs can go on beside each other.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use crate::case::Case;
use crate::ops::Injected;
use crate::threads::lock;
use crate::wire::Hook;

/// Every hook; the tracer's last.
pub(crate) const HOOKS: [Hook; 10] = [
    Hook::Plan,
    Hook::Run,
    Hook::Start,
    Hook::Resume,
    Hook::Arm,
    Hook::Callback,
    Hook::Waker,
    Hook::PlatformWake,
    Hook::PlatformWait,
    Hook::Sink,
];

/// Which calls panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fuse {
    pub(crate) hook: Hook,
    /// The first call that panics, from 1.
    pub(crate) nth: u32,
    /// Whether all later ones do as well.
    pub(crate) ever_after: bool,
}

/// A call that panicked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fired {
    pub(crate) hook: Hook,
    /// The message it was for; 0 if the hook does not know.
    pub(crate) byte: u8,
}

/// One run of a case: its fuse and its wire.
pub(crate) struct Run {
    pub(crate) case: Case,
    armed: AtomicBool,
    calls: [AtomicU32; HOOKS.len()],
    fired: Mutex<Vec<Fired>>,
    /// How often the callback of each message was called.
    called_back: Mutex<[u32; 256]>,
    /// The second thread waits for the bus.
    waits: AtomicBool,
    sent: Mutex<Vec<u8>>,
    selected: AtomicBool,
    interleaved: AtomicBool,
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
            calls: [const { AtomicU32::new(0) }; HOOKS.len()],
            fired: Mutex::default(),
            called_back: Mutex::new([0; 256]),
            waits: AtomicBool::new(false),
            sent: Mutex::default(),
            selected: AtomicBool::new(false),
            interleaved: AtomicBool::new(false),
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

    /// How many calls panicked.
    pub(crate) fn panics(&self) -> usize {
        lock(&self.fired).len()
    }

    /// Whether the controller panicked and had this message, as far as is known.
    pub(crate) fn controller_fired_on(&self, byte: u8) -> bool {
        lock(&self.fired).iter().any(|fired| match fired.hook {
            Hook::Plan | Hook::Run | Hook::Start | Hook::Resume | Hook::Arm => fired.byte == byte,
            // A tracer is not told which message begins.
            Hook::Sink => true,
            _ => false,
        })
    }

    /// Whether this message's callback panicked.
    pub(crate) fn callback_fired_on(&self, byte: u8) -> bool {
        let is_it = |fired: &Fired| fired.hook == Hook::Callback && fired.byte == byte;
        lock(&self.fired).iter().any(is_it)
    }

    pub(crate) fn sent(&self) -> Vec<u8> {
        lock(&self.sent).clone()
    }

    pub(crate) fn forget_sent(&self) {
        lock(&self.sent).clear();
    }

    pub(crate) fn times_called_back(&self, byte: u8) -> u32 {
        lock(&self.called_back)[usize::from(byte)]
    }

    /// Counts a call of the callback of this message. Returns how many were before.
    pub(crate) fn count_callback(&self, byte: u8) -> u32 {
        let count = &mut lock(&self.called_back)[usize::from(byte)];
        *count += 1;
        *count - 1
    }

    pub(crate) fn second_waits(&self) -> bool {
        self.waits.load(Ordering::SeqCst)
    }

    pub(crate) fn is_selected(&self) -> bool {
        self.selected.load(Ordering::SeqCst)
    }

    pub(crate) fn is_interleaved(&self) -> bool {
        self.interleaved.load(Ordering::SeqCst)
    }

    // The wire.

    pub(crate) fn select(&self, active: bool) {
        if self.selected.swap(active, Ordering::SeqCst) && active {
            self.interleaved.store(true, Ordering::SeqCst);
        }
    }

    pub(crate) fn send(&self, bytes: &[u8]) {
        lock(&self.sent).extend(bytes);
    }

    // Hooks.

    /// A call of `hook` about a message. Panics if the fuse says so.
    fn call(&self, hook: Hook, byte: u8) {
        if !self.armed.load(Ordering::SeqCst) {
            return;
        }
        let nth = self.calls[hook as usize].fetch_add(1, Ordering::SeqCst) + 1;
        let Some(fuse) = self.case.fuse else { return };
        if fuse.hook == hook && (nth == fuse.nth || fuse.ever_after && nth > fuse.nth) {
            lock(&self.fired).push(Fired { hook, byte });
            // As `panic_any`, but silent.
            resume_unwind(Box::new(Injected));
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
        run().waits.store(true, Ordering::SeqCst);
    }
}

/// What a panic says.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| {
        if payload.is::<Injected>() { "an injected panic".into() } else { "a panic".into() }
    })
}
