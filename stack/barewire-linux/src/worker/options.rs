//! How a worker runs, and applying that from inside the thread.

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::error::{Limit, Refused, WorkerError};
use super::priority::FifoPriority;
use crate::root::Root;
use crate::sys::schedule;

/// How a worker runs. By default as its spawner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerOptions {
    /// SCHED_FIFO with this priority. If the worker never sleeps, nothing else runs on its
    /// processor.
    pub scheduler: Option<FifoPriority>,
    /// The processors it may run on, by the kernel's numbers.
    pub affinity: Option<Vec<usize>>,
    /// Whether to lock the *process's* memory, present and future (mlockall): a page fault within a
    /// message takes longer than most messages.
    pub lock_memory: bool,
    /// The thread's name; the kernel shows its first 15 bytes. May be empty.
    pub name: String,
}

impl WorkerOptions {
    /// Checks what can be refused without a thread.
    pub(super) fn check(&self) -> Result<(), WorkerError> {
        if self.name.contains('\0') {
            return Err(WorkerError::Name { name: self.name.clone() });
        }
        let known = |&processor: &usize| processor < CpuSet::MAX_CPU;
        match &self.affinity {
            Some(processors) if processors.is_empty() || !processors.iter().all(known) => {
                let processors = processors.clone();
                Err(WorkerError::Processors { processors, max: CpuSet::MAX_CPU - 1 })
            }
            _ => Ok(()),
        }
    }

    /// Applies them to the calling thread, and to those that it starts afterwards; the name is not used.
    ///
    /// # Errors
    /// [`WorkerError::Processors`], [`WorkerError::Refused`].
    pub fn apply_here(&self) -> Result<(), WorkerError> {
        self.check()?;
        self.apply().map_err(WorkerError::Refused)
    }

    /// Step 1 of the module, in the new thread.
    pub(super) fn apply(&self) -> Result<(), Refused> {
        let root = Root::system();
        if self.lock_memory {
            mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|errno| {
                Refused::LockMemory { errno, limit: Limit::of(&root, "Max locked memory") }
            })?;
        }
        if let Some(processors) = &self.affinity {
            let mut set = CpuSet::new();
            processors.iter().for_each(|&processor| set.set(processor));
            sched_setaffinity(None, &set).map_err(|errno| Refused::Affinity {
                processors: processors.clone(),
                errno,
                online: root.text("/sys/devices/system/cpu/online").ok(),
            })?;
        }
        if let Some(priority) = self.scheduler {
            schedule::set_fifo(priority.get()).map_err(|errno| Refused::Fifo {
                priority,
                errno,
                limit: Limit::of(&root, "Max realtime priority"),
            })?;
        }
        Ok(())
    }
}
