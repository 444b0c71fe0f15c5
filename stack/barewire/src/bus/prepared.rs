//! Prepared messages: validated and turned into register values once, run many times.

use core::fmt;

use super::Device;
use super::lock::{Held, WireRight};
use super::statistics::Path;
use super::uses::{AnyPlatform, Uses};
use crate::controller::{Controller, Plan, mark_all_short};
use crate::spi::{Error, MessageError, Transfer};

impl<'b, C: Controller + ?Sized, U: Uses> Device<'b, C, U> {
    /// Prepares one exchange of `N` bytes that sends `tx`: validates it and computes its register
    /// values, once.
    ///
    /// # Errors
    /// A message that [`Controller::plan`] refuses.
    pub fn prepare<const N: usize>(
        &self,
        tx: [u8; N],
    ) -> Result<Prepared<'b, C, N, U>, MessageError> {
        let plan = self.plan_exchange(&tx)?;
        Ok(Prepared::new(*self, plan, tx))
    }

    /// Prepares a message of any form over the caller's buffers.
    ///
    /// # Errors
    /// A message that [`Controller::plan`] refuses.
    pub fn prepare_message<'m, 'd>(
        &self,
        message: &'m mut [Transfer<'d>],
    ) -> Result<PreparedMessage<'b, 'm, 'd, C, U>, MessageError> {
        self.plan(message)?;
        mark_all_short(message);
        Ok(PreparedMessage::new(*self, message))
    }
}

/// One prepared exchange of `N` bytes: the register access of a chip driver.
///
/// It owns its buffers: the bytes to send can be changed in place, the received bytes are read
/// after each run.
pub struct Prepared<'b, C: ?Sized, const N: usize, U: Uses = AnyPlatform> {
    /// The device, with the exchange's plan as that of its preset.
    device: Device<'b, C, U>,
    tx: [u8; N],
    rx: [u8; N],
}

impl<C: ?Sized, U: Uses, const N: usize> fmt::Debug for Prepared<'_, C, N, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("device", &self.device)
            .field("tx", &self.tx)
            .field("rx", &self.rx)
            .finish_non_exhaustive()
    }
}

impl<'b, C: Controller + ?Sized, U: Uses, const N: usize> Prepared<'b, C, N, U> {
    fn new(device: Device<'b, C, U>, plan: Plan, tx: [u8; N]) -> Self {
        Self { device: device.with_plan(plan), tx, rx: [0; N] }
    }

    /// Runs the exchange, waits for the bus if necessary, and returns the received bytes.
    ///
    /// # Errors
    /// [`Error::Timeout`]; CS is inactive, and bytes received before the timeout are lost.
    /// [`Error::WouldDeadlock`] or [`Error::Busy`] as [`Device::sync`].
    #[inline]
    pub fn run(&mut self) -> Result<&[u8; N], MessageError> {
        match self.device.bus().try_acquire_idle() {
            Some(held) => self.run_held(held),
            None => self.run_waiting(),
        }
    }

    // Passes the buffers as values: no transfer is built in memory.
    #[inline(always)]
    fn run_held(&mut self, mut held: Held<'_, C, U>) -> Result<&[u8; N], MessageError> {
        let Self { device, tx, rx } = self;
        let ran = held.wire.run_exchange(device.preset(), tx, rx);
        held.release_for(|| device.priority());
        match ran {
            Ok(_) => Ok(rx),
            Err(unfinished) => Err(unfinished.explain(&[])),
        }
    }

    #[cold]
    #[inline(never)]
    fn run_waiting(&mut self) -> Result<&[u8; N], MessageError> {
        if !U::QUEUE {
            return Err(MessageError::refused(Error::Busy, 0));
        }
        let mut message = [Transfer::planned(&self.tx, &mut self.rx, self.device.preset().plan)];
        self.device.run_planned(&mut message)?;
        Ok(&self.rx)
    }

    /// [`Prepared::run`] if the bus is free and nothing is queued. Never blocks: it polls the wire,
    /// even if the access was planned for interrupts.
    ///
    /// # Errors
    /// [`Error::Busy`](crate::spi::Error::Busy), or those of [`Prepared::run`].
    #[inline]
    pub fn try_run(&mut self) -> Result<&[u8; N], MessageError> {
        let mut message = [Transfer::planned(&self.tx, &mut self.rx, self.device.preset().plan)];
        self.device.try_run(&mut message, true)?;
        Ok(&self.rx)
    }

