//! A thread that waits for the server's descriptors, so that the server itself can sleep on the bell.
//!
//! # How it works
//! The descriptors are in one epoll set, to which the server adds. When one of them has news, the thread rings the bell
//! and stays still until the server has looked ([`News::looked`]).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use barewire_spidev_abi::Errno;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFlags, eventfd};

use super::rings::Rings;

struct Set {
    epoll: OwnedFd,
    /// The server has not looked yet.
    told: AtomicBool,
    over: AtomicBool,
}

impl Set {
    fn has_news(&self, wait: bool) -> bool {
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; 1];
        // An error is news: the server's own calls will return it.
        epoll::wait(&self.epoll, &mut events[..], (!wait).then_some(&now)) != Ok(0)
    }

    fn run(&self, rings: Rings) {
        while !self.over.load(Ordering::SeqCst) {
            if self.has_news(true) {
                self.told.store(true, Ordering::SeqCst);
                rings.ring();
            }
            while self.told.load(Ordering::SeqCst) && !self.over.load(Ordering::SeqCst) {
                thread::park();
            }
        }
    }
}

/// The descriptors of the server.
pub(super) struct News {
    set: Arc<Set>,
    thread: Option<JoinHandle<()>>,
    /// Ends the thread's wait.
    end: OwnedFd,
}

impl News {
    /// Starts the thread, with the signals blocked that the caller has blocked.
    pub(super) fn start(rings: Rings) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let set = Set { epoll, told: AtomicBool::new(false), over: AtomicBool::new(false) };
        let end = eventfd(0, EventfdFlags::CLOEXEC)?;
        let mut this = Self { set: Arc::new(set), thread: None, end };
        this.add(&this.end, PollFlags::IN)?;
        let set = this.set.clone();
        let thread = thread::Builder::new().name("barewire-news".into());
        let started = thread.spawn(move || set.run(rings));
        this.thread =
            Some(started.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?);
        Ok(this)
    }

    /// Adds a descriptor and what is awaited of it. Closing it removes it.
    pub(super) fn add(&self, fd: impl AsFd, awaited: PollFlags) -> Result<(), Errno> {
        epoll::add(&self.set.epoll, fd, EventData::new_u64(0), flags(awaited))
    }

    /// Changes what is awaited of a descriptor.
    pub(super) fn change(&self, fd: impl AsFd, awaited: PollFlags) -> Result<(), Errno> {
        epoll::modify(&self.set.epoll, fd, EventData::new_u64(0), flags(awaited))
    }

    /// Whether the thread has reported news.
    pub(super) fn told(&self) -> bool {
        self.set.told.load(Ordering::SeqCst)
    }

    /// Whether there are news now, which the thread may not have seen yet.
    pub(super) fn came(&self) -> bool {
        self.told() || self.set.has_news(false)
    }

    /// The server has looked at all descriptors: the thread waits for the next news.
    pub(super) fn looked(&self) {
        if self.set.told.swap(false, Ordering::SeqCst)
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }
}

impl Drop for News {
    fn drop(&mut self) {
        self.set.over.store(true, Ordering::SeqCst);
        // There is room for one.
        let _ = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread cannot panic.
            let _ = thread.join();
        }
    }
}

/// Hang-ups and errors are reported unasked.
fn flags(awaited: PollFlags) -> EventFlags {
    let mut flags = EventFlags::empty();
    flags.set(EventFlags::IN, awaited.contains(PollFlags::IN));
    flags.set(EventFlags::OUT, awaited.contains(PollFlags::OUT));
    flags
}
