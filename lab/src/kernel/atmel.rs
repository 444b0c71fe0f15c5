//! Linux 3.14 on a SAMA5D3: spi-atmel through the common message queue, and spi-atmel with its own tasklet.
//!
//! *Read first*: SAMA5D3 Series data sheet, chapter Serial Peripheral Interface. The order of a kernel's accesses was
//! read in Linux's spi-atmel before and after "spi: atmel: Refactor spi-atmel to use SPI framework queue"; the
//! registers are the data sheet's.
//!
//! # How it works
//! [`Atmel`] is the controller with its two ways of moving bytes. A transfer of less than 16 bytes is moved by an
//! interrupt for each byte. A longer one is moved by at_hdmac: two threads stand for its two channels, the transfer
//! runs at the slower of the wire and the cost `hdmac-byte`, and then the DMA interrupt is raised.
//!
//! [`Linux314`] is the kernel above it, in one of two cores:
//! - `3.14-queue`: the caller queues a message and wakes the pump, a thread. The pump starts each transfer and waits
//!   for its end. It then completes the message, looks for another, and sleeps.
//! - `3.14-tasklet`: the caller starts the message's first transfer itself. The end of each transfer runs a tasklet as
//!   the interrupt returns, which starts the next or ends the message.
//!
//! # Ordering
//! 1. A transfer starts with interrupts masked, under the driver's lock. At 44 MHz a byte takes 0.2 us on the wire,
//!    less than the way from there to the switch to another thread, and the next byte's interrupt comes before the
//!    handler has returned. So a short transfer is done before its starter sleeps: only the end of a DMA transfer wakes
//!    the pump.
//! 2. For the same reason the tasklet has ended a short message before its caller would sleep.
//! 3. The kernel is not preemptive (sama5_defconfig). A completed message makes its caller ready, but the pump looks
//!    for another message first, and the caller runs when the pump sleeps.
//! 4. While a DMA transfer runs, the processor idles. The woken thread runs when the idle loop has been left, which
//!    costs `idle-exit`.
//!
//! # Not supported
//! at_hdmac beyond its set-up, its rate and its interrupt: no descriptors, no memory, and its registers cost nothing
//! beside the cost `dma-setup`. A tasklet that is itself interrupted: the next interrupt comes when it has ended, at
//! the same cost. Errors, PDC, several callers.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use barewire::reg::Registers;
use barewire_sim::chip::Ps;
use barewire_sim::engine::Thread;
use barewire_sim::wire::Driver;
use barewire_sim::{Board, IntLine, SimRegisters};

use super::{Core, Path, Word, Xfer};
use crate::machine::Machine;

const CR: u32 = 0x00;
const MR: u32 = 0x04;
const RDR: u32 = 0x08;
const TDR: u32 = 0x0c;
const SR: u32 = 0x10;
const IER: u32 = 0x14;
const IDR: u32 = 0x18;
const IMR: u32 = 0x1c;
/// CSR0, the only one used: the chip select is a pin.
const CSR: u32 = 0x30;

/// Of CR.
const SPIEN: u32 = 1;
const SWRST: u32 = 1 << 7;
/// Of MR: controller, no mode fault, no word before the last one was read.
const MSTR: u32 = 1;
const MODFDIS: u32 = 1 << 4;
const WDRBT: u32 = 1 << 5;
/// Of MR: NPCS0, and none.
const PCS_0: u32 = 0xe << 16;
const PCS_NONE: u32 = 0xf << 16;
/// Of SR, IER, IDR and IMR.
const RDRF: u32 = 1;
const OVRES: u32 = 1 << 3;
/// Of CSR: mode 0.
const NCPHA: u32 = 1 << 1;

/// PIO.
const PER: u32 = 0x00;
const OER: u32 = 0x10;
const SODR: u32 = 0x30;
const CODR: u32 = 0x34;

/// A shorter transfer is moved by interrupts.
pub(crate) const DMA_BYTES: usize = 16;
const BITS: u64 = 8;
/// From the first write of TDR until its word begins, at most.
const LEAD_PS: Ps = 100_000;

