//! SST's part: SST25VF016B.
//!
//! Read first: SST25VF016B datasheet (SST, S71271), the tables of the software status register, its
//! block protection, the device operation instructions and the AC operating characteristics.

use super::*;

/// SST25VF016B, device operation instructions, without the hardware busy output (70h,
/// 80h); the limit of READ is from the same table.
static SST25VF016B_COMMANDS: &[Command] = &[
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
    command(0x20, Op::Erase(AddressWidth::Three, EraseUnit::Sector4K)),
    command(0x52, Op::Erase(AddressWidth::Three, EraseUnit::Block32K)),
    command(0xd8, Op::Erase(AddressWidth::Three, EraseUnit::Block64K)),
    command(0x60, Op::ChipErase),
    command(0xc7, Op::ChipErase),
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
            commands: SST25VF016B_COMMANDS,
            status: StatusLayout {
                writable_1: 0xbc, // Software status register: BPL, BP3..BP0.
                writable_2: 0,
                one_time_2: 0,
                // Its column "default at power-up": BP2, BP1 and BP0 set, BP3 and BPL clear.
                factory: [0x1c, 0, 0],
                volatile_1: true,
                aai_mode: 0x40, // Software status register: bit 6.
                four_byte_mode: 0,
                errors: None,
            },
            protection: Protection::Top,
            sfdp: None,
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
