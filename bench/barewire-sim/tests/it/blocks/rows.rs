//! The rows: the facts of each block that the judges need, by its manual.

use barewire::controller::atmel::{Atmel, AtmelConfig, PeripheralSelect, Pipe};
use barewire::controller::bcm2835::{Bcm2835, Bcm2835Config};
use barewire::controller::cadence::{Cadence, CadenceConfig};
use barewire::controller::dw_ssi::DwSsiConfig;
use barewire::controller::ecspi::{Ecspi, EcspiConfig};
use barewire::controller::gpio::{
    AtmelPio, Bcm2835Gpio, GpioBank, ImxGpio, OmapGpio, Ownership, Pl061, Rp1Gpio, SiFiveGpio,
    ZynqGpio,
};
use barewire::controller::mcspi::{Mcspi, McspiConfig};
use barewire::controller::pl022::{Pl022, Pl022Config};
use barewire::controller::sifive::{SiFive, SiFiveConfig};
use barewire::controller::{ALWAYS_POLL, CsLine};
use barewire::spi::{MODE_0, MODE_1, MODE_2, MODE_3, Mode};
use barewire_sim::board::spec::CsSpec;
use barewire_sim::bring_up::{atmel_interrupt_with, atmel_with, ecspi_with};
use barewire_sim::model::bcm2835::Done;
use barewire_sim::model::cadence::Disabled;
use barewire_sim::model::dw_ssi::{Build, DwSsi};
use barewire_sim::model::{self, BlockOptions, ControllerKind};
use barewire_sim::profile::CostLevel;
use barewire_sim::wire::Driver;
use barewire_sim::{Board, SimRegisters};

use super::{Block, Burst, Exchanges, Overfill, Start, USUAL_WAY, Way};
use crate::random::{Asks, Message, USUAL, Weighted};

/// No register's offset.
const NONE: u32 = u32::MAX;

/// A bank of pins that no shorter path drives.
struct Plain<G>(G);

impl<G: GpioBank> GpioBank for Plain<G> {
    fn drive(&mut self, mask: u32, high: bool) {
        self.0.drive(mask, high);
    }

    fn output(&mut self, mask: u32, high: bool) {
        self.0.output(mask, high);
    }

    fn is_short(&self) -> bool {
        false
    }
}

fn pins(board: &Board) -> SimRegisters {
    board.gpio(0).expect("a bank")
}

fn hz(board: &Board) -> u32 {
    board.profile().reference_hz.value as u32
}

/// The board's first two chip selects.
fn lines(board: &Board) -> [CsLine; 4] {
    let line = |index: usize| match board.spec().cs[index] {
        CsSpec { driver: Driver::Native(channel), active_high, .. } => {
            CsLine::Native { channel, active_high }
        }
        CsSpec { driver: Driver::Gpio { bit, .. }, active_high, .. } => {
            CsLine::Gpio { bit, active_high }
        }
    };
    [line(0), line(1), CsLine::Absent, CsLine::Absent]
}

const LENGTHS: &[&[usize]] = &[&[1], &[3], &[4], &[5], &[16], &[64], &[256], &[4_096]];
const SLOW_LENGTHS: &[&[usize]] = &[&[1], &[3], &[16], &[64], &[256]];
/// A fast read from a flash, and one without a dummy byte.
const READS: &[&[usize]] = &[&[1], &[2], &[3], &[4], &[64], &[6, 512], &[5, 512]];

const fn exchanges(
    way: usize,
    cs: u8,
    mode: Mode,
    speed_hz: u32,
    shapes: &'static [&'static [usize]],
) -> Exchanges {
    Exchanges { way, cs, mode, speed_hz, shapes }
}

/// Makes one burst of each transfer of at most this many words, with a pulse between them.
fn one_burst_each(message: &mut Message, words_max: usize) {
    let last = message.pieces.len() - 1;
    for (index, piece) in message.pieces.iter_mut().enumerate() {
        piece.words %= words_max + 1;
        piece.word_delay_ns = 0;
        piece.delay_ns = 0;
        piece.cs_change = index < last;
    }
    message.cs_hold_ns = 0;
}