/// A transfer under way.
#[derive(Default)]
struct Flight {
    tx: Vec<u8>,
    rx: Vec<u8>,
    /// When the receiving channel reads the first byte, and how far apart the others follow.
    first_at: Ps,
    byte_ps: Ps,
}

/// The controller with its chip select and its DMA engine.
pub struct Atmel {
    board: Board,
    regs: RefCell<SimRegisters>,
    pio: RefCell<SimRegisters>,
    pin: u32,
    csr: u32,
    wire_byte_ps: Ps,
    /// The time of an access.
    read_ps: Ps,
    write_ps: Ps,
    flight: RefCell<Flight>,
    /// at_hdmac's channels are enabled: one line each, which they lower.
    enabled: [IntLine; 2],
    /// at_hdmac's interrupt.
    line: IntLine,
}

impl Atmel {
    /// The board's SPI at up to `speed_hz` in mode 0, with the chip select `cs` on a pin.
    ///
    /// # Panics
    /// If `cs` is not on a pin, or `speed_hz` is below what the divider makes.
    #[must_use]
    pub fn new(board: &Board, cs: u8, speed_hz: u64) -> Self {
        let Driver::Gpio { block, bit } = board.spec().cs[usize::from(cs)].driver else {
            panic!("chip select {cs} of {} is the controller's own", board.spec().name)
        };
        let reference_hz = board.profile().reference_hz.value;
        let scbr = reference_hz.div_ceil(speed_hz.max(1));
        assert!((1..=255).contains(&scbr), "no divider of {reference_hz} makes {speed_hz}");
        let pin = 1 << bit;
        let mut pio = board.gpio(block).expect("the block of the chip select");
        for offset in [SODR, OER, PER] {
            pio.write(offset, pin);
        }
        let mut regs = board.controller();
        for (offset, value) in [(CR, SWRST), (CR, SWRST), (MR, MSTR | MODFDIS | WDRBT)] {
            regs.write(offset, value);
        }
        let now = || board.engine().now_ps();
        let before = now();
        regs.write(CR, SPIEN);
        let between = now();
        regs.read(SR);
        Self {
            board: board.clone(),
            regs: RefCell::new(regs),
            pio: RefCell::new(pio),
            pin,
            csr: NCPHA | (scbr as u32) << 8,
            // Rounded for each bit, as the model's clock is. Rounded once for a byte, a long read would run ahead of
            // the model.
            wire_byte_ps: BITS * (scbr * 1_000_000_000_000).div_ceil(reference_hz),
            read_ps: now() - between,
            write_ps: between - before,
            flight: RefCell::default(),
            enabled: [board.line(), board.line()],
            line: board.line(),
        }
    }

    fn read(&self, offset: u32) -> u32 {
        let mut regs = self.regs.borrow().clone();
        regs.read(offset)
    }

    fn write(&self, offset: u32, value: u32) {
        let mut regs = self.regs.borrow().clone();
        regs.write(offset, value);
    }

    fn set_cs(&self, active: bool) {
        if active {
            // spi-atmel writes CSR0 for the chip and once more for chips beside it.
            self.write(CSR, self.csr);
            self.write(CSR, self.csr);
            self.write(MR, MSTR | MODFDIS | WDRBT | PCS_0);
            self.read(MR);
        } else {
            let mode = self.read(MR);
            self.write(MR, mode | PCS_NONE);
        }
        let mut pio = self.pio.borrow().clone();
        pio.write(if active { CODR } else { SODR }, self.pin);
    }

    /// The driver sets the clock for each transfer since it uses the queue.
    fn set_clock(&self) {
        let csr = self.read(CSR);
        self.write(CSR, csr);
    }

    fn begin(&self, tx: &[u8]) {
        *self.flight.borrow_mut() = Flight { tx: tx.to_vec(), ..Flight::default() };
    }

    /// Starts a transfer by interrupts.
    fn start_pio(&self) {
        // Nothing may be left in RDR.
        self.read(RDR);
        while self.read(SR) & RDRF != 0 {
            self.read(RDR);
        }
        let first = self.flight.borrow().tx[0];
        self.write(TDR, first.into());
        self.write(IER, RDRF | OVRES);
    }

