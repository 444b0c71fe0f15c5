//! The converter's driver on simulated boards: every part, every controller, every input.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::{Bus, Device};
use barewire::chip::mcp3008::{
    AdcError, Input, Mcp3008, PARTS, Part, Probed, probe, probe_settings,
};
use barewire::hal::{HalDevice, OnSpiDevice};
use barewire::spi::{Error, MessageError, Settings, Transfer};
use barewire_sim::board::shipped::kinds_without;
use barewire_sim::bring_up::{AnyController, Charged, bus};
use barewire_sim::model::adc::{Adc, AdcFaults, AdcPart};
use barewire_sim::model::signal::Signal;
use barewire_sim::{Board, Rule};

use crate::block_on;

/// A board for each controller; chip select 0 of each is a GPIO, 1 the block's own.
const BOARDS: [&str; 8] =
    ["beaglebone", "highbank", "imx8mp", "rpi3", "rpi5", "sama5d36", "unleashed", "zynq"];
const VREF_MV: u32 = 4_096;

type SimBus = Bus<Charged<AnyController>>;

struct Bench {
    board: Board,
    adc: Rc<RefCell<Adc>>,
    bus: SimBus,
}

impl Bench {
    /// `part` at 5 V behind chip select `cs`, half a volt more on each channel.
    fn new(board: &str, cs: u8, part: &Part) -> Self {
        let model = AdcPart::ALL.into_iter().find(|model| model.name() == part.name);
        let (supply_mv, vref_mv) =
            if part.channels == 2 { (VREF_MV, VREF_MV) } else { (5_000, VREF_MV) };
        let adc = Adc::new(model.expect("a model"), supply_mv, vref_mv).expect("a good supply");
        let adc = Rc::new(RefCell::new(adc));
        for channel in 0..part.channels {
            adc.borrow_mut()
                .set_input(channel, Signal::constant_mv(i32::from(channel) * 500 + 100));
        }
        let board = crate::board(board);
        board.attach(cs, adc.clone());
        let bus = bus(&board);
        Self { board, adc, bus }
    }

    fn device(&self, cs: u8, part: &Part) -> Device<'_, Charged<AnyController>> {
        let supply_mv = if part.channels == 2 { VREF_MV } else { 5_000 };
        let speed_hz = part.max_speed_hz(supply_mv).expect("a good supply");
        let settings = part.settings(cs, speed_hz, supply_mv).expect("within its limits");
        self.bus.device(&settings).expect("opens")
    }

    fn assert_clean(&self) {
        let violations = self.board.violations();
        assert!(violations.is_empty(), "{:#?}", &violations[..violations.len().min(3)]);
    }
}

/// Every channel, then every pair both ways round.
fn inputs(part: &Part) -> Vec<Input> {
    let channels = || 0..part.channels;
    let pairs = channels().map(|plus| Input::Differential { plus, minus: plus ^ 1 });
    channels().map(Input::Single).chain(pairs).collect()
}

fn expected(part: &Part, input: Input) -> u16 {
    let millivolts = match input {
        Input::Single(channel) => u32::from(channel) * 500 + 100,
        Input::Differential { plus, minus } => u32::from(plus.saturating_sub(minus)) * 500,
    };
    (millivolts << part.bits).div_euclid(VREF_MV) as u16
}

#[test]
fn every_input_of_every_part_behind_every_controller() {
    assert_eq!(kinds_without(&BOARDS), [""; 0], "add a board to BOARDS");
    for board in BOARDS {
        for part in PARTS {
            let bench = Bench::new(board, 0, part);
            let mut adc = Mcp3008::new(bench.device(0, part), part);
            let inputs = inputs(part);
            let mut codes = vec![0; inputs.len()];
            adc.scan(&inputs, &mut codes).expect("converts");
            let wanted: Vec<u16> = inputs.iter().map(|&input| expected(part, input)).collect();
            assert_eq!(codes, wanted, "{} on {board}", part.name);
            assert_eq!(bench.adc.borrow().conversions(), inputs.len() as u64);
            bench.assert_clean();
        }
    }
}

#[test]
fn behind_a_line_of_the_blocks_own_where_it_stays_active() {
    for board in ["beaglebone", "imx8mp", "rpi3", "rpi5", "sama5d36", "unleashed", "zynq"] {
        let part = &PARTS[2];
        let bench = Bench::new(board, 1, part);
        let mut adc = Mcp3008::new(bench.device(1, part), part);
        assert_eq!(adc.read(Input::Single(3)), Ok(expected(part, Input::Single(3))), "{board}");
        bench.assert_clean();
    }
}

#[test]
fn on_a_foreign_device() {
    for part in PARTS {
        let bench = Bench::new("rpi3", 0, part);
        let device = bench.device(0, part);
        let speed_hz = device.effective().speed_hz;
        let port = OnSpiDevice::new(HalDevice::new(device), speed_hz);
        let mut adc = Mcp3008::new(port, part);
        let inputs = inputs(part);
        let mut codes = vec![0; inputs.len()];
        adc.scan(&inputs, &mut codes).expect("converts");
        assert!(codes.iter().zip(&inputs).all(|(&code, &input)| code == expected(part, input)));
        bench.assert_clean();
    }
}

