//! A mapped controller as a bus, alone or shared with other processes.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use barewire::bus::Bus;
use barewire::spi::Mode;
use barewire_linux::map::MapSpec;
use barewire_linux::shared::{ChipLocks, ProcessShared};

use super::{DynController, Part, gated};
use crate::OpenError;
use crate::mapped::{self, Guard};

pub(super) struct MappedPart {
    guard: Mutex<Guard>,
    active_high: [bool; 4],
    pub(super) locks: Option<ChipLocks>,
}

/// The controller as asked, mapped, checked, and only then touched.
pub(super) fn open(
    spec: &MapSpec,
    closed: &Arc<AtomicBool>,
    tell: &mut dyn FnMut(&str),
) -> Result<(Arc<Bus<DynController>>, Part), OpenError> {
    let (mut mapped, guard) = mapped::open(spec, tell)?;
    let locks = mapped.chip_locks();
    let bus = match mapped.take_lock() {
        None => gated(mapped.start(), closed),
        Some(lock) => {
            let shared = ProcessShared::bring_up(lock, || mapped.start());
            gated(shared.map_err(OpenError::failed)?, closed)
        }
    };
    let part =
        MappedPart { guard: Mutex::new(guard), active_high: mapped::active_high(spec), locks };
    Ok((bus, Part::Mapped(Box::new(part))))
}

impl MappedPart {
    fn guard(&self) -> MutexGuard<'_, Guard> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn mode(&self, chip_select: u8) -> Mode {
        match self.active_high.get(usize::from(chip_select)) {
            Some(true) => Mode::CS_HIGH,
            _ => Mode::default(),
        }
    }

    pub(super) fn taken(&self) -> Option<String> {
        self.guard().taken()
    }

    pub(super) fn close(&self) -> Result<(), OpenError> {
        self.guard().end().map_or(Ok(()), |text| Err(OpenError::Failed(text)))
    }
}
