//! What the model checkers run: threads that mix the paths, on a wire that is watched.
#![allow(
    unsafe_code,
    reason = "checkers' cells hand out pointers, and a bus is leaked and got back"
)]

#[cfg(loom)]
use loom::cell::UnsafeCell;

use barewire::bus::{Bus, Platform, Pump};

use crate::ops::{self, Given, Op};
use crate::wire::{PLAIN, Script, ScriptedController};

/// A cell whose accesses the checker watches, where it can.
#[cfg(not(loom))]
struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A wire whose bytes are watched: two accesses that are not ordered fail the run, and so does a
/// message that finds another inside.
pub(crate) struct Watched {
    sent: UnsafeCell<Vec<u8>>,
    selected: UnsafeCell<bool>,
}

impl Script for Watched {
    fn select(&mut self, active: bool) {
        // SAFETY: whether this access is alone is what the checker checks here.
        let was =
            self.selected.with_mut(|selected| unsafe { core::ptr::replace(selected, active) });
        assert_ne!(was, active, "one message inside another");
    }

    fn send(&mut self, bytes: &[u8]) {
        // SAFETY: whether this access is alone is what the checker checks here.
        self.sent.with_mut(|sent| unsafe { &mut *sent }.extend_from_slice(bytes));
        #[cfg(shuttle)]
        crate::strict::pause();
    }

    /// A byte says how many interrupts its message needs: up to two.
    #[cfg(shuttle)]
    fn interrupts(&self, byte: u8) -> u8 {
        byte % 3
    }

    #[cfg(shuttle)]
    fn at(&self, hook: crate::wire::Hook, _: u8) {
        use crate::wire::Hook;
        match hook {
            Hook::Resume => {
                crate::strict::disarm();
                // Between two accesses to registers.
                shuttle::thread::yield_now();
            }
            Hook::Arm => {
                shuttle::thread::yield_now();
                crate::strict::arm();
            }
            _ => {}
        }
    }

    #[cfg(shuttle)]
    fn begin(&mut self) {
        crate::strict::begin_transfer();
        shuttle::thread::yield_now();
    }

    #[cfg(shuttle)]
    fn is_done(&self) -> bool {
        crate::strict::transfer_is_done()
    }
}

/// A bus for threads that want it `'static`.
#[derive(Clone, Copy)]
pub(crate) struct Leaked(*mut Bus<ScriptedController<Watched>>);

// SAFETY: a reference to a bus may go to another thread.
unsafe impl Send for Leaked {}

impl Leaked {
    pub(crate) fn get(self) -> &'static Bus<ScriptedController<Watched>> {
        // SAFETY: it is leaked until `take_sent`, which comes after the threads have ended.
        unsafe { &*self.0 }
    }

    /// What was sent. The threads have ended.
    fn take_sent(self) -> Vec<u8> {
        // Acquiring the lock orders all that was sent before this.
        drop(self.get().lock());
        // SAFETY: the pointer was leaked from a box, and no reference to it is left.
        let bus = unsafe { Box::from_raw(self.0) };
        // SAFETY: it is ours alone.
        bus.into_inner().script.sent.with_mut(|sent| unsafe { core::mem::take(&mut *sent) })
    }

    /// A thread's operations, made before it begins: opening a device takes the bus, which is not
    /// what is checked.
    pub(crate) fn client(self, number: u8, ops: &[Op]) -> Client {
        let device = self.get().device(&PLAIN).expect("opens");
        let mut client = Client::new(number << 4, ops, [device; 2]);
        client.plan(|_| None);
        client
    }

    /// The threads have ended: their messages ran, and came as promised. Returns how many were sent.
    pub(crate) fn judge(self, clients: Vec<Client>) -> u64 {
        let records: Result<Vec<_>, _> =
            clients.iter().map(|client| client.records(Given::times)).collect();
        drop(clients);
        let sent = self.take_sent();
        let judged = records.and_then(|records| ops::judge(&records, &sent));
        assert_eq!(judged, Ok(()));
        sent.len() as u64
    }
}

/// The operations of one of a mix's threads. Its number is the upper half of its bytes.
pub(crate) type Client = ops::Client<'static, ScriptedController<Watched>>;

pub(crate) fn model_bus(platform: &'static dyn Platform, pump: Pump) -> Leaked {
    let watched = Watched { sent: UnsafeCell::new(Vec::new()), selected: UnsafeCell::new(false) };
    let bus = Bus::with_platform(ScriptedController::new(watched), platform).with_pump(pump);
    Leaked(Box::into_raw(Box::new(bus)))
}
