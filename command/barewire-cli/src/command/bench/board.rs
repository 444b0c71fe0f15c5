//! `barewire bench --board BUS`: what each path to a chip costs on this board.
//!
//! # How it works
//! Each path runs rounds ([`ROUNDS`], or as many as asked) of [`CALLS`] calls, after one round that is not counted; a row has the
//! median and the least of the rounds. A mapped controller is driven through the bus of its own type,
//! [`MappedBlock`](barewire_linux::map::MappedBlock), as by a program that knows its board. Where an emulator
//! counts time by instructions (QEMU, `-icount shift=0`), a nanosecond is an instruction.
//!
//! Chips are asked for their JEDEC identification (9F); a flash chip's bytes are read. Nothing is written to
//! a chip.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use barewire::bus::{Bus, Device};
use barewire::chip::spi_nor::SpiNor;
use barewire::controller::Controller;
use barewire::spi::{Mode, Settings, Transfer};
use barewire_linux::Monotonic;
use barewire_linux::map::{CsLineAt, CsPin, MapSpec, MappedUser};
use barewire_linux::shared::{ProcessShared, SharedLock};
use barewire_linux::spidev::Spidev;
use serde::Serialize;
use tempfile::TempDir;

use super::stats::{median, rounded};
use crate::shared::bus_name::{self, BusName};
use crate::shared::failure::Failure;
use crate::shared::output::{self, note};

pub(super) const ROUNDS: u32 = 7;
const CALLS: u32 = 1_000;
/// The longer read's.
const READ_BYTES: usize = 1_024;
/// JEDEC's read identification, and room for three bytes.
const READ_ID: [u8; 4] = [0x9f, 0, 0, 0];

/// A row of the table, and of the JSON: these names are an interface.
#[derive(Debug, Serialize)]
struct Row {
    path: &'static str,
    bytes: usize,
    /// The median of the rounds.
    ns_per_op: f64,
    ns_per_op_min: f64,
    /// By what the path is made of, not counted: none for registers and an uncontended lock, one for a
    /// message or a read through the kernel, two for a chip select through the kernel.
    syscalls_per_op: u32,
}

#[derive(Debug, Serialize)]
struct Report {
    bus: String,
    /// The chip's JEDEC id, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    jedec_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effective_speed_hz: Option<u32>,
    rounds: u32,
    calls_per_round: u32,
    rows: Vec<Row>,
}

impl Report {
    fn of(bus: String, rounds: u32) -> Self {
        Self {
            bus,
            jedec_id: None,
            effective_speed_hz: None,
            rounds,
            calls_per_round: CALLS,
            rows: Vec::new(),
        }
    }

    fn text(&self) -> String {
        let mut text = self.bus.to_string();
        if let (Some(id), Some(hz)) = (&self.jedec_id, self.effective_speed_hz) {
            text += &format!(", chip {id}, {hz} Hz");
        }
        text += &format!(
            "\n{:<16} {:>6} {:>14} {:>14} {:>14}\n",
            "path", "bytes", "ns/op median", "ns/op min", "syscalls/op"
        );
        for Row { path, bytes, ns_per_op, ns_per_op_min, syscalls_per_op } in &self.rows {
            text += &format!(
                "{path:<16} {bytes:>6} {ns_per_op:>14} {ns_per_op_min:>14} {syscalls_per_op:>14}\n"
            );
        }
        text
    }

    /// Times `op`, and adds its row.
    fn time(
        &mut self,
        path: &'static str,
        bytes: usize,
        syscalls_per_op: u32,
        mut op: impl FnMut() -> Result<(), String>,
    ) -> Result<(), Failure> {
        let mut rounds = Vec::with_capacity(self.rounds as usize);
        for round in 0..=self.rounds {
            let begun = Instant::now();
            for _ in 0..CALLS {
                op().map_err(|error| Failure::Failed(format!("{path}: {error}")))?;
            }
            let took = begun.elapsed();
            // The first round warms caches and predictors, and sets the block up.
            if round > 0 {
                rounds.push(took.as_nanos() as f64 / f64::from(CALLS));
            }
        }
        let ns_per_op_min = rounded(rounds.iter().copied().fold(f64::INFINITY, f64::min));
        let ns_per_op = rounded(median(rounds));
        self.rows.push(Row { path, bytes, ns_per_op, ns_per_op_min, syscalls_per_op });
        Ok(())
    }
}

