//! Instructions of a message by its length, through each driver, its registers ready at once.
//!
//! # How it works
//! Each case is one call of a function that callgrind collects in and after which it writes a profile
//! (`--dump-after`). So one run under callgrind counts all cases, in order. The bus is of the controller's own
//! type, as in a program that knows its board.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

use barewire::bus::{Bus, Device, Prepared, PreparedMessage};
use barewire::controller::atmel::{Atmel, AtmelConfig, PeripheralSelect, Pipe};
use barewire::controller::bcm2835::{Bcm2835, Bcm2835Config};
use barewire::controller::cadence::{Cadence, CadenceConfig};
use barewire::controller::dw_ssi::{DwSsi, DwSsiConfig};
use barewire::controller::ecspi::{Ecspi, EcspiConfig};
use barewire::controller::gpio::{ImxGpio, Ownership};
use barewire::controller::mcspi::{Mcspi, McspiConfig};
use barewire::controller::pl022::{Pl022, Pl022Config};
use barewire::controller::sifive::{SiFive, SiFiveConfig};
use barewire::controller::{ALWAYS_POLL, Controller, CsLine};
use barewire::reg::Registers;
use barewire::spi::{Settings, Transfer};

use serde::Serialize;

use super::count::Counter;
use super::still::Still;

/// The value of `--count-op` for one call of each case.
pub(super) const COUNT_OP: &str = "lengths";

/// The function in which callgrind collects.
const SYMBOL: &str = "bench_op_length";

/// The drivers, in the order in which they run.
const DRIVERS: [&str; 8] =
    ["ecspi", "bcm2835", "pl022", "dw_ssi", "atmel", "sifive", "mcspi", "cadence"];

/// The messages of each driver: bytes of one exchange, or of a write and the transfers after it.
const MESSAGES: [&str; 11] =
    ["4", "5", "6", "8", "16", "25", "64", "256", "4+4", "4+4+4", "4+4+4+4"];

/// How each message is run.
const PATHS: [&str; 2] = ["prepared", "sync"];

/// Instructions of one message. This is a row of the JSON, so its field names are an interface.
#[derive(Debug, Serialize)]
pub(super) struct LengthCount {
    pub(super) driver: &'static str,
    pub(super) path: &'static str,
    pub(super) message: &'static str,
    pub(super) instructions: u64,
}

/// Counts every case; empty if they cannot be counted.
pub(super) fn count(counter: &mut Counter) -> Vec<LengthCount> {
    let cases = DRIVERS.into_iter().flat_map(|driver| {
        PATHS.into_iter().flat_map(move |path| MESSAGES.map(|message| (driver, path, message)))
    });
    let counts = counter.count_each(COUNT_OP, SYMBOL, DRIVERS.len() * PATHS.len() * MESSAGES.len());
    let counted = cases.zip(counts);
    counted
        .map(|((driver, path, message), instructions)| LengthCount {
            driver,
            path,
            message,
            instructions,
        })
        .collect()
}

/// The counts as a table: a line for each driver and path, a column for each message.
pub(super) fn text(counts: &[LengthCount]) -> String {
    let mut text = String::new();
    for line in counts.chunk_by(|a, b| (a.driver, a.path) == (b.driver, b.path)) {
        if text.is_empty() {
            text += &format!("{:<17}", "instructions by");
            line.iter().for_each(|count| text += &format!(" {:>7}", count.message));
            text.push('\n');
        }
        text += &format!("{:<8} {:<8}", line[0].driver, line[0].path);
        line.iter().for_each(|count| text += &format!(" {:>7}", count.instructions));
        text.push('\n');
    }
    if !text.is_empty() {
        text += "bytes of one exchange, or of transfers under one chip select; registers ready at once\n\n";
    }
    text
}

// Named functions that are never inlined: the symbols callgrind collects in.

#[inline(never)]
fn bench_op_length_prepared<C: Controller, const N: usize>(prepared: &mut Prepared<'_, C, N>) {
    let _ = black_box(prepared.run());
}

#[inline(never)]
fn bench_op_length_message<C: Controller>(prepared: &mut PreparedMessage<'_, '_, '_, C>) {
    let _ = black_box(prepared.run());
}

