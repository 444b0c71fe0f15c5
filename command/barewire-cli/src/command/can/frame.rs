//! Converts frames between the wire, logs, sockets and the chip's driver, and makes error frames.
//!
//! *Read first*: `linux/can.h` and `linux/can/error.h`, whose classes and bytes [`ErrorFrame`] has: logs
//! and sockets carry errors as frames whose identifier has bit 29 set.

use barewire::chip::mcp251xfd::{
    ErrorCounters, ErrorState, ExtendedId, Found, Frame, Id, Invalid, StandardId,
};
use barewire_sim::model::can as sim;

/// The longest data field, and that of a classic frame.
pub(super) const DATA_MAX: usize = 64;
pub(super) const CLASSIC_MAX: usize = 8;

/// Bytes that the DLCs from 9 on stand for in CAN FD.
const FD_LENGTHS: [u8; 7] = [12, 16, 20, 24, 32, 48, 64];

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A classic data frame.
    Data,
    /// A remote frame: it asks for a data frame.
    Remote,
    /// A CAN FD frame.
    Fd {
        /// Its data is at the higher bit rate.
        brs: bool,
        /// Its sender is error passive.
        esi: bool,
    },
}

/// A frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct CanFrame {
    pub(super) id: Id,
    pub(super) kind: Kind,
    dlc: u8,
    data: [u8; DATA_MAX],
}

/// Bytes of a frame of that kind with that DLC.
fn length(kind: Kind, dlc: u8) -> usize {
    match kind {
        Kind::Remote => 0,
        Kind::Data => usize::from(dlc).min(CLASSIC_MAX),
        Kind::Fd { .. } => match usize::from(dlc).checked_sub(9) {
            None => dlc.into(),
            Some(beyond) => FD_LENGTHS.get(beyond).map_or(DATA_MAX, |&length| length.into()),
        },
    }
}

/// The lengths that a frame of CAN FD can have, for people.
pub(super) const FD_LENGTHS_TEXT: &str = "0 to 8, 12, 16, 20, 24, 32, 48 or 64";

impl CanFrame {
    /// A frame of that DLC; `None` if it stands for another number of bytes.
    pub(super) fn with_dlc(id: Id, kind: Kind, dlc: u8, data: &[u8]) -> Option<Self> {
        if dlc > 15 || length(kind, dlc) != data.len() {
            return None;
        }
        let mut bytes = [0; DATA_MAX];
        bytes[..data.len()].copy_from_slice(data);
        Some(Self { id, kind, dlc, data: bytes })
    }

    /// A frame with that data; `None` if there is none of that length.
    pub(super) fn new(id: Id, kind: Kind, data: &[u8]) -> Option<Self> {
        (0..=15).find_map(|dlc| Self::with_dlc(id, kind, dlc, data))
    }

    pub(super) fn dlc(&self) -> u8 {
        self.dlc
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.data[..length(self.kind, self.dlc)]
    }

    pub(super) fn is_fd(&self) -> bool {
        matches!(self.kind, Kind::Fd { .. })
    }

    pub(super) fn is_extended(&self) -> bool {
        matches!(self.id, Id::Extended(_))
    }

    pub(super) fn raw_id(&self) -> u32 {
        match self.id {
            Id::Standard(id) => id.as_raw().into(),
            Id::Extended(id) => id.as_raw(),
        }
    }

    /// Converts a frame that the driver received.
    pub(super) fn from_chip(frame: &Frame) -> Self {
        let kind = match (frame.is_fd(), frame.is_remote()) {
            (true, _) => {
                Kind::Fd { brs: frame.has_bit_rate_switch(), esi: frame.is_error_passive() }
            }
            (false, true) => Kind::Remote,
            (false, false) => Kind::Data,
        };
        let mut data = [0; DATA_MAX];
        data[..frame.data().len()].copy_from_slice(frame.data());
        Self { id: frame.id(), kind, dlc: frame.dlc(), data }
    }

    /// As the driver sends it, which says itself whether it is error passive; `None` where a classic
    /// DLC is above 8; no sender uses that.
    pub(super) fn to_chip(self) -> Option<Frame> {
        match self.kind {
            _ if !self.is_fd() && usize::from(self.dlc) > CLASSIC_MAX => None,
            Kind::Data => Frame::classic(self.id, self.data()),
            Kind::Remote => Frame::remote(self.id, self.dlc),
            Kind::Fd { brs, .. } => Frame::fd(self.id, self.data(), brs),
        }
    }

