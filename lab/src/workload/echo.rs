//! CAN frames echoed through a kernel: an MCP2518FD, its driver's interrupt thread, a socket, `canecho`, and back.
//!
//! *Read first*: David Jander's RFC, sections 3 and 5; the MCP25XXFD family reference manual for the registers.
//!
//! # How it works
//! The interrupt thread makes four accesses for a received frame, of the lengths that the thread prints: C1INT (72
//! bits), the object (200), UINC (72), C1INT and the register after it (104). `canecho` is woken when that thread ends.
//! It sends a message of two transfers, the object (168) and UINC with TXREQ (48). A sent frame interrupts as well: its
//! event is read (136 bits) and released (48) between the same two looks at C1INT.
//!
//! Processor 0 has the interrupts, the interrupt thread and `canecho`; processor 1 the SPI pump.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU64;
use std::rc::Rc;

use barewire_sim::IntLine;
use barewire_sim::chip::Ps;
use barewire_sim::engine::{Costs, Thread};
use barewire_sim::model::can::{BitTimes, CanBus, Feed, Record as Carried, Traffic};
use barewire_sim::model::mcp2518fd::Mcp2518Fd;

use super::Intervals;
use crate::kernel::imx::{Imx, clock_hz};
use crate::kernel::{Core, Kernel, Path, Word, Xfer};
use crate::machine::{Machine, Record};

const C1CON: u16 = 0x000;
const C1NBTCFG: u16 = 0x004;
const C1INT: u16 = 0x01c;
const C1TEFCON: u16 = 0x040;
const C1TEFUA: u16 = 0x048;
/// FIFO 1 receives, FIFO 2 sends.
const C1FIFOCON1: u16 = 0x05c;
const C1FIFOUA1: u16 = 0x064;
const C1FIFOCON2: u16 = 0x068;
const C1FIFOUA2: u16 = 0x070;
const C1FLTCON0: u16 = 0x1d0;
const C1FLTOBJ0: u16 = 0x1f0;
const C1MASK0: u16 = 0x1f4;
const RAM: u16 = 0x400;

const RXIF: u32 = 1 << 1;
const TEFIF: u32 = 1 << 4;

const WRITE: u16 = 0x2000;
const READ_CRC: u16 = 0xb000;
const WRITE_CRC: u16 = 0xa000;

/// The echo's identifier, one below the frame's. So the echo wins arbitration, and no frame waits for two others.
const ECHO_ID: u32 = 0x076;
/// Frames that the chip's FIFO 2 holds.
const TX_DEPTH: u64 = 8;
const STALL_PS: Ps = 30_000_000_000;

/// The family's CRC: 0x8005, from all ones, over all bytes before it.
fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc: u16, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| {
            crc << 1 ^ if crc >> 15 != 0 { 0x8005 } else { 0 }
        })
    })
}

fn read_crc(address: u16, length: u8) -> Xfer {
    let [high, low] = (READ_CRC | address).to_be_bytes();
    let mut tx = vec![high, low, length];
    tx.resize(3 + usize::from(length) + 2, 0);
    Xfer::new(&tx)
}

fn write_crc(address: u16, data: &[u8]) -> Xfer {
    let [high, low] = (WRITE_CRC | address).to_be_bytes();
    let in_ram = address >= RAM;
    let length = if in_ram { data.len() / 4 } else { data.len() };
    let mut tx = vec![high, low, length as u8];
    tx.extend(data);
    let sum = crc(&tx).to_be_bytes();
    tx.extend(sum);
    Xfer::new(&tx)
}

/// The metrics of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// From a frame's end to its echo's beginning.
    Gap,
    /// The interrupt pin low, for a received frame.
    IntLow,
    /// From chip select to the first clock, of the interrupt thread's first access.
    CsToClock,
    /// Chip select high between its first and second access.
    CsHigh,
}

/// The result of a run.
pub struct EchoRun {
    /// Where the time went.
    pub record: Record,
    /// The intervals of each metric.
    pub intervals: Vec<(Metric, Intervals)>,
    /// From the first frame to the last echo.
    pub elapsed: (Ps, Ps),
    /// Frames echoed.
    pub echoed: usize,
    /// Interrupts of the chip.
    pub services: u64,
    /// The costs of threads.
    pub threads: Costs,
}

struct Echo<'m> {
    machine: &'m Machine,
    kernel: &'m Kernel<'m, Imx>,
    chip: Rc<RefCell<Mcp2518Fd>>,
    line: IntLine,
    to_process: Word,
    received: RefCell<Vec<[u8; 8]>>,
    services: RefCell<Vec<Ps>>,
    sent: Cell<u64>,
    submitted: Cell<u64>,
    /// A place to send from is free again.
    room: Word,
    frames: u64,
    over: Cell<bool>,
}

