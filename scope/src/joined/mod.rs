//! A capture and a trace of the same traffic: which share of each gap is the software's, and which the wire's.
//!
//! # How it works
//! 1. A selection of the trace is what one chip select encloses: a message, or with `cs_change` a part of it.
//! 2. `align` finds which message on the wire is which selection: by bytes where the trace has them, by lengths, by order
//!    and times.
//! 3. [`Clock`] is what all pairs allow of offset and drift between the two clocks, with how far it can be wrong.
//! 4. Each message that is joined has its [`Shares`], on the capture's clock.
//!
//! # Not supported
//! Words whose number of bits is not the same in all messages; a trace without transfers.

mod align;
mod clock;

use std::collections::BTreeMap;

use crate::capture::Tick;
use crate::decode::{self, Wires};
use crate::trace::{Mark, Message, Trace};

use align::{Found, Sides, Way};
pub use clock::Clock;

/// Bytes of a message on the wire that are kept for the comparison.
const BYTES_KEPT: usize = 4_096;

/// A message on the wire, as far as it is needed. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wired {
    /// Its place in the list of chip selects.
    pub select: Option<usize>,
    /// Its bytes, as the memory of a driver has them.
    pub bytes: u64,
    /// Chip select becomes active.
    pub start_ns: f64,
    /// SCK's first edge.
    pub first_ns: f64,
    /// SCK's last edge.
    pub last_ns: f64,
    /// Chip select becomes inactive.
    pub end_ns: f64,
    /// The time of all clocks, without what lies between words.
    pub clocks_ns: f64,
    mosi: Vec<u8>,
    miso: Vec<u8>,
}

impl Wired {
    /// A message of a capture; none for one that is cut, or has no clock or bits over.
    #[must_use]
    pub fn new(message: &decode::Message, wires: &Wires, tick: Tick) -> Option<Self> {
        let (first, last) = message.clocked?;
        if message.cut || message.bits_over > 0 {
            return None;
        }
        // A driver keeps a word of 9 to 16 bits in two bytes, a longer one in four, the lowest byte first.
        let width = usize::from(wires.word_bits).div_ceil(8).next_power_of_two();
        let bytes = |words: &[u32]| {
            let words = words.iter().take(BYTES_KEPT / width);
            words.flat_map(|word| word.to_le_bytes().into_iter().take(width)).collect()
        };
        let (ticks, clocks) = message.sck;
        let bits = message.words * u64::from(wires.word_bits);
        Some(Self {
            select: message.select,
            bytes: message.words * width as u64,
            start_ns: tick.ns(message.start),
            first_ns: tick.ns(first),
            last_ns: tick.ns(last),
            end_ns: tick.ns(message.end),
            clocks_ns: tick.ns(ticks) / clocks.max(1) as f64 * bits as f64,
            mosi: bytes(&message.mosi),
            miso: bytes(&message.miso),
        })
    }
}

/// What one chip select encloses in the trace.
#[derive(Clone, Debug)]
struct Selection {
    device: String,
    bytes: u64,
    start_ns: u64,
    stop_ns: u64,
    /// Where they begin, and the bytes that were sent and came back, of each transfer.
    data: Vec<(usize, Vec<u8>, Vec<u8>)>,
    message: usize,
}

impl Selection {
    /// The selections of the trace's messages, in order of time.
    fn all(trace: &Trace) -> Vec<Self> {
        let mut all = Vec::new();
        for (nth, message) in trace.messages.iter().enumerate() {
            let mut open: Option<Self> = None;
            for (_, mark) in &message.marks {
                match *mark {
                    Mark::CsOff => all.extend(open.take()),
                    Mark::End(transfer) => {
                        let transfer = &message.transfers[transfer];
                        let open = open.get_or_insert_with(|| Self {
                            device: message.device.clone(),
                            bytes: 0,
                            start_ns: transfer.start_ns,
                            stop_ns: 0,
                            data: Vec::new(),
                            message: nth,
                        });
                        let at = open.bytes.try_into().unwrap_or(usize::MAX);
                        open.data.push((at, transfer.tx.clone(), transfer.rx.clone()));
                        open.bytes += transfer.len;
                        open.stop_ns = transfer.stop_ns;
                    }
                    _ => {}
                }
            }
            all.extend(open);
        }
        all.sort_by_key(|selection| selection.start_ns);
        all
    }

    /// Whether no byte that both sides have differs.
    fn agrees(&self, wired: &Wired) -> bool {
        let agree = |at: usize, ours: &[u8], wire: &[u8]| {
            wire.get(at..).is_none_or(|wire| ours.iter().zip(wire).all(|(our, wire)| our == wire))
        };
        self.data
            .iter()
            .all(|(at, tx, rx)| agree(*at, tx, &wired.mosi) && agree(*at, rx, &wired.miso))
    }
}

