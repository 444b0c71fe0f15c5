//! The qtest protocol: access to QEMU's registers by lines of text over a socket.
//!
//! *Read first*: QEMU's documentation, "QTest Device Emulation Testing Framework". The commands are
//! listed in a comment of `system/qtest.c` (`softmmu/qtest.c` in QEMU 7).
//!
//! # How it works
//! `writel 0xADDR 0xVALUE` is answered by `OK`, `readl 0xADDR` by `OK 0xVALUE`, in order. To wait
//! for an answer costs two process switches, some tens of microseconds; the access itself takes one
//! or two. So:
//! 1. Posted writes: a write is appended to a buffer. The buffer is sent when it is full or before
//!    a read. Its answers are counted later, with the next answer that is waited for.
//! 2. Reads in runs: several reads are sent together, then their answers are awaited.
//! 3. Limit: at most [`IN_FLIGHT_MAX`] commands are unanswered. QEMU writes each answer separately
//!    and blocks when our end of the socket is full (some 280 answers). Our write blocks when
//!    QEMU's end is full. Without the limit both could block for ever.
//! 4. Interrupts: lines that begin with `IRQ` report interrupt lines that moved, once QEMU was
//!    asked to report some ([`Link::try_command`]). They come before the answer to the command that
//!    moved the line, and are stored ([`Link::irq`]).
//! 5. Short waits yield: an answer usually comes sooner than the kernel would wake us. And to wake
//!    us for each answer of a stream would cost QEMU more than the answer itself.
//!
//! The first error is kept, and later accesses do nothing. A register access cannot fail, so the
//! caller has to check [`Link::error`].
//!
//! # Ordering
//! Commands are executed in the order in which they were appended, each once.
//!
//! # Not supported
//! Accesses of 8 and 16 bits, memory, QEMU's virtual clock.

mod reply;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::error::QemuError;
use reply::{Lines, Reply, parse};

/// The number of commands sent at once: enough to make the system call cheap, few enough to start
/// early.
const BATCH: usize = 100;
/// The largest number of unanswered commands (step 3 of the module).
const IN_FLIGHT_MAX: usize = 2 * BATCH;
/// How long an answer may take. An access takes microseconds; only a stopped QEMU takes this long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a wait yields before it begins to sleep.
const SPIN: Duration = Duration::from_micros(100);
/// How long one sleep is: about the kernel's own granularity.
const NAP: Duration = Duration::from_micros(20);

/// A connection to one QEMU.
pub struct Link {
    socket: UnixStream,
    /// Commands not yet sent, and the expected answers of the posted ones among them.
    out: Vec<u8>,
    queued: VecDeque<AnswerKind>,
    /// The expected answers of posted commands that were sent.
    unanswered: VecDeque<AnswerKind>,
    lines: Lines,
    room: Box<[u8]>,
    /// The reported interrupt lines.
    irqs: BTreeMap<u32, Irq>,
    error: Option<QemuError>,
}

/// The state of an interrupt line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Irq {
    /// Whether it is up.
    pub raised: bool,
    /// How many times it went up.
    pub raises: u64,
}

/// The expected kind of an answer.
#[derive(Clone, Copy)]
enum AnswerKind {
    Done,
    Value,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the buffers, which would be too long to print.
        let Self { queued, unanswered, error, .. } = self;
        f.debug_struct("Link")
            .field("queued", &queued.len())
            .field("unanswered", &unanswered.len())
            .field("error", error)
            .finish_non_exhaustive()
    }
}

