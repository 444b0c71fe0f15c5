//! A node of the kernel's: its settings as they are found.
//!
//! # Safety
//! Each ioctl of `linux/spi/spidev.h` is given the type that it writes; on another file it fails with
//! `ENOTTY`, or, if the number means something else there, writes no more than its number says.
#![allow(unsafe_code, reason = "ioctl, which writes to an address")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use libc::{Ioctl, c_int};

/// `_IOR('k', number, type)` with a type of that many bytes.
const fn read_number(number: u32, bytes: u32) -> u32 {
    2 << 30 | bytes << 16 | 0x6b << 8 | number
}

const RD_MODE: u32 = read_number(1, 1);
const RD_BITS_PER_WORD: u32 = read_number(3, 1);
const RD_MAX_SPEED_HZ: u32 = read_number(4, 4);

/// A node's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelNode {
    pub(super) mode: u8,
    pub(super) bits_per_word: u8,
    pub(super) max_speed_hz: u32,
}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl KernelNode {
    /// Asks the kernel.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let (mut mode, mut bits_per_word, mut max_speed_hz) = (0_u8, 0_u8, 0_u32);
        let fd = file.as_raw_fd();
        // SAFETY: a byte to write (module, Safety).
        checked(unsafe { libc::ioctl(fd, RD_MODE as Ioctl, &raw mut mode) })?;
        // SAFETY: the pointer leads to a byte to write.
        checked(unsafe { libc::ioctl(fd, RD_BITS_PER_WORD as Ioctl, &raw mut bits_per_word) })?;
        // SAFETY: the pointer leads to four bytes to write.
        checked(unsafe { libc::ioctl(fd, RD_MAX_SPEED_HZ as Ioctl, &raw mut max_speed_hz) })?;
        Ok(Self { mode, bits_per_word, max_speed_hz })
    }
}
