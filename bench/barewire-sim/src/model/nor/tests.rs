//! Flash chips driven over their pins.

mod beyond;
mod parts;

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::chip::{Chip, Clocking, PS_PER_NS};
use crate::random::SplitMix64;

/// 20 MHz: below every command's own limit.
const PERIOD: Ps = 50 * PS_PER_NS;

/// A chip and a host that sends bytes to it.
struct Bench {
    nor: Nor,
    now: Ps,
    period: Ps,
}

impl Bench {
    fn new(part: Part) -> Self {
        let content = vec![0xff; part.size];
        let nor = Nor::new(part, content).expect("the size is the part's");
        Self { nor, now: 1_000_000, period: PERIOD }
    }

    fn winbond() -> Self {
        Self::new(Part::w25q256jv())
    }

    /// A copy of the array that follows its changes.
    fn kept(&mut self) -> Rc<RefCell<Vec<u8>>> {
        let kept = Rc::new(RefCell::new(self.nor.content().to_vec()));
        let copy = kept.clone();
        self.nor.keep_with(move |at, bytes| {
            copy.borrow_mut()[at..at + bytes.len()].copy_from_slice(bytes);
        });
        kept
    }

    /// With the protection of power-up off.
    fn sst() -> Self {
        let mut bench = Self::new(Part::sst25vf016b());
        bench.nor.set_status(0);
        bench
    }

    fn bits(&mut self, mosi: u32, bits: u32) -> u32 {
        let clocking = Clocking { at: self.now, period: self.period };
        self.now += u64::from(bits) * self.period;
        self.nor.exchange(clocking, mosi, bits)
    }

    fn select(&mut self) {
        self.now += PERIOD;
        self.nor.select(self.now);
    }

    fn deselect(&mut self) {
        self.nor.deselect(self.now);
        self.now += PERIOD;
    }

    /// One selection. Returns the bytes received after `sent`.
    fn run(&mut self, sent: &[u8], receive: usize) -> Vec<u8> {
        self.select();
        for &byte in sent {
            self.bits(u32::from(byte), 8);
        }
        let received = (0..receive).map(|_| self.bits(0, 8) as u8).collect();
        self.deselect();
        received
    }

    fn send(&mut self, sent: &[u8]) {
        self.run(sent, 0);
    }

    fn enabled(&mut self, sent: &[u8]) {
        self.send(&[0x06]);
        self.send(sent);
    }

    fn status(&mut self) -> u8 {
        self.run(&[0x05], 1)[0]
    }

    fn wait(&mut self) {
        while self.status() & BUSY != 0 {
            self.now += 100_000 * PS_PER_NS;
        }
    }

    /// A command that changes the chip, from write enable to its end.
    fn change(&mut self, sent: &[u8]) {
        self.enabled(sent);
        self.wait();
    }

    fn complaint(&mut self) -> String {
        self.nor.take_complaint().unwrap_or_default()
    }

    fn quiet(&mut self) {
        assert_eq!(self.nor.take_complaint(), None);
    }
}

