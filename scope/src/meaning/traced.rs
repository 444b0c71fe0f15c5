//! Signs in a trace, and in a trace that is joined with a capture.

use std::collections::BTreeMap;

use super::{Meaning, Of, Sure, us};
use crate::counts::Counts;
use crate::joined::{Joined, Wired};
use crate::trace::{Mark, Message, Trace};

/// Fewer signs are none.
const SIGNS_MIN: usize = 4;
/// What the SPI core waits at a `cs_change`, and what is taken for it.
const CS_CHANGE_NS: [u64; 2] = [10_000, 16_000];
/// A first clock that comes so much later is set up in another way.
const SETUP_NS: f64 = 5_000.0;

fn spread(values: impl IntoIterator<Item = u64>) -> Option<(u64, String)> {
    let mut counts = Counts::default();
    values.into_iter().for_each(|value| counts.add(value));
    let show = |value: Option<u64>| value.map(|ns| us(ns as f64));
    let (p50, p99) = (show(counts.percentile(50))?, show(counts.percentile(99))?);
    Some((counts.len(), format!("{p50} at p50, {p99} at p99")))
}

/// The messages by device.
fn devices(trace: &Trace) -> BTreeMap<&str, Vec<&Message>> {
    let mut devices: BTreeMap<&str, Vec<&Message>> = BTreeMap::new();
    for message in &trace.messages {
        devices.entry(&message.device).or_default().push(message);
    }
    devices
}

/// The causes that a trace shows.
#[must_use]
pub fn of_trace(trace: &Trace) -> Vec<Meaning> {
    let mut all = Vec::new();
    for (device, messages) in devices(trace) {
        let mut tell = |cause, sure, what: &str, evidence: String| {
            all.push(Meaning {
                cause,
                of: Of::Device(device.into()),
                what: what.into(),
                evidence,
                sure,
            });
        };
        changes(&messages, trace.tick_ns, &mut tell);
        pump(&messages, &mut tell);
        let wakes = messages.iter().flat_map(|message| message.wakes_ns.iter().copied());
        if let Some((count, times)) = spread(wakes).filter(|(count, _)| *count >= SIGNS_MIN as u64)
        {
            tell(
                "wake-up-in-transfer",
                Sure::Certain,
                "the driver sleeps in a transfer until the controller's interrupt wakes it: the time to run again is not the wire's",
                format!(
                    "{count} times in {} messages the task that began it was woken within a transfer; from there until it runs {times}",
                    messages.len()
                ),
            );
        }
        let waits =
            messages.iter().filter_map(|message| Some(message.waiter_ns? - message.done_ns()));
        if let Some((count, times)) = spread(waits).filter(|(count, _)| *count >= SIGNS_MIN as u64)
        {
            tell(
                "wake-up-of-waiter",
                Sure::Certain,
                "the submitter sleeps until the message is done, and is woken by another task or interrupt",
                format!(
                    "{count} of {} messages: from done until the submitter runs {times}",
                    messages.len()
                ),
            );
        }
        interrupts(&messages, &mut tell);
    }
    all
}

type Tell<'t> = dyn FnMut(&'static str, Sure, &str, String) + 't;

/// Chip select inactive within messages.
fn changes(messages: &[&Message], tick_ns: u64, tell: &mut Tell<'_>) {
    let mut times = Vec::new();
    for pair in messages.iter().flat_map(|message| message.marks.windows(2)) {
        if let [(off_ns, Mark::CsOff), (on_ns, Mark::CsOn)] = *pair {
            times.push(on_ns - off_ns);
        }
    }
    let is_wait = |ns: &&u64| (CS_CHANGE_NS[0] - tick_ns..CS_CHANGE_NS[1]).contains(*ns);
    let waits = times.iter().filter(is_wait).count();
    if waits >= SIGNS_MIN && waits * 20 >= times.len() * 19 {
        let shown = spread(times.iter().copied()).map_or_else(String::new, |(_, times)| times);
        tell(
            "cs-change-delay",
            Sure::Certain,
            "10 us at each cs_change: what Linux's SPI core waits where a transfer names no cs_change_delay (which is there since 5.x)",
            format!(
                "{waits} of {} times that chip select is inactive within a message: {shown}",
                times.len()
            ),
        );
    }
}

