//! Acceptance filters: only frames that pass one are received.

use embedded_can::Id;

use super::access::Link;
use super::frame::id_word;
use super::regs::{C1FLTCON, C1FLTOBJ, C1MASK, FRAME_BYTES, fltobj, mask};
use super::{CanError, Mcp251xfd};
use crate::regmap::Frames;
use crate::time::Timer;

/// The number of filters in the chip.
pub(super) const FILTERS: usize = 32;
/// In a filter's byte of C1FLTCON: the filter is enabled, and frames that pass go to FIFO 1.
const ON_TO_FIFO_1: u8 = 0x80 | 1;

/// An acceptance filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Filter {
    object: u32,
    mask: u32,
}

impl Filter {
    /// All frames pass: the default.
    pub const ALL: Self = Self { object: 0, mask: 0 };

    /// Only `id` passes, standard or extended.
    #[must_use]
    pub fn exactly(id: impl Into<Id>) -> Self {
        Self::masked(id, u32::MAX)
    }

    /// Identifiers pass that are of the same kind as `id` and equal it in the bits of `mask`.
    #[must_use]
    pub fn masked(id: impl Into<Id>, mask: u32) -> Self {
        let id = id.into();
        let (object, counts) = match id {
            Id::Standard(_) => (id_word(id), mask & (mask::MSID.mask() >> mask::MSID.lsb())),
            Id::Extended(_) => {
                let low = mask::MEID.put(0, mask & (mask::MEID.mask() >> mask::MEID.lsb()));
                let high = mask >> mask::MEID.width() & mask::MSID.mask();
                (fltobj::EXIDE.put(id_word(id), 1), low | high)
            }
        };
        Self { object, mask: mask::MIDE.put(counts, 1) }
    }
}

impl<F: Frames<FRAME_BYTES>> Link<F> {
    /// Sets filter `index`. The manual requires that it is disabled meanwhile.
    pub(super) fn set_filter(&mut self, index: u8, filter: Option<Filter>) -> Result<(), CanError> {
        let control = C1FLTCON.address() as u16 + u16::from(index);
        self.write_bytes(control, &[0])?;
        if let Some(Filter { object, mask }) = filter {
            self.write(C1FLTOBJ.nth(index.into()), object)?;
            self.write(C1MASK.nth(index.into()), mask)?;
            self.write_bytes(control, &[ON_TO_FIFO_1])?;
        }
        Ok(())
    }
}

impl<F: Frames<FRAME_BYTES>, T: Timer> Mcp251xfd<F, T> {
    /// Sets or clears filter `index`, in any mode; a restart keeps it. A frame goes to the first
    /// filter it passes. Filter 0 is [`Filter::ALL`] until it is set.
    ///
    /// # Errors
    /// [`CanError::NoSuchFilter`], [`CanError::Message`].
    pub fn set_filter(&mut self, index: u8, filter: Option<Filter>) -> Result<(), CanError> {
        let kept = self.filters.get_mut(usize::from(index));
        *kept.ok_or(CanError::NoSuchFilter { index })? = filter;
        self.link.set_filter(index, filter)
    }
}
