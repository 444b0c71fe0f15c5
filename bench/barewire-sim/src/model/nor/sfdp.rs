//! The serial flash discoverable parameters (SFDP) of a part, as bytes.
//!
//! Read first: JESD216B, sections 6.2 (SFDP header), 6.3 (parameter headers), 6.4 (basic flash
//! parameter table, DWORDs 1 to 16) and 6.5 (4-byte address instruction table).
//!
//! The block has 256 bytes, laid out like the answers of the W25Q JV family: the header and the
//! parameter headers at 0, the basic table at 80h, and the 4-byte table, if any, at D0h. Bytes in
//! between read FFh. Every field is computed from the description; none is copied as a word.
//!
//! Parts whose SFDP was published have those bytes instead ([`placed`]).
//!
//! Not supported in a computed block: other tables (sector map, vendor's own), other addresses for these two.

/// The size of the block; the address of 5Ah wraps here.
pub(super) const LENGTH: usize = 256;

const BASIC_AT: usize = 0x80;
const FOUR_BYTE_AT: usize = 0xd0;

/// A number of time units, as JESD216B writes it: `count` is 1 and up, `unit` is the code.
#[derive(Clone, Copy, Debug)]
struct Units<U> {
    count: u32,
    unit: U,
}

/// Units of an erase type's typical time (DWORD 10).
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "the whole code table, for further parts")]
enum EraseUnits {
    Ms1 = 0,
    Ms16 = 1,
    Ms128 = 2,
    S1 = 3,
}

/// Units of the whole chip's typical erase time (DWORD 11).
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "the whole code table, for further parts")]
enum ChipEraseUnits {
    Ms16 = 0,
    Ms256 = 1,
    S4 = 2,
    S64 = 3,
}

/// Units of the suspend and power-down latencies (DWORDs 12 and 14).
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "the whole code table, for further parts")]
enum LatencyUnits {
    Ns128 = 0,
    Us1 = 1,
    Us8 = 2,
    Us64 = 3,
}

/// One erase type (DWORDs 8 to 10, and its opcode in the 4-byte table).
#[derive(Clone, Copy, Debug)]
struct EraseType {
    opcode: u8,
    size_log2: u8,
    typical: Units<EraseUnits>,
    four_byte_opcode: Option<u8>,
}

/// One fast read (DWORDs 3, 4, 6 and 7).
#[derive(Clone, Copy, Debug)]
struct FastRead {
    opcode: u8,
    mode_clocks: u32,
    dummy_clocks: u32,
}

impl FastRead {
    const NONE: Self = Self { opcode: 0, mode_clocks: 0, dummy_clocks: 0 };

    /// Half a DWORD: opcode, mode clocks, dummy clocks.
    fn half(self) -> u32 {
        u32::from(self.opcode) << 8 | self.mode_clocks << 5 | self.dummy_clocks
    }
}

/// The contents of a part's SFDP block.
#[derive(Clone, Debug)]
pub(super) struct Sfdp {
    /// Minor revision of the header and the basic table.
    minor_revision: u8,
    size_bytes: usize,
    /// 4-byte addresses, hence the 4-byte table.
    four_byte_addresses: bool,
    page_size_log2: u32,
    erase_types: [Option<EraseType>; 4],
    /// The longest erase and program time as a multiple of the typical time; even.
    erase_max_factor: u32,
    program_max_factor: u32,
    page_program_64_us: u32,
    first_byte_program_8_us: u32,
    further_byte_program_1_us: u32,
    chip_erase: Units<ChipEraseUnits>,
    double_transfer_rate: bool,
    read_1_1_2: FastRead,
    read_1_2_2: FastRead,
    read_1_1_4: FastRead,
    read_1_4_4: FastRead,
    read_2_2_2: Option<FastRead>,
    read_4_4_4: Option<FastRead>,
    suspend: Suspend,
    power_down: PowerDown,
    quad: Quad,
    /// DWORD 16: how to enter and leave 4-byte mode, reset, and write enable for status register 1.
    enter_four_byte: u32,
    exit_four_byte: u32,
    soft_reset: u32,
    status_1_write_enable: u32,
    /// DWORD 1 of the 4-byte table without the erase types: reads and page programs.
    four_byte_reads_and_programs: u32,
}

/// DWORDs 12 and 13.
#[derive(Clone, Copy, Debug)]
struct Suspend {
    prohibited_in_program: u32,
    prohibited_in_erase: u32,
    program_resume_to_suspend_64_us: u32,
    program_latency: Units<LatencyUnits>,
    erase_resume_to_suspend_64_us: u32,
    erase_latency: Units<LatencyUnits>,
    suspend_opcode: u8,
    resume_opcode: u8,
}

