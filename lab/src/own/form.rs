//! The format: the tables and keys that an experiment's file may have. docs/lab.md, *An experiment of your own*, describes it.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// A whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    pub(super) title: Option<String>,
    pub(super) board: Spanned<String>,
    pub(super) cs: Option<Spanned<u8>>,
    pub(super) kernel: Spanned<String>,
    pub(super) client: Option<Spanned<String>>,
    pub(super) waiting: Option<Spanned<String>>,
    pub(super) speed_hz: Spanned<u64>,
    pub(super) processor: Option<ProcessorForm>,
    pub(super) fifo: Option<Spanned<FifoForm>>,
    pub(super) dma: Option<DmaForm>,
    #[serde(default)]
    pub(super) message: Vec<Spanned<MessageForm>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessorForm {
    pub(super) hz: Option<Spanned<u64>>,
    pub(super) count: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FifoForm {
    pub(super) refill_bytes: Option<Spanned<usize>>,
    pub(super) gap_us: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DmaForm {
    pub(super) setup_us: Spanned<f64>,
    pub(super) bytes_per_us: Spanned<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageForm {
    pub(super) name: Spanned<String>,
    pub(super) lengths: Spanned<Vec<usize>>,
    pub(super) batch: Option<Spanned<usize>>,
    pub(super) cs_change: Option<Spanned<bool>>,
    pub(super) cs_change_delay_us: Option<Spanned<f64>>,
    pub(super) delay_us: Option<Spanned<f64>>,
    pub(super) every_us: Option<Spanned<f64>>,
    pub(super) speed_hz: Option<Spanned<u64>>,
    #[serde(default)]
    pub(super) published: BTreeMap<Spanned<String>, Spanned<f64>>,
}
