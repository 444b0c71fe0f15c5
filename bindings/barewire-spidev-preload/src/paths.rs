//! Decides which paths are about mapped nodes, and which files are used in their place.
//!
//! # How it works
//! A path below `/dev` or `/sys`, or `/proc/cpuinfo`, that exists in the [tree](barewire_spidev_abi::tree) is taken from
//! there. A directory that exists in both is the system's own: its listing gets the tree's entries added. A link
//! elsewhere that leads to a node is found when the system's own call has failed.
//!
//! A device tree in the tree replaces the machine's as a whole: a program that reads one board's `model` and another
//! board's `soc` would take itself to be on neither.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::OnceLock;

use barewire_spidev_abi::NodeName;
use barewire_spidev_abi::gpio::ChipName;
use rustix::fs::{AtFlags, CWD, FileType, readlinkat, statat};

use crate::config::config;

/// The paths of the device tree. The first is a link to the second.
const DEVICE_TREES: [&str; 2] = ["proc/device-tree", "sys/firmware/devicetree/base"];

/// How many links lead to a node at most.
const LINKS_MAX: usize = 8;

/// The file used in a path's place.
#[derive(Debug)]
pub(crate) enum Substitute {
    /// A node, and the file that stands for it in the tree.
    Node(NodeName, CString),
    /// A GPIO chip, and the file that stands for it.
    Chip(ChipName, CString),
    /// Another file or directory of the tree.
    File(CString),
}

impl Substitute {
    /// The path in the tree.
    pub(crate) fn path(&self) -> &CStr {
        match self {
            Self::Node(_, path) | Self::Chip(_, path) | Self::File(path) => path,
        }
    }
}

/// The file used in the place of `path`, relative to `directory`; `None` for the path itself.
pub(crate) fn instead(directory: i32, path: &CStr) -> Option<Substitute> {
    let config = config()?;
    let absolute = absolute(directory, path)?;
    let plain = plain(&absolute)?;
    if is_in_device_tree(&plain) {
        // Also if the tree does not have it: then it does not exist.
        return is_board_told()
            .then(|| path_in_tree(&config.tree, &absolute).map(Substitute::File))?;
    }
    if !["dev/", "sys/"].iter().any(|root| plain.starts_with(root)) && plain != "proc/cpuinfo" {
        return None;
    }
    let (in_tree, kind) = in_tree(&config.tree, &absolute)?;
    match kind {
        FileType::Directory if exists(&absolute) => None,
        FileType::RegularFile => {
            let path = format!("/{plain}");
            Some(match (NodeName::parse(&path), ChipName::parse(&path)) {
                (Some(node), _) => Substitute::Node(node, in_tree),
                (None, Some(chip)) => Substitute::Chip(chip, in_tree),
                (None, None) => Substitute::File(in_tree),
            })
        }
        _ => Some(Substitute::File(in_tree)),
    }
}

/// As [`instead`], for a path whose own file could not be had: a link to a node.
pub(crate) fn behind_link(directory: i32, path: &CStr) -> Option<Substitute> {
    config()?;
    let mut at = CString::new(absolute(directory, path)?).ok()?;
    for _ in 0..LINKS_MAX {
        let target = readlinkat(CWD, &at, Vec::new()).ok()?;
        let base = Path::new(std::ffi::OsStr::from_bytes(at.as_bytes())).parent()?;
        let next = base.join(std::ffi::OsStr::from_bytes(target.as_bytes()));
        at = CString::new(next.as_os_str().as_bytes()).ok()?;
        if let Some(instead) = instead(libc::AT_FDCWD, &at) {
            return Some(instead);
        }
    }
    None
}

/// The directory of the tree whose entries are added to a listing of `path`.
pub(crate) fn listed_too(path: &Path) -> Option<CString> {
    let config = config()?;
    let text = path.to_str()?;
    let plain = plain(text)?;
    if !matches!(plain.split('/').next(), Some("dev" | "sys")) && plain != "proc" {
        return None;
    }
    let (in_tree, kind) = in_tree(&config.tree, text)?;
    (kind == FileType::Directory).then_some(in_tree)
}

/// A path in the tree as the program knows it.
pub(crate) fn outside(path: &[u8]) -> &[u8] {
    let inside = config().and_then(|config| path.strip_prefix(config.tree.as_bytes()));
    inside.filter(|rest| rest.starts_with(b"/")).unwrap_or(path)
}

/// A relative path as the program means it if its working directory is one of the tree.
pub(crate) fn from_inside(path: &CStr) -> Option<CString> {
    let text = path.to_str().ok().filter(|text| !text.is_empty() && !text.starts_with('/'))?;
    let base = rustix::process::getcwd(Vec::new()).ok()?;
    let outside = outside(base.as_bytes());
    if outside.len() == base.as_bytes().len() {
        return None;
    }
    // The system may not have the directories that it climbs through.
    let path = plain(&format!("{}/{text}", str::from_utf8(outside).ok()?))?;
    CString::new(format!("/{path}")).ok()
}

/// The path of an open directory.
pub(crate) fn of_descriptor(fd: i32) -> Option<String> {
    let link = CString::new(format!("/proc/self/fd/{fd}")).ok()?;
    readlinkat(CWD, &link, Vec::new()).ok()?.into_string().ok()
}

pub(crate) fn absolute(directory: i32, path: &CStr) -> Option<String> {
    let path = path.to_str().ok()?;
    if path.starts_with('/') {
        return Some(path.into());
    }
    let base = match directory {
        libc::AT_FDCWD => rustix::process::getcwd(Vec::new()).ok()?.into_string().ok()?,
        _ if path.is_empty() => return None,
        fd => of_descriptor(fd)?,
    };
    let outside = std::str::from_utf8(outside(base.as_bytes())).ok()?;
    Some(format!("{}/{path}", outside.trim_end_matches('/')))
}

/// A path's components without a first slash, `.` and `..`; `None` if it climbs out of the root, or leads
/// through a link and back, which only the kernel can follow.
pub(crate) fn plain(absolute: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in absolute.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn is_in_device_tree(plain: &str) -> bool {
    let below = |root: &&str| {
        plain.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    DEVICE_TREES.iter().any(below)
}

/// Whether programs are told which board is mapped: the tree has a device tree.
pub(crate) fn is_board_told() -> bool {
    static TOLD: OnceLock<bool> = OnceLock::new();
    *TOLD.get_or_init(|| tree_has(DEVICE_TREES[1]))
}

fn path_in_tree(tree: &str, absolute: &str) -> Option<CString> {
    CString::new(format!("{tree}/{}", absolute.trim_start_matches('/'))).ok()
}

fn in_tree(tree: &str, absolute: &str) -> Option<(CString, FileType)> {
    let path = path_in_tree(tree, absolute)?;
    let found = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    // A link is followed where it leads to a directory that the system has too.
    let kind = FileType::from_raw_mode(found.st_mode);
    Some((path, kind))
}

/// Whether the tree has that path.
pub(crate) fn tree_has(path: &str) -> bool {
    config().is_some_and(|config| in_tree(&config.tree, path).is_some())
}

fn exists(absolute: &str) -> bool {
    statat(CWD, absolute, AtFlags::empty()).is_ok()
}
