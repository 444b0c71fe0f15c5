//! Each rule reports a breach, and is silent otherwise.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::chip::{Chip, Clocking};
use crate::model::ControllerBlock as _;
use crate::model::echo::{Echo, NO_LIMITS};
use crate::model::ecspi::Ecspi;
use crate::wire::{Driver, Run, Wire};

const LIMITS: WireLimits = WireLimits {
    modes: 0b1001,
    cs_setup_ns: 5,
    cs_hold_ns: 6,
    cs_inactive_ns: 50,
    max_clock_hz: 100_000_000,
};

/// 10 ns: exactly the limit.
const PERIOD: Ps = 10_000;

fn wire(lines: u8) -> Wire {
    wire_with(lines, Faults::default())
}

fn wire_with(lines: u8, faults: Faults) -> Wire {
    let mut wire = Wire::new(faults);
    for bit in 0..lines {
        let cs = wire.add_line(Driver::Gpio { block: 0, bit }, false);
        wire.attach(cs, Rc::new(RefCell::new(Echo::new(LIMITS))));
    }
    wire
}

fn clock(wire: &mut Wire, at: Ps, period: Ps, mode: u8, mosi: u32) -> u32 {
    let clocking = Clocking { at, period };
    wire.begin_run(Run { clocking, mode, bits: 8, mosi, loopback: false });
    wire.end_run()
}

fn rules(wire: &mut Wire) -> Vec<Rule> {
    wire.violations(0).kept().iter().map(|violation| violation.rule).collect()
}

/// One selection from `at` on that keeps all rules exactly. In mode 0 the first edge is half a
/// period into the first cell, and the last edge is at the end of the eighth.
fn kept(wire: &mut Wire, at: Ps) -> Ps {
    wire.set_line(0, false, at);
    clock(wire, at, PERIOD, 0, 0x12);
    let released = at + 8 * PERIOD + 6_000;
    wire.set_line(0, true, released);
    released
}

#[test]
fn names_are_distinct() {
    let mut names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Rule::ALL.len());
}

#[test]
fn silence_when_all_is_kept() {
    let mut wire = wire(2);
    let released = kept(&mut wire, 1_000);
    kept(&mut wire, released + 50_000);
    assert_eq!(rules(&mut wire), []);
}

#[test]
fn cs_setup() {
    for (mode, first_cell, broken) in [(0, 0, false), (0, 5_000, false), (3, 4_999, true)] {
        let mut wire = wire(1);
        wire.set_sck(mode & 2 != 0, 0);
        wire.set_line(0, false, 100_000);
        clock(&mut wire, 100_000 + first_cell, PERIOD, mode, 0);
        assert_eq!(!rules(&mut wire).is_empty(), broken);
        if broken {
            let log = wire.violations(0);
            let violation = &log.kept()[0];
            assert_eq!(violation.rule, Rule::CsSetup);
            assert_eq!((violation.required_ns, violation.actual_ns), (5, 4));
            assert_eq!((violation.at_ps, violation.cs), (104_999, Some(0)));
            assert_eq!(
                violation.to_string(),
                "104 ns: cs_setup on cs0: first SCK edge too soon after CS became active \
                 (required 5 ns, actual 4 ns)"
            );
        }
    }
}

#[test]
fn cs_hold() {
    for (hold, broken) in [(6_000, false), (5_999, true)] {
        let mut wire = wire(1);
        wire.set_line(0, false, 0);
        clock(&mut wire, 0, PERIOD, 0, 0);
        wire.set_line(0, true, 8 * PERIOD + hold);
        assert_eq!(rules(&mut wire) == [Rule::CsHold], broken);
    }
    // In mode 3 the last edge is the last sampling edge.
    let mut wire = wire(1);
    wire.set_sck(true, 0);
    wire.set_line(0, false, 0);
    clock(&mut wire, 5_000, PERIOD, 3, 0);
    wire.set_line(0, true, 8 * PERIOD + 6_000);
    assert_eq!(rules(&mut wire), []);
}

