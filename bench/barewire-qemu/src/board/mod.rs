//! QEMU's boards as data, and one of them running.
//!
//! *Read first*: QEMU's documentation, "Arm System emulator", the board's page; its board code
//! (`hw/arm/sabrelite.c` and its like) says which chip hangs on which line.
//!
//! # How it works
//! A row ([`BoardSpec`]) says where the blocks are, which line selects the chip, and which QEMU is
//! needed: all that board code would know. Each board's own file has its row, and says where QEMU's
//! models differ from the manuals.
//!
//! [`QemuBoard::open`] starts that machine and proves that it answers. Then there are windows on its
//! registers ([`QemuBoard::controller`], [`QemuBoard::gpio`]), its interrupt line
//! ([`QemuBoard::interrupt`]); `bring_up` puts the shipped drivers on them.
//!
//! # Not supported
//! What QEMU does not model: clocks, busy periods, the flash chip's protection at power-up.

mod highbank;
mod lm3s6965evb;
mod raspi3b;
mod sabrelite;

use std::path::{Path, PathBuf};
use std::time::Duration;

use barewire::controller::Controller;

use crate::error::QemuError;
use crate::flash_file::FlashFile;
use crate::interrupt::QemuInterrupt;
use crate::private_dir::PrivateDir;
use crate::process::{Launch, Qemu};
use crate::registers::QemuRegisters;
use crate::timer::QemuTimer;
use crate::trace::{self, FlashCommand};
use crate::watched::Watched;

use crate::spec::BoardSpec;

/// Every board there is.
pub const BOARDS: &[BoardSpec] =
    &[sabrelite::BOARD, highbank::BOARD, lm3s6965evb::BOARD, raspi3b::BOARD];

impl BoardSpec {
    /// The board called `name`.
    ///
    /// # Errors
    /// [`QemuError::UnknownBoard`], with the nearest name.
    pub fn find(name: &str) -> Result<&'static BoardSpec, QemuError> {
        BOARDS.iter().find(|board| board.name == name).ok_or_else(|| {
            let distance = |board: &&BoardSpec| strsim::osa_distance(board.name, name);
            // A third of the letters wrong is a slip of the fingers; more is another name.
            let near = BOARDS
                .iter()
                .min_by_key(distance)
                .filter(|board| distance(board) <= board.name.len().div_ceil(3));
            QemuError::UnknownBoard {
                name: name.to_owned(),
                near: near.map(|board| board.name),
                known: BOARDS.iter().map(|board| board.name).collect(),
            }
        })
    }
}

/// What the flash chip's model writes down, as a pattern.
const FLASH_EVENTS: &str = "m25p80_*";

/// What a user may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuOptions {
    /// The file behind the board's storage chip ([`BoardSpec::storage`]): exactly its size, or made,
    /// erased, if there is none. Without it a temporary one that goes with the board.
    pub flash: Option<PathBuf>,
    /// Whether the flash chip's model writes down its commands ([`QemuBoard::trace`]). It writes
    /// two lines for each byte: the board is several times slower.
    pub trace: bool,
    /// Another QEMU than the environment's or the command's.
    pub program: Option<PathBuf>,
    /// How long QEMU may take to answer.
    pub connect_timeout: Duration,
}

impl Default for QemuOptions {
    fn default() -> Self {
        Self { flash: None, trace: false, program: None, connect_timeout: Duration::from_secs(10) }
    }
}

/// A board in a QEMU of its own. Dropping it ends QEMU; [`QemuBoard::close`] tells how that went.
#[derive(Debug)]
pub struct QemuBoard {
    spec: &'static BoardSpec,
    timer: QemuTimer,
    // Before the file, which must outlive QEMU.
    qemu: Qemu,
    /// None on a board without such a chip.
    flash: Option<FlashFile>,
}

impl QemuBoard {
    /// Starts the board called `name` and waits until it answers.
    ///
    /// # Errors
    /// An unknown board; a QEMU that is missing, too old, or none; a file for a board without a chip
    /// that would keep it, one that has not the chip's size or cannot be read and written; a QEMU
    /// that ends or does not answer in time. Nothing is left running, and no file that was not
    /// there.
    pub fn open(name: &str, options: &QemuOptions) -> Result<Self, QemuError> {
        let spec = BoardSpec::find(name)?;
        let dir = PrivateDir::new()?;
        let program = spec.program.find(options.program.as_deref(), spec.needed, &dir)?;
        let own = dir.join("flash");
        let path = options.flash.as_deref();
        let mut flash = match (&spec.storage, path) {
            (Some(part), path) => Some(FlashFile::prepare(path.unwrap_or(&own), part)?),
            (None, None) => None,
            (None, Some(_)) => return Err(QemuError::NoStorage { board: spec.name }),
        };
        let launch = Launch {
            program: &program,
            machine: spec.machine,
            memory: spec.memory,
            drive: spec.storage.zip(flash.as_ref()).map(|(part, file)| (part.medium, file.path())),
            trace: options.trace.then_some(FLASH_EVENTS),
            stopped: true,
            more: &[],
            connect_timeout: options.connect_timeout,
        };
        let qemu = Qemu::start(&launch, dir)?;
        if let Some(flash) = &mut flash {
            flash.keep();
        }
        Ok(Self { spec, timer: QemuTimer::new(), qemu, flash })
    }

