//! The loop that all polled controllers share: one message under one chip select.
//!
//! # Ordering
//! 1. Select: wait until every line that bring-up may have moved has been inactive for
//!    `cs_inactive`; assert CS; wait `cs_setup`.
//! 2. Clock each transfer, then wait its delay. At `cs_change`, deselect (step 3) and select (step
//!    1) with the `cs_change` delay between them.
//! 3. Deselect: wait `cs_hold`, deassert CS, wait `cs_inactive`.
//!
//! Step 3 is a destructor: an error or a panic on the way (for example in a test's registers) runs
//! it too. Only afterwards is the block told to [recover](Wire::recover): recovering may move the
//! clock line, and a selected chip would count that edge.

use super::{After, Plan, Preset};
use crate::spi::{Data, Error, MessageError, Transfer};

/// Why a block did not finish a transfer.
///
/// Small enough to be returned in a register, unlike [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Stopped {
    /// It did not finish in time.
    TimedOut {
        /// How long the driver waited, in microseconds.
        timeout_us: u32,
    },
    /// A received word was lost: the one before it had not been read yet.
    Overrun,
}

/// A message that did not finish: in which transfer, and why.
///
/// One number, so that a result of it and a length is returned in two registers, not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Unfinished(
    /// The upper half is the transfer's index. The lower half is a timeout in microseconds, an
    /// errno with [`Unfinished::OS`], or [`Unfinished::OVERRUN`] or `ABORTED` alone.
    u64,
);

impl Unfinished {
    const OS: u32 = 1 << 31;
    const OVERRUN: u32 = 1 << 30;
    /// Others than the bus use the hardware, and the message was not to wait
    /// ([`Controller::set_waiting`](super::Controller::set_waiting)). Nothing was clocked. (No errno has this value.)
    pub const BUSY: Self = Self::new(0, u32::MAX - 1);
    /// Running it panicked. (No errno has this value.)
    pub(crate) const ABORTED: Self = Self::new(0, u32::MAX);

    const fn new(transfer_index: usize, cause: u32) -> Self {
        Self((transfer_index as u64) << 32 | cause as u64)
    }

    /// The block did not finish transfer `transfer_index`.
    #[must_use]
    pub const fn stopped(transfer_index: usize, stopped: Stopped) -> Self {
        let cause = match stopped {
            // The highest bits of a timeout above 17 minutes are lost.
            Stopped::TimedOut { timeout_us } => timeout_us & (Self::OVERRUN - 1),
            Stopped::Overrun => Self::OVERRUN,
        };
        Self::new(transfer_index, cause)
    }

    /// The operating system failed transfer `transfer_index` with `errno`.
    #[must_use]
    pub const fn os(transfer_index: usize, errno: i32) -> Self {
        Self::new(transfer_index, errno as u32 | Self::OS)
    }

