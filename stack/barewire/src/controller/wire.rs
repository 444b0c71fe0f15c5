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

use core::mem::ManuallyDrop;

use super::plan::may_all_be_short;
use super::{After, Plan, Program};
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
    /// Configures the block for the program and asserts CS.
    fn select(&mut self, program: &Program);

    /// Deasserts CS.
    fn deselect(&mut self, program: &Program);

    /// Clocks one transfer.
    ///
    /// # Errors
    /// [`Stopped`]; the loop then calls [`Wire::recover`].
    fn exchange(
        &mut self,
        program: &Program,
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
    fn keeps_cs(&self, program: &Program) -> bool {
        let _ = program;
        false
    }
}

/// Keeps the chip selected; dropping it deselects.
pub(super) struct Selected<'w, W: Wire + ?Sized> {
    pub(super) wire: &'w mut W,
    pub(super) program: &'w Program,
    /// Set while a transfer is on the wire: if it is dropped then, the block's state is unknown.
    pub(super) unsettled: bool,
}

// Always inlined: since `stepped` calls each of these too, the compiler would not inline them, and
// a polled message of 4 bytes would take 30 more instructions. The same holds for the rest of a
// driver's shortest path.
impl<'w, W: Wire + ?Sized> Selected<'w, W> {
    #[inline(always)]
    pub(super) fn new(wire: &'w mut W, program: &'w Program) -> Self {
        let mut this = Self::again(wire, program);
        this.select();
        this
    }

    /// Takes over the chip that [`Selected::keep`] left selected.
    #[inline(always)]
    pub(super) fn again(wire: &'w mut W, program: &'w Program) -> Self {
        Self { wire, program, unsettled: true }
    }

    /// Leaves the chip selected for [`Selected::again`].
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }

    #[inline(always)]
    fn select(&mut self) {
        if self.program.selection.is_timed() {
            self.wire.rest_ticks(self.program.cs_inactive_ticks);
        }
        self.wire.select(self.program);
        if self.program.selection.is_timed() {
            self.wire.wait_ticks(self.program.cs_setup_ticks);
        }
    }

    #[inline(always)]
    fn deselect(&mut self) {
        if self.program.selection.is_timed() {
            self.wire.wait_ticks(self.program.cs_hold_ticks);
        }
        self.wire.deselect(self.program);
        if self.program.selection.is_timed() {
            self.wire.wait_ticks(self.program.cs_inactive_ticks);
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
            After::Delay | After::TimedCsChange => self.after_timed(transfer),
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

impl<W: Short> Selected<'_, W> {
    /// Deselects after a message without errors: the destructor, inlined.
    #[inline(always)]
    fn finish(self, line: SelectLine) {
        let mut this = ManuallyDrop::new(self);
        this.wire.drive_short(line, false);
    }
}

impl<W: Wire + ?Sized> Drop for Selected<'_, W> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.unsettled && self.wire.keeps_cs(self.program) {
            return;
        }
        self.deselect();
        // After CS: a reset may move the clock line, and a selected chip would count that edge.
        if self.unsettled {
            self.wire.recover();
        }
    }
}

/// A wire with a shorter path for transfers whose words all fit its FIFO.
pub(super) trait Short: Wire {
    /// Whether a transfer of `len` bytes in 8-bit words, whose plan has `control`, can take the
    /// shorter path with the block as it is configured now. None without bytes can.
    fn is_short(&self, program: &Program, control: u32, len: usize) -> bool;

    /// Prepares the block for a message that takes the shorter path. Returns the select line of the program's chip.
    fn begin_short(&mut self, program: &Program) -> SelectLine;

    /// Asserts or deasserts CS, as [`Wire::select`] or [`Wire::deselect`] does.
    fn drive_short(&mut self, line: SelectLine, active: bool);