#[test]
fn cs_inactive() {
    for (inactive, broken) in [(50_000, false), (49_999, true)] {
        let mut wire = wire(2);
        let released = kept(&mut wire, 0);
        // Another chip's selection in between has no effect.
        wire.set_line(1, false, released + 1);
        wire.set_line(1, true, released + 2);
        kept(&mut wire, released + inactive);
        assert_eq!(rules(&mut wire) == [Rule::CsInactive], broken);
    }
}

#[test]
fn one_cs_at_a_time() {
    let mut wire = wire(2);
    wire.set_line(0, false, 0);
    wire.set_line(1, false, 1_000);
    assert_eq!(rules(&mut wire), [Rule::OneCs]);
    assert_eq!(wire.violations(0).kept()[0].cs, Some(1));
    // Both chips drive MISO: the low one wins.
    assert_eq!(clock(&mut wire, 10_000, PERIOD, 0, 0xff), 0);

    // A line without a chip has no effect.
    let mut wire = super::tests::wire(1);
    let bare = wire.add_line(Driver::Native(0), false);
    wire.set_line(0, false, 0);
    wire.set_line(bare, false, 0);
    assert_eq!(rules(&mut wire), []);
}

#[test]
fn max_clock() {
    let mut wire = wire(1);
    wire.set_line(0, false, 0);
    clock(&mut wire, 5_000, PERIOD, 0, 0);
    assert_eq!(rules(&mut wire), []);
    clock(&mut wire, 200_000, PERIOD - 1, 0, 0);
    clock(&mut wire, 400_000, PERIOD - 1, 0, 0);
    assert_eq!(rules(&mut wire), [Rule::MaxClock], "once in a selection");
}

#[test]
fn sck_at_its_idle_level_at_each_cs_edge() {
    // In mode 0 SCK is away from its idle level for half a period after the last sample.
    for (late, broken) in [(0, false), (1, true)] {
        let mut wire = super::tests::wire(1);
        wire.set_line(0, false, 0);
        clock(&mut wire, 0, PERIOD, 0, 0);
        wire.set_line(0, true, 8 * PERIOD - late);
        assert_eq!(rules(&mut wire).contains(&Rule::SckIdle), broken);
    }
    // The idle level is chosen after the chip was selected: the chip counts an edge.
    let mut wire = super::tests::wire(1);
    wire.set_line(0, false, 0);
    clock(&mut wire, 10_000, PERIOD, 3, 0);
    assert_eq!(rules(&mut wire), [Rule::SckIdle]);
    let mut wire = super::tests::wire(1);
    wire.set_sck(true, 0);
    wire.set_line(0, false, 0);
    clock(&mut wire, 10_000, PERIOD, 3, 0);
    assert_eq!(rules(&mut wire), []);
    wire.set_sck(false, 200_000);
    assert_eq!(rules(&mut wire), [Rule::SckIdle]);
}

#[test]
fn cs_in_the_middle_of_a_word() {
    let mut wire = wire(1);
    let chip = Rc::new(RefCell::new(Echo::new(LIMITS)));
    wire.attach(0, chip.clone());
    wire.set_line(0, false, 0);
    let clocking = Clocking { at: 0, period: PERIOD };
    wire.begin_run(Run { clocking, mode: 0, bits: 32, mosi: 0x1122_3344, loopback: false });
    // Sixteen bits have been sampled, and SCK is low between two of its edges.
    wire.set_line(0, true, 16 * PERIOD + 1);
    assert_eq!(wire.end_run() & 0xffff, 0xffff, "nobody drives MISO any more");
    assert_eq!(rules(&mut wire), [Rule::MidWord, Rule::CsHold, Rule::ClockWithoutCs]);
    assert_eq!(chip.borrow().received(), [0x11, 0x22]);
}

#[test]
fn clock_without_cs() {
    let mut wire = wire(1);
    assert_eq!(clock(&mut wire, 0, PERIOD, 0, 0), 0xff);
    clock(&mut wire, 200_000, PERIOD, 0, 0);
    assert_eq!(rules(&mut wire), [Rule::ClockWithoutCs], "once between two edges of CS");

    let mut wire = super::tests::wire(1);
    let clocking = Clocking { at: 0, period: PERIOD };
    wire.begin_run(Run { clocking, mode: 0, bits: 8, mosi: 0, loopback: true });
    wire.end_run();
    assert_eq!(rules(&mut wire), []);
}

