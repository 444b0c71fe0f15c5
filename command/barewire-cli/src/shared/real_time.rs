//! `--fifo`, `--cpu`, `--mlock`: a command whose times must not depend on what else the machine does.
//!
//! With any of them `/dev/cpu_dma_latency` is held at 0 while the command runs, which keeps processors out
//! of idle states that take long to leave (the kernel's `Documentation/power/pm_qos_interface.rst`).

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::OnceLock;

use barewire_linux::worker::{FifoPriority, WorkerOptions};

use super::failure::Failure;
use super::output::note;

const LATENCY: &str = "/dev/cpu_dma_latency";

#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct RealTimeArgs {
    /// Run with this real-time priority (SCHED_FIFO, 1 to 99; interrupt threads of a real-time kernel have
    /// 50)
    #[arg(long, value_name = "PRIORITY", value_parser = priority)]
    fifo: Option<FifoPriority>,
    /// Run on this processor alone
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Lock the process's memory, so that no page fault delays a message
    #[arg(long)]
    mlock: bool,
}

fn priority(text: &str) -> Result<FifoPriority, String> {
    let priority = text.parse().ok().and_then(FifoPriority::new);
    priority.ok_or_else(|| "a priority of SCHED_FIFO is 1 to 99".into())
}

/// The request for short wake-ups ends when this file is closed: at the end of the process.
static HELD: OnceLock<File> = OnceLock::new();

impl RealTimeArgs {
    /// Whether any of them was given.
    pub(crate) fn is_asked(&self) -> bool {
        self.fifo.is_some() || self.cpu.is_some() || self.mlock
    }

    /// Applies them to this thread and those that it starts.
    pub(crate) fn apply(&self) -> Result<(), Failure> {
        if !self.is_asked() {
            return Ok(());
        }
        let Self { fifo, cpu, mlock } = self;
        let options = WorkerOptions {
            scheduler: *fifo,
            affinity: cpu.map(|cpu| vec![cpu]),
            lock_memory: *mlock,
            name: String::new(),
        };
        options.apply_here().map_err(|error| Failure::Failed(error.to_string()))?;
        hold_latency();
        Ok(())
    }
}

/// Asks for wake-ups without delay. Without the right to it the command runs all the same.
fn hold_latency() {
    if HELD.get().is_some() {
        return;
    }
    let held = OpenOptions::new().write(true).open(LATENCY).and_then(|mut file| {
        file.write_all(&0_i32.to_ne_bytes())?;
        Ok(file)
    });
    match held {
        Ok(file) => drop(HELD.set(file)),
        Err(error) => {
            note!(
                "barewire: {LATENCY} cannot be held ({error}): a processor that slept may wake late"
            );
        }
    }
}
