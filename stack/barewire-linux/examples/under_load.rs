//! Judges the promises of the bus and of the lock between processes, on a mapped controller with a NOR flash, while the
//! machine is busy.
//!
//! `under_load BUS CONTENT SECONDS LOAD`, as root: `cargo xtask guests imx8mp-evk/load` runs it in a guest under a kernel with
//! PREEMPT_RT. BUS is a `mem:` text, CONTENT a file with the first MiB of the flash, SECONDS how long each `mix` runs. The file LOAD is made when the bus is open: then
//! the load may begin.
//! Prints the lines of a guest's script (docs/guests.md), and exits with 1 if it could not begin or a call hangs.
//!
//! | check | what |
//! |---|---|
//! | `load-mix` | contexts of SCHED_FIFO and SCHED_OTHER on all paths, over two openings of the controller |
//! | `load-mix-inheriting` | the same on a bus with priority inheritance |
//! | `load-inherit-bus` | a call of high priority meets a holder of low priority, and a hog between the two: by one bus |
//! | `load-inherit-lock` | the same by the lock between processes |
//!
//! `under_load fifo PRIORITY COMMAND…` runs a command with that priority of SCHED_FIFO, as chrt(1), which small systems
//! lack.
//!
//! # How it works
//! Two openings of one controller in one process are two users of the lock between processes, which knows threads and not
//! processes. So one [`Wire`] sees all messages, without memory that processes share. A [`Tap`] inside that lock tells it
//! each message as it runs. The address that a message reads says whose it is and which of that context's: order and
//! overtaking are seen at the wire, and the bytes that come back are compared with the flash's content.
//!
//! It checks the order of events, not their times: an emulated or busy machine is slow, and must keep the promises
//! all the same. The times that are printed inform.
//!
//! In `load-inherit-…` nothing is allocated: the allocator's lock lends no priority, so a thread of low priority that holds
//! it makes one of high priority wait for whatever runs between the two.
//!
//! # Not supported
//! A chip without `4READ` (0x13). Other programs may use the chip through the lock meanwhile, but must not write.