    /// Converts a frame of the simulated bus.
    pub(super) fn from_sim(frame: &sim::CanFrame) -> Self {
        let id = match frame.extended {
            true => ExtendedId::new(frame.id).map(Id::Extended),
            false => StandardId::new(frame.id as u16).map(Id::Standard),
        };
        let kind = match (frame.fd, frame.remote) {
            (true, _) => Kind::Fd { brs: frame.brs, esi: frame.esi },
            (false, true) => Kind::Remote,
            (false, false) => Kind::Data,
        };
        let mut data = [0; DATA_MAX];
        data[..frame.data().len()].copy_from_slice(frame.data());
        let id = id.expect("11 or 29 bits");
        Self { id, kind, dlc: frame.dlc(), data }
    }

    /// Converts the frame to one that a simulated node sends. A classic DLC above 8 becomes 8.
    pub(super) fn to_sim(self) -> sim::CanFrame {
        let id = self.raw_id();
        let mut frame = match self.kind {
            Kind::Data => sim::CanFrame::new(id, self.data()),
            Kind::Remote => sim::CanFrame::remote(id, self.dlc.min(CLASSIC_MAX as u8)),
            Kind::Fd { brs, .. } => sim::CanFrame::fd(id, self.data(), brs),
        };
        if let Kind::Fd { esi, .. } = self.kind {
            frame.esi = esi;
        }
        frame.extended = self.is_extended();
        frame
    }
}

/// An identifier of that many bits, standard or extended.
pub(super) fn id_of(raw: u32, extended: bool) -> Option<Id> {
    match extended {
        true => ExtendedId::new(raw).map(Id::Extended),
        false => StandardId::new(u16::try_from(raw).ok()?).map(Id::Standard),
    }
}

/// In an identifier: not a frame but an error.
pub(super) const ERROR_FLAG: u32 = 1 << 29;

mod class {
    pub(super) const CONTROLLER: u32 = 0x4;
    pub(super) const PROTOCOL: u32 = 0x8;
    pub(super) const ACK: u32 = 0x20;
    pub(super) const BUS_OFF: u32 = 0x40;
    pub(super) const BUS_ERROR: u32 = 0x80;
    pub(super) const COUNTERS: u32 = 0x200;
}

/// Bits of byte 1, which is the controller's.
mod controller {
    pub(super) const RX_OVERFLOW: u8 = 0x01;
    pub(super) const RX_WARNING: u8 = 0x04;
    pub(super) const TX_WARNING: u8 = 0x08;
    pub(super) const RX_PASSIVE: u8 = 0x10;
    pub(super) const TX_PASSIVE: u8 = 0x20;
    pub(super) const ACTIVE: u8 = 0x40;
}

/// Bits of byte 2, and values of byte 3: the error of a frame, and its place.
mod protocol {
    pub(super) const BIT: u8 = 0x01;
    pub(super) const FORM: u8 = 0x02;
    pub(super) const STUFF: u8 = 0x04;
    pub(super) const AT_CRC: u8 = 0x08;
    pub(super) const AT_ACK: u8 = 0x19;
}

/// An error, as Linux reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorFrame {
    /// The kinds of errors, without the flag.
    pub(super) class: u32,
    /// Details of the errors.
    pub(super) data: [u8; 8],
}

impl ErrorFrame {
    /// The errors that one service of the chip found. `counters` were read if the state changed.
    pub(super) fn of(found: &Found, counters: Option<ErrorCounters>) -> Option<Self> {
        let mut error = Self::default();
        if found.overflow {
            error.class |= class::CONTROLLER;
            error.data[1] |= controller::RX_OVERFLOW;
        }
        if found.system_error || found.mode.is_some() {
            error.class |= class::CONTROLLER;
        }
        if let Some(state) = found.state {
            error.state(state, counters);
        }
        if let Some(invalid) = found.invalid {
            error.invalid(invalid);
        }
        if let Some(counters) = counters {
            error.class |= class::COUNTERS;
            (error.data[6], error.data[7]) = (counters.transmit, counters.receive);
        }
        (error.class != 0).then_some(error)
    }

    fn state(&mut self, state: ErrorState, counters: Option<ErrorCounters>) {
        let sending = counters.is_none_or(|counters| counters.transmit >= counters.receive);
        self.class |= class::CONTROLLER;
        self.data[1] |= match (state, sending) {
            (ErrorState::Active, _) => controller::ACTIVE,
            (ErrorState::Warning, true) => controller::TX_WARNING,
            (ErrorState::Warning, false) => controller::RX_WARNING,
            (ErrorState::Passive, true) => controller::TX_PASSIVE,
            (ErrorState::Passive, false) => controller::RX_PASSIVE,
            (ErrorState::BusOff, _) => {
                self.class |= class::BUS_OFF;
                0
            }
        };
    }

