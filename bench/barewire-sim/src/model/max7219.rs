//! Maxim MAX7219: an eight-digit LED driver behind a 16-bit shift register, alone or in a chain.
//!
//! *Read first*: the MAX7219/MAX7221 data sheet (Maxim, 19-4452): serial-addressing modes, digit and
//! control registers (tables 1 to 10), timing characteristics; [`Chip`], which this implements.
//!
//! # How it works
//! Every rising edge of CLK shifts DIN into a 16-bit register, most significant bit first. When
//! LOAD rises, the chip takes the last 16 bits: D11 to D8 are the register, D7 to D0 its value, and
//! D15 to D12 are ignored. DOUT changes at falling edges and has the register's last bit. The data
//! sheet gives a delay of 16.5 clocks, from the start of a bit's cell at DIN to the edge at which
//! the next chip or the host samples it at DOUT. So a bit is read 16 cells after its own. A chain
//! of `n` chips with one LOAD is a register of `16 * n` bits, and the chip nearest to the host
//! takes the last 16.
//!
//! The silicon accepts any number of bits, but if it is not a multiple of 16 the chip takes the
//! wrong ones. Here that is a complaint, and so is a write to a register that the data sheet does
//! not list.
//!
//! # Not supported
//! - The MAX7221, which clocks only while CS is low. The MAX7219 always clocks: bits for other
//!   chips, sent while LOAD is high, shift into its register. The wire shows a chip only its own
//!   selections, so here the register keeps what its own last selection left.
//! - Segment currents, multiplexing.

use crate::chip::complaints::Complaints;
use crate::chip::{Chip, Clocking, Ps, WireLimits};

/// The most complaints kept until they are taken.
const COMPLAINTS_MAX: usize = 64;

/// Table 5: the segments of a code B character, A to G in bits 6 to 0.
const CODE_B: [u8; 16] = [
    0x7e, 0x30, 0x6d, 0x79, 0x33, 0x5b, 0x5f, 0x70, // 0 to 7
    0x7f, 0x7b, 0x01, 0x4f, 0x37, 0x0e, 0x67, 0x00, // 8, 9, -, E, H, L, P, blank
];

/// The decimal point: bit 7 of a digit, decoded or not.
const POINT: u8 = 0x80;

/// The registers of one chip. The default is their value at power-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Digits 0 to 7.
    pub digits: [u8; 8],
    /// Bit `n` set: digit `n` is a code B character.
    pub decode_mode: u8,
    /// The brightness, 0 to 15.
    pub intensity: u8,
    /// The last digit that is scanned, 0 to 7.
    pub scan_limit: u8,
    /// Normal operation. False is shutdown: the display is blank.
    pub normal: bool,
    /// All segments are lit, regardless of the other registers.
    pub display_test: bool,
}

impl Registers {
    /// The lit segments of each digit: the decimal point in bit 7, segments A to G in bits 6 to 0.
    #[must_use]
    pub fn segments(&self) -> [u8; 8] {
        if self.display_test {
            return [0xff; 8];
        }
        let mut lit = [0; 8];
        if self.normal {
            for (at, digit) in self.digits.iter().enumerate().take(usize::from(self.scan_limit) + 1)
            {
                let decoded = self.decode_mode >> at & 1 != 0;
                let character = CODE_B[usize::from(digit & 0x0f)] | digit & POINT;
                lit[at] = if decoded { character } else { *digit };
            }
        }
        lit
    }

    /// Writes a register. Returns false if it does not exist.
    fn write(&mut self, register: u8, value: u8) -> bool {
        match register {
            // No-op, which is sent to the other chips of a chain.
            0x0 => {}
            0x1..=0x8 => self.digits[usize::from(register - 1)] = value,
            0x9 => self.decode_mode = value,
            0xa => self.intensity = value & 0x0f,
            0xb => self.scan_limit = value & 0x07,
            0xc => self.normal = value & 1 != 0,
            0xf => self.display_test = value & 1 != 0,
            _ => return false,
        }
        true
    }
}

/// A chain of chips that share CLK and LOAD. The first one's DIN is MOSI, the last one's DOUT is
/// MISO.
#[derive(Clone, Debug)]
pub struct Max7219 {
    registers: Vec<Registers>,
    shift: Vec<u16>,
    selection_bits: u64,
    bits: u64,
    loads: u64,
    complaints: Complaints<COMPLAINTS_MAX>,
}

