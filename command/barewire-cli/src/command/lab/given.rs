//! Input of the verbs: a lab with the user's experiments and costs, names that may be mistyped, files to write.

use std::path::{Path, PathBuf};

use barewire_lab::cost::{Costs, FittedValue};
use barewire_lab::own::OwnExperiment;
use barewire_lab::{Lab, LabError};
use barewire_sim::BoardSpec;
use barewire_sim::profile::FileCost;

use crate::shared::failure::Failure;
use crate::shared::files::{self, NamedFile};
use crate::shared::text::near;

/// More names than these are not listed in an error.
const NAMES_MAX: usize = 24;

/// The user's own experiments.
#[derive(clap::Args, Debug)]
pub(super) struct Experiments {
    /// Add an experiment of your own: a file of `barewire lab new`, or like those of the lab; may be given several times
    #[arg(long = "experiment", value_name = "FILE.toml")]
    files: Vec<PathBuf>,
}

impl Experiments {
    /// Whether there are any experiments.
    pub(super) fn is_given(&self) -> bool {
        !self.files.is_empty()
    }

    /// The lab with the user's experiments.
    pub(super) fn lab(&self, costs: &CostFile) -> Result<Lab, Failure> {
        let mut lab = costs.lab()?;
        for path in &self.files {
            let text = files::read_text(path)?;
            let added = match OwnExperiment::is_it(&text) {
                true => {
                    let own = own_of(path, &text)?;
                    check_board(&lab, &own)?;
                    lab.with_own(own)
                }
                false => lab.with_experiment(&text),
            };
            added.map_err(|error| in_file(path, &error))?;
        }
        Ok(lab)
    }

    /// Refuses an output that is one of the experiment files.
    pub(super) fn check(&self, outputs: &[NamedFile<'_>]) -> Result<(), Failure> {
        let inputs: Vec<NamedFile<'_>> =
            self.files.iter().map(|path| NamedFile { by: "--experiment", path }).collect();
        files::check(outputs, &inputs)
    }
}

/// The user's own costs.
#[derive(clap::Args, Debug, Default)]
pub(super) struct CostFile {
    /// Take these costs in the place of the lab's: a file of `barewire lab fit --out`, or its `--json`,
    /// or measured.json of a board
    #[arg(long = "costs", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl CostFile {
    /// The lab with these costs, or its own.
    ///
    /// # Errors
    /// The file cannot be read, or has a cost that is neither the lab's nor a board's.
    pub(super) fn lab(&self) -> Result<Lab, Failure> {
        let Some(path) = &self.file else { return Ok(Lab::new()) };
        let wrong = |why: String| Failure::Failed(format!("{}: {why}", path.display()));
        let file = barewire_open::costs::read(path).map_err(Failure::Failed)?;
        let (of_board, others) = file.split();
        let value = |FileCost { name, value, low, high }| FittedValue { name, value, low, high };
        let moved: Vec<FittedValue> = others.into_iter().map(value).collect();
        let mut costs = Costs::fitted().with_drivers().moved(&moved).map_err(wrong)?;
        if !of_board.cost.is_empty() {
            costs = costs.with_board(of_board).map_err(wrong)?;
        }
        Ok(Lab::with_costs(costs, Vec::new()))
    }
}

/// Refuses costs of another board than the experiment's: they would be of no effect, and nobody would see it.
pub(super) fn check_board(lab: &Lab, own: &OwnExperiment) -> Result<(), Failure> {
    match lab.board() {
        Some(board) if board != own.profile.name => Err(Failure::Usage(format!(
            "--costs: they are those of {board}, and {}'s board has the costs of {}: they say nothing of it",
            own.name, own.profile.name
        ))),
        _ => Ok(()),
    }
}

/// The experiment in the file `path`.
pub(super) fn own(path: &Path) -> Result<OwnExperiment, Failure> {
    let text = files::read_text(path)?;
    if !OwnExperiment::is_it(&text) {
        let what = format!(
            "{} is of the form of the lab's own experiments, since it has a workload: give it by --experiment",
            path.display()
        );
        return Err(Failure::Usage(what));
    }
    own_of(path, &text)
}

/// A shipped board, or one in a file whose path begins at `folder`.
pub(super) fn board(folder: &Path, name: &str) -> Result<&'static BoardSpec, String> {
    let is_file = name.contains('/') || name.ends_with(".toml");
    let file = folder.join(name);
    barewire_open::name::sim_board(if is_file { file.to_str().unwrap_or(name) } else { name })
}

/// How a board is found.
pub(super) type Boards<'b> = &'b dyn Fn(&str) -> Result<&'static BoardSpec, String>;

fn own_of(path: &Path, text: &str) -> Result<OwnExperiment, Failure> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = path.parent().unwrap_or(Path::new(""));
    OwnExperiment::read(&name, text, &|name| board(folder, name))
        .map_err(|what| Failure::Failed(format!("{}: {what}", path.display())))
}

/// The failure for an error in a file of the user's.
pub(super) fn in_file(path: &Path, error: &LabError) -> Failure {
    Failure::Failed(format!("{}: {}", path.display(), words(error)))
}

/// The failure for an error of the lab. The user gave a name or a combination that the lab refuses.
pub(super) fn refused(error: LabError) -> Failure {
    Failure::Usage(words(&error))
}

/// The error's text: the refused name or combination, and the names that the lab knows.
fn words(error: &LabError) -> String {
    match error {
        LabError::Unknown { what, name, known } => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            if known.len() <= NAMES_MAX {
                near::unknown(what, name, &known)
            } else {
                let meant = near::nearest(name, &known);
                let meant = meant.map_or(String::new(), |name| format!(": did you mean {name:?}?"));
                let list = if *what == "figure" { " (barewire lab list --figures)" } else { "" };
                format!("{error}{meant}{list}")
            }
        }
        LabError::Experiment(text) | LabError::Refused(text) => text.clone(),
    }
}

/// A name that must be one of `known`.
pub(super) fn one_of(what: &'static str, name: &str, known: &[&str]) -> Result<(), Failure> {
    if known.contains(&name) {
        return Ok(());
    }
    let known = known.iter().map(|name| (*name).into()).collect();
    Err(refused(LabError::Unknown { what, name: name.into(), known }))
}
