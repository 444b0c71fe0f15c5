//! The other end: a board in another process, as barewire's own traits have it.
//!
//! *Read first*: docs/mmio.md.
//!
//! # How it works
//! [`Client::connect`] says Hello and asks for a page. [`Client::registers`] are a block's registers: reads
//! wait for their answer, writes are posted. [`Client::timer`] counts the board's nanoseconds; waiting lets
//! the board's time pass, without waiting in real time. All are handles of one connection.
//!
//! # Panics
//! Registers cannot fail, so a server that goes away, or refuses an access, is a panic.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use barewire::reg::Registers;
use barewire::time::Timer;

use crate::message::{Answer, NEVER, PadDrive, Request, VERSION};
use crate::page::{Page, SLOTS};
use crate::socket;

/// Turns of a spin loop before the client sleeps.
const SPIN_TURNS: u32 = 100;
/// How long it sleeps before it looks whether the server is still there.
const PATIENCE: Duration = Duration::from_millis(100);

/// A connection: a handle, all clones one connection.
#[derive(Clone)]
pub struct Client(Rc<RefCell<Link>>);

struct Link {
    socket: UnixStream,
    page: Page,
    asked: u64,
    /// The board's time as far as it is known.
    now_ns: u64,
    lines: u32,
    due_ns: u64,
    blocks: Vec<Block>,
}

/// A block, as the server describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The bytes of its registers.
    pub bytes: u32,
    /// Where it is in the SoC.
    pub base: u64,
    /// What a posted write costs.
    pub write_ns: u64,
}

impl Client {
    /// Connects to the server at `path`.
    ///
    /// # Errors
    /// If no server listens there, or it does not speak this protocol.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Self::over(UnixStream::connect(path)?)
    }

    /// Says Hello over a connected socket.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn over(socket: UnixStream) -> io::Result<Self> {
        let hello = Request::Hello { version: VERSION, page: true };
        socket::send(&socket, hello.emit(), None)?;
        let (words, file) = socket::receive(&socket)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let blocks = match Answer::parse(words).map_err(socket::bad)? {
            Answer::Welcome { blocks, .. } => blocks,
            Answer::Refused { reason, .. } => return Err(socket::bad(reason.text())),
            other => return Err(socket::bad(format!("no welcome: {other:?}"))),
        };
        let page = Page::map(file.ok_or_else(|| socket::bad("no page came with the welcome"))?)?;
        if !page.has_magic() {
            return Err(socket::bad("the page has another layout"));
        }
        let blocks = (0..blocks).map(|block| {
            socket::send(&socket, Request::Describe { block }.emit(), None)?;
            let (words, _) = socket::receive(&socket)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            match Answer::parse(words).map_err(socket::bad)? {
                Answer::Block { bytes, base, write_ns, .. } => Ok(Block { bytes, base, write_ns }),
                other => Err(socket::bad(format!("no block: {other:?}"))),
            }
        });
        let blocks = blocks.collect::<io::Result<_>>()?;
        let link = Link { socket, page, asked: 0, now_ns: 0, lines: 0, due_ns: NEVER, blocks };
        Ok(Self(Rc::new(RefCell::new(link))))
    }

    /// The blocks: the controller, then the GPIO banks.
    #[must_use]
    pub fn blocks(&self) -> Vec<Block> {
        self.0.borrow().blocks.clone()
    }

    /// A block's registers.
    #[must_use]
    pub fn registers(&self, block: u8) -> ClientRegisters {
        ClientRegisters { client: self.clone(), block }
    }

    /// The board's time.
    #[must_use]
    pub fn timer(&self) -> ClientTimer {
        ClientTimer(self.clone())
    }

    /// Sets a pad, by its bank's registers.
    pub fn drive(&self, bank: u8, bit: u32, pad: PadDrive) {
        self.wait_for(|now_ns| Request::Drive { bank, bit, pad, now_ns });
    }

    /// A pad's level.
    #[must_use]
    pub fn look(&self, bank: u8, bit: u32) -> bool {
        self.wait_for(|now_ns| Request::Look { bank, bit, now_ns }) != 0
    }

    /// Advances the board to `now_ns`. Returns the lines that are asserted, and when one may change;
    /// [`NEVER`] for never.
    pub fn wait_until(&self, now_ns: u64) -> (u32, u64) {
        self.wait_for(|known| Request::Wait { now_ns: now_ns.max(known) });
        let link = self.0.borrow();
        (link.lines, link.due_ns)
    }

    /// The board's time, as far as it is known.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.0.borrow().now_ns
    }

    /// Makes a request, waits for its answer and returns its value.
    fn wait_for(&self, request: impl FnOnce(u64) -> Request) -> u32 {
        let link = &mut *self.0.borrow_mut();
        let request = request(link.now_ns);
        link.post(request);
        link.wait(link.asked);
        match Answer::parse(link.page.answer_to(link.asked.wrapping_sub(1))) {
            Ok(Answer::Done { lines, value, now_ns, due_ns }) => {
                (link.lines, link.due_ns) = (lines, due_ns);
                link.now_ns = now_ns.max(link.now_ns);
                value
            }
            Ok(Answer::Refused { reason, value }) => {
                panic!("{request:?} refused: {} ({value})", reason.text())
            }
            other => panic!("{request:?}: {other:?}"),
        }
    }
}

impl Link {
    fn post(&mut self, request: Request) {
        self.wait(self.asked.wrapping_sub(SLOTS - 1));
        self.page.ask(self.asked, request.emit());
        self.asked = self.asked.wrapping_add(1);
    }

    /// Until `count` requests are answered.
    fn wait(&self, count: u64) {
        let mut turns = 0;
        loop {
            let answered = self.page.answered();
            if count.wrapping_sub(answered) as i64 <= 0 {
                return;
            }
            if turns < SPIN_TURNS {
                turns += 1;
                std::hint::spin_loop();
                continue;
            }
            self.page.sleep_for_answer(answered, PATIENCE);
            let gone = self.page.answered() == answered && socket::is_gone(&self.socket);
            assert!(!gone, "the server of the simulated board has gone");
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.post(Request::Bye);
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// A block's registers in another process.
#[derive(Clone, Debug)]
pub struct ClientRegisters {
    client: Client,
    block: u8,
}

impl Registers for ClientRegisters {
    fn read(&mut self, offset: u32) -> u32 {
        let block = self.block;
        self.client.wait_for(|now_ns| Request::Read { block, width: 4, offset, now_ns })
    }

    fn write(&mut self, offset: u32, value: u32) {
        let link = &mut *self.client.0.borrow_mut();
        let (block, now_ns) = (self.block, link.now_ns);
        link.post(Request::Write { block, width: 4, offset, value, now_ns });
        link.now_ns += link.blocks.get(usize::from(block)).map_or(0, |block| block.write_ns);
    }

    fn barrier(&mut self) {}
}

/// The board's time, in nanoseconds.
#[derive(Clone, Debug)]
pub struct ClientTimer(Client);

impl Timer for ClientTimer {
    fn frequency_hz(&self) -> u32 {
        1_000_000_000
    }

    fn now_ticks(&mut self) -> u64 {
        self.0.now_ns()
    }

    fn wait_ticks(&mut self, ticks: u64) {
        self.0.wait_until(self.0.now_ns().saturating_add(ticks));
    }
}