fn without_own_speeds(message: &mut Message) {
    message.pieces.iter_mut().for_each(|piece| piece.speed_hz = 0);
}

const fn atmel_way(name: &'static str, start: Start) -> Way {
    // Later than half a clock, and never so late that a word is lost: this driver may lose words.
    Way { name, start, late_ns: 0, ..USUAL_WAY }
}

/// A pipe of the driver, with a peripheral select.
macro_rules! piped {
    ($pipe:ident, $select:ident) => {
        |board, limit_ns| match limit_ns {
            None => Box::new(atmel_with(board, Pipe::$pipe, PeripheralSelect::$select)),
            Some(limit_ns) => Box::new(atmel_interrupt_with(board, Pipe::$pipe, limit_ns)),
        }
    };
}

/// Beyond 61,818 ns it is the timer's.
const ATMEL_WORD_DELAYS_NS: Weighted<u32> = &[(8, 0..=0), (2, 1..=2_999), (1, 60_000..=63_999)];

/// "SAMA5D3 Series", chapter Serial Peripheral Interface.
pub(crate) static ATMEL: Block = Block {
    name: "atmel",
    board: "sama5d36",
    data_in: 0x08,
    data_out: 0x0c,
    long: |board, _| {
        let bank = Plain(AtmelPio::new(pins(board)));
        let config = AtmelConfig {
            reference_hz: hz(board),
            chip_selects: lines(board),
            pipe: Pipe::WaitDataRead,
            peripheral_select: PeripheralSelect::Fixed,
            poll_limit_ns: ALWAYS_POLL,
        };
        Box::new(Atmel::new(board.controller(), bank, board.timer(), config))
    },
    ways: &[
        atmel_way("WaitDataRead", piped!(WaitDataRead, Fixed)),
        atmel_way("WaitDataRead, variable", piped!(WaitDataRead, Variable)),
        atmel_way("OneWord", piped!(OneWord, Fixed)),
        Way { scripted: false, ..atmel_way("OneWord, variable", piped!(OneWord, Variable)) },
        Way {
            polled_only: true,
            costs: CostLevel::Low,
            scripted: false,
            ..atmel_way("TwoWords", piped!(TwoWords, Fixed))
        },
    ],
    asks: Asks {
        speed_hz: &[
            (1, 26_400_000..=26_400_000),
            (1, 66_000_000..=66_000_000),
            (1, 600_000..=600_000),
            (1, 520_000..=139_999_999),
        ],
        bits: &[(1, 8..=8), (1, 16..=16)],
        own_bits: &[(6, 0..=0), (1, 8..=8), (1, 16..=16)],
        words: &[(1, 0..=0), (1, 1..=7), (1, 1..=39)],
        // What the block's own line can wait before its first clock.
        delay_ns: &[(4, 0..=0), (1, 1..=1_899)],
        cs_inactive_ns: &[(4, 0..=0), (1, 1..=1_899), (5, 1_900..=2_999)],
        word_delay_ns: ATMEL_WORD_DELAYS_NS,
        own_word_delay_ns: ATMEL_WORD_DELAYS_NS,
        setup_is_first_half: true,
        // The driver does not wait here: the block itself waits before it selects again.
        waits_inactive: false,
        ..USUAL
    },
    holds: true,
    longer: 6,
    bursts: &[],
    forgets: true,
    overfill: None,
    lost: Some((0x10, 1 << 3)),
    early: None,
    loops: true,
    slow_hz: 600_000,
    // Enabled as a controller, with one word on the wire and one behind it.
    left: &[
        &[(0x00, 1), (0x04, 0x000e_0011), (0x30, 0xff02), (0x14, 3)],
        &[(0x00, 1), (0x04, 0x000e_0011), (0x30, 0xff02), (0x0c, 0x80), (0x0c, 0x81)],
    ],
    pins_left: &[],
    stray_max: 0,
    exchanges: &[
        exchanges(0, 0, MODE_0, 26_400_000, READS),
        exchanges(2, 0, MODE_0, 26_400_000, READS),
        exchanges(4, 0, MODE_0, 26_400_000, READS),
        exchanges(0, 0, MODE_0, 1_000_000, &[&[6, 512]]),
        exchanges(0, 0, MODE_0, 44_000_000, &[&[6, 512]]),
        exchanges(0, 0, MODE_0, 66_000_000, &[&[6, 512]]),
        exchanges(4, 0, MODE_0, 1_000_000, &[&[6, 512]]),
        exchanges(4, 0, MODE_0, 44_000_000, &[&[6, 512]]),
        exchanges(4, 0, MODE_0, 66_000_000, &[&[6, 512]]),
        exchanges(0, 1, MODE_0, 26_400_000, &[&[2], &[6, 512]]),
    ],
};

