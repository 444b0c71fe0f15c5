//! A frame as software sees it: identifier, kind, data.

use std::fmt;

/// The longest data field.
pub(super) const DATA_MAX: usize = 64;

/// The largest identifier of 11 bits.
pub(super) const STANDARD_MAX: u32 = 0x7ff;

/// The largest identifier of 29 bits.
const EXTENDED_MAX: u32 = 0x1fff_ffff;

/// The number of bytes for each DLC of CAN FD.
pub(super) const FD_LENGTHS: [usize; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64];

/// A data or remote frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CanFrame {
    /// The identifier, of 11 or 29 bits.
    pub id: u32,
    /// The identifier has 29 bits.
    pub extended: bool,
    /// A remote frame, which has no data; only without `fd`.
    pub remote: bool,
    /// A frame of CAN FD.
    pub fd: bool,
    /// The data phase is at the data bit rate; only with `fd`.
    pub brs: bool,
    /// The sender is error passive; only with `fd`.
    pub esi: bool,
    dlc: u8,
    data: [u8; DATA_MAX],
}

impl CanFrame {
    /// A classic data frame; its identifier has 29 bits if it is above 0x7ff.
    ///
    /// # Panics
    /// If the identifier has more than 29 bits, or there are more than 8 bytes.
    #[must_use]
    pub fn new(id: u32, data: &[u8]) -> Self {
        assert!(data.len() <= 8, "a classic frame has at most 8 bytes, not {}", data.len());
        assert!(id <= EXTENDED_MAX, "an identifier has at most 29 bits: {id:#x}");
        let mut bytes = [0; DATA_MAX];
        bytes[..data.len()].copy_from_slice(data);
        Self {
            id,
            extended: id > STANDARD_MAX,
            remote: false,
            fd: false,
            brs: false,
            esi: false,
            dlc: data.len() as u8,
            data: bytes,
        }
    }

    /// The frame with an identifier of 29 bits, whatever its value.
    #[must_use]
    pub fn extended(self) -> Self {
        Self { extended: true, ..self }
    }

    /// A remote frame that asks for `dlc` bytes.
    ///
    /// # Panics
    /// If the identifier has more than 29 bits, or `dlc` is above 8.
    #[must_use]
    pub fn remote(id: u32, dlc: u8) -> Self {
        assert!(dlc <= 8, "a remote frame asks for at most 8 bytes, not {dlc}");
        Self { remote: true, dlc, ..Self::new(id, &[]) }
    }

    /// A frame of CAN FD, with or without bit rate switch. Data is padded with zeros to the next
    /// length that a DLC can express.
    ///
    /// # Panics
    /// If the identifier has more than 29 bits, or there are more than 64 bytes.
    #[must_use]
    pub fn fd(id: u32, data: &[u8], brs: bool) -> Self {
        assert!(data.len() <= DATA_MAX, "a frame has at most 64 bytes, not {}", data.len());
        let dlc = FD_LENGTHS.iter().position(|&length| length >= data.len()).unwrap_or(15) as u8;
        let mut frame = Self { fd: true, brs, dlc, ..Self::new(id, &[]) };
        frame.data[..data.len()].copy_from_slice(data);
        frame
    }

    /// The frame with this DLC, which may be above 8 even in a classic frame, and with as many of
    /// `bytes` as the DLC means.
    pub(crate) fn with_dlc(self, dlc: u8, bytes: &[u8]) -> Self {
        let mut frame = Self { dlc: dlc & 0xf, data: [0; DATA_MAX], ..self };
        let length = frame.length().min(bytes.len());
        frame.data[..length].copy_from_slice(&bytes[..length]);
        frame
    }

    /// The data length code.
    #[must_use]
    pub fn dlc(&self) -> u8 {
        self.dlc
    }

    fn length(&self) -> usize {
        match (self.remote, self.fd) {
            (true, _) => 0,
            (false, true) => FD_LENGTHS[usize::from(self.dlc)],
            (false, false) => usize::from(self.dlc).min(8),
        }
    }

    /// The data.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data[..self.length()]
    }

    /// The arbitration field; the smaller one wins. Its bits are those on the wire from the first
    /// identifier bit to where frames of one identifier stop competing. A recessive bit is a 1.
    #[must_use]
    pub fn arbitration(&self) -> u32 {
        let rtr = u32::from(self.remote);
        if self.extended {
            // SRR and IDE are recessive.
            (self.id >> 18) << 21 | 0b11 << 19 | (self.id & 0x3_ffff) << 1 | rtr
        } else {
            self.id << 21 | rtr << 20
        }
    }
}

impl fmt::Debug for CanFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.extended {
            true => write!(f, "{:08X}", self.id)?,
            false => write!(f, "{:03X}", self.id)?,
        }
        match (self.remote, self.fd) {
            (true, _) => write!(f, "#R{}", self.dlc)?,
            (false, true) => write!(f, "##{}", u8::from(self.brs) | u8::from(self.esi) << 1)?,
            (false, false) => f.write_str("#")?,
        }
        self.data().iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}
