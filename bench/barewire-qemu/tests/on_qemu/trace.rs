//! QEMU's account of the flash commands against what the flash driver meant to send.

use std::cell::RefCell;

use barewire::bus::Device;
use barewire::chip::Port;
use barewire::chip::spi_nor::{SpiNor, no_observer};
use barewire::controller::Controller;
use barewire::spi::{MessageError, Settings, Transfer};
use barewire_qemu::{FlashCommand, QemuOptions};

use crate::support::{Random, open};

/// A layer that records the commands that each message sends to a flash chip.
struct Recorder<'r, P> {
    inner: P,
    sent: &'r RefCell<Vec<FlashCommand>>,
}

impl<C: Controller> Port for Recorder<'_, Device<'_, C>> {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        let len: usize = message.iter().map(|transfer| transfer.data().len()).sum();
        // The driver sends opcode and address in the first transfer.
        let head = message[0].data().tx().expect("a command").to_vec();
        self.sent.borrow_mut().push(meant(&head, len));
        self.inner.run(message)
    }

    fn speed_hz(&self) -> u32 {
        Port::speed_hz(&self.inner)
    }
}

/// The command of a message of `len` bytes, by the SST25VF016B's table of instructions.
fn meant(head: &[u8], len: usize) -> FlashCommand {
    let opcode = head[0];
    let address = match (opcode, head) {
        // READ, FAST_READ, byte program, the erases, and AAI's first word.
        (0x03 | 0x0b | 0x02 | 0x20 | 0x52 | 0xd8 | 0xad, &[_, a, b, c, ..]) => {
            Some(u32::from_be_bytes([0, a, b, c]))
        }
        _ => None,
    };
    let dummies = usize::from(opcode == 0x0b);
    let before_data = 1 + if address.is_some() { 3 + dummies } else { 0 };
    FlashCommand { opcode, address, data_bytes: len - before_data }
}

#[test]
fn the_chip_understood_what_the_driver_meant() {
    let Some(board) = open(&QemuOptions { trace: true, ..QemuOptions::default() }) else { return };
    let sent = RefCell::new(Vec::new());
    let bus = board.bus();
    for speed_hz in [20_000_000, 50_000_000] {
        let device = bus.device(&Settings::new(0, speed_hz)).expect("opens");
        let port = Recorder { inner: device, sent: &sent };
        let mut chip = SpiNor::new(port, board.timer()).expect("identifies");
        let mut scratch = vec![0; 4096];
        let mut random = Random::new(speed_hz.into());
        // First a write that only programs, then one that erases and must keep the bytes around it.
        // Both begin and end at odd addresses.
        for (offset, len) in [(0x0ff1, 33), (0x1003, 700), (0x1ff_fff, 1), (0x1000, 0)] {
            let data = random.bytes(len);
            chip.write(offset, &data, &mut scratch, &mut no_observer).expect("writes");
        }
        chip.erase(0x1000..0x2_0000, &mut no_observer).expect("erases");
        chip.erase(0..0x20_0000, &mut no_observer).expect("erases");
        let mut back = vec![0; 1_001];
        chip.read(0x0fff, &mut back).expect("reads");
        chip.unprotect().expect("nothing to do");
    }
    let seen = board.trace().expect("a log");
    let sent = sent.into_inner();
    let opcodes: std::collections::BTreeSet<u8> = sent.iter().map(|c| c.opcode).collect();
    let all = [0x02, 0x03, 0x04, 0x05, 0x06, 0x0b, 0x20, 0x52, 0x9f, 0xad, 0xc7, 0xd8];
    assert_eq!(opcodes, all.into(), "every command of the driver's was sent");
    let differ = sent.iter().zip(&seen).position(|(sent, seen)| sent != seen);
    if let Some(at) = differ {
        panic!("command {at}: meant {:x?}, understood {:x?}", sent[at], seen[at]);
    }
    assert_eq!(sent.len(), seen.len());
    assert_eq!(board.misuse(), Ok(vec![]));
    board.close().expect("ends well");
}

#[test]
fn misuse_is_seen() {
    use barewire::reg::Registers;
    let Some(board) = open(&QemuOptions::default()) else { return };
    assert_eq!(board.misuse(), Ok(vec![]));
    let mut ecspi = board.registers(0x0200_8000);
    // Enabled, all channels controllers, bursts of a byte; then of no whole number of bytes.
    ecspi.write(0x08, 7 << 20 | 0xf1);
    ecspi.read(0x04);
    ecspi.write(0x08, 8 << 20 | 0xf1);
    let misuse = board.misuse().expect("a log");
    assert_eq!(misuse.len(), 2, "{misuse:#?}");
    for (line, part) in misuse.iter().zip(["read from TX FIFO", "burst length 9"]) {
        assert!(line.contains(part), "{misuse:#?}");
    }
    assert_eq!(board.trace().expect("a log"), [], "no trace was asked for");
}
