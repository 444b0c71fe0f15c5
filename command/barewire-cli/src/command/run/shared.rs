//! Memory that the server shares with each process of the program: requests come and are answered there.
//!
//! Read first: [`barewire_spidev_abi::slots`].
//!
//! # How it works
//! A process's slots are kept until its pidfd reports that the process has ended: a process has no
//! connection that would end with it. A process that asks again has made an `exec`, which unmapped
//! what it had.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU32;

use barewire_linux::SharedWords;
use barewire_linux::shared::Lifeline;
use barewire_spidev_abi::Errno;
use barewire_spidev_abi::protocol::Head;
use barewire_spidev_abi::slots::{BELL_BYTES, Bell, SLOTS_WORDS, Slots};
use rustix::event::PollFlags;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::news::News;
use super::nodes::Answer;
use super::rings::{Rings, wake};

/// The slots of a process.
struct OfProcess {
    process: Pid,
    /// Readable when it has ended.
    end: OwnedFd,
    /// Whether the end is among the server's news.
    is_watched: bool,
    words: SharedWords,
}

impl OfProcess {
    fn slots(&self) -> Option<Slots<'_>> {
        Slots::new(self.words.words())
    }
}

impl Drop for OfProcess {
    fn drop(&mut self) {
        let Some(slots) = self.slots() else { return };
        slots.close();
        slots.all().for_each(|slot| wake(slot.state()));
    }
}

/// A request, and where its answer goes.
pub(super) struct SharedRequest {
    process: Pid,
    slot: usize,
    pub(super) asked: Result<(Head, Vec<u8>), Errno>,
}

/// The memory of all processes.
pub(super) struct Shared {
    rings: Rings,
    /// The bell's file; none on a system without such files or locks, where all requests are connections.
    bell: Option<File>,
    processes: Vec<OfProcess>,
}

impl Shared {
    /// To be called by the thread that serves: its end is the end of the memory.
    pub(super) fn new() -> Self {
        let (rings, bell) = match bell() {
            Ok((bell, rings)) => (rings, Some(bell)),
            Err(_) => (&*Box::leak(Box::new(AtomicU32::new(0))), None),
        };
        Self { rings: Rings::of(rings), bell, processes: Vec::new() }
    }

    pub(super) fn rings(&self) -> Rings {
        self.rings
    }

    /// Makes the memory of a process: the files of the bell and of its slots.
    ///
    /// # Errors
    /// `ENOTSUP` if this system has no such memory; otherwise the system's error.
    pub(super) fn add(&mut self, process: Pid) -> Result<(BorrowedFd<'_>, OwnedFd), Errno> {
        if self.bell.is_none() {
            return Err(Errno::NOTSUP);
        }
        let file = File::from(memory("barewire-requests", SLOTS_WORDS as u64 * 4)?);
        let words = SharedWords::map(&file, SLOTS_WORDS)?;
        Slots::make(words.words()).ok_or(Errno::NOTSUP)?;
        let end = pidfd_open(process, PidfdFlags::empty())?;
        self.remove(process);
        self.processes.push(OfProcess { process, end, is_watched: false, words });
        let bell = self.bell.as_ref().ok_or(Errno::NOTSUP)?;
        Ok((bell.as_fd(), file.into()))
    }

    /// Makes the ends of processes news.
    pub(super) fn watch(&mut self, news: &News) -> Result<(), Errno> {
        for this in &mut self.processes {
            if !std::mem::replace(&mut this.is_watched, true) {
                news.add(&this.end, PollFlags::IN)?;
            }
        }
        Ok(())
    }

    /// Takes a process's memory away.
    pub(super) fn remove(&mut self, process: Pid) {
        self.processes.retain(|this| this.process != process);
    }

    /// The descriptors that report the processes' ends.
    pub(super) fn ends(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.processes.iter().map(|this| this.end.as_fd())
    }

    /// Forgets processes that have ended, by the order of [`ends`](Self::ends).
    pub(super) fn forget(&mut self, mut has_ended: impl Iterator<Item = bool>) {
        self.processes.retain(|_| !has_ended.next().unwrap_or(false));
    }

    /// Takes all requests that wait.
    pub(super) fn take(&self) -> Vec<SharedRequest> {
        let mut all = Vec::new();
        for this in &self.processes {
            let Some(slots) = this.slots() else { continue };
            for (slot, place) in slots.all().enumerate() {
                if let Some(asked) = place.take() {
                    all.push(SharedRequest { process: this.process, slot, asked });
                }
            }
        }
        all
    }

    /// Answers a request. A process that has ended meanwhile gets none.
    pub(super) fn give(&self, request: &SharedRequest, answer: Answer) {
        let this = self.processes.iter().find(|this| this.process == request.process);
        let slots = this.and_then(OfProcess::slots);
        let Some(slot) = slots.and_then(|slots| slots.all().nth(request.slot)) else { return };
        match answer {
            Ok((value, body)) => slot.give(Ok(value), &body),
            Err(errno) => slot.give(Err(errno), &[]),
        }
        wake(slot.state());
    }
}

/// The bell's file, and the word that counts.
fn bell() -> Result<(File, &'static AtomicU32), Errno> {
    let file = File::from(memory("barewire-bell", BELL_BYTES)?);
    let life = Lifeline::hold(&file)?;
    let bell = Bell::make(life.words().words(), life.word()).ok_or(Errno::NOTSUP)?;
    Ok((file, bell.rings()))
}

/// Memory in a file whose length nobody can change: a process that cut it would end this one.
fn memory(name: &str, bytes: u64) -> Result<OwnedFd, Errno> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}
