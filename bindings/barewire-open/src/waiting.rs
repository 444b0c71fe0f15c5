//! Waits for another process that has a bus or a chip: names that process once, and decides how the wait ends.
//!
//! How it works: the lock calls back every 100 ms. After a second its holder is named. While a bus is opened, the opener
//! is told; while messages run, the program's [`Console`].

use std::fmt;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use barewire_linux::shared::{ChipLock, Holder, SharedLock};

/// How long another process may have a lock before the user is told.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// The user of a program whose bus is open. Called with the reason why a message waits; it may end
/// the wait.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Prints a line for people.
    pub tell: fn(&str),
    /// Whether to go on waiting.
    pub flow: fn() -> ControlFlow<()>,
}

impl Console {
    /// Makes a chip's `lock` say once that another process has it, if acquiring it takes long.
    pub fn attend(self, lock: ChipLock) -> ChipLock {
        let path = lock.path().display().to_string();
        let mut told = Once(false);
        lock.on_wait(move |waited| {
            let who = || format!("another process that uses the chip (lock {path})");
            told.tell(waited, who, &mut |text| (self.tell)(text));
            (self.flow)()
        })
    }

    /// Makes the bus's `lock` name its holder once, if acquiring it takes long. `stopped` is set while the last wait
    /// was ended by the user.
    pub(crate) fn attend_bus(self, lock: SharedLock, stopped: Arc<AtomicBool>) -> SharedLock {
        let path = lock.path().to_owned();
        let mut told = Once(false);
        lock.on_wait(move |holder| {
            told.tell_of(holder.waited, holder.thread, &path, &mut |text| (self.tell)(text));
            let flow = (self.flow)();
            stopped.store(flow.is_break(), Ordering::Relaxed);
            flow
        })
    }
}

/// Returns the callback of a wait while a bus is being opened. It names the lock's holder once, and asks `console`
/// whether to go on.
pub(crate) fn while_opening(
    path: &Path,
    console: Option<Console>,
    tell: &mut dyn FnMut(&str),
) -> impl FnMut(Holder) -> ControlFlow<()> {
    let mut told = Once(false);
    move |holder| {
        told.tell_of(holder.waited, holder.thread, path, tell);
        console.map_or(ControlFlow::Continue(()), |console| (console.flow)())
    }
}

/// Says one thing, once.
struct Once(bool);

impl Once {
    fn tell(&mut self, waited: Duration, who: impl FnOnce() -> String, tell: &mut dyn FnMut(&str)) {
        if waited >= TELL_AFTER && !self.0 {
            self.0 = true;
            tell(&format!("waiting for {}", who()));
        }
    }

    fn tell_of(&mut self, waited: Duration, thread: u32, path: &Path, tell: &mut dyn FnMut(&str)) {
        let who = || {
            let (who, path) = (who(thread), path.display());
            format!("{who}, which is in a message on this bus (lock {path})")
        };
        self.tell(waited, who, tell);
    }
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
    fn a_holder_is_told_once_after_a_second() {
        let (mut told, mut once) = (Vec::new(), Once(false));
        for ms in [100, 900, 1_000, 5_000] {
            let (waited, path) = (Duration::from_millis(ms), Path::new("/run/lock/x"));
            once.tell_of(waited, 0, path, &mut |text| told.push((ms, text.to_owned())));
        }
        let text =
            "waiting for another process, which is in a message on this bus (lock /run/lock/x)";
        assert_eq!(told, [(1_000, text.to_owned())]);
    }

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
