//! Validation common to all controllers, and the timer ticks of a plan.
//!
//! # How it works
//! A plain transfer is one that has its device's speed, word length and delays. To plan it, the
//! device's plan is copied and the length checked, without the controller. The controller plans a
//! transfer with settings of its own. It also plans every transfer of a device whose whole messages
//! it must check, because its native chip select might pulse.

use super::lines::Select;
use super::{ALWAYS_POLL, After, Plan, Preset, Selection};
use crate::spi::{Effective, Error, MessageError, Settings, Transfer};
use crate::time::{effective_ns, ticks_at_least};

/// A delay in ticks of the controller's timer, rounded up.
///
/// # Errors
/// [`Error::DelayTooLong`] if the count does not fit 32 bits.
pub fn delay_ticks(ns: u32, timer_hz: u32) -> Result<u32, Error> {
    if ns == 0 {
        return Ok(0);
    }
    u32::try_from(ticks_at_least(u64::from(ns), timer_hz))
        .map_err(|_| Error::DelayTooLong { asked_ns: ns })
}

impl Preset {
    /// The preset of a device whose waits are all made by the timer, and whose messages are
    /// planned without the controller.
    ///
    /// # Errors
    /// [`Error::DelayTooLong`].
    pub(super) fn by_timer(
        settings: &Settings,
        timer_hz: u32,
        mut plan: Plan,
        regs: [u32; 4],
    ) -> Result<Self, Error> {
        plan.word_delay_ticks = delay_ticks(settings.word_delay_ns, timer_hz)?;
        let preset = Self {
            plan,
            asks: false,
            poll_bytes_max: usize::MAX,
            poll_limit_ns: ALWAYS_POLL,
            max_transfer_bytes: usize::MAX,
            regs,
            cs_mask: 0,
            cs_active_high: false,
            cs_setup_ticks: 0,
            cs_hold_ticks: 0,
            cs_inactive_ticks: 0,
            selection: Selection::default(),
        };
        Ok(preset.with_waits(
            delay_ticks(settings.cs_setup_ns, timer_hz)?,
            delay_ticks(settings.cs_hold_ns, timer_hz)?,
            delay_ticks(settings.cs_inactive_ns, timer_hz)?,
        ))
    }

    /// The preset in a device.
    pub(crate) fn of_device(self) -> Self {
        let plan = if self.asks { self.plan.asking() } else { self.plan };
        Self { plan, ..self }
    }

    /// Whether [`Controller::run_exchange`](super::Controller::run_exchange) takes an exchange of `len` bytes with the
    /// device's settings. If not, the controller must plan it.
    ///
    /// For callers of a controller that no [`Bus`](crate::bus::Bus) has.
    #[inline(always)]
    #[must_use]
    pub fn takes_exchange(&self, len: usize) -> bool {
        self.plan.is_direct_bytes() && !self.asks && len != 0 && len <= self.poll_bytes_max
    }

    /// The preset of a device whose messages leave the chip selected; `None` if its line cannot stay active.
    pub(crate) fn keeping_cs(self) -> Option<Self> {
        // As if it had waits: the shortest path, which does not look at the flag, is for others.
        let plan = self.plan.timed();
        let selection = self.selection.keeping_cs()?;
        Some(Self { plan, selection, asks: true, ..self })
    }

    /// Sets the line that selects the chip.
    pub(super) fn with_line(mut self, select: Select, active_high: bool) -> Self {
        self.cs_mask = select.gpio_mask();
        self.cs_active_high = active_high;
        self
    }

    /// Sets the waits around a selection.
    pub(super) fn with_waits(
        self,
        cs_setup_ticks: u32,
        cs_hold_ticks: u32,
        cs_inactive_ticks: u32,
    ) -> Self {
        let timed = cs_setup_ticks | cs_hold_ticks | cs_inactive_ticks != 0;
        let spaced = self.plan.word_delay_ticks != 0;
        let plan = if timed || spaced { self.plan.timed() } else { self.plan };
        let selection = self.selection.with_waits(timed);
        Self { plan, cs_setup_ticks, cs_hold_ticks, cs_inactive_ticks, selection, ..self }
    }
}

