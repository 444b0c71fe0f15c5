//! Frames and errors.

use super::*;

#[test]
fn a_received_frame_is_three_accesses_in_two_messages() {
    let script =
        vec![interrupts(0x02, 0x00), read(&[0x34, 0x00], &object(0x1000)), write(&RX_DONE)];
    let mut port = Script::new();
    port.steps.extend(classic_up().into_iter().chain(classic_joins()).chain(script));
    let mut can = Mcp251xfd::on_port(&mut port, Clock::default(), classic()).unwrap();
    can.start().unwrap();
    let mut received = Received::EMPTY;
    let found = can.service(&mut received).unwrap();
    assert_eq!(found, Found { frame: true, ..Found::default() });
    let frame = Frame::classic(standard(0x123), &[0x11, 0x22, 0x33]).unwrap();
    assert_eq!(received, Received { frame, timestamp: 0x1000, filter: 0 });
    assert_eq!(port.messages as usize, classic_up().len() + classic_joins().len() + 2);
}

#[test]
fn objects_are_taken_in_turn_and_the_last_is_followed_by_the_first() {
    let mut script = vec![];
    for index in 0..33_u16 {
        let address = 0x3400 + index % 32 * 20;
        script.extend([
            interrupts(0x02, 0x00),
            read(&address.to_be_bytes(), &object(index.into())),
            write(&RX_DONE),
        ]);
    }
    hold_classic(script, |can| {
        let mut received = Received::EMPTY;
        for index in 0..33 {
            assert!(can.service(&mut received).unwrap().frame);
            assert_eq!(received.timestamp, index);
        }
    });
}

#[test]
fn every_bit_of_a_header_is_understood() {
    let cases: [(&[u8; 8], Frame, u8); 5] = [
        // Extended, 8 bytes by DLC 15, filter 31.
        (
            &[0x3f, 0xa6, 0x91, 0x18, 0x1f, 0xf8, 0x00, 0x00],
            Frame::classic(extended(0x18ff_1234), &[0; 8]).unwrap(),
            31,
        ),
        (&[0xff, 0x07, 0, 0, 0x25, 0, 0, 0], Frame::remote(standard(0x7ff), 5).unwrap(), 0),
        // A frame of CAN FD is never remote, whatever the bit is.
        (&[0, 0, 0, 0, 0xa0, 0, 0, 0], Frame::fd(standard(0), &[], false).unwrap(), 0),
        (&[0, 0, 0, 0, 0xc0, 0, 0, 0], Frame::fd(standard(0), &[], true).unwrap(), 0),
        (&[0, 0, 0, 0, 0x80, 0x01, 0, 0], Frame::fd(standard(0), &[], false).unwrap(), 0),
    ];
    for (header, expected, filter) in cases {
        let mut frame = Frame::EMPTY;
        assert_eq!(frame.decode_header(header), filter);
        assert_eq!(frame.id(), expected.id());
        assert_eq!(frame.data(), expected.data());
        assert_eq!(frame.is_remote(), expected.is_remote());
        assert_eq!(frame.is_fd(), expected.is_fd());
        assert_eq!(frame.has_bit_rate_switch(), expected.has_bit_rate_switch());
        assert_eq!(frame.is_error_passive(), header[5] & 1 != 0);
        assert_eq!(frame.dlc(), header[4] & 15);
    }
}

#[test]
fn long_data_is_an_access_more_and_short_data_is_not() {
    let data: Vec<u8> = (0..64).collect();
    let header = [0x23, 0x01, 0, 0, 0xcf, 0x01, 0, 0, 5, 0, 0, 0];
    let first = [&header[..], &data[..8]].concat();
    let script = vec![
        interrupts(0x02, 0x00),
        read(&[0x34, 0x00], &first),
        read(&[0x34, 0x14], &data[8..]),
        write(&RX_DONE),
        interrupts(0x02, 0x00),
        // The second object of 76 bytes.
        read(&[0x34, 0x4c], &object(6)),
        write(&RX_DONE),
        interrupts(0x02, 0x00),
        // 12 bytes: four are read beyond the first eight.
        read(&[0x34, 0x98], &[&[0x23, 0x01, 0, 0, 0x89, 0, 0, 0, 7, 0, 0, 0], &data[..8]].concat()),
        read(&[0x34, 0xac], &data[8..12]),
        write(&RX_DONE),
    ];
    hold(fd(), fd_up(), script, |can| {
        let mut received = Received::EMPTY;
        can.service(&mut received).unwrap();
        assert_eq!(received.frame.data(), data);
        assert!(received.frame.has_bit_rate_switch() && received.frame.is_error_passive());
        can.service(&mut received).unwrap();
        assert_eq!(received.frame.data(), [0x11, 0x22, 0x33]);
        can.service(&mut received).unwrap();
        assert_eq!(received.frame.data(), &data[..12]);
    });
}