#[inline(never)]
fn bench_op_length_sync<C: Controller>(device: &Device<'_, C>, message: &mut [Transfer<'_>]) {
    let _ = black_box(device.sync(message));
}

/// The registers of a block, in ordinary memory: an access is one instruction, as on a board. Writes do not change
/// the values that reads return.
struct Ready {
    read: [AtomicU32; 96],
    written: [AtomicU32; 96],
    /// The accesses of a [`Block`] that counts them.
    accesses: AtomicU32,
}

impl Ready {
    const fn new() -> Self {
        Self {
            read: [const { AtomicU32::new(0) }; 96],
            written: [const { AtomicU32::new(0) }; 96],
            accesses: AtomicU32::new(0),
        }
    }

    /// From now on the register at `offset` reads as `value`.
    fn says(&self, offset: usize, value: u32) {
        self.read[offset / 4].store(value, Ordering::Relaxed);
    }
}

/// The block of one driver. `STORES` registers, from this offset to the next, read as they were written. Accesses are
/// counted only if `COUNTS`, since counting takes instructions.
struct Block<'r, const STORES: u32, const COUNTS: bool>(&'r Ready);

/// No register.
const NONE: u32 = u32::MAX;
/// DW_apb_ssi's TXFTLR and RXFTLR, whose values tell the depth of the FIFOs.
const DW_THRESHOLDS: u32 = 0x18;

