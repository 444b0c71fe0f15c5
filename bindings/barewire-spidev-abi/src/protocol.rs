//! The protocol between the library in a program and the server, over a Unix stream socket with an
//! abstract name.
//!
//! # How it works
//! An open file is a connection: the program's file descriptor is the library's end, and the server learns
//! from its end when the last copy of it is closed, however the program ended. The library binds its end to
//! a name that holds the [`OpenId`], so that any process which has the descriptor, by `fork`, `exec` or
//! `dup`, can read it with `getsockname`. It keeps packets apart. The first is a [`Call::Open`]; each further
//! one is what something that goes around the library wrote to the descriptor, such as a C library's own
//! stream: one message. The server answers the first with one packet, [`encode_opened`]; of a node there are no others.
//!
//! A call on an open file is a request in [memory](crate::slots) that the process shares with the server, or
//! a stream of its own: one request, one answer. A process killed in a call leaves nothing behind.
//!
//! All numbers are in the machine's byte order and of fixed size: a 32-bit program may talk to a 64-bit
//! server.

use rustix::io::Errno;

use crate::NodeName;
use crate::chip_name::ChipName;

/// The environment variable that tells the library the server's name.
pub const SERVER_VARIABLE: &str = "BAREWIRE_SPIDEV_SERVER";
/// The environment variable that tells it where the [tree](crate::tree) is.
pub const TREE_VARIABLE: &str = "BAREWIRE_SPIDEV_TREE";

/// The version of this protocol, which both sides must speak.
pub const VERSION: u32 = 2;

/// Bytes of a request's head.
pub const REQUEST_BYTES: usize = 20;
/// Bytes of an answer's head.
pub const ANSWER_BYTES: usize = 8;

/// The longest body of a request, in bytes: no message of `bufsiz` below this is cut.
pub const BODY_MAX: u32 = 64 << 20;

/// An open file, by a number that its library chose. The low two bits are the file's access mode, as in
/// `O_ACCMODE`; three others say its [kind](FileKind).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpenId(pub u32);

/// The kind of an open file. Three bits of its [`OpenId`] hold it, so that a library which finds a descriptor
/// knows the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A spidev node.
    Node,
    /// A GPIO chip.
    Chip,
    /// Lines of a GPIO chip.
    Lines,
    /// Version 1: lines without events.
    Handle,
    /// Version 1: a line with events.
    Event,
}

const KINDS: [FileKind; 5] =
    [FileKind::Node, FileKind::Chip, FileKind::Lines, FileKind::Handle, FileKind::Event];
/// Where those bits are; the highest bit of an id is set.
const KIND_SHIFT: u32 = 28;

/// The access mode that only reads.
const RDONLY: u32 = 0;
/// The access mode that only writes.
const WRONLY: u32 = 1;

impl OpenId {
    /// An id of a random number and a file's flags.
    #[must_use]
    pub fn new(random: u32, flags: u32) -> Self {
        Self(random << 2 | flags & 3)
    }

    /// The id of a file of that kind.
    #[must_use]
    pub fn of_kind(self, kind: FileKind) -> Self {
        Self(self.0 & !(7 << KIND_SHIFT) | (kind as u32) << KIND_SHIFT)
    }

    /// The kind of the file.
    #[must_use]
    pub fn kind(self) -> FileKind {
        let kind = self.0 >> KIND_SHIFT & 7;
        // No library makes another.
        KINDS.get(kind as usize).copied().unwrap_or(FileKind::Node)
    }

    /// The access mode.
    #[must_use]
    pub fn access(self) -> u32 {
        self.0 & 3
    }

    /// Whether the file may be read from.
    #[must_use]
    pub fn readable(self) -> bool {
        self.access() != WRONLY
    }

    /// Whether the file may be written to.
    #[must_use]
    pub fn writable(self) -> bool {
        self.access() != RDONLY
    }

