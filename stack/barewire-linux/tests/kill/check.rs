//! Messages that name their sender, and the rules that a record of them must keep.
//!
//! A message is its context's number, its own number in four bytes, a few bytes that follow from
//! both, and a checksum over all before it. So half a message, or two halves, cannot pass for a
//! whole one.

use crate::recorder::Entry;

/// Bytes of message `number` of `context`.
pub(crate) fn message(context: u8, number: u32) -> Vec<u8> {
    let mut bytes = vec![context];
    bytes.extend(number.to_le_bytes());
    bytes.extend((0..number as u8 % 6).map(|index| index ^ context));
    bytes.push(checksum(&bytes));
    bytes
}

fn checksum(bytes: &[u8]) -> u8 {
    // The position is part of the sum, so exchanged bytes are noticed.
    bytes.iter().fold(0x5a, |sum: u8, byte| sum.rotate_left(3) ^ byte.wrapping_add(1))
}

/// The block's configuration for a context's messages: its device's speed.
pub(crate) fn speed_hz(context: u8) -> u32 {
    1_000 + u32::from(context)
}

/// Counts of a good record.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Whole messages, of each context.
    pub(crate) whole: [u32; 2],
    /// Messages begun and not ended.
    pub(crate) half: u32,
    /// Processes that died with the lock, in a message or beside one.
    pub(crate) recovered: u32,
}

/// Reads a record, in which every context's messages are numbered from 0 without a gap but for
/// those of the children, which begin again.
///
/// # Errors
/// The first thing that should not be there, with its place.
pub(crate) fn check(entries: impl Iterator<Item = Entry>) -> Result<Counts, String> {
    let mut counts = Counts::default();
    // The message that runs while CS is active: its configuration, and its bytes so far.
    let mut open: Option<(u32, Vec<u8>)> = None;
    // After half a message there must be a reclaim, and after that a report of the recovery.
    let mut owed = false;
    let mut after_reclaim = false;
    for (at, entry) in entries.enumerate() {
        let wrong = |what: &str| Err(format!("entry {at}, {entry:?}: {what}"));
        if owed && entry != Entry::Recovered {
            return wrong("a half-run message was reclaimed and nobody was told");
        }
        let reclaimed = std::mem::replace(&mut after_reclaim, entry == Entry::Reclaim);
        match entry {
            Entry::Select(config) => {
                if let Some((_, half)) = open.replace((config, Vec::new())) {
                    return wrong(&format!("follows {half:02x?} without a reclaim between"));
                }
            }
            Entry::Byte(byte) => match &mut open {
                Some((_, bytes)) => bytes.push(byte),
                None => return wrong("CS is inactive"),
            },
            Entry::Deselect => {
                let Some((config, bytes)) = open.take() else {
                    return wrong("CS is inactive already");
                };
                let context = bytes.first().copied().unwrap_or(u8::MAX);
                if bytes.len() < 6 || usize::from(context) > 1 {
                    return wrong(&format!("{bytes:02x?} is no message"));
                }
                let number = u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
                if bytes != message(context, number) {
                    return wrong(&format!("{bytes:02x?} passes as a whole message"));
                }
                if config != speed_hz(context) {
                    return wrong(&format!(
                        "a message of context {context} with configuration {config}"
                    ));
                }
                if context == 0 && number != counts.whole[0] {
                    return wrong(&format!("message {number} instead of {}", counts.whole[0]));
                }
                counts.whole[usize::from(context)] += 1;
            }
            Entry::Reclaim => {
                if let Some((_, half)) = open.take() {
                    if half.first().is_some_and(|&context| context != 1) {
                        return wrong(&format!("{half:02x?} of the survivor was cut"));
                    }
                    counts.half += 1;
                    owed = true;
                }
            }
            Entry::Recovered => {
                if !reclaimed {
                    return wrong("a death was told without a reclaim");
                }
                owed = false;
                counts.recovered += 1;
            }
        }
    }
    match open {
        Some((_, half)) => Err(format!("the record ends in {half:02x?}")),
        None => Ok(counts),
    }
}

#[test]
fn the_check_finds_what_must_not_be() {
    use Entry::{Byte, Deselect, Reclaim, Recovered, Select};
    let (own, other) = (Select(speed_hz(0)), Select(speed_hz(1)));
    let whole = |select, context, number, cut: usize| {
        let mut bytes = message(context, number);
        bytes.truncate(bytes.len() - cut);
        let mut entries = vec![select];
        entries.extend(bytes.into_iter().map(Byte));
        entries
    };
    let check = |parts: &[&[Entry]]| check(parts.concat().into_iter());
    let (first, second) = (whole(own, 0, 0, 0), whole(own, 0, 1, 0));
    let half = whole(other, 1, 11, 3);
    let good = [&first[..], &[Deselect], &half, &[Reclaim, Recovered], &second, &[Deselect]];
    assert_eq!(check(&good), Ok(Counts { whole: [2, 0], half: 1, recovered: 1 }));
    let beside = [&first[..], &[Deselect, Reclaim, Recovered], &second, &[Deselect, Reclaim]];
    assert_eq!(check(&beside), Ok(Counts { whole: [2, 0], half: 0, recovered: 1 }));

    for (parts, part) in [
        (&[&half[..], &first, &[Deselect]] as &[&[Entry]], "without a reclaim between"),
        (&[&half, &[Deselect]], "passes as a whole"),
        (&[&half, &first[1..], &[Deselect]], "passes as a whole"),
        (&[&half, &[Reclaim], &first, &[Deselect]], "nobody was told"),
        (&[&first[..4], &[Reclaim]], "of the survivor was cut"),
        (&[&first, &[Deselect, Recovered]], "without a reclaim"),
        (&[&first, &[Deselect], &first, &[Deselect]], "message 0 instead of 1"),
        (&[&second, &[Deselect]], "message 1 instead of 0"),
        (&[&whole(other, 0, 0, 0), &[Deselect]], "with configuration 1001"),
        (&[&[Byte(1)]], "CS is inactive"),
        (&[&[Deselect]], "CS is inactive already"),
        (&[&[own, Deselect]], "is no message"),
        (&[&half[..5], &[Deselect]], "is no message"),
        (&[&half], "ends in"),
    ] {
        let found = check(parts).expect_err(part);
        assert!(found.contains(part), "{part}: {found}");
    }
}