impl<const STORES: u32, const COUNTS: bool> Block<'_, STORES, COUNTS> {
    #[inline(always)]
    fn count(&self) {
        if COUNTS {
            self.0.accesses.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<const STORES: u32, const COUNTS: bool> Registers for Block<'_, STORES, COUNTS> {
    #[inline(always)]
    fn read(&mut self, offset: u32) -> u32 {
        self.count();
        let stored = offset & !0x7 == STORES;
        let registers = if stored { &self.0.written } else { &self.0.read };
        registers[offset as usize / 4].load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn write(&mut self, offset: u32, value: u32) {
        self.count();
        self.0.written[offset as usize / 4].store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    fn discard_n(&mut self, offset: u32, n: usize) {
        self.read_each(offset, 0..n, |_, _| ());
    }

    #[inline(always)]
    fn write_each<I: IntoIterator<Item = u32>>(&mut self, offset: u32, words: I) {
        words.into_iter().for_each(|word| self.write(offset, word));
    }

    #[inline(always)]
    fn read_each<I: ExactSizeIterator, F: FnMut(I::Item, u32)>(
        &mut self,
        offset: u32,
        places: I,
        mut put: F,
    ) {
        places.for_each(|place| put(place, self.read(offset)));
    }
}

const CHIP_SELECTS: [CsLine; 4] =
    [CsLine::Gpio { bit: 9, active_high: false }, CsLine::Absent, CsLine::Absent, CsLine::Absent];

/// Makes one call of each case: all messages of a driver prepared, then all by sync, then the next driver's. If accesses
/// are counted, returns those of each, and of a read of 1 KiB by sync, as a flash chip's, after each driver's.
pub(super) fn run<const COUNTS: bool>() -> Vec<u32> {
    let reference_hz = 80_000_000;
    let (chip_selects, poll_limit_ns) = (CHIP_SELECTS, ALWAYS_POLL);
    let (pins, regs) = (Ready::new(), Ready::new());
    let mut accesses = Vec::new();
    let gpio = || ImxGpio::new(Block::<NONE, COUNTS>(&pins), Ownership::Shared);
    // STATREG: RR and TE, as QEMU's model has them.
    regs.says(0x18, 0x9);
    let config = EcspiConfig { reference_hz, chip_selects, poll_limit_ns };
    run_each::<_, COUNTS>(
        Ecspi::new(Block::<NONE, COUNTS>(&regs), gpio(), Still, config),
        [&pins, &regs],
        &mut accesses,
    );

    let regs = Ready::new();
    // CS: DONE and RXD.
    regs.says(0x00, 0x3_0000);
    let config = Bcm2835Config { core_hz: 250_000_000, chip_selects, poll_limit_ns };
    run_each::<_, COUNTS>(
        Bcm2835::new(Block::<NONE, COUNTS>(&regs), gpio(), Still, config),
        [&pins, &regs],
        &mut accesses,
    );

    let regs = Ready::new();
    let config = Pl022Config { reference_hz, chip_selects, poll_limit_ns };
    let pl022 = Pl022::new(Block::<NONE, COUNTS>(&regs), gpio(), Still, config);
    // Only now, since bring-up waits for an empty FIFO. SSPSR: TFE, TNF and RNE; SSPRIS: RXRIS.
    regs.says(0x0c, 0x7);
    regs.says(0x18, 0x4);
    run_each::<_, COUNTS>(pl022, [&pins, &regs], &mut accesses);

    let regs = Ready::new();
    // CTRLR0: frames of 32 bits; RXFLR: full; SR: RFNE.
    regs.says(0x00, 0x1f << 16);
    regs.says(0x24, 256);
    regs.says(0x28, 0x8);
    let config = DwSsiConfig { reference_hz, chip_selects, native_lines: 1, poll_limit_ns };
    run_each::<_, COUNTS>(
        DwSsi::new(Block::<DW_THRESHOLDS, COUNTS>(&regs), gpio(), Still, config),
        [&pins, &regs],
        &mut accesses,
    );

    let regs = Ready::new();
    // SR: RDRF, TDRE, TXEMPTY.
    regs.says(0x10, 0x203);
    let config = AtmelConfig {
        reference_hz,
        chip_selects,
        pipe: Pipe::WaitDataRead,
        peripheral_select: PeripheralSelect::Fixed,
        poll_limit_ns,
    };
    run_each::<_, COUNTS>(
        Atmel::new(Block::<NONE, COUNTS>(&regs), gpio(), Still, config),
        [&pins, &regs],
        &mut accesses,
    );

    let regs = Ready::new();
    let config = SiFiveConfig { reference_hz, chip_selects, poll_limit_ns };
    run_each::<_, COUNTS>(
        SiFive::new(Block::<NONE, COUNTS>(&regs), gpio(), Still, config),
        [&pins, &regs],
        &mut accesses,
    );

    let regs = Ready::new();
    // CH0STAT: TXFFE.
    regs.says(0x130, 0x8);
    let config = McspiConfig { reference_hz, chip_selects, d0_sends: false, poll_limit_ns };
    run_each::<_, COUNTS>(
        Mcspi::new(Block::<NONE, COUNTS>(&regs), gpio(), Still, config),
        [&pins, &regs],
        &mut accesses,
    );

    let regs = Ready::new();
    // Status: the transmit FIFO is below its threshold, the receive FIFO at its own.
    regs.says(0x04, 0x14);
    let config = CadenceConfig { reference_hz, chip_selects, poll_limit_ns };
    run_each::<_, COUNTS>(
        Cadence::new(Block::<NONE, COUNTS>(&regs), gpio(), Still, config),
        [&pins, &regs],
        &mut accesses,
    );
    accesses
}

/// The calls of one driver's cases.
struct Cases<'c> {
    registers: [&'c Ready; 2],
    accesses: &'c mut Vec<u32>,
}

impl Cases<'_> {
    /// Makes a call, and records how many register accesses it made.
    fn call(&mut self, call: impl FnOnce()) {
        let count =
            || self.registers.map(|it| it.accesses.load(Ordering::Relaxed)).iter().sum::<u32>();
        let before = count();
        call();
        self.accesses.push(count() - before);
    }

    fn prepared<C: Controller, const N: usize>(&mut self, device: &Device<'_, C>) {
        let mut prepared = device.prepare([0x9f; N]).expect("bytes are whole words");
        // The first run configures the block. Only the later ones are counted.
        prepared.run().expect("the registers are ready");
        self.call(|| bench_op_length_prepared(&mut prepared));
        black_box(&mut prepared);
    }

    fn message<C: Controller>(&mut self, device: &Device<'_, C>, message: &mut [Transfer<'_>]) {
        let mut prepared = device.prepare_message(message).expect("bytes are whole words");
        prepared.run().expect("the registers are ready");
        self.call(|| bench_op_length_message(&mut prepared));
    }

    fn sync<C: Controller>(&mut self, device: &Device<'_, C>, message: &mut [Transfer<'_>]) {
        device.sync(message).expect("the registers are ready");
        self.call(|| bench_op_length_sync(device, message));
        black_box(message);
    }
}

