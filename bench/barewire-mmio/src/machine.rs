//! A simulated board as a client of the protocol sees it: registers, pads, interrupt lines, time.
//!
//! *Read first*: `barewire_sim::board`; docs/mmio.md, *Time*.
//!
//! # How it works
//! The client's time, in nanoseconds, begins at [`Machine::begin`] with the board's. Each request first lets
//! the board come to the client's time, then acts, which costs what the board's profile says, and answers
//! with the board's time. A client whose time is behind that lets the difference pass.
//!
//! Interrupt line 0 is the controller's; the chips' follow in the order in which they were fitted. Lines are
//! levels: 1 while the source asserts them. An answer says when a line may change without an access, at the
//! earliest; the client then sends [`Request::Wait`].
//!
//! Registers have 32 bits. A narrower read gets its part of the register. A narrower write sets the rest to
//! zero: the models have no register of which a driver writes a part.
//!
//! A pad is driven by its bank's registers, in the way in which a boot loader would
//! (`GpioKind::drive`), with all other pads that a client drives. A client that writes
//! the bank's registers itself must not drive its pads also.
//!
//! # Not supported
//! DMA; a GPIO bank's own interrupt.

use std::fmt;

use barewire::reg::Registers;
use barewire_sim::chip::Ps;
use barewire_sim::{Board, Pad, SimRegisters};

use crate::fitting::{self, ChipName, FitError, FittedChip};
use crate::message::{Answer, NEVER, PadDrive, Reason, Request, VERSION};

const PS_PER_NS: u64 = 1_000;
/// The longest time that one request may let pass, in nanoseconds: an hour.
pub const LONGEST_STEP_NS: u64 = 3_600_000_000_000;

/// A board, and the parts of it that a client may access.
pub struct Machine {
    board: Board,
    blocks: Vec<Block>,
    chips: Vec<FittedChip>,
    /// The outputs of each bank, and which of them are high.
    outputs: Vec<(u32, u32)>,
    begun_at: Ps,
    longest_step_ns: u64,
}

struct Block {
    registers: SimRegisters,
    bytes: u32,
    base: u64,
    write_ns: u64,
}

impl Machine {
    /// The board with `chips` on it.
    ///
    /// # Errors
    /// [`FitError`].
    pub fn new(board: Board, chips: &[ChipName]) -> Result<Self, FitError> {
        let chips = chips.iter().map(|chip| fitting::fit(&board, chip));
        let chips = chips.collect::<Result<Vec<_>, _>>()?;
        let (spec, profile) = (board.spec(), board.profile());
        let around_ps = profile.instructions_ps(profile.instructions_per_access.value);
        let ns = |ps: u64| (ps + around_ps).div_ceil(PS_PER_NS);
        let mut blocks = vec![Block {
            registers: board.controller(),
            bytes: spec.kind.bytes,
            base: spec.controller_base,
            write_ns: ns(profile.register_write_ps.value),
        }];
        let banks = (0..).zip(spec.gpio).filter_map(|(index, bank)| {
            let registers = board.gpio(index)?;
            let write_ns = ns(profile.gpio_write_ps.value);
            Some(Block { registers, bytes: bank.kind.bytes, base: bank.base, write_ns })
        });
        blocks.extend(banks);
        let outputs = vec![(0, 0); spec.gpio.len()];
        let begun_at = board.engine().now_ps();
        let longest_step_ns = LONGEST_STEP_NS;
        Ok(Self { board, blocks, chips, outputs, begun_at, longest_step_ns })
    }

    /// Sets the longest time that one request may let pass.
    #[must_use]
    pub fn with_longest_step_ns(self, longest_step_ns: u64) -> Self {
        Self { longest_step_ns, ..self }
    }

    /// The board.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The chips, in the order in which they were fitted.
    #[must_use]
    pub fn chips(&self) -> &[FittedChip] {
        &self.chips
    }

    /// The number of interrupt lines.
    #[must_use]
    pub fn lines(&self) -> u8 {
        1 + self.chips.iter().filter(|chip| chip.line.is_some()).count() as u8
    }

    /// Client time begins: 0 is the board's present.
    pub fn begin(&mut self) {
        self.begun_at = self.board.engine().now_ps();
    }

