//! Our flash driver on foreign devices: one that expects every byte, and a real spidev node where
//! there is one.

use barewire::chip::Port;
use barewire::chip::spi_nor::{JedecId, NorError, SpiNor, no_observer};
use barewire::hal::{Delay, OnSpiDevice};
use barewire::spi::{Error, MessageError, Transfer};
use barewire::time::Timer;
use barewire_linux::spidev::{bufsiz, nodes};
use barewire_linux::{Monotonic, Root};
use embedded_hal::spi::ErrorKind;
use embedded_hal_mock::eh1::spi::{Mock, Transaction};
use linux_embedded_hal::SpidevDevice;
use linux_embedded_hal::spidev::SpidevOptions;

/// A timer that need not pass.
struct Leaps(u64);

impl Timer for Leaps {
    fn frequency_hz(&self) -> u32 {
        1_000_000
    }

    fn now_ticks(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.0 += ns / 1_000;
    }
}

/// One transaction of one operation.
fn transaction(operation: Transaction<u8>) -> [Transaction<u8>; 3] {
    [Transaction::transaction_start(), operation, Transaction::transaction_end()]
}

/// An SST25VF016B. It answers that it is ready, and its id; the driver reads nothing else, since
/// the part has no SFDP.
fn identifies() -> Vec<Transaction<u8>> {
    let id = Transaction::transfer_in_place(vec![0x9f, 0, 0, 0], vec![0xff, 0xbf, 0x25, 0x41]);
    let ready = Transaction::transfer_in_place(vec![5, 0], vec![0xff, 0]);
    [transaction(ready), transaction(id)].concat()
}

fn reads(command: &[u8], answer: &[u8]) -> Vec<Transaction<u8>> {
    vec![
        Transaction::transaction_start(),
        Transaction::write_vec(command.to_vec()),
        Transaction::read_vec(answer.to_vec()),
        Transaction::transaction_end(),
    ]
}

#[test]
fn every_byte_is_as_expected() {
    let status = |value| transaction(Transaction::transfer_in_place(vec![5, 0], vec![0xff, value]));
    let command = |bytes: &[u8]| transaction(Transaction::write_vec(bytes.to_vec()));
    let expected = [
        identifies(),
        reads(&[0x03, 0x01, 0x23, 0x45], &[1, 2, 3]),
        // A sector: nothing is protected, the latch is seen set, the chip is waited for, and the sector is seen
        // to be blank.
        status(0).to_vec(),
        command(&[0x06]).to_vec(),
        status(2).to_vec(),
        command(&[0x20, 0x00, 0x10, 0x00]).to_vec(),
        status(3).to_vec(),
        status(0).to_vec(),
        (0x10..0x20).step_by(2).flat_map(|at| reads(&[0x03, 0, at, 0], &[0xff; 512])).collect(),
    ];
    let mut mock = Mock::new(&expected.concat());
    let port = OnSpiDevice::new(mock.clone(), 20_000_000);
    let mut chip = SpiNor::new(port, Leaps(0)).expect("identifies");
    assert_eq!(chip.jedec_id(), JedecId([0xbf, 0x25, 0x41]));
    let mut read = [0; 3];
    chip.read(0x1_2345, &mut read).expect("reads");
    assert_eq!(read, [1, 2, 3]);
    chip.erase(0x1000..0x2000, &mut no_observer).expect("erases");
    drop(chip);
    mock.done();
}

#[test]
fn delays_become_operations() {
    let expected = [
        Transaction::transaction_start(),
        Transaction::write_vec(vec![1]),
        Transaction::delay(2_000),
        Transaction::transaction_end(),
        Transaction::transaction_start(),
        Transaction::write_vec(vec![2]),
        Transaction::transaction_end(),
    ];
    let mut mock = Mock::new(&expected);
    let port = OnSpiDevice::new(mock.clone(), 1_000_000).with_delay_quantum_ns(1_000);
    let mut port = port.with_delay(Delay::new(Leaps(0)));
    let message = &mut [
        Transfer::write(&[1]).with_delay_ns(1_001).with_cs_change_delay_ns(10_000),
        Transfer::write(&[2]),
    ];
    assert_eq!(port.run(message), Ok(()));
    mock.done();
}

/// By itself the test selects the first node's chip and clocks nothing. With
/// `BAREWIRE_SPIDEV=/dev/spidevB.C` it asks that node's chip for its id, too: name one whose chip
/// is a flash, or does not mind.
#[test]
fn our_flash_driver_runs_on_a_real_node() {
    let named = std::env::var("BAREWIRE_SPIDEV").ok();
    let Some(path) = named.clone().or_else(|| nodes(&Root::system()).into_iter().next()) else {
        println!("SKIPPED: no /dev/spidev* on this machine");
        return;
    };
    let mut spi = match SpidevDevice::open(&path) {
        Ok(spi) => spi,
        Err(error) if named.is_none() => {
            println!("SKIPPED: {path}: {error}");
            return;
        }
        Err(error) => panic!("{path}: {error}"),
    };
    let options = SpidevOptions::new().max_speed_hz(500_000).bits_per_word(8).build();
    spi.configure(&options).expect("plain settings");
    let port = OnSpiDevice::new(spi, 500_000);
    let mut port = port.with_delay_quantum_ns(1_000).with_delay_max_ns(65_535_000);
    let nothing = &mut [Transfer::write(&[]).with_delay_ns(1_001)];
    assert_eq!(port.run(nothing), Ok(()), "{:?}", port.take_error());
    if named.is_some() {
        let id = SpiNor::new(&mut port, Monotonic::new()).map(|chip| chip.jedec_id());
        let told = match id {
            Ok(id) => format!("{id:?}"),
            Err(error @ NorError::Bus(_)) => panic!("{error} ({:?})", port.take_error()),
            Err(error) => format!("{error}"),
        };
        println!("{path}: {told}");
        // A node does not send more than its buffer at once: the kernel's error comes through.
        let long = vec![0; bufsiz(&Root::system()) + 1];
        let error = port.run(&mut [Transfer::write(&long)]).expect_err("is too long");
        let foreign = Error::Foreign { kind: ErrorKind::Other };
        assert_eq!(error, MessageError::refused(foreign, 0));
        assert!(port.take_error().is_some());
    }
}