fn run_each<C: Controller, const COUNTS: bool>(
    controller: C,
    registers: [&Ready; 2],
    accesses: &mut Vec<u32>,
) {
    let bus = Bus::new(controller);
    let bus = black_box(&bus);
    let device = &bus.device(&Settings::new(0, 20_000_000)).expect("the block can do it");
    let mut cases = Cases { registers, accesses };
    cases.prepared::<_, 4>(device);
    cases.prepared::<_, 5>(device);
    cases.prepared::<_, 6>(device);
    cases.prepared::<_, 8>(device);
    cases.prepared::<_, 16>(device);
    cases.prepared::<_, 25>(device);
    cases.prepared::<_, 64>(device);
    cases.prepared::<_, 256>(device);
    for parts in 2..=4 {
        with_parts(parts, |message| cases.message(device, message));
    }
    for len in [4, 5, 6, 8, 16, 25, 64, 256] {
        let (tx, mut rx) = (vec![0x9f; len], vec![0; len]);
        cases.sync(device, &mut [Transfer::exchange(&tx, &mut rx)]);
    }
    for parts in 2..=4 {
        with_parts(parts, |message| cases.sync(device, message));
    }
    if COUNTS {
        let mut long = [0; 1_024];
        cases.sync(device, &mut [Transfer::write(&[3, 0, 0, 0]), Transfer::read(&mut long)]);
    }
}

/// Gives `run` a message of `parts` transfers of 4 bytes: writes, then as many reads or one less.
fn with_parts(parts: usize, run: impl FnOnce(&mut [Transfer<'_>])) {
    let tx = [0x9f, 0, 0, 0];
    let mut rx = [[0; 4]; 2];
    let mut message: Vec<_> = (0..parts.div_ceil(2)).map(|_| Transfer::write(&tx)).collect();
    message.extend(rx.iter_mut().take(parts / 2).map(|rx| Transfer::read(rx)));
    run(&mut message);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of a table for each driver and path.
    fn counts(values: impl IntoIterator<Item = u32>) -> Vec<LengthCount> {
        let cases = DRIVERS.into_iter().flat_map(|driver| {
            PATHS.into_iter().flat_map(move |path| MESSAGES.map(|message| (driver, path, message)))
        });
        let each = cases.zip(values).map(|((driver, path, message), value)| LengthCount {
            driver,
            path,
            message,
            instructions: value.into(),
        });
        each.collect()
    }

    /// Set `BAREWIRE_BLESS=1` to write the table anew.
    #[test]
    fn register_accesses_are_as_reviewed() {
        let of_driver = PATHS.len() * MESSAGES.len();
        let (mut accesses, mut long) = (Vec::new(), String::new());
        for (counts, driver) in run::<true>().chunks_exact(of_driver + 1).zip(DRIVERS) {
            accesses.extend_from_slice(&counts[..of_driver]);
            long += &format!("{driver:<8} {}\n", counts[of_driver]);
        }
        assert_eq!(accesses.len(), DRIVERS.len() * of_driver);
        let table = text(&counts(accesses));
        let lines: String = table
            .lines()
            .skip(1)
            .take(DRIVERS.len() * PATHS.len())
            .map(|line| format!("{line}\n"))
            .collect();
        let columns = MESSAGES.map(|message| format!(" {message:>7}")).concat();
        let table = format!(
            "Register accesses of a message, the controller's and the GPIO bank's together, registers ready at once.\n\n\
             {:<17}{columns}\n{lines}\nsync 4+1024\n{long}",
            ""
        );
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/accesses.txt");
        if std::env::var_os("BAREWIRE_BLESS").is_some() {
            std::fs::write(path, &table).expect("the table can be written");
        }
        let reviewed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(reviewed == table, "BAREWIRE_BLESS=1 rewrites {path}:\n{table}");
    }

    #[test]
    fn the_table_has_a_line_for_each_driver_and_path() {
        let lines = text(&counts(std::iter::repeat(7))).lines().count();
        assert_eq!(lines, 1 + DRIVERS.len() * PATHS.len() + 2);
        assert_eq!(text(&[]), "");
        assert!(
            run::<false>().iter().all(|&accesses| accesses == 0),
            "counting takes instructions"
        );
    }
}
