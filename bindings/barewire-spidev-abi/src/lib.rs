//! The interface of Linux's spidev, served by a barewire bus: what a program that was written for
//! `/dev/spidevB.C` sees.
//!
//! Read first: `include/uapi/linux/spi/spidev.h` and `Documentation/spi/spidev.rst` of Linux 6.1. The rules
//! and the order of the checks are those of that kernel.
//!
//! # How it works
//! A program's calls are taken by a library that is loaded into it, and reach a server by shared memory or a socket.
//!
//! * [`Request`]: an ioctl's number, decoded.
//! * [`IocTransfer`]: `struct spi_ioc_transfer`, and [`Sums`], the check against `bufsiz`. The library
//!   uses these two to copy what a message sends.
//! * [`Chip`]: one node: its settings, and messages run on a [`Bus`](barewire::bus::Bus). The server has one
//!   for each mapped node.
//! * [`protocol`]: what library and server send each other.
//! * [`slots`]: memory that a process shares with the server, for requests without a connection.
//! * [`gpio`]: the GPIO character device, beside spidev.
//! * [`direct`]: the data by which the library runs messages on a mapped controller without the server.
//! * [`tree`]: the files beside the node that programs look at, under `/dev` and `/sys`.
//!
//! # Not supported
//! * Dual, quad and octal transfers: their mode bits are dropped, as by a kernel whose controller has
//!   none. `SPI_3WIRE`, `SPI_READY` and `SPI_RX_CPHA_FLIP` are refused with `EINVAL`, for the same reason.
//! * Words of other lengths than the controller has: `EINVAL`.
#![cfg(target_os = "linux")]

mod chip;
mod chip_name;
pub mod direct;
mod errno;
pub mod gpio;
pub mod protocol;
mod request;
mod settings;
pub mod slots;
mod transfer;
pub mod tree;

pub use chip::{AbiError, Chip, Setup};
pub use request::{Request, Setting};
pub use rustix::io::Errno;
pub use settings::NodeSettings;
pub use transfer::{BUFSIZ, IocTransfer, Sums, TRANSFER_BYTES};

/// The bus and the chip select of a node's name: `/dev/spidevB.C`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeName {
    /// The number of the bus, `B`.
    pub bus: u16,
    /// The chip select, `C`.
    pub chip_select: u8,
}

impl NodeName {
    /// Reads `/dev/spidevB.C`; `None` if `path` is another.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let (bus, chip_select) = path.strip_prefix("/dev/spidev")?.split_once('.')?;
        // Only the number as the kernel writes it: no sign, no leading zero.
        let plain = |text: &str| text == "0" || text.starts_with(|c| ('1'..='9').contains(&c));
        if !plain(bus) || !plain(chip_select) {
            return None;
        }
        Some(Self { bus: bus.parse().ok()?, chip_select: chip_select.parse().ok()? })
    }

    /// Bus and chip select as one number.
    #[must_use]
    pub fn number(self) -> u32 {
        u32::from(self.bus) << 8 | u32::from(self.chip_select)
    }

    /// The name with that [number](Self::number).
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        let bus = u16::try_from(number >> 8).ok()?;
        Some(Self { bus, chip_select: number.to_le_bytes()[0] })
    }

    /// The node's path.
    #[must_use]
    pub fn path(self) -> String {
        format!("/dev/spidev{}.{}", self.bus, self.chip_select)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_the_kernels_names() {
        for (path, expected) in [
            ("/dev/spidev0.0", Some((0, 0))),
            ("/dev/spidev32766.255", Some((32_766, 255))),
            ("/dev/spidev10.2", Some((10, 2))),
            ("/dev/spidev0.256", None),
            ("/dev/spidev65536.0", None),
            ("/dev/spidev00.0", None),
            ("/dev/spidev+1.0", None),
            ("/dev/spidev0.", None),
            ("/dev/spidev.0", None),
            ("/dev/spidev0", None),
            ("/dev/spidev0.0 ", None),
            ("spidev0.0", None),
            ("/dev/spi0.0", None),
        ] {
            let node = expected.map(|(bus, chip_select)| NodeName { bus, chip_select });
            assert_eq!(NodeName::parse(path), node, "{path}");
            assert!(node.is_none_or(|node| node.path() == path));
            assert_eq!(node.and_then(|node| NodeName::from_number(node.number())), node);
        }
    }
}