const fn done(name: &'static str, late_ns: u64, options: fn() -> BlockOptions) -> Way {
    Way { name, options, late_ns, ..USUAL_WAY }
}

/// "BCM2835 ARM Peripherals", chapter 10.
pub(crate) static BCM2835: Block = Block {
    name: "bcm2835",
    board: "rpi3",
    data_in: 0x04,
    data_out: 0x04,
    long: |board, _| {
        let bank = Plain(Bcm2835Gpio::new(pins(board)));
        let (core_hz, chip_selects) = (hz(board), lines(board));
        let config = Bcm2835Config { core_hz, chip_selects, poll_limit_ns: ALWAYS_POLL };
        Box::new(Bcm2835::new(board.controller(), bank, board.timer(), config))
    },
    ways: &[
        done("DONE read-only", 30_000, BlockOptions::default),
        Way {
            scripted: false,
            ..done("DONE needed", 30_000, || BlockOptions::default().with(Done::Needed))
        },
    ],
    asks: Asks {
        speed_hz: &[
            (1, 3_600_000..=3_600_000),
            (1, 200_000_000..=200_000_000),
            (1, 400_000_000..=400_000_000),
            (1, 20_000..=99_999_999),
        ],
        words: &[(1, 0..=0), (1, 1..=7), (1, 1..=69), (1, 60..=139), (1, 500..=699)],
        native: without_own_speeds,
        // Nine clocks a byte, the last one's ninth behind its back.
        rest_clocks: 1,
        unwaited_clocks: 1,
        selects_without_words: true,
        ..USUAL
    },
    holds: true,
    longer: 72,
    bursts: &[],
    forgets: true,
    overfill: None,
    lost: None,
    early: Some((0x00, 1 << 16, 1 << 17)),
    loops: false,
    slow_hz: 50_000,
    // TA on no line, with and without bytes; interrupts on.
    left: &[
        &[(0x08, 1_000), (0x00, 0x62e)],
        &[(0x08, 1_000), (0x00, 0x6ae), (0x04, 0x80), (0x04, 0x81)],
    ],
    pins_left: &[],
    stray_max: 0,
    exchanges: &[
        exchanges(0, 0, MODE_0, 3_600_000, LENGTHS),
        exchanges(0, 0, MODE_0, 20_000_000, LENGTHS),
        exchanges(0, 1, MODE_0, 3_600_000, LENGTHS),
    ],
};

