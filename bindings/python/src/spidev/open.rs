//! One object's connection to a node.
//!
//! How it works: py-spidev keeps the settings in the object, beside those that the kernel keeps with the node. Clock and
//! word length go with each message, from the object; the mode is the node's. A plain message of a few bytes runs on a
//! device that was made once ([`Plain`]); every other goes through the node's rules.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use barewire::spi::Transfer;
use barewire_open::AnyDevice;
use barewire_spidev_abi::{IocTransfer, Setting};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use super::node::{self, CallRefusal, Node};

/// A connection to a node, with the settings as this object knows them.
pub(super) struct Open {
    pub(super) node: Arc<Node>,
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) mode: u8,
    pub(super) bits_per_word: u8,
    pub(super) max_speed_hz: u32,
    /// The device of the last plain message.
    pub(super) plain: Option<Plain>,
}

/// A device for plain messages, and the settings it was made for.
pub(super) struct Plain {
    pub(super) device: AnyDevice,
    pub(super) speed_hz: u32,
    pub(super) generation: u32,
}

/// The optional arguments of a message.
#[derive(Clone, Copy)]
pub(super) struct Options {
    pub(super) speed_hz: u32,
    pub(super) delay_usecs: u16,
    pub(super) bits_per_word: u8,
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.node.shared.is_forked() {
            self.node.closed();
        }
    }
}

impl Options {
    pub(super) const NONE: Self = Self { speed_hz: 0, delay_usecs: 0, bits_per_word: 0 };
}

pub(super) fn os_error(py: Python<'_>, refused: &CallRefusal) -> PyErr {
    let text = py
        .import("os")
        .and_then(|os| os.call_method1("strerror", (refused.errno,))?.extract::<String>());
    let error = PyOSError::new_err((refused.errno, text.unwrap_or_default()));
    if let Some(why) = &refused.why {
        // Without the note the error is the same.
        let _ = error.value(py).call_method1("add_note", (format!("barewire: {why}"),));
    }
    error
}

pub(super) fn not_open(py: Python<'_>) -> PyErr {
    os_error(py, &CallRefusal::errno(libc::EBADF))
}

impl Open {
    /// Opens the node at `path` and reads its settings.
    pub(super) fn new(py: Python<'_>, path: &Path) -> PyResult<Self> {
        let opened = node::open(py, path)?;
        let (node, file) = opened.map_err(|refused| os_error(py, &refused))?;
        node.opened();
        Ok(Self {
            mode: node.read(Setting::Mode).to_le_bytes()[0],
            bits_per_word: node.read(Setting::BitsPerWord).to_le_bytes()[0],
            max_speed_hz: node.read(Setting::MaxSpeedHz),
            node,
            path: path.to_owned(),
            file,
            plain: None,
        })
    }

    /// In a child of the process that opened it: opens a node of the kernel's again. Fails for a mapped node,
    /// whose bus is the parent's.
    #[cold]
    pub(super) fn after_fork(&mut self, py: Python<'_>) -> PyResult<()> {
        if !self.node.of_kernel {
            return self.node.shared.check_process(py);
        }
        let mut again = Self::new(py, &self.path)?;
        (again.mode, again.bits_per_word) = (self.mode, self.bits_per_word);
        again.max_speed_hz = self.max_speed_hz;
        *self = again;
        Ok(())
    }

    /// Runs an exchange of a few bytes while the interpreter is held. `None` if it cannot be run this way; then
    /// nothing was clocked.
    #[inline]
    pub(super) fn run_short(
        &mut self,
        options: Options,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Option<Result<(), CallRefusal>> {
        let Options { speed_hz, delay_usecs, bits_per_word } = options;
        let speed_hz = if speed_hz == 0 { self.max_speed_hz } else { speed_hz };
        let bits = if bits_per_word == 0 { self.bits_per_word } else { bits_per_word };
        if bits != 8
            || delay_usecs != 0
            || !self.node.alone
            || !self.node.shared.keeps_interpreter(tx.len(), speed_hz)
        {
            return None;
        }
        let generation = self.node.generation.load(Ordering::Relaxed);
        let fits = |plain: &&Plain| plain.speed_hz == speed_hz && plain.generation == generation;
        let plain = match self.plain.as_ref().filter(fits) {
            Some(plain) => plain,
            None => self.new_plain(speed_hz, generation)?,
        };
        let ran = plain.device.device().sync(&mut [Transfer::exchange(tx, rx)]);
        Some(ran.map(drop).map_err(|error| self.node.failed(error.error.into())))
    }

    /// Makes the device of plain messages at that clock, on a bus that is idle: the interpreter is kept, because the
    /// caller holds the object.
    #[cold]
    fn new_plain(&mut self, speed_hz: u32, generation: u32) -> Option<&Plain> {
        let settings = self.node.chip().plain_settings(speed_hz, 8)?;
        let device = self.node.shared.any.device(&settings).ok()?;
        Some(self.plain.insert(Plain { device, speed_hz, generation }))
    }

    /// The transfer that the node gets for a message of these options and length.
    pub(super) fn transfer(&self, options: Options, len: usize) -> IocTransfer {
        let Options { speed_hz, delay_usecs, bits_per_word } = options;
        IocTransfer {
            tx_buf: 1,
            rx_buf: 1,
            len: u32::try_from(len).unwrap_or(u32::MAX),
            speed_hz: if speed_hz == 0 { self.max_speed_hz } else { speed_hz },
            delay_usecs,
            bits_per_word: if bits_per_word == 0 { self.bits_per_word } else { bits_per_word },
            ..IocTransfer::default()
        }
    }
}
