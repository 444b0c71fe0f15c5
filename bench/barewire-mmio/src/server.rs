//! Serves a machine at a Unix socket.
//!
//! *Read first*: docs/mmio.md.
//!
//! # How it works
//! [`Server::serve`] has one client's connection, until it ends. A client that asked for a page makes its
//! accesses there; the server then spins on the page for [`SPIN`], and after that sleeps on a futex, looking
//! at the socket ten times a second.
//! Requests on the socket go on being answered.
//!
//! Time passes only by requests, so the server never has to wake the client.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::machine::Machine;
use crate::message::{Answer, Reason, Request, VERSION, Words};
use crate::page::{Page, SLOTS};
use crate::socket;

/// How long the server spins before it sleeps.
pub const SPIN: Duration = Duration::from_micros(20);
/// How long it sleeps before it looks at the socket.
const PATIENCE: Duration = Duration::from_millis(100);

/// How a client's connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client said so.
    Bye,
    /// It has gone.
    Gone,
    /// [`Server::serve`] was asked to stop.
    Stopped,
}

/// A machine and the requests counted.
#[derive(Debug)]
pub struct Server {
    machine: Machine,
    requests: u64,
    refused: u64,
}

impl Server {
    /// A server of `machine`.
    #[must_use]
    pub fn new(machine: Machine) -> Self {
        Self { machine, requests: 0, refused: 0 }
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// How many requests it has carried out, and how many it refused.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.requests, self.refused)
    }

    /// Answers words that may be a request; returns whether it was the last.
    pub fn answer(&mut self, words: Words) -> (Words, bool) {
        let request = Request::parse(words);
        let answer = match request {
            Ok(Request::Hello { .. }) => Answer::Refused { reason: Reason::Order, value: 0 },
            Ok(request) => self.machine.answer(request),
            Err(no) => Answer::Refused { reason: Reason::NoMessage, value: no.kind.into() },
        };
        match answer {
            Answer::Refused { .. } => self.refused += 1,
            _ => self.requests += 1,
        }
        (answer.emit(), request == Ok(Request::Bye))
    }

    /// Serves one client. `stop` is asked from time to time.
    ///
    /// # Errors
    /// If the socket fails, a page cannot be had, or the client begins with anything but a Hello of this
    /// version.
    pub fn serve(&mut self, client: &UnixStream, stop: impl Fn() -> bool) -> io::Result<End> {
        let Some((words, _)) = socket::receive(client)? else { return Ok(End::Gone) };
        let hello = Request::parse(words);
        let Ok(Request::Hello { page, .. }) = hello else {
            let refused = Answer::Refused { reason: Reason::Order, value: 0 };
            socket::send(client, refused.emit(), None)?;
            return Err(socket::bad("the client does not begin with Hello"));
        };
        let welcome = self.machine.answer(hello.map_err(socket::bad)?);
        if let Answer::Refused { .. } = welcome {
            socket::send(client, welcome.emit(), None)?;
            return Err(socket::bad(format!("the client's version is not {VERSION}")));
        }
        let page = page.then(Page::create).transpose()?;
        match &page {
            Some(page) => socket::send(client, welcome.emit(), Some(&page.file()))?,
            None => socket::send(client, welcome.emit(), None)?,
        }
        let mut paged = page.map(|page| ClientPage { page, answered: 0 });
        loop {
            if let Some(paged) = &mut paged
                && paged.run(self)
            {
                return Ok(End::Bye);
            }
            if stop() {
                return Ok(End::Stopped);
            }
            let longest = if paged.is_some() { Duration::ZERO } else { PATIENCE };
            if !is_readable(client, longest)? {
                continue;
            }
            let Some((words, _)) = socket::receive(client)? else {
                // The client may have put a Bye on the page, and gone, since we looked there.
                let bye = paged.is_some_and(|mut paged| paged.answer_new(self) == Some(true));
                return Ok(if bye { End::Bye } else { End::Gone });
            };
            let (answer, last) = self.answer(words);
            socket::send(client, answer, None)?;
            if last {
                return Ok(End::Bye);
            }
        }
    }
}

fn is_readable(client: &UnixStream, longest: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(client, PollFlags::IN)];
    let longest = Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
    match poll(&mut fds, Some(&longest)) {
        Ok(found) => Ok(found > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// A client's page.
struct ClientPage {
    page: Page,
    answered: u64,
}

impl ClientPage {
    /// Answers requests, until none comes for a while; returns whether the last one was Bye.
    fn run(&mut self, server: &mut Server) -> bool {
        let mut since = Instant::now();
        let mut turns = 0_u32;
        loop {
            let Some(last) = self.answer_new(server) else {
                std::hint::spin_loop();
                turns = turns.wrapping_add(1);
                if turns.is_multiple_of(64) && since.elapsed() > SPIN {
                    self.page.sleep_for_request(self.answered, PATIENCE);
                    return false;
                }
                continue;
            };
            if last {
                return true;
            }
            since = Instant::now();
        }
    }

    /// Answers the new requests, up to a Bye; returns whether there was one. `None` if there are no new ones.
    fn answer_new(&mut self, server: &mut Server) -> Option<bool> {
        let new = self.page.asked().wrapping_sub(self.answered);
        // A client that overran the ring lost requests: that is its own fault.
        for _ in 0..new.min(SLOTS) {
            let (answer, last) = server.answer(self.page.request(self.answered));
            self.page.answer(self.answered, answer);
            self.answered = self.answered.wrapping_add(1);
            if last {
                return Some(true);
            }
        }
        (new > 0).then_some(false)
    }
}