#[test]
fn a_transmitted_frame_is_two_accesses_in_one_message() {
    let script = vec![
        write(&[0x26, 0x80, 0x3f, 0xa6, 0x91, 0x18, 0x12, 0, 0, 0, 0xaa, 0xbb, 0, 0]),
        write(&[0x20, 0x69, 0x03]),
        // The next place and sequence number; a remote frame has no data.
        write(&[0x26, 0x90, 0xff, 0x07, 0, 0, 0x28, 0x02, 0, 0]),
        write(&[0x20, 0x69, 0x03]),
    ];
    hold_classic(script, |can| {
        let frame = Frame::classic(extended(0x18ff_1234), &[0xaa, 0xbb]).unwrap();
        assert_eq!(can.transmit(&frame), Ok(0));
        assert_eq!(can.transmit(&Frame::remote(standard(0x7ff), 8).unwrap()), Ok(1));
    });
}

#[test]
fn places_are_asked_for_only_when_none_is_known() {
    let frame = Frame::classic(standard(1), &[]).unwrap();
    let place = |index: u16, sequence: u8| {
        let [high, low] = (0x2680 + index % 8 * 16).to_be_bytes();
        let [seq, more] = (u16::from(sequence) << 9).to_le_bytes();
        write(&[high, low, 1, 0, 0, 0, seq, more, 0, 0])
    };
    let mut script = vec![];
    for index in 0..8 {
        script.extend([place(index, index as u8), write(&[0x20, 0x69, 0x03])]);
    }
    // Full; then one place; then half; then all.
    script.push(read(&[0x30, 0x6c], &[0x00, 0, 0, 0]));
    let mut next = 8;
    for (status, free) in [(0x01, 1), (0x03, 4), (0x07, 8)] {
        script.push(read(&[0x30, 0x6c], &[status, 0, 0, 0]));
        for index in next..next + free {
            script.extend([place(index, index as u8), write(&[0x20, 0x69, 0x03])]);
        }
        next += free;
    }
    hold_classic(script, |can| {
        for _ in 0..8 {
            can.transmit(&frame).unwrap();
        }
        assert_eq!(can.transmit(&frame), Err(CanError::TxFull));
        for index in 8..21 {
            assert_eq!(can.transmit(&frame), Ok(index));
        }
    });
}

#[test]
fn by_identifier_the_chip_is_asked_for_the_place() {
    let config = Config { tx_order: TxOrder::Identifier, ..classic() };
    let mut up = proof();
    up.extend([
        write(&[0x20, 0x04, 0x13, 0x13, 0x8a, 0x00]),
        write(&[0x20, 0x14, 0x27, 0x00, 0x01, 0x00]),
        write(&[0x20, 0x00, 0x60, 0x07, 0x90, 0x04]),
        write(&[0x20, 0x5c, 0x29, 0x04, 0x00, 0x1f]),
        write(&[0x20, 0x50, 0x80, 0x04, 0x60, 0x07]),
    ]);
    up.extend(open_filter());
    up.extend(classic_joins());
    let script = vec![
        read(&[0x30, 0x58], &[0x30, 0, 0, 0]),
        write(&[0x24, 0x30, 1, 0, 0, 0, 0, 0, 0, 0]),
        write(&[0x20, 0x51, 0x03]),
    ];
    hold(config, up, script, |can| {
        can.transmit(&Frame::classic(standard(1), &[]).unwrap()).unwrap();
    });
}

#[test]
fn a_frame_the_configuration_has_no_room_for_is_refused() {
    hold_classic(vec![], |can| {
        let long = Frame::fd(standard(1), &[0; 12], false).unwrap();
        let short = Frame::fd(standard(1), &[0; 2], false).unwrap();
        assert_eq!(can.transmit(&long), Err(CanError::FrameTooLong { len: 12, max_len: 8 }));
        assert_eq!(can.transmit(&short), Err(CanError::FrameTooLong { len: 2, max_len: 8 }));
    });
}

