//! A board in QEMU: started when it is opened, ended when it is closed, or with the thread that opened it.

use barewire::controller::{Controller, CsLine};
use barewire::spi::Mode;
use barewire::time::Timer;
use barewire_linux::Monotonic;
use barewire_qemu::{QemuBoard, QemuOptions, QemuTimer};

use super::Backing;
use crate::name::QemuName;
use crate::{Layers, OpenError};

/// The backing of a board's controller.
pub(crate) struct QemuBacking {
    has_lines: bool,
    timer: QemuTimer,
    /// None once it is closed.
    board: Option<QemuBoard>,
}

/// The board as asked, started.
pub(crate) fn open(
    name: &QemuName,
    layers: Layers,
) -> Result<(Box<dyn Controller>, QemuBacking), OpenError> {
    let options = QemuOptions { flash: name.flash.clone(), ..QemuOptions::default() };
    let board = QemuBoard::open(name.board.name, &options).map_err(OpenError::failed)?;
    let controller = layers.around_local(board.bus().into_inner(), Monotonic::new());
    let lines = &board.spec().silicon.chip_selects;
    let has_lines = lines.iter().any(|line| *line != CsLine::Absent);
    Ok((controller, QemuBacking { has_lines, timer: board.timer(), board: Some(board) }))
}

impl Backing for QemuBacking {
    fn mode(&self, chip_select: u8) -> Mode {
        if self.has_lines || chip_select != 0 { Mode::default() } else { Mode::NO_CS }
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(self.timer.clone())
    }

    fn cause(&self) -> Option<String> {
        self.board.as_ref()?.lost().map(|lost| lost.to_string())
    }

    fn misuse(&self) -> Option<Result<Vec<String>, OpenError>> {
        Some(match &self.board {
            Some(board) => board.misuse().map_err(OpenError::failed),
            None => Ok(Vec::new()),
        })
    }

    fn close(&mut self) -> Result<(), OpenError> {
        self.board.take().map_or(Ok(()), |board| board.close().map_err(OpenError::failed))
    }
}