    /// Handles a received byte, and says whether it was the last.
    fn handle(&self) -> bool {
        let pending = self.read(IMR) & self.read(SR);
        assert!(pending & OVRES == 0, "a byte is lost");
        if pending & RDRF == 0 {
            return false;
        }
        let byte = self.read(RDR) as u8;
        let next = {
            let mut flight = self.flight.borrow_mut();
            flight.rx.push(byte);
            flight.tx.get(flight.rx.len()).copied()
        };
        match next {
            Some(byte) => self.write(TDR, byte.into()),
            None => self.write(IDR, pending),
        }
        next.is_none()
    }

    /// Starts a transfer by DMA, a byte at least every `byte_ps`.
    fn start_dma(&self, byte_ps: Ps) {
        self.write(IER, OVRES);
        {
            let mut flight = self.flight.borrow_mut();
            flight.byte_ps = byte_ps.max(self.wire_byte_ps).max(self.read_ps).max(self.write_ps);
            let entry_ps = self.board.engine().costs().interrupt_latency_ps;
            flight.first_at = self.board.engine().now_ps()
                + entry_ps
                + self.write_ps
                + LEAD_PS
                + self.wire_byte_ps.max(self.read_ps);
        }
        for channel in &self.enabled {
            channel.raise();
        }
    }

    fn spend_until(&self, at: Ps) {
        let engine = self.board.engine();
        engine.spend_ps(at.saturating_sub(engine.now_ps()));
    }

    /// When the receiving channel reads byte `index`. Its read lets the next word begin (WDRBT).
    fn read_at(&self, index: usize) -> Ps {
        let flight = self.flight.borrow();
        flight.first_at + index as Ps * flight.byte_ps
    }

    fn transmit_channel(&self) {
        let length = self.flight.borrow().tx.len();
        for index in 0..length {
            // TDR is free again when the word before went to the wire.
            if let Some(before) = index.checked_sub(2) {
                self.spend_until(self.read_at(before));
            }
            let byte = self.flight.borrow().tx[index];
            self.write(TDR, byte.into());
        }
    }

    fn receive_channel(&self) {
        let length = self.flight.borrow().tx.len();
        for index in 0..length {
            // A read acts at its end.
            self.spend_until(self.read_at(index) - self.read_ps);
            let byte = self.read(RDR) as u8;
            self.flight.borrow_mut().rx.push(byte);
        }
        self.line.raise();
    }

    fn take_rx(&self) -> Vec<u8> {
        self.flight.take().rx
    }
}

/// Linux 3.14's SPI core with spi-atmel, one caller at a time.
pub struct Linux314<'m> {
    machine: &'m Machine,
    host: &'m Atmel,
    core: Core,
    /// Messages that the pump has not taken.
    queue: RefCell<VecDeque<Vec<Xfer>>>,
    /// The running message, and which of its transfers runs.
    message: RefCell<Vec<Xfer>>,
    place: Cell<usize>,
    /// The pump need not be woken.
    busy: Cell<bool>,
    work: Word,
    transferred: Word,
    finished: Word,
    over: Cell<bool>,
    /// How many of the processor's threads sleep, and how many it has.
    asleep: Cell<usize>,
    threads: usize,
    /// An interrupt has woken a thread of the idle processor, which has not run since.
    was_idle: Cell<bool>,
    /// The code of the caller, and that of the interrupted thread, did not run just before, so it is not
    /// in the caches.
    caller_is_cold: Cell<bool>,
    thread_is_cold: Cell<bool>,
}

impl<'m> Linux314<'m> {
    /// Puts them together.
    ///
    /// # Panics
    /// If `path` is not of this kernel.
    #[must_use]
    pub fn new(machine: &'m Machine, host: &'m Atmel, path: &Path) -> Self {
        assert!(
            matches!(path.core, Core::Queue314 | Core::Tasklet314),
            "{} is not a path of Linux 3.14",
            path.name
        );
        machine.set_scheduler(machine.costs().get("scheduler-3-14"));
        Self {
            machine,
            host,
            core: path.core,
            queue: RefCell::default(),
            message: RefCell::default(),
            place: Cell::new(0),
            busy: Cell::new(false),
            work: Word::default(),
            transferred: Word::default(),
            finished: Word::default(),
            over: Cell::new(false),
            asleep: Cell::new(0),
            threads: if path.core == Core::Queue314 { 2 } else { 1 },
            was_idle: Cell::new(false),
            caller_is_cold: Cell::new(true),
            thread_is_cold: Cell::new(true),
        }
    }