/// DWORD 14.
#[derive(Clone, Copy, Debug)]
struct PowerDown {
    enter_opcode: u8,
    exit_opcode: u8,
    exit_delay: Units<LatencyUnits>,
}

/// DWORD 15.
#[derive(Clone, Copy, Debug)]
struct Quad {
    enable_requirement: u32,
    entry_0_4_4: u32,
    exit_0_4_4: u32,
    enable_4_4_4: u32,
    disable_4_4_4: u32,
}

/// The answer of the W25Q JV family for a part of `size_bytes`. The values were read from a
/// W25Q512JV; the 32 MiB part differs only in density.
pub(super) fn w25q_jv(size_bytes: usize) -> Sfdp {
    let read = |opcode, mode_clocks, dummy_clocks| FastRead { opcode, mode_clocks, dummy_clocks };
    let erase = |opcode, size_log2, count, unit, four_byte_opcode| {
        Some(EraseType { opcode, size_log2, typical: Units { count, unit }, four_byte_opcode })
    };
    let us = |count| Units { count, unit: LatencyUnits::Us1 };
    Sfdp {
        minor_revision: 6, // JESD216B.
        size_bytes,
        four_byte_addresses: true,
        page_size_log2: 8,
        erase_types: [
            erase(0x20, 12, 4, EraseUnits::Ms16, Some(0x21)),
            erase(0x52, 15, 1, EraseUnits::Ms128, None),
            erase(0xd8, 16, 10, EraseUnits::Ms16, Some(0xdc)),
            None,
        ],
        erase_max_factor: 14,
        program_max_factor: 6,
        page_program_64_us: 11,
        first_byte_program_8_us: 4,
        further_byte_program_1_us: 3,
        chip_erase: Units { count: 3, unit: ChipEraseUnits::S64 },
        double_transfer_rate: true,
        read_1_1_2: read(0x3b, 0, 8),
        read_1_2_2: read(0xbb, 2, 2),
        read_1_1_4: read(0x6b, 0, 8),
        read_1_4_4: read(0xeb, 2, 4),
        read_2_2_2: None,
        read_4_4_4: Some(read(0xeb, 2, 0)),
        suspend: Suspend {
            prohibited_in_program: 0b1001,
            prohibited_in_erase: 0b1110,
            program_resume_to_suspend_64_us: 2,
            program_latency: us(20),
            erase_resume_to_suspend_64_us: 8,
            erase_latency: us(20),
            suspend_opcode: 0x75,
            resume_opcode: 0x7a,
        },
        power_down: PowerDown { enter_opcode: 0xb9, exit_opcode: 0xab, exit_delay: us(3) },
        quad: Quad {
            // QE is bit 1 of status register 2. A WRSR with one byte does not change it.
            enable_requirement: 0b100,
            entry_0_4_4: 0b1101,
            exit_0_4_4: 0b11_1101,
            enable_4_4_4: 0b1_0001,
            disable_4_4_4: 0b1001,
        },
        // B7h, an extended address register, dedicated 4-byte opcodes.
        enter_four_byte: 1 << 0 | 1 << 2 | 1 << 5,
        // E9h, the extended address register, hardware and software reset, power cycle.
        exit_four_byte: 1 << 0 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 7,
        // 66h then 99h; leave 0-4-4 mode first.
        soft_reset: 1 << 4 | 1 << 5,
        // Non-volatile with 06h, volatile with 50h.
        status_1_write_enable: 1 << 0 | 1 << 3,
        // Bits 0 to 5: reads 13h, 0Ch, 3Ch, BCh, 6Ch, ECh; bits 6 and 7: programs 12h, 34h.
        four_byte_reads_and_programs: 0xff,
    }
}

/// The answer of a W25Q32JV. Its DWORDs 1 to 9 were read from a chip. The rest are the values that
/// are equal on the family's 8 and 16 MiB parts, with the datasheet's tCE rounded up to its unit,
/// as on those parts.
pub(super) fn w25q32jv(size_bytes: usize) -> Sfdp {
    Sfdp {
        minor_revision: 5, // JESD216A.
        four_byte_addresses: false,
        chip_erase: Units { count: 3, unit: ChipEraseUnits::S4 },
        enter_four_byte: 0,
        // Hardware and software reset, power cycle.
        exit_four_byte: 1 << 5 | 1 << 6 | 1 << 7,
        ..w25q_jv(size_bytes)
    }
}

