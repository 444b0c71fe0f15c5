//! The driver against a chip that answers arbitrary bytes. The fuzz target of this name runs this
//! module; on stable Rust `any_bytes.rs` does.

use super::{
    BitRate, Config, ExtendedId, Filter, Frame, Id, Mcp251xfd, MessageError, Mode, Oscillator,
    Part, Payload, Port, Received, SpiError, StandardId, Timer, Transfer, TxOrder,
};

/// The largest number of messages in one call, including a restart on a chip that never answers in
/// time.
const MESSAGES_MAX: u32 = 20_000;
/// Header, time stamp and data of the longest object, with command, length and CRC.
const SELECTION_MAX: usize = 3 + 12 + 64 + 2;
/// No timeout counts polls only: a sleep may take longer than requested.
const OVERSLEPT: u64 = 64;

/// The bytes, then zeros.
pub(super) struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.next(), self.next(), self.next(), self.next()])
    }

    fn flag(&mut self) -> bool {
        self.next() & 1 != 0
    }
}

fn crc(bytes: &[u8]) -> [u8; 2] {
    let mut register = 0xffff_u16;
    for byte in bytes {
        register ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            register = register << 1 ^ if register & 0x8000 != 0 { 0x8005 } else { 0 };
        }
    }
    register.to_be_bytes()
}

/// Keeps written data and returns it, as far as the bytes allow: mostly a chip that the driver
/// accepts.
struct AnyChip<'a> {
    bytes: Bytes<'a>,
    memory: [u8; 0x1000],
    messages: u32,
    healthy: bool,
    clock_ns: u64,
}

impl<'a> AnyChip<'a> {
    fn new(bytes: Bytes<'a>) -> Self {
        let mut chip =
            Self { bytes, memory: [0; 0x1000], messages: 0, healthy: false, clock_ns: 0 };
        chip.reset();
        chip
    }

    fn reset(&mut self) {
        self.memory[..0x400].fill(0);
        self.memory[0xe00..].fill(0);
        self.memory[..4].copy_from_slice(&[0x60, 0x07, 0x98, 0x04]);
        self.memory[0xe00..0xe02].copy_from_slice(&[0x60, 0x04]);
        // Both have free places to transmit from.
        self.memory[0x54] = 5;
        self.memory[0x6c] = 7;
    }

    /// The effects of writes: OPMOD follows REQOP, and readiness the oscillator's settings.
    fn settle(&mut self) {
        self.memory[2] = self.memory[2] & 0x1f | (self.memory[3] & 7) << 5;
        self.memory[0xe01] = 4 | self.memory[0xe00] & 1 | self.memory[0xe00] & 0x10;
    }

    fn select(&mut self, sent: &[u8], answer: &mut [u8]) {
        let [first, second, ..] = *sent else { return };
        let address = usize::from(first & 0xf) << 8 | usize::from(second);
        let (code, with_crc) = (first >> 4, first & 0x80 != 0);
        let begin = if with_crc { 3 } else { 2 };
        let end = if with_crc { sent.len().saturating_sub(2) } else { sent.len() };
        let data = begin..end.max(begin).min(sent.len());
        match code {
            0 => self.reset(),
            2 | 10 => {
                for (at, &byte) in (address..).zip(&sent[data]) {
                    self.memory[at & 0xfff] = byte;
                }
                self.settle();
            }
            3 | 11 => {
                for (at, byte) in (address..).zip(&mut answer[data.clone()]) {
                    *byte = self.memory[at & 0xfff];
                }
                let spoils = if self.healthy { 0 } else { self.bytes.next() };
                match spoils {
                    // Arbitrary data, with a matching CRC.
                    1..=20 => answer[data.clone()].iter_mut().for_each(|b| *b = self.bytes.next()),
                    21..=30 => {
                        let bit = usize::from(self.bytes.next()) % (8 * data.len()).max(1);
                        if let Some(byte) = answer[data.clone()].get_mut(bit / 8) {
                            *byte ^= 1 << (bit % 8);
                        }
                    }
                    _ => {}
                }
                if with_crc {
                    let whole = [&sent[..3], &answer[data]].concat();
                    answer[end..].copy_from_slice(&crc(&whole));
                    if (31..=40).contains(&spoils) {
                        answer[end] ^= self.bytes.next();
                    }
                }
            }
            _ => panic!("no instruction: {sent:02x?}"),
        }
    }
}

