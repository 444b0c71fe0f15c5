//! Frames to and fro, filters, CRC, events.

use barewire::chip::mcp251xfd::{ExtendedId, Filter, Found, Frame, Mode, Part, Payload, TxOrder};
use barewire_sim::model::can::CanFrame;
use barewire_sim::model::mcp2518fd::PartKind;

use super::*;

fn extended(id: u32) -> ExtendedId {
    ExtendedId::new(id).expect("29 bits")
}

/// Frames on the wire, each with the same frame as software sees it.
fn pairs() -> Vec<(CanFrame, Frame)> {
    let eight = [0x55, 0, 0xff, 1, 2, 3, 4, 5];
    vec![
        (CanFrame::new(0x7ff, &eight), frame(0x7ff, &eight)),
        (CanFrame::new(0, &[]), frame(0, &[])),
        (
            CanFrame::new(0x1234_5678, &eight[..3]),
            Frame::classic(extended(0x1234_5678), &eight[..3]).unwrap(),
        ),
        (CanFrame::new(0x5, &[9]).extended(), Frame::classic(extended(5), &[9]).unwrap()),
        (CanFrame::remote(0x101, 6), Frame::remote(standard(0x101), 6).unwrap()),
        (CanFrame::remote(0x1fff_ffff, 0), Frame::remote(extended(0x1fff_ffff), 0).unwrap()),
    ]
}

fn fd_pairs() -> Vec<(CanFrame, Frame)> {
    let data: Vec<u8> = (0..64).map(|byte| u8::wrapping_mul(byte, 37) + 1).collect();
    let mut pairs = pairs();
    for len in [0, 5, 8, 12, 16, 20, 24, 32, 48, 64] {
        for brs in [false, true] {
            pairs.push((
                CanFrame::fd(0x77, &data[..len], brs),
                Frame::fd(standard(0x77), &data[..len], brs).unwrap(),
            ));
        }
    }
    pairs
}

fn both_ways(config: Config, pairs: &[(CanFrame, Frame)]) {
    let rig = Rig::new();
    let spi = rig.bus();
    let mut driver = rig.started(&spi, config);
    assert_eq!((driver.part(), driver.mode()), (Part::Mcp2518fd, Ok(config.mode)));
    let mut latest = 0;
    for (wire, own) in pairs {
        rig.send([*wire]);
        let sof = |rig: &Rig| rig.can.records().last().expect("a frame").sof;
        let received = rig.frames(&mut driver, 5 * MS);
        let [received] = received[..] else { panic!("{wire:?}: {received:?}") };
        assert_eq!((received.frame, received.filter), (*own, 0));
        // Ticks of a microsecond.
        let since = rig.board.engine().now_ps() - sof(&rig);
        let now = driver.now().expect("goes through");
        assert!(
            received.timestamp > latest
                && (now - received.timestamp).abs_diff(since / 1_000_000) < 12
        );
        latest = received.timestamp;
        driver.transmit(own).expect("goes out");
        assert!(rig.serve(&mut driver, 5 * MS).is_empty(), "nothing interrupts for what went out");
        assert_eq!(rig.can.records().last().expect("a frame").frame, *wire);
    }
    let heard: Vec<_> =
        rig.far.borrow().received_frames().iter().map(|(_, frame)| *frame).collect();
    assert_eq!(heard, pairs.iter().map(|(wire, _)| *wire).collect::<Vec<_>>());
    rig.assert_clean();
}

#[test]
fn classic_frames_go_both_ways() {
    both_ways(classic(), &pairs());
    both_ways(Config { crc: true, ..classic() }, &pairs());
    both_ways(Config { tx_order: TxOrder::Identifier, ..classic() }, &pairs());
}

#[test]
fn frames_of_can_fd_go_both_ways() {
    both_ways(fd(), &fd_pairs());
    both_ways(Config { crc: true, ..fd() }, &fd_pairs());
    let short =
        fd_pairs().into_iter().filter(|(_, own)| own.data().len() <= 12).collect::<Vec<_>>();
    both_ways(Config { payload: Payload::Bytes12, ..fd() }, &short);
}

#[test]
fn a_frame_longer_than_its_place_is_cut_and_told() {
    let rig = Rig::new();
    let spi = rig.bus();
    let mut driver = rig.started(&spi, Config { payload: Payload::Bytes8, ..fd() });
    rig.send([CanFrame::fd(0x10, &[0xee; 12], true)]);
    let told = rig.serve(&mut driver, 3 * MS);
    let frames: Vec<_> = told.iter().filter(|(_, found)| found.frame).collect();
    assert_eq!(frames.len(), 1, "{told:?}");
    let mut cut = [0; 12];
    cut[..8].fill(0xee);
    assert_eq!(frames[0].0.frame.data(), cut);
    rig.works(&mut driver);
    rig.assert_clean();
}

