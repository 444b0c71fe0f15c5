//! The encoding of an address and a value in an exchange.

/// The order of a field's bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Endian {
    /// Most significant byte first.
    #[default]
    Big,
    /// Least significant byte first.
    Little,
}

/// The exchange of one register: address, padding, value, most significant bit first.
///
/// The names are Linux's `regmap_config`'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Format {
    /// The bits before the padding, 1 to 32: the address and any flags.
    pub reg_bits: u8,
    /// The bits between address and value, which are ignored, 0 to 32.
    pub pad_bits: u8,
    /// The width of a value, 1 to 32 bits.
    pub val_bits: u8,
    /// Bits set in the first `reg_bits` of a read.
    pub read_flag_mask: u32,
    /// Bits set in the first `reg_bits` of a write.
    pub write_flag_mask: u32,
    /// How far an address is shifted left within `reg_bits`, for parts whose flags are on its
    /// right.
    pub reg_shift: u8,
    /// The address difference between two registers.
    pub reg_stride: u8,
    /// The byte order of a value.
    pub val_format_endian: Endian,
    /// Whether the part increments the address while CS is active, so that adjacent registers can
    /// be accessed in one exchange.
    pub increments: bool,
}

impl Format {
    /// A format with `reg_bits` and `val_bits`, no padding, no flags, most significant byte first,
    /// addresses one apart, no increment.
    #[must_use]
    pub const fn new(reg_bits: u8, val_bits: u8) -> Self {
        Self {
            reg_bits,
            pad_bits: 0,
            val_bits,
            read_flag_mask: 0,
            write_flag_mask: 0,
            reg_shift: 0,
            reg_stride: 1,
            val_format_endian: Endian::Big,
            increments: false,
        }
    }

    /// The number of bytes in one register's exchange.
    #[must_use]
    pub const fn frame_bytes(&self) -> usize {
        (self.reg_bits as usize + self.pad_bits as usize + self.val_bits as usize) / 8
    }

    /// The number of bytes before the values of a bulk exchange.
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        (self.reg_bits as usize + self.pad_bits as usize) / 8
    }

    /// The number of bytes of a value in a bulk exchange.
    #[must_use]
    pub const fn value_bytes(&self) -> usize {
        self.val_bits as usize / 8
    }

    /// The largest value.
    #[must_use]
    pub const fn value_max(&self) -> u32 {
        u32::MAX >> (32 - self.val_bits)
    }

    /// Whether header and values are whole bytes, and the part increments addresses.
    #[must_use]
    pub const fn has_bulk(&self) -> bool {
        let header_bits = self.reg_bits as u32 + self.pad_bits as u32;
        self.increments && header_bits % 8 == 0 && self.val_bits % 8 == 0
    }

    /// # Panics
    /// If the format is not possible; at build time, if the map is a constant.
    pub(super) const fn check(&self) {
        assert!(self.reg_bits >= 1 && self.reg_bits <= 32, "reg_bits: 1 to 32");
        assert!(self.val_bits >= 1 && self.val_bits <= 32, "val_bits: 1 to 32");
        let bits = self.reg_bits as u32 + self.pad_bits as u32 + self.val_bits as u32;
        assert!(bits <= 64, "an exchange is at most 64 bits");
        assert!(bits % 8 == 0, "an exchange is whole bytes: adjust pad_bits");
        let header = u32::MAX >> (32 - self.reg_bits);
        assert!(self.read_flag_mask & !header == 0, "read_flag_mask is wider than reg_bits");
        assert!(self.write_flag_mask & !header == 0, "write_flag_mask is wider than reg_bits");
        assert!(self.reg_shift < self.reg_bits, "no bit of an address is left");
        assert!(self.reg_stride >= 1, "registers at the same address");
        let whole = self.val_bits % 8 == 0;
        assert!(
            whole || matches!(self.val_format_endian, Endian::Big),
            "a value that is no whole bytes has no byte order"
        );
    }

    /// The largest address that fits the header.
    pub(super) const fn address_max(&self) -> u32 {
        (u32::MAX >> (32 - self.reg_bits)) >> self.reg_shift
    }

    const fn value_shift(&self) -> u32 {
        self.pad_bits as u32 + self.val_bits as u32
    }

    /// Precomputes what every exchange in this format needs.
    pub(super) const fn codec(&self) -> Codec {
        let value_shift = self.value_shift();
        Codec {
            read_head: (self.read_flag_mask as u64) << value_shift,
            write_head: (self.write_flag_mask as u64) << value_shift,
            value_max: self.value_max(),
            address_shift: (value_shift + self.reg_shift as u32) as u8,
            little_shift: match self.val_format_endian {
                Endian::Little => 32 - self.val_bits,
                Endian::Big => BIG,
            },
        }
    }

    /// The bytes of a value in a bulk exchange, at the start of the array.
    pub(super) fn value_to_bytes(&self, value: u32) -> [u8; 4] {
        match self.val_format_endian {
            Endian::Big => (value << (32 - self.val_bits)).to_be_bytes(),
            Endian::Little => value.to_le_bytes(),
        }
    }

    /// The value in the first bytes of `bytes`.
    pub(super) fn value_from_bytes(&self, bytes: [u8; 4]) -> u32 {
        match self.val_format_endian {
            Endian::Big => u32::from_be_bytes(bytes) >> (32 - self.val_bits),
            Endian::Little => u32::from_le_bytes(bytes) & self.value_max(),
        }
    }
}

/// No shift: the value's most significant byte comes first.
const BIG: u8 = u8::MAX;

/// A [`Format`] as shifts and masks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codec {
    read_head: u64,
    write_head: u64,
    pub(super) value_max: u32,
    address_shift: u8,
    /// The shift for a value of little-endian bytes that was read from the last four bytes; [`BIG`]
    /// if the most significant byte is first. One byte, so that the hot path loads it at once.
    little_shift: u8,
}

impl Codec {
    #[inline(always)]
    fn swapped(&self, value: u32) -> u32 {
        match self.little_shift {
            BIG => value,
            shift => value.swap_bytes() >> shift,
        }
    }

    /// The exchange that reads `address`, right-aligned.
    #[inline(always)]
    pub(super) fn read_frame(&self, address: u32) -> u64 {
        u64::from(address) << self.address_shift | self.read_head
    }

    /// The exchange that writes `value` to `address`.
    #[inline(always)]
    pub(super) fn write_frame(&self, address: u32, value: u32) -> u64 {
        let value = u64::from(self.swapped(value));
        u64::from(address) << self.address_shift | self.write_head | value
    }

    /// The value at the end of the received bytes, in at most the last four.
    #[inline(always)]
    pub(super) fn value<const N: usize>(&self, wire: &[u8; N]) -> u32 {
        let mut last = [0; 4];
        if N < 4 {
            last[4 - N..].copy_from_slice(wire);
        } else {
            last.copy_from_slice(&wire[N - 4..]);
        }
        // Masked, because the bits received during the header are not part of it.
        match self.little_shift {
            BIG => u32::from_be_bytes(last) & self.value_max,
            shift => u32::from_le_bytes(last) >> shift,
        }
    }
}

/// The last `N` bytes of a frame, in wire order.
#[inline(always)]
pub(super) fn to_wire<const N: usize>(frame: u64) -> [u8; N] {
    let bytes = frame.to_be_bytes();
    let mut wire = [0; N];
    wire.copy_from_slice(&bytes[8 - N..]);
    wire
}
