//! A line's settings: the flags of both versions, and the kernel's checks of them.

use rustix::io::Errno;

use super::layout::{ATTRS, Fields};

/// The flags of version 2. A line's settings are kept as these flags, which are also the ones the
/// kernel reports.
pub(super) mod flag {
    pub(in super::super) const USED: u64 = 1 << 0;
    pub(in super::super) const ACTIVE_LOW: u64 = 1 << 1;
    pub(in super::super) const INPUT: u64 = 1 << 2;
    pub(in super::super) const OUTPUT: u64 = 1 << 3;
    pub(in super::super) const EDGE_RISING: u64 = 1 << 4;
    pub(in super::super) const EDGE_FALLING: u64 = 1 << 5;
    pub(in super::super) const OPEN_DRAIN: u64 = 1 << 6;
    pub(in super::super) const OPEN_SOURCE: u64 = 1 << 7;
    pub(in super::super) const PULL_UP: u64 = 1 << 8;
    pub(in super::super) const PULL_DOWN: u64 = 1 << 9;
    pub(in super::super) const BIAS_DISABLED: u64 = 1 << 10;
    pub(in super::super) const REALTIME: u64 = 1 << 11;
    pub(in super::super) const HTE: u64 = 1 << 12;

    pub(in super::super) const DIRECTION: u64 = INPUT | OUTPUT;
    pub(in super::super) const EDGES: u64 = EDGE_RISING | EDGE_FALLING;
    pub(in super::super) const DRIVE: u64 = OPEN_DRAIN | OPEN_SOURCE;
    pub(in super::super) const BIAS: u64 = PULL_UP | PULL_DOWN | BIAS_DISABLED;
    pub(in super::super) const VALID: u64 =
        ACTIVE_LOW | DIRECTION | EDGES | DRIVE | BIAS | REALTIME | HTE;
}
use flag::{BIAS, BIAS_DISABLED, DIRECTION, DRIVE, EDGES, HTE, INPUT, OUTPUT, VALID};

/// The configuration asked for one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineConfig {
    /// Flags of version 2.
    pub(super) flags: u64,
    /// The value of an output.
    pub(super) value: bool,
    /// How long an input is stable before it counts, in microseconds; 0 for at once.
    pub(super) debounce_us: u32,
}

const ATTR_FLAGS: u32 = 1;
const ATTR_VALUES: u32 = 2;
const ATTR_DEBOUNCE: u32 = 3;
/// The offset of the attributes in a configuration, and the bytes of an attribute with its mask.
const ATTRS_AT: usize = 32;
const ATTR_BYTES: usize = 24;

/// `struct gpio_v2_line_config` as each of `lines` lines has it.
pub(super) fn of_config(config: Fields<'_>, lines: usize) -> Result<Vec<LineConfig>, Errno> {
    let count = config.u32(8) as usize;
    if count > ATTRS || config.bytes(12, 20).iter().any(|byte| *byte != 0) {
        return Err(Errno::INVAL);
    }
    let of_line = |line: usize| {
        // The first attribute of a kind that is about the line.
        let attr = |id: u32| {
            (0..count)
                .map(|index| ATTRS_AT + index * ATTR_BYTES)
                .find(|at| config.u32(*at) == id && config.u64(at + 16) >> line & 1 != 0)
        };
        let flags = attr(ATTR_FLAGS).map_or(config.u64(0), |at| config.u64(at + 8));
        let value = attr(ATTR_VALUES).is_some_and(|at| config.u64(at + 8) >> line & 1 != 0);
        let debounce_us = attr(ATTR_DEBOUNCE).map_or(0, |at| config.u32(at + 8));
        check(flags)?;
        if debounce_us != 0 && flags & INPUT == 0 {
            return Err(Errno::INVAL);
        }
        Ok(LineConfig { flags, value, debounce_us })
    };
    (0..lines).map(of_line).collect()
}

/// Whether exactly one flag, or none, of `mask` is set.
fn at_most_one(flags: u64, mask: u64) -> bool {
    (flags & mask).count_ones() <= 1
}

fn check(flags: u64) -> Result<(), Errno> {
    if flags & !VALID != 0 {
        return Err(Errno::INVAL);
    }
    if flags & HTE != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let good = at_most_one(flags, DIRECTION)
        && (flags & EDGES == 0 || flags & INPUT != 0)
        && at_most_one(flags, DRIVE)
        && (flags & DRIVE == 0 || flags & OUTPUT != 0)
        && (flags & BIAS == 0 || flags & DIRECTION != 0)
        && at_most_one(flags, BIAS);
    if good { Ok(()) } else { Err(Errno::INVAL) }
}

/// Version 1's flags of a line, as version 2 has them, in the order of their bits.
const HANDLE_FLAGS: [u64; 8] = [
    INPUT,
    OUTPUT,
    flag::ACTIVE_LOW,
    flag::OPEN_DRAIN,
    flag::OPEN_SOURCE,
    flag::PULL_UP,
    flag::PULL_DOWN,
    BIAS_DISABLED,
];

/// Version 1's flags of a handle.
pub(super) fn of_handle(flags: u32) -> Result<u64, Errno> {
    let flags = translated(flags)?;
    check(flags)?;
    Ok(flags)
}

