//! Each fault gives a typed error, and chip and bus work afterwards.

use std::num::NonZeroU32;

use barewire::chip::mcp251xfd::{ErrorState, Mode};
use barewire_sim::chip::{Chip, Clocking, WireLimits};
use barewire_sim::model::can::Fault;
use barewire_sim::model::mcp2518fd::Errata;

use super::*;
use crate::recorded::{Messages, RecordedController};

fn every(n: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(n)
}

/// The chip has `faults`, the driver says `expected`; once they are gone, all is well on the same
/// bus.
fn refused_then_works(faults: ChipFaults, config: Config, expected: impl Fn(&CanError) -> bool) {
    let rig = Rig::new();
    let spi = rig.bus();
    rig.set_faults(faults);
    let joined = rig.driver(&spi, config).and_then(|mut driver| driver.start());
    let error = joined.expect_err("refuses");
    assert!(expected(&error), "{error:?}");
    rig.set_faults(ChipFaults::default());
    let mut driver = rig.started(&spi, config);
    rig.works(&mut driver);
    rig.assert_clean();
}

#[test]
fn no_chip() {
    let absent = ChipFaults { absent: true, ..ChipFaults::default() };
    refused_then_works(absent, classic(), |&error| {
        error == CanError::NoChip { received: u32::MAX }
    });
}

#[test]
fn a_dead_oscillator() {
    let dead = ChipFaults { oscillator_dead: true, ..ChipFaults::default() };
    refused_then_works(
        dead,
        classic(),
        |error| matches!(error, CanError::OscillatorNotReady { osc, waited_us } if osc & 1 << 10 == 0 && *waited_us >= 3_000),
    );
}

/// Answers every byte with the same one.
#[derive(Debug)]
struct Impostor(u8);

impl Chip for Impostor {
    fn name(&self) -> &'static str {
        "impostor"
    }

    fn limits(&self) -> WireLimits {
        WireLimits {
            modes: 1,
            cs_setup_ns: 0,
            cs_hold_ns: 0,
            cs_inactive_ns: 0,
            max_clock_hz: SPI_HZ,
        }
    }

    fn select(&mut self, _at: Ps) {}

    fn deselect(&mut self, _at: Ps) {}

    fn exchange(&mut self, _clocking: Clocking, _mosi: u32, bits: u32) -> u32 {
        u32::from_ne_bytes([self.0; 4]) >> (32 - bits)
    }
}

#[test]
fn another_chip() {
    let rig = Rig::new();
    let spi = rig.bus();
    let answer = |byte| {
        rig.board.attach(CS, Rc::new(RefCell::new(Impostor(byte))));
        rig.driver(&spi, classic()).expect_err("refuses")
    };
    // OSCRDY is set in one of the values, and clear in the other.
    let expected = 0x0498_0760;
    assert_eq!(answer(0xa5), CanError::UnexpectedId { expected, actual: 0xa5a5_a5a5 });
    assert!(matches!(answer(0x22), CanError::OscillatorNotReady { osc: 0x2222_2222, .. }));
    assert_eq!(answer(0), CanError::NoChip { received: 0 });
    rig.board.attach(CS, rig.chip.clone());
    let mut driver = rig.started(&spi, classic());
    rig.works(&mut driver);
    rig.assert_clean();
}

#[test]
fn an_spi_clock_too_fast() {
    let rig = Rig::new();
    let spi = rig.bus();
    let device = spi.device(&Settings::new(CS, 20_000_000)).expect("opens");
    let error = Mcp251xfd::new(device, rig.board.timer(), classic()).expect_err("refuses");
    assert_eq!(error, CanError::SpiTooFast { speed_hz: 20_000_000, max_hz: 17_000_000 });
    // The oscillator decides.
    let oscillator = Oscillator::new(20_000_000);
    let error = rig.driver(&spi, Config { oscillator, ..classic() }).expect_err("refuses");
    assert!(matches!(error, CanError::SpiTooFast { max_hz: 8_500_000, .. }), "{error:?}");
    assert_eq!(rig.chip.borrow().instructions(), 0, "nothing was clocked");
    let mut driver = rig.started(&spi, classic());
    rig.works(&mut driver);
    rig.assert_clean();
}

