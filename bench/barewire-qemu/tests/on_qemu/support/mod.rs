//! What these tests share: a board or a loud skip, random bytes, and looks at processes.

use std::path::Path;
use std::time::{Duration, Instant};

use barewire_qemu::{BoardError, QemuBoard, QemuError, QemuOptions};

/// The flash chip's size, in bytes.
pub(crate) const SIZE: usize = 2 << 20;

/// The board, or `None` and a line that says what is skipped where QEMU is not there.
pub(crate) fn open(options: &QemuOptions) -> Option<QemuBoard> {
    open_board("sabrelite", options)
}

/// The same of the board called `name`.
pub(crate) fn open_board(name: &str, options: &QemuOptions) -> Option<QemuBoard> {
    match QemuBoard::open(name, options) {
        Ok(board) => Some(board),
        Err(BoardError::Qemu(error @ (QemuError::Missing { .. } | QemuError::TooOld { .. }))) => {
            println!("SKIPPED: {name}: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Options for a board on a flash file of the test's own.
pub(crate) fn on_file(path: &Path) -> QemuOptions {
    QemuOptions { flash: Some(path.to_owned()), ..QemuOptions::default() }
}

/// Numbers that are the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 24) as u8).collect()
    }
}

/// Whether the process exists, zombies included.
pub(crate) fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Whether the process is gone before `timeout`. A zombie counts as gone: its parent may be the
/// first process of a test environment, which may reap it late.
pub(crate) fn ends(pid: u32, timeout: Duration) -> bool {
    let begun = Instant::now();
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.starts_with('Z'));
        if state.unwrap_or(true) {
            return true;
        }
        if begun.elapsed() > timeout {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal by the shell.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = std::process::Command::new("sh")
        .args(["-c", "kill -\"$1\" \"$2\"", "sh", name, &pid.to_string()])
        .status();
    assert!(status.expect("a shell").success(), "kill -{name} {pid}");
}
