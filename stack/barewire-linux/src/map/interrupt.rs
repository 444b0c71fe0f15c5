//! The interrupt of a mapped controller: a UIO device's, or none.
//!
//! *Read first*: [`Interrupt`] in `barewire::controller` on when its methods are called.
//!
//! Reading four bytes of a UIO device waits for the next interrupt and returns how many there have been.
//! The kernel masks the interrupt each time; writing 1 unmasks it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use barewire::controller::Interrupt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How long to sleep if waiting for the device fails, before the block is polled.
const BLIND_SLEEP: Duration = Duration::from_micros(50);

/// Sleeps until a mapped controller interrupts.
#[derive(Debug)]
pub struct MappedInterrupt(pub(super) Option<File>);

impl MappedInterrupt {
    /// No interrupt, for a controller that is always polled.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }
}

impl Interrupt for MappedInterrupt {
    fn enable(&mut self) {
        // An error here also shows in the wait, which then ends by its timeout.
        let _ = self.0.as_ref().map(|uio| unmask(uio, true));
    }

    fn wait(&mut self, timeout_us: u32) -> bool {
        let timeout = Duration::from_micros(timeout_us.into());
        let Some(uio) = &self.0 else { return true };
        match wait(uio, timeout) {
            Ok(count) => count.is_some(),
            // The device failed after it was opened: the message ends by polling now and then, or
            // at its own deadline.
            Err(_) => {
                std::thread::sleep(BLIND_SLEEP.min(timeout));
                false
            }
        }
    }
}

/// Unmasks the interrupt of the device `uio`, or masks it.
pub(super) fn unmask(mut uio: &File, unmasked: bool) -> io::Result<()> {
    uio.write_all(&i32::from(unmasked).to_ne_bytes())
}

/// Waits for the interrupt of the device `uio`. Returns the kernel's count, or `None` if none came in time.
pub(super) fn wait(mut uio: &File, timeout: Duration) -> io::Result<Option<u32>> {
    // A signal must not shorten the wait: wait for the rest of the time.
    let begun = Instant::now();
    loop {
        let left = timeout.saturating_sub(begun.elapsed());
        // A timeout beyond the kernel's clock means no timeout.
        let left = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(uio, PollFlags::IN)], left.as_ref()) {
            Ok(0) => return Ok(None),
            // An error shows in the read below.
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    let mut count = [0; 4];
    uio.read_exact(&mut count)?;
    Ok(Some(u32::from_ne_bytes(count)))
}
