//! The path of a Linux version, composed: what its SPI core and the drivers of its controllers do.
//!
//! *Read first*: docs/lab.md, *An experiment of your own*, which has the same table with the changes by title.
//!
//! | from | |
//! |---|---|
//! | 3.14 | messages go through a queue, whose pump is a thread that the caller waits for; no statistics |
//! | 4.0 | the pump runs in the caller, and is woken after each message to find nothing |
//! | 4.1 | spi-bcm2835 polls what takes less than 30 us |
//! | 4.2 | statistics, each update under a lock |
//! | 4.13 | spi-imx moves words of 32 bits; before, each byte is a word |
//! | 5.5 | time stamps of transfers, and delays around chip select |
//! | 5.19 | spi-imx polls what takes less than 30 us |
//! | 6.0 | statistics per CPU; on an idle bus a message bypasses the queue |
//! | 6.9 | a client in the kernel may prepare its messages: spi_optimize_message |

use crate::kernel::{Core, Path, Statistics, Waiting};

/// A version: major and minor.
pub(crate) type Version = (u32, u32);

/// The oldest and the newest that the lab knows.
pub(crate) const OLDEST: Version = (3, 14);
/// The newest.
pub(crate) const NEWEST: Version = (6, 12);
/// What spi.c waits at a cs_change where the message does not say.
pub(crate) const CS_CHANGE_DELAY_NS: u64 = 10_000;
/// What takes as long or longer is not polled.
pub(crate) const POLL_LIMIT_NS: u64 = 30_000;

/// Reads `6.1`, or the first two numbers of `6.1.55` and `6.1.0-rc2`.
pub(crate) fn version(text: &str) -> Option<Version> {
    let mut numbers = text.split(['.', '-']).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The path of a message through `version`.
pub(crate) fn path(version: Version, waiting: Waiting, is_optimized: bool) -> Path {
    let (core, statistics) = if version < (4, 0) {
        (Core::Thread, Statistics::None)
    } else if version < (4, 2) {
        (Core::Queue, Statistics::None)
    } else if version < (6, 0) {
        (Core::Queue, Statistics::Locked)
    } else {
        (Core::Direct, Statistics::PerCpu)
    };
    let (major, minor) = version;
    Path {
        name: format!("linux-{major}.{minor}"),
        title: format!("Linux {major}.{minor}"),
        statistics,
        core,
        waiting,
        cs_change_delay_ns: CS_CHANGE_DELAY_NS,
        is_optimized: is_optimized && has_optimized(version),
    }
}

/// Whether a client can prepare messages.
pub(crate) fn has_optimized(version: Version) -> bool {
    version >= (6, 9)
}

/// Whether spi-imx moves words of a byte.
pub(crate) fn imx_moves_bytes(version: Version) -> bool {
    version < (4, 13)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_and_has_its_path() {
        assert_eq!(
            ["6.12", "6.1.55", "5.19-rc2"].map(version),
            [Some((6, 12)), Some((6, 1)), Some((5, 19))]
        );
        assert_eq!(["", "6", "six.one", "6."].map(version), [None; 4]);
        let of = |text: &str| path(version(text).expect("a version"), Waiting::Polling, true);
        let all = ["3.14", "4.1", "4.4", "5.18", "5.19", "6.0", "6.1", "6.12"].map(of);
        let cores = all.each_ref().map(|path| path.core);
        let [thread, queue, direct] = [Core::Thread, Core::Queue, Core::Direct];
        assert_eq!(cores, [thread, queue, queue, queue, queue, direct, direct, direct]);
        let [none, locked, cpu] = [Statistics::None, Statistics::Locked, Statistics::PerCpu];
        let statistics = all.each_ref().map(|path| path.statistics);
        assert_eq!(statistics, [none, none, locked, locked, locked, cpu, cpu, cpu]);
        assert_eq!(
            all.each_ref().map(|path| path.is_optimized),
            [false, false, false, false, false, false, false, true]
        );
        assert!(all.iter().all(|path| version(path.name.trim_start_matches("linux-")) == Some(path.version())));
    }
}
