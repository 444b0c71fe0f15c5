//! What the library says on stderr.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Says, once, that the server is gone; `perhaps` if it may only be out of reach: its socket
/// belongs to a network namespace.
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
