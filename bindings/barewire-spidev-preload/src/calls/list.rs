//! opendir, readdir and their kin: a listing of the system's directory gets the tree's entries added.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use barewire_spidev_abi::NodeName;
use barewire_spidev_abi::gpio::ChipName;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat};

use super::path_of;
use crate::paths::{instead, listed_too, of_descriptor, outside};
use crate::real::call_real;

/// An entry of the tree.
struct TreeEntry {
    name: CString,
    inode: u64,
    kind: u8,
}

/// A listing with entries of the tree.
struct Listing {
    stream: usize,
    added: Vec<TreeEntry>,
    /// How many of them were given out.
    given: usize,
    entry: Box<libc::dirent>,
    entry64: Box<libc::dirent64>,
}

static LISTINGS: Mutex<Vec<Listing>> = Mutex::new(Vec::new());
/// How many there are: most programs list other directories only.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn with<T>(stream: *mut libc::DIR, work: impl FnOnce(&mut Listing) -> T) -> Option<T> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let mut listings = LISTINGS.lock().ok()?;
    listings.iter_mut().find(|listing| listing.stream == stream.addr()).map(work)
}

/// The tree's entries in that directory.
fn added(path: &Path) -> Option<Vec<TreeEntry>> {
    let in_tree = listed_too(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let entries = Dir::new(openat(CWD, &in_tree, flags, Mode::empty()).ok()?).ok()?;
    let added = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            return None;
        }
        let within = path.join(name.to_str().ok()?);
        let within = within.to_str()?;
        let node = NodeName::parse(within).is_some() || ChipName::parse(within).is_some();
        let kind = match entry.file_type() {
            _ if node => libc::DT_CHR,
            FileType::Directory => libc::DT_DIR,
            FileType::Symlink => libc::DT_LNK,
            _ => libc::DT_REG,
        };
        Some(TreeEntry { name: name.to_owned(), inode: entry.ino(), kind })
    });
    Some(added.collect())
}

/// Notes an open listing of the system's directory `path`.
fn note(stream: *mut libc::DIR, path: &Path) {
    if stream.is_null() {
        return;
    }
    let Some(added) = added(path).filter(|added| !added.is_empty()) else { return };
    // SAFETY: the fields are integers and arrays of them, for which zeros are valid.
    let entry = Box::new(unsafe { core::mem::zeroed() });
    // SAFETY: as above.
    let entry64 = Box::new(unsafe { core::mem::zeroed() });
    if let Ok(mut listings) = LISTINGS.lock() {
        listings.push(Listing { stream: stream.addr(), added, given: 0, entry, entry64 });
        COUNT.store(listings.len(), Ordering::Relaxed);
    }
}

fn opendir_real(path: *const c_char) -> *mut libc::DIR {
    call_real!(opendir(path => *const c_char) -> *mut libc::DIR, or core::ptr::null_mut())
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn opendir(path: *const c_char) -> *mut libc::DIR {
    let Some(text) = path_of(path) else { return opendir_real(path) };
    if let Some(place) = instead(libc::AT_FDCWD, text) {
        return opendir_real(place.path().as_ptr());
    }
    let stream = opendir_real(path);
    if let Ok(text) = text.to_str() {
        if text.starts_with('/') {
            note(stream, Path::new(text));
        } else if let Ok(Ok(base)) = rustix::process::getcwd(Vec::new()).map(CString::into_string) {
            note(stream, &Path::new(&base).join(text));
        }
    }
    stream
}

#[unsafe(no_mangle)]
extern "C" fn fdopendir(fd: c_int) -> *mut libc::DIR {
    let path = of_descriptor(fd);
    let stream = call_real!(fdopendir(fd => c_int) -> *mut libc::DIR, or core::ptr::null_mut());
    // A directory of the tree has its entries already.
    if let Some(path) = path.filter(|path| outside(path.as_bytes()) == path.as_bytes()) {
        note(stream, Path::new(&path));
    }
    stream
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn closedir(stream: *mut libc::DIR) -> c_int {
    if COUNT.load(Ordering::Relaxed) > 0
        && let Ok(mut listings) = LISTINGS.lock()
    {
        listings.retain(|listing| listing.stream != stream.addr());
        COUNT.store(listings.len(), Ordering::Relaxed);
    }
    call_real!(closedir(stream => *mut libc::DIR) -> c_int, or -1)
}

#[unsafe(no_mangle)]
extern "C" fn rewinddir(stream: *mut libc::DIR) {
    with(stream, |listing| listing.given = 0);
    call_real!(rewinddir(stream => *mut libc::DIR) -> (), or ());
}

macro_rules! define_readdir {
    ($($name:ident: $dirent:ty, $entry:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub(super) extern "C" fn $name(stream: *mut libc::DIR) -> *mut $dirent {
            loop {
                let found = call_real!(
                    $name(stream => *mut libc::DIR) -> *mut $dirent,
                    or core::ptr::null_mut()
                );
                if found.is_null() {
                    break;
                }
                // SAFETY: readdir's entry, which stays until the next call.
                let name = unsafe { (*found).d_name.as_ptr() };
                // SAFETY: it ends in a zero byte.
                let name = unsafe { CStr::from_ptr(name) };
                let twice = |listing: &mut Listing| {
                    listing.added.iter().any(|added| added.name.as_c_str() == name)
                };
                if with(stream, twice) != Some(true) {
                    return found;
                }
            }
            let next = with(stream, |listing| {
                let added = listing.added.get(listing.given)?;
                listing.given += 1;
                let entry = &mut *listing.$entry;
                entry.d_ino = added.inode as _;
                entry.d_type = added.kind;
                entry.d_reclen = size_of::<$dirent>() as _;
                let bytes = added.name.as_bytes_with_nul().iter();
                for (place, byte) in entry.d_name.iter_mut().zip(bytes) {
                    *place = *byte as c_char;
                }
                Some(core::ptr::from_mut(entry))
            });
            next.flatten().unwrap_or(core::ptr::null_mut())
        }
    )*};
}
define_readdir! {
    readdir: libc::dirent, entry;
    readdir64: libc::dirent64, entry64;
}
