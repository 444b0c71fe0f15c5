//! A chip that several processes use: a lock for the length of an operation.
//!
//! Read first: flock(2); [`Port::begin`], on what an operation is.
//!
//! # How it works
//! [`ChipLocks`] says where a controller's locks are: beside the lock of its messages, a file for each
//! chip select, or, for a spidev node, the node itself. Nothing is made or asked for there: whoever
//! may open a node may lock it, and other programs take part by flock(1):
//! `flock /dev/spidev0.0 PROGRAM`.
//!
//! | lock of the file | held |
//! |---|---|
//! | flock(2) | for the length of an operation |
//! | open file description lock, fcntl(2) | while its holder waits for the other |
//!
//! The kernel gives both back when their holder ends, however it ends. No file says in what state the
//! chip is then, so none can be wrong: the driver brings a [shared](Sharing::Shared) chip into a known
//! state at the beginning of each operation.
//!
//! # Ordering
//! 1. The turnstile, the second lock, is taken; then the first; then the turnstile is given back. So a
//!    process that runs operation after operation stands behind one that waits, and takes turns.
//! 2. The operation, whose messages each hold the controller's lock.
//! 3. The first lock is given back.
//!
//! Waiting is asking again after 50 µs to 1 ms, so that a waiter can be told to stop. That is how late a
//! free chip may be noticed; nobody can take it meanwhile.
//!
//! # What callers must know
//! * A process that is stopped (SIGSTOP, a debugger) in an operation stops the others:
//!   [`ChipLock::on_wait`].
//! * Each driver wants a [`ChipLock`] of its own, also two drivers of one process.
//! * After a fork the child's first operation opens the file anew. A fork in the middle of an operation
//!   keeps the chip until the child ends, too.
//!
//! # Not supported
//! Priority inheritance: an operation that erases takes longer than any thread waits in earnest.
//! Network file systems. Two nodes made for one device: they are two files.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use barewire::chip::{Port, Sharing};
use barewire::spi::{Error, MessageError, Transfer};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::SharedError;
use super::lock::open_file;
use crate::sys;
use crate::sys::record;

/// How long a waiter sleeps at first, and at most, before it asks again.
const ASK_AGAIN: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];

/// Where the locks of a controller's chips are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChipLocks {
    /// Files beside the lock of the controller's messages, its name with `.csN` behind it.
    Beside {
        /// That lock.
        lock: PathBuf,
        /// The device whose owner and rights the files are to have.
        like: PathBuf,
    },
    /// The node of the one chip there is.
    Node(PathBuf),
}

/// The lock of one chip.
pub struct ChipLock {
    file: File,
    at: At,
    /// Of which process the open file is.
    forks: u32,
    on_wait: Option<OnWait>,
}

type OnWait = Box<dyn FnMut(Duration) -> ControlFlow<()> + Send>;

/// What is opened.
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
            Self::Lock { path, like } => open_file(path, like),
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
    /// Opens the lock of the chip behind `chip_select`; a node has one, whatever its number.
    ///
    /// # Errors
    /// Those of [`SharedLock::open`](super::SharedLock::open); [`SharedError::Os`] for a node.
    pub fn open(&self, chip_select: u8) -> Result<ChipLock, SharedError> {
        let at = match self {
            Self::Beside { lock, like } => {
                let mut path = lock.clone().into_os_string();
                path.push(format!(".cs{chip_select}"));
                At::Lock { path: path.into(), like: like.clone() }
            }
            Self::Node(path) => At::Node(path.clone()),
        };
        sys::fork::watch();
        Ok(ChipLock { file: at.open()?, at, forks: sys::fork::forks(), on_wait: None })
    }
}

impl ChipLock {
    /// The same, calling `tell` with the time waited so far, again and again while another has the
    /// chip. It may stop the waiting: `EINTR` then is what the chip's driver returns.
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

    /// Step 1. Waits for another's operation to end. Not for a holder: it would wait for itself.
    ///
    /// # Errors
    /// `EINTR` if the waiting was stopped; what the kernel says of the file.
    pub fn acquire(&mut self) -> Result<(), Errno> {
        let mut on_wait = self.on_wait.take();
        let taken = self.take(&mut on_wait);
        self.on_wait = on_wait;
        taken
    }

    fn take(
        &mut self,
        on_wait: &mut Option<impl FnMut(Duration) -> ControlFlow<()>>,
    ) -> Result<(), Errno> {
        if self.forks != sys::fork::forks() {
            // The open file, and so the lock, is the parent's too.
            self.file = self.at.open().map_err(|error| match error {
                SharedError::Os { errno, .. } => errno,
                _ => Errno::STALE,
            })?;
            self.forks = sys::fork::forks();
        }
        let file = &self.file;
        let mut begun = None;
        until_free(&mut begun, on_wait, || record::try_take(file))?;
        let taken = until_free(&mut begun, on_wait, || {
            flock(file, FlockOperation::NonBlockingLockExclusive)
        });
        let passed = record::release(file);
        taken.and(passed)
    }

    /// The same without waiting, for a driver that keeps the chip: whether it has it now.
    ///
    /// # Errors
    /// What the kernel says of the file.
    pub fn try_acquire(&mut self) -> Result<bool, Errno> {
        let mut free = true;
        let refuse = |_| {
            free = false;
            ControlFlow::Break(())
        };
        match self.take(&mut Some(refuse)) {
            Err(Errno::INTR) if !free => Ok(false),
            taken => taken.map(|()| true),
        }
    }

    /// Step 3.
    pub fn release(&mut self) {
        // A child that was forked in the middle of the operation has nothing to give back.
        if self.forks == sys::fork::forks() {
            // Cannot fail for an open file; closing it does the same.
            let _ = flock(&self.file, FlockOperation::Unlock);
        }
    }
}

/// Asks until `take` is not refused for another's sake. `begun` is when the waiting began.
fn until_free(
    begun: &mut Option<Instant>,
    on_wait: &mut Option<impl FnMut(Duration) -> ControlFlow<()>>,
    mut take: impl FnMut() -> Result<(), Errno>,
) -> Result<(), Errno> {
    let [mut pause, longest] = ASK_AGAIN;
    loop {
        match take() {
            Err(Errno::AGAIN | Errno::ACCESS) => {}
            Err(Errno::INTR) => continue,
            done => return done,
        }
        let begun = *begun.get_or_insert_with(Instant::now);
        if let Some(tell) = on_wait
            && tell(begun.elapsed()).is_break()
        {
            return Err(Errno::INTR);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(longest);
    }
}

impl fmt::Debug for ChipLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChipLock").field("at", &self.at).finish_non_exhaustive()
    }
}

/// A port whose chip other processes may use too.
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
    /// Shares the chip behind `port` by `lock`; without one it is this port's user's alone.
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

    /// Waits for other processes' operations.
    ///
    /// # Errors
    /// [`Error::Os`]: those of [`ChipLock::acquire`].
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