/// "Zynq-7000 SoC Technical Reference Manual" (UG585), chapter 17 and appendix B.30.
pub(crate) static CADENCE: Block = Block {
    name: "cadence",
    board: "zynq",
    data_in: 0x20,
    data_out: 0x1c,
    long: |board, _| {
        let bank = Plain(ZynqGpio::new(pins(board)));
        let (reference_hz, chip_selects) = (hz(board), lines(board));
        let config = CadenceConfig { reference_hz, chip_selects, poll_limit_ns: ALWAYS_POLL };
        Box::new(Cadence::new(board.controller(), bank, board.timer(), config))
    },
    ways: &[
        USUAL_WAY,
        Way {
            name: "FIFOs emptied",
            options: || BlockOptions::default().with(Disabled::Empties),
            scripted: false,
            ..USUAL_WAY
        },
    ],
    asks: Asks {
        speed_hz: &[
            (1, 3_600_000..=3_600_000),
            (1, 41_666_666..=41_666_666),
            (1, 400_000_000..=400_000_000),
            (1, 660_000..=99_999_999),
        ],
        words: &[(1, 0..=0), (1, 1..=7), (1, 1..=69), (1, 60..=139), (1, 250..=599)],
        ..USUAL
    },
    holds: true,
    longer: 260,
    bursts: &[],
    forgets: true,
    overfill: None,
    lost: Some((0x04, 1)),
    early: Some((0x04, 1 << 2, 1 << 4)),
    loops: false,
    slow_hz: 660_000,
    // Enabled and disabled, by automatic and manual chip select, without bytes and with; a manual start; a target.
    left: &[
        &[(0x00, 0x0000_3839), (0x08, 0x7f), (0x14, 1), (0x28, 64), (0x2c, 64)],
        &[(0x00, 0x0000_3839), (0x14, 1), (0x1c, 0x80), (0x1c, 0x81), (0x1c, 0x82)],
        &[(0x00, 0x0000_7839), (0x14, 1), (0x18, 0xffff_ffff), (0x1c, 0x80), (0x1c, 0x81)],
        &[(0x00, 0x0000_b83f), (0x14, 1), (0x1c, 0x80), (0x1c, 0x81), (0x1c, 0x82)],
        &[(0x00, 0x0002_3c38), (0x14, 1), (0x1c, 0x80), (0x1c, 0x81), (0x1c, 0x82)],
        &[(0x00, 0x0000_7c39), (0x14, 0), (0x1c, 0x80), (0x1c, 0x81), (0x1c, 0x82)],
    ],
    pins_left: &[],
    // A byte that was under way is cut off under its chip.
    stray_max: 1,
    exchanges: &[
        exchanges(0, 0, MODE_0, 3_600_000, SLOW_LENGTHS),
        exchanges(0, 0, MODE_0, 20_000_000, LENGTHS),
        exchanges(0, 0, MODE_0, 20_000_000, &[&[128], &[129]]),
        exchanges(0, 0, MODE_0, 50_000_000, &[&[1], &[4], &[256], &[4_096]]),
        exchanges(0, 1, MODE_0, 20_000_000, &[&[1], &[3], &[16], &[256], &[4_096]]),
    ],
};

/// DW_apb_ssi with other build options than RP1's.
macro_rules! built {
    ($words:literal, $wide:literal) => {
        Way {
            name: concat!("FIFOs of ", $words, " words, wide: ", $wide),
            scripted: false,
            kind: Some(&ControllerKind {
                name: model::dw_ssi::KIND.name,
                bytes: model::dw_ssi::KIND.bytes,
                registers: model::dw_ssi::KIND.registers,
                model: |hz, _| {
                    let build =
                        Build { tx_words: $words, rx_words: $words - 1, wide: $wide, ..Build::RP1 };
                    Box::new(DwSsi::new(hz, build))
                },
            }),
            ..USUAL_WAY
        }
    };
}

/// The capacity of RP1's FIFO, in frames of 32, 16 or 8 bits.
const DW_BURST: Burst = Burst {
    mode: MODE_0,
    bits: 8,
    taken: &[1, 2, 3, 4, 5, 63, 64, 66, 128, 192, 256],
    refused: &[(260, 256), (65, 64), (130, 128), (195, 192)],
};

