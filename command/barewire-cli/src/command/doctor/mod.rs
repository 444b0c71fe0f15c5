//! `barewire doctor`: what stands between this machine and a working bus, and what to do about it.
//!
//! It reads `/proc` and `/sys` and touches nothing: see [`survey`](barewire_linux::survey). Each remedy
//! is a command to paste, with the command that undoes it; `barewire restore` undoes those that concern
//! drivers.

mod board;
mod config;
mod cost;
mod facts;
mod lines;
mod machine;
mod overlay;
mod probe;
mod refused;
mod registers;
mod report;
mod spidev;

use barewire_linux::bus_text::{parse_door, parse_mem, parse_uio};
use barewire_linux::map::{MapSpec, Via};
use barewire_linux::survey::{Access, Controller, Survey};
use barewire_linux::{Root, bus_text};

pub(crate) use facts::waits;
pub(crate) use lines::held;
use report::{Finding, Level, Report, Way};

use crate::shared::failure::Failure;
use crate::shared::output;

/// Examples, and what the exit code means.
const AFTER_HELP: &str = "\
Lines with $ are commands to paste, as root; `undo:` is what takes each back. `barewire restore` gives chips and \
controllers back to the drivers they had.

  barewire doctor
  barewire doctor spidev:/dev/spidev0.0
  barewire doctor --overlay 30820000.spi > barewire-uio-30820000.dtso

Exit code 1 if a bus is named that is not ready.";

#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The bus to look into, as --bus takes it; without it all of this machine's
    bus: Option<String>,
    /// Print a device-tree overlay that gives this controller (as 30820000.spi) to UIO
    #[arg(long, value_name = "CONTROLLER", conflicts_with_all = ["bus", "probe", "probe_anyway", "json"])]
    overlay: Option<String>,
    /// Ask the chip for its identity, on buses that are ready and where the device tree says what it is
    #[arg(long, conflicts_with = "json")]
    probe: bool,
    /// Ask the chip behind this chip select whatever it is; a converter takes the question as data
    #[arg(long, value_name = "CS", requires = "bus", conflicts_with = "json")]
    probe_anyway: Option<u8>,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let root = Root::system();
    let survey = Survey::of(&root);
    if let Some(name) = &args.overlay {
        let controller = by_name(&survey, name)?;
        return output::text(&overlay::text(&root, &survey.machine, controller)?);
    }
    let config = config::read(&root, &survey.machine.release);
    let report = match &args.bus {
        None => Report::of(&survey, config.as_deref()),
        Some(bus) => Report::of_bus(&survey, config.as_deref(), bus)?,
    };
    if args.json {
        output::json(&report)?;
    } else {
        output::text(&report.text())?;
    }
    if args.probe {
        probe::known(&report)?;
    }
    if let (Some(chip_select), Some(bus)) = (args.probe_anyway, &args.bus) {
        probe::anyway(bus, chip_select)?;
    }
    match &args.bus {
        Some(bus) if report.ready.is_empty() => Err(Failure::Failed(format!("{bus} is not ready"))),
        _ => Ok(()),
    }
}

/// The buses of this machine that can be used now, and the nodes of spidev that doctor refuses.
pub(crate) fn ready_and_refused(root: &Root) -> (Vec<String>, Vec<String>) {
    let survey = Survey::of(root);
    let refused = survey.controllers.iter().flat_map(refused::nodes).collect();
    (Report::of(&survey, None).ready, refused)
}

/// What is found of the machine, and of one of its controllers, each as its subject and a text.
pub(crate) fn found(survey: &Survey, controller: Option<&Controller>) -> Vec<(String, String)> {
    let of_controller = controller.map(|it| facts::findings(&survey.machine, it));
    let all =
        machine::findings(survey, None).into_iter().chain(of_controller.into_iter().flatten());
    all.map(|finding| (finding.about, finding.text)).collect()
}

/// The controller that `spec` means.
pub(crate) fn controller_of<'s>(survey: &'s Survey, spec: &MapSpec) -> Option<&'s Controller> {
    let name = place(survey, spec)?;
    survey.controllers.iter().find(|controller| controller.device.name == *name)
}

fn by_name<'s>(survey: &'s Survey, name: &str) -> Result<&'s Controller, Failure> {
    let all = &survey.controllers;
    let found = all.iter().find(|controller| controller.device.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|it| it.device.name.as_str()).collect();
        Failure::Usage(match names.is_empty() {
            true => {
                format!("there is no SPI controller in this machine's device tree, so no {name}")
            }
            false => format!("there is no SPI controller {name}; there are {}", names.join(", ")),
        })
    })
}

impl Report {
    fn of(survey: &Survey, config: Option<&str>) -> Self {
        let controllers = survey.controllers.iter().map(|it| report::Controller::of(survey, it));
        let mut report = Self {
            machine: report::Machine {
                model: survey.machine.model.clone(),
                compatible: survey.machine.compatible.clone(),
                kernel: survey.machine.release.clone(),
                uid: survey.rights.uid,
            },
            findings: machine::findings(survey, config),
            controllers: controllers.collect(),
            ready: Vec::new(),
            after_steps: Vec::new(),
        };
        report.sum_up();
        report
    }

