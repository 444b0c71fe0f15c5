//! A board in QEMU as a bus: started when opened, ended when closed.

use std::cell::RefCell;

use barewire::bus::Bus;
use barewire::bus::platform::Spin;
use barewire::controller::{Controller, CsLine};
use barewire::spi::Mode;
use barewire::time::Timer;
use barewire_linux::Monotonic;
use barewire_qemu::{BoardSpec, QemuBoard, QemuOptions, QemuTimer};

use super::selftest::{self, Around};
use super::{Emulated, OpenBus};
use crate::shared::bus_name::QemuName;
use crate::shared::failure::Failure;

/// A board in QEMU in use.
pub(super) struct QemuBus {
    bus: Box<Bus<dyn Controller>>,
    timer: QemuTimer,
    spec: &'static BoardSpec,
    /// None once it is closed.
    board: RefCell<Option<QemuBoard>>,
}

impl QemuBus {
    /// The board as asked, started.
    pub(super) fn open(name: &QemuName, around: Around) -> Result<Self, Failure> {
        let options = QemuOptions { flash: name.flash.clone(), ..QemuOptions::default() };
        let board = QemuBoard::open(name.board.name, &options)?;
        let controller = board.bus().into_inner();
        let bus = selftest::bus(controller, around, Monotonic::new(), &Spin);
        let (timer, spec) = (board.timer(), board.spec());
        Ok(Self { bus, timer, spec, board: RefCell::new(Some(board)) })
    }
}

impl OpenBus for QemuBus {
    fn bus(&self) -> &Bus<dyn Controller + '_> {
        &*self.bus
    }

    fn mode(&self, chip_select: u8) -> Mode {
        let wired = self.spec.silicon.chip_selects.iter().any(|line| *line != CsLine::Absent);
        if wired || chip_select != 0 { Mode::default() } else { Mode::NO_CS }
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(self.timer.clone())
    }

    fn emulated(&self) -> Option<&dyn Emulated> {
        Some(self)
    }

    fn cause(&self) -> Option<String> {
        self.board.borrow().as_ref()?.lost().map(|lost| lost.to_string())
    }

    fn close(&mut self) -> Result<(), Failure> {
        match self.board.take() {
            Some(board) => Ok(board.close()?),
            None => Ok(()),
        }
    }
}

impl Emulated for QemuBus {
    fn misuse(&self) -> Result<Vec<String>, Failure> {
        match &*self.board.borrow() {
            Some(board) => Ok(board.misuse()?),
            None => Ok(Vec::new()),
        }
    }
}