/// Version 1's flags of an event's line.
pub(super) fn of_event(handle_flags: u32, event_flags: u32) -> Result<u64, Errno> {
    let flags = translated(handle_flags)?;
    if event_flags & !3 != 0 || flags & (OUTPUT | DRIVE) != 0 || !at_most_one(flags, BIAS) {
        return Err(Errno::INVAL);
    }
    let edges = [flag::EDGE_RISING, flag::EDGE_FALLING];
    let edges = (0..).zip(edges).filter(|(bit, _)| event_flags >> bit & 1 != 0);
    Ok(flags | INPUT | edges.map(|(_, edge)| edge).sum::<u64>())
}

fn translated(flags: u32) -> Result<u64, Errno> {
    if flags >> HANDLE_FLAGS.len() != 0 {
        return Err(Errno::INVAL);
    }
    let set = HANDLE_FLAGS.iter().enumerate().filter(|(bit, _)| flags >> bit & 1 != 0);
    Ok(set.map(|(_, flag)| flag).sum())
}

/// A line's flags as version 1 tells them.
pub(super) fn told_1(flags: u64) -> u32 {
    let told = [
        flag::USED,
        OUTPUT,
        flag::ACTIVE_LOW,
        flag::OPEN_DRAIN,
        flag::OPEN_SOURCE,
        flag::PULL_UP,
        flag::PULL_DOWN,
        BIAS_DISABLED,
    ];
    (0..).zip(told).filter(|(_, flag)| flags & flag != 0).map(|(bit, _)| 1 << bit).sum()
}

#[cfg(test)]
mod tests {
    use super::flag::*;
    use super::*;
    use crate::gpio::layout::{FilledStruct, LINE_CONFIG};

    #[test]
    fn flags_are_checked_as_by_the_kernel() {
        for flags in [
            0,
            INPUT,
            OUTPUT,
            ACTIVE_LOW,
            INPUT | EDGES | PULL_UP | ACTIVE_LOW | REALTIME,
            OUTPUT | OPEN_DRAIN | PULL_UP,
            OUTPUT | OPEN_SOURCE | BIAS_DISABLED,
        ] {
            assert_eq!(check(flags), Ok(()), "{flags:#x}");
        }
        for flags in [
            USED,
            1 << 13,
            1 << 63,
            INPUT | OUTPUT,
            EDGE_RISING,
            OUTPUT | EDGE_FALLING,
            OPEN_DRAIN,
            INPUT | OPEN_SOURCE,
            OUTPUT | DRIVE,
            PULL_UP,
            INPUT | PULL_UP | PULL_DOWN,
            INPUT | PULL_UP | BIAS_DISABLED,
        ] {
            assert_eq!(check(flags), Err(Errno::INVAL), "{flags:#x}");
        }
        assert_eq!(check(INPUT | HTE), Err(Errno::OPNOTSUPP));
    }

    #[test]
    fn the_first_attribute_about_a_line_counts() {
        let attr = |config: FilledStruct, index: usize, id: u32, value: u64, mask: u64| {
            let at = ATTRS_AT + index * ATTR_BYTES;
            config.u32(at, id).u64(at + 8, value).u64(at + 16, mask)
        };
        let config = FilledStruct::new(LINE_CONFIG).u64(0, INPUT).u32(8, 4);
        let config = attr(config, 0, ATTR_FLAGS, OUTPUT, 0b010);
        let config = attr(config, 1, ATTR_FLAGS, OUTPUT | OPEN_DRAIN, 0b110);
        let config = attr(config, 2, ATTR_VALUES, 0b100, 0b110);
        let config = attr(config, 3, ATTR_DEBOUNCE, 7, 0b001);
        let lines = of_config(Fields(&config.0), 3).expect("good");
        let line = |flags, value, debounce_us| LineConfig { flags, value, debounce_us };
        assert_eq!(
            lines,
            [line(INPUT, false, 7), line(OUTPUT, false, 0), line(OUTPUT | OPEN_DRAIN, true, 0)]
        );
        // Debouncing needs an input; padding is zero; ten attributes at most.
        let output = attr(FilledStruct(config.0.clone()), 3, ATTR_DEBOUNCE, 7, 0b010);
        assert_eq!(of_config(Fields(&output.0), 3), Err(Errno::INVAL));
        for at in 12..32 {
            let padded = FilledStruct(config.0.clone()).bytes(at, &[1]);
            assert_eq!(of_config(Fields(&padded.0), 3), Err(Errno::INVAL), "{at}");
        }
        assert!(of_config(Fields(&FilledStruct(config.0.clone()).u32(8, 10).0), 3).is_ok());
        assert_eq!(of_config(Fields(&FilledStruct(config.0).u32(8, 11).0), 3), Err(Errno::INVAL));
    }

    #[test]
    fn version_1_is_version_2_in_other_bits() {
        assert_eq!(of_handle(0b10_0110), Ok(OUTPUT | ACTIVE_LOW | PULL_UP));
        assert_eq!(told_1(USED | OUTPUT | ACTIVE_LOW | BIAS_DISABLED | EDGES), 0b1000_0111);
        for flags in [0b11, 0b11010, 0b1000, 0b1001, 0b10_0000, 0b110_0001, 1 << 8] {
            assert_eq!(of_handle(flags), Err(Errno::INVAL), "{flags:#b}");
        }
        assert_eq!(of_event(0b1, 0b10), Ok(INPUT | EDGE_FALLING));
        assert_eq!(of_event(0b100, 0b11), Ok(INPUT | ACTIVE_LOW | EDGES));
        for (handle, event) in [(0b10, 1), (0b1001, 1), (1, 4), (0b1_0001, 1), (1 << 8, 1)] {
            assert_eq!(of_event(handle, event), Err(Errno::INVAL), "{handle:#b} {event:#b}");
        }
    }
}
