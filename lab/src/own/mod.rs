//! An experiment of the user's own: messages on a board through a kernel, as data.
//!
//! *Read first*: docs/lab.md, *An experiment of your own*, for the format.
//!
//! # How it works
//! 1. `form` has the keys; TOML's reader refuses what is no key or has another type, and says where.
//! 2. [`OwnExperiment::read`] makes a board, a path and messages of it. It refuses, with the line, what the lab cannot run.
//! 3. [`crate::workload::messages`] runs it.
//!
//! # Not supported
//! Kernel drivers of other controllers than McSPI, ECSPI and the BCM2835's SPI0.

mod form;
mod linux;
mod place;
mod read;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use barewire_sim::BoardSpec;
use barewire_sim::chip::Ps;
use barewire_sim::profile::Profile;

use crate::cost::Costs;
use crate::kernel::imx::{self, Fifo};
use crate::kernel::{Path, Waiting, bcm2835, mcspi};
use crate::regime::Regime;
pub use read::{NAME_MAX, TRANSFERS_MAX};

/// Who sends the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// A process, by `ioctl(SPI_IOC_MESSAGE(n))`.
    Spidev,
    /// A driver in the kernel, by spi_sync.
    InKernel,
    /// The same with messages prepared by spi_optimize_message.
    InKernelOptimized,
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Spidev, Self::InKernel, Self::InKernelOptimized];

    /// Its name in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spidev => "spidev",
            Self::InKernel => "in-kernel",
            Self::InKernelOptimized => "in-kernel-optimized",
        }
    }
}

/// The driver of the board's controller, as the lab has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// spi-bcm2835.
    Bcm2835,
    /// spi-imx, of an ECSPI.
    Imx,
    /// spi-omap2-mcspi.
    Mcspi,
}

impl Driver {
    /// Linux's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bcm2835 => "spi-bcm2835",
            Self::Imx => "spi-imx",
            Self::Mcspi => "spi-omap2-mcspi",
        }
    }

    /// The shortest transfer that it moves by DMA, in bytes.
    fn dma_bytes(self) -> usize {
        match self {
            Self::Bcm2835 => bcm2835::DMA_BYTES,
            Self::Imx => imx::DMA_BYTES,
            Self::Mcspi => mcspi::DMA_BYTES,
        }
    }
}

/// A DMA engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DmaEngine {
    /// Its set-up for a transfer, in picoseconds.
    pub setup_ps: Ps,
    /// The time of a byte, in picoseconds.
    pub byte_ps: f64,
}

/// A message, sent again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its name in the file.
    pub name: String,
    /// The bytes of the transfers of one selection, or of one part of the batch.
    pub lengths: Vec<usize>,
    /// How often these are in the message.
    pub batch: usize,
    /// Chip select is inactive for a moment between two of the batch.
    pub cs_change: bool,
    /// For how long it is then, beside the time that it takes to move it, in nanoseconds.
    pub cs_change_delay_ns: u64,
    /// The wait after each transfer, in nanoseconds.
    pub delay_ns: u64,
    /// From the beginning of one message to that of the next; 0 if the next follows at once.
    pub every_ps: Ps,
    /// The clock asked.
    pub speed_hz: u64,
    /// Figures measured elsewhere.
    pub published: Vec<(Measure, f64)>,
}

impl Message {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batch * self.lengths.iter().sum::<usize>()
    }

    /// How often chip select is active in it.
    #[must_use]
    pub fn selections(&self) -> usize {
        if self.cs_change { self.batch } else { 1 }
    }
}

/// A figure of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Messages a second; of a batch, parts of it.
    Rate,
    /// From the call to its return: an ioctl or a spi_sync.
    Call,
    /// Chip select active.
    CsLow,
    /// Chip select inactive between two messages.
    CsHigh,
    /// Chip select inactive inside a batch.
    CsToggle,
    /// From chip select to the first edge of the clock.
    CsToClock,
    /// From the last edge of the clock to chip select.
    ClockToCs,
    /// From the first bit to the end of the last, rests included.
    Clocks,
    /// The clock rests while chip select is active, between the first bit and the last.
    Rests,
    /// Such a rest at a refill of the FIFO by an interrupt.
    RefillGap,
    /// The share of one processor that the messages keep busy.
    Processor,
}

impl Measure {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 11] = [
        Self::Rate,
        Self::Call,
        Self::CsLow,
        Self::CsHigh,
        Self::CsToggle,
        Self::CsToClock,
        Self::ClockToCs,
        Self::Clocks,
        Self::Rests,
        Self::RefillGap,
        Self::Processor,
    ];

    /// Its name in files and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Call => "call",
            Self::CsLow => "cs-low",
            Self::CsHigh => "cs-high",
            Self::CsToggle => "cs-toggle",
            Self::CsToClock => "cs-to-clock",
            Self::ClockToCs => "clock-to-cs",
            Self::Clocks => "clocks",
            Self::Rests => "rests",
            Self::RefillGap => "refill-gap",
            Self::Processor => "processor",
        }
    }

    /// Its unit.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Rate => "1/s",
            Self::Processor => "%",
            _ => "us",
        }
    }

    /// The measure called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// An experiment.