#[test]
fn mode() {
    let mut wire = wire(1);
    wire.set_line(0, false, 0);
    let garbage = clock(&mut wire, 10_000, PERIOD, 1, 0x35);
    assert_eq!(garbage, 0x9a, "MOSI late by a bit, led by a one");
    clock(&mut wire, 200_000, PERIOD, 1, 0);
    assert_eq!(rules(&mut wire), [Rule::Mode], "once in a selection");
}

#[test]
fn fifo_limits_and_registers() {
    let broken = |access: &dyn Fn(&mut Ecspi, &mut Wire)| {
        let mut wire = Wire::new(Faults::default());
        wire.add_line(Driver::Native(0), false);
        let mut ecspi = Ecspi::new(100_000_000);
        access(&mut ecspi, &mut wire);
        ecspi.catch_up(Ps::MAX / 2, &mut wire);
        rules(&mut wire)
    };
    const ENABLE: u32 = 0xf1;
    let fill = |ecspi: &mut Ecspi, wire: &mut Wire, words: u32, conreg: u32| {
        ecspi.write(0x08, ENABLE | conreg, 0, wire);
        (0..words).for_each(|word| ecspi.write(0x04, word, 0, wire));
    };
    // SMC: each word is a burst of its own, and starts at once.
    let smc = 7 << 20 | 1 << 3;
    assert_eq!(broken(&|ecspi, wire| fill(ecspi, wire, 64, 0)), []);
    assert_eq!(broken(&|ecspi, wire| fill(ecspi, wire, 65, 0)), [Rule::TxFull]);
    assert_eq!(broken(&|ecspi, wire| fill(ecspi, wire, 64, smc)), []);
    // The shift register has taken the first, so 65 words fit. That many do not fit in RXFIFO.
    assert_eq!(broken(&|ecspi, wire| fill(ecspi, wire, 65, smc)), [Rule::RxOverrun]);
    let read = |bits: u32| {
        broken(&|ecspi, wire| {
            fill(ecspi, wire, 1, 0);
            ecspi.write(0x08, ENABLE | (bits - 1) << 20 | 1 << 2, 0, wire);
            ecspi.read(0x00, 10_000_000, wire);
        })
    };
    assert_eq!(read(32), []);
    assert_eq!(read(33), [Rule::TxUnderrun]);
    assert!(!Rule::TxUnderrun.harms() && Rule::RxOverrun.harms());
    assert_eq!(
        broken(&|ecspi, wire| {
            fill(ecspi, wire, 0, 0);
            ecspi.read(0x00, 0, wire);
        }),
        [Rule::RxEmpty]
    );
    assert_eq!(broken(&|ecspi, wire| ecspi.write(0x04, 0, 0, wire)), [Rule::Disabled]);
    assert_eq!(broken(&|ecspi, wire| ecspi.write(0x0c, 0, 0, wire)), []);
    assert_eq!(broken(&|ecspi, wire| ecspi.write(0x44, 0, 0, wire)), [Rule::BadAccess]);
}

/// Complains about every third word.
struct Grumbler(u32);

impl Chip for Grumbler {
    fn name(&self) -> &'static str {
        "grumbler"
    }

    fn limits(&self) -> WireLimits {
        NO_LIMITS
    }

    fn select(&mut self, _at: Ps) {}

    fn deselect(&mut self, _at: Ps) {}

    fn exchange(&mut self, _clocking: Clocking, _mosi: u32, _bits: u32) -> u32 {
        self.0 += 1;
        0
    }

    fn take_complaint(&mut self) -> Option<String> {
        if self.0 < 3 {
            return None;
        }
        self.0 -= 3;
        Some("too many words".into())
    }
}

