//! The server: requests of programs, in memory and by connections, one at a time.
//!
//! # How it works
//! Most requests come in [shared] memory. The server sleeps on one word, the bell, which processes ring for their
//! requests, and a [thread](super::news) for the sockets. A connection is an open file, or one
//! request ([`protocol`](barewire_spidev_abi::protocol)); none blocks the server.
//!
//! # Ordering
//! A program's calls take effect in the program's order, although they come by several ways:
//! 0. Requests in memory are taken first, and run last (step 5), so what their process did before on sockets is seen
//!    before they run.
//! 1. New connections are accepted first, requests before files. A request that is accepted came after its
//!    file, so its file is accepted too. Then all connections are read again, so that a file which the
//!    program closed before it connected is seen as closed.
//! 2. Bytes that were written to files without the library are run as messages.
//! 3. Files that were closed are closed.
//! 4. Files that were opened are opened: a program makes requests about a file only after it has said on
//!    the file's own connection which node it is.
//! 5. Requests are run, in the order in which they came. Then the watched GPIO lines are read, and only then
//!    is the answer sent. So a program that polls next finds the events of its own call. While lines are
//!    watched, the loop also reads them each millisecond.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, ExitStatus};

use barewire_spidev_abi::Errno;
use barewire_spidev_abi::gpio::GpioRequest;
use barewire_spidev_abi::protocol::{
    Call, Head, OpenId, REQUEST_BYTES, encode_answer, encode_opened,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, accept_with, bind, listen, recv, send, sendmsg, socket_with, sockopt,
};
use rustix::process::{Pid, geteuid};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::Timespec;

use super::direct::LOOK_EVERY;
use super::gpio::Gpio;
use super::news::News;
use super::nodes::{Answer, Nodes};
use super::shared::{Shared, SharedRequest};
use super::signals::Signals;
use crate::shared::failure::Failure;
use crate::shared::output::note;

/// Connections that wait to be accepted: as many as Linux allows unless told.
const BACKLOG: i32 = 4096;
/// Bytes taken from a connection at once.
const PIECE_BYTES: usize = 64 << 10;

/// How long the server waits until it looks at watched GPIO lines again.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

enum State {
    /// Its request is not complete.
    Asking(Vec<u8>),
    /// A request that is complete: its head, and the body behind [`REQUEST_BYTES`].
    Asked(Head, Vec<u8>),
    /// The answer, and how many of its bytes were sent.
    Answered(Vec<u8>, usize),
    /// It will be an open file.
    Opening,
    /// It is that open file.
    File(OpenId),
    /// The connection is finished.
    Over,
}

/// The node or chip of an open file.
#[derive(Clone, Copy)]
enum File {
    /// The node with that index.
    Node(usize),
    /// The GPIO chip with that index.
    Chip(usize),
    /// Lines of the GPIO chip with that index, once they are requested.
    Lines(Option<usize>),
}

struct Connection {
    socket: OwnedFd,
    state: State,
    /// Whether the other end is this user's, or root's: others are refused.
    ours: bool,
    /// What is awaited of it by now; none if it is new.
    awaited: Option<PollFlags>,
    /// Whether its other end is gone.
    is_gone: bool,
}

impl Connection {
    fn new(socket: OwnedFd, state: State) -> Self {
        let uid = sockopt::socket_peercred(&socket).map(|peer| peer.uid);
        let ours = uid.is_ok_and(|uid| uid == geteuid() || uid.is_root());
        Self { socket, state, ours, awaited: None, is_gone: false }
    }

    fn awaited(&self) -> PollFlags {
        match self.state {
            State::Asking(_) | State::Opening | State::File(_) => PollFlags::IN,
            State::Answered(..) => PollFlags::OUT,
            State::Asked(..) | State::Over => PollFlags::empty(),
        }
    }