    /// The index of the transfer that did not finish.
    #[must_use]
    pub const fn transfer_index(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// Why it did not finish.
    #[must_use]
    pub const fn error(self) -> Error {
        let cause = self.0 as u32;
        if self.0 == Self::ABORTED.0 {
            Error::Aborted
        } else if self.0 == Self::BUSY.0 {
            Error::Busy
        } else if cause & Self::OS != 0 {
            Error::Os { errno: (cause & !Self::OS) as i32 }
        } else if cause == Self::OVERRUN {
            Error::Overrun
        } else {
            Error::Timeout { timeout_us: cause }
        }
    }

    /// The error with its index and the bytes clocked before it.
    #[cold]
    #[inline(never)]
    pub(crate) fn explain(self, message: &[Transfer<'_>]) -> MessageError {
        let transfer_index = self.transfer_index();
        let before = message.iter().take(transfer_index);
        MessageError {
            error: self.error(),
            transfer_index,
            actual_length: before.map(|transfer| transfer.data.len()).sum(),
        }
    }
}

/// A block that the shared loop drives.
pub trait Wire {
    /// Whether any device or transfer may have a delay: always the same. If not, none is waited for.
    #[inline(always)]
    fn makes_delays(&self) -> bool {
        true
    }

    /// Configures the block for the device and asserts CS.
    fn select(&mut self, preset: &Preset);

    /// Deasserts CS.
    fn deselect(&mut self, preset: &Preset);

    /// Clocks one transfer.
    ///
    /// # Errors
    /// [`Stopped`]; the loop then calls [`Wire::recover`].
    fn exchange(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped>;

    /// Brings the block from an unknown state to idle with empty FIFOs.
    fn recover(&mut self);

    /// Waits at least `ticks` whole ticks of the controller's timer.
    fn wait_ticks(&mut self, ticks: u32);

    /// Waits until every line has been inactive for `ticks` since the driver was brought up or last
    /// [reclaimed](super::Controller::reclaim), if that may have moved a line. Called before a
    /// device with delays is selected. The default is for a wire whose lines do not move then.
    #[inline]
    fn rest_ticks(&mut self, ticks: u32) {
        let _ = ticks;
    }

    /// Whether a message without errors leaves the chip selected: [`Selection::keeps_cs`](super::Selection::keeps_cs). The default is for
    /// a wire that never does, and tests no flag.
    #[inline(always)]
    fn keeps_cs(&self, preset: &Preset) -> bool {
        let _ = preset;
        false
    }
}

/// Keeps the chip selected; dropping it deselects.
pub(super) struct SelectedChip<'w, W: Wire + ?Sized> {
    pub(super) wire: &'w mut W,
    pub(super) preset: &'w Preset,
    /// Set while a transfer is on the wire: if it is dropped then, the block's state is unknown.
    pub(super) unsettled: bool,
}

// Always inlined: since `stepped` calls each of these too, the compiler would not inline them, and
// a polled message of 4 bytes would take 30 more instructions. The same holds for the rest of a
// driver's shortest path.
impl<'w, W: Wire + ?Sized> SelectedChip<'w, W> {
    #[inline(always)]
    pub(super) fn new(wire: &'w mut W, preset: &'w Preset) -> Self {
        let mut this = Self::again(wire, preset);
        this.select();
        this
    }

    /// Takes over the chip that [`SelectedChip::keep`] left selected.
    #[inline(always)]
    pub(super) fn again(wire: &'w mut W, preset: &'w Preset) -> Self {
        Self { wire, preset, unsettled: true }
    }

    /// Leaves the chip selected for [`SelectedChip::again`].
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }

    #[inline(always)]
    fn is_timed(&self) -> bool {
        self.wire.makes_delays() && self.preset.selection.is_timed()
    }

    #[inline(always)]
    fn select(&mut self) {
        if self.is_timed() {
            self.wire.rest_ticks(self.preset.cs_inactive_ticks);
        }
        self.wire.select(self.preset);
        if self.is_timed() {
            self.wire.wait_ticks(self.preset.cs_setup_ticks);
        }
    }

    #[inline(always)]
    fn deselect(&mut self) {
        if self.is_timed() {
            self.wire.wait_ticks(self.preset.cs_hold_ticks);
        }
        self.wire.deselect(self.preset);
        if self.is_timed() {
            self.wire.wait_ticks(self.preset.cs_inactive_ticks);
        }
    }

    #[inline(always)]
    pub(super) fn after(&mut self, transfer: &Transfer<'_>) {
        match transfer.plan.after() {
            After::Nothing => {}
            After::CsChange => {
                self.deselect();
                self.select();
            }
            After::Delay | After::TimedCsChange if self.wire.makes_delays() => {
                self.after_timed(transfer)
            }
            After::Delay | After::TimedCsChange => {}
        }
    }

    #[cold]
    fn after_timed(&mut self, transfer: &Transfer<'_>) {
        self.wire.wait_ticks(transfer.delay_ticks);
        if transfer.plan.after() == After::TimedCsChange {
            self.deselect();
            self.wire.wait_ticks(transfer.inactive_ticks);
            self.select();
        }
    }
}

impl<W: Wire + ?Sized> Drop for SelectedChip<'_, W> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.unsettled && self.wire.keeps_cs(self.preset) {
            return;
        }
        self.deselect();
        // After CS: a reset may move the clock line, and a selected chip would count that edge.
        if self.unsettled {
            self.wire.recover();
        }
    }
}

/// Runs a planned message on `wire` and returns its length in bytes.
///
/// # Errors
/// The first transfer that did not finish. CS is inactive and the block has recovered.
#[inline]
pub fn run_message<W: Wire + ?Sized>(
    wire: &mut W,
    preset: &Preset,
    message: &mut [Transfer<'_>],
) -> Result<usize, Unfinished> {
    let mut selected = SelectedChip::new(wire, preset);
    let mut actual_length = 0;
    for (transfer_index, transfer) in message.iter_mut().enumerate() {
        let (plan, data) = (&transfer.plan, &mut transfer.data);
        if let Err(stopped) = selected.wire.exchange(preset, plan, data) {
            return Err(Unfinished::stopped(transfer_index, stopped));
        }
        actual_length += transfer.data.len();
        selected.after(transfer);
    }
    selected.unsettled = false;
    Ok(actual_length)
}