/// Synopsys' databook of DW_apb_ssi 4.
pub(crate) static DW_SSI: Block = Block {
    name: "dw_ssi",
    board: "rpi5",
    data_in: 0x60,
    data_out: 0x60,
    long: |board, _| {
        let bank = Plain(Rp1Gpio::new(pins(board)));
        let (reference_hz, chip_selects) = (hz(board), lines(board));
        let config =
            DwSsiConfig { reference_hz, chip_selects, native_lines: 2, poll_limit_ns: ALWAYS_POLL };
        Box::new(barewire::controller::dw_ssi::DwSsi::new(
            board.controller(),
            bank,
            board.timer(),
            config,
        ))
    },
    ways: &[USUAL_WAY, built!(3, true), built!(16, false), built!(256, true)],
    asks: Asks {
        chip_select: &[(3, 0..=0), (1, 1..=1)],
        speed_hz: &[
            (1, 3_600_000..=3_600_000),
            (1, 100_000_000..=100_000_000),
            (1, 20_000..=99_999_999),
        ],
        bits: &[(2, 8..=8), (1, 16..=16), (1, 32..=32)],
        own_bits: &[(9, 0..=0), (1, 8..=8), (1, 16..=16), (1, 32..=32)],
        words: &[(1, 0..=0), (1, 1..=9), (1, 4..=39), (1, 60..=139), (1, 250..=599)],
        native: |message| {
            one_burst_each(message, 64);
            message.cs_setup_ns = 0;
        },
        ..USUAL
    },
    holds: false,
    longer: 260,
    bursts: &[
        Burst { mode: MODE_0, ..DW_BURST },
        Burst { mode: MODE_1, ..DW_BURST },
        Burst { mode: MODE_3, ..DW_BURST },
    ],
    forgets: true,
    overfill: None,
    lost: Some((0x34, 1 << 3)),
    early: None,
    loops: true,
    slow_hz: 50_000,
    left: &[
        &[(0x00, 31 << 16), (0x14, 1_000), (0x10, 1), (0x4c, 3)],
        &[(0x00, 31 << 16), (0x14, 1_000), (0x10, 1), (0x4c, 3), (0x08, 1)],
        &[(0x00, 31 << 16), (0x14, 1_000), (0x10, 1), (0x08, 1), (0x60, 0x80)],
        &[
            (0x00, 31 << 16),
            (0x14, 1_000),
            (0x10, 1),
            (0x08, 1),
            (0x60, 0x80),
            (0x60, 0x81),
            (0x60, 0x82),
        ],
    ],
    pins_left: &[],
    stray_max: 0,
    exchanges: &[
        exchanges(0, 0, MODE_0, 3_600_000, SLOW_LENGTHS),
        exchanges(0, 0, MODE_0, 20_000_000, LENGTHS),
        exchanges(0, 0, MODE_0, 20_000_000, &[&[257]]),
        exchanges(0, 0, MODE_0, 50_000_000, &[&[1], &[4], &[256], &[4_096]]),
        exchanges(0, 1, MODE_0, 20_000_000, &[&[1], &[3], &[4], &[16], &[256]]),
    ],
};

