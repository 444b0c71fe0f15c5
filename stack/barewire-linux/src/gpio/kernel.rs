//! The interface to the kernel's GPIO chips: a trait, which tests implement, and the real one.
//!
//! The real one makes `gpiocdev-uapi`'s calls, one system call each, without a copy or an
//! allocation for an edge.

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

/// Opens GPIO chips.
pub trait Kernel: fmt::Debug {
    /// Opens the chip whose node is at `path`.
    ///
    /// # Errors
    /// The kernel's error.
    fn open(&self, path: &Path) -> Result<Box<dyn KernelChip>, Errno>;
}

/// Information about a GPIO chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipInfo {
    /// Its label, from its driver.
    pub label: String,
    /// How many lines it has.
    pub lines: u32,
}

/// Information about a line of a chip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineInfo {
    /// Its name, usually from the board's device tree; often empty.
    pub name: String,
    /// Its user; empty if there is none or it is unknown.
    pub consumer: String,
    /// Whether it cannot be requested, because the kernel or a process uses it.
    pub used: bool,
}

/// An open chip.
pub trait KernelChip: fmt::Debug + Send {
    /// Information about the chip.
    ///
    /// # Errors
    /// The kernel's error.
    fn info(&self) -> Result<ChipInfo, Errno>;

    /// Information about line `offset`.
    ///
    /// # Errors
    /// The kernel's error.
    fn line(&self, offset: u32) -> Result<LineInfo, Errno>;

    /// Requests lines, at most 64, without changing their level or direction.
    ///
    /// # Errors
    /// [`Errno::BUSY`] if one of them is in use; then none is requested.
    fn request(&self, offsets: &[u32]) -> Result<Box<dyn Lines>, Errno>;

    /// Requests a line as an input that reports edges.
    ///
    /// # Errors
    /// [`Errno::BUSY`], or another error of the kernel: some chips have no interrupts.
    fn request_edges(&self, offset: u32, sense: Sense) -> Result<Box<dyn Lines>, Errno>;
}

/// The level of an INT line at which the chip needs service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// Low, as on most chips: falling edges are reported.
    Low,
    /// High: rising edges are reported.
    High,
}

/// An edge of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// When the kernel saw it, in nanoseconds of `CLOCK_MONOTONIC`.
    pub timestamp_ns: u64,
    /// Whether the line went high.
    pub rising: bool,
    /// Its number in this request, from 1: after a gap, the kernel dropped edges.
    pub sequence: u32,
}

/// Lines that were requested together. Dropping them releases them. Bit `n` of a mask is the `n`th
/// line of the request.
pub trait Lines: fmt::Debug + Send {
    /// Makes the lines of `mask` outputs with the levels `high`.
    ///
    /// # Errors
    /// The kernel's error.
    fn output(&mut self, mask: u64, high: u64) -> Result<(), Errno>;

    /// Drives the lines of `mask`, which are outputs, to the levels `high`.
    ///
    /// # Errors
    /// The kernel's error.
    fn set(&mut self, mask: u64, high: u64) -> Result<(), Errno>;

    /// The levels of the lines of `mask`.
    ///
    /// # Errors
    /// The kernel's error.
    fn levels(&mut self, mask: u64) -> Result<u64, Errno>;

    /// Waits for an edge that was not consumed yet, for at most `timeout`. `None` if there was
    /// none.
    ///
    /// # Errors
    /// The kernel's error.
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
    /// The lines that [`Lines::output`] made outputs.
    outputs: u64,
}

/// The errno of an error; `EIO` for an answer that the interface does not define.
fn errno(error: UapiError) -> Errno {
    match error {
        UapiError::Os(errno) => Errno::from_raw_os_error(errno.0),
        UapiError::UnderRead(_) => Errno::IO,
    }
}

impl Kernel for CharacterDevices {
    fn open(&self, path: &Path) -> Result<Box<dyn KernelChip>, Errno> {
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

/// A request for lines with the configuration `flags`.
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

impl KernelChip for ChipFile {
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
        // A configuration replaces the one before. So lines that became outputs earlier are
        // included again, with their present levels, which must be read.
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
        // A signal must not shorten the wait: wait for the rest of the time.
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
