//! The time of an operation: what was counted, at a price list, on a wire that takes time.
//!
//! How it works: the events of an operation are gone through in their order, and a clock with them.
//!
//! 1. What ran before an event adds its price. The processor does one thing after the other.
//! 2. A write of a data register puts a word behind those on the wire. All words of an operation are taken to be equally
//!    long: the operation's bits over its words. Where a bit starts the words (ECSPI's XCH), they wait for it.
//! 3. A read of a data register waits until its word has left the wire. A thread that waits polls: the wait is rounded up to
//!    whole polls, a read and four instructions each.
//! 4. In an interrupt nothing polls: the interrupt is taken when the last word that it reads is there. The thread slept, if
//!    its wait was longer than its way to sleep: then its wake-up and the way out of idling are added, once for the
//!    interrupt that ended the last transfer. QEMU's wire takes no time, so none of that ran in the guest.
//! 5. A DSB after a write of a register waits for the write's acknowledgement.

use super::prices::Prices;
use super::trace::{Counts, Event, Operation};

/// Where a board's blocks are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// The controller's registers: first address and size.
    pub(super) controller: (u64, u64),
    /// The bank of its chip select.
    pub(super) bank: (u64, u64),
    /// Data registers, from the controller's first address: what is sent, and what was received.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// The register whose bits start the wire, from the controller's first address: the one by which words start as they are
    /// written, and the one that starts those that were written before. `None` if each word starts as it is written.
    pub(super) start: Option<(u64, u32, u32)>,
}

/// What an access is to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Block {
    Controller,
    Bank,
    Other,
}

impl Blocks {
    pub(super) fn of(&self, address: u64) -> Block {
        let is_in = |(first, size): (u64, u64)| address.wrapping_sub(first) < size;
        if is_in(self.controller) {
            Block::Controller
        } else if is_in(self.bank) {
            Block::Bank
        } else {
            Block::Other
        }
    }

    pub(super) fn is_sent(&self, event: Event) -> bool {
        matches!(event, Event::Write(address, _) if address == self.controller.0 + self.sent)
    }

    /// What a write says about the start of words: as they are written, and those before.
    fn starts(&self, event: Event) -> Option<(bool, bool)> {
        let (place, each, before) = self.start?;
        match event {
            Event::Write(address, value) if address == self.controller.0 + place => {
                Some((value & each != 0, value & before != 0))
            }
            _ => None,
        }
    }

    fn is_received(&self, event: Event) -> bool {
        matches!(event, Event::Read(address) if address == self.controller.0 + self.received)
    }
}

/// An operation's time and its parts, in picoseconds. The parts overlap nowhere and add up to the time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Time {
    /// Instructions whose lines L1 has.
    pub(super) instructions: u64,
    /// Lines and pages that had to be fetched.
    pub(super) misses: u64,
    /// Register accesses.
    pub(super) registers: u64,
    /// Barriers, exclusives, exceptions, the interrupt controller's system registers.
    pub(super) ordering: u64,
    /// Waits for the wire.
    pub(super) waits: u64,
    /// Wake-ups of threads that slept meanwhile.
    pub(super) wakes: u64,
    /// The bits alone, at SCK.
    pub(super) wire: u64,
    /// From the first write of the chip select's bank to the first bit.
    pub(super) lead: u64,
    /// From the last bit to the last such write.
    pub(super) lag: u64,
}

impl Time {
    pub(super) fn total(&self) -> u64 {
        self.instructions + self.misses + self.registers + self.ordering + self.waits + self.wakes
    }
}

/// Instructions of a loop around one poll: load, test, branch, and one more.
const POLL_INSTRUCTIONS: u64 = 4;

/// The time of `operation`, which has `bits` on the wire at `sck_hz`.
pub(super) fn time(
    operation: &Operation,
    blocks: &Blocks,
    prices: &Prices,
    bits: u64,
    sck_hz: u64,
) -> Time {
    let words = operation.count(|event| blocks.is_sent(event)).max(1);
    let clocks_milli = bits * prices.byte_milliclocks / 8;
    let wire = (u128::from(clocks_milli) * 1_000_000_000 / u128::from(sck_hz)) as u64;
    // A start by XCH ends with its burst, so no operation begins within one; an operation without any has SMC.
    let starts =
        |(_, event): &(Counts, Event)| blocks.starts(*event).is_some_and(|(_, before)| before);
    let mut replay = Replay {
        starts: !operation.events.iter().any(starts),
        held: 0,
        prices,
        blocks,
        word_ps: wire / words,
        time: Time { wire, ..Time::default() },
        wire_free: 0,
        there: Vec::new(),
        received: 0,
        depth: 0,
        has_written: false,
        slept: false,
        selected: None,
        deselected: 0,
        first_bit: None,
    };
    for (at, (ran, event)) in operation.events.iter().enumerate() {
        replay.ran(ran);
        replay.happened(*event, &operation.events[at + 1..]);
    }
    let bits = replay.first_bit.zip(replay.there.last());
    if let Some((selected, (first, last))) = replay.selected.zip(bits) {
        replay.time.lead = first.saturating_sub(selected);
        replay.time.lag = replay.deselected.saturating_sub(*last);
    }
    replay.time
}

