//! The CAN controller on a simulated board, spoken to by raw messages: its wire, its INT pin, a frame
//! echoed. No driver of the chip is used here.

use std::cell::Cell;
use std::num::NonZeroU64;

use barewire::bus::Device;
use barewire::spi::{Settings, Transfer};
use barewire_sim::bring_up::{AnyController, Charged, bus};
use barewire_sim::chip::Ps;
use barewire_sim::engine::Thread;
use barewire_sim::model::can::{BitTimes, CanBus, NodeId, Traffic};
use barewire_sim::model::mcp2518fd::ChipFaults;
use barewire_sim::scenario::can_echo::{FrameAccount, Tally, Times};
use barewire_sim::{Board, IntLine};

type SimDevice<'b> = Device<'b, Charged<AnyController>>;

const BIT: Ps = 4_000_000;
const FIFO1_STATUS: u16 = 0x060;
/// Where FIFO 1 and FIFO 2 begin: no events, no queue; 16 frames of 16 bytes, 16 messages of 16.
const FIFO1: u16 = 0x400;
const FIFO2: u16 = 0x400 + 16 * 16;

fn write(device: &SimDevice<'_>, address: u16, data: &[u8]) {
    let mut bytes = vec![0x20 | (address >> 8) as u8, address as u8];
    bytes.extend(data);
    device.sync(&mut [Transfer::write(&bytes)]).expect("goes through");
}

fn read<const N: usize>(device: &SimDevice<'_>, address: u16) -> [u8; N] {
    let instruction = [0x30 | (address >> 8) as u8, address as u8];
    let mut data = [0; N];
    let mut message = [Transfer::write(&instruction), Transfer::read(&mut data)];
    device.sync(&mut message).expect("goes through");
    data
}

/// 250 kbit/s, FIFO 1 receives everything and interrupts, FIFO 2 sends; Normal mode requested.
fn configure(device: &SimDevice<'_>) {
    let write32 = |address, value: u32| write(device, address, &value.to_le_bytes());
    write32(0x000, 0x0400_0760);
    write32(0x004, 126 << 16 | 31 << 8 | 31);
    write32(0x05c, 15 << 24 | 1);
    write32(0x068, 15 << 24 | 3 << 21 | 1 << 7);
    write(device, 0x1d0, &[0x81]);
    write32(0x01c, 2 << 16);
    write(device, 0x003, &[0]);
}

/// Takes what FIFO 1 has and sends it back under the identifier before.
fn echo(device: &SimDevice<'_>, tail: &Cell<u16>) -> u64 {
    let mut echoed = 0;
    while read::<1>(device, FIFO1_STATUS)[0] & 1 != 0 {
        let place = 16 * (tail.get() % 16);
        let mut object = read::<16>(device, FIFO1 + place);
        write(device, 0x05d, &[1]);
        object[0] -= 1;
        write(device, FIFO2 + place, &object);
        write(device, 0x069, &[3]);
        tail.set(tail.get() + 1);
        echoed += 1;
    }
    echoed
}

/// Runs the echo as a hard interrupt until the traffic has ended and been answered.
fn run(board: &Board, can: &CanBus, line: &IntLine, end_ps: Ps) -> u64 {
    let spi = bus(board);
    let device = spi.device(&Settings::new(2, 16_000_000)).expect("opens");
    configure(&device);
    let (echoed, tail) = (Cell::new(0), Cell::new(0));
    let handler = Thread::new("handler", || {
        while line.wait(None) {
            echoed.set(echoed.get() + echo(&device, &tail));
        }
    });
    let idle = Thread::new("idle", || board.engine().sleep_until(end_ps));
    board.engine().run(vec![idle.on(0, 0), handler.interrupt(0)]);
    can.catch_up(board.engine().now_ps());
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    echoed.get()
}

/// From each of `frames` frames' EOF to its echo's SOF; nothing else was on the CAN bus.
fn answer_times(can: &CanBus, far: NodeId, frames: u64) -> Times {
    let mut account = FrameAccount::new(far);
    can.records().iter().for_each(|record| account.add(record));
    let expected = Tally { sent: frames, echoed: frames, ..Tally::default() };
    assert_eq!(account.tally(false), expected);
    account.times().clone()
}

#[test]
fn frames_are_echoed_from_the_interrupt() {
    let board = crate::board("imx8mp");
    let can = CanBus::new(BitTimes::from_rates(250_000, 2_000_000));
    let (chip, line) = board.attach_can(&can, None).expect("the board has one");
    chip.borrow().start_int_lows();
    let gap_ps = 10_000_000_000;
    let far = can.add_traffic(Traffic {
        gap_ps,
        count: NonZeroU64::new(20),
        start_ps: gap_ps,
        ..Traffic::default()
    });
    assert_eq!(run(&board, &can, &line, 22 * gap_ps), 20);
    let times = answer_times(&can, far, 20);
    // Five short messages at 16 MHz: tens of microseconds, no more.
    let both_ends = [times.shortest(), times.longest()].map(|ps| ps.expect("some"));
    assert!(both_ends.iter().all(|ps| (10_000_000..60_000_000).contains(ps)), "{both_ends:?}");
    let lows = chip.borrow().take_int_lows();
    assert_eq!(lows.len(), 20);
    let begun: Vec<Ps> = can.records().iter().step_by(2).map(|asked| asked.eof - BIT).collect();
    assert_eq!(lows.iter().map(|low| low.0).collect::<Vec<_>>(), begun);
    assert!(lows.iter().all(|&(from, until)| until.is_some_and(|until| until > from)));
    assert_eq!(line.risen_at(), Some(lows[19].0));
}

#[test]
fn at_full_load_nothing_is_lost() {
    let board = crate::board("imx8mp");
    let can = CanBus::new(BitTimes::from_rates(250_000, 2_000_000));
    let (chip, line) = board.attach_can(&can, None).expect("the board has one");
    let frames: u64 = std::env::var("CAN_FRAMES").map_or(200, |text| text.parse().unwrap());
    let count = NonZeroU64::new(frames);
    let far = can.add_traffic(Traffic { count, start_ps: 2_000_000_000, ..Traffic::default() });
    // An asked and an answered frame: some 230 bits with stuff bits, 264 at most.
    let end_ps = 3_000_000_000 + frames * 264 * BIT;
    assert_eq!(run(&board, &can, &line, end_ps), frames);
    assert_eq!(chip.borrow().taken_and_dropped(), (frames, 0));
    answer_times(&can, far, frames);
}

#[test]
fn a_stuck_pin_asks_at_once_and_a_dead_one_never() {
    let faults =
        |int_stuck_low, int_never| ChipFaults { int_stuck_low, int_never, ..ChipFaults::default() };
    for (faults, asks) in [(faults(true, false), true), (faults(false, true), false)] {
        let board = crate::board("imx8mp");
        let can = CanBus::new(BitTimes::from_rates(250_000, 2_000_000));
        let (chip, line) = board.attach_can(&can, None).expect("the board has one");
        chip.borrow_mut().set_faults(faults);
        can.add_traffic(Traffic::default());
        configure(&bus(&board).device(&Settings::new(2, 16_000_000)).expect("opens"));
        assert_eq!(line.wait(Some(5_000_000_000)), asks);
        line.lower();
        assert_eq!(line.is_high(), asks, "only the chip moves its pin");
    }
}