    /// Says that the caller's code runs in a loop from now on, or for the first time: see the cost `cold`. The pump and
    /// the interrupts run after a wait and stay cold.
    pub fn set_caller_cold(&self, cold: bool) {
        self.caller_is_cold.set(cold);
        self.set_thread_cold(cold);
    }

    fn set_thread_cold(&self, cold: bool) {
        self.thread_is_cold.set(cold);
        self.machine.set_cold(cold);
    }

    /// Runs a handler.
    fn interrupt(&self, handler: impl FnOnce()) {
        self.machine.set_cold(true);
        self.machine.charge("interrupt entry", &["interrupt-entry"]);
        handler();
        self.machine.set_cold(self.thread_is_cold.get());
    }

    /// Sleeps until `word` is raised, and leaves the idle loop first if the processor was in it.
    fn sleep(&self, what: &'static str, word: &Word) {
        self.asleep.set(self.asleep.get() + 1);
        self.machine.wait(what, false, || word.wait(self.machine.board().engine()));
        self.asleep.set(self.asleep.get() - 1);
        self.set_thread_cold(true);
        if self.was_idle.take() {
            self.machine.charge("leave idle", &["idle-exit"]);
        }
    }

    /// Raises `word` in an interrupt. If all threads sleep, the waiting thread is woken from idle. Otherwise it is
    /// still about to sleep.
    fn raise_in_interrupt(&self, step: &'static str, word: &Word) {
        let raise = || word.raise(self.machine.board().engine());
        let idle = self.asleep.get() == self.threads;
        self.was_idle.set(idle);
        if idle { self.machine.waking(step, raise) } else { self.machine.step(step, raise) }
    }

    /// spi_sync: runs a message and returns its transfers with what they received.
    pub fn sync(&self, message: Vec<Xfer>) -> Vec<Xfer> {
        let (machine, engine) = (self.machine, self.machine.board().engine());
        machine.charge_times("validate", message.len() as f64, &["validate"]);
        // This kernel has one of the two mutexes of later kernels.
        machine.charge_times("mutexes", 0.5, &["io-mutex"]);
        machine.charge("queue", &["queue"]);
        if self.core == Core::Queue314 {
            self.queue.borrow_mut().push_back(message);
            if !self.busy.get() {
                machine.waking("wake the pump", || self.work.raise(engine));
            }
        } else {
            self.message.replace(message);
            self.start(0);
        }
        self.sleep("wake-up and switch", &self.finished);
        self.set_thread_cold(self.caller_is_cold.get());
        machine.charge("completion", &["completion"]);
        self.message.take()
    }

    /// Lets the pump's thread end.
    pub fn stop(&self) {
        self.over.set(true);
        self.work.raise(self.machine.board().engine());
    }

    /// The pump's thread.
    fn pump(&self) {
        let (machine, engine) = (self.machine, self.machine.board().engine());
        loop {
            self.sleep("wake-up and switch", &self.work);
            loop {
                let next = self.queue.borrow_mut().pop_front();
                self.busy.set(next.is_some());
                // With an empty queue: that there is nothing left, and the controller marked idle.
                machine.charge("pump", &["pump"]);
                let Some(message) = next else { break };
                let transfers = message.len();
                self.message.replace(message);
                for place in 0..transfers {
                    self.start(place);
                    self.sleep("interrupt, wake-up and switch", &self.transferred);
                    machine.charge("completion", &["completion"]);
                    self.keep_rx();
                }
                self.select(false);
                machine.charge("finalize", &["finalize"]);
                machine.waking("complete the message", || self.finished.raise(engine));
            }
            if self.over.get() {
                return;
            }
        }
    }

    /// Starts transfer `place` of the message, chip select before the first.
    fn start(&self, place: usize) {
        self.place.set(place);
        // Ordering 1: under the lock.
        self.machine.board().engine().masked(&mut || {
            if place == 0 {
                self.select(true);
            }
            self.start_locked(place);
        });
    }

