//! A conformance suite that any controller can be put under.
//!
//! *Read first*: the case list of Linux's spi-loopback-test module, whose 15 tests and 1,801
//! iterations [`CASES`] covers: same lengths, offsets and shapes.
//!
//! # How it works
//! A case is a message's shape: transfers with fixed or varying lengths, at places in two large
//! areas, one to send from and one to receive into. [`run`] runs every length at every pair of
//! offsets and then looks at the *whole* receiving area: the received bytes must be those expected
//! (in loopback, the bytes sent; for a transfer that only receives, all zeros or all ones), and the
//! bytes around them must be untouched. The message's length must be what was asked, and its delays
//! must have passed.
//!
//! ```
//! use barewire::{bus::Bus, controller::null::Null, spi::Settings};
//! use barewire_conformance::{Clock, Options, run};
//!
//! let bus = Bus::new(Null::new());
//! let device = bus.device(&Settings::new(0, 1_000_000))?;
//! let options = Options { max_len: 64, loopback: false, ..Options::default() };
//! let report = run(&device, &options, &mut Clock::None);
//! assert_eq!((report.failed, report.bytes), (0, options.bytes()));
//! # Ok::<(), barewire::spi::Error>(())
//! ```
//!
//! # Not supported
//! Word lengths other than 8 bits. Properties that show only on the wire (times, order of edges): a
//! simulated board's checkers watch those while the suite runs.

mod cases;

pub use cases::{CASES, Case, LENGTHS, LENGTHS_MAX, Place, Shape};

use std::fmt;

use barewire::bus::Device;
use barewire::chip::TRANSFER_ROUNDED_TO;
use barewire::controller::Controller;
use barewire::spi::{Error, MessageError, Transfer};

/// Fill of the receiving area outside all transfers, where nothing may be written.
const GUARD: u8 = 0x55;
/// Fill of the receive buffers, where every byte must be overwritten.
const UNWRITTEN: u8 = 0xaa;
/// Room behind the largest transfer, for offsets.
const SLACK: usize = 4096;
/// The largest transfer.
const MAX_SIZE: usize = 128 << 10;

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Leave out lengths beyond this.
    pub max_len: usize,
    /// MISO is connected to MOSI: what is sent is received.
    pub loopback: bool,
    /// Run the cases with delays too.
    pub delays: bool,
}

impl Default for Options {
    /// Everything, in loopback.
    fn default() -> Self {
        Self { max_len: MAX_SIZE, loopback: true, delays: true }
    }
}

impl Options {
    /// The bytes a run clocks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let iterated = self.iterations().map(|(case, len, _)| case.bytes(len) as u64);
        iterated.sum()
    }

    /// Every case with every length and every pair of offsets, in the order they are run.
    fn iterations(&self) -> impl Iterator<Item = (&'static Case, usize, (usize, usize))> + use<> {
        let Self { max_len, delays, .. } = *self;
        let delayed = |case: &Case| case.shapes.iter().any(|shape| shape.delay_ns > 0);
        CASES.iter().filter(move |case| delays || !delayed(case)).flat_map(move |case| {
            let lengths = case.lengths.iter().copied().filter(move |&len| len <= max_len);
            lengths.flat_map(move |len| case.offsets().map(move |offsets| (case, len, offsets)))
        })
    }
}

/// Where the suite reads time, to hold delays to their minimum.
pub enum Clock<'c> {
    /// Nowhere: delays are not checked.
    None,
    /// Nanoseconds from any start.
    Nanoseconds(&'c mut dyn FnMut() -> u64),
}

impl Clock<'_> {
    fn now_ns(&mut self) -> Option<u64> {
        match self {
            Clock::None => None,
            Clock::Nanoseconds(now) => Some(now()),
        }
    }
}

impl fmt::Debug for Clock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Clock::None => "None",
            Clock::Nanoseconds(_) => "Nanoseconds",
        })
    }
}

/// One iteration that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The case's name.
    pub case: &'static str,
    /// The length iterated.
    pub len: usize,
    /// The offset of the sent bytes.
    pub tx_offset: usize,
    /// The offset of the received bytes.
    pub rx_offset: usize,
    /// What went wrong.
    pub what: What,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, len, tx_offset, rx_offset, what } = self;
        write!(f, "{case}, length {len}, offsets {tx_offset} and {rx_offset}: {what}")
    }
}

