//! A block whose words take time, with three registers; it counts losses.

use super::*;

/// Loops back. Its time is the number of reads of SR: a word takes `looks` of them, and so does the
/// selection before the first word.
#[derive(Default)]
pub(super) struct Piped {
    mr: u32,
    csr: u32,
    tdr: Option<u32>,
    /// The word in the shift register, and the reads that it still takes.
    shift: Option<(u32, u32)>,
    rdr: Option<u32>,
    overrun: bool,
    /// A line is active; the reads that the selection still takes before the first word.
    selecting: u32,
    active: bool,
    /// The reads that DLYBCT, or the end of a word after RDRF, still takes.
    between: u32,
    pub looks: u32,
    /// The reads that a word takes after RDRF: half a clock.
    pub tail: u32,
    /// Words that were overwritten in TDR before they were sent.
    pub overwritten: u32,
    pub resets: u32,
    /// The widest word.
    pub bits: u32,
    /// From this word on, words are never read in time.
    pub deaf_from: Option<u32>,
    sent: u32,
}

impl Piped {
    pub(super) fn new(looks: u32) -> Self {
        Self { looks, ..Self::default() }
    }

    fn start(&mut self) {
        let guarded = self.mr & 0x20 != 0 && self.rdr.is_some();
        if self.shift.is_none() && self.between == 0 && self.selecting == 0 && !guarded {
            self.shift = self.tdr.take().map(|word| (word, self.looks));
        }
    }

    fn pass(&mut self) {
        self.selecting = self.selecting.saturating_sub(1);
        self.between = self.between.saturating_sub(1);
        if let Some((word, left)) = self.shift.take() {
            if left > 0 {
                self.shift = Some((word, left - 1));
            } else {
                let bits = if self.csr & 0xf0 == 0x80 { 16 } else { 8 };
                self.bits = self.bits.max(bits);
                self.overrun |= self.rdr.is_some();
                self.rdr = Some(word & ((1 << bits) - 1));
                let between = if self.csr >> 24 > 0 { self.looks + 1 } else { 0 };
                self.between = between + self.tail;
                self.sent += 1;
                if self.deaf_from == Some(self.sent) {
                    // The software is kept from RDR for two words.
                    self.start();
                    self.rdr = self.shift.take().map_or(self.rdr, |(word, _)| Some(word));
                    self.overrun = true;
                }
            }
        }
        self.start();
    }
}