/// Messages that another task begins.
fn pump(messages: &[&Message], tell: &mut Tell<'_>) {
    let pumped: Vec<_> = messages
        .iter()
        .filter(|message| {
            message.submitter.is_some()
                && message.runner.is_some()
                && message.submitter != message.runner
        })
        .collect();
    if pumped.len() < SIGNS_MIN {
        return;
    }
    let start = |message: &Message| message.first_ns(|mark| mark == Mark::Start).unwrap_or(0);
    let queued = spread(pumped.iter().map(|message| start(message) - message.submit_ns()));
    let queued = queued.map_or_else(String::new, |(_, times)| times);
    let woken =
        spread(pumped.iter().filter_map(|message| message.pump_ns).map(|(woken, ran)| ran - woken));
    let (sure, woken) = match woken {
        Some((count, times)) => {
            (Sure::Certain, format!("; {count} times it was woken for it, and ran after {times}"))
        }
        None => (
            Sure::Likely,
            "; the trace has no sched_waking and sched_switch that show its wake-up".into(),
        ),
    };
    tell(
        "queue-wake-up",
        sure,
        "the queue's task begins the message, not its submitter: it is woken for it (spi_async, or a bus that was busy)",
        format!(
            "{} of {} messages are begun by another task; from submission to begin {queued}{woken}",
            pumped.len(),
            messages.len()
        ),
    );
}

/// Interrupts whose number follows the bytes.
fn interrupts(messages: &[&Message], tell: &mut Tell<'_>) {
    let mut of: BTreeMap<&str, Vec<(u64, u32)>> = BTreeMap::new();
    for message in messages {
        for (name, &count) in &message.interrupts {
            of.entry(name).or_default().push((message.lengths().sum(), count));
        }
    }
    for (name, seen) in of {
        // Several a message, and as many as its bytes ask for.
        let seen: Vec<_> = seen.into_iter().filter(|(_, count)| *count >= 4).collect();
        let (bytes, count) =
            seen.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + u64::from(one.1)));
        if seen.len() < SIGNS_MIN || bytes == 0 {
            continue;
        }
        let every = bytes as f64 / count as f64;
        let fits = seen
            .iter()
            .filter(|(bytes, count)| (*bytes as f64 / every - f64::from(*count)).abs() <= 1.5)
            .count();
        if fits * 10 >= seen.len() * 9 {
            tell(
                "fifo-interrupts",
                Sure::Likely,
                "the FIFO is filled and emptied by interrupts within a transfer",
                format!(
                    "{count} interrupts of {name} within the transfers of {} messages, one every {every:.1} bytes",
                    seen.len()
                ),
            );
        }
    }
}