    /// The abstract name under which the server waits for open files.
    #[must_use]
    pub fn files_name(server: &str) -> String {
        format!("{server}/files")
    }

    /// The abstract name of the library's end.
    #[must_use]
    pub fn socket_name(self, server: &str) -> String {
        format!("{server}/{:08x}", self.0)
    }

    /// The id in such a name; `None` for another.
    #[must_use]
    pub fn of_socket_name(server: &str, name: &[u8]) -> Option<Self> {
        let rest = name.strip_prefix(server.as_bytes())?.strip_prefix(b"/")?;
        let digits = std::str::from_utf8(rest).ok().filter(|digits| digits.len() == 8)?;
        u32::from_str_radix(digits, 16).ok().map(Self)
    }
}

/// The action that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A process has loaded the library. The argument is its process id.
    Hello(u32),
    /// This connection is an open file of that node.
    Open(NodeName),
    /// An ioctl with that number. The body is what the kernel would read: the argument, or a message's
    /// transfers and behind them the bytes that they send.
    Ioctl(u32),
    /// Reads that many bytes.
    Read(u32),
    /// Writes the body.
    Write,
    /// Which node it is: its [number](NodeName::number), or a GPIO chip's.
    Which,
    /// This connection is an open file of that GPIO chip.
    OpenChip(ChipName),
    /// This connection will be lines of a GPIO chip, when a request says so.
    OpenLines,
    /// Asks for memory for the process's requests: the answer comes with two files, the
    /// [bell's](crate::slots::Bell) and the process's [slots'](crate::slots::Slots).
    Share,
}

const HELLO: u32 = 0;
const OPEN: u32 = 1;
const IOCTL: u32 = 2;
const READ: u32 = 3;
const WRITE: u32 = 4;
const WHICH: u32 = 5;
const OPEN_CHIP: u32 = 6;
const OPEN_LINES: u32 = 7;
const SHARE: u32 = 8;

/// A request without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The open file.
    pub id: OpenId,
    /// The action asked for.
    pub call: Call,
    /// Bytes of the body that follows.
    pub body: u32,
}

