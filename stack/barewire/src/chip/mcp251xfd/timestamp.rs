//! Time stamps of 32 bits, widened to 64.

/// Remembers the latest stamp, and takes each next one for the nearest to it: right as long as less
/// than 2^31 ticks lie between two.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Widener {
    latest: u64,
}

impl Widener {
    /// The stamp in 64 bits. One that is older than the latest stays older: events are read after
    /// frames that came later.
    pub(super) fn widen(&mut self, stamp: u32) -> u64 {
        let distance = stamp.wrapping_sub(self.latest as u32) as i32;
        // A stamp from before the first one's zero is a chip whose counter was set back.
        let wide = self.latest.checked_add_signed(distance.into()).unwrap_or(stamp.into());
        self.latest = self.latest.max(wide);
        wide
    }
}
