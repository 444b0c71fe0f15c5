//! The parts of the measurement in their order, on a bus of any kind.
//!
//! # Ordering
//! 1. The kernel's spidev, if the kernel's driver has the controller; the chip is given back.
//! 2. The controller is taken from that driver.
//! 3. Registers, threads, messages, the interrupt; when idle the loopback suite too.
//! 4. The controller is given back.
//!
//! 1 and 3 are done when idle, then beside busy threads. A part that fails is missing, and the next one is measured; after
//! Ctrl-C, and when time is up, all others are missing. 4 is done in any case.

use std::time::{Duration, Instant};

use barewire_lab::measured::{Condition, Selftest};
use barewire_linux::Root;
use barewire_linux::map::{MapSpec, Via};
use barewire_linux::survey::{Controller, Survey};
use barewire_open::name::BusName;
use barewire_open::{Fitting, Layers, LocalBus, OpenOptions};
use barewire_sim::model::can::BitTimes;

use super::super::doctor;
use super::bindings::Bindings;
use super::load::Load;
use super::machine::{self, OnThisMachine};
use super::messages::Answers;
use super::rounds::{Collected, Effort};
use super::simulated::{Part, Simulated};
use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::progress::Progress;

/// The longest that a measurement begins new parts.
const WHOLE: Duration = Duration::from_secs(280);
const QUICK: Duration = Duration::from_secs(50);
/// Parts of the longest procedure, for the progress bar.
const PARTS: u64 = 11;

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) idle: Collected,
    /// Beside busy threads.
    pub(super) load: Collected,
    pub(super) load_threads: usize,
    pub(super) selftest: Option<Selftest>,
    /// A signal ended it.
    pub(super) stopped: bool,
    /// The parts that failed, as errors.
    pub(super) failures: Vec<String>,
}

/// The measurement.
pub(super) struct Procedure<'p> {
    pub(super) effort: Effort,
    begun: Instant,
    limit: Duration,
    progress: Progress,
    parts: u64,
    survey: &'p Survey,
    done: Done,
}

impl<'p> Procedure<'p> {
    pub(super) fn new(survey: &'p Survey, is_quick: bool, silent: bool) -> Self {
        const TEMPLATE: &str = "{prefix:9} {wide_bar} {msg}, {elapsed}";
        let (effort, limit) = match is_quick {
            true => (Effort::QUICK, QUICK),
            false => (Effort::WHOLE, WHOLE),
        };
        let progress = Progress::with_template("measuring", PARTS, silent, TEMPLATE);
        let begun = Instant::now();
        Self { effort, begun, limit, progress, parts: 0, survey, done: Done::default() }
    }

    fn collected(&mut self, condition: Condition) -> &mut Collected {
        match condition {
            Condition::Idle => &mut self.done.idle,
            Condition::Load => &mut self.done.load,
        }
    }

    /// Runs a part, or notes why it is missing.
    fn part(
        &mut self,
        name: &'static str,
        condition: Condition,
        run: impl FnOnce(&mut Collected) -> Result<(), Failure>,
    ) {
        self.progress.say(format!("{name}, {}", condition.name()));
        self.progress.set(self.parts);
        self.parts += 1;
        let told = match condition {
            Condition::Idle => name.to_owned(),
            Condition::Load => format!("{name}, under load"),
        };
        if self.done.stopped || interrupt::asked() {
            self.done.stopped = true;
            self.collected(condition).miss(&told, "stopped before");
            return;
        }
        if self.begun.elapsed() > self.limit {
            let why = format!("the time was up: {} s", self.limit.as_secs());
            self.collected(condition).miss(&told, why);
            return;
        }
        match run(self.collected(condition)) {
            Ok(()) => {}
            // A message fails after Ctrl-C, whatever its error says.
            Err(_) if interrupt::asked() => {
                self.done.stopped = true;
                self.collected(condition).miss(&told, "stopped in it");
            }
            Err(failure) if machine::without_loopback(&failure) => {
                self.collected(condition).miss(&told, failure.to_string());
            }
            Err(failure) => {
                self.collected(condition).miss(&told, failure.to_string());
                self.done.failures.push(format!("{told}: {failure}"));
            }
        }
    }

    /// Does `parts` when idle, then beside busy threads.
    fn under_both(&mut self, mut parts: impl FnMut(&mut Self, Condition, Effort)) {
        parts(self, Condition::Idle, self.effort);
        if self.done.stopped {
            self.done.idle.miss("load", "stopped before");
            return;
        }
        let load = Load::start();
        self.done.load_threads = Load::threads();
        parts(self, Condition::Load, self.effort.under_load());
        drop(load);
    }