use std::hint::black_box;
use std::os::unix::process::CommandExt as _;
use std::pin::Pin;
use std::process::{Command, exit};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use barewire::bus::{Bus, Device, Platform};
use barewire::controller::{Controller, Preset, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::{Error, Settings, Transfer};
use barewire_linux::Root;
use barewire_linux::bus_text::parse_mem;
use barewire_linux::map::{Mapped, MappedController};
use barewire_linux::platform::{FUTEX, FUTEX_PI};
use barewire_linux::shared::ProcessShared;
use barewire_linux::worker::{FifoPriority, Worker, WorkerOptions, spawn_scoped};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type OneBus = Bus<ProcessShared<Tap>>;

/// Reads with an opcode that always takes a 4-byte address, so the chip's address mode does not
/// matter.
const READ: u8 = 0x13;
const HEADER: usize = 5;
const DATA: usize = 8;
const LONG: usize = 4096;
/// Contexts have numbers below this.
const CONTEXTS: usize = 8;
/// Numbers of messages repeat after this many.
const NUMBERS: u32 = 4096;
/// Bytes of the flash that are a context's.
const REGION: u32 = 0x1_0000;
/// Messages under one lock.
const LOCKED: u32 = 4;
/// A call that takes longer counts as hung: its wake-up, or that of a call before it, was lost.
const HANG: Duration = Duration::from_secs(30);
/// The promised limit of overtakers.
const OVERTAKERS: u32 = 16;
/// The contexts that may overtake [`Path::Queued`]: their messages have a priority.
const OVERTAKING: [Path; 2] = [Path::Urgent, Path::Prepared];
/// More messages than may overtake one, given at once.
const BURST: usize = 2 * OVERTAKERS as usize;

/// The record of the wire.
#[derive(Default)]
struct Wire {
    /// Messages so far, with the one that runs.
    ran: AtomicU64,
    /// The context whose message runs, plus 1.
    inside: AtomicU32,
    of: [ContextCounts; CONTEXTS],
    broken: Mutex<Vec<String>>,
}

/// What a context had on the wire.
#[derive(Default)]
struct ContextCounts {
    /// Messages.
    messages: AtomicU32,
    /// Messages that it began to give to the bus: never fewer.
    given: AtomicU32,
    /// The value of `Wire::ran` at its last message.
    at: AtomicU64,
    /// Messages that each of [`OVERTAKING`] had on the wire before it.
    overtaking: [AtomicU32; 2],
    /// Milliseconds of the watchdog's clock at which a call began; 0 between calls.
    call: AtomicU64,
}

impl Wire {
    fn broke(&self, what: String) {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Before another check.
    fn forget(&self) {
        for of in &self.of {
            of.messages.store(0, SeqCst);
            of.given.store(0, SeqCst);
        }
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The first promise that was broken, and how many there were.
    fn verdict(&self) -> Result<(), Failure> {
        let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        match broken.first() {
            None => Ok(()),
            Some(first) => Err(format!("{} broken, first: {first}", broken.len()).into()),
        }
    }

    /// A message begins. Returns whose it is, and its number.
    fn enter(&self, tx: &[u8]) -> Option<(Path, u32)> {
        let now = self.ran.fetch_add(1, SeqCst) + 1;
        let &[READ, a, b, c, d, ..] = tx else { return None };
        let address = u32::from_be_bytes([a, b, c, d]);
        let (context, number) = (address / REGION, address % REGION / DATA as u32);
        let Some(&path) = Path::ALL.get(context as usize) else {
            self.broke(format!("a message reads at {address:#x}"));
            return None;
        };
        let inside = self.inside.swap(context + 1, SeqCst);
        if inside != 0 {
            self.broke(format!("{path:?} runs within a message of context {}", inside - 1));
        }
        let of = &self.of[context as usize];
        let expected = of.messages.fetch_add(1, SeqCst) % NUMBERS;
        if number != expected {
            self.broke(format!("order: message {number} of {path:?}, not {expected}"));
        }
        of.at.store(now, SeqCst);
        for (path, seen) in OVERTAKING.iter().zip(&of.overtaking) {
            seen.store(self.of[*path as usize].messages.load(SeqCst), SeqCst);
        }
        Some((path, number))
    }
}

/// Tells the wire each message of one opening.
struct Tap {
    inner: MappedController,
    wire: Arc<Wire>,
    /// The context whose message this opening ran last.
    before: Option<Path>,
}

impl Tap {
    fn tell<R>(&mut self, tx: &[u8], run: impl FnOnce(&mut MappedController) -> R) -> R {
        let entered = self.wire.enter(tx);
        if let Some((Path::Locked, number)) = entered {
            // Messages of the other opener may come in between, because it has another bus object.
            if number % LOCKED != 0 && self.before != Some(Path::Locked) {
                self.wire.broke(format!("{:?} ran within a lock", self.before));
            }
        }
        self.before = entered.map(|(path, _)| path);
        let ran = run(&mut self.inner);
        self.wire.inside.store(0, SeqCst);
        ran
    }
}

impl Layer for Tap {
    barewire::wrapped_controller!(inner: MappedController);

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let mut header = [0; HEADER];
        if let Some(tx) = message.first().and_then(|transfer| transfer.data().tx()) {
            tx.iter().zip(&mut header).for_each(|(byte, place)| *place = *byte);
        }
        self.tell(&header, |inner| inner.run(preset, message))
    }

    fn run_exchange_layer(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        self.tell(tx, |inner| inner.run_exchange(preset, tx, rx))
    }
}

/// Opens the controller once more.
fn open(text: &str, wire: &Arc<Wire>) -> Result<ProcessShared<Tap>, Failure> {
    let spec = parse_mem(text.strip_prefix("mem:").ok_or("the bus is no mem:")?)?;
    let mut mapped = Mapped::open(&Root::system(), &spec)?;
    let lock = mapped.take_lock().ok_or("the bus has no lock between processes")?;
    let tap = || Tap { inner: mapped.start(), wire: Arc::clone(wire), before: None };
    Ok(ProcessShared::bring_up(lock, tap)?)
}

/// How a context uses the bus.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Path {
    Urgent,
    Prepared,
    Queued,
    Mixed,
    Locked,
    Long,
    OtherUrgent,
    OtherPrepared,
}

impl Path {
    const ALL: [Self; CONTEXTS] = [
        Self::Urgent,
        Self::Prepared,
        Self::Queued,
        Self::Mixed,
        Self::Locked,
        Self::Long,
        Self::OtherUrgent,
        Self::OtherPrepared,
    ];

    fn context(self) -> u32 {
        self as u32
    }

    /// The priority of SCHED_FIFO, where it has one; interrupt threads have 50.
    fn fifo(self) -> Option<FifoPriority> {
        match self {
            Self::Urgent => FifoPriority::new(30),
            Self::OtherUrgent => FifoPriority::new(25),
            Self::Prepared => FifoPriority::new(20),
            _ => None,
        }
    }

    /// The priority of its messages.
    fn priority(self) -> u8 {
        match self {
            Self::Urgent => 7,
            Self::Prepared => 3,
            _ => 0,
        }
    }

    /// Whether it uses the second opening.
    fn is_of_other(self) -> bool {
        matches!(self, Self::OtherUrgent | Self::OtherPrepared)
    }
}

/// A context's messages, one after the other.
struct Caller<'w> {
    path: Path,
    wire: &'w Wire,
    content: &'w [u8],
    began: Instant,
    number: u32,
    random: u32,
    calls: u64,
    slowest: Duration,
    /// The most messages that overtook one of its own.
    overtaken: u32,
    rx: Vec<u8>,
}

