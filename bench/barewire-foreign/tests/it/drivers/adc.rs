//! The converters of `embedded-devices`.

use barewire_sim::model::adc::{Adc, AdcPart};
use barewire_sim::model::signal::Signal;
use embedded_devices::devices::microchip::mcp3204::{self, MCP3204Async, MCP3204Sync};
use embedded_devices::devices::microchip::mcp3208::{self, MCP3208Async, MCP3208Sync};
use embedded_devices::uom::si::electric_potential::{millivolt, volt};
use embedded_devices::uom::si::f64::ElectricPotential;

use super::{BOARDS, Bench, block_on};

/// The converters' limit at 5 V is 2 MHz.
const SPEED_HZ: u32 = 2_000_000;

/// A converter that measures against 4,096 mV: a code a millivolt.
fn wired(part: AdcPart) -> Adc {
    let mut adc = Adc::new(part, 5_000, 4_096).expect("within the datasheet's limits");
    for channel in 0..part.channels() {
        // Half a step is added, so that rounding does not matter.
        let level_uv = i64::from(channel) * 500_000 + 7_500;
        adc.set_input(channel, Signal::Constant { level_uv });
    }
    adc
}

fn bench(board: &str, part: AdcPart) -> Bench<Adc> {
    Bench::new(board, wired(part))
}

fn reference() -> ElectricPotential {
    ElectricPotential::new::<volt>(4.096)
}

#[test]
fn the_mcp3204_converts() {
    use mcp3204::InputChannel;
    for board in BOARDS {
        let bench = bench(board, AdcPart::Mcp3204);
        let mut adc = MCP3204Sync::new_spi(bench.device(SPEED_HZ), reference());
        assert_eq!(adc.convert_raw(InputChannel::Single0), Ok(7));
        assert_eq!(adc.convert_raw(InputChannel::Single3), Ok(1_507));
        assert_eq!(adc.convert_raw(InputChannel::Diff10), Ok(500));
        assert_eq!(adc.convert_raw(InputChannel::Diff01), Ok(0), "IN+ is below IN-");
        let level = adc.convert(InputChannel::Single2).expect("runs");
        assert!((level.get::<millivolt>() - 1_007.0).abs() < 1e-6);
        let mut adc = MCP3204Async::new_spi(bench.device(SPEED_HZ), reference());
        assert_eq!(block_on(adc.convert_raw(InputChannel::Single1)), Ok(507));
        assert_eq!(bench.chip.borrow().conversions(), 6);
        bench.assert_no_violations();
    }
}

#[test]
fn the_mcp3208_converts() {
    use mcp3208::InputChannel;
    for board in BOARDS {
        let bench = bench(board, AdcPart::Mcp3208);
        let mut adc = MCP3208Sync::new_spi(bench.device(SPEED_HZ), reference());
        assert_eq!(adc.convert_raw(InputChannel::Single0), Ok(7));
        assert_eq!(adc.convert_raw(InputChannel::Single7), Ok(3_507));
        assert_eq!(adc.convert_raw(InputChannel::Diff76), Ok(500));
        let mut adc = MCP3208Async::new_spi(bench.device(SPEED_HZ), reference());
        assert_eq!(block_on(adc.convert_raw(InputChannel::Single5)), Ok(2_507));
        bench.assert_no_violations();
    }
}

#[test]
fn the_mcp3208_is_awaited_beside_an_interrupt_handler() {
    use mcp3208::InputChannel;
    for board in BOARDS {
        let bench = Bench::handled(board, wired(AdcPart::Mcp3208));
        let mut adc = MCP3208Async::new_spi(bench.device(SPEED_HZ), reference());
        let (raw, pending) = bench.await_handled(adc.convert_raw(InputChannel::Single5));
        assert_eq!(raw, Ok(2_507));
        assert!(pending > 0, "{board}: three bytes take 12 us");
        bench.assert_no_violations();
    }
}
