//! Requests to the server: in memory that is shared with it ([`shared`]), else by a [`connection`].

use barewire_spidev_abi::NodeName;
use barewire_spidev_abi::gpio::ChipName;
use barewire_spidev_abi::protocol::{Call, FileKind, Head, OpenId};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::{connection, shared};

/// Makes a request with its body's parts, and waits for the answer, whose body is appended to `answer`. `answer` has the
/// capacity for what may come.
///
/// # Errors
/// The errors that the server returns; `ESHUTDOWN` if the server has ended.
pub(crate) fn ask(head: &Head, parts: &[&[u8]], answer: &mut Vec<u8>) -> Result<u32, Errno> {
    shared::ask(head, parts, answer).unwrap_or_else(|| connection::ask(head, parts, answer))
}

/// Makes a request about an open file.
pub(crate) fn request(id: OpenId, call: Call, parts: &[&[u8]]) -> (Head, usize) {
    let body: usize = parts.iter().map(|part| part.len()).sum();
    (Head { id, call, body: u32::try_from(body).unwrap_or(u32::MAX) }, body)
}

/// Opens a file of that kind, as `call` asks. Returns the connection, which is the file's descriptor,
/// and the file's id.
///
/// # Errors
/// The system's; `ENFILE` if the server has no descriptor left, `ESHUTDOWN` if it has ended.
pub(crate) fn open(call: Call, kind: FileKind, flags: u32) -> Result<(OwnedFd, OpenId), Errno> {
    // Done before the file is opened, because it needs descriptors too.
    shared::prepare();
    connection::open(call, kind, flags)
}

/// The path of the node or GPIO chip that an open file is of.
///
/// # Errors
/// As [`ask`]; `EBADF` for lines, which have no path.
pub(crate) fn path_of(id: OpenId) -> Result<String, Errno> {
    match id.kind() {
        FileKind::Node => node_of(id).map(NodeName::path),
        FileKind::Chip => {
            let number = which(id)?.try_into().map_err(|_| Errno::PROTO)?;
            Ok(ChipName(number).path())
        }
        FileKind::Lines | FileKind::Handle | FileKind::Event => Err(Errno::BADF),
    }
}

/// The node that an open file is of.
///
/// # Errors
/// As [`ask`].
pub(crate) fn node_of(id: OpenId) -> Result<NodeName, Errno> {
    NodeName::from_number(which(id)?).ok_or(Errno::PROTO)
}

fn which(id: OpenId) -> Result<u32, Errno> {
    let (head, _) = request(id, Call::Which, &[]);
    ask(&head, &[], &mut Vec::new())
}
