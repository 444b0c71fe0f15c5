//! The data with which a program's library runs messages on a mapped controller itself, and learns when it must
//! not.
//!
//! # How it works
//! For each node whose bus several processes may use, the server keeps two files in the
//! [tree](crate::tree), which go with it:
//!
//! * a [page](Page) of memory: the node's settings, and whether messages may go by the server;
//! * a text: the bus, as after `--bus`.
//!
//! The library maps the controller by that text, as any process of barewire's does, and runs plain messages
//! ([`plain`]) on it under the lock between processes. It looks at the page while it holds the lock. The
//! other calls are still requests to the server: settings, messages with delays or `cs_change`, and messages
//! that fail a check.
//!
//! # Ordering
//! The server alone writes the page.
//! 1. Settings: the generation becomes odd, the settings are written, the generation becomes even. A reader
//!    that finds it odd, or changed, asks the server.
//! 2. `kept` is set before a message that leaves its chip selected, so before the lock is released.
//! 3. `closed` is counted before the generation changes: a library that finds a new generation sees the new count.
//! 4. `stopped` is set before the server gives the bus back. A server that is killed leaves its lifeline cut:
//!    see `barewire_linux::shared::Lifeline`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering, fence};

use barewire::controller::Limits;
use barewire::spi::{Mode, Settings};

use crate::settings::{LSB_FIRST, on_the_wire};
use crate::{IocTransfer, NodeName, NodeSettings, Setup};

/// The words of a page that this module uses.
pub const PAGE_WORDS: usize = 16;
/// The length of the file: the server's lifeline is at the end of the machine's page, of which this is the largest.
pub const PAGE_BYTES: u64 = 65_536;

/// The first word of a page; its last byte is the version.
const MAGIC: u32 = u32::from_le_bytes(*b"bwd2");
const MAGIC_AT: usize = 0;
const LIFE_AT: usize = 1;
const STOPPED_AT: usize = 2;
const KEPT_AT: usize = 3;
const GENERATION_AT: usize = 4;
const MODE_AT: usize = 5;
const BITS_AT: usize = 6;
const SPEED_AT: usize = 7;
const CHIP_SELECT_AT: usize = 8;
const BOARD_MODE_AT: usize = 9;
const CLOSED_AT: usize = 10;

/// A board's flags of a mode.
const BOARD_MODES: [(u32, Mode); 2] = [(1, Mode::CS_HIGH), (2, Mode::NO_CS)];

/// The files of a node in the tree: the page, and the bus's text.
#[must_use]
pub fn files(tree: &Path, node: NodeName) -> [PathBuf; 2] {
    let NodeName { bus, chip_select } = node;
    ["page", "bus"].map(|what| tree.join(format!("barewire/spidev{bus}.{chip_select}.{what}")))
}

/// A page, by its words.
#[derive(Clone, Copy, Debug)]
pub struct Page<'w>(&'w [AtomicU32; PAGE_WORDS]);

impl<'w> Page<'w> {
    /// The page in these words; `None` if they are fewer than [`PAGE_WORDS`].
    #[must_use]
    #[inline]
    pub fn new(words: &'w [AtomicU32]) -> Option<Self> {
        words.first_chunk().map(Self)
    }

    #[inline]
    fn get(self, at: usize) -> u32 {
        self.0[at].load(Ordering::Relaxed)
    }

    fn set(self, at: usize, value: u32) {
        self.0[at].store(value, Ordering::Relaxed);
    }

    /// Makes it: `life` is the index of the word of the server's lifeline.
    pub fn make(self, setup: &Setup, life: usize) {
        let flags = BOARD_MODES.into_iter().filter(|(_, mode)| setup.mode.contains(*mode));
        self.set(BOARD_MODE_AT, flags.map(|(flag, _)| flag).sum());
        self.set(CHIP_SELECT_AT, setup.chip_select.into());
        // Within the machine's page.
        self.set(LIFE_AT, life as u32);
        self.0[MAGIC_AT].store(MAGIC, Ordering::Release);
    }

