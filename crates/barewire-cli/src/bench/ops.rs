//! The operations the bench times and counts, each a function of its own so that callgrind can
//! name it.
//!
//! All go through `dyn Controller`, hidden from the optimiser, to a [`Null`] controller whose
//! wire operations are real calls. *bare* is the controller's work alone. *floor* puts a
//! compare-and-swap and an exchange around the same call and nothing else: what a bus must at
//! least cost.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use barewire::bus::{Bus, Device, Prepared};
use barewire::controller::ecspi::{CsLine, Ecspi, EcspiConfig, Streaming};
use barewire::controller::gpio::{ImxGpio, Ownership};
use barewire::controller::null::Null;
use barewire::controller::{Controller, Program};
use barewire::reg::Registers;
use barewire::spi::{Settings, Transfer};
use barewire::time::Timer;

/// Transfers of the long messages.
pub(crate) const LONG: usize = 100;

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Bare,
    Floor,
    Prepared,
    Sync,
    TransferIn100,
    CsChangeTransferIn100,
    /// The ECSPI driver's register work, for its instructions alone: no row of the table.
    EcspiNative,
    /// The same with a GPIO of a shared bank as chip select.
    EcspiGpio,
}

impl Op {
    /// Every operation, in the order of the table.
    pub(crate) const ALL: [Op; 6] =
        [Op::Bare, Op::Floor, Op::Prepared, Op::Sync, Op::TransferIn100, Op::CsChangeTransferIn100];

    /// The drivers' operations, which are counted and not timed.
    pub(crate) const DRIVERS: [Op; 2] = [Op::EcspiNative, Op::EcspiGpio];

    /// Its name in tables and JSON: an interface.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Op::Bare => "bare",
            Op::Floor => "floor",
            Op::Prepared => "prepared",
            Op::Sync => "sync",
            Op::TransferIn100 => "transfer_in_100",
            Op::CsChangeTransferIn100 => "cs_change_transfer_in_100",
            Op::EcspiNative => "ecspi_native",
            Op::EcspiGpio => "ecspi_gpio",
        }
    }

    /// The operation of that name.
    pub(crate) fn from_name(name: &str) -> Option<Op> {
        Op::ALL.into_iter().chain(Op::DRIVERS).find(|op| op.name() == name)
    }

    /// How many operations one call of the function makes.
    pub(crate) fn per_call(self) -> u32 {
        match self {
            Op::TransferIn100 | Op::CsChangeTransferIn100 => LONG as u32,
            _ => 1,
        }
    }

    /// The function callgrind is to collect in.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Op::Bare => "bench_op_bare",
            Op::Floor => "bench_op_floor",
            Op::Prepared | Op::EcspiNative | Op::EcspiGpio => "bench_op_prepared",
            Op::Sync | Op::TransferIn100 | Op::CsChangeTransferIn100 => "bench_op_sync",
        }
    }
}

type Dyn<'a> = dyn Controller + 'a;

// Named functions that are never inlined: the symbols callgrind collects in.

#[inline(never)]
fn bench_op_bare(controller: &mut Dyn<'_>, program: &Program, message: &mut [Transfer<'_>]) {
    let _ = black_box(controller.run(program, message));
}

#[inline(never)]
fn bench_op_floor(
    word: &AtomicUsize,
    controller: &mut Dyn<'_>,
    program: &Program,
    message: &mut [Transfer<'_>],
) {
    if word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
        let _ = black_box(controller.run(program, message));
        word.swap(0, Ordering::Release);
    }
}

#[inline(never)]
fn bench_op_prepared(prepared: &mut Prepared<'_, Dyn<'_>, 4>) {
    let _ = black_box(prepared.run());
}

#[inline(never)]
fn bench_op_sync(device: &Device<'_, Dyn<'_>>, message: &mut [Transfer<'_>]) {
    let _ = black_box(device.sync(message));
}

/// Registers of an ECSPI whose word is back as soon as it is asked for.
struct Ready;

impl Registers for Ready {
    #[inline]
    fn read(&mut self, offset: u32) -> u32 {
        // Every bit set: STATREG.RR among them.
        black_box(offset) | !0
    }

    #[inline]
    fn write(&mut self, offset: u32, value: u32) {
        black_box((offset, value));
    }
}

/// A timer that nobody has to wait by.
struct Still;

impl Timer for Still {
    fn frequency_hz(&self) -> u32 {
        8_000_000
    }

    fn now_ticks(&mut self) -> u64 {
        0
    }

    fn wait_ticks(&mut self, _ticks: u64) {}
}

/// Makes `calls` prepared 4-byte accesses through the ECSPI driver on [`Ready`] registers.
fn run_ecspi(op: Op, calls: u32) {
    let line = match op {
        Op::EcspiNative => CsLine::Native { channel: 0, active_high: false },
        _ => CsLine::Gpio { bit: 9, active_high: false },
    };
    let config = EcspiConfig {
        reference_hz: 80_000_000,
        chip_selects: [line, CsLine::Absent, CsLine::Absent, CsLine::Absent],
        streaming: Streaming::Refill,
        poll_limit_ns: EcspiConfig::ALWAYS_POLL,
    };
    let gpio = ImxGpio::new(Ready, Ownership::Shared);
    let bus = Bus::new(Ecspi::new(Ready, gpio, Still, config));
    let bus: &Bus<Dyn<'_>> = black_box(&bus);
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("the block can do it");
    let mut prepared = device.prepare([0x9f, 0, 0, 0]).expect("four bytes are whole words");
    // The first message configures the block; only what every one costs is counted.
    prepared.run().expect("the registers are ready");
    for _ in 0..calls {
        bench_op_prepared(&mut prepared);
    }
}

/// Makes `calls` calls of `op`'s function, timing them with `clock` (called before and after).
pub(crate) fn run<T>(op: Op, calls: u32, mut clock: impl FnMut() -> T) -> (T, T) {
    if Op::DRIVERS.contains(&op) {
        let begun = clock();
        run_ecspi(op, calls);
        return (begun, clock());
    }
    let settings = Settings::new(0, 20_000_000);
    let mut null = Null::new();
    let tx = [0x9f, 0, 0, 0];
    let mut rx = [[0; 4]; LONG];
    let mut message: Vec<Transfer<'_>> =
        rx.iter_mut().take(op.per_call() as usize).map(|rx| Transfer::exchange(&tx, rx)).collect();
    if op == Op::CsChangeTransferIn100 {
        message[..LONG - 1].iter_mut().for_each(|transfer| transfer.cs_change = true);
    }
    match op {
        Op::Bare | Op::Floor => {
            let (program, _) = null.configure(&settings).expect("the null controller takes all");
            null.plan(&program, &mut message).expect("the message is whole");
            let controller: &mut Dyn<'_> = black_box(&mut null);
            let word = AtomicUsize::new(0);
            let begun = clock();
            for _ in 0..calls {
                if op == Op::Bare {
                    bench_op_bare(controller, &program, &mut message);
                } else {
                    bench_op_floor(&word, controller, &program, &mut message);
                }
            }
            (begun, clock())
        }
        _ => {
            let bus = Bus::new(null);
            let bus: &Bus<Dyn<'_>> = black_box(&bus);
            let device = bus.device(&settings).expect("the null controller takes all");
            let mut prepared = device.prepare(tx).expect("four bytes are whole words");
            let begun = clock();
            for _ in 0..calls {
                if op == Op::Prepared {
                    bench_op_prepared(&mut prepared);
                } else {
                    bench_op_sync(&device, &mut message);
                }
            }
            (begun, clock())
        }
    }
}
