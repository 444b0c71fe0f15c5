//! A part's register map, checked at build time.

use super::format::Format;
use super::register::{Field, Location, Register};

/// A part's registers and their format.
///
/// Make it a `static`, so that a mistake in it is a build error.
///
/// ```compile_fail
/// use barewire::regmap::{Field, Format, Map, Register};
/// // Two fields share a bit:
/// static STATUS: Register = Register::new("STATUS", 0).fields(&[Field::new("BP", 2, 3), Field::bit("TB", 4)]);
/// static MAP: Map = Map::new("part", Format::new(8, 8), &[STATUS]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Map {
    name: &'static str,
    format: Format,
    registers: &'static [Register],
}

impl Map {
    /// Creates the map and checks it:
    ///
    /// - addresses fit the format and are multiples of its stride;
    /// - names differ, and no two registers (including elements of arrays) share an address;
    /// - reset values fit;
    /// - fields fit the value, differ in name, ascend and do not overlap.
    ///
    /// # Panics
    /// If a check fails.
    #[must_use]
    pub const fn new(name: &'static str, format: Format, registers: &'static [Register]) -> Self {
        format.check();
        let mut at = 0;
        while at < registers.len() {
            let register = &registers[at];
            let stride = format.reg_stride as u32;
            assert!(register.end() <= format.address_max(), "an address is wider than reg_bits");
            assert!(register.address % stride == 0, "an address between two registers");
            assert!(
                (register.step as u32) % stride == 0,
                "an array's step is no multiple of reg_stride"
            );
            if let Some(reset) = register.reset {
                assert!(reset <= format.value_max(), "a value after reset is wider than val_bits");
            }
            check_fields(register.fields, format.val_bits);
            let mut other = 0;
            while other < at {
                assert!(!alike(&registers[other], register), "two registers of one name");
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

    /// All registers one by one, including the elements of arrays.
    pub fn locations(&self) -> impl Iterator<Item = Location<'static>> + use<> {
        self.registers.iter().flat_map(|register| (0..register.count).map(|i| register.nth(i)))
    }

    /// The number of [`Map::locations`], which is the number of slots a cache needs.
    #[must_use]
    pub const fn len(&self) -> usize {
        let (mut at, mut len) = (0, 0);
        while at < self.registers.len() {
            len += self.registers[at].count as usize;
            at += 1;
        }
        len
    }

    /// Whether the map has no registers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.registers.is_empty()
    }

    /// Finds a register by name, ignoring case. An element of an array is `NAME[3]`, or `NAME3` if
    /// the array is [numbered](Register::numbered_from); `NAME` is the first element.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Location<'static>> {
        self.registers.iter().find_map(|register| {
            let (front, rest) = name.split_at_checked(register.name.len())?;
            if !front.eq_ignore_ascii_case(register.name) {
                return None;
            }
            let index: u16 = match (rest, register.first) {
                ("", _) => 0,
                (_, _) if register.count == 1 => return None,
                (number, Some(first)) => decimal(number)?.checked_sub(first.into())?,
                (index, None) => decimal(index.strip_prefix('[')?.strip_suffix(']')?)?,
            };
            (index < register.count).then(|| register.nth(index))
        })
    }

    /// Finds the register at an address.
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

/// Parses a number without a sign or leading zeros.
fn decimal(text: &str) -> Option<u16> {
    let plain = text == "0" || text.starts_with(|first: char| matches!(first, '1'..='9'));
    plain.then(|| text.parse().ok()).flatten()
}

/// Whether one name could mean either register: a numbered array claims all names that are its own
/// plus digits.
const fn alike(a: &Register, b: &Register) -> bool {
    begins_element(a, b.name) || begins_element(b, a.name) || equal(a.name, b.name)
}

const fn begins_element(array: &Register, name: &str) -> bool {
    let (array_name, bytes) = (array.name.as_bytes(), name.as_bytes());
    if array.first.is_none() || bytes.len() <= array_name.len() {
        return false;
    }
    let mut at = array_name.len();
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            return false;
        }
        at += 1;
    }
    same_front(array_name, bytes)
}

const fn equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && same_front(a.as_bytes(), b.as_bytes())
}

/// Whether `b`, which is not shorter, begins with `a`.
const fn same_front(a: &[u8], b: &[u8]) -> bool {
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