#[test]
fn many_frames_come_and_go_in_order() {
    for config in [classic(), Config { crc: true, ..classic() }] {
        let rig = Rig::new();
        let spi = rig.bus();
        let mut driver = rig.started(&spi, config);
        // More than once around both rings, and a full ring at once.
        for round in 0..5_u8 {
            rig.send((0..32).map(|index| CanFrame::new(0x200, &[round, index])));
            rig.pass(20 * MS);
            let received = rig.frames(&mut driver, MS);
            let data: Vec<_> = received.iter().map(|one| one.frame.data().to_vec()).collect();
            assert_eq!(data, (0..32).map(|index| vec![round, index]).collect::<Vec<_>>());
        }
        let mut full = 0;
        for index in 0..100_u8 {
            while let Err(error) = driver.transmit(&frame(0x300, &[index])) {
                assert_eq!(error, CanError::TxFull);
                full += 1;
                rig.pass(MS / 10);
            }
        }
        assert!(full > 0);
        rig.pass(10 * MS);
        let heard = rig.far.borrow().received_frames().to_vec();
        let heard: Vec<_> = heard.iter().map(|(_, frame)| frame.data()[0]).collect();
        assert_eq!(heard, (0..100).collect::<Vec<_>>());
        rig.assert_clean();
    }
}

#[test]
fn the_queue_sends_the_most_urgent_first() {
    let rig = Rig::new();
    let spi = rig.bus();
    let mut driver = rig.started(&spi, Config { tx_order: TxOrder::Identifier, ..classic() });
    // The bus is taken while the queue fills.
    rig.send([CanFrame::new(0x7, &[0; 8])]);
    rig.pass(MS / 10);
    for id in [0x400, 0x100, 0x300, 0x200] {
        driver.transmit(&frame(id, &[])).expect("goes out");
    }
    rig.pass(5 * MS);
    let heard: Vec<_> = rig.far.borrow().received_frames().iter().map(|(_, one)| one.id).collect();
    assert_eq!(heard, [0x100, 0x200, 0x300, 0x400]);
    rig.assert_clean();
}

#[test]
fn filters_let_through_what_they_say() {
    let rig = Rig::new();
    let spi = rig.bus();
    let mut driver = rig.driver(&spi, classic()).expect("proves itself");
    driver.set_filter(0, None).expect("goes through");
    driver.set_filter(3, Some(Filter::exactly(standard(0x123)))).expect("goes through");
    driver.set_filter(7, Some(Filter::masked(standard(0x200), 0x700))).expect("goes through");
    let masked = Filter::masked(extended(0x1000_0001), 0x1ff0_000f);
    driver.set_filter(31, Some(masked)).expect("goes through");
    driver.start().expect("joins");
    let sent = [
        (CanFrame::new(0x123, &[]), Some(3)),
        (CanFrame::new(0x122, &[]), None),
        (CanFrame::new(0x123, &[]).extended(), None),
        (CanFrame::new(0x2fe, &[]), Some(7)),
        (CanFrame::new(0x3fe, &[]), None),
        (CanFrame::new(0x100a_bcd1, &[]), Some(31)),
        (CanFrame::new(0x101a_bcd1, &[]), None),
        (CanFrame::new(0x100a_bcd3, &[]), None),
    ];
    let passed = |driver: &mut Driver<'_>| {
        rig.send(sent.map(|(frame, _)| frame));
        let received = rig.frames(driver, 10 * MS);
        received.iter().map(|one| one.filter).collect::<Vec<_>>()
    };
    assert_eq!(passed(&mut driver), [3, 7, 31]);
    driver.restart().expect("joins again");
    assert_eq!(passed(&mut driver), [3, 7, 31]);
    driver.set_filter(7, None).expect("goes through");
    assert_eq!(passed(&mut driver), [3, 31]);
    rig.assert_clean();
}

#[test]
fn what_went_out_is_confirmed_with_its_time() {
    for part in [PartKind::Mcp2518Fd, PartKind::Mcp2517Fd] {
        let rig = Rig::with(|options| options.part = part);
        let spi = rig.bus();
        let mut driver = rig.started(&spi, Config { transmit_events: true, ..classic() });
        let mut latest = 0;
        for index in 0..150_u32 {
            let sequence = driver.transmit(&frame(0x99, &[index as u8])).expect("goes out");
            assert_eq!(u32::from(sequence), index % 128);
            let told = rig.serve(&mut driver, MS);
            let [(_, Found { transmitted: Some(transmitted), frame: false, .. })] = told[..] else {
                panic!("{told:?}");
            };
            assert_eq!(transmitted.sequence, sequence);
            let sof = rig.can.records().last().expect("a frame").sof;
            let since = rig.board.engine().now_ps() - sof;
            let now = driver.now().expect("goes through");
            assert!((now - transmitted.timestamp).abs_diff(since / 1_000_000) < 12);
            assert!(transmitted.timestamp > latest);
            latest = transmitted.timestamp;
        }
        rig.assert_clean();
    }
}

