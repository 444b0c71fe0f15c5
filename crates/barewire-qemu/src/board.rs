//! QEMU's boards as table rows, and one of them running.
//!
//! *Read first*: QEMU's documentation, "Arm System emulator", the board's page; its board code
//! (`hw/arm/sabrelite.c`) says which chip hangs on which line.
//!
//! # How it works
//! A row says where the blocks are, which line selects the chip, and which QEMU is needed: all
//! that board code would know. [`QemuBoard::open`] starts that machine and proves that it answers;
//! [`QemuBoard::bus`] puts the shipped driver on it, for QEMU's models: bursts of one FIFO load,
//! because they run in no time and the ECSPI's model does not count its FIFOs
//! ([`Streaming::FifoLoads`]); GPIO banks owned, because nobody else drives the board.
//!
//! # Not supported
//! Boards whose drivers do not exist yet: raspi3b (BCM2835), PL022 boards. What QEMU does not
//! model: clocks, busy periods, loopback, the flash chip's protection at power-up.

use std::path::{Path, PathBuf};
use std::time::Duration;

use barewire::bus::Bus;
use barewire::controller::ecspi::{Ecspi, EcspiConfig, Streaming};
use barewire::controller::gpio::{ImxGpio, Ownership};
use barewire::controller::{ALWAYS_POLL, CsLine};

use crate::error::{QemuError, Version};
use crate::flash_file::FlashFile;
use crate::private_dir::PrivateDir;
use crate::process::{Launch, Qemu};
use crate::program::QemuProgram;
use crate::registers::QemuRegisters;
use crate::timer::QemuTimer;
use crate::trace::{self, FlashCommand};
use crate::watched::Watched;

/// The shipped ECSPI driver on QEMU's registers.
pub type QemuEcspi = Ecspi<QemuRegisters, ImxGpio<QemuRegisters>, QemuTimer>;

/// QEMU for 32-bit Arm.
const QEMU_ARM: QemuProgram = QemuProgram {
    command: "qemu-system-arm",
    variable: "BAREWIRE_QEMU_ARM",
    package: "qemu-system-arm",
};

/// The datasheet has the 32 KiB block erase (52h); QEMU's table of the part does not. It complains
/// and erases.
const ERASE_32K: &str = "M25P80: 32768 erase size not supported by device";

/// Every board there is.
pub const BOARDS: &[BoardSpec] = &[BoardSpec {
    name: "sabrelite",
    machine: "sabrelite",
    memory: "64M",
    program: QEMU_ARM,
    // The oldest whose models were run against the driver.
    needed: Version { major: 7, minor: 2 },
    silicon: Silicon::Ecspi {
        // ECSPI1; its root clock is PLL3 (480 MHz) divided by 8.
        base: 0x0200_8000,
        reference_hz: 60_000_000,
        // GPIO3_IO19.
        gpio_base: 0x020a_4000,
        cs: CsLine::Gpio { bit: 19, active_high: false },
    },
    flash: FlashPart { name: "SST25VF016B", size: 2 << 20 },
    tolerated: &[ERASE_32K],
}];

/// A board: what QEMU needs to be told, and what board code would know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardSpec {
    /// How users call it.
    pub name: &'static str,
    /// How QEMU calls it.
    pub machine: &'static str,
    /// Its memory, in QEMU's words.
    pub memory: &'static str,
    /// The program that has it.
    pub program: QemuProgram,
    /// The oldest version of it that does.
    pub needed: Version,
    /// The controller and its lines.
    pub silicon: Silicon,
    /// The chip on chip select 0.
    pub flash: FlashPart,
    /// Parts of complaints that are QEMU's fault and not the driver's.
    pub tolerated: &'static [&'static str],
}

/// A board's controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silicon {
    /// i.MX ECSPI with a chip select by GPIO.
    Ecspi {
        /// Where its registers are.
        base: u32,
        /// Its reference clock, in hertz.
        reference_hz: u32,
        /// Where the GPIO bank's registers are.
        gpio_base: u32,
        /// Chip select 0.
        cs: CsLine,
    },
}

/// A flash chip on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashPart {
    /// Its name.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
}

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

/// What a user may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuOptions {
    /// The file behind the flash chip: exactly its size, or made, erased, if there is none.
    /// Without it a temporary one that goes with the board.
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
    flash: FlashFile,
}

impl QemuBoard {
    /// Starts the board called `name` and waits until it answers.
    ///
    /// # Errors
    /// An unknown board; a QEMU that is missing, too old, or none; a flash file that has not the
    /// chip's size or cannot be read and written; a QEMU that ends or does not answer in time.
    /// Nothing is left running, and no file that was not there.
    pub fn open(name: &str, options: &QemuOptions) -> Result<Self, QemuError> {
        let spec = BoardSpec::find(name)?;
        let dir = PrivateDir::new()?;
        let program = spec.program.find(options.program.as_deref(), spec.needed, &dir)?;
        let own = dir.join("flash");
        let path = options.flash.as_deref().unwrap_or(&own);
        let mut flash = FlashFile::prepare(path, &spec.flash)?;
        let launch = Launch {
            program: &program,
            machine: spec.machine,
            memory: spec.memory,
            flash: flash.path(),
            trace: options.trace,
            connect_timeout: options.connect_timeout,
        };
        let qemu = Qemu::start(&launch, dir)?;
        flash.keep();
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

    /// The file behind the flash chip, absolute.
    #[must_use]
    pub fn flash_path(&self) -> &Path {
        self.flash.path()
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

    /// The board's controller under the shipped driver, its chip selects inactive.
    ///
    /// Its messages may succeed, with zeros, on a lost connection: ask [`QemuBoard::lost`] after
    /// each, or take [`QemuBoard::bus`].
    #[must_use]
    pub fn bring_up(&self) -> QemuEcspi {
        let Silicon::Ecspi { base, reference_hz, gpio_base, cs } = self.spec.silicon;
        let config = EcspiConfig {
            reference_hz,
            chip_selects: [cs, CsLine::Absent, CsLine::Absent, CsLine::Absent],
            streaming: Streaming::FifoLoads,
            poll_limit_ns: ALWAYS_POLL,
        };
        let gpio = ImxGpio::new(self.registers(gpio_base), Ownership::Exclusive);
        Ecspi::new(self.registers(base), gpio, self.timer(), config)
    }

    /// A bus over the shipped driver, on which no message succeeds once the connection is lost.
    #[must_use]
    pub fn bus(&self) -> Bus<Watched<QemuEcspi>> {
        Bus::new(Watched::new(self.bring_up(), self.qemu.link()))
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
        assert_eq!(BoardSpec::find("sabrelite").map(|board| board.flash.size), Ok(2 << 20));
        let near = |name| match BoardSpec::find(name) {
            Err(QemuError::UnknownBoard { near, .. }) => near,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(near("sabrelight"), Some("sabrelite"));
        assert_eq!(near("sabre-lite"), Some("sabrelite"));
        assert_eq!(near("raspi3b"), None);
        assert_eq!(near(""), None);
    }
}