    /// A simulated board: nothing is beside it.
    pub(super) fn simulated(mut self, simulated: &Simulated) -> Done {
        let effort = Effort { rounds: 10, ..Effort::SIMULATED };
        let names = ["registers", "threads", "interrupt", "messages"];
        for (name, part) in names.into_iter().zip(Part::ALL) {
            self.part(name, Condition::Idle, |collected| {
                collected.absorb(simulated.run(&[part], effort)?);
                Ok(())
            });
        }
        let (mut selftest, effort) = (None, self.effort);
        self.part("selftest", Condition::Idle, |_| {
            let fitted = match simulated.answers {
                Answers::Flash => Fitting::Chips(BitTimes::from_rates(500_000, 2_000_000)),
                Answers::Loopback => Fitting::Jumpers,
                Answers::Nobody => Fitting::Nothing,
            };
            let layers = Layers { stop: Some(interrupt::asked), ..Layers::default() };
            let options = OpenOptions { fitted, layers, ..OpenOptions::default() };
            let name = BusName::Sim(simulated.options.clone());
            let bus = LocalBus::open_with(&name, options, &mut |_| ())?;
            let Simulated { answers, chip_select, speed_hz, .. } = *simulated;
            selftest = Some(machine::selftest(&bus, answers, chip_select, speed_hz, effort)?);
            Ok(())
        });
        self.done.selftest = selftest;
        self.done.idle.miss("load", "no other work runs beside a simulated board");
        self.done.idle.miss("spidev", "no kernel runs on a simulated board");
        self.done
    }

    /// A node of spidev: no registers.
    ///
    /// # Errors
    /// The node cannot be opened.
    pub(super) fn spidev(mut self, bus: &OnThisMachine) -> Result<Done, Failure> {
        bus.check()?;
        self.done.idle.miss("registers", "the kernel has them: name a mem: or uio: bus");
        self.under_both(|this, condition, effort| {
            this.part("threads", condition, |collected| bus.threads(effort, collected));
            this.part("messages", condition, |collected| bus.messages(effort, collected));
        });
        Ok(self.done)
    }

    /// A controller that is mapped.
    ///
    /// # Errors
    /// The controller cannot be taken from the kernel's driver, cannot be mapped, or not given back.
    pub(super) fn mapped(mut self, bus: &OnThisMachine, spec: &MapSpec) -> Result<Done, Failure> {
        let controller = doctor::controller_of(self.survey, spec);
        let mut bindings =
            controller.map(|it| Bindings::of(Root::system(), it, bus.chip_select)).transpose()?;
        let by_memory = matches!(spec.via, Via::DevMem { .. });
        match bindings.as_mut().filter(|it| by_memory && it.are_the_kernel_s()) {
            Some(bindings) => {
                self.kernel_s(bus, bindings)?;
                bindings.take_controller().map_err(Failure::Failed)?;
            }
            None => {
                let what = "no driver of the kernel's had the controller when this began (`barewire restore` gives it back to one)";
                self.done.idle.miss("spidev", what);
            }
        }

        bus.check()?;
        self.under_both(|this, condition, effort| {
            this.part("registers", condition, |collected| bus.registers(spec, effort, collected));
            this.part("threads", condition, |collected| bus.threads(effort, collected));
            this.part("messages", condition, |collected| bus.messages(effort, collected));
            this.part("interrupt", condition, |collected| bus.interrupt(spec, effort, collected));
            if condition == Condition::Idle {
                let mut selftest = None;
                this.part("selftest", condition, |_| {
                    selftest = Some(bus.selftest(effort)?);
                    Ok(())
                });
                this.done.selftest = selftest;
            }
        });
        if let Some(mut bindings) = bindings {
            bindings.restore().map_err(Failure::Failed)?;
        }
        Ok(self.done)
    }

    /// The kernel's spidev, and the chip given back.
    fn kernel_s(
        &mut self,
        bus: &OnThisMachine,
        bindings: &mut Bindings<'_>,
    ) -> Result<(), Failure> {
        if bus.answers == Answers::Nobody {
            let why = "the kernel selects a chip: say --flash or --loopback";
            self.done.idle.miss("spidev", why);
            return Ok(());
        }
        match bindings.lend_chip() {
            Ok(node) => self.under_both(|this, condition, effort| {
                this.part("spidev", condition, |collected| bus.spidev(&node, effort, collected));
            }),
            Err(why) => self.done.idle.miss("spidev", why),
        }
        bindings.restore().map_err(Failure::Failed)
    }
}

/// The controller of a bus, if it is one of this machine's.
pub(super) fn controller<'s>(survey: &'s Survey, name: &BusName) -> Option<&'s Controller> {
    match name {
        BusName::Mapped(spec) => doctor::controller_of(survey, spec),
        BusName::Spidev(node) => {
            let path = node.path.to_str()?;
            survey.controllers.iter().find(|it| it.spidev.iter().any(|node| node.path == path))
        }
        _ => None,
    }
}
