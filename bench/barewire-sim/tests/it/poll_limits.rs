//! The places that decide whether a transfer is polled: the controller, a device, a kind of message. On the
//! controller of every board.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use barewire::bus::{Bus, Device};
use barewire::controller::{ALWAYS_POLL, Controller, Interrupt};
use barewire::spi::{Settings, Transfer};
use barewire_sim::board::boards;
use barewire_sim::bring_up::{SimInterrupt, any_interrupt};
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions};

/// Counts how often its driver slept.
struct Counting {
    inner: SimInterrupt,
    waits: Rc<Cell<u32>>,
}

impl Interrupt for Counting {
    fn enable(&mut self) {
        self.inner.enable();
    }

    fn wait(&mut self, timeout_us: u32) -> bool {
        self.waits.set(self.waits.get() + 1);
        self.inner.wait(timeout_us)
    }
}

const SETTINGS: Settings = Settings::new(0, 1_000_000);
/// On the wire: 8 µs a byte at most, and less than 20 with the blocks' own pauses.
const SHORT: usize = 2;
const LONG: usize = 64;
/// Between them.
const MIDDLE_NS: u32 = 100_000;

/// Whether the driver slept for an exchange of `len` bytes, sync and queued alike; and for one with a clock of its own.
fn sleeps(device: &Device<'_, impl Controller + ?Sized>, waits: &Cell<u32>, len: usize) -> bool {
    let (tx, mut rx) = (vec![7; len], vec![0; len]);
    let mut slept = [0, 1_000_000 - 1].map(|speed_hz| {
        waits.set(0);
        let mut transfer = Transfer::exchange(&tx, &mut rx);
        transfer.speed_hz = speed_hz;
        assert_eq!(device.sync(&mut [transfer]), Ok(len));
        waits.take() > 0
    });
    waits.set(0);
    match len {
        SHORT => queue::<SHORT>(device),
        _ => queue::<LONG>(device),
    }
    let queued = waits.take() > 0;
    slept.iter_mut().for_each(|slept| assert_eq!(*slept, queued));
    queued
}

fn queue<const N: usize>(device: &Device<'_, impl Controller + ?Sized>) {
    let mut message = Box::pin(device.queued([7; N]).expect("planned"));
    message.as_mut().enqueue().expect("idle");
    assert_eq!(message.as_mut().wait(), Some(Ok(N)));
}

#[test]
fn a_device_and_a_message_choose_against_the_controller() {
    for spec in boards() {
        let board = Board::new(spec, BoardOptions::default());
        board.attach(0, Rc::new(RefCell::new(Echo::default())));
        for controllers in [0, MIDDLE_NS, ALWAYS_POLL] {
            let waits = Rc::new(Cell::new(0));
            let inner = SimInterrupt::new(&board);
            let counting = Counting { inner, waits: Rc::clone(&waits) };
            let bus = Bus::new(any_interrupt(&board, controllers, counting));
            let open = |settings: &Settings| bus.device(settings).expect("opens");
            for asked in [None, Some(0), Some(MIDDLE_NS), Some(ALWAYS_POLL)] {
                let by_settings = open(&Settings { poll_limit_ns: asked, ..SETTINGS });
                let by_message = open(&SETTINGS).with_priority(3).with_poll_limit_ns(asked);
                let by_message = by_message.expect("opens");
                assert_eq!(
                    (by_message.priority(), by_message.settings().poll_limit_ns),
                    (3, asked)
                );
                let limit = asked.unwrap_or(controllers);
                for device in [by_settings, by_message] {
                    let slept = [SHORT, LONG].map(|len| sleeps(&device, &waits, len));
                    let expected = [limit == 0, limit < ALWAYS_POLL];
                    let name = spec.name;
                    assert_eq!(slept, expected, "{name}: {controllers} and {asked:?} ns");
                }
            }
        }
    }
}
