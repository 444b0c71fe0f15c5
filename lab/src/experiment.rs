//! Experiments as data: `lab/experiments/*.toml`.

use std::rc::Rc;

use serde::Deserialize;

use crate::own::{Measure, OwnExperiment};
use crate::regime::Regime;

/// The embedded experiments.
const EMBEDDED: &[&str] = &[
    include_str!("../experiments/jander-rfc.toml"),
    include_str!("../experiments/jander-rfc-load.toml"),
    include_str!("../experiments/ellis.toml"),
    include_str!("../experiments/ranjan.toml"),
    include_str!("../experiments/camera.toml"),
    include_str!("../experiments/jander-v2-irq.toml"),
    include_str!("../experiments/jander-v2-dd.toml"),
    include_str!("../experiments/pitchen.toml"),
    include_str!("../experiments/touch.toml"),
];

/// The workload of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// CAN frames echoed: `frames`, `gap_us`.
    Echo,
    /// A flash read by dd through mtdblock: `scale`, the number of reads.
    Dd,
    /// Conversions through spidev: `batch`.
    Spidev,
    /// A flash read through mtd's character device: `block`, `blocks`.
    Nor,
    /// Lists of pages mapped and unmapped: `call`, `bytes`.
    Unmap,
    /// A second of video unmapped, on each of `paths`.
    Camera,
    /// A flash read by dd and a touch screen sampled at once, on each of `paths`.
    Beside,
    /// The thread counted it on its own board; nothing runs.
    Stated,
    /// Messages of a user's own experiment, which has a file of another form.
    #[serde(skip)]
    Messages,
}

impl Workload {
    /// What barewire's code did a moment before; `None` if it has none there, or each message of a user's says it.
    #[must_use]
    pub fn regime(self) -> Option<Regime> {
        match self {
            Self::Echo => Some(Regime::AfterIdle),
            Self::Dd | Self::Spidev | Self::Nor => Some(Regime::InALoop),
            Self::Unmap | Self::Camera | Self::Beside | Self::Stated | Self::Messages => None,
        }
    }

    /// Whether its results are reported although no figure is published for it.
    #[must_use]
    pub fn has_no_figures(self) -> bool {
        matches!(self, Self::Camera | Self::Beside | Self::Stated)
    }
}

/// A figure that an experiment answers, and how.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Question {
    /// The figure's id: one of `figures.csv`, or a new one with `published`.
    pub id: String,
    /// The path.
    pub path: String,
    /// The metric, by the workload's names.
    pub metric: String,
    /// Transfers of an ioctl.
    pub batch: Option<usize>,
    /// Bytes of a block.
    pub block: Option<usize>,
    /// Blocks.
    pub blocks: Option<usize>,
    /// `map_sg`, `unmap` or `invalidations`.
    pub call: Option<String>,
    /// Bytes mapped or unmapped.
    pub bytes: Option<u64>,
    /// The factor by which one time is multiplied.
    pub scale: Option<f64>,
    /// The measured value of a figure that is not in `figures.csv`.
    pub published: Option<f64>,
    /// The same's unit.
    pub unit: Option<String>,
    /// Why the lab does not explain it.
    pub unexplained: Option<String>,
    /// The message, of a user's own experiment.
    #[serde(skip)]
    pub message: String,
}

/// An experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// Its thread.
    #[serde(default)]
    pub thread: String,
    /// In words.
    pub title: String,
    /// The thread's words for the set-up.
    #[serde(default)]
    pub citation: String,
    /// The simulated board.
    pub board: String,
    /// The workload.
    pub workload: Workload,
    /// SPI's clock, at most.
    #[serde(default)]
    pub speed_hz: u64,
    /// Frames echoed.
    #[serde(default = "six")]
    pub frames: u64,
    /// From one frame to the next; 0 is a full bus.
    #[serde(default)]
    pub gap_us: u64,
    /// Processors that a share is a share of.
    #[serde(default = "one")]
    pub processors: u32,
    /// The paths of an experiment without figures.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The figures' ids, if the file lists them separately.
    #[serde(default)]
    pub figures: Vec<String>,
    /// The figures.
    #[serde(default)]
    pub figure: Vec<Question>,
    /// What a user's own experiment is about.
    #[serde(skip)]
    pub own: Option<Rc<OwnExperiment>>,
}

fn six() -> u64 {
    6
}

fn one() -> u32 {
    1
}

impl Experiment {
    /// Reads one.
    ///
    /// # Errors
    /// If it is not TOML, or a field is missing, unknown or of another kind; the text says where.
    pub fn read(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// The embedded ones.
    ///
    /// # Panics
    /// If one is malformed, which a test excludes.
    #[must_use]
    pub fn all() -> Vec<Self> {
        EMBEDDED
            .iter()
            .map(|text| Self::read(text).unwrap_or_else(|error| panic!("{error}")))
            .collect()
    }

    /// A user's own experiment, whose figures are those that its messages have `published`.
    #[must_use]
    pub fn of(own: Rc<OwnExperiment>) -> Self {
        let path = own.path(&own.messages[0]).name;
        let question = |message: &crate::own::Message, (measure, value): (Measure, f64)| Question {
            id: own.id(message, measure),
            path: path.clone(),
            metric: measure.name().into(),
            published: Some(value),
            unit: Some(measure.unit().into()),
            message: message.name.clone(),
            ..Question::default()
        };
        let of_one = |message: &crate::own::Message| {
            message.published.iter().map(|&one| question(message, one)).collect::<Vec<_>>()
        };
        Self {
            name: own.name.clone(),
            thread: "own".into(),
            title: own.title.clone(),
            citation: String::new(),
            board: own.spec.name.into(),
            workload: Workload::Messages,
            speed_hz: 0,
            frames: six(),
            gap_us: 0,
            processors: own.processors,
            paths: vec![path.clone()],
            figures: Vec::new(),
            figure: own.messages.iter().flat_map(of_one).collect(),
            own: Some(own.clone()),
        }
    }

    /// The paths that it runs.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let mut paths = self.paths.clone();
        paths.extend(self.figure.iter().map(|asked| asked.path.clone()));
        paths.sort();
        paths.dedup();
        paths.retain(|path| !path.is_empty());
        paths
    }
}
