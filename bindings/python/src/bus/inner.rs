//! A device, as its class, asyncio and prepared exchanges share it.

use std::sync::Arc;

use barewire::spi::Settings;
use barewire_open::AnyDevice;
use pyo3::prelude::*;

use super::message::Message;
use crate::shared::SharedBus;

/// A device, shared by all objects that hold it.
pub(crate) struct Inner {
    pub(crate) shared: Arc<SharedBus>,
    pub(crate) device: AnyDevice,
}

impl Inner {
    pub(crate) fn settings(&self) -> Settings {
        *self.device.device().settings()
    }

    pub(super) fn run(&self, py: Python<'_>, message: &mut Message) -> PyResult<usize> {
        message.lend(|message| self.shared.run(py, &self.device, message))
    }
}