#[test]
fn as_futures_on_our_device_and_on_a_foreign_one() {
    let part = &PARTS[2];
    let bench = Bench::new("rpi3", 0, part);
    let device = bench.device(0, part);
    let inputs = inputs(part);
    let wanted: Vec<u16> = inputs.iter().map(|&input| expected(part, input)).collect();
    let mut codes = vec![0; inputs.len()];
    let mut ours = Mcp3008::new(device, part);
    block_on(ours.scan_async(&inputs, &mut codes)).expect("converts");
    assert_eq!(codes, wanted);
    let port = OnSpiDevice::new(HalDevice::new(device), device.effective().speed_hz);
    let mut foreign = Mcp3008::new(port, part);
    codes.fill(0);
    block_on(foreign.scan_async(&inputs, &mut codes)).expect("converts");
    assert_eq!(codes, wanted);
    assert_eq!(
        block_on(foreign.read_async(Input::Single(4))),
        Ok(expected(part, Input::Single(4)))
    );
    bench.assert_clean();
}

#[test]
fn a_chip_that_is_missing_is_an_error_and_the_bus_goes_on() {
    for board in BOARDS {
        let part = &PARTS[2];
        let bench = Bench::new(board, 0, part);
        let mut adc = Mcp3008::new(bench.device(0, part), part);
        bench.adc.borrow_mut().set_faults(AdcFaults { absent: true, ..AdcFaults::default() });
        let missing = Err(AdcError::NoChip { received: [0xff; 3] });
        assert_eq!(adc.read(Input::Single(0)), missing, "{board}");
        let refused = Err(AdcError::NoSuchChannel { channel: 8, channels: 8 });
        assert_eq!(adc.read(Input::Single(8)), refused);
        bench.adc.borrow_mut().set_faults(AdcFaults::default());
        assert_eq!(adc.read(Input::Single(1)), Ok(expected(part, Input::Single(1))));
        bench.assert_clean();
    }
}

/// A probe uses a clock and delays that every part accepts, because the part is not known yet.
#[test]
fn the_part_is_told_behind_every_controller_if_one_channel_is_not_at_ground() {
    for board in BOARDS {
        for part in PARTS {
            let bench = Bench::new(board, 0, part);
            let supply_mv = if part.channels == 2 { VREF_MV } else { 5_000 };
            let settings = probe_settings(0, 20_000_000, supply_mv).expect("a good supply");
            let mut device = bench.bus.device(&settings).expect("opens");
            for channel in 0..part.channels {
                bench.adc.borrow_mut().set_input(channel, Signal::GROUND);
            }
            assert_eq!(probe(&mut device), Ok(Probed::Unknown), "{} on {board}", part.name);
            let live = part.channels - 1;
            // 4 mV: one step of a 10-bit converter.
            bench.adc.borrow_mut().set_input(live, Signal::constant_mv(4));
            let Ok(Probed::OneOf(told)) = probe(&mut device) else {
                panic!("{} on {board} is not told", part.name)
            };
            let alike = PARTS.into_iter().filter(|other| {
                (other.bits, other.channels == 2) == (part.bits, part.channels == 2)
            });
            let alike: Vec<&Part> = alike.collect();
            assert_eq!(told, alike, "{} on {board}", part.name);
            bench.assert_clean();
        }
    }
}

#[test]
fn what_is_no_converter_is_no_part() {
    let bench = Bench::new("rpi3", 0, PARTS[2]);
    let settings = probe_settings(0, 20_000_000, 5_000).expect("a good supply");
    let mut device = bench.bus.device(&settings).expect("opens");
    bench.adc.borrow_mut().set_faults(AdcFaults { absent: true, ..AdcFaults::default() });
    assert_eq!(probe(&mut device), Ok(Probed::NoPart { received: [0xff; 4] }));
    let low = AdcFaults { dout_stuck_low: true, ..AdcFaults::default() };
    bench.adc.borrow_mut().set_faults(low);
    assert_eq!(probe(&mut device), Ok(Probed::Unknown), "as if all inputs were at ground");
}

/// The rules that the driver's settings keep: without them the wire's checker complains.
#[test]
fn what_the_settings_ask_for_is_needed() {
    let part = &PARTS[2];
    let broken = |settings: Settings| {
        let bench = Bench::new("rpi3", 0, part);
        let device = bench.bus.device(&settings).expect("opens");
        let command = part.command(Input::Single(0)).expect("a channel");
        let mut rx = [[0; 3]; 2];
        let [one, two] = rx.each_mut().map(|rx| Transfer::exchange(command.bytes(), rx));
        device.sync(&mut [one.with_cs_change(), two]).expect("runs");
        bench.board.violations().iter().map(|violation| violation.rule).collect::<Vec<_>>()
    };
    let good = part.settings(0, 3_600_000, 5_000).expect("within its limits");
    assert_eq!(broken(good), []);
    assert_eq!(broken(Settings { cs_inactive_ns: 0, ..good }), [Rule::CsInactive]);
    assert!(broken(Settings { speed_hz: 3_800_000, ..good }).contains(&Rule::MaxClock));
}

#[test]
fn errors_of_the_bus_come_through() {
    let part = &PARTS[2];
    let bench = Bench::new("imx8mp", 0, part);
    let device = bench.device(0, part);
    let _lock = bench.bus.lock();
    let error = device.try_sync(&mut [Transfer::write(&[0])]).expect_err("is locked");
    assert_eq!(AdcError::from(error), AdcError::Message(MessageError::refused(Error::Busy, 0)));
}
