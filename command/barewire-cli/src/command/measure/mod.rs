//! `barewire measure`: what a board's registers, wake-ups and messages take, beside what the simulator predicts; and a file of
//! costs made of it.
//!
//! | module | has |
//! |---|---|
//! | `procedure` | the parts in their order |
//! | `rounds`, `registers`, `threads`, `messages` | what is timed, the same code on a machine and on a simulated board |
//! | `machine`, `simulated` | the procedure's parts on this machine, and on a simulated board |
//! | `costs` | costs from figures |
//! | `bindings` | the kernel's drivers: taken, and given back |
//! | `emulated`, `facts`, `board`, `load` | what the machine is, which simulated board is like it, busy threads |
//!
//! Nothing leaves the machine.

mod bindings;
mod board;
mod costs;
mod emulated;
mod facts;
mod load;
mod machine;
mod messages;
mod procedure;
mod registers;
mod rounds;
mod simulated;
mod text;
mod threads;

use std::fs;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use barewire_lab::band::Band;
use barewire_lab::measured::{Condition, Fact, Measured, MeasuredFigure, Origin, Quantiles};
use barewire_lab::report::measured_html;
use barewire_linux::Root;
use barewire_linux::survey::Survey;
use barewire_open::name::{FileUse, SimOptions};
use barewire_sim::profile::{CostLevel, Profile};

use machine::OnThisMachine;
use messages::Answers;
use procedure::{Done, Procedure};
use rounds::{Collected, Effort};
use simulated::{Part, Simulated};

use super::doctor;
use crate::shared::bus_name::{self, BusName};
use crate::shared::failure::Failure;
use crate::shared::files::{NamedFile, Output};
use crate::shared::interrupt;
use crate::shared::output::{self, note};
use crate::shared::text::number;

const AFTER_HELP: &str = "\
DIR gets measured.html, and measured.json, which is a file of costs too: the lab's --costs FILE and
sim:BOARD,costs=FILE take it. Nothing leaves the machine.

Without --flash and --loopback no chip is selected: messages go to nobody. With a mem: bus whose
controller the kernel's driver has, root gets spidev's times beside; then the controller is taken from
that driver, and given back at the end. After Ctrl-C the files have what was measured before. If the
command is killed, /run/barewire-measure.restore says how the drivers get back; `barewire restore` does it.

An emulator's time is no board's: where the machine shows that it is one, the files say so.

Examples:
  barewire measure --board sim:imx8mp --flash --quick -o measured
  barewire measure --board mem:0x3f204000,controller=bcm2835,reference-hz=400M,cs=native0 --loopback
  barewire lab gain mine.toml --costs measured/measured.json";

#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The bus to measure: mem:…, uio:…, spidev:… or sim:BOARD [default: the ready one, if doctor finds one alone]
    #[arg(long, value_name = "BUS")]
    board: Option<String>,
    /// A wire connects MISO to MOSI: what is sent comes back
    #[arg(long, conflicts_with = "flash")]
    loopback: bool,
    /// A flash chip is behind the chip select: it is asked for its identity (9F), and nothing is written
    #[arg(long)]
    flash: bool,
    /// The chip select [default: 0; with --flash on a simulated board, that of the chip]
    #[arg(long = "cs", value_name = "N", value_parser = number::count::<u8>)]
    chip_select: Option<u8>,
    /// The fastest clock allowed
    #[arg(long, value_name = "HZ", default_value = "20M", value_parser = number::hertz)]
    speed_hz: u32,
    /// The simulated board to stand beside [default: the one with the same block, of the nearest SoC]
    #[arg(long, value_name = "BOARD")]
    like: Option<String>,
    /// The directory of the result
    #[arg(short, long, value_name = "DIR", default_value = "measured")]
    out: PathBuf,
    /// Below a minute, instead of five
    #[arg(long)]
    quick: bool,
    /// Print the result as one line of JSON too
    #[arg(long)]
    json: bool,
}

