//! Waiting for another process's lock: says for whom, and ends with Ctrl-C.

use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use barewire_linux::shared::{ChipLock, Holder, SharedLock};

use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output::note;

/// How long another process may have a lock before the user is told.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// Makes `lock` report its holder, once, if acquiring it takes long.
pub(super) fn patient(lock: SharedLock) -> SharedLock {
    let path = lock.path().display().to_string();
    let mut once = Once { told: false };
    lock.on_wait(move |Holder { waited, thread, .. }| {
        once.tell(waited, || {
            format!("{}, which is in a message on this bus (lock {path})", who(thread))
        });
        let flow = interrupt::flow();
        BROKEN_OFF.store(flow.is_break(), Ordering::Relaxed);
        flow
    })
}

/// A chip's `lock`, which says once that another process has it if that takes long, unless `silent`.
pub(super) fn patient_chip(lock: ChipLock, silent: bool) -> ChipLock {
    let path = lock.path().display().to_string();
    let mut once = Once { told: silent };
    lock.on_wait(move |waited| {
        once.tell(waited, || format!("another process that uses the chip (lock {path})"));
        interrupt::flow()
    })
}

/// Says one thing, once.
struct Once {
    told: bool,
}

impl Once {
    fn tell(&mut self, waited: Duration, what: impl FnOnce() -> String) {
        if waited >= TELL_AFTER && !self.told {
            self.told = true;
            note!("waiting for {}", what());
        }
    }
}

static BROKEN_OFF: AtomicBool = AtomicBool::new(false);

/// Why a command failed whose waiting was broken off, else `None`.
pub(super) fn broken_off() -> Option<Failure> {
    let why = || Failure::Interrupted("stopped as asked, while another process had the bus".into());
    BROKEN_OFF.load(Ordering::Relaxed).then(why)
}

/// A thread by its process, what that runs, and whether it is stopped; with the remedy.
fn who(thread: u32) -> impl fmt::Display {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    described(thread, &status)
}

fn described(thread: u32, status: &str) -> String {
    let field = |name: &str| {
        let value =
            |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned());
        status.lines().find_map(value)
    };
    let (Some(name), Some(process)) = (field("Name"), field("Tgid")) else {
        return match thread {
            0 => "another process".to_owned(),
            _ => format!("another process (thread {thread}, which /proc does not show)"),
        };
    };
    let state = field("State").unwrap_or_default();
    match state.chars().next() {
        Some('T' | 't') => {
            format!("process {process} ({name}), stopped: `kill -CONT {process}` lets it go on")
        }
        _ => format!("process {process} ({name})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_named_with_what_keeps_it() {
        let stopped = "Name:\tbarewire\nUmask:\t0022\nState:\tT (stopped)\nTgid:\t71\nPid:\t72\n";
        let text = described(72, stopped);
        assert_eq!(text, "process 71 (barewire), stopped: `kill -CONT 71` lets it go on");
        let runs = stopped.replace("T (stopped)", "R (running)");
        assert_eq!(described(72, &runs), "process 71 (barewire)");
        assert!(described(72, "").contains("thread 72"));
        assert_eq!(described(0, ""), "another process");
    }
}
