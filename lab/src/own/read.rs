//! A file read and checked.

use barewire_sim::wire::Driver as CsDriver;
use barewire_sim::{BoardSpec, near};
use toml::Spanned;

use super::form::{DmaForm, FifoForm, Form, MessageForm, ProcessorForm};
use super::place::Wrong;
use super::{Client, DmaEngine, Driver, Measure, Message, OwnExperiment, linux};
use crate::kernel::Waiting;

/// The longest name of a message.
pub const NAME_MAX: usize = 40;
/// spidev's own limit: more transfers make its request's size 0.
pub const TRANSFERS_MAX: usize = 511;
/// The bytes that spidev takes in one call by default.
const SPIDEV_BYTES: usize = 4_096;
/// The most bytes of a message of another client.
const BYTES_MAX: usize = 65_536;
/// Clocks that may be asked for.
const SPEED_HZ: std::ops::RangeInclusive<u64> = 10_000..=200_000_000;
const NO_OPTIMIZE: &str =
    "spi_optimize_message is in Linux since 6.9: take a newer kernel, or client = \"in-kernel\"";
/// A microsecond's picoseconds.
const PS: f64 = 1e6;
/// The longest delay, in microseconds.
const DELAY_MAX_US: f64 = 1e6;

/// The board of a name or a file, or why there is none.
pub(super) type Boards<'b> = &'b dyn Fn(&str) -> Result<&'static BoardSpec, String>;

impl OwnExperiment {
    /// Whether `text` has the form of a user's experiment, not of a thread's: it names a kernel, or no workload.
    #[must_use]
    pub fn is_it(text: &str) -> bool {
        let Ok(table) = text.parse::<toml::Table>() else {
            // TOML's reader says where; one of the two forms has to be named.
            return !text.lines().any(|line| line.trim_start().starts_with("workload"));
        };
        !table.contains_key("workload")
    }

    /// Reads the experiment `name`; `boards` finds boards by their names or files.
    ///
    /// # Errors
    /// What is wrong, with its line and column and the remedy.
    pub fn read(name: &str, text: &str, boards: Boards<'_>) -> Result<Self, String> {
        let form = toml::from_str::<Form>(text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            Wrong { at, what: error.message().into() }
        });
        form.and_then(|form| read(name, form, boards)).map_err(|wrong| wrong.in_text(text))
    }
}

fn unknown(what: &str, name: &Spanned<String>, known: &[&str]) -> Wrong {
    Wrong::at(name, near::unknown(what, name.get_ref(), known))
}

fn read(name: &str, form: Form, boards: Boards<'_>) -> Result<OwnExperiment, Wrong> {
    let spec = boards(form.board.get_ref()).map_err(|why| Wrong::at(&form.board, why))?;
    let driver = driver(spec, &form.board)?;
    let cs = chip_select(spec, driver, &form)?;
    let version = version(&form.kernel)?;
    let client = client(form.client.as_ref(), version)?;
    let mut profile = spec.profile.clone();
    let ProcessorForm { hz, count } = form.processor.unwrap_or_default();
    if let Some(hz) = hz {
        profile.cpu_hz.value = within(&hz, 1_000_000..=10_000_000_000, "Hz")?;
        (profile.cpu_hz.low, profile.cpu_hz.high) = (profile.cpu_hz.value, profile.cpu_hz.value);
    }
    let processors = match &count {
        Some(count) => within(count, 1..=64, "processors")?,
        None => processors(profile.name),
    };
    let dma = form.dma.as_ref().map(dma).transpose()?;
    let waiting = form.waiting.as_ref().map(|text| waiting(text, driver, dma.is_some()));
    let waiting = waiting.transpose()?.flatten();
    let (refill_bytes, refill_ps) = match &form.fifo {
        Some(fifo) => refills(fifo, driver)?,
        None => (None, 0),
    };
    let speed_hz = speed(&form.speed_hz)?;
    if form.message.is_empty() {
        let what = "it has no message: add [[message]] with name = \"read\" and lengths = [3]";
        return Err(Wrong { at: 0..0, what: what.into() });
    }
    let mut messages: Vec<Message> = Vec::new();
    for message in form.message {
        let message = message.into_inner();
        if messages.iter().any(|one| one.name == *message.name.get_ref()) {
            let what =
                format!("{:?} is there already: give it another name", message.name.get_ref());
            return Err(Wrong::at(&message.name, what));
        }
        messages.push(self::message(&message, client, speed_hz)?);
    }
    let title = form.title.unwrap_or_else(|| format!("messages on {}", spec.name));
    Ok(OwnExperiment {
        name: name.into(),
        title,
        spec,
        profile,
        cs,
        version,
        client,
        driver,
        waiting,
        processors,
        refill_bytes,
        refill_ps,
        dma,
        stays_warm: false,
        messages,
    })
}