/// The causes that only both together show.
#[must_use]
pub fn of_joined(joined: &Joined, wired: &[Wired], trace: &Trace) -> Vec<Meaning> {
    // By device and length of the first transfer, from its begin to the first clock.
    let mut by_len: BTreeMap<&str, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    for shares in &joined.shares {
        let message = &trace.messages[shares.message];
        let Some(first) = message.transfers.first() else { continue };
        let late = wired[shares.wired[0]].first_ns - joined.clock.capture_ns(first.start_ns);
        by_len.entry(&message.device).or_default().entry(first.len).or_default().push(late);
    }
    let mut all = Vec::new();
    for (device, lens) in by_len {
        let lens: Vec<(u64, f64, usize)> = lens
            .into_iter()
            .filter(|(_, late)| late.len() >= SIGNS_MIN)
            .map(|(len, mut late)| {
                late.sort_by(f64::total_cmp);
                (len, late[late.len() / 2], late.len())
            })
            .collect();
        // Short ones are all faster than long ones, by more than the clocks can be wrong.
        let step = SETUP_NS.max(2.0 * joined.clock.residual_ns);
        let found = (1..lens.len()).find_map(|at| {
            let most = lens[..at].iter().map(|one| one.1).fold(f64::NEG_INFINITY, f64::max);
            let least = lens[at..].iter().map(|one| one.1).fold(f64::INFINITY, f64::min);
            (least - most >= step).then_some((
                lens[at].0,
                most,
                least,
                lens[at..].iter().map(|one| one.2).sum::<usize>(),
            ))
        });
        if let Some((from, short, long, count)) = found {
            all.push(Meaning {
                cause: "dma-set-up",
                of: Of::Device(device.into()),
                what: format!("transfers from {from} bytes on are set up in another way: DMA, by their length"),
                evidence: format!(
                    "in {count} messages the first clock comes {} after the transfer's begin or later (medians), of shorter ones {} at most",
                    us(long),
                    us(short)
                ),
                sure: Sure::Possible,
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::trace::read;

    /// Messages of 64 bytes, each a millisecond behind the other: `lines` have a time in microseconds and an event.
    fn told(count: u64, lines: &[(u64, &str, &str)]) -> Vec<(&'static str, Sure)> {
        let mut text = String::new();
        for nth in 0..count {
            for (us, task, event) in lines {
                let _ = writeln!(text, "{task} [000] ..... 1.{:06}: {event}", 1_000 * nth + us);
            }
        }
        let trace = read(&text);
        assert_eq!((trace.messages.len() as u64, trace.skipped_lines), (count, 0), "{text}");
        of_trace(&trace).into_iter().map(|meaning| (meaning.cause, meaning.sure)).collect()
    }

    const SUBMIT: (u64, &str, &str) = (0, "app-7", "spi_message_submit: spi0.0 aa");
    const START: (u64, &str, &str) = (5, "app-7", "spi_message_start: spi0.0 aa");
    const BEGIN: (u64, &str, &str) =
        (10, "app-7", "spi_transfer_start: spi0.0 t len=64 tx=[] rx=[]");
    const END: (u64, &str, &str) = (90, "app-7", "spi_transfer_stop: spi0.0 t len=64 tx=[] rx=[]");
    const DONE: (u64, &str, &str) = (200, "app-7", "spi_message_done: spi0.0 aa len=64/64");

    #[test]
    fn a_plain_message_means_nothing() {
        assert_eq!(told(9, &[SUBMIT, START, BEGIN, END, DONE]), []);
    }

    #[test]
    fn the_queues_task_is_told_with_or_without_the_scheduler() {
        let start = (5, "spi0-40", "spi_message_start: spi0.0 aa");
        let pumped = [SUBMIT, start, BEGIN, END, DONE];
        assert_eq!(told(9, &pumped), [("queue-wake-up", Sure::Likely)]);
        assert_eq!(told(3, &pumped), [], "three may be chance");
        let woken = (1, "app-7", "sched_waking: comm=spi0 pid=40 prio=120 target_cpu=000");
        let ran = (
            4,
            "app-7",
            "sched_switch: prev_comm=app prev_pid=7 prev_state=D ==> next_comm=spi0 next_pid=40",
        );
        assert_eq!(
            told(9, &[SUBMIT, woken, ran, start, BEGIN, END, DONE]),
            [("queue-wake-up", Sure::Certain)]
        );
    }

    #[test]
    fn sleeps_and_interrupts_within_transfers_are_told() {
        let sleep = (
            11,
            "app-7",
            "sched_switch: prev_comm=app prev_pid=7 prev_state=D ==> next_comm=swapper next_pid=0",
        );
        let interrupt = |us: u64| (us, "<idle>-0", "irq_handler_entry: irq=9 name=fe204000.spi");
        let woken = (60, "<idle>-0", "sched_waking: comm=app pid=7 prio=120 target_cpu=000");
        let ran = (
            70,
            "<idle>-0",
            "sched_switch: prev_comm=swapper prev_pid=0 prev_state=R ==> next_comm=app next_pid=7",
        );
        let [a, b, c, d] = [20, 30, 40, 59].map(interrupt);
        assert_eq!(
            told(9, &[SUBMIT, START, BEGIN, sleep, a, b, c, d, woken, ran, END, DONE]),
            [("wake-up-in-transfer", Sure::Certain), ("fifo-interrupts", Sure::Likely)]
        );
        // One interrupt is the end of a transfer, not a FIFO.
        assert_eq!(told(9, &[SUBMIT, START, BEGIN, a, END, DONE]), []);
    }

    #[test]
    fn ten_microseconds_within_a_message_are_a_cs_change() {
        let half = |us: u64, event: &'static str| (us, "app-7", event);
        let with = |off_us: u64, on_us: u64| {
            [
                SUBMIT,
                START,
                half(10, "spi_transfer_start: spi0.0 t len=32 tx=[] rx=[]"),
                half(50, "spi_transfer_stop: spi0.0 t len=32 tx=[] rx=[]"),
                half(off_us, "spi_set_cs: spi0.0 deactivate"),
                half(on_us, "spi_set_cs: spi0.0 activate"),
                half(80, "spi_transfer_start: spi0.0 t len=32 tx=[] rx=[]"),
                half(90, "spi_transfer_stop: spi0.0 t len=32 tx=[] rx=[]"),
                DONE,
            ]
        };
        assert_eq!(told(9, &with(52, 63)), [("cs-change-delay", Sure::Certain)]);
        assert_eq!(told(9, &with(52, 57)), []);
    }
}