    /// The report on one bus.
    fn of_bus(survey: &Survey, config: Option<&str>, bus: &str) -> Result<Self, Failure> {
        let mut report = Self::of(survey, config);
        let (kind, rest) = bus.split_once(':').unwrap_or((bus, ""));
        match kind {
            "sim" | "qemu" => {
                report.controllers.clear();
                report.findings.clear();
                report.after_steps.clear();
                report.ready = vec![bus.to_owned()];
                return Ok(report);
            }
            "spidev" => {
                let path =
                    if rest.starts_with('/') { rest.to_owned() } else { format!("/dev/{rest}") };
                let whole = format!("spidev:{path}");
                let number = path.strip_prefix("/dev/spidev").and_then(|it| it.split_once('.'));
                let number = number.and_then(|(number, _)| number.parse::<u32>().ok());
                // A way without a bus says why the controller has none.
                report.keep(|controller, way| {
                    let closed = way.kind == kind && way.bus.is_none();
                    way.bus.as_deref() == Some(&whole)
                        || closed && number.is_some() && controller.kernel_bus == number
                });
            }
            "mem" | "uio" | "barewire" => {
                let parsed = match kind {
                    "mem" => parse_mem(rest),
                    "uio" => parse_uio(rest),
                    _ => parse_door(rest),
                };
                let spec = parsed.map_err(|error| Failure::Usage(error.to_string()))?;
                let name = place(survey, &spec);
                report.keep(|controller, way| way.kind == kind && name == Some(&controller.name));
                report.compare(survey, &spec);
            }
            _ => {
                return Err(Failure::Usage(format!(
                    "{bus} is no bus: write spidev:/dev/spidevB.C, barewire:N, uio:uioN, mem:0xADDRESS, or none to see all"
                )));
            }
        }
        // Facts about the machine are printed even if no bus is named.
        report.findings.clear();
        report.sum_up();
        if report.controllers.is_empty() {
            return Err(Failure::Failed(format!(
                "no controller of this machine has {bus}: `barewire doctor` shows all"
            )));
        }
        Ok(report)
    }

    /// Keeps the ways that `wanted` picks, and the controllers that have one.
    fn keep(&mut self, wanted: impl Fn(&report::Controller, &Way) -> bool) {
        for controller in &mut self.controllers {
            let ways = std::mem::take(&mut controller.ways);
            controller.ways = ways.into_iter().filter(|way| wanted(controller, way)).collect();
        }
        self.controllers.retain(|controller| !controller.ways.is_empty());
    }

    /// Says where a specification differs from what was found.
    fn compare(&mut self, survey: &Survey, spec: &MapSpec) {
        for (report, found) in self.controllers.iter_mut().flat_map(|report| {
            let found = survey.controllers.iter().find(|it| it.device.name == report.name);
            found.map(|found| (report, found))
        }) {
            let mut problem = |text: String| {
                report.findings.push(Finding::new(Level::Problem, "as written", text));
            };
            if let Via::DevMem { address } = spec.via
                && address != found.device.address
            {
                problem(format!(
                    "{address:#x} is how the manual's bus numbers it; the processor sees it at {:#x}",
                    found.device.address
                ));
            }
            // The kernel says all of it.
            if let Via::Door { .. } = spec.via {
                continue;
            }
            if found.block().is_some_and(|block| block != spec.block) {
                problem(format!(
                    "the controller is not {}: use controller= as in the line below",
                    spec.block
                ));
            }
            let rate = found.clock.as_ref().and_then(|clock| clock.rate.as_ref());
            if let Some(rate) = rate.filter(|rate| !rate.is(spec.reference_hz)) {
                problem(format!(
                    "reference-hz is {} Hz, the clock {} has {} Hz: every bus clock would be wrong by that much",
                    spec.reference_hz, rate.name, rate.hz
                ));
            }
            let wrong = report.findings.iter().any(|finding| finding.about == "as written");
            let asked = bus_text::text(spec);
            for way in &mut report.ways {
                if wrong && way.bus.as_ref().is_some_and(|bus| *bus != asked) {
                    way.ready = false;
                    let right = way.bus.clone().unwrap_or_default();
                    way.obstacles.push(format!("{asked} is not right: write {right}"));
                }
            }
        }
    }

    fn sum_up(&mut self) {
        let ways = || self.controllers.iter().flat_map(|controller| &controller.ways);
        let bus = |way: &Way| way.bus.clone();
        self.ready = ways().filter(|way| way.ready).filter_map(bus).collect();
        let later = |way: &&Way| !way.ready && way.is_reachable();
        self.after_steps = ways().filter(later).filter_map(bus).collect();
    }
}

/// The controller that a specification means: by the processor's address, or by the manual's.
fn place<'s>(survey: &'s Survey, spec: &MapSpec) -> Option<&'s String> {
    let is_it = |controller: &&Controller| match &spec.via {
        Via::Uio { device } => {
            let wanted = device.strip_prefix("/dev/").unwrap_or(device);
            controller.uio.as_ref().is_some_and(|uio| uio.name() == wanted)
        }
        Via::Door { device } => {
            let is_it = |door: &Access| door.path.strip_prefix("/dev/") == Some(device);
            controller.door.as_ref().is_some_and(is_it)
        }
        Via::DevMem { address } => {
            controller.device.address == *address || controller.bus_address == Some(*address)
        }
    };
    survey.controllers.iter().find(is_it).map(|controller| &controller.device.name)
}

impl report::Controller {
    fn of(survey: &Survey, controller: &Controller) -> Self {
        let mut ways = spidev::ways(&survey.machine, controller);
        let (doors, others): (Vec<_>, Vec<_>) =
            registers::ways(survey, controller).into_iter().partition(|way| way.kind == "barewire");
        ways.splice(0..0, doors);
        ways.extend(others);
        lines::close(controller, &mut ways);
        refused::close(controller, &mut ways);
        Self {
            name: controller.device.name.clone(),
            base: controller.device.base(),
            block: controller.block().map(|block| block.name()),
            driver: controller.device.driver.clone(),
            kernel_bus: controller.bus,
            node: controller.node.clone(),
            findings: facts::findings(&survey.machine, controller),
            ways,
        }
    }
}

#[cfg(test)]
mod tests;
