//! QEMU's PL022 with raw registers, on the board without a chip and on the one with an SD card:
//! each line of `src/board/highbank.rs` and `src/board/lm3s6965evb.rs`.
//!
//! Registers and bits by their names in the PL022's technical reference manual, chapter 3.

use barewire::reg::Registers;
use barewire_qemu::{BoardSpec, QemuBoard, QemuOptions, QemuRegisters};

use crate::support::{Random, on_file, open_board};

const SSPCR0: u32 = 0x00;
const SSPCR1: u32 = 0x04;
const SSPDR: u32 = 0x08;
const SSPSR: u32 = 0x0c;
const SSPCPSR: u32 = 0x10;
const SSPIMSC: u32 = 0x14;
const SSPRIS: u32 = 0x18;
const SSPMIS: u32 = 0x1c;
const SSPICR: u32 = 0x20;
const SSPDMACR: u32 = 0x24;
const SSPPERIPH_ID0: u32 = 0xfe0;

const LBM: u32 = 1;
const SSE: u32 = 1 << 1;
const MS: u32 = 1 << 2;

const TFE: u32 = 1;
const TNF: u32 = 1 << 1;
const RNE: u32 = 1 << 2;
const RFF: u32 = 1 << 3;
const BSY: u32 = 1 << 4;

const ROR: u32 = 1;
const RT: u32 = 1 << 1;
const RX: u32 = 1 << 2;
const TX: u32 = 1 << 3;

const FIFO_FRAMES: usize = 8;
const DSS_8: u32 = 7;
const DSS_16: u32 = 15;

/// The boards with a PL022.
const BOARDS: [&str; 2] = ["highbank", "lm3s6965evb"];

fn each_board(test: impl Fn(&QemuBoard, &mut QemuRegisters)) {
    for name in BOARDS {
        let Some(board) = open_board(name, &QemuOptions::default()) else { continue };
        test(&board, &mut board.controller());
        settle(board);
    }
}

fn settle(board: QemuBoard) {
    assert_eq!(board.misuse(), Ok(vec![]));
    assert_eq!(board.lost(), None);
    board.close().expect("ends well");
}

/// Words of 8 bits, the fastest clock.
fn begin(ssp: &mut QemuRegisters, cr1: u32) {
    ssp.write(SSPCR0, DSS_8);
    ssp.write(SSPCPSR, 2);
    ssp.write(SSPCR1, cr1);
}

/// Reads while RNE is set.
fn drain(ssp: &mut QemuRegisters) -> Vec<u32> {
    let mut words = Vec::new();
    while ssp.read(SSPSR) & RNE != 0 {
        words.push(ssp.read(SSPDR));
        assert!(words.len() < 1_000, "RNE never clears");
    }
    words
}

#[test]
fn registers_reset_and_keep_their_bits() {
    each_board(|board, ssp| {
        assert_eq!(board.spec().silicon.block.name, "PL022");
        let reset = [SSPCR0, SSPCR1, SSPSR, SSPCPSR, SSPIMSC, SSPRIS, SSPMIS, SSPDMACR];
        assert_eq!(reset.map(|at| ssp.read(at)), [0, 0, TFE | TNF, 0, 0, TX, 0, 0]);
        let id: Vec<u32> = (0..8).map(|n| ssp.read(SSPPERIPH_ID0 + 4 * n)).collect();
        assert_eq!(id, [0x22, 0x10, 0x04, 0x00, 0x0d, 0xf0, 0x05, 0xb1]);
        for (register, kept) in [(SSPCR0, u32::MAX), (SSPCPSR, 0xff), (SSPIMSC, u32::MAX)] {
            ssp.write(register, u32::MAX);
            assert_eq!(ssp.read(register), kept, "{register:#x}");
            ssp.write(register, 0);
        }
        assert_eq!(ssp.read(SSPDR), 0, "an empty FIFO");
    });
}

#[test]
fn words_have_no_bits_until_cr0_is_written() {
    each_board(|_, ssp| {
        ssp.write(SSPCR1, LBM | SSE);
        ssp.write(SSPDR, 0xa5);
        assert_eq!(drain(ssp), [0]);
        // DSS is the word length minus one (lengths 4 to 16). Higher bits of a word are cut off.
        for bits in 4..=16 {
            ssp.write(SSPCR0, bits - 1);
            ssp.write(SSPDR, 0xffff_a5a5);
            assert_eq!(drain(ssp), [0xa5a5 & ((1 << bits) - 1)], "{bits} bits");
        }
        // Frame format, SPO, SPH and SCR change nothing.
        ssp.write(SSPCR0, 0xfff0 | DSS_8);
        ssp.write(SSPDR, 0xa5);
        assert_eq!(drain(ssp), [0xa5]);
    });
}