impl Head {
    /// Encodes it for the socket.
    #[must_use]
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let (call, argument) = match self.call {
            Call::Hello(process) => (HELLO, process),
            Call::Open(node) => (OPEN, node.number()),
            Call::Ioctl(number) => (IOCTL, number),
            Call::Read(len) => (READ, len),
            Call::Write => (WRITE, 0),
            Call::Which => (WHICH, 0),
            Call::OpenChip(chip) => (OPEN_CHIP, chip.0.into()),
            Call::OpenLines => (OPEN_LINES, 0),
            Call::Share => (SHARE, 0),
        };
        let mut bytes = [0; REQUEST_BYTES];
        for (place, word) in
            bytes.chunks_exact_mut(4).zip([VERSION, self.id.0, call, argument, self.body])
        {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Decodes it from the socket.
    ///
    /// # Errors
    /// `EPROTO` if no library of this version would send such a request.
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Result<Self, Errno> {
        let word = |index: usize| {
            let bytes = bytes.as_chunks::<4>().0.get(index);
            bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
        };
        let [version, id, call, argument, body] = std::array::from_fn(word);
        if version != VERSION || body > BODY_MAX {
            return Err(Errno::PROTO);
        }
        let call = match call {
            HELLO => Call::Hello(argument),
            OPEN => Call::Open(NodeName::from_number(argument).ok_or(Errno::PROTO)?),
            IOCTL => Call::Ioctl(argument),
            READ => Call::Read(argument),
            WRITE => Call::Write,
            WHICH => Call::Which,
            OPEN_CHIP => Call::OpenChip(ChipName(argument.try_into().map_err(|_| Errno::PROTO)?)),
            OPEN_LINES => Call::OpenLines,
            SHARE => Call::Share,
            _ => return Err(Errno::PROTO),
        };
        Ok(Self { id: OpenId(id), call, body })
    }
}

/// The head of an answer: the call's result or its error number, and the number of bytes that follow.
pub type Answer = (Result<u32, Errno>, u32);

/// The packet by which the server says that it has opened a file, or why it has not.
#[must_use]
pub fn encode_opened(opened: Result<(), Errno>) -> [u8; ANSWER_BYTES] {
    encode_answer((opened.map(|()| 0), 0))
}

/// An answer's head as it is sent.
#[must_use]
pub fn encode_answer((result, body): Answer) -> [u8; ANSWER_BYTES] {
    let value = match result {
        // A call returns at most `i32::MAX`.
        Ok(value) => i32::try_from(value).unwrap_or(i32::MAX),
        Err(errno) => -errno.raw_os_error(),
    };
    let mut bytes = [0; ANSWER_BYTES];
    bytes[..4].copy_from_slice(&value.to_ne_bytes());
    bytes[4..].copy_from_slice(&body.to_ne_bytes());
    bytes
}

/// An answer's head as it was sent.
pub fn decode_answer(bytes: &[u8; ANSWER_BYTES]) -> Answer {
    let [v0, v1, v2, v3, b0, b1, b2, b3] = *bytes;
    let value = i32::from_ne_bytes([v0, v1, v2, v3]);
    let result = match u32::try_from(value) {
        Ok(value) => Ok(value),
        Err(_) => Err(Errno::from_raw_os_error(value.saturating_neg())),
    };
    (result, u32::from_ne_bytes([b0, b1, b2, b3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        let node = NodeName { bus: 32_766, chip_select: 255 };
        for call in [
            Call::Hello(7),
            Call::Open(node),
            Call::Ioctl(0x4020_6b00),
            Call::Read(4096),
            Call::Write,
            Call::Which,
            Call::OpenChip(ChipName(65_535)),
            Call::OpenLines,
            Call::Share,
        ] {
            let head = Head { id: OpenId::new(0x1234_5678, 2), call, body: 99 };
            assert_eq!(Head::decode(&head.encode()), Ok(head));
        }
        let mut bytes = Head { id: OpenId(0), call: Call::Write, body: 0 }.encode();
        bytes[0] ^= 1;
        assert_eq!(Head::decode(&bytes), Err(Errno::PROTO), "another version");
        let long = Head { id: OpenId(0), call: Call::Write, body: BODY_MAX + 1 };
        assert_eq!(Head::decode(&long.encode()), Err(Errno::PROTO));
    }

    #[test]
    fn an_answer_arrives_as_it_was_sent() {
        for answer in [(Ok(0), 0), (Ok(4096), 12), (Err(Errno::MSGSIZE), 0), (Err(Errno::NOTTY), 4)]
        {
            assert_eq!(decode_answer(&encode_answer(answer)), answer);
        }
    }

    #[test]
    fn a_sockets_name_tells_the_open_file() {
        let id = OpenId::new(0x3fff_ffff, 1);
        assert_eq!((id.access(), id.readable(), id.writable()), (1, false, true));
        let name = id.socket_name("barewire-1");
        assert_eq!(OpenId::of_socket_name("barewire-1", name.as_bytes()), Some(id));
        for other in
            ["barewire-1", "barewire-1/", "barewire-2/fffffffd", "barewire-1/fffffffd0", ""]
        {
            assert_eq!(OpenId::of_socket_name("barewire-1", other.as_bytes()), None, "{other}");
        }
        assert!(OpenId::new(1, 0).readable() && !OpenId::new(1, 0).writable());
        assert!(OpenId::new(1, 2).readable() && OpenId::new(1, 2).writable());
        for kind in KINDS {
            let id = OpenId::new(0xffff_ffff, 2).of_kind(kind);
            assert_eq!((id.kind(), id.access(), id.0 >> 31), (kind, 2, 1));
        }
    }
}