/// Where the time of a message goes, in nanoseconds of the capture's clock. It can be wrong by the clock's residual at
/// each border between software and wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// The message's place in the trace.
    pub message: usize,
    /// The places on the wire of its selections: one, more with `cs_change`.
    pub wired: Vec<usize>,
    /// SCK's last edge of the message before, of any device of the controller, to its first of this one.
    pub gap_ns: Option<f64>,
    /// Of the gap: from the other's last edge to its end, and from there to this one's submission; none if this one was
    /// submitted before.
    pub client_ns: Option<f64>,
    /// From its submission to its begin.
    pub queue_ns: f64,
    /// From its begin to SCK's first edge.
    pub begin_ns: f64,
    /// Of it, chip select active to SCK's first edge.
    pub lead_ns: f64,
    /// The clocks of its bits.
    pub clocks_ns: f64,
    /// Between SCK's first edge and its last, less the clocks: between words, transfers and selections.
    pub pauses_ns: f64,
    /// From SCK's last edge to the message's end.
    pub end_ns: f64,
    /// Of it, to chip select inactive.
    pub lag_ns: f64,
}

impl Shares {
    /// The wire's share: the clocks.
    #[must_use]
    pub fn wire_ns(&self) -> f64 {
        self.clocks_ns
    }

    /// The software's and the controller's: all else from submission to end.
    #[must_use]
    pub fn software_ns(&self) -> f64 {
        self.queue_ns + self.begin_ns + self.pauses_ns + self.end_ns
    }
}

/// A capture and a trace, joined.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The clocks.
    pub clock: Clock,
    /// The messages of which each selection has its pair, in order of their begin.
    pub shares: Vec<Shares>,
    /// Pairs.
    pub pairs: usize,
    /// Messages on the wire without a pair, in the time that both have.
    pub wired_alone: usize,
    /// Selections of the trace without one, in that time.
    pub traced_alone: usize,
    /// The chip select of each device.
    pub selects: BTreeMap<String, Option<usize>>,
    /// What else is to be known.
    pub notes: Vec<String>,
}

/// Joins them.
///
/// # Errors
/// A sentence: the two have no common messages, or do not say which is which.
pub fn join(wired: &[Wired], wire_tick: Tick, trace: &Trace) -> Result<Joined, String> {
    if trace.restarts > 0 {
        return Err("the trace has several recordings: cut out the one of the capture".into());
    }
    let selections = Selection::all(trace);
    if selections.is_empty() {
        return Err(
            "the trace has no transfers: record spi_transfer_start and spi_transfer_stop too"
                .into(),
        );
    }
    if wired.is_empty() {
        return Err("the capture has no whole message".into());
    }
    let mut sides = Sides {
        wired,
        selections: &selections,
        by_bytes: true,
        tick_ns: trace.tick_ns as f64 + wire_tick.ns(1),
        selects: BTreeMap::new(),
    };
    let mut notes = Vec::new();
    let all = wired.len().min(selections.len());
    let has_bytes = selections
        .iter()
        .any(|one| one.data.iter().any(|(_, tx, rx)| !(tx.is_empty() && rx.is_empty())));
    let mut found = sides.best();
    if has_bytes && found.way.pairs.len() * 2 < all {
        sides.by_bytes = false;
        let by_lengths = sides.best();
        if by_lengths.way.pairs.len() > 2 * found.way.pairs.len() {
            found = by_lengths;
            notes.push(
                "bytes of the trace are not those on the wire: aligned by lengths and times alone"
                    .into(),
            );
        } else {
            sides.by_bytes = true;
        }
    } else if !has_bytes {
        notes.push("the trace has no bytes: aligned by lengths and times alone".into());
    }
    check(&found, &sides, &mut notes)?;
    let mut way = found.way;
    // Which chip select is whose is known now: what is paired across is not.
    let mut votes: BTreeMap<(&str, Option<usize>), usize> = BTreeMap::new();
    for &(w, t) in &way.pairs {
        *votes.entry((&selections[t].device, wired[w].select)).or_default() += 1;
    }
    let mut votes: Vec<_> = votes.into_iter().collect();
    votes.sort_by_key(|(_, count)| *count);
    sides.selects =
        votes.into_iter().map(|((device, select), _)| (device.to_owned(), select)).collect();
    way.pairs.retain(|&(w, t)| sides.selects[&selections[t].device] == wired[w].select);
    let bounds: Vec<_> = way.pairs.iter().map(|&(w, t)| sides.bounds(w, t)).collect();
    let at_ns = selections[way.pairs[0].1].start_ns as f64;
    let clock = Clock::fit(at_ns, &bounds).map_err(|apart_ns| {
        format!(
            "the times of {} messages contradict each other by {:.3} us: transfers of the trace do not enclose the clocks on the wire",
            way.pairs.len(),
            apart_ns / 1e3
        )
    })?;
    Ok(Joined {
        shares: shares(wired, &selections, &way, trace, &clock),
        clock,
        pairs: way.pairs.len(),
        wired_alone: way.wired_alone,
        traced_alone: way.traced_alone,
        selects: sides.selects,
        notes,
    })
}