impl Echo<'_> {
    fn peek(&self, address: u16) -> u16 {
        self.chip.borrow().peek(address).expect("a register") as u16
    }

    /// One access through regmap, charged together with the driver's own work for it.
    fn access(&self, xfer: Xfer) -> Vec<u8> {
        self.machine.charge("regmap", &["regmap"]);
        self.kernel.sync(vec![xfer]).remove(0).rx
    }

    fn flags(rx: &[u8]) -> u32 {
        u32::from_le_bytes([rx[3], rx[4], rx[5], rx[6]])
    }

    /// The interrupt thread.
    fn interrupt_thread(&self) {
        let machine = self.machine;
        while !self.over.get() {
            if !machine
                .wait("interrupt, wake-up and switch", false, || self.line.wait(Some(STALL_PS)))
            {
                break;
            }
            self.services.borrow_mut().push(machine.now());
            let mut flags = Self::flags(&self.access(read_crc(C1INT, 4)));
            let mut passed = false;
            while flags & (RXIF | TEFIF) != 0 {
                if flags & RXIF != 0 {
                    let object = self.access(read_crc(RAM + self.peek(C1FIFOUA1), 20));
                    let data = object[3 + 12..3 + 20].try_into().expect("8 bytes");
                    // Bit 8: Sets UINC and keeps the rest.
                    let control = self.chip.borrow().peek(C1FIFOCON1).expect("a register") | 1 << 8;
                    self.access(write_crc(C1FIFOCON1, &control.to_le_bytes()));
                    machine.charge("pass the frame up", &["can-frame"]);
                    self.received.borrow_mut().push(data);
                    passed = true;
                }
                if flags & TEFIF != 0 {
                    self.access(read_crc(RAM + self.peek(C1TEFUA), 12));
                    self.access(write_crc(C1TEFCON + 1, &[1]));
                    self.sent.set(self.sent.get() + 1);
                    if self.submitted.get() - self.sent.get() == TX_DEPTH - 1 {
                        machine
                            .waking("wake canecho", || self.room.raise(machine.board().engine()));
                    }
                    if self.sent.get() == self.frames {
                        self.over.set(true);
                    }
                }
                flags = Self::flags(&self.access(read_crc(C1INT, 8)));
            }
            if passed {
                machine.waking("wake canecho", || self.to_process.raise(machine.board().engine()));
            }
        }
        self.over.set(true);
        self.room.raise(machine.board().engine());
        self.to_process.raise(machine.board().engine());
        self.kernel.stop();
    }

    /// `canecho`.
    fn process(&self) {
        let machine = self.machine;
        loop {
            machine.wait("wake-up and switch", false, || {
                self.to_process.wait(machine.board().engine())
            });
            while !self.received.borrow().is_empty() {
                let data = self.received.borrow_mut().remove(0);
                machine.charge("recv", &["syscall", "socket"]);
                machine.charge("send", &["syscall", "socket"]);
                self.send(data);
            }
            if self.over.get() {
                return;
            }
        }
    }

    fn send(&self, data: [u8; 8]) {
        while self.submitted.get() - self.sent.get() >= TX_DEPTH && !self.over.get() {
            let engine = self.machine.board().engine();
            self.machine.wait("wait for room", false, || self.room.wait(engine));
        }
        if self.over.get() {
            return;
        }
        self.submitted.set(self.submitted.get() + 1);
        let at = RAM + self.peek(C1FIFOUA2);
        // T0: the identifier. T1: DLC 8.
        let mut object = ECHO_ID.to_le_bytes().to_vec();
        object.extend(8_u32.to_le_bytes());
        object.extend(data);
        let message = vec![
            write_crc(at, &object).with_cs_change(),
            // Bits 8 and 9 of the register: UINC and TXREQ.
            write_crc(C1FIFOCON2 + 1, &[3]),
        ];
        self.machine.charge("regmap", &["regmap"]);
        if self.kernel.path.core == Core::Fast {
            self.kernel.sync(message);
        } else {
            self.kernel.submit(message);
        }
    }
}

/// Configures the chip to receive every frame, and to send the driver's.
fn bring_up(kernel: &Kernel<'_, Imx>) {
    let write = |address: u16, value: u32| {
        let [high, low] = (WRITE | address).to_be_bytes();
        let mut tx = vec![high, low];
        tx.extend(value.to_le_bytes());
        kernel.sync(vec![Xfer::new(&tx)]);
    };
    // No transmit queue, an event for each frame sent, configuration mode.
    write(C1CON, 0x0408_0760);
    // 40 MHz / (1 + 127 + 32) = 250 kbit/s.
    write(C1NBTCFG, 126 << 16 | 31 << 8 | 31);
    // 8 events with time stamps, an interrupt while there is one.
    write(C1TEFCON, 7 << 24 | 1 << 5 | 1);
    // 16 frames of 8 bytes with time stamps, an interrupt while there is one.
    write(C1FIFOCON1, 15 << 24 | 1 << 5 | 1);
    // 8 frames to send.
    write(C1FIFOCON2, 7 << 24 | 1 << 7);
    write(C1FLTOBJ0, 0);
    write(C1MASK0, 0);
    write(C1FLTCON0, 0x81);
    write(C1INT, (RXIF | TEFIF) << 16);
    write(C1CON, 0x0608_0760);
}

