//! How a worker is to run, and making it so from inside the thread.

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::error::{Limit, Refused, WorkerError};
use super::priority::FifoPriority;
use crate::root::Root;
use crate::sys::schedule;

/// How a worker is to run. The default is as its spawner does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerOptions {
    /// SCHED_FIFO with this priority. A worker that never sleeps then has its processor to itself.
    pub scheduler: Option<FifoPriority>,
    /// The processors it may run on, by the kernel's numbers.
    pub affinity: Option<Vec<usize>>,
    /// Whether the *process's* memory, present and future, stays where it is (mlockall): a page
    /// fault in the midst of a message takes longer than most messages.
    pub lock_memory: bool,
    /// The thread's name; the kernel shows its first 15 bytes. May be empty.
    pub name: String,
}

impl WorkerOptions {
    /// What can be refused without a thread.
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

    /// Step 1 of the module, in the thread it is for.
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