/// "i.MX 8M Plus Applications Processor Reference Manual", chapter Enhanced Configurable SPI.
pub(crate) static ECSPI: Block = Block {
    name: "ecspi",
    board: "imx8mp",
    data_in: 0x00,
    data_out: 0x04,
    long: |board, _| {
        let bank = Plain(ImxGpio::new(pins(board), Ownership::Shared));
        let (reference_hz, chip_selects) = (hz(board), lines(board));
        let config = EcspiConfig { reference_hz, chip_selects, poll_limit_ns: ALWAYS_POLL };
        Box::new(Ecspi::new(board.controller(), bank, board.timer(), config))
    },
    ways: &[
        USUAL_WAY,
        Way {
            name: "exclusive bank",
            scripted: false,
            start: |board, limit_ns| match limit_ns {
                None => Box::new(ecspi_with(board, Ownership::Exclusive)),
                Some(_) => (USUAL_WAY.start)(board, limit_ns),
            },
            ..USUAL_WAY
        },
    ],
    asks: Asks {
        chip_select: &[(3, 0..=0), (1, 1..=1)],
        speed_hz: &[
            (1, 20_000_000..=20_000_000),
            (1, 80_000_000..=80_000_000),
            (1, 1_000_000..=1_000_000),
            (1, 20_000..=99_999_999),
        ],
        bits: &[(1, 8..=8), (1, 16..=16), (1, 32..=32)],
        own_bits: &[(9, 0..=0), (1, 8..=8), (1, 16..=16), (1, 32..=32)],
        words: &[(1, 0..=0), (1, 1..=7), (1, 1..=69), (1, 60..=139), (1, 500..=1_199)],
        native: |message| {
            one_burst_each(message, 64);
            without_own_speeds(message);
            message.cs_setup_ns = message.cs_setup_ns.min(700);
        },
        ..USUAL
    },
    holds: false,
    longer: 260,
    bursts: &[Burst {
        mode: MODE_3,
        bits: 8,
        taken: &[1, 2, 3, 4, 5, 63, 64, 66, 255, 256],
        refused: &[(257, 256), (260, 256)],
    }],
    forgets: true,
    overfill: None,
    lost: None,
    early: Some((0x18, 1 << 7, 1 << 3)),
    loops: true,
    slow_hz: 50_000,
    // Enabled, every channel a controller, without and with words, and in the middle of a burst.
    left: &[
        &[(0x08, 0x0070_00f1), (0x10, 0xff)],
        &[(0x08, 0x03f7_f0f1), (0x04, 0x80), (0x04, 0x81)],
        &[(0x08, 0x0077_f0f1), (0x0c, 0xff00), (0x04, 0x80)],
    ],
    pins_left: &[],
    stray_max: 0,
    exchanges: &[
        exchanges(0, 1, MODE_0, 20_000_000, &[&[1], &[4], &[5], &[13], &[64], &[256]]),
        exchanges(1, 0, MODE_0, 20_000_000, LENGTHS),
        exchanges(1, 0, MODE_0, 20_000_000, &[&[13], &[512]]),
        exchanges(0, 0, MODE_0, 20_000_000, LENGTHS),
        exchanges(0, 0, MODE_0, 20_000_000, &[&[13], &[512], &[6, 512]]),
    ],
};

/// "AM335x and AMIC110 Sitara Processors Technical Reference Manual", chapter 24.
pub(crate) static MCSPI: Block = Block {
    name: "mcspi",
    board: "beaglebone",
    data_in: 0x13c,
    data_out: 0x138,
    long: |board, _| {
        let bank = Plain(OmapGpio::new(pins(board)));
        let (reference_hz, chip_selects) = (hz(board), lines(board));
        let config =
            McspiConfig { reference_hz, chip_selects, d0_sends: false, poll_limit_ns: ALWAYS_POLL };
        Box::new(Mcspi::new(board.controller(), bank, board.timer(), config))
    },
    ways: &[USUAL_WAY],
    asks: Asks {
        speed_hz: &[
            (1, 3_600_000..=3_600_000),
            (1, 48_000_000..=48_000_000),
            (1, 20_000..=99_999_999),
        ],
        bits: &[(2, 8..=8), (1, 16..=16), (1, 32..=32)],
        own_bits: &[(9, 0..=0), (1, 8..=8), (1, 16..=16), (1, 32..=32)],
        ..USUAL
    },
    holds: true,
    longer: 72,
    bursts: &[],
    forgets: true,
    overfill: None,
    lost: None,
    early: None,
    loops: false,
    slow_hz: 50_000,
    left: &[
        // A target, with interrupts on; a controller whose lines nothing has set.
        &[(0x11c, 0x3_777f), (0x17c, 0x5_0f0f), (0x12c, 0x1006_0000), (0x134, 1)],
        &[(0x128, 1)],
        // Three channels that claim the FIFO, one of them enabled.
        &[
            (0x154, 0x0806_0000),
            (0x168, 0x1006_0000),
            (0x12c, 0x3811_03fc),
            (0x134, 0x101),
            (0x128, 1),
        ],
        // A message to a chip on a GPIO and one to a chip on the block's line, with words under way.
        &[
            (0x140, 0x41),
            (0x12c, 0x3811_03fd),
            (0x128, 1),
            (0x134, 0x101),
            (0x138, 0x80),
            (0x138, 0x81),
            (0x11c, 0x2_0004),
        ],
        &[
            (0x12c, 0x40),
            (0x140, 0x3811_03fc),
            (0x128, 1),
            (0x148, 0x101),
            (0x14c, 0x80),
            (0x14c, 0x81),
        ],
    ],
    pins_left: &[],
    // The word that was under way under its chip.
    stray_max: 1,
    exchanges: &[
        exchanges(0, 0, MODE_0, 3_600_000, SLOW_LENGTHS),
        exchanges(0, 0, MODE_0, 24_000_000, LENGTHS),
        exchanges(0, 0, MODE_0, 24_000_000, &[&[33], &[6, 512]]),
        exchanges(0, 0, MODE_0, 48_000_000, &[&[1], &[4], &[256], &[4_096]]),
        exchanges(0, 1, MODE_0, 24_000_000, &[&[1], &[4], &[256]]),
    ],
};

