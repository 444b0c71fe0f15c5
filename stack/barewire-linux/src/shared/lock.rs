//! The lock and its file: created completely or not at all, and checked before it is used.
//!
//! # Layout
//! | bytes | |
//! |---|---|
//! | 0 | `barewire lock`, a space, the version, a newline |
//! | 16 | what the lock's layout depends on, as text: architecture, byte order, bits of an address |
//! | 64 | the PID namespace, the boot and the first user of those who have the file open: see `origin` |
//!
//! and at the end of the first page, in words counted from there:
//!
//! | word | |
//! |---|---|
//! | 5 | how many owners died |
//! | 4 | how many openers there were |
//! | 3 | the controller's last user; 0 means no user |
//! | 2 | the lock: the kernel's word ([`crate::sys::robust`]) |
//! | 1 | 0 |
//!
//! and zeros up to [`FILE_BYTES`]. All processes of one kernel have pages of one size. Numbers are in the machine's byte
//! order; the text excludes machines with another one.
//!
//! # Ordering
//! 1. Create: a new file is completed under a temporary name and then linked to its own. So a
//!    process that finds the name finds a complete lock, and of several creators one wins.
//! 2. Check: an existing file is read and checked before it is mapped.
//! 3. Enter: see `presence`.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::{Gid, Uid, fchown};
use rustix::io::Errno;

use super::error::SharedError;
use super::origin::{ORIGIN_WORDS, Origin};
use super::presence::{self, Gate};
use crate::sys;
use crate::sys::robust::{MutexState, SharedMutex};

/// The largest page of the processors that Linux runs on here.
pub(super) const FILE_BYTES: u64 = 65_536;
/// Without the last two bytes: the version and a newline.
pub(super) const MAGIC: &[u8; 14] = b"barewire lock ";
const VERSION: char = '3';
const LAYOUT_AT: usize = 16;
const HEADER_BYTES: usize = 64;
/// The index of a 4-byte word.
pub(super) const ORIGIN_AT: usize = HEADER_BYTES / 4;
/// The bytes of the file that do not change while it is in use.
const KEPT_BYTES: usize = HEADER_BYTES + ORIGIN_WORDS * 4;
/// Words beside the lock, counted from the end of its page.
const LAST_USER_FROM_END: usize = 3;
const OPENERS_FROM_END: usize = 4;
const DEATHS_FROM_END: usize = 5;

/// The end of the error's text if another opener keeps the gate.
const ENTERED: &str = "entered, because a process that opens it does not go on (is it stopped?)";

/// How often other processes may remove or make the file while this one opens it. More often is taken for malice.
const ATTEMPTS: u32 = 100;

/// No user: no opener has this number.
pub(super) const NO_USER: u32 = 0;

/// Called while another process has the lock; decides whether to continue waiting.
pub(super) type OnWait = Box<dyn FnMut(Holder) -> ControlFlow<()> + Send + Sync>;

/// The holder of a lock that a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// How long the process has waited.
    pub waited: Duration,
    /// The holder's thread id, as `/proc` names it; 0 if unknown.
    pub thread: u32,
}

/// An open lock between processes.
pub struct SharedLock {
    mutex: SharedMutex,
    path: PathBuf,
    /// Keeps this opener's presence.
    file: File,
    on_wait: Option<OnWait>,
}

/// A lock's file as it was when the lock was opened.
#[derive(Clone, Debug)]
pub(crate) struct LockFile {
    path: PathBuf,
    id: (u64, u64),
    kept: [u8; KEPT_BYTES],
}

impl LockFile {
    fn of(file: &File, path: &Path) -> io::Result<Self> {
        let (metadata, mut kept) = (file.metadata()?, [0; KEPT_BYTES]);
        file.read_exact_at(&mut kept, 0)?;
        if metadata.len() != FILE_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { path: path.to_owned(), id: (metadata.dev(), metadata.ino()), kept })
    }

    /// Fails if the path no longer leads to this file, or if the file's header has changed.
    ///
    /// # Errors
    /// [`SharedError::Replaced`].
    pub(crate) fn still_there(&self) -> Result<(), SharedError> {
        let now = open_existing(&self.path).and_then(|file| Self::of(&file, &self.path));
        match now {
            Ok(now) if (now.id, now.kept) == (self.id, self.kept) => Ok(()),
            _ => Err(SharedError::Replaced { path: self.path.clone() }),
        }
    }
}

/// Describes what the lock's layout depends on. No C library: see [`crate::sys::robust`].
pub(super) fn layout() -> String {
    let order = if cfg!(target_endian = "little") { "le" } else { "be" };
    format!("{} {order}{}", std::env::consts::ARCH, usize::BITS)
}

