//! Values that need not be fetched again.

use super::{Access, Frames, Location, Map, RegMap, RegmapError};

/// A place in a cache: a register's value, if known.
pub type Slot = Option<u32>;

/// A [`RegMap`] that remembers what it read and wrote, but of volatile registers.
///
/// It knows of its own accesses alone: if the chip was reset, [`Cached::forget`] or
/// [`Cached::restore`].
#[derive(Debug)]
pub struct Cached<'s, F, const N: usize> {
    regmap: RegMap<F, N>,
    slots: &'s mut [Slot],
}

impl<'s, F: Frames<N>, const N: usize> Cached<'s, F, N> {
    /// Remembers in `slots`, whose content is forgotten.
    ///
    /// # Panics
    /// If there are fewer than [`Map::len`].
    pub fn new(regmap: RegMap<F, N>, slots: &'s mut [Slot]) -> Self {
        assert!(slots.len() >= regmap.map().len(), "a slot for each register");
        slots.fill(None);
        Self { regmap, slots }
    }

    /// The registers.
    pub fn map(&self) -> &'static Map {
        self.regmap.map()
    }

    /// Without the cache.
    pub fn uncached(&mut self) -> &mut RegMap<F, N> {
        &mut self.regmap
    }

    /// Where the value of a register of this map that may be kept is kept.
    fn slot(&mut self, location: &Location<'_>) -> Option<&mut Slot> {
        if location.register().is_volatile() {
            return None;
        }
        let address = location.address();
        let index = self.map().locations().position(|known| known.address() == address)?;
        self.slots.get_mut(index)
    }

    /// The value: remembered, or read.
    ///
    /// # Errors
    /// As [`RegMap::read`].
    pub fn read<'m>(&mut self, location: impl Into<Location<'m>>) -> Result<u32, RegmapError> {
        let location = location.into();
        if let Some(&mut Some(value)) = self.slot(&location) {
            return Ok(value);
        }
        let value = self.regmap.read(location)?;
        if let Some(slot) = self.slot(&location) {
            *slot = Some(value);
        }
        Ok(value)
    }

    /// Writes, and remembers what was written.
    ///
    /// # Errors
    /// As [`RegMap::write`]; what the register holds is not known then.
    pub fn write<'m>(
        &mut self,
        location: impl Into<Location<'m>>,
        value: u32,
    ) -> Result<(), RegmapError> {
        let location = location.into();
        let written = self.regmap.write(location, value);
        if let Some(slot) = self.slot(&location) {
            match written {
                Ok(()) => *slot = Some(value),
                Err(RegmapError::Message(_)) => *slot = None,
                Err(_) => {}
            }
        }
        written
    }

    /// Sets the bits of `mask` to those of `value`; writes only if that changes the register.
    /// Returns whether it did. Costs no read where the value is remembered.
    ///
    /// # Errors
    /// As [`RegMap::read`] and [`RegMap::write`].
    pub fn update_bits<'m>(
        &mut self,
        location: impl Into<Location<'m>>,
        mask: u32,
        value: u32,
    ) -> Result<bool, RegmapError> {
        let location = location.into();
        let old = self.read(location)?;
        let new = old & !mask | value & mask;
        if new != old {
            self.write(location, new)?;
        }
        Ok(new != old)
    }

    /// Knows nothing any more.
    pub fn forget(&mut self) {
        self.slots.fill(None);
    }

    /// Writes everything remembered that can be written back to the chip, after it was reset.
    ///
    /// # Errors
    /// The first that fails; those before it are written.
    pub fn restore(&mut self) -> Result<(), RegmapError> {
        for (location, slot) in self.regmap.map().locations().zip(&*self.slots) {
            if let (Some(value), true) = (slot, location.register().access() != Access::ReadOnly) {
                self.regmap.write(location, *value)?;
            }
        }
        Ok(())
    }
}
