//! The judge of messages: every byte that the driver sends and receives while it does what is listed here, as a
//! reviewed script.
//!
//! A line is a message: the bytes sent, `->` and the bytes received, `|` where the chip select was
//! released within it. A line with `=` says what the driver returned to its caller. Set
//! `BAREWIRE_BLESS=1` to write the script anew; the difference is then for a reviewer.

use std::fmt::Write as _;

use barewire::chip::mcp251xfd::{ExtendedId, Filter, Part, Payload, TxOrder};
use barewire_sim::model::can::Fault;
use barewire_sim::model::mcp2518fd::PartKind;

use super::*;
use crate::recorded::{Messages, RecordedController};
use crate::snapshot;

type Recording<'b> = Mcp251xfd<OnDevice<'b, RecordedController, 6>, SimTimer>;

/// A script being written.
#[derive(Default)]
struct Script(String);

impl Script {
    /// Records the messages of `act`, which gets the started driver, or the error of starting it.
    fn write(
        &mut self,
        title: &str,
        config: Config,
        act: impl FnOnce(&Rig, &Messages, &mut Recording<'_>),
    ) {
        self.write_on(&Rig::new(), title, config, act);
    }

    /// The same on another rig.
    fn write_on(
        &mut self,
        rig: &Rig,
        title: &str,
        config: Config,
        act: impl FnOnce(&Rig, &Messages, &mut Recording<'_>),
    ) {
        let messages = Messages::default();
        let bus = Bus::new(RecordedController::new(&rig.board, &messages));
        let device = bus.device(&Settings::new(CS, SPI_HZ)).expect("opens");
        let _ = writeln!(self.0, "{title}");
        match Mcp251xfd::new(device, rig.board.timer(), config) {
            Ok(mut driver) => act(rig, &messages, &mut driver),
            Err(error) => messages.note(&format!("{error:?}")),
        }
        self.0 += &messages.text();
    }

    /// The same, without the messages before the driver has joined the bus.
    fn joined(
        &mut self,
        title: &str,
        config: Config,
        act: impl FnOnce(&Rig, &Messages, &mut Recording<'_>),
    ) {
        self.joined_on(&Rig::new(), title, config, act);
    }

    fn joined_on(
        &mut self,
        rig: &Rig,
        title: &str,
        config: Config,
        act: impl FnOnce(&Rig, &Messages, &mut Recording<'_>),
    ) {
        self.write_on(rig, title, config, |rig, messages, driver| {
            driver.start().expect("joins");
            let _ = messages.text();
            act(rig, messages, driver);
        });
    }
}

fn joins(_: &Rig, messages: &Messages, driver: &mut Recording<'_>) {
    messages.note("start");
    driver.start().expect("joins");
}

/// Notes one call of `service`.
fn service(messages: &Messages, driver: &mut Recording<'_>) -> bool {
    let mut received = Received::EMPTY;
    match driver.service(&mut received) {
        Ok(found) if found.frame => {
            let (frame, filter) = (received.frame, received.filter);
            messages.note(&format!("{found:?}: {:?}, filter {filter}", frame.data()));
            true
        }
        Ok(found) => {
            messages.note(&format!("{found:?}"));
            !found.is_nothing()
        }
        Err(error) => {
            messages.note(&format!("{error:?}"));
            false
        }
    }
}

fn serve(rig: &Rig, messages: &Messages, driver: &mut Recording<'_>, ps: Ps) {
    rig.pass(ps);
    while service(messages, driver) {}
}

fn transmit(messages: &Messages, driver: &mut Recording<'_>, frame: &Frame) {
    messages.note(&format!("transmit: {:?}", driver.transmit(frame)));
}

fn extended(id: u32) -> ExtendedId {
    ExtendedId::new(id).expect("29 bits")
}

fn long() -> Vec<u8> {
    (1..=64).collect()
}

/// A frame of CAN FD with the first bytes of [`long`].
fn fd_frame(len: usize, brs: bool) -> Frame {
    Frame::fd(standard(1), &long()[..len], brs).expect("a frame")
}

fn write_all(script: &mut Script) {
    let crc = Config { crc: true, ..classic() };
    let events = Config { transmit_events: true, ..classic() };
    let queue = Config { tx_order: TxOrder::Identifier, ..classic() };
    script.write("set up: classic", classic(), joins);
    script.write("set up: CAN FD", fd(), joins);
    script.write("set up: CAN FD, no rate of the data", Config { data: None, ..fd() }, joins);
    script.write("set up: with CRC", crc, joins);
    script.write(
        "set up: events, by identifier, all objects, no invalid frames",
        Config {
            tx_objects: 32,
            rx_objects: 1,
            invalid_frames: false,
            transmit_events: true,
            ..queue
        },
        joins,
    );
    script.write("set up: 12 bytes", Config { payload: Payload::Bytes12, ..fd() }, joins);
    script.write_on(
        &Rig::with(|options| options.part = PartKind::Mcp2517Fd),
        "set up: the elder part",
        classic(),
        |_, _, driver| assert_eq!(driver.part(), Part::Mcp2517fd),
    );

    script.joined("a frame comes", classic(), |rig, messages, driver| {
        rig.send([CanFrame::new(0x123, &[1, 2, 3])]);
        serve(rig, messages, driver, 2 * MS);
    });
    script.joined("frames of every kind come", fd(), |rig, messages, driver| {
        rig.send([
            CanFrame::fd(0x7ff, &long(), true),
            CanFrame::new(0x1234_5678, &[8; 8]),
            CanFrame::remote(0x101, 6),
            CanFrame::fd(0x20, &long()[..12], false),
        ]);
        serve(rig, messages, driver, 6 * MS);
    });
    script.joined(
        "more frames than there are objects come",
        Config { rx_objects: 3, ..classic() },
        |rig, messages, driver| {
            rig.send((0..5).map(|index| CanFrame::new(0x50, &[index])));
            serve(rig, messages, driver, 5 * MS);
            rig.send([CanFrame::new(0x51, &[9])]);
            serve(rig, messages, driver, 2 * MS);
        },
    );
    script.joined("with CRC a frame comes and one goes", crc, |rig, messages, driver| {
        rig.send([CanFrame::new(0x123, &[1, 2, 3])]);
        serve(rig, messages, driver, 2 * MS);
        transmit(messages, driver, &frame(1, &[8, 9]));
    });
    script.joined("frames go, more than there are places", classic(), |rig, messages, driver| {
        transmit(
            messages,
            driver,
            &Frame::classic(extended(0x18ff_1234), &[0xaa, 0xbb]).expect("a frame"),
        );
        transmit(messages, driver, &Frame::remote(standard(0x7ff), 8).expect("a frame"));
        for index in 0..7 {
            transmit(messages, driver, &frame(1, &[index]));
        }
        rig.pass(MS);
        transmit(messages, driver, &frame(2, &[]));
        rig.pass(20 * MS);
        transmit(messages, driver, &frame(3, &[]));
        transmit(messages, driver, &frame(4, &[]));
    });
    script.joined("frames of CAN FD go", fd(), |rig, messages, driver| {
        for (len, brs) in [(64, true), (12, false), (0, false)] {
            transmit(messages, driver, &fd_frame(len, brs));
        }
        rig.pass(MS);
    });
    script.joined("frames that do not fit are refused", classic(), |_, messages, driver| {
        for len in [2, 12] {
            transmit(messages, driver, &fd_frame(len, false));
        }
    });
    script.joined(
        "a switch needs a rate to switch to",
        Config { data: None, ..fd() },
        |_, messages, driver| {
            for brs in [true, false] {
                transmit(messages, driver, &fd_frame(0, brs));
            }
        },
    );
    script.joined("frames go by identifier", queue, |_, messages, driver| {
        transmit(messages, driver, &frame(5, &[]));
        transmit(messages, driver, &frame(4, &[]));
    });
    script.joined("what went is confirmed", events, |rig, messages, driver| {
        for index in 0..2 {
            transmit(messages, driver, &frame(0x99, &[index]));
        }
        rig.send([CanFrame::new(1, &[7])]);
        serve(rig, messages, driver, 3 * MS);
    });
    script.joined_on(
        &Rig::alone(|_| {}),
        "nobody acknowledges",
        classic(),
        |rig, messages, driver| {
            transmit(messages, driver, &frame(0x70, &[1]));
            serve(rig, messages, driver, 50 * MS);
            serve(rig, messages, driver, MS);
        },
    );
    script.joined("bus-off, and a frame after it", classic(), |rig, messages, driver| {
        rig.can.inject(Fault::ErrorFlags { first: 0, every: 1, bit: 22 });
        transmit(messages, driver, &frame(0x60, &[1]));
        serve(rig, messages, driver, 100 * MS);
        messages.note(&format!("{:?}", driver.error_counters()));
        transmit(messages, driver, &frame(0x61, &[1]));
    });
    script.joined("filters, a stop, a start and a restart", classic(), |_, messages, driver| {
        let filter = |driver: &mut Recording<'_>, index, filter| {
            messages.note(&format!("filter {index}: {:?}", driver.set_filter(index, filter)));
        };
        filter(driver, 1, Some(Filter::exactly(extended(0x18ff_1234))));
        filter(driver, 31, Some(Filter::masked(standard(0x100), 0xffff_fff0)));
        filter(driver, 4, Some(Filter::masked(extended(0), 0x0004_0001)));
        filter(driver, 0, None);
        filter(driver, 32, None);
        messages.note(&format!("stop: {:?}", driver.stop()));
        while service(messages, driver) {}
        messages.note(&format!("start: {:?}", driver.start()));
        messages.note(&format!("restart: {:?}", driver.restart()));
    });

    // The cost of a failed access: each access that a frame and an overflow need fails in turn.
    for place in 0.. {
        let title = format!("message {place} of a service fails");
        let mut ended = false;
        script.joined(&title, Config { rx_objects: 2, ..events }, |rig, messages, driver| {
            transmit(messages, driver, &frame(0x99, &[1]));
            rig.send((0..3).map(|index| CanFrame::new(0x50, &[index])));
            rig.pass(5 * MS);
            let _ = messages.text();
            messages.fail_after(place, false);
            for _ in 0..8 {
                service(messages, driver);
            }
            ended = messages.let_through();
        });
        if ended {
            break;
        }
    }
    for (title, faults) in [
        ("no chip", ChipFaults { absent: true, ..ChipFaults::default() }),
        ("a dead oscillator", ChipFaults { oscillator_dead: true, ..ChipFaults::default() }),
    ] {
        let rig = Rig::new();
        rig.set_faults(faults);
        script.write_on(&rig, title, classic(), joins);
    }
    let rig = Rig::with(|options| {
        (options.oscillator_hz, options.pll, options.starts_cold) = (4_000_000, true, true);
    });
    let oscillator = Oscillator { pll: true, ..Oscillator::new(4_000_000) };
    script.write_on(&rig, "an SPI clock too fast", Config { oscillator, ..classic() }, joins);
}

#[test]
fn every_message_is_as_reviewed() {
    let mut script = Script::default();
    write_all(&mut script);
    snapshot::check("scripts/mcp251xfd.txt", &script.0);
}
