//! Traces in a few lines: what the walk makes of calls, interrupts and switches.

use super::symbols::Symbols;
use super::trace::parse;
use super::tree::{Query, Sum};
use super::walk::Walk;

/// Functions of 0x100 bytes; the vectors are arm64's.
const SYMBOLS: &str = "\
ffff000000001000 t f
ffff000000001100 t g
ffff000000001200 t h
ffff000000001300 t g_cold
ffff000000001400 t handler
ffff000000001500 t schedule
ffff000000001600 T cpu_switch_to
ffff000000002000 T vectors
";

/// A walk through lines as `guests/steps.c` writes them, but that an address is short: `f+10` is `f`'s 0x10.
fn walked(parts: &[&[&str]]) -> Walk {
    let address = |word: &str| {
        let (name, offset) = word.split_once('+').unwrap_or((word, "0"));
        let line = SYMBOLS.lines().find(|line| line.ends_with(&format!(" {name}")))?;
        let start = u64::from_str_radix(line.split(' ').next()?, 16).ok()?;
        Some(format!("{:x}", start + u64::from_str_radix(offset, 16).ok()?))
    };
    let mut walk =
        Walk::new(Symbols::parse(SYMBOLS).expect("symbols"), Some(0xffff_0000_0000_2000));
    for line in ["m op"].iter().chain(parts.concat().iter()) {
        let words = line.split(' ').map(|word| address(word).unwrap_or_else(|| word.to_owned()));
        walk.take(parse(&words.collect::<Vec<_>>().join(" ")).expect("a line"));
    }
    walk
}

fn sum(walk: &Walk, what: &[&str], under: &[&str], without: &[&str]) -> (u64, u64) {
    let query = Query { what, under, without };
    let Sum { instructions, calls } = walk.intervals[0].sum(&walk.tree, &walk.symbols, &query);
    (instructions, calls)
}

fn of(walk: &Walk, function: &str) -> (u64, u64) {
    sum(walk, &[function], &[], &[])
}

/// A system call into `f`, up to its first call of `g`.
const INTO_G: [&str; 4] =
    ["u 0 5", "r 0 vectors+400 1 vectors+404 j", "r 0 f 4 f+10 c", "r 0 g 3 g+c j"];

#[test]
fn a_function_has_what_it_calls() {
    let walk = walked(&[
        &INTO_G[..],
        &["r 0 g+20 1 g+24 r", "r 0 f+10 2 f+18 c", "r 0 g 7 g+1c r", "r 0 f+18 1 f+1c e", "u 0 3"],
    ]);
    assert_eq!((of(&walk, "f"), of(&walk, "g")), ((18, 1), (11, 2)));
    assert_eq!(of(&walk, "[sync]"), (19, 1));
    assert_eq!(sum(&walk, &["f"], &[], &["g"]), (7, 1));
    assert_eq!(
        (sum(&walk, &["g"], &["f"], &[]), sum(&walk, &["g"], &["h"], &[])),
        ((11, 2), (0, 0))
    );
    assert_eq!((walk.intervals[0].user, walk.lost), (8, 0));
}

#[test]
fn a_tail_call_and_a_cold_part_return_with_their_caller() {
    let walk = walked(&[
        &INTO_G[..],
        &[
            "r 0 g_cold+10 2 g_cold+18 j",
            "r 0 g+40 1 g+44 j",
            "r 0 h 5 h+14 r",
            "r 0 f+10 2 f+18 j",
        ],
    ]);
    assert_eq!((of(&walk, "g"), of(&walk, "h"), of(&walk, "f")), ((11, 1), (5, 1), (17, 1)));
    assert_eq!(walk.lost, 0);
}

#[test]
fn a_call_or_return_that_is_not_taken_changes_nothing() {
    let walk =
        walked(&[&INTO_G[..3], &["r 0 f+10 1 f+14 c", "r 0 f+14 1 f+18 r", "r 0 f+18 1 f+1c j"]]);
    // The first run's call was not taken either.
    assert_eq!((of(&walk, "f"), walk.lost), ((7, 1), 0));
}

