//! Connections to the server: a request each, or an open file.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use barewire_linux::shared::Lifeline;
use barewire_spidev_abi::protocol::{ANSWER_BYTES, Call, FileKind, Head, OpenId, decode_answer};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, recv, recvmsg, sendmsg,
    socket_with,
};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::blocked::SignalsBlocked;
use crate::config::config;
use crate::say::say_gone;

/// The word of the server's lifeline, once this process has it.
static LIFE: OnceLock<&'static AtomicU32> = OnceLock::new();

/// Notes where the server's life is seen.
pub(crate) fn note_life(life: &'static AtomicU32) {
    // In a child it is set already, to its parent's.
    let _ = LIFE.set(life);
}

/// Whether the server is known to have ended.
fn is_server_dead() -> bool {
    LIFE.get().is_some_and(|life| !Lifeline::is_alive(life))
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
            say_gone(!is_server_dead());
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

/// Makes a request with its body's parts, and waits for the answer, whose body is appended to `answer`.
///
/// # Errors
/// The errors that the server returns; `ESHUTDOWN` if the server has ended.
pub(crate) fn ask(head: &Head, parts: &[&[u8]], answer: &mut Vec<u8>) -> Result<u32, Errno> {
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

/// Opens a file of that kind, as `call` asks. Returns the connection, which is the file's descriptor,
/// and the file's id.
///
/// # Errors
/// The system's; `ENFILE` if the server has no descriptor left, `ESHUTDOWN` if it has ended.
pub(crate) fn open(call: Call, kind: FileKind, flags: u32) -> Result<(OwnedFd, OpenId), Errno> {
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
        let head = Head { id, call, body: 0 };
        // A server that refuses may have done so before the request: its answer is there then,
        // behind the error that its end is closed.
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