/// What can go wrong in an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The message failed.
    Message(MessageError),
    /// The reported length is not the transfers' total.
    Length {
        /// The transfers' total length.
        expected: usize,
        /// The reported length.
        actual: usize,
    },
    /// A transfer received something else.
    Received {
        /// Which transfer.
        transfer_index: usize,
        /// The first byte that differs.
        at: usize,
        /// The expected byte.
        expected: u8,
        /// The byte found.
        actual: u8,
    },
    /// A byte outside every transfer was written.
    Guard {
        /// Where in the receiving area.
        at: usize,
    },
    /// It took less time than its delays.
    TooShort {
        /// Its delays.
        asked_ns: u64,
        /// The time it took.
        took_ns: u64,
    },
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Message(error) => error.fmt(f),
            What::Length { expected, actual } => {
                write!(f, "the message was {actual} bytes long, not {expected}")
            }
            What::Received { transfer_index, at, expected, actual } => write!(
                f,
                "transfer {transfer_index} received {actual:02x} at byte {at}, not {expected:02x}"
            ),
            What::Guard { at } => write!(f, "byte {at}, outside every transfer, was written"),
            What::TooShort { asked_ns, took_ns } => {
                write!(f, "it took {took_ns} ns, less than its delays of {asked_ns} ns")
            }
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Iterations run.
    pub iterations: usize,
    /// Iterations whose message is longer than [`Limits::max_message_bytes`] of the device, and was
    /// refused as that.
    ///
    /// [`Limits::max_message_bytes`]: barewire::controller::Limits::max_message_bytes
    pub too_long: usize,
    /// Bytes clocked by the good ones.
    pub bytes: u64,
    /// The iterations that went wrong, in order; at most [`Report::FAILURES_MAX`].
    pub failures: Vec<Failure>,
    /// The number of all failures, including those that were not kept.
    pub failed: usize,
}

impl Report {
    /// How many failures are kept.
    pub const FAILURES_MAX: usize = 20;
}

/// Runs every case on `device`.
pub fn run<C: Controller + ?Sized>(
    device: &Device<'_, C>,
    options: &Options,
    clock: &mut Clock<'_>,
) -> Report {
    run_watched(device, options, clock, |_| ())
}

/// [`run`], which reports after each iteration how many of [`Options::bytes`] are done, those of
/// failed ones included.
pub fn run_watched<C: Controller + ?Sized>(
    device: &Device<'_, C>,
    options: &Options,
    clock: &mut Clock<'_>,
    mut watch: impl FnMut(u64),
) -> Report {
    let mut areas = Areas::new();
    let mut report = Report::default();
    let mut behind = 0;
    for (case, len, offsets) in options.iterations() {
        report.iterations += 1;
        match iterate(device, options, clock, &mut areas, case, len, offsets) {
            Ok(bytes) => report.bytes += bytes as u64,
            Err(what) if is_too_long(device, case, len, what) => {
                report.iterations -= 1;
                report.too_long += 1;
            }
            Err(what) => {
                report.failed += 1;
                if report.failures.len() < Report::FAILURES_MAX {
                    let (case, (tx_offset, rx_offset)) = (case.name, offsets);
                    report.failures.push(Failure { case, len, tx_offset, rx_offset, what });
                }
            }
        }
        behind += case.bytes(len) as u64;
        watch(behind);
    }
    report
}

/// Whether `what` is the refusal that a message of this length must get.
fn is_too_long<C: Controller + ?Sized>(
    device: &Device<'_, C>,
    case: &Case,
    len: usize,
    what: What,
) -> bool {
    let max_bytes = device.limits().max_message_bytes;
    let rounded = |shape: &Shape| shape.len.unwrap_or(len).next_multiple_of(TRANSFER_ROUNDED_TO);
    let refused = matches!(
        what,
        What::Message(MessageError { error: Error::MessageTooLong { .. }, actual_length: 0, .. })
    );
    refused && case.shapes.iter().map(rounded).sum::<usize>() > max_bytes
}

/// The memory that messages send from, and the memory that they receive into.
struct Areas {
    tx: Vec<u8>,
    rx: Vec<u8>,
}

impl Areas {
    fn new() -> Self {
        let size = 2 * (MAX_SIZE + SLACK);
        // A counter with a period that is no power of two: a shifted copy differs from it.
        let tx = (0..size).map(|i| (i % 251) as u8).collect();
        Self { tx, rx: vec![GUARD; size] }
    }
}

/// Where one transfer's bytes are in the areas.
struct Span {
    tx: Option<usize>,
    rx: Option<usize>,
    len: usize,
}