/// The chip to time, and how often.
pub(super) struct Options {
    pub(super) cs: u8,
    pub(super) speed_hz: u32,
    pub(super) rounds: u32,
    pub(super) json: bool,
}

/// Times the paths to the chip on the bus of that name.
pub(super) fn run(name: &str, options: &Options) -> Result<(), Failure> {
    super::note_profile();
    let report = match name.strip_prefix("mtd:") {
        Some(path) => time_mtd(Report::of(name.to_owned(), options.rounds), path)?,
        None => match bus_name::parse(name).map_err(Failure::Usage)? {
            BusName::Mapped(spec) => time_mapped(&spec, options)?,
            BusName::Spidev(node) => {
                let bus = format!("spidev:{}", node.path.display());
                let spidev = Spidev::open(&node.path).map_err(failed)?;
                let settings = Settings::new(options.cs, options.speed_hz);
                let mut report = Report::of(bus, options.rounds);
                time_paths(&mut report, spidev, settings, &Paths::SPIDEV)?;
                report
            }
            BusName::Sim(_) | BusName::Qemu(_) | BusName::Null => {
                return Err(Failure::Failed(format!(
                    "{name}: times on this machine say nothing of that board; `barewire bench` has a simulated section"
                )));
            }
        },
    };
    match options.json {
        true => output::json(&report),
        false => output::text(&report.text()),
    }
}

fn failed(error: impl ToString) -> Failure {
    Failure::Failed(error.to_string())
}

/// The names of a bus's paths.
struct Paths {
    prepared: &'static str,
    sync: &'static str,
    nor_read: Option<&'static str>,
    /// Whether messages of other lengths are timed too.
    lengths: bool,
    syscalls_per_message: u32,
}

impl Paths {
    const SPIDEV: Self = Self {
        prepared: "spidev-prepared",
        sync: "spidev",
        nor_read: Some("spidev-nor-read"),
        lengths: false,
        syscalls_per_message: 1,
    };

    fn free(syscalls_per_message: u32) -> Self {
        Self {
            prepared: "prepared",
            sync: "sync",
            nor_read: Some("nor-read"),
            // System calls would hide what a byte costs.
            lengths: syscalls_per_message == 0,
            syscalls_per_message,
        }
    }

    fn locked(syscalls_per_message: u32) -> Self {
        Self {
            prepared: "locked-prepared",
            sync: "locked-sync",
            nor_read: None,
            lengths: false,
            syscalls_per_message,
        }
    }
}