#[test]
fn a_corrupt_read_is_read_again() {
    let corrupt =
        |read_crc_corrupt_every| ChipFaults { read_crc_corrupt_every, ..ChipFaults::default() };
    let config = Config { crc: true, ..classic() };
    // All of them.
    refused_then_works(corrupt(every(1)), config, |error| matches!(error, CanError::Crc { .. }));
    // Every second: the driver does not notice.
    let rig = Rig::new();
    let spi = rig.bus();
    rig.set_faults(corrupt(every(2)));
    let mut driver = rig.started(&spi, config);
    for _ in 0..40 {
        rig.works(&mut driver);
    }
    // A failure in the middle of a service: the frames that were not read yet are reported later,
    // each once.
    rig.send((0..5).map(|index| CanFrame::new(0x40, &[index])));
    rig.pass(5 * MS);
    rig.set_faults(corrupt(every(1)));
    let error = driver.serve(|| rig.line.is_high(), |_, _, _| Ok(())).expect_err("gives up");
    assert_eq!(error, CanError::Crc { address: 0x01c });
    rig.set_faults(ChipFaults::default());
    let data: Vec<_> = rig.frames(&mut driver, MS).iter().map(|one| one.frame.data()[0]).collect();
    assert_eq!(data, [0, 1, 2, 3, 4]);
    rig.assert_clean();
}

#[test]
fn a_wrong_crc_of_good_data_is_read_again() {
    let errata = Errata { read_crc_every: every(3), ..Errata::default() };
    let rig = Rig::with(|options| options.errata = errata);
    let spi = rig.bus();
    let mut driver = rig.started(&spi, Config { crc: true, ..classic() });
    (0..40).for_each(|_| rig.works(&mut driver));
    rig.assert_clean();
}

#[test]
fn an_index_that_is_wrong_harms_nobody() {
    let errata = Errata { fifoci_wrong_for_ps: MS, ..Errata::default() };
    let rig = Rig::with(|options| options.errata = errata);
    let spi = rig.bus();
    let mut driver = rig.started(&spi, classic());
    (0..40).for_each(|_| rig.works(&mut driver));
    rig.assert_clean();
}

#[test]
fn a_write_that_arrives_corrupt_is_told() {
    let rig = Rig::new();
    let spi = rig.bus();
    let mut driver = rig.started(&spi, Config { crc: true, ..classic() });
    let corrupt = ChipFaults { write_crc_corrupt_every: every(1), ..ChipFaults::default() };
    rig.set_faults(corrupt);
    driver.transmit(&frame(0x10, &[1])).expect("the wire says nothing");
    rig.set_faults(ChipFaults::default());
    let told = rig.serve(&mut driver, MS);
    assert!(told.iter().any(|(_, found)| found.spi_crc), "{told:?}");
    driver.restart().expect("joins again");
    rig.works(&mut driver);
    rig.assert_clean();
}

/// The chip's value of every register that a set-up writes, read without any code of the driver.
fn registers(device: &barewire::bus::Device<'_, Charged<AnyController>>) -> Vec<u32> {
    let addresses = [0x000, 0x004, 0x014, 0x01c, 0x040, 0x05c, 0x068, 0x1d0, 0x1f0, 0x1f4, 0xe00];
    let read = |address: u16| {
        let mut both = [0; 6];
        both[..2].copy_from_slice(&(0x3000 | address).to_be_bytes());
        let mut message = [barewire::spi::Transfer::in_place(&mut both)];
        device.sync(&mut message).expect("goes through");
        u32::from_le_bytes(both[2..].try_into().expect("four bytes"))
    };
    // Of C1INT only the enables: its flags come and go.
    let masks = |address| if address == 0x01c { 0xffff_0000 } else { u32::MAX };
    addresses.map(|address| read(address) & masks(address)).to_vec()
}

