//! The lab: the figures, the rules, the costs and the experiments together.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::band::{self, Band, Kind, LeftOut, Replays};
use crate::cost::{Checks, Costs};
use crate::error::LabError;
use crate::experiment::{Experiment, Question, Workload};
use crate::figure::{self, Figure};
use crate::fit::{self, Extent, Fit, FittedCost, Residual, Target};
use crate::gain::{self, GainOutcome};
use crate::held_out::{self, HeldOut};
use crate::limits;
use crate::messages::{self, OwnOutcome};
use crate::ours::{self, Ours};
use crate::outcome::{Explanation, Move, Outcome, Row, Sweep, SweepRequest, UnpublishedResult};
use crate::own::OwnExperiment;
use crate::replay::Runner;
use crate::rules::Rules;
use crate::score::{self, Score};
use crate::sweep::OwnSweepRequest;

/// An experiment as `barewire lab list` shows it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ExperimentLine {
    /// Its name, the file's: `jander-rfc-echo`.
    pub name: String,
    /// Its thread, or none for a user's own.
    pub thread: String,
    /// In words.
    pub title: String,
    /// The simulated board.
    pub board: String,
    /// The workload.
    pub workload: String,
    /// The thread's words for the set-up.
    pub citation: String,
    /// The paths that it runs, by name.
    pub paths: Vec<String>,
    /// The ids of the figures that it answers.
    pub figures: Vec<String>,
}

/// The lab.
#[derive(Debug)]
pub struct Lab {
    figures: Vec<Figure>,
    rules: Rules,
    costs: Costs,
    draws: Vec<Costs>,
    experiments: Vec<Experiment>,
}

impl Lab {
    /// The lab as it comes: the five threads, with fitted costs.
    #[must_use]
    pub fn new() -> Self {
        Self::with_costs(Costs::fitted(), Costs::drawn())
    }

    /// The same with other costs, and sets of costs that are as probable.
    #[must_use]
    pub fn with_costs(costs: Costs, draws: Vec<Costs>) -> Self {
        Self {
            figures: figure::published(),
            rules: Rules::published(),
            costs,
            draws,
            experiments: Experiment::all(),
        }
    }

    /// The profile whose costs a file replaces; none if no file does.
    #[must_use]
    pub fn board(&self) -> Option<&str> {
        self.costs.board()
    }

    /// Adds an experiment, as text. Its figures that are not among the published ones need `published` and `unit`; they
    /// are replayed and not scored.
    ///
    /// # Errors
    /// If the text cannot be read, names an experiment or figure that is there already, or leaves something out.
    pub fn with_experiment(&mut self, text: &str) -> Result<(), LabError> {
        let mut experiment = Experiment::read(text).map_err(LabError::Experiment)?;
        limits::check(&experiment).map_err(LabError::Experiment)?;
        let taken = |name: &str| {
            LabError::Experiment(format!("{name:?} is there already: give it another name"))
        };
        if self.experiments.iter().any(|one| one.name == experiment.name) {
            return Err(taken(&experiment.name));
        }
        if experiment.thread.is_empty() {
            experiment.thread = "own".into();
        }
        let runner = Runner::new(&self.costs);
        for path in &experiment.paths {
            runner.tell(&experiment, path)?;
        }
        let mut figures = self.figures.clone();
        for asked in &experiment.figure {
            if figures.iter().any(|figure| figure.id == asked.id) {
                return Err(taken(&asked.id));
            }
            let (Some(value), Some(unit)) = (asked.published, asked.unit.clone()) else {
                let text = format!(
                    "{}: published and unit are missing, and the id is not one of the lab's",
                    asked.id
                );
                return Err(LabError::Experiment(text));
            };
            if !value.is_finite() || value <= 0.0 {
                return Err(LabError::Experiment(format!(
                    "{}: published is a number above 0",
                    asked.id
                )));
            }
            Runner::new(&self.costs).take(&experiment, asked)?;
            figures.push(Figure {
                id: asked.id.clone(),
                thread: experiment.thread.clone(),
                value,
                unit,
                variant: asked.path.clone(),
                metric: asked.metric.clone(),
            });
        }
        self.figures = figures;
        self.experiments.push(experiment);
        Ok(())
    }