impl Port for AnyChip<'_> {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.messages += 1;
        self.clock_ns += 1_000;
        assert!(self.messages < MESSAGES_MAX, "a call that does not end");
        for selection in message.split_inclusive_mut(|transfer| transfer.cs_change) {
            let [transfer] = selection else { panic!("a selection of several transfers") };
            let len = transfer.data().len();
            assert!((1..=SELECTION_MAX).contains(&len), "{len} bytes");
            let mut sent = [0; SELECTION_MAX];
            sent[..len].copy_from_slice(transfer.data().tx().expect("a command"));
            let mut answer = [0; SELECTION_MAX];
            self.select(&sent[..len], &mut answer[..len]);
            if let Some(received) = transfer.rx_mut() {
                received.copy_from_slice(&answer[..len]);
            }
            if !self.healthy && self.bytes.next() == 0xff {
                return Err(MessageError::refused(SpiError::Timeout { timeout_us: 1 }, 0));
            }
        }
        Ok(())
    }

    fn speed_hz(&self) -> u32 {
        1_000_000
    }
}

/// The chip and its time, as the driver's port and timer.
struct Shared<'c, 'a>(&'c core::cell::RefCell<AnyChip<'a>>);

impl Port for Shared<'_, '_> {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.0.borrow_mut().run(message)
    }

    fn speed_hz(&self) -> u32 {
        self.0.borrow().speed_hz()
    }
}

impl Timer for Shared<'_, '_> {
    fn frequency_hz(&self) -> u32 {
        1_000_000_000
    }

    fn now_ticks(&mut self) -> u64 {
        self.0.borrow().clock_ns
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.0.borrow_mut().clock_ns += ns * OVERSLEPT;
    }
}

fn config(bytes: &mut Bytes<'_>) -> Config {
    let oscillator = Oscillator { pll: bytes.flag(), halved: bytes.flag(), hz: 4_000_000 };
    let odd = bytes.next();
    let fd = Config::fd(oscillator, BitRate::new(125_000), BitRate::new(250_000));
    let modes = [Mode::CanFd, Mode::Classic, Mode::ListenOnly, Mode::InternalLoopback];
    let payloads = [Payload::Bytes8, Payload::Bytes12, Payload::Bytes24, Payload::Bytes64];
    let mut config = Config {
        data: fd.data.filter(|_| bytes.flag()),
        mode: modes[usize::from(bytes.next()) % modes.len()],
        payload: payloads[usize::from(bytes.next()) % payloads.len()],
        tx_objects: 1 + bytes.next() % 9,
        rx_objects: 1 + bytes.next() % 9,
        tx_order: if bytes.flag() { TxOrder::Identifier } else { TxOrder::Fifo },
        transmit_events: bytes.flag(),
        invalid_frames: bytes.flag(),
        crc: bytes.flag(),
        timestamp_prescaler: bytes.word() as u16,
        ..fd
    };
    // Sometimes a value that is refused, or one at a limit.
    match odd {
        0xf0 => config.oscillator.hz = bytes.word(),
        0xf1 => config.nominal.bitrate_hz = bytes.word(),
        0xf2 => config.nominal.sample_point_permille = bytes.word() as u16,
        0xf3 => config.data = Some(BitRate::new(bytes.word())),
        0xf4 => (config.tx_objects, config.rx_objects) = (bytes.next(), bytes.next()),
        _ => {}
    }
    config
}

