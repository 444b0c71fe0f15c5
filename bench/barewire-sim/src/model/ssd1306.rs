//! A model of the SSD1306, a display controller of 128 × 64 dots, in its 4-wire SPI mode.
//!
//! *Read first*: Solomon Systech, *SSD1306 Advance Information*, revision 1.1, April 2008
//! (<https://cdn-shop.adafruit.com/datasheets/SSD1306.pdf>): 8.1.3, 4-wire serial interface; 8.5,
//! reset; 9 and 10, commands; table 13-4, timing.
//!
//! # How it works
//! Bytes are shifted in most significant bit first. D/C# is sampled with the eighth clock: low makes
//! the byte a command or its parameter, high a byte of display memory. Memory is eight pages of 128
//! columns, a byte a column and page. A byte of data advances the column pointer, and in horizontal
//! mode the page pointer when the column window ends, in vertical mode the other way round.
//!
//! # Not supported
//! The visible picture: contrast, scrolling, inversion and remapping are accepted, and change
//! nothing in memory. The scroll commands' own rules.

use crate::chip::{Bytewise, Chip, Clocking, Complaints, PS_PER_NS, Partial, Pin, Ps, WireLimits};

/// Columns of the display.
pub const COLUMNS: usize = 128;
/// Pages of its memory, eight rows each.
pub const PAGES: usize = 8;
/// RES# is low for 3 µs at least (8.9, power on sequence).
const RESET_PS: Ps = 3_000 * PS_PER_NS;

/// How the pointers advance: command 20h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Addressing {
    Horizontal,
    Vertical,
    Page,
}

/// The chip. Its pins are D/C# and RES#, both inputs.
#[derive(Debug)]
pub struct Ssd1306 {
    partial: Partial,
    complaints: Complaints<64>,
    /// The levels of D/C# and RES#, and since when.
    dc: Option<(bool, Ps)>,
    reset: Option<(bool, Ps)>,
    was_reset: bool,
    command: Vec<u8>,
    addressing: Addressing,
    /// First and last, inclusive.
    columns: (u8, u8),
    pages: (u8, u8),
    column: u8,
    page: u8,
    on: bool,
    memory: [[u8; COLUMNS]; PAGES],
}

impl Ssd1306 {
    /// The display after power-up: its memory, which is undefined then, holds a pattern.
    #[must_use]
    pub fn new() -> Self {
        Self {
            partial: Partial::NONE,
            complaints: Complaints::default(),
            dc: None,
            reset: None,
            was_reset: false,
            command: Vec::new(),
            addressing: Addressing::Page,
            columns: (0, 127),
            pages: (0, 7),
            column: 0,
            page: 0,
            on: false,
            memory: [[0x5a; COLUMNS]; PAGES],
        }
    }

    /// Whether the display is on: command AFh.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// The display's memory, by page and column: bit n of a byte is the page's row n (8.7).
    #[must_use]
    pub fn memory(&self) -> &[[u8; COLUMNS]; PAGES] {
        &self.memory
    }

    /// Section 8.5: the registers' values after RES#. The memory stays.
    fn reset(&mut self) {
        let (complaints, memory) = (self.complaints.clone(), self.memory);
        let (dc, reset) = (self.dc, self.reset);
        *self = Self { complaints, memory, dc, reset, was_reset: true, ..Self::new() };
    }

    /// The number of parameters of a command (table 9-1), if there is such a command.
    fn parameters(command: u8) -> Option<usize> {
        Some(match command {
            0x00..=0x1f | 0x2e | 0x2f | 0x40..=0x7f | 0xa0 | 0xa1 | 0xa4..=0xa7 => 0,
            0xae | 0xaf | 0xb0..=0xb7 | 0xc0..=0xcf | 0xe3 => 0,
            0x20 | 0x81 | 0x8d | 0xa8 | 0xd3 | 0xd5 | 0xd9 | 0xda | 0xdb => 1,
            // The SSD1315's choice of its current's reference. Adafruit's and MicroPython's drivers send it to each of the
            // two, and an SSD1306 lets it pass (MicroPython's pull request 7411, June 2021).
            0xad => 1,
            0x21 | 0x22 | 0xa3 => 2,
            0x29 | 0x2a => 5,
            0x26 | 0x27 => 6,
            _ => return None,
        })
    }