impl Args {
    fn answers(&self) -> Answers {
        match (self.flash, self.loopback) {
            (true, _) => Answers::Flash,
            (_, true) => Answers::Loopback,
            _ => Answers::Nobody,
        }
    }

    /// The bus that was named, or the only one that is ready.
    fn bus(&self) -> Result<String, Failure> {
        if let Some(bus) = &self.board {
            return Ok(bus.clone());
        }
        let (ready, _) = doctor::ready_and_refused(&Root::system());
        match &ready[..] {
            [] => Err(Failure::Failed(
                "this machine has no SPI bus that is ready: `barewire doctor` says what is missing and what to do; --board \
                 sim:imx8mp tries the command on a simulated board"
                    .into(),
            )),
            [one] => Ok(one.clone()),
            several => Err(Failure::Usage(format!(
                "say which bus: --board {}",
                several.join(", --board ")
            ))),
        }
    }

    /// The board that predicts for a bus, and what is asked of it.
    fn simulated(&self, name: &BusName, survey: &Survey) -> Result<Simulated, Failure> {
        let options = match name {
            BusName::Sim(options) => SimOptions { file_use: FileUse::Unused, ..options.clone() },
            _ => {
                let block = match name {
                    BusName::Mapped(spec) => Some(spec.block),
                    _ => procedure::controller(survey, name).and_then(|it| it.block()),
                };
                let like = match (&self.like, block) {
                    (Some(like), _) => like.clone(),
                    (None, Some(block)) => board::like(block, &survey.machine.compatible).into(),
                    (None, None) => {
                        return Err(Failure::Usage(
                            "the controller is none that barewire drives: say --like BOARD, the simulated board to stand beside"
                                .into(),
                        ));
                    }
                };
                let spec = board::spec(&like)?;
                match bus_name::parse(&format!("sim:{}", spec.name)).map_err(Failure::Usage)? {
                    BusName::Sim(options) => options,
                    _ => unreachable!("sim: is a simulated board"),
                }
            }
        };
        let answers = self.answers();
        let flash = options.board.first_flash().map(|flash| flash.cs);
        let chip_select = match (name, answers) {
            (BusName::Sim(_), _) if self.chip_select.is_some() => self.chip_select.unwrap_or(0),
            (_, Answers::Flash) => flash.unwrap_or(0),
            _ => 0,
        };
        Ok(Simulated { options, answers, chip_select, speed_hz: self.speed_hz, has_bank: true })
    }
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let bus = args.bus()?;
    let name = bus_name::parse(&bus).map_err(Failure::Usage)?;
    if let BusName::Qemu(_) | BusName::Null = name {
        return Err(Failure::Usage(format!(
            "{name} has no time of its own: measure a board (mem:, uio:, spidev:) or a simulated one (sim:)"
        )));
    }
    let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let begun = Instant::now();
    let root = Root::system();
    let survey = Survey::of(&root);
    let simulated = args.simulated(&name, &survey)?;
    let files = Files::create(args)?;
    let procedure = Procedure::new(&survey, args.quick, args.json);
    let on_this_machine = OnThisMachine {
        name: name.clone(),
        answers: args.answers(),
        chip_select: args.chip_select.unwrap_or(0),
        speed_hz: args.speed_hz,
        begun,
    };
    let done = match measured(&name, procedure, &simulated, &on_this_machine) {
        Ok(done) => done,
        Err(failure) => {
            drop(files);
            // Made for nothing; one with files in it stays.
            let _ = fs::remove_dir(&args.out);
            return Err(failure);
        }
    };
    // The result is made of what there is.
    interrupt::acknowledge();
    let (stopped, failures) = (done.stopped, done.failures.clone());
    let about =
        About { args, bus, name: &name, root: &root, survey: &survey, simulated: &simulated };
    let mut measured = about.result(done)?;
    (measured.began_unix_s, measured.took_s) = (began, begun.elapsed().as_secs_f64().round());
    files.write(&measured)?;
    match args.json {
        true => output::json(&measured)?,
        false => output::text(&text::text(&measured))?,
    }
    let dir = args.out.display();
    note!("written: {dir}/{JSON}, {dir}/{PAGE}");
    if stopped {
        let parts: Vec<&str> = measured.missing.iter().map(|it| it.part.as_str()).collect();
        let what = format!("stopped as asked: {dir}/{JSON} lacks {}", parts.join(", "));
        return Err(Failure::Interrupted(what));
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(failures.join("; "))),
    }
}

