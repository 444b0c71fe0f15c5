//! SST's (Microchip's) parts: SST25VF016B and SST26VF064B.
//!
//! Read first: SST25VF016B datasheet (SST, S71271), the tables of the software status register, its
//! block protection, the device operation instructions and the AC operating characteristics. SST26VF064B datasheet
//! (Microchip, DS20005119): memory organization, status and configuration register, block protection register,
//! instructions.

use super::*;

/// SST25VF016B, device operation instructions, without the hardware busy output (70h,
/// 80h); the limit of READ is from the same table.
const SST25VF016B_COMMANDS: &[Command] = &[
    command(0x06, Op::WriteEnable),
    command(0x04, Op::WriteDisable),
    command(0x05, Op::ReadStatus(StatusRegister::One)),
    command(0x50, Op::EnableWriteStatus),
    command(0x01, Op::WriteStatus),
    command(0x9f, Op::ReadJedecId),
    command(0x90, Op::ReadId),
    command(0xab, Op::ReadId),
    slow_read(0x03, AddressWidth::Three, 25_000_000),
    fast_read(0x0b, AddressWidth::Three),
    command(0x02, Op::ByteProgram),
    command(0xad, Op::AaiWordProgram),
    command(0x20, Op::Erase(AddressWidth::Three, EraseUnit::Block(4 * KIB))),
    command(0x52, Op::Erase(AddressWidth::Three, EraseUnit::Block(32 * KIB))),
    command(0xd8, Op::Erase(AddressWidth::Three, EraseUnit::Block(64 * KIB))),
    command(0x60, Op::ChipErase),
    command(0xc7, Op::ChipErase),
];

/// SST26VF064B, what only this family has. There is no 52h and no 60h.
const SST26_COMMANDS: &[Command] = &[
    erase(0x20, AddressWidth::Three, 4 * KIB),
    command(0xd8, Op::Erase(AddressWidth::Three, EraseUnit::OfMap)),
    command(0xc7, Op::ChipErase),
    command(0x72, Op::ReadBlockProtection),
    command(0x42, Op::WriteBlockProtection),
    command(0x98, Op::UnlockBlocks),
];

impl Part {
    /// SST SST25VF016B: 2 MiB, byte and AAI word programming, protected at power-up, no SFDP.
    #[must_use]
    pub fn sst25vf016b() -> Self {
        // Features: 18 ms typical; AC operating characteristics: TSE, TBE.
        let erase = Span::new(18 * PS_PER_MS, 25 * PS_PER_MS);
        Self {
            name: "SST25VF016B",
            size: 2 * MIB, // Features: 16 Mbit.
            page_size: 1,  // Device operation instructions: 02h carries one byte.
            // JEDEC Read-ID data and Read-ID data: manufacturer, type, capacity; device id.
            jedec_id: [0xbf, 0x25, 0x41],
            device_id: 0x41,
            unique_id: None,
            limits: WireLimits {
                modes: 0b1001,            // Features: modes 0 and 3.
                cs_setup_ns: 5,           // AC operating characteristics, 50 MHz: TCES.
                cs_hold_ns: 5,            // TCEH.
                cs_inactive_ns: 50,       // TCPH.
                max_clock_hz: 50_000_000, // FCLK.
            },
            times: Times {
                // Features: 7 us typical; AC operating characteristics: TBP.
                program: Span::new(7 * PS_PER_US, 10 * PS_PER_US),
                sector_erase: erase,
                block32_erase: erase,
                block64_erase: erase,
                block256_erase: Span::ZERO,
                // Features: 35 ms typical; AC operating characteristics: TSCE.
                chip_erase: Span::new(35 * PS_PER_MS, 50 * PS_PER_MS),
                // WRSR takes effect when CE# rises; no busy time is given.
                write_status: Span::ZERO,
                // No such commands.
                reset: Span::ZERO,
                release_power_down: Span::ZERO,
            },
            // Figure "JEDEC Read-ID sequence": the stream continues until CE# rises.
            jedec_id_repeats: true,
            jedec_id_tail: &[],
            source: "SST25VF016B datasheet, S71271; no SFDP",
            beyond_sfdp: "programs bytes or words; protected at power-up",
            commands: &[SST25VF016B_COMMANDS],
            status: StatusLayout {
                writable: [0xbc, 0, 0], // Software status register: BPL, BP3..BP0.
                one_time_2: 0,
                write_bytes: 1,
                one_byte_clears_2: false,
                busy: 1 << 0,
                // Its column "default at power-up": BP2, BP1 and BP0 set, BP3 and BPL clear.
                factory: [0x1c, 0, 0],
                volatile_1: true,
                aai_mode: 0x40, // Software status register: bit 6.
                four_byte_mode: 0,
                refusal: Refusal::ClearsWel,
            },
            // BP2..BP0 from the top; BP3 is without effect.
            protection: Protection::new(&[2, 3, 4], Scale::Blocks),
            ..Self::plain("SST25VF016B", [0xbf, 0x25, 0x41], 2 * MIB)
        }
    }

