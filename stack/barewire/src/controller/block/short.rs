//! The shorter path: transfers whose words all fit the block's FIFO, polled, to a chip that a GPIO selects in a few
//! register accesses.

use super::{Block, BlockDriver, State};
use crate::controller::gpio::GpioBank;
use crate::controller::plan::may_all_be_short;
use crate::controller::wire::SelectedChip;
use crate::controller::{Interrupt, Plan, Preset, Stopped, Unfinished};
use crate::reg::Registers;
use crate::spi::Transfer;
use crate::time::Timer;

/// A GPIO select line: its pin (0 for none), and whether it is high while it is active. Passed by
/// value: the compiler must assume that a store to a register changes the preset.
#[derive(Clone, Copy)]
struct SelectLine {
    mask: u32,
    active_high: bool,
}

impl SelectLine {
    #[inline(always)]
    fn of(preset: &Preset) -> Self {
        Self { mask: preset.cs_mask, active_high: preset.cs_active_high }
    }
}

impl<B: State, R: Registers, G: GpioBank, T: Timer, I: Interrupt> Block<B, R, G, T, I>
where
    Self: BlockDriver,
{
    #[inline(always)]
    fn may_take_short(&self, preset: &Preset, control: u32, len: usize) -> bool {
        len > 0 && self.gpio.is_short() && self.is_short(preset, control, len)
    }

    #[inline(always)]
    fn deselect_short(&mut self, line: SelectLine) {
        self.drive_short(line, false);
        self.exit_short();
    }

    #[inline(always)]
    fn drive_short(&mut self, line: SelectLine, active: bool) {
        if line.mask != 0 {
            self.gpio.drive_short(line.mask, line.active_high == active);
        }
    }

    /// Runs a message of one planned transfer of `len` bytes by the shorter path, inlined and without a
    /// [`Transfer`] in memory. Its arguments are values, because the compiler must assume that a store
    /// to a register changes memory. Returns `None`, and does nothing, if the transfer cannot take that
    /// path.
    ///
    /// # Errors
    /// As [`run_message`](crate::controller::run_message).
    #[inline(always)]
    pub(super) fn run_short(
        &mut self,
        preset: &Preset,
        plan: Plan,
        len: usize,
        tx: Option<&[u8]>,
        mut rx: Option<&mut [u8]>,
    ) -> Option<Result<usize, Unfinished>> {
        if !plan.is_direct_bytes() || !self.may_take_short(preset, plan.control, len) {
            return None;
        }
        self.enter_short(preset);
        let line = SelectLine::of(preset);
        let selected = SelectedChip::again(self, preset);
        selected.wire.drive_short(line, true);
        let ended = selected.wire.exchange_short(plan.control, len, tx, rx.as_deref_mut());
        // Without the guard: for a callee that may panic it would have to be in memory.
        selected.keep();
        if !ended {
            return Some(self.run_rest(preset, plan.control, len, tx, rx));
        }
        self.deselect_short(line);
        Some(Ok(len))
    }

    /// Whether [`Block::exchange_selected`] takes an exchange of `len` bytes, with the block as it is configured now. It takes
    /// each shorter one too.
    #[must_use]
    pub fn takes_selected(&self, preset: &Preset, len: usize) -> bool {
        // Also on a line of the block's own, if the driver calls that short.
        let plan = preset.plan;
        plan.is_direct_bytes()
            && !preset.selection.is_timed()
            && (1..=preset.poll_bytes_max).contains(&len)
            && self.is_short(preset, plan.control, len)
    }

    /// Exchanges `tx` and `rx`, of equal length, with a chip that the caller has selected and deselects afterwards: for a
    /// caller that has a shorter way to its select line than a [`GpioBank`]. [`Block::takes_selected`] was true for the preset
    /// and the length, and no other method was called since, but this one with the same preset.
    ///
    /// Returns whether it has ended; if not, [`Block::rest_selected`] must follow.
    #[inline(always)]
    pub fn exchange_selected(&mut self, preset: &Preset, tx: &[u8], rx: &mut [u8]) -> bool {
        debug_assert!(self.takes_selected(preset, tx.len()), "asked before");
        self.enter_short(preset);
        let ended = self.exchange_short(preset.plan.control, tx.len(), Some(tx), Some(rx));
        if ended {
            self.exit_short();
        }
        ended
    }

    /// Finishes what [`Block::exchange_selected`] has begun, with the same arguments.
    ///
    /// # Errors
    /// As [`Controller::run_exchange`](crate::controller::Controller::run_exchange), but for the chip, which the caller
    /// deselects, and then calls [`Controller::reclaim`](crate::controller::Controller::reclaim).
    pub fn rest_selected(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<(), Unfinished> {
        self.exchange_rest(preset.plan.control, tx.len(), Some(tx), Some(rx))
            .map_err(|stopped| Unfinished::stopped(0, stopped))?;
        self.exit_short();
        Ok(())
    }

    /// Finishes a message that [`Block::run_short`] has begun.
    #[inline(never)]
    fn run_rest(
        &mut self,
        preset: &Preset,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> Result<usize, Unfinished> {
        let mut selected = SelectedChip::again(self, preset);
        if let Err(stopped) = selected.wire.exchange_rest(control, len, tx, rx) {
            return Err(Unfinished::stopped(0, stopped));
        }
        selected.unsettled = false;
        Ok(len)
    }

    /// Runs a planned message of a few transfers at one clock and under one chip select, each by the shorter path. Returns
    /// `None`, and does nothing, if one cannot take that path.
    ///
    /// # Errors
    /// As [`run_message`](crate::controller::run_message).
    #[inline(always)]
    pub(super) fn run_all_short(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Option<Result<usize, Unfinished>> {
        let plan = message.first()?.plan;
        if !plan.all_short() && !may_all_be_short(message) {
            return None;
        }
        let control = plan.control;
        // None is empty, so all are short if the longest is.
        let longest = message.iter().fold(0, |longest, transfer| transfer.data.len().max(longest));
        if !self.may_take_short(preset, control, longest) {
            return None;
        }
        self.enter_short(preset);
        let line = SelectLine::of(preset);
        let selected = SelectedChip::again(self, preset);
        selected.wire.drive_short(line, true);
        let mut actual_length = 0;
        for (transfer_index, transfer) in message.iter_mut().enumerate() {
            let len = transfer.data.len();
            let (tx, rx) = transfer.data.apart()?;
            if !selected.wire.exchange_short(control, len, tx, rx) {
                if let Err(stopped) = selected.wire.finish_short(control, transfer) {
                    return Some(Err(Unfinished::stopped(transfer_index, stopped)));
                }
            }
            actual_length += len;
        }
        selected.keep();
        self.deselect_short(line);
        Some(Ok(actual_length))
    }

    /// [`BlockDriver::exchange_rest`] of a transfer in memory: its buffers need not be kept until then.
    #[cold]
    #[inline(never)]
    fn finish_short(&mut self, control: u32, transfer: &mut Transfer<'_>) -> Result<(), Stopped> {
        let len = transfer.data.len();
        let (tx, rx) = transfer.data.apart().unwrap_or_default();
        self.exchange_rest(control, len, tx, rx)
    }
}
