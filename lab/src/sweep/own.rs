//! A figure of a user's message over a parameter: the kernels asked for, both ways of waiting, and barewire.
//!
//! # What the parameters mean
//! - `length`: the bytes of the last transfer of the message, or of a part of the batch.
//! - `clock`, `batch`: as in the file.
//! - `delay`: what a batch waits at a cs_change; without a batch, the wait after each transfer.

use super::{Pair, Parameter, refused, table};
use crate::cost::Costs;
use crate::error::LabError;
use crate::kernel::Waiting;
use crate::outcome::{Sweep, SweepRequest};
use crate::own::{Driver, Measure, Message, OwnExperiment};
use crate::replay::Runner;
use crate::workload::messages;

/// What is asked of a sweep of a user's experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnSweepRequest {
    /// The message; the file's first if none.
    pub message: Option<String>,
    /// Its figure; the call if none.
    pub figure: Option<String>,
    /// The kernels, a column each; the file's alone if there are none.
    pub kernels: Vec<String>,
    /// `length`, `clock`, `batch` or `delay`.
    pub parameter: String,
    /// Its values, in bytes, Hz, transfers or ns.
    pub values: Vec<f64>,
}

/// The parameters that a message has.
const OF_A_MESSAGE: [Parameter; 4] =
    [Parameter::Length, Parameter::Clock, Parameter::Batch, Parameter::Delay];

/// The message with the parameter at `value`.
fn with(message: &Message, parameter: Parameter, value: f64) -> Message {
    let mut other = message.clone();
    let whole = value as u64;
    match parameter {
        Parameter::Length => *other.lengths.last_mut().expect("it has one") = whole as usize,
        Parameter::Clock => other.speed_hz = whole,
        Parameter::Batch => (other.batch, other.cs_change) = (whole as usize, whole > 1),
        _ if other.cs_change => other.cs_change_delay_ns = whole,
        _ => other.delay_ns = whole,
    }
    other
}

/// The figure of `request`, over its parameter.
///
/// # Errors
/// If there is no such message, figure, kernel or parameter, or a value cannot be.
pub fn own_sweep(
    own: &OwnExperiment,
    costs: &Costs,
    request: &OwnSweepRequest,
) -> Result<Sweep, LabError> {
    let unknown = |what, name: &str, known: Vec<String>| {
        Err(LabError::Unknown { what, name: name.into(), known })
    };
    let message = match &request.message {
        None => &own.messages[0],
        Some(name) => match own.message(name) {
            Some(message) => message,
            None => {
                let known = own.messages.iter().map(|message| message.name.clone()).collect();
                return unknown("message", name, known);
            }
        },
    };
    let name = request.figure.as_deref().unwrap_or("call");
    let Some(measure) = Measure::named(name) else {
        return unknown("figure", name, Measure::ALL.map(|one| one.name().into()).into());
    };
    let found = OF_A_MESSAGE.into_iter().find(|one| one.name() == request.parameter);
    let Some(parameter) = found else {
        let known = OF_A_MESSAGE.map(|one| one.name().into()).into();
        return unknown("parameter of a message", &request.parameter, known);
    };
    let values = values(own, message, parameter, &request.values)?;
    let mut columns: Vec<(String, OwnExperiment)> = Vec::new();
    for kernel in &request.kernels {
        let other = own.with_kernel(kernel).map_err(LabError::Refused)?;
        let title = other.path(message).title;
        columns.push((title, other));
    }
    if columns.is_empty() {
        columns.push((own.path(message).title, own.clone()));
        if own.driver != Driver::Mcspi && own.waiting.is_none() {
            for (name, waiting) in
                [("by polling", Waiting::Polling), ("by interrupts", Waiting::Interrupts)]
            {
                columns
                    .push((name.into(), OwnExperiment { waiting: Some(waiting), ..own.clone() }));
            }
        }
    }
    let ours = |value: f64| {
        let figures = messages::barewire(own, &with(message, parameter, value), costs);
        figures?.into_iter().find(|one| one.0 == measure).map(|one| one.1)
    };
    let mut names: Vec<String> = columns.iter().map(|column| column.0.clone()).collect();
    if values.iter().all(|&value| ours(value).is_some()) {
        names.push("barewire".into());
    }
    let against_first = |second: usize| Pair {
        first: second,
        second: 0,
        what: format!("{} is better than {}", names[second], names[0]),
    };
    let pairs: Vec<Pair> = (1..names.len()).map(against_first).collect();
    let runner = Runner::new(costs);
    let at = |column: usize, value: f64| match columns.get(column) {
        Some((name, own)) => {
            let own = OwnExperiment { name: name.clone(), ..own.clone() };
            runner.message(&own, &with(message, parameter, value), measure).map(|taken| taken.value)
        }
        None => ours(value).ok_or_else(|| LabError::Refused("barewire cannot run it so".into())),
    };
    let is_rate = measure == Measure::Rate;
    let (rows, break_even) = table(names.len(), (&pairs, is_rate), parameter, &values, &at)?;
    Ok(Sweep {
        request: SweepRequest {
            path: format!("{}:{}", own.name, message.name),
            board: own.spec.name.into(),
            parameter: parameter.name().into(),
            values: values.clone(),
        },
        unit: parameter.unit().into(),
        value_unit: format!("{} of {}'s {name}", measure.unit(), message.name),
        regime: own.regime(message),
        columns: names,
        rows,
        break_even,
    })
}

/// The values asked, whole and in order, each of which the file could have.
fn values(
    own: &OwnExperiment,
    message: &Message,
    parameter: Parameter,
    asked: &[f64],
) -> Result<Vec<f64>, LabError> {
    let mut values: Vec<f64> = asked.iter().map(|value| value.round()).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    if values.is_empty() {
        return refused("a sweep needs values".into());
    }
    for &value in &values {
        own.check(&with(message, parameter, value)).map_err(|why| {
            let text = format!("{} of {value} {}: {why}", parameter.name(), parameter.unit());
            LabError::Refused(text)
        })?;
    }
    Ok(values)
}