#[test]
fn a_bit_rate_switch_needs_a_bit_rate_to_switch_to() {
    let mut up = fd_up();
    // The timing of the data's bits and its compensation are not set.
    up.drain(10..12);
    let script = vec![
        // FIFO 2 lies behind 16 objects of 76 bytes.
        write(&[0x28, 0xc0, 1, 0, 0, 0, 0x80, 0, 0, 0]),
        write(&[0x20, 0x69, 0x03]),
        write(&[0x29, 0x08, 1, 0, 0, 0, 0x00, 0x02, 0, 0]),
        write(&[0x20, 0x69, 0x03]),
    ];
    hold(Config { data: None, ..fd() }, up, script, |can| {
        let switching = Frame::fd(standard(1), &[], true).unwrap();
        assert_eq!(can.transmit(&switching), Err(CanError::NoDataBitRate));
        can.transmit(&Frame::fd(standard(1), &[], false).unwrap()).unwrap();
        can.transmit(&Frame::classic(standard(1), &[]).unwrap()).unwrap();
    });
}

#[test]
fn errors_are_cleared_before_they_are_read() {
    let script = vec![
        // Only an overflow.
        interrupts(0x00, 0x08),
        write(&[0x20, 0x60, 0xf7]),
        // Error passive, and frames without acknowledgement; also a received frame, which comes
        // first.
        interrupts(0x02, 0xa0),
        read(&[0x34, 0x00], &object(0)),
        write(&RX_DONE),
        write(&[0x20, 0x1c, 0xff, 0x5f]),
        read(&[0x30, 0x34], &[0x01, 0x80, 0x15, 0x00]),
        read(&[0x30, 0x3c], &[0x00, 0x00, 0x04, 0x00]),
        write(&[0x20, 0x3c, 0, 0, 0, 0]),
        // Bus-off.
        interrupts(0x00, 0x20),
        write(&[0x20, 0x1c, 0xff, 0xdf]),
        read(&[0x30, 0x34], &[0x00, 0x00, 0x20, 0x00]),
        // The memory could not keep up, and the chip listens only.
        interrupts(0x08, 0x10),
        write(&[0x20, 0x1c, 0xf7, 0xef]),
        read(&[0x30, 0x00], &[0x60, 0x07, 0x60, 0x06]),
    ];
    hold_classic(script, |can| {
        let mut received = Received::EMPTY;
        let found = can.service(&mut received).unwrap();
        assert_eq!(found, Found { overflow: true, ..Found::default() });
        let found = can.service(&mut received).unwrap();
        let invalid = Some(Invalid { acknowledge: true, ..Invalid::default() });
        let state = Some(ErrorState::Passive);
        assert_eq!(found, Found { frame: true, state, invalid, ..Found::default() });
        let found = can.service(&mut received).unwrap();
        assert_eq!(found, Found { state: Some(ErrorState::BusOff), ..Found::default() });
        let found = can.service(&mut received).unwrap();
        let mode = Some(Mode::ListenOnly);
        assert_eq!(found, Found { system_error: true, mode, ..Found::default() });
    });
}

#[test]
fn after_bus_off_the_chip_is_asked_for_places() {
    let script = vec![
        interrupts(0x00, 0x20),
        write(&[0x20, 0x1c, 0xff, 0xdf]),
        read(&[0x30, 0x34], &[0x00, 0x00, 0x20, 0x00]),
        read(&[0x30, 0x6c], &[0x00, 0, 0, 0]),
    ];
    hold_classic(script, |can| {
        can.service(&mut Received::EMPTY.clone()).unwrap();
        let frame = Frame::classic(standard(1), &[]).unwrap();
        assert_eq!(can.transmit(&frame), Err(CanError::TxFull));
    });
}

#[test]
fn counters_and_states_are_told_apart() {
    let script = vec![
        read(&[0x30, 0x34], &[0x5f, 0x02, 0x00, 0x00]),
        read(&[0x30, 0x34], &[0x60, 0x02, 0x03, 0x00]),
        read(&[0x30, 0x34], &[0x80, 0x02, 0x0b, 0x00]),
    ];
    hold_classic(script, |can| {
        for (receive, state) in
            [(95, ErrorState::Active), (96, ErrorState::Warning), (128, ErrorState::Passive)]
        {
            let counters = ErrorCounters { transmit: 2, receive, state };
            assert_eq!(can.error_counters(), Ok(counters));
        }
    });
}

#[test]
fn enables_that_are_not_ours_are_a_chip_that_was_reset() {
    let gone = |word: [u8; 4]| (0..3).map(move |_| read(&[0x30, 0x1c], &word));
    for word in [[0; 4], [0xff; 4], [0x02, 0, 0, 0]] {
        hold_classic(gone(word).collect(), |can| {
            let interrupts = u32::from_le_bytes(word);
            let error = CanError::Gone { interrupts };
            assert_eq!(can.service(&mut Received::default()), Err(error));
        });
    }
    // Once is a disturbance.
    let script = gone([0xff; 4]).take(1).chain([interrupts(0, 0)]);
    hold_classic(script.collect(), |can| {
        assert!(can.service(&mut Received::default()).unwrap().is_nothing());
    });
}

