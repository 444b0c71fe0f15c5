//! The rights of this process: user, groups, capabilities, limits, and access to nodes.

use rustix::fs::{Access as Wanted, access};

use crate::rights::Group;
use crate::root::Root;
use crate::worker::Limit;

/// The rights that a process needs beyond its user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// `/dev/mem`: CAP_SYS_RAWIO.
    SysRawio,
    /// Real-time priorities without a limit: CAP_SYS_NICE.
    SysNice,
    /// Locked memory without a limit: CAP_IPC_LOCK.
    IpcLock,
}

impl Capability {
    /// Its bit in `CapEff` (`include/uapi/linux/capability.h`).
    fn bit(self) -> u32 {
        match self {
            Self::IpcLock => 14,
            Self::SysRawio => 17,
            Self::SysNice => 23,
        }
    }
}

/// Access to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The node.
    pub path: String,
    /// Whether this process may read and write it.
    pub allowed: bool,
    /// The group that it belongs to.
    pub group: Option<Group>,
}

impl Access {
    /// To the node at `path`; `None` if it does not exist.
    #[must_use]
    pub fn of(root: &Root, path: &str) -> Option<Self> {
        let real = root.path(path);
        if !real.exists() {
            return None;
        }
        let allowed = access(&real, Wanted::READ_OK | Wanted::WRITE_OK).is_ok();
        Some(Self { path: path.to_owned(), allowed, group: Group::of(root, &real) })
    }
}

/// The rights of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Its effective user.
    pub uid: u32,
    capabilities: u64,
    /// The highest real-time priority that it may take; 0 means none.
    pub rtprio: u64,
    /// Bytes that it may lock in memory.
    pub memlock: u64,
    /// `/dev/mem`, if the kernel has it.
    pub mem: Option<Access>,
}

impl Rights {
    pub(super) fn of(root: &Root) -> Self {
        let status = root.text("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim()
        };
        // Real, effective, saved and filesystem user.
        let uid = field("Uid:").split_whitespace().nth(1).and_then(|uid| uid.parse().ok());
        let limits = root.text("/proc/self/limits").unwrap_or_default();
        Self {
            uid: uid.unwrap_or(u32::MAX),
            capabilities: u64::from_str_radix(field("CapEff:"), 16).unwrap_or(0),
            rtprio: soft_limit(&limits, "Max realtime priority"),
            memlock: soft_limit(&limits, "Max locked memory"),
            mem: Access::of(root, "/dev/mem"),
        }
    }

    /// Whether it has `capability`.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities >> capability.bit() & 1 != 0
    }

    /// Whether it is root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// The soft limit of that name; `u64::MAX` is no limit.
fn soft_limit(limits: &str, name: &str) -> u64 {
    Limit::in_text(limits, name).map_or(0, |limit| limit.soft.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_by_name() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         8388608              8388608              bytes\nMax realtime priority     0                    0\nMax file locks            unlimited            unlimited            locks\n";
        assert_eq!(soft_limit(limits, "Max locked memory"), 8_388_608);
        assert_eq!(soft_limit(limits, "Max realtime priority"), 0);
        assert_eq!(soft_limit(limits, "Max file locks"), u64::MAX);
        assert_eq!(soft_limit("", "Max file locks"), 0);
    }
}
