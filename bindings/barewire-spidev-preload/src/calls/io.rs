//! ioctl, read, write and their kin.
//!
//! The order of the checks is the kernel's: a message's sizes are summed and its bytes copied transfer by
//! transfer, so the first transfer that is too long or whose address is bad decides the error.

use core::ffi::{c_int, c_ulong, c_void};

use barewire_spidev_abi::gpio::GpioRequest;
use barewire_spidev_abi::protocol::{Call, FileKind, OpenId};
use barewire_spidev_abi::{IocTransfer, Request, Sums, TRANSFER_BYTES};
use rustix::io::Errno;

use super::gpio;
use crate::real::{call_real, told};
use crate::server::{ask, request};
use crate::{config, direct, files, good, memory};

/// Bytes of a settings ioctl's argument at most.
const ARGUMENT_MAX: usize = 4;

fn node_ioctl(fd: c_int, id: OpenId, number: u32, argument: u64) -> Result<c_int, Errno> {
    let call = Call::Ioctl(number);
    match Request::decode(number)? {
        Request::Read(setting) => {
            let mut answer = Vec::with_capacity(ARGUMENT_MAX);
            let (head, _) = request(id, call, &[]);
            ask(&head, &[], &mut answer)?;
            if answer.len() != setting.bytes() {
                return Err(Errno::PROTO);
            }
            memory::write(argument, &answer)?;
            Ok(0)
        }
        Request::Write(setting) => {
            let mut value = [0; ARGUMENT_MAX];
            let value = &mut value[..setting.bytes()];
            memory::read(argument, value)?;
            let (head, _) = request(id, call, &[value]);
            ask(&head, &[value], &mut Vec::new())?;
            Ok(0)
        }
        // The kernel reads no argument.
        Request::Message(0) => Ok(0),
        Request::Message(transfers) => direct::message(fd, id, transfers, argument)
            .unwrap_or_else(|| message(id, call, transfers, argument)),
    }
}

#[inline(never)]
fn message(id: OpenId, call: Call, transfers: usize, argument: u64) -> Result<c_int, Errno> {
    let mut structs = vec![0; transfers * TRANSFER_BYTES];
    good::read(argument, &mut structs)?;
    let mut sums = Sums::new(config::bufsiz());
    let (mut tx, mut received) = (Vec::new(), 0);
    for transfer in IocTransfer::decode_all(&structs) {
        sums.add(&transfer)?;
        let begin = tx.len();
        tx.resize(begin + transfer.tx_bytes(), 0);
        good::read(transfer.tx_buf, &mut tx[begin..])?;
        received += transfer.rx_bytes();
    }
    let parts = [&structs[..], &tx[..]];
    let (head, _) = request(id, call, &parts);
    let mut rx = Vec::with_capacity(received);
    let total = ask(&head, &parts, &mut rx)?;
    let mut rest = &rx[..];
    for transfer in IocTransfer::decode_all(&structs) {
        let (bytes, others) = rest.split_at_checked(transfer.rx_bytes()).ok_or(Errno::PROTO)?;
        good::write(transfer.rx_buf, bytes)?;
        rest = others;
    }
    // At most `i32::MAX` (`Sums`).
    Ok(c_int::try_from(total).unwrap_or(c_int::MAX))
}

/// Whether every file has this ioctl: the kernel handles those before a driver sees them.
fn of_any_file(number: u32) -> bool {
    [libc::FIOCLEX, libc::FIONCLEX].map(|known| known as u32).contains(&number)
}

fn ioctl_by(fd: c_int, number: c_ulong, argument: *mut c_void, real: impl Fn() -> c_int) -> c_int {
    // The kernel looks at 32 bits.
    let number = number as u32;
    // The most frequent calls come first.
    if number == Request::MESSAGE_OF_ONE
        && let Some(ran) = direct::exchange(fd, argument.expose_provenance() as u64)
    {
        return told(ran);
    }
    if let Ok(Request::Message(transfers @ 1..)) = Request::decode(number)
        && let Some(ran) = direct::known_message(fd, transfers, argument.expose_provenance() as u64)
    {
        return told(ran);
    }
    // A descriptor that came from another process, or around the library, is recognised by its file's name.
    let letter = number >> 8 & 0xff;
    let ours = letter == u32::from(b'k') || GpioRequest::has_letter(number);
    let id = if ours { files::find(fd) } else { files::file(fd) };
    match id {
        None => real(),
        Some(_) if of_any_file(number) => real(),
        Some(id) if id.kind() != FileKind::Node => gpio::ioctl(id, number, argument, real),
        // It is always as if it were set: see `fcntl_by`.
        Some(_) if number == libc::FIONBIO as u32 => 0,
        Some(id) => told(node_ioctl(fd, id, number, argument.expose_provenance() as u64)),
    }
}

