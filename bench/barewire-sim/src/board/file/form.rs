//! The format: the tables and keys that a board's file may have.

use std::fmt;

use serde::Deserialize;
use serde::de::{Error, Visitor};
use toml::Spanned;

/// A whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BoardForm {
    pub(super) title: Option<Spanned<String>>,
    /// A shipped board whose controller, pins, chip selects and costs this one has, as far as it has none of its own.
    pub(super) like: Option<Spanned<String>>,
    pub(super) costs: Option<Spanned<String>>,
    pub(super) controller: Option<Spanned<ControllerForm>>,
    pub(super) gpio: Option<Spanned<GpioForm>>,
    #[serde(default)]
    pub(super) cs: Vec<Spanned<CsForm>>,
    #[serde(default)]
    pub(super) chip: Vec<Spanned<ChipForm>>,
    #[serde(default)]
    pub(super) wire: Vec<Spanned<WireForm>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ControllerForm {
    pub(super) kind: Option<Spanned<String>>,
    pub(super) name: Option<Spanned<String>>,
    pub(super) base: Option<Spanned<u64>>,
    /// In the place of the cost profile's.
    pub(super) reference_hz: Option<Spanned<u32>>,
    #[serde(default)]
    pub(super) no_cs: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GpioForm {
    pub(super) name: Option<Spanned<String>>,
    pub(super) base: Option<Spanned<u64>>,
}

/// A chip select: one of `gpio`, `native` and `program`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CsForm {
    pub(super) gpio: Option<Spanned<Pin>>,
    pub(super) native: Option<Spanned<u8>>,
    pub(super) program: Option<Spanned<Pin>>,
    /// Where `native` leaves the SoC.
    pub(super) pad: Option<Spanned<Pin>>,
    pub(super) name: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) active_high: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChipForm {
    pub(super) part: Spanned<String>,
    pub(super) cs: Spanned<u8>,
    pub(super) file: Option<Spanned<String>>,
    pub(super) supply_mv: Option<Spanned<u32>>,
    pub(super) vref_mv: Option<Spanned<u32>>,
    pub(super) inputs: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) oscillator_hz: Option<Spanned<u32>>,
    pub(super) int: Option<Spanned<Pin>>,
    pub(super) pen: Option<Spanned<[f64; 2]>>,
    pub(super) dc: Option<Spanned<Pin>>,
    pub(super) reset: Option<Spanned<Pin>>,
    pub(super) picture: Option<Spanned<String>>,
    pub(super) chips: Option<Spanned<u8>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireForm {
    pub(super) from: Spanned<Pin>,
    pub(super) to: Spanned<Pin>,
}

/// A pin of the GPIO block: its number, or the SoC's name of it.
#[derive(Debug)]
pub(super) enum Pin {
    Number(u64),
    Name(String),
}

impl<'de> Deserialize<'de> for Pin {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reads;
        impl Visitor<'_> for Reads {
            type Value = Pin;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a pin: its number, or the name that the SoC's manual gives it")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Pin, E> {
                u64::try_from(number)
                    .map(Pin::Number)
                    .map_err(|_| E::custom("a pin's number is 0 or above"))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Pin, E> {
                Ok(Pin::Name(name.into()))
            }
        }
        from.deserialize_any(Reads)
    }
}
