//! What the model checkers run: threads that mix the paths, on a wire that is watched.
#![allow(unsafe_code, reason = "a bus is leaked and got back")]

#[cfg(loom)]
use loom::cell::Cell;
#[cfg(not(loom))]
use std::cell::Cell;

use std::sync::Arc;
use std::task::Wake;

use barewire::bus::{Bus, Device, Platform, Pump};

#[cfg(loom)]
use crate::line;
use crate::ops::{self, Op, Operation};
#[cfg(shuttle)]
use crate::strict as line;
use crate::wire::{Hook, PLAIN, Script, ScriptedController};

/// Others may run between two accesses to registers. Loom's may at the atomics around them.
fn between_accesses() {
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
}

/// A wire whose bytes are watched. A message that finds another inside fails the run; so do, where
/// the checker's cells can tell, two accesses that are not ordered.
#[derive(Default)]
pub(crate) struct WatchedWire {
    sent: Cell<Vec<u8>>,
    selected: Cell<bool>,
}

impl Script for WatchedWire {
    fn select(&mut self, active: bool) {
        assert_ne!(self.selected.replace(active), active, "one message inside another");
    }

    fn send(&mut self, bytes: &[u8]) {
        let mut sent = self.sent.take();
        sent.extend_from_slice(bytes);
        self.sent.set(sent);
        #[cfg(shuttle)]
        crate::strict::pause();
    }

    /// A byte says how many interrupts its message needs: up to two.
    #[cfg(shuttle)]
    fn interrupts(&self, byte: u8) -> u8 {
        byte % 3
    }

    /// The second is not looked for before it is due.
    #[cfg(loom)]
    fn interrupts(&self, _: u8) -> u8 {
        2
    }

    fn at(&self, hook: Hook, _: u8) {
        match hook {
            Hook::Resume => {
                line::disarm();
                between_accesses();
            }
            Hook::Arm => {
                between_accesses();
                line::arm();
            }
            _ => {}
        }
    }

    fn silence(&mut self) {
        line::disarm();
        between_accesses();
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

    fn reclaim(&mut self) {
        line::disarm();
        self.selected.set(false);
    }
}

/// A waker whose last copy uses the bus, and so waits for it, when it is dropped.
struct LocksWhenDropped(Device<'static, ScriptedController<WatchedWire>>);

impl Wake for LocksWhenDropped {
    fn wake(self: Arc<Self>) {}
}

impl Drop for LocksWhenDropped {
    fn drop(&mut self) {
        drop(self.0.bus().lock());
    }
}

/// A bus for threads that want it `'static`.
#[derive(Clone, Copy)]
pub(crate) struct LeakedBus(*mut Bus<ScriptedController<WatchedWire>>);

// SAFETY: a reference to a bus may go to another thread.
unsafe impl Send for LeakedBus {}

impl LeakedBus {
    pub(crate) fn get(self) -> &'static Bus<ScriptedController<WatchedWire>> {
        // SAFETY: it is leaked until `take_sent`, which comes after the threads have ended.
        unsafe { &*self.0 }
    }

    /// What was sent. The threads have ended.
    fn take_sent(self) -> Vec<u8> {
        // Acquiring the lock orders all that was sent before this.
        drop(self.get().lock());
        // SAFETY: the pointer was leaked from a box, and no reference to it is left.
        let bus = unsafe { Box::from_raw(self.0) };
        bus.into_inner().script.sent.take()
    }

    /// A thread's operations, made before it begins: opening a device takes the bus, which is not
    /// what is checked.
    pub(crate) fn client(self, number: u8, ops: &[Op]) -> Client {
        let device = self.get().device(&PLAIN).expect("opens");
        let mut client = Client::new(number << 4, ops, [device; 2]);
        client.plan(|_| None);
        for op in client.ops.iter_mut().filter(|op| op.op == Op::Abandon) {
            op.waker = Some(Arc::new(LocksWhenDropped(device)).into());
        }
        client
    }

    /// The threads have ended: their messages ran, and came as promised. Returns how many were sent.
    pub(crate) fn judge(self, clients: Vec<Client>) -> u64 {
        let records: Result<Vec<_>, _> =
            clients.iter().map(|client| client.records(Operation::times)).collect();
        drop(clients);
        let sent = self.take_sent();
        let judged = records.and_then(|records| ops::judge(&records, &sent));
        assert_eq!(judged, Ok(()));
        sent.len() as u64
    }
}

/// The operations of one of a mix's threads. Its number is the upper half of its bytes.
pub(crate) type Client = ops::Client<'static, ScriptedController<WatchedWire>>;

pub(crate) fn model_bus(platform: &'static dyn Platform, pump: Pump) -> LeakedBus {
    let watched = ScriptedController::new(WatchedWire::default());
    let bus = Bus::with_platform(watched, platform).with_pump(pump);
    LeakedBus(Box::into_raw(Box::new(bus)))
}
