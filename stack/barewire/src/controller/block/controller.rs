//! [`Controller`], for every block.

use core::task::Poll;

use super::{Block, BlockConfig, BlockDriver, InFlight, State};
use crate::controller::gpio::GpioBank;
use crate::controller::lines::Rest;
use crate::controller::waits::{plan_waits, poll_bytes_max};
use crate::controller::{
    ALWAYS_POLL, Controller, Interrupt, Limits, Plan, Preset, Unfinished, plan_message,
    resume_message,
};
use crate::reg::Registers;
use crate::spi::{Effective, Error, MessageError, Settings, Transfer};
use crate::time::Timer;

impl<B: State, R: Registers, G: GpioBank, T: Timer, I: Interrupt> Block<B, R, G, T, I>
where
    Self: BlockDriver,
{
    /// The longest transfer of `plan` that is polled, in bytes, on a device with that limit.
    fn poll_bytes_max(&self, preset: &Preset, plan: &Plan) -> usize {
        if preset.poll_limit_ns == ALWAYS_POLL {
            return usize::MAX;
        }
        let (periods, hz) = (self.config.word_periods(plan), self.config.reference_hz());
        poll_bytes_max(preset.poll_limit_ns, plan, periods, hz, self.timer.frequency_hz())
    }

    // Inlined always: the caller knows what was prepared.
    #[inline(always)]
    fn run_inlined(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        match self.run_all_short(preset, message) {
            Some(ran) => ran,
            None => self.run_any(preset, message),
        }
    }

    #[inline(never)]
    fn run_called(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        self.run_inlined(preset, message)
    }
}

impl<B: State, R: Registers, G: GpioBank, T: Timer, I: Interrupt> Controller
    for Block<B, R, G, T, I>
where
    Self: BlockDriver,
{
    fn limits(&self) -> Limits {
        let limits = self.config.limits(self.timer.frequency_hz());
        if self.timer.makes_delays() { limits } else { limits.with_max_delay_ns(0) }
    }

    fn may_use_its_bus(&self) -> bool {
        false
    }

    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        let timer_hz = self.timer.frequency_hz();
        let (mut preset, effective) = self.config.configure(settings, timer_hz)?;
        if !self.timer.makes_delays() {
            refuse_delays(settings)?;
        }
        if !I::FLIGHTS {
            return Ok((preset, effective));
        }
        preset.poll_limit_ns = settings.poll_limit_ns.unwrap_or(self.config.poll_limit_ns());
        preset.poll_bytes_max = self.poll_bytes_max(&preset, &preset.plan);
        Ok((preset, effective))
    }

    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        let config = &self.config;
        let timer_hz = self.timer.frequency_hz();
        plan_message(preset, timer_hz, message, |transfer| {
            if !self.timer.makes_delays() {
                refuse_transfer_delays(transfer)?;
            }
            config.plan(preset, transfer)
        })?;
        config.complete(preset, message)?;
        if I::FLIGHTS {
            plan_waits(preset, message, |plan| self.poll_bytes_max(preset, plan));
        }
        Ok(())
    }

    #[inline(always)]
    fn run(&mut self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        if cfg!(feature = "small") {
            return self.run_any(preset, message);
        }
        match Self::RUN_INLINE {
            true => self.run_inlined(preset, message),
            false => self.run_called(preset, message),
        }
    }

    #[inline(always)]
    fn run_exchange(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        if cfg!(feature = "small") {
            return self.run_any_exchange(preset, tx, rx);
        }
        match self.run_short(preset, preset.plan, tx.len(), Some(tx), Some(&mut *rx)) {
            Some(ran) => ran,
            None => self.run_any_exchange(preset, tx, rx),
        }
    }

    fn start(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.start_any(preset, message)
    }

    fn resume(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.mask();
        resume_message(self, preset, message)
    }

    fn arm(&mut self) {
        self.unmask();
    }

    fn silence(&mut self) {
        self.mask();
    }

    fn is_overdue(&mut self) -> bool {
        I::FLIGHTS && self.flight.deadline().is_overdue(&mut self.timer)
    }

    fn reclaim(&mut self) {
        // First of all: no message waits for the interrupt any more.
        self.mask_unknown();
        self.deselect_all();
        self.reset();
        self.rest = Rest::begin(&mut self.timer);
    }
}

/// Refuses settings with a delay, for a [timer](Timer::makes_delays) that makes none.
fn refuse_delays(settings: &Settings) -> Result<(), Error> {
    let Settings { cs_setup_ns, cs_hold_ns, cs_inactive_ns, word_delay_ns, .. } = *settings;
    refuse(cs_setup_ns | cs_hold_ns | cs_inactive_ns | word_delay_ns)
}

/// Refuses a transfer with a delay.
fn refuse_transfer_delays(transfer: &Transfer<'_>) -> Result<(), Error> {
    refuse(transfer.delay_ns | transfer.cs_change_delay_ns | transfer.word_delay_ns)
}

fn refuse(asked_ns: u32) -> Result<(), Error> {
    if asked_ns == 0 { Ok(()) } else { Err(Error::DelayTooLong { asked_ns }) }
}
