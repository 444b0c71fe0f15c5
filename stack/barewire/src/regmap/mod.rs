//! Register maps: a chip's registers by name, over SPI.
//!
//! # Read first
//! The serial interface chapter of the chip's data sheet; Linux's `regmap_config`, whose names
//! [`Format`] uses.
//!
//! # How it works
//! 1. Map: a [`Map`] is a constant with the registers' names, addresses and fields, and the format
//!    of an exchange. A mistake in it (two fields on one bit, two registers at one address) is a
//!    build error.
//! 2. Access: [`RegMap`] reads and writes registers. The exchange is prepared once ([`OnDevice`]).
//!    A read stores the header in it, runs it, and takes the value out. Any other implementation of
//!    [`Frames`] works too.
//! 3. Bulk: [`RegMap::read_bulk`] and [`RegMap::write_bulk`] access adjacent registers in one
//!    exchange, if the part increments addresses. [`RegMap::read_raw`] and [`RegMap::write_raw`]
//!    access bytes.
//! 4. Cache: [`Cached`] keeps values in the caller's memory.
//!
//! A map may mark fields that do not read back what was written. A driver's accesses cost nothing for
//! it; `barewire regs write` uses it to say why a value came back changed.
//!
//! # Ordering
//! 1. Accesses reach the chip in the order of the calls.
//! 2. [`RegMap::update_bits`] is a read and a write, and an access through another handle may come
//!    in between. If several users share a chip, they must lock the bus.
//!
//! # Not supported
//! Pages and indirect registers; addresses, flags and padding of more than 32 bits each.
//!
//! # Example
//! ```
//! use barewire::bus::Bus;
//! use barewire::regmap::{Endian, Field, Format, Map, OnDevice, RegMap, Register};
//! use barewire::spi::Settings;
//! # let bus = Bus::new(barewire::controller::null::Null::new());
//!
//! const RATE: Field = Field::new("RATE", 0, 3);
//! static CONFIG: Register = Register::new("CONFIG", 0x04).fields(&[RATE, Field::bit("ENABLE", 7)]);
//! static STATUS: Register = Register::new("STATUS", 0x08).read_only().volatile();
//! static MAP: Map = Map::new(
//!     "part",
//!     Format { read_flag_mask: 0x80, ..Format::new(8, 8) },
//!     &[CONFIG, STATUS],
//! );
//!
//! let device = bus.device(&Settings::new(0, 10_000_000))?;
//! let mut part = RegMap::<_, 2>::new(OnDevice::new(device)?, &MAP);
//! part.update_bits(&CONFIG, RATE.mask(), RATE.put(0, 5))?;
//! let status = part.read(&STATUS)?;
//! # assert_eq!(status, 0);
//! assert_eq!(MAP.find("config").unwrap().address(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cache;
mod error;
mod format;
mod frames;
mod map;
mod register;
#[cfg(test)]
mod tests;

pub use cache::{Cached, Slot};
pub use error::RegmapError;
pub use format::{Endian, Format};
pub use frames::{Frames, OnDevice};
pub use map::Map;
pub use register::{Access, Field, Location, Register};

use crate::spi::Transfer;
use format::{Codec, to_wire};

/// The number of values in one bulk exchange.
const BULK_AT_ONCE: usize = 32;

/// A chip's registers, in exchanges of `N` bytes.
#[derive(Debug)]
pub struct RegMap<F, const N: usize> {
    frames: F,
    codec: Codec,
    map: &'static Map,
}

impl<F: Frames<N>, const N: usize> RegMap<F, N> {
    /// Creates access to the registers of `map` through `frames`.
    ///
    /// # Panics
    /// If `N` is not the map's [`Format::frame_bytes`].
    pub fn new(frames: F, map: &'static Map) -> Self {
        assert_eq!(N, map.format().frame_bytes(), "the bytes of an exchange in this format");
        Self { frames, codec: map.format().codec(), map }
    }