    fn command(&mut self, byte: u8) {
        self.command.push(byte);
        let command = self.command[0];
        let Some(parameters) = Self::parameters(command) else {
            self.complaints.add(|| format!("no such command: {command:#04x}"));
            self.command.clear();
            return;
        };
        if self.command.len() <= parameters {
            return;
        }
        match *self.command {
            [low @ 0x00..=0x0f] => self.column = self.column & 0x70 | low,
            [high @ 0x10..=0x1f] => self.column = self.column & 0x0f | (high & 7) << 4,
            [page @ 0xb0..=0xb7] => self.page = page & 7,
            [0xae | 0xaf] => self.on = byte & 1 != 0,
            [0x20, mode] => match mode & 3 {
                0 => self.addressing = Addressing::Horizontal,
                1 => self.addressing = Addressing::Vertical,
                2 => self.addressing = Addressing::Page,
                _ => self.complaints.add(|| "addressing mode 3 is invalid".into()),
            },
            [0x21, first, last] => {
                self.columns = self.window("columns", first, last, 127);
                self.column = self.columns.0;
            }
            [0x22, first, last] => {
                self.pages = self.window("pages", first, last, 7);
                self.page = self.pages.0;
            }
            _ => {}
        }
        self.command.clear();
    }

    fn window(&mut self, what: &str, first: u8, last: u8, max: u8) -> (u8, u8) {
        if first > last || last > max {
            self.complaints.add(|| format!("{what} from {first} to {last}"));
        }
        (first.min(max), last.min(max))
    }

    fn data(&mut self, byte: u8) {
        if !self.command.is_empty() {
            let command = self.command[0];
            self.complaints.add(|| format!("data instead of a parameter of {command:#04x}"));
            self.command.clear();
        }
        self.memory[usize::from(self.page)][usize::from(self.column)] = byte;
        // Advances one pointer within its window; true if it begins again.
        let advance = |pointer: &mut u8, (first, last): (u8, u8)| {
            let ends = *pointer == last;
            *pointer = if ends { first } else { *pointer + 1 };
            ends
        };
        match self.addressing {
            Addressing::Page => {
                self.column = (self.column + 1) % 128;
            }
            Addressing::Horizontal => {
                if advance(&mut self.column, self.columns) {
                    advance(&mut self.page, self.pages);
                }
            }
            Addressing::Vertical => {
                if advance(&mut self.page, self.pages) {
                    advance(&mut self.column, self.columns);
                }
            }
        }
    }
}

impl Default for Ssd1306 {
    fn default() -> Self {
        Self::new()
    }
}

impl Bytewise for Ssd1306 {
    fn partial(&mut self) -> &mut Partial {
        &mut self.partial
    }

    // Nothing is read in serial mode: MISO is not driven.
    fn begin_byte(&mut self, _at: Ps) -> u8 {
        0xff
    }

    fn end_byte(&mut self, byte: u8, _at: Ps) {
        if !self.was_reset || self.reset.is_some_and(|(level, _)| !level) {
            self.complaints.add(|| format!("{byte:#04x} before RES# was low for 3 µs and high"));
        }
        match self.dc {
            Some((true, _)) => self.data(byte),
            Some((false, _)) => self.command(byte),
            None => self.complaints.add(|| "D/C# is not connected".into()),
        }
    }
}

impl Chip for Ssd1306 {
    fn name(&self) -> &'static str {
        "SSD1306"
    }

    // Table 13-4: tCSS 20 ns, tCSH 10 ns, tcycle 100 ns. SDIN is sampled at the rising edge.
    fn limits(&self) -> WireLimits {
        WireLimits {
            modes: 1 << 0 | 1 << 3,
            cs_setup_ns: 20,
            cs_hold_ns: 10,
            cs_inactive_ns: 0,
            max_clock_hz: 10_000_000,
        }
    }

    fn pins(&self) -> Vec<Pin> {
        vec![Pin::Input("D/C#"), Pin::Input("RES#")]
    }

    fn set_pin(&mut self, pin: &'static str, level: bool, at: Ps) {
        if pin == "D/C#" {
            if self.partial.bits() != 0 {
                self.complaints.add(|| "D/C# changed within a byte".into());
            }
            self.dc = Some((level, at));
            return;
        }
        if let Some((false, since)) = self.reset
            && level
        {
            // A shorter pulse may leave anything behind: the chip counts as not reset.
            if at - since < RESET_PS {
                self.was_reset = false;
            } else {
                self.reset();
            }
        }
        self.reset = Some((level, at));
    }

    fn select(&mut self, _at: Ps) {
        self.partial = Partial::NONE;
    }

    fn deselect(&mut self, _at: Ps) {
        let bits = self.partial.bits();
        if bits != 0 {
            self.complaints.add(|| format!("CS# rose after {bits} bits of a byte"));
        }
    }

    fn exchange(&mut self, clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        self.exchange_bits(clocking, mosi, bits)
    }

    fn take_complaint(&mut self) -> Option<String> {
        self.complaints.take()
    }
}
