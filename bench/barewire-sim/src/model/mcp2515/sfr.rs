//! The value read at each address, and the effect of a write.

use super::core::{Core, Mode};
use super::regs::*;

/// The register at an address.
enum Place {
    Filter { index: usize, byte: usize },
    Mask { index: usize, byte: usize },
    TxCtrl(usize),
    Tx { index: usize, byte: usize },
    RxCtrl(usize),
    Rx { index: usize, byte: usize },
    Other(u8),
}

fn place(address: u8) -> Place {
    let (row, low) = (usize::from(address >> 4), address & 0xf);
    let byte = usize::from(low % 4);
    match (row, low) {
        // At the end of every row.
        (_, 0xe) => Place::Other(CANSTAT),
        (_, 0xf) => Place::Other(CANCTRL),
        (0 | 1, 0..=0xb) => Place::Filter { index: 3 * row + usize::from(low / 4), byte },
        (2, 0..=7) => Place::Mask { index: usize::from((address - RXM0) / 4), byte },
        (3..=5, 0) => Place::TxCtrl(row - usize::from(TXB0CTRL >> 4)),
        (3..=5, _) => {
            Place::Tx { index: row - usize::from(TXB0CTRL >> 4), byte: usize::from(low) - 1 }
        }
        (6 | 7, 0) => Place::RxCtrl(row - usize::from(RXB0CTRL >> 4)),
        (6 | 7, _) => {
            Place::Rx { index: row - usize::from(RXB0CTRL >> 4), byte: usize::from(low) - 1 }
        }
        _ => Place::Other(address),
    }
}

impl Core {
    /// The byte at an address. Reading has no side effects.
    pub(super) fn read(&self, address: u8) -> u8 {
        let configures = self.opmod == Mode::Configuration;
        match place(address & (SPACE - 1)) {
            // Filters and masks read 0 in the other modes.
            Place::Filter { .. } | Place::Mask { .. } if !configures => 0,
            Place::Filter { index, byte } => self.filters[index][byte],
            Place::Mask { index, byte } => self.masks[index][byte],
            Place::TxCtrl(index) => self.tx[index].ctrl,
            Place::Tx { index, byte } => self.tx[index].bytes[byte],
            Place::RxCtrl(index) => self.rx[index].ctrl,
            Place::Rx { index, byte } => self.rx[index].bytes[byte],
            Place::Other(address) => match address {
                BFPCTRL => self.bfpctrl,
                TXRTSCTRL => self.txrtsctrl,
                CANSTAT => self.canstat(),
                CANCTRL => self.canctrl,
                TEC => self.counters.tec.min(255) as u8,
                REC => self.counters.rec.min(255) as u8,
                CNF3..=CNF1 => self.cnf[usize::from(address - CNF3)],
                CANINTE => self.caninte,
                CANINTF => self.canintf,
                EFLG => self.eflg(),
                _ => 0,
            },
        }
    }

    /// BIT MODIFY. Where that is not possible the whole byte is written.
    pub(super) fn modify(&mut self, address: u8, mask: u8, data: u8) {
        let mask = if is_bit_modifiable(address & (SPACE - 1)) { mask } else { 0xff };
        let value = self.read(address) & !mask | data & mask;
        self.write(address, value);
    }

    /// A byte is written, with its last bit.
    pub(super) fn write(&mut self, address: u8, value: u8) {
        let configures = self.opmod == Mode::Configuration;
        let refused = |core: &mut Self, why: &str| {
            core.complain(|| format!("{address:#04x} is written {why}"));
        };
        match place(address & (SPACE - 1)) {
            Place::Filter { .. } | Place::Mask { .. } if !configures => {
                refused(self, "outside Configuration mode");
            }
            Place::Filter { index, byte } => {
                self.filters[index][byte] = if byte == 1 { value & sidl::USED } else { value };
            }
            Place::Mask { index, byte } => {
                self.masks[index][byte] = if byte == 1 { value & sidl::MASK_USED } else { value };
            }
            Place::TxCtrl(index) => {
                let had = self.tx[index].ctrl;
                self.tx[index].ctrl = had & !txctrl::TXP | value & txctrl::TXP;
                match value & txctrl::TXREQ != 0 {
                    true => self.request(index),
                    false => self.abort(index, false),
                }
            }
            Place::Tx { index, .. } if self.tx[index].ctrl & txctrl::TXREQ != 0 => {
                refused(self, "while its buffer's TXREQ is set");
            }
            Place::Tx { index, byte } => {
                self.tx[index].bytes[byte] = match byte {
                    1 => value & sidl::USED,
                    DLC => value & (dlc::RTR | 0xf),
                    _ => value,
                };
            }
            Place::RxCtrl(index) => self.write_rx_ctrl(index, value),
            Place::Rx { .. } => refused(self, "but only read"),
            Place::Other(address) => match address {
                BFPCTRL => self.bfpctrl = value & 0x3f,
                CANCTRL => self.control(value),
                CANINTE => self.caninte = value,
                CANINTF => self.canintf = value,
                EFLG => self.overflows = value & (eflg::RX0OVR | eflg::RX1OVR),
                TXRTSCTRL | CNF3..=CNF1 if !configures => {
                    refused(self, "outside Configuration mode");
                }
                TXRTSCTRL => self.txrtsctrl = value & 7,
                CNF3..=CNF1 => self.cnf[usize::from(address - CNF3)] = value,
                _ => refused(self, "but only read"),
            },
        }
        self.update(self.now);
    }

    fn write_rx_ctrl(&mut self, index: usize, value: u8) {
        let mode = value & rxctrl::RXM;
        if mode != 0 && mode != rxctrl::RXM {
            self.complain(|| format!("RXM {} is reserved", mode >> 5));
        }
        let kept = self.rx[index].ctrl
            & !(rxctrl::RXM | if index == 0 { rxctrl::BUKT | rxctrl::BUKT1 } else { 0 });
        self.rx[index].ctrl = kept | mode;
        if index == 0 && value & rxctrl::BUKT != 0 {
            self.rx[0].ctrl |= rxctrl::BUKT | rxctrl::BUKT1;
        }
    }

    /// READ STATUS.
    pub(super) fn status(&self) -> u8 {
        let txreq = |index: usize| self.tx[index].ctrl >> 3 & 1;
        let sent = |index: usize| self.canintf >> (2 + index) & 1;
        (0..3).fold(self.canintf & 3, |status, index| {
            status | txreq(index) << (2 + 2 * index) | sent(index) << (3 + 2 * index)
        })
    }

    /// RX STATUS; about RXB0 if both buffers are full.
    pub(super) fn rx_status(&self) -> u8 {
        let full = self.canintf & 3;
        let index = match full {
            0 => return 0,
            2 => 1,
            _ => 0,
        };
        let RxBits { is_extended, is_remote, filter } = self.rx_bits(index);
        full << 6 | u8::from(is_extended) << 4 | u8::from(is_remote) << 3 | filter
    }

    fn rx_bits(&self, index: usize) -> RxBits {
        let buffer = &self.rx[index];
        let filter = match index {
            0 => buffer.ctrl & rxctrl::FILHIT0,
            // Filters 0 and 1 after a roll-over.
            _ => match buffer.ctrl & rxctrl::FILHIT {
                rolled @ 0..=1 => 6 + rolled,
                filter => filter,
            },
        };
        RxBits {
            is_extended: buffer.bytes[1] & sidl::EXIDE != 0,
            is_remote: buffer.ctrl & rxctrl::RXRTR != 0,
            filter,
        }
    }
}

struct RxBits {
    is_extended: bool,
    is_remote: bool,
    filter: u8,
}
