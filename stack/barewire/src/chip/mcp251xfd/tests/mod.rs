//! The driver against a port that answers by a script. The script's bytes are assembled by hand
//! from the data sheet; they use no constant of the driver.

mod any;
mod any_bytes;
mod bus;
mod checked;
mod pure;
mod setup;

use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::spi::{Error, Error as SpiError, MessageError, Transfer};

/// One selection of the chip: its first bytes, its length, and the chip's answer.
struct Step {
    sent: Vec<u8>,
    answer: Vec<u8>,
    len: usize,
    fails: bool,
}

/// A write of exactly these bytes.
fn write(bytes: &[u8]) -> Step {
    Step { sent: bytes.to_vec(), answer: vec![0xee; bytes.len()], len: bytes.len(), fails: false }
}

/// A read that begins with `command` and is answered by `data`.
fn read(command: &[u8], data: &[u8]) -> Step {
    let mut answer = vec![0xee; command.len()];
    answer.extend_from_slice(data);
    Step { sent: command.to_vec(), len: answer.len(), answer, fails: false }
}

/// The same, failing once its first transfer was clocked.
fn fails(step: Step) -> Step {
    Step { fails: true, ..step }
}

/// Checks that the sent bytes are those of the script.
struct Script {
    steps: VecDeque<Step>,
    messages: u32,
    speed_hz: u32,
}

impl Script {
    fn new() -> Self {
        Self { steps: VecDeque::new(), messages: 0, speed_hz: 16_000_000 }
    }
}

impl Port for Script {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.messages += 1;
        for selection in message.split_inclusive_mut(|transfer| transfer.cs_change) {
            let step = self.steps.pop_front().expect("no access is left in the script");
            let mut at = 0;
            for transfer in selection {
                let len = transfer.data.len();
                if let Some(tx) = transfer.data.tx() {
                    let end = (at + len).min(step.sent.len()).max(at);
                    assert_eq!(tx[..end - at], step.sent[at..end], "of {:02x?}", step.sent);
                }
                if let Some(rx) = transfer.data.rx_mut() {
                    rx.copy_from_slice(&step.answer[at..at + len]);
                }
                at += len;
            }
            assert_eq!(at, step.len, "the length of {:02x?}", step.sent);
            if step.fails {
                return Err(MessageError::refused(Error::Timeout { timeout_us: 1 }, 0));
            }
        }
        Ok(())
    }

    fn speed_hz(&self) -> u32 {
        self.speed_hz
    }
}

/// A counter of nanoseconds that advances with each wait.
#[derive(Default)]
struct Clock(u64);

impl Timer for Clock {
    fn frequency_hz(&self) -> u32 {
        1_000_000_000
    }
    fn now_ticks(&mut self) -> u64 {
        self.0
    }
    fn sleep_ns(&mut self, ns: u64) {
        self.0 += ns;
    }
}

type Can<'s> = Mcp251xfd<OnPort<&'s mut Script, FRAME_BYTES>, Clock>;

const AT_40_MHZ: Oscillator = Oscillator::new(40_000_000);

fn classic() -> Config {
    Config::classic(AT_40_MHZ, BitRate::new(250_000))
}

fn fd() -> Config {
    let data = BitRate::new(2_000_000).with_sample_point_permille(800);
    Config::fd(AT_40_MHZ, BitRate::new(500_000).with_sample_point_permille(800), data)
}

/// Reset and identity: C1CON and OSC have the data sheet's reset values.
fn proof() -> Vec<Step> {
    vec![
        write(&[0x20, 0x03, 0x0c]),
        read(&[0x30, 0x00], &[0x60, 0x07, 0x98, 0x04]),
        write(&[0x00, 0x00]),
        read(&[0x3e, 0x00], &[0x60, 0x04, 0x00, 0x00]),
        read(&[0x30, 0x00], &[0x60, 0x07, 0x98, 0x04]),
        write(&[0x2e, 0x00, 0x68, 0x00, 0x00, 0x00]),
        read(&[0x3e, 0x00], &[0x68, 0x04, 0x00, 0x00]),
        write(&[0x2e, 0x00, 0x60, 0x00, 0x00, 0x00]),
        read(&[0x3e, 0x00], &[0x60, 0x04, 0x00, 0x00]),
    ]
}

