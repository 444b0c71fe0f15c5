//! A frame on the wire: its bits with stuff bits and CRC, and their duration.
//!
//! *Read first*: ISO 11898-1:2015, 10.4.2 (frame formats), 10.5 (bit stuffing).
//!
//! # How it works
//! One pass over the frame outputs every bit; a [`Shape`] counts them, [`CanFrame::wire_bits`]
//! keeps them. After five equal bits a stuff bit follows, before the next bit. At the end of CAN
//! FD's data field, where dynamic stuffing ends, the fixed stuff bit takes its place. The bit rate
//! changes at the sample points of BRS and of the CRC delimiter. Together these two bits last one
//! nominal and one data bit time, wherever the sample points are. So BRS is counted as nominal and
//! the delimiter as data.

use super::BitTimes;
use super::frame::CanFrame;
use crate::chip::Ps;

/// The rest of the frame after the CRC delimiter: ACK slot, ACK delimiter, EOF.
const TAIL_BITS: u32 = 9;
/// ACK delimiter and EOF, all recessive.
pub(super) const ACK_TO_END_BITS: u64 = 8;
/// Between frames.
pub(super) const INTERMISSION_BITS: u64 = 3;

/// The size of a frame on the wire, from SOF to the end of EOF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Bits at the nominal bit rate.
    pub nominal_bits: u32,
    /// Bits at the data bit rate.
    pub data_bits: u32,
    /// The bits before the rate first changes; all bits if it does not.
    pub before_switch: u32,
    /// The number of stuff bits, dynamic and fixed.
    pub stuff_bits: u32,
    /// The CRC: 15, 17 or 21 bits.
    pub crc: u32,
    /// The bits up to and including FDF (r0 in a classic frame).
    pub fdf_end: u32,
}

impl Shape {
    /// The duration of the frame.
    #[must_use]
    pub fn duration(&self, times: BitTimes) -> Ps {
        u64::from(self.nominal_bits) * times.nominal_ps + u64::from(self.data_bits) * times.data_ps
    }

    /// The duration of its first `bits`.
    pub(super) fn until(&self, bits: u32, times: BitTimes) -> Ps {
        let before = bits.min(self.before_switch);
        let data = (bits - before).min(self.data_bits);
        let after = bits - before - data;
        u64::from(before + after) * times.nominal_ps + u64::from(data) * times.data_ps
    }
}

/// A polynomial and its length.
struct Crc {
    bits: u32,
    polynomial: u32,
    value: u32,
}

impl Crc {
    const fn classic() -> Self {
        Self { bits: 15, polynomial: 0x4599, value: 0 }
    }

    fn fd(data_length: usize, iso: bool) -> Self {
        let (bits, polynomial) = if data_length <= 16 { (17, 0x1_685b) } else { (21, 0x10_2899) };
        Self { bits, polynomial, value: if iso { 1 << (bits - 1) } else { 0 } }
    }

    #[inline]
    fn shift(&mut self, bit: bool) {
        let carry = (self.value >> (self.bits - 1) & 1 != 0) != bit;
        self.value = self.value << 1 & ((1 << self.bits) - 1);
        if carry {
            self.value ^= self.polynomial;
        }
    }
}

/// Outputs bits, stuffed.
struct Coder<S> {
    sink: S,
    shape: Shape,
    fast: bool,
    crc: Crc,
    fd: bool,
    last: bool,
    run: u32,
    /// The number of dynamic stuff bits, which CAN FD transmits.
    stuffed: u32,
}

impl<S: FnMut(bool)> Coder<S> {
    #[inline]
    fn emit(&mut self, bit: bool) {
        (self.sink)(bit);
        if self.fast {
            self.shape.data_bits += 1;
        } else {
            self.shape.nominal_bits += 1;
        }
        self.run = if bit == self.last { self.run + 1 } else { 1 };
        self.last = bit;
    }

    /// Outputs the stuff bit if one is due.
    #[inline]
    fn stuff(&mut self) {
        if self.run == 5 {
            let bit = !self.last;
            self.emit(bit);
            self.stuffed += 1;
            if self.fd {
                self.crc.shift(bit);
            }
        }
    }

    #[inline]
    fn put(&mut self, bit: bool) {
        self.stuff();
        self.crc.shift(bit);
        self.emit(bit);
    }

    fn field(&mut self, value: u32, bits: u32) {
        for bit in (0..bits).rev() {
            self.put(value >> bit & 1 != 0);
        }
    }