impl OwnExperiment {
    /// The same with another kernel.
    ///
    /// # Errors
    /// If the lab does not know it, or it has not what the client needs.
    pub fn with_kernel(&self, text: &str) -> Result<Self, String> {
        let text = Spanned::new(0..0, text.to_owned());
        let version = version(&text).map_err(|wrong| wrong.what)?;
        if self.client == Client::InKernelOptimized && !linux::has_optimized(version) {
            return Err(NO_OPTIMIZE.into());
        }
        Ok(Self { version, ..self.clone() })
    }

    /// Checks a message that a sweep has made of one of the file's.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, message: &Message) -> Result<(), String> {
        let Message { lengths, batch, speed_hz, delay_ns, cs_change_delay_ns, .. } = message;
        if lengths.contains(&0) || *batch == 0 {
            return Err("a message has at least one transfer of 1 byte".into());
        }
        if !SPEED_HZ.contains(speed_hz) {
            return Err(format!("the lab takes {} to {} Hz", SPEED_HZ.start(), SPEED_HZ.end()));
        }
        let longest_ns = (DELAY_MAX_US * 1e3) as u64;
        if *delay_ns.max(cs_change_delay_ns) > longest_ns {
            return Err(format!("the lab takes at most {longest_ns} ns"));
        }
        size(lengths, *batch, self.client)
    }
}

/// A number that has to be in `range`.
fn within<T: PartialOrd + Copy + std::fmt::Display>(
    place: &Spanned<T>,
    range: std::ops::RangeInclusive<T>,
    unit: &str,
) -> Result<T, Wrong> {
    let value = *place.get_ref();
    if range.contains(&value) {
        return Ok(value);
    }
    let what = format!("it is {value}: the lab takes {} to {} {unit}", range.start(), range.end());
    Err(Wrong::at(place, what))
}

fn speed(hz: &Spanned<u64>) -> Result<u64, Wrong> {
    within(hz, SPEED_HZ, "Hz")
}

/// Microseconds as picoseconds.
fn time(us: &Spanned<f64>) -> Result<u64, Wrong> {
    Ok((within(us, 0.0..=DELAY_MAX_US, "us")? * PS).round() as u64)
}

fn driver(spec: &BoardSpec, place: &Spanned<String>) -> Result<Driver, Wrong> {
    match spec.kind.name {
        "BCM2835 SPI0" => Ok(Driver::Bcm2835),
        "ECSPI" => Ok(Driver::Imx),
        "McSPI" => Ok(Driver::Mcspi),
        other => Err(Wrong::at(
            place,
            format!(
                "{} has the controller {other}, whose kernel driver is not in the lab: it has spi-bcm2835 (rpi3), spi-imx \
                 (imx8mp, imx6dl, sabrelite) and spi-omap2-mcspi (beaglebone). spi-atmel of Linux 3.14 runs in the lab's own \
                 experiment pitchen alone",
                spec.name
            ),
        )),
    }
}

