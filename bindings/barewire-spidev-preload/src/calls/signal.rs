//! sigaction and similar calls, which install handlers: each is noted and passed on.

use core::ffi::c_int;

use crate::real::call_real;
use crate::{direct, handlers};

/// Remembers that a handler is installed, if it is one.
fn note(signal: c_int, handler: libc::sighandler_t, flags: c_int) {
    let is_handler = !matches!(handler, libc::SIG_DFL | libc::SIG_IGN);
    if is_handler && handlers::note(signal, flags) {
        direct::wait_for_messages();
    }
}

macro_rules! define_sigaction {
    ($($name:ident),*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            signal: c_int,
            new: *const libc::sigaction,
            old: *mut libc::sigaction,
        ) -> c_int {
            // SAFETY: null, or the caller's, by the contract of that function.
            if let Some(new) = unsafe { new.as_ref() } {
                note(signal, new.sa_sigaction, new.sa_flags);
            }
            call_real!(
                $name(
                    signal => c_int,
                    new => *const libc::sigaction,
                    old => *mut libc::sigaction
                ) -> c_int,
                or -1
            )
        }
    )*};
}
define_sigaction!(sigaction, __sigaction);

macro_rules! define_signal {
    ($($name:ident: $flags:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
            note(signal, handler, $flags);
            call_real!(
                $name(signal => c_int, handler => libc::sighandler_t) -> libc::sighandler_t,
                or libc::SIG_ERR
            )
        }
    )*};
}
// System V's do not block their own signal.
define_signal! {
    signal: 0;
    bsd_signal: 0;
    ssignal: 0;
    sysv_signal: libc::SA_NODEFER;
    __sysv_signal: libc::SA_NODEFER;
    sigset: 0;
}
