//! Signs on the wire: pauses between words, and chip select inactive.

use std::collections::BTreeMap;

use super::{Meaning, Of, Sure, us};
use crate::capture::Tick;
use crate::counts::Counts;
use crate::decode::Message;

/// What Linux's SPI core waits at a `cs_change` whose transfer names no delay, and what the change of a line adds at most.
const CS_CHANGE_NS: [f64; 2] = [10_000.0, 13_000.0];
/// Fewer signs are none.
const SIGNS_MIN: u64 = 4;
/// Intervals between long pauses that are kept apart.
const INTERVALS_MAX: usize = 1_024;

/// Counts the signs in a capture's messages.
#[derive(Debug)]
pub struct WireSigns {
    tick: Tick,
    selects: BTreeMap<Option<usize>, Signs>,
}

#[derive(Debug, Default)]
struct Signs {
    messages: u64,
    /// Pauses between words; those of one clock more than none, and of more than two.
    gaps: u64,
    one_clock: u64,
    long: u64,
    /// A clock, in ticks.
    clock: Counts,
    /// The least pause of each message.
    gap: Counts,
    /// Words from one pause that sticks out to the next of the message.
    intervals: BTreeMap<u64, u64>,
    refill: Counts,
    inactive: Counts,
    /// Times of chip select inactive that are as after a `cs_change`, and those that are shorter, from 2 us on.
    changed: Counts,
    shorter: u64,
}

impl WireSigns {
    /// No signs yet, of a capture with this tick.
    #[must_use]
    pub fn new(tick: Tick) -> Self {
        Self { tick, selects: BTreeMap::new() }
    }

    /// Looks at a message.
    pub fn add(&mut self, message: &Message) {
        if message.cut {
            return;
        }
        let signs = self.selects.entry(message.select).or_default();
        signs.messages += 1;
        if let Some(inactive) = message.inactive.filter(|_| message.select.is_some()) {
            let ns = self.tick.ns(inactive);
            signs.inactive.add(inactive);
            // An edge is seen up to a sample late.
            if (CS_CHANGE_NS[0] - self.tick.ns(1)..CS_CHANGE_NS[1]).contains(&ns) {
                signs.changed.add(inactive);
            }
            signs.shorter += u64::from((2_000.0..CS_CHANGE_NS[0] - self.tick.ns(1)).contains(&ns));
        }
        let (ticks, clocks) = message.sck;
        if clocks > 0 && !message.gaps.is_empty() {
            signs.gaps(&message.gaps, ticks as f64 / clocks as f64);
        }
    }

    /// The causes that the signs allow.
    #[must_use]
    pub fn finish(&self) -> Vec<Meaning> {
        self.selects.iter().flat_map(|(select, signs)| signs.tell(*select, self.tick)).collect()
    }
}

impl Signs {
    /// `gaps` in ticks, half a clock where there is no pause, of words with that clock.
    fn gaps(&mut self, gaps: &[u64], clock: f64) {
        self.clock.add(clock.round() as u64);
        let least = gaps.iter().copied().min().unwrap_or(0) as f64;
        self.gap.add(least as u64);
        let mut since = None;
        for (nth, &gap) in (1_u64..).zip(gaps) {
            self.gaps += 1;
            let pause = gap as f64 - clock / 2.0;
            self.one_clock += u64::from((pause - clock).abs() <= (0.15 * clock).max(1.0));
            self.long += u64::from(pause > 2.0 * clock);
            if gap as f64 >= least + 2.0 * clock && gap as f64 >= 2.0 * least {
                // The first may be the border of two transfers: a command and its data.
                if let Some(words) = since.map(|since| nth - since)
                    && (self.intervals.len() < INTERVALS_MAX || self.intervals.contains_key(&words))
                {
                    *self.intervals.entry(words).or_default() += 1;
                }
                self.refill.add((gap as f64 - least) as u64);
                since = Some(nth);
            }
        }
    }

