//! The judge of the shorter path: where a driver has one beside the loop for any message, it makes the same accesses,
//! moves the same bytes and reports the same.
//!
//! A driver whose bank of pins does not allow the shorter path takes the loop: that makes the other
//! half of each comparison.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::middleware::Pointer;
use barewire::spi::{Error, MessageError, Settings, Transfer};
use barewire_sim::model::echo::Echo;

use crate::blocks::{Access, Block, Start, on_every_block};

/// The direction of a transfer, and its number of bytes.
#[derive(Clone, Copy, Debug)]
enum Part {
    Write(usize),
    Read(usize),
    Exchange(usize),
    InPlace(usize),
    /// An exchange at a clock of its own.
    Slower(usize),
}
use Part::{Exchange, InPlace, Read, Slower, Write};

/// The trouble injected into the message.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    None,
    /// An access is late.
    Late(u64),
    /// The block stops at an access.
    Stops(u64),
}

/// The outcome of a message.
#[derive(Debug, PartialEq)]
struct Did {
    ran: Result<usize, MessageError>,
    received: Vec<Vec<u8>>,
    heard: Vec<u8>,
    selections: u64,
    accesses: Vec<Access>,
    /// Reads, writes and barriers of the bank of pins.
    pins: [u64; 3],
}

/// Runs a message on a block that the message before it configured.
fn run(
    block: &'static Block,
    start: Start,
    parts: &[Part],
    trouble: Trouble,
    prepared: bool,
) -> Did {
    let taped = block.taped(block.usual());
    let board = &taped.board;
    let chip = Rc::new(RefCell::new(Echo::default()));
    assert!(board.attach(0, chip.clone()));
    let bus = Bus::new(Pointer(start(board, None)));
    let bus: &Bus<dyn Controller + '_> = &bus;
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    device.sync(&mut [Transfer::write(&[0; 9])]).expect("configures");
    let len = |part: &Part| match *part {
        Write(len) | Read(len) | Exchange(len) | InPlace(len) | Slower(len) => len,
    };
    let tx: Vec<Vec<u8>> = parts
        .iter()
        .map(|part| (0..len(part)).map(|byte| (byte * 7 + 1) as u8).collect())
        .collect();
    let mut received: Vec<Vec<u8>> = parts
        .iter()
        .zip(&tx)
        .map(|(part, tx)| if let InPlace(_) = part { tx.clone() } else { vec![0xee; tx.len()] })
        .collect();
    let mut message: Vec<Transfer<'_>> = parts
        .iter()
        .zip(&tx)
        .zip(&mut received)
        .map(|((part, tx), rx)| match part {
            Write(_) => Transfer::write(tx),
            Read(_) => Transfer::read(rx),
            Exchange(_) => Transfer::exchange(tx, rx),
            InPlace(_) => Transfer::in_place(rx),
            Slower(_) => Transfer::exchange(tx, rx).with_speed_hz(12_000_000),
        })
        .collect();
    let (heard, selections) = (chip.borrow().received().len(), chip.borrow().selections());
    let _ = taped.accesses();
    board.reset_marks();
    match trouble {
        Trouble::None => {}
        Trouble::Late(place) => board.stall_after(place, 20_000_000_000),
        Trouble::Stops(place) => taped.tape.stop_after(place),
    }
    let ran = match prepared {
        true => device.prepare_message(&mut message).and_then(|mut message| message.run()),
        false => device.sync(&mut message),
    };
    let accesses = taped.accesses();
    let pins = board.access_counts()[1];
    let chip = chip.borrow();
    Did {
        ran,
        received,
        heard: chip.received()[heard..].to_vec(),
        selections: chip.selections() - selections,
        accesses,
        pins: [pins.reads, pins.writes, pins.barriers],
    }
}

/// The accesses without reads of polled registers: writes, and reads of received data.
fn but_for_looks(block: &Block, accesses: &[Access]) -> Vec<Access> {
    let kept = |access: &&Access| !matches!(access, Access::Read(at, _) if *at != block.data_in);
    accesses.iter().filter(kept).copied().collect()
}

/// Where both timed out, a path may wait shorter than the loop, which waits for a whole FIFO: it may know that fewer words
/// are in flight.
#[track_caller]
fn same_deadline(
    short: &mut Result<usize, MessageError>,
    long: Result<usize, MessageError>,
    what: &str,
) {
    let limit = |ran: Result<usize, MessageError>| match ran.map_err(|failed| failed.error) {
        Err(Error::Timeout { timeout_us }) => Some(timeout_us),
        _ => None,
    };
    if let (Some(waited), Some(at_most), Err(failed)) = (limit(*short), limit(long), short) {
        assert!(
            (1_000..=at_most).contains(&waited),
            "{what}: {waited} us, but at most {at_most} by the loop"
        );
        failed.error = Error::Timeout { timeout_us: at_most };
    }
}

#[track_caller]
fn is_the_same(block: &'static Block, parts: &[Part], trouble: Trouble) {
    for prepared in [false, true] {
        let what = format!("{parts:?}, {trouble:?}, prepared {prepared}");
        let [mut short, mut long] = [block.usual().start, block.long]
            .map(|start| run(block, start, parts, trouble, prepared));
        let [looks, looks_of_loop] = [&mut short, &mut long].map(|did| {
            let all = did.accesses.len();
            did.accesses = but_for_looks(block, &did.accesses);
            all - did.accesses.len()
        });
        same_deadline(&mut short.ran, long.ran, &what);
        assert_eq!(short, long, "{what}");
        if let Trouble::None = trouble {
            assert!(short.ran.is_ok(), "{what}: {:?}", short.ran);
            // If one path begins polling slightly earlier, it polls slightly more often.
            assert!(looks <= looks_of_loop + 2 * parts.len(), "{what}: {looks}, {looks_of_loop}");
        }
    }
}

fn it_makes_the_accesses_of_the_loop(block: &'static Block) {
    for len in [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 25, 64, 65, 253, 256, 257, 300] {
        for part in [Write(len), Read(len), Exchange(len), InPlace(len)] {
            is_the_same(block, &[part], Trouble::None);
            is_the_same(block, &[Write(4), part], Trouble::None);
            is_the_same(block, &[part, Exchange(5), Read(4), part], Trouble::None);
        }
    }
    is_the_same(block, &[Write(0), Read(4)], Trouble::None);
    is_the_same(block, &[Write(4), Read(0), Exchange(0)], Trouble::None);
    is_the_same(block, &[Exchange(6); 9], Trouble::None);
    for len in [4, 6, 16] {
        for parts in [
            &[Slower(len)][..],
            &[Slower(len), Slower(4)],
            &[Exchange(4), Slower(len)],
            &[Slower(len), Exchange(4)],
        ] {
            is_the_same(block, parts, Trouble::None);
        }
    }
}
on_every_block! { it_makes_the_accesses_of_the_loop }

fn trouble_at_any_access_is_told_alike(block: &'static Block) {
    for parts in [
        &[Exchange(3)][..],
        &[Write(5)],
        &[Exchange(4), Exchange(6), Write(9)],
        &[Write(4), Read(24)],
    ] {
        for place in 0..24 {
            is_the_same(block, parts, Trouble::Late(place));
            is_the_same(block, parts, Trouble::Stops(place));
        }
    }
}
on_every_block! { trouble_at_any_access_is_told_alike }
