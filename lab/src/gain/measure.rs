//! The measures: what each needs, and what it makes of an experiment.

use barewire_sim::wire::Driver as Line;

use crate::kernel::Waiting;
use crate::own::{Client, Driver, Message, OwnExperiment};

/// The parts of a batch that `batch` makes of single messages.
pub const BATCH: usize = 10;
const NEWEST: (u32, u32) = (6, 12);
/// The module is built for Linux 6.1 and newer.
const MODULE: (u32, u32) = (6, 1);

/// Something that a user can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Linux 6.12.
    KernelUpgrade,
    /// A polling limit above the message.
    PollingLimit,
    /// No wait at a cs_change.
    CsChangeDelay,
    /// Several messages in one call.
    Batch,
    /// The same without a wait at the cs_change.
    BatchNoDelay,
    /// No idle states, and the highest clock.
    StayAwake,
    /// The controller's own select.
    NativeSelect,
    /// barewire's module in place of the kernel's driver.
    Module,
    /// Clients of the module's own interface.
    ModuleApi,
    /// barewire in the process, which polls.
    UserPolled,
    /// barewire in the process, which sleeps for UIO's interrupt.
    UserInterrupt,
}

impl Measure {
    /// All of them, in the order in which they are taken together.
    pub const ALL: [Self; 11] = [
        Self::KernelUpgrade,
        Self::PollingLimit,
        Self::Batch,
        Self::CsChangeDelay,
        Self::BatchNoDelay,
        Self::StayAwake,
        Self::NativeSelect,
        Self::Module,
        Self::ModuleApi,
        Self::UserPolled,
        Self::UserInterrupt,
    ];

    /// Its name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KernelUpgrade => "kernel-upgrade",
            Self::PollingLimit => "polling-limit",
            Self::CsChangeDelay => "cs-change-delay",
            Self::Batch => "batch",
            Self::BatchNoDelay => "batch-no-delay",
            Self::StayAwake => "stay-awake",
            Self::NativeSelect => "native-select",
            Self::Module => "module",
            Self::ModuleApi => "module-api",
            Self::UserPolled => "user-polled",
            Self::UserInterrupt => "user-interrupt",
        }
    }

    /// What to do, in words.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::KernelUpgrade => "Linux 6.12: each step by the factor counted on an A53",
            Self::PollingLimit => {
                "the driver polls: its polling_limit_us above the transfer; the processor is busy meanwhile"
            }
            Self::CsChangeDelay => {
                "no wait at a cs_change: cs_change_delay of the transfer, which spidev does not pass on: a patch there"
            }
            Self::Batch => "ten messages in one call, with a cs_change between",
            Self::BatchNoDelay => "both: ten in one call, and no wait at the cs_change",
            Self::StayAwake => {
                "no idle states, governor performance: at most this, if all code stays in the caches"
            }
            Self::NativeSelect => {
                "the controller's own select in place of a GPIO line through the kernel"
            }
            Self::Module => {
                "barewire's module in place of the kernel's driver, on Linux 6.12 if today's is before 6.1"
            }
            Self::ModuleApi => {
                "the module, and its own interface in the client: barewire_spi_run in place of spi_sync"
            }
            Self::UserPolled => "barewire in the process, on mapped registers (UIO), polling",
            Self::UserInterrupt => "the same, asleep until UIO's interrupt",
        }
    }
}

/// Measures taken together.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken(pub(super) Vec<Measure>);

impl Taken {
    pub(super) fn has(&self, measure: Measure) -> bool {
        self.0.contains(&measure)
    }

    /// Whether the kernel becomes another. The module needs a newer one than some have.
    pub(super) fn is_upgraded(&self, own: &OwnExperiment) -> bool {
        self.has(Measure::KernelUpgrade) || (self.is_module() && own.version < MODULE)
    }

    /// Whether barewire's module drives the controller.
    pub(super) fn is_module(&self) -> bool {
        self.has(Measure::Module) || self.has(Measure::ModuleApi)
    }

    /// Whether barewire runs in the process.
    pub(super) fn is_user(&self) -> bool {
        self.has(Measure::UserPolled) || self.has(Measure::UserInterrupt)
    }

    /// With one more. barewire's two ways of waiting exclude each other.
    pub(super) fn with(&self, measure: Measure) -> Self {
        let mut taken = self.0.clone();
        if measure == Measure::UserInterrupt {
            taken.retain(|one| *one != Measure::UserPolled);
        }
        taken.push(measure);
        Self(taken)
    }

