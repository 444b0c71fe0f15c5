//! Moves frames between the two sides of the bridge, whatever they are.
//!
//! # How it works
//! A [step](Pump::step) does what can be done without waiting:
//!
//! 1. Drain the chip: its frames and errors go into a queue, in order. The queue is full only if the
//!    socket accepts nothing. The chip is not read then, and later reports its overflow.
//! 2. Drain the queue into the socket until the socket accepts no more. The rest keeps its order.
//! 3. Send the socket's frames to the chip until its FIFO is full. A frame that finds the chip's FIFO
//!    full is kept, and no more frames are read. Then the socket's queue fills, and the kernel drops
//!    frames.
//!
//! # Ordering
//! Each direction keeps its order. The two directions are not ordered against each other.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};

use barewire::chip::mcp251xfd::Frame;
use serde::Serialize;

use super::super::frame::{CanFrame, LogLine};
use crate::shared::failure::Failure;

/// Frames and errors that may wait for the socket. Beyond that the chip is no longer read.
pub(super) const QUEUE_MAX: usize = 256;
/// The most frames that one step takes from the socket, so that the other direction gets its turn.
const BATCH: usize = 64;
/// No room in the interface's queue.
const ENOBUFS: i32 = 105;

/// A socket of SocketCAN, or a stand-in for one. It never waits.
pub(super) trait CanSocket {
    /// The next frame or error; `None` if none came.
    fn read(&mut self) -> io::Result<Option<LogLine>>;

    /// Gives it a frame or an error.
    fn write(&mut self, what: &LogLine) -> io::Result<()>;

    /// Whether the interface carries frames of CAN FD.
    fn carries_fd(&self) -> bool;
}

/// The chip.
pub(super) trait Port {
    /// Shows each frame and error since the last call, with whether the chip's overflow was among
    /// them.
    fn receive(&mut self, see: &mut dyn FnMut(LogLine, bool)) -> Result<(), Failure>;

    /// Gives the chip a frame. Returns false if the chip has no free place.
    fn transmit(&mut self, frame: &Frame) -> Result<bool, Failure>;
}

/// Counts of carried and dropped frames. The field names are an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) frames_to_socket: u64,
    pub(super) errors_to_socket: u64,
    pub(super) frames_to_bus: u64,
    /// CAN FD frames that the interface cannot carry.
    pub(super) fd_dropped: u64,
    /// Frames from the socket that the bus cannot carry.
    pub(super) refused: u64,
    /// How often the socket had no room.
    pub(super) socket_full: u64,
    /// How often the chip had none.
    pub(super) chip_full: u64,
    /// How often the chip lost frames.
    pub(super) overflows: u64,
}

/// Moves frames between the chip and the socket.
#[derive(Debug)]
pub(super) struct Pump {
    to_socket: VecDeque<LogLine>,
    to_bus: Option<Frame>,
    /// Whether the bus carries frames of CAN FD.
    fd_bus: bool,
    pub(super) counts: Counts,
}

impl Pump {
    /// A pump with empty queues.
    pub(super) fn new(fd_bus: bool) -> Self {
        let counts = Counts::default();
        Self { to_socket: VecDeque::new(), to_bus: None, fd_bus, counts }
    }

    /// Moves all frames that can be moved without waiting; false if there were none.
    pub(super) fn step(
        &mut self,
        port: &mut impl Port,
        socket: &mut impl CanSocket,
    ) -> Result<bool, Failure> {
        let before = self.counts;
        // Step 1: drain the chip.
        if self.takes_more() {
            let Self { to_socket, counts, .. } = self;
            port.receive(&mut |what, overflow| {
                counts.overflows += u64::from(overflow);
                to_socket.push_back(what);
            })?;
        }
        // Step 2: drain the queue into the socket. Step 3: send the socket's frames.
        self.write(socket)?;
        self.read(port, socket)?;
        Ok(self.counts != before)
    }

    fn write(&mut self, socket: &mut impl CanSocket) -> Result<(), Failure> {
        while let Some(what) = self.to_socket.front() {
            let fd = matches!(what, LogLine::Frame(frame) if frame.is_fd());
            if fd && !socket.carries_fd() {
                self.counts.fd_dropped += 1;
            } else {
                match socket.write(what) {
                    Ok(()) if matches!(what, LogLine::Frame(_)) => {
                        self.counts.frames_to_socket += 1
                    }
                    Ok(()) => self.counts.errors_to_socket += 1,
                    Err(error) if is_full(&error) => {
                        self.counts.socket_full += 1;
                        return Ok(());
                    }
                    Err(error) => return Err(Failure::io("write to the socket", &error)),
                }
            }
            self.to_socket.pop_front();
        }
        Ok(())
    }

    fn read(&mut self, port: &mut impl Port, socket: &mut impl CanSocket) -> Result<(), Failure> {
        for _ in 0..BATCH {
            let frame = match self.to_bus.take() {
                Some(frame) => frame,
                None => match socket.read() {
                    Ok(Some(LogLine::Frame(frame))) => match self.fitting(frame) {
                        Some(frame) => frame,
                        None => {
                            self.counts.refused += 1;
                            continue;
                        }
                    },
                    // An error of another node's is none of this bus.
                    Ok(Some(LogLine::Error(_))) => {
                        self.counts.refused += 1;
                        continue;
                    }
                    Ok(None) => return Ok(()),
                    Err(error) => return Err(Failure::io("read from the socket", &error)),
                },
            };
            if !port.transmit(&frame)? {
                self.to_bus = Some(frame);
                self.counts.chip_full += 1;
                return Ok(());
            }
            self.counts.frames_to_bus += 1;
        }
        Ok(())
    }

    /// The frame in the chip's format; `None` if its bus cannot carry such a frame.
    fn fitting(&self, frame: CanFrame) -> Option<Frame> {
        frame.to_chip().filter(|_| self.fd_bus || !frame.is_fd())
    }

    /// Whether the chip is asked for more.
    pub(super) fn takes_more(&self) -> bool {
        self.to_socket.len() < QUEUE_MAX
    }

    /// Whether nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.to_socket.is_empty() && self.to_bus.is_none()
    }
}

/// Whether there will be room later.
fn is_full(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(ENOBUFS)
}

#[cfg(test)]
mod tests;