#[test]
fn fifos_hold_8_frames_and_never_overrun() {
    each_board(|_, ssp| {
        begin(ssp, LBM);
        for n in 0..10 {
            ssp.write(SSPDR, 0x30 + n);
            let words = (n + 1).min(8);
            let room = if words < 8 { TNF } else { 0 };
            assert_eq!(ssp.read(SSPSR), BSY | room, "SSE off, {words} words wait");
            assert_eq!(ssp.read(SSPRIS), if words <= 4 { TX } else { 0 });
        }
        ssp.write(SSPCR1, LBM | SSE);
        assert_eq!(ssp.read(SSPSR), TFE | TNF | RNE | RFF);
        // The ninth and tenth found no room.
        assert_eq!(drain(ssp), (0x30..0x38).collect::<Vec<u32>>());

        let words: Vec<u32> = (0..2 * FIFO_FRAMES as u32 + 4).collect();
        ssp.write_n(SSPDR, &words);
        assert_eq!(ssp.read(SSPSR), RNE | RFF | BSY, "the rest waits");
        assert_eq!(ssp.read(SSPRIS), RX, "and no overrun");
        assert_eq!(ssp.read(SSPDR), 0);
        assert_eq!(ssp.read(SSPSR), RNE | RFF | BSY | TNF, "the read moved one word on");
        assert_eq!(drain(ssp), words[1..2 * FIFO_FRAMES]);
        assert_eq!(ssp.read(SSPSR), TFE | TNF);
        ssp.write(SSPICR, ROR | RT);
        assert_eq!(ssp.read(SSPRIS), TX, "none of the flags that SSPICR clears is set");

        // Switched off with a word received and one to send: both are kept.
        ssp.write(SSPDR, 0x11);
        ssp.write(SSPCR1, LBM);
        ssp.write(SSPDR, 0x22);
        assert_eq!(ssp.read(SSPSR), RNE | TNF | BSY);
        ssp.write(SSPCR1, LBM | SSE);
        assert_eq!(drain(ssp), [0x11, 0x22]);
    });
}

#[test]
fn the_interrupt_is_half_full_or_half_empty() {
    each_board(|board, ssp| {
        let line = board.interrupt().expect("the line");
        begin(ssp, LBM | SSE);
        assert!(!line.is_raised());
        ssp.write(SSPIMSC, RX);
        for frames in 1..=FIFO_FRAMES {
            ssp.write(SSPDR, 0);
            assert_eq!(line.is_raised(), frames >= 4, "{frames} frames");
            assert_eq!(ssp.read(SSPMIS), if frames >= 4 { RX } else { 0 });
        }
        for frames in (0..FIFO_FRAMES).rev() {
            ssp.read(SSPDR);
            assert_eq!(line.is_raised(), frames >= 4, "{frames} frames");
        }
        assert_eq!(line.raises(), 1);

        // Few frames and a long wait: the receive timeout never comes.
        ssp.write(SSPIMSC, RT | ROR);
        ssp.write_n(SSPDR, &[0; 20]);
        assert!(!line.is_raised());
        assert_eq!(drain(ssp).len(), 2 * FIFO_FRAMES);
        assert_eq!(ssp.read(SSPMIS), 0);

        ssp.write(SSPIMSC, TX);
        assert!(line.is_raised(), "TX FIFO is empty");
        ssp.write(SSPCR1, LBM);
        ssp.write_n(SSPDR, &[0; 4]);
        assert!(line.is_raised());
        ssp.write(SSPDR, 0);
        assert!(!line.is_raised(), "5 words wait");
        ssp.write(SSPCR1, LBM | SSE);
        assert!(line.is_raised());
        ssp.write(SSPIMSC, 0);
        assert!(!line.is_raised());
        assert_eq!(line.raises(), 3);
    });
}

#[test]
fn misuse_goes_on_and_is_told() {
    for name in BOARDS {
        let Some(board) = open_board(name, &QemuOptions::default()) else { continue };
        let mut ssp = board.controller();
        begin(&mut ssp, LBM | SSE | MS);
        ssp.write(SSPDR, 0x5a);
        assert_eq!(drain(&mut ssp), [0x5a], "still the controller");
        ssp.write(SSPDMACR, 1);
        assert_eq!(ssp.read(SSPDMACR), 0);
        ssp.read(0x28);
        let misuse = board.misuse().expect("a log");
        assert_eq!(misuse.len(), 2, "{misuse:#?}");
        for (line, part) in misuse.iter().zip(["DMA not implemented", "Bad offset 28"]) {
            assert!(line.contains(part), "{misuse:#?}");
        }
        board.close().expect("ends well");
    }
}

