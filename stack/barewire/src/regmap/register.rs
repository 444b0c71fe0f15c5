//! Registers and their fields, as constants.

use core::fmt;

/// What may be done with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read and written.
    ReadWrite,
    /// Read only.
    ReadOnly,
    /// Written only.
    WriteOnly,
}

/// Neighbouring bits of a register that mean one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub(super) name: &'static str,
    pub(super) lsb: u8,
    pub(super) width: u8,
    read_only: bool,
    volatile: bool,
}

impl Field {
    /// `width` bits from bit `lsb` up, by the data sheet's name.
    ///
    /// # Panics
    /// If it does not fit 32 bits, or has none.
    #[must_use]
    pub const fn new(name: &'static str, lsb: u8, width: u8) -> Self {
        assert!(width >= 1 && lsb as u32 + width as u32 <= 32, "a field lies within 32 bits");
        Self { name, lsb, width, read_only: false, volatile: false }
    }

    /// One bit.
    #[must_use]
    pub const fn bit(name: &'static str, lsb: u8) -> Self {
        Self::new(name, lsb, 1)
    }

    /// In a register that is written, and unmoved by that.
    #[must_use]
    pub const fn read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// Set or cleared by the chip: it may read otherwise than it was written.
    #[must_use]
    pub const fn volatile(self) -> Self {
        Self { volatile: true, ..self }
    }

    /// The data sheet's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether writing does not move it.
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

    /// Its bits.
    #[must_use]
    pub const fn width(&self) -> u8 {
        self.width
    }

    /// Its bits set, where they are.
    #[must_use]
    pub const fn mask(&self) -> u32 {
        (u32::MAX >> (32 - self.width)) << self.lsb
    }

    /// Its value in a register's.
    #[must_use]
    pub const fn get(&self, register: u32) -> u32 {
        (register & self.mask()) >> self.lsb
    }

    /// `register` with this field at `value`.
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
pub struct Register {
    pub(super) name: &'static str,
    pub(super) address: u32,
    pub(super) count: u16,
    pub(super) step: u16,
    access: Access,
    volatile: bool,
    precious: bool,
    /// The number of an array's first element, where its name ends in numbers.
    pub(super) first: Option<u8>,
    pub(super) reset: Option<u32>,
    pub(super) fields: &'static [Field],
}

impl Register {
    /// Read and written, kept by a cache, without fields, its value after a reset not known.
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

    /// `count` of them, `step` addresses apart.
    ///
    /// # Panics
    /// If there is none, or they lie on each other.
    #[must_use]
    pub const fn array(self, count: u16, step: u16) -> Self {
        assert!(count >= 1 && (step >= 1 || count == 1), "an array has elements, side by side");
        Self { count, step, ..self }
    }

    /// An array's elements are called `NAME1`, `NAME2` and so on, the first by this number, instead
    /// of `NAME[0]`, `NAME[1]`.
    #[must_use]
    pub const fn numbered_from(self, first: u8) -> Self {
        Self { first: Some(first), ..self }
    }

    /// This is its value after a reset, and each element's of an array.
    #[must_use]
    pub const fn reset(self, value: u32) -> Self {
        Self { reset: Some(value), ..self }
    }

    /// Never written.
    #[must_use]
    pub const fn read_only(self) -> Self {
        Self { access: Access::ReadOnly, ..self }
    }

    /// Never read.
    #[must_use]
    pub const fn write_only(self) -> Self {
        Self { access: Access::WriteOnly, ..self }
    }

    /// Changed by the chip: a cache does not keep it.
    #[must_use]
    pub const fn volatile(self) -> Self {
        Self { volatile: true, ..self }
    }

    /// Changed by being read: a dump leaves it alone. Volatile too.
    #[must_use]
    pub const fn precious(self) -> Self {
        Self { precious: true, volatile: true, ..self }
    }

    /// With these fields.
    #[must_use]
    pub const fn fields(self, fields: &'static [Field]) -> Self {
        Self { fields, ..self }
    }

    /// The data sheet's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The address, of an array's first.
    #[must_use]
    pub const fn address(&self) -> u32 {
        self.address
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// What may be done with it.
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

    /// Its value after a reset, where it is known.
    #[must_use]
    pub const fn reset_value(&self) -> Option<u32> {
        self.reset
    }

    /// Its fields, from the lowest.
    #[must_use]
    pub const fn all_fields(&self) -> &'static [Field] {
        self.fields
    }

    /// The field of that name, upper or lower case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))
    }

    /// Element `index`.
    ///
    /// # Panics
    /// If there are not so many.
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

/// One register: an element of an array, or one that is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Location<'m> {
    register: &'m Register,
    index: u16,
}

impl<'m> Location<'m> {
    /// What it is an element of.
    #[must_use]
    pub const fn register(&self) -> &'m Register {
        self.register
    }

    /// Which element.
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
