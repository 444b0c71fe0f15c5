//! Which message on the wire is which of the trace.
//!
//! # How it works
//! 1. Selections of the trace, those with the rarest bytes, are tried with each message on the wire that is like them.
//! 2. From such a pair the others follow by their order and times: the next two are a pair if their bytes agree and their
//!    times do not contradict the pairs before, by more than clocks run apart. Else the earlier one is alone.
//! 3. The way with the most pairs is taken, unless another one has more than half as many: then nothing is told.

use std::collections::BTreeMap;

use super::clock::{Bounds, DRIFT_MAX};
use super::{Selection, Wired};

/// Selections whose likes on the wire are looked for.
const TRIED_MAX: usize = 256;
/// Of these, those with the fewest likes are tried, with so many pairs in all.
const ANCHORS: usize = 32;
const PAIRS_TRIED_MAX: usize = 8_192;
/// How far a way is followed while it is compared with others, and in which it may be wrong at first.
const STEPS_TRIED: usize = 1_024;
const ALONE_AT_FIRST: usize = 16;

/// Both sides, and what makes two a pair.
pub(super) struct Sides<'s> {
    pub(super) wired: &'s [Wired],
    pub(super) selections: &'s [Selection],
    /// Bytes are compared, not lengths alone.
    pub(super) by_bytes: bool,
    /// How exact times are, in nanoseconds.
    pub(super) tick_ns: f64,
    /// The chip select of each device, once it is known.
    pub(super) selects: BTreeMap<String, Option<usize>>,
}

/// Pairs, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Way {
    /// Places on the wire and in the trace.
    pub(super) pairs: Vec<(usize, usize)>,
    /// Messages on the wire without a pair, while the trace has more too.
    pub(super) wired_alone: usize,
    /// Selections of the trace without one, while the wire has more too.
    pub(super) traced_alone: usize,
}

/// The best way.
pub(super) struct Found {
    pub(super) way: Way,
    /// The most pairs of a way at another offset, as far as it was followed.
    pub(super) second: usize,
    /// These are more than half as many as the best way's, as far as that was followed.
    pub(super) is_alike: bool,
}