const JSON: &str = "measured.json";
const PAGE: &str = "measured.html";

/// The files of the result, begun before anything is measured: a directory that cannot be written is an error then.
struct Files {
    json: Output,
    page: Output,
}

impl Files {
    fn create(args: &Args) -> Result<Self, Failure> {
        let dir = &args.out;
        fs::create_dir_all(dir).map_err(|error| {
            Failure::io(format!("make the directory {}", dir.display()), &error)
        })?;
        let create = |name: &str| {
            let path = dir.join(name);
            Output::create(NamedFile { by: "--out", path: &path }, false)
        };
        Ok(Self { json: create(JSON)?, page: create(PAGE)? })
    }

    fn write(self, measured: &Measured) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(measured)
            .map_err(|error| Failure::Failed(format!("cannot make JSON of the result: {error}")))?;
        self.json.write(&(text + "\n"))?;
        self.page.write(&measured_html(measured))
    }
}

/// Measures the bus of that name.
fn measured(
    name: &BusName,
    procedure: Procedure<'_>,
    simulated: &Simulated,
    bus: &OnThisMachine,
) -> Result<Done, Failure> {
    match name {
        BusName::Sim(_) => Ok(procedure.simulated(simulated)),
        BusName::Mapped(spec) => procedure.mapped(bus, spec),
        _ => procedure.spidev(bus),
    }
}

/// What a result is about.
struct About<'a> {
    args: &'a Args,
    bus: String,
    name: &'a BusName,
    root: &'a Root,
    survey: &'a Survey,
    simulated: &'a Simulated,
}

impl About<'_> {
    /// Where the times are from, what shows that, and the same in words.
    fn origin(&self, done: &Done) -> (Origin, Vec<String>, String) {
        let machine = &self.survey.machine;
        let model =
            if machine.model.is_empty() { "a machine without a name" } else { &machine.model };
        if let BusName::Sim(_) = self.name {
            let profile = self.simulated.options.profile().name;
            let why = "barewire's simulator: virtual time, by a cost profile".to_owned();
            return (
                Origin::Simulated,
                vec![why],
                format!("simulated ({}, profile {profile})", self.name),
            );
        }
        let mut evidence = emulated::evidence(self.root, &machine.compatible);
        evidence.extend(done.idle.of_clocks.and_then(emulated::no_wire));
        match evidence.is_empty() {
            true => (
                Origin::Measured,
                evidence,
                format!("measured on {model}, Linux {}", machine.release),
            ),
            false => {
                let words = format!("emulated (QEMU's time) as {model}, Linux {}", machine.release);
                (Origin::Emulated, evidence, words)
            }
        }
    }

    fn result(&self, done: Done) -> Result<Measured, Failure> {
        let (origin, evidence, provenance) = self.origin(&done);
        let base = &self.simulated.options.board.profile;
        let idle = quantiles(&done.idle);
        let mut missed = Collected::default();
        let (costs, profile) = costs::of(&idle, self.simulated, base, &provenance, &mut missed)?;
        let predicted = Predicted::of(self.simulated, base);
        let again = self.at(&profile);
        let mut figures = Vec::new();
        for (id, ns) in idle {
            figures.push(MeasuredFigure {
                id: id.into(),
                what: what(id).into(),
                condition: Condition::Idle,
                ns,
                predicted: predicted.figure(id),
                with_costs: costs::median(&again, id),
            });
        }
        for (id, ns) in quantiles(&done.load) {
            let (id, what) = (id.into(), what(id).into());
            let (predicted, with_costs) = (None, None);
            figures.push(MeasuredFigure {
                id,
                what,
                condition: Condition::Load,
                ns,
                predicted,
                with_costs,
            });
        }
        let missing = [done.idle.missing, done.load.missing, missed.missing].concat();
        Ok(Measured {
            format: "barewire-measured-1",
            barewire: env!("CARGO_PKG_VERSION"),
            began_unix_s: 0,
            took_s: 0.0,
            bus: self.bus.clone(),
            origin,
            provenance,
            evidence,
            complete: !done.stopped,
            missing,
            quick: self.args.quick,
            answers: self.args.answers().name(),
            effective_speed_hz: done.idle.effective_speed_hz,
            profile: base.name,
            load_threads: done.load_threads,
            facts: self.facts(),
            figures,
            selftest: done.selftest,
            costs,
        })
    }

    fn facts(&self) -> Vec<Fact> {
        match self.name {
            BusName::Sim(options) => {
                vec![Fact { about: "board".into(), text: options.board.title.into() }]
            }
            name => facts::of(self.root, self.survey, procedure::controller(self.survey, name)),
        }
    }

    /// The figures of the simulated board at other costs; a part that fails has none.
    fn at(&self, profile: &Profile) -> Collected {
        simulate(self.simulated, profile)
    }
}

