//! The ioctls of `/dev/barewireN`: `kernel/module/barewire_door.h`.
//!
//! # Safety
//! The kernel's module fills at most `size` bytes of the structure, and the other calls have no memory. Another device refuses
//! the numbers (`ENOTTY`), or takes them for its own: files are those that `map::door` opened below `/dev/barewire`.
#![allow(unsafe_code, reason = "ioctls, which are whatever the device makes of them")]

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, NoArg, Opcode, Updater, ioctl, opcode};

/// The group of the numbers.
const GROUP: u8 = 0xe7;
const INFO: Opcode = opcode::none(GROUP, 0);
const SHARE: Opcode = opcode::none(GROUP, 1);
const SELECT: Opcode = opcode::none(GROUP, 2);
/// In the argument of a select: selected, not deselected.
const ACTIVE: usize = 0x100;

/// `struct barewire_door_line`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawLine {
    /// 0 absent, 1 native, 2 a GPIO.
    pub(crate) kind: u8,
    pub(crate) channel: u8,
    pub(crate) active_high: u8,
    pub(crate) reserved: u8,
}

/// `struct barewire_door_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawInfo {
    pub(crate) size: u32,
    pub(crate) version: u32,
    pub(crate) block: [u8; 16],
    pub(crate) address: u64,
    pub(crate) length: u32,
    pub(crate) offset: u32,
    pub(crate) reference_hz: u32,
    pub(crate) flags: u32,
    pub(crate) users: u32,
    pub(crate) lines: u32,
    pub(crate) line: [RawLine; 4],
}

const SIZE: u32 = size_of::<RawInfo>() as u32;
const _: () = assert!(SIZE == 72, "as the kernel has it");

/// What the device says of itself. `EPROTO` if it says less than its first version.
pub(crate) fn info(file: impl AsFd) -> Result<RawInfo, Errno> {
    let mut info = RawInfo { size: SIZE, ..RawInfo::default() };
    // SAFETY: module, Safety.
    let what = unsafe { Updater::<INFO, RawInfo>::new(&mut info) };
    // SAFETY: module, Safety.
    unsafe { ioctl(file, what) }?;
    if info.size == SIZE && info.version > 0 { Ok(info) } else { Err(Errno::PROTO) }
}

/// Shares the device with programs that ask for the same.
pub(crate) fn share(file: impl AsFd) -> Result<(), Errno> {
    // SAFETY: module, Safety.
    let what = unsafe { NoArg::<SHARE>::new() };
    // SAFETY: module, Safety.
    unsafe { ioctl(file, what) }
}

/// Selects the chip of a GPIO line, or deselects it.
#[inline]
pub(crate) fn select(file: impl AsFd, line: u8, active: bool) -> Result<(), Errno> {
    let line = usize::from(line) | if active { ACTIVE } else { 0 };
    // SAFETY: module, Safety.
    let what = unsafe { IntegerSetter::<SELECT>::new_usize(line) };
    // SAFETY: module, Safety.
    unsafe { ioctl(file, what) }
}
