//! A transfer as register values, computed before it runs.
//!
//! A transfer carries its plan, so the type is defined here. Its public path is
//! [`controller::Plan`](crate::controller::Plan).

/// A transfer as register values. Small and without padding: the sync path writes one for every
/// transfer, in two stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Plan {
    /// The block's own value; only the driver knows its meaning.
    pub control: u32,
    /// Ticks to wait after each word but the last.
    pub word_delay_ticks: u32,
    /// From the highest bits to the lowest: flags, bytes of a word, what follows the transfer.
    shape: u32,
}

/// The event that follows a transfer inside its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum After {
    /// The next transfer follows at once.
    Nothing,
    /// CS becomes inactive and active again, at once.
    CsChange,
    /// A delay.
    Delay,
    /// A delay; then CS becomes inactive, stays so for a while, and becomes active again.
    TimedCsChange,
}

impl Plan {
    /// The plan of a transfer that was not planned yet.
    pub(crate) const NONE: Plan = Plan::new(0, 0, 1);
    /// In `shape`: the transfer waits by interrupt.
    const BY_INTERRUPT: u32 = 1 << 16;
    /// In `shape` of a device's plan: the device has delays around its selections or between its
    /// words.
    const TIMED: u32 = 1 << 18;

    /// In `shape` of a message's first transfer: [`Plan::all_short`].
    const ALL_SHORT: u32 = 1 << 19;
    /// In `shape` of a device's plan: the controller plans each of its transfers.
    const ASKS: u32 = 1 << 20;

    /// A plan with nothing after the transfer.
    #[must_use]
    pub const fn new(control: u32, word_delay_ticks: u32, word_bytes: u8) -> Self {
        Self { control, word_delay_ticks, shape: (word_bytes as u32) << 8 }
    }

    /// Bytes of a word.
    #[inline]
    #[must_use]
    pub const fn word_bytes(&self) -> u8 {
        (self.shape >> 8) as u8
    }

    /// The event that follows the transfer.
    #[inline]
    #[must_use]
    pub const fn after(&self) -> After {
        match self.shape as u8 {
            0 => After::Nothing,
            1 => After::CsChange,
            2 => After::Delay,
            _ => After::TimedCsChange,
        }
    }

    /// Sets the bytes of a word.
    #[must_use]
    pub const fn with_word_bytes(self, word_bytes: u8) -> Self {
        Self { shape: self.shape & !0xff00 | (word_bytes as u32) << 8, ..self }
    }

    /// Sets what follows the transfer.
    #[must_use]
    pub const fn with_after(self, after: After) -> Self {
        Self { shape: self.shape & !0xff | after as u32, ..self }
    }

    /// Whether the transfer is polled, in 8-bit words, nothing follows it, and its device has no
    /// delays.
    #[inline(always)]
    pub(crate) const fn is_direct_bytes(&self) -> bool {
        self.shape == 1 << 8
    }

    /// Marks the plan of a device whose transfers the controller plans, so that one look at it tells.
    #[must_use]
    pub(crate) const fn asking(self) -> Self {
        Self { shape: self.shape | Self::ASKS, ..self }
    }

    /// The plan of a device's transfer that has no settings of its own.
    #[inline]
    #[must_use]
    pub(crate) const fn of_transfer(self) -> Self {
        Self { shape: self.shape & !Self::ASKS, ..self }
    }

    /// Marks the plan of a device with delays.
    #[must_use]
    pub(crate) const fn timed(self) -> Self {
        Self { shape: self.shape | Self::TIMED, ..self }
    }

    /// Marks the plan of the first transfer of a prepared message whose transfers all may take the shorter path.
    #[inline]
    #[must_use]
    pub(crate) const fn with_all_short(self) -> Self {
        Self { shape: self.shape | Self::ALL_SHORT, ..self }
    }

    /// Whether [`Plan::with_all_short`] marked it.
    #[inline(always)]
    pub(crate) const fn all_short(&self) -> bool {
        self.shape & Self::ALL_SHORT != 0
    }

    /// Whether the transfer is long enough to wait by interrupt instead of polling.
    #[inline]
    #[must_use]
    pub const fn by_interrupt(&self) -> bool {
        self.shape & Self::BY_INTERRUPT != 0
    }

    /// Sets whether the transfer waits by interrupt.
    #[must_use]
    pub const fn with_interrupt(self, by_interrupt: bool) -> Self {
        let bit = if by_interrupt { Self::BY_INTERRUPT } else { 0 };
        Self { shape: self.shape & !Self::BY_INTERRUPT | bit, ..self }
    }

    /// The plan with polling for this run; [`Plan::as_planned`] undoes it.
    #[must_use]
    pub(crate) const fn polled_once(self) -> Self {
        let kept = (self.shape & Self::BY_INTERRUPT) << 1;
        Self { shape: self.shape & !Self::BY_INTERRUPT | kept, ..self }
    }

    /// Undoes [`Plan::polled_once`].
    #[must_use]
    pub(crate) const fn as_planned(self) -> Self {
        let kept = Self::BY_INTERRUPT << 1;
        Self { shape: self.shape & !kept | (self.shape & kept) >> 1, ..self }
    }

    /// Sets whether CS becomes inactive and active again, in a plan with nothing else after the
    /// transfer.
    #[inline]
    #[must_use]
    pub(crate) const fn with_cs_change(self, cs_change: bool) -> Self {
        Self { shape: self.shape | cs_change as u32, ..self }
    }
}

const _: () = assert!(After::CsChange as u32 == 1, "what a bool of cs_change makes");