#[test]
fn a_set_up_that_arrives_corrupt_is_done_again_or_refused() {
    let config = Config { crc: true, transmit_events: true, ..classic() };
    let [healthy_off, healthy_on] = {
        let rig = Rig::new();
        let spi = rig.bus();
        let device = spi.device(&Settings::new(CS, SPI_HZ)).expect("opens");
        let mut driver = rig.driver(&spi, config).expect("proves itself");
        let off = registers(&device);
        driver.start().expect("joins");
        [off, registers(&device)]
    };
    let (mut joined, mut refused) = (0, 0);
    for n in 1..=40 {
        let rig = Rig::new();
        let spi = rig.bus();
        let corrupt = ChipFaults { write_crc_corrupt_every: every(n), ..ChipFaults::default() };
        rig.set_faults(corrupt);
        let device = spi.device(&Settings::new(CS, SPI_HZ)).expect("opens");
        let up = rig.driver(&spi, config).and_then(|mut driver| {
            assert_eq!(registers(&device), healthy_off, "every {n}th write is corrupt");
            // Joining at once, or with another reset.
            if n % 2 == 0 {
                driver.start()?
            } else {
                driver.restart()?
            }
            Ok(driver)
        });
        let now = registers(&device);
        rig.set_faults(ChipFaults::default());
        let mut driver = match up {
            Ok(driver) => {
                assert_eq!(now, healthy_on, "every {n}th write is corrupt");
                joined += 1;
                driver
            }
            Err(error) => {
                assert!(matches!(error, CanError::WriteCrc { .. }), "every {n}th: {error:?}");
                refused += 1;
                rig.started(&spi, config)
            }
        };
        rig.works(&mut driver);
        // A corrupt write of OSC can halve the system clock, and so the highest SPI clock that is
        // allowed.
        let others = |detail: &str| !detail.contains("the limit is 0.85 x SYSCLK / 2");
        let violations = rig.board.violations();
        assert!(!violations.iter().any(|one| others(&one.detail)), "{violations:#?}");
    }
    // Each start makes a dozen writes. With more of them corrupt, hardly any start would succeed.
    assert!(joined >= 15 && refused >= 10, "{joined} joined, {refused} refused");
}

#[test]
fn a_fifo_that_runs_over() {
    let rig = Rig::new();
    let spi = rig.bus();
    let mut driver = rig.started(&spi, Config { rx_objects: 3, ..classic() });
    rig.send((0..5).map(|index| CanFrame::new(0x50, &[index])));
    rig.pass(5 * MS);
    assert_eq!(rig.chip.borrow().taken_and_dropped(), (3, 2));
    let told = rig.serve(&mut driver, MS);
    let data: Vec<_> =
        told.iter().filter(|told| told.1.frame).map(|told| told.0.frame.data()[0]).collect();
    assert_eq!(data, [0, 1, 2]);
    assert_eq!(told.iter().filter(|(_, found)| found.overflow).count(), 1);
    rig.works(&mut driver);
    // As embedded-can has it: the frame, then the error, then nothing.
    rig.send((0..4).map(|index| CanFrame::new(0x50, &[index])));
    rig.pass(5 * MS);
    use embedded_can::nb::Can;
    let mut receive = || driver.receive().map(|frame| frame.data()[0]);
    assert_eq!(receive(), Ok(0));
    assert_eq!(receive(), Err(nb::Error::Other(CanError::RxOverflow)));
    assert_eq!((receive(), receive()), (Ok(1), Ok(2)));
    assert_eq!(receive(), Err(nb::Error::WouldBlock));
    rig.works(&mut driver);
    rig.assert_clean();
}

