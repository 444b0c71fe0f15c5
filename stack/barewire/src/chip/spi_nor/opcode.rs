//! SPI NOR opcodes, by the names datasheets and JESD216 give them.

/// Read the JEDEC id: manufacturer, type, capacity.
pub(super) const RDID: u8 = 0x9f;
/// Read the discoverable parameters: 3 address bytes and 8 dummy clocks.
pub(super) const RDSFDP: u8 = 0x5a;
/// Read status register 1.
pub(super) const RDSR: u8 = 0x05;
/// Read status register 2 (Winbond), the configuration register (Spansion). Macronix and Micron enter
/// quad mode by it.
pub(super) const RDSR2: u8 = 0x35;
/// Write status register 1, or 1 and 2.
pub(super) const WRSR: u8 = 0x01;
/// Write status register 2 alone.
pub(super) const WRSR2: u8 = 0x31;
/// Write enable for a volatile status register.
pub(super) const EWSR: u8 = 0x50;
/// Set the write enable latch.
pub(super) const WREN: u8 = 0x06;
/// Clear the write enable latch; ends AAI programming.
pub(super) const WRDI: u8 = 0x04;
/// Read, without dummy clocks.
pub(super) const READ: u8 = 0x03;
/// Read, with 8 dummy clocks and so at a faster clock.
pub(super) const FAST_READ: u8 = 0x0b;
/// READ with a 4-byte address.
pub(super) const READ_4B: u8 = 0x13;
/// FAST_READ with a 4-byte address.
pub(super) const FAST_READ_4B: u8 = 0x0c;
/// Page program; on SST parts byte program.
pub(super) const PP: u8 = 0x02;
/// Page program with a 4-byte address.
pub(super) const PP_4B: u8 = 0x12;
/// Auto address increment word program (SST).
pub(super) const AAI_WP: u8 = 0xad;
/// Erase the whole chip.
pub(super) const CE: u8 = 0xc7;
/// Enter 4-byte address mode.
pub(super) const EN4B: u8 = 0xb7;
/// Leave 4-byte address mode.
pub(super) const EX4B: u8 = 0xe9;
/// Leave 4-byte address mode (Infineon).
pub(super) const EX4B_INFINEON: u8 = 0xb8;
/// Write the bank register, whose bit 7 is 4-byte address mode.
pub(super) const WRBR: u8 = 0x17;
/// Write the extended address register: address bits 31 to 24 of 3-byte commands.
pub(super) const WREAR: u8 = 0xc5;
/// Enable a reset, and reset.
pub(super) const RSTEN: u8 = 0x66;
/// The reset itself.
pub(super) const RST: u8 = 0x99;
/// Reset in one byte (Spansion).
pub(super) const RESET: u8 = 0xf0;
/// Clear the error bits of the status register (Spansion).
pub(super) const CLSR: u8 = 0x30;
/// The same (Infineon's later families).
pub(super) const CLPEF: u8 = 0x82;
/// Read the flag status register (Micron).
pub(super) const RDFSR: u8 = 0x70;
/// Clear the flag status register (Micron).
pub(super) const CLFSR: u8 = 0x50;
/// Read the block protection register (SST26).
pub(super) const RBPR: u8 = 0x72;
/// Open all blocks of the block protection register (SST26).
pub(super) const ULBPR: u8 = 0x98;
