//! The configuration that `barewire run` gives the library, in the environment and in the tree.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use barewire_spidev_abi::BUFSIZ;
use barewire_spidev_abi::protocol::{SERVER_VARIABLE, TREE_VARIABLE};
use rustix::fs::{CWD, Mode, OFlags, openat};

/// The places of the server and of the tree.
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

/// The configuration from the environment; `None` for a program that `barewire run` did not start.
pub(crate) fn config() -> Option<&'static Config> {
    let read = || {
        let [server, tree] = [SERVER_VARIABLE, TREE_VARIABLE].map(|name| std::env::var(name).ok());
        let (server, tree) = (server?, tree?);
        let file = CString::new(format!("{tree}/sys/module/spidev/parameters/bufsiz")).ok()?;
        let text = text_of(&file);
        let bufsiz = text.and_then(|text| text.trim().parse().ok()).unwrap_or(BUFSIZ);
        Some(Config { server, tree, bufsiz })
    };
    CONFIG.get_or_init(read).as_ref()
}

/// The most bytes of a message, each way.
pub(crate) fn bufsiz() -> u32 {
    config().map_or(BUFSIZ, |config| config.bufsiz)
}

/// The text of a small file of the tree. By system calls alone: the standard library's would be this
/// library's own functions again.
pub(crate) fn text_of(path: &CStr) -> Option<String> {
    const ROOM: usize = 64;
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut room = [0_u8; ROOM];
    let bytes = rustix::io::read(&file, &mut room[..]).ok()?;
    str::from_utf8(&room[..bytes]).ok().map(str::to_owned)
}
