//! open, openat, fopen and their kin.

use core::ffi::{CStr, c_char, c_int};
use std::os::fd::IntoRawFd as _;

use barewire_spidev_abi::protocol::{Call, FileKind};
use rustix::io::Errno;

use super::{path_of, stream};
use crate::paths::{Substitute, behind_link, instead};
use crate::real::{call_real, set_errno, told};
use crate::{files, out_of_reach, server};

/// Opens a node or a GPIO chip as the kernel would with those flags.
fn open_node(call: Call, stands_for: &CStr, flags: c_int) -> Result<c_int, Errno> {
    if flags & libc::O_PATH != 0 {
        let file = rustix::fs::open(
            stands_for,
            rustix::fs::OFlags::from_bits_retain(flags.cast_unsigned()),
            rustix::fs::Mode::empty(),
        )?;
        return Ok(file.into_raw_fd());
    }
    if flags & libc::O_DIRECTORY != 0 {
        return Err(Errno::NOTDIR);
    }
    if flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL {
        return Err(Errno::EXIST);
    }
    let kind = if let Call::OpenChip(_) = call { FileKind::Chip } else { FileKind::Node };
    let (file, id) = server::open(call, kind, flags.cast_unsigned())?;
    if flags & libc::O_CLOEXEC == 0 {
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())?;
    }
    let fd = file.into_raw_fd();
    if let Err(errno) = files::set(fd, Some(id)) {
        // SAFETY: no other code knows it yet.
        unsafe { rustix::io::close(fd) };
        return Err(errno);
    }
    Ok(fd)
}

/// Opens the file that is used in the place of a path, by `real` if it is an ordinary file. Without
/// such a file, opens the path itself.
fn open_by(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    real: impl Fn(*const c_char) -> c_int,
) -> c_int {
    let Some(text) = path_of(path) else { return real(path) };
    let open = |place: Substitute| match place {
        Substitute::Node(node, file) => told(open_node(Call::Open(node), &file, flags)),
        Substitute::Chip(chip, file) => told(open_node(Call::OpenChip(chip), &file, flags)),
        Substitute::File(file) => real(file.as_ptr()),
    };
    if out_of_reach::refuses(directory, text) {
        return told(Err::<c_int, _>(Errno::PERM));
    }
    if let Some(place) = instead(directory, text) {
        return open(place);
    }
    let fd = real(path);
    if fd >= 0 {
        // Removes an old entry of this number: a call that bypassed the library may have closed
        // that descriptor.
        let _ = files::set(fd, None);
        return fd;
    }
    let errno = std::io::Error::last_os_error();
    let missing = matches!(errno.raw_os_error(), Some(libc::ENOENT | libc::ENXIO));
    match behind_link(directory, text).filter(|_| missing) {
        Some(place) => open(place),
        None => {
            set_errno(Errno::from_io_error(&errno).unwrap_or(Errno::NOENT));
            fd
        }
    }
}

macro_rules! define_open {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
            open_by(libc::AT_FDCWD, path, flags, |path| {
                call_real!($name(path => *const c_char, flags => c_int, mode => libc::mode_t) -> c_int, or -1)
            })
        }
    )*};
}
define_open!(open, open64);

macro_rules! define_openat {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            directory: c_int,
            path: *const c_char,
            flags: c_int,
            mode: libc::mode_t,
        ) -> c_int {
            open_by(directory, path, flags, |path| {
                call_real!(
                    $name(
                        directory => c_int,
                        path => *const c_char,
                        flags => c_int,
                        mode => libc::mode_t
                    ) -> c_int,
                    or -1
                )
            })
        }
    )*};
}
define_openat!(openat, openat64);

macro_rules! define_open_2 {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(path: *const c_char, flags: c_int) -> c_int {
            open_by(libc::AT_FDCWD, path, flags, |path| {
                call_real!($name(path => *const c_char, flags => c_int) -> c_int, or -1)
            })
        }
    )*};
}
define_open_2!(__open_2, __open64_2);

macro_rules! define_openat_2 {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(directory: c_int, path: *const c_char, flags: c_int) -> c_int {
            open_by(directory, path, flags, |path| {
                call_real!(
                    $name(directory => c_int, path => *const c_char, flags => c_int) -> c_int,
                    or -1
                )
            })
        }
    )*};
}
define_openat_2!(__openat_2, __openat64_2);

macro_rules! define_creat {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(path: *const c_char, mode: libc::mode_t) -> c_int {
            let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
            open_by(libc::AT_FDCWD, path, flags, |path| {
                call_real!($name(path => *const c_char, mode => libc::mode_t) -> c_int, or -1)
            })
        }
    )*};
}
define_creat!(creat, creat64);

/// The flags of a stream's mode.
fn flags_of(mode: &CStr) -> c_int {
    let mode = mode.to_bytes();
    let both = mode.contains(&b'+');
    let access = match mode.first() {
        _ if both => libc::O_RDWR,
        Some(b'r') => libc::O_RDONLY,
        _ => libc::O_WRONLY,
    };
    access | if mode.contains(&b'e') { libc::O_CLOEXEC } else { 0 }
}

macro_rules! define_fopen {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
            let real = |path: *const c_char| {
                call_real!(
                    $name(path => *const c_char, mode => *const c_char) -> *mut libc::FILE,
                    or core::ptr::null_mut()
                )
            };
            match (path_of(path), path_of(mode)) {
                (Some(text), Some(how)) => match instead(libc::AT_FDCWD, text) {
                    _ if out_of_reach::refuses(libc::AT_FDCWD, text) => {
                        set_errno(Errno::PERM);
                        core::ptr::null_mut()
                    }
                    Some(Substitute::Node(node, file)) => {
                        match told(open_node(Call::Open(node), &file, flags_of(how))) {
                            fd @ 0.. => stream::of_node(fd, mode),
                            _ => core::ptr::null_mut(),
                        }
                    }
                    Some(Substitute::Chip(chip, file)) => {
                        match told(open_node(Call::OpenChip(chip), &file, flags_of(how))) {
                            fd @ 0.. => stream::of_chip(fd, mode),
                            _ => core::ptr::null_mut(),
                        }
                    }
                    Some(Substitute::File(file)) => real(file.as_ptr()),
                    None => real(path),
                },
                _ => real(path),
            }
        }
    )*};
}
define_fopen!(fopen, fopen64);
