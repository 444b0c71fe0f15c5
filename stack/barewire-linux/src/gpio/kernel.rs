//! What is asked of the kernel: a trait, so that tests bring a kernel of their own, and the real one.
//!
//! The real one is `gpiocdev-uapi`'s calls, one system call each, without a copy or an allocation of ours
//! on the way of an edge.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Duration;

use gpiocdev_uapi::v2::{
    LineConfig, LineEdgeEvent, LineEdgeEventKind, LineFlags, LineRequest, LineValues,
    get_chip_info, get_line, get_line_info, get_line_values, set_line_config, set_line_values,
};
use gpiocdev_uapi::{Error as UapiError, Name, read_event, wait_event};
use rustix::io::Errno;

/// Where GPIO chips are opened.
pub trait Kernel: fmt::Debug {
    /// Opens the chip whose node is at `path`.
    ///
    /// # Errors
    /// What the kernel says.
    fn open(&self, path: &Path) -> Result<Box<dyn Chip>, Errno>;
}

/// A GPIO chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipInfo {
    /// Its label: what its driver calls it.
    pub label: String,
    /// Lines it has.
    pub lines: u32,
}

/// A line of a chip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineInfo {
    /// Its name, mostly what the board's device tree calls it; often empty.
    pub name: String,
    /// Who has it; empty if nobody does, or if that is not known.
    pub consumer: String,
    /// It cannot be requested: the kernel or a process uses it.
    pub used: bool,
}

/// An open chip.
pub trait Chip: fmt::Debug + Send {
    /// What it is.
    ///
    /// # Errors
    /// What the kernel says.
    fn info(&self) -> Result<ChipInfo, Errno>;

    /// What is known of line `offset`.
    ///
    /// # Errors
    /// What the kernel says.
    fn line(&self, offset: u32) -> Result<LineInfo, Errno>;

    /// Requests lines, at most 64, as they are: neither level nor direction changes.
    ///
    /// # Errors
    /// [`Errno::BUSY`] if somebody has one of them: then none is requested.
    fn request(&self, offsets: &[u32]) -> Result<Box<dyn Lines>, Errno>;

    /// Requests a line as an input whose edges are told.
    ///
    /// # Errors
    /// [`Errno::BUSY`], or whatever else the kernel says: some chips have no interrupts.
    fn request_edges(&self, offset: u32, sense: Sense) -> Result<Box<dyn Lines>, Errno>;
}

/// Which level of an INT line says that the chip wants something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// Low, as of most chips: falling edges are told.
    Low,
    /// High: rising edges are told.
    High,
}

/// An edge of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// When the kernel saw it, in nanoseconds of `CLOCK_MONOTONIC`.
    pub timestamp_ns: u64,
    /// The line went high.
    pub rising: bool,
    /// Counts the edges of this request from 1: a gap tells of edges that the kernel dropped.
    pub sequence: u32,
}

/// Lines that were requested together. Dropped, they are released. Bit `n` of a mask is the `n`th line
/// of the request.
pub trait Lines: fmt::Debug + Send {
    /// Makes the lines of `mask` outputs, at the levels of `high`.
    ///
    /// # Errors
    /// What the kernel says.
    fn output(&mut self, mask: u64, high: u64) -> Result<(), Errno>;

    /// Drives the lines of `mask`, which are outputs, to the levels of `high`.
    ///
    /// # Errors
    /// What the kernel says.
    fn set(&mut self, mask: u64, high: u64) -> Result<(), Errno>;

    /// The levels of the lines of `mask`.
    ///
    /// # Errors
    /// What the kernel says.
    fn levels(&mut self, mask: u64) -> Result<u64, Errno>;

    /// Waits for an edge that has not been taken yet, at most `timeout`. `None` if there was none.
    ///
    /// # Errors
    /// What the kernel says.
    fn edge(&mut self, timeout: Duration) -> Result<Option<Edge>, Errno>;
}

/// The kernel's character devices, version 2.
#[derive(Clone, Copy, Debug, Default)]
pub struct CharacterDevices;

#[derive(Debug)]
struct ChipFile(File);

#[derive(Debug)]
struct LinesFile {
    file: File,
    /// What [`Lines::output`] has made outputs.
    outputs: u64,
}

/// The error's number; what is none is an answer that the interface does not have.
fn errno(error: UapiError) -> Errno {
    match error {
        UapiError::Os(errno) => Errno::from_raw_os_error(errno.0),
        UapiError::UnderRead(_) => Errno::IO,
    }
}

impl Kernel for CharacterDevices {
    fn open(&self, path: &Path) -> Result<Box<dyn Chip>, Errno> {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = opened.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(Box::new(ChipFile(file)))
    }
}

impl ChipFile {
    fn get(&self, request: LineRequest) -> Result<Box<dyn Lines>, Errno> {
        let file = get_line(&self.0, request).map_err(errno)?;
        Ok(Box::new(LinesFile { file, outputs: 0 }))
    }
}