#[test]
fn a_chips_own_complaints() {
    let mut wire = Wire::new(Faults::default());
    let cs = wire.add_line(Driver::Native(0), false);
    wire.attach(cs, Rc::new(RefCell::new(Grumbler(0))));
    wire.set_line(cs, false, 0);
    for word in 0..2 {
        clock(&mut wire, 1_000_000 * word, PERIOD, 0, 0);
    }
    assert_eq!(rules(&mut wire), []);
    for word in 2..6 {
        clock(&mut wire, 1_000_000 * word, PERIOD, 0, 0);
    }
    wire.set_line(cs, true, 9_000_000);
    assert_eq!(rules(&mut wire), [Rule::Chip, Rule::Chip]);
    let violation = wire.violations(0).kept()[0].clone();
    assert_eq!((violation.at_ps, violation.cs), (9_000_000, Some(0)));
    assert_eq!(violation.detail, "grumbler: too many words");
}

#[test]
fn timing_corrupts_only_under_the_switch() {
    for timing_corrupts in [false, true] {
        let mut wire = wire_with(1, Faults { timing_corrupts });
        wire.set_line(0, false, 0);
        // A period below the limit; the echo answers with zeros first.
        let miso = clock(&mut wire, 10_000, PERIOD / 2, 0, 0x35);
        assert_eq!(miso, if timing_corrupts { 0xff } else { 0 });
        let miso = clock(&mut wire, 200_000, PERIOD, 0, 0);
        assert_eq!(
            miso,
            if timing_corrupts { 0xca } else { 0x35 },
            "the whole selection is corrupt, or none of it"
        );
        wire.set_line(0, true, 400_000);
        wire.set_line(0, false, 500_000);
        assert_eq!(clock(&mut wire, 510_000, PERIOD, 0, 0), 0, "the next selection is sound");
    }
}

#[test]
fn the_log_is_capped_and_counts_on() {
    let log = Log::default();
    for _ in 0..KEPT_VIOLATIONS + 5 {
        log.report(0, Rule::Chip, None, "again");
    }
    assert_eq!((log.kept().len(), log.total()), (KEPT_VIOLATIONS, KEPT_VIOLATIONS as u64 + 5));
    log.clear();
    assert_eq!((log.kept().len(), log.total()), (0, 0));
}

#[test]
fn a_rule_that_is_broken_often_is_counted_by_chip_select() {
    let log = Log::default();
    for at_ps in 0..KEPT_VIOLATIONS as u64 + 5 {
        log.report(at_ps, Rule::Chip, Some(1), format!("the {at_ps}th"));
    }
    log.report(7, Rule::Chip, Some(0), "another chip");
    log.report(8, Rule::Mode, Some(1), "another rule");
    let broken = log.broken();
    let told: Vec<_> = broken
        .iter()
        .map(|one| (one.first.rule, one.first.cs, one.first.detail.as_str(), one.times))
        .collect();
    let expected = [
        (Rule::Chip, Some(1), "the 0th", KEPT_VIOLATIONS as u64 + 5),
        (Rule::Chip, Some(0), "another chip", 1),
        (Rule::Mode, Some(1), "another rule", 1),
    ];
    assert_eq!(told, expected);
    assert_eq!(broken.iter().map(|one| one.times).sum::<u64>(), log.total());
    log.clear();
    assert!(log.broken().is_empty());
}

#[test]
fn what_harms_is_kept_where_what_only_costs_time_filled_the_log() {
    let log = Log::default();
    for at_ps in 0..KEPT_VIOLATIONS as u64 + 5 {
        log.report(at_ps, Rule::TxUnderrun, None, "late");
    }
    log.report(9_999, Rule::RxOverrun, None, "lost");
    assert_eq!(log.kept().len(), KEPT_VIOLATIONS);
    assert_eq!(log.kept().last().map(|last| last.rule), Some(Rule::RxOverrun));
    assert_eq!((log.total(), log.harms()), (KEPT_VIOLATIONS as u64 + 6, 1));
    for at_ps in 0..2 * KEPT_VIOLATIONS as u64 {
        log.report(at_ps, Rule::RxOverrun, None, "lost");
    }
    assert_eq!(log.kept().len(), KEPT_VIOLATIONS);
    assert!(log.kept().iter().all(|kept| kept.rule.harms()));
}