/// The chip select of the file, or the first that the driver can use.
fn chip_select(spec: &BoardSpec, driver: Driver, form: &Form) -> Result<u8, Wrong> {
    // These two drivers' native lines are not in the lab: Linux moves a pin on such boards.
    let can = |cs: usize| {
        let line = spec.cs[cs];
        let is_pin = matches!(line.driver, CsDriver::Gpio { .. }) && !line.by_program;
        (is_pin || driver == Driver::Mcspi) && !line.active_high
    };
    let usable: Vec<usize> = (0..spec.cs.len()).filter(|&cs| can(cs)).collect();
    let list = || usable.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    match &form.cs {
        Some(cs) if usable.contains(&usize::from(*cs.get_ref())) => Ok(*cs.get_ref()),
        Some(cs) => Err(Wrong::at(
            cs,
            format!(
                "chip select {} of {} is none that {} can use in the lab: it has {}",
                cs.get_ref(),
                spec.name,
                driver.name(),
                list()
            ),
        )),
        None => usable.first().map(|&cs| cs as u8).ok_or_else(|| {
            let (board, driver) = (spec.name, driver.name());
            Wrong::at(
                &form.board,
                format!("{board} has no chip select, low when active, that {driver} can use in the lab: give it one on a pin"),
            )
        }),
    }
}

fn version(text: &Spanned<String>) -> Result<linux::Version, Wrong> {
    let found = linux::version(text.get_ref());
    let found = found.filter(|version| (linux::OLDEST..=linux::NEWEST).contains(version));
    found.ok_or_else(|| {
        let what = format!(
            "the kernel is {:?}: the lab knows Linux 3.14 to 6.12, as kernel = \"6.1\"",
            text.get_ref()
        );
        Wrong::at(text, what)
    })
}

fn client(text: Option<&Spanned<String>>, version: linux::Version) -> Result<Client, Wrong> {
    let Some(text) = text else { return Ok(Client::Spidev) };
    let found = Client::ALL.into_iter().find(|client| client.name() == text.get_ref());
    let client = found.ok_or_else(|| unknown("client", text, &Client::ALL.map(Client::name)))?;
    if client == Client::InKernelOptimized && !linux::has_optimized(version) {
        return Err(Wrong::at(text, NO_OPTIMIZE));
    }
    Ok(client)
}

/// The processors of a board with these costs.
fn processors(profile: &str) -> u32 {
    match profile {
        "beaglebone" | "sama5d36" => 1,
        "imx6dl" | "zynq" => 2,
        _ => 4,
    }
}

fn dma(form: &DmaForm) -> Result<DmaEngine, Wrong> {
    let rate = within(&form.bytes_per_us, 1e-3..=1e4, "bytes a microsecond")?;
    Ok(DmaEngine { setup_ps: time(&form.setup_us)?, byte_ps: PS / rate })
}

fn waiting(
    text: &Spanned<String>,
    driver: Driver,
    has_dma: bool,
) -> Result<Option<Waiting>, Wrong> {
    let known = [
        ("driver", None),
        ("polling", Some(Waiting::Polling)),
        ("interrupts", Some(Waiting::Interrupts)),
        ("dma", Some(Waiting::Dma)),
    ];
    let found = known.iter().find(|(name, _)| name == text.get_ref());
    let (_, waiting) =
        *found.ok_or_else(|| unknown("way of waiting", text, &known.map(|(name, _)| name)))?;
    match waiting {
        Some(Waiting::Interrupts) if driver == Driver::Mcspi => Err(Wrong::at(
            text,
            "spi-omap2-mcspi never waits by the controller's interrupt: polling, dma or driver",
        )),
        // spi-imx's DMA is in the lab's costs, by a fit.
        Some(Waiting::Dma) if !has_dma && driver != Driver::Imx => Err(Wrong::at(
            text,
            "nothing is known of this board's DMA engine: add [dma] with setup_us = 20 and bytes_per_us = 10",
        )),
        waiting => Ok(waiting),
    }
}