/// Times the paths that a bus over `controller` has.
fn time_paths<C: Controller>(
    report: &mut Report,
    controller: C,
    settings: Settings,
    paths: &Paths,
) -> Result<(), Failure> {
    let bus = Bus::new(controller);
    let device = bus.device(&settings).map_err(failed)?;
    let mut prepared = device.prepare(READ_ID).map_err(failed)?;
    let [_, id @ ..] = *prepared.run().map_err(failed)?;
    if id == [0; 3] || id == [0xff; 3] {
        let what = "no chip answers 9F with an identification: there is nothing to time";
        return Err(Failure::Failed(format!("{}: {what}", report.bus)));
    }
    report.jedec_id = Some(id.iter().map(|byte| format!("{byte:02x}")).collect());
    report.effective_speed_hz = Some(device.effective().speed_hz);
    let syscalls = paths.syscalls_per_message;
    report.time(paths.prepared, READ_ID.len(), syscalls, || {
        match black_box(&mut prepared).run() {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    })?;
    let mut rx = [0; READ_ID.len()];
    let mut message = [Transfer::exchange(&READ_ID, &mut rx)];
    report.time(paths.sync, READ_ID.len(), syscalls, || {
        match device.sync(black_box(&mut message)) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    })?;
    if paths.lengths {
        time_lengths(report, &device)?;
    }
    if let Some(path) = paths.nor_read {
        match SpiNor::new(device, Monotonic::new()) {
            Err(error) => note!("barewire: bench: {path} is not timed: {error}"),
            Ok(mut nor) => {
                let mut bytes = [0; READ_BYTES];
                report.time(path, READ_BYTES, syscalls, || {
                    nor.read(0, black_box(&mut bytes)).map_err(|error| error.to_string())
                })?;
            }
        }
    }
    Ok(())
}

/// Times identifications of other lengths, and of 2 to 4 transfers of 4 bytes under one chip select.
fn time_lengths<C: Controller>(report: &mut Report, device: &Device<'_, C>) -> Result<(), Failure> {
    time_prepared::<_, 5>(report, device)?;
    time_prepared::<_, 6>(report, device)?;
    time_prepared::<_, 8>(report, device)?;
    time_prepared::<_, 16>(report, device)?;
    time_prepared::<_, 25>(report, device)?;
    time_prepared::<_, 64>(report, device)?;
    time_prepared::<_, 256>(report, device)?;
    let tx = identification::<256>();
    let mut rx = [0; 256];
    for len in [5, 6, 8, 16, 25, 64, 256] {
        let mut message = [Transfer::exchange(&tx[..len], &mut rx[..len])];
        time_sync(report, "sync", device, &mut message)?;
    }
    let several = [
        ("prepared-4+4", "sync-4+4"),
        ("prepared-4+4+4", "sync-4+4+4"),
        ("prepared-4+4+4+4", "sync-4+4+4+4"),
    ];
    for (reads, (prepared_path, sync_path)) in (1..).zip(several) {
        let mut rx = [[0; 4]; 3];
        let mut message = vec![Transfer::write(&READ_ID)];
        message.extend(rx.iter_mut().take(reads).map(|rx| Transfer::read(rx)));
        time_sync(report, sync_path, device, &mut message)?;
        let bytes = bytes_of(&message);
        let mut prepared = device.prepare_message(&mut message).map_err(failed)?;
        report.time(prepared_path, bytes, 0, || match black_box(&mut prepared).run() {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        })?;
    }
    Ok(())
}

/// JEDEC's read identification, followed by more bytes than the id has.
fn identification<const N: usize>() -> [u8; N] {
    let mut tx = [0; N];
    tx[0] = READ_ID[0];
    tx
}

fn bytes_of(message: &[Transfer<'_>]) -> usize {
    message.iter().map(|transfer| transfer.data().len()).sum()
}

fn time_prepared<C: Controller, const N: usize>(
    report: &mut Report,
    device: &Device<'_, C>,
) -> Result<(), Failure> {
    let mut prepared = device.prepare(identification::<N>()).map_err(failed)?;
    report.time("prepared", N, 0, || match black_box(&mut prepared).run() {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    })
}

fn time_sync<C: Controller>(
    report: &mut Report,
    path: &'static str,
    device: &Device<'_, C>,
    message: &mut [Transfer<'_>],
) -> Result<(), Failure> {
    report.time(path, bytes_of(message), 0, || match device.sync(black_box(message)) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    })
}

fn time_mapped(spec: &MapSpec, options: &Options) -> Result<Report, Failure> {
    let mut report = Report::of(spec.to_string(), options.rounds);
    let mut mapped = barewire_open::map(spec, &mut |text| note!("{text}"))?;
    let line = mapped.chip_selects().get(usize::from(options.cs)).and_then(Option::as_ref);
    let active_high = line.is_some_and(|line| line.active_high);
    let mode = if active_high { Mode::CS_HIGH } else { Mode::default() };
    let settings = Settings::new(options.cs, options.speed_hz).with_mode(mode);
    let is_called = |line: &CsPin| matches!(line.at, CsLineAt::Kernel(_) | CsLineAt::Door { .. });
    let syscalls = if line.is_some_and(is_called) { 2 } else { 0 };
    let lock = mapped.take_lock();
    let is_shared = lock.is_some();
    let watch = mapped.silent_watch();
    let timed = mapped.start_each(Timing { report: &mut report, settings, syscalls, lock });
    // If the kernel's driver came back, report that first: it explains failed messages, and it
    // disturbs times.
    watch.final_check().map_err(failed).and(timed)?;
    if !is_shared {
        return Ok(report);
    }
    let (_place, lock) = own_lock()?;
    report.time("process-lock", 0, 0, || {
        lock.acquire_and_release().map_err(|error| error.to_string())
    })?;
    Ok(report)
}

/// A measurement on a mapped controller.
struct Timing<'r> {
    report: &'r mut Report,
    settings: Settings,
    syscalls: u32,
    /// The lock that other processes hold too, unless the bus is exclusive.
    lock: Option<SharedLock>,
}

/// Times the paths under [`Timing::lock`] if there is one, else without a lock.
impl MappedUser for Timing<'_> {
    type Output = Result<(), Failure>;

    fn run<C: Controller>(self, start: impl FnOnce() -> C) -> Result<(), Failure> {
        let Self { report, settings, syscalls, lock } = self;
        let Some(lock) = lock else {
            return time_paths(report, start(), settings, &Paths::free(syscalls));
        };
        let shared = ProcessShared::bring_up(lock, start).map_err(failed)?;
        time_paths(report, shared, settings, &Paths::locked(syscalls))
    }
}