impl<'w> Caller<'w> {
    fn new(path: Path, wire: &'w Wire, content: &'w [u8], began: Instant) -> Self {
        let random = 0x9e37_79b9_u32.wrapping_mul(path.context() + 1);
        let (calls, slowest) = (0, Duration::ZERO);
        let rx = vec![0; LONG];
        Self { path, wire, content, began, number: 0, random, calls, slowest, overtaken: 0, rx }
    }

    /// Up to `below`: xorshift32.
    fn random(&mut self, below: u32) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random % below
    }

    /// The next message's header, and what it reads.
    fn next(&mut self, length: usize) -> ([u8; HEADER], &'w [u8]) {
        let at = self.path.context() * REGION + self.number * DATA as u32;
        self.number = (self.number + 1) % NUMBERS;
        self.of().given.fetch_add(1, SeqCst);
        let [a, b, c, d] = at.to_be_bytes();
        ([READ, a, b, c, d], &self.content[at as usize..][..length])
    }

    /// The next message as one exchange.
    fn exchange(&mut self) -> ([u8; HEADER + DATA], &'w [u8]) {
        let (header, expected) = self.next(DATA);
        let mut tx = [0; HEADER + DATA];
        tx[..HEADER].copy_from_slice(&header);
        (tx, expected)
    }

    fn of(&self) -> &'w ContextCounts {
        &self.wire.of[self.path.context() as usize]
    }

    /// One call, which the watchdog sees.
    fn call<R>(&mut self, call: impl FnOnce(&mut Self) -> R) -> R {
        let begun = Instant::now();
        let since = begun.duration_since(self.began).as_millis();
        self.of().call.store(1 + since as u64, SeqCst);
        let done = call(self);
        self.of().call.store(0, SeqCst);
        self.slowest = self.slowest.max(begun.elapsed());
        self.calls += 1;
        done
    }

    fn compare(&self, read: &[u8], expected: &[u8]) {
        if read != expected {
            self.wire
                .broke(format!("{:?}: wrong bytes: {read:02x?}, not {expected:02x?}", self.path));
        }
    }

    fn worked<T>(&self, result: Result<T, impl std::fmt::Display>) -> Option<T> {
        result.map_err(|error| self.wire.broke(format!("{:?}: {error}", self.path))).ok()
    }

    fn sync(&mut self, device: &Device<'_, ProcessShared<Tap>>, length: usize) {
        let (header, expected) = self.next(length);
        let ran = self.call(|caller| {
            let rx = &mut caller.rx[..length];
            device.sync(&mut [Transfer::write(&header), Transfer::read(rx)])
        });
        if self.worked(ran).is_some() {
            self.compare(&self.rx[..length], expected);
        }
    }

    /// Gives many messages at once, while others wait in the queue.
    fn burst(
        &mut self,
        bus: &OneBus,
        device: &Device<'_, ProcessShared<Tap>>,
    ) -> Result<(), Failure> {
        let mut burst = Vec::new();
        for _ in 0..BURST {
            burst.push(Box::pin(device.queued([0; HEADER + DATA])?));
        }
        let lock = bus.lock();
        // Other threads submit theirs meanwhile.
        thread::sleep(Duration::from_millis(1));
        let mut all = Vec::new();
        for queued in &mut burst {
            let (tx, expected) = self.exchange();
            *queued.as_mut().tx_mut()? = tx;
            queued.as_mut().enqueue()?;
            all.push(expected);
        }
        drop(lock);
        for (queued, expected) in burst.iter_mut().zip(all) {
            let ran = self.call(|_| queued.as_mut().wait());
            if self.worked(ran.unwrap_or(Ok(0))).is_some() {
                self.compare(&Pin::as_ref(queued).rx()?[HEADER..], expected);
            }
        }
        Ok(())
    }

    /// Uses the bus until it is over.
    fn run(&mut self, bus: &OneBus, over: &AtomicBool) -> Result<(), Failure> {
        let device = bus.device(&Settings::new(0, 10_000_000))?.with_priority(self.path.priority());
        let mut prepared = device.prepare([0; HEADER + DATA])?;
        let mut queued = Box::pin(device.queued([0; HEADER + DATA])?);
        while !over.load(SeqCst) {
            let path = self.path;
            match path {
                Path::Urgent if self.random(8) == 0 => self.burst(bus, &device)?,
                Path::Urgent | Path::OtherUrgent => self.sync(&device, DATA),
                Path::Long => self.sync(&device, LONG),
                Path::Prepared | Path::OtherPrepared => {
                    let (tx, expected) = self.exchange();
                    *prepared.tx_mut() = tx;
                    let ran = self.call(|_| prepared.run().copied());
                    if let Some(rx) = self.worked(ran) {
                        self.compare(&rx[HEADER..], expected);
                    }
                }
                Path::Queued | Path::Mixed => {
                    let (tx, expected) = self.exchange();
                    *queued.as_mut().tx_mut()? = tx;
                    let put = queued.as_mut().enqueue();
                    let Some(()) = self.worked(put) else { continue };
                    // It is in the queue. Messages that others give from now on overtake it if they run before it.
                    let given =
                        OVERTAKING.map(|path| self.wire.of[path as usize].given.load(SeqCst));
                    if self.path == Path::Mixed {
                        // Queued behind the waiting one, as any message of this context.
                        self.sync(&device, DATA);
                    }
                    let ran = self.call(|_| queued.as_mut().wait());
                    if self.worked(ran.unwrap_or(Ok(0))).is_none() {
                        continue;
                    }
                    self.compare(&Pin::as_ref(&queued).rx()?[HEADER..], expected);
                    if self.path == Path::Queued {
                        let ran = self.of().overtaking.iter().map(|ran| ran.load(SeqCst));
                        let younger = ran.zip(given).map(|(ran, given)| ran.saturating_sub(given));
                        self.overtaken = self.overtaken.max(younger.sum());
                    }
                }
                Path::Locked => self.call(|caller| {
                    let mut lock = bus.lock();
                    for _ in 0..LOCKED {
                        let (header, expected) = caller.next(DATA);
                        let mut rx = [0; DATA];
                        let mut message = [Transfer::write(&header), Transfer::read(&mut rx)];
                        let ran = lock.sync(&device, &mut message);
                        if caller.worked(ran).is_some() {
                            caller.compare(&rx, expected);
                        }
                    }
                }),
            }
            // Load of SCHED_FIFO would leave no time to the other threads.
            if self.path.fifo().is_some() || self.random(16) == 0 {
                thread::sleep(Duration::from_micros(self.random(1_500).into()));
            }
        }
        Ok(())
    }
}