    fn tell(&self, select: Option<usize>, tick: Tick) -> Vec<Meaning> {
        let mut all = Vec::new();
        let mut tell = |cause, sure, what: String, evidence: String| {
            all.push(Meaning { cause, of: Of::Select(select), what, evidence, sure });
        };
        let median = |counts: &Counts| tick.ns(counts.percentile(50).unwrap_or(0));
        let nearly = |some: u64, all: u64| some >= SIGNS_MIN && some * 20 >= all * 19;
        let (gaps, gap, clock) = (self.gaps, median(&self.gap), median(&self.clock));
        // Five samples tell a clock and a half from one.
        let is_sampled = self.clock.percentile(50).is_some_and(|clock| clock >= 5);
        if is_sampled && nearly(self.one_clock, gaps) {
            tell(
                "clock-after-word",
                Sure::Likely,
                "one clock is idle after each word, as BCM2835's SPI0 leaves after each byte: nine clocks a byte".into(),
                format!("{} of {gaps} gaps are 1.5 clocks of {clock:.0} ns, where none is half a clock", self.one_clock),
            );
        } else if nearly(self.long, gaps) {
            tell(
                "pause-after-word",
                Sure::Possible,
                "each word is moved by itself: by a driver without a FIFO, an interrupt a word, or word_delay".into(),
                format!("{} of {gaps} gaps are longer than two clocks; the least of a message is {} at p50", self.long, us(gap)),
            );
        }
        let (seen, most) = (
            self.intervals.values().sum::<u64>(),
            self.intervals.iter().max_by_key(|(_, times)| **times),
        );
        if let Some((&words, &times)) = most
            && words > 1
            && times >= SIGNS_MIN
            && times * 5 >= seen * 4
        {
            tell(
                "fifo-refill",
                Sure::Likely,
                format!("the FIFO runs empty and is filled again every {words} words"),
                format!(
                    "{times} of {seen} pauses that stick out come {words} words after the one before; each is {} longer at p50",
                    us(median(&self.refill))
                ),
            );
        }
        let changed = self.changed.len();
        let times = self.inactive.len();
        if changed >= SIGNS_MIN && changed * 2 >= times && self.shorter * 50 <= times {
            let spread = self.changed.percentile(99).zip(self.changed.percentile(50));
            let spread = spread.map_or(0, |(high, middle)| high - middle);
            let is_narrow = changed >= 16 && tick.ns(spread) <= 1_000.0;
            tell(
                "cs-change-delay",
                if is_narrow { Sure::Likely } else { Sure::Possible },
                "10 us at each cs_change: what Linux's SPI core waits where a transfer names no cs_change_delay (which is there since 5.x)".into(),
                format!(
                    "chip select is inactive for {} to {} in {changed} of {times} times, and for 2 to 10 us in {}",
                    us(tick.ns(self.changed.percentile(0).unwrap_or(0))),
                    us(tick.ns(self.changed.max().unwrap_or(0))),
                    self.shorter
                ),
            );
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nanosecond ticks, clocks of 100 ns.
    fn message(gaps: Vec<u64>, inactive: u64) -> Message {
        let words = gaps.len() as u64 + 1;
        Message {
            select: Some(0),
            clocked: Some((0, 1)),
            sck: (700 * words, 7 * words),
            words,
            gaps,
            inactive: Some(inactive),
            ..Message::default()
        }
    }

    fn told(messages: impl IntoIterator<Item = Message>) -> Vec<(&'static str, Sure)> {
        let mut signs = WireSigns::new(Tick::NS);
        messages.into_iter().for_each(|message| signs.add(&message));
        signs.finish().into_iter().map(|meaning| (meaning.cause, meaning.sure)).collect()
    }

    #[test]
    fn a_cause_is_told_by_its_signature_alone() {
        let even = |gap: u64| move |_| message(vec![gap; 7], 50_000);
        assert_eq!(told((0..9).map(even(50))), []);
        assert_eq!(told((0..9).map(even(150))), [("clock-after-word", Sure::Likely)]);
        assert_eq!(told((0..9).map(even(190))), []);
        assert_eq!(told((0..9).map(even(900))), [("pause-after-word", Sure::Possible)]);
        let refilled = |every: usize| {
            let gaps = (1..64).map(|nth| if nth % every == 0 { 2_000 } else { 50 }).collect();
            message(gaps, 50_000)
        };
        assert_eq!(told((0..3).map(|_| refilled(16))), [("fifo-refill", Sure::Likely)]);
        // A command of 4 bytes, and its data.
        let command =
            |_| message((1..20).map(|nth| if nth == 4 { 2_000 } else { 50 }).collect(), 50_000);
        assert_eq!(told((0..9).map(command)), []);
        // Pauses at any place, as interrupts of others make them.
        let any = |nth: u64| {
            let gaps = (0..64)
                .map(|gap| if (gap * gap + 3 * nth).is_multiple_of(11) { 2_000 } else { 50 })
                .collect();
            message(gaps, 50_000)
        };
        assert_eq!(told((0..9).map(any)), []);
    }

    #[test]
    fn ten_microseconds_are_a_floor_not_an_average() {
        let idle = |ns: Vec<u64>| ns.into_iter().map(|ns| message(vec![50], ns));
        let batch: Vec<u64> = (0..40)
            .map(|nth| if nth % 10 == 0 { 900_000 } else { 10_300 + nth % 3 * 40 })
            .collect();
        assert_eq!(told(idle(batch)), [("cs-change-delay", Sure::Likely)]);
        assert_eq!(
            told(idle(vec![10_100, 11_900, 10_800, 12_500, 60_000])),
            [("cs-change-delay", Sure::Possible)]
        );
        // The same in the middle of others is chance.
        assert_eq!(told(idle((0..40).map(|nth| 7_000 + nth * 150).collect())), []);
        assert_eq!(told(idle(vec![9_700; 40])), []);
    }
}
