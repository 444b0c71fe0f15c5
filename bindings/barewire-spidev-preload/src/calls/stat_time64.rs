//! `struct stat` of 32-bit Arm with 64-bit time, which `libc` does not declare.
//!
//! Read first: the GNU C library's manual, on `_TIME_BITS`. Offsets: measured with `offsetof` on
//! armhf, C library 2.36.

/// The layout in programs built with `_TIME_BITS=64`. Only the fields that differ for a node have
/// names.
#[repr(C)]
pub(super) struct StatTime64 {
    device_and_inode: [u64; 2],
    pub(super) st_mode: u32,
    links_and_owners: [u32; 3],
    pub(super) st_rdev: u64,
    pub(super) st_size: i64,
    block_size: i32,
    pub(super) st_blocks: i64,
    times: [u64; 6],
}

const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(offset_of!(StatTime64, st_mode) == 16);
    assert!(offset_of!(StatTime64, st_rdev) == 32);
    assert!(offset_of!(StatTime64, st_size) == 40);
    assert!(offset_of!(StatTime64, st_blocks) == 56);
    assert!(size_of::<StatTime64>() == 112);
};