impl Effective {
    /// The effective settings of a device whose waits are all made by the timer.
    pub(super) fn by_timer(speed_hz: u32, settings: &Settings, timer_hz: u32) -> Self {
        let waited = |ns: u32| effective_ns(ns.into(), timer_hz);
        Self {
            speed_hz,
            cs_setup_ns: waited(settings.cs_setup_ns),
            cs_hold_ns: waited(settings.cs_hold_ns),
            cs_inactive_ns: waited(settings.cs_inactive_ns),
            word_delay_ns: waited(settings.word_delay_ns),
            word_rest_clocks: 0,
            quantum_ns: waited(1),
        }
    }
}

/// Validates and plans `message` without the controller, if it is valid and every transfer is
/// plain. Returns false otherwise; then the plans are meaningless, and
/// [`Controller::plan`](super::Controller::plan) plans or refuses the message.
#[inline]
pub(crate) fn plan_plain(preset: &Preset, message: &mut [Transfer<'_>]) -> bool {
    if preset.asks {
        return false;
    }
    // True for an empty message, which is refused as well.
    let mut ends_in_cs_change = true;
    for transfer in message {
        let len = transfer.data.len();
        // A transfer long enough for an interrupt can afford the call; the others pay one compare
        // here.
        if !transfer.is_plain()
            || len > preset.poll_bytes_max
            || !is_whole(len, preset.plan.word_bytes())
        {
            return false;
        }
        transfer.plan = preset.plan.with_cs_change(transfer.cs_change);
        ends_in_cs_change = transfer.cs_change;
    }
    !ends_in_cs_change
}

/// The most transfers of a message that is looked at for the shorter path.
const ALL_SHORT_MAX: usize = 8;

/// Whether the transfers of a planned message are few, direct, at one clock, not empty and each from one buffer into
/// another: then all take the shorter path if the longest can.
#[inline(always)]
pub(super) fn may_all_be_short(message: &[Transfer<'_>]) -> bool {
    let [first, ..] = message else { return false };
    let control = first.plan.control;
    let fits = |Transfer { data, plan, .. }: &Transfer<'_>| {
        plan.is_direct_bytes() && plan.control == control && data.is_apart() && !data.is_empty()
    };
    message.len() <= ALL_SHORT_MAX && message.iter().all(fits)
}

/// Remembers in a planned message, where it is prepared, that its transfers [may all be short](may_all_be_short).
pub(crate) fn mark_all_short(message: &mut [Transfer<'_>]) {
    if message.len() > 1 && may_all_be_short(message) {
        if let Some(first) = message.first_mut() {
            first.plan = first.plan.with_all_short();
        }
    }
}

/// The buffers of a transfer that sends from one buffer and receives into another, and whose plan is
/// its device's, on a device with 8-bit words and without delays: a chip driver's register access. `preset`
/// is a [device's](Preset::of_device).
#[inline(always)]
pub(crate) fn plain_exchange<'t>(
    preset: &Preset,
    transfer: &'t mut Transfer<'_>,
) -> Option<(&'t [u8], &'t mut [u8])> {
    // One after the other, not gathered: see `Transfer::is_plain`. The plan tells of `asks` too.
    if !preset.plan.is_direct_bytes() {
        return None;
    }
    if !transfer.is_plain() || transfer.cs_change {
        return None;
    }
    if transfer.data.len() > preset.poll_bytes_max {
        return None;
    }
    let (tx, rx) = transfer.data.apart()?;
    Some((tx?, rx?))
}

/// Validates `message` and writes every transfer's plan. `block` adds the block's own checks, and
/// returns the register value of a transfer that is not plain.
///
/// # Errors
/// [`Error::Empty`], [`Error::CsChangeOnLast`], [`Error::Length`], [`Error::BitsPerWord`],
/// [`Error::DelayTooLong`], and errors of `block`.
pub fn plan_message<F>(
    preset: &Preset,
    timer_hz: u32,
    message: &mut [Transfer<'_>],
    mut block: F,
) -> Result<(), MessageError>
where
    F: FnMut(&Transfer<'_>) -> Result<u32, Error>,
{
    check_ends(message)?;
    for (index, transfer) in message.iter_mut().enumerate() {
        let planned = if transfer.is_plain() {
            plan_one(preset, transfer)
        } else {
            plan_special(preset, timer_hz, transfer, &mut block)
        };
        planned.map_err(|error| MessageError::refused(error, index))?;
    }
    Ok(())
}

/// Why [`plan_plain`] refused a message, for a bus that has no other plan.
#[cold]
pub(crate) fn refusal(preset: &Preset, message: &[Transfer<'_>]) -> MessageError {
    if let Err(error) = check_ends(message) {
        return error;
    }
    for (index, transfer) in message.iter().enumerate() {
        let Transfer { speed_hz, bits_per_word, .. } = *transfer;
        let delay_ns = transfer.word_delay_ns | transfer.delay_ns | transfer.cs_change_delay_ns;
        let fields = [
            ("speed_hz", speed_hz),
            ("bits_per_word", bits_per_word.into()),
            ("delay_ns", delay_ns),
        ];
        if let Some((field, asked)) = fields.into_iter().find(|&(_, asked)| asked != 0) {
            return MessageError::refused(Error::NotPerTransfer { field, asked }, index);
        }
        if let Err(error) = check_len(transfer.data.len(), preset.plan.word_bytes()) {
            return MessageError::refused(error, index);
        }
    }
    MessageError::refused(Error::Aborted, 0)
}

fn check_ends(message: &[Transfer<'_>]) -> Result<(), MessageError> {
    match message.last() {
        None => Err(MessageError::refused(Error::Empty, 0)),
        Some(last) if last.cs_change => {
            Err(MessageError::refused(Error::CsChangeOnLast, message.len() - 1))
        }
        Some(_) => Ok(()),
    }
}

fn plan_one(preset: &Preset, transfer: &mut Transfer<'_>) -> Result<(), Error> {
    transfer.plan = preset.plan.of_transfer().with_cs_change(transfer.cs_change);
    check_len(transfer.data.len(), preset.plan.word_bytes())
}

/// Whether `len` bytes are a whole number of words.
#[inline]
fn is_whole(len: usize, word_bytes: u8) -> bool {
    // Words are 1, 2 or 4 bytes: a mask gives the remainder without a division.
    len & usize::from(word_bytes - 1) == 0
}

fn check_len(len: usize, word_bytes: u8) -> Result<(), Error> {
    if is_whole(len, word_bytes) { Ok(()) } else { Err(Error::Length { len, word_bytes }) }
}

/// Plans a transfer with a speed, a word length or delays of its own.
#[cold]
fn plan_special<F>(
    preset: &Preset,
    timer_hz: u32,
    transfer: &mut Transfer<'_>,
    block: &mut F,
) -> Result<(), Error>
where
    F: FnMut(&Transfer<'_>) -> Result<u32, Error>,
{
    transfer.plan = preset.plan.of_transfer();
    transfer.plan.control = block(transfer)?;
    if transfer.bits_per_word != 0 {
        transfer.plan = transfer.plan.with_word_bytes(word_bytes(transfer.bits_per_word)?);
    }
    let word_delay_ticks = delay_ticks(transfer.word_delay_ns, timer_hz)?;
    if word_delay_ticks > transfer.plan.word_delay_ticks {
        transfer.plan = transfer.plan.timed();
        transfer.plan.word_delay_ticks = word_delay_ticks;
    }
    transfer.delay_ticks = delay_ticks(transfer.delay_ns, timer_hz)?;
    // Deselecting already waits the device's cs_inactive; only the rest remains.
    transfer.inactive_ticks = delay_ticks(transfer.cs_change_delay_ns, timer_hz)?
        .saturating_sub(preset.cs_inactive_ticks);
    let after = match (transfer.cs_change, transfer.delay_ticks, transfer.inactive_ticks) {
        (true, 0, 0) => After::CsChange,
        (true, ..) => After::TimedCsChange,
        (false, 0, _) => After::Nothing,
        (false, ..) => After::Delay,
    };
    transfer.plan = transfer.plan.with_after(after);
    check_len(transfer.data.len(), transfer.plan.word_bytes())
}

/// The bytes of a word of `bits`.
///
/// # Errors
/// [`Error::BitsPerWord`] unless `bits` is 8, 16 or 32.
pub fn word_bytes(bits: u8) -> Result<u8, Error> {
    match bits {
        8 | 16 | 32 => Ok(bits / 8),
        _ => Err(Error::BitsPerWord { bits }),
    }
}
