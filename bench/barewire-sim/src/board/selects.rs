//! Pads that a program drives for itself: chip selects that are not the controller's, and wires between pads.
//!
//! *Read first*: `Documentation/spi/spidev.rst` in Linux, for `SPI_NO_CS`; Raspberry Pi's overlay `spi0-0cs`.
//!
//! # How it works
//! A chip select has a line of the controller's, which the driver moves, or a pad that the program moves.
//! [`Board::give_selects`] makes the second of the first before a driver is started on the board: the chip
//! stays where it is, its select is wired to the pad, and a resistor keeps the pad inactive until the program
//! drives it. If the pad is the one of the chip's own line, the controller has no line for this chip select any
//! more; else its line remains and leads to nothing.
//!
//! # Not supported
//! A wire is a wire in one direction: its second pad follows the first. Chains and rings of wires are refused.

use super::body::Pad;
use super::lines::driver;
use super::{Board, LineError};

/// A wire from a pad to another, which follows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PadWire {
    pub(super) from: Pad,
    pub(super) to: Pad,
}

impl Board {
    /// Wires the selects of chips to pads that the program drives; with `all`, also those of the other chip
    /// selects, to the pads of their own lines, and the controller has no line at all then.
    ///
    /// To be called before a driver is started on the board, once.
    ///
    /// # Errors
    /// [`LineError`]; the board is of no use then.
    pub fn give_selects(&self, selects: &[(u8, Pad)], all: bool) -> Result<(), LineError> {
        let own = |cs: u8| self.spec.cs.get(usize::from(cs)).and_then(|cs| cs.pad);
        let lines = 0..self.shared.world.borrow().wire.lines() as u8;
        // 1. The controller has no line where its pad is the program's.
        let given = |cs| own(cs).is_some_and(|pad| selects.contains(&(cs, pad)));
        let freed = lines.clone().filter(|&cs| all || given(cs));
        let freed = freed.fold(0, |freed, cs| freed | 1 << cs);
        self.shared.selects.borrow_mut().freed |= freed;
        // 2. The chips that are told.
        for &(cs, pad) in selects {
            if !lines.contains(&cs) {
                return Err(LineError::NoChipSelect(cs));
            }
            self.give_select(cs, pad)?;
        }
        // 3. All others.
        let others = lines.filter(|cs| all && selects.iter().all(|(told, _)| told != cs));
        for cs in others {
            match own(cs) {
                Some(pad) => self.give_select(cs, pad)?,
                None if self.has_chip(cs) => return Err(LineError::NoPadOf(cs)),
                None => {}
            }
        }
        Ok(())
    }

    fn give_select(&self, cs: u8, pad: Pad) -> Result<(), LineError> {
        self.check_pad(pad)?;
        let int = self.spec.can().is_some_and(|can| can.int == Some(pad) && self.has_chip(can.cs));
        if int || self.shared.world.borrow().wire.is_input(driver(pad)) {
            return Err(LineError::Driven(pad));
        }
        self.shared.selects.borrow_mut().pads.push((cs, pad));
        let active_high = self.spec.cs.get(usize::from(cs)).is_some_and(|cs| cs.active_high);
        self.settled(|world, now| {
            world.set_outside(pad, !active_high, now);
            let level = world.gpio[usize::from(pad.block)].pads() >> pad.bit & 1 != 0;
            world.wire.select_by_program(cs, driver(pad), level, now);
        });
        Ok(())
    }

    /// Whether the controller has a line for chip select `cs`.
    #[must_use]
    pub fn has_line(&self, cs: u8) -> bool {
        let freed = self.shared.selects.borrow().freed;
        usize::from(cs) < self.spec.cs.len() && freed >> cs & 1 == 0
    }

    /// The chip select whose line the controller has at `pad`.
    #[must_use]
    pub fn line_at(&self, pad: Pad) -> Option<u8> {
        (0..)
            .zip(self.spec.cs)
            .find_map(|(cs, spec)| (spec.pad == Some(pad) && self.has_line(cs)).then_some(cs))
    }