    /// The board's time since [`Machine::begin`].
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        (self.board.engine().now_ps() - self.begun_at).div_ceil(PS_PER_NS)
    }

    /// Carries out a request.
    pub fn answer(&mut self, request: Request) -> Answer {
        self.try_answer(request).unwrap_or_else(|(reason, value)| Answer::Refused { reason, value })
    }

    fn try_answer(&mut self, request: Request) -> Result<Answer, (Reason, u64)> {
        match request {
            Request::Hello { version, .. } if version != VERSION => {
                Err((Reason::Version, VERSION.into()))
            }
            Request::Hello { .. } => {
                self.begin();
                let blocks = self.blocks.len() as u8;
                Ok(Answer::Welcome { version: VERSION, blocks, lines: self.lines() })
            }
            Request::Describe { block } => {
                let place = self.blocks.get(usize::from(block));
                let Block { bytes, base, write_ns, .. } =
                    place.ok_or((Reason::NoSuchPlace, block.into()))?;
                Ok(Answer::Block { block, bytes: *bytes, base: *base, write_ns: *write_ns })
            }
            Request::Read { block, width, offset, now_ns } => {
                self.come_to(now_ns)?;
                let value = self.block(block, width, offset)?.registers.read(offset & !3);
                let value = value >> (8 * (offset & 3)) & mask(width);
                Ok(self.done(value))
            }
            Request::Write { block, width, offset, value, now_ns } => {
                self.come_to(now_ns)?;
                let registers = &mut self.block(block, width, offset)?.registers;
                let value = (value & mask(width)) << (8 * (offset & 3));
                registers.write(offset & !3, value);
                Ok(self.done(0))
            }
            Request::Wait { now_ns } => {
                self.come_to(now_ns)?;
                Ok(self.done(0))
            }
            Request::Look { bank, bit, now_ns } => {
                self.come_to(now_ns)?;
                let (level, _) = self.board.look_at(self.pad(bank, bit)?);
                Ok(self.done(level.into()))
            }
            Request::Drive { bank, bit, pad, now_ns } => {
                self.come_to(now_ns)?;
                self.drive(self.pad(bank, bit)?, pad);
                Ok(self.done(0))
            }
            Request::Bye => Ok(self.done(0)),
        }
    }

    fn come_to(&self, now_ns: u64) -> Result<(), (Reason, u64)> {
        let step_ns = now_ns.saturating_sub(self.now_ns());
        if step_ns > self.longest_step_ns {
            return Err((Reason::TooFar, self.longest_step_ns));
        }
        let engine = self.board.engine();
        let target = self.begun_at.saturating_add(now_ns.saturating_mul(PS_PER_NS));
        engine.spend_ps(target.saturating_sub(engine.now_ps()));
        Ok(())
    }

    fn block(&mut self, block: u8, width: u8, offset: u32) -> Result<&mut Block, (Reason, u64)> {
        let place = self.blocks.get_mut(usize::from(block));
        let place = place.ok_or((Reason::NoSuchPlace, block.into()))?;
        let width = u32::from(width);
        let end = offset.checked_add(width);
        if offset.is_multiple_of(width) && end.is_some_and(|end| end <= place.bytes) {
            Ok(place)
        } else {
            Err((Reason::Offset, offset.into()))
        }
    }

    fn pad(&self, bank: u8, bit: u32) -> Result<Pad, (Reason, u64)> {
        let refused = (Reason::NoSuchPlace, bit.into());
        // Banks of more than 32 pads are driven by their first 32.
        let pads = self.board.pads_of(bank).ok_or(refused)?.min(32);
        let bit = u8::try_from(bit).ok().filter(|bit| *bit < pads).ok_or(refused)?;
        Ok(Pad { block: bank, bit })
    }

    fn drive(&mut self, pad: Pad, to: PadDrive) {
        let index = usize::from(pad.block);
        let bit = 1 << pad.bit;
        let (pins, high) = &mut self.outputs[index];
        match to {
            // An output that becomes an input keeps its bank's other outputs: no model needs more.
            PadDrive::Input => {
                *pins &= !bit;
                *high &= !bit;
            }
            PadDrive::Low => {
                *pins |= bit;
                *high &= !bit;
            }
            PadDrive::High => {
                *pins |= bit;
                *high |= bit;
            }
        }
        let (pins, high) = (*pins, *high);
        let registers = &mut self.blocks[1 + index].registers;
        let mut write = |offset, value| registers.write(offset, value);
        (self.board.spec().gpio[index].kind.drive)(&mut write, pins, high);
    }

    /// The lines now, and when one may change.
    fn look(&self) -> (u32, Option<Ps>) {
        let (level, mut due) = self.board.look_interrupt();
        let mut lines = u32::from(level);
        let chips = self.chips.iter().filter_map(|chip| chip.line.as_ref());
        for (index, line) in (1..).zip(chips) {
            let (level, line_due) = line.look();
            lines |= u32::from(level) << index;
            due = match (due, line_due) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        (lines, due)
    }

    fn done(&self, value: u32) -> Answer {
        let (lines, due) = self.look();
        let now_ns = self.now_ns();
        let ns = |due: Ps| due.saturating_sub(self.begun_at).div_ceil(PS_PER_NS);
        // Never the present: a client that waits for it would not get on.
        let due_ns = due.map_or(NEVER, |due| ns(due).max(now_ns + 1));
        Answer::Done { lines, value, now_ns, due_ns }
    }
}

