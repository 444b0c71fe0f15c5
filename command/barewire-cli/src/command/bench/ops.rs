//! The operations the bench times and counts, each a function of its own so that callgrind can
//! name it.
//!
//! All go through `dyn Controller`, hidden from the optimiser, to a [`Null`] controller whose
//! wire operations are real calls. *bare* is the controller's work alone. *floor* puts only a
//! compare-and-swap and an exchange around the same call: the least that a bus can cost.

use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use barewire::bus::queued::Exchange;
use barewire::bus::{Bus, Device, Prepared, Queued};
use barewire::controller::ecspi::{Ecspi, EcspiConfig};
use barewire::controller::gpio::{ImxGpio, Ownership};
use barewire::controller::null::Null;
use barewire::controller::{ALWAYS_POLL, Controller, CsLine, Preset};
use barewire::reg::Registers;
use barewire::regmap::{Endian, Format, Map, OnDevice, RegMap, Register};
use barewire::spi::{Settings, Transfer};
use barewire_linux::shared::{ProcessShared, SharedLock};

use super::can;
use super::still::Still;

/// Transfers of the long messages.
pub(crate) const LONG: usize = 100;

/// Messages of a batch.
pub(crate) const BATCH: usize = 32;

/// The operation that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Bare,
    Floor,
    Prepared,
    Sync,
    TransferIn100,
    CsChangeTransferIn100,
    /// Sync on a bus that counts.
    SyncWithStatistics,
    /// Messages that are put in the queue, run, and asked for their results.
    AsyncBatch32,
    /// Sync under the lock between processes.
    ProcessShared,
    /// The ECSPI driver's register work, for its instructions alone: no row of the table.
    EcspiNative,
    /// The same with a GPIO of a shared bank as chip select.
    EcspiGpio,
    /// A prepared access of 6 bytes, for its instructions alone.
    Prepared6,
    /// The same 6 bytes as a register read through a map.
    RegmapRead,
    /// A CAN frame received from an MCP2518FD, for its instructions alone.
    CanReceive,
    /// One sent.
    CanTransmit,
}

impl Op {
    /// Every operation, in the order of the table.
    pub(crate) const ALL: [Op; 9] = [
        Op::Bare,
        Op::Floor,
        Op::Prepared,
        Op::Sync,
        Op::TransferIn100,
        Op::CsChangeTransferIn100,
        Op::SyncWithStatistics,
        Op::AsyncBatch32,
        Op::ProcessShared,
    ];

    /// The drivers' operations and the map's, which are counted and not timed.
    pub(crate) const DRIVERS: [Op; 6] = [
        Op::EcspiNative,
        Op::EcspiGpio,
        Op::Prepared6,
        Op::RegmapRead,
        Op::CanReceive,
        Op::CanTransmit,
    ];

    /// Its name in tables and JSON: an interface.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Op::Bare => "bare",
            Op::Floor => "floor",
            Op::Prepared => "prepared",
            Op::Sync => "sync",
            Op::TransferIn100 => "transfer_in_100",
            Op::CsChangeTransferIn100 => "cs_change_transfer_in_100",
            Op::SyncWithStatistics => "sync_with_statistics",
            Op::AsyncBatch32 => "async_batch_32",
            Op::ProcessShared => "process_shared",
            Op::EcspiNative => "ecspi_native",
            Op::EcspiGpio => "ecspi_gpio",
            Op::Prepared6 => "prepared_6",
            Op::RegmapRead => "regmap_read",
            Op::CanReceive => "can_receive",
            Op::CanTransmit => "can_transmit",
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
            Op::AsyncBatch32 => BATCH as u32,
            _ => 1,
        }
    }

    /// The function callgrind is to collect in.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Op::Bare => "bench_op_bare",
            Op::Floor => "bench_op_floor",
            Op::Prepared | Op::EcspiNative | Op::EcspiGpio => "bench_op_prepared",
            Op::Prepared6 => "bench_op_prepared_6",
            Op::RegmapRead => "bench_op_regmap_read",
            Op::CanReceive | Op::CanTransmit => can::SYMBOL,
            Op::AsyncBatch32 => "bench_op_async_batch",
            Op::Sync
            | Op::TransferIn100
            | Op::CsChangeTransferIn100
            | Op::SyncWithStatistics
            | Op::ProcessShared => "bench_op_sync",
        }
    }
}

