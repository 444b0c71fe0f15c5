//! Interrupts, errors, error states.

use super::*;
use crate::model::can::{ErrorState, Link, Role};

fn int_low(bench: &mut Bench) -> Option<Ps> {
    let pin = bench.chip.int();
    pin.settle(bench.at);
    pin.asserted_since()
}

#[test]
fn int_is_low_while_an_enabled_flag_is_set() {
    let mut bench = Bench::running();
    bench.far_sends([CanFrame::new(0x123, &[1])]);
    bench.pass(MS);
    assert_eq!(int_low(&mut bench), None, "not enabled");
    bench.write(0x2b, &[0x03]);
    assert!(int_low(&mut bench).is_some());
    assert_eq!(bench.read(0x0e, 1), [0x0c], "ICOD is RXB0");
    bench.spi(&[0x90, 0]);
    assert_eq!(int_low(&mut bench), None);
    let _ = bench.bus.take_records();
    bench.far_sends([CanFrame::new(0x123, &[1])]);
    bench.pass(MS);
    // Receivers accept a frame a bit before it ends.
    let eof = bench.bus.records()[0].eof;
    assert_eq!(int_low(&mut bench), Some(eof - BIT));
    bench.write(0x2b, &[0x1f]);
    for (index, icod) in [(0, 0x06), (1, 0x08), (2, 0x0a)] {
        bench.send(index, 0x10, &[]);
        bench.pass(MS);
        assert_eq!(bench.read(0x0e, 1), [icod], "the code of the sent message comes first");
        bench.modify(0x2c, 0x1c, 0);
    }
    bench.modify(0x2c, 0x01, 0);
    assert_eq!(int_low(&mut bench), None);
}

#[test]
fn a_destroyed_frame_is_told_and_tried_again() {
    for one_shot in [false, true] {
        let mut bench = Bench::running();
        bench.modify(0x0f, 0x08, if one_shot { 0x08 } else { 0 });
        let at = bench.at;
        bench.bus.inject(crate::model::can::Fault::Dominant {
            from: at + 40 * BIT,
            until: at + 50 * BIT,
        });
        bench.send(0, 0x123, &[0x55; 8]);
        bench.pass(70 * BIT);
        assert_eq!(bench.read(0x2c, 1)[0] & 0x80, 0x80, "MERRF");
        let ctrl = bench.read(0x30, 1)[0];
        assert_eq!(ctrl & 0x18, if one_shot { 0x10 } else { 0x18 }, "TXERR");
        bench.pass(MS);
        assert_eq!(bench.far_heard().len(), usize::from(!one_shot));
        assert_eq!(bench.read(0x1c, 1)[0], if one_shot { 8 } else { 7 }, "TEC");
    }
}

#[test]
fn error_states_follow_the_counters() {
    let mut bench = Bench::running();
    bench.write(0x2b, &[0x20]);
    bench.far.borrow_mut().set_link(Link { role: Role::Off, ..Link::ACTIVE });
    bench.bus.changed();
    // No node acknowledges: the chip becomes passive and stays so.
    bench.send(0, 0x123, &[]);
    let (mut told, mut asked) = (Vec::new(), 0);
    for _ in 0..200 {
        bench.pass(50 * BIT);
        let flags = bench.read(0x2d, 1)[0];
        if told.last() != Some(&flags) {
            told.push(flags);
        }
        if bench.read(0x2c, 1)[0] & 0x20 != 0 {
            asked += 1;
            assert!(int_low(&mut bench).is_some());
            bench.modify(0x2c, 0x20, 0);
            assert_eq!(int_low(&mut bench), None, "it clears though EFLG stays");
        }
    }
    assert_eq!(told, [0, 0x05, 0x15], "EWARN and TXWAR, then TXEP");
    assert_eq!(asked, 2, "ERRIF for each");
    assert_eq!(bench.read(0x1c, 2), [128, 0]);
    // A dominant bus makes it bus off, and it recovers by itself.
    let at = bench.at;
    bench.bus.inject(crate::model::can::Fault::Dominant { from: at, until: at + 200 * BIT });
    bench.pass(400 * BIT);
    assert_eq!(bench.read(0x2d, 1)[0] & 0x30, 0x30, "TXBO");
    assert_eq!(bench.chip.error_counters().state(), ErrorState::BusOff);
    assert_eq!(bench.read(0x1c, 1), [255]);
    bench.far.borrow_mut().set_link(Link::ACTIVE);
    bench.bus.changed();
    bench.pass(128 * 11 * BIT + 200 * BIT);
    assert_eq!(bench.read(0x2d, 1), [0]);
    assert_eq!(bench.far_heard(), [CanFrame::new(0x123, &[])]);
}

#[test]
fn frames_of_can_fd_are_errors() {
    let mut bench = Bench::running();
    bench.far_sends([CanFrame::fd(0x123, &[1; 12], false)]);
    bench.pass(MS / 2);
    assert!(bench.read(0x1d, 1)[0] > 0, "REC");
    assert_eq!(bench.read(0x2c, 1), [0x80], "MERRF is set, and nothing was received");
    assert!(bench.bus.records().iter().all(|record| !record.is_taken()));
}