    /// The chip select that `pad` moves, by the controller or by the program.
    pub(super) fn select_at(&self, pad: Pad) -> Option<u8> {
        let selects = self.shared.selects.borrow();
        let given = selects.pads.iter().find(|(_, at)| *at == pad).map(|(cs, _)| *cs);
        drop(selects);
        given.or_else(|| self.line_at(pad))
    }

    /// Wires MOSI to MISO. A chip that is selected is stronger than the wire.
    pub fn connect_jumper(&self) {
        self.shared.world.borrow_mut().wire.set_jumper();
    }

    /// Wires `to` to `from`: it has the level of `from` while its block does not drive it.
    ///
    /// # Errors
    /// [`LineError`]; nothing is connected then.
    pub fn connect_pads(&self, from: Pad, to: Pad) -> Result<(), LineError> {
        for pad in [from, to] {
            self.check_pad(pad)?;
        }
        let int = self.spec.can().is_some_and(|can| can.int == Some(to) && self.has_chip(can.cs));
        if from == to || int || self.shared.world.borrow().wire.is_input(driver(to)) {
            return Err(LineError::Driven(to));
        }
        self.settled(|world, now| {
            world.wires.push(PadWire { from, to });
            let level = world.gpio[usize::from(from.block)].pads() >> from.bit & 1 != 0;
            world.set_outside(to, level, now);
        });
        Ok(())
    }

    /// Whether `pad` is an end of a wire to another.
    pub(super) fn is_wired(&self, pad: Pad) -> bool {
        let world = self.shared.world.borrow();
        world.wires.iter().any(|wire| [wire.from, wire.to].contains(&pad))
    }