impl Registers for Piped {
    fn read(&mut self, offset: u32) -> u32 {
        match offset {
            0x08 => {
                let word = self.rdr.take().unwrap_or(0xdead);
                self.start();
                // PCS, as the manual specifies it for every word.
                word | 0xe_0000
            }
            0x10 => {
                self.pass();
                let mut status = 1 << 16;
                status |= u32::from(self.rdr.is_some());
                status |= u32::from(self.tdr.is_none()) << 1;
                status |= u32::from(core::mem::take(&mut self.overrun)) << 3;
                let empty = self.tdr.is_none() && self.shift.is_none() && self.between == 0;
                status | u32::from(empty) << 9
            }
            _ => panic!("a read of {offset:#x}"),
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        match offset {
            0x00 if value == 0x80 => {
                *self = Self {
                    looks: self.looks,
                    tail: self.tail,
                    overwritten: self.overwritten,
                    resets: self.resets + 1,
                    bits: self.bits,
                    ..Self::default()
                };
            }
            0x00 if value == 1 << 24 => self.active = false,
            0x04 => self.mr = value,
            0x0c => {
                self.overwritten += u32::from(self.tdr.is_some());
                self.tdr = Some(value & 0xffff);
                if !self.active {
                    self.active = true;
                    self.selecting = self.looks + 2;
                }
                self.start();
            }
            0x30 => {
                assert!(self.shift.is_none() && self.tdr.is_none(), "CSR changed under way");
                self.csr = value;
            }
            _ => {}
        }
    }
}

fn loop_back(pipe: Pipe, looks: u32, bits: u8, word_delay_ns: u32, len: usize) -> Piped {
    let settings = Settings { word_delay_ns, ..FAST.with_bits_per_word(bits) };
    loop_back_with(Piped::new(looks), pipe, settings, len)
}

fn loop_back_with(block: Piped, pipe: Pipe, settings: Settings, len: usize) -> Piped {
    let config = AtmelConfig { pipe, ..config(PIN_13) };
    let (looks, bits) = (block.looks, settings.bits_per_word);
    let bus = Bus::new(Atmel::new(block, NoPins, Ticker::default(), config));
    let device = bus.device(&settings).expect("opens");
    let tx = testing::loop_back(&device, len, (bits, pipe, looks));
    let mut rx = vec![0xee; len];
    device.sync(&mut [Transfer::write(&tx), Transfer::read(&mut rx)]).expect("runs");
    assert!(rx.iter().all(|&byte| byte == 0));
    bus.into_inner().release().0
}

const PIPES: [Pipe; 3] = [Pipe::WaitDataRead, Pipe::OneWord, Pipe::TwoWords];

#[test]
fn every_length_loops_back_and_no_word_is_written_over() {
    let lengths: &[usize] = if cfg!(miri) { &[1, 4, 5] } else { &[1, 2, 3, 4, 5, 16, 17, 64] };
    for pipe in PIPES {
        // A word as short as one read is lost if there is no wait for the second read.
        let shortest = u32::from(pipe == Pipe::TwoWords);
        for looks in [shortest, 2, 4] {
            for &len in lengths {
                for (bits, word_delay_ns) in [(8, 0), (8, 300), (8, 70_000), (16, 0), (16, 300)] {
                    let len = if bits == 16 { 2 * len } else { len };
                    let block = loop_back(pipe, looks, bits, word_delay_ns, len);
                    assert_eq!(block.overwritten, 0, "{len} bytes, {pipe:?}, {looks} looks");
                }
            }
        }
    }
}

#[test]
fn no_word_is_written_over_whose_last_half_clock_outlasts_a_read() {
    for pipe in PIPES {
        for (word_delay_ns, len) in [(0, 5), (0, 6), (300, 6), (70_000, 6)] {
            let settings = Settings { word_delay_ns, ..Settings::new(0, 9_000_000) };
            let block = loop_back_with(Piped { tail: 2, ..Piped::new(4) }, pipe, settings, len);
            assert_eq!(block.overwritten, 0, "{len} bytes, {pipe:?}");
        }
    }
}

#[test]
fn bytes_go_by_two_unless_a_delay_lies_between() {
    assert_eq!(loop_back(Pipe::WaitDataRead, 1, 8, 0, 64).bits, 16);
    assert_eq!(loop_back(Pipe::WaitDataRead, 1, 8, 0, 63).bits, 8);
    assert_eq!(loop_back(Pipe::WaitDataRead, 1, 8, 300, 64).bits, 8);
    assert_eq!(loop_back(Pipe::WaitDataRead, 1, 8, 70_000, 64).bits, 8);
}

#[test]
fn a_word_lost_is_an_overrun_and_the_next_message_whole() {
    let config = AtmelConfig { pipe: Pipe::TwoWords, ..config(PIN_13) };
    for deaf_from in [1, 2, 20] {
        let mut block = Atmel::new(Piped::new(2), NoPins, Ticker::default(), config);
        // `new` has reset it.
        block.regs.deaf_from = Some(deaf_from);
        let bus = Bus::new(block);
        let device = bus.device(&FAST).expect("opens");
        let tx = [0xa5; 64];
        let mut rx = [0; 64];
        let error = device
            .sync(&mut [Transfer::write(&[]), Transfer::exchange(&tx, &mut rx)])
            .expect_err("a word is lost");
        assert_eq!(
            error,
            MessageError { error: Error::Overrun, transfer_index: 1, actual_length: 0 }
        );
        device.sync(&mut [Transfer::exchange(&tx, &mut rx)]).expect("runs");
        assert_eq!(rx, tx);
        assert_eq!(bus.into_inner().release().0.resets, 4, "twice at start, twice after the error");
    }
}
