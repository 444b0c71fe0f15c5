//! Registers and their fields, as constants.

use core::fmt;

/// The permitted accesses to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Access {
    /// Read and written.
    ReadWrite,
    /// Read only.
    ReadOnly,
    /// Written only.
    WriteOnly,
}

/// Adjacent bits of a register with one meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Field {
    pub(super) name: &'static str,
    pub(super) lsb: u8,
    pub(super) width: u8,
    read_only: bool,
    volatile: bool,
}

impl Field {
    /// A field of `width` bits from bit `lsb` up, with the data sheet's name.
    ///
    /// # Panics
    /// If it exceeds 32 bits or has none.
    #[must_use]
    pub const fn new(name: &'static str, lsb: u8, width: u8) -> Self {
        assert!(width >= 1 && lsb as u32 + width as u32 <= 32, "a field lies within 32 bits");
        Self { name, lsb, width, read_only: false, volatile: false }
    }

    /// A field of one bit.
    #[must_use]
    pub const fn bit(name: &'static str, lsb: u8) -> Self {
        Self::new(name, lsb, 1)
    }

    /// Marks the field as read-only in a register that is written.
    #[must_use]
    pub const fn read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// Marks the field as changed by the chip: it may read differently than written.
    #[must_use]
    pub const fn volatile(self) -> Self {
        Self { volatile: true, ..self }
    }

    /// The data sheet's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether writing does not change it.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether the chip sets or clears it.
    #[must_use]
    pub const fn is_volatile(&self) -> bool {
        self.volatile
    }

    /// Its lowest bit.
    #[must_use]
    pub const fn lsb(&self) -> u8 {
        self.lsb
    }

    /// Its width in bits.
    #[must_use]
    pub const fn width(&self) -> u8 {
        self.width
    }

    /// The mask of its bits.
    #[must_use]
    pub const fn mask(&self) -> u32 {
        (u32::MAX >> (32 - self.width)) << self.lsb
    }

    /// Extracts its value from the register's value.
    #[must_use]
    pub const fn get(&self, register: u32) -> u32 {
        (register & self.mask()) >> self.lsb
    }

    /// Returns `register` with this field set to `value`.
    ///
    /// # Panics
    /// If `value` does not fit.
    #[must_use]
    pub const fn put(&self, register: u32, value: u32) -> u32 {
        assert!(value <= self.mask() >> self.lsb, "the value does not fit the field");
        register & !self.mask() | value << self.lsb
    }
}

/// A register, or an array of them at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Register {
    pub(super) name: &'static str,
    pub(super) address: u32,
    pub(super) count: u16,
    pub(super) step: u16,
    access: Access,
    volatile: bool,
    precious: bool,
    /// The number of the first element, if the elements' names end in numbers.
    pub(super) first: Option<u8>,
    pub(super) reset: Option<u32>,
    pub(super) fields: &'static [Field],
}

impl Register {
    /// A register that is read and written and may be cached, without fields, with an unknown reset
    /// value.
    #[must_use]
    pub const fn new(name: &'static str, address: u32) -> Self {
        Self {
            name,
            address,
            count: 1,
            step: 0,
            access: Access::ReadWrite,
            volatile: false,
            precious: false,
            first: None,
            reset: None,
            fields: &[],
        }
    }

    /// Makes it an array of `count` registers, `step` addresses apart.
    ///
    /// # Panics
    /// If `count` is 0, or the registers overlap.
    #[must_use]
    pub const fn array(self, count: u16, step: u16) -> Self {
        assert!(count >= 1 && (step >= 1 || count == 1), "an array has elements, side by side");
        Self { count, step, ..self }
    }

    /// Names the array's elements `NAME1`, `NAME2` and so on, the first with this number, instead
    /// of `NAME[0]`, `NAME[1]`.
    #[must_use]
    pub const fn numbered_from(self, first: u8) -> Self {
        Self { first: Some(first), ..self }
    }

    /// Sets the reset value. For an array, it is each element's reset value.
    #[must_use]
    pub const fn reset(self, value: u32) -> Self {
        Self { reset: Some(value), ..self }
    }

    /// Marks it as read-only.
    #[must_use]
    pub const fn read_only(self) -> Self {
        Self { access: Access::ReadOnly, ..self }
    }

    /// Marks it as write-only.
    #[must_use]
    pub const fn write_only(self) -> Self {
        Self { access: Access::WriteOnly, ..self }
    }

    /// Marks it as changed by the chip, so that it is not cached.
    #[must_use]
    pub const fn volatile(self) -> Self {
        Self { volatile: true, ..self }
    }

    /// Marks it as changed by being read: a dump skips it. Implies volatile.
    #[must_use]
    pub const fn precious(self) -> Self {
        Self { precious: true, volatile: true, ..self }
    }

    /// Sets its fields.
    #[must_use]
    pub const fn fields(self, fields: &'static [Field]) -> Self {
        Self { fields, ..self }
    }

    /// The data sheet's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The address; for an array, of the first element.
    #[must_use]
    pub const fn address(&self) -> u32 {
        self.address
    }

    /// The number of registers: 1, or the length of the array.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// The permitted accesses.
    #[must_use]
    pub const fn access(&self) -> Access {
        self.access
    }

    /// Whether the chip changes it.
    #[must_use]
    pub const fn is_volatile(&self) -> bool {
        self.volatile
    }

    /// Whether reading changes it.
    #[must_use]
    pub const fn is_precious(&self) -> bool {
        self.precious
    }

    /// Its reset value, if known.
    #[must_use]
    pub const fn reset_value(&self) -> Option<u32> {
        self.reset
    }

    /// Its fields, from the lowest.
    #[must_use]
    pub const fn all_fields(&self) -> &'static [Field] {
        self.fields
    }

    /// Finds a field by name, ignoring case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))
    }

    /// Element `index`.
    ///
    /// # Panics
    /// If the index is out of range.
    #[must_use]
    #[inline]
    pub const fn nth(&self, index: u16) -> Location<'_> {
        assert!(index < self.count, "no such element");
        Location { register: self, index }
    }

    pub(super) const fn end(&self) -> u32 {
        self.address + (self.count as u32 - 1) * self.step as u32
    }
}

/// A single register: an element of an array, or a register that is not an array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Location<'m> {
    register: &'m Register,
    index: u16,
}

impl<'m> Location<'m> {
    /// The register, or the array that it is an element of.
    #[must_use]
    pub const fn register(&self) -> &'m Register {
        self.register
    }

    /// The index in the array.
    #[must_use]
    pub const fn index(&self) -> u16 {
        self.index
    }

    /// Its address.
    #[must_use]
    #[inline]
    pub const fn address(&self) -> u32 {
        self.register.address + self.index as u32 * self.register.step as u32
    }
}

impl<'m> From<&'m Register> for Location<'m> {
    #[inline]
    fn from(register: &'m Register) -> Self {
        Self { register, index: 0 }
    }
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Register { name, count, first, .. } = self.register;
        match (count, first) {
            (1, _) => f.write_str(name),
            (_, Some(first)) => write!(f, "{name}{}", u32::from(*first) + u32::from(self.index)),
            (_, None) => write!(f, "{name}[{}]", self.index),
        }
    }
}

impl fmt::Debug for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} at {:#x}", self.address())
    }
}
