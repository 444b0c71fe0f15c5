//! What a controller makes of a transfer before it runs: register values, in fixed room.
//!
//! A transfer carries its plan, so that the type stands beside it. The public path is
//! [`controller::Plan`](crate::controller::Plan).

/// A transfer as register values. Small, and without padding: the sync path writes one for every
/// transfer, in two stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Plan {
    /// The block's own value; its meaning is the driver's.
    pub control: u32,
    /// Ticks to wait after each word but the last.
    pub word_delay_ticks: u32,
    /// How the end is awaited above, bytes of a word, what follows below.
    shape: u32,
}

/// What follows a transfer inside its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum After {
    /// The next transfer, at once.
    Nothing,
    /// CS drops and rises again, at once.
    CsChange,
    /// A wait.
    Delay,
    /// A wait, then CS drops, stays inactive for a while, and rises again.
    TimedCsChange,
}

impl Plan {
    /// The plan of a transfer that has none yet.
    pub(crate) const NONE: Plan = Plan::new(0, 0, 1);
    /// In `shape`: the end is awaited by interrupt.
    const BY_INTERRUPT: u32 = 1 << 16;
    /// In `shape`, of a device's plan: the timer waits around its selections or between its words.
    const TIMED: u32 = 1 << 18;

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

    /// What follows the transfer.
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

    /// The same with another word.
    #[must_use]
    pub const fn with_word_bytes(self, word_bytes: u8) -> Self {
        Self { shape: self.shape & !0xff00 | (word_bytes as u32) << 8, ..self }
    }

    /// The same with something else after it.
    #[must_use]
    pub const fn with_after(self, after: After) -> Self {
        Self { shape: self.shape & !0xff | after as u32, ..self }
    }

    /// Whether the transfer is polled, in words of a byte, nothing follows it, and its device has no
    /// delays.
    #[inline(always)]
    pub(crate) const fn is_direct_bytes(&self) -> bool {
        self.shape == 1 << 8
    }

    /// The same of a device with delays.
    #[must_use]
    pub(crate) const fn timed(self) -> Self {
        Self { shape: self.shape | Self::TIMED, ..self }
    }

    /// Whether the transfer is long enough to wait for its end by interrupt, not by polling.
    #[inline]
    #[must_use]
    pub const fn by_interrupt(&self) -> bool {
        self.shape & Self::BY_INTERRUPT != 0
    }

    /// The same, its end awaited by interrupt or by polling.
    #[must_use]
    pub const fn with_interrupt(self, by_interrupt: bool) -> Self {
        let bit = if by_interrupt { Self::BY_INTERRUPT } else { 0 };
        Self { shape: self.shape & !Self::BY_INTERRUPT | bit, ..self }
    }

    /// The same, awaited by polling this once; [`Plan::as_planned`] is how it was.
    #[must_use]
    pub(crate) const fn polled_once(self) -> Self {
        let kept = (self.shape & Self::BY_INTERRUPT) << 1;
        Self { shape: self.shape & !Self::BY_INTERRUPT | kept, ..self }
    }

    /// As it was before [`Plan::polled_once`].
    #[must_use]
    pub(crate) const fn as_planned(self) -> Self {
        let kept = Self::BY_INTERRUPT << 1;
        Self { shape: self.shape & !kept | (self.shape & kept) >> 1, ..self }
    }

    /// The same, of a plan with nothing after it, with CS dropped and raised at once if asked.
    #[inline]
    #[must_use]
    pub(crate) const fn with_cs_change(self, cs_change: bool) -> Self {
        Self { shape: self.shape | cs_change as u32, ..self }
    }
}

const _: () = assert!(After::CsChange as u32 == 1, "what a bool of cs_change makes");
