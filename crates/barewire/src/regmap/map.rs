//! Registers and fields by name, as constants that are checked while they are built.

use core::fmt;

use super::format::Format;

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
    name: &'static str,
    lsb: u8,
    width: u8,
}

impl Field {
    /// `width` bits from bit `lsb` up, by the data sheet's name.
    ///
    /// # Panics
    /// If it does not fit 32 bits, or has none.
    #[must_use]
    pub const fn new(name: &'static str, lsb: u8, width: u8) -> Self {
        assert!(width >= 1 && lsb as u32 + width as u32 <= 32, "a field lies within 32 bits");
        Self { name, lsb, width }
    }

    /// One bit.
    #[must_use]
    pub const fn bit(name: &'static str, lsb: u8) -> Self {
        Self::new(name, lsb, 1)
    }

    /// The data sheet's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
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
    name: &'static str,
    address: u32,
    count: u16,
    step: u16,
    access: Access,
    volatile: bool,
    precious: bool,
    fields: &'static [Field],
}

impl Register {
    /// Read and written, kept by a cache, without fields.
    #[must_use]
    pub const fn new(name: &'static str, address: u32) -> Self {
        let (access, fields) = (Access::ReadWrite, &[]);
        Self { name, address, count: 1, step: 0, access, volatile: false, precious: false, fields }
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

    const fn end(&self) -> u32 {
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
        match self.register.count {
            1 => f.write_str(self.register.name),
            _ => write!(f, "{}[{}]", self.register.name, self.index),
        }
    }
}

impl fmt::Debug for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} at {:#x}", self.address())
    }
}

/// A part's registers and the format they are reached in.
///
/// Make it a `static`: what is wrong with it is then an error of the build.
///
/// ```compile_fail
/// use barewire::regmap::{Field, Format, Map, Register};
/// // Two fields on one bit:
/// static STATUS: Register = Register::new("STATUS", 0).fields(&[Field::new("BP", 2, 3), Field::bit("TB", 4)]);
/// static MAP: Map = Map::new("part", Format::new(8, 8), &[STATUS]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    name: &'static str,
    format: Format,
    registers: &'static [Register],
}

impl Map {
    /// Checks it: addresses fit the format and are multiples of its stride, names differ, no two
    /// registers (elements of arrays included) share an address, fields fit the value, differ in
    /// name, ascend and do not overlap.
    ///
    /// # Panics
    /// If not so.
    #[must_use]
    pub const fn new(name: &'static str, format: Format, registers: &'static [Register]) -> Self {
        format.check();
        let mut at = 0;
        while at < registers.len() {
            let register = &registers[at];
            let stride = format.reg_stride as u32;
            assert!(register.end() <= format.address_max(), "an address is wider than reg_bits");
            assert!(register.address.is_multiple_of(stride), "an address between two registers");
            assert!(
                (register.step as u32).is_multiple_of(stride),
                "an array's step is no multiple of reg_stride"
            );
            check_fields(register.fields, format.val_bits);
            let mut other = 0;
            while other < at {
                assert!(!equal(registers[other].name, register.name), "two registers of one name");
                assert!(!overlap(&registers[other], register), "two registers at one address");
                other += 1;
            }
            at += 1;
        }
        Self { name, format, registers }
    }

    /// The part's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The format.
    #[must_use]
    pub const fn format(&self) -> &Format {
        &self.format
    }

    /// The registers.
    #[must_use]
    pub const fn registers(&self) -> &'static [Register] {
        self.registers
    }

    /// All of them one by one, arrays taken apart.
    pub fn locations(&self) -> impl Iterator<Item = Location<'static>> + use<> {
        self.registers.iter().flat_map(|register| (0..register.count).map(|i| register.nth(i)))
    }

    /// How many [`Map::locations`] there are: the slots a cache needs.
    #[must_use]
    pub const fn len(&self) -> usize {
        let (mut at, mut len) = (0, 0);
        while at < self.registers.len() {
            len += self.registers[at].count as usize;
            at += 1;
        }
        len
    }

    /// Whether it has no registers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.registers.is_empty()
    }

    /// The register of that name, upper or lower case; an array's element as `NAME[3]`, its
    /// first as `NAME`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Location<'static>> {
        let (name, index) = match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            Some((name, index)) => (name, index.parse().ok()?),
            None => (name, 0),
        };
        let named = |register: &&Register| register.name.eq_ignore_ascii_case(name);
        let register = self.registers.iter().find(named)?;
        (index < register.count).then(|| register.nth(index))
    }

    /// The register at an address.
    #[must_use]
    pub fn at(&self, address: u32) -> Option<Location<'static>> {
        self.registers.iter().find_map(|register| {
            let offset = address.checked_sub(register.address)?;
            let index = offset.checked_div(u32::from(register.step)).unwrap_or(offset);
            let index = u16::try_from(index).ok().filter(|&index| index < register.count)?;
            Some(register.nth(index)).filter(|location| location.address() == address)
        })
    }
}

const fn check_fields(fields: &[Field], val_bits: u8) {
    let mut at = 0;
    let mut free_from = 0;
    while at < fields.len() {
        let field = &fields[at];
        assert!(field.lsb >= free_from, "fields overlap, or do not ascend");
        free_from = field.lsb + field.width;
        assert!(free_from <= val_bits, "a field is wider than the register");
        let mut other = 0;
        while other < at {
            assert!(!equal(fields[other].name, field.name), "two fields of one name");
            other += 1;
        }
        at += 1;
    }
}

const fn equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if !a[at].eq_ignore_ascii_case(&b[at]) {
            return false;
        }
        at += 1;
    }
    true
}

const fn overlap(a: &Register, b: &Register) -> bool {
    if a.end() < b.address || b.end() < a.address {
        return false;
    }
    let mut i = 0;
    while i < a.count {
        let mut j = 0;
        while j < b.count {
            if a.address + i as u32 * a.step as u32 == b.address + j as u32 * b.step as u32 {
                return true;
            }
            j += 1;
        }
        i += 1;
    }
    false
}