/// A lock that no other process uses, in a temporary directory that is removed with it.
fn own_lock() -> Result<(TempDir, SharedLock), Failure> {
    let place = tempfile::tempdir().map_err(|error| Failure::io("make a directory", &error))?;
    let device = place.path().join("device");
    File::create(&device).map_err(|error| Failure::io("make a file", &error))?;
    let lock = SharedLock::open(&place.path().join("lock"), &device).map_err(failed)?;
    Ok((place, lock))
}

/// Times reads of a flash through the kernel. Each read reaches the chip, because the kernel does
/// not cache an mtd character device.
fn time_mtd(mut report: Report, path: &str) -> Result<Report, Failure> {
    let file = File::open(path).map_err(|error| Failure::Failed(format!("{path}: {error}")))?;
    let mut bytes = [0; READ_BYTES];
    report.time("mtd", READ_BYTES, 1, || {
        file.read_exact_at(black_box(&mut bytes), 0).map_err(|error| error.to_string())
    })?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use barewire::controller::null::Null;

    use super::*;

    fn settings() -> Settings {
        Settings::new(0, 20_000_000)
    }

    #[test]
    fn a_bus_without_a_chip_is_not_timed() {
        let mut report = Report::of("null".to_owned(), ROUNDS);
        let error = time_paths(&mut report, Null::new(), settings(), &Paths::free(0));
        let Err(Failure::Failed(error)) = error else { panic!("zeros are no chip") };
        assert!(error.contains("no chip answers"), "{error}");
        assert!(report.rows.is_empty());
    }

    #[test]
    fn a_row_has_what_was_called() {
        let mut report = Report::of("null".to_owned(), ROUNDS);
        let mut calls = 0;
        let timed = report.time("sync", 4, 1, || {
            calls += 1;
            Ok(())
        });
        assert!(timed.is_ok());
        assert_eq!(calls, (ROUNDS + 1) * CALLS);
        let json = serde_json::to_value(&report).expect("it is JSON");
        let row = &json["rows"][0];
        assert_eq!((&row["path"], &row["bytes"]), (&"sync".into(), &4.into()));
        assert_eq!(row["syscalls_per_op"], 1);
        assert!(row["ns_per_op_min"].as_f64() <= row["ns_per_op"].as_f64());
    }

    #[test]
    fn what_is_not_of_this_machine_is_refused() {
        let refused =
            run("sim:imx8mp", &Options { cs: 0, speed_hz: 20_000_000, rounds: 1, json: true });
        assert!(matches!(refused, Err(Failure::Failed(error)) if error.contains("sim:imx8mp")));
    }
}
