//! The wait for a busy chip: when to ask for its status, and what the answer means. The caller sleeps
//! in between, as a thread or as a future.

use core::task::Poll;

use super::fault::{Flags, Operation, Report};
use super::{BUSY, Geometry, NorError, WEL};
use crate::time::{Timer, ticks_at_least};

impl Geometry {
    /// Judges a status that was read after WREN. Errors report `address`.
    pub(super) fn enabled(&self, status: u8, address: u64) -> Result<(), NorError> {
        if status == 0xff {
            return Err(NorError::Gone { address });
        }
        if status & (WEL | BUSY) != WEL {
            return Err(NorError::WriteEnableRefused { status });
        }
        Ok(())
    }
}

/// A wait, timed from the creation of this value.
pub(super) struct Wait {
    begun: u64,
    limit_ticks: u64,
    limit_ns: u64,
    /// The time from the beginning to the first question, in nanoseconds.
    pub(super) first_ns: u64,
    interval_ns: u64,
    longest_ns: u64,
    /// A status of all ones is no answer: not all bits were set before.
    tells_gone: bool,
    /// How the chip reports a failure.
    report: Report,
    address: u64,
}

impl Wait {
    /// For a change at `address` that takes `typical_ns`, and `max_ns` at most. `before` is the status before the
    /// change. If the chip's times are unknown, it is asked from the beginning, at growing intervals.
    pub(super) fn new(
        geometry: &Geometry,
        timer: &mut impl Timer,
        (typical_ns, max_ns): (u64, u64),
        before: u8,
        address: u64,
    ) -> Self {
        // For short waits polling is cheaper than sleeping. The interval leaves the bus to others.
        let longest_ns = (typical_ns / 8).max(1_000);
        let known = geometry.times_known;
        Self {
            begun: timer.now_ticks(),
            limit_ticks: ticks_at_least(max_ns, timer.frequency_hz()),
            limit_ns: max_ns,
            first_ns: if known { typical_ns } else { 0 },
            interval_ns: if known { longest_ns } else { longest_ns.min(10_000) },
            longest_ns,
            tells_gone: before | BUSY | WEL != 0xff,
            report: geometry.report,
            address,
        }
    }

    /// Whether the time is over. Asked before the status is read, so that a chip that is ready in time
    /// counts as ready, however late the status.
    pub(super) fn is_late(&self, timer: &mut impl Timer) -> bool {
        timer.now_ticks().wrapping_sub(self.begun) > self.limit_ticks
    }

    /// The meaning of a status: ready, given up, or still busy.
    pub(super) fn judge(&self, status: u8, late: bool) -> Poll<Result<(), NorError>> {
        if status == 0xff && self.tells_gone {
            return Poll::Ready(Err(NorError::Gone { address: self.address }));
        }
        if let Some(operation) = self.report.failed(status) {
            return Poll::Ready(Err(self.failed(operation, status)));
        }
        if status & BUSY == 0 {
            return Poll::Ready(Ok(()));
        }
        if late { Poll::Ready(Err(self.stays_busy(status))) } else { Poll::Pending }
    }

    /// The same of the flag status register, on a chip whose status says that it is ready.
    pub(super) fn judge_flags(
        &self,
        flags: u8,
        status: u8,
        late: bool,
    ) -> Poll<Result<(), NorError>> {
        match Flags::of(flags) {
            Flags::Good => Poll::Ready(Ok(())),
            Flags::Busy if late => Poll::Ready(Err(self.stays_busy(status))),
            Flags::Busy => Poll::Pending,
            Flags::Failed(operation) => Poll::Ready(Err(self.failed(operation, status))),
        }
    }

    fn failed(&self, operation: Operation, status: u8) -> NorError {
        NorError::Failed { operation, address: self.address, status }
    }

    fn stays_busy(&self, status: u8) -> NorError {
        NorError::StaysBusy { limit_ns: self.limit_ns, status }
    }

    /// The time until the next question, in nanoseconds.
    pub(super) fn next_ns(&mut self) -> u64 {
        let this_ns = self.interval_ns;
        self.interval_ns = (this_ns * 2).min(self.longest_ns);
        this_ns
    }
}