/// One filter that passes all frames to FIFO 1.
fn open_filter() -> Vec<Step> {
    vec![
        write(&[0x21, 0xd0, 0x00]),
        write(&[0x21, 0xf0, 0, 0, 0, 0]),
        write(&[0x21, 0xf4, 0, 0, 0, 0]),
        write(&[0x21, 0xd0, 0x81]),
    ]
}

/// All exchanges up to a classic node of 250 kbit/s that is set up.
fn classic_up() -> Vec<Step> {
    let mut steps = proof();
    steps.extend([
        // 160 quanta of 25 ns, sampled after 140.
        write(&[0x20, 0x04, 0x13, 0x13, 0x8a, 0x00]),
        write(&[0x20, 0x14, 0x27, 0x00, 0x01, 0x00]),
        write(&[0x20, 0x00, 0x60, 0x07, 0x80, 0x04]),
        write(&[0x20, 0x5c, 0x29, 0x04, 0x00, 0x1f]),
        write(&[0x20, 0x68, 0x80, 0x04, 0x60, 0x07]),
    ]);
    steps.extend(open_filter());
    steps
}

/// Joining the bus.
fn classic_joins() -> Vec<Step> {
    vec![
        write(&[0x20, 0x03, 0x06]),
        read(&[0x30, 0x00], &[0x60, 0x07, 0xc0, 0x06]),
        write(&[0x20, 0x1c, 0x00, 0x00, 0x0a, 0xb8]),
    ]
}

/// FD with 64 bytes, optionally with events and CRC.
fn fd_up() -> Vec<Step> {
    let mut steps = proof();
    steps.extend([
        // The reset values of both, which are these rates.
        write(&[0x20, 0x04, 0x0f, 0x0f, 0x3e, 0x00]),
        write(&[0x20, 0x08, 0x03, 0x03, 0x0e, 0x00]),
        write(&[0x20, 0x0c, 0x00, 0x0f, 0x02, 0x00]),
        write(&[0x20, 0x14, 0x27, 0x00, 0x01, 0x00]),
        write(&[0x20, 0x00, 0x60, 0x07, 0x80, 0x04]),
        write(&[0x20, 0x5c, 0x29, 0x04, 0x00, 0xef]),
        write(&[0x20, 0x68, 0x80, 0x04, 0x60, 0xe7]),
    ]);
    steps.extend(open_filter());
    steps.extend([
        write(&[0x20, 0x03, 0x00]),
        read(&[0x30, 0x00], &[0x60, 0x07, 0x00, 0x00]),
        write(&[0x20, 0x1c, 0x00, 0x00, 0x0a, 0xb8]),
    ]);
    steps
}

/// C1INT with these flags, in a node without events and CRC.
fn interrupts(low: u8, high: u8) -> Step {
    read(&[0x30, 0x1c], &[low, high, 0x0a, 0xb8])
}

/// Runs `drive` on a node that has joined the bus, and checks that the script was completed.
#[track_caller]
fn hold(config: Config, up: Vec<Step>, script: Vec<Step>, drive: impl FnOnce(&mut Can<'_>)) {
    let mut port = Script::new();
    port.steps.extend(up);
    port.steps.extend(script);
    let mut can = Mcp251xfd::on_port(&mut port, Clock::default(), config).expect("is proved");
    can.start().expect("joins");
    drive(&mut can);
    assert_eq!(port.steps.len(), 0, "accesses that did not come");
}

#[track_caller]
fn hold_classic(script: Vec<Step>, drive: impl FnOnce(&mut Can<'_>)) {
    let mut up = classic_up();
    up.extend(classic_joins());
    hold(classic(), up, script, drive);
}

fn standard(raw: u16) -> StandardId {
    StandardId::new(raw).expect("11 bits")
}

fn extended(raw: u32) -> ExtendedId {
    ExtendedId::new(raw).expect("29 bits")
}

/// An object in FIFO 1: standard identifier 0x123, three bytes.
fn object(stamp: u32) -> Vec<u8> {
    let mut bytes = vec![0x23, 0x01, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00];
    bytes.extend(stamp.to_le_bytes());
    bytes.extend([0x11, 0x22, 0x33, 0xee, 0xee, 0xee, 0xee, 0xee]);
    bytes
}

const RX_DONE: [u8; 3] = [0x20, 0x5d, 0x01];