    /// Adds a user's own experiment. The figures that its messages have `published` are replayed and not scored.
    ///
    /// # Errors
    /// If an experiment of its name is there already, or a message has no such figure.
    pub fn with_own(&mut self, own: OwnExperiment) -> Result<(), LabError> {
        if self.experiments.iter().any(|one| one.name == own.name) {
            let text = format!("{:?} is there already: give the file another name", own.name);
            return Err(LabError::Experiment(text));
        }
        let experiment = Experiment::of(Rc::new(own));
        let runner = Runner::new(&self.costs);
        for asked in &experiment.figure {
            runner.take(&experiment, asked)?;
            self.figures.push(Figure {
                id: asked.id.clone(),
                thread: experiment.thread.clone(),
                value: asked.published.unwrap_or_default(),
                unit: asked.unit.clone().unwrap_or_default(),
                variant: asked.path.clone(),
                metric: asked.metric.clone(),
            });
        }
        self.experiments.push(experiment);
        Ok(())
    }

    /// The users' own experiments.
    pub fn own(&self) -> impl Iterator<Item = &OwnExperiment> {
        self.experiments.iter().filter_map(|one| one.own.as_deref())
    }

    /// The figures not seen before, with bands.
    #[must_use]
    pub fn held_out(&self) -> Vec<HeldOut> {
        held_out::figures(&self.costs, &self.draws)
    }

    /// A figure of a user's message over a parameter.
    ///
    /// # Errors
    /// As [`crate::sweep::own_sweep`].
    pub fn sweep_messages(
        &self,
        own: &OwnExperiment,
        request: &OwnSweepRequest,
    ) -> Result<Sweep, LabError> {
        crate::sweep::own_sweep(own, &self.costs, request)
    }

    /// The figures of a user's own experiment, with bands.
    ///
    /// # Errors
    /// As [`messages::outcome`].
    pub fn messages(&self, own: &OwnExperiment) -> Result<OwnOutcome, LabError> {
        messages::outcome(own, &self.costs, &self.draws)
    }

