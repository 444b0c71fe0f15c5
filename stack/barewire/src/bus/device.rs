//! A device: one chip select of a bus and its settings, and the sync path.

use core::fmt;

use super::Bus;
use super::lock::{Held, WireRight};
use super::panics::Panics;
use super::statistics::Path;
use super::uses::{AnyPlatform, Uses};
use crate::controller::{Controller, Limits, Plan, Preset, plain_exchange, plan_plain, refusal};
use crate::spi::{Effective, Error, MessageError, Settings, Transfer};

/// One chip on a bus. Cheap to copy; any number of threads may hold one.
pub struct Device<'b, C: ?Sized, U: Uses = AnyPlatform> {
    // Hot fields first: a message reads these two.
    bus: &'b Bus<C, U>,
    preset: Preset,
    priority: u8,
    settings: Settings,
    effective: Effective,
    limits: Limits,
}

impl<C: ?Sized, U: Uses> fmt::Debug for Device<'_, C, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("settings", &self.settings)
            .field("effective", &self.effective)
            .finish_non_exhaustive()
    }
}

impl<C: ?Sized, U: Uses> Clone for Device<'_, C, U> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: ?Sized, U: Uses> Copy for Device<'_, C, U> {}

impl<C: Controller + ?Sized, U: Uses> Bus<C, U> {
    /// Opens a device: waits for the bus and computes what the settings imply.
    ///
    /// # Errors
    /// A setting that the controller does not support (see [`Controller::configure`]), including a
    /// chip select that may sleep ([`Error::CsCanSleep`]). [`Error::WouldDeadlock`] if the caller's
    /// context has the bus. [`Error::Busy`] if it is taken and [nobody waits for it](Uses::QUEUE).
    pub fn device(&self, settings: &Settings) -> Result<Device<'_, C, U>, Error> {
        let held = self.acquire()?;
        let opened = held.wire.open(settings);
        held.release();
        opened
    }
}

impl<'b, C: Controller + ?Sized, U: Uses> WireRight<'b, C, U> {
    /// Opens a device, and keeps the bus.
    pub(super) fn open(&self, settings: &Settings) -> Result<Device<'b, C, U>, Error> {
        let (configured, limits) =
            self.ask(|controller| (controller.configure(settings), controller.limits()));
        let (mut preset, effective) = configured?;
        if !U::PLANS {
            if preset.asks {
                return Err(Error::NativeCsWouldPulse { max_bytes: 0 });
            }
            preset.poll_bytes_max = usize::MAX;
        }
        Ok(Device::new(self.bus, *settings, preset, effective, limits))
    }
}

impl<'b, C: Controller + ?Sized, U: Uses> Device<'b, C, U> {
    pub(super) fn new(
        bus: &'b Bus<C, U>,
        settings: Settings,
        preset: Preset,
        effective: Effective,
        limits: Limits,
    ) -> Self {
        Self { bus, preset: preset.of_device(), priority: 0, settings, effective, limits }
    }

    /// Sets the priority. Waiting messages of higher `priority` go first. 0 is the lowest, and the
    /// default.
    ///
    /// A message is overtaken at most 16 times before it goes first, and no message overtakes an
    /// earlier one of its own context.
    #[must_use]
    pub fn with_priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// The same device for messages with a limit of their own up to which a transfer is polled, as
    /// [`Settings::poll_limit_ns`]; `None` for the controller's. Keep one for each kind of message: choosing between two devices
    /// costs nothing. Waits for the bus.
    ///
    /// # Errors
    /// [`Error::WouldDeadlock`] if the caller's context has the bus.
    pub fn with_poll_limit_ns(&self, poll_limit_ns: Option<u32>) -> Result<Self, Error> {
        let settings = Settings { poll_limit_ns, ..self.settings };
        Ok(self.bus.device(&settings)?.with_priority(self.priority))
    }

