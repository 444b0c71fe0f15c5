//! The errors of a worker: what the system refused, by which rule, and how to get it.

use std::fmt;

use rustix::io::Errno;

use super::priority::FifoPriority;
use crate::root::Root;

/// Why a worker could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerError {
    /// The name contains a zero byte.
    Name {
        /// The name.
        name: String,
    },
    /// The list of processors is empty, or contains a number that is too high.
    Processors {
        /// The processors asked for.
        processors: Vec<usize>,
        /// The highest number of a set.
        max: usize,
    },
    /// The system cannot make another thread.
    Thread {
        /// The system's error.
        errno: Errno,
    },
    /// The thread was refused something.
    Refused(Refused),
}

/// What the system refused a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// Real-time priority.
    Fifo {
        /// The priority asked for.
        priority: FifoPriority,
        /// The system's error.
        errno: Errno,
        /// RLIMIT_RTPRIO.
        limit: Option<Limit>,
    },
    /// The processors.
    Affinity {
        /// The processors asked for.
        processors: Vec<usize>,
        /// The system's error.
        errno: Errno,
        /// The existing processors, as the kernel lists them.
        online: Option<String>,
    },
    /// Locking memory.
    LockMemory {
        /// The system's error.
        errno: Errno,
        /// RLIMIT_MEMLOCK, in bytes.
        limit: Option<Limit>,
    },
}

/// A resource limit of the process; `None` means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit in force.
    pub soft: Option<u64>,
    /// The limit to which it may be raised.
    pub hard: Option<u64>,
}

impl Limit {
    /// The limit that `/proc/self/limits` calls `name`.
    pub(super) fn of(root: &Root, name: &str) -> Option<Self> {
        Self::in_text(&root.text("/proc/self/limits").ok()?, name)
    }

    /// The same in the file's text.
    pub(crate) fn in_text(text: &str, name: &str) -> Option<Self> {
        let values = text.lines().find_map(|line| line.strip_prefix(name))?;
        let mut values = values.split_whitespace();
        let mut next = || match values.next()? {
            "unlimited" => Some(None),
            number => number.parse().ok().map(Some),
        };
        Some(Self { soft: next()?, hard: next()? })
    }

    fn allows(&self, value: u64) -> bool {
        self.soft.is_none_or(|soft| soft >= value)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: Option<u64>| value.map_or("unlimited".into(), |v| v.to_string());
        write!(f, "{} (at most {})", value(self.soft), value(self.hard))
    }
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name } => write!(f, "a thread's name has no zero byte: {name:?}"),
            Self::Processors { processors, .. } if processors.is_empty() => f.write_str(
                "a worker needs a processor to run on: name one, or leave the affinity out",
            ),
            Self::Processors { processors, max } => {
                write!(f, "processors are numbered 0 to {max}: {processors:?}")
            }
            Self::Thread { errno } => {
                write!(
                    f,
                    "no thread could be made: {errno} (`ulimit -u`, or the control group's pids.max)"
                )
            }
            Self::Refused(refused) => refused.fmt(f),
        }
    }
}

impl std::error::Error for WorkerError {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fifo { priority, errno: Errno::PERM, limit } => fifo(f, priority.get(), *limit),
            Self::Fifo { priority, errno, .. } => {
                write!(f, "real-time priority {} was refused: {errno}", priority.get())
            }
            Self::Affinity { processors, errno, online } => {
                write!(f, "processors {processors:?} were refused: {errno}")?;
                match online {
                    Some(online) => write!(f, "; there are {online}")?,
                    None => f.write_str("; `nproc --all` says how many there are")?,
                }
                f.write_str(", and a cpuset of the process's control group may leave it fewer")
            }
            Self::LockMemory { errno: Errno::PERM | Errno::NOMEM | Errno::AGAIN, limit } => {
                f.write_str(
                    "locking memory was refused: it needs CAP_IPC_LOCK, or a limit RLIMIT_MEMLOCK above what the process uses",
                )?;
                if let Some(limit) = limit {
                    write!(f, ", which is {limit} bytes")?;
                }
                f.write_str(": `LimitMEMLOCK=infinity` in its systemd unit, `USER - memlock unlimited` in /etc/security/limits.d/barewire.conf and a new login, or `setcap cap_ipc_lock+ep PROGRAM`")
            }
            Self::LockMemory { errno, .. } => write!(f, "locking memory was refused: {errno}"),
        }
    }
}

fn fifo(f: &mut fmt::Formatter<'_>, priority: u8, limit: Option<Limit>) -> fmt::Result {
    write!(
        f,
        "real-time priority {priority} was refused: it needs CAP_SYS_NICE, or a limit RLIMIT_RTPRIO of {priority}"
    )?;
    if let Some(limit) = limit {
        write!(f, ", which is {limit}")?;
        if limit.allows(priority.into()) {
            // The limit is not the cause.
            return f.write_str(
                ": the process's control group has no real-time budget (cpu.rt_runtime_us, where the kernel has CONFIG_RT_GROUP_SCHED)",
            );
        }
    }
    write!(
        f,
        ": `LimitRTPRIO={priority}` in its systemd unit, `USER - rtprio {priority}` in /etc/security/limits.d/barewire.conf and a new login, or `setcap cap_sys_nice+ep PROGRAM`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units
Max locked memory         8388608              unlimited            bytes
Max realtime priority     20                   95
";

    #[test]
    fn limits_are_read_as_the_kernel_writes_them() {
        let of = |name| Limit::in_text(LIMITS, name);
        assert_eq!(of("Max locked memory"), Some(Limit { soft: Some(8_388_608), hard: None }));
        assert_eq!(of("Max realtime priority"), Some(Limit { soft: Some(20), hard: Some(95) }));
        assert_eq!(of("Max file locks"), None);
        assert!(Limit::of(&Root::system(), "Max realtime priority").is_some(), "this kernel's");
    }

    #[test]
    fn a_refusal_names_the_right_its_value_and_the_remedy() {
        let priority = FifoPriority::new(50).expect("1 to 99");
        let limit = Some(Limit { soft: Some(20), hard: Some(95) });
        let text = |refused: Refused| WorkerError::Refused(refused).to_string();
        let fifo = text(Refused::Fifo { priority, errno: Errno::PERM, limit });
        for part in [
            "priority 50",
            "CAP_SYS_NICE",
            "RLIMIT_RTPRIO of 50, which is 20 (at most 95)",
            "LimitRTPRIO=50",
        ] {
            assert!(fifo.contains(part), "{part}: {fifo}");
        }
        let limit = Some(Limit { soft: None, hard: None });
        let budget = text(Refused::Fifo { priority, errno: Errno::PERM, limit });
        assert!(budget.contains("cpu.rt_runtime_us") && !budget.contains("setcap"), "{budget}");

        let limit = Some(Limit { soft: Some(65_536), hard: None });
        let lock = text(Refused::LockMemory { errno: Errno::NOMEM, limit });
        for part in ["CAP_IPC_LOCK", "65536 (at most unlimited) bytes", "LimitMEMLOCK=infinity"] {
            assert!(lock.contains(part), "{part}: {lock}");
        }
        let online = Some("0-1".to_owned());
        let cpus = text(Refused::Affinity { processors: vec![7], errno: Errno::INVAL, online });
        assert!(cpus.contains("[7]") && cpus.contains("there are 0-1"), "{cpus}");
    }
}