#[test]
fn int_is_served_until_it_is_high_and_a_stuck_one_is_told() {
    let frame = || vec![interrupts(0x02, 0x00), read(&[0x34, 0x00], &object(0)), write(&RX_DONE)];
    hold_classic(frame(), |can| {
        let mut low = 1;
        let served = can.serve(
            || {
                low -= 1;
                low >= 0
            },
            |_, received, found| {
                assert!(found.frame && received.frame.data().len() == 3);
                Ok(())
            },
        );
        assert_eq!(served, Ok(Served { frames: 1, looks: 1, more: false }));
    });
    let mut script = frame();
    script.extend((0..3).map(|_| interrupts(0x01, 0x00)));
    hold_classic(script, |can| {
        let served = can.serve(|| true, |_, _, _| Ok(()));
        assert_eq!(served, Err(CanError::InterruptStuck { interrupts: 0xb80a_0001 }));
    });
}

#[test]
fn an_echo_goes_out_of_the_service() {
    let script = vec![
        interrupts(0x02, 0x00),
        read(&[0x34, 0x00], &object(0)),
        write(&RX_DONE),
        write(&[0x26, 0x80, 0x22, 0x01, 0, 0, 3, 0, 0, 0, 0x11, 0x22, 0x33, 0]),
        write(&[0x20, 0x69, 0x03]),
    ];
    hold_classic(script, |can| {
        let mut looks = 0;
        let served = can.serve(
            || {
                looks += 1;
                looks == 1
            },
            |can, received, _| can.transmit(&received.frame.with_id(standard(0x122))).map(drop),
        );
        assert_eq!(served.unwrap().frames, 1);
    });
}

#[test]
fn after_a_failed_access_the_chip_is_asked_where_it_stands() {
    let script = vec![
        interrupts(0x02, 0x00),
        fails(read(&[0x34, 0x00], &object(0))),
        // FIFO 1 has advanced, FIFO 2 has not.
        read(&[0x30, 0x64], &[0x14, 0x00, 0, 0]),
        read(&[0x30, 0x70], &[0x80, 0x02, 0, 0]),
        interrupts(0x02, 0x00),
        read(&[0x34, 0x14], &object(9)),
        write(&RX_DONE),
    ];
    hold_classic(script, |can| {
        let mut received = Received::EMPTY;
        assert!(matches!(can.service(&mut received), Err(CanError::Message(_))));
        assert!(can.service(&mut received).unwrap().frame);
        assert_eq!(received.timestamp, 9);
    });
}

#[test]
fn what_was_found_is_told_though_an_access_behind_it_fails_and_the_rest_is_made_up_for() {
    let script = vec![
        // A frame, the error state and invalid frames: the flags are not cleared.
        interrupts(0x02, 0xa8),
        read(&[0x34, 0x00], &object(7)),
        write(&RX_DONE),
        fails(write(&[0x20, 0x60, 0xf7])),
        // A failure is returned as an error if nothing else was found.
        fails(write(&[0x20, 0x60, 0xf7])),
        write(&[0x20, 0x60, 0xf7]),
        fails(write(&[0x20, 0x1c, 0xff, 0x5f])),
        write(&[0x20, 0x1c, 0xff, 0x5f]),
        fails(read(&[0x30, 0x34], &[0; 4])),
        write(&[0x20, 0x1c, 0xff, 0x5f]),
        read(&[0x30, 0x34], &[0x01, 0x80, 0x15, 0x00]),
        read(&[0x30, 0x3c], &[0x00, 0x00, 0x04, 0x00]),
        fails(write(&[0x20, 0x3c, 0, 0, 0, 0])),
        write(&[0x20, 0x1c, 0xff, 0x7f]),
        read(&[0x30, 0x3c], &[0x00, 0x00, 0x04, 0x00]),
        write(&[0x20, 0x3c, 0, 0, 0, 0]),
        // Everything was reported.
        interrupts(0x00, 0x10),
        write(&[0x20, 0x1c, 0xff, 0xef]),
        fails(read(&[0x30, 0x00], &[0; 4])),
        write(&[0x20, 0x1c, 0xff, 0xef]),
        read(&[0x30, 0x00], &[0x60, 0x07, 0xe0, 0x06]),
        interrupts(0x00, 0x00),
    ];
    hold_classic(script, |can| {
        let mut received = Received::EMPTY;
        let mut service = || can.service(&mut received).map_err(drop);
        let none = Found::default();
        let invalid = Some(Invalid { acknowledge: true, ..Invalid::default() });
        assert_eq!(service(), Ok(Found { frame: true, ..none }));
        assert_eq!(service(), Err(()));
        assert_eq!(service(), Ok(Found { overflow: true, ..none }));
        assert_eq!(service(), Err(()));
        assert_eq!(service(), Ok(Found { state: Some(ErrorState::Passive), ..none }));
        assert_eq!(service(), Ok(Found { invalid, ..none }));
        assert_eq!(service(), Err(()));
        let mode = Some(Mode::Restricted);
        assert_eq!(service(), Ok(Found { system_error: true, mode, ..none }));
        assert_eq!(service(), Ok(none));
        assert_eq!(received.timestamp, 7);
    });
}

