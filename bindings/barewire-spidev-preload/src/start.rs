//! What happens when the library is loaded: it learns of its server, and reports to it.

use std::ffi::CString;
use std::os::fd::AsRawFd as _;
use std::sync::OnceLock;

use barewire_spidev_abi::BUFSIZ;
use barewire_spidev_abi::protocol::{Call, Head, OpenId, SERVER_VARIABLE, TREE_VARIABLE};
use rustix::fd::BorrowedFd;
use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use rustix::process::{Pid, getpid};

use crate::{files, paths, server};

/// Where server and tree are.
#[derive(Debug)]
pub(crate) struct Config {
    /// The server's abstract name.
    pub(crate) server: String,
    /// The directory that stands in for `/`.
    pub(crate) tree: String,
    /// The most bytes of a message, each way.
    bufsiz: u32,
}

static CONFIG: OnceLock<Option<Config>> = OnceLock::new();

/// What `barewire run` says in the environment; `None` for a program that it did not start.
pub(crate) fn config() -> Option<&'static Config> {
    let read = || {
        let [server, tree] = [SERVER_VARIABLE, TREE_VARIABLE].map(|name| std::env::var(name).ok());
        let (server, tree) = (server?, tree?);
        let file = CString::new(format!("{tree}/sys/module/spidev/parameters/bufsiz")).ok()?;
        let text = paths::text_of(&file);
        let bufsiz = text.and_then(|text| text.trim().parse().ok()).unwrap_or(BUFSIZ);
        Some(Config { server, tree, bufsiz })
    };
    CONFIG.get_or_init(read).as_ref()
}

/// The most bytes of a message, each way.
pub(crate) fn bufsiz() -> u32 {
    config().map_or(BUFSIZ, |config| config.bufsiz)
}

/// Run by the loader.
extern "C" fn start() {
    if config().is_none() {
        return;
    }
    files::own();
    // SAFETY: a function without arguments that touches one atomic.
    unsafe { libc::pthread_atfork(None, None, Some(files::own)) };
    let process = u32::try_from(Pid::as_raw(Some(getpid()))).unwrap_or_default();
    let head = Head { id: OpenId(0), call: Call::Hello(process), body: 0 };
    // A server that is gone is reported by the first call that needs it.
    let _ = server::ask(&head, &[], &mut Vec::new());
    adopt();
}

/// Finds the nodes that the process has open already, because it was made by `exec`.
fn adopt() {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(listing) = openat(CWD, c"/proc/self/fd", flags, Mode::empty()) else { return };
    let own = listing.as_raw_fd();
    let Ok(entries) = Dir::new(listing) else { return };
    for entry in entries.flatten() {
        let number = entry.file_name().to_str().ok().and_then(|name| name.parse().ok());
        let Some(fd) = number.filter(|fd| *fd != own) else { continue };
        // SAFETY: used for one call, which fails if it is closed meanwhile.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        if let Some(id) = files::of_socket(file) {
            let _ = files::set(fd, Some(id));
        }
    }
}

#[used]
// SAFETY: the loader calls what stands in this section, with arguments that `start` need not take.
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
