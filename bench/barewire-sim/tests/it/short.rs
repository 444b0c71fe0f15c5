//! The judge of pauses: one register access of each driver's shorter path is delayed, in turn, by
//! an interrupt or because the thread was preempted there.
//!
//! A run puts one access off until everything that is on the wire is over. The words are then in the receive FIFO, or have
//! stopped the clock: none may be lost, and the chip stays selected for the whole message.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::{Bus, Device};
use barewire::controller::Controller;
use barewire::middleware::Pointer;
use barewire::spi::{Settings, Transfer};
use barewire_sim::model::echo::Echo;

use crate::blocks::{Block, on_every_block};

/// 20 MHz: on every block fast enough for the shorter path.
const SETTINGS: Settings = Settings::new(0, 20_000_000);
/// Longer than the longest message takes.
const STALL_PS: u64 = 300_000_000;

fn bytes(len: usize, salt: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(7) ^ salt).collect()
}

/// The answer to `tx` of a chip that echoes each byte one byte later; `before` is the byte before `tx`.
fn echo(before: u8, tx: &[u8]) -> Vec<u8> {
    std::iter::once(before).chain(tx.iter().copied()).take(tx.len()).collect()
}

/// A device of a driver of any type.
type AnyDevice<'b> = Device<'b, Pointer<Box<dyn Controller>>>;

/// Runs messages on a block, the access after `place` others put off. Returns whether there was one.
fn run(block: &'static Block, place: u64, message: impl Fn(&AnyDevice<'_>) -> Vec<u8>) -> bool {
    let at = format!("before access {place}");
    let board = block.board(block.usual(), 0);
    let chip = Rc::new(RefCell::new(Echo::default()));
    assert!(board.attach(0, chip.clone()));
    let bus = Bus::new(Pointer((block.usual().start)(&board, None)));
    let device = bus.device(&SETTINGS).expect("opens");
    // The first message configures the block; only later ones can take the shorter path.
    device.sync(&mut [Transfer::write(&[0; 9])]).expect("configures");
    let (heard, selections) = (chip.borrow().received().len(), chip.borrow().selections());
    board.stall_after(place, STALL_PS);
    let sent = message(&device);
    let came = !board.is_stall_to_come();
    assert_eq!(chip.borrow().received()[heard..], sent, "{at}");
    assert_eq!(chip.borrow().selections() - selections, 1, "{at}: one select");
    let mut violations = board.violations();
    // A late processor stops the clock within a burst, which costs time and no data.
    violations.retain(|violation| violation.rule.harms());
    assert!(violations.is_empty(), "{at}: {violations:#?}");
    came
}

/// One prepared exchange of `N` bytes.
fn prepared<const N: usize>(device: &AnyDevice<'_>) -> Vec<u8> {
    let tx: [u8; N] = bytes(N, 0x55).try_into().expect("as many");
    let mut prepared = device.prepare(tx).expect("prepares");
    let rx = *prepared.run().expect("runs");
    assert_eq!(rx[1..], echo(0, &tx)[1..], "{N} bytes");
    tx.to_vec()
}

/// One exchange of `len` bytes by sync.
fn sync(device: &AnyDevice<'_>, len: usize) -> Vec<u8> {
    let tx = bytes(len, 0x33);
    let mut rx = vec![0; len];
    assert_eq!(device.sync(&mut [Transfer::exchange(&tx, &mut rx)]), Ok(len));
    assert_eq!(rx[1..], echo(0, &tx)[1..], "{len} bytes");
    tx
}

/// A prepared message of several transfers under one chip select.
fn several(device: &AnyDevice<'_>) -> Vec<u8> {
    let (tx, last) = (bytes(5, 0x11), bytes(4, 0x22));
    let (mut zeros, mut rx) = ([0xee; 3], vec![0; 4]);
    let mut message =
        [Transfer::write(&tx), Transfer::read(&mut zeros), Transfer::exchange(&last, &mut rx)];
    let mut prepared = device.prepare_message(&mut message).expect("prepares");
    assert_eq!(prepared.run(), Ok(12));
    assert_eq!(prepared.rx(1).expect("was received"), [tx[4], 0, 0]);
    assert_eq!(prepared.rx(2).expect("was received"), echo(0, &last));
    [&tx[..], &[0; 3], &last].concat()
}

fn a_pause_before_any_access_of_a_short_message_loses_nothing(block: &'static Block) {
    let mut places = 0;
    let mut each = |message: &dyn Fn(&AnyDevice<'_>) -> Vec<u8>| {
        let place = (0..).find(|&place| !run(block, place, message));
        places += place.expect("a run has an end");
    };
    each(&prepared::<1>);
    each(&prepared::<2>);
    each(&prepared::<3>);
    each(&prepared::<4>);
    each(&prepared::<5>);
    each(&prepared::<6>);
    each(&prepared::<7>);
    each(&prepared::<8>);
    each(&prepared::<16>);
    for len in [3, 4, 5, 8, 9, 17, 64] {
        each(&|device| sync(device, len));
    }
    each(&several);
    assert!(places > 100, "{places}");
}
on_every_block! { a_pause_before_any_access_of_a_short_message_loses_nothing }