type Dyn<'a> = dyn Controller + 'a;
type Message<'b, 'a> = Queued<'b, Dyn<'a>, Exchange<4>>;

// Named functions that are never inlined: the symbols callgrind collects in.

#[inline(never)]
fn bench_op_bare(controller: &mut Dyn<'_>, preset: &Preset, message: &mut [Transfer<'_>]) {
    let _ = black_box(controller.run(preset, message));
}

#[inline(never)]
fn bench_op_floor(
    word: &AtomicUsize,
    controller: &mut Dyn<'_>,
    preset: &Preset,
    message: &mut [Transfer<'_>],
) {
    if word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
        let _ = black_box(controller.run(preset, message));
        word.swap(0, Ordering::Release);
    }
}

#[inline(never)]
fn bench_op_prepared(prepared: &mut Prepared<'_, Dyn<'_>, 4>) {
    let _ = black_box(prepared.run());
}

#[inline(never)]
fn bench_op_prepared_6(prepared: &mut Prepared<'_, Dyn<'_>, 6>) {
    let _ = black_box(prepared.run());
}

#[inline(never)]
fn bench_op_regmap_read(registers: &mut RegMap<OnDevice<'_, Dyn<'_>, 6>, 6>) {
    // Uses the value, and returns an error to the caller, as a driver would.
    if let Ok(value) = registers.read(&CONTROL) {
        black_box(value);
    }
}

