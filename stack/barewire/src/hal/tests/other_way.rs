//! This crate's chip drivers on a foreign device.

use std::vec;
use std::vec::Vec;

use embedded_hal::delay::DelayNs;
use embedded_hal::spi::{self, ErrorKind, ErrorType, Operation, SpiDevice};

use super::{Event, Recorder};
use crate::bus::Bus;
use crate::chip::Port;
use crate::hal::{HalDevice, OnSpiDevice};
use crate::spi::{Error, MessageError, Settings, Transfer};

/// An operation that a foreign device recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Op {
    Read(usize),
    Write(Vec<u8>),
    Transfer(Vec<u8>),
    InPlace(Vec<u8>),
    DelayNs(u32),
}

/// An error type that is foreign to this crate.
#[derive(Debug, PartialEq, Eq)]
struct Broken {
    wire: &'static str,
}

impl spi::Error for Broken {
    fn kind(&self) -> ErrorKind {
        ErrorKind::ModeFault
    }
}

/// A foreign device that records its transactions and fails one of them.
#[derive(Debug, Default)]
struct Foreign {
    transactions: Vec<Vec<Op>>,
    fails_at: Option<usize>,
}

impl ErrorType for Foreign {
    type Error = Broken;
}

impl SpiDevice for Foreign {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), Broken> {
        if self.fails_at == Some(self.transactions.len()) {
            return Err(Broken { wire: "MISO" });
        }
        let written = operations.iter_mut().map(|operation| match operation {
            Operation::Read(rx) => {
                rx.fill(0xa5);
                Op::Read(rx.len())
            }
            Operation::Write(tx) => Op::Write(tx.to_vec()),
            Operation::Transfer(rx, tx) => {
                rx.fill(0xa6);
                Op::Transfer(tx.to_vec())
            }
            Operation::TransferInPlace(both) => {
                let sent = both.to_vec();
                both.fill(0xa7);
                Op::InPlace(sent)
            }
            Operation::DelayNs(ns) => Op::DelayNs(*ns),
        });
        let transaction = written.collect();
        self.transactions.push(transaction);
        Ok(())
    }
}

/// Recorded delays.
#[derive(Debug, Default)]
struct Delays(Vec<u32>);

impl DelayNs for &mut Delays {
    fn delay_ns(&mut self, ns: u32) {
        self.0.push(ns);
    }
}

#[test]
fn a_message_is_transactions_split_where_cs_drops() {
    let mut delays = Delays::default();
    let mut port = OnSpiDevice::new(Foreign::default(), 10_000_000).with_delay(&mut delays);
    let (mut read, mut both, mut in_place) = ([0; 2], [0; 2], [3, 4]);
    let message = &mut [
        Transfer::write(&[1]),
        Transfer::read(&mut read).with_delay_ns(250).with_cs_change_delay_ns(600),
        Transfer::exchange(&[1, 2], &mut both).with_cs_change(),
        Transfer::in_place(&mut in_place).with_speed_hz(10_000_000).with_bits_per_word(8),
    ];
    assert_eq!(port.run(message), Ok(()));
    assert_eq!(port.speed_hz(), 10_000_000);
    assert_eq!(
        port.release().transactions,
        [
            vec![Op::Write(vec![1]), Op::Read(2), Op::DelayNs(250)],
            vec![Op::Transfer(vec![1, 2])],
            vec![Op::InPlace(vec![3, 4])],
        ]
    );
    assert_eq!((read, both, in_place), ([0xa5; 2], [0xa6; 2], [0xa7; 2]));
    assert_eq!(delays.0, [600]);
}

#[test]
fn zeros_are_sent_where_that_was_asked() {
    let mut port = OnSpiDevice::new(Foreign::default(), 1).with_zeros();
    let mut read = [9; 2];
    port.run(&mut [Transfer::read(&mut read)]).expect("runs");
    assert_eq!(port.release().transactions, [[Op::InPlace(vec![0, 0])]]);
    assert_eq!(read, [0xa7; 2]);
}

