//! Lines through the kernel as a [`GpioBank`] of the core.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use barewire::controller::gpio::GpioBank;
use barewire::reg::barrier;
use rustix::io::Errno;

use super::kernel::Lines;

/// The first error of a controller's select lines, kept until it is taken.
///
/// A [`GpioBank`] cannot return an error, but an edge through the kernel can fail: its driver may
/// be unbound, or its chip gone. [`MappedController`](crate::map::MappedController) then fails the
/// message in which that happened.
#[derive(Clone, Debug, Default)]
pub struct CsFault(Arc<AtomicI32>);

impl CsFault {
    fn set(&self, errno: Errno) {
        // The first error explains the later ones.
        let (first, relaxed) = (errno.raw_os_error(), Ordering::Relaxed);
        let _ = self.0.compare_exchange(0, first, relaxed, relaxed);
    }

    /// Keeps the error of `done`, if it is the first.
    pub(crate) fn told(&self, done: Result<(), Errno>) {
        if let Err(errno) = done {
            self.set(errno);
        }
    }

    /// Whether there is an error to [take](Self::take).
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Takes the first error since the last call, if there was one.
    #[inline]
    #[must_use]
    pub fn take(&self) -> Option<Errno> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            _ => Some(Errno::from_raw_os_error(self.0.swap(0, Ordering::Relaxed))),
        }
    }
}

/// Lines through the kernel: pin `n` is the `n`th line of the request. An edge is one system call.
#[derive(Debug)]
pub struct KernelPins {
    lines: Box<dyn Lines>,
    fault: CsFault,
}

impl KernelPins {
    /// Uses lines that were requested; `fault` keeps the first error.
    #[must_use]
    pub fn new(lines: Box<dyn Lines>, fault: CsFault) -> Self {
        Self { lines, fault }
    }
}

impl GpioBank for KernelPins {
    #[inline]
    fn drive(&mut self, mask: u32, high: bool) {
        // The kernel writes another peripheral than the one that clocks: their order needs
        // barriers.
        barrier();
        let done = self.lines.set(mask.into(), if high { mask.into() } else { 0 });
        barrier();
        self.fault.told(done);
    }

    fn output(&mut self, mask: u32, high: bool) {
        let done = self.lines.output(mask.into(), if high { mask.into() } else { 0 });
        self.fault.told(done);
    }
}