#[test]
fn nothing_on_the_bus_is_zeros() {
    let Some(board) = open_board("highbank", &QemuOptions::default()) else { return };
    assert!(board.spec().storage.is_none() && board.flash_path().is_none());
    let mut ssp = board.controller();
    begin(&mut ssp, SSE);
    ssp.write_n(SSPDR, &[0xff, 0x5a]);
    assert_eq!(drain(&mut ssp), [0, 0]);
    settle(board);
}

/// PL061, both makers' alike.
mod gpio {
    pub(super) const GPIODIR: u32 = 0x400;

    /// GPIODATA where it reaches the lines of `mask` alone.
    pub(super) fn data(mask: u32) -> u32 {
        mask << 2
    }
}

#[test]
fn a_line_is_driven_by_its_masked_address_once_it_is_an_output() {
    each_board(|board, _| {
        let mut gpio = board.gpio();
        assert_eq!([gpio.read(gpio::GPIODIR), gpio.read(gpio::data(0xff))], [0, 0]);
        gpio.write(gpio::data(1), 1);
        assert_eq!(gpio.read(gpio::data(0xff)), 0, "an input");
        gpio.write(gpio::GPIODIR, 0b111);
        assert_eq!(gpio.read(gpio::data(0xff)), 0, "the earlier write, to an input, is lost");
        gpio.write(gpio::data(0b101), 0b111);
        assert_eq!(gpio.read(gpio::data(0xff)), 0b101, "the mask is the address");
        gpio.write(gpio::data(0b001), 0);
        assert_eq!([gpio.read(gpio::data(0b100)), gpio.read(gpio::data(0b001))], [0b100, 0]);
    });
}

/// The SD card of lm3s6965evb, by raw registers.
struct Card<'b> {
    ssp: QemuRegisters,
    gpio: QemuRegisters,
    _board: &'b QemuBoard,
}

impl<'b> Card<'b> {
    /// The controller on, the card's line an output and inactive.
    fn new(board: &'b QemuBoard) -> Self {
        let (mut ssp, mut gpio) = (board.controller(), board.gpio());
        begin(&mut ssp, SSE);
        gpio.write(gpio::GPIODIR, 1);
        gpio.write(gpio::data(1), 1);
        Self { ssp, gpio, _board: board }
    }

    fn select(&mut self, selected: bool) {
        self.gpio.write(gpio::data(1), u32::from(!selected));
    }

    fn exchange(&mut self, byte: u8) -> u8 {
        self.ssp.write(SSPDR, byte.into());
        let [word] = drain(&mut self.ssp)[..] else { panic!("not one word") };
        u8::try_from(word).expect("a byte")
    }

    /// A command and its R1; the card answers within 8 bytes, and wants 8 clocks after its last
    /// answer.
    fn command(&mut self, index: u8, argument: u32, crc: u8) -> Option<u8> {
        let [a, b, c, d] = argument.to_be_bytes();
        for byte in [0xff, 0x40 | index, a, b, c, d, crc] {
            self.exchange(byte);
        }
        (0..8).map(|_| self.exchange(0xff)).find(|answer| answer & 0x80 == 0)
    }

    /// ACMD41 until the card has left idle.
    fn make_ready(&mut self) {
        let ready = (0..10).any(|_| {
            self.command(55, 0, 0xff);
            self.command(41, 0, 0xff) == Some(0)
        });
        assert!(ready, "it never leaves idle");
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.exchange(0xff)).collect()
    }
}

#[test]
fn the_sd_card_answers_cmd0_with_idle() {
    let Some(board) = open_board("lm3s6965evb", &QemuOptions::default()) else { return };
    let mut card = Card::new(&board);
    assert_eq!(card.bytes(10), [0; 10], "deselected, and no pull-up");
    assert_eq!(card.command(0, 0, 0x95), Some(0), "the 0 is the line's, not the card's");
    card.select(true);
    assert_eq!(card.bytes(2), [0xff; 2]);
    assert_eq!(card.command(0, 0, 0x95), Some(0x01));
    // CMD8: 2.7 to 3.6 V, and the pattern back.
    assert_eq!(card.command(8, 0x1aa, 0x87), Some(0x01));
    assert_eq!(card.bytes(4), [0x00, 0x00, 0x01, 0xaa]);
    card.select(false);
    assert_eq!(card.exchange(0xff), 0);
    settle(board);
}