#[test]
fn the_two_parts_are_told_apart() {
    for (kind, part) in
        [(PartKind::Mcp2517Fd, Part::Mcp2517fd), (PartKind::Mcp2518Fd, Part::Mcp2518fd)]
    {
        // DEVID has a revision, which is no part's identity.
        for devid in [0, 0x12] {
            let rig = Rig::with(|options| (options.part, options.devid) = (kind, devid));
            let spi = rig.bus();
            let mut driver = rig.started(&spi, classic());
            assert_eq!(driver.part(), part);
            rig.works(&mut driver);
            rig.assert_clean();
        }
    }
}

#[test]
fn modes_off_the_bus_and_beside_it() {
    let rig = Rig::new();
    let spi = rig.bus();
    let mut driver = rig.started(&spi, Config { mode: Mode::InternalLoopback, ..fd() });
    let own = Frame::fd(standard(0x42), &[7; 24], true).expect("a frame");
    driver.transmit(&own).expect("goes out");
    let received = rig.frames(&mut driver, 2 * MS);
    assert_eq!(received.iter().map(|one| one.frame).collect::<Vec<_>>(), [own]);
    assert!(rig.can.records().is_empty(), "nothing is on the bus");
    drop(driver);
    let mut driver = rig.started(&spi, Config { mode: Mode::ListenOnly, ..classic() });
    rig.send([CanFrame::new(0x1, &[1])]);
    let told = rig.serve(&mut driver, MS / 2);
    // No node acknowledges, so the far node's frame is an error for both.
    assert!(told.iter().all(|(_, found)| !found.frame), "{told:?}");
    assert!(rig.can.records().iter().all(|record| !record.is_taken()));
    rig.can.add_listener();
    rig.pass(10 * MS);
    assert!(rig.serve(&mut driver, MS).iter().any(|(_, found)| found.frame));
    driver.stop().expect("leaves");
    assert_eq!(driver.mode(), Ok(Mode::Configuration));
    assert!(!rig.line.is_high());
    rig.assert_clean();
}

#[test]
fn a_clock_from_the_pll_comes_up() {
    let rig = Rig::with(|options| {
        (options.oscillator_hz, options.pll, options.starts_cold) = (4_000_000, true, true);
    });
    let spi = rig.bus();
    let oscillator = Oscillator { pll: true, ..Oscillator::new(4_000_000) };
    let device = spi.device(&Settings::new(CS, 1_700_000)).expect("opens");
    let config = Config { oscillator, ..classic() };
    let mut driver = Mcp251xfd::new(device, rig.board.timer(), config).expect("proves itself");
    driver.start().expect("joins");
    rig.works(&mut driver);
    rig.assert_clean();
}

#[test]
fn the_traits_of_embedded_can_block_and_do_not() {
    fn without_waiting<C: embedded_can::nb::Can<Error = CanError>>(can: &mut C) -> Vec<C::Frame> {
        std::iter::from_fn(|| match can.receive() {
            Ok(frame) => Some(frame),
            Err(nb::Error::WouldBlock) => None,
            Err(nb::Error::Other(error)) => panic!("{error:?}"),
        })
        .collect()
    }
    fn echo<C: embedded_can::blocking::Can<Error = CanError>>(can: &mut C) {
        let frame = can.receive().expect("comes");
        can.transmit(&frame).expect("goes out");
    }
    let rig = Rig::new();
    let spi = rig.bus();
    let mut driver = rig.started(&spi, classic());
    assert_eq!(without_waiting(&mut driver), []);
    rig.send([CanFrame::new(0x11, &[1]), CanFrame::new(0x12, &[2])]);
    rig.pass(3 * MS);
    let frames = [frame(0x11, &[1]), frame(0x12, &[2])];
    assert_eq!(without_waiting(&mut driver), frames);
    rig.send([CanFrame::new(0x13, &[3])]);
    rig.pass(2 * MS);
    echo(&mut driver);
    // No node acknowledges, so the transmit FIFO fills up.
    let mut free = 0;
    while embedded_can::nb::Can::transmit(&mut driver, &frames[0]) != Err(nb::Error::WouldBlock) {
        free += 1;
        assert!(free < 20, "it never blocks");
    }
    rig.pass(20 * MS);
    let heard = rig.far.borrow().received_frames().first().map(|(_, frame)| *frame);
    assert_eq!(heard, Some(CanFrame::new(0x13, &[3])));
    rig.assert_clean();
}
