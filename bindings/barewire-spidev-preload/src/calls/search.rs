//! glob and scandir, which list directories by the C library's own functions.

use core::ffi::{c_char, c_int, c_void};
use core::ptr;

use super::{list, stat};
use crate::real::{call_real, set_errno};

/// `GLOB_ALTDIRFUNC`: the caller brings its own functions for directories.
const OTHER_FUNCTIONS: c_int = 1 << 9;

/// The C library's `glob_t`.
#[repr(C)]
struct Glob {
    count: usize,
    paths: *mut *mut c_char,
    offset: usize,
    flags: c_int,
    closedir: *const c_void,
    readdir: *const c_void,
    opendir: *const c_void,
    lstat: *const c_void,
    stat: *const c_void,
}

macro_rules! define_glob {
    ($($name:ident: $readdir:path, $lstat:path, $stat:path;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            pattern: *const c_char,
            flags: c_int,
            error: *const c_void,
            to: *mut Glob,
        ) -> c_int {
            if flags & OTHER_FUNCTIONS == 0 && !to.is_null() {
                // SAFETY: the caller's, by glob's contract; only the five fields are written.
                unsafe { (*to).closedir = list::closedir as *const c_void };
                // SAFETY: as above.
                unsafe { (*to).readdir = $readdir as *const c_void };
                // SAFETY: as above.
                unsafe { (*to).opendir = list::opendir as *const c_void };
                // SAFETY: as above.
                unsafe { (*to).lstat = $lstat as *const c_void };
                // SAFETY: as above.
                unsafe { (*to).stat = $stat as *const c_void };
            }
            let flags = flags | OTHER_FUNCTIONS;
            call_real!(
                $name(
                    pattern => *const c_char,
                    flags => c_int,
                    error => *const c_void,
                    to => *mut Glob
                ) -> c_int,
                or -1
            )
        }
    )*};
}
define_glob! {
    glob: list::readdir, stat::lstat, stat::stat;
    glob64: list::readdir64, stat::lstat64, stat::stat64;
}

/// Copies of the entries that `wanted` takes, in memory of the C library's; `None` if there is no more.
fn entries<D>(
    next: impl Fn() -> *mut D,
    reclen: unsafe fn(*const D) -> usize,
    wanted: Option<extern "C" fn(*const D) -> c_int>,
) -> Option<Vec<*mut D>> {
    let mut found = Vec::new();
    loop {
        let entry = next();
        if entry.is_null() {
            return Some(found);
        }
        if wanted.is_some_and(|wanted| wanted(entry) == 0) {
            continue;
        }
        // SAFETY: it has no conditions.
        let copy = unsafe { libc::malloc(size_of::<D>()) }.cast::<D>();
        if copy.is_null() {
            return None;
        }
        // SAFETY: an entry of readdir.
        let bytes = unsafe { reclen(entry) }.min(size_of::<D>());
        // SAFETY: an entry is as long as it says, and the copy has room.
        unsafe { ptr::copy_nonoverlapping(entry.cast::<u8>(), copy.cast::<u8>(), bytes) };
        found.push(copy);
    }
}

/// The list as scandir's caller gets it, sorted by its function.
fn given<D>(
    found: &[*mut D],
    to: *mut *mut *mut D,
    order: Option<extern "C" fn(*mut *const D, *mut *const D) -> c_int>,
) -> c_int {
    // SAFETY: it has no conditions.
    let list = unsafe { libc::malloc(size_of_val(found).max(1)) }.cast::<*mut D>();
    if list.is_null() {
        set_errno(rustix::io::Errno::NOMEM);
        return -1;
    }
    // SAFETY: it has room for all of them.
    unsafe { ptr::copy_nonoverlapping(found.as_ptr(), list, found.len()) };
    if let Some(order) = order {
        type Compare = extern "C" fn(*const c_void, *const c_void) -> c_int;
        // SAFETY: pointers to entries, whatever their type, are passed to it as qsort passes them.
        let order = unsafe { core::mem::transmute::<extern "C" fn(_, _) -> _, Compare>(order) };
        // SAFETY: the list and its length, made above.
        unsafe { libc::qsort(list.cast(), found.len(), size_of::<*mut D>(), Some(order)) };
    }
    // SAFETY: the caller's, by scandir's contract.
    unsafe { *to = list };
    c_int::try_from(found.len()).unwrap_or(c_int::MAX)
}

macro_rules! define_scandir {
    ($($name:ident: $dirent:ty, $readdir:path;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            path: *const c_char,
            to: *mut *mut *mut $dirent,
            wanted: Option<extern "C" fn(*const $dirent) -> c_int>,
            order: Option<extern "C" fn(*mut *const $dirent, *mut *const $dirent) -> c_int>,
        ) -> c_int {
            let stream = list::opendir(path);
            if stream.is_null() {
                return -1;
            }
            /// # Safety
            /// An entry that is there.
            unsafe fn reclen(entry: *const $dirent) -> usize {
                // SAFETY: as the caller promises.
                usize::from(unsafe { (*entry).d_reclen })
            }
            let found = entries(|| $readdir(stream), reclen, wanted);
            list::closedir(stream);
            match found {
                Some(found) => given(&found, to, order),
                None => {
                    set_errno(rustix::io::Errno::NOMEM);
                    -1
                }
            }
        }
    )*};
}
define_scandir! {
    scandir: libc::dirent, list::readdir;
    scandir64: libc::dirent64, list::readdir64;
}