impl Max7219 {
    /// Creates a chain of `chips`, just powered up.
    ///
    /// # Panics
    /// If `chips` is 0.
    #[must_use]
    pub fn new(chips: usize) -> Self {
        assert!(chips > 0, "a chain has at least one chip");
        Self {
            registers: vec![Registers::default(); chips],
            shift: vec![0; chips],
            selection_bits: 0,
            bits: 0,
            loads: 0,
            complaints: Complaints::default(),
        }
    }

    /// The registers of each chip, the one nearest to the host first.
    #[must_use]
    pub fn registers(&self) -> &[Registers] {
        &self.registers
    }

    /// The number of bits shifted since power-up.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// The number of times LOAD rose since power-up.
    #[must_use]
    pub fn loads(&self) -> u64 {
        self.loads
    }

    fn complain(&mut self, what: String) {
        self.complaints.add(|| what);
    }

    /// One rising edge of CLK. Returns DOUT's level before it.
    fn clock(&mut self, din: bool) -> bool {
        let mut carried = din;
        for shift in &mut self.shift {
            let out = *shift & 0x8000 != 0;
            *shift = *shift << 1 | u16::from(carried);
            carried = out;
        }
        carried
    }
}

impl Default for Max7219 {
    fn default() -> Self {
        Self::new(1)
    }
}

