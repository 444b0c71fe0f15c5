//! Accesses with CRC, and `embedded-can`'s traits.

use embedded_can::{Error as _, ErrorKind};

use super::*;

/// The CRC bit by bit, as in a shift register.
fn crc(bytes: &[u8]) -> [u8; 2] {
    let mut register = 0xffff_u16;
    for byte in bytes {
        for bit in (0..8).rev() {
            let feedback = register >> 15 ^ u16::from(byte >> bit & 1);
            register = register << 1 ^ if feedback == 1 { 0x8005 } else { 0 };
        }
    }
    register.to_be_bytes()
}

/// A write with a matching CRC.
fn checked_write(bytes: &[u8]) -> Step {
    write(&[bytes, &crc(bytes)].concat())
}

/// A read with command, length and data, and the CRC of all of it.
fn checked_read(command: &[u8; 3], data: &[u8]) -> Step {
    let crc = crc(&[command, data].concat());
    read(command, &[data, &crc].concat())
}

fn spoilt(mut step: Step) -> Step {
    step.answer[3] ^= 0x80;
    step
}

fn looked(low: u8, high: u8) -> Step {
    checked_read(&[0xb0, 0x1c, 4], &[low, high, 0x0a, 0xba])
}

/// The register CRC with these flags: CRCERRIF is 1, FERRIF 2; both enabled.
fn crc_flags(flags: u8) -> Step {
    checked_read(&[0xbe, 0x08, 4], &[0x34, 0x12, flags, 0x03])
}

/// The set-up, at the end of which the register CRC reads `told`.
fn checked_up(told: Step) -> Vec<Step> {
    let mut up = proof();
    // Reset and the identity check have no CRC.
    up.truncate(5);
    up.extend([
        checked_write(&[0xae, 0x0b, 1, 0x03]),
        checked_write(&[0xae, 0x00, 4, 0x68, 0x00, 0x00, 0x00]),
        checked_read(&[0xbe, 0x00, 4], &[0x68, 0x04, 0x00, 0x00]),
        checked_write(&[0xae, 0x00, 4, 0x60, 0x00, 0x00, 0x00]),
        checked_read(&[0xbe, 0x00, 4], &[0x60, 0x04, 0x00, 0x00]),
        checked_write(&[0xa0, 0x04, 4, 0x13, 0x13, 0x8a, 0x00]),
        checked_write(&[0xa0, 0x14, 4, 0x27, 0x00, 0x01, 0x00]),
        checked_write(&[0xa0, 0x00, 4, 0x60, 0x07, 0x80, 0x04]),
        checked_write(&[0xa0, 0x5c, 4, 0x29, 0x04, 0x00, 0x1f]),
        checked_write(&[0xa0, 0x68, 4, 0x80, 0x04, 0x60, 0x07]),
        checked_write(&[0xa1, 0xd0, 1, 0x00]),
        checked_write(&[0xa1, 0xf0, 4, 0, 0, 0, 0]),
        checked_write(&[0xa1, 0xf4, 4, 0, 0, 0, 0]),
        checked_write(&[0xa1, 0xd0, 1, 0x81]),
        told,
    ]);
    up
}

fn checked_joins(told: Step) -> [Step; 4] {
    [
        checked_write(&[0xa0, 0x03, 1, 0x06]),
        checked_read(&[0xb0, 0x00, 4], &[0x60, 0x07, 0xc0, 0x06]),
        checked_write(&[0xa0, 0x1c, 4, 0x00, 0x00, 0x0a, 0xba]),
        told,
    ]
}

fn checked() -> Config {
    Config { crc: true, ..classic() }
}

