//! Frames, and their encoding as objects in the chip's memory.
//!
//! An object consists of words, least significant byte first. T0/R0/TE0 has the identifier and
//! T1/R1/TE1 the rest of the header. A time stamp follows if the chip wrote one, then the data
//! (DS20006027, tables "Transmit message object", "Receive message object", "Transmit event FIFO
//! object").

use embedded_can::{ExtendedId, Id, StandardId};

use crate::regmap::Field;

const SID: Field = Field::new("SID", 0, 11);
const EID: Field = Field::new("EID", 11, 18);
const DLC: Field = Field::new("DLC", 0, 4);
const IDE: Field = Field::bit("IDE", 4);
const RTR: Field = Field::bit("RTR", 5);
const BRS: Field = Field::bit("BRS", 6);
const FDF: Field = Field::bit("FDF", 7);
const ESI: Field = Field::bit("ESI", 8);
/// Seven bits in MCP2517FD; MCP2518FD has 23, of which these are the lower ones.
const SEQ: Field = Field::new("SEQ", 9, 7);
const FILHIT: Field = Field::new("FILHIT", 11, 5);

/// Bytes of an object's header.
pub(super) const HEADER_BYTES: usize = 8;
/// Bytes of a time stamp.
pub(super) const STAMP_BYTES: usize = 4;
/// The number of sequence numbers.
pub(super) const SEQUENCES: u8 = 128;

/// The number of data bytes for a DLC.
pub(super) const fn dlc_to_len(dlc: u8, fd: bool) -> u8 {
    match (dlc, fd) {
        (0..=8, _) => dlc,
        (_, false) => 8,
        (9, _) => 12,
        (10, _) => 16,
        (11, _) => 20,
        (12, _) => 24,
        (13, _) => 32,
        (14, _) => 48,
        _ => 64,
    }
}

/// A frame: classic, or of CAN FD.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    id: Id,
    dlc: u8,
    rtr: bool,
    fd: bool,
    brs: bool,
    esi: bool,
    data: [u8; 64],
}

impl core::fmt::Debug for Frame {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { id, dlc, rtr, fd, brs, esi, .. } = self;
        write!(f, "Frame {{ {id:?}, dlc: {dlc}, rtr: {rtr}, fd: {fd}, brs: {brs}, esi: {esi}, ")?;
        write!(f, "data: {:02x?} }}", self.data())
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Frame {
    fn format(&self, f: defmt::Formatter<'_>) {
        let (id, extended) = match self.id {
            Id::Standard(id) => (u32::from(id.as_raw()), false),
            Id::Extended(id) => (id.as_raw(), true),
        };
        let Self { dlc, rtr, fd, brs, esi, .. } = self;
        defmt::write!(
            f,
            "Frame {{ id: {=u32:#x}, extended: {=bool}, dlc: {=u8}, ",
            id,
            extended,
            dlc
        );
        defmt::write!(
            f,
            "rtr: {=bool}, fd: {=bool}, brs: {=bool}, esi: {=bool}, ",
            rtr,
            fd,
            brs,
            esi
        );
        defmt::write!(f, "data: {=[u8]:#04x} }}", self.data());
    }
}

impl Frame {
    /// An empty frame, to receive into.
    pub const EMPTY: Self = Self {
        id: Id::Standard(StandardId::ZERO),
        dlc: 0,
        rtr: false,
        fd: false,
        brs: false,
        esi: false,
        data: [0; 64],
    };

    /// A classic frame of up to 8 bytes; `None` if there are more.
    #[must_use]
    pub fn classic(id: impl Into<Id>, data: &[u8]) -> Option<Self> {
        if data.len() > 8 {
            return None;
        }
        Some(Self { id: id.into(), dlc: data.len() as u8, ..Self::EMPTY }.filled(data))
    }

    /// A remote frame that asks for `dlc` bytes, up to 8.
    #[must_use]
    pub fn remote(id: impl Into<Id>, dlc: u8) -> Option<Self> {
        (dlc <= 8).then(|| Self { id: id.into(), dlc, rtr: true, ..Self::EMPTY })
    }

    /// A frame of CAN FD, whose data uses the higher bit rate if `brs`. It has 0 to 8, 12, 16, 20,
    /// 24, 32, 48 or 64 bytes; `None` for another number.
    #[must_use]
    pub fn fd(id: impl Into<Id>, data: &[u8], brs: bool) -> Option<Self> {
        let dlc = (0..16).find(|&dlc| usize::from(dlc_to_len(dlc, true)) == data.len())?;
        Some(Self { id: id.into(), dlc, fd: true, brs, ..Self::EMPTY }.filled(data))
    }

