//! A controller's registers mapped into this process: checked before they are touched, and watched.
//!
//! How it works: [`open`] maps the registers, reads one of each block in a child process, and starts a
//! [`Guard`]. The guard's thread checks every 100 ms whether a kernel driver took the controller back. So
//! at most 100 ms of messages go over the wire beside that driver.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use barewire_linux::Root;
use barewire_linux::map::{MapSpec, Mapped, Watch};

use crate::{OpenError, first_read};

/// The thread that checks whether the controller is still this process's. Dropping it ends the thread.
#[derive(Debug)]
pub struct Guard {
    watch: Watch,
    stop: Arc<AtomicBool>,
    /// What it has seen.
    taken: Arc<OnceLock<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Guard {
    fn start(watch: Watch) -> Result<Self, OpenError> {
        let (stop, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(OnceLock::new()));
        let (looking, stopped, seen) = (watch.clone(), Arc::clone(&stop), Arc::clone(&taken));
        let look = move || {
            while !stopped.load(Ordering::Relaxed) {
                if let Err(error) = looking.still_ours() {
                    let _ = seen.set(error.to_string());
                    return;
                }
                thread::park_timeout(Watch::INTERVAL);
            }
        };
        let thread = thread::Builder::new().name("still-ours".into()).spawn(look);
        let thread = thread.map_err(|error| OpenError::io("start a thread", &error))?;
        Ok(Self { watch, stop, taken, thread: Some(thread) })
    }

    /// Who took the controller, as seen now or before.
    #[must_use]
    pub fn taken(&self) -> Option<String> {
        let now = || self.watch.still_ours().err().map(|error| error.to_string());
        self.taken.get().cloned().or_else(now)
    }

    /// Ends the thread; returns who took the controller, if anything did by now.
    pub fn end(&mut self) -> Option<String> {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It does not panic; if it did, the last look is what counts.
            let _ = thread.join();
        }
        let last = || self.watch.final_check().err().map(|error| error.to_string());
        self.taken().or_else(last)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Maps the controller as asked and checks it. No register is written. `tell` gets warnings for people.
///
/// # Errors
/// What [`Mapped::open`] refuses; a register that does not answer.
pub fn open(spec: &MapSpec, tell: &mut dyn FnMut(&str)) -> Result<(Mapped, Guard), OpenError> {
    let mut mapped = Mapped::open(&Root::system(), spec).map_err(OpenError::failed)?;
    first_read(mapped.first_reads())?;
    // Before a register is written: a block without its clock hangs the machine, one without its
    // pins is not heard.
    for warning in mapped.warnings() {
        tell(&format!("barewire: warning: {warning}"));
    }
    let guard = Guard::start(mapped.watch())?;
    Ok((mapped, guard))
}

/// Which of its chip selects are active high.
#[must_use]
pub fn active_high(spec: &MapSpec) -> [bool; 4] {
    let pins = spec.chip_selects.each_ref().map(Option::as_ref);
    pins.map(|pin| pin.is_some_and(|pin| pin.active_high))
}