    /// What measures save of the time of a user's messages, with bands; `progress` is told how many of how many measures are
    /// done.
    ///
    /// # Errors
    /// If the wire loses a byte.
    pub fn gain(
        &self,
        own: &OwnExperiment,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<GainOutcome, LabError> {
        gain::gain(own, &self.costs, &self.draws, progress)
    }

    /// A figure of a message taken apart: see [`messages::explain`].
    ///
    /// # Errors
    /// As [`messages::explain`].
    pub fn explain_message(
        &self,
        own: &OwnExperiment,
        figure: (&str, Option<&str>),
        without: &[String],
    ) -> Result<Explanation, LabError> {
        messages::explain(own, &self.costs, figure, without)
    }

    /// Its rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The published figures.
    #[must_use]
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// Its experiments.
    #[must_use]
    pub fn list(&self) -> Vec<ExperimentLine> {
        let workload = |workload: Workload| format!("{workload:?}").to_lowercase();
        self.experiments
            .iter()
            .map(|one| ExperimentLine {
                name: one.name.clone(),
                thread: one.thread.clone(),
                title: one.title.clone(),
                board: one.board.clone(),
                workload: workload(one.workload),
                citation: one.citation.clone(),
                paths: one.paths(),
                figures: one.figure.iter().map(|asked| asked.id.clone()).collect(),
            })
            .collect()
    }

    /// How the figure `id` is answered.
    fn asked(&self, id: &str) -> Option<(&Experiment, &Question)> {
        self.experiments
            .iter()
            .find_map(|one| Some((one, one.figure.iter().find(|asked| asked.id == id)?)))
    }

    fn replay(&self, costs: &Costs, progress: &mut dyn FnMut()) -> BTreeMap<String, f64> {
        let runner = Runner::new(costs);
        let mut values = BTreeMap::new();
        for experiment in &self.experiments {
            for asked in &experiment.figure {
                if let Ok(taken) = runner.take(experiment, asked) {
                    values.insert(asked.id.clone(), taken.value);
                }
                progress();
            }
        }
        values
    }

    /// How far bands are moved out, see [`band::widening`], with figures by fits that leave their thread out.
    fn widening(&self, replays: &Replays, left_out: &BTreeMap<String, f64>) -> (f64, f64) {
        let is_predicted = |one: &&Figure| self.rules.kind(&one.id) == Kind::Predicted;
        let predicted = self.figures.iter().filter(is_predicted).filter_map(|figure| {
            Some(LeftOut {
                id: &figure.id,
                unit: &figure.unit,
                published: figure.value,
                simulated: *left_out.get(&figure.id)?,
            })
        });
        band::widening(replays, &predicted.collect::<Vec<_>>())
    }

    /// All figures at the costs used, and the smallest and largest value of each over these costs
    /// and `draws`.
    fn bands(&self, draws: &[Costs], progress: &mut dyn FnMut()) -> Replays {
        let used = self.replay(&self.costs, progress);
        let mut bands: Replays = used.into_iter().map(|(id, used)| (id, Band::of(used))).collect();
        for draw in draws {
            for (id, value) in self.replay(draw, progress) {
                if let Some(band) = bands.get_mut(&id) {
                    *band = band.with(value);
                }
            }
        }
        bands
    }

    /// Runs every experiment with the costs used and with each set drawn, and scores the result; `progress` is told how
    /// many of how many runs are done.
    pub fn run(&self, progress: &mut dyn FnMut(usize, usize)) -> Outcome {
        let asked: usize = self.experiments.iter().map(|one| one.figure.len()).sum();
        let (mut done, all) = (0, (2 + self.draws.len()) * asked);
        let mut tick = || {
            done += 1;
            progress(done, all);
        };
        let checks = Checks::kept();
        let mut replays = self.bands(&self.draws, &mut tick);
        let (by, covered) = self.widening(&replays, &checks.left_out);
        for figure in &self.figures {
            if let Some(band) = replays.get_mut(&figure.id) {
                *band = band.widened(by, &figure.unit);
            }
        }
        let ours = Ours::all(&self.costs, &self.draws);
        let mut rows = Vec::new();
        for figure in &self.figures {
            let asked = self.asked(&figure.id);
            let band = replays.get(&figure.id).copied();
            let kind = self.rules.kind(&figure.id);
            let barewire = asked.and_then(|(experiment, asked)| {
                ours::band(&ours, experiment, asked, (by, &figure.unit))
            });
            if asked.is_some() {
                tick();
            }
            rows.push(Row {
                id: figure.id.clone(),
                thread: figure.thread.clone(),
                kind,
                metric: figure.metric.clone(),
                variant: figure.variant.clone(),
                unit: figure.unit.clone(),
                published: figure.value,
                replayed: band.map(|band| band.used),
                low: band.map(|band| band.low),
                high: band.map(|band| band.high),
                error: band.map(|band| (band.used - figure.value) / figure.value),
                barewire,
                regime: asked.and_then(|(experiment, _)| experiment.workload.regime()),
                experiment: asked.map(|(experiment, _)| experiment.name.clone()),
                unexplained: asked.and_then(|(_, asked)| asked.unexplained.clone()),
            });
        }
        let score = score::score(&self.rules, &self.figures, &replays);
        let score = score.left_out(&self.rules, &self.figures, &checks);
        let score = Score { bands_widened: by, covered_left_out: covered, ..score };
        Outcome { figures: rows, told: self.told(), score, checks }
    }

    /// The results of experiments without figures, each on its paths.
    fn told(&self) -> Vec<UnpublishedResult> {
        let runner = Runner::new(&self.costs);
        let of_one = |one: &Experiment| {
            let told = one.paths().into_iter().map(|path| runner.tell(one, &path));
            told.collect::<Result<Vec<_>, _>>().expect("checked when it was added")
        };
        let without = self.experiments.iter().filter(|one| one.workload.has_no_figures());
        without.flat_map(of_one).collect()
    }

    /// The score of the costs used, without bands.
    #[must_use]
    pub fn score(&self) -> Score {
        let replays = self.bands(&[], &mut || ());
        score::score(&self.rules, &self.figures, &replays)
    }

    /// Takes the figure `id` apart, with the steps in `without` switched off.
    ///
    /// # Errors
    /// If there is no such figure or step, or the figure is one that nothing replays.
    pub fn explain(&self, id: &str, without: &[String]) -> Result<Explanation, LabError> {
        let figure = self.figures.iter().find(|figure| figure.id == id);
        let figure = figure.ok_or_else(|| LabError::Unknown {
            what: "figure",
            name: id.into(),
            known: self.figures.iter().map(|figure| figure.id.clone()).collect(),
        })?;
        let (experiment, asked) = self
            .asked(id)
            .ok_or_else(|| LabError::Refused(format!("{id} is an input: nothing replays it")))?;
        let whole = Runner::new(&self.costs).take(experiment, asked)?;
        let taken =
            Runner::ablated(&self.costs, whole, without, |runner| runner.take(experiment, asked))?;
        Ok(Explanation {
            published: Some(figure.value),
            moves: if without.is_empty() { self.moves(experiment, asked)? } else { Vec::new() },
            unexplained: asked.unexplained.clone(),
            ..taken.explained(id.into(), &figure.unit, without)
        })
    }

    /// What each cost that has a range does to a figure, at both ends.
    fn moves(&self, experiment: &Experiment, asked: &Question) -> Result<Vec<Move>, LabError> {
        let mut moves = Vec::new();
        for cost in self.costs.iter().filter(|cost| cost.is_free()) {
            let at = |value: Option<f64>| {
                let mut costs = self.costs.fresh();
                costs.set(&cost.name, value.unwrap_or(cost.value));
                let figure = Runner::new(&costs).take(experiment, asked)?.value;
                Ok((figure, Ours::new(&costs).figure(experiment, asked)))
            };
            let ((at_low, ours_low), (at_high, ours_high)) = (at(cost.low)?, at(cost.high)?);
            let barewire = ours_low.zip(ours_high);
            if at_low != at_high || barewire.is_some_and(|(low, high)| low != high) {
                moves.push(Move { cost: cost.name.clone(), at_low, at_high, barewire });
            }
        }
        let by = |one: &Move| (one.at_high - one.at_low).abs();
        moves.sort_by(|one, other| by(other).total_cmp(&by(one)));
        Ok(moves)
    }

    /// The published values of the figures that are `wanted`.
    fn published(&self, wanted: impl Fn(&Figure) -> bool) -> Vec<Target<'_>> {
        let target = |figure: &Figure| {
            let (experiment, asked) = self.asked(&figure.id)?;
            Some(Target { experiment, asked, value: figure.value })
        };
        let figures = self.figures.iter().filter(|figure| wanted(figure));
        figures.filter_map(target).collect()
    }

