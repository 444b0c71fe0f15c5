//! Errors of the SMMU as a whole: SMMU_GERROR (IHI 0070, 6.3.17 and 7.5).
//!
//! # How the hardware works
//! An error is active while its bit in SMMU_GERROR differs from the one in SMMU_GERRORN. The SMMU
//! toggles the first, and software acknowledges by toggling the second. While an error is active,
//! the SMMU does not raise it again, so a second occurrence is not seen.
//!
//! # How this driver uses it
//! The CPU that acknowledges, by [`Smmu::handle_errors`](super::Smmu::handle_errors) or because a
//! command was refused, acknowledges all active errors at once. It first notes them, so that the
//! next `handle_errors` returns them.

use core::fmt;

use super::registers::GERROR_CMDQ_ERR;

/// An error of the SMMU as a whole: what happened, and what must be done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum GlobalError {
    /// EVENTQ_ABT_ERR: a write to the event queue was aborted.
    ///
    /// Events are lost; faults may have happened that no event tells of. Read the queue and go on.
    /// If it comes again, the SMMU cannot reach the queue's memory.
    EventQueueAbort,
    /// PRIQ_ABT_ERR: a write to the PRI queue was aborted, and page requests are lost.
    ///
    /// This driver enables no PRI queue: the error is from before.
    PageRequestQueueAbort,
    /// MSI_CMDQ_ABT_ERR: the MSI of a CMD_SYNC was aborted. This driver does not ask for any.
    CommandQueueMsiAbort,
    /// MSI_EVENTQ_ABT_ERR: the event queue's MSI was aborted.
    ///
    /// Events wait without an interrupt: read the queue. This driver configures no MSI; other
    /// software has set an address that cannot be written.
    EventQueueMsiAbort,
    /// MSI_PRIQ_ABT_ERR: the PRI queue's MSI was aborted.
    PageRequestQueueMsiAbort,
    /// MSI_GERROR_ABT_ERR: the MSI of an error was aborted. Errors then come without an interrupt.
    GlobalErrorMsiAbort,
    /// SFM_ERR: the SMMU is in Service Failure Mode, because of an internal error.
    ///
    /// It does not leave it: all accesses by devices are aborted and no command completes. Stop the
    /// devices and reset the SMMU, by a way that the system has; then bring it up again.
    /// `handle_errors` returns this error from now on at every call.
    ServiceFailure,
    /// CMDQP_ERR: an error of an enhanced command queue's control page. This driver uses none.
    CommandQueueControlPage,
    /// DPT_ERR: a Device Permission Table lookup failed. This driver uses none.
    DevicePermissionTable,
    /// Another bit of SMMU_GERROR.
    Other(u8),
}

/// The bit of SFM_ERR.
const SFM: u8 = 8;

impl GlobalError {
    const fn from_bit(bit: u8) -> Self {
        match bit {
            2 => Self::EventQueueAbort,
            3 => Self::PageRequestQueueAbort,
            4 => Self::CommandQueueMsiAbort,
            5 => Self::EventQueueMsiAbort,
            6 => Self::PageRequestQueueMsiAbort,
            7 => Self::GlobalErrorMsiAbort,
            SFM => Self::ServiceFailure,
            9 => Self::CommandQueueControlPage,
            10 => Self::DevicePermissionTable,
            other => Self::Other(other),
        }
    }

    /// The bit in SMMU_GERROR.
    pub const fn bit(self) -> u8 {
        match self {
            Self::EventQueueAbort => 2,
            Self::PageRequestQueueAbort => 3,
            Self::CommandQueueMsiAbort => 4,
            Self::EventQueueMsiAbort => 5,
            Self::PageRequestQueueMsiAbort => 6,
            Self::GlobalErrorMsiAbort => 7,
            Self::ServiceFailure => SFM,
            Self::CommandQueueControlPage => 9,
            Self::DevicePermissionTable => 10,
            Self::Other(bit) => bit,
        }
    }

    /// Whether the SMMU does not work any more until it is reset.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::ServiceFailure)
    }
}

impl fmt::Display for GlobalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EventQueueAbort => {
                "EVENTQ_ABT_ERR: events are lost, the SMMU could not write its event queue"
            }
            Self::PageRequestQueueAbort => {
                "PRIQ_ABT_ERR: page requests are lost, the SMMU could not write its PRI queue"
            }
            Self::CommandQueueMsiAbort => "MSI_CMDQ_ABT_ERR: the MSI of a CMD_SYNC is lost",
            Self::EventQueueMsiAbort => {
                "MSI_EVENTQ_ABT_ERR: the event queue's MSI is lost, read the queue"
            }
            Self::PageRequestQueueMsiAbort => "MSI_PRIQ_ABT_ERR: the PRI queue's MSI is lost",
            Self::GlobalErrorMsiAbort => {
                "MSI_GERROR_ABT_ERR: the MSI of an error is lost, look for errors"
            }
            Self::ServiceFailure => {
                "SFM_ERR: the SMMU is in Service Failure Mode and aborts all accesses until it is reset"
            }
            Self::CommandQueueControlPage => {
                "CMDQP_ERR: an error of a command queue control page that this driver did not enable"
            }
            Self::DevicePermissionTable => "DPT_ERR: a lookup in the Device Permission Table failed",
            Self::Other(bit) => return write!(f, "bit {bit} of SMMU_GERROR, unknown to this driver"),
        })
    }
}

/// A set of errors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[must_use = "each error needs a reaction, see `GlobalError`"]
pub struct GlobalErrors(u32);

impl GlobalErrors {
    /// No errors.
    pub const NONE: Self = Self(0);

    /// The errors of these bits of SMMU_GERROR. CMDQ_ERR is none of them.
    pub(super) const fn from_bits(bits: u32) -> Self {
        Self(bits & !GERROR_CMDQ_ERR)
    }

    /// The bits in SMMU_GERROR.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `error` is one of them.
    pub const fn contains(self, error: GlobalError) -> bool {
        (self.0 >> (error.bit() & 31)) & 1 != 0
    }

    /// Each of them, by bit.
    pub fn iter(self) -> impl Iterator<Item = GlobalError> {
        (0..32).filter(move |bit| self.0 >> bit & 1 != 0).map(GlobalError::from_bit)
    }

    /// The errors that stay active after they have been reported.
    pub(super) const TERMINAL: u32 = 1 << SFM;
}

impl fmt::Debug for GlobalErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// A line each.
impl fmt::Display for GlobalErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut errors = self.iter();
        let Some(first) = errors.next() else { return f.write_str("no error") };
        write!(f, "{first}")?;
        errors.try_for_each(|error| write!(f, "\n{error}"))
    }
}
