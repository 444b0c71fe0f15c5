//! A cache of register values.

use super::{Access, Frames, Location, Map, RegMap, RegmapError};

/// A slot of a cache: a register's value, if known.
pub type Slot = Option<u32>;

/// A [`RegMap`] that caches the values of registers that are not volatile.
///
/// It knows only its own accesses. If the chip was reset, call [`Cached::forget`] or
/// [`Cached::restore`].
#[derive(Debug)]
pub struct Cached<'s, F, const N: usize> {
    regmap: RegMap<F, N>,
    slots: &'s mut [Slot],
}

impl<'s, F: Frames<N>, const N: usize> Cached<'s, F, N> {
    /// Uses `slots` for the values; their content is discarded.
    ///
    /// # Panics
    /// If there are fewer slots than [`Map::len`].
    pub fn new(regmap: RegMap<F, N>, slots: &'s mut [Slot]) -> Self {
        assert!(slots.len() >= regmap.map().len(), "a slot for each register");
        slots.fill(None);
        Self { regmap, slots }
    }

    /// The registers.
    pub fn map(&self) -> &'static Map {
        self.regmap.map()
    }

    /// The registers without the cache.
    pub fn uncached(&mut self) -> &mut RegMap<F, N> {
        &mut self.regmap
    }

    /// The slot of a register, if it is in this map and may be cached.
    fn slot(&mut self, location: &Location<'_>) -> Option<&mut Slot> {
        if location.register().is_volatile() {
            return None;
        }
        let address = location.address();
        let index = self.map().locations().position(|known| known.address() == address)?;
        self.slots.get_mut(index)
    }

    /// The value, from the cache or read from the chip.
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

    /// Writes a register and caches the value.
    ///
    /// # Errors
    /// As [`RegMap::write`]. The register's value is unknown then.
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

    /// Sets the bits of `mask` to those of `value`. Writes only if that changes the register, and
    /// returns whether it did. If the value is cached, no read is needed.
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

    /// Discards all cached values.
    pub fn forget(&mut self) {
        self.slots.fill(None);
    }

    /// Writes every cached value of a writable register back to the chip, after a reset.
    ///
    /// # Errors
    /// The first error. The registers before it are written.
    pub fn restore(&mut self) -> Result<(), RegmapError> {
        for (location, slot) in self.regmap.map().locations().zip(&*self.slots) {
            if let (Some(value), true) = (slot, location.register().access() != Access::ReadOnly) {
                self.regmap.write(location, *value)?;
            }
        }
        Ok(())
    }
}