    /// The priority.
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// The device's bus.
    #[must_use]
    pub fn bus(&self) -> &'b Bus<C, U> {
        self.bus
    }

    /// The settings that were requested.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings as the hardware implements them.
    #[must_use]
    pub fn effective(&self) -> &Effective {
        &self.effective
    }

    /// The controller's limits when the device was opened.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn preset(&self) -> &Preset {
        &self.preset
    }

    /// Runs any message and waits for it: at once, in the caller's context, if the bus is idle;
    /// otherwise in its turn. Returns the message's length in bytes.
    ///
    /// # Errors
    /// A message that [`Controller::plan`] refuses, before anything is clocked; or a timeout, with
    /// the transfer's index and the bytes clocked before it. CS is inactive in every case.
    /// [`Error::WouldDeadlock`] if the caller's context has the bus, through a lock or because this
    /// is a callback, and the platform tells contexts apart; if it does not, the call waits for
    /// ever. [`Error::Busy`] if the bus is taken and [nobody waits for it](Uses::QUEUE).
    #[inline(always)]
    pub fn sync(&self, message: &mut [Transfer<'_>]) -> Result<usize, MessageError> {
        let Some(mut held) = self.bus.try_acquire_idle() else {
            return self.run_queued(message);
        };
        // The buffers as values, with the device's plan: the driver would load them from a transfer in
        // memory again after each store to a register.
        if let [transfer] = &mut *message {
            if let Some((tx, rx)) = plain_exchange(&self.preset, transfer) {
                let ran = held.wire.run_exchange(&self.preset, tx, rx);
                held.release_for(|| self.priority_waited_for());
                return ran.map_err(|unfinished| unfinished.explain(&[]));
            }
        }
        self.run_several(held, message)
    }

    /// [`Device::sync`] of a message that leaves the chip selected: the next one goes on where this one
    /// ended, as `cs_change` on a message's last transfer means in Linux. The next message by another method
    /// ends it; one without bytes is enough. A message that fails deselects the chip.
    ///
    /// A message to another chip of the bus would find both selected: the caller keeps them off, for
    /// example by a [lock](Bus::lock).
    ///
    /// # Errors
    /// [`Error::CsChangeOnLast`] if the block drives the line itself, and so cannot hold it, or if the program's messages
    /// are [not planned](Uses::PLANS); or those of [`Device::sync`].
    #[cold]
    pub fn sync_keeping_cs(&self, message: &mut [Transfer<'_>]) -> Result<usize, MessageError> {
        let refused = MessageError::refused(Error::CsChangeOnLast, message.len().saturating_sub(1));
        // Only the controller can plan such a message.
        let preset = self.preset.keeping_cs().filter(|_| U::PLANS).ok_or(refused)?;
        Self { preset, ..*self }.sync(message)
    }

    /// [`Device::sync`] if the bus is free and nothing is queued. Never blocks: it polls the wire,
    /// however long the message.
    ///
    /// # Errors
    /// [`Error::Busy`], or those of [`Device::sync`].
    pub fn try_sync(&self, message: &mut [Transfer<'_>]) -> Result<usize, MessageError> {
        let planned = plan_plain(&self.preset, message);
        self.try_run(message, planned)
    }

    /// The priority, read only under contention. A function of its own: inlined, the compiler loads
    /// it for every message. So it does if it can pass the byte in place of the device.
    #[cold]
    #[inline(never)]
    fn priority_waited_for(&self) -> u8 {
        core::hint::black_box(self).priority
    }

    /// Runs a message that is not one plain exchange. Not inlined, so that each caller contains the
    /// driver's code once.
    #[inline(never)]
    fn run_several(
        &self,
        mut held: Held<'_, C, U>,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, MessageError> {
        if !plan_plain(&self.preset, message) {
            if !U::PLANS {
                held.release_for(|| self.priority);
                return Err(refusal(&self.preset, message));
            }
            return self.run_asking(held, message);
        }
        let ran = held.wire.run_prepared(&self.preset, message, Path::Immediate);
        held.release_for(|| self.priority);
        ran.map_err(|unfinished| unfinished.explain(message))
    }

    /// Runs a message that only the controller can plan or refuse. Not inlined, to keep the hot
    /// path short.
    #[cold]
    #[inline(never)]
    fn run_asking(
        &self,
        mut held: Held<'_, C, U>,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, MessageError> {
        let ran = self.run_planning(&mut held.wire, message);
        held.release_for(|| self.priority);
        ran
    }

    /// Plans and runs a message, and keeps the bus.
    pub(super) fn run_planning(
        &self,
        wire: &mut WireRight<'_, C, U>,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, MessageError> {
        wire.plan_and_run::<false>(&self.preset, message, false, Path::Immediate)
    }

    /// Runs a message on a bus that is not idle: waits for its turn.
    #[cold]
    #[inline(never)]
    fn run_queued(&self, message: &mut [Transfer<'_>]) -> Result<usize, MessageError> {
        // As `run_waiting` does: here too, because what is refused need not be planned, which is 200 bytes of code.
        if !U::QUEUE {
            return Err(MessageError::refused(Error::Busy, 0));
        }
        let planned = plan_plain(&self.preset, message);
        self.bus.run_waiting(&self.preset, message, planned, self.priority)
    }

    /// Runs a planned message.
    // Inlined always: the result is large and would be copied out of a call.
    #[inline(always)]
    pub(super) fn run_planned(&self, message: &mut [Transfer<'_>]) -> Result<usize, MessageError> {
        let Some(mut held) = self.bus.try_acquire_idle() else {
            return self.bus.run_waiting(&self.preset, message, true, self.priority);
        };
        let ran = held.wire.run_prepared(&self.preset, message, Path::Immediate);
        held.release_for(|| self.priority);
        ran.map_err(|unfinished| unfinished.explain(message))
    }

    /// Runs a message if the bus is free and nothing is queued. Polls the wire, even if interrupts
    /// were planned.
    pub(super) fn try_run(
        &self,
        message: &mut [Transfer<'_>],
        planned: bool,
    ) -> Result<usize, MessageError> {
        let Some(mut held) = self.bus.try_acquire() else {
            return Err(MessageError::refused(Error::Busy, 0));
        };
        let (preset, path, mut panics) = (&self.preset, Path::Immediate, Panics::none());
        held.wire.drive(|controller| controller.set_waiting(false));
        let ran = panics.contain(|| held.wire.plan_and_run::<true>(preset, message, planned, path));
        held.wire.drive(|controller| controller.set_waiting(true));
        let Some(ran) = ran else {
            drop(held);
            panics.raise();
            // The thread unwinds already, and the call is a destructor's.
            return Err(MessageError::refused(Error::Aborted, 0));
        };
        held.release_for(|| u8::MAX);
        ran
    }

    /// Plans a message. If only the controller can plan it, this waits for the bus.
    pub(super) fn plan(&self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        if plan_plain(&self.preset, message) {
            return Ok(());
        }
        if !U::PLANS {
            return Err(refusal(&self.preset, message));
        }
        let held = self.bus.acquire().map_err(|error| MessageError::refused(error, 0))?;
        let planned = held.wire.ask(|controller| controller.plan(&self.preset, message));
        held.release();
        planned
    }

    /// The device for one exchange of that plan: its other messages need another.
    pub(super) fn with_plan(self, plan: Plan) -> Self {
        Self { preset: Preset { plan, ..self.preset }, ..self }
    }

    /// The plan of one exchange that sends `tx`.
    pub(super) fn plan_exchange<const N: usize>(&self, tx: &[u8; N]) -> Result<Plan, MessageError> {
        let mut rx = [0; N];
        let mut message = [Transfer::exchange(tx, &mut rx)];
        self.plan(&mut message)?;
        Ok(message[0].plan)
    }
}
