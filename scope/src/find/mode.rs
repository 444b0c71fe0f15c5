//! The mode and the length of words, from how data and pauses lie beside SCK's edges.

use super::{Edge, Wires};

/// Without chip selects a pause of so many half clocks is a border.
pub(super) const PAUSE_HALF_CLOCKS: u64 = 32;
/// A word's length is believed if it fits so many of a hundred messages.
const FIT_PERCENT: usize = 95;

/// The mode, and what speaks for it.
pub(super) fn mode(edges: &[Edge], wires: &Wires) -> (u8, String) {
    let data =
        [wires.mosi, wires.miso].into_iter().flatten().fold(0, |mask, bit| mask | 1_u64 << bit);
    // SCK's level when a message begins, and changes of data behind its edges: down and up.
    let (mut idle, mut behind) = ([0_u64; 2], [0_u64; 2]);
    let mut last: Option<(u64, bool)> = None;
    let mut was_active = 0;
    for (before, edge) in edges.iter().zip(edges.iter().skip(1)) {
        let changed = before.levels ^ edge.levels;
        let active = wires.active(edge.levels);
        let (level, clocks) = (edge.levels >> wires.sck & 1 == 1, changed >> wires.sck & 1 == 1);
        if active & !was_active != 0 {
            // An edge in the same sample belongs to the message.
            idle[usize::from(level != clocks)] += 1;
            last = None;
        }
        if clocks {
            let pauses = last.is_none_or(|(at, _)| edge.at - at > wires.pause);
            if wires.selects.is_empty() && pauses {
                idle[usize::from(!level)] += 1;
            }
            last = Some((edge.at, level));
        }
        was_active = active;
        let is_selected = wires.selects.is_empty() || active != 0;
        if let (Some((at, rising)), true) = (last, is_selected && changed & data != 0)
            && edge.at - at <= wires.pause
        {
            behind[usize::from(rising)] += 1;
        }
    }
    let cpol = idle[1] > idle[0];
    let [falling, rising] = behind;
    let (samples_rising, data) = match falling.cmp(&rising) {
        std::cmp::Ordering::Equal => {
            (!cpol, "no data speak for an edge: the first of a clock is taken".to_owned())
        }
        order => {
            let (edge, most) =
                if order.is_gt() { ("falling", falling) } else { ("rising", rising) };
            let other = falling + rising - most;
            (
                order.is_gt(),
                format!("{most} changes of data follow {edge} edges, {other} the others"),
            )
        }
    };
    let mode = 2 * u8::from(cpol) + u8::from(samples_rising == cpol);
    let level = if cpol { "high" } else { "low" };
    let why = format!(
        "mode {mode}: SCK is {level} at {} of {} beginnings; {data}",
        idle[usize::from(cpol)],
        idle[0] + idle[1]
    );
    (mode, why)
}

/// The word's length, and what speaks for it if it is not 8.
pub(super) fn word(edges: &[Edge], wires: &Wires) -> (u8, Option<String>) {
    let (lengths, pauses) = lengths(edges, wires);
    let fits = |values: &[u64], word: u64| {
        let fitting = values.iter().filter(|value| value.is_multiple_of(word)).count();
        fitting * 100 >= values.len() * FIT_PERCENT
    };
    let all = |word| fits(&lengths, word) && fits(&pauses, word);
    let clocks: u64 = lengths.iter().sum();
    // Wider words than 8 bits show by pauses alone, behind each of them.
    let wide = [32, 24, 16].into_iter().find(|&word| {
        let borders = lengths.iter().map(|length| (length / word).saturating_sub(1)).sum::<u64>();
        all(word) && borders > 2 && pauses.len() as u64 * 10 >= borders * 9
    });
    if let Some(word) = wide {
        return (
            word as u8,
            Some(format!(
                "words of {word} bits: SCK pauses {} times, each behind a multiple",
                pauses.len()
            )),
        );
    }
    if lengths.is_empty() || fits(&lengths, 8) {
        return (8, None);
    }
    let odd = (9..=32)
        .rev()
        .chain((4..8).rev())
        .find(|&word| all(word) && (word > 8 || clocks > 4 * word));
    match odd {
        Some(word) => (
            word as u8,
            Some(format!(
                "words of {word} bits: {} messages are multiples of that, not of 8",
                lengths.len()
            )),
        ),
        None => (8, Some("words of 8 bits, though messages have other lengths".into())),
    }
}

/// The clocks of each whole message, and behind how many clocks of a message SCK pauses.
fn lengths(edges: &[Edge], wires: &Wires) -> (Vec<u64>, Vec<u64>) {
    let (mut lengths, mut pauses) = (Vec::new(), Vec::new());
    let mut gaps: Vec<u64> = Vec::new();
    let mut last_sample: Option<u64> = None;
    let (mut clocks, mut was_active, mut is_whole) = (0, u64::MAX, false);
    let mut of_message: Vec<(u64, u64)> = Vec::new();
    for (before, edge) in edges.iter().zip(edges.iter().skip(1)) {
        let rose = (before.levels ^ edge.levels) >> wires.sck & 1 == 1;
        let samples = rose && (edge.levels >> wires.sck & 1 == 1) == wires.samples_rising();
        let active = wires.active(edge.levels);
        let by_pause = wires.selects.is_empty()
            && samples
            && last_sample.is_some_and(|last| edge.at - last > wires.pause);
        if active != was_active && !wires.selects.is_empty() || by_pause {
            if is_whole && clocks > 0 {
                lengths.push(clocks);
                pauses.append(&mut of_message);
            }
            of_message.clear();
            is_whole = was_active != u64::MAX || by_pause;
            (clocks, last_sample) = (0, None);
        }
        was_active = active;
        if samples && (wires.selects.is_empty() || active != 0) {
            if let Some(last) = last_sample {
                gaps.push(edge.at - last);
                of_message.push((clocks, edge.at - last));
            }
            (clocks, last_sample) = (clocks + 1, Some(edge.at));
        }
    }
    gaps.sort_unstable();
    let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(1);
    let pauses = pauses
        .into_iter()
        .filter(|&(_, gap)| 2 * gap > 3 * usual)
        .map(|(clocks, _)| clocks)
        .collect();
    (lengths, pauses)
}
