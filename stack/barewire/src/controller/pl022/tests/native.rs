//! The native select line, which the block moves by itself.

use super::*;

fn bus(line: CsLine) -> Bus<Pl022<Looped, NoGpio, Ticker>> {
    Bus::new(Pl022::new(Looped::default(), NoGpio, Ticker::default(), config(line)))
}

fn hold_native(exchange: &[Access], mode: Mode, message: &mut [Transfer<'_>]) {
    let script = [&RESET, exchange].concat();
    let blocks = Blocks::on(&script);
    let bus = Bus::new(Pl022::new(blocks.at(0), NoGpio, Ticker::default(), config(NATIVE)));
    bus.device(&SETTINGS.with_mode(mode)).expect("opens").sync(message).expect("runs");
    blocks.end();
}

#[test]
fn frames_under_one_select_are_in_the_fifo_before_the_block_is_enabled() {
    let mut script = Vec::from(configured(0x8f));
    script.push(Write(CR1, 0));
    script.extend((0..8).map(|n| Write(DR, 0x0001 + 0x0202 * n)));
    script.extend([Write(CR1, 2), Read(RIS, 0x0c)]);
    script.extend([0x1011, 0x1213, 0x1415, 0x1617].map(|word| Read(DR, word)));
    script.push(Read(SR, IDLE_RNE));
    script.extend([0x1819, 0x1a1b, 0x1c1d].map(|word| Read(DR, word)));
    script.extend([Read(SR, IDLE_RNE), Read(DR, 0x1e1f)]);
    let mut bytes: [u8; 16] = core::array::from_fn(|i| i as u8);
    hold_native(&script, MODE_1, &mut [Transfer::in_place(&mut bytes)]);
    assert_eq!(bytes, core::array::from_fn(|i| 0x10 + i as u8));
}

#[test]
fn a_single_frame_just_goes() {
    let mut script = Vec::from(configured(0x07));
    for byte in [1, 2] {
        script.extend([Write(DR, byte), Read(SR, IDLE_RNE), Read(DR, 0)]);
    }
    let mut message = [Transfer::write(&[1]).with_cs_change(), Transfer::write(&[2])];
    hold_native(&script, Mode::default(), &mut message);
}

#[test]
fn what_would_pulse_is_refused_and_the_rest_is_not() {
    let bus = bus(NATIVE);
    let bytes = [0; 17];
    // Mode, bits, length, and the longest possible; none if it is accepted.
    for (number, bits, len, max_bytes) in [
        (0, 8, 1, None),
        (0, 8, 2, Some(1)),
        (2, 16, 2, None),
        (2, 16, 4, Some(2)),
        (1, 8, 7, None),
        (1, 8, 9, Some(8)),
        (1, 8, 16, None),
        (3, 8, 17, Some(8)),
        (3, 16, 16, None),
        (0, 8, 0, None),
    ] {
        let mode = Mode::from_number(number).expect("a mode");
        let device = bus.device(&SETTINGS.with_mode(mode).with_bits_per_word(bits)).expect("opens");
        let ran = device.sync(&mut [Transfer::write(&bytes[..len])]);
        let pulse = |max_bytes| MessageError::refused(Error::NativeCsWouldPulse { max_bytes }, 0);
        assert_eq!(ran, max_bytes.map_or(Ok(len), |max| Err(pulse(max))), "mode {number}, {len}");
    }
    let device = bus.device(&SETTINGS.with_mode(MODE_3)).expect("opens");
    let refused = |message: &mut [Transfer<'_>]| device.sync(message).expect_err("would pulse");
    let pulse = |max_bytes| Error::NativeCsWouldPulse { max_bytes };
    assert_eq!(
        refused(&mut [Transfer::write(&bytes[..2]), Transfer::write(&bytes[..16])]),
        MessageError::refused(pulse(16), 0)
    );
    assert_eq!(
        refused(&mut [Transfer::write(&bytes[..2]).with_word_delay_ns(1)]),
        MessageError::refused(pulse(1), 0)
    );
    // Sixteen bytes would do alone; an odd neighbour makes frames of bytes.
    assert_eq!(
        refused(&mut [
            Transfer::write(&bytes[..1]).with_cs_change(),
            Transfer::write(&bytes[..16])
        ]),
        MessageError::refused(pulse(8), 1)
    );
    assert_eq!(bus.into_inner().release().0.offences, 0);
}

#[test]
fn waits_the_line_does_not_make_are_refused() {
    let bus = bus(NATIVE);
    let refused = |settings: Settings| bus.device(&settings).expect_err("is refused");
    let error = Error::NativeCsDelay { asked_ns: 9, max_ns: 0 };
    assert_eq!(refused(Settings { cs_setup_ns: 9, ..SETTINGS }), error);
    assert_eq!(refused(Settings { cs_hold_ns: 9, ..SETTINGS }), error);
    assert_eq!(refused(Settings { word_delay_ns: 9, ..SETTINGS }), error);
    bus.device(&Settings { cs_inactive_ns: 9, ..SETTINGS }).expect("that is the timer's");
}

#[test]
fn the_line_is_active_low_and_the_only_one() {
    let refused = |line, settings: &Settings| bus(line).device(settings).expect_err("is refused");
    let other = CsLine::Native { channel: 1, active_high: false };
    assert_eq!(refused(other, &SETTINGS), Error::NoSuchChipSelect { chip_select: 0 });
    let high = CsLine::Native { channel: 0, active_high: true };
    let error = Error::CsPolarity { active_high: false };
    assert_eq!(refused(high, &SETTINGS.with_mode(Mode::CS_HIGH)), error);

    let mut both = config(NATIVE);
    both.chip_selects[3] = PIN_3;
    let bus = Bus::new(Pl022::new(Looped::default(), NoPins, Ticker::default(), both));
    bus.device(&SETTINGS).expect("the block's own is selected alone");
    let with_pin = Settings::new(3, 1_000_000);
    assert_eq!(bus.device(&with_pin).expect_err("both would be"), Error::NoIdleChipSelect);
    let nobody = SETTINGS.with_mode(Mode::NO_CS);
    assert_eq!(bus.device(&nobody).expect_err("somebody would be"), Error::NoIdleChipSelect);
}