fn header() -> [u8; HEADER_BYTES] {
    let layout = layout();
    let mut header = [0; HEADER_BYTES];
    header[..MAGIC.len()].copy_from_slice(MAGIC);
    header[MAGIC.len()] = VERSION as u8;
    header[MAGIC.len() + 1] = b'\n';
    header[LAYOUT_AT..][..layout.len()].copy_from_slice(layout.as_bytes());
    header
}

impl SharedLock {
    /// Opens the lock at `path` beside others. If there is none, makes it with the owner, group and permissions
    /// of the device `like`: a user who may use the device may use the lock.
    ///
    /// # Errors
    /// * [`SharedError::Like`] if the device does not exist.
    /// * [`SharedError::NoDirectory`], [`SharedError::NoPermission`], [`SharedError::Group`] if the
    ///   file cannot be created or opened.
    /// * [`SharedError::Untrusted`] if users who may not use the device may write the file.
    /// * [`SharedError::NotALock`], [`SharedError::Version`], [`SharedError::Layout`],
    ///   [`SharedError::Size`] if the existing file cannot be used.
    /// * [`SharedError::Exclusive`] if another opener has it alone.
    /// * [`SharedError::Namespace`], [`SharedError::Boot`] if the processes that have it open are
    ///   in another PID namespace or of another boot, [`SharedError::NoOrigin`] if this process's
    ///   are unknown.
    /// * [`SharedError::Mutex`] with `ECHILD` in a child that shares its parent's memory; [`SharedError::Os`].
    pub fn open(path: &Path, like: &Path) -> Result<Self, SharedError> {
        Self::enter(path, like, false)
    }

    /// Opens the lock alone: until it is dropped, no other process can open it. Then the controller needs no
    /// lock for each message.
    ///
    /// # Errors
    /// [`SharedError::InUse`] if another opener has it open; the errors of [`SharedLock::open`] about
    /// the file.
    pub fn open_exclusive(path: &Path, like: &Path) -> Result<Self, SharedError> {
        Self::enter(path, like, true)
    }

    /// Step 3; the numbers are those of `presence`.
    fn enter(path: &Path, like: &Path, exclusive: bool) -> Result<Self, SharedError> {
        let os = |what| move |errno| SharedError::Os { path: path.to_owned(), what, errno };
        let path_owned = || path.to_owned();
        if sys::is_memory_borrowed() {
            return Err(SharedError::Mutex { path: path_owned(), errno: Errno::CHILD });
        }
        let here = Origin::here();
        if let (Err(errno), false) = (here, exclusive) {
            return Err(SharedError::NoOrigin { path: path_owned(), errno });
        }
        for _ in 0..ATTEMPTS {
            let file = open_file(path, like)?;
            // Step 1: acquire the gate.
            let gate = Gate::acquire(&file).map_err(os(ENTERED))?;
            if !presence::is_at(&file, path) {
                continue;
            }
            let mutex = SharedMutex::map(&file).map_err(os("mapped"))?;
            let kept = mutex.words().words();
            let origin = &kept[ORIGIN_AT..][..ORIGIN_WORDS];
            // Step 2: reset the file if no opener has it.
            let alone = gate.try_lock(true).map_err(os("locked"))?;
            if alone {
                mutex.reset();
                kept[kept.len() - LAST_USER_FROM_END].store(NO_USER, Ordering::Relaxed);
                if let Ok(here) = here {
                    here.store(origin);
                }
                follow_rights(&file, path, like);
            }
            // Step 3: beside others, or alone.
            let users = || presence::users(&file);
            if exclusive && !alone {
                return Err(SharedError::InUse { path: path.to_owned(), users: users() });
            }
            if !exclusive && !gate.try_lock(false).map_err(os("locked"))? {
                return Err(SharedError::Exclusive { path: path.to_owned(), users: users() });
            }
            // Step 4: compare the origin. A process that is alone has no other origin to compare it
            // with.
            let there = Origin::load(origin);
            match here {
                Ok(here) if here.boot != there.boot => {
                    return Err(SharedError::Boot { path: path_owned(), user: there.user });
                }
                Ok(here) if here.namespace != there.namespace => {
                    return Err(SharedError::Namespace { path: path_owned(), user: there.user });
                }
                _ => {}
            }
            drop(gate);
            return Ok(Self { mutex, path: path_owned(), file, on_wait: None });
        }
        Err(os("kept")(Errno::STALE))
    }