    /// The experiment as the measures make it.
    pub(super) fn experiment(&self, own: &OwnExperiment) -> OwnExperiment {
        let mut own = own.clone();
        if self.is_upgraded(&own) {
            own.version = NEWEST;
        }
        if self.has(Measure::PollingLimit) || self.has(Measure::UserPolled) {
            own.waiting = Some(Waiting::Polling);
        }
        if self.has(Measure::UserInterrupt) {
            own.waiting = Some(Waiting::Interrupts);
        }
        own.stays_warm |= self.has(Measure::StayAwake);
        // The lab's spi-omap2-mcspi has both kinds of selects, other drivers' edges are taken off.
        if self.has(Measure::NativeSelect) && (self.is_user() || own.driver == Driver::Mcspi) {
            own.cs = native(&own).unwrap_or(own.cs);
        }
        own
    }

    /// A message as the measures make it.
    pub(super) fn message(&self, message: &Message) -> Message {
        let mut message = message.clone();
        if self.has(Measure::Batch) || self.has(Measure::BatchNoDelay) {
            (message.batch, message.cs_change) = (BATCH, true);
        }
        if self.has(Measure::CsChangeDelay) || self.has(Measure::BatchNoDelay) {
            message.cs_change_delay_ns = 0;
        }
        message
    }
}

/// The first select of the controller's own, low when active.
fn native(own: &OwnExperiment) -> Option<u8> {
    let mut lines = own.spec.cs.iter();
    let found = lines.position(|cs| matches!(cs.driver, Line::Native(_)) && !cs.active_high);
    found.and_then(|cs| u8::try_from(cs).ok())
}

/// Why `measure` does nothing beside those `taken`; none if it does something.
pub(super) fn reason(
    measure: Measure,
    own: &OwnExperiment,
    message: &Message,
    taken: &Taken,
) -> Option<String> {
    let (own, message) = (&taken.experiment(own), &taken.message(message));
    let version = format!("Linux {}.{}", own.version.0, own.version.1);
    let driver = own.driver.name();
    let why = match measure {
        Measure::KernelUpgrade if own.version >= NEWEST => format!("{version} is the newest here"),
        Measure::PollingLimit => return no_polling(own, message, &version),
        Measure::CsChangeDelay if !message.cs_change || message.batch < 2 => {
            "no cs_change in the message".into()
        }
        Measure::CsChangeDelay if message.cs_change_delay_ns == 0 => "it is 0 already".into(),
        Measure::Batch | Measure::BatchNoDelay if message.batch > 1 => {
            format!("{} in a call already", message.batch)
        }
        Measure::Batch | Measure::BatchNoDelay if message.every_ps > 0 => {
            "one message each period: it would wait for nine others".into()
        }
        Measure::Batch | Measure::BatchNoDelay => {
            return own.check(&taken.with(measure).message(message)).err();
        }
        Measure::StayAwake if !own.is_cold(message) => {
            "nothing sleeps here: the code is warm".into()
        }
        Measure::NativeSelect => return no_native(own, message),
        Measure::ModuleApi if own.client == Client::Spidev => {
            "it is for drivers in the kernel; a program's messages go through spidev".into()
        }
        Measure::ModuleApi if message.batch > 1 => {
            "its accesses are single: no batch of messages".into()
        }
        Measure::Module | Measure::ModuleApi if own.driver == Driver::Mcspi => {
            format!("the module's instructions on {driver}'s controller are not counted")
        }
        Measure::UserPolled | Measure::UserInterrupt if own.client != Client::Spidev => {
            "the client is in the kernel: its driver would have to move into a process".into()
        }
        _ => return None,
    };
    Some(why)
}

fn no_polling(own: &OwnExperiment, message: &Message, version: &str) -> Option<String> {
    let since = match own.driver {
        Driver::Bcm2835 => (4, 1),
        Driver::Imx => (5, 19),
        Driver::Mcspi => (0, 0),
    };
    let driver = own.driver.name();
    match own.path(message).waiting {
        Waiting::Polling => Some("it polls already".into()),
        _ if own.driver == Driver::Mcspi => Some(format!("{driver} has no such limit")),
        Waiting::Dma => Some(format!("{driver} takes DMA first for so many bytes")),
        Waiting::Interrupts if own.version < since => {
            Some(format!("{driver} polls since Linux {}.{}, not in {version}", since.0, since.1))
        }
        Waiting::Interrupts => None,
    }
}

fn no_native(own: &OwnExperiment, message: &Message) -> Option<String> {
    if !matches!(own.spec.cs[usize::from(own.cs)].driver, Line::Gpio { .. }) {
        return Some("its select is the controller's own already".into());
    }
    if native(own).is_none() {
        return Some("the board has no select of the controller's own".into());
    }
    match own.driver {
        Driver::Bcm2835 if own.version >= (4, 1) => {
            Some("spi-bcm2835 moves its own selects as pins since Linux 4.1".into())
        }
        Driver::Imx if message.lengths.len() > 1 => {
            Some("ECSPI's own select rises between the transfers of a message".into())
        }
        _ => None,
    }
}