/// Ends the process if a call takes longer than [`HANG`].
fn watch(wire: &Arc<Wire>, began: Instant) -> Result<(), Failure> {
    let options = WorkerOptions { scheduler: FifoPriority::new(90), ..WorkerOptions::default() };
    let wire = Arc::clone(wire);
    // It ends with the process.
    let watchdog = Worker::spawn(&options, move |stop| {
        while !stop.is_set() {
            thread::sleep(Duration::from_millis(100));
            let now = began.elapsed().as_millis() as u64;
            for (path, of) in Path::ALL.iter().zip(&wire.of) {
                let call = of.call.load(SeqCst);
                if call != 0 && now.saturating_sub(call) > HANG.as_millis() as u64 {
                    println!("CHECK load-hang failed {path:?}: a call does not return");
                    exit(1);
                }
            }
        }
    })?;
    std::mem::forget(watchdog);
    Ok(())
}

/// All paths and priorities at once.
fn mix(
    [bus, other]: &[OneBus; 2],
    inherits: bool,
    wire: &Wire,
    content: &[u8],
    began: Instant,
    seconds: u64,
) -> Result<(), Failure> {
    let over = AtomicBool::new(false);
    let callers: Vec<Caller<'_>> = thread::scope(|scope| {
        let start = |path: Path| {
            let bus = if path.is_of_other() { other } else { bus };
            let options = WorkerOptions { scheduler: path.fifo(), ..WorkerOptions::default() };
            let over = &over;
            spawn_scoped(scope, &options, move |_| {
                let mut caller = Caller::new(path, wire, content, began);
                let ran = caller.run(bus, over);
                caller.worked(ran);
                caller
            })
        };
        let workers = Path::ALL.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
        thread::sleep(Duration::from_secs(seconds));
        over.store(true, SeqCst);
        let joined =
            workers.into_iter().map(|worker| worker.join().map_err(|_| "a context panicked"));
        Ok::<_, Failure>(joined.collect::<Result<_, _>>()?)
    })?;
    for caller in &callers {
        let Caller { path, calls, slowest, .. } = caller;
        println!(
            "load: {path:?}: {calls} calls, the slowest {} us of QEMU's time",
            slowest.as_micros()
        );
        if *calls < 10 {
            wire.broke(format!("{path:?} is starved: {calls} calls in {seconds} s"));
        }
        // With inheritance those of higher priority go first, however many.
        if *path == Path::Queued && !inherits {
            println!("load: {path:?}: overtaken by at most {}", caller.overtaken);
            if caller.overtaken > OVERTAKERS {
                wire.broke(format!("{path:?}: {} messages overtook one", caller.overtaken));
            }
        }
    }
    println!("load: {} messages", wire.ran.load(SeqCst));
    wire.verdict()
}

