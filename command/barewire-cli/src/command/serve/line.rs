//! Where programs connect: a TCP port, or a pseudo-terminal with a link to it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use rustix::time::Timespec;

use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output::note;

/// How long a wait lasts before it checks whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);

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
        controller: OwnedFd,
        /// Kept open: the controller's end would fail while no program has the other.
        _kept: File,
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
                        let set = stream
                            .set_nonblocking(false)
                            .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
                            .and_then(|()| stream.set_nodelay(true));
                        // It may have gone already.
                        if set.is_ok() {
                            return Ok(Some(Connection::Stream(stream)));
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PATIENCE),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(Failure::io("accept a program", &error)),
                },
                Self::Terminal { controller, .. } => {
                    if ready(controller).map_err(|error| Failure::io("wait", &error))? {
                        let copy = controller.try_clone();
                        let copy =
                            copy.map_err(|error| Failure::io("open the terminal", &error))?;
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

/// Waits a while for bytes.
fn ready(file: &impl AsFd) -> io::Result<bool> {
    let mut fds = [PollFd::new(file, PollFlags::IN)];
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
    let kept = File::options().read(true).write(true).open(path)?;
    let mut settings = tcgetattr(&kept)?;
    settings.make_raw();
    tcsetattr(&kept, OptionalActions::Now, &settings)?;
    symlink(path, link)?;
    Ok(Listener::Terminal { link: link.into(), controller, _kept: kept })
}

/// A program's connection.
pub(super) enum Connection {
    Stream(TcpStream),
    Terminal(File),
}

impl Read for Connection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stream(stream) => stream.read(into),
            Self::Terminal(file) if ready(file)? => file.read(into),
            Self::Terminal(_) => Err(ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stream(stream) => stream.write(bytes),
            Self::Terminal(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stream(stream) => stream.flush(),
            Self::Terminal(file) => file.flush(),
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
