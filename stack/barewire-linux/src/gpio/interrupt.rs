//! A chip's INT line, waited for.
//!
//! # How it works
//! An INT line keeps its level until the chip is served. The kernel tells edges, with the time at which
//! its interrupt handler saw them. So a wait looks at the level first, and sleeps for an edge only if the
//! line is at rest; an edge from before that look is taken and the level looked at again.
//!
//! # What it costs
//! A wait that sleeps is four system calls: the level, the wait, the edge, the level. One that finds the
//! line active is one. Each of [`InterruptLine::is_at_rest`] is one. On a board none of it has been
//! measured.

use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::chip::open_chip;
use super::error::{GpioError, LineUser};
use super::hold::user_of;
use super::kernel::{Edge, Kernel, Lines, Sense};
use super::line::GpioLine;
use crate::root::Root;

/// A chip's INT line.
#[derive(Debug)]
pub struct InterruptLine {
    lines: Box<dyn Lines>,
    path: String,
    sense: Sense,
    last: Option<Edge>,
}

/// What a wait found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensed {
    /// The chip wants something.
    Active,
    /// The time was over.
    TimedOut,
}

impl InterruptLine {
    /// Requests `line` as an input that is active at the level of `sense`.
    ///
    /// # Errors
    /// * [`GpioError::NoChip`], [`GpioError::SeveralChips`], [`GpioError::NoLine`].
    /// * [`GpioError::InUse`] if somebody has the line: a kernel driver of the chip, perhaps.
    /// * [`GpioError::NoPermission`], [`GpioError::TooOld`], [`GpioError::Os`], the last with `ENXIO` or
    ///   `EINVAL` where the line has no interrupt.
    pub fn open(
        root: &Root,
        kernel: &dyn Kernel,
        line: &GpioLine,
        sense: Sense,
    ) -> Result<Self, GpioError> {
        let opened = open_chip(root, kernel, &line.chip)?;
        let offset = line.offset;
        opened.check(offset)?;
        let path = opened.path.clone();
        if let Some(user) = user_of(&opened, offset)? {
            return Err(GpioError::InUse { path, user });
        }
        let lines = opened.chip.request_edges(offset, sense).map_err(|errno| match errno {
            Errno::BUSY => {
                let user = LineUser { offset, name: String::new(), consumer: String::new() };
                GpioError::InUse { path: path.clone(), user }
            }
            _ => GpioError::of_call(&path, "asked for the edges of a line", errno),
        })?;
        Ok(Self { lines, path, sense, last: None })
    }

    fn os(&self, errno: Errno) -> GpioError {
        GpioError::of_call(&self.path, "asked for a line's state", errno)
    }

    /// Whether the chip wants nothing.
    ///
    /// # Errors
    /// [`GpioError::Os`].
    pub fn is_at_rest(&mut self) -> Result<bool, GpioError> {
        let high = self.lines.levels(1).map_err(|errno| self.os(errno))? != 0;
        Ok(match self.sense {
            Sense::Low => high,
            Sense::High => !high,
        })
    }

    /// Waits until the chip wants something, at most `timeout`.
    ///
    /// # Errors
    /// [`GpioError::Os`].
    pub fn wait(&mut self, timeout: Duration) -> Result<Sensed, GpioError> {
        let begun = Instant::now();
        while self.is_at_rest()? {
            let left = timeout.saturating_sub(begun.elapsed());
            match self.lines.edge(left).map_err(|errno| self.os(errno))? {
                Some(edge) => self.last = Some(edge),
                None => return Ok(Sensed::TimedOut),
            }
        }
        Ok(Sensed::Active)
    }

    /// The last edge that a wait took: when the kernel saw it, and how many there were.
    #[must_use]
    pub fn last_edge(&self) -> Option<Edge> {
        self.last
    }
}
