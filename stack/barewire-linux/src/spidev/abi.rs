//! spidev's binary interface: `struct spi_ioc_transfer` byte for byte, and the ioctl numbers.
//!
//! Read first: `include/uapi/linux/spi/spidev.h` of the kernel, whose names these are. The
//! interface is identical on 32 and 64 bits: addresses always have 64 bits.

use rustix::ioctl::{Opcode, opcode};

/// Bytes of `struct spi_ioc_transfer`.
pub const TRANSFER_SIZE: usize = 32;

/// The most transfers of one `SPI_IOC_MESSAGE`: an ioctl's number has 14 bits for the size of its
/// argument, and 512 times 32 bytes do not fit.
pub const MESSAGE_TRANSFERS_MAX: usize = (1 << 14) / TRANSFER_SIZE - 1;

/// spidev's letter in ioctl numbers.
const SPI_IOC_MAGIC: u8 = b'k';

/// `SPI_IOC_RD_MODE`, which reads the low byte of the mode.
pub const SPI_IOC_RD_MODE: Opcode = opcode::read::<u8>(SPI_IOC_MAGIC, 1);
/// `SPI_IOC_WR_MODE`, which clears the dual and quad bits.
pub const SPI_IOC_WR_MODE: Opcode = opcode::write::<u8>(SPI_IOC_MAGIC, 1);
/// `SPI_IOC_RD_BITS_PER_WORD`.
pub const SPI_IOC_RD_BITS_PER_WORD: Opcode = opcode::read::<u8>(SPI_IOC_MAGIC, 3);
/// `SPI_IOC_WR_BITS_PER_WORD`.
pub const SPI_IOC_WR_BITS_PER_WORD: Opcode = opcode::write::<u8>(SPI_IOC_MAGIC, 3);
/// `SPI_IOC_RD_MAX_SPEED_HZ`.
pub const SPI_IOC_RD_MAX_SPEED_HZ: Opcode = opcode::read::<u32>(SPI_IOC_MAGIC, 4);
/// `SPI_IOC_WR_MAX_SPEED_HZ`.
pub const SPI_IOC_WR_MAX_SPEED_HZ: Opcode = opcode::write::<u32>(SPI_IOC_MAGIC, 4);
/// `SPI_IOC_RD_MODE32`.
pub const SPI_IOC_RD_MODE32: Opcode = opcode::read::<u32>(SPI_IOC_MAGIC, 5);
/// `SPI_IOC_WR_MODE32`.
pub const SPI_IOC_WR_MODE32: Opcode = opcode::write::<u32>(SPI_IOC_MAGIC, 5);

/// `SPI_IOC_MESSAGE(n)`: one message of `n` transfers. Above [`MESSAGE_TRANSFERS_MAX`] there is no
/// number; like the kernel's macro, this returns that of 0.
#[must_use]
pub const fn spi_ioc_message(n: usize) -> Opcode {
    let n = if n > MESSAGE_TRANSFERS_MAX { 0 } else { n };
    opcode::from_components(rustix::ioctl::Direction::Write, SPI_IOC_MAGIC, 0, n * TRANSFER_SIZE)
}

/// `struct spi_ioc_transfer`. Zero means "none" in the addresses and "the device's" elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpiIocTransfer {
    pub(crate) tx_buf: u64,
    pub(crate) rx_buf: u64,
    pub(crate) len: u32,
    pub(crate) speed_hz: u32,
    pub(crate) delay_usecs: u16,
    pub(crate) bits_per_word: u8,
    pub(crate) cs_change: u8,
    pub(crate) tx_nbits: u8,
    pub(crate) rx_nbits: u8,
    pub(crate) word_delay_usecs: u8,
}

impl SpiIocTransfer {
    /// The struct as the kernel reads it, in the CPU's byte order; the last byte is padding.
    pub(crate) fn encode(&self) -> [u8; TRANSFER_SIZE] {
        let mut bytes = [0; TRANSFER_SIZE];
        bytes[0..8].copy_from_slice(&self.tx_buf.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.rx_buf.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.len.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.speed_hz.to_ne_bytes());
        bytes[24..26].copy_from_slice(&self.delay_usecs.to_ne_bytes());
        bytes[26] = self.bits_per_word;
        bytes[27] = self.cs_change;
        bytes[28] = self.tx_nbits;
        bytes[29] = self.rx_nbits;
        bytes[30] = self.word_delay_usecs;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The architectures whose ioctl numbers are laid out in another way are not checked here.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm"))]
    #[test]
    fn ioctl_numbers_are_the_kernels() {
        assert_eq!(SPI_IOC_RD_MODE, 0x8001_6b01);
        assert_eq!(SPI_IOC_WR_MODE, 0x4001_6b01);
        assert_eq!(SPI_IOC_RD_BITS_PER_WORD, 0x8001_6b03);
        assert_eq!(SPI_IOC_WR_BITS_PER_WORD, 0x4001_6b03);
        assert_eq!(SPI_IOC_RD_MAX_SPEED_HZ, 0x8004_6b04);
        assert_eq!(SPI_IOC_WR_MAX_SPEED_HZ, 0x4004_6b04);
        assert_eq!(SPI_IOC_RD_MODE32, 0x8004_6b05);
        assert_eq!(SPI_IOC_WR_MODE32, 0x4004_6b05);
        assert_eq!(spi_ioc_message(0), 0x4000_6b00);
        assert_eq!(spi_ioc_message(1), 0x4020_6b00);
        assert_eq!(spi_ioc_message(2), 0x4040_6b00);
        assert_eq!(spi_ioc_message(511), 0x7fe0_6b00);
        assert_eq!(spi_ioc_message(512), 0x4000_6b00, "as the kernel's macro");
        assert_eq!(MESSAGE_TRANSFERS_MAX, 511);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn every_field_has_its_place() {
        let transfer = SpiIocTransfer {
            tx_buf: 0x0706_0504_0302_0100,
            rx_buf: 0x0f0e_0d0c_0b0a_0908,
            len: 0x1312_1110,
            speed_hz: 0x1716_1514,
            delay_usecs: 0x1918,
            bits_per_word: 0x1a,
            cs_change: 0x1b,
            tx_nbits: 0x1c,
            rx_nbits: 0x1d,
            word_delay_usecs: 0x1e,
        };
        let mut expected: [u8; 32] = std::array::from_fn(|index| index as u8);
        expected[31] = 0;
        assert_eq!(transfer.encode(), expected);
        assert_eq!(SpiIocTransfer::default().encode(), [0; 32]);
    }
}
