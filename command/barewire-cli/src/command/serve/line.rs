//! Where programs connect: a TCP port, or a pseudo-terminal with a link to it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, QueueSelector, tcflush, tcgetattr, tcsetattr};
use rustix::time::Timespec;

use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output::note;

/// How long a wait lasts before it checks whether to stop.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// An address and port.
    Address(SocketAddr),
    /// A link to be made.
    Path(PathBuf),
}

impl FromStr for Where {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return Ok(Self::Path(text.into()));
        }
        let text = text.replace("localhost:", "127.0.0.1:");
        let address = text.parse();
        address.map(Self::Address).map_err(|_| {
            "it is an address and a port, like 127.0.0.1:3333, or a path with a slash".into()
        })
    }
}

/// Where programs connect.
pub(super) enum Listener {
    Port(TcpListener, SocketAddr),
    Terminal {
        link: PathBuf,
        /// The terminal's own path.
        path: PathBuf,
        controller: OwnedFd,
        /// Held open while no program is connected, since the controller's end fails while no
        /// process has the other end open. Closed while one is connected, so that this failure
        /// shows that the program has gone.
        kept: Option<File>,
    },
}

impl Listener {
    /// Listens there.
    pub(super) fn open(place: &Where) -> Result<Self, Failure> {
        match place {
            Where::Address(address) => {
                let failed = |error| Failure::io(format_args!("listen at {address}"), &error);
                let listener = TcpListener::bind(address).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                if !address.ip().is_loopback() {
                    note!(
                        "barewire: warning: whoever reaches {address} can read and write the chip"
                    );
                }
                Ok(Self::Port(listener, address))
            }
            Where::Path(link) => terminal(link).map_err(|error| {
                Failure::io(format_args!("make a terminal at {}", link.display()), &error)
            }),
        }
    }

    /// One line for people and scripts: where it is, and how flashrom gets there.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Port(_, address) => {
                format!("serprog at {address}: flashrom -p serprog:ip={address}")
            }
            Self::Terminal { link, .. } => {
                let link = link.display();
                format!("serprog at {link}: flashrom -p serprog:dev={link}:115200")
            }
        }
    }

    /// Waits for the next program's connection; `None` if the user asks to stop. While it waits, `check` is
    /// asked whether to go on.
    pub(super) fn next(
        &mut self,
        check: impl Fn() -> Result<(), Failure>,
    ) -> Result<Option<Connection>, Failure> {
        loop {
            check()?;
            if interrupt::asked() {
                return Ok(None);
            }
            match self {
                Self::Port(listener, _) => match listener.accept() {
                    Ok((stream, _)) => {
                        let set =
                            stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
                        // It may have gone already.
                        if set.is_ok() {
                            return Ok(Some(Connection::Stream(stream)));
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PATIENCE),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if is_short_of_files(&error) => {
                        note!("barewire: serve: a program is not accepted yet: {error}");
                        thread::sleep(PATIENCE);
                    }
                    Err(error) => return Err(Failure::io("accept a program", &error)),
                },
                Self::Terminal { controller, path, kept, .. } => {
                    let failed = |error| Failure::io("open the terminal", &error);
                    if kept.is_none() {
                        *kept = Some(other_end(path).map_err(failed)?);
                    }
                    let ready = ready(controller, PollFlags::IN);
                    if ready.map_err(|error| Failure::io("wait", &error))? {
                        let copy = controller.try_clone().map_err(failed)?;
                        *kept = None;
                        return Ok(Some(Connection::Terminal(copy.into())));
                    }
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Terminal { link, .. } = self {
            // It was made here.
            let _ = fs::remove_file(link);
        }
    }
}

/// Whether the process, or the system, has too many open files at the moment.
fn is_short_of_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// Waits a while for `what`, or the other end's leaving.
fn ready(file: &impl AsFd, what: PollFlags) -> io::Result<bool> {
    let mut fds = [PollFd::new(file, what)];
    let patience = Timespec { tv_sec: 0, tv_nsec: PATIENCE.subsec_nanos().into() };
    match poll(&mut fds, Some(&patience)) {
        Ok(found) => Ok(found > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// A pseudo-terminal without any processing, and a link to it.
fn terminal(link: &Path) -> io::Result<Listener> {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&controller)?;
    unlockpt(&controller)?;
    let name = ptsname(&controller, Vec::new())?;
    let path = name.to_str().map_err(io::Error::other)?;
    rustix::io::ioctl_fionbio(&controller, true)?;
    let kept = Some(other_end(Path::new(path))?);
    symlink(path, link)?;
    Ok(Listener::Terminal { link: link.into(), path: path.into(), controller, kept })
}

/// Opens a terminal's other end: raw, and without the bytes that an earlier program left unread on either side.
fn other_end(path: &Path) -> io::Result<File> {
    let end = File::options().read(true).write(true).open(path)?;
    let mut settings = tcgetattr(&end)?;
    settings.make_raw();
    tcsetattr(&end, OptionalActions::Now, &settings)?;
    tcflush(&end, QueueSelector::IOFlush)?;
    Ok(end)
}

/// A program's connection.
pub(super) enum Connection {
    Stream(TcpStream),
    Terminal(File),
}

impl Connection {
    /// Reads what came; `WouldBlock` if nothing came for a while.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.is_ready(PollFlags::IN)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        match self {
            Self::Stream(stream) => stream.read(into),
            Self::Terminal(file) => file.read(into),
        }
    }

    /// Sends all of it, as long as the program takes some of it within `limit`, and the user does not ask to stop.
    pub(super) fn send(&mut self, mut bytes: &[u8], limit: Duration) -> io::Result<()> {
        let mut last = Instant::now();
        while !bytes.is_empty() {
            if interrupt::asked() {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            let sent = match self {
                _ if !self.is_ready(PollFlags::OUT)? => Err(ErrorKind::WouldBlock.into()),
                Self::Stream(stream) => stream.write(bytes),
                Self::Terminal(file) => file.write(bytes),
            };
            match sent {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => {
                    bytes = &bytes[sent..];
                    last = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if last.elapsed() >= limit {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits a while; says whether the program has gone.
    pub(super) fn leaves(&self) -> bool {
        self.is_ready(PollFlags::RDHUP).unwrap_or(true)
    }

    fn is_ready(&self, what: PollFlags) -> io::Result<bool> {
        match self {
            Self::Stream(stream) => ready(stream, what),
            Self::Terminal(file) => ready(file, what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_the_server_does_so_while_no_program_is_connected() {
        let mut listener = Listener::open(&"localhost:0".parse().expect("a place")).expect("open");
        let taken = Failure::Failed("taken by spi_imx".into());
        assert_eq!(listener.next(|| Err(taken.clone())).map(|_| ()), Err(taken));
    }
}