    /// Exchanges a transfer of `len` bytes for as long as each look finds received words. Returns true if it has ended,
    /// with the received bytes in `rx`; otherwise [`Short::exchange_rest`] must follow.
    fn exchange_short(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> bool;

    /// Finishes a transfer of `len` bytes that [`Short::exchange_short`] has begun, with the same buffers.
    ///
    /// # Errors
    /// As [`Wire::exchange`].
    fn exchange_rest(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> Result<(), Stopped>;
}

/// A GPIO select line: its pins (0 for none), and whether they are high while it is active.
#[derive(Clone, Copy)]
pub(super) struct SelectLine {
    pub(super) mask: u32,
    pub(super) active_high: bool,
}

/// Runs a message of one planned transfer of `len` bytes by the shorter path, inlined and without a
/// [`Transfer`] in memory. Its arguments are values, because the compiler must assume that a store
/// to a register changes memory. Returns `None`, and does nothing, if the transfer cannot take that
/// path.
///
/// # Errors
/// As [`run_message`].
#[inline(always)]
pub(super) fn run_short<W: Short>(
    wire: &mut W,
    program: &Program,
    plan: Plan,
    len: usize,
    tx: Option<&[u8]>,
    mut rx: Option<&mut [u8]>,
) -> Option<Result<usize, Unfinished>> {
    if !plan.is_direct_bytes() || !wire.is_short(program, plan.control, len) {
        return None;
    }
    let line = wire.begin_short(program);
    let selected = Selected::again(wire, program);
    selected.wire.drive_short(line, true);
    if !selected.wire.exchange_short(plan.control, len, tx, rx.as_deref_mut()) {
        // Without the guard: for a callee that may panic it would have to be in memory.
        selected.keep();
        return Some(run_rest(wire, program, plan.control, len, tx, rx));
    }
    selected.finish(line);
    Some(Ok(len))
}

/// Finishes a message that [`run_short`] has begun.
#[inline(never)]
fn run_rest<W: Short>(
    wire: &mut W,
    program: &Program,
    control: u32,
    len: usize,
    tx: Option<&[u8]>,
    rx: Option<&mut [u8]>,
) -> Result<usize, Unfinished> {
    let mut selected = Selected::again(wire, program);
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
/// As [`run_message`].
#[inline(always)]
pub(super) fn run_all_short<W: Short>(
    wire: &mut W,
    program: &Program,
    message: &mut [Transfer<'_>],
) -> Option<Result<usize, Unfinished>> {
    let plan = message.first()?.plan;
    if !plan.all_short() && !may_all_be_short(message) {
        return None;
    }
    let control = plan.control;
    // None is empty, so all are short if the longest is.
    let longest = message.iter().fold(0, |longest, transfer| transfer.data.len().max(longest));
    if !wire.is_short(program, control, longest) {
        return None;
    }
    let line = wire.begin_short(program);
    let selected = Selected::again(wire, program);
    selected.wire.drive_short(line, true);
    let mut actual_length = 0;
    for (transfer_index, transfer) in message.iter_mut().enumerate() {
        let len = transfer.data.len();
        let (tx, rx) = transfer.data.apart()?;
        if !selected.wire.exchange_short(control, len, tx, rx)
            && let Err(stopped) = finish_short(selected.wire, control, transfer)
        {
            return Some(Err(Unfinished::stopped(transfer_index, stopped)));
        }
        actual_length += len;
    }
    selected.finish(line);
    Some(Ok(actual_length))
}

/// [`Short::exchange_rest`] of a transfer in memory: its buffers need not be kept until then.
#[cold]
#[inline(never)]
fn finish_short<W: Short>(
    wire: &mut W,
    control: u32,
    transfer: &mut Transfer<'_>,
) -> Result<(), Stopped> {
    let len = transfer.data.len();
    let (tx, rx) = transfer.data.apart().unwrap_or_default();
    wire.exchange_rest(control, len, tx, rx)
}

/// Runs a planned message on `wire` and returns its length in bytes.
///
/// # Errors
/// The first transfer that did not finish. CS is inactive and the block has recovered.
#[inline]
pub fn run_message<W: Wire + ?Sized>(
    wire: &mut W,
    program: &Program,
    message: &mut [Transfer<'_>],
) -> Result<usize, Unfinished> {
    let mut selected = Selected::new(wire, program);
    let mut actual_length = 0;
    for (transfer_index, transfer) in message.iter_mut().enumerate() {
        let (plan, data) = (&transfer.plan, &mut transfer.data);
        if let Err(stopped) = selected.wire.exchange(program, plan, data) {
            return Err(Unfinished::stopped(transfer_index, stopped));
        }
        actual_length += transfer.data.len();
        selected.after(transfer);
    }
    selected.unsettled = false;
    Ok(actual_length)
}