impl Chip for Max7219 {
    fn name(&self) -> &'static str {
        "MAX7219"
    }

    /// Timing characteristics, V+ = 5 V. Only the MAX7221 has tCSS.
    fn limits(&self) -> WireLimits {
        WireLimits {
            // Figure 1 clocks from low; LOAD may also rise while CLK is still high after the 16th
            // rising edge (serial-addressing modes).
            modes: 0b1001,
            cs_setup_ns: 0,
            cs_hold_ns: 0,            // tCSH: CLK rise to LOAD rise.
            cs_inactive_ns: 50,       // tCSW, and tLDCK: LOAD rise to the next CLK rise.
            max_clock_hz: 10_000_000, // tCP 100 ns; tCH and tCL are half of it.
        }
    }

    fn select(&mut self, _at: Ps) {
        self.selection_bits = 0;
    }

    fn deselect(&mut self, _at: Ps) {
        self.loads += 1;
        if !self.selection_bits.is_multiple_of(16) {
            let bits = self.selection_bits;
            self.complain(format!("LOAD rose after {bits} bits, no multiple of 16"));
        }
        for chip in 0..self.shift.len() {
            let word = self.shift[chip];
            let register = (word >> 8 & 0x0f) as u8;
            if !self.registers[chip].write(register, word as u8) {
                self.complain(format!(
                    "chip {chip} was sent {word:04x}h: no register {register:X}h"
                ));
            }
        }
    }

    fn exchange(&mut self, _clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        self.selection_bits += u64::from(bits);
        self.bits += u64::from(bits);
        (0..bits).rev().fold(0, |miso, at| miso << 1 | u32::from(self.clock(mosi >> at & 1 != 0)))
    }

    fn take_complaint(&mut self) -> Option<String> {
        self.complaints.take()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::check::{Faults, Rule};
    use crate::wire::{Driver, Run, Wire};

    const CLOCKING: Clocking = Clocking { at: 0, period: 100_000 };

    /// One LOAD of `words`, first word first. Returns the received words.
    fn load(chain: &mut Max7219, words: &[u16]) -> Vec<u16> {
        chain.select(0);
        let back = words.iter().map(|&word| chain.exchange(CLOCKING, word.into(), 16) as u16);
        let back = back.collect();
        chain.deselect(0);
        back
    }

    #[test]
    fn power_up_is_blank_and_shut_down() {
        let chip = Max7219::default();
        assert_eq!(chip.registers(), [Registers::default()]);
        assert_eq!(chip.registers()[0].segments(), [0; 8]);
    }

    #[test]
    fn registers_take_their_values_and_only_their_bits() {
        let mut chip = Max7219::default();
        for (word, upper) in [(0x0901, 0xf), (0x0aff, 0x5), (0x0bff, 0), (0x0cff, 0), (0x0f02, 0)] {
            load(&mut chip, &[word | upper << 12]);
        }
        for digit in 0..8 {
            load(&mut chip, &[(digit + 1) << 8 | 0x80 | digit]);
        }
        load(&mut chip, &[0x00aa]);
        let expected = Registers {
            digits: [0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87],
            decode_mode: 0x01,
            intensity: 0x0f,
            scan_limit: 7,
            normal: true,
            display_test: false,
        };
        assert_eq!(chip.registers(), [expected]);
        assert_eq!(
            chip.registers()[0].segments(),
            [0xfe, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87]
        );
        assert_eq!((chip.loads(), chip.bits()), (14, 14 * 16));
        assert_eq!(chip.take_complaint(), None);
        load(&mut chip, &[0x0d01]);
        assert_eq!(chip.take_complaint().unwrap(), "chip 0 was sent 0d01h: no register Dh");
        assert_eq!(chip.registers(), [expected]);
    }

    #[test]
    fn scan_limit_shutdown_and_test_decide_what_is_lit() {
        let mut registers = Registers { digits: [0x0a; 8], normal: true, ..Registers::default() };
        assert_eq!(registers.segments(), [0x0a, 0, 0, 0, 0, 0, 0, 0]);
        registers.scan_limit = 2;
        registers.decode_mode = 0b10;
        assert_eq!(registers.segments(), [0x0a, 0x01, 0x0a, 0, 0, 0, 0, 0]);
        registers.normal = false;
        assert_eq!(registers.segments(), [0; 8]);
        registers.display_test = true;
        assert_eq!(registers.segments(), [0xff; 8]);
    }

    #[test]
    fn dout_is_sixteen_cells_late_and_feeds_the_next_chip() {
        let mut chip = Max7219::default();
        assert_eq!(load(&mut chip, &[0x0155, 0x02aa, 0x0000]), [0, 0x0155, 0x02aa]);
        // LOAD took only the last 16 bits.
        assert_eq!(chip.registers(), [Registers::default()]);
        // The farthest chip's word goes first.
        let mut chain = Max7219::new(3);
        load(&mut chain, &[0x0a03, 0x0a02, 0x0a01]);
        let intensities: Vec<u8> = chain.registers().iter().map(|chip| chip.intensity).collect();
        assert_eq!(intensities, [1, 2, 3]);
        assert_eq!(load(&mut chain, &[0, 0, 0]), [0x0a03, 0x0a02, 0x0a01]);
        // One word moves all in a chain of three: each chip takes its neighbour's last word.
        load(&mut chain, &[0x0a03, 0x0a02, 0x0a01]);
        load(&mut chain, &[0x0a09]);
        let intensities: Vec<u8> = chain.registers().iter().map(|chip| chip.intensity).collect();
        assert_eq!(intensities, [9, 1, 2]);
        assert_eq!(chain.take_complaint(), None);
    }

    #[test]
    fn bits_that_are_no_multiple_of_sixteen_are_told() {
        let mut chip = Max7219::default();
        for (bits, told) in
            [(8, true), (15, true), (16, false), (17, true), (24, true), (32, false)]
        {
            chip.select(0);
            chip.exchange(CLOCKING, 0, bits);
            chip.deselect(0);
            let complaint = chip.take_complaint();
            assert_eq!(complaint.is_some(), told, "{bits}");
            if let Some(complaint) = complaint {
                let expected = format!("LOAD rose after {bits} bits, no multiple of 16");
                assert_eq!(complaint, expected);
            }
        }
    }

    #[test]
    fn the_last_sixteen_bits_count() {
        let mut chip = Max7219::default();
        chip.select(0);
        chip.exchange(CLOCKING, 0x0_0a07, 20);
        chip.deselect(0);
        assert_eq!(chip.registers()[0].intensity, 7);
        assert!(chip.take_complaint().is_some());
    }

    #[test]
    fn the_wire_holds_it_to_ten_megahertz_and_fifty_nanoseconds() {
        let run = |period, pause, mode| {
            let mut wire = Wire::new(Faults::default());
            let cs = wire.add_line(Driver::Native(0), false);
            wire.attach(cs, Rc::new(RefCell::new(Max7219::default())));
            wire.set_sck(mode & 2 != 0, 0);
            let mut at = 1_000_000;
            for _ in 0..2 {
                wire.set_line(cs, false, at);
                let clocking = Clocking { at, period };
                wire.begin_run(Run { clocking, mode, bits: 16, mosi: 0, loopback: false });
                wire.end_run();
                at += 16 * period;
                wire.set_line(cs, true, at);
                at += pause;
            }
            let log = wire.violations(at);
            log.kept().iter().map(|violation| violation.rule).collect::<Vec<_>>()
        };
        assert_eq!(run(100_000, 50_000, 0), []);
        assert_eq!(run(100_000, 50_000, 3), []);
        assert_eq!(run(99_999, 50_000, 0), [Rule::MaxClock, Rule::MaxClock]);
        assert_eq!(run(100_000, 49_999, 0), [Rule::CsInactive]);
        assert_eq!(run(100_000, 50_000, 1), [Rule::Mode, Rule::Mode]);
    }
}
