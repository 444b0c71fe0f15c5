//! How a bus is opened, beside its name.

use crate::{Console, Fitted, Layers};

/// How a bus is opened, beside its name. What a kind of bus does not have is ignored.
#[derive(Debug, Default)]
pub struct OpenOptions {
    /// What is around the controller.
    pub layers: Layers,
    /// What is on a simulated board's chip selects.
    pub fitted: Fitted,
    /// Lets a Linux process's timer ticks interrupt a simulated board's processor.
    pub linux_process: bool,
    /// Who is told while messages wait for other processes, and may stop a wait. Without one they wait silently.
    pub console: Option<Console>,
}
