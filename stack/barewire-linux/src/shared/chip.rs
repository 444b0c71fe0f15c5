//! A chip that several processes use: a lock held for the duration of an operation.
//!
//! Read first: flock(2); [`Port::begin`], which says what an operation is.
//!
//! # How it works
//! [`ChipLocks`] says where a controller's locks are: for each chip select a file beside the lock
//! of the controller's messages, or, for a spidev node, the node itself. A node needs no further
//! file and no further permission: a user who may open it may lock it. Other programs take part by
//! flock(1): `flock /dev/spidev0.0 PROGRAM`.
//!
//! | lock of the file | held |
//! |---|---|
//! | flock(2) | for the duration of an operation |
//! | open file description lock, fcntl(2) | while its holder waits for the other |
//!
//! The kernel releases both when their holder ends, in whatever way. No file records the chip's
//! state then, so none can be wrong: the driver brings a [shared](Sharing::Shared) chip into a
//! known state at the beginning of each operation.
//!
//! A file beside a controller's lock has a word, too, that is not 0 during an operation. A program whose
//! operations are single messages looks at it while it holds the controller's lock, which orders the two
//! ([`Claim`]): it needs no system call for a chip that nobody else uses. The word of a holder that died stays,
//! and means only that the next user must acquire the lock.
//!
//! # Ordering
//! 1. Acquire the turnstile (the second lock), then the first lock, then release the turnstile. So
//!    a process that runs operation after operation queues behind a waiter, and they take turns.
//! 2. Run the operation; each of its messages holds the controller's lock.
//! 3. Release the first lock.
//!
//! A waiter retries after 50 µs to 1 ms, so that it can be told to stop. It may notice a free chip
//! that late; no other process can take the chip in the meantime.
//!
//! # What callers must know
//! * A process that is stopped (SIGSTOP, a debugger) within an operation stops the others; see
//!   [`ChipLock::on_wait`].
//! * Each driver needs its own [`ChipLock`], even two drivers of one process.
//! * After a fork the child's first operation opens the file again. A fork within an operation
//!   keeps the chip until the child ends as well.
//!
//! # Not supported
//! Priority inheritance: an erase takes longer than a real-time thread can wait. Network file
//! systems. Two nodes of one device: they are two files.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use barewire::chip::{Port, Sharing};
use barewire::spi::{Error, MessageError, Transfer};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::SharedError;
use super::lock::{follow_rights, open_file};
use super::retry::until_free;
use crate::sys;
use crate::sys::SharedWords;
use crate::sys::record;

/// Where the locks of a controller's chips are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChipLocks {
    /// Files beside the lock of the controller's messages, with its name plus `.csN`.
    Beside {
        /// The lock of the controller's messages.
        lock: PathBuf,
        /// The device whose owner and permissions the files get.
        like: PathBuf,
    },
    /// The node, for a controller with one chip.
    Node(PathBuf),
}

/// Whether an operation on a chip may be going on, in any process.
#[derive(Debug)]
pub struct Claim(SharedWords);

impl Claim {
    fn map(file: &File) -> Option<Self> {
        SharedWords::map(file, CLAIM_AT + 1).ok().map(Self)
    }

    fn set(&self, claimed: bool) {
        if let Some(word) = self.0.words().get(CLAIM_AT) {
            word.store(claimed.into(), Ordering::Relaxed);
        }
    }

    /// Whether one may be set. If the answer is no, a holder of the controller's lock may run a
    /// message: an operation that begins now has its first message later.
    #[inline]
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.words().get(CLAIM_AT).is_none_or(|word| word.load(Ordering::Relaxed) != 0)
    }
}

/// The index of the word, behind the header of the file.
const CLAIM_AT: usize = 32;

/// The lock of one chip.
pub struct ChipLock {
    file: File,
    /// None for a node.
    claim: Option<Claim>,
    at: At,
    /// The process that opened the file.
    process: u32,
    on_wait: Option<OnWait>,
}

type OnWait = Box<dyn FnMut(Duration) -> ControlFlow<()> + Send>;

/// The file to open.
#[derive(Clone, Debug)]
enum At {
    Lock { path: PathBuf, like: PathBuf },
    Node(PathBuf),
}

impl At {
    fn path(&self) -> &Path {
        let (Self::Lock { path, .. } | Self::Node(path)) = self;
        path
    }

    fn open(&self) -> Result<File, SharedError> {
        match self {
            Self::Lock { path, like } => {
                let file = open_file(path, like)?;
                follow_rights(&file, path, like);
                Ok(file)
            }
            Self::Node(path) => {
                let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
                let opened =
                    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
                opened.map_err(|error| SharedError::Os {
                    path: path.clone(),
                    what: "opened",
                    errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
                })
            }
        }
    }
}

impl ChipLocks {
    /// Opens the lock of the chip behind `chip_select`. A node has one lock, whatever the number.
    ///
    /// # Errors
    /// The errors of [`SharedLock::open`](super::SharedLock::open); [`SharedError::Os`] for a node.
    pub fn open(&self, chip_select: u8) -> Result<ChipLock, SharedError> {
        let at = match self {
            Self::Beside { lock, like } => {
                let mut path = lock.clone().into_os_string();
                path.push(format!(".cs{chip_select}"));
                At::Lock { path: path.into(), like: like.clone() }
            }
            Self::Node(path) => At::Node(path.clone()),
        };
        let file = at.open()?;
        let claim = match &at {
            At::Lock { .. } => Claim::map(&file),
            At::Node(_) => None,
        };
        Ok(ChipLock { file, claim, at, process: sys::process_number(), on_wait: None })
    }
}

