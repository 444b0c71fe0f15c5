//! A block that loops back, with what the driver's tests need.

use std::collections::VecDeque;

use crate::reg::Registers;

/// When frames are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pace {
    /// At once.
    #[default]
    AtOnce,
    /// One at each read of the status.
    PerLook,
    /// When the test calls `step`.
    Told,
    /// Never.
    Never,
}

/// FIFOs of 8 words each way, joined.
#[derive(Default)]
pub(super) struct Looped {
    pub(super) pace: Pace,
    pub(super) tx: VecDeque<u32>,
    pub(super) rx: VecDeque<u32>,
    pub(super) cr0: u32,
    pub(super) cr1: u32,
    pub(super) cpsr: u32,
    pub(super) imsc: u32,
    pub(super) overrun: bool,
    pub(super) timed_out: bool,
    /// The frame to lose, counted from the next.
    pub(super) loses: Option<usize>,
    pub(super) frames: usize,
    /// Frames sent in words of 16 bits.
    pub(super) wide: usize,
    /// The most words in flight or waiting.
    pub(super) in_flight_max: usize,
    /// Reads of an empty receive FIFO, writes to a full transmit FIFO, words lost, and control
    /// registers written while enabled.
    pub(super) offences: u32,
}

impl Looped {
    /// Sends a frame, if there is one. Returns whether there was.
    pub(super) fn step(&mut self) -> bool {
        if self.cr1 & 2 == 0 {
            return false;
        }
        let Some(word) = self.tx.pop_front() else { return false };
        self.frames += 1;
        self.wide += usize::from(self.cr0 & 0xf == 15);
        assert!(self.cpsr >= 2 && self.cpsr.is_multiple_of(2), "a clock");
        match &mut self.loses {
            Some(0) => {
                self.loses = None;
                self.overrun = true;
            }
            loses => {
                if let Some(loses) = loses {
                    *loses -= 1;
                }
                let mask = (1 << ((self.cr0 & 0xf) + 1)) - 1;
                self.rx.push_back(word & mask);
            }
        }
        self.offences += u32::from(self.rx.len() > 8);
        true
    }

    /// Lets 32 bits pass in which nothing moves.
    pub(super) fn idle(&mut self) {
        self.timed_out = !self.rx.is_empty();
    }

    pub(super) fn ris(&self) -> u32 {
        u32::from(self.overrun)
            | u32::from(self.timed_out && !self.rx.is_empty()) << 1
            | u32::from(self.rx.len() >= 4) << 2
            | u32::from(self.tx.len() <= 4) << 3
    }

    fn look(&mut self) {
        match self.pace {
            Pace::AtOnce => while self.step() {},
            Pace::PerLook => drop(self.step()),
            Pace::Told | Pace::Never => {}
        }
    }
}

impl Registers for Looped {
    fn read(&mut self, offset: u32) -> u32 {
        match offset {
            0x00 => self.cr0,
            0x04 => self.cr1,
            0x08 => {
                self.offences += u32::from(self.rx.is_empty());
                self.rx.pop_front().unwrap_or(0xdead)
            }
            0x0c => {
                self.look();
                u32::from(self.tx.is_empty())
                    | u32::from(self.tx.len() < 8) << 1
                    | u32::from(!self.rx.is_empty()) << 2
                    | u32::from(self.rx.len() == 8) << 3
                    | u32::from(!self.tx.is_empty()) << 4
            }
            0x10 => self.cpsr,
            0x18 => {
                self.look();
                self.ris()
            }
            _ => unreachable!("read of {offset:#x}"),
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        match offset {
            0x00 | 0x10 => {
                self.offences += u32::from(self.cr1 & 2 != 0);
                *(if offset == 0 { &mut self.cr0 } else { &mut self.cpsr }) = value;
            }
            0x04 => self.cr1 = value,
            0x08 => {
                self.offences += u32::from(self.tx.len() >= 8);
                self.tx.push_back(value);
                self.in_flight_max = self.in_flight_max.max(self.tx.len() + self.rx.len());
            }
            0x14 => self.imsc = value,
            0x20 => {
                self.overrun &= value & 1 == 0;
                self.timed_out &= value & 2 == 0;
            }
            0x24 => assert_eq!(value, 0, "no DMA"),
            _ => unreachable!("write of {offset:#x}"),
        }
        if self.pace == Pace::AtOnce {
            self.look();
        }
    }
}