    /// Microchip SST26VF064B: 8 MiB in blocks of 8, 32 and 64 KiB, all erased by D8h; the address decides the size. Locked
    /// at power-up until 98h.
    ///
    /// The datasheet says that a change of a locked block is ignored. The datasheet's list of events that clear WEL
    /// does not name this one, so WEL stays set.
    #[must_use]
    pub fn sst26vf064b() -> Self {
        let size = 8 * MIB;
        // Features: 18 ms typical, 25 ms at most, for sectors and blocks.
        let erase = Span::new(18 * PS_PER_MS, 25 * PS_PER_MS);
        let plain = Self::plain("SST26VF064B", [0xbf, 0x26, 0x43], size);
        Self {
            source: "SFDP, erase sizes and lock: openFPGALoader PR 691 and issue 566; SPIMemory issue 164; \
                     datasheet DS20005119",
            beyond_sfdp: "locked at power-up until 98h",
            commands: &[COMMON, READ_PROGRAM, READ_STATUS_2, RESET, SST26_COMMANDS],
            times: Times {
                program: Span::new(1_000 * PS_PER_US, 1_500 * PS_PER_US), // TPP
                sector_erase: erase,
                block32_erase: erase,
                block64_erase: erase,
                chip_erase: Span::new(35 * PS_PER_MS, 50 * PS_PER_MS), // Features
                write_status: Span::new(10 * PS_PER_MS, 25 * PS_PER_MS), // Configuration register, TWPEN
                ..plain.times
            },
            status: StatusLayout {
                // No bit of the status register is writable; of the configuration register WPEN and IOC are.
                writable: [0, 0x82, 0],
                write_bytes: 2,
                busy: 0x81, // Status register: BUSY, at bits 0 and 7.
                ..plain.status
            },
            map: EraseMap::Runs(&[
                (4, 8 * KIB),
                (1, 32 * KIB),
                (126, 64 * KIB),
                (1, 32 * KIB),
                (4, 8 * KIB),
            ]),
            // Block protection register: after power-up every write lock is set, no read lock.
            locks: &[
                0x55, 0x55, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                0xff, 0xff, 0xff, 0xff,
            ],
            sfdp: SfdpBytes::Pieces(&[
                (0x00, "53464450060102ff 00060110300000ff 81000106000100ff bf00011800020001"),
                (
                    0x30,
                    "fd20f1ff ffffff03 44eb086b 083b80bb feffffff ffff00ff ffff440b 0c200dd8 \
                     0fd810d8 20914824 806f1d81 ed0f7738 30b030b0 f7ffffff 29c25cff f030c080",
                ),
                (0x100, "ff0004ff f37f0000 f57f0000 f9ff7d00 f57f0000 f37f0000"),
            ]),
            ..plain
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sst25vf016b_protection_follows_the_datasheet_table() {
        let part = Part::sst25vf016b();
        // Block protection table: BP2..BP0 and the first protected address.
        let firsts = [0x20_0000, 0x1f_0000, 0x1e_0000, 0x1c_0000, 0x18_0000, 0x10_0000, 0, 0];
        for (bp, first) in firsts.into_iter().enumerate() {
            for bp3 in [0, 0x20] {
                let range = part.protected((bp as u8) << 2 | bp3, 0);
                assert_eq!(range, first..0x20_0000, "BP {bp:03b}");
            }
        }
    }
}
