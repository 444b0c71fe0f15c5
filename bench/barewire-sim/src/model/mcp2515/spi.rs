//! SPI instructions, byte by byte.
//!
//! *Read first*: DS20001801, chapter 12.

use super::core::Core;
use super::regs::*;

/// An instruction in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// CS is low, and no byte has come yet.
    Begun,
    /// READ and WRITE, before their address.
    Address {
        writes: bool,
    },
    /// Data bytes from an address on, and the receive buffer to empty at the end.
    Read {
        address: u8,
        empties: Option<usize>,
    },
    Write {
        address: u8,
    },
    /// BIT MODIFY: address and mask, as far as received.
    Modify {
        address: Option<u8>,
        mask: Option<u8>,
    },
    Status,
    RxStatus,
    /// RTS, which is executed at the end.
    Rts {
        buffers: u8,
    },
    /// No more bytes are expected.
    Done,
    /// The following bytes are not understood.
    Unknown,
}

/// The six addresses for LOAD TX BUFFER: identifier and data of each buffer.
fn tx_place(code: u8) -> Option<u8> {
    let buffer = TXB0CTRL + 0x10 * (code / 2);
    (code < 6).then_some(if code & 1 == 0 { buffer + 1 } else { buffer + 1 + DATA as u8 })
}

fn next(address: u8) -> u8 {
    (address + 1) % SPACE
}

impl Instruction {
    fn decode(core: &mut Core, code: u8) -> Self {
        match code {
            0xc0 => {
                core.reset();
                Self::Done
            }
            0x03 => Self::Address { writes: false },
            0x02 => Self::Address { writes: true },
            0x05 => Self::Modify { address: None, mask: None },
            0xa0 => Self::Status,
            0xb0 => Self::RxStatus,
            0x80..=0x87 => Self::Rts { buffers: code & 7 },
            0x90 | 0x92 | 0x94 | 0x96 => {
                let index = usize::from(code >> 2 & 1);
                let buffer = RXB0CTRL + 0x10 * index as u8;
                let data = if code & 2 != 0 { DATA as u8 } else { 0 };
                Self::Read { address: buffer + 1 + data, empties: Some(index) }
            }
            _ => match tx_place(code.wrapping_sub(0x40)) {
                Some(address) => Self::Write { address },
                None => {
                    core.complain(|| format!("no instruction is {code:#04x}"));
                    Self::Unknown
                }
            },
        }
    }

    /// The next byte to send. MISO is not driven before there is one.
    pub(super) fn out(self, core: &Core) -> u8 {
        match self {
            Self::Read { address, .. } => core.read(address),
            Self::Status => core.status(),
            Self::RxStatus => core.rx_status(),
            _ => 0xff,
        }
    }

    /// A byte was received.
    pub(super) fn take(self, core: &mut Core, byte: u8) -> Self {
        match self {
            Self::Begun => Self::decode(core, byte),
            Self::Address { .. } if byte >= SPACE => {
                core.complain(|| format!("there is no address {byte:#04x}"));
                Self::Unknown
            }
            Self::Address { writes: false } => Self::Read { address: byte, empties: None },
            Self::Address { writes: true } => Self::Write { address: byte },
            Self::Read { address, empties } => Self::Read { address: next(address), empties },
            Self::Write { address } => {
                core.write(address, byte);
                Self::Write { address: next(address) }
            }
            Self::Modify { address: None, .. } => Self::Modify { address: Some(byte), mask: None },
            Self::Modify { address, mask: None } => Self::Modify { address, mask: Some(byte) },
            Self::Modify { address: Some(address), mask: Some(mask) } => {
                core.modify(address, mask, byte);
                Self::Done
            }
            Self::Done | Self::Rts { .. } => {
                core.complain(|| "an instruction goes on after its end".into());
                Self::Unknown
            }
            same @ (Self::Status | Self::RxStatus | Self::Unknown) => same,
        }
    }

    /// CS rose.
    pub(super) fn end(self, core: &mut Core) {
        match self {
            Self::Read { empties: Some(index), .. } => {
                core.canintf &= !(int::RX0 << index);
                core.update(core.now);
            }
            Self::Rts { buffers } => {
                (0..3).filter(|index| buffers >> index & 1 != 0).for_each(|i| core.request(i));
            }
            Self::Address { .. } | Self::Modify { .. } => {
                core.complain(|| "CS ended an instruction before its data".into());
            }
            _ => {}
        }
    }
}