/// Whether the way is the only one that the two sides allow.
fn check(found: &Found, sides: &Sides<'_>, notes: &mut Vec<String>) -> Result<(), String> {
    let Found { way, second, is_alike } = found;
    let (pairs, wired, traced) = (way.pairs.len(), sides.wired.len(), sides.selections.len());
    let of = format!("{wired} messages on the wire and {traced} selections in the trace");
    if pairs == 0 {
        let mut lens: [Vec<u64>; 2] = [
            sides.wired.iter().map(|one| one.bytes).collect(),
            sides.selections.iter().map(|one| one.bytes).collect(),
        ];
        let [wire, trace] = lens.each_mut().map(|lens| {
            lens.sort_unstable();
            lens.dedup();
            let shown: Vec<_> = lens.iter().take(8).map(u64::to_string).collect();
            shown.join(", ") + if lens.len() > 8 { ", …" } else { "" }
        });
        return Err(format!(
            "none of {of} are the same: the wire has messages of {wire} bytes, the trace selections of {trace} bytes"
        ));
    }
    if pairs <= way.wired_alone.min(way.traced_alone) || pairs == 1 && wired.min(traced) > 3 {
        return Err(format!(
            "of {of} only {pairs} are the same in their order: are they of the same traffic, and does the trace have all its events?"
        ));
    }
    let is_whole = pairs == wired && pairs == traced;
    if *is_alike && !is_whole {
        return Err(format!(
            "of {of} {pairs} are the same, but {second} are at another offset too: the messages are too much alike; record from before \
             the first message on, or with bytes that differ"
        ));
    }
    if *is_alike {
        notes.push(format!(
            "the messages are alike and evenly spaced ({second} of {pairs} fit at another offset): taken as the same from first to last"
        ));
    }
    Ok(())
}

/// The shares of each message that is joined whole.
fn shares(
    wired: &[Wired],
    selections: &[Selection],
    way: &Way,
    trace: &Trace,
    clock: &Clock,
) -> Vec<Shares> {
    let mut count_of: BTreeMap<usize, usize> = BTreeMap::new();
    for selection in selections {
        *count_of.entry(selection.message).or_default() += 1;
    }
    let mut of_message: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &(w, t) in &way.pairs {
        of_message.entry(selections[t].message).or_default().push(w);
    }
    let mut joined: Vec<_> = of_message
        .into_iter()
        .filter(|(message, wired)| count_of[message] == wired.len())
        .collect();
    joined.sort_by_key(|(_, wired)| wired[0]);
    // Of each message the one before on its controller.
    let mut latest: BTreeMap<&str, usize> = BTreeMap::new();
    let bus = |message: &'_ Message| message.device.find('.').unwrap_or(0);
    let before = trace.messages.iter().enumerate();
    let before: Vec<Option<usize>> =
        before.map(|(nth, message)| latest.insert(&message.device[..bus(message)], nth)).collect();
    // The last edge and the end of each message, with the last of its places on the wire.
    let mut ends: BTreeMap<usize, (usize, f64, f64)> = BTreeMap::new();
    let mut all = Vec::new();
    for (nth, places) in joined {
        let message = &trace.messages[nth];
        let ns = |time_ns: u64| clock.capture_ns(time_ns);
        let start = message.first_ns(|mark| mark == Mark::Start).unwrap_or(message.submit_ns());
        let (first, last) = (&wired[places[0]], &wired[places[places.len() - 1]]);
        let clocks_ns: f64 = places.iter().map(|&place| wired[place].clocks_ns).sum();
        let (submit, done) = (ns(message.submit_ns()), ns(message.done_ns()));
        ends.insert(nth, (places[places.len() - 1], last.last_ns, done));
        // Only if nothing lies between the two, on the wire or in the trace.
        let previous = before[nth].and_then(|before| ends.get(&before));
        let previous = previous.filter(|(place, ..)| place + 1 == places[0]);
        all.push(Shares {
            message: nth,
            gap_ns: previous.map(|(_, edge, _)| first.first_ns - edge),
            client_ns: previous.map(|(_, _, done)| submit - done).filter(|ns| *ns >= 0.0),
            queue_ns: ns(start) - submit,
            begin_ns: (first.first_ns - ns(start)).max(0.0),
            lead_ns: first.first_ns - first.start_ns,
            clocks_ns,
            pauses_ns: (last.last_ns - first.first_ns - clocks_ns).max(0.0),
            end_ns: (done - last.last_ns).max(0.0),
            lag_ns: last.end_ns - last.last_ns,
            wired: places,
        });
    }
    all
}
