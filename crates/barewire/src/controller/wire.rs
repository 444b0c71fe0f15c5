//! The loop every polled controller shares: one message under one chip select.
//!
//! # Ordering
//! 1. Select, then wait `cs_setup`.
//! 2. Each transfer in turn; after it its delay; at `cs_change` steps 3 and 1 with the
//!    `cs_change` delay between.
//! 3. Wait `cs_hold`, deselect, wait `cs_inactive`.
//!
//! Step 3 is a destructor: an error or a panic on the way (a register body of a test, say) runs
//! it too, after the block has been told to [recover](Wire::recover).

use super::{After, Plan, Program};
use crate::spi::{Data, Error, MessageError, Transfer};

/// What the shared loop drives.
pub trait Wire {
    /// Makes the program's values the block's and drives CS active.
    fn select(&mut self, program: &Program);

    /// Drives CS inactive.
    fn deselect(&mut self, program: &Program);

    /// Clocks one transfer.
    ///
    /// # Errors
    /// [`Error::Timeout`]; the loop then calls [`Wire::recover`].
    fn exchange(
        &mut self,
        program: &Program,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Error>;

    /// Brings the block from an unknown state to idle with empty FIFOs.
    fn recover(&mut self);

    /// Waits at least `ticks` whole ticks of the controller's timer.
    fn wait_ticks(&mut self, ticks: u32);
}

/// Holds the chip selected; dropping it deselects.
struct Selected<'w, W: Wire + ?Sized> {
    wire: &'w mut W,
    program: &'w Program,
    /// Set while a transfer is on the wire: if we are dropped then, the block's state is unknown.
    unsettled: bool,
}

impl<'w, W: Wire + ?Sized> Selected<'w, W> {
    #[inline]
    fn new(wire: &'w mut W, program: &'w Program) -> Self {
        let mut this = Self {
            wire,
            program,
            unsettled: true,
        };
        this.select();
        this
    }

    #[inline]
    fn select(&mut self) {
        self.wire.select(self.program);
        if self.program.timed {
            self.wire.wait_ticks(self.program.cs_setup_ticks);
        }
    }

    #[inline]
    fn deselect(&mut self) {
        if self.program.timed {
            self.wire.wait_ticks(self.program.cs_hold_ticks);
        }
        self.wire.deselect(self.program);
        if self.program.timed {
            self.wire.wait_ticks(self.program.cs_inactive_ticks);
        }
    }

    #[inline]
    fn after(&mut self, plan: &Plan) {
        if plan.delay_ticks > 0 {
            self.wire.wait_ticks(plan.delay_ticks);
        }
        if plan.after == After::CsChange {
            self.deselect();
            if plan.cs_change_ticks > 0 {
                self.wire.wait_ticks(plan.cs_change_ticks);
            }
            self.select();
        }
    }
}

impl<W: Wire + ?Sized> Drop for Selected<'_, W> {
    #[inline]
    fn drop(&mut self) {
        if self.unsettled {
            self.wire.recover();
        }
        self.deselect();
    }
}

/// Runs a planned message on `wire` and returns its length in bytes.
///
/// # Errors
/// The first transfer's error, with its index and the bytes clocked before it.
#[inline]
pub fn run_message<W: Wire + ?Sized>(
    wire: &mut W,
    program: &Program,
    message: &mut [Transfer<'_>],
) -> Result<usize, MessageError> {
    let mut selected = Selected::new(wire, program);
    let mut actual_length = 0;
    for (transfer_index, transfer) in message.iter_mut().enumerate() {
        let plan = &transfer.plan;
        if let Err(error) = selected.wire.exchange(program, plan, &mut transfer.data) {
            return Err(MessageError {
                error,
                transfer_index,
                actual_length,
            });
        }
        actual_length += transfer.data.len();
        if plan.after != After::Nothing {
            selected.after(plan);
        }
    }
    selected.unsettled = false;
    Ok(actual_length)
}
