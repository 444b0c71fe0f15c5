//! stat and its kin: a node is a character device of spidev's, a GPIO chip one of GPIO's.

use core::ffi::{c_char, c_int, c_uint};

use super::path_of;
use crate::files;
use crate::paths::{Substitute, behind_link, instead};
use crate::real::call_real;

/// A node's mode: for the user and the group, as udev's rules make it.
const MODE: u32 = libc::S_IFCHR | 0o660;

/// The properties of a file.
trait FileAnswer {
    /// Makes it a node with those numbers.
    fn be_node(&mut self, numbers: (u32, u32));
}

macro_rules! said_by {
    ($($stat:ty),*) => {$(
        impl FileAnswer for $stat {
            fn be_node(&mut self, (major, minor): (u32, u32)) {
                self.st_mode = MODE;
                self.st_rdev = libc::makedev(major, minor);
                self.st_size = 0;
                self.st_blocks = 0;
            }
        }
    )*};
}
said_by!(libc::stat, libc::stat64);

impl FileAnswer for libc::statx {
    fn be_node(&mut self, numbers: (u32, u32)) {
        // All of the type's and mode's bits are in the lower half.
        self.stx_mode = MODE as u16;
        (self.stx_rdev_major, self.stx_rdev_minor) = numbers;
        self.stx_size = 0;
        self.stx_blocks = 0;
    }
}

/// Which file a call is about.
enum FileName {
    /// A path.
    Path { directory: c_int, path: *const c_char, follow: bool },
    /// An open file.
    Descriptor(c_int),
}

impl FileName {
    fn at(directory: c_int, path: *const c_char, flags: c_int) -> Self {
        let empty = path_of(path).is_none_or(core::ffi::CStr::is_empty);
        if flags & libc::AT_EMPTY_PATH != 0 && empty {
            return Self::Descriptor(directory);
        }
        Self::Path { directory, path, follow: flags & libc::AT_SYMLINK_NOFOLLOW == 0 }
    }

    /// The file used instead of it.
    fn place(&self) -> Option<Substitute> {
        match *self {
            Self::Path { directory, path, follow } => {
                let path = path_of(path)?;
                instead(directory, path).or_else(|| behind_link(directory, path).filter(|_| follow))
            }
            Self::Descriptor(fd) => {
                let node = crate::server::path_of(files::file(fd)?).ok()?;
                instead(libc::AT_FDCWD, &std::ffi::CString::new(node).ok()?)
            }
        }
    }
}

/// The major and minor numbers in a node's file of the tree.
fn numbers_of(stands_for: &core::ffi::CStr) -> Option<(u32, u32)> {
    let text = crate::config::text_of(stands_for)?;
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.trim().parse().ok()?))
}

/// Answers a stat call for the file that replaces the named one. `by_path` calls the C library's
/// function on a path; `real` calls it on the named file itself.
fn stat_by<S: FileAnswer>(
    about: &FileName,
    to: *mut S,
    by_path: impl Fn(*const c_char) -> c_int,
    real: impl Fn() -> c_int,
) -> c_int {
    let Some(place) = about.place() else { return real() };
    let result = by_path(place.path().as_ptr());
    if let (0, Substitute::Node(_, stands_for) | Substitute::Chip(_, stands_for)) = (result, &place)
    {
        let numbers = numbers_of(stands_for).unwrap_or_default();
        // SAFETY: the call above has filled it, so it is valid.
        unsafe { (*to).be_node(numbers) };
    }
    result
}

macro_rules! define_stat {
    ($($name:ident: $stat:ty, $follow:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub(super) extern "C" fn $name(path: *const c_char, to: *mut $stat) -> c_int {
            let real = |path| {
                call_real!($name(path => *const c_char, to => *mut $stat) -> c_int, or -1)
            };
            let about = FileName::Path { directory: libc::AT_FDCWD, path, follow: $follow };
            stat_by(&about, to, real, || real(path))
        }
    )*};
}
define_stat! {
    stat: libc::stat, true;
    stat64: libc::stat64, true;
    lstat: libc::stat, false;
    lstat64: libc::stat64, false;
}