impl Sides<'_> {
    pub(super) fn bounds(&self, wired: usize, selection: usize) -> Bounds {
        let (wired, selection) = (&self.wired[wired], &self.selections[selection]);
        let (start, stop) = (selection.start_ns as f64, selection.stop_ns as f64);
        Bounds {
            low: (stop, wired.last_ns - stop - self.tick_ns),
            high: (start, wired.first_ns - start + self.tick_ns),
        }
    }

    fn is_like(&self, wired: usize, selection: usize) -> bool {
        let (wired, selection) = (&self.wired[wired], &self.selections[selection]);
        let select = self.selects.get(&selection.device);
        let lasts_ns = (selection.stop_ns - selection.start_ns) as f64;
        wired.bytes == selection.bytes
            && wired.last_ns - wired.first_ns <= lasts_ns * (1.0 + DRIFT_MAX) + 2.0 * self.tick_ns
            && select.is_none_or(|select| *select == wired.select)
            && (!self.by_bytes || selection.agrees(wired))
    }

    /// The way with the most pairs, and whether another one is as good.
    pub(super) fn best(&self) -> Found {
        let mut of_len: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (nth, wired) in self.wired.iter().enumerate() {
            of_len.entry(wired.bytes).or_default().push(nth);
        }
        let count = |nth: &usize| of_len.get(&self.selections[*nth].bytes).map_or(0, Vec::len);
        let mut tried: Vec<usize> =
            (0..self.selections.len()).filter(|nth| count(nth) > 0).collect();
        let even = tried.len().div_ceil(TRIED_MAX / 2).max(1);
        let spread: Vec<usize> = tried.iter().copied().step_by(even).collect();
        tried.sort_by_key(count);
        tried.truncate(TRIED_MAX / 2);
        tried.extend(spread);
        tried.sort_unstable();
        tried.dedup();
        let likes = |nth: usize| -> Vec<usize> {
            let of_len = of_len[&self.selections[nth].bytes].iter().copied();
            of_len.filter(|&wired| self.is_like(wired, nth)).collect()
        };
        let mut anchors: Vec<(usize, Vec<usize>)> = tried
            .into_iter()
            .map(|nth| (nth, likes(nth)))
            .filter(|(_, likes)| !likes.is_empty())
            .collect();
        anchors.sort_by_key(|(_, likes)| likes.len());
        // The best way so far, and of the others where they begin and how many pairs they have.
        let mut best = ((0, 0), Way::default());
        let mut others: Vec<((usize, usize), usize)> = Vec::new();
        let pairs = anchors
            .iter()
            .take(ANCHORS)
            .flat_map(|(nth, likes)| likes.iter().map(|&wired| (wired, *nth)));
        for pair in pairs.take(PAIRS_TRIED_MAX) {
            if best.1.pairs.binary_search(&pair).is_ok() {
                continue;
            }
            let mut way = (pair, self.follow(pair, STEPS_TRIED));
            if way.1.pairs.len() > best.1.pairs.len() {
                std::mem::swap(&mut best, &mut way);
            }
            others.push((way.0, way.1.pairs.len()));
        }
        let tried = best.1.pairs.len();
        let way = if tried == 0 { best.1 } else { self.follow(best.0, usize::MAX) };
        // One that begins within the best way, followed whole, is of the same offset.
        let is_other = |anchor: &(usize, usize)| way.pairs.binary_search(anchor).is_err();
        let others = others.iter().filter(|(anchor, _)| is_other(anchor));
        let second = others.map(|(_, pairs)| *pairs).max().unwrap_or(0);
        Found { is_alike: second * 2 > tried, second, way }
    }

    /// The pairs before and behind `anchor`, which is one.
    fn follow(&self, anchor: (usize, usize), steps: usize) -> Way {
        let mut way = self.walk(anchor, false, steps);
        way.pairs.reverse();
        way.pairs.push(anchor);
        let on = self.walk(anchor, true, steps);
        way.pairs.extend(on.pairs);
        way.wired_alone += on.wired_alone;
        way.traced_alone += on.traced_alone;
        way
    }

    fn walk(&self, anchor: (usize, usize), ahead: bool, steps: usize) -> Way {
        let next = |place: usize| if ahead { Some(place + 1) } else { place.checked_sub(1) };
        let Bounds { low, high } = self.bounds(anchor.0, anchor.1);
        let (mut low_ns, mut high_ns, mut at_ns) = (low.1, high.1, high.0);
        let (mut wired, mut traced) = (next(anchor.0), next(anchor.1));
        let mut way = Way::default();
        for _ in 0..steps {
            let (Some(w), Some(t)) = (wired, traced) else { break };
            if w >= self.wired.len() || t >= self.selections.len() {
                break;
            }
            let Bounds { low, high } = self.bounds(w, t);
            let slack = DRIFT_MAX * (high.0 - at_ns).abs();
            let (least, most) = ((low_ns - slack).max(low.1), (high_ns + slack).min(high.1));
            let is_wired_first = high.1 < low_ns - slack;
            let is_traced_first = low.1 > high_ns + slack;
            // Neither, or, for a message that lasts longer on the wire than in the trace, both.
            let at_once = is_wired_first == is_traced_first;
            if at_once && least <= most && self.is_like(w, t) {
                way.pairs.push((w, t));
                (low_ns, high_ns, at_ns) = (least, most, high.0);
                (wired, traced) = (next(w), next(t));
                continue;
            }
            // The one that comes first, by the times, is alone.
            if at_once || is_wired_first == ahead {
                wired = next(w);
                way.wired_alone += 1;
            }
            if at_once || is_traced_first == ahead {
                traced = next(t);
                way.traced_alone += 1;
            }
            if way.wired_alone + way.traced_alone > ALONE_AT_FIRST + 8 * way.pairs.len() {
                break;
            }
        }
        way
    }
}
