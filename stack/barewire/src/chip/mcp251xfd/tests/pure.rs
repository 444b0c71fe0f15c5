//! Tests without a wire: timing, layout, checksums, time stamps, frames.

use super::crc::{INIT, crc16};
use super::layout::Layout;
use super::timestamp::Widener;
use super::*;
use crate::regmap::Map;
use proptest::prelude::*;

/// Two exchanges that a chip sent, from a report on the linux-can list.
#[test]
fn the_crc_is_the_chips() {
    assert_eq!(crc16(INIT, &[0xb0, 0x10, 0x04, 0x02, 0xd1, 0xfa, 0x6c]), 0xd9c2);
    assert_eq!(crc16(INIT, &[0xb0, 0x10, 0x04, 0x82, 0xd1, 0xfa, 0x6c]), 0x59fd);
}

#[test]
fn the_data_sheets_reset_values_are_found_for_their_rates() {
    let rate = BitRate::new(500_000).with_sample_point_permille(800);
    let nominal = BitTiming::nominal(40_000_000, &rate).unwrap();
    assert_eq!(nominal, BitTiming { brp: 1, tseg1: 63, tseg2: 16, sjw: 16 });
    assert_eq!(nominal.nominal_word(), 0x003e_0f0f);
    let rate = BitRate::new(2_000_000).with_sample_point_permille(800);
    let data = BitTiming::data(40_000_000, &rate).unwrap();
    assert_eq!(data, BitTiming { brp: 1, tseg1: 15, tseg2: 4, sjw: 4 });
    assert_eq!((data.data_word(), data.tdc_word()), (0x000e_0303, 0x0002_0f00));
    assert_eq!((data.bitrate_hz(40_000_000), data.sample_point_permille()), (2_000_000, 800));
}

#[test]
fn the_maps_have_every_register_by_the_data_sheets_names() {
    // Below 0x2f0 there are addresses for 188 registers, of which 0x04c has none; six above.
    assert_eq!((MAP.len(), MAP_2517FD.len()), (187 + 6, 187 + 5));
    let at = |name| MAP.find(name).map(|register| register.address());
    assert_eq!(at("C1FIFOCON1"), Some(0x05c));
    assert_eq!(at("C1FIFOUA31"), Some(0x1cc));
    assert_eq!((at("C1FIFOCON0"), at("C1FIFOCON32")), (None, None));
    assert_eq!(
        (at("C1FLTCON7"), at("C1FLTOBJ0"), at("C1MASK31")),
        (Some(0x1ec), Some(0x1f0), Some(0x2ec))
    );
    let lpmen = |map: &Map| map.find("OSC").unwrap().register().field("LPMEN").is_some();
    assert!(lpmen(&MAP) && !lpmen(&MAP_2517FD));
}

#[test]
fn sample_points_are_cias_unless_asked() {
    for (bitrate_hz, permille) in [(125_000, 875), (500_000, 875), (800_000, 800), (1_000_000, 750)]
    {
        let timing = BitTiming::nominal(40_000_000, &BitRate::new(bitrate_hz)).unwrap();
        let off = timing.sample_point_permille().abs_diff(permille);
        assert!(off <= 10, "{bitrate_hz}: {timing:?}");
    }
}