macro_rules! define_fstat {
    ($($name:ident: $stat:ty, $by_path:ident;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(fd: c_int, to: *mut $stat) -> c_int {
            let by_path = |path| {
                call_real!($by_path(path => *const c_char, to => *mut $stat) -> c_int, or -1)
            };
            stat_by(&FileName::Descriptor(fd), to, by_path, || {
                call_real!($name(fd => c_int, to => *mut $stat) -> c_int, or -1)
            })
        }
    )*};
}
define_fstat! {
    fstat: libc::stat, stat;
    fstat64: libc::stat64, stat64;
}

macro_rules! define_fstatat {
    ($($name:ident: $stat:ty;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            directory: c_int,
            path: *const c_char,
            to: *mut $stat,
            flags: c_int,
        ) -> c_int {
            let real = |path| {
                call_real!(
                    $name(
                        directory => c_int,
                        path => *const c_char,
                        to => *mut $stat,
                        flags => c_int
                    ) -> c_int,
                    or -1
                )
            };
            stat_by(&FileName::at(directory, path, flags), to, real, || real(path))
        }
    )*};
}
define_fstatat! {
    fstatat: libc::stat;
    fstatat64: libc::stat64;
}

// The names by which programs built with a C library before 2.33 call them.
macro_rules! define_xstat {
    ($($name:ident: $stat:ty, $follow:literal;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(version: c_int, path: *const c_char, to: *mut $stat) -> c_int {
            let real = |path| {
                call_real!(
                    $name(version => c_int, path => *const c_char, to => *mut $stat) -> c_int,
                    or -1
                )
            };
            let about = FileName::Path { directory: libc::AT_FDCWD, path, follow: $follow };
            stat_by(&about, to, real, || real(path))
        }
    )*};
}
define_xstat! {
    __xstat: libc::stat, true;
    __xstat64: libc::stat64, true;
    __lxstat: libc::stat, false;
    __lxstat64: libc::stat64, false;
}

macro_rules! define_fxstat {
    ($($name:ident: $stat:ty, $by_path:ident;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(version: c_int, fd: c_int, to: *mut $stat) -> c_int {
            let by_path = |path| {
                call_real!(
                    $by_path(version => c_int, path => *const c_char, to => *mut $stat) -> c_int,
                    or -1
                )
            };
            stat_by(&FileName::Descriptor(fd), to, by_path, || {
                call_real!($name(version => c_int, fd => c_int, to => *mut $stat) -> c_int, or -1)
            })
        }
    )*};
}
define_fxstat! {
    __fxstat: libc::stat, __xstat;
    __fxstat64: libc::stat64, __xstat64;
}

macro_rules! define_fxstatat {
    ($($name:ident: $stat:ty;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            version: c_int,
            directory: c_int,
            path: *const c_char,
            to: *mut $stat,
            flags: c_int,
        ) -> c_int {
            let real = |path| {
                call_real!(
                    $name(
                        version => c_int,
                        directory => c_int,
                        path => *const c_char,
                        to => *mut $stat,
                        flags => c_int
                    ) -> c_int,
                    or -1
                )
            };
            stat_by(&FileName::at(directory, path, flags), to, real, || real(path))
        }
    )*};
}
define_fxstatat! {
    __fxstatat: libc::stat;
    __fxstatat64: libc::stat64;
}

#[unsafe(no_mangle)]
extern "C" fn statx(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    to: *mut libc::statx,
) -> c_int {
    let about = FileName::at(directory, path, flags);
    let real = |directory: c_int, path: *const c_char, flags: c_int| {
        call_real!(
            statx(
                directory => c_int,
                path => *const c_char,
                flags => c_int,
                mask => c_uint,
                to => *mut libc::statx
            ) -> c_int,
            or -1
        )
    };
    let by_path = |path| real(libc::AT_FDCWD, path, flags & !libc::AT_EMPTY_PATH);
    stat_by(&about, to, by_path, || real(directory, path, flags))
}

// The names by which programs of 32-bit Arm with 64-bit time call them.
#[cfg(all(target_arch = "arm", target_env = "gnu"))]
mod time64 {
    use super::*;
    use crate::calls::stat_time64::StatTime64;

    said_by!(StatTime64);
    define_stat! {
        __stat64_time64: StatTime64, true;
        __lstat64_time64: StatTime64, false;
    }
    define_fstat! {
        __fstat64_time64: StatTime64, __stat64_time64;
    }
    define_fstatat! {
        __fstatat64_time64: StatTime64;
    }
}