fn frame(bytes: &mut Bytes<'_>) -> Frame {
    const LENGTHS: [usize; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64];
    let (kind, dlc, raw) = (bytes.next(), bytes.next() & 15, bytes.word());
    let id = match kind & 1 {
        0 => Id::Standard(StandardId::new(raw as u16 & 0x7ff).expect("11 bits")),
        _ => Id::Extended(ExtendedId::new(raw & 0x1fff_ffff).expect("29 bits")),
    };
    let data = [raw as u8; 64];
    match kind >> 1 & 3 {
        0 => Frame::classic(id, &data[..usize::from(dlc.min(8))]),
        1 => Frame::remote(id, dlc.min(8)),
        kind => Frame::fd(id, &data[..LENGTHS[usize::from(dlc)]], kind == 3),
    }
    .expect("a frame")
}

/// Whatever the chip answers, every call returns a valid result or an error. When the chip works
/// again, a restart is enough.
pub(super) fn drive(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let config = config(&mut bytes);
    let chip = core::cell::RefCell::new(AnyChip::new(bytes));
    let up = || {
        let up = Mcp251xfd::on_port(Shared(&chip), Shared(&chip), config);
        chip.borrow_mut().messages = 0;
        up
    };
    // Once more without faults, if the first attempt failed; a refused configuration stays refused.
    let mut can = match up() {
        Ok(can) => can,
        Err(_) => {
            chip.borrow_mut().healthy = true;
            let Ok(can) = up() else { return };
            chip.borrow_mut().healthy = false;
            can
        }
    };
    let mut received = Received::EMPTY;
    let next = || chip.borrow_mut().bytes.next();
    let pretend = |flags: [u8; 2]| chip.borrow_mut().memory[0x1c..0x1e].copy_from_slice(&flags);
    while !chip.borrow().bytes.0.is_empty() {
        chip.borrow_mut().messages = 0;
        let call = next();
        match call % 12 {
            0..=3 => {
                pretend([next(), next()]);
                if let Ok(found) = can.service(&mut received) {
                    assert!(found.transmitted.is_none_or(|event| event.sequence < 128));
                    assert!(!found.frame || received.filter < 32 && received.frame.dlc() < 16);
                }
            }
            4 => {
                pretend([next(), next()]);
                let served = can.serve(
                    || next() != 0,
                    |can, received, found| match found.frame {
                        true => can.transmit(&received.frame).map(drop),
                        false => Ok(()),
                    },
                );
                assert!(served.is_err() || served.is_ok_and(|served| served.looks <= 64));
            }
            5..=7 => {
                let frame = frame(&mut chip.borrow_mut().bytes);
                let sent = can.transmit(&frame);
                assert!(sent.is_err() || sent.is_ok_and(|sequence| sequence < 128));
            }
            8 => {
                let (index, mask) = (next(), chip.borrow_mut().bytes.word());
                let id = frame(&mut chip.borrow_mut().bytes).id();
                let filter = (next() & 1 != 0).then(|| Filter::masked(id, mask));
                assert!(can.set_filter(index, filter).is_err() || index < 32);
            }
            9 => drop(can.error_counters()),
            10 => drop((can.now(), can.mode())),
            _ => drop(match call / 12 % 3 {
                0 => can.start(),
                1 => can.stop(),
                _ => can.restart(),
            }),
        }
    }
    chip.borrow_mut().healthy = true;
    chip.borrow_mut().messages = 0;
    can.restart().expect("nothing is in its way");
    assert_eq!((can.mode(), can.part()), (Ok(config.mode), Part::Mcp2518fd));
    assert!(can.service(&mut received).expect("answers").is_nothing());
    let short = Frame::classic(StandardId::ZERO, &[1, 2]).expect("a frame");
    for _ in 0..=config.tx_objects {
        can.transmit(&short).expect("an empty FIFO");
    }
}