    /// The next packet of an open file; none if nothing came, or it is closed.
    fn packet(&self, room: &mut [u8]) -> Option<usize> {
        loop {
            // The length of the packet, also if it is longer than the room.
            match recv(&self.socket, &mut *room, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                Ok((_, 0)) => return None,
                Ok((_, length)) => return Some(length),
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// Drops bytes that were written to a file that takes none.
    fn forget_packets(&self) {
        while self.packet(&mut [0]).is_some() {}
    }

    /// Sends a packet to an open file; false if there is no room yet.
    fn tell(&self, packet: &[u8]) -> bool {
        loop {
            match send(&self.socket, packet, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => return false,
                // If the connection was closed, the answer is not read.
                Ok(_) | Err(_) => return true,
            }
        }
    }

    /// Takes the bytes that have come.
    fn take(&mut self) {
        let State::Asking(bytes) = &mut self.state else { return };
        let mut piece = [0; PIECE_BYTES];
        loop {
            match recv(&self.socket, &mut piece, RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    self.state = State::Over;
                    return;
                }
                Ok((received, _)) => bytes.extend_from_slice(&piece[..received]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.state = State::Over;
                    return;
                }
            }
            let Some((head, body)) = bytes.split_first_chunk::<REQUEST_BYTES>() else { continue };
            match Head::decode(head) {
                Ok(head) if body.len() >= head.body as usize => {
                    let bytes = std::mem::take(bytes);
                    self.state = State::Asked(head, bytes);
                    return;
                }
                Ok(_) => {}
                Err(errno) => {
                    self.answer(Err(errno));
                    return;
                }
            }
        }
    }

    fn answer(&mut self, answer: Answer) {
        let (result, body) = match answer {
            Ok((value, body)) => (Ok(value), body),
            Err(errno) => (Err(errno), Vec::new()),
        };
        // A message's bytes, at most `BUFSIZ_MAX`.
        let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let mut bytes = encode_answer((result, len)).to_vec();
        bytes.extend(body);
        self.state = State::Answered(bytes, 0);
        self.give();
    }

    /// Sends the rest of the answer.
    fn give(&mut self) {
        let State::Answered(bytes, sent) = &mut self.state else { return };
        while *sent < bytes.len() {
            match send(&self.socket, &bytes[*sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(more) => *sent += more,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // The program was killed.
                Err(_) => break,
            }
        }
        self.state = State::Over;
    }
}

/// The server.
pub(super) struct Server<'s> {
    nodes: Nodes<'s>,
    gpio: Gpio<'s>,
    name: String,
    listener: OwnedFd,
    /// Where files are opened.
    files_listener: OwnedFd,
    connections: Vec<Connection>,
    files: HashMap<OpenId, File>,
    shared: Shared,
    /// A descriptor that is given up so that a request can be answered where there is no other left.
    spare: Option<OwnedFd>,
    reported: bool,
    /// Whether stderr has this message already: it is printed once.
    said_full: bool,
    said_stranger: bool,
}

impl<'s> Server<'s> {
    /// A server of these nodes and GPIO chips, under a new name.
    pub(super) fn new(nodes: Nodes<'s>, gpio: Gpio<'s>) -> Result<Self, Failure> {
        let failed = |errno: Errno| Failure::io("listen for the program", &errno.into());
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty()).map_err(failed)?;
        let name = format!("barewire-run-{:016x}", u64::from_ne_bytes(random));
        let listener = listening(SocketType::STREAM, &name).map_err(failed)?;
        let files_name = OpenId::files_name(&name);
        let files_listener = listening(SocketType::SEQPACKET, &files_name).map_err(failed)?;
        Ok(Self {
            nodes,
            gpio,
            name,
            listener,
            files_listener,
            connections: Vec::new(),
            files: HashMap::new(),
            shared: Shared::new(),
            spare: spare(),
            reported: false,
            said_full: false,
            said_stranger: false,
        })
    }

    /// The name under which it listens.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether any process has loaded the library.
    pub(super) fn was_reported_to(&self) -> bool {
        self.reported
    }

    /// Serves until the program has ended. Processes that the program started and left running find the
    /// server gone.
    pub(super) fn serve_until_ended(
        &mut self,
        mut child: Child,
        signals: &Signals,
    ) -> Result<ExitStatus, Failure> {
        let failed = |error: std::io::Error| Failure::io("wait for the program", &error);
        let system = |errno: Errno| failed(errno.into());
        let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let rings = self.shared.rings();
        let news = News::start(rings).map_err(system)?;
        news.add(signals.fd(), PollFlags::IN).map_err(system)?;
        news.add(&self.listener, PollFlags::IN).map_err(system)?;
        news.add(&self.files_listener, PollFlags::IN).map_err(system)?;
        loop {
            let heard = rings.heard();
            // What the program runs itself is not asked for here.
            let direct = self.nodes.any_direct();
            if direct {
                self.nodes.look();
            }
            let asked = self.shared.take();
            let came = if asked.is_empty() { news.told() } else { news.came() };
            let idle = asked.is_empty() && !came;
            let mut ended = None;
            if came {
                // First, since a child's end that is read here and not seen yet is news no more.
                if let Some(process) = process {
                    signals.pass_on(process);
                }
                // Requests that the program sent before it ended are executed.
                ended = child.try_wait().map_err(failed)?;
                self.round(signals, &news).map_err(system)?;
            }
            for request in &asked {
                self.run_shared(request);
            }
            self.look();
            if let Some(status) = ended {
                self.nodes.stop();
                return Ok(status);
            }
            if came {
                news.looked();
            }
            if idle {
                let awaited = if direct { Some(&LOOK_EVERY) } else { None };
                rings.wait(heard, if self.gpio.waits() { Some(&LOOK_AGAIN) } else { awaited });
            }
        }
    }

    /// Takes all new requests. Without a descriptor for one, the spare is given up: a request is short.
    fn accept_requests(&mut self) -> Result<(), Errno> {
        loop {
            match accept(&self.listener) {
                Ok(None) => break,
                Ok(Some(socket)) => {
                    let connection = Connection::new(socket, State::Asking(Vec::new()));
                    self.admit(connection);
                }
                Err(Errno::MFILE | Errno::NFILE) if self.spare.take().is_some() => {}
                Err(Errno::MFILE | Errno::NFILE) => break,
                Err(errno) => return Err(errno),
            }
        }
        // Without a free descriptor, the kernel does not look whether anyone waits.
        self.regain_spare();
        Ok(())
    }

    /// Takes all new files; false if there is no descriptor for one more. With `refuse`, those are refused.
    fn accept_files(&mut self, refuse: bool) -> Result<bool, Errno> {
        let mut is_full = false;
        loop {
            match accept(&self.files_listener) {
                Ok(None) => break,
                Ok(Some(socket)) if is_full => {
                    let refused = Connection::new(socket, State::Over);
                    refused.tell(&encode_opened(Err(Errno::NFILE)));
                    drop(refused);
                    (self.spare, is_full) = (spare(), false);
                }
                Ok(Some(socket)) => self.admit(Connection::new(socket, State::Opening)),
                Err(Errno::MFILE | Errno::NFILE) if !refuse => return Ok(false),
                Err(Errno::MFILE | Errno::NFILE) if self.spare.take().is_some() => {
                    is_full = true;
                    if !std::mem::replace(&mut self.said_full, true) {
                        note!(
                            "barewire: run: all descriptors of `barewire run` itself are in use: opening a \
                             node fails with ENFILE until a program closes one (ulimit -n)"
                        );
                    }
                }
                Err(Errno::MFILE | Errno::NFILE) => break,
                Err(errno) => return Err(errno),
            }
        }
        self.regain_spare();
        Ok(true)
    }

    fn regain_spare(&mut self) {
        self.spare = self.spare.take().or_else(spare);
    }

    fn admit(&mut self, connection: Connection) {
        if !connection.ours && !std::mem::replace(&mut self.said_stranger, true) {
            note!(
                "barewire: run: a program of another user is refused (EACCES): a program that changes its \
                 user must have opened its nodes before"
            );
        }
        self.connections.push(connection);
    }

    /// One round over the sockets, which have news.
    fn round(&mut self, signals: &Signals, news: &News) -> Result<(), Errno> {
        // Step 1.
        self.accept_requests()?;
        let is_full = !self.accept_files(false)?;
        self.poll(signals)?;
        // Steps 2 and 3.
        for connection in &mut self.connections {
            let ended = connection.is_gone;
            match connection.state {
                State::File(id) => {
                    let file = self.files.get(&id).copied();
                    match file {
                        Some(File::Node(node)) => written(&self.nodes, connection, id, node),
                        _ => connection.forget_packets(),
                    }
                    if ended {
                        self.files.remove(&id);
                        match file {
                            Some(File::Node(node)) => self.nodes.closed(node),
                            Some(File::Chip(chip) | File::Lines(Some(chip))) => {
                                self.gpio.closed(chip, id);
                            }
                            Some(File::Lines(None)) | None => {}
                        }
                        connection.state = State::Over;
                    }
                }
                State::Asking(_) => connection.take(),
                State::Answered(..) if ended => connection.state = State::Over,
                State::Answered(..) => connection.give(),
                State::Opening | State::Asked(..) | State::Over => {}
            }
        }
        if is_full {
            // A file that its program closed makes room for the next.
            self.connections.retain(|connection| !matches!(connection.state, State::Over));
            self.accept_files(true)?;
        }
        // Step 4.
        for connection in &mut self.connections {
            let ended = connection.is_gone;
            if !matches!(connection.state, State::Opening) {
                continue;
            }
            match opened(&self.nodes, &self.gpio, connection) {
                Some(Ok((id, file))) => {
                    connection.state = match self.files.entry(id) {
                        Entry::Occupied(_) => State::Over,
                        Entry::Vacant(place) => {
                            place.insert(file);
                            if let File::Node(node) = file {
                                self.nodes.opened(node);
                            }
                            // An empty socket has room for it. Until it has come, nothing is written there.
                            connection.tell(&encode_opened(Ok(())));
                            State::File(id)
                        }
                    };
                }
                Some(Err(errno)) => {
                    connection.tell(&encode_opened(Err(errno)));
                    connection.state = State::Over;
                }
                // Killed before it said which file it is.
                None if ended => connection.state = State::Over,
                None => {}
            }
        }
        // Step 5.
        for index in 0..self.connections.len() {
            let state = &mut self.connections[index].state;
            if let State::Asked(..) = state
                && let State::Asked(head, bytes) = std::mem::replace(state, State::Over)
            {
                let end = REQUEST_BYTES + head.body as usize;
                let answer = match (self.connections[index].ours, head.call) {
                    (false, _) => Err(Errno::ACCESS),
                    (true, Call::Share) => match self.share(index) {
                        Ok(()) => continue,
                        Err(errno) => Err(errno),
                    },
                    (true, _) => self.run(&head, &bytes[REQUEST_BYTES..end]),
                };
                // Events that the call caused on the pins can be read when it returns.
                self.look();
                self.connections[index].answer(answer);
            }
        }
        self.connections.retain(|connection| !matches!(connection.state, State::Over));
        self.regain_spare();
        self.await_all(news)
    }

    /// Tells what is awaited of each socket.
    fn await_all(&mut self, news: &News) -> Result<(), Errno> {
        // Without a descriptor for them, new connections wait until another one ends.
        let listening = if self.spare.is_some() { PollFlags::IN } else { PollFlags::empty() };
        news.change(&self.listener, listening)?;
        news.change(&self.files_listener, listening)?;
        self.shared.watch(news)?;
        for connection in &mut self.connections {
            let awaited = connection.awaited();
            match connection.awaited.replace(awaited) {
                None => news.add(&connection.socket, awaited)?,
                Some(before) if before != awaited => news.change(&connection.socket, awaited)?,
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Learns of each connection whether its other end is gone, and forgets processes that have ended.
    fn poll(&mut self, signals: &Signals) -> Result<(), Errno> {
        let mut fds = vec![PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
        for connection in &self.connections {
            fds.push(PollFd::new(&connection.socket, connection.awaited()));
        }
        let ends = self.shared.ends();
        fds.extend(ends.map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
        let at_once = Some(&Timespec { tv_sec: 0, tv_nsec: 0 });
        match poll(&mut fds, at_once) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let (of_connections, of_processes) = fds[1..].split_at(self.connections.len());
        let gone = PollFlags::HUP | PollFlags::ERR;
        let gone: Vec<bool> =
            of_connections.iter().map(|fd| fd.revents().intersects(gone)).collect();
        let ended: Vec<bool> = of_processes.iter().map(|fd| !fd.revents().is_empty()).collect();
        self.shared.forget(ended.into_iter());
        for (connection, gone) in self.connections.iter_mut().zip(gone) {
            connection.is_gone = gone;
        }
        Ok(())
    }

    /// Runs a request that came in memory, and answers it.
    fn run_shared(&mut self, request: &SharedRequest) {
        let answer = match &request.asked {
            Ok((head, body)) => self.run(head, body),
            Err(errno) => Err(*errno),
        };
        // Events that the call caused on the pins can be read when it returns.
        self.look();
        self.shared.give(request, answer);
    }

    /// Answers a process that asks for memory: with two files.
    fn share(&mut self, index: usize) -> Result<(), Errno> {
        let Self { shared, connections, .. } = self;
        let connection = &mut connections[index];
        let process = sockopt::socket_peercred(&connection.socket)?.pid;
        let (bell, slots) = shared.add(process)?;
        let files = [bell, slots.as_fd()];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let head = encode_answer((Ok(0), 0));
        // A process that is there keeps its connection until the answer has come. If it is gone, its number may be
        // another's by now.
        let mut fds = [PollFd::new(&connection.socket, PollFlags::empty())];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        let is_there = fds[0].revents().is_empty();
        let sent = sendmsg(&connection.socket, &[IoSlice::new(&head)], &mut control, flags);
        connection.state = State::Over;
        if !is_there || sent.is_err() {
            shared.remove(process);
        }
        Ok(())
    }

    /// Looks at the lines that are watched, and sends their events.
    fn look(&mut self) {
        let Self { gpio, connections, .. } = self;
        gpio.look(&mut |file, packet| {
            let of_file = |connection: &&Connection| match connection.state {
                State::File(id) => id == file,
                _ => false,
            };
            connections.iter().find(of_file).is_none_or(|connection| connection.tell(packet))
        });
    }

    fn run(&mut self, head: &Head, body: &[u8]) -> Answer {
        if let Call::Hello(_) = head.call {
            self.reported = true;
            return Ok((0, Vec::new()));
        }
        let node = match *self.files.get(&head.id).ok_or(Errno::BADF)? {
            File::Node(node) => node,
            File::Chip(chip) | File::Lines(Some(chip)) => return self.run_gpio(chip, head, body),
            File::Lines(None) => return Err(Errno::BADF),
        };
        match head.call {
            Call::Ioctl(number) => self.nodes.ioctl(node, number, body),
            Call::Read(len) => self.nodes.read(node, len),
            Call::Write => self.nodes.write(node, body),
            Call::Which => {
                let name = self.nodes.name(node).ok_or(Errno::BADF)?;
                Ok((name.number(), Vec::new()))
            }
            Call::Hello(_) | Call::Open(_) | Call::OpenChip(_) | Call::OpenLines | Call::Share => {
                Err(Errno::PROTO)
            }
        }
    }

    fn run_gpio(&mut self, chip: usize, head: &Head, body: &[u8]) -> Answer {
        match head.call {
            Call::Ioctl(number) => {
                let makes_a_file = GpioRequest::decode(number)?.makes_a_file();
                let made = body.last_chunk().filter(|_| makes_a_file);
                let made = made.map(|id| OpenId(u32::from_ne_bytes(*id)));
                if let Some(made) = made
                    && !matches!(self.files.get(&made), Some(File::Lines(None)))
                {
                    return Err(Errno::PROTO);
                }
                let answer = self.gpio.ioctl(chip, head.id, number, body)?;
                if let Some(made) = made {
                    self.files.insert(made, File::Lines(Some(chip)));
                }
                Ok((0, answer))
            }
            Call::Which => Ok((self.gpio.name(chip).ok_or(Errno::BADF)?.0.into(), Vec::new())),
            _ => Err(Errno::PROTO),
        }
    }
}

/// A socket that waits for connections under an abstract name.
fn listening(kind: SocketType, name: &str) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = socket_with(AddressFamily::UNIX, kind, flags, None)?;
    bind(&listener, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// A descriptor to give up.
fn spare() -> Option<OwnedFd> {
    openat(CWD, c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Takes a new connection; `None` if there is none.
fn accept(listener: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    loop {
        match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => return Ok(Some(socket)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Reads a connection's first request, which says which node it opens; `None` if that has not come
/// yet.
fn opened(
    nodes: &Nodes<'_>,
    gpio: &Gpio<'_>,
    connection: &Connection,
) -> Option<Result<(OpenId, File), Errno>> {
    let mut packet = [0; REQUEST_BYTES];
    if connection.packet(&mut packet)? != REQUEST_BYTES {
        return Some(Err(Errno::PROTO));
    }
    let Head { id, call, .. } = match Head::decode(&packet) {
        Ok(head) if connection.ours => head,
        Ok(_) => return Some(Err(Errno::ACCESS)),
        Err(errno) => return Some(Err(errno)),
    };
    let file = match call {
        Call::Open(name) => nodes.find(name).map(File::Node),
        Call::OpenChip(name) => gpio.find(name).map(File::Chip),
        Call::OpenLines => Some(File::Lines(None)),
        _ => None,
    };
    Some(file.map(|file| (id, file)).ok_or(Errno::NODEV))
}

/// Runs the bytes that were written to a file without the library: a message for each packet. Its
/// errors cannot be returned; `--verbose` prints them.
fn written(nodes: &Nodes<'_>, connection: &Connection, id: OpenId, node: usize) {
    let mut room = vec![0; nodes.bufsiz(node) as usize];
    while let Some(length) = connection.packet(&mut room) {
        match room.get(..length).filter(|_| id.writable()) {
            Some(bytes) => drop(nodes.write(node, bytes)),
            None => nodes.refused_write(node, length),
        }
    }
}