/// Arm DDI 0194, "PrimeCell Synchronous Serial Port (PL022)".
pub(crate) static PL022: Block = Block {
    name: "pl022",
    board: "highbank",
    data_in: 0x08,
    data_out: 0x08,
    long: |board, _| {
        let bank = Plain(Pl061::new(pins(board)));
        // Its own line excludes all others.
        let mut chip_selects = lines(board);
        chip_selects[1] = CsLine::Absent;
        let config =
            Pl022Config { reference_hz: hz(board), chip_selects, poll_limit_ns: ALWAYS_POLL };
        Box::new(Pl022::new(board.controller(), bank, board.timer(), config))
    },
    ways: &[USUAL_WAY],
    asks: Asks {
        chip_select: &[(1, 0..=0)],
        speed_hz: &[
            (1, 3_600_000..=3_600_000),
            (1, 75_000_000..=75_000_000),
            (1, 400_000_000..=400_000_000),
            (1, 20_000..=99_999_999),
        ],
        bits: &[(2, 8..=8), (1, 16..=16)],
        words: &[(1, 0..=0), (1, 1..=9), (1, 4..=39), (1, 120..=139)],
        // Half a one before the first capture, half a one after the last.
        unwaited_clocks: 1,
        ..USUAL
    },
    holds: false,
    longer: 20,
    bursts: &[
        // The line falls for each frame where CPHA is 0.
        Burst { mode: MODE_0, bits: 8, taken: &[1], refused: &[(2, 1), (18, 1)] },
        Burst { mode: MODE_2, bits: 16, taken: &[2], refused: &[(4, 2), (18, 2)] },
        // Two bytes go in a frame, unless there is one more.
        Burst {
            mode: MODE_1,
            bits: 8,
            taken: &[1, 2, 3, 7, 8, 10, 16],
            refused: &[(9, 8), (18, 16)],
        },
        Burst { mode: MODE_3, bits: 16, taken: &[2, 4, 14, 16], refused: &[(18, 16)] },
    ],
    forgets: true,
    overfill: Some(Overfill { words: 8, busy: (0x0c, 0x10) }),
    lost: Some((0x18, 1)),
    early: None,
    loops: true,
    slow_hz: 50_000,
    left: &[
        &[(0x10, 10), (0x00, 0x0f07), (0x14, 0xf), (0x24, 3)],
        // A target.
        &[(0x10, 10), (0x00, 0x0f07), (0x04, 4), (0x04, 6)],
        &[
            (0x10, 10),
            (0x00, 0x0f07),
            (0x08, 0x80),
            (0x08, 0x81),
            (0x08, 0x82),
            (0x14, 0xf),
            (0x24, 3),
        ],
        &[(0x10, 10), (0x00, 0x0f07), (0x04, 2), (0x14, 0xf), (0x24, 3)],
        &[
            (0x10, 10),
            (0x00, 0x0f07),
            (0x04, 2),
            (0x08, 0x80),
            (0x08, 0x81),
            (0x08, 0x82),
            (0x08, 0x83),
        ],
    ],
    // The chip select's pin is an output, high.
    pins_left: &[(0x400, 1), (0x004, 1)],
    stray_max: 0,
    exchanges: &[
        exchanges(0, 0, MODE_0, 3_600_000, SLOW_LENGTHS),
        exchanges(0, 0, MODE_0, 20_000_000, LENGTHS),
        exchanges(0, 0, MODE_3, 20_000_000, LENGTHS),
        exchanges(0, 0, MODE_3, 75_000_000, &[&[4], &[256]]),
        exchanges(0, 1, MODE_0, 20_000_000, &[&[1]]),
        exchanges(0, 1, MODE_3, 20_000_000, &[&[1], &[3], &[4], &[16]]),
    ],
};