fn simulate(simulated: &Simulated, profile: &Profile) -> Collected {
    let simulated = simulated.predicting().with(profile.clone());
    let mut all = Collected::default();
    for part in Part::ALL {
        if let Ok(one) = simulated.run(&[part], Effort::SIMULATED) {
            all.absorb(one);
        }
    }
    all
}

/// The simulated figures at the low, the used and the high costs of a profile.
struct Predicted([Collected; 3]);

impl Predicted {
    fn of(simulated: &Simulated, base: &Profile) -> Self {
        Self(CostLevel::ALL.map(|level| simulate(simulated, &base.at(level))))
    }

    fn figure(&self, id: &str) -> Option<Band> {
        let [low, used, high] = self.0.each_ref().map(|run| costs::median(run, id));
        Some(Band::over(used?, [low?, high?]))
    }
}

fn quantiles(collected: &Collected) -> Vec<(&'static str, Quantiles)> {
    let of = |(id, rounds): &(&'static str, Vec<f64>)| Some((*id, Quantiles::of(rounds.clone())?));
    collected.figures.iter().filter_map(of).collect()
}

/// What a figure is.
fn what(id: &str) -> &'static str {
    match id {
        "register-read" => "a read of a register of the controller's, in a loop",
        "register-write" => "a write without an effect, in a row of such writes",
        "register-write-barrier" => "the same with a barrier behind it",
        "gpio-read" => "a read of a register of the chip select's GPIO bank, in a loop",
        "gpio-write" => "a write without an effect there, in a row of such writes",
        "timer-read" => "a read of the clock that drivers use",
        "futex-call" => "a wait call that finds the word changed",
        "wake-call" => "a call that wakes a thread on another processor",
        "wake" => "from that call's end until that thread runs",
        "hand-over" => "a turn handed to another thread of the same processor",
        "irq-wake" => {
            "a message of 16 bytes at 1 MHz that sleeps until the interrupt, less one that polls"
        }
        "message-4-prepared" => "a prepared access of 4 bytes",
        "message-select" => "what selecting the chip adds to it",
        "message-4" => "a message of 4 bytes",
        "message-64" => "a message of 64 bytes",
        "message-256" => "a message of 256 bytes",
        "message-slow" => "a message of 16 bytes at 100 kHz: 1,280,000 ns of clocks",
        "spidev-4" => "a message of 4 bytes through the kernel's spidev",
        "spidev-64" => "a message of 64 bytes through the kernel's spidev",
        _ => "",
    }
}