const fn mask(width: u8) -> u32 {
    u32::MAX >> (32 - 8 * width as u32)
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("board", &self.board).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use barewire_sim::{BoardOptions, BoardSpec};

    use super::*;

    fn machine(board: &str, chips: &[&str]) -> Machine {
        let board = Board::new(BoardSpec::find(board).expect("a board"), BoardOptions::default());
        let chips: Vec<_> = chips.iter().map(|chip| chip.parse().expect("a chip")).collect();
        let mut machine = Machine::new(board, &chips).expect("it fits");
        assert!(matches!(
            machine.answer(Request::Hello { version: VERSION, page: false }),
            Answer::Welcome { .. }
        ));
        machine
    }

    fn done(machine: &mut Machine, request: Request) -> (u32, u32, u64, u64) {
        match machine.answer(request) {
            Answer::Done { lines, value, now_ns, due_ns } => (lines, value, now_ns, due_ns),
            other => panic!("{request:?}: {other:?}"),
        }
    }

    #[test]
    fn an_interrupt_comes_when_the_answer_says() {
        let mut machine = machine("imx8mp", &["jumper@0"]);
        let write = |offset, value| Request::Write { block: 0, width: 4, offset, value, now_ns: 0 };
        // 8 bits at 156 kHz on SS1, TC enabled.
        done(&mut machine, write(0x08, 0xf1 | 9 << 8 | 7 << 20 | 1 << 18));
        done(&mut machine, write(0x10, 1 << 7));
        done(&mut machine, write(0x04, 0x9f));
        let mut due = done(&mut machine, write(0x08, 0xf5 | 9 << 8 | 7 << 20 | 1 << 18)).3;
        let mut looks = 0;
        loop {
            let (lines, _, now_ns, next) = done(&mut machine, Request::Wait { now_ns: due });
            assert_eq!(now_ns, due);
            looks += 1;
            if lines == 1 {
                assert!((50_000..60_000).contains(&now_ns), "8 periods of 6.4 us: {now_ns}");
                break;
            }
            due = next;
        }
        assert!(looks < 10, "{looks}");
        // Write 1 to clear: the line falls, and nothing is due.
        let (lines, _, _, due) = done(&mut machine, write(0x18, 1 << 7));
        assert_eq!((lines, due), (0, NEVER));
    }

    #[test]
    fn pads_are_driven_and_looked_at_on_every_board() {
        for spec in barewire_sim::board::boards() {
            let mut machine = machine(spec.name, &[]);
            let drive = |bit, pad| Request::Drive { bank: 0, bit, pad, now_ns: 0 };
            let look = |bit| Request::Look { bank: 0, bit, now_ns: 0 };
            for (bit, pad) in [(1, PadDrive::Low), (3, PadDrive::High), (4, PadDrive::Low)] {
                done(&mut machine, drive(bit, pad));
            }
            done(&mut machine, drive(4, PadDrive::High));
            let levels = [1, 3, 4].map(|bit| done(&mut machine, look(bit)).1);
            assert_eq!(levels, [0, 1, 1], "{}", spec.name);
        }
    }

    #[test]
    fn requests_outside_of_the_board_are_refused() {
        let mut machine = machine("rpi3", &[]).with_longest_step_ns(1_000);
        let read = |block, width, offset, now_ns| Request::Read { block, width, offset, now_ns };
        for (request, reason) in [
            (Request::Hello { version: 9, page: false }, Reason::Version),
            (Request::Describe { block: 2 }, Reason::NoSuchPlace),
            (read(2, 4, 0, 0), Reason::NoSuchPlace),
            (read(0, 4, 2, 0), Reason::Offset),
            (read(0, 4, 0x200, 0), Reason::Offset),
            (read(0, 4, u32::MAX - 3, 0), Reason::Offset),
            (read(0, 4, 0, u64::MAX), Reason::TooFar),
            (Request::Look { bank: 1, bit: 0, now_ns: 0 }, Reason::NoSuchPlace),
            (Request::Look { bank: 0, bit: 54, now_ns: 0 }, Reason::NoSuchPlace),
        ] {
            let answer = machine.answer(request);
            assert!(
                matches!(answer, Answer::Refused { reason: r, .. } if r == reason),
                "{answer:?}"
            );
        }
    }

    #[test]
    fn a_part_of_a_register_is_read() {
        let mut machine = machine("imx8mp", &[]);
        let read = |width, offset| Request::Read { block: 0, width, offset, now_ns: 0 };
        // STATREG at reset is 3.
        let parts = [(4, 0x18), (2, 0x18), (1, 0x18), (1, 0x19), (2, 0x1a)];
        let values = parts.map(|(width, offset)| done(&mut machine, read(width, offset)).1);
        assert_eq!(values, [3, 3, 3, 0, 0]);
    }
}