#[test]
fn an_event_that_fails_does_not_take_the_frame_before_it_along() {
    let config = Config { transmit_events: true, ..classic() };
    let looked = |low| read(&[0x30, 0x1c], &[low, 0x00, 0x1a, 0xb8]);
    let event = || read(&[0x34, 0x00], &[1, 0, 0, 0, 0x00, 0x04, 0, 0, 0x44, 0x33, 0x22, 0x11]);
    let script = vec![
        looked(0x12),
        read(&[0x34, 0x60], &object(7)),
        write(&RX_DONE),
        fails(event()),
        read(&[0x30, 0x64], &[0x74, 0x00, 0, 0]),
        read(&[0x30, 0x70], &[0xe0, 0x02, 0, 0]),
        read(&[0x30, 0x48], &[0x00, 0x00, 0, 0]),
        looked(0x10),
        event(),
        write(&[0x20, 0x41, 0x01]),
    ];
    hold(config, events_up(), script, |can| {
        let mut received = Received::EMPTY;
        let found = can.service(&mut received).unwrap();
        assert_eq!(found, Found { frame: true, ..Found::default() });
        let found = can.service(&mut received).unwrap();
        let transmitted = Some(Transmitted { sequence: 2, timestamp: 0x1122_3344 });
        assert_eq!(found, Found { transmitted, ..Found::default() });
    });
}

/// TEF at 0x400, FIFO 1 at 0x460, FIFO 2 at 0x6e0.
fn events_up() -> Vec<Step> {
    let mut up = proof();
    up.extend([
        write(&[0x20, 0x04, 0x13, 0x13, 0x8a, 0x00]),
        write(&[0x20, 0x14, 0x27, 0x00, 0x01, 0x00]),
        write(&[0x20, 0x00, 0x60, 0x07, 0x88, 0x04]),
        write(&[0x20, 0x40, 0x21, 0x04, 0x00, 0x07]),
        write(&[0x20, 0x5c, 0x29, 0x04, 0x00, 0x1f]),
        write(&[0x20, 0x68, 0x80, 0x04, 0x60, 0x07]),
    ]);
    up.extend(open_filter());
    up.extend(classic_joins());
    *up.last_mut().unwrap() = write(&[0x20, 0x1c, 0x00, 0x00, 0x1a, 0xb8]);
    up
}

#[test]
fn events_confirm_what_went_out() {
    let config = Config { transmit_events: true, ..classic() };
    let script = vec![
        write(&[0x26, 0xe0, 1, 0, 0, 0, 0, 0, 0, 0]),
        write(&[0x20, 0x69, 0x03]),
        read(&[0x30, 0x1c], &[0x10, 0x00, 0x1a, 0xb8]),
        read(&[0x34, 0x00], &[1, 0, 0, 0, 0x00, 0x04, 0, 0, 0x44, 0x33, 0x22, 0x11]),
        write(&[0x20, 0x41, 0x01]),
        read(&[0x30, 0x1c], &[0x10, 0x00, 0x1a, 0xb8]),
        read(&[0x34, 0x0c], &[1, 0, 0, 0, 0x00, 0xfe, 0, 0, 0x45, 0x33, 0x22, 0x11]),
        write(&[0x20, 0x41, 0x01]),
    ];
    hold(config, events_up(), script, |can| {
        can.transmit(&Frame::classic(standard(1), &[]).unwrap()).unwrap();
        let found = can.service(&mut Received::default()).unwrap();
        let transmitted = Some(Transmitted { sequence: 2, timestamp: 0x1122_3344 });
        assert_eq!(found, Found { transmitted, ..Found::default() });
        let found = can.service(&mut Received::default()).unwrap();
        assert_eq!(found.transmitted.map(|event| event.sequence), Some(127), "seven bits");
    });
}