#[test]
fn what_a_foreign_device_cannot_do_is_refused_before_anything_is_clocked() {
    let mut port = OnSpiDevice::new(Foreign::default(), 1_000).with_room::<3>();
    let write = || Transfer::write(&[1]);
    let refused = |port: &mut OnSpiDevice<_, _, 3>, message: &mut [Transfer<'_>]| {
        let MessageError { error, transfer_index, actual_length } =
            port.run(message).expect_err("is refused");
        assert_eq!(actual_length, 0);
        (error, transfer_index)
    };
    let own = |field, asked| Error::NotPerTransfer { field, asked };
    assert_eq!(refused(&mut port, &mut []), (Error::Empty, 0));
    let message = &mut [write(), write().with_cs_change()];
    assert_eq!(refused(&mut port, message), (Error::CsChangeOnLast, 1));
    let message = &mut [write().with_cs_change(), write().with_speed_hz(2_000)];
    assert_eq!(refused(&mut port, message), (own("speed_hz", 2_000), 1));
    let message = &mut [write().with_bits_per_word(16)];
    assert_eq!(refused(&mut port, message), (own("bits_per_word", 16), 0));
    let message = &mut [write().with_word_delay_ns(5)];
    assert_eq!(refused(&mut port, message), (own("word_delay_ns", 5), 0));
    let message = &mut [write().with_cs_change_delay_ns(7), write()];
    assert_eq!(refused(&mut port, message), (own("cs_change_delay_ns", 7), 0));
    let message = &mut [write().with_cs_change(), write(), write().with_delay_ns(1), write()];
    let error = Error::TooManyTransfers { transfers: 4, max: 3 };
    assert_eq!(refused(&mut port, message), (error, 1));
    assert!(port.take_error().is_none());
    let message = &mut [write(), write().with_delay_ns(1).with_cs_change(), write()];
    assert_eq!(port.run(message), Ok(()), "there is room for three");
    assert_eq!(port.release().transactions.len(), 2);
}

#[test]
fn delays_are_rounded_up_to_what_the_device_keeps() {
    let pieces = |ns, quantum_ns, max_ns| {
        let port = OnSpiDevice::new(Foreign::default(), 1).with_delay_quantum_ns(quantum_ns);
        let mut port = port.with_delay_max_ns(max_ns);
        port.run(&mut [Transfer::write(&[1]).with_delay_ns(ns)]).expect("runs");
        let transaction = port.release().transactions.remove(0);
        let delays = transaction.into_iter().filter_map(|op| match op {
            Op::DelayNs(ns) => Some(ns),
            _ => None,
        });
        delays.collect::<Vec<_>>()
    };
    assert_eq!(pieces(0, 1_000, 65_535_000), [0; 0]);
    assert_eq!(pieces(1, 1_000, 65_535_000), [1_000]);
    assert_eq!(pieces(1_001, 1_000, 65_535_000), [2_000]);
    assert_eq!(pieces(65_535_001, 1_000, 65_535_000), [65_535_000, 1_000]);
    assert_eq!(pieces(u32::MAX, 1_000, u32::MAX), [4_294_967_000, 1_000]);
    assert_eq!(pieces(u32::MAX, 1, u32::MAX), [u32::MAX]);
    assert_eq!(pieces(5, 3, 4), [3, 3], "a piece is whole quanta");
    assert_eq!(pieces(5, 7, 4), [7], "the longest is no less than a quantum");
}

#[test]
fn a_foreign_error_comes_through_with_its_kind_and_is_kept() {
    let mut port = OnSpiDevice::new(Foreign { fails_at: Some(1), ..Foreign::default() }, 1);
    let by_reference = &mut port;
    let message = &mut [
        Transfer::write(&[1, 2]),
        Transfer::write(&[3]).with_cs_change(),
        Transfer::write(&[4]),
        Transfer::write(&[5]).with_cs_change(),
        Transfer::write(&[6]),
    ];
    let error = Port::run(&mut { by_reference }, message).expect_err("fails");
    let expected = Error::Foreign { kind: ErrorKind::ModeFault };
    assert_eq!(error, MessageError { error: expected, transfer_index: 2, actual_length: 3 });
    assert_eq!(port.take_error(), Some(Broken { wire: "MISO" }));
    assert_eq!(port.take_error(), None);
    assert_eq!(port.release().transactions.len(), 1);
}

#[test]
fn there_and_back_again_is_the_same_message() {
    let settings = Settings::new(0, 1_000_000);
    let run = |round: bool| {
        let (recorder, log) = Recorder::new(8_000_000);
        let bus = Bus::new(recorder);
        let mut device = bus.device(&settings).expect("opens");
        let (mut read, mut both, mut in_place) = ([0; 3], [0; 2], [3, 4]);
        let message = &mut [
            Transfer::write(&[1]).with_delay_ns(1_000),
            Transfer::read(&mut read),
            Transfer::exchange(&[1, 2], &mut both),
            Transfer::in_place(&mut in_place).with_delay_ns(1),
        ];
        if round {
            let foreign = HalDevice::new(device);
            OnSpiDevice::new(foreign, 1_000_000).run(message).expect("runs");
        } else {
            device.run(message).expect("runs");
        }
        (log.take(), read, both, in_place)
    };
    let ours = run(false);
    assert!(ours.0.contains(&Event::Ticks(8)));
    assert_eq!(run(true), ours);
}
