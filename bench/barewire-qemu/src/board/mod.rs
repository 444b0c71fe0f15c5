//! QEMU's boards as data, and a running board.
//!
//! *Read first*: QEMU's documentation, "Arm System emulator", the board's page; its board code
//! (`hw/arm/sabrelite.c` and similar files) shows which line each chip is connected to.
//!
//! # How it works
//! A row ([`BoardSpec`]) has the addresses of the blocks, the line that selects the chip, and the
//! QEMU version needed: all that board code would know. Each board's file has its row and lists
//! where QEMU's models differ from the manuals.
//!
//! [`QemuBoard::open`] starts the machine and checks that it answers. The caller then accesses its
//! registers ([`QemuBoard::controller`], [`QemuBoard::gpio`]) and its interrupt line
//! ([`QemuBoard::interrupt`]). [`QemuBoard::bring_up`] runs the shipped driver on them.
//!
//! # Not supported
//! What QEMU does not model: clocks, busy periods, the flash chip's protection at power-up.

mod highbank;
mod lm3s6965evb;
mod raspi3b;
mod sabrelite;
mod sifive_u;
mod zynq;

use std::path::{Path, PathBuf};
use std::time::Duration;

use barewire::controller::Controller;
use barewire_qtest::{Launch, PrivateDir, Qemu, QemuError};

use crate::error::BoardError;
use crate::flash_file::FlashFile;
use crate::interrupt::QemuInterrupt;
use crate::registers::QemuRegisters;
use crate::timer::QemuTimer;
use crate::trace::{self, FlashCommand};
use crate::watched::WatchedController;

use crate::spec::BoardSpec;

/// Every board there is.
pub const BOARDS: &[BoardSpec] = &[
    sabrelite::BOARD,
    highbank::BOARD,
    lm3s6965evb::BOARD,
    raspi3b::BOARD,
    sifive_u::BOARD,
    sifive_u::BOARD_SD,
    zynq::BOARD,
];

impl BoardSpec {
    /// The board called `name`.
    ///
    /// # Errors
    /// [`BoardError::Unknown`], with the nearest name.
    pub fn find(name: &str) -> Result<&'static BoardSpec, BoardError> {
        BOARDS.iter().find(|board| board.name == name).ok_or_else(|| {
            let distance = |board: &&BoardSpec| strsim::osa_distance(board.name, name);
            // Up to a third of wrong letters counts as a typing error; more is another name.
            let near = BOARDS
                .iter()
                .min_by_key(distance)
                .filter(|board| distance(board) <= board.name.len().div_ceil(3));
            BoardError::Unknown {
                name: name.to_owned(),
                near: near.map(|board| board.name),
                known: BOARDS.iter().map(|board| board.name).collect(),
            }
        })
    }
}

/// The pattern of the flash model's trace events.
const FLASH_EVENTS: &str = "m25p80_*";

/// Options for a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuOptions {
    /// The file behind the board's storage chip ([`BoardSpec::storage`]). It must have exactly the
    /// chip's size; if it does not exist, an erased one is created. Without a path, a temporary
    /// file is used, which is deleted with the board.
    pub flash: Option<PathBuf>,
    /// Whether the flash model logs its commands ([`QemuBoard::trace`]). It writes two lines per
    /// byte, which makes the board several times slower.
    pub trace: bool,
    /// The QEMU to run, instead of the one named by the environment or the default command.
    pub program: Option<PathBuf>,
    /// How long QEMU may take to answer.
    pub connect_timeout: Duration,
}

impl Default for QemuOptions {
    fn default() -> Self {
        Self { flash: None, trace: false, program: None, connect_timeout: Duration::from_secs(10) }
    }
}

/// A board in a QEMU of its own. Dropping it ends QEMU. [`QemuBoard::close`] also returns errors.
#[derive(Debug)]
pub struct QemuBoard {
    spec: &'static BoardSpec,
    timer: QemuTimer,
    // Dropped before the file, which must outlive QEMU.
    qemu: Qemu,
    /// `None` on a board without such a chip.
    flash: Option<FlashFile>,
}