#[track_caller]
fn hold_checked(script: Vec<Step>, drive: impl FnOnce(&mut Can<'_>)) {
    let mut up = checked_up(crc_flags(0));
    up.extend(checked_joins(crc_flags(0)));
    hold(checked(), up, script, drive);
}

#[test]
fn with_crc_memory_is_counted_in_words_and_a_mismatch_is_read_again() {
    let frame = || checked_read(&[0xb4, 0x00, 5], &object(3));
    let script = vec![
        spoilt(looked(0x02, 0x00)),
        looked(0x02, 0x00),
        spoilt(frame()),
        spoilt(frame()),
        frame(),
        checked_write(&[0xa0, 0x5d, 1, 0x01]),
        checked_write(&[0xa6, 0x80, 3, 1, 0, 0, 0, 2, 0, 0, 0, 8, 9, 0, 0]),
        checked_write(&[0xa0, 0x69, 1, 0x03]),
    ];
    hold_checked(script, |can| {
        let mut received = Received::EMPTY;
        assert!(can.service(&mut received).unwrap().frame);
        assert_eq!(received.frame.data(), [0x11, 0x22, 0x33]);
        let frame = Frame::classic(standard(1), &[8, 9]).unwrap();
        assert_eq!(Mcp251xfd::transmit(can, &frame), Ok(0));
    });
}

#[test]
fn three_mismatches_are_an_error_and_the_frame_is_not_lost() {
    let frame = || checked_read(&[0xb4, 0x00, 5], &object(3));
    let script = vec![
        looked(0x02, 0x00),
        spoilt(frame()),
        spoilt(frame()),
        spoilt(frame()),
        checked_read(&[0xb0, 0x64, 4], &[0; 4]),
        checked_read(&[0xb0, 0x70, 4], &[0x80, 0x02, 0, 0]),
        looked(0x02, 0x00),
        frame(),
        checked_write(&[0xa0, 0x5d, 1, 0x01]),
    ];
    hold_checked(script, |can| {
        let mut received = Received::EMPTY;
        assert_eq!(can.service(&mut received), Err(CanError::Crc { address: 0x400 }));
        assert!(can.service(&mut received).unwrap().frame);
    });
}

#[test]
fn a_write_the_chip_received_wrong_is_told() {
    let script = vec![looked(0x00, 0x02), checked_write(&[0xae, 0x0a, 1, 0x00])];
    hold_checked(script, |can| {
        let found = can.service(&mut Received::default()).unwrap();
        assert_eq!(found, Found { spi_crc: true, ..Found::default() });
    });
}

#[test]
fn a_set_up_that_arrived_corrupt_is_done_again_three_times_in_all() {
    let up = |told: [u8; 3]| told.into_iter().flat_map(|flags| checked_up(crc_flags(flags)));
    // Either flag, then success: the third attempt is the last.
    let mut script: Vec<_> = up([1, 2, 0]).collect();
    script.extend(checked_joins(crc_flags(0)));
    hold(checked(), script, vec![], |_| {});

    for (flags, crc) in [([1, 1, 1], 0x0301_1234), ([1, 1, 2], 0x0302_1234)] {
        let mut port = Script::new();
        port.steps.extend(up(flags));
        let refused = Mcp251xfd::on_port(&mut port, Clock::default(), checked()).map(drop);
        assert_eq!(refused, Err(CanError::WriteCrc { crc }));
        assert_eq!(port.steps.len(), 0, "accesses that did not come");
    }
}

#[test]
fn an_oscillator_set_wrong_by_a_corrupt_write_is_not_called_dead() {
    let up = |flags| {
        let mut steps = checked_up(crc_flags(0));
        steps.truncate(5 + 4);
        // SCLKDIV is set without a request: 6 ms in steps of 50 µs.
        steps.extend((0..=121).map(|_| checked_read(&[0xbe, 0x00, 4], &[0x70, 0x14, 0, 0])));
        steps.push(crc_flags(flags));
        steps
    };
    let mut script = up(1);
    script.extend(checked_up(crc_flags(0)));
    script.extend(checked_joins(crc_flags(0)));
    hold(checked(), script, vec![], |_| {});

    let not_ready = CanError::OscillatorNotReady { osc: 0x1470, waited_us: 6_000 };
    let mut port = Script::new();
    port.steps.extend(up(0));
    let refused = Mcp251xfd::on_port(&mut port, Clock::default(), checked()).map(drop);
    assert_eq!((refused, port.steps.len()), (Err(not_ready), 0));
}

#[test]
fn enables_that_did_not_arrive_are_a_write_that_did_not() {
    let mut script = checked_up(checked_read(&[0xbe, 0x08, 4], &[0, 0, 0, 0x01]));
    script.extend(checked_up(crc_flags(0)));
    script.extend(checked_joins(crc_flags(0)));
    hold(checked(), script, vec![], |_| {});
}

#[test]
fn a_start_that_arrived_corrupt_is_told_and_a_restart_tries_again() {
    let mut port = Script::new();
    port.steps.extend(checked_up(crc_flags(0)));
    port.steps.extend(checked_joins(crc_flags(1)));
    // It was not cleared.
    port.steps.extend(checked_joins(crc_flags(1)));
    // Its configuration is unknown, so it is not served.
    port.steps.extend([looked(0, 0), looked(0, 0), looked(0, 0)]);
    for flags in [1, 0] {
        port.steps.extend(checked_up(crc_flags(0)));
        port.steps.extend(checked_joins(crc_flags(flags)));
    }
    let mut can = Mcp251xfd::on_port(&mut port, Clock::default(), checked()).unwrap();
    let corrupt = Err(CanError::WriteCrc { crc: 0x0301_1234 });
    assert_eq!(can.start(), corrupt);
    assert_eq!(can.start(), corrupt);
    let gone = CanError::Gone { interrupts: 0xba0a_0000 };
    assert_eq!(can.service(&mut Received::default()), Err(gone));
    can.restart().unwrap();
    assert_eq!(port.steps.len(), 0, "accesses that did not come");
}

#[test]
fn the_traits_of_embedded_can_block_and_do_not() {
    let script = vec![
        interrupts(0, 0),
        // A frame, and an overflow: the frame comes first.
        interrupts(0x02, 0x08),
        read(&[0x34, 0x00], &object(0)),
        write(&RX_DONE),
        write(&[0x20, 0x60, 0xf7]),
        interrupts(0, 0),
        interrupts(0x02, 0),
        read(&[0x34, 0x14], &object(0)),
        write(&RX_DONE),
        write(&[0x26, 0x80, 0x23, 0x01, 0, 0, 3, 0, 0, 0, 0x11, 0x22, 0x33, 0]),
        write(&[0x20, 0x69, 0x03]),
    ];
    fn through<C: embedded_can::nb::Can<Error = CanError>>(can: &mut C) {
        assert_eq!(can.receive().map(drop), Err(nb::Error::WouldBlock));
        let frame = can.receive().unwrap();
        assert_eq!(embedded_can::Frame::data(&frame), [0x11, 0x22, 0x33]);
        assert_eq!(can.receive().map(drop), Err(nb::Error::Other(CanError::RxOverflow)));
    }
    fn blocking<C: embedded_can::blocking::Can<Error = CanError>>(can: &mut C) {
        let frame = can.receive().unwrap();
        can.transmit(&frame).unwrap();
    }
    hold_classic(script, |can| {
        through(can);
        blocking(can);
    });
    assert_eq!(CanError::RxOverflow.kind(), ErrorKind::Overrun);
}

#[test]
fn a_full_chip_would_block() {
    let frame = Frame::classic(standard(1), &[]).unwrap();
    let mut script = vec![];
    for index in 0..8_u8 {
        script.push(write(&[0x26, 0x80 + index * 16, 1, 0, 0, 0, 0, index * 2, 0, 0]));
        script.push(write(&[0x20, 0x69, 0x03]));
    }
    script.push(read(&[0x30, 0x6c], &[0; 4]));
    hold_classic(script, |can| {
        for _ in 0..8 {
            embedded_can::nb::Can::transmit(can, &frame).unwrap();
        }
        assert_eq!(embedded_can::nb::Can::transmit(can, &frame), Err(nb::Error::WouldBlock));
    });
}
