//! The flash chip on the wire: edges of CS, and conversion between bits and bytes.
//!
//! Read first: `mod.rs`; [`Chip`], which this implements.
//!
//! A run of bits that begins on a byte boundary is handled in whole bytes, others bit by bit. Both
//! use the same two calls, `begin_byte` and `end_byte`, so the result is the same. Reads in their
//! data phase are the simulator's main traffic, so `exchange` begins with a short path for them, 4
//! bytes at a time.
//!
//! Not supported: CS edges and bits out of order, which the wire's checkers report.

use super::part::{Command, Op};
use super::{Nor, PS_PER_S, Phase, Source};
use crate::chip::{Chip, Clocking, Ps, WireLimits};

impl Nor {
    fn exchange_bytes_and_bits(&mut self, clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        let mut miso = 0;
        let mut left = bits;
        let mut now = clocking.at;
        while left > 0 {
            if self.bits_seen == 0 && left >= 8 {
                left -= 8;
                miso = miso << 8 | u32::from(self.begin_byte(now));
                self.end_byte((mosi >> left) as u8);
                now += 8 * clocking.period;
                continue;
            }
            left -= 1;
            if self.bits_seen == 0 {
                self.byte_out = self.begin_byte(now);
            }
            miso = miso << 1 | u32::from(self.byte_out >> (7 - self.bits_seen)) & 1;
            self.byte_in = self.byte_in << 1 | (mosi >> left & 1) as u8;
            self.bits_seen += 1;
            if self.bits_seen == 8 {
                self.bits_seen = 0;
                self.end_byte(self.byte_in);
            }
            now += clocking.period;
        }
        miso
    }

    /// The clock may change between bits of a selection, so each exchange is checked. One complaint
    /// per selection is enough.
    #[cold]
    fn complain_of_clock(&mut self, period: Ps) {
        self.min_period_ps = 0;
        let Some(Command { opcode, max_clock_hz: Some(max_clock_hz), .. }) = self.command else {
            return;
        };
        let clock_hz = PS_PER_S / period.max(1);
        self.complain(format_args!(
            "command {opcode:02X}h clocked at {clock_hz} Hz, its limit is {max_clock_hz} Hz"
        ));
    }
}

impl Chip for Nor {
    fn name(&self) -> &'static str {
        self.part.name
    }

    fn limits(&self) -> WireLimits {
        self.part.limits
    }

    fn select(&mut self, at: Ps) {
        self.settle(at);
        self.selected = true;
        self.bits_seen = 0;
        self.command = None;
        self.min_period_ps = 0;
        self.phase = if self.dead || self.faults.absent { Phase::Deaf } else { Phase::Opcode };
    }

    fn deselect(&mut self, at: Ps) {
        self.settle(at);
        self.selected = false;
        self.min_period_ps = 0;
        let phase = core::mem::replace(&mut self.phase, Phase::Deaf);
        let bits_seen = core::mem::take(&mut self.bits_seen);
        let Some(command) = self.command.take() else {
            if phase == Phase::Opcode && bits_seen != 0 {
                self.complain(format_args!("CS rose after {bits_seen} bits of an opcode"));
            }
            return;
        };
        let Command { opcode, op, .. } = command;
        match op {
            // A read may end after any bit.
            _ if op.only_reads() => {}
            Op::ReleasePowerDown => {
                if core::mem::take(&mut self.powered_down) {
                    let time_ps = self.part.times.release_power_down.typical_ps;
                    self.deaf_until = at.saturating_add(time_ps);
                }
            }
            _ if bits_seen != 0 => self.complain(format_args!(
                "CS rose {bits_seen} bits into a byte of command {opcode:02X}h, which is off"
            )),
            _ => match phase {
                Phase::Complete | Phase::Collect => self.execute(command, at),
                Phase::Overrun => self.complain(format_args!(
                    "bytes came after the end of command {opcode:02X}h, which is off"
                )),
                _ => self.complain(format_args!(
                    "CS rose before the end of command {opcode:02X}h, which is off"
                )),
            },
        }
    }

    #[inline]
    fn exchange(&mut self, clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        debug_assert!((1..=32).contains(&bits), "{bits} bits in one exchange");
        let miso = if bits == 32
            && self.bits_seen == 0
            && self.phase == Phase::Out(Source::Array)
            && let Some(word) = self.content.get(self.at..).and_then(|rest| rest.first_chunk())
        {
            self.now = clocking.at;
            self.at += 4;
            if self.at == self.content.len() {
                self.at = 0;
            }
            u32::from_be_bytes(*word)
        } else {
            self.exchange_bytes_and_bits(clocking, mosi, bits)
        };
        if clocking.period < self.min_period_ps {
            self.complain_of_clock(clocking.period);
        }
        (miso | self.miso_or) & self.miso_and & (u32::MAX >> (32 - bits))
    }

    fn take_complaint(&mut self) -> Option<String> {
        self.complaints.take()
    }
}
