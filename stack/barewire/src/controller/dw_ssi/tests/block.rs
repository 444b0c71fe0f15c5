//! A block that loops back at once, for tests of the data.

use std::collections::VecDeque;

use super::*;

/// Words come back when they are polled for: one per read of RXFLR, all at a read of SR.
#[derive(Debug)]
pub(super) struct Looped {
    pub(super) depth: u32,
    pub(super) wide: bool,
    pub(super) on_wire: VecDeque<u32>,
    pub(super) come: VecDeque<u32>,
    pub(super) ctrlr0: u32,
    pub(super) enabled: bool,
    pub(super) thresholds: [u32; 2],
    /// Whether it may be disabled with words in its FIFOs.
    pub(super) drops: bool,
}

impl Default for Looped {
    fn default() -> Self {
        Self {
            depth: 64,
            wide: true,
            on_wire: VecDeque::new(),
            come: VecDeque::new(),
            ctrlr0: 0,
            enabled: false,
            thresholds: [0; 2],
            drops: false,
        }
    }
}

impl Looped {
    fn frame_bits(&self) -> u32 {
        1 + if self.wide { self.ctrlr0 >> 16 & 0x1f } else { self.ctrlr0 & 0xf }
    }

    fn send(&mut self, word: u32) {
        assert!(self.enabled, "a word for a block that is disabled");
        let flying = self.on_wire.len() + self.come.len();
        assert!(flying < self.depth as usize, "{flying} words in flight");
        self.on_wire.push_back(word & (u32::MAX >> (32 - self.frame_bits())));
    }
}

impl Registers for Looped {
    fn read(&mut self, offset: u32) -> u32 {
        match offset {
            CTRLR0 => self.ctrlr0,
            TXFTLR => self.thresholds[0],
            RXFTLR => self.thresholds[1],
            RXFLR => {
                self.come.extend(self.on_wire.pop_front());
                self.come.len() as u32
            }
            SR => {
                self.come.append(&mut self.on_wire);
                if self.come.is_empty() { IDLE } else { IDLE_RFNE }
            }
            DR => self.come.pop_front().expect("a word to read"),
            ICR | RISR => 0,
            _ => panic!("read of {offset:#x}"),
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        match offset {
            SSIENR => {
                self.enabled = value & 1 != 0;
                if !self.enabled && self.drops {
                    self.on_wire.clear();
                    self.come.clear();
                } else if !self.enabled {
                    assert!(self.on_wire.is_empty() && self.come.is_empty(), "words are dropped");
                }
            }
            CTRLR0 => {
                assert!(!self.enabled, "CTRLR0 of a block that is enabled");
                self.ctrlr0 = if self.wide { value & !0xf } else { value & 0xffff };
            }
            TXFTLR | RXFTLR if value < self.depth => {
                self.thresholds[usize::from(offset == RXFTLR)] = value;
            }
            DR => self.send(value),
            TXFTLR | RXFTLR | SER | BAUDR | IMR | DMACR => {}
            _ => panic!("write of {value:#x} to {offset:#x}"),
        }
    }
}