    /// Whether it is one of this version.
    #[must_use]
    pub fn is_made(self) -> bool {
        self.0[MAGIC_AT].load(Ordering::Acquire) == MAGIC
    }

    /// The index of the word of the server's lifeline.
    #[must_use]
    pub fn life(self) -> usize {
        self.get(LIFE_AT) as usize
    }

    /// The board's part of a [`Setup`]. The rest is the server's.
    #[must_use]
    pub fn board(self) -> (u8, Mode) {
        let flags = self.get(BOARD_MODE_AT);
        let modes = BOARD_MODES.into_iter().filter(|(flag, _)| flags & flag != 0);
        let mode = modes.fold(Mode::default(), |all, (_, mode)| all | mode);
        (self.get(CHIP_SELECT_AT).to_le_bytes()[0], mode)
    }

    /// Writes the settings.
    pub fn publish(self, settings: &NodeSettings) {
        let generation = self.get(GENERATION_AT);
        self.set(GENERATION_AT, generation.wrapping_add(1));
        fence(Ordering::SeqCst);
        self.set(MODE_AT, settings.mode);
        self.set(BITS_AT, settings.bits_per_word.into());
        self.set(SPEED_AT, settings.speed_hz);
        self.0[GENERATION_AT].store(generation.wrapping_add(2), Ordering::Release);
    }

    /// Counts an open file of the node that was closed. A library's table of descriptors may be wrong from then on, if
    /// the file was closed around it. `settings` are the node's now.
    pub fn count_closed(self, settings: &NodeSettings) {
        self.set(CLOSED_AT, self.closed().wrapping_add(1));
        self.publish(settings);
    }

    /// How many open files of the node were closed.
    #[must_use]
    pub fn closed(self) -> u32 {
        self.get(CLOSED_AT)
    }

    /// The number that changes with each change of the settings and with each file that is closed; odd during one.
    #[inline]
    #[must_use]
    pub fn generation(self) -> u32 {
        self.0[GENERATION_AT].load(Ordering::Acquire)
    }

    /// The settings of that generation; `None` if they are being changed.
    #[must_use]
    pub fn settings(self, generation: u32) -> Option<NodeSettings> {
        if !generation.is_multiple_of(2) {
            return None;
        }
        let settings = NodeSettings {
            mode: self.get(MODE_AT),
            bits_per_word: self.get(BITS_AT).to_le_bytes()[0],
            speed_hz: self.get(SPEED_AT),
        };
        fence(Ordering::Acquire);
        (self.get(GENERATION_AT) == generation).then_some(settings)
    }

    /// Says whether a message has left a chip of the bus selected, or may.
    pub fn set_kept(self, kept: bool) {
        self.0[KEPT_AT].store(kept.into(), Ordering::SeqCst);
    }

    /// Ends all messages around the server, for good.
    pub fn stop(self) {
        self.0[STOPPED_AT].store(1, Ordering::SeqCst);
    }

    /// Whether messages may bypass the server; its lifeline is checked apart.
    #[inline]
    #[must_use]
    pub fn is_open(self) -> bool {
        self.get(STOPPED_AT) | self.get(KEPT_AT) == 0
    }
}

/// Whether a message of these transfers may bypass the server, settings aside: each is
/// [plain](plain_one), and they are alike in clock and word length.
#[must_use]
pub fn plain(transfers: &[IocTransfer]) -> bool {
    let Some(first) = transfers.first() else { return false };
    transfers.iter().all(|transfer| {
        let IocTransfer { speed_hz, bits_per_word, .. } = *transfer;
        let alike = (speed_hz, bits_per_word) == (first.speed_hz, first.bits_per_word);
        alike && plain_one(transfer)
    })
}

