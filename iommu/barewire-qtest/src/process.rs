//! A QEMU process: started, connected, and ended with its owner.
//!
//! # How it works
//! 1. Directory: a private directory holds the socket, QEMU's log and its standard error. QEMU runs
//!    in it. We listen and QEMU connects. So a QEMU that never gets that far is detected by a
//!    timeout, and one that dies by checking the process meanwhile.
//! 2. Process group: QEMU is in a group of its own. Ctrl-C ends the user's command, which first
//!    leaves the chip in a defined state and then ends QEMU.
//! 3. Closing: SIGTERM makes QEMU write its files and exit with 0; qtest has no command for that.
//!    The shell's `kill` sends the signal, since the standard library has only SIGKILL.
//! 4. Dropping: the same with a shorter timeout, then SIGKILL. The process is always reaped.
//! 5. If this process is killed, nothing is dropped. If util-linux's `setpriv` exists (always on
//!    Debian), QEMU is started through it, and the kernel sends QEMU a SIGTERM when the *thread*
//!    that started it ends. Otherwise QEMU and the directory stay.
//!
//! # Not supported
//! Systems without Unix sockets; guests.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::error::QemuError;
use crate::link::Link;
use crate::private_dir::PrivateDir;
use crate::program::LOOK_INTERVAL;

/// How long QEMU may take to write its files and exit, when asked to.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long QEMU may take on drop, where the result is not needed.
const DROP_TIMEOUT: Duration = Duration::from_secs(2);
/// How long QEMU may take to be seen dead after its connection broke.
const DEATH_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of its standard error goes into an error.
const STDERR_BYTES: u64 = 2_000;
const STDERR_LINES: usize = 5;

const SOCKET: &str = "qtest.sock";
const STDERR: &str = "stderr";
const LOG: &str = "log";

/// How to start QEMU.
#[derive(Debug)]
pub struct Launch<'l> {
    /// QEMU itself.
    pub program: &'l Path,
    /// `-M`.
    pub machine: &'l str,
    /// `-m`.
    pub memory: &'l str,
    /// The interface of a drive whose content is a file, as `-drive if=` names it, and the absolute
    /// path of the file.
    pub drive: Option<(&'l str, &'l Path)>,
    /// The pattern of the trace events that models write to the log.
    pub trace: Option<&'l str>,
    /// Whether the machine is stopped. If not, its processors run and time passes.
    pub stopped: bool,
    /// Further options of QEMU.
    pub more: &'l [String],
    /// How long it may take to answer.
    pub connect_timeout: Duration,
}

/// A running QEMU. Dropping it ends it.
#[derive(Debug)]
pub struct Qemu {
    link: Rc<RefCell<Link>>,
    child: RefCell<Running>,
    /// The length of the log before the machine was accessed.
    log_start: u64,
    // Last: it is removed after QEMU has ended.
    dir: PrivateDir,
}

impl Qemu {
    /// Starts QEMU and waits until it answers.
    ///
    /// # Errors
    /// It cannot be started, ends, or does not answer in time. No process is left then.
    pub fn start(launch: &Launch<'_>, dir: PrivateDir) -> Result<Self, QemuError> {
        let socket = dir.join(SOCKET);
        let listener =
            UnixListener::bind(&socket).map_err(QemuError::file(&socket, "listen at"))?;
        listener.set_nonblocking(true).map_err(QemuError::file(&socket, "listen at"))?;
        let mut child = spawn(launch, &dir)?;
        let begun = Instant::now();
        let connected = accept(&listener, &mut child, &dir, begun, launch.connect_timeout)?;
        let mut link = Link::new(connected).map_err(QemuError::file(&socket, "use"))?;
        let left = launch.connect_timeout.saturating_sub(begun.elapsed());
        link.greet(left).map_err(|error| match error {
            QemuError::Silent { .. } => no_connection(begun, &dir),
            error => child.died(DEATH_TIMEOUT, &dir).unwrap_or(error),
        })?;
        child.has_files = true;
        let log_start = std::fs::metadata(dir.join(LOG)).map_or(0, |metadata| metadata.len());
        Ok(Self { link: Rc::new(RefCell::new(link)), child: RefCell::new(child), log_start, dir })
    }

    /// The connection to its registers.
    #[must_use]
    pub fn link(&self) -> Rc<RefCell<Link>> {
        Rc::clone(&self.link)
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.borrow().child.id()
    }

    /// The first error of the connection, with what is known about QEMU's end.
    #[must_use]
    pub fn lost(&self) -> Option<QemuError> {
        let first = self.link.borrow().error()?.clone();
        if !matches!(first, QemuError::Broken { .. }) {
            return Some(first);
        }
        let died = self.child.borrow_mut().died(DEATH_TIMEOUT, &self.dir)?;
        self.link.borrow_mut().explain(died.clone());
        Some(died)
    }

    /// QEMU's log since its first answer, after everything posted was executed.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> Result<String, QemuError> {
        self.link.borrow_mut().settle();
        let path = self.dir.join(LOG);
        // QEMU creates it with the first line.
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            opened => opened.map_err(QemuError::file(&path, "open"))?,
        };
        let mut log = Vec::new();
        file.seek(SeekFrom::Start(self.log_start))
            .and_then(|_| file.read_to_end(&mut log))
            .map_err(QemuError::file(&path, "read"))?;
        Ok(String::from_utf8_lossy(&log).into_owned())
    }

    /// Executes what is posted, and ends QEMU so that its files are complete (step 3).
    ///
    /// # Errors
    /// The error of [`Qemu::lost`]; it does not end in time or not successfully. It has ended in any
    /// case.
    pub fn close(self) -> Result<(), QemuError> {
        self.link.borrow_mut().settle();
        if let Some(lost) = self.lost() {
            return Err(lost);
        }
        let mut child = self.child.borrow_mut();
        child.terminate();
        match child.wait(CLOSE_TIMEOUT) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(died(status, &self.dir)),
            None => Err(QemuError::Silent { waited_ms: CLOSE_TIMEOUT.as_millis() as u64 }),
        }
    }
}