#[test]
fn an_interrupt_is_no_part_of_what_it_interrupts() {
    // Within g; right behind the call of h, before h began; and a second one before the first is left.
    let interrupt = ["r 0 vectors+280 1 vectors+284 j", "r 0 handler 20 handler+50 e"];
    let walk = walked(&[
        &INTO_G[..],
        &interrupt,
        &["r 0 g+c 1 g+10 c"],
        &interrupt,
        &interrupt,
        &["r 0 h 6 h+18 r", "r 0 g+10 1 g+14 r", "r 0 f+10 1 f+14 j"],
    ]);
    assert_eq!((of(&walk, "h"), of(&walk, "g"), of(&walk, "f")), ((6, 1), (11, 1), (16, 1)));
    assert_eq!((of(&walk, "[irq]"), of(&walk, "handler")), ((63, 3), (60, 3)));
    assert_eq!(
        sum(&walk, &["handler"], &["f"], &[]),
        (60, 3),
        "above, though an interrupt is between"
    );
    assert_eq!(walk.lost, 0);
}

#[test]
fn each_task_has_its_stack() {
    let sleep =
        ["r 0 schedule 10 schedule+28 c", "s 0 a b", "r 0 cpu_switch_to 8 cpu_switch_to+20 r"];
    let walk = walked(&[
        // a: f calls g, which sleeps. What b did is not known, but that it sleeps in schedule.
        &INTO_G[..],
        &["r 0 g+c 1 g+10 c"],
        &sleep,
        &["r 0 schedule+28 2 schedule+30 r", "r 0 h+40 3 h+4c c"],
        &["r 0 schedule 10 schedule+28 c", "s 0 b a", "r 0 cpu_switch_to 8 cpu_switch_to+20 r"],
        // a goes on where it was, though both return to the same address.
        &["r 0 schedule+28 2 schedule+30 r", "r 0 g+10 4 g+20 r", "r 0 f+10 1 f+14 j"],
    ]);
    // 3 + 1 + 4 of g, 10 + 8 + 2 of the schedule that it called.
    assert_eq!((of(&walk, "g"), of(&walk, "f")), ((28, 1), (33, 1)));
    assert_eq!(sum(&walk, &["schedule"], &["g"], &[]), (20, 1));
    // b's: the end of the one before, and the beginning of the next.
    assert_eq!(sum(&walk, &["schedule"], &["h"], &[]), (18, 1));
    assert_eq!(walk.lost, 2, "b's schedule and h");
}

#[test]
fn processors_do_not_mix() {
    let walk = walked(&[
        &["u 0 1", "r 0 vectors+400 1 vectors+404 j", "r 0 f 4 f+10 c"],
        &["u 1 1", "r 1 vectors+400 1 vectors+404 j", "r 1 h 9 h+24 c"],
        &["r 0 g 3 g+c r", "r 1 g 5 g+14 r", "r 0 f+10 1 f+14 j", "r 1 h+24 1 h+28 j"],
    ]);
    assert_eq!((of(&walk, "f"), of(&walk, "h"), of(&walk, "g")), ((8, 1), (15, 1), (8, 2)));
    assert_eq!(walk.lost, 0);
}

#[test]
fn a_recursive_call_counts_once_for_the_outer_one() {
    let walk = walked(&[
        &INTO_G[..3],
        &["r 0 g 3 g+c c", "r 0 g 3 g+c c", "r 0 h 1 h+4 r", "r 0 g+c 1 g+10 r"],
        &["r 0 g+c 1 g+10 r", "r 0 f+10 1 f+14 j"],
    ]);
    assert_eq!((of(&walk, "g"), of(&walk, "f"), walk.lost), ((9, 1), (14, 1), 0));
}

#[test]
fn high_vectors_and_their_stubs_are_arm_s() {
    let lines = [
        "u 0 1",
        "r 0 ffff0018 1 ffff001c j",
        // The stub leaves its mode by what looks like the end of an exception.
        "r 0 ffff1020 8 ffff1040 e",
        "r 0 c0001000 5 c0001014 e",
        "u 0 1",
    ];
    let symbols = Symbols::parse("c0001000 t handler\nffff1000 t stubs\n").expect("symbols");
    let mut walk = Walk::new(symbols, None);
    for line in ["m op"].iter().chain(&lines) {
        walk.take(parse(line).expect("a line"));
    }
    assert_eq!((of(&walk, "[irq]"), of(&walk, "handler"), walk.lost), ((14, 1), (5, 1), 0));
}
