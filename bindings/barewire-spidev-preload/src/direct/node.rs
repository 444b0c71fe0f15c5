//! A node whose messages run here.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use barewire::controller::{Controller, Preset, Unfinished};
use barewire::spi::{Error, Mode, Transfer};
use barewire_linux::SharedWords;
use barewire_spidev_abi::direct::{self, PAGE_BYTES, plain, plain_one, settings_of};
use barewire_spidev_abi::{AbiError, IocTransfer, NodeName, Sums, TRANSFER_BYTES};
use rustix::fs::{CWD, Mode as FileMode, OFlags, openat};
use rustix::io::Errno;

use super::bus::{OpenBus, Opening, Turn};
use super::gate::Gate;
use crate::blocked::SignalsBlocked;
use crate::config::config;
use crate::{files, good, handlers};

/// Transfers of a message at most; more are served.
const TRANSFERS: usize = 4;
/// Bytes each way that need no allocation.
const SMALL: usize = 32;
/// Up to this many bytes count alike for `bufsiz` on every architecture.
const ROUNDED: usize = 128;
/// The longest text of a bus, in bytes.
const TEXT_BYTES: usize = 4096;

/// A node.
pub(super) struct Node {
    bus: &'static OpenBus,
    gate: &'static Gate,
    /// The node's properties on its board.
    board: (u8, Mode),
    bufsiz: u32,
    /// The longest exchange that `bufsiz` and [`SMALL`] have room for, however the kernel rounds it.
    few: usize,
    /// How many of the node's files were closed when the table of descriptors was last right.
    closed: AtomicU32,
    /// The settings of the last message; used by the thread whose turn it is.
    last: UnsafeCell<Option<Last>>,
}

/// A device's settings as the controller made them, and the node's settings that they come from.
struct Last {
    generation: u32,
    speed_hz: u32,
    bits_per_word: u8,
    preset: Preset,
    word_bytes: u32,
}

impl Node {
    /// The node of that name; `None` if it is served.
    pub(super) fn open(name: NodeName, opening: &Opening) -> Option<Self> {
        let config = config()?;
        let [page, text] =
            direct::files(Path::new(OsStr::from_bytes(config.tree.as_bytes())), name);
        let text = openat(CWD, &text, OFlags::RDONLY | OFlags::CLOEXEC, FileMode::empty()).ok()?;
        let mut room = [0_u8; TEXT_BYTES];
        let bytes = rustix::io::read(&text, &mut room[..]).ok()?;
        let text =
            str::from_utf8(room.get(..bytes).filter(|text| text.len() < TEXT_BYTES)?).ok()?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let page = File::from(openat(CWD, &page, flags, FileMode::empty()).ok()?);
        let words = SharedWords::map(&page, PAGE_BYTES as usize / 4).ok()?;
        let bus = OpenBus::open(text, opening)?;
        let page = direct::Page::new(words.words())?;
        let (board, closed) = (page.board(), AtomicU32::new(page.closed()));
        let claim = bus.locks.open(board.0).ok()?.into_claim()?;
        let gate: &'static Gate = Box::leak(Box::new(Gate::new(words, claim)?));
        let bufsiz = crate::config::bufsiz();
        let few = if bufsiz as usize >= ROUNDED { SMALL } else { 0 };
        Some(Self { few, bus, gate, board, bufsiz, closed, last: UnsafeCell::new(None) })
    }

    /// Runs a message of one transfer that sends and receives few bytes, as for a chip's register; `None` for
    /// another one, or in a program with handlers of signals.
    #[inline(always)]
    pub(super) fn exchange(&self, argument: u64) -> Option<Result<c_int, Errno>> {
        let mut bytes = [0; TRANSFER_BYTES];
        good::read(argument, &mut bytes).ok()?;
        let transfer = IocTransfer::decode(&bytes);
        let IocTransfer { tx_buf, rx_buf, len, .. } = transfer;
        let len = len as usize;
        if tx_buf == 0 || rx_buf == 0 || len > self.few || !plain_one(&transfer) {
            return None;
        }
        let (mut tx, mut rx) = ([0; SMALL], [0; SMALL]);
        let (tx, rx) = (tx.get_mut(..len)?, rx.get_mut(..len)?);
        good::read(tx_buf, tx).ok()?;
        let mut turn = self.turn(&transfer, false)?;
        let (controller, last) = turn.parts();
        if !last.preset.takes_exchange(len) || !last.is_whole(&transfer) {
            return None;
        }
        let ran = controller.run_exchange(&last.preset, tx, rx);
        drop(turn);
        match ran {
            Ok(_) => match good::write(rx_buf, rx) {
                // At most `SMALL`.
                Ok(()) => Some(Ok(len as c_int)),
                Err(errno) => Some(Err(errno)),
            },
            Err(unfinished) => failed(unfinished.error()),
        }
    }