#[test]
fn bus_off_and_back() {
    for by_restart in [true, false] {
        let rig = Rig::new();
        let spi = rig.bus();
        let mut driver = rig.started(&spi, classic());
        rig.can.inject(Fault::ErrorFlags { first: 0, every: 1, bit: 22 });
        driver.transmit(&frame(0x60, &[1])).expect("is taken");
        let mut states = Vec::new();
        while states.last() != Some(&ErrorState::BusOff) {
            assert!(states.len() < 100, "{states:?}");
            states.extend(rig.serve(&mut driver, MS).iter().filter_map(|(_, found)| found.state));
        }
        states.dedup();
        assert_eq!(states, [ErrorState::Warning, ErrorState::Passive, ErrorState::BusOff]);
        assert_eq!(driver.error_counters().expect("goes through").state, ErrorState::BusOff);
        rig.can.clear_faults();
        if by_restart {
            driver.restart().expect("joins again");
        } else {
            // 128 times 11 recessive bits.
            let told = rig.serve(&mut driver, 1_500 * BIT);
            let state = told.iter().rev().find_map(|(_, found)| found.state);
            assert_eq!(state, Some(ErrorState::Active), "{told:?}");
            // Frames that waited when the chip went bus-off may be sent now.
            rig.pass(2 * MS);
        }
        let counters = driver.error_counters().expect("goes through");
        assert_eq!((counters.transmit, counters.state), (0, ErrorState::Active));
        rig.works(&mut driver);
        rig.assert_clean();
    }
}

#[test]
fn nobody_acknowledges() {
    let rig = Rig::alone(|_| {});
    let spi = rig.bus();
    let mut driver = rig.started(&spi, classic());
    driver.transmit(&frame(0x70, &[1])).expect("is taken");
    let told = rig.serve(&mut driver, 50 * MS);
    let invalid: Vec<_> = told.iter().filter_map(|(_, found)| found.invalid).collect();
    assert!(!invalid.is_empty() && invalid.iter().all(|invalid| invalid.acknowledge), "{told:?}");
    let states: Vec<_> = told.iter().filter_map(|(_, found)| found.state).collect();
    assert_eq!(states, [ErrorState::Warning, ErrorState::Passive], "which is where it ends");
    assert_eq!(driver.error_counters().expect("goes through").transmit, 128);
    // Another node joins and acknowledges, so the frame is sent at last.
    rig.can.attach(rig.far.clone());
    rig.serve(&mut driver, 20 * MS);
    assert_eq!(rig.far.borrow().received_frames().len(), 1);
    rig.works(&mut driver);
    rig.assert_clean();
}

#[test]
fn invalid_frames_are_silent_where_not_asked_for() {
    let rig = Rig::alone(|_| {});
    let spi = rig.bus();
    let mut driver = rig.started(&spi, Config { invalid_frames: false, ..classic() });
    driver.transmit(&frame(0x70, &[1])).expect("is taken");
    let told = rig.serve(&mut driver, 50 * MS);
    let states: Vec<_> = told.iter().filter_map(|(_, found)| found.state).collect();
    assert_eq!(states, [ErrorState::Warning, ErrorState::Passive]);
    assert_eq!(told.len(), 2, "{told:?}");
    rig.assert_clean();
}

#[test]
fn an_interrupt_pin_that_is_stuck() {
    let rig = Rig::new();
    let spi = rig.bus();
    let mut driver = rig.started(&spi, classic());
    rig.set_faults(ChipFaults { int_stuck_low: true, ..ChipFaults::default() });
    rig.send([CanFrame::new(0x80, &[8])]);
    assert!(rig.line.wait(None));
    rig.pass(MS);
    let mut frames = 0;
    let stuck = driver.serve(
        || rig.line.is_high(),
        |_, _, found| {
            frames += u32::from(found.frame);
            Ok(())
        },
    );
    assert!(
        matches!(stuck, Err(CanError::InterruptStuck { interrupts }) if interrupts & interrupts >> 16 == 0),
        "{stuck:?}"
    );
    assert_eq!(frames, 1, "the frame that had arrived came first");
    rig.set_faults(ChipFaults::default());
    rig.works(&mut driver);
    rig.assert_clean();
}