    /// Sets a callback that runs every 100 ms while another process has the lock. It may stop the
    /// waiting: the message is then refused with `EINTR`, and nothing was clocked.
    ///
    /// Without it, a process waits for as long as another is within a message, even if that one is
    /// stopped.
    #[must_use]
    pub fn on_wait(
        mut self,
        tell: impl FnMut(Holder) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.on_wait = Some(Box::new(tell));
        self
    }

    pub(super) fn take_on_wait(&mut self) -> Option<OnWait> {
        self.on_wait.take()
    }

    /// Acquires and releases the lock: the cost of the lock itself, which every message under it pays at least.
    ///
    /// # Errors
    /// [`SharedError::Mutex`].
    #[inline]
    pub fn acquire_and_release(&self) -> Result<(), SharedError> {
        let (_held, found) = self.mutex.acquire().map_err(|errno| self.mutex_error(errno))?;
        if found == MutexState::OwnerDied {
            // The next message reclaims the block.
            self.last_user().store(NO_USER, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether this process may use it: a child may be in another PID namespace than the process that opened it.
    ///
    /// # Errors
    /// `EXDEV` if it is; those of [`Origin::here`].
    pub(super) fn is_of_this_process(&self) -> Result<(), Errno> {
        let (here, words) = (Origin::here()?, self.mutex.words().words());
        let there = Origin::load(&words[ORIGIN_AT..][..ORIGIN_WORDS]);
        if (here.boot, here.namespace) == (there.boot, there.namespace) {
            return Ok(());
        }
        Err(Errno::XDEV)
    }

    /// Its file as it is now, to see later whether it was replaced.
    ///
    /// # Errors
    /// [`SharedError::Os`].
    pub(crate) fn lock_file(&self) -> Result<LockFile, SharedError> {
        LockFile::of(&self.file, &self.path).map_err(|error| SharedError::Os {
            path: self.path.clone(),
            what: "read",
            errno: errno(&error),
        })
    }

    /// Its file: the lock's identity to the kernel.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The path of its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[inline]
    pub(super) fn mutex(&self) -> &SharedMutex {
        &self.mutex
    }

    #[inline]
    fn word_from_end(&self, place: usize) -> &AtomicU32 {
        let words = self.mutex.words().words();
        &words[words.len() - place]
    }

    /// The controller's last user; accessed only while the mutex is held.
    #[inline]
    pub(super) fn last_user(&self) -> &AtomicU32 {
        self.word_from_end(LAST_USER_FROM_END)
    }

    /// How many owners died.
    pub(super) fn deaths(&self) -> &AtomicU32 {
        self.word_from_end(DEATHS_FROM_END)
    }

    /// A number that no other opener has.
    pub(super) fn new_user(&self) -> u32 {
        let openers = self.word_from_end(OPENERS_FROM_END);
        loop {
            let number = openers.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if number != NO_USER {
                return number;
            }
        }
    }

    pub(super) fn mutex_error(&self, errno: Errno) -> SharedError {
        SharedError::Mutex { path: self.path.clone(), errno }
    }
}

impl fmt::Debug for SharedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLock").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Opens the lock's file at `path`: creates it if there is none, checks it if there is one.
pub(super) fn open_file(path: &Path, like: &Path) -> Result<File, SharedError> {
    let device = fs::metadata(like)
        .map_err(|error| SharedError::Like { path: like.to_owned(), errno: errno(&error) })?;
    // Other processes may create and remove the file meanwhile, but not for ever unless they mean
    // harm.
    for _ in 0..ATTEMPTS {
        match open_existing(path) {
            Ok(file) => {
                check(&file, path, like, &device)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(refused(&error, "opened", path, like)),
        }
        match create(path, like, &device) {
            Err(SharedError::Os { errno: Errno::EXIST, .. }) => {}
            created => return created,
        }
    }
    Err(SharedError::Os { path: path.to_owned(), what: "kept", errno: Errno::STALE })
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn refused(error: &io::Error, what: &'static str, path: &Path, like: &Path) -> SharedError {
    let path = path.to_owned();
    match errno(error) {
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            SharedError::NoPermission { path, like: like.to_owned() }
        }
        Errno::NOENT | Errno::NOTDIR => SharedError::NoDirectory { path },
        Errno::LOOP | Errno::ISDIR | Errno::NXIO => SharedError::NotALock { path },
        errno => SharedError::Os { path, what, errno },
    }
}

fn open_existing(path: &Path) -> io::Result<File> {
    // Does not follow a symbolic link, and does not block on a FIFO.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

/// Step 2: checks an existing file.
fn check(file: &File, path: &Path, like: &Path, device: &Metadata) -> Result<(), SharedError> {
    let io = |error: io::Error| SharedError::Os {
        path: path.to_owned(),
        what: "read",
        errno: errno(&error),
    };
    let there = file.metadata().map_err(io)?;
    let path = path.to_owned();
    if !there.is_file() {
        return Err(SharedError::NotALock { path });
    }
    if let Some(why) = distrust(&there, device) {
        return Err(SharedError::Untrusted { path, like: like.to_owned(), why });
    }
    let mut found = [0; HEADER_BYTES];
    if there.len() < HEADER_BYTES as u64 {
        return Err(SharedError::NotALock { path });
    }
    file.read_exact_at(&mut found, 0).map_err(io)?;
    let ours = header();
    if found[..MAGIC.len()] != ours[..MAGIC.len()] {
        return Err(SharedError::NotALock { path });
    }
    if found[MAGIC.len()..LAYOUT_AT] != ours[MAGIC.len()..LAYOUT_AT] {
        let found = String::from_utf8_lossy(&found[MAGIC.len()..LAYOUT_AT]).trim_end().to_owned();
        return Err(SharedError::Version { path, found, ours: VERSION });
    }
    if found != ours {
        let found = String::from_utf8_lossy(&found[LAYOUT_AT..]);
        let found = found.trim_end_matches('\0').to_owned();
        return Err(SharedError::Layout { path, found, ours: layout() });
    }
    if there.len() != FILE_BYTES {
        return Err(SharedError::Size { path, bytes: there.len(), expected: FILE_BYTES });
    }
    Ok(())
}

/// Why not to trust a file: a user without access to the device may have put it there, who could
/// block the bus or, by truncating the file, end its users.
fn distrust(there: &Metadata, device: &Metadata) -> Option<&'static str> {
    let (mode, allowed) = (there.mode(), device.mode());
    if mode & 0o002 & !allowed != 0 {
        return Some("may be written by anybody");
    }
    if mode & 0o020 != 0 && there.gid() != device.gid() && there.gid() != 0 {
        return Some("may be written by another group");
    }
    let user = rustix::process::geteuid().as_raw();
    let known = [0, device.uid(), user].contains(&there.uid());
    // A member of the device's group may have created it: no other user can give a file that group.
    if !known && there.gid() != device.gid() {
        return Some("belongs to another user");
    }
    None
}

/// A file that is removed on drop, unless it was renamed to its final name.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Step 1: creates the file.
fn create(path: &Path, like: &Path, device: &Metadata) -> Result<File, SharedError> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let os = |what, errno| SharedError::Os { path: path.to_owned(), what, errno };
    let Some(name) = path.file_name() else {
        return Err(SharedError::NotALock { path: path.to_owned() });
    };
    let (pid, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let name = format!(".{}.{pid}.{count}.new", name.to_string_lossy());
    let temporary = path.with_file_name(name);
    let made =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&temporary);
    let file = made.map_err(|error| refused(&error, "made", path, like))?;
    let temporary = Temporary(temporary);

    give(&file, path, device)?;
    file.set_len(FILE_BYTES).map_err(|error| os("made", errno(&error)))?;
    file.write_all_at(&header(), 0).map_err(|error| os("written", errno(&error)))?;

    fs::hard_link(&temporary.0, path).map_err(|error| os("made", errno(&error)))?;
    Ok(file)
}

/// Gives an existing file the device's present owner and rights, which may have changed since the file was made. A
/// process without permission leaves them as they are.
pub(super) fn follow_rights(file: &File, path: &Path, like: &Path) {
    if let Ok(device) = fs::metadata(like) {
        let _ = give(file, path, &device);
    }
}

/// Gives the file the device's owner, group and permissions.
fn give(file: &File, path: &Path, device: &Metadata) -> Result<(), SharedError> {
    let os = |what, errno| SharedError::Os { path: path.to_owned(), what, errno };
    let made = file.metadata().map_err(|error| os("made", errno(&error)))?;
    if (made.uid(), made.gid()) != (device.uid(), device.gid()) {
        let gid = Some(Gid::from_raw(device.gid()));
        // Only root may change a file's owner; a member of the device's group may give it that
        // group.
        let given = fchown(file, Some(Uid::from_raw(device.uid())), gid);
        given.or_else(|_| fchown(file, None, gid)).map_err(|errno| SharedError::Group {
            path: path.to_owned(),
            gid: device.gid(),
            errno,
        })?;
    }
    let rights = PermissionsExt::from_mode(device.mode() & 0o666);
    file.set_permissions(rights).map_err(|error| os("given its rights", errno(&error)))
}