/// Whether a transfer has bytes, one line each way, and neither delays nor `cs_change`.
#[inline]
#[must_use]
pub fn plain_one(transfer: &IocTransfer) -> bool {
    let IocTransfer { tx_buf, rx_buf, len, delay_usecs, cs_change, .. } = *transfer;
    let IocTransfer { tx_nbits, rx_nbits, word_delay_usecs, .. } = *transfer;
    let special = u32::from(delay_usecs)
        | u32::from(cs_change)
        | u32::from(word_delay_usecs)
        | u32::from((tx_nbits | rx_nbits) & !1);
    special == 0 && len != 0 && tx_buf | rx_buf != 0
}

/// A device's settings for such a message, whose transfers have this clock and word length (0: the node's), and
/// the bytes of a word. `None` if the server must judge it.
#[must_use]
pub fn settings_of(
    board: (u8, Mode),
    limits: &Limits,
    node: &NodeSettings,
    speed_hz: u32,
    bits_per_word: u8,
) -> Option<(Settings, u32)> {
    let speed_hz = if speed_hz == 0 { node.speed_hz } else { speed_hz };
    let bits_per_word = if bits_per_word == 0 { node.bits_per_word } else { bits_per_word };
    if node.mode & LSB_FIRST != 0 || speed_hz < limits.min_speed_hz {
        return None;
    }
    let word_bytes = match bits_per_word {
        ..=8 => 1,
        9..=16 => 2,
        _ => 4,
    };
    let (chip_select, mode) = board;
    Some((on_the_wire(chip_select, mode, limits, node.mode, bits_per_word, speed_hz), word_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<AtomicU32> {
        (0..PAGE_WORDS).map(|_| AtomicU32::new(0)).collect()
    }

    #[test]
    fn settings_are_read_whole_or_not_at_all() {
        let words = words();
        let page = Page::new(&words).expect("a page");
        assert!(!page.is_made() && Page::new(&words[1..]).is_none());
        let mode = Mode::CS_HIGH;
        let setup =
            Setup { chip_select: 3, mode, speed_hz: 1, cs_change_delay_ns: 0, bufsiz: 4096 };
        page.make(&setup, 17);
        assert!(page.is_made() && page.is_open());
        assert_eq!((page.board(), page.life()), ((3, mode), 17));
        let settings = NodeSettings { mode: 3, bits_per_word: 16, speed_hz: 5_000_000 };
        let before = page.generation();
        page.publish(&settings);
        assert_eq!(page.settings(before), None, "they changed");
        assert_eq!(page.settings(page.generation()), Some(settings));
        assert_eq!(page.settings(page.generation() + 1), None, "they are changing");
        let before = page.generation();
        page.count_closed(&settings);
        assert_eq!((page.closed(), page.settings(before)), (1, None), "a file was closed");
        assert_eq!(page.settings(page.generation()), Some(settings));
    }

    #[test]
    fn a_page_is_closed_while_a_chip_is_kept_and_for_good_at_the_end() {
        let words = words();
        let page = Page::new(&words).expect("a page");
        page.set_kept(true);
        assert!(!page.is_open());
        page.set_kept(false);
        assert!(page.is_open());
        page.stop();
        assert!(!page.is_open());
    }

    #[test]
    fn only_plain_messages_go_around_the_server() {
        let one = IocTransfer { tx_buf: 1, len: 4, ..IocTransfer::default() };
        let two = IocTransfer { rx_buf: 1, len: 64, tx_nbits: 1, rx_nbits: 1, ..one };
        assert!(plain(&[one]) && plain(&[one, two]) && !plain(&[]));
        for special in [
            IocTransfer { len: 0, ..one },
            IocTransfer { tx_buf: 0, ..one },
            IocTransfer { delay_usecs: 1, ..one },
            IocTransfer { word_delay_usecs: 1, ..one },
            IocTransfer { cs_change: 1, ..one },
            IocTransfer { tx_nbits: 2, ..one },
            IocTransfer { rx_nbits: 8, ..one },
            IocTransfer { speed_hz: 1_000_000, ..one },
            IocTransfer { bits_per_word: 16, ..one },
        ] {
            assert!(!plain(&[two, special]), "{special:?}");
        }
    }
}