#[test]
fn what_the_registers_cannot_hold_is_refused() {
    for asked_hz in [0, 100, 12_000_000, u32::MAX] {
        let error = TimingError::BitRate { asked_hz, sysclk_hz: 40_000_000 };
        assert_eq!(BitTiming::nominal(40_000_000, &BitRate::new(asked_hz)), Err(error));
    }
    let late = BitRate::new(500_000).with_sample_point_permille(1_000);
    let error = TimingError::SamplePoint { permille: 1_000 };
    assert_eq!(BitTiming::nominal(40_000_000, &late), Err(error));
    // A whole number of quanta has an error of 0.3 percent there, and no other is closer.
    let odd = BitTiming::nominal(20_000_000, &BitRate::new(997_000)).unwrap();
    assert_eq!(odd.bitrate_hz(20_000_000), 1_000_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn any_timing_found_fits_its_register_and_comes_near(
        sysclk_hz in 1_000_000_u32..=40_000_000, bitrate_hz in 5_000_u32..=8_000_000,
        permille in 0_u16..1_000,
    ) {
        let rate = BitRate::new(bitrate_hz).with_sample_point_permille(permille);
        let timings = [
            (BitTiming::nominal(sysclk_hz, &rate), 2..=256, 1..=128, 1..=128),
            (BitTiming::data(sysclk_hz, &rate), 1..=32, 1..=16, 1..=16),
        ];
        for (timing, tseg1, tseg2, sjw) in timings {
            let Ok(timing) = timing else { continue };
            prop_assert!((1..=256).contains(&timing.brp));
            prop_assert!(tseg1.contains(&timing.tseg1) && tseg2.contains(&timing.tseg2));
            prop_assert!(sjw.contains(&timing.sjw) && timing.sjw <= timing.tseg2);
            let made = f64::from(sysclk_hz)
                / f64::from(timing.brp * (1 + timing.tseg1 + timing.tseg2));
            prop_assert!((made / f64::from(bitrate_hz) - 1.0).abs() < 0.0051, "{made}");
        }
    }

    #[test]
    fn stamps_are_widened_in_any_order_within_half_a_turn(
        start in 0_u64..1 << 40, steps in prop::collection::vec(-1_000_i64..1 << 30, 1..20),
    ) {
        let mut widener = Widener::default();
        // Steps up to the start value, small enough to follow.
        let mut at = 0;
        while at < start {
            at = (at + (1 << 31) - 1).min(start);
            prop_assert_eq!(widener.widen(at as u32), at);
            if cfg!(miri) && at > 1 << 34 { break; }
        }
        for step in steps {
            let stamp = at.saturating_add_signed(step);
            prop_assert_eq!(widener.widen(stamp as u32), stamp);
            at = at.max(stamp);
        }
    }
}

#[test]
fn an_old_stamp_does_not_move_the_latest_back() {
    let mut widener = Widener::default();
    assert_eq!(widener.widen(0x7fff_ffff), 0x7fff_ffff);
    assert_eq!(widener.widen(0xffff_fffe), 0xffff_fffe);
    assert_eq!(widener.widen(5), 0x1_0000_0005);
    assert_eq!(widener.widen(0xffff_fffe), 0xffff_fffe);
    assert_eq!(widener.widen(0x8000_0004), 0x1_8000_0004);
}

#[test]
fn memory_is_tef_txq_fifo_1_fifo_2() {
    let layout = Layout::new(&classic()).unwrap();
    assert_eq!((layout.rx.start, layout.rx.object_bytes), (0x400, 20));
    assert_eq!((layout.tx.start, layout.tx.object_bytes), (0x680, 16));
    let config = Config { tx_order: TxOrder::Identifier, transmit_events: true, ..fd() };
    let layout = Layout::new(&config).unwrap();
    assert_eq!((layout.tef.start, layout.tef.object_bytes), (0x400, 12));
    assert_eq!((layout.tx.start, layout.tx.object_bytes), (0x460, 72));
    assert_eq!((layout.rx.start, layout.rx.object_bytes), (0x6a0, 76));
}

#[test]
fn memory_full_to_the_last_byte_is_taken() {
    // 19 of 76 bytes and 8 of 72 are 2,020; there is no room for 28 more.
    assert!(Layout::new(&Config { rx_objects: 19, ..fd() }).is_ok());
    // 32 of 44 and 16 of 40 are 2,048.
    let full = Config { payload: Payload::Bytes32, rx_objects: 32, tx_objects: 16, ..fd() };
    assert!(Layout::new(&full).is_ok());
    let more = Config { tx_objects: 17, ..full };
    let error = CanError::Ram { bytes: 2_088, max_bytes: 2_048 };
    assert_eq!(Layout::new(&more), Err(error));
}

#[test]
fn frames_have_the_lengths_there_are() {
    for len in 0..=64 {
        let data = vec![7; len];
        let there = len <= 8 || [12, 16, 20, 24, 32, 48, 64].contains(&len);
        assert_eq!(Frame::fd(standard(1), &data, true).is_some(), there, "{len}");
        assert_eq!(Frame::classic(standard(1), &data).is_some(), len <= 8, "{len}");
    }
    assert!(Frame::remote(standard(1), 9).is_none());
    let remote = Frame::remote(standard(1), 8).unwrap();
    assert_eq!((remote.dlc(), remote.data().len()), (8, 0));
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
fn errors_name_the_remedy() {
    for (error, part) in [
        (CanError::NoChip { received: 0 }, "stuck low"),
        (CanError::NoChip { received: u32::MAX }, "chip select"),
        (CanError::SpiTooFast { speed_hz: 2, max_hz: 1 }, "lower the clock"),
        (CanError::BusOff, "restart"),
        (CanError::TxFull, "later"),
        (CanError::InterruptStuck { interrupts: 0 }, "pull-up"),
        (CanError::Ram { bytes: 2, max_bytes: 1 }, "fewer"),
        (CanError::Gone { interrupts: 0 }, "reset"),
    ] {
        let text = std::format!("{error}");
        assert!(text.contains(part), "{text}");
    }
}
