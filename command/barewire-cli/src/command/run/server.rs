//! The server's sockets: connections of programs, one request at a time.
//!
//! # How it works
//! All sockets are in one poll loop, and none blocks it. A connection is an open file, or one
//! request ([`protocol`](barewire_spidev_abi::protocol)).
//!
//! # Ordering
//! A program's calls take effect in the program's order, although each comes on a connection of its own:
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
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};

use barewire_spidev_abi::Errno;
use barewire_spidev_abi::gpio::GpioRequest;
use barewire_spidev_abi::protocol::{Call, Head, OpenId, REQUEST_BYTES, encode_answer};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, listen, recv, send, socket_with, sockopt,
};
use rustix::process::{Pid, geteuid};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::Timespec;

use super::direct::LOOK_EVERY;
use super::gpio::Gpio;
use super::nodes::{Answer, Nodes};
use super::signals::Signals;
use crate::shared::failure::Failure;

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
}

impl Connection {
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
    reported: bool,
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
        let (connections, files) = (Vec::new(), HashMap::new());
        let reported = false;
        Ok(Self { nodes, gpio, name, listener, files_listener, connections, files, reported })
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
        let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        loop {
            // Requests that the program sent before it ended are executed.
            let ended = child.try_wait().map_err(failed)?;
            self.round(signals, ended.is_none()).map_err(|errno| failed(errno.into()))?;
            if let Some(status) = ended {
                self.nodes.stop();
                return Ok(status);
            }
            if let Some(process) = process {
                signals.pass_on(process);
            }
        }
    }

    /// One round of the loop; `wait`s for something to do.
    fn round(&mut self, signals: &Signals, wait: bool) -> Result<(), Errno> {
        // What the program runs itself is not asked for here.
        let direct = self.nodes.any_direct();
        if direct {
            self.nodes.look();
        }
        let forever = direct.then_some(&LOOK_EVERY);
        let at_once = Some(&Timespec { tv_sec: 0, tv_nsec: 0 });
        let awaited = match self.gpio.waits() {
            true => Some(&LOOK_AGAIN),
            false => forever,
        };
        self.poll(signals, if wait { awaited } else { at_once })?;
        // Step 1.
        accept(&self.listener, &mut self.connections, || State::Asking(Vec::new()))?;
        accept(&self.files_listener, &mut self.connections, || State::Opening)?;
        let ended = self.poll(signals, at_once)?;
        // Steps 2 and 3.
        for (connection, &ended) in self.connections.iter_mut().zip(&ended) {
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
        // Step 4.
        for (connection, &ended) in self.connections.iter_mut().zip(&ended) {
            if !matches!(connection.state, State::Opening) {
                continue;
            }
            match opened(&self.nodes, &self.gpio, connection) {
                Some((id, file)) => {
                    connection.state = match self.files.entry(id) {
                        Entry::Occupied(_) => State::Over,
                        Entry::Vacant(place) => {
                            place.insert(file);
                            if let File::Node(node) = file {
                                self.nodes.opened(node);
                                written(&self.nodes, connection, id, node);
                            }
                            State::File(id)
                        }
                    };
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
                let answer = self.run(&head, &bytes[REQUEST_BYTES..end]);
                // What the call changed on the pins is there to be read when it returns.
                self.look();
                self.connections[index].answer(answer);
            }
        }
        self.look();
        self.connections.retain(|connection| !matches!(connection.state, State::Over));
        Ok(())
    }

    /// Waits for something to do, and says of each connection whether its other end is gone.
    fn poll(&self, signals: &Signals, timeout: Option<&Timespec>) -> Result<Vec<bool>, Errno> {
        let signals = PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN);
        let mut fds = vec![
            signals,
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::new(&self.files_listener, PollFlags::IN),
        ];
        for connection in &self.connections {
            fds.push(PollFd::new(&connection.socket, connection.awaited()));
        }
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let gone = PollFlags::HUP | PollFlags::ERR;
        Ok(fds[3..].iter().map(|fd| fd.revents().intersects(gone)).collect())
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
            Call::Hello(_) | Call::Open(_) | Call::OpenChip(_) | Call::OpenLines => {
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

/// Takes all new connections.
fn accept(
    listener: &OwnedFd,
    connections: &mut Vec<Connection>,
    state: impl Fn() -> State,
) -> Result<(), Errno> {
    loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match accept_with(listener, flags) {
            // Others' programs have no business here.
            Ok(socket) if ours(&socket) => connections.push(Connection { socket, state: state() }),
            Ok(_) | Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(Errno::AGAIN) => return Ok(()),
            // Too many files: those that are open are served first.
            Err(Errno::MFILE | Errno::NFILE) if !connections.is_empty() => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
}

/// Reads a connection's first request, which says which node it opens; `None` if that has not come
/// yet.
fn opened(
    nodes: &Nodes<'_>,
    gpio: &Gpio<'_>,
    connection: &mut Connection,
) -> Option<(OpenId, File)> {
    let mut packet = [0; REQUEST_BYTES];
    if connection.packet(&mut packet)? == REQUEST_BYTES
        && let Ok(Head { id, call, .. }) = Head::decode(&packet)
    {
        let file = match call {
            Call::Open(name) => nodes.find(name).map(File::Node),
            Call::OpenChip(name) => gpio.find(name).map(File::Chip),
            Call::OpenLines => Some(File::Lines(None)),
            _ => None,
        };
        if let Some(file) = file {
            return Some((id, file));
        }
    }
    connection.state = State::Over;
    None
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

/// Whether the other end is this user's, or root's.
fn ours(socket: &OwnedFd) -> bool {
    sockopt::socket_peercred(socket).is_ok_and(|peer| peer.uid == geteuid() || peer.uid.is_root())
}