    fn invalid(&mut self, invalid: Invalid) {
        let Invalid { bit, acknowledge, form, stuff, crc } = invalid;
        self.class |= class::PROTOCOL | class::BUS_ERROR;
        for (is, flag) in [(bit, protocol::BIT), (form, protocol::FORM), (stuff, protocol::STUFF)] {
            self.data[2] |= if is { flag } else { 0 };
        }
        if crc {
            self.data[3] = protocol::AT_CRC;
        }
        if acknowledge {
            self.class |= class::ACK;
            self.data[3] = protocol::AT_ACK;
        }
    }
}

/// A line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogLine {
    /// A frame.
    Frame(CanFrame),
    /// An error.
    Error(ErrorFrame),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(raw: u32, extended: bool) -> Id {
        id_of(raw, extended).expect("an identifier")
    }

    #[test]
    fn lengths_are_those_of_the_dlcs() {
        let fd = Kind::Fd { brs: true, esi: false };
        for (kind, len, dlc) in [
            (Kind::Data, 0, Some(0)),
            (Kind::Data, 8, Some(8)),
            (Kind::Data, 9, None),
            (fd, 8, Some(8)),
            (fd, 9, None),
            (fd, 12, Some(9)),
            (fd, 63, None),
            (fd, 64, Some(15)),
            (Kind::Remote, 0, Some(0)),
            (Kind::Remote, 1, None),
        ] {
            let frame = CanFrame::new(id(1, false), kind, &vec![7; len]);
            assert_eq!(frame.map(|frame| frame.dlc()), dlc, "{kind:?} {len}");
        }
        assert_eq!(id_of(0x800, false), None);
        assert_eq!(id_of(0x2000_0000, true), None);
    }

    #[test]
    fn the_way_through_chip_and_bus_changes_nothing() {
        let fd = |brs| Kind::Fd { brs, esi: false };
        for (kind, dlc, data) in [
            (Kind::Data, 3, &[1, 2, 3][..]),
            (Kind::Remote, 5, &[]),
            (fd(false), 2, &[9, 8]),
            (fd(true), 9, &[7; 12]),
        ] {
            for id in [id(0x123, false), id(0x123, true), id(0x1fff_ffff, true)] {
                let frame = CanFrame::with_dlc(id, kind, dlc, data).expect("a frame");
                assert_eq!(CanFrame::from_chip(&frame.to_chip().expect("sent")), frame);
                assert_eq!(CanFrame::from_sim(&frame.to_sim()), frame);
            }
        }
        let long = CanFrame::with_dlc(id(1, false), Kind::Data, 9, &[0; 8]).expect("a frame");
        assert_eq!(long.to_chip(), None);
    }

    #[test]
    fn what_was_found_has_its_class() {
        let counters = ErrorCounters { transmit: 130, receive: 2, state: ErrorState::Passive };
        let found = Found { overflow: true, ..Found::default() };
        let error = ErrorFrame::of(&found, None).expect("an error");
        assert_eq!((error.class, error.data), (0x4, [0, 1, 0, 0, 0, 0, 0, 0]));
        let found = Found { state: Some(ErrorState::Passive), ..Found::default() };
        let error = ErrorFrame::of(&found, Some(counters)).expect("an error");
        assert_eq!((error.class, error.data), (0x204, [0, 0x20, 0, 0, 0, 0, 130, 2]));
        let counters = ErrorCounters { transmit: 1, receive: 100, state: ErrorState::Warning };
        let found = Found { state: Some(ErrorState::Warning), ..Found::default() };
        let error = ErrorFrame::of(&found, Some(counters)).expect("an error");
        assert_eq!(error.data, [0, 4, 0, 0, 0, 0, 1, 100]);
        let found = Found { state: Some(ErrorState::BusOff), ..Found::default() };
        assert_eq!(ErrorFrame::of(&found, None).map(|error| error.class), Some(0x44));
        let invalid = Invalid { acknowledge: true, stuff: true, ..Invalid::default() };
        let found = Found { invalid: Some(invalid), ..Found::default() };
        let error = ErrorFrame::of(&found, None).expect("an error");
        assert_eq!((error.class, error.data), (0xa8, [0, 0, 4, 0x19, 0, 0, 0, 0]));
        assert_eq!(ErrorFrame::of(&Found { frame: true, ..Found::default() }, None), None);
    }
}
