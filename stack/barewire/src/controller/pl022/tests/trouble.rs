//! Blocks that are stuck, lose words, or were left in an unknown state.

use core::cell::Cell;

use super::*;

/// A bank that counts how often a pin falls.
struct Count<'c>(&'c Cell<u32>);

impl GpioBank for Count<'_> {
    fn drive(&mut self, _mask: u32, high: bool) {
        self.0.set(self.0.get() + u32::from(!high));
    }
    fn output(&mut self, _mask: u32, _high: bool) {}
}

fn wedged() -> Bus<Pl022<Looped, NoPins, Ticker>> {
    let block = Looped { pace: Pace::Never, ..Looped::default() };
    Bus::new(Pl022::new(block, NoPins, Ticker::default(), config(PIN_3)))
}

#[test]
fn a_wedged_block_times_out() {
    for len in [1, 7, 8, 100] {
        let bus = wedged();
        let device = bus.device(&SETTINGS).expect("opens");
        let mut rx = vec![0; len];
        let error = device
            .sync(&mut [Transfer::write(&[]).with_cs_change(), Transfer::read(&mut rx)])
            .expect_err("never ends");
        // Eight frames of 8 clocks and a pause at 20 MHz, twice, and a millisecond.
        let timeout_us = (2 * (8 * 10 + 2) * 50_u32).div_ceil(1_000) + 1_000;
        assert_eq!(error.error, Error::Timeout { timeout_us });
        assert_eq!((error.transfer_index, error.actual_length), (1, 0));
    }
}

#[test]
fn a_block_that_stays_full_is_given_nothing_more_until_it_runs_again() {
    let mut block = Looped { pace: Pace::Never, ..Looped::default() };
    let selected = Cell::new(0);
    let mut pl022 = Pl022::new(&mut block, Count(&selected), Ticker::default(), config(PIN_3));
    let (program, _) = pl022.configure(&SETTINGS).expect("opens");
    let run = |pl022: &mut Pl022<&mut Looped, Count<'_>, Ticker>| {
        let mut message = [Transfer::write(&[1, 2, 3])];
        pl022.plan(&program, &mut message).expect("a good message");
        pl022.run(&program, &mut message)
    };
    assert!(run(&mut pl022).is_err());
    assert_eq!((selected.get(), pl022.regs.tx.len()), (1, 3), "its words are still there");
    assert!(run(&mut pl022).is_err());
    assert_eq!((selected.get(), pl022.regs.tx.len()), (1, 3), "no chip is to hear them");
    pl022.regs.pace = Pace::PerLook;
    assert_eq!(run(&mut pl022), Ok(3));
    assert_eq!((selected.get(), pl022.regs.frames, pl022.regs.rx.len()), (2, 6, 0));
    assert_eq!(pl022.regs.offences, 0);
}

#[test]
fn a_lost_word_is_an_overrun_and_the_next_message_is_good() {
    let cases: &[(usize, usize)] = if cfg!(miri) {
        &[(3, 1), (8, 0)]
    } else {
        &[(1, 0), (3, 1), (8, 7), (8, 0), (100, 50), (100, 98)]
    };
    for &(len, loses) in cases {
        for pace in [Pace::AtOnce, Pace::PerLook] {
            let block = Looped { pace, loses: Some(loses), ..Looped::default() };
            let bus = Bus::new(Pl022::new(block, NoPins, Ticker::default(), config(PIN_3)));
            let device = bus.device(&SETTINGS).expect("opens");
            let mut bytes = vec![9; len];
            let error = device.sync(&mut [Transfer::in_place(&mut bytes)]).expect_err("loses one");
            assert_eq!(error, MessageError { error: Error::Overrun, ..error }, "{len}, {loses}");
            let mut bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
            device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
            assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        }
    }
}

#[test]
fn whoever_left_words_behind_they_are_let_out_before_the_first_message() {
    let disabled = |words: [u32; 3]| Looped { tx: words.into(), ..Looped::default() };
    // Registers with reset values, and a block that is not enabled: its words would never be sent.
    let block = Looped { pace: Pace::PerLook, ..disabled([1, 2, 3]) };
    let pl022 = Pl022::new(block, NoPins, Ticker::default(), config(PIN_3));
    assert_eq!((pl022.regs.frames, pl022.regs.rx.len(), pl022.stuck), (3, 0, None));
    assert_eq!(pl022.regs.offences, 0);
    // Words were received and not read.
    let block = Looped { rx: [1, 2, 3, 4, 5, 6, 7, 8].into(), ..Looped::default() };
    let pl022 = Pl022::new(block, NoPins, Ticker::default(), config(PIN_3));
    assert_eq!((pl022.regs.frames, pl022.regs.rx.len(), pl022.stuck), (0, 0, None));
}

#[test]
fn a_target_is_disabled_before_it_becomes_a_controller() {
    let mut script = Vec::from(RESET);
    script[3] = Read(CR1, 0x0e);
    script[4] = Write(CR1, 0x0c);
    let blocks = Blocks::on(&script);
    let _ = Pl022::new(blocks.at(0), NoPins, Ticker::default(), config(PIN_3));
    blocks.end();
}

#[test]
fn reclaiming_deselects_and_relies_on_nothing() {
    let mut script = on_pin(&configured(0x07));
    script.extend([SELECT, Write(DR, 1), Read(SR, IDLE_RNE), Read(DR, 2), DESELECT]);
    script.push(Write(IMSC, 0));
    script.extend(on_pin(&configured(0x07)));
    script.extend([SELECT, Write(DR, 1), Read(SR, IDLE_RNE), Read(DR, 2), DESELECT, Write(CR1, 0)]);
    let blocks = Blocks::on(&script);
    let gpio = Pl061::new(blocks.at(GPIO));
    let mut pl022 = Pl022::new(blocks.at(0), gpio, Ticker::default(), config(PIN_3));
    let (program, _) = pl022.configure(&SETTINGS).expect("opens");
    for reclaims in [true, false] {
        let mut message = [Transfer::write(&[1])];
        pl022.plan(&program, &mut message).expect("a good message");
        assert_eq!(pl022.run(&program, &mut message), Ok(1));
        if reclaims {
            pl022.reclaim();
        }
    }
    pl022.release();
    blocks.end();
}