fn iterate<C: Controller + ?Sized>(
    device: &Device<'_, C>,
    options: &Options,
    clock: &mut Clock<'_>,
    areas: &mut Areas,
    case: &Case,
    len: usize,
    (tx_offset, rx_offset): (usize, usize),
) -> Result<usize, What> {
    let spans: Vec<Span> = case
        .shapes
        .iter()
        .map(|shape| Span {
            tx: shape.tx.map(|place| place.at(len) + tx_offset),
            rx: shape.rx.map(|place| place.at(len) + rx_offset),
            len: shape.len.unwrap_or(len),
        })
        .collect();
    for span in &spans {
        if let Some(rx) = span.rx {
            areas.rx[rx..rx + span.len].fill(UNWRITTEN);
        }
    }
    let asked_ns: u64 = case.shapes.iter().map(|shape| u64::from(shape.delay_ns)).sum();
    let (ran, took_ns) = {
        let mut message = build(&spans, case, areas);
        let begun = clock.now_ns();
        let ran = device.sync(&mut message);
        (ran, begun.zip(clock.now_ns()).map(|(begun, ended)| ended - begun))
    };
    let checked = check(&spans, options, areas, ran);
    // The next iteration begins with guards everywhere.
    for span in &spans {
        if let Some(rx) = span.rx {
            areas.rx[rx..rx + span.len].fill(GUARD);
        }
    }
    if checked.is_err() {
        areas.rx.fill(GUARD);
    }
    // A refused message ends at once, so its error is reported rather than its short time.
    let bytes = checked?;
    match took_ns {
        Some(took_ns) if took_ns < asked_ns => Err(What::TooShort { asked_ns, took_ns }),
        _ => Ok(bytes),
    }
}

/// Builds the message. Its receive buffers are cut out of the area in order of offset; no two
/// buffers of a case share a byte. (The kernel's case with delays receives twice into one buffer,
/// which Rust's borrows rule out; here the second receive has a buffer of its own.)
fn build<'a>(spans: &[Span], case: &Case, areas: &'a mut Areas) -> Vec<Transfer<'a>> {
    let mut order: Vec<usize> = (0..spans.len()).filter(|&i| spans[i].rx.is_some()).collect();
    order.sort_by_key(|&i| spans[i].rx);
    let mut pieces: Vec<Option<&'a mut [u8]>> = spans.iter().map(|_| None).collect();
    let mut rest = &mut areas.rx[..];
    let mut cut = 0;
    for index in order {
        let (start, len) = (spans[index].rx.unwrap_or(cut), spans[index].len);
        let (_, from_start) = rest.split_at_mut(start - cut);
        let (piece, behind) = from_start.split_at_mut(len);
        pieces[index] = Some(piece);
        rest = behind;
        cut = start + len;
    }
    let tx = &areas.tx;
    spans
        .iter()
        .zip(pieces)
        .zip(case.shapes)
        .map(|((span, rx), shape)| {
            let sent = span.tx.map(|at| &tx[at..at + span.len]);
            let transfer = match (sent, rx) {
                (Some(tx), Some(rx)) => Transfer::exchange(tx, rx),
                (Some(tx), None) => Transfer::write(tx),
                (None, Some(rx)) => Transfer::read(rx),
                (None, None) => Transfer::write(&[]),
            };
            transfer.with_delay_ns(shape.delay_ns)
        })
        .collect()
}

fn check(
    spans: &[Span],
    options: &Options,
    areas: &Areas,
    ran: Result<usize, MessageError>,
) -> Result<usize, What> {
    let actual = ran.map_err(What::Message)?;
    let expected = spans.iter().map(|span| span.len).sum();
    if actual != expected {
        return Err(What::Length { expected, actual });
    }
    let mut inside = vec![];
    for (transfer_index, span) in spans.iter().enumerate() {
        let Some(rx) = span.rx else { continue };
        inside.push(rx..rx + span.len);
        if options.loopback {
            let received = &areas.rx[rx..rx + span.len];
            let sent = span.tx.map(|at| &areas.tx[at..at + span.len]);
            check_received(transfer_index, received, sent)?;
        }
    }
    inside.sort_by_key(|range| range.start);
    let mut at = 0;
    for range in inside {
        check_guard(areas, at..range.start)?;
        at = range.end;
    }
    check_guard(areas, at..areas.rx.len())?;
    Ok(expected)
}

fn check_received(transfer_index: usize, received: &[u8], sent: Option<&[u8]>) -> Result<(), What> {
    let constant = match received.first() {
        None => return Ok(()),
        // An undriven line reads high or low, but one of them throughout.
        Some(&0xff) => 0xff,
        Some(_) => 0x00,
    };
    if sent == Some(received) {
        return Ok(());
    }
    let expected = |at: usize| sent.map_or(constant, |sent| sent[at]);
    match received.iter().enumerate().find(|&(at, &actual)| actual != expected(at)) {
        None => Ok(()),
        Some((at, &actual)) => {
            Err(What::Received { transfer_index, at, expected: expected(at), actual })
        }
    }
}

fn check_guard(areas: &Areas, range: std::ops::Range<usize>) -> Result<(), What> {
    const GUARDS: [u8; 1024] = [GUARD; 1024];
    for (index, piece) in areas.rx[range.clone()].chunks(GUARDS.len()).enumerate() {
        // Whole pieces first: the area is large, and nearly always right.
        if piece != &GUARDS[..piece.len()]
            && let Some(offset) = piece.iter().position(|&byte| byte != GUARD)
        {
            return Err(What::Guard { at: range.start + index * GUARDS.len() + offset });
        }
    }
    Ok(())
}
