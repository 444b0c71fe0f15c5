//! Settings that are refused before anything is clocked, and the texts of errors. The driver's
//! messages are judged in `barewire-sim`.

use super::*;
use crate::bus::Bus;
use crate::controller::null::Null;
use crate::spi::Settings;

/// A port on which nothing may be clocked.
struct Untouched {
    speed_hz: u32,
}

impl Port for Untouched {
    fn run(&mut self, _message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        panic!("nothing is clocked")
    }

    fn speed_hz(&self) -> u32 {
        self.speed_hz
    }
}

#[track_caller]
fn refused(config: Config, speed_hz: u32) -> CanError {
    let port = Untouched { speed_hz };
    Mcp251xfd::<OnPort<_, FRAME_BYTES>, _>::on_port(port, Clock::default(), config)
        .map(drop)
        .expect_err("is refused")
}

#[test]
fn data_one_bit_late_or_early_is_told_from_another_chip() {
    use std::string::ToString as _;
    // C1CON's bytes after a reset are 60 07 98 04, OSC's 60 04 00 00.
    for (bytes, when) in [([0x30, 0x03, 0xcc, 0x02], "late"), ([0xc0, 0x0f, 0x30, 0x08], "early")] {
        let actual = u32::from_le_bytes(bytes);
        let text = CanError::UnexpectedId { expected: 0x0498_0760, actual }.to_string();
        assert!(text.contains(when) && text.contains("too fast"), "{text}");
    }
    for (bytes, when) in [([0xb0, 2, 0, 0], "late"), ([0xc0, 8, 0, 0], "early")] {
        let osc = u32::from_le_bytes(bytes);
        let text = CanError::OscillatorNotReady { osc, waited_us: 6_000 }.to_string();
        assert!(text.contains(when) && text.contains("too fast"), "{text}");
    }
    let dead = CanError::OscillatorNotReady { osc: 0x60, waited_us: 6_000 }.to_string();
    assert!(dead.contains("crystal"), "{dead}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_clocked() {
    let too_fast = CanError::SpiTooFast { speed_hz: 17_000_001, max_hz: 17_000_000 };
    assert_eq!(refused(classic(), 17_000_001), too_fast);
    let at_20_mhz = Config { oscillator: Oscillator::new(20_000_000), ..classic() };
    let too_fast = CanError::SpiTooFast { speed_hz: 8_500_001, max_hz: 8_500_000 };
    assert_eq!(refused(at_20_mhz, 8_500_001), too_fast);
    let pll = Oscillator { pll: true, ..Oscillator::new(4_000_000) };
    assert_eq!((pll.sysclk_hz(), pll.spi_max_hz()), (40_000_000, 1_700_000));
    let fast = Config { oscillator: Oscillator { pll: true, ..AT_40_MHZ }, ..classic() };
    assert_eq!(refused(fast, 1), CanError::Oscillator { sysclk_hz: 400_000_000 });
    let rate = Config { nominal: BitRate::new(30_000_000), ..classic() };
    assert!(matches!(refused(rate, 1), CanError::BitTiming(TimingError::BitRate { .. })));
    let deep = Config { rx_objects: 33, ..classic() };
    assert_eq!(refused(deep, 1), CanError::Depth { objects: 33 });
    let large = Config { rx_objects: 20, ..fd() };
    let (bytes, max_bytes) = (20 * 76 + 8 * 72, 2_048);
    assert_eq!(refused(large, 1), CanError::Ram { bytes, max_bytes });
}

#[test]
fn on_a_bus_nobody_answers_and_it_says_so() {
    let bus = Bus::new(Null::new());
    let device = bus.device(&Settings::new(0, 16_000_000)).unwrap();
    let none = CanError::NoChip { received: 0 };
    assert_eq!(Mcp251xfd::new(device, Clock::default(), classic()).map(drop), Err(none));
}