const ROUNDS: u32 = 100;
/// How far a hog counts before it ends by itself: some tenths of a second.
const BUDGET: u32 = 20_000_000;
const IDLE: u32 = 0;
const GO: u32 = 1;
const SPENT: u32 = 2;
const STOP: u32 = 3;
const END: u32 = 4;

/// A thread that needs the processor; its state says when.
struct Hog {
    state: AtomicU32,
    caller: OnceLock<Thread>,
}

impl Hog {
    fn run(&self) {
        loop {
            match self.state.load(SeqCst) {
                END => return,
                GO => {
                    let mut count = 0;
                    while count < BUDGET && self.state.load(SeqCst) == GO {
                        count = black_box(count + 1);
                    }
                    if self.state.compare_exchange(GO, SPENT, SeqCst, SeqCst).is_err() {
                        continue;
                    }
                }
                STOP => {
                    self.state.store(IDLE, SeqCst);
                    self.caller.get().inspect(|caller| caller.unpark());
                }
                _ => thread::park(),
            }
        }
    }
}

/// Three threads on one processor. The one of low priority is in a message when the one of high priority calls, and the
/// one between the two wants to run: the call waits for the message, and not for the hog.
fn inherit(
    low_bus: &OneBus,
    high_bus: &OneBus,
    wire: &Wire,
    content: &[u8],
    began: Instant,
) -> Result<(), Failure> {
    let (over, hog) =
        (AtomicBool::new(false), Hog { state: AtomicU32::new(IDLE), caller: OnceLock::new() });
    let (met, spent, most) = thread::scope(|scope| {
        let options = |priority| WorkerOptions {
            scheduler: FifoPriority::new(priority),
            affinity: Some(vec![0]),
            ..WorkerOptions::default()
        };
        let (over, hog) = (&over, &hog);
        let hogging = spawn_scoped(scope, &options(20), move |_| hog.run())?;
        let waking = hogging.thread().clone();
        let low = spawn_scoped(scope, &options(10), move |_| {
            let mut caller = Caller::new(Path::Long, wire, content, began);
            let ran = caller.run(low_bus, over);
            caller.worked(ran);
        })?;
        let high = spawn_scoped(scope, &options(30), move |_| {
            let mut caller = Caller::new(Path::Urgent, wire, content, began);
            let ran = urgent(&mut caller, high_bus, hog, &waking);
            over.store(true, SeqCst);
            hog.state.store(END, SeqCst);
            waking.unpark();
            println!("load: the slowest call: {} us of QEMU's time", caller.slowest.as_micros());
            ran
        })?;
        let joined = high.join().map_err(|_| "the urgent thread panicked")?;
        low.join().map_err(|_| "the slow thread panicked")?;
        hogging.join().map_err(|_| "the hog panicked")?;
        joined
    })?;
    println!("load: {met} of {ROUNDS} calls met a message; at most {most} began before theirs");
    if spent > 0 {
        return Err(format!("{spent} of {met} calls waited for a hog of lower priority").into());
    }
    wire.verdict()?;
    if met < ROUNDS / 10 {
        return Err(format!("only {met} of {ROUNDS} calls met a message on the wire").into());
    }
    Ok(())
}