#[inline(never)]
fn bench_op_sync(device: &Device<'_, Dyn<'_>>, message: &mut [Transfer<'_>]) {
    let _ = black_box(device.sync(message));
}

#[inline(never)]
fn bench_op_async_batch(bus: &Bus<Dyn<'_>>, batch: &mut [Pin<Box<Message<'_, '_>>>]) {
    for message in &mut *batch {
        let _ = black_box(message.as_mut().enqueue());
    }
    black_box(bus.pump());
    for message in &mut *batch {
        let _ = black_box(message.as_mut().result());
    }
}

/// A register as MCP2518FD has them: two bytes of command and address, four of value.
static CONTROL: Register = Register::new("CONTROL", 0);
static MAP: Map = Map::new(
    "bench",
    Format {
        read_flag_mask: 0x3000,
        reg_stride: 4,
        val_format_endian: Endian::Little,
        increments: true,
        ..Format::new(16, 32)
    },
    &[CONTROL],
);

/// Makes `calls` accesses of 6 bytes on the null controller, with and without the map.
fn run_map(op: Op, calls: u32) {
    let bus = Bus::new(Null::new());
    let bus: &Bus<Dyn<'_>> = black_box(&bus);
    let device = bus.device(&Settings::new(0, 16_000_000)).expect("the null controller takes all");
    let mut prepared = device.prepare([0x30, 0, 0, 0, 0, 0]).expect("six bytes are whole words");
    let frames = OnDevice::new(device).expect("six bytes are whole words");
    // Hidden from the compiler, which must not optimise for this one map.
    let mut registers = RegMap::new(frames, black_box(&MAP));
    for _ in 0..calls {
        if op == Op::RegmapRead {
            bench_op_regmap_read(&mut registers);
        } else {
            bench_op_prepared_6(&mut prepared);
        }
    }
}

/// Registers of an ECSPI that has received each word by the time it is read.
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

/// Makes `calls` prepared 4-byte accesses through the ECSPI driver on [`Ready`] registers.
fn run_ecspi(op: Op, calls: u32) {
    let line = match op {
        Op::EcspiNative => CsLine::Native { channel: 0, active_high: false },
        _ => CsLine::Gpio { bit: 9, active_high: false },
    };
    let config = EcspiConfig {
        reference_hz: 80_000_000,
        chip_selects: [line, CsLine::Absent, CsLine::Absent, CsLine::Absent],
        poll_limit_ns: ALWAYS_POLL,
    };
    let gpio = ImxGpio::new(Ready, Ownership::Shared);
    let bus = Bus::new(Ecspi::new(Ready, gpio, Still, config));
    let bus: &Bus<Dyn<'_>> = black_box(&bus);
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("the block can do it");
    let mut prepared = device.prepare([0x9f, 0, 0, 0]).expect("four bytes are whole words");
    // The first message configures the block. Only the later ones are counted.
    prepared.run().expect("the registers are ready");
    for _ in 0..calls {
        bench_op_prepared(&mut prepared);
    }
}

/// Makes `calls` batches of queued messages.
fn run_batches<T>(
    device: &Device<'_, Dyn<'_>>,
    calls: u32,
    mut clock: impl FnMut() -> T,
) -> (T, T) {
    let mut batch: Vec<_> = (0..BATCH)
        .map(|_| Box::pin(device.queued([0x9f, 0, 0, 0]).expect("four bytes are whole words")))
        .collect();
    let begun = clock();
    for _ in 0..calls {
        bench_op_async_batch(device.bus(), &mut batch);
    }
    (begun, clock())
}

/// A bus whose lock is between processes, in a file that is gone again already.
pub(crate) fn shared_bus() -> Result<Bus<ProcessShared<Null>>, String> {
    let place = tempfile::tempdir().map_err(|error| format!("a temporary directory: {error}"))?;
    let device = place.path().join("device");
    std::fs::File::create(&device).map_err(|error| format!("{}: {error}", device.display()))?;
    let lock = SharedLock::open(&place.path().join("lock"), &device);
    Ok(Bus::new(ProcessShared::new(lock.map_err(|error| error.to_string())?, Null::new())))
}

/// Makes `calls` calls of `op`'s function, timing them with `clock` (called before and after).
///
/// # Errors
/// Why the operation cannot be made on this machine.
pub(crate) fn run<T>(op: Op, calls: u32, mut clock: impl FnMut() -> T) -> Result<(T, T), String> {
    if Op::DRIVERS.contains(&op) {
        let begun = clock();
        match op {
            Op::Prepared6 | Op::RegmapRead => run_map(op, calls),
            Op::CanReceive => can::run(can::Way::In, calls),
            Op::CanTransmit => can::run(can::Way::Out, calls),
            _ => run_ecspi(op, calls),
        }
        return Ok((begun, clock()));
    }
    let settings = Settings::new(0, 20_000_000);
    let mut null = Null::new();
    let tx = [0x9f, 0, 0, 0];
    let mut rx = [[0; 4]; LONG];
    let transfers = if op == Op::AsyncBatch32 { 1 } else { op.per_call() as usize };
    let mut message: Vec<Transfer<'_>> =
        rx.iter_mut().take(transfers).map(|rx| Transfer::exchange(&tx, rx)).collect();
    if op == Op::CsChangeTransferIn100 {
        message[..LONG - 1].iter_mut().for_each(|transfer| transfer.cs_change = true);
    }
    if op == Op::Bare || op == Op::Floor {
        let (preset, _) = null.configure(&settings).expect("the null controller takes all");
        null.plan(&preset, &mut message).expect("the message is whole");
        let controller: &mut Dyn<'_> = black_box(&mut null);
        let word = AtomicUsize::new(0);
        let begun = clock();
        for _ in 0..calls {
            if op == Op::Bare {
                bench_op_bare(controller, &preset, &mut message);
            } else {
                bench_op_floor(&word, controller, &preset, &mut message);
            }
        }
        return Ok((begun, clock()));
    }
    let (plain, shared);
    let bus: &Bus<Dyn<'_>> = if op == Op::ProcessShared {
        shared = shared_bus()?;
        &shared
    } else {
        plain = Bus::new(null);
        &plain
    };
    let bus = black_box(bus);
    bus.set_counting(op == Op::SyncWithStatistics);
    let device = bus.device(&settings).expect("the null controller takes all");
    Ok(match op {
        Op::AsyncBatch32 => run_batches(&device, calls, clock),
        Op::Prepared => {
            let mut prepared = device.prepare(tx).expect("four bytes are whole words");
            let begun = clock();
            for _ in 0..calls {
                bench_op_prepared(&mut prepared);
            }
            (begun, clock())
        }
        _ => {
            let begun = clock();
            for _ in 0..calls {
                bench_op_sync(&device, &mut message);
            }
            (begun, clock())
        }
    })
}
