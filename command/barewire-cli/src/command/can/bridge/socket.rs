//! An interface of SocketCAN.

use std::fs;
use std::io::{self, ErrorKind};

use socketcan::id::FdFlags;
use socketcan::{
    CanAddr, CanAnyFrame, CanDataFrame, CanErrorFrame, CanFdFrame, CanFdSocket, CanRemoteFrame,
    EmbeddedFrame, Socket, SocketOptions,
};

use super::super::frame::{CanFrame, ErrorFrame, Kind, LogLine};
use super::pump::CanSocket;
use crate::shared::failure::Failure;

/// The kernel's MTU of a CAN FD interface: the size of a CAN FD frame.
const FD_MTU: u32 = 72;
const EAFNOSUPPORT: i32 = 97;
const ENETDOWN: i32 = 100;

/// An interface in use. The socket does not receive the frames it writes.
#[derive(Debug)]
pub(super) struct Interface {
    name: String,
    socket: CanFdSocket,
    /// The largest frame that it carries.
    pub(super) mtu: u32,
}

/// How to make an interface that is not there.
fn remedy(name: &str) -> String {
    format!("`ip link add dev {name} type vcan && ip link set {name} up` makes one, as root")
}

impl Interface {
    /// The interface of that name.
    pub(super) fn open(name: &str) -> Result<Self, Failure> {
        let failed = |error: &io::Error| {
            let remedy = remedy(name);
            Failure::Failed(match error.raw_os_error() {
                Some(EAFNOSUPPORT) => {
                    format!("this kernel has no SocketCAN (`modprobe can_raw vcan`); then {remedy}")
                }
                _ => format!("no CAN interface {name} ({error}): {remedy}"),
            })
        };
        let address = CanAddr::from_iface(name).map_err(|error| failed(&error))?;
        let socket = CanFdSocket::open_addr(&address).map_err(|error| failed(&error))?;
        let set = socket.set_nonblocking(true).and_then(|()| socket.set_error_filter_accept_all());
        set.map_err(|error| failed(&error))?;
        let mtu = fs::read_to_string(format!("/sys/class/net/{name}/mtu"));
        let mtu = mtu.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(FD_MTU);
        Ok(Self { name: name.into(), socket, mtu })
    }

    fn explain(&self, error: io::Error) -> io::Error {
        match error.raw_os_error() {
            Some(ENETDOWN) => io::Error::new(
                ErrorKind::NetworkDown,
                format!("{} is down: `ip link set {} up`", self.name, self.name),
            ),
            _ => error,
        }
    }
}

impl CanSocket for Interface {
    fn read(&mut self) -> io::Result<Option<LogLine>> {
        match self.socket.read_frame() {
            Ok(frame) => Ok(Some(from_socket(&frame))),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(self.explain(error)),
        }
    }

    fn write(&mut self, what: &LogLine) -> io::Result<()> {
        self.socket.write_frame(&to_socket(what)).map_err(|error| self.explain(error))
    }

    fn carries_fd(&self) -> bool {
        self.mtu >= FD_MTU
    }
}

/// As the kernel has it. A classic DLC above 8 is 8 there.
fn to_socket(what: &LogLine) -> CanAnyFrame {
    let made = match what {
        LogLine::Error(ErrorFrame { class, data }) => {
            CanErrorFrame::new_error(*class, data).ok().map(CanAnyFrame::from)
        }
        LogLine::Frame(frame) => match frame.kind {
            Kind::Data => CanDataFrame::new(frame.id, frame.data()).map(CanAnyFrame::from),
            Kind::Remote => {
                let dlc = usize::from(frame.dlc()).min(8);
                CanRemoteFrame::new_remote(frame.id, dlc).map(CanAnyFrame::from)
            }
            Kind::Fd { brs, esi } => {
                let mut flags = FdFlags::empty();
                flags.set(FdFlags::BRS, brs);
                flags.set(FdFlags::ESI, esi);
                CanFdFrame::with_flags(frame.id, frame.data(), flags).map(CanAnyFrame::from)
            }
        },
    };
    made.expect("a frame that a bus carried")
}

fn from_socket(frame: &CanAnyFrame) -> LogLine {
    let (id, kind, data, dlc) = match frame {
        CanAnyFrame::Error(error) => {
            let mut data = [0; 8];
            let len = error.data().len().min(8);
            data[..len].copy_from_slice(&error.data()[..len]);
            return LogLine::Error(ErrorFrame { class: error.error_bits(), data });
        }
        CanAnyFrame::Normal(frame) => (frame.id(), Kind::Data, frame.data(), None),
        CanAnyFrame::Remote(frame) => (frame.id(), Kind::Remote, &[][..], Some(frame.dlc())),
        CanAnyFrame::Fd(frame) => {
            let kind = Kind::Fd { brs: frame.is_brs(), esi: frame.is_esi() };
            (frame.id(), kind, frame.data(), None)
        }
    };
    let made = match dlc {
        Some(dlc) => CanFrame::with_dlc(id, kind, dlc.min(8) as u8, &[]),
        // A program may write any length of CAN FD: the kernel fills up with zeros.
        None => (data.len()..=64).find_map(|len| {
            let mut bytes = [0; 64];
            bytes[..data.len()].copy_from_slice(data);
            CanFrame::new(id, kind, &bytes[..len])
        }),
    };
    LogLine::Frame(made.expect("at most 8 or 64 bytes"))
}

#[cfg(test)]
mod tests {
    use super::super::super::candump;
    use super::*;

    #[test]
    fn frames_are_the_same_in_a_socket() {
        for text in [
            "123#DEADBEEF",
            "00000123#",
            "1FFFFFFF#0011223344556677",
            "123#R4",
            "123##1AABB",
            "12345678##2000102030405060708090A0B",
            "20000204#0001000000000102",
        ] {
            let what = candump::parse_frame(text).expect(text);
            assert_eq!(from_socket(&to_socket(&what)).to_string(), text);
        }
    }

    #[test]
    fn an_interface_that_is_not_there_is_named_with_its_remedy() {
        let error = Interface::open("bw-none9").expect_err("no such interface").to_string();
        assert!(error.contains("ip link add dev bw-none9 type vcan"), "{error}");
        let error = Interface::open("a-name-that-is-too-long-for-any").expect_err("too long");
        assert_eq!(error.code(), 1);
    }
}
