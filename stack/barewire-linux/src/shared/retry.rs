//! Waits for the lock of a file, by retries, where the kernel's own wait could not be stopped.

use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

/// How long a waiter sleeps before it retries: at first, and at most.
const ASK_AGAIN: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];

/// Retries `take` until no other process has the lock. `begun` is when the waiting began.
pub(super) fn until_free(
    begun: &mut Option<Instant>,
    on_wait: &mut Option<impl FnMut(Duration) -> ControlFlow<()>>,
    mut take: impl FnMut() -> Result<(), Errno>,
) -> Result<(), Errno> {
    let [mut pause, longest] = ASK_AGAIN;
    loop {
        match take() {
            Err(Errno::AGAIN | Errno::ACCESS) => {}
            Err(Errno::INTR) => continue,
            done => return done,
        }
        let begun = *begun.get_or_insert_with(Instant::now);
        if let Some(tell) = on_wait {
            if tell(begun.elapsed()).is_break() {
                return Err(Errno::INTR);
            }
        }
        thread::sleep(pause);
        pause = (pause * 2).min(longest);
    }
}
