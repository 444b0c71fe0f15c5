//! Requests to the server: in memory that is shared with it ([`shared`]), else by a connection.

use std::fmt;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use barewire_spidev_abi::NodeName;
use barewire_spidev_abi::gpio::ChipName;
use barewire_spidev_abi::protocol::{ANSWER_BYTES, Call, FileKind, Head, OpenId, decode_answer};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, recv, recvmsg, sendmsg,
    socket_with,
};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::config::config;
use crate::shared;

/// Blocks all signals of the calling thread; they come when it is dropped.
pub(crate) struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: it fills the set.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: both sets are valid; a filled set is no error.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
        // SAFETY: the call above filled it.
        let before = unsafe { before.assume_init() };
        Self { before }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the set that was there before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}

/// Says something on stderr, once in the process.
pub(crate) fn say_once(said: &AtomicBool, text: fmt::Arguments<'_>) {
    if !said.swap(true, Ordering::Relaxed) {
        say(text);
    }
}

/// Says something on stderr.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let mut line = Vec::new();
    let _ = writeln!(line, "barewire: {text}");
    // SAFETY: the program's stderr, for one write, which fails if there is none.
    let stderr = unsafe { rustix::fd::BorrowedFd::borrow_raw(2) };
    let _ = rustix::io::write(stderr, &line);
}

/// Says, once, that the server is gone; `perhaps`, if it only cannot be reached: its socket belongs to a network namespace.
pub(crate) fn say_gone(perhaps: bool) {
    static SAID: AtomicBool = AtomicBool::new(false);
    let or = if perhaps { " or is in another network namespace than this program" } else { "" };
    say_once(
        &SAID,
        format_args!(
            "`barewire run`, which served the mapped nodes, has ended{or}: calls on them fail with ESHUTDOWN"
        ),
    );
}

/// A connection to the server, by a name of its own if it is an open file.
fn connected(id: Option<OpenId>) -> Result<OwnedFd, Errno> {
    let Some(config) = config() else { return Err(Errno::NODEV) };
    let (kind, server) = match id {
        Some(_) => (SocketType::SEQPACKET, OpenId::files_name(&config.server)),
        None => (SocketType::STREAM, config.server.clone()),
    };
    let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    if let Some(id) = id {
        let name = id.socket_name(&config.server);
        bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    }
    match connect(&socket, &SocketAddrUnix::new_abstract_name(server.as_bytes())?) {
        Ok(()) => Ok(socket),
        Err(Errno::CONNREFUSED) => {
            say_gone(!shared::is_server_dead());
            Err(Errno::SHUTDOWN)
        }
        Err(errno) => Err(errno),
    }
}

fn send(socket: &OwnedFd, head: &Head, parts: &[&[u8]]) -> Result<(), Errno> {
    let bytes = head.encode();
    let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(parts.len() + 1);
    slices.push(IoSlice::new(&bytes));
    slices.extend(parts.iter().map(|part| IoSlice::new(part)));
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        let flags = SendFlags::NOSIGNAL;
        // The kernel takes up to 1024 slices; here are at most two.
        match sendmsg(socket, rest, &mut SendAncillaryBuffer::default(), flags) {
            Ok(sent) => IoSlice::advance_slices(&mut rest, sent),
            Err(Errno::INTR) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(Errno::SHUTDOWN),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn receive(socket: &OwnedFd, mut into: &mut [u8]) -> Result<(), Errno> {
    while !into.is_empty() {
        match recv(socket, &mut *into, RecvFlags::empty()) {
            // The server ended in the middle.
            Ok((0, _)) | Err(Errno::CONNRESET) => return Err(Errno::SHUTDOWN),
            Ok((received, _)) => into = &mut into[received..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Makes a request with its body's parts, and waits for the answer, whose body is appended to `answer`. `answer` has the
/// capacity for what may come.
///
/// # Errors
/// The errors that the server returns; `ESHUTDOWN` if the server has ended.
pub(crate) fn ask(head: &Head, parts: &[&[u8]], answer: &mut Vec<u8>) -> Result<u32, Errno> {
    shared::ask(head, parts, answer).unwrap_or_else(|| ask_by_connection(head, parts, answer))
}

/// [`ask`] by a connection.
pub(crate) fn ask_by_connection(
    head: &Head,
    parts: &[&[u8]],
    answer: &mut Vec<u8>,
) -> Result<u32, Errno> {
    let _undisturbed = SignalsBlocked::new();
    let socket = connected(None)?;
    send(&socket, head, parts)?;
    let mut bytes = [0; ANSWER_BYTES];
    receive(&socket, &mut bytes)?;
    let (result, body) = decode_answer(&bytes);
    let begin = answer.len();
    answer.resize(begin + body as usize, 0);
    receive(&socket, &mut answer[begin..])?;
    result
}

/// Asks for memory for this process's requests: the files of the bell and of the slots.
///
/// # Errors
/// The server's; `EMFILE` if no descriptor is free, `EPROTO` if the files did not come.
pub(crate) fn share() -> Result<[File; 2], Errno> {
    let _undisturbed = SignalsBlocked::new();
    let socket = connected(None)?;
    send(&socket, &Head { id: OpenId(0), call: Call::Share, body: 0 }, &[])?;
    let mut bytes = [0; ANSWER_BYTES];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
    let came = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Err(Errno::INTR) => {}
            other => break other?.bytes,
        }
    };
    let mut files = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => files.collect(),
        _ => Vec::new(),
    });
    let files = [files.next(), files.next()];
    if came != ANSWER_BYTES {
        return Err(Errno::SHUTDOWN);
    }
    decode_answer(&bytes).0?;
    match files {
        [Some(bell), Some(slots)] => Ok([bell.into(), slots.into()]),
        // The kernel leaves out those for which there is no room in the table.
        _ => Err(Errno::MFILE),
    }
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
    shared::prepare();
    let _undisturbed = SignalsBlocked::new();
    loop {
        let mut random = [0; 4];
        getrandom(&mut random, GetRandomFlags::empty())?;
        // The highest bit of the 30: an id is never 0.
        let id = OpenId::new(u32::from_ne_bytes(random) | 1 << 29, flags).of_kind(kind);
        let socket = match connected(Some(id)) {
            // Another open file has that number.
            Err(Errno::ADDRINUSE) => continue,
            other => other?,
        };
        let (head, _) = request(id, call, &[]);
        // A server that refuses may have done so before it was asked: what it said is there then, behind the error that
        // its end is closed.
        let sent = send(&socket, &head, &[]);
        let mut opened = [0; ANSWER_BYTES];
        if receive(&socket, &mut opened).is_err() && receive(&socket, &mut opened).is_err() {
            return Err(sent.err().unwrap_or(Errno::SHUTDOWN));
        }
        decode_answer(&opened).0?;
        // A read of a node that bypasses the library returns nothing, and does not hang. Of GPIO files
        // there is something to be read.
        let blocks = kind != FileKind::Node && flags & libc::O_NONBLOCK.cast_unsigned() == 0;
        rustix::io::ioctl_fionbio(&socket, !blocks)?;
        return Ok((socket, id));
    }
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
