//! recvmsg and its kin: descriptors that come from another process may be open files of ours.

use core::ffi::{c_int, c_uint, c_void};

use crate::files;
use crate::real::call_real;

/// Asks the kernel about the descriptors that came with a message.
fn look_at(message: *const libc::msghdr) {
    // SAFETY: the caller's, which the call before has filled.
    let mut head = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !head.is_null() {
        // SAFETY: not null, so it is a whole one in the caller's room.
        let found = unsafe { head.read_unaligned() };
        if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            // SAFETY: as above.
            let data = unsafe { libc::CMSG_DATA(head) };
            let bytes = (found.cmsg_len as usize).saturating_sub(data.addr() - head.addr());
            for index in 0..bytes / size_of::<c_int>() {
                let place = data.cast::<c_int>().wrapping_add(index);
                // SAFETY: within the bytes that the kernel wrote.
                let fd = unsafe { place.read_unaligned() };
                files::find(fd);
            }
        }
        // SAFETY: as above.
        head = unsafe { libc::CMSG_NXTHDR(message, head) };
    }
}

#[unsafe(no_mangle)]
extern "C" fn recvmsg(socket: c_int, message: *mut libc::msghdr, flags: c_int) -> isize {
    let received = call_real!(
        recvmsg(socket => c_int, message => *mut libc::msghdr, flags => c_int) -> isize,
        or -1
    );
    if received >= 0 {
        look_at(message);
    }
    received
}

#[unsafe(no_mangle)]
extern "C" fn recvmmsg(
    socket: c_int,
    messages: *mut libc::mmsghdr,
    room: c_uint,
    flags: c_int,
    timeout: *mut c_void,
) -> c_int {
    let received = call_real!(
        recvmmsg(
            socket => c_int,
            messages => *mut libc::mmsghdr,
            room => c_uint,
            flags => c_int,
            timeout => *mut c_void
        ) -> c_int,
        or -1
    );
    for index in 0..usize::try_from(received).unwrap_or(0) {
        let message = messages.wrapping_add(index);
        // SAFETY: one of those that the call has filled.
        look_at(unsafe { &raw const (*message).msg_hdr });
    }
    received
}

#[unsafe(no_mangle)]
extern "C" fn pidfd_getfd(process: c_int, fd: c_int, flags: c_uint) -> c_int {
    let copy = call_real!(
        pidfd_getfd(process => c_int, fd => c_int, flags => c_uint) -> c_int,
        or -1
    );
    files::find(copy);
    copy
}