/// "SiFive FU540-C000 Manual", chapter 20.
pub(crate) static SIFIVE: Block = Block {
    name: "sifive",
    board: "unleashed",
    // A read of rxdata both polls the block and takes a byte, so the values are in the script.
    data_in: NONE,
    data_out: 0x48,
    long: |board, _| {
        let bank = Plain(SiFiveGpio::new(pins(board), Ownership::Shared));
        let (reference_hz, chip_selects) = (hz(board), lines(board));
        let config = SiFiveConfig { reference_hz, chip_selects, poll_limit_ns: ALWAYS_POLL };
        Box::new(SiFive::new(board.controller(), bank, board.timer(), config))
    },
    ways: &[USUAL_WAY],
    asks: Asks {
        speed_hz: &[
            (1, 3_600_000..=3_600_000),
            (1, 250_000_000..=250_000_000),
            (1, 62_000..=99_999_999),
        ],
        native: |message| {
            message.cs_setup_ns = 0;
            without_own_speeds(message);
        },
        ..USUAL
    },
    holds: true,
    longer: 20,
    bursts: &[],
    forgets: false,
    overfill: None,
    lost: None,
    early: None,
    loops: false,
    slow_hz: 62_000,
    // With the flash interface on, as boot code leaves it, and with each CSMODE; each without bytes
    // in the FIFO and with some.
    left: &[
        &[(0x60, 1), (0x00, 100), (0x18, 0), (0x70, 3), (0x50, 7)],
        &[(0x60, 1), (0x00, 100), (0x18, 0), (0x48, 0x80), (0x48, 0x81), (0x48, 0x82)],
        &[(0x60, 0), (0x00, 100), (0x18, 2), (0x70, 3)],
        &[
            (0x60, 0),
            (0x00, 100),
            (0x18, 2),
            (0x48, 0x80),
            (0x48, 0x81),
            (0x48, 0x82),
            (0x48, 0x83),
        ],
        &[
            (0x60, 0),
            (0x00, 100),
            (0x18, 0),
            (0x48, 0x80),
            (0x48, 0x81),
            (0x48, 0x82),
            (0x48, 0x83),
        ],
        &[
            (0x60, 0),
            (0x00, 100),
            (0x18, 3),
            (0x48, 0x80),
            (0x48, 0x81),
            (0x48, 0x82),
            (0x48, 0x83),
        ],
    ],
    pins_left: &[],
    // A byte that was under way is cut off under its chip.
    stray_max: 2,
    exchanges: &[
        exchanges(0, 0, MODE_0, 3_600_000, SLOW_LENGTHS),
        exchanges(0, 0, MODE_0, 20_000_000, LENGTHS),
        exchanges(0, 0, MODE_0, 20_000_000, &[&[8], &[9]]),
        exchanges(0, 0, MODE_0, 50_000_000, &[&[1], &[4], &[256], &[4_096]]),
        exchanges(0, 1, MODE_0, 20_000_000, &[&[1], &[3], &[8], &[16], &[256], &[4_096]]),
    ],
};