#[test]
fn a_chip_that_goes_and_comes_back() {
    let rig = Rig::new();
    let spi = rig.bus();
    let mut driver = rig.started(&spi, classic());
    rig.set_faults(ChipFaults { absent: true, ..ChipFaults::default() });
    let error = driver.service(&mut Received::default()).expect_err("is gone");
    assert_eq!(error, CanError::Gone { interrupts: u32::MAX });
    assert_eq!(driver.restart(), Err(CanError::NoChip { received: u32::MAX }));
    rig.set_faults(ChipFaults::default());
    driver.restart().expect("joins again");
    rig.works(&mut driver);
    // The chip is reset without the driver's knowledge.
    let device = spi.device(&Settings::new(CS, SPI_HZ)).expect("opens");
    rig.pass(3 * MS);
    let write = |bytes: &[u8]| {
        device.sync(&mut [barewire::spi::Transfer::write(bytes)]).expect("goes through");
        rig.pass(MS);
    };
    write(&[0x20, 0x03, 4]);
    write(&[0, 0]);
    let error = driver.service(&mut Received::default()).expect_err("was reset");
    assert!(matches!(error, CanError::Gone { interrupts } if interrupts & 0xffff_0000 == 0));
    driver.restart().expect("joins again");
    rig.works(&mut driver);
    rig.assert_clean();
}

#[test]
fn a_bus_that_is_held_dominant() {
    let rig = Rig::new();
    let spi = rig.bus();
    let mut driver = rig.driver(&spi, classic()).expect("proves itself");
    let from = rig.board.engine().now_ps();
    rig.can.inject(Fault::Dominant { from, until: from + 150 * MS });
    let (wanted, actual) = (Mode::Classic, Mode::Configuration);
    assert_eq!(driver.start(), Err(CanError::ModeTimeout { wanted, actual }));
    rig.pass(60 * MS);
    driver.restart().expect("joins");
    rig.works(&mut driver);
    rig.assert_clean();
}

/// Each message of a service fails in turn: every frame is still reported once, and every event at least once. A
/// message that fails after it was clocked may have released its frame in the chip. That frame is lost, but no
/// other.
#[test]
fn an_event_is_reported_even_if_a_message_of_its_service_fails() {
    let with_crc = Config { crc: true, ..classic() };
    for (config, clocked) in
        [(classic(), false), (classic(), true), (with_crc, false), (with_crc, true)]
    {
        for place in 0.. {
            let rig = Rig::new();
            let messages = Messages::default();
            let bus = Bus::new(RecordedController::new(&rig.board, &messages));
            let device = bus.device(&Settings::new(CS, SPI_HZ)).expect("opens");
            let config = Config { rx_objects: 2, transmit_events: true, ..config };
            let mut driver = Mcp251xfd::new(device, rig.board.timer(), config).expect("is proved");
            driver.start().expect("joins");
            driver.transmit(&frame(0x99, &[1])).expect("goes out");
            rig.send((0..3).map(|index| CanFrame::new(0x50, &[index])));
            rig.pass(5 * MS);
            messages.fail_after(place, clocked);
            let (mut data, mut overflows, mut confirmed, mut failures) = (vec![], 0, vec![], 0);
            for _ in 0..12 {
                let mut received = Received::EMPTY;
                match driver.service(&mut received) {
                    Ok(found) => {
                        data.extend(found.frame.then(|| received.frame.data()[0]));
                        overflows += u32::from(found.overflow);
                        confirmed.extend(found.transmitted.map(|event| event.sequence));
                    }
                    Err(error) => {
                        assert!(matches!(error, CanError::Message(_)), "{place}: {error:?}");
                        failures += 1;
                    }
                }
            }
            let what = format!("message {place} fails, clocked: {clocked}");
            let lost = 3 - data.len() - confirmed.len();
            assert!(lost == 0 || lost == 1 && clocked, "{what}: {data:?}, {confirmed:?}");
            assert!(data.is_sorted() && data.iter().all(|byte| *byte < 2), "{what}: {data:?}");
            assert!(overflows >= 1 && failures <= 1, "{what}: {overflows}, {failures}");
            if messages.let_through() {
                break;
            }
        }
    }
}