/// Calls at any moment of the others' messages. Returns how many calls met one, how many a hog delayed, and the most
/// messages that began before a call's own.
fn urgent(
    caller: &mut Caller<'_>,
    bus: &OneBus,
    hog: &Hog,
    waking: &Thread,
) -> Result<(u32, u32, u64), Failure> {
    hog.caller.get_or_init(thread::current);
    let device = bus.device(&Settings::new(0, 10_000_000))?;
    let (mut met, mut spent, mut most) = (0, 0, 0);
    for _ in 0..ROUNDS {
        thread::sleep(Duration::from_micros(u64::from(500 + caller.random(3_000))));
        // The holder no longer has this processor, so the value does not change.
        let held = caller.wire.inside.load(SeqCst) != 0;
        met += u32::from(held);
        let ran = caller.wire.ran.load(SeqCst);
        hog.state.store(GO, SeqCst);
        waking.unpark();
        if held {
            let mut rx = [0; 1];
            let tried = device.try_sync(&mut [Transfer::read(&mut rx)]);
            if tried.map_err(|failed| failed.error) != Err(Error::Busy) {
                caller
                    .wire
                    .broke("try_sync found the bus free, and a message was on the wire".into());
            }
        }
        caller.sync(&device, DATA);
        spent += u32::from(hog.state.swap(STOP, SeqCst) == SPENT);
        waking.unpark();
        let between = caller.of().at.load(SeqCst).saturating_sub(ran + 1);
        most = most.max(between);
        if between > 1 {
            caller.wire.broke(format!("{between} messages began before that of highest priority"));
        }
        while hog.state.load(SeqCst) != IDLE {
            thread::park();
        }
        if spent == 3 {
            break;
        }
    }
    Ok((met, spent, most))
}

fn judge(text: &str, content: &str, seconds: &str, load: &str) -> Result<(), Failure> {
    let (content, seconds) = (std::fs::read(content)?, seconds.parse()?);
    let began = Instant::now();
    let wire = Arc::new(Wire::default());
    let [mut first, mut second] = [open(text, &wire)?, open(text, &wire)?];
    watch(&wire, began)?;
    WorkerOptions { lock_memory: true, ..WorkerOptions::default() }.apply_here()?;
    std::fs::File::create(load)?;
    for check in ["mix", "mix-inheriting", "inherit-bus", "inherit-lock"] {
        let platform: &'static dyn Platform = if check == "mix" { &FUTEX } else { &FUTEX_PI };
        let buses = [Bus::with_platform(first, platform), Bus::with_platform(second, &FUTEX_PI)];
        wire.forget();
        let (wire, content, [one, other]) = (&*wire, &*content, &buses);
        let ended = match check {
            "inherit-bus" => inherit(one, one, wire, content, began),
            "inherit-lock" => inherit(one, other, wire, content, began),
            _ => mix(&buses, check == "mix-inheriting", wire, content, began, seconds),
        };
        match ended {
            Ok(()) => println!("CHECK load-{check} passed"),
            Err(failure) => println!("CHECK load-{check} failed {failure}"),
        }
        [first, second] = buses.map(Bus::into_inner);
    }
    Ok(())
}

/// Becomes the command; returns why it cannot.
fn fifo(priority: &str, command: &[String]) -> Result<(), Failure> {
    let scheduler = Some(priority.parse().ok().and_then(FifoPriority::new).ok_or("1 to 99")?);
    WorkerOptions { scheduler, ..WorkerOptions::default() }.apply_here()?;
    let (program, arguments) = command.split_first().ok_or("no command")?;
    Err(Command::new(program).args(arguments).exec().into())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ended = match &*arguments {
        [word, priority, command @ ..] if word == "fifo" => fifo(priority, command),
        [bus, content, seconds, load] => judge(bus, content, seconds, load),
        _ => Err("under_load BUS CONTENT SECONDS LOAD".into()),
    };
    if let Err(failure) = ended {
        eprintln!("{failure}");
        exit(1);
    }
}