fn refills(form: &Spanned<FifoForm>, driver: Driver) -> Result<(Option<usize>, u64), Wrong> {
    if driver != Driver::Imx {
        let what = format!("{} has no refills that can be set: leave [fifo] out", driver.name());
        return Err(Wrong::at(form, what));
    }
    let FifoForm { refill_bytes, gap_us } = form.get_ref();
    let bytes = refill_bytes.as_ref().map(|bytes| within(bytes, 1..=256, "bytes")).transpose()?;
    let gap = gap_us.as_ref().map(time).transpose()?;
    Ok((bytes, gap.unwrap_or(0)))
}

/// Whether a message is not too large.
fn size(lengths: &[usize], batch: usize, client: Client) -> Result<(), String> {
    let transfers = lengths.len().saturating_mul(batch);
    let bytes = lengths.iter().fold(0_usize, |sum, &length| sum.saturating_add(length));
    let bytes = bytes.saturating_mul(batch);
    if transfers > TRANSFERS_MAX {
        return Err(format!(
            "it has {transfers} transfers: at most {TRANSFERS_MAX} in one message"
        ));
    }
    let most = if client == Client::Spidev { SPIDEV_BYTES } else { BYTES_MAX };
    if bytes > most {
        let why = if client == Client::Spidev { ", as spidev's bufsiz" } else { "" };
        return Err(format!("it has {bytes} bytes: at most {most} in one message{why}"));
    }
    Ok(())
}

fn message(form: &MessageForm, client: Client, speed_hz: u64) -> Result<Message, Wrong> {
    let name = form.name.get_ref();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_plain) {
        let what = format!("a message's name has 1 to {NAME_MAX} letters, digits, -, _ and .");
        return Err(Wrong::at(&form.name, what));
    }
    let lengths = form.lengths.get_ref();
    if lengths.is_empty() || lengths.contains(&0) {
        let what = "a transfer has at least 1 byte: lengths = [3], or [1, 64] for two under one chip select";
        return Err(Wrong::at(&form.lengths, what));
    }
    let batch = form.batch.as_ref().map(|batch| within(batch, 1..=TRANSFERS_MAX, "in a batch"));
    let batch = batch.transpose()?.unwrap_or(1);
    size(lengths, batch, client).map_err(|what| Wrong::at(&form.lengths, what))?;
    if let Some(place) = form.cs_change.as_ref().filter(|_| batch == 1) {
        let what = "cs_change stands between two of a batch: add batch = 10, or leave it out";
        return Err(Wrong::at(place, what));
    }
    let ns =
        |us: &Option<Spanned<f64>>| Ok(us.as_ref().map(time).transpose()?.map(|ps| ps / 1_000));
    let mut published = Vec::new();
    for (key, value) in &form.published {
        let found = Measure::named(key.get_ref());
        let measure =
            found.ok_or_else(|| unknown("figure", key, &Measure::ALL.map(Measure::name)))?;
        if !(value.get_ref().is_finite() && *value.get_ref() > 0.0) {
            return Err(Wrong::at(value, "a published figure is a number above 0"));
        }
        published.push((measure, *value.get_ref()));
    }
    published.sort_by_key(|one| one.0);
    Ok(Message {
        name: name.clone(),
        lengths: lengths.clone(),
        batch,
        cs_change: batch > 1 && form.cs_change.as_ref().is_none_or(|is| *is.get_ref()),
        cs_change_delay_ns: ns(&form.cs_change_delay_us)?.unwrap_or(linux::CS_CHANGE_DELAY_NS),
        delay_ns: ns(&form.delay_us)?.unwrap_or(0),
        every_ps: form.every_us.as_ref().map(time).transpose()?.unwrap_or(0),
        speed_hz: form.speed_hz.as_ref().map_or(Ok(speed_hz), speed)?,
        published,
    })
}
