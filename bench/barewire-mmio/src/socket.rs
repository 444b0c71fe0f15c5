//! Whole messages over a Unix socket, and the page's descriptor beside one of them.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::message::{self, BYTES, Words};

/// Sends a message, with a descriptor if there is one.
pub(crate) fn send(to: &UnixStream, words: Words, file: Option<&dyn AsFd>) -> io::Result<()> {
    let bytes = message::bytes(words);
    let mut sent = 0;
    while sent < BYTES {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut room);
        let files = file.map(|file| [file.as_fd()]);
        if let (Some(files), 0) = (&files, sent) {
            beside.push(SendAncillaryMessage::ScmRights(files));
        }
        match sendmsg(to, &[IoSlice::new(&bytes[sent..])], &mut beside, SendFlags::NOSIGNAL) {
            Ok(more) => sent += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Receives a message and at most one descriptor; `None` at the connection's end.
///
/// # Errors
/// Also `UnexpectedEof` if the connection ends within a message.
pub(crate) fn receive(from: &UnixStream) -> io::Result<Option<(Words, Option<OwnedFd>)>> {
    let mut bytes = [0; BYTES];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let got = loop {
        let mut into = [IoSliceMut::new(&mut bytes)];
        match recvmsg(from, &mut into, &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Ok(got) => break got.bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    };
    if got == 0 {
        return Ok(None);
    }
    let mut file = None;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            file = files.last();
        }
    }
    let mut from = from;
    from.read_exact(&mut bytes[got..])?;
    Ok(Some((message::words(&bytes), file)))
}

/// Whether the other end has closed the connection; does not wait.
pub(crate) fn is_gone(peer: &UnixStream) -> bool {
    let mut byte = [0];
    match rustix::net::recv(peer, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, got)) => got == 0,
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => false,
        Err(_) => true,
    }
}

/// An error for a message that may not come now.
pub(crate) fn bad(what: impl ToString) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_string())
}