    /// The register map.
    pub fn map(&self) -> &'static Map {
        self.map
    }

    /// The exchanges.
    pub fn frames(&mut self) -> &mut F {
        &mut self.frames
    }

    /// Reads a register.
    ///
    /// # Errors
    /// [`RegmapError::NotReadable`], before anything is clocked; [`RegmapError::Message`].
    #[inline]
    pub fn read<'m>(&mut self, location: impl Into<Location<'m>>) -> Result<u32, RegmapError> {
        let location = location.into();
        if location.register().access() == Access::WriteOnly {
            return Err(RegmapError::NotReadable { address: location.address() });
        }
        let frame = self.codec.read_frame(location.address());
        match self.frames.exchange(to_wire(frame)) {
            Ok(rx) => Ok(self.codec.value(rx)),
            Err(error) => Err(RegmapError::Message(error)),
        }
    }

    /// Writes a register.
    ///
    /// # Errors
    /// [`RegmapError::NotWritable`] and [`RegmapError::ValueTooWide`], before anything is clocked;
    /// [`RegmapError::Message`].
    #[inline]
    pub fn write<'m>(
        &mut self,
        location: impl Into<Location<'m>>,
        value: u32,
    ) -> Result<(), RegmapError> {
        let location = location.into();
        self.check_writable(&location, value)?;
        let frame = self.codec.write_frame(location.address(), value);
        self.frames.exchange(to_wire(frame))?;
        Ok(())
    }

    /// Sets the bits of `mask` to those of `value`. Writes only if that changes the register, and
    /// returns whether it did.
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

    /// Reads adjacent registers from `first` on, 32 per exchange.
    ///
    /// # Errors
    /// [`RegmapError::NoBulk`] and [`RegmapError::AddressRange`], before anything is clocked;
    /// [`RegmapError::Message`].
    pub fn read_bulk<'m>(
        &mut self,
        first: impl Into<Location<'m>>,
        values: &mut [u32],
    ) -> Result<(), RegmapError> {
        let first = first.into();
        let address = first.address();
        self.check_bulk(address, values.len())?;
        let format = *self.map.format();
        let width = format.value_bytes();
        let starts = addresses(address, BULK_AT_ONCE * usize::from(format.reg_stride));
        for (values, address) in values.chunks_mut(BULK_AT_ONCE).zip(starts) {
            let mut bytes = [0; BULK_AT_ONCE * 4];
            let bytes = &mut bytes[..values.len() * width];
            self.read_raw(address, bytes)?;
            for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(width)) {
                let mut four = [0; 4];
                four[..width].copy_from_slice(bytes);
                *value = format.value_from_bytes(four);
            }
        }
        Ok(())
    }

    /// Writes adjacent registers from `first` on, 32 per exchange.
    ///
    /// # Errors
    /// As [`RegMap::read_bulk`]; [`RegmapError::NotWritable`] and [`RegmapError::ValueTooWide`],
    /// before anything is clocked.
    pub fn write_bulk<'m>(
        &mut self,
        first: impl Into<Location<'m>>,
        values: &[u32],
    ) -> Result<(), RegmapError> {
        let first = first.into();
        let address = first.address();
        self.check_bulk(address, values.len())?;
        let format = *self.map.format();
        let (width, stride) = (format.value_bytes(), usize::from(format.reg_stride));
        for (&value, address) in values.iter().zip(addresses(address, stride)) {
            match self.map.at(address) {
                Some(location) => self.check_writable(&location, value)?,
                None => self.check_width(address, value)?,
            }
        }
        let starts = addresses(address, BULK_AT_ONCE * stride);
        for (values, address) in values.chunks(BULK_AT_ONCE).zip(starts) {
            let mut bytes = [0; BULK_AT_ONCE * 4];
            for (bytes, &value) in bytes.chunks_exact_mut(width).zip(values) {
                bytes.copy_from_slice(&format.value_to_bytes(value)[..width]);
            }
            self.write_raw(address, &bytes[..values.len() * width])?;
        }
        Ok(())
    }

    /// Reads bytes from `address` on in one exchange, for example a memory behind the registers.
    ///
    /// # Errors
    /// [`RegmapError::NoBulk`], and [`RegmapError::AddressRange`] if the first address is invalid,
    /// before anything is clocked; [`RegmapError::Message`].
    pub fn read_raw(&mut self, address: u32, bytes: &mut [u8]) -> Result<(), RegmapError> {
        self.check_bulk(address, 1)?;
        let header = self.header(self.codec.read_frame(address));
        let message = &mut [Transfer::write(header.bytes()), Transfer::read(bytes)];
        Ok(self.frames.run(message)?)
    }

    /// Writes bytes from `address` on in one exchange.
    ///
    /// # Errors
    /// As [`RegMap::read_raw`].
    pub fn write_raw(&mut self, address: u32, bytes: &[u8]) -> Result<(), RegmapError> {
        self.check_bulk(address, 1)?;
        let header = self.header(self.codec.write_frame(address, 0));
        let message = &mut [Transfer::write(header.bytes()), Transfer::write(bytes)];
        Ok(self.frames.run(message)?)
    }

    /// The bytes before the values.
    fn header(&self, frame: u64) -> Header {
        let format = self.map.format();
        let wire: [u8; 8] = (frame << (64 - 8 * format.frame_bytes())).to_be_bytes();
        Header { wire, len: format.header_bytes() }
    }

    fn check_bulk(&self, address: u32, count: usize) -> Result<(), RegmapError> {
        let format = self.map.format();
        if !format.has_bulk() {
            return Err(RegmapError::NoBulk);
        }
        let max = format.address_max();
        let steps = u64::try_from(count.saturating_sub(1)).unwrap_or(u64::MAX);
        let last = steps
            .checked_mul(u64::from(format.reg_stride))
            .and_then(|offset| offset.checked_add(u64::from(address)));
        match last {
            Some(last) if last <= u64::from(max) => Ok(()),
            _ => Err(RegmapError::AddressRange { address, count, max }),
        }
    }

    #[inline]
    fn check_writable(&self, location: &Location<'_>, value: u32) -> Result<(), RegmapError> {
        if location.register().access() == Access::ReadOnly {
            return Err(RegmapError::NotWritable { address: location.address() });
        }
        self.check_width(location.address(), value)
    }

    #[inline]
    fn check_width(&self, address: u32, value: u32) -> Result<(), RegmapError> {
        if value > self.codec.value_max {
            let val_bits = self.map.format().val_bits;
            return Err(RegmapError::ValueTooWide { address, value, val_bits });
        }
        Ok(())
    }
}

/// `first` and every `step`-th address after it, up to the last.
fn addresses(first: u32, step: usize) -> impl Iterator<Item = u32> {
    let step = u32::try_from(step).ok();
    core::iter::successors(Some(first), move |at| at.checked_add(step?))
}

/// An address with its flags and padding, as bytes.
struct Header {
    wire: [u8; 8],
    len: usize,
}

impl Header {
    fn bytes(&self) -> &[u8] {
        &self.wire[..self.len]
    }
}