struct Replay<'a> {
    prices: &'a Prices,
    blocks: &'a Blocks,
    /// Whether a word starts as it is written.
    starts: bool,
    /// Words that wait for their start.
    held: u64,
    word_ps: u64,
    time: Time,
    /// When the wire has sent all that it was given.
    wire_free: u64,
    /// When each word has left the wire.
    there: Vec<u64>,
    received: usize,
    /// Interrupts that have not ended; other exceptions within them count too.
    depth: u32,
    has_written: bool,
    /// A thread slept, and the interrupt that wakes it goes on.
    slept: bool,
    /// When the chip select's bank was written first and last, and when the first bit came.
    selected: Option<u64>,
    deselected: u64,
    first_bit: Option<u64>,
}

impl Replay<'_> {
    fn ran(&mut self, ran: &Counts) {
        let p = self.prices;
        self.time.instructions += ran.instructions * p.instruction_ps;
        self.time.misses += ran.code_l2 * p.code_l2_ps
            + ran.code_memory * p.code_memory_ps
            + ran.load_l2 * p.load_l2_ps
            + ran.load_memory * p.load_memory_ps
            + ran.store_l2 * p.store_l2_ps
            + ran.store_memory * p.store_memory_ps
            + ran.walks * p.walk_ps;
        self.time.ordering += ran.dmb * p.dmb_ps
            + ran.dsb * p.dsb_ps
            + ran.isb * p.isb_ps
            + ran.exclusives * p.exclusive_ps
            + ran.gic * p.gic_ps;
        // 5. A DSB after a write.
        if ran.dsb > 0 && std::mem::take(&mut self.has_written) {
            self.time.ordering += p.write_ack_ps;
        }
    }

    fn happened(&mut self, event: Event, later: &[(Counts, Event)]) {
        let p = self.prices;
        match event {
            Event::Read(address) => {
                // 3. A read waits for its word.
                if self.blocks.is_received(event) {
                    self.wait_for_word();
                }
                self.time.registers += match self.blocks.of(address) {
                    Block::Controller => p.controller_read_ps,
                    Block::Bank => p.gpio_read_ps,
                    Block::Other => p.other_read_ps,
                };
            }
            Event::Write(address, _) => {
                self.has_written = true;
                self.time.registers += match self.blocks.of(address) {
                    Block::Controller => p.controller_write_ps,
                    Block::Bank => p.gpio_write_ps,
                    Block::Other => p.other_write_ps,
                };
                if self.blocks.of(address) == Block::Bank {
                    self.deselected = self.time.total();
                    self.selected.get_or_insert(self.deselected);
                }
                // 2. A word behind those on the wire.
                if self.blocks.is_sent(event) {
                    self.held += 1;
                }
                if let Some((each, before)) = self.blocks.starts(event) {
                    self.starts = each || before;
                }
                if self.starts {
                    self.start();
                }
            }
            Event::Interrupt => {
                self.time.ordering += p.interrupt_ps;
                if self.depth == 0 {
                    self.interrupted(later);
                }
                self.depth += 1;
            }
            Event::Exception => {
                self.time.ordering += p.exception_ps;
                if self.depth > 0 {
                    self.depth += 1;
                }
            }
            Event::Return => {
                self.time.ordering += p.exception_ps;
                if self.depth > 0 {
                    self.depth -= 1;
                }
                // 4. The thread runs again behind the interrupt that ended its last transfer.
                let is_last = self.received >= self.there.len()
                    || !later.iter().any(|(_, event)| matches!(event, Event::Interrupt));
                if self.depth == 0 && self.slept && is_last {
                    self.slept = false;
                    self.time.wakes += p.wake_instructions * p.instruction_ps + p.idle_exit_ps;
                }
            }
            Event::Switch | Event::Idle | Event::End => {}
        }
    }

    /// 2. All words that were written are on the wire.
    fn start(&mut self) {
        for _ in 0..std::mem::take(&mut self.held) {
            self.first_bit.get_or_insert(self.time.total());
            self.wire_free = self.wire_free.max(self.time.total()) + self.word_ps;
            self.there.push(self.wire_free);
        }
    }

    /// 4. The interrupt is taken when the last word that it reads is there.
    fn interrupted(&mut self, later: &[(Counts, Event)]) {
        let mut depth = 1;
        let mut reads = 0;
        for (_, event) in later {
            match event {
                Event::Interrupt | Event::Exception => depth += 1,
                Event::Return => depth -= 1,
                event if self.blocks.is_received(*event) => reads += 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        let last = (self.received + reads).min(self.there.len());
        let Some(ready) = last.checked_sub(1).filter(|_| reads > 0).map(|last| self.there[last])
        else {
            return;
        };
        let wait = ready.saturating_sub(self.time.total());
        self.time.waits += wait;
        // A shorter wait ends while the thread is still on its way to sleep.
        self.slept |= wait > self.prices.wake_instructions / 2 * self.prices.instruction_ps;
    }

    fn wait_for_word(&mut self) {
        // Words that were there before the operation are drained without a wait.
        let Some(&ready) = self.there.get(self.received) else { return };
        self.received += 1;
        let wait = ready.saturating_sub(self.time.total());
        if wait == 0 {
            return;
        }
        let poll = self.prices.controller_read_ps + POLL_INSTRUCTIONS * self.prices.instruction_ps;
        self.time.waits += if self.depth > 0 { wait } else { wait.next_multiple_of(poll) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: Blocks = Blocks {
        controller: (0x1000, 0x100),
        bank: (0x2000, 0x100),
        sent: 4,
        received: 0,
        start: None,
    };
    const TX: Event = Event::Write(0x1004, 0);
    const RX: Event = Event::Read(0x1000);

    /// Nothing costs anything but instructions.
    fn prices() -> Prices {
        Prices { instruction_ps: 1_000, byte_milliclocks: 8_000, ..Prices::default() }
    }

    fn of(events: &[(u64, Event)]) -> Operation {
        let events = events
            .iter()
            .map(|&(instructions, event)| (Counts { instructions, ..Counts::default() }, event));
        Operation { path: "x".into(), bytes: 4, is_cold: false, events: events.collect() }
    }

    /// 8 bits a word at 1 MHz: 8 us.
    fn priced(operation: &Operation, prices: &Prices, words: u64) -> Time {
        time(operation, &BLOCKS, prices, 8 * words, 1_000_000)
    }

    #[test]
    fn each_access_has_its_block_s_price() {
        let prices = Prices {
            controller_read_ps: 1,
            controller_write_ps: 10,
            gpio_read_ps: 100,
            gpio_write_ps: 1_000,
            other_read_ps: 10_000,
            other_write_ps: 100_000,
            ..prices()
        };
        let each =
            [0x1008, 0x2000, 0x3000].map(|at| [(0, Event::Read(at)), (0, Event::Write(at, 0))]);
        let time = priced(&of(&each.concat()), &prices, 1);
        assert_eq!((time.registers, time.total()), (111_111, 111_111));
    }

    #[test]
    fn each_count_has_its_price_and_the_parts_add_up() {
        let counts = Counts {
            instructions: 1,
            code_l2: 1,
            code_memory: 1,
            load_l2: 1,
            load_memory: 1,
            store_l2: 1,
            store_memory: 1,
            walks: 1,
            dmb: 1,
            dsb: 1,
            isb: 1,
            exclusives: 1,
            gic: 1,
        };
        let prices = Prices {
            instruction_ps: 1 << 20,
            code_l2_ps: 1,
            code_memory_ps: 2,
            load_l2_ps: 4,
            load_memory_ps: 8,
            store_l2_ps: 16,
            store_memory_ps: 32,
            walk_ps: 64,
            dmb_ps: 128,
            dsb_ps: 256,
            isb_ps: 512,
            exclusive_ps: 1024,
            gic_ps: 2048,
            write_ack_ps: 4096,
            ..Prices::default()
        };
        let mut operation = of(&[(0, Event::Write(0x3000, 0))]);
        operation.events.push((counts, Event::End));
        let time = time(&operation, &BLOCKS, &prices, 8, 1_000_000);
        assert_eq!(time.misses, 127);
        assert_eq!(time.ordering, 128 + 256 + 512 + 1024 + 2048 + 4096);
        assert_eq!(time.total(), (1 << 20) + 127 + time.ordering);
    }

    #[test]
    fn a_dsb_waits_for_a_write_and_not_without_one() {
        let prices = Prices { write_ack_ps: 7, dsb_ps: 1, ..prices() };
        let barrier = Counts { dsb: 1, ..Counts::default() };
        let mut operation = of(&[]);
        operation.events =
            vec![(barrier, Event::Write(0x3000, 0)), (barrier, Event::End), (barrier, Event::End)];
        assert_eq!(time(&operation, &BLOCKS, &prices, 8, 1).ordering, 3 + 7);
    }

    #[test]
    fn a_poll_waits_for_its_word_in_whole_polls() {
        let one = of(&[(0, TX), (3, RX), (0, Event::End)]);
        let at = |controller_read_ps| priced(&one, &Prices { controller_read_ps, ..prices() }, 1);
        // 8 us of wire, less 3 ns of instructions. A poll is 4 ns, or 3,004.
        let time = at(0);
        assert_eq!((time.waits, time.wire, time.total()), (8_000_000, 8_000_000, 8_003_000));
        assert_eq!(at(3_000_000).waits, 3 * 3_004_000);
    }

    #[test]
    fn words_follow_each_other_and_overlap_with_the_processor() {
        let prices = Prices { instruction_ps: 1_000_000, ..prices() };
        // Polls of 4 us. The second word's read comes when both are there.
        let slow = of(&[(0, TX), (0, TX), (20, RX), (0, RX), (0, Event::End)]);
        assert_eq!(priced(&slow, &prices, 2).total(), 20_000_000);
        let fast = of(&[(0, TX), (0, TX), (0, RX), (0, RX), (0, Event::End)]);
        assert_eq!(priced(&fast, &prices, 2).total(), 16_000_000);
    }

    #[test]
    fn words_wait_for_the_bit_that_starts_them() {
        let blocks = Blocks { start: Some((8, 1 << 3, 1 << 2)), ..BLOCKS };
        let total =
            |events: &[(u64, Event)]| time(&of(events), &blocks, &prices(), 8, 1_000_000).total();
        let start = |value| Event::Write(0x1008, value);
        let xch = [(0, TX), (1_000, start(1 << 2)), (0, RX), (0, Event::End)];
        assert_eq!(total(&xch), 1_000_000 + 8_000_000);
        let smc = [(0, TX), (1_000, start(0)), (0, RX), (0, Event::End)];
        assert_eq!(total(&smc), 8_000_000);
        let smc_now = [(0, start(0)), (0, TX), (1_000, start(1 << 3)), (0, RX), (0, Event::End)];
        assert_eq!(total(&smc_now), 1_000_000 + 8_000_000);
    }

    #[test]
    fn lead_and_lag_are_between_the_select_and_the_bits() {
        let select = Event::Write(0x2000, 0);
        let events = [(5, select), (7, TX), (0, RX), (9, select), (1_000, Event::End)];
        let time = priced(&of(&events), &Prices { controller_read_ps: 1, ..prices() }, 1);
        assert_eq!(time.lead, 7_000);
        // The poll that sees the last bit, in whole polls of 4,001 ps, and nine instructions.
        assert!((9_000..9_000 + 4_002).contains(&time.lag), "{}", time.lag);
    }

    #[test]
    fn an_interrupt_is_taken_when_its_last_word_is_there_and_wakes_who_slept() {
        let prices = Prices {
            instruction_ps: 1_000,
            wake_instructions: 100,
            idle_exit_ps: 500,
            interrupt_ps: 50,
            ..prices()
        };
        let events = [
            (0, TX),
            (0, TX),
            (0, Event::Interrupt),
            (1, RX),
            (0, RX),
            (1, Event::Return),
            (9, Event::End),
        ];
        let time = priced(&of(&events), &prices, 2);
        assert_eq!(time.waits, 16_000_000 - 50);
        assert_eq!(time.wakes, 100 * 1_000 + 500);
        assert_eq!(time.total(), 16_000_000 + 2_000 + 100_500 + 9_000);
        // On a wire so fast that the thread never slept, nothing wakes it.
        let fast = super::time(&of(&events), &BLOCKS, &prices, 16, 1_000_000_000);
        assert_eq!(fast.wakes, 0);
    }

    #[test]
    fn words_that_were_there_before_are_drained_without_a_wait() {
        assert_eq!(priced(&of(&[(0, RX), (0, RX), (0, Event::End)]), &prices(), 1).waits, 0);
    }
}
