//! The width of addresses, the ways into 4-byte mode, and those out of it.
//!
//! Read first: JESD216B, BFPT word 16 (*enter* and *exit 4-byte addressing*) and the 4-byte address
//! instruction table.

/// The reach of a 3-byte address, in bytes.
pub(super) const THREE_BYTE_REACH: u64 = 16 << 20;

/// The width of addresses, and the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Addressing {
    /// Three bytes.
    ThreeByte,
    /// Three bytes, and the upper ones in the extended address register.
    ExtendedAddress,
    /// Four bytes, with separate opcodes, so there is no mode to leave.
    FourByteOpcodes,
    /// Four bytes in 4-byte mode. The way out is [`Geometry::exit`](super::Geometry::exit).
    FourByteMode {
        /// The way in.
        enter: Enter,
    },
    /// Four bytes always: the chip has no other mode, or does not leave it.
    FourByteOnly,
}

impl Addressing {
    /// The number of bytes in an address.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Addressing::ThreeByte | Addressing::ExtendedAddress => 3,
            _ => 4,
        }
    }
}

/// A way into 4-byte mode (JESD216B, BFPT word 16, bits 31 to 24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Enter {
    /// B7h.
    En4b,
    /// 06h, then B7h.
    WrenEn4b,
    /// 17h with 80h: the bank register.
    Bank,
}

/// A way out of 4-byte mode (JESD216B, BFPT word 16, bits 23 to 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Exit {
    /// E9h.
    Ex4b,
    /// 06h, then E9h.
    WrenEx4b,
    /// 17h with 00h: the bank register.
    Bank,
    /// B8h (Infineon S25HS-T, S28HS-T and S25FS256T datasheets, EX4BA).
    Ex4bInfineon,
    /// 66h, then 99h: a reset of everything volatile.
    Reset,
    /// F0h: the same.
    ResetF0,
}

impl Enter {
    /// The way into 4-byte mode that command lines call `b7`, `06+b7` or `17`; and its way out.
    #[must_use]
    pub fn named(name: &str) -> Option<(Self, Exit)> {
        match name {
            "b7" => Some((Enter::En4b, Exit::Ex4b)),
            "06+b7" => Some((Enter::WrenEn4b, Exit::WrenEx4b)),
            "17" => Some((Enter::Bank, Exit::Bank)),
            _ => None,
        }
    }

    /// The opcodes, as datasheets write them.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Enter::En4b => "B7h",
            Enter::WrenEn4b => "06h B7h",
            Enter::Bank => "17h 80h",
        }
    }
}

impl Exit {
    /// The opcodes, as datasheets write them.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Exit::Ex4b => "E9h",
            Exit::WrenEx4b => "06h E9h",
            Exit::Bank => "17h 00h",
            Exit::Ex4bInfineon => "B8h",
            Exit::Reset => "66h 99h",
            Exit::ResetF0 => "F0h",
        }
    }

    /// Whether this changes nothing else, so that it may be sent to a chip that is perhaps in 3-byte mode.
    pub(super) const fn is_harmless(self) -> bool {
        !matches!(self, Exit::Reset | Exit::ResetF0)
    }
}

/// The ways of addressing beyond 16 MiB that a part names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ways {
    pub(super) enter: Option<Enter>,
    pub(super) exit: Option<Exit>,
    /// An extended address register, to select 16 MiB by.
    pub(super) extended_address: bool,
    /// There is no 3-byte mode.
    pub(super) always_four: bool,
}