    /// Runs a message; `None` if the server must, with nothing clocked.
    #[inline(never)]
    pub(super) fn message(&self, count: usize, argument: u64) -> Option<Result<c_int, Errno>> {
        let mut bytes = [0; TRANSFERS * TRANSFER_BYTES];
        let bytes = bytes.get_mut(..count * TRANSFER_BYTES)?;
        good::read(argument, bytes).ok()?;
        let mut transfers = [IocTransfer::default(); TRANSFERS];
        let places = transfers.iter_mut().zip(IocTransfer::decode_all(bytes));
        places.for_each(|(place, transfer)| *place = transfer);
        let transfers = transfers.get(..count)?;
        if !plain(transfers) {
            return None;
        }
        let mut sums = Sums::new(self.bufsiz);
        transfers.iter().try_for_each(|transfer| sums.add(transfer)).ok()?;
        let sent: usize = transfers.iter().map(IocTransfer::tx_bytes).sum();
        let received: usize = transfers.iter().map(IocTransfer::rx_bytes).sum();
        let (mut tx, mut rx) = (vec![0; sent], vec![0; received]);
        let mut rest = &mut tx[..];
        for transfer in transfers {
            let (bytes, others) = rest.split_at_mut_checked(transfer.tx_bytes())?;
            good::read(transfer.tx_buf, bytes).ok()?;
            rest = others;
        }
        // Declared before `turn`, so dropped after it: signals stay blocked until the turn is over.
        let undisturbed = handlers::any().then(SignalsBlocked::new);
        let mut turn = self.turn(transfers.first()?, undisturbed.is_some())?;
        let (controller, last) = turn.parts();
        if !transfers.iter().all(|transfer| last.is_whole(transfer)) {
            return None;
        }
        let ran = several(controller, &last.preset, transfers, &tx, &mut rx);
        drop(turn);
        drop(undisturbed);
        if let Err(error) = ran {
            return failed(error);
        }
        let mut rest = &rx[..];
        for transfer in transfers {
            let (bytes, others) = rest.split_at_checked(transfer.rx_bytes())?;
            if let Err(errno) = good::write(transfer.rx_buf, bytes) {
                return Some(Err(errno));
            }
            rest = others;
        }
        // At most `i32::MAX` (`Sums`).
        Some(Ok(c_int::try_from(sums.total()).unwrap_or(c_int::MAX)))
    }

    /// Begins a message whose transfers have the clock and word length of the first; `None` if the server must.
    /// `undisturbed` if signals are blocked: a handler may come at any other time.
    #[inline(always)]
    fn turn(&self, first: &IocTransfer, undisturbed: bool) -> Option<NodeTurn<'_>> {
        let mut turn = self.bus.begin(self.gate)?;
        // Before the lock is acquired, too: what a message left selected must stay so.
        if handlers::any() != undisturbed || !self.gate.page().is_open() {
            return None;
        }
        let generation = self.gate.page().generation();
        // SAFETY: this thread's turn, as long as `turn` lives.
        let last = unsafe { &mut *self.last.get() };
        let fits = |last: &Last| {
            last.generation == generation
                && last.speed_hz == first.speed_hz
                && last.bits_per_word == first.bits_per_word
        };
        if !last.as_ref().is_some_and(fits) {
            *last = Some(self.made(turn.controller(), generation, first)?);
        }
        let last = last.as_ref()?;
        Some(NodeTurn { last, turn })
    }

    /// A transfer's clock and word length, with the node's settings as defaults.
    #[cold]
    fn made(
        &self,
        controller: &dyn Controller,
        generation: u32,
        first: &IocTransfer,
    ) -> Option<Last> {
        let IocTransfer { speed_hz, bits_per_word, .. } = *first;
        let closed = self.gate.page().closed();
        if self.closed.swap(closed, Ordering::Relaxed) != closed {
            // Perhaps around the library: see `super`.
            files::forget_direct();
            return None;
        }
        let settings = self.gate.page().settings(generation)?;
        let (settings, word_bytes) =
            settings_of(self.board, &self.bus.limits, &settings, speed_hz, bits_per_word)?;
        // What the controller refuses, the server judges.
        let (preset, _) = controller.configure(&settings).ok()?;
        Some(Last { generation, speed_hz, bits_per_word, preset, word_bytes })
    }
}

/// The right to run a message of a node.
struct NodeTurn<'n> {
    last: &'n Last,
    turn: Turn<'n>,
}

impl NodeTurn<'_> {
    #[inline(always)]
    fn parts(&mut self) -> (&mut dyn Controller, &Last) {
        (self.turn.controller(), self.last)
    }
}

impl Last {
    /// Whether a transfer has no part of a word.
    #[inline]
    fn is_whole(&self, transfer: &IocTransfer) -> bool {
        // A power of two.
        transfer.len & (self.word_bytes - 1) == 0
    }
}

#[inline(never)]
fn several(
    controller: &mut dyn Controller,
    preset: &Preset,
    transfers: &[IocTransfer],
    mut tx: &[u8],
    mut rx: &mut [u8],
) -> Result<(), Error> {
    let mut message: [Transfer<'_>; TRANSFERS] = std::array::from_fn(|_| Transfer::write(&[]));
    for (place, transfer) in message.iter_mut().zip(transfers) {
        let (sent, others) = tx.split_at(transfer.tx_bytes());
        tx = others;
        let (received, others) = std::mem::take(&mut rx).split_at_mut(transfer.rx_bytes());
        rx = others;
        *place = match (transfer.tx_buf, transfer.rx_buf) {
            (_, 0) => Transfer::write(sent),
            (0, _) => Transfer::read(received),
            _ => Transfer::exchange(sent, received),
        };
    }
    let message = message.get_mut(..transfers.len()).ok_or(Error::Busy)?;
    // A message that the controller refuses is the server's to judge, or to make another way.
    controller.plan(preset, message).map_err(|_| Error::Busy)?;
    controller.run(preset, message).map(drop).map_err(Unfinished::error)
}

/// The program's result of a failed message. The gate and the lock fail before anything is clocked.
#[cold]
fn failed(error: Error) -> Option<Result<c_int, Errno>> {
    match error {
        Error::Os { .. } | Error::Busy => None,
        error => Some(Err(AbiError::from(error).errno)),
    }
}
