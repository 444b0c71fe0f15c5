//! Chips on a native select line.

use super::*;

/// Runs `run` with a device of `settings` on a native line; the driver's accesses must equal
/// `script`.
fn hold(
    script: &[Access],
    settings: &Settings,
    run: impl FnOnce(&crate::bus::Device<'_, dyn Controller + '_>),
) {
    let script = [&RESET[..], &measured(), script].concat();
    let blocks = Blocks::on(&script);
    let bus = Bus::new(DwSsi::new(blocks.at(0), NoGpio, Ticker::default(), config(NATIVE)));
    let bus: &Bus<dyn Controller + '_> = &bus;
    run(&bus.device(settings).expect("opens"));
    blocks.end();
}

#[test]
fn words_are_in_the_fifo_before_the_line_falls() {
    let mut script =
        vec![Write(SSIENR, 0), Write(CTRLR0, 0x0007_0000), Write(BAUDR, 10), Write(SSIENR, 1)];
    script.extend(frames(4));
    script.extend([Write(SER, 0), Write(DR, 0x0001_0203), Write(DR, 0x0405_0607), Write(SER, 1)]);
    script.extend([Read(RXFLR, 2), Read(DR, 0), Read(DR, 0), Read(SR, BUSY), Read(SR, IDLE)]);
    // Bytes that fill no wider frame: a second frame size would raise the line.
    script.extend(frames(1));
    script.push(Write(SER, 0));
    script.extend([0, 1, 2, 3, 4].map(|byte| Write(DR, byte)));
    script.extend([Write(SER, 1), Read(RXFLR, 5)]);
    script.extend(vec![Read(DR, 0); 5]);
    script.push(Read(SR, IDLE));
    hold(&script, &SETTINGS, |device| {
        device.sync(&mut [Transfer::write(&[0, 1, 2, 3, 4, 5, 6, 7])]).expect("runs");
        device.sync(&mut [Transfer::write(&[0, 1, 2, 3, 4])]).expect("runs");
    });
}

#[test]
fn what_would_raise_the_line_is_refused() {
    hold(&[], &SETTINGS, |device| {
        let refused = |message: &mut [Transfer<'_>]| device.sync(message).expect_err("refused");
        let pulse = |max_bytes| Error::NativeCsWouldPulse { max_bytes };
        assert_eq!(refused(&mut [Transfer::write(&[0; 244])]).error, pulse(240));
        assert_eq!(refused(&mut [Transfer::write(&[0; 61])]).error, pulse(60));
        let two = &mut [Transfer::write(&[0; 240]), Transfer::write(&[0; 4])];
        assert_eq!(refused(two).error, pulse(240));
        let apart = &mut [Transfer::write(&[0; 2]).with_word_delay_ns(1)];
        assert_eq!(refused(apart).error, pulse(1));
    });
}

#[test]
fn a_write_and_a_read_that_fit_the_fifo_are_one_burst() {
    let mut script =
        vec![Write(SSIENR, 0), Write(CTRLR0, 0x0007_0000), Write(BAUDR, 10), Write(SSIENR, 1)];
    script.extend(frames(4));
    script.extend([Write(SER, 0), Write(DR, 0x9f00_0000), Write(SER, 1), Read(SR, IDLE_RFNE)]);
    script.push(Read(DR, 0xff01_0203));
    hold(&script, &SETTINGS, |device| {
        let mut id = [0; 3];
        device.sync(&mut [Transfer::write(&[0x9f]), Transfer::read(&mut id)]).expect("runs");
        assert_eq!(id, [1, 2, 3]);
    });
}

#[test]
fn the_waits_of_a_gpio_are_refused() {
    let dw_ssi = DwSsi::new(Looped::default(), NoGpio, Ticker::default(), config(NATIVE));
    let delay = Error::NativeCsDelay { asked_ns: 7, max_ns: 0 };
    for settings in [
        Settings { cs_setup_ns: 7, ..SETTINGS },
        Settings { cs_hold_ns: 7, ..SETTINGS },
        Settings { word_delay_ns: 7, ..SETTINGS },
    ] {
        assert_eq!(dw_ssi.configure(&settings).expect_err("refused"), delay);
    }
}

#[test]
fn a_chip_on_a_gpio_needs_a_line_that_no_chip_listens_to() {
    let on = |second, native_lines| {
        let chip_selects = [NATIVE, PIN_8, second, CsLine::Absent];
        let config = DwSsiConfig { chip_selects, native_lines, ..config(NATIVE) };
        let dw_ssi = DwSsi::new(Looped::default(), NoPins, Ticker::default(), config);
        dw_ssi.configure(&Settings::new(1, 1_000_000)).map(|(program, _)| program.regs[P_SER])
    };
    let other = CsLine::Native { channel: 1, active_high: false };
    assert_eq!(on(CsLine::Absent, 2), Ok(2));
    assert_eq!(on(other, 3), Ok(4));
    assert_eq!(on(other, 2), Err(Error::NoIdleChipSelect));
    assert_eq!(on(CsLine::Absent, 1), Err(Error::NoIdleChipSelect));
}
