//! The interface of a block's driver: its state, its plans from the board's properties, and its register accesses.

use core::fmt::Debug;
use core::task::Poll;

use crate::controller::deadline::Deadline;
use crate::controller::{CsLine, Limits, Plan, Preset, Stopped};
use crate::spi::{Data, Effective, Error, MessageError, Settings, Transfer};

/// A driver's state of its block: registers as last written, and conditions it has seen.
pub trait State: Debug + Default {
    /// The properties of the board, as its author writes them.
    type Config;
    /// The same, with what was found out of the block.
    type Board: BlockConfig + Debug + From<Self::Config>;
    /// A transfer in flight.
    type Flight: InFlight + Debug + Default;
}

/// A transfer in flight.
pub trait InFlight {
    /// When to give up.
    fn deadline(&self) -> &Deadline;
}

/// The properties of a board, which turn settings and transfers into register values.
pub trait BlockConfig {
    /// Checks what no block can have.
    ///
    /// # Panics
    /// If a clock does not run, or a native line does not exist.
    fn check(&self);

    /// The select lines.
    fn chip_selects(&self) -> &[CsLine];

    /// [`Controller::limits`](crate::controller::Controller::limits), with the timer's frequency.
    fn limits(&self, timer_hz: u32) -> Limits;

    /// [`Controller::configure`](crate::controller::Controller::configure).
    ///
    /// # Errors
    /// As there.
    fn configure(&self, settings: &Settings, timer_hz: u32) -> Result<(Preset, Effective), Error>;

    /// The register value ([`Plan::control`]) of a transfer with settings of its own.
    ///
    /// # Errors
    /// A setting that the block does not support.
    fn plan(&self, preset: &Preset, transfer: &Transfer<'_>) -> Result<u32, Error>;

    /// Checks and completes a message whose transfers are planned.
    ///
    /// # Errors
    /// A message during which a native line would pulse.
    fn complete(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        let _ = (preset, message);
        Ok(())
    }

    /// A transfer that takes longer on the wire, in nanoseconds, waits by interrupt, unless its device says otherwise.
    fn poll_limit_ns(&self) -> u32;

    /// The block's reference clock, in hertz, above zero.
    fn reference_hz(&self) -> u32;

    /// The periods of the reference clock that a word of `plan` takes on the wire, without the timer's delay after it.
    fn word_periods(&self, plan: &Plan) -> u32;
}

/// A driver's accesses to its block's registers.
pub trait BlockDriver {
    /// Whether [`Controller::run`](crate::controller::Controller::run) is inlined in its caller. Inlining is worth its
    /// code size if the shorter path is a few accesses. Otherwise a message of several transfers can afford a call.
    const RUN_INLINE: bool = true;

    /// Brings the block, in whatever state it is, to idle with empty FIFOs, its interrupt masked and its configuration
    /// forgotten. Every GPIO line is inactive.
    fn reset(&mut self);

    /// [`BlockDriver::reset`] for the first time. Finds out how the block was built, if it can be built in several ways.
    fn bring_up(&mut self) {
        self.reset();
    }

    /// Leaves the block to another program.
    fn leave(&mut self) {
        self.reset();
    }

    /// Masks the block's interrupt: one write. The block's next read waits for it, so its interrupt line is low before a
    /// handler returns.
    fn mask(&mut self);

    /// [`BlockDriver::mask`] of a block that another program drove meanwhile.
    fn mask_unknown(&mut self) {
        self.mask();
    }

    /// Unmasks the block's interrupt for what is in flight: one write.
    fn unmask(&mut self);

    /// Configures the block for the device before its chip is selected, and asserts its line if that is native. Returns
    /// whether a line may move: a stuck block may send words at any time, and no chip must be selected then.
    fn enter(&mut self, preset: &Preset) -> bool;

    /// Deasserts a native line; behind a GPIO's edge, what is left to do.
    fn exit(&mut self, preset: &Preset) {
        let _ = preset;
    }

    /// Waits until an edge of a select line has arrived, before a delay begins.
    #[inline(always)]
    fn settle(&mut self) {}

    /// Prepares the block for a whole message that takes no shorter path.
    #[inline(always)]
    fn look_ahead(&mut self, preset: &Preset, message: &[Transfer<'_>]) {
        let _ = (preset, message);
    }

    /// [`Wire::exchange`](crate::controller::Wire::exchange) of at least one byte.
    ///
    /// # Errors
    /// As there.
    fn transfer(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped>;

    /// [`Stepped::begin`](crate::controller::Stepped::begin).
    fn begin(&mut self, preset: &Preset, plan: &Plan, data: &mut Data<'_>);

    /// [`Stepped::advance`](crate::controller::Stepped::advance).
    ///
    /// # Errors
    /// As there.
    fn advance(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>>;

    /// Whether a transfer of `len` bytes, at least one, in 8-bit words, whose plan has `control`, can take the shorter
    /// path with the block as it is configured now.
    fn is_short(&self, preset: &Preset, control: u32, len: usize) -> bool;

    /// Prepares for a message that takes the shorter path.
    #[inline(always)]
    fn enter_short(&mut self, preset: &Preset) {
        let _ = preset;
    }

    /// Behind the edge that ends a message of the shorter path.
    #[inline(always)]
    fn exit_short(&mut self) {}

    /// Exchanges a transfer of `len` bytes for as long as each look finds received words. Returns true if it has ended,
    /// with the received bytes in `rx`; otherwise [`BlockDriver::exchange_rest`] must follow.
    fn exchange_short(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> bool;

    /// Finishes a transfer of `len` bytes that [`BlockDriver::exchange_short`] has begun, with the same buffers.
    ///
    /// # Errors
    /// As [`Wire::exchange`](crate::controller::Wire::exchange).
    fn exchange_rest(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> Result<(), Stopped>;
}