    fn filled(mut self, data: &[u8]) -> Self {
        self.data[..data.len()].copy_from_slice(data);
        self
    }

    /// The frame with another identifier.
    #[must_use]
    pub fn with_id(self, id: impl Into<Id>) -> Self {
        Self { id: id.into(), ..self }
    }

    /// The identifier.
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// The data length code, as it is on the wire.
    #[must_use]
    pub fn dlc(&self) -> u8 {
        self.dlc
    }

    /// Whether it is a remote frame.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.rtr
    }

    /// Whether it is a frame of CAN FD.
    #[must_use]
    pub fn is_fd(&self) -> bool {
        self.fd
    }

    /// Whether its data uses the higher bit rate.
    #[must_use]
    pub fn has_bit_rate_switch(&self) -> bool {
        self.brs
    }

    /// Whether its sender was error passive.
    #[must_use]
    pub fn is_error_passive(&self) -> bool {
        self.esi
    }

    /// The data; empty for a remote frame.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data[..self.len()]
    }

    pub(super) fn len(&self) -> usize {
        if self.rtr { 0 } else { dlc_to_len(self.dlc, self.fd).into() }
    }

    pub(super) fn data_mut(&mut self) -> &mut [u8] {
        let len = self.len();
        &mut self.data[..len]
    }

    /// Encodes the frame as an object to transmit. Returns its size in bytes: whole words.
    pub(super) fn encode(&self, sequence: u8, object: &mut [u8]) -> usize {
        let header = DLC.put(SEQ.put(0, sequence.into()), self.dlc.into());
        let header = RTR.put(header, self.rtr.into());
        let header = FDF.put(BRS.put(header, self.brs.into()), self.fd.into());
        let header = IDE.put(header, matches!(self.id, Id::Extended(_)).into());
        object[..4].copy_from_slice(&id_word(self.id).to_le_bytes());
        object[4..8].copy_from_slice(&header.to_le_bytes());
        let data = self.data();
        let end = HEADER_BYTES + data.len().next_multiple_of(4);
        object[HEADER_BYTES..end].fill(0);
        object[HEADER_BYTES..HEADER_BYTES + data.len()].copy_from_slice(data);
        end
    }

    /// Decodes a received object's header. Returns the filter that the frame passed.
    pub(super) fn decode_header(&mut self, header: &[u8]) -> u8 {
        let (id, flags) = (word(header, 0), word(header, 4));
        self.id = id_of(id, IDE.get(flags) != 0);
        self.dlc = DLC.get(flags) as u8;
        self.fd = FDF.get(flags) != 0;
        // In FD frames the bit is reserved.
        self.rtr = RTR.get(flags) != 0 && !self.fd;
        self.brs = BRS.get(flags) != 0;
        self.esi = ESI.get(flags) != 0;
        FILHIT.get(flags) as u8
    }
}

/// The sequence number in an event's header.
pub(super) fn sequence_of(header: &[u8]) -> u8 {
    SEQ.get(word(header, 4)) as u8
}

/// The little-endian word at `at`.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// An identifier in the layout of objects and filters: the upper 11 bits below the lower 18.
pub(super) fn id_word(id: Id) -> u32 {
    match id {
        Id::Standard(id) => SID.put(0, id.as_raw().into()),
        Id::Extended(id) => {
            EID.put(SID.put(0, id.as_raw() >> EID.width()), id.as_raw() & (EID.mask() >> EID.lsb()))
        }
    }
}

fn id_of(word: u32, extended: bool) -> Id {
    let sid = SID.get(word);
    // Neither has more bits than its identifier.
    match extended {
        true => ExtendedId::new(sid << EID.width() | EID.get(word)).map(Id::Extended),
        false => StandardId::new(sid as u16).map(Id::Standard),
    }
    .expect("fields of 11 and 29 bits")
}

/// A received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Received {
    /// The frame.
    pub frame: Frame,
    /// The time of its start, in ticks of the configured time stamps.
    pub timestamp: u64,
    /// The filter it passed.
    pub filter: u8,
}

impl Received {
    /// An empty value, for [`Mcp251xfd::service`](super::Mcp251xfd::service) to fill.
    pub const EMPTY: Self = Self { frame: Frame::EMPTY, timestamp: 0, filter: 0 };
}

impl Default for Received {
    fn default() -> Self {
        Self::EMPTY
    }
}