/// A child that is ended and reaped when dropped.
#[derive(Debug)]
struct Running {
    child: Child,
    /// It may hold data that is not yet in its files: send SIGTERM before SIGKILL.
    has_files: bool,
}

impl Running {
    /// Waits for its exit.
    fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if begun.elapsed() < timeout => std::thread::sleep(LOOK_INTERVAL),
                _ => return None,
            }
        }
    }

    /// The error that describes its exit, if it exits in time.
    fn died(&mut self, timeout: Duration, dir: &PrivateDir) -> Option<QemuError> {
        self.wait(timeout).map(|status| died(status, dir))
    }

    /// Step 3, closing. It is not reaped yet, so the process id is still its own.
    fn terminate(&mut self) {
        let pid = self.child.id().to_string();
        // If there is no shell, the caller's wait times out and it kills.
        let _ = Command::new("sh")
            .args(["-c", "kill -TERM \"$1\"", "sh", &pid])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.has_files && self.wait(Duration::ZERO).is_none() {
            self.terminate();
            if self.wait(DROP_TIMEOUT).is_some() {
                return;
            }
        }
        // Harmless if the process has ended and was reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(launch: &Launch<'_>, dir: &PrivateDir) -> Result<Running, QemuError> {
    let path = dir.join(STDERR);
    let stderr = File::create(&path).map_err(QemuError::file(&path, "create"))?;
    let mut command = if setpriv_works() {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--"]).arg(launch.program);
        command
    } else {
        Command::new(launch.program)
    };
    command
        .args(arguments(launch))
        .current_dir(dir.path())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    // The program has just printed its version, so it exists.
    let child = command.spawn().map_err(QemuError::file(launch.program, "start"))?;
    Ok(Running { child, has_files: false })
}

fn arguments(launch: &Launch<'_>) -> Vec<OsString> {
    let socket = format!("unix:{SOCKET}");
    let mut arguments: Vec<OsString> = [
        ["-M", launch.machine],
        ["-m", launch.memory],
        ["-display", "none"],
        ["-monitor", "none"],
        ["-serial", "null"],
        ["-qtest", &socket],
        ["-qtest-log", "/dev/null"],
        ["-D", LOG],
        ["-d", "guest_errors,unimp"],
    ]
    .as_flattened()
    .iter()
    .map(OsString::from)
    .collect();
    if launch.stopped {
        arguments.push("-S".into());
    }
    arguments.extend(launch.more.iter().map(OsString::from));
    if let Some((interface, file)) = launch.drive {
        arguments.extend(["-drive".into(), drive(interface, file)]);
    }
    if let Some(events) = launch.trace {
        arguments.extend(["-trace".into(), events.into()]);
    }
    arguments
}

/// The value of `-drive`.
fn drive(interface: &str, file: &Path) -> OsString {
    let mut drive = format!("if={interface},format=raw,file=").into_bytes();
    for &byte in file.as_os_str().as_bytes() {
        drive.push(byte);
        if byte == b',' {
            // A comma is doubled, since a single one begins an option.
            drive.push(b',');
        }
    }
    OsString::from_vec(drive)
}

/// Whether `setpriv` supports the options used here; busybox's does not.
fn setpriv_works() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| {
        let tried = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--", "true"].map(OsStr::new))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    })
}

fn accept(
    listener: &UnixListener,
    child: &mut Running,
    dir: &PrivateDir,
    begun: Instant,
    timeout: Duration,
) -> Result<UnixStream, QemuError> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(QemuError::file(dir.join(SOCKET), "accept at")(error)),
        }
        if let Some(died) = child.died(Duration::ZERO, dir) {
            return Err(died);
        }
        if begun.elapsed() > timeout {
            return Err(no_connection(begun, dir));
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

fn no_connection(begun: Instant, dir: &PrivateDir) -> QemuError {
    let waited_ms = begun.elapsed().as_millis() as u64;
    QemuError::NoConnection { waited_ms, stderr: stderr_tail(dir) }
}

fn died(status: ExitStatus, dir: &PrivateDir) -> QemuError {
    QemuError::Died { status: status.to_string(), stderr: stderr_tail(dir) }
}

/// The last lines of QEMU's standard error, joined into one line.
fn stderr_tail(dir: &PrivateDir) -> String {
    let read = || {
        let mut file = File::open(dir.join(STDERR))?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(STDERR_BYTES)))?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail)?;
        Ok::<_, std::io::Error>(tail)
    };
    let tail = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&tail);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(STDERR_LINES)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_in_the_path_begins_no_option() {
        let mut launch = Launch {
            program: Path::new("qemu"),
            machine: "sabrelite",
            memory: "64M",
            drive: Some(("mtd", Path::new("/a,snapshot=on,/b"))),
            trace: Some("m25p80_*"),
            stopped: true,
            more: &[],
            connect_timeout: Duration::ZERO,
        };
        let told = arguments(&launch);
        let drive = "if=mtd,format=raw,file=/a,,snapshot=on,,/b";
        assert!(told.contains(&drive.into()), "{told:?}");
        assert_eq!(told.last(), Some(&"m25p80_*".into()));
        launch.drive = Some(("sd", Path::new("/c")));
        assert!(arguments(&launch).contains(&"if=sd,format=raw,file=/c".into()));
        launch.drive = None;
        assert!(!arguments(&launch).contains(&"-drive".into()));
    }
}
