//! Time stamps of 32 bits, widened to 64.

/// Keeps the latest stamp, and widens each stamp to the value nearest to it. This is right if fewer
/// than 2^31 ticks are between two stamps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Widener {
    latest: u64,
}

impl Widener {
    /// The stamp in 64 bits. A stamp older than the latest stays older: events are read after
    /// frames that came later.
    pub(super) fn widen(&mut self, stamp: u32) -> u64 {
        let distance = stamp.wrapping_sub(self.latest as u32) as i32;
        // A stamp from before time zero means that the chip's counter was reset.
        let wide = self.latest.checked_add_signed(distance.into()).unwrap_or(stamp.into());
        self.latest = self.latest.max(wide);
        wide
    }
}