impl Link {
    /// Takes a connected socket.
    pub(crate) fn new(socket: UnixStream) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            out: Vec::with_capacity(BATCH * 32),
            queued: VecDeque::new(),
            unanswered: VecDeque::new(),
            lines: Lines::default(),
            room: vec![0; 8 << 10].into_boxed_slice(),
            irqs: BTreeMap::new(),
            error: None,
        })
    }

    /// The first error, if any.
    #[must_use]
    pub fn error(&self) -> Option<&QemuError> {
        self.error.as_ref()
    }

    /// Replaces the first error by one that explains it.
    pub(crate) fn explain(&mut self, error: QemuError) {
        self.error = Some(error);
    }

    /// Posts a write.
    pub fn write(&mut self, address: u32, value: u32) {
        self.push_write(b"writel ", address, value.into());
    }

    /// Posts a write of 64 bits.
    pub fn write_long(&mut self, address: u32, value: u64) {
        self.push_write(b"writeq ", address, value);
    }

    fn push_write(&mut self, command: &[u8], address: u32, value: u64) {
        if self.error.is_some() {
            return;
        }
        self.out.extend_from_slice(command);
        push_hex(&mut self.out, address.into());
        self.out.push(b' ');
        push_hex(&mut self.out, value);
        self.out.push(b'\n');
        self.posted(AnswerKind::Done);
    }

    /// Posts a read and discards its value: it pops a FIFO.
    pub fn discard(&mut self, address: u32) {
        if self.error.is_none() {
            self.push_read(b"readl ", address);
            self.posted(AnswerKind::Value);
        }
    }

    fn posted(&mut self, answer: AnswerKind) {
        self.queued.push_back(answer);
        if self.queued.len() == BATCH {
            let sent = self.send();
            self.keep(sent);
        }
    }

    fn push_read(&mut self, command: &[u8], address: u32) {
        self.out.extend_from_slice(command);
        push_hex(&mut self.out, address.into());
        self.out.push(b'\n');
    }

    /// Reads the address once per element, after every earlier write. Zeros if the connection is
    /// lost.
    pub fn read_n(&mut self, address: u32, into: &mut [u32]) {
        for part in into.chunks_mut(BATCH) {
            part.fill(0);
            if self.error.is_none() {
                let read = self.read_part(address, part);
                self.keep(read);
            }
        }
    }

    /// Reads 64 bits, after every earlier write. 0 if the connection is lost.
    pub fn read_long(&mut self, address: u32) -> u64 {
        if self.error.is_some() {
            return 0;
        }
        self.push_read(b"readq ", address);
        let read = self.send().and_then(|()| self.drain(0));
        let read = read.and_then(|()| self.answer(AnswerKind::Value, ANSWER_TIMEOUT));
        read.unwrap_or_else(|error| {
            self.keep(Err(error));
            0
        })
    }

    /// Sends what is queued and waits until everything is answered.
    pub fn settle(&mut self) {
        if self.error.is_none() {
            let settled = self.send().and_then(|()| self.drain(0));
            self.keep(settled);
        }
    }

    /// Waits at most `timeout` for QEMU's first answer, to a command that touches nothing.
    pub(crate) fn greet(&mut self, timeout: Duration) -> Result<(), QemuError> {
        self.transmit(b"endianness\n")?;
        self.answer(AnswerKind::Done, timeout).map(|_| ())
    }

    /// Sends a command that QEMU may refuse, after everything posted. Returns the refusal, if any.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn try_command(&mut self, command: &str) -> Result<Option<String>, QemuError> {
        self.settle();
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let done = self.transmit(format!("{command}\n").as_bytes());
        match done.and_then(|()| self.answer(AnswerKind::Done, ANSWER_TIMEOUT)) {
            Ok(_) => Ok(None),
            Err(QemuError::Protocol { line }) if line.starts_with("FAIL") => Ok(Some(line)),
            Err(error) => {
                self.keep(Err(error.clone()));
                Err(error)
            }
        }
    }

    /// The state of an interrupt line. It is down until a report says otherwise.
    #[must_use]
    pub fn irq(&self, line: u32) -> Irq {
        self.irqs.get(&line).copied().unwrap_or_default()
    }

    fn keep(&mut self, result: Result<(), QemuError>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    fn read_part(&mut self, address: u32, part: &mut [u32]) -> Result<(), QemuError> {
        for _ in &*part {
            self.push_read(b"readl ", address);
        }
        self.send()?;
        self.drain(0)?;
        for word in part {
            // QEMU answers with 64 bits; the upper half of a 32-bit read is zero.
            *word = self.answer(AnswerKind::Value, ANSWER_TIMEOUT)? as u32;
        }
        Ok(())
    }

    /// Sends what is queued, after waiting for room (step 3 of the module).
    fn send(&mut self) -> Result<(), QemuError> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.drain(IN_FLIGHT_MAX - BATCH)?;
        let out = std::mem::take(&mut self.out);
        let sent = self.transmit(&out);
        self.out = out;
        self.out.clear();
        self.unanswered.append(&mut self.queued);
        sent
    }

    /// Waits until at most `left` posted lines are unanswered.
    fn drain(&mut self, left: usize) -> Result<(), QemuError> {
        while self.unanswered.len() > left
            && let Some(&wanted) = self.unanswered.front()
        {
            self.answer(wanted, ANSWER_TIMEOUT)?;
            self.unanswered.pop_front();
        }
        Ok(())
    }

    fn transmit(&mut self, mut bytes: &[u8]) -> Result<(), QemuError> {
        let mut patience = Patience::new(ANSWER_TIMEOUT);
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => patience.wait()?,
                Err(error) => return Err(QemuError::Broken { reason: error.to_string() }),
            }
        }
        Ok(())
    }

    /// Waits for the next answer. Returns 0 for an answer that is only `OK`.
    fn answer(&mut self, wanted: AnswerKind, timeout: Duration) -> Result<u64, QemuError> {
        let mut patience = None;
        loop {
            while let Some(line) = self.lines.next() {
                match (parse(line), wanted) {
                    (Reply::Ok, AnswerKind::Done) => return Ok(0),
                    (Reply::Value(value), AnswerKind::Value) => return Ok(value),
                    (Reply::Irq { line, raised }, _) => {
                        let irq = self.irqs.entry(line).or_default();
                        irq.raises += u64::from(raised && !irq.raised);
                        irq.raised = raised;
                    }
                    _ => return Err(protocol(line)),
                }
            }
            if let Some(line) = self.lines.overlong() {
                return Err(protocol(line));
            }
            match self.socket.read(&mut self.room) {
                Ok(0) => return Err(QemuError::Broken { reason: "QEMU closed it".into() }),
                Ok(n) => self.lines.push(&self.room[..n]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    patience.get_or_insert_with(|| Patience::new(timeout)).wait()?;
                }
                Err(error) => return Err(QemuError::Broken { reason: error.to_string() }),
            }
        }
    }
}

/// A wait that yields, then sleeps, then gives up.
struct Patience {
    begun: Instant,
    timeout: Duration,
}

impl Patience {
    fn new(timeout: Duration) -> Self {
        Self { begun: Instant::now(), timeout }
    }

    fn wait(&mut self) -> Result<(), QemuError> {
        let waited = self.begun.elapsed();
        if waited < SPIN {
            // Yield rather than spin: QEMU may need this core.
            std::thread::yield_now();
        } else if waited < self.timeout {
            std::thread::sleep(NAP);
        } else {
            return Err(QemuError::Silent { waited_ms: waited.as_millis() as u64 });
        }
        Ok(())
    }
}

/// The error for a line that breaks the protocol; the line is shortened.
fn protocol(line: &[u8]) -> QemuError {
    let line = String::from_utf8_lossy(&line[..line.len().min(200)]);
    QemuError::Protocol { line: line.escape_debug().to_string() }
}

/// Appends `0x` and the digits of `value`. By hand, because this is half the cost of a posted
/// write.
fn push_hex(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(b"0x");
    let digits = (64 - value.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(value >> (4 * digit) & 0xf) as usize]);
    }
}

#[cfg(test)]
mod tests;