macro_rules! define_ioctl {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(fd: c_int, number: c_ulong, argument: *mut c_void) -> c_int {
            ioctl_by(fd, number, argument, || {
                call_real!(
                    $name(fd => c_int, number => c_ulong, argument => *mut c_void) -> c_int,
                    or -1
                )
            })
        }
    )*};
}
define_ioctl!(ioctl);
#[cfg(target_pointer_width = "32")]
define_ioctl!(__ioctl_time64);

fn node_read(id: OpenId, to: u64, len: usize) -> Result<isize, Errno> {
    if !id.readable() {
        return Err(Errno::BADF);
    }
    // The kernel looks at the length first, too.
    let bytes = u32::try_from(len).ok().filter(|bytes| *bytes <= config::bufsiz());
    let (head, _) = request(id, Call::Read(bytes.ok_or(Errno::MSGSIZE)?), &[]);
    let mut rx = Vec::with_capacity(len);
    ask(&head, &[], &mut rx)?;
    good::write(to, &rx)?;
    // At most `bufsiz`.
    Ok(isize::try_from(rx.len()).unwrap_or(isize::MAX))
}

fn node_write(id: OpenId, from: u64, len: usize) -> Result<isize, Errno> {
    if !id.writable() {
        return Err(Errno::BADF);
    }
    if len > config::bufsiz() as usize {
        return Err(Errno::MSGSIZE);
    }
    let mut tx = vec![0; len];
    good::read(from, &mut tx)?;
    let (head, _) = request(id, Call::Write, &[&tx]);
    let written = ask(&head, &[&tx], &mut Vec::new())?;
    Ok(isize::try_from(written).unwrap_or(isize::MAX))
}

fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn read(fd: c_int, to: *mut c_void, len: usize) -> isize {
    match files::file(fd) {
        Some(id) if id.kind() != FileKind::Node => told(gpio::read(id, fd, address(to), len)),
        Some(id) => told(node_read(id, address(to), len)),
        None => call_real!(read(fd => c_int, to => *mut c_void, len => usize) -> isize, or -1),
    }
}

#[unsafe(no_mangle)]
extern "C" fn __read_chk(fd: c_int, to: *mut c_void, len: usize, room: usize) -> isize {
    match files::file(fd) {
        Some(id) if len <= room && id.kind() != FileKind::Node => {
            told(gpio::read(id, fd, address(to), len))
        }
        Some(id) if len <= room => told(node_read(id, address(to), len)),
        // The C library ends a program that reads more than its buffer holds.
        _ => call_real!(
            __read_chk(fd => c_int, to => *mut c_void, len => usize, room => usize) -> isize,
            or -1
        ),
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn write(fd: c_int, from: *const c_void, len: usize) -> isize {
    match files::file(fd) {
        Some(id) if id.kind() != FileKind::Node => told(gpio::write(id)),
        Some(id) => told(node_write(id, address(from), len)),
        None => call_real!(write(fd => c_int, from => *const c_void, len => usize) -> isize, or -1),
    }
}

/// Each piece is a message of its own, as in the kernel. If a piece after the first fails, the call ends
/// and returns the bytes done so far.
fn by_piece(
    pieces: *const libc::iovec,
    count: c_int,
    each: impl Fn(u64, usize) -> Result<isize, Errno>,
) -> Result<isize, Errno> {
    const PIECES_MAX: c_int = 1024;
    if !(0..=PIECES_MAX).contains(&count) {
        return Err(Errno::INVAL);
    }
    let mut done = 0;
    for index in 0..count {
        let mut words = [0; size_of::<libc::iovec>()];
        let at = address(pieces) + u64::from(index.cast_unsigned()) * words.len() as u64;
        memory::read(at, &mut words)?;
        let (base, len) = words.split_at(size_of::<usize>());
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, usize::from_ne_bytes);
        match each(word(base) as u64, word(len)) {
            Ok(bytes) => done += bytes,
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => break,
        }
    }
    Ok(done)
}

#[unsafe(no_mangle)]
extern "C" fn readv(fd: c_int, pieces: *const libc::iovec, count: c_int) -> isize {
    match files::file(fd) {
        Some(id) if id.kind() != FileKind::Node => {
            told(by_piece(pieces, count, |to, len| gpio::read(id, fd, to, len)))
        }
        Some(id) => told(by_piece(pieces, count, |to, len| node_read(id, to, len))),
        None => {
            call_real!(readv(fd => c_int, pieces => *const libc::iovec, count => c_int) -> isize, or -1)
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn writev(fd: c_int, pieces: *const libc::iovec, count: c_int) -> isize {
    match files::file(fd) {
        Some(id) if id.kind() != FileKind::Node => told(gpio::write(id)),
        Some(id) => told(by_piece(pieces, count, |from, len| node_write(id, from, len))),
        None => {
            call_real!(writev(fd => c_int, pieces => *const libc::iovec, count => c_int) -> isize, or -1)
        }
    }
}