    fn identifier(&mut self, frame: &CanFrame) {
        if frame.extended {
            self.field(frame.id >> 18, 11);
            self.field(0b11, 2);
            self.field(frame.id, 18);
        } else {
            self.field(frame.id, 11);
        }
        // RTR; RRS, dominant, in CAN FD.
        self.put(frame.remote);
        if !frame.extended {
            self.put(false);
        }
    }

    fn control(&mut self, frame: &CanFrame) {
        if frame.extended && !frame.fd {
            self.put(false);
        }
        self.put(frame.fd);
        self.shape.fdf_end = self.shape.nominal_bits;
        if frame.fd {
            self.put(false);
            self.put(frame.brs);
            self.fast = frame.brs;
            self.shape.before_switch = self.shape.nominal_bits;
            self.put(frame.esi);
        }
        self.field(frame.dlc().into(), 4);
    }

    fn classic_crc(&mut self) {
        let Crc { bits, value, .. } = self.crc;
        self.shape.crc = value;
        self.field(value, bits);
        self.stuff();
    }

    /// Stuff count and CRC, a fixed stuff bit before every four of their bits.
    fn fd_crc(&mut self, iso: bool) {
        let (mut bits, mut value) = (0, 0);
        if iso {
            let count = self.stuffed % 8;
            let gray = count ^ count >> 1;
            let parity = gray.count_ones() % 2;
            value = gray << 1 | parity;
            bits = 4;
            for bit in (0..4).rev() {
                self.crc.shift(value >> bit & 1 != 0);
            }
        }
        self.shape.crc = self.crc.value;
        value = value << self.crc.bits | self.crc.value;
        bits += self.crc.bits;
        for bit in 0..bits {
            if bit % 4 == 0 {
                let fixed = !self.last;
                self.emit(fixed);
                self.stuffed += 1;
            }
            self.emit(value >> (bits - 1 - bit) & 1 != 0);
        }
    }

    fn frame(mut self, frame: &CanFrame, iso: bool) -> Shape {
        self.put(false);
        self.identifier(frame);
        self.control(frame);
        for &byte in frame.data() {
            self.field(byte.into(), 8);
        }
        if frame.fd {
            self.fd_crc(iso);
        } else {
            self.classic_crc();
        }
        // The delimiter.
        self.emit(true);
        self.fast = false;
        for bit in 0..TAIL_BITS {
            // The sender's ACK slot is recessive; a receiver makes it dominant.
            self.emit(bit != 0);
        }
        self.shape.stuff_bits = self.stuffed;
        if self.shape.data_bits == 0 {
            self.shape.before_switch = self.shape.nominal_bits;
        }
        self.shape
    }
}

fn walk(frame: &CanFrame, iso: bool, sink: impl FnMut(bool)) -> Shape {
    let crc = if frame.fd { Crc::fd(frame.data().len(), iso) } else { Crc::classic() };
    let coder = Coder {
        sink,
        shape: Shape::default(),
        fast: false,
        crc,
        fd: frame.fd,
        // The bus was recessive: SOF begins a run.
        last: true,
        run: 0,
        stuffed: 0,
    };
    coder.frame(frame, iso)
}

impl CanFrame {
    /// The size on the wire, with the CRC of ISO 11898-1.
    #[must_use]
    pub fn shape(&self) -> Shape {
        walk(self, true, |_| {})
    }

    /// The bits from SOF to the end of EOF, acknowledged; recessive bits are true. The CRC of a CAN
    /// FD frame is as in ISO 11898-1, or, if not `iso`, as in Bosch's first specification.
    #[must_use]
    pub fn wire_bits(&self, iso: bool) -> Vec<bool> {
        let mut bits = Vec::with_capacity(160);
        walk(self, iso, |bit| bits.push(bit));
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the check values in Greg Cook's catalogue of CRCs, of the nine bytes
    /// "123456789".
    #[test]
    fn the_polynomials_have_their_published_check_values() {
        let check = |mut crc: Crc| {
            for byte in *b"123456789" {
                (0..8).rev().for_each(|bit| crc.shift(byte >> bit & 1 != 0));
            }
            crc.value
        };
        assert_eq!(check(Crc::classic()), 0x059e);
        assert_eq!(check(Crc::fd(16, false)), 0x0_4f03);
        assert_eq!(check(Crc::fd(17, false)), 0x0e_d841);
    }
}