#[test]
fn the_card_says_idle_in_cmd58_and_sees_no_token_at_once() {
    let Some(board) = open_board("lm3s6965evb", &QemuOptions::default()) else { return };
    let mut card = Card::new(&board);
    card.select(true);
    assert_eq!(card.command(0, 0, 0x95), Some(0x01));
    card.make_ready();
    assert_eq!(card.command(58, 0, 0xfd), Some(0x01), "idle, although it is ready");
    // OCR, its power-up done.
    assert_eq!(card.bytes(4)[0] & 0x80, 0x80);
    assert_eq!(card.command(24, 0, 0xff), Some(0));
    card.exchange(0xfe);
    // If this were data, each byte would come back unchanged.
    assert_eq!(card.exchange(0), 0xff);
    settle(board);
}

#[test]
fn the_card_takes_a_frame_for_a_byte() {
    let Some(board) = open_board("lm3s6965evb", &QemuOptions::default()) else { return };
    let mut card = Card::new(&board);
    card.select(true);
    card.ssp.write(SSPCR0, DSS_16);
    // CMD0 in three frames, and five to hear R1 in. It comes with the eighth: six were the command.
    card.ssp.write_n(SSPDR, &[0x4000, 0, 0x0095, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff]);
    assert_eq!(drain(&mut card.ssp), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    settle(board);
}

#[test]
fn the_card_is_selected_by_a_fall_of_its_line_alone() {
    let Some(board) = open_board("lm3s6965evb", &QemuOptions::default()) else { return };
    let (mut ssp, mut gpio) = (board.controller(), board.gpio());
    begin(&mut ssp, SSE);
    ssp.write(SSPDR, 0xff);
    assert_eq!(drain(&mut ssp), [0], "the board's code keeps the card's line high");
    // Low, as GPIODATA says, but never seen to fall.
    gpio.write(gpio::GPIODIR, 1);
    gpio.write(gpio::data(1), 0);
    assert_eq!(gpio.read(gpio::data(1)), 0);
    ssp.write(SSPDR, 0xff);
    assert_eq!(drain(&mut ssp), [0]);
    gpio.write(gpio::data(1), 1);
    gpio.write(gpio::data(1), 0);
    ssp.write(SSPDR, 0xff);
    assert_eq!(drain(&mut ssp), [0xff]);
    settle(board);
}

#[test]
fn blocks_of_the_card_are_the_file() {
    const BLOCK: usize = 512;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("card.bin");
    let size = BoardSpec::find("lm3s6965evb").ok().and_then(|spec| spec.storage).expect("a card");
    let mut content = Random::new(7).bytes(size.size);
    std::fs::write(&path, &content).expect("writes");
    let Some(board) = open_board("lm3s6965evb", &on_file(&path)) else { return };
    assert_eq!(board.flash_path(), Some(path.canonicalize().expect("a path").as_path()));
    let mut card = Card::new(&board);
    card.select(true);
    assert_eq!(card.command(0, 0, 0x95), Some(0x01));
    card.make_ready();
    // The first, one in the middle, the last; a standard capacity card counts bytes.
    for block in [0, 777, size.size / BLOCK - 1] {
        let at = block * BLOCK;
        assert_eq!(card.command(17, at as u32, 0xff), Some(0));
        assert!((0..100).any(|_| card.exchange(0xff) == 0xfe), "no data token");
        assert_eq!(card.bytes(BLOCK), content[at..at + BLOCK], "block {block}");
        card.bytes(2);
    }
    let data = Random::new(8).bytes(BLOCK);
    assert_eq!(card.command(24, BLOCK as u32, 0xff), Some(0));
    card.exchange(0xff);
    card.exchange(0xfe);
    for &byte in &data {
        card.exchange(byte);
    }
    card.bytes(2);
    let accepted = (0..8).map(|_| card.exchange(0xff)).find(|byte| byte & 0x11 == 0x01);
    assert_eq!(accepted.map(|byte| byte & 0x1f), Some(0x05));
    assert!((0..100).any(|_| card.exchange(0xff) == 0xff), "busy for ever");
    card.select(false);
    settle(board);
    content[BLOCK..2 * BLOCK].copy_from_slice(&data);
    assert!(std::fs::read(&path).expect("reads") == content, "the file differs, or a neighbour");
}