    /// The fit set's figures, of the threads that are `wanted`.
    fn targets(&self, wanted: impl Fn(&str) -> bool) -> Vec<Target<'_>> {
        self.published(|figure| self.rules.in_fit_set(&figure.id) && wanted(&figure.thread))
    }

    /// The figures that the user's experiments publish, each an id and its value.
    #[must_use]
    pub fn own_figures(&self) -> Vec<(String, f64)> {
        let published = figure::published();
        let is_own = |figure: &&Figure| !published.iter().any(|one| one.id == figure.id);
        let own = self.figures.iter().filter(is_own);
        own.map(|figure| (figure.id.clone(), figure.value)).collect()
    }

    /// The costs moved to a user's figures, each an id and its value. No figure is left out and none is shuffled,
    /// because a user has no second set to score on.
    ///
    /// # Errors
    /// If an id is not known, there is nothing to fit to, or an experiment cannot be run.
    pub fn fit_to(&self, figures: &[(String, f64)]) -> Result<Fit, LabError> {
        let target = |(id, value): &(String, f64)| match self.asked(id) {
            Some((experiment, asked)) => Ok(Target { experiment, asked, value: *value }),
            None => {
                let known = self.experiments.iter().flat_map(|one| &one.figure);
                let known = known.map(|asked| asked.id.clone()).collect();
                Err(LabError::Unknown { what: "figure", name: id.clone(), known })
            }
        };
        if figures.is_empty() {
            return Err(LabError::Refused("the experiment has no figure to fit to".into()));
        }
        let targets = figures.iter().map(target).collect::<Result<Vec<_>, _>>()?;
        let (costs, residuals) = fit::fit(&Costs::assumed().with_drivers(), &targets)?;
        Ok(Fit { costs, residuals, ..Fit::default() })
    }

    /// The times of the second thread's two boards by costs that know the RFC's board alone.
    fn across_boards(&self) -> Result<Vec<Residual>, LabError> {
        let of_the_rfc = self.targets(|thread| thread == "jander-rfc");
        let (fitted, _) = fit::fit(&Costs::assumed(), &of_the_rfc)?;
        let targets = self.published(|figure| {
            let is_time = self.rules.kind(&figure.id) != Kind::Input && figure.unit != "%";
            figure.thread == "jander-v2" && is_time
        });
        fit::residuals(&moved_to(&fitted), &targets)
    }

    /// Fits the assumed costs to the fit set, and measures the fit's worth.
    ///
    /// # Errors
    /// If an experiment cannot be run.
    pub fn refit(
        &self,
        extent: Extent,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Fit, LabError> {
        let threads: BTreeSet<&str> =
            self.figures.iter().map(|figure| figure.thread.as_str()).collect();
        let threads: Vec<&str> =
            threads.into_iter().filter(|thread| self.rules.fit_set.contains_key(*thread)).collect();
        let all = 1 + threads.len() + extent.shuffles;
        let assumed = Costs::assumed();
        let targets = self.targets(|_| true);
        let (costs, residuals) = fit::fit(&assumed, &targets)?;
        let draws = fit::draws(&assumed, &targets, extent.draws)?;
        let across_boards = self.across_boards()?;
        progress(1, all);
        let with = |fitted: &[FittedCost]| Self::with_costs(moved_to(fitted), Vec::new());
        let scored = |fitted: &[FittedCost]| with(fitted).score();
        let unfitted = Some(scored(&[]).all.lab);
        let (mut leave_one_out, mut left_out) = (Vec::new(), Vec::new());
        for (place, &thread) in threads.iter().enumerate() {
            let (moved, _) = fit::fit(&assumed, &self.targets(|one| one != thread))?;
            let replays = with(&moved).bands(&[], &mut || ());
            let score = score::score(&self.rules, &self.figures, &replays);
            let of_thread = self.figures.iter().filter(|figure| figure.thread == thread);
            left_out.extend(
                of_thread
                    .filter_map(|figure| Some((figure.id.clone(), replays.get(&figure.id)?.used))),
            );
            let score = score
                .threads
                .iter()
                .find(|one| one.thread == thread)
                .map_or(f64::NAN, |one| one.lab);
            leave_one_out.push((thread.to_owned(), score));
            progress(2 + place, all);
        }
        let units =
            self.figures.iter().map(|figure| (figure.id.clone(), figure.unit.clone())).collect();
        let mut shuffled = Vec::new();
        for seed in 0..extent.shuffles {
            let dealt = fit::shuffled(&targets, &units, seed as u64);
            let (moved, _) = fit::fit(&assumed, &dealt)?;
            shuffled.push(scored(&moved).all.lab);
            progress(2 + threads.len() + seed, all);
        }
        let kept = left_out.iter().cloned().collect();
        let drawn: Vec<Costs> = draws.iter().map(|draw| moved_to(&costs).with(draw)).collect();
        let (bands_widened, _) = self.widening(&with(&costs).bands(&drawn, &mut || ()), &kept);
        let random = fit::random(&assumed, extent.random).into_iter();
        let random =
            random.map(|costs| Self::with_costs(costs, Vec::new()).score().all.lab).collect();
        Ok(Fit {
            costs,
            residuals,
            draws,
            unfitted,
            leave_one_out,
            across_boards,
            shuffled,
            random,
            left_out,
            bands_widened,
        })
    }

    /// A figure over a parameter.
    ///
    /// # Errors
    /// If there is no such path, board or parameter, or they do not go together.
    pub fn sweep(&self, request: &SweepRequest) -> Result<Sweep, LabError> {
        crate::sweep::sweep(&self.costs, request)
    }
}

/// The assumed costs, moved to where a fit has them.
fn moved_to(fitted: &[FittedCost]) -> Costs {
    let mut costs = Costs::assumed();
    costs.apply(&fit::moved(fitted));
    costs
}

impl Default for Lab {
    fn default() -> Self {
        Self::new()
    }
}