    fn start_locked(&self, place: usize) {
        let (machine, host) = (self.machine, self.host);
        let length = {
            let message = self.message.borrow();
            host.begin(&message[place].tx);
            message[place].tx.len()
        };
        machine.charge_times("transfer", 0.5, &["transfer", "driver-atmel"]);
        if self.core == Core::Queue314 {
            machine.step("set clock", || host.set_clock());
        }
        if length < DMA_BYTES {
            machine.step("start transfer", || host.start_pio());
        } else {
            machine.charge("set up DMA", &["dma-setup"]);
            let byte_ps = (machine.costs().get("hdmac-byte") * 1e3) as Ps;
            machine.step("start transfer", || host.start_dma(byte_ps));
        }
        // The first byte is over by the end of this.
        machine.charge_times("transfer", 0.5, &["transfer", "driver-atmel"]);
    }

    fn select(&self, active: bool) {
        self.machine.charge("set chip select", &["set-cs"]);
        self.machine.step("chip select", || self.host.set_cs(active));
    }

    fn keep_rx(&self) {
        self.message.borrow_mut()[self.place.get()].rx = self.host.take_rx();
    }

    /// A transfer has ended: in its interrupt.
    fn ended(&self) {
        if self.core == Core::Queue314 {
            self.raise_in_interrupt("complete", &self.transferred);
            return;
        }
        self.machine.charge("tasklet", &["tasklet"]);
        self.keep_rx();
        let next = self.place.get() + 1;
        if next < self.message.borrow().len() {
            self.start(next);
        } else {
            self.select(false);
            self.raise_in_interrupt("complete the message", &self.finished);
        }
    }

    /// The threads beside the caller, which is to be on processor 0 with priority 0: the pump, the two interrupts, and
    /// at_hdmac's two channels. These are no threads of the kernel: they are entered as interrupts are, on processors
    /// of their own.
    pub fn threads<'a>(&'a self) -> Vec<Thread<'a>> {
        let (machine, host) = (self.machine, self.host);
        let spi = move || {
            while host.board.wait_interrupt(None) {
                self.interrupt(|| {
                    if machine.step("handler", || host.handle()) {
                        self.ended();
                    }
                });
            }
        };
        let dma = move || {
            while host.line.wait(None) {
                host.line.lower();
                self.interrupt(|| {
                    // at_hdmac's own, one for each channel.
                    machine.charge_times("DMA tasklets", 2.0, &["tasklet"]);
                    self.ended();
                });
            }
        };
        let transmit = move || {
            while host.enabled[0].wait(None) {
                host.enabled[0].lower();
                host.transmit_channel();
            }
        };
        let receive = move || {
            while host.enabled[1].wait(None) {
                host.enabled[1].lower();
                machine.wait("DMA", false, || host.receive_channel());
            }
        };
        let mut threads = vec![
            Thread::new("spi interrupt", spi).interrupt(0),
            Thread::new("dma interrupt", dma).interrupt(0),
            Thread::new("HDMAC transmits", transmit).interrupt(8),
            Thread::new("HDMAC receives", receive).interrupt(9),
        ];
        if self.core == Core::Queue314 {
            threads.push(Thread::new("pump", || self.pump()).on(0, 0));
        }
        threads
    }
}

#[cfg(test)]
mod tests {
    use barewire_sim::{BoardOptions, BoardSpec};

    use super::*;

    fn divider(speed_hz: u64) -> u32 {
        let spec = BoardSpec::find("sama5d36").unwrap();
        Atmel::new(&Board::new(spec, BoardOptions::default()), 0, speed_hz).csr >> 8
    }

    #[test]
    fn the_clock_is_the_fastest_that_is_not_too_fast() {
        // 132 MHz divided.
        assert_eq!([44_000_000, 50_000_000, 43_999_999].map(divider), [3, 3, 4]);
        assert_eq!(divider(517_648), 255);
    }

    #[test]
    #[should_panic = "no divider of 132000000 makes 500000"]
    fn a_clock_below_the_divider_is_refused() {
        divider(500_000);
    }
}
