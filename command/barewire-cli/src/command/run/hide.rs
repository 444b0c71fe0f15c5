//! Hides the kernel's nodes of the mapped names from the program.
//!
//! # How it works
//! In a mount namespace of its own, a socket is mounted over each node: opening it fails with `ENXIO`,
//! even by system calls that bypass the library. Everyone else sees the nodes as before. That needs
//! `CAP_SYS_ADMIN`; without it, a name that exists is refused.
#![allow(unsafe_code, reason = "unshare")]

use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::shared::failure::Failure;

/// Hides those of the nodes at `paths` that exist. `dir` is for the socket that is mounted over them.
pub(super) fn hide(paths: &[String], dir: &Path) -> Result<(), Failure> {
    let there: Vec<&String> = paths.iter().filter(|path| Path::new(path).exists()).collect();
    let Some(first) = there.first() else { return Ok(()) };
    let failed = |errno: rustix::io::Errno| {
        Failure::Failed(format!(
            "{first} exists, and cannot be hidden from the program ({errno}): a call that goes around the \
             library would reach the real chip; run as root, or map a name that does not exist"
        ))
    };
    // SAFETY: this thread gets mounts of its own; nothing relies on sharing them.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(failed)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(failed)?;
    let cover = dir.join("hidden");
    // Dropping it leaves the socket's file, on which no server listens then.
    UnixListener::bind(&cover).map_err(|error| Failure::io("make a socket", &error))?;
    there.iter().try_for_each(|path| mount_bind(&cover, path.as_str())).map_err(failed)
}