#[derive(Clone, Debug)]
pub struct OwnExperiment {
    /// The name, which begins the figures' ids.
    pub name: String,
    /// In words.
    pub title: String,
    /// The board.
    pub spec: &'static BoardSpec,
    /// Its costs, with the processor of the file.
    pub profile: Profile,
    /// The chip select.
    pub cs: u8,
    /// The kernel's version.
    pub version: (u32, u32),
    /// Who sends.
    pub client: Client,
    /// The driver.
    pub driver: Driver,
    /// How it waits; none if it decides itself.
    pub waiting: Option<Waiting>,
    /// Processors.
    pub processors: u32,
    /// Bytes in the FIFO at most; none for as many as it holds.
    pub refill_bytes: Option<usize>,
    /// A refill comes no sooner than this after its interrupt.
    pub refill_ps: Ps,
    /// The DMA engine.
    pub dma: Option<DmaEngine>,
    /// The processor is kept from idling: code stays in the caches while threads sleep. No file says so, see [`crate::gain`].
    pub stays_warm: bool,
    /// The messages, each with another name.
    pub messages: Vec<Message>,
}

impl OwnExperiment {
    /// The message `name`.
    #[must_use]
    pub fn message(&self, name: &str) -> Option<&Message> {
        self.messages.iter().find(|message| message.name == name)
    }

    /// The id of a figure: `mine:read:rate`.
    #[must_use]
    pub fn id(&self, message: &Message, measure: Measure) -> String {
        format!("{}:{}:{}", self.name, message.name, measure.name())
    }

    /// How the driver waits for a transfer of `bytes`, if the file leaves it to the driver.
    #[must_use]
    pub fn waiting_of(&self, message: &Message, bytes: usize) -> Waiting {
        if let Some(waiting) = self.waiting {
            return waiting;
        }
        if self.dma.is_some() && bytes >= self.driver.dma_bytes() {
            return Waiting::Dma;
        }
        // Clocks of a byte as each driver reckons.
        let is_short = |clocks: u128| {
            bytes as u128 * clocks * 1_000_000_000
                < u128::from(message.speed_hz) * u128::from(linux::POLL_LIMIT_NS)
        };
        let polls = match self.driver {
            Driver::Bcm2835 => self.version >= (4, 1) && is_short(9),
            Driver::Imx => self.version >= (5, 19) && is_short(12),
            Driver::Mcspi => true,
        };
        if polls { Waiting::Polling } else { Waiting::Interrupts }
    }

    /// The path of a message, whose longest transfer says how the driver waits.
    #[must_use]
    pub fn path(&self, message: &Message) -> Path {
        let longest = message.lengths.iter().copied().max().unwrap_or(1);
        let waiting = self.waiting_of(message, longest);
        let is_optimized = self.client == Client::InKernelOptimized;
        let cs_change_delay_ns = message.cs_change_delay_ns;
        Path { cs_change_delay_ns, ..linux::path(self.version, waiting, is_optimized) }
    }

    /// spi-imx's use of its FIFO.
    #[must_use]
    pub fn fifo(&self) -> Fifo {
        let fifo = if linux::imx_moves_bytes(self.version) { Fifo::BYTES } else { Fifo::WORDS };
        let words = |bytes: usize| bytes.div_ceil(fifo.word_bytes).clamp(1, imx::FIFO_WORDS);
        Fifo {
            words: self.refill_bytes.map_or(fifo.words, words),
            refill_ps: self.refill_ps,
            dma: self.dma.map(|DmaEngine { setup_ps, byte_ps }| {
                (setup_ps, ((byte_ps * fifo.word_bytes as f64).round() as Ps).max(1))
            }),
            ..fifo
        }
    }

    /// The refills of a transfer of `bytes` by interrupts.
    #[must_use]
    pub fn refills(&self, bytes: usize) -> usize {
        let fifo = self.fifo();
        bytes.div_ceil(fifo.words * fifo.word_bytes).saturating_sub(1)
    }

    /// Whether the code of a message is not in the caches when it begins: the processor has slept since the last one.
    #[must_use]
    pub fn is_cold(&self, message: &Message) -> bool {
        let sleeps = message.every_ps > 0 || self.path(message).waiting != Waiting::Polling;
        sleeps && !self.stays_warm
    }

    /// What the code of a message did a moment before.
    #[must_use]
    pub fn regime(&self, message: &Message) -> Regime {
        if self.is_cold(message) { Regime::AfterIdle } else { Regime::InALoop }
    }

    /// The same with other messages.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut Self)) -> Rc<Self> {
        let mut other = self.clone();
        change(&mut other);
        Rc::new(other)
    }

    /// The costs that it charges: the lab's, with those of its driver.
    #[must_use]
    pub fn costs(costs: &Costs) -> Costs {
        costs.fresh().with_drivers()
    }
}