fn hashed(size: usize) -> Vec<u8> {
    (0..size).map(|at| ((at as u64).wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as u8).collect()
}

#[test]
fn content_of_another_size_is_refused() {
    let error = Nor::new(Part::sst25vf016b(), vec![0; 10]).expect_err("10 bytes are too few");
    assert_eq!(error.expected_bytes, 0x20_0000);
    assert_eq!(error.actual_bytes, 10);
    assert_eq!(error.to_string(), "a SST25VF016B holds 2097152 bytes, the content given has 10");
}

#[test]
fn ids_are_as_the_datasheets_say() {
    let mut w = Bench::winbond();
    assert_eq!(w.run(&[0x9f], 5), [0xef, 0x40, 0x19, 0xff, 0xff]);
    assert_eq!(w.run(&[0x90, 0, 0, 0], 3), [0xef, 0x18, 0xef]);
    assert_eq!(w.run(&[0xab, 0, 0, 0], 2), [0x18, 0x18]);
    assert_eq!(w.run(&[0x35], 2), [0x02, 0x02]);
    assert_eq!(w.run(&[0x15], 1), [0x60]);
    let mut s = Bench::sst();
    assert_eq!(s.run(&[0x9f], 5), [0xbf, 0x25, 0x41, 0xbf, 0x25]);
    assert_eq!(s.run(&[0x90, 0, 0, 0], 2), [0xbf, 0x41]);
    assert_eq!(s.run(&[0xab, 0, 0, 1], 3), [0x41, 0xbf, 0x41]);
    // There is no SFDP. A probe for it is not answered and is no mistake.
    assert_eq!(s.run(&[0x5a, 0, 0, 0, 0], 4), [0xff; 4]);
    w.quiet();
    s.quiet();
}

#[test]
fn sfdp_reads_and_wraps() {
    let mut b = Bench::winbond();
    assert_eq!(b.run(&[0x5a, 0, 0, 0, 0], 4), *b"SFDP");
    assert_eq!(b.run(&[0x5a, 0, 0, 0x84, 0], 4), [0xff, 0xff, 0xff, 0x0f]);
    assert_eq!(b.run(&[0x5a, 0, 0, 0xfe, 0], 4), [0xff, 0xff, b'S', b'F']);
    b.quiet();
}

#[test]
fn reads_at_first_second_last_and_past_the_last() {
    for part in [Part::w25q256jv(), Part::sst25vf016b()] {
        let size = part.size;
        let content = hashed(size);
        let mut b = Bench::new(part);
        b.nor.content.copy_from_slice(&content);
        let four = size > 1 << 24;
        if four {
            b.send(&[0xb7]);
            assert_eq!(b.run(&[0x15], 1), [0x61]);
        }
        for at in [0, 1, 2, 3, size - 5, size - 4, size - 2, size - 1, size] {
            let expected: Vec<u8> = (0..9).map(|n| content[(at + n) % size]).collect();
            let address = (at as u32).to_be_bytes();
            let address = if four { &address[..] } else { &address[1..] };
            assert_eq!(b.run(&[&[0x03], address].concat(), 9), expected, "{at}");
            assert_eq!(b.run(&[&[0x0b], address, &[0]].concat(), 9), expected);
            // Reads by words, also across the end of the array.
            b.select();
            b.bits(0x03, 8);
            address.iter().for_each(|&byte| {
                b.bits(u32::from(byte), 8);
            });
            let words = [b.bits(0, 32), b.bits(0, 32)].map(u32::to_be_bytes);
            b.deselect();
            assert_eq!(words.concat(), expected[..8]);
        }
        b.quiet();
    }
}

#[test]
fn address_length_follows_the_mode_except_for_dedicated_opcodes() {
    let mut b = Bench::winbond();
    b.nor.content[0x12_3456] = 0x3b;
    b.nor.content[0x112_3456] = 0x4b;
    assert_eq!(b.run(&[0x03, 0x12, 0x34, 0x56], 1), [0x3b]);
    assert_eq!(b.run(&[0x13, 0x01, 0x12, 0x34, 0x56], 1), [0x4b]);
    assert_eq!(b.run(&[0x0c, 0x01, 0x12, 0x34, 0x56, 0], 1), [0x4b]);
    b.send(&[0xb7]);
    assert_eq!(b.run(&[0x03, 0x01, 0x12, 0x34, 0x56], 1), [0x4b]);
    assert_eq!(b.run(&[0x13, 0x01, 0x12, 0x34, 0x56], 1), [0x4b]);
    b.change(&[0x02, 0x01, 0x00, 0x00, 0x00, 0x77]);
    assert_eq!(b.nor.content()[0x100_0000], 0x77);
    b.change(&[0x20, 0x01, 0x00, 0x0f, 0xff]);
    assert_eq!(b.nor.content()[0x100_0000], 0xff);
    b.send(&[0xe9]);
    assert_eq!(b.run(&[0x15], 1), [0x60]);
    assert_eq!(b.run(&[0x03, 0x12, 0x34, 0x56], 1), [0x3b]);
    b.send(&[0xb7]);
    b.nor.power_cycle();
    assert_eq!(b.run(&[0x15], 1), [0x60]);
    b.quiet();
}

#[test]
fn page_program_wraps_within_its_page_and_only_clears_bits() {
    let mut b = Bench::winbond();
    b.change(&[0x02, 0x00, 0x01, 0xfe, 1, 2, 3, 4]);
    assert_eq!(b.nor.content()[0x1fe..0x202], [1, 2, 0xff, 0xff]);
    assert_eq!(b.nor.content()[0x100..0x103], [3, 4, 0xff]);
    b.change(&[0x02, 0x00, 0x01, 0xff, 0x06]);
    assert_eq!(b.nor.content()[0x1ff], 0x02);
    // 258 bytes: the last two overwrite the first two.
    let mut long = vec![0x12, 0, 0, 2, 0];
    long.extend([0x11, 0x22]);
    long.extend([0x33; 254]);
    long.extend([0x44, 0x55]);
    b.change(&long);
    assert_eq!(b.nor.content()[0x200..0x203], [0x44, 0x55, 0x33]);
    assert_eq!(b.nor.content()[0x2ff..0x301], [0x33, 0xff]);
    // The last byte of the array.
    b.change(&[0x12, 0x01, 0xff, 0xff, 0xff, 0x5a]);
    assert_eq!(b.nor.content()[0x1ff_ffff], 0x5a);
    b.quiet();
}

#[test]
fn changes_need_wel_and_clear_it() {
    let mut b = Bench::winbond();
    for command in [&[0x02, 0, 0, 0, 0][..], &[0x20, 0, 0, 0], &[0xc7], &[0x01, 0x7c]] {
        b.send(command);
        assert!(b.complaint().contains("without"), "{command:02x?}");
        assert_eq!(b.status(), 0);
    }
    b.send(&[0x06]);
    assert!(b.nor.write_enabled());
    b.send(&[0x04]);
    assert!(!b.nor.write_enabled());
    b.enabled(&[0x02, 0, 0, 0, 0]);
    assert_eq!(b.status(), BUSY | WEL);
    b.wait();
    assert_eq!(b.status(), 0);
    b.quiet();
    // No data, too short an address, a byte too many.
    for command in [&[0x02, 0, 0, 0][..], &[0x20, 0, 0], &[0x20, 0, 0, 0, 0], &[0xc7, 0]] {
        b.enabled(command);
        assert!(!b.complaint().is_empty(), "{command:02x?}");
        assert_eq!(b.status(), WEL, "{command:02x?}");
    }
    assert_eq!(b.nor.content()[0], 0);
}

#[test]
fn busy_lasts_as_the_datasheet_says_and_ignores_all_but_status() {
    let times = Part::w25q256jv().times;
    let commands = [
        (&[0x02, 0, 0, 0, 0][..], times.program),
        (&[0x20, 0, 0, 0], times.sector_erase),
        (&[0x52, 0, 0, 0], times.block32_erase),
        (&[0xdc, 0, 0, 0, 0], times.block64_erase),
        (&[0x60], times.chip_erase),
        (&[0x01, 0], times.write_status),
    ];
    let mut b = Bench::winbond();
    for (command, time) in commands {
        b.enabled(command);
        let end = b.now - PERIOD + time.typical_ps;
        assert_eq!(b.run(&[0x03, 0, 0, 0], 2), [0xff, 0xff]);
        assert!(b.complaint().contains("command 03h while BUSY"));
        b.send(&[0x04]);
        assert!(b.complaint().contains("command 04h while BUSY"));
        // The status byte has the value at the time its first bit is clocked.
        b.now = end - 10 * PERIOD - 1;
        assert_eq!(b.status(), BUSY | WEL);
        b.now = end - 9 * PERIOD;
        assert_eq!(b.status(), 0);
        b.quiet();
    }
}

#[test]
fn status_is_read_on_and_on_and_sees_the_end() {
    let mut b = Bench::winbond();
    b.enabled(&[0x02, 0, 0, 0, 0]);
    let end = b.now - PERIOD + b.nor.part().times.program.typical_ps;
    b.select();
    b.bits(0x05, 8);
    assert_eq!(b.bits(0, 32), 0x0303_0303);
    // Each byte has the value at its own time: the operation ends with the first bit of the third
    // byte.
    b.now = end - 16 * PERIOD;
    assert_eq!(b.bits(0, 32), 0x0303_0000);
    assert_eq!(b.bits(0, 32), 0);
    b.deselect();
    b.quiet();
}

#[test]
fn erases_clear_their_aligned_block_and_no_more() {
    let mut b = Bench::winbond();
    for (opcode, size) in [(0x20, 0x1000), (0x52, 0x8000), (0xd8, 0x1_0000)] {
        b.nor.content[..0x4_0000].fill(0);
        b.change(&[opcode, 0x01, 0x56, 0x78]);
        let base = 0x1_5678 & !(size - 1);
        let content = b.nor.content();
        assert!(content[..base].iter().all(|&byte| byte == 0));
        assert!(content[base..base + size].iter().all(|&byte| byte == 0xff));
        assert!(content[base + size..0x4_0000].iter().all(|&byte| byte == 0));
    }
    b.change(&[0xc7]);
    assert!(b.nor.content().iter().all(|&byte| byte == 0xff));
    b.quiet();
}

#[test]
fn protected_blocks_stay_and_wel_clears() {
    let mut b = Bench::winbond();
    b.change(&[0x01, 0x04]); // BP0: the last 64 KiB.
    assert_eq!(b.status(), 0x04);
    let touch = [
        &[0x12, 0x01, 0xff, 0x00, 0x00, 0][..],
        &[0x21, 0x01, 0xff, 0xff, 0xff],
        &[0xdc, 0x01, 0xff, 0x00, 0x00],
        &[0xc7],
    ];
    for command in touch {
        b.enabled(command);
        assert_eq!(b.status(), 0x04, "{command:02x?}");
    }
    assert!(b.nor.content().iter().all(|&byte| byte == 0xff));
    b.change(&[0x12, 0x01, 0xfe, 0xff, 0xff, 0]);
    assert_eq!(b.nor.content()[0x1fe_ffff], 0);
    b.nor.power_cycle();
    assert_eq!(b.status(), 0x04);
    // Two bytes write CMP as well: all but the last block.
    b.change(&[0x01, 0x04, 0x40]);
    assert_eq!(b.run(&[0x35], 1), [0x40]);
    b.enabled(&[0x12, 0x01, 0xff, 0x00, 0x00, 0]);
    assert_eq!(b.status() & BUSY, BUSY);
    b.wait();
    b.enabled(&[0x02, 0, 0, 0, 0]);
    assert_eq!(b.status() & (BUSY | WEL), 0);
    b.enabled(&[0x01, 0, 0, 0]);
    assert!(b.complaint().contains("3 data bytes"));
}

#[test]
fn cs_inside_a_byte_calls_the_command_off() {
    let mut b = Bench::winbond();
    b.select();
    b.bits(0b000_0011, 7);
    b.deselect();
    assert!(b.complaint().contains("7 bits of an opcode"));
    assert!(!b.nor.write_enabled());
    b.select();
    b.bits(0x06 << 1, 9);
    b.deselect();
    assert!(b.complaint().contains("1 bits into a byte"));
    assert!(!b.nor.write_enabled());
    b.send(&[0x06]);
    b.select();
    b.bits(0x0200_0000, 32);
    b.bits(0x0000, 13);
    b.deselect();
    assert!(b.complaint().contains("5 bits into a byte of command 02h"));
    assert_eq!(b.status(), WEL);
    assert_eq!(b.nor.content()[0], 0xff);
    // A read may end at any bit, and an empty selection has no effect.
    b.select();
    b.bits(0x0300_0000, 32);
    b.bits(0, 3);
    b.deselect();
    b.select();
    b.deselect();
    b.quiet();
}

#[test]
fn slow_reads_have_a_clock_limit_of_their_own() {
    for (part, limit_hz) in [(Part::w25q256jv(), 50_000_000), (Part::sst25vf016b(), 25_000_000)] {
        let mut b = Bench::new(part);
        b.period = PS_PER_S / limit_hz;
        b.run(&[0x03, 0, 0, 0], 4);
        b.quiet();
        b.period -= 1;
        b.run(&[0x03, 0, 0, 0], 4);
        assert!(b.complaint().contains(&format!("its limit is {limit_hz} Hz")));
        b.run(&[0x0b, 0, 0, 0, 0], 4);
        b.quiet();
        // Here the clock is faster only after the data has begun.
        b.period = PS_PER_S / limit_hz;
        b.select();
        b.bits(0x0300_0000, 32);
        b.period /= 2;
        b.bits(0, 32);
        b.deselect();
        assert!(b.complaint().contains("command 03h clocked at"));
        b.quiet();
    }
}

#[test]
fn reset_and_power_down() {
    let mut b = Bench::winbond();
    b.send(&[0xb7]);
    b.send(&[0x06]);
    b.send(&[0x99]);
    assert!(b.complaint().contains("without 66h"));
    b.send(&[0x66]);
    b.send(&[0x05]);
    b.send(&[0x99]);
    assert!(b.complaint().contains("without 66h"));
    assert!(b.nor.write_enabled());
    b.send(&[0x66]);
    b.send(&[0x99]);
    assert!(!b.nor.write_enabled());
    assert_eq!(b.run(&[0x15], 1), [0xff]);
    assert!(b.complaint().contains("too soon"));
    b.now += 30_000 * PS_PER_NS;
    assert_eq!(b.run(&[0x15], 1), [0x60]);
    b.send(&[0xb9]);
    assert_eq!(b.run(&[0x9f], 1), [0xff]);
    assert!(b.complaint().contains("powered down"));
    assert_eq!(b.run(&[0xab, 0, 0, 0], 1), [0x18]);
    assert_eq!(b.run(&[0x9f], 1), [0xff]);
    assert!(b.complaint().contains("too soon"));
    b.now += 3_000 * PS_PER_NS;
    assert_eq!(b.run(&[0x9f], 1), [0xef]);
    b.quiet();
}

#[test]
fn sst_is_protected_at_power_up_and_unlocked_by_either_enable() {
    let mut b = Bench::new(Part::sst25vf016b());
    assert_eq!(b.status(), 0x1c);
    b.enabled(&[0x02, 0, 0, 0, 0]);
    assert_eq!(b.status(), 0x1c);
    assert_eq!(b.nor.content()[0], 0xff);
    b.send(&[0x50]);
    b.send(&[0x05]);
    b.send(&[0x01, 0x00]); // RDSR came between.
    assert!(b.complaint().contains("without write enable"));
    b.send(&[0x50]);
    b.send(&[0x01, 0x00]);
    assert_eq!(b.status(), 0);
    b.send(&[0x50]);
    b.send(&[0x02, 0, 0, 0, 0]); // EWSR enables nothing else.
    assert!(b.complaint().contains("without WEL"));
    b.enabled(&[0x01, 0x04]);
    assert_eq!(b.status(), 0x04);
    b.nor.power_cycle();
    assert_eq!(b.status(), 0x1c);
    b.quiet();
}

#[test]
fn sst_programs_single_bytes() {
    let mut b = Bench::sst();
    for at in [0, 1, 0x1f_fffe, 0x1f_ffff_u32] {
        let [_, high, middle, low] = at.to_be_bytes();
        b.enabled(&[0x02, high, middle, low, 0xa5]);
        assert_eq!(b.status(), BUSY | WEL);
        b.wait();
        assert_eq!(b.status(), 0);
        assert_eq!(b.nor.content()[at as usize], 0xa5);
    }
    b.quiet();
    b.enabled(&[0x02, 0, 1, 0, 1, 2]);
    assert!(b.complaint().contains("2 data bytes"));
    assert_eq!(b.nor.content()[0x100..0x102], [0xff, 0xff]);
}

#[test]
fn sst_aai_runs_to_wrdi() {
    let mut b = Bench::sst();
    b.enabled(&[0xad, 0, 0x10, 0x01, 1, 2]); // A0 is not looked at.
    assert_eq!(b.status(), BUSY | WEL | 0x40);
    b.wait();
    assert_eq!(b.status(), WEL | 0x40);
    b.send(&[0xad, 3, 4]);
    b.wait();
    b.quiet();
    assert_eq!(b.run(&[0x03, 0, 0x10, 0], 2), [0xff, 0xff]);
    assert!(b.complaint().contains("command 03h in AAI mode"));
    b.send(&[0xad, 5]);
    assert!(b.complaint().contains("1 data bytes, 2 are needed"));
    b.send(&[0xad, 5, 6]);
    b.wait();
    b.send(&[0x04]);
    assert_eq!(b.status(), 0);
    assert_eq!(b.run(&[0x03, 0, 0x10, 0], 7), [1, 2, 3, 4, 5, 6, 0xff]);
    b.send(&[0xad, 7, 8]);
    assert!(b.complaint().contains("before the end of command ADh"));
    b.quiet();
}

#[test]
fn sst_aai_ends_by_itself_at_the_top_and_at_protection() {
    for (status, last) in [(0, 0x1f_fffe_u32), (0x04, 0x1e_fffe)] {
        let mut b = Bench::sst();
        b.nor.set_status(status);
        let [_, high, middle, low] = (last - 2).to_be_bytes();
        b.change(&[0xad, high, middle, low, 1, 2]);
        assert_eq!(b.status(), status | WEL | 0x40);
        b.send(&[0xad, 3, 4]);
        b.wait();
        assert_eq!(b.status(), status);
        let at = last as usize - 2;
        assert_eq!(b.nor.content()[at..at + 4], [1, 2, 3, 4]);
        b.quiet();
    }
}

#[test]
fn power_loss_in_a_program_leaves_half_a_page_and_a_dead_chip() {
    let mut b = Bench::winbond();
    b.nor.set_faults(NorFaults { power_loss_in_program: Some(1), ..NorFaults::default() });
    let page = |at: u8| [&[0x02, 0, at, 0][..], &[0x11; 256]].concat();
    b.change(&page(0));
    b.enabled(&page(1));
    assert_eq!(b.status(), 0xff);
    assert_eq!(b.run(&[0x9f], 3), [0xff; 3]);
    b.enabled(&[0x20, 0, 0, 0]);
    assert!(b.nor.content()[..0x180].iter().all(|&byte| byte == 0x11));
    assert!(b.nor.content()[0x180..0x200].iter().all(|&byte| byte == 0xff));
    b.nor.power_cycle();
    assert_eq!(b.status(), 0);
    b.change(&page(1));
    assert!(b.nor.content()[..0x200].iter().all(|&byte| byte == 0x11));
    b.quiet();

    let mut s = Bench::sst();
    s.nor.set_faults(NorFaults { power_loss_in_program: Some(0), ..NorFaults::default() });
    s.enabled(&[0xad, 0, 0, 0, 1, 2]);
    assert_eq!(s.nor.content()[..2], [1, 0xff]);
    assert_eq!(s.status(), 0xff);
    s.nor.power_cycle();
    assert_eq!(s.status(), 0x1c);
}

#[test]
fn power_loss_in_an_erase_leaves_the_same_mixture_every_time() {
    let mut mixtures = Vec::new();
    for _ in 0..2 {
        let mut b = Bench::winbond();
        b.nor.content[..0x2000].fill(0);
        b.nor.set_faults(NorFaults { power_loss_in_erase: Some(0), ..NorFaults::default() });
        let kept = b.kept();
        b.enabled(&[0x20, 0, 0, 0]);
        assert_eq!(b.run(&[0x05], 1), [0xff]);
        assert!(b.nor.content()[..0x800].iter().all(|&byte| byte == 0xff));
        assert!(*kept.borrow() == b.nor.content());
        mixtures.push(b.nor.content()[0x800..0x1000].to_vec());
        assert_eq!(b.nor.content()[0x1000], 0);
    }
    assert_eq!(mixtures[0], mixtures[1]);
    let first = mixtures[0][0];
    assert!(mixtures[0].iter().any(|&byte| byte != first));
    assert!(mixtures[0].iter().any(|&byte| byte != 0xff));
}

#[test]
fn faults_of_the_wire_and_of_worn_cells() {
    let mut b = Bench::winbond();
    let mut with = |faults: NorFaults| {
        b.nor.set_faults(faults);
        b.enabled(&[0x02, 0, 0, 0, 0x55]);
        let id = b.run(&[0x9f], 1)[0];
        let status = b.nor.status();
        let first = b.nor.content()[0];
        while b.nor.take_complaint().is_some() {}
        b.nor.power_cycle();
        (id, status, first)
    };
    let faults = NorFaults::default;
    let absent = true;
    assert_eq!(with(NorFaults { absent, ..faults() }), (0xff, 0, 0xff));
    let ignore_program = true;
    let worn = with(NorFaults { ignore_program, ..faults() });
    assert_eq!(worn, (0xff, BUSY | WEL, 0xff));
    let miso_stuck_low = true;
    let low = with(NorFaults { miso_stuck_low, ..faults() });
    assert_eq!(low, (0, BUSY | WEL, 0x55));

    b.nor.set_faults(NorFaults { stuck_busy: true, ..faults() });
    b.enabled(&[0x20, 0, 0, 0]);
    b.now += 1_000 * PS_PER_S;
    assert_eq!(b.status(), BUSY | WEL);
}

#[test]
fn each_change_is_kept_when_it_is_made_and_nothing_else() {
    let mut b = Bench::winbond();
    let told = Rc::new(RefCell::new(Vec::new()));
    let notes = told.clone();
    b.nor.keep_with(move |at, bytes| notes.borrow_mut().push((at, bytes.to_vec())));
    let told = || told.take();
    b.enabled(&[0x12, 0x01, 0xff, 0xff, 0xff, 0x5a]);
    assert_eq!(told().len(), 1, "while the chip is still busy");
    b.wait();
    // The last byte of a page, and the first of the next.
    b.change(&[0x02, 0x00, 0x0f, 0xff, 0, 1]);
    let page = told();
    assert_eq!((page[0].0, page[0].1.len(), page[0].1[0], page[0].1[255]), (0xf00, 256, 1, 0));
    // Erasing an erased block, or programming ones, changes nothing.
    b.change(&[0x20, 0x00, 0x50, 0x00]);
    b.change(&[0x02, 0x00, 0x60, 0x00, 0xff]);
    assert_eq!(told(), []);
    b.change(&[0xc7]);
    let erased = |at| (at, vec![0xff; GRANULE]);
    assert_eq!(told(), [erased(0), erased(0x1ff_f000)]);
}

#[test]
fn slowest_times_are_the_maxima() {
    let part = Part::w25q256jv().at_max_times();
    assert_eq!(part.times.program.typical_ps, 3_000_000 * PS_PER_NS);
    let mut b = Bench::new(part);
    b.enabled(&[0x02, 0, 0, 0, 0]);
    b.now += 2_000_000 * PS_PER_NS;
    assert_eq!(b.status() & BUSY, BUSY);
    b.now += 1_000_000 * PS_PER_NS;
    assert_eq!(b.status() & BUSY, 0);
}

#[test]
fn complaints_are_bounded() {
    let mut b = Bench::winbond();
    for _ in 0..COMPLAINTS_MAX + 10 {
        b.send(&[0x99]);
    }
    let count = core::iter::from_fn(|| b.nor.take_complaint()).count();
    assert_eq!(count, COMPLAINTS_MAX);
}

/// Clocking one bit at a time or up to 32 at once makes no difference to MISO, array and
/// complaints.
#[test]
fn however_the_bits_are_cut_the_chip_is_the_same() {
    let parts = [
        Part::w25q256jv(),
        Part::w25q32jv(),
        Part::sst25vf016b(),
        Part::s25fl512s(),
        Part::sst26vf064b(),
        Part::mt25qu256a(),
        Part::s25fs128s(),
    ];
    for part in parts {
        let seed = 0x2d35_8dcc_aa6c_78a5;
        let mut random = SplitMix64::new(seed);
        let mut below = |end: u64| random.next_u64() % end;
        let mut whole = Bench::new(part.clone());
        let mut single = Bench::new(part.clone());
        for b in [&mut whole, &mut single] {
            b.nor.set_status(0);
            for at in [0, part.size - 0x100] {
                b.nor.content[at..at + 0x100].copy_from_slice(&hashed(0x100));
            }
        }
        for round in 0..4_000 {
            // Mostly the part's own opcodes, often with addresses near the array's ends.
            let opcodes: Vec<u8> = part.commands().map(|command| command.opcode).collect();
            let known = below(opcodes.len() as u64) as usize;
            let opcode = match below(10) {
                0 => below(256) as u8,
                1..3 => 0x06,
                _ => opcodes[known],
            };
            // Skip the chip erase, which would only make the test slow.
            let opcode = if matches!(opcode, 0xc7 | 0x60) { 0x05 } else { opcode };
            let edge = [0x00, 0xff][below(2) as usize];
            let mut bits = vec![opcode];
            bits.extend([edge; 3]);
            bits.extend((0..below(12)).map(|_| below(256) as u8));
            let total = match below(8) {
                0 => below(bits.len() as u64 * 8) as u32,
                1 => 8,
                _ => bits.len() as u32 * 8,
            };
            whole.select();
            single.select();
            let mut done = 0;
            while done < total {
                let count = (1 + below(32) as u32).min(total - done);
                let count = if below(2) == 0 { (total - done).min(32) } else { count };
                let mosi = (done..done + count).fold(0_u32, |word, at| {
                    word << 1 | u32::from(bits[at as usize / 8] >> (7 - at % 8) & 1)
                });
                let expected = (0..count)
                    .fold(0, |miso, at| miso << 1 | single.bits(mosi >> (count - 1 - at) & 1, 1));
                let got = whole.bits(mosi, count);
                assert_eq!(got, expected, "seed {seed:#x}, round {round}, bit {done}");
                done += count;
            }
            whole.deselect();
            single.deselect();
            assert_eq!(whole.nor.status(), single.nor.status(), "round {round}");
            loop {
                let told = whole.nor.take_complaint();
                assert_eq!(told, single.nor.take_complaint(), "round {round}");
                if told.is_none() {
                    break;
                }
            }
            let pause = [0, 1_000_000, 200_000_000_000][below(3) as usize];
            whole.now += pause;
            single.now += pause;
        }
        assert_eq!(whole.now, single.now);
        assert!(whole.nor.content() == single.nor.content());
    }
}
