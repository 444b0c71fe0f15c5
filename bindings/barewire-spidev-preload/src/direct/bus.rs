//! Buses that this process has mapped, each once.

use core::cell::{Cell, UnsafeCell};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use barewire::controller::{Controller, Limits};
use barewire_linux::Root;
use barewire_linux::bus_text::{parse_door, parse_mem, parse_uio};
use barewire_linux::map::{MapSpec, Mapped, MappedUser};
use barewire_linux::shared::{ChipLocks, ProcessShared, Recovered, SharedLock};

use super::gate::{Gate, GatedController, shut};
use crate::say::say;

/// Buses at most.
const BUSES: usize = 4;

static MAPPED: [AtomicPtr<OpenBus>; BUSES] = [const { AtomicPtr::new(ptr::null_mut()) }; BUSES];
static OPENING: AtomicBool = AtomicBool::new(false);

/// The right to open: one thread at a time has it.
pub(super) struct Opening(());

impl Opening {
    /// `None` if another thread opens.
    pub(super) fn begin() -> Option<Self> {
        if OPENING.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(Self(()))
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        OPENING.store(false, Ordering::Release);
    }
}

/// A mapped bus.
pub(super) struct OpenBus {
    text: String,
    /// Used by the thread whose turn it is.
    controller: UnsafeCell<Box<dyn Controller>>,
    pub(super) limits: Limits,
    pub(super) locks: ChipLocks,
    /// Whether a thread is in a message.
    busy: AtomicU32,
    /// The gate of that message's node.
    gate: &'static AtomicPtr<Gate>,
}

/// The right to run a message on a bus: one thread at a time has it.
pub(super) struct Turn<'b>(&'b OpenBus);

impl OpenBus {
    /// The bus of that text, mapped now or before; `None` if it cannot be.
    pub(super) fn open(text: &str, _: &Opening) -> Option<&'static Self> {
        for place in &MAPPED {
            // SAFETY: null, or one that is never freed.
            match unsafe { place.load(Ordering::Acquire).as_ref() } {
                Some(there) if there.text == text => return Some(there),
                Some(_) => {}
                None => {
                    let made: &'static Self = Box::leak(Box::new(Self::map(text)?));
                    place.store(ptr::from_ref(made).cast_mut(), Ordering::Release);
                    return Some(made);
                }
            }
        }
        None
    }

    fn map(text: &str) -> Option<Self> {
        let spec = spec(text)?;
        // The server has it open, and has looked for strangers.
        let mut mapped = Mapped::join(&Root::system(), &spec).ok()?;
        let (locks, lock) = (mapped.chip_locks()?, mapped.take_lock()?);
        let gate: &'static AtomicPtr<Gate> = Box::leak(Box::new(shut()));
        let (controller, limits) = mapped.start_each(Starting { lock, gate })?;
        Some(Self {
            text: text.to_owned(),
            controller: UnsafeCell::new(controller),
            limits,
            locks,
            busy: AtomicU32::new(0),
            gate,
        })
    }

    /// Begins a message through that gate; `None` if another thread is in one.
    #[inline]
    pub(super) fn begin(&self, gate: &'static Gate) -> Option<Turn<'_>> {
        // Ordered with `handlers::note`.
        self.busy.compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed).ok()?;
        self.gate.store(ptr::from_ref(gate).cast_mut(), Ordering::Relaxed);
        Some(Turn(self))
    }
}

impl Turn<'_> {
    /// The controller.
    #[inline]
    pub(super) fn controller(&mut self) -> &mut dyn Controller {
        // SAFETY: this thread's turn, as long as `self` lives; there is one turn at a time.
        let controller = unsafe { &mut *self.0.controller.get() };
        &mut **controller
    }
}

impl Drop for Turn<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.busy.store(0, Ordering::Release);
    }
}

/// The bus's specification, if its messages are polled. Buses whose transfers wait by interrupt are
/// left to the server.
fn spec(text: &str) -> Option<MapSpec> {
    let spec = match text.split_once(':')? {
        ("mem", rest) => parse_mem(rest).ok()?,
        ("barewire", rest) => parse_door(rest).ok()?,
        ("uio", rest) => parse_uio(rest).ok()?,
        _ => return None,
    };
    (!spec.exclusive && spec.poll_limit_us.is_none()).then_some(spec)
}

/// Brings the controller up under its lock: others may be using it.
struct Starting {
    lock: SharedLock,
    gate: &'static AtomicPtr<Gate>,
}

impl MappedUser for Starting {
    type Output = Option<(Box<dyn Controller>, Limits)>;

    fn run<C: Controller + 'static>(self, start: impl FnOnce() -> C) -> Self::Output {
        let Self { lock, gate } = self;
        let shared = ProcessShared::bring_up(lock, || GatedController::new(gate, start())).ok()?;
        let limits = shared.limits();
        let tell = |recovered: Recovered| {
            say(format_args!("warning: a process died in a message: {recovered}"));
        };
        Some((Box::new(shared.on_recovered(tell)), limits))
    }
}

/// The process is a child: see [`super::own`].
pub(super) fn begin_anew() {
    MAPPED.iter().for_each(|place| place.store(ptr::null_mut(), Ordering::Relaxed));
    OPENING.store(false, Ordering::Relaxed);
}

/// Waits for the messages that have begun.
pub(crate) fn wait_for_messages() {
    /// A long message takes milliseconds; one that does not end must not keep the program.
    const LOOKS: u32 = 100_000;
    let looks = Cell::new(0);
    for place in &MAPPED {
        // SAFETY: null, or one that is never freed.
        let Some(bus) = (unsafe { place.load(Ordering::Acquire).as_ref() }) else { continue };
        while bus.busy.load(Ordering::SeqCst) != 0 && looks.get() < LOOKS {
            looks.set(looks.get() + 1);
            rustix::thread::sched_yield();
        }
    }
}