/// A request of lines whose configuration is `flags`.
fn request_of(offsets: &[u32], flags: LineFlags) -> LineRequest {
    let mut request = LineRequest {
        consumer: Name::from(super::CONSUMER),
        config: LineConfig { flags, ..LineConfig::default() },
        num_lines: offsets.len() as u32,
        ..LineRequest::default()
    };
    request.offsets.copy_from_slice(offsets);
    request
}

impl Chip for ChipFile {
    fn info(&self) -> Result<ChipInfo, Errno> {
        let info = get_chip_info(&self.0).map_err(errno)?;
        Ok(ChipInfo { label: String::from(&info.label), lines: info.num_lines })
    }

    fn line(&self, offset: u32) -> Result<LineInfo, Errno> {
        let info = get_line_info(&self.0, offset).map_err(errno)?;
        Ok(LineInfo {
            name: String::from(&info.name),
            consumer: String::from(&info.consumer),
            used: info.flags.contains(LineFlags::USED),
        })
    }

    fn request(&self, offsets: &[u32]) -> Result<Box<dyn Lines>, Errno> {
        if offsets.is_empty() || offsets.len() > gpiocdev_uapi::NUM_LINES_MAX {
            return Err(Errno::INVAL);
        }
        self.get(request_of(offsets, LineFlags::empty()))
    }

    fn request_edges(&self, offset: u32, sense: Sense) -> Result<Box<dyn Lines>, Errno> {
        let edge = match sense {
            Sense::Low => LineFlags::EDGE_FALLING,
            Sense::High => LineFlags::EDGE_RISING,
        };
        self.get(request_of(&[offset], LineFlags::INPUT | edge))
    }
}

impl Lines for LinesFile {
    fn output(&mut self, mask: u64, high: u64) -> Result<(), Errno> {
        // The configuration replaces the one before: lines that were made outputs earlier are named
        // again, with their levels, which must be asked for.
        let mut bits = high & mask;
        if self.outputs & !mask != 0 {
            bits |= self.levels(self.outputs & !mask)?;
        }
        let outputs = self.outputs | mask;
        let mut config = LineConfig::default();
        config.add_flags(LineFlags::OUTPUT, outputs);
        config.add_values(&LineValues { bits, mask: outputs });
        set_line_config(&self.file, config).map_err(errno)?;
        self.outputs = outputs;
        Ok(())
    }

    #[inline]
    fn set(&mut self, mask: u64, high: u64) -> Result<(), Errno> {
        set_line_values(&self.file, &LineValues { bits: high, mask }).map_err(errno)
    }

    fn levels(&mut self, mask: u64) -> Result<u64, Errno> {
        let mut values = LineValues { bits: 0, mask };
        get_line_values(&self.file, &mut values).map_err(errno)?;
        Ok(values.bits & mask)
    }

    fn edge(&mut self, timeout: Duration) -> Result<Option<Edge>, Errno> {
        // A signal shortens no wait: the rest is waited again.
        let begun = std::time::Instant::now();
        loop {
            match wait_event(&self.file, timeout.saturating_sub(begun.elapsed())) {
                Ok(true) => break,
                Ok(false) => return Ok(None),
                Err(UapiError::Os(error)) if error.0 == libc::EINTR => {}
                Err(error) => return Err(errno(error)),
            }
        }
        let mut words = [0; size_of::<LineEdgeEvent>() / 8];
        let read = read_event(&self.file, &mut words).map_err(errno)?;
        let event = LineEdgeEvent::from_slice(&words[..read]).map_err(errno)?;
        let rising = event.kind == LineEdgeEventKind::RisingEdge as u32;
        Ok(Some(Edge { timestamp_ns: event.timestamp_ns, rising, sequence: event.seqno }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_chip_says_so() {
        let devices = CharacterDevices;
        assert!(matches!(devices.open(Path::new("/dev/gpiochip-none")), Err(Errno::NOENT)));
        // /dev/null knows none of the numbers.
        let chip = devices.open(Path::new("/dev/null")).expect("opens");
        assert_eq!(chip.info(), Err(Errno::NOTTY));
        assert_eq!(chip.line(0), Err(Errno::NOTTY));
        assert_eq!(chip.request(&[1, 2]).map(drop), Err(Errno::NOTTY));
        assert_eq!(chip.request_edges(1, Sense::Low).map(drop), Err(Errno::NOTTY));
        assert_eq!(chip.request(&[]).map(drop), Err(Errno::INVAL), "nothing");
        assert_eq!(chip.request(&[0; 65]).map(drop), Err(Errno::INVAL), "more than fit");
    }

    #[test]
    fn a_request_is_as_the_interface_has_it() {
        let request = request_of(&[9, 31], LineFlags::empty());
        assert_eq!((request.num_lines, request.offsets.get(0), request.offsets.get(1)), (2, 9, 31));
        assert_eq!(String::from(&request.consumer), "barewire");
        assert_eq!(request.config.flags, LineFlags::empty(), "as is");
        assert_eq!(request.config.num_attrs, 0);
    }
}
