//! A board in QEMU as a controller that any thread may use.
//!
//! How it works: QEMU ends with the thread that started it. So a thread of its own starts it and lives until
//! the bus is closed.
//!
//! # Safety
//! The connection to QEMU is a socket, without thread-local variables: that is the promise that [`Confined`]
//! asks for.
#![allow(unsafe_code, reason = "promises that a connection to QEMU works on any thread")]

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use barewire::controller::{Controller, CsLine};
use barewire::spi::Mode;
use barewire::time::Timer;
use barewire_qemu::{BoardSpec, QemuBoard, QemuOptions, QemuTimer};

use super::elsewhere::{self, Elsewhere};
use crate::OpenError;
use crate::confined::Confined;
use crate::name::QemuName;

pub(super) struct World {
    controller: Box<dyn Controller>,
    timer: QemuTimer,
    /// None once it is closed.
    board: Option<QemuBoard>,
}

pub(super) struct QemuPart {
    world: Arc<Confined<World>>,
    spec: &'static BoardSpec,
    /// The thread that started QEMU, and what ends it.
    keeper: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

pub(super) struct QemuClock(Arc<Confined<World>>);

fn start(name: &QemuName) -> Result<World, OpenError> {
    let options = QemuOptions { flash: name.flash.clone(), ..QemuOptions::default() };
    let board = QemuBoard::open(name.board.name, &options).map_err(OpenError::failed)?;
    let controller = Box::new(board.bus().into_inner());
    Ok(World { controller, timer: board.timer(), board: Some(board) })
}

/// The board as asked, started.
pub(super) fn open(name: &QemuName) -> Result<(Elsewhere<World>, QemuPart), OpenError> {
    let (made, making) = mpsc::channel();
    let (end, ending) = mpsc::channel();
    let wanted = name.clone();
    let keep = move || {
        // SAFETY: the module's.
        let world = unsafe { Confined::new(|| start(&wanted)) };
        if made.send(world.map(Arc::new)).is_ok() {
            // Ends with a message, or with the sender.
            let _ = ending.recv();
        }
    };
    let thread = thread::Builder::new().name("qemu".into()).spawn(keep);
    let thread = thread.map_err(|error| OpenError::io("start a thread", &error))?;
    let lost = || OpenError::Failed("the thread that starts QEMU ended".into());
    let world = making.recv().map_err(|_| lost())??;
    let keeper = Mutex::new(Some((end, thread)));
    let part = QemuPart { world: Arc::clone(&world), spec: name.board, keeper };
    Ok((Elsewhere(world), part))
}

impl QemuPart {
    pub(super) fn mode(&self, chip_select: u8) -> Mode {
        let wired = self.spec.silicon.chip_selects.iter().any(|line| *line != CsLine::Absent);
        if wired || chip_select != 0 { Mode::default() } else { Mode::NO_CS }
    }

    pub(super) fn clock(&self) -> QemuClock {
        QemuClock(Arc::clone(&self.world))
    }

    pub(super) fn lost(&self) -> Option<String> {
        self.world.with(|world| world.board.as_ref()?.lost().map(|lost| lost.to_string()))
    }

    pub(super) fn close(&self) -> Result<(), OpenError> {
        let closed = self.world.with(|world| match world.board.take() {
            Some(board) => board.close().map_err(OpenError::failed),
            None => Ok(()),
        });
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((end, thread)) = keeper {
            drop(end);
            // It only waits: it does not panic.
            let _ = thread.join();
        }
        closed
    }
}

impl elsewhere::World for World {
    type Controller = dyn Controller;

    fn controller(&mut self) -> Option<&mut Self::Controller> {
        Some(&mut *self.controller)
    }
}

impl Timer for QemuClock {
    fn frequency_hz(&self) -> u32 {
        self.0.with(|world| world.timer.frequency_hz())
    }

    fn now_ticks(&mut self) -> u64 {
        self.0.with(|world| world.timer.now_ticks())
    }

    fn wait_ticks(&mut self, ticks: u64) {
        self.0.with(|world| world.timer.wait_ticks(ticks));
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.0.with(|world| world.timer.sleep_ns(ns));
    }
}