    /// The board's row.
    #[must_use]
    pub fn spec(&self) -> &'static BoardSpec {
        self.spec
    }

    /// The board's clock, for chip drivers.
    #[must_use]
    pub fn timer(&self) -> QemuTimer {
        self.timer.clone()
    }

    /// The file behind the storage chip, absolute.
    #[must_use]
    pub fn flash_path(&self) -> Option<&Path> {
        self.flash.as_ref().map(FlashFile::path)
    }

    /// QEMU's process, for messages and tests.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.qemu.pid()
    }

    /// The block of registers at `base`, in the board's address space.
    #[must_use]
    pub fn registers(&self, base: u32) -> QemuRegisters {
        QemuRegisters::new(self.qemu.link(), base)
    }

    /// The controller's registers.
    #[must_use]
    pub fn controller(&self) -> QemuRegisters {
        self.registers(self.spec.silicon.base())
    }

    /// The registers of the GPIO block that has, or would have, the chip select.
    #[must_use]
    pub fn gpio(&self) -> QemuRegisters {
        self.registers(self.spec.silicon.gpio_base())
    }

    /// The controller's interrupt line, of which QEMU tells from now on. To be asked for before the
    /// block's interrupts are enabled: a line that is up already is told of when it next moves.
    ///
    /// # Errors
    /// [`QemuError::Interrupt`] if this QEMU does not show the line; a lost connection.
    pub fn interrupt(&self) -> Result<QemuInterrupt, QemuError> {
        QemuInterrupt::tap(self.qemu.link(), self.spec, self.timer())
    }

    /// `controller`, made over this board's registers, so that no message of its succeeds once the
    /// connection is lost.
    #[must_use]
    pub fn watch<C: Controller>(&self, controller: C) -> Watched<C> {
        Watched::new(controller, self.qemu.link())
    }

    /// Why QEMU no longer answers, if so: to be reported instead of whatever error the driver
    /// made of it.
    #[must_use]
    pub fn lost(&self) -> Option<QemuError> {
        self.qemu.lost()
    }

    /// The commands the flash chip's model has understood since the board was opened; none unless
    /// [`QemuOptions::trace`] was set.
    ///
    /// # Errors
    /// QEMU's log cannot be read.
    pub fn trace(&self) -> Result<Vec<FlashCommand>, QemuError> {
        self.qemu.log().map(|log| trace::commands(&log))
    }

    /// What QEMU has complained about since the board was opened: registers that do not exist,
    /// FIFOs read or written the wrong way round, flash commands that do not exist or come where
    /// they may not. What is QEMU's own fault is left out ([`BoardSpec::tolerated`]).
    ///
    /// # Errors
    /// QEMU's log cannot be read.
    pub fn misuse(&self) -> Result<Vec<String>, QemuError> {
        self.qemu.log().map(|log| trace::complaints(&log, self.spec.tolerated))
    }

    /// Ends QEMU in an orderly way: afterwards the flash file is complete.
    ///
    /// # Errors
    /// [`QemuBoard::lost`]'s; a QEMU that does not end in time or not well. It is gone all the
    /// same.
    pub fn close(self) -> Result<(), QemuError> {
        self.qemu.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_board_is_told_the_near_one() {
        let size = |board: &BoardSpec| board.storage.map(|part| part.size);
        assert_eq!(BoardSpec::find("sabrelite").map(size), Ok(Some(2 << 20)));
        let near = |name| match BoardSpec::find(name) {
            Err(QemuError::UnknownBoard { near, .. }) => near,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(near("sabrelight"), Some("sabrelite"));
        assert_eq!(near("sabre-lite"), Some("sabrelite"));
        assert_eq!(near("raspi3"), Some("raspi3b"));
        assert_eq!(near("lm3s6965"), Some("lm3s6965evb"));
        assert_eq!(near("zcu102"), None);
        assert_eq!(near(""), None);
    }

    #[test]
    fn names_are_unique_and_blocks_apart() {
        for (n, board) in BOARDS.iter().enumerate() {
            assert!(BOARDS[..n].iter().all(|other| other.name != board.name), "{}", board.name);
            assert_ne!(board.silicon.base(), board.silicon.gpio_base(), "{}", board.name);
            assert!(!board.interrupt.is_empty(), "{}", board.name);
        }
    }
}
