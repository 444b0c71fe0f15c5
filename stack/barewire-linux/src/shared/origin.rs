//! Whose thread ids a lock has: the boot and the PID namespace of the processes that have its file
//! open, and their first user.
//!
//! The first opener of several writes it. Thread ids of another PID namespace name other threads here, or none. The
//! same holds for ids of another boot, for example of another machine that shares the file system.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;

/// The words that it takes in the file.
pub(super) const ORIGIN_WORDS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The number of the PID namespace.
    pub(super) namespace: u32,
    /// The kernel's random number of this boot.
    pub(super) boot: u128,
    /// The user's id.
    pub(super) user: u32,
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// A UUID's number.
fn uuid(text: &str) -> Option<u128> {
    u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
}

impl Origin {
    /// This process's.
    ///
    /// # Errors
    /// Without `/proc`, or with one that does not show this process.
    pub(super) fn here() -> Result<Self, Errno> {
        let namespace = fs::metadata("/proc/self/ns/pid").map_err(|error| errno(&error))?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let boot = uuid(&boot.map_err(|error| errno(&error))?).ok_or(Errno::INVAL)?;
        let user = rustix::process::geteuid().as_raw();
        // The kernel counts namespaces in 32 bits.
        Ok(Self { namespace: namespace.ino() as u32, boot, user })
    }

    /// Writes it. No other process has the file.
    pub(super) fn store(self, words: &[AtomicU32]) {
        let parts = [0, 32, 64, 96].map(|shift| (self.boot >> shift) as u32);
        let all = [self.namespace].into_iter().chain(parts).chain([self.user]);
        all.zip(words).for_each(|(part, word)| word.store(part, Ordering::Relaxed));
    }

    /// What [`Origin::store`] wrote.
    pub(super) fn load(words: &[AtomicU32]) -> Self {
        let part = |at: usize| words[at].load(Ordering::Relaxed);
        let boot = (1..5).rev().fold(0, |boot, at| boot << 32 | u128::from(part(at)));
        Self { namespace: part(0), boot, user: part(5) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_and_read_and_is_the_same_in_one_process() {
        let here = Origin::here().expect("there is a /proc");
        assert_eq!(Origin::here(), Ok(here));
        assert!(here.boot != 0 && here.namespace != 0, "{here:?}");
        let words: [AtomicU32; ORIGIN_WORDS] = std::array::from_fn(|_| AtomicU32::new(7));
        here.store(&words);
        assert_eq!(Origin::load(&words), here);
        for word in &words {
            word.fetch_add(1, Ordering::Relaxed);
            assert_ne!(Origin::load(&words), here);
            word.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_boots_number_is_a_uuid() {
        assert_eq!(uuid("00000000-0000-0000-0000-0000000000ff\n"), Some(255));
        assert_eq!(
            uuid("3e25960a-79db-a69b-674c-d4ec67a72c62"),
            Some(0x3e25_960a_79db_a69b_674c_d4ec_67a7_2c62)
        );
        assert_eq!(uuid("none"), None);
    }
}