impl ChipLock {
    /// Sets a callback for while another process has the chip: it is called repeatedly with the
    /// time waited so far. It may stop the waiting; the chip's driver then returns `EINTR`.
    #[must_use]
    pub fn on_wait(
        mut self,
        tell: impl FnMut(Duration) -> ControlFlow<()> + Send + 'static,
    ) -> Self {
        self.on_wait = Some(Box::new(tell));
        self
    }

    /// The locked file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.at.path()
    }

    /// Step 1: acquires the lock, waiting for another's operation to end. Not for the holder, which
    /// would wait for itself.
    ///
    /// # Errors
    /// `EINTR` if the waiting was stopped; `ECHILD` in a child that borrows its parent's memory; otherwise the kernel's
    /// error.
    pub fn acquire(&mut self) -> Result<(), Errno> {
        let mut on_wait = self.on_wait.take();
        let acquired = self.acquire_while(&mut on_wait);
        self.on_wait = on_wait;
        acquired
    }

    fn acquire_while(
        &mut self,
        on_wait: &mut Option<impl FnMut(Duration) -> ControlFlow<()>>,
    ) -> Result<(), Errno> {
        if sys::is_memory_borrowed() {
            return Err(Errno::CHILD);
        }
        if self.process != sys::process_number() {
            // The open file, and so the lock, is shared with the parent.
            self.file = self.at.open().map_err(|error| match error {
                SharedError::Os { errno, .. } => errno,
                _ => Errno::STALE,
            })?;
            self.process = sys::process_number();
        }
        let file = &self.file;
        let mut begun = None;
        until_free(&mut begun, on_wait, || record::try_acquire(file))?;
        let taken = until_free(&mut begun, on_wait, || {
            flock(file, FlockOperation::NonBlockingLockExclusive)
        });
        if taken.is_ok() {
            self.claim(true);
        }
        let passed = record::release(file);
        taken.and(passed)
    }

    fn claim(&self, claimed: bool) {
        if let Some(claim) = &self.claim {
            claim.set(claimed);
        }
    }

    /// The word that tells whether an operation is going on; `None` for a node, which has none.
    #[must_use]
    pub fn into_claim(self) -> Option<Claim> {
        self.claim
    }

    /// [`ChipLock::acquire`] without waiting, for a driver that keeps the chip. Returns whether it
    /// was acquired.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn try_acquire(&mut self) -> Result<bool, Errno> {
        let mut free = true;
        let refuse = |_| {
            free = false;
            ControlFlow::Break(())
        };
        match self.acquire_while(&mut Some(refuse)) {
            Err(Errno::INTR) if !free => Ok(false),
            taken => taken.map(|()| true),
        }
    }

    /// Step 3: releases the lock.
    pub fn release(&mut self) {
        // A child that was forked within the operation does not own the lock.
        if self.process == sys::process_number() {
            self.claim(false);
            // Cannot fail for an open file; closing the file would release the lock too.
            let _ = flock(&self.file, FlockOperation::Unlock);
        }
    }
}

impl fmt::Debug for ChipLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChipLock").field("at", &self.at).finish_non_exhaustive()
    }
}

/// A port to a chip that other processes may use too.
///
/// ```no_run
/// use barewire::bus::Bus;
/// use barewire::chip::spi_nor::SpiNor;
/// use barewire::spi::Settings;
/// use barewire_linux::Monotonic;
/// use barewire_linux::shared::{ChipLocks, ChipPort};
/// use barewire_linux::spidev::Spidev;
///
/// let bus = Bus::new(Spidev::open("/dev/spidev0.0")?);
/// let lock = ChipLocks::Node("/dev/spidev0.0".into()).open(0)?;
/// let port = ChipPort::new(bus.device(&Settings::new(0, 20_000_000))?, Some(lock));
/// let mut chip = SpiNor::new(port, Monotonic::new())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ChipPort<P> {
    port: P,
    lock: Option<ChipLock>,
}

impl<P> ChipPort<P> {
    /// Shares the chip behind `port` by `lock`. Without a lock the chip is not shared.
    pub fn new(port: P, lock: Option<ChipLock>) -> Self {
        Self { port, lock }
    }
}

impl<P: Port> Port for ChipPort<P> {
    #[inline]
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.port.run(message)
    }

    fn speed_hz(&self) -> u32 {
        self.port.speed_hz()
    }

    fn max_message_bytes(&self) -> usize {
        self.port.max_message_bytes()
    }

    /// Waits for operations of other processes.
    ///
    /// # Errors
    /// [`Error::Os`] with an error of [`ChipLock::acquire`].
    fn begin(&mut self) -> Result<Sharing, MessageError> {
        let Some(lock) = &mut self.lock else { return self.port.begin() };
        let refused =
            |errno: Errno| MessageError::refused(Error::Os { errno: errno.raw_os_error() }, 0);
        lock.acquire().map_err(refused)?;
        Ok(Sharing::Shared)
    }

    fn end(&mut self) {
        match &mut self.lock {
            Some(lock) => lock.release(),
            None => self.port.end(),
        }
    }
}