/// Echoes `frames`, `gap_ps` apart, through `path`.
///
/// # Panics
/// If the board has no CAN controller behind an ECSPI, if a rule of the wire is broken, or if a frame is lost that did
/// not come on a full bus.
#[must_use]
pub fn run(machine: &Machine, path: &Path, speed_hz: u64, frames: u64, gap_ps: Ps) -> EchoRun {
    let board = machine.board();
    let can = CanBus::new(BitTimes::from_rates(250_000, 250_000));
    let (chip, line) = board.attach_can(&can, None).expect("the board has a CAN controller");
    let host = Imx::new(board, board.spec().can().expect("a CAN controller").cs, speed_hz);
    let polled =
        Path { waiting: crate::kernel::Waiting::Polling, core: Core::Fast, ..path.clone() };
    bring_up(&Kernel::new(machine, &host, &polled));
    let kernel = Kernel::new(machine, &host, path);
    let engine = board.engine();
    let start_ps = engine.now_ps() + 2_000_000_000;
    let traffic = Traffic { gap_ps, count: NonZeroU64::new(frames), ..Traffic::default() };
    let far =
        can.add(Feed::new("far", traffic.frames().map(move |(at, frame)| (start_ps + at, frame))));
    chip.borrow().start_int_lows();
    machine.set_cold(true);
    machine.start();
    let echo = Echo {
        machine,
        kernel: &kernel,
        chip: chip.clone(),
        line,
        to_process: Word::default(),
        received: RefCell::default(),
        services: RefCell::default(),
        sent: Cell::new(0),
        submitted: Cell::new(0),
        room: Word::default(),
        frames,
        over: Cell::new(false),
    };
    let mut threads = vec![
        Thread::new("irq thread", || echo.interrupt_thread()).on(0, 50),
        Thread::new("canecho", || echo.process()).on(0, 10),
        Thread::new("pump", || kernel.pump()).on(1, 50),
    ];
    threads.extend(host.threads(machine));
    engine.run(threads);
    let (record, services) = (machine.finish(), echo.services.take());
    can.catch_up(engine.now_ps());
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    let taken = can.take_records();
    let (asked, echoes): (Vec<&Carried>, Vec<&Carried>) =
        taken.iter().filter(|one| one.is_taken()).partition(|one| one.sender == far);
    // A full bus may be too much for a kernel at its high costs.
    assert!(gap_ps == 0 || asked.len() == echoes.len(), "every frame is echoed once");
    let gaps = asked.iter().zip(&echoes).map(|(asked, echo)| (asked.eof, echo.sof)).collect();
    let half_a_clock = 500_000_000_000 / clock_hz(board.profile().reference_hz.value, speed_hz);
    // Services that a received frame began, and not a sent one.
    let ours = |begun: Ps| {
        taken
            .iter()
            .filter(|one| one.sof <= begun)
            .max_by_key(|one| one.sof)
            .is_some_and(|one| one.sender == far)
    };
    let mut cs_to_clock = Vec::new();
    let mut cs_high = Vec::new();
    for &begun in services.iter().filter(|&&begun| ours(begun)) {
        let first = record.wire().partition_point(|one| one.selected_at < begun);
        if let Some([one, two]) = record.wire().get(first..first + 2) {
            cs_to_clock.push((one.selected_at, one.first_clock_at + half_a_clock));
            cs_high.push((one.deselected_at, two.selected_at));
        }
    }
    let lows = chip.borrow().take_int_lows();
    let int_low = lows
        .iter()
        .filter_map(|&(from, to)| Some((from, to?)))
        .filter(|&(from, _)| ours(from))
        .collect();
    let elapsed = (asked.first().map_or(0, |one| one.eof), echoes.last().map_or(0, |one| one.eof));
    let of = |all: Vec<(Ps, Ps)>| Intervals { all };
    let intervals = vec![
        (Metric::Gap, of(gaps)),
        (Metric::IntLow, of(int_low)),
        (Metric::CsToClock, of(cs_to_clock)),
        (Metric::CsHigh, of(cs_high)),
    ];
    let served = services.iter().filter(|at| (elapsed.0..=elapsed.1).contains(at)).count();
    EchoRun {
        record,
        intervals,
        elapsed,
        echoed: echoes.len(),
        services: served as u64,
        threads: machine.threads(),
    }
}