impl QemuBoard {
    /// Starts the board called `name` and waits until it answers.
    ///
    /// # Errors
    /// - The board is unknown.
    /// - QEMU is missing, too old, or not QEMU.
    /// - A file was given for a board without a storage chip, or it does not have the chip's size,
    ///   or it cannot be read and written.
    /// - QEMU ends, or does not answer in time.
    ///
    /// No process and no new file is left then.
    pub fn open(name: &str, options: &QemuOptions) -> Result<Self, BoardError> {
        let spec = BoardSpec::find(name)?;
        let dir = PrivateDir::new()?;
        let program = spec.program.find(options.program.as_deref(), spec.needed, &dir)?;
        let own = dir.join("flash");
        let path = options.flash.as_deref();
        let mut flash = match (&spec.storage, path) {
            (Some(part), path) => Some(FlashFile::prepare(path.unwrap_or(&own), part)?),
            (None, None) => None,
            (None, Some(_)) => return Err(BoardError::NoStorage { board: spec.name }),
        };
        let launch = Launch {
            program: &program,
            machine: spec.machine,
            memory: spec.memory,
            drive: spec
                .storage
                .zip(flash.as_ref())
                .map(|(part, file)| (part.medium.interface(), file.path())),
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

    /// The absolute path of the file behind the storage chip.
    #[must_use]
    pub fn flash_path(&self) -> Option<&Path> {
        self.flash.as_ref().map(FlashFile::path)
    }

    /// The process id of QEMU, for messages and tests.
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
        self.registers(self.spec.silicon.base)
    }

    /// The registers of the GPIO block with the chip select, or of the first block.
    #[must_use]
    pub fn gpio(&self) -> QemuRegisters {
        self.registers(self.spec.silicon.gpio_base)
    }

    /// The controller's interrupt line. From now on QEMU reports its changes. Call this before you
    /// enable the block's interrupts: the current level of the line is not reported.
    ///
    /// # Errors
    /// [`BoardError::Interrupt`] if this QEMU does not show the line; an error of a lost connection.
    pub fn interrupt(&self) -> Result<QemuInterrupt, BoardError> {
        QemuInterrupt::tap(self.qemu.link(), self.spec.name, self.spec.interrupt, self.timer())
    }

    /// Wraps `controller`, which drives this board's registers, so that no message succeeds after
    /// the connection is lost.
    #[must_use]
    pub fn watch<C: Controller>(&self, controller: C) -> WatchedController<C> {
        WatchedController::new(controller, self.qemu.link())
    }

    /// Why QEMU no longer answers, if so. Report this instead of the driver's error, which is only
    /// its consequence.
    #[must_use]
    pub fn lost(&self) -> Option<QemuError> {
        self.qemu.lost()
    }

    /// The commands that the flash model has decoded since the board was opened. Empty unless
    /// [`QemuOptions::trace`] was set.
    ///
    /// # Errors
    /// QEMU's log cannot be read.
    pub fn trace(&self) -> Result<Vec<FlashCommand>, QemuError> {
        self.qemu.log().map(|log| trace::commands(&log))
    }

    /// QEMU's complaints since the board was opened: accesses to registers that do not exist, FIFOs
    /// accessed in the wrong direction, flash commands that do not exist or are not allowed at that
    /// point. Known faults of QEMU are left out ([`BoardSpec::tolerated`]).
    ///
    /// # Errors
    /// QEMU's log cannot be read.
    pub fn misuse(&self) -> Result<Vec<String>, QemuError> {
        self.qemu.log().map(|log| trace::complaints(&log, self.spec.tolerated))
    }

    /// Ends QEMU in an orderly way. Afterwards the flash file is complete.
    ///
    /// # Errors
    /// The error of [`QemuBoard::lost`]; QEMU does not end in time or not successfully. It has
    /// ended in any case.
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
            Err(BoardError::Unknown { near, .. }) => near,
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
            assert_ne!(board.silicon.base, board.silicon.gpio_base, "{}", board.name);
            assert!(!board.interrupt.is_empty(), "{}", board.name);
        }
    }
}
