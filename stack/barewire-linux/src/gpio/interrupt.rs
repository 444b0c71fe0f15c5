//! Waits for a chip's INT line.
//!
//! # How it works
//! An INT line keeps its level until the chip is served. The kernel reports edges, with the time at
//! which its interrupt handler saw them. So a wait reads the level first, and sleeps for an edge
//! only if the line is at rest. An edge from before that read is consumed, and the level is read
//! again.
//!
//! # What it costs
//! A wait that sleeps takes four system calls: level, wait, edge, level. A wait that finds the line
//! active takes one, and so does [`InterruptLine::is_at_rest`]. None of this was measured on a
//! board.

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

/// The result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensed {
    /// The chip needs service.
    Active,
    /// The timeout passed.
    TimedOut,
}

impl InterruptLine {
    /// Requests `line` as an input that is active at the level `sense`.
    ///
    /// # Errors
    /// * [`GpioError::NoChip`], [`GpioError::SeveralChips`], [`GpioError::NoLine`].
    /// * [`GpioError::InUse`] if the line is in use, for example by a kernel driver of the chip.
    /// * [`GpioError::NoPermission`], [`GpioError::TooOld`], [`GpioError::Os`]; the last with
    ///   `ENXIO` or `EINVAL` if the line has no interrupt.
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

    /// Whether the chip needs no service.
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

    /// Waits until the chip needs service, for at most `timeout`.
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

    /// The last edge that a wait consumed: when the kernel saw it, and its number.
    #[must_use]
    pub fn last_edge(&self) -> Option<Edge> {
        self.last
    }
}