    /// Whether something outside keeps the level of `pad` that is stronger than a pull.
    pub(super) fn is_outside_held(&self, pad: Pad) -> bool {
        let followed = self.shared.world.borrow().wires.iter().any(|wire| wire.to == pad);
        followed || self.select_at(pad).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::board::{BoardOptions, BoardSpec};
    use crate::bring_up::{GpioLines, bus};
    use crate::model::jumper::Jumper;
    use barewire::spi::{Error, Mode, Settings, Transfer};

    fn board(name: &str) -> Board {
        Board::new(BoardSpec::find(name).expect("a board"), BoardOptions::default())
    }

    fn pad(bit: u8) -> Pad {
        Pad { block: 0, bit }
    }

    /// A read of the flash's identification in two messages without a chip select of the controller's.
    fn id(board: &Board, cs: u8, pin: u8, mode: Mode) -> ([u8; 3], [u8; 3]) {
        let bus = bus(board);
        let device = bus.device(&Settings::new(cs, 1_000_000).with_mode(mode)).expect("a device");
        let mut lines = GpioLines::new(board, 0).expect("a block");
        lines.output(pin, true);
        let mut read = |low: bool| {
            if low {
                lines.drive(1 << pin, false);
            }
            let mut id = [0; 3];
            device.sync(&mut [Transfer::write(&[0x9f])]).expect("runs");
            device.sync(&mut [Transfer::read(&mut id)]).expect("runs");
            lines.drive(1 << pin, true);
            id
        };
        (read(true), read(false))
    }

    #[test]
    fn a_chip_hears_the_program_that_holds_its_select_over_two_messages() {
        for (name, cs, pin) in
            [("rpi3", 1, 25), ("rpi5", 2, 24), ("zynq", 1, 9), ("sama5d36", 0, 3)]
        {
            for mode in [Mode::NO_CS, Mode::default()] {
                let board = board(name);
                board.attach_flash(None).expect("a flash");
                board.give_selects(&[(cs, pad(pin))], false).expect("free");
                let (selected, not) = id(&board, cs, pin, mode);
                assert_ne!(selected, [0xff; 3], "{name}");
                assert_eq!(not, [0xff; 3], "{name}: nothing was selected");
                assert_eq!(board.violations(), [], "{name}");
            }
        }
    }

    #[test]
    fn without_lines_of_the_controllers_the_chips_stay_where_they_are() {
        for (name, cs, pin) in [("rpi3", 1, 7), ("rpi5", 2, 25), ("imx8mp", 0, 9), ("zynq", 1, 13)]
        {
            let board = board(name);
            board.attach_flash(None).expect("a flash");
            assert_eq!(board.line_at(pad(pin)), Some(cs), "{name}");
            board.give_selects(&[], true).expect("each chip has a pad");
            assert_eq!((board.line_at(pad(pin)), board.has_line(cs)), (None, false), "{name}");
            let refused = bus(&board).device(&Settings::new(cs, 1_000_000)).map(drop);
            assert_eq!(refused, Err(Error::NoSuchChipSelect { chip_select: cs }), "{name}");
            let (selected, not) = id(&board, cs, pin, Mode::NO_CS);
            assert_ne!(selected, [0xff; 3], "{name}");
            assert_eq!(not, [0xff; 3], "{name}");
            assert_eq!(board.violations(), [], "{name}");
        }
    }

    #[test]
    fn a_pad_is_used_once() {
        let refused = |name: &str, selects: &[(u8, u8)], all| {
            let board = board(name);
            board.attach_flash(None).expect("a flash");
            let selects: Vec<_> = selects.iter().map(|&(cs, bit)| (cs, pad(bit))).collect();
            board.give_selects(&selects, all)
        };
        assert_eq!(refused("rpi3", &[(9, 25)], false), Err(LineError::NoChipSelect(9)));
        assert_eq!(refused("rpi3", &[(1, 60)], false), Err(LineError::NoPad(pad(60))));
        assert_eq!(refused("rpi3", &[(1, 8)], false), Err(LineError::ChipSelect(pad(8))));
        assert_eq!(
            refused("rpi3", &[(0, 24), (1, 24)], false),
            Err(LineError::ChipSelect(pad(24)))
        );
        assert_eq!(refused("unleashed", &[], true), Err(LineError::NoPadOf(1)));
        assert_eq!(refused("unleashed", &[(1, 3)], true), Ok(()));
        assert_eq!(refused("rpi3", &[(1, 8), (0, 7)], true), Ok(()), "crossed");
    }

    #[test]
    fn a_pull_does_not_select_a_chip() {
        let board = board("rpi3");
        board.attach_flash(None).expect("a flash");
        board.give_selects(&[(1, pad(25))], false).expect("free");
        board.pull(pad(25), false);
        assert_eq!(board.look_at(pad(25)), (true, None));
    }

    #[test]
    fn a_jumper_returns_what_is_sent_with_and_without_a_select() {
        for mode in [Mode::default(), Mode::NO_CS] {
            let board = board("rpi3");
            assert!(board.attach(0, Rc::new(RefCell::new(Jumper))));
            board.connect_jumper();
            let bus = bus(&board);
            let device = bus.device(&Settings::new(0, 1_000_000).with_mode(mode)).expect("opens");
            let mut back = [0; 3];
            device.sync(&mut [Transfer::exchange(&[0xa5, 0x00, 0x3c], &mut back)]).expect("runs");
            assert_eq!(back, [0xa5, 0x00, 0x3c]);
            assert_eq!(board.violations(), []);
        }
    }

    #[test]
    fn a_pad_follows_the_one_that_it_is_wired_to() {
        let board = board("imx8mp");
        board.connect_pads(pad(20), pad(21)).expect("free");
        let mut lines = GpioLines::new(&board, 0).expect("a block");
        for level in [true, false, true] {
            lines.output(20, level);
            assert_eq!(lines.level(21), level);
            lines.drive(1 << 20, !level);
            assert_eq!(lines.level(21), !level);
            board.pull(pad(21), level);
            assert_eq!(lines.level(21), !level, "the wire is stronger than a pull");
        }
        for (from, to) in [(21, 22), (22, 20), (22, 21), (23, 23)] {
            assert!(board.connect_pads(pad(from), pad(to)).is_err(), "{from}:{to}");
        }
        assert_eq!(board.connect_pads(pad(22), pad(9)), Err(LineError::ChipSelect(pad(9))));
    }
}