/// Bytes in hexadecimal at their places, everything between them FFh. Characters other than hex digits
/// are skipped.
pub(super) fn placed(pieces: &[(usize, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &(at, hex) in pieces {
        let digits: Vec<u8> =
            hex.chars().filter_map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        let end = at + digits.len() / 2;
        if bytes.len() < end {
            bytes.resize(end, 0xff);
        }
        for (slot, pair) in bytes[at..].iter_mut().zip(digits.chunks_exact(2)) {
            *slot = pair[0] << 4 | pair[1];
        }
    }
    bytes
}

impl Sfdp {
    /// The whole block, as read by 5Ah.
    pub(super) fn build(&self) -> Vec<u8> {
        let mut block = vec![0xff; LENGTH];
        let basic = self.basic_table();
        let four_byte = self.four_byte_table();
        let put = |block: &mut [u8], at: usize, dwords: &[u32]| {
            for (slot, dword) in block[at..].chunks_exact_mut(4).zip(dwords) {
                slot.copy_from_slice(&dword.to_le_bytes());
            }
        };
        let minor = self.minor_revision;
        // The seventh byte is the number of parameter headers less one.
        let further = u8::from(self.four_byte_addresses);
        block[..8].copy_from_slice(&[b'S', b'F', b'D', b'P', minor, 1, further, 0xff]);
        block[8..16].copy_from_slice(&parameter_header(0xff00, [minor, 1], basic.len(), BASIC_AT));
        put(&mut block, BASIC_AT, &basic);
        if self.four_byte_addresses {
            let header = parameter_header(0xff84, [0, 1], four_byte.len(), FOUR_BYTE_AT);
            block[16..24].copy_from_slice(&header);
            put(&mut block, FOUR_BYTE_AT, &four_byte);
        }
        block
    }

    fn basic_table(&self) -> [u32; 16] {
        let bit = |set: bool, at: u32| u32::from(set) << at;
        let smallest = self.erase_types[0];
        let erases = self.erase_types.map(|erase| {
            erase.map_or(0, |erase| u32::from(erase.opcode) << 8 | u32::from(erase.size_log2))
        });
        let times = self.erase_types.map(|erase| {
            erase.map_or(0, |EraseType { typical, .. }| {
                (typical.unit as u32) << 5 | (typical.count - 1)
            })
        });
        let latency = |time: Units<LatencyUnits>| (time.unit as u32) << 5 | (time.count - 1);
        let suspend = &self.suspend;
        let power_down = &self.power_down;
        let quad = &self.quad;
        [
            // 1: 4 KiB erase everywhere, 64-byte write granularity or more, non-volatile
            // protection bits, 3- or 3- and 4-byte addresses, every fast read; ones where reserved.
            0xff80_00e0
                | 0b01
                | 1 << 2
                | smallest.map_or(0xff, |erase| u32::from(erase.opcode)) << 8
                | 1 << 16
                | bit(self.four_byte_addresses, 17)
                | bit(self.double_transfer_rate, 19)
                | 0b111 << 20,
            // 2: the number of the last bit.
            u32::try_from(self.size_bytes as u64 * 8 - 1).unwrap_or(u32::MAX),
            // 3 and 4: fast reads.
            self.read_1_1_4.half() << 16 | self.read_1_4_4.half(),
            self.read_1_2_2.half() << 16 | self.read_1_1_2.half(),
            // 5 to 7: reads with the opcode on several lines; ones where reserved.
            0xffff_ffee | bit(self.read_2_2_2.is_some(), 0) | bit(self.read_4_4_4.is_some(), 4),
            self.read_2_2_2.unwrap_or(FastRead::NONE).half() << 16 | 0xffff,
            self.read_4_4_4.unwrap_or(FastRead::NONE).half() << 16 | 0xffff,
            // 8 to 10: erase types and their times.
            erases[1] << 16 | erases[0],
            erases[3] << 16 | erases[2],
            times[3] << 25
                | times[2] << 18
                | times[1] << 11
                | times[0] << 4
                | (self.erase_max_factor / 2 - 1),
            // 11: chip erase, program times, page size.
            1 << 31
                | (self.chip_erase.unit as u32) << 29
                | (self.chip_erase.count - 1) << 24
                | (self.further_byte_program_1_us - 1) << 19
                | 1 << 18
                | (self.first_byte_program_8_us - 1) << 14
                | 1 << 13
                | (self.page_program_64_us - 1) << 8
                | self.page_size_log2 << 4
                | (self.program_max_factor / 2 - 1),
            // 12 and 13: suspend and resume.
            latency(suspend.erase_latency) << 24
                | (suspend.erase_resume_to_suspend_64_us - 1) << 20
                | latency(suspend.program_latency) << 13
                | (suspend.program_resume_to_suspend_64_us - 1) << 9
                | 1 << 8
                | suspend.prohibited_in_erase << 4
                | suspend.prohibited_in_program,
            u32::from_be_bytes([
                suspend.suspend_opcode,
                suspend.resume_opcode,
                suspend.suspend_opcode,
                suspend.resume_opcode,
            ]),
            // 14: power-down, and polling BUSY with 05h.
            u32::from(power_down.enter_opcode) << 23
                | u32::from(power_down.exit_opcode) << 15
                | latency(power_down.exit_delay) << 8
                | 0xf0
                | 1 << 2
                | 0b11,
            // 15: quad mode; HOLD# is not disabled by a configuration bit.
            0xff << 24
                | quad.enable_requirement << 20
                | quad.entry_0_4_4 << 16
                | quad.exit_0_4_4 << 10
                | 1 << 9
                | quad.enable_4_4_4 << 4
                | quad.disable_4_4_4,
            // 16: 4-byte mode, reset, write enable.
            1 << 31
                | self.enter_four_byte << 24
                | 0b11 << 22
                | self.exit_four_byte << 14
                | self.soft_reset << 8
                | 0b1110_0000
                | self.status_1_write_enable,
        ]
    }

    fn four_byte_table(&self) -> [u32; 2] {
        let opcode =
            |index: usize| self.erase_types[index].and_then(|erase| erase.four_byte_opcode);
        let supported =
            (0..4).fold(0, |bits, index| bits | u32::from(opcode(index).is_some()) << (9 + index));
        let opcodes = [0, 1, 2, 3].map(|index| opcode(index).unwrap_or(0xff));
        [0xfff0_0000 | supported | self.four_byte_reads_and_programs, u32::from_le_bytes(opcodes)]
    }
}

/// A parameter header: id (low byte first in the header, high byte last), minor and major revision,
/// length in DWORDs, and the table's address.
fn parameter_header(id: u16, revision: [u8; 2], dwords: usize, at: usize) -> [u8; 8] {
    let [id_high, id_low] = id.to_be_bytes();
    let [.., at_2, at_1, at_0] = (at as u32).to_be_bytes();
    [id_low, revision[0], revision[1], dwords as u8, at_0, at_1, at_2, id_high]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            hex.chars().filter_map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    const HEADERS: &str = "53464450060101ff 00060110800000ff 84000102d00000ff";
    const FOUR_BYTE: &str = "ff0af0ff21ffdcff";

    #[test]
    fn sixty_four_mib_is_what_a_w25q512jv_answers() {
        let block = w25q_jv(64 << 20).build();
        assert_eq!(block.len(), 256);
        assert_eq!(block[..24], bytes(HEADERS));
        assert_eq!(
            block[0x80..0xc0],
            bytes(
                "e520fbffffffff1f44eb086b083b42bbfeffffffffff0000ffff40eb0c200f52\
                 10d800003602a60082ea14e2e96376337a757a75f7a2d55c19f74dffe970f9a5"
            )
        );
        assert_eq!(block[0xd0..0xd8], bytes(FOUR_BYTE));
        let between = [24..0x80, 0xc0..0xd0, 0xd8..0x100];
        assert!(between.into_iter().all(|gap| block[gap].iter().all(|&b| b == 0xff)));
    }

    #[test]
    fn thirty_two_mib_differs_in_density_alone() {
        let large = w25q_jv(64 << 20).build();
        let mut small = w25q_jv(32 << 20).build();
        assert_eq!(small[0x84..0x88], [0xff, 0xff, 0xff, 0x0f]);
        small[0x84..0x88].copy_from_slice(&large[0x84..0x88]);
        assert_eq!(small, large);
    }

    /// The family's 8 and 16 MiB parts differ only in density and chip erase time. The W25Q32JV is
    /// assumed to continue that series.
    #[test]
    fn without_four_byte_addresses_it_is_what_the_smaller_parts_answer() {
        let rows = [(4, "01", w25q32jv(4 << 20), "c2"), (8, "03", eight_mib(), "c4")];
        for (mib, density, sfdp, erase) in rows {
            let block = sfdp.build();
            assert_eq!(block[..16], bytes("53464450050100ff 00050110800000ff"), "{mib} MiB");
            let expected = format!(
                "e520f9ffffffff{density}44eb086b083b42bbfeffffffffff0000ffff40eb0c200f52\
                 10d800003602a60082ea14{erase}e96376337a757a75f7a2d55c19f74dffe930f880"
            );
            assert_eq!(block[0x80..0xc0], bytes(&expected), "{mib} MiB");
            let between = [16..0x80, 0xc0..0x100];
            assert!(between.into_iter().all(|gap| block[gap].iter().all(|&b| b == 0xff)));
        }
    }

    /// A W25Q64JV: tCE is 20 s.
    fn eight_mib() -> Sfdp {
        let chip_erase = Units { count: 5, unit: ChipEraseUnits::S4 };
        Sfdp { size_bytes: 8 << 20, chip_erase, ..w25q32jv(4 << 20) }
    }
}