    /// Runs it as planned, on the wire of a lock.
    pub(super) fn run_locked(
        &mut self,
        wire: &mut WireRight<'_, C, U>,
    ) -> Result<&[u8; N], MessageError> {
        let mut message = [Transfer::planned(&self.tx, &mut self.rx, self.device.preset().plan)];
        let ran = wire.run(self.device.preset(), &mut message, Path::Immediate);
        ran.map_err(|unfinished| unfinished.explain(&message))?;
        Ok(&self.rx)
    }

    pub(super) fn device(&self) -> &Device<'_, C, U> {
        &self.device
    }

    /// The bytes to send, to change them.
    #[inline]
    pub fn tx_mut(&mut self) -> &mut [u8; N] {
        &mut self.tx
    }

    /// The bytes that were received last.
    #[inline]
    #[must_use]
    pub fn rx(&self) -> &[u8; N] {
        &self.rx
    }
}

/// A prepared message of any form: several transfers, CS changes, delays.
pub struct PreparedMessage<'b, 'm, 'd, C: ?Sized, U: Uses = AnyPlatform> {
    device: Device<'b, C, U>,
    message: &'m mut [Transfer<'d>],
}

impl<C: ?Sized, U: Uses> fmt::Debug for PreparedMessage<'_, '_, '_, C, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedMessage")
            .field("device", &self.device)
            .field("message", &self.message)
            .finish()
    }
}

impl<'b, 'm, 'd, C: Controller + ?Sized, U: Uses> PreparedMessage<'b, 'm, 'd, C, U> {
    pub(super) fn new(device: Device<'b, C, U>, message: &'m mut [Transfer<'d>]) -> Self {
        Self { device, message }
    }

    /// Runs the message, waits for the bus if necessary, and returns its length in bytes.
    ///
    /// # Errors
    /// [`Error::Timeout`]; CS is inactive. [`Error::WouldDeadlock`] or [`Error::Busy`] as [`Device::sync`].
    #[inline]
    pub fn run(&mut self) -> Result<usize, MessageError> {
        self.device.run_planned(self.message)
    }

    /// [`PreparedMessage::run`] if the bus is free and nothing is queued. Never blocks: it polls
    /// the wire, even if the message was planned for interrupts.
    ///
    /// # Errors
    /// [`Error::Busy`](crate::spi::Error::Busy), or those of [`PreparedMessage::run`].
    #[inline]
    pub fn try_run(&mut self) -> Result<usize, MessageError> {
        self.device.try_run(self.message, true)
    }

    /// Replaces the buffers of transfer `index`, as [`Transfer::rebind`].
    ///
    /// # Panics
    /// As [`Transfer::rebind`], and if there is no transfer `index`.
    #[inline]
    pub fn rebind(&mut self, index: usize, tx: Option<&'d [u8]>, rx: Option<&'d mut [u8]>) {
        self.message[index].rebind(tx, rx);
    }

    /// Runs it as planned, on the wire of a lock.
    pub(super) fn run_locked(
        &mut self,
        wire: &mut WireRight<'_, C, U>,
    ) -> Result<usize, MessageError> {
        let ran = wire.run(self.device.preset(), self.message, Path::Immediate);
        ran.map_err(|unfinished| unfinished.explain(self.message))
    }

    pub(super) fn device(&self) -> &Device<'_, C, U> {
        &self.device
    }

    /// The bytes received last in transfer `index`; `None` if it only sends.
    ///
    /// # Panics
    /// If there is no transfer `index`.
    #[must_use]
    pub fn rx(&self, index: usize) -> Option<&[u8]> {
        self.message[index].data.rx()
    }

    /// The receive buffer of transfer `index`, for example to write the next bytes of an in-place
    /// transfer; `None` if the transfer only sends.
    ///
    /// # Panics
    /// If there is no transfer `index`.
    #[must_use]
    pub fn rx_mut(&mut self, index: usize) -> Option<&mut [u8]> {
        self.message[index].data.rx_mut()
    }
}
