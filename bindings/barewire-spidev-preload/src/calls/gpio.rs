//! ioctl and read on GPIO chips and their lines.
//!
//! An ioctl's structure goes to the server unchanged. If the ioctl writes the structure back, the server
//! sends its new content. Events are packets of the open file's own connection, so that poll, select and
//! epoll know of them.

use core::ffi::{c_int, c_void};
use std::os::fd::IntoRawFd as _;

use barewire_spidev_abi::gpio::GpioRequest;
use barewire_spidev_abi::protocol::{Call, FileKind, OpenId};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::real::told;
use crate::say::say_gone;
use crate::server::{self, ask, request};
use crate::{files, memory};

/// Bytes of the longest event: `struct gpio_v2_line_info_changed`.
const EVENT_MAX: usize = 288;
/// Bytes of a line's event in each version.
const LINE_EVENT: usize = 48;
const EVENT_DATA: usize = 16;

/// An ioctl on a GPIO file. `real` handles the numbers that every kind of file has.
pub(super) fn ioctl(
    id: OpenId,
    number: u32,
    argument: *mut c_void,
    real: impl Fn() -> c_int,
) -> c_int {
    if number == libc::FIONBIO as u32 {
        return real();
    }
    told(asked(id, number, argument.expose_provenance() as u64))
}

fn asked(id: OpenId, number: u32, argument: u64) -> Result<c_int, Errno> {
    let gpio = GpioRequest::decode(number)?;
    let of = gpio.argument();
    let mut body = vec![0; of.bytes];
    memory::read(argument, if of.read { &mut body } else { &mut [] })?;
    if gpio.makes_a_file() {
        if id.kind() != FileKind::Chip {
            return Err(Errno::INVAL);
        }
        return made(id, gpio, number, argument, body);
    }
    let parts: &[&[u8]] = if of.read { &[&body] } else { &[] };
    let (head, _) = request(id, Call::Ioctl(number), parts);
    let mut answer = Vec::with_capacity(of.bytes);
    ask(&head, parts, &mut answer)?;
    memory::write(argument, &answer)?;
    Ok(0)
}

/// Requests lines: the new file's number is the structure's last field.
fn made(
    id: OpenId,
    gpio: GpioRequest,
    number: u32,
    argument: u64,
    mut body: Vec<u8>,
) -> Result<c_int, Errno> {
    let kind = match gpio {
        GpioRequest::Handle1 => FileKind::Handle,
        GpioRequest::Event1 => FileKind::Event,
        _ => FileKind::Lines,
    };
    // As the kernel makes it: for reading, and closed by exec.
    let flags = libc::O_RDONLY.cast_unsigned();
    let (file, made): (OwnedFd, OpenId) = server::open(Call::OpenLines, kind, flags)?;
    let parts: &[&[u8]] = &[&body, &made.0.to_ne_bytes()];
    let (head, _) = request(id, Call::Ioctl(number), parts);
    ask(&head, parts, &mut Vec::new())?;
    let fd = file.into_raw_fd();
    let at = body.len() - size_of::<c_int>();
    body[at..].copy_from_slice(&fd.to_ne_bytes());
    if let Err(errno) = memory::write(argument, &body).and_then(|()| files::set(fd, Some(made))) {
        // SAFETY: no other code knows it yet.
        unsafe { rustix::io::close(fd) };
        return Err(errno);
    }
    Ok(0)
}

/// Reads events, as many as there are and fit; waits for the first unless the file does not block.
pub(super) fn read(id: OpenId, fd: c_int, to: u64, len: usize) -> Result<isize, Errno> {
    match id.kind() {
        FileKind::Lines if len < LINE_EVENT => return Err(Errno::INVAL),
        FileKind::Event if len < EVENT_DATA => return Err(Errno::INVAL),
        FileKind::Handle => return Err(Errno::INVAL),
        _ => {}
    }
    // SAFETY: the caller's, for this call.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let mut packet = [0; EVENT_MAX];
    let mut done = 0;
    loop {
        let flags = if done == 0 { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        // A packet that does not fit stays.
        let waiting = match recv(file, &mut packet[..], flags | RecvFlags::PEEK) {
            Ok((bytes, _)) => bytes,
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        };
        match waiting {
            0 if done == 0 => {
                say_gone(false);
                return Err(Errno::SHUTDOWN);
            }
            0 => break,
            bytes if bytes > len - done && done == 0 => return Err(Errno::INVAL),
            bytes if bytes > len - done => break,
            _ => {}
        }
        // Another thread may have taken it meanwhile.
        let bytes = match recv(file, &mut packet[..], RecvFlags::DONTWAIT) {
            Ok((bytes, _)) => bytes.min(len - done),
            Err(Errno::AGAIN) => continue,
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        };
        memory::write(to.saturating_add(done as u64), &packet[..bytes])?;
        done += bytes;
    }
    Ok(isize::try_from(done).unwrap_or(isize::MAX))
}

/// Neither chips nor lines can be written to.
pub(super) fn write(id: OpenId) -> Result<isize, Errno> {
    Err(if id.writable() { Errno::INVAL } else { Errno::BADF })
}
