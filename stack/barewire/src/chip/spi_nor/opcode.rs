//! SPI NOR opcodes, by the names datasheets and JESD216 give them.

/// Read the JEDEC id: manufacturer, type, capacity.
pub(super) const RDID: u8 = 0x9f;
/// Read the discoverable parameters: 3 address bytes and 8 dummy clocks.
pub(super) const RDSFDP: u8 = 0x5a;
/// Read status register 1.
pub(super) const RDSR: u8 = 0x05;
/// Read status register 2 (Winbond), the configuration register (Spansion).
pub(super) const RDSR2: u8 = 0x35;
/// Write status register 1.
pub(super) const WRSR: u8 = 0x01;
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
