//! How a bus is opened, beside its name.

use crate::{Console, Fitting, Layers};

/// How a bus is opened, beside its name. Options that a kind of bus does not have are ignored.
#[derive(Debug, Default)]
pub struct OpenOptions {
    /// The layers around the controller.
    pub layers: Layers,
    /// The chips on a simulated board's chip selects.
    pub fitted: Fitting,
    /// Lets a Linux process's timer ticks interrupt a simulated board's processor.
    pub linux_process: bool,
    /// Called while messages wait for other processes; it may stop the wait. Without a console they wait
    /// silently.
    pub console: Option<Console>,
}
