//! The chips.

use std::path::{Path, PathBuf};

use toml::Spanned;

use super::form::ChipForm;
use super::lines::Pins;
use super::{Wrong, unknown};
use crate::board::spec::{
    AdcSpec, CanSpec, ChipSpec, CsSpec, DisplaySpec, FlashSpec, LedsSpec, TouchSpec,
};
use crate::model::adc::{AdcPart, SupplyError};
use crate::model::mcp2518fd::PartKind;
use crate::model::nor::Part;
use crate::model::signal::SignalSpec;

/// The supply of a converter whose file does not say, in millivolts.
const SUPPLY_MV: u32 = 3_300;
/// The oscillator of a CAN controller whose file does not say, and those that the data sheet allows: DS20006027, table 7-4.
const OSCILLATOR_HZ: u32 = 40_000_000;
const OSCILLATORS_HZ: std::ops::RangeInclusive<u32> = 2_000_000..=40_000_000;
/// The longest chain of LED drivers.
const CHAIN_MAX: u8 = 64;

/// The converters, by name.
const CONVERTERS: [AdcPart; 5] =
    [AdcPart::Mcp3002, AdcPart::Mcp3004, AdcPart::Mcp3008, AdcPart::Mcp3204, AdcPart::Mcp3208];
const CAN_CONTROLLERS: [PartKind; 2] = [PartKind::Mcp2517Fd, PartKind::Mcp2518Fd];
const JUMPER: &str = "jumper";

/// The chips of the file.
pub(super) fn read(
    pins: &mut Pins,
    lines: &[CsSpec],
    no_cs: bool,
    forms: Vec<Spanned<ChipForm>>,
    files: &mut Files<'_>,
) -> Result<Vec<ChipSpec>, Wrong> {
    let mut chips: Vec<ChipSpec> = Vec::new();
    for form in forms {
        let form = form.into_inner();
        let cs = *form.cs.get_ref();
        let Some(line) = lines.get(usize::from(cs)) else {
            let last = lines.len() - 1;
            return Err(Wrong::at(
                &form.cs,
                format!("there is no chip select {cs}: the board has 0 to {last}"),
            ));
        };
        if chips.iter().any(|chip| chip.cs() == cs) {
            return Err(Wrong::at(&form.cs, format!("chip select {cs} has a chip already")));
        }
        if no_cs && line.pad.is_none() {
            let what = format!(
                "chip select {cs} is a line of the controller alone, and with no_cs it has none: give it a pad"
            );
            return Err(Wrong::at(&form.cs, what));
        }
        let chip = Reader { form, cs, index: chips.len(), pins: &mut *pins, files: &mut *files };
        chips.push(chip.chip()?);
    }
    Ok(chips)
}

/// Makes a chip of its keys. Each key is taken once; one that is left does not go with the part.
struct Reader<'p, 'f> {
    form: ChipForm,
    cs: u8,
    index: usize,
    pins: &'p mut Pins,
    files: &'p mut Files<'f>,
}

impl Reader<'_, '_> {
    fn chip(mut self) -> Result<ChipSpec, Wrong> {
        let name = self.form.part.get_ref().clone();
        let is = |part: &str| name.eq_ignore_ascii_case(part);
        let converter = CONVERTERS.into_iter().find(|part| is(part.name()));
        let can = CAN_CONTROLLERS.into_iter().find(|part| is(part.name()));
        let chip = match (Part::maker(&name), converter, can) {
            (Some(part), ..) => {
                let file =
                    self.form.file.take().map(|file| self.files.written(file)).transpose()?;
                ChipSpec::Flash(FlashSpec { cs: self.cs, part, file })
            }
            (_, Some(part), _) => ChipSpec::Adc(self.converter(part)?),
            (_, _, Some(part)) => ChipSpec::Can(self.can(part)?),
            _ if is("TSC2046") => ChipSpec::Touch(self.touch()?),
            _ if is("SSD1306") => ChipSpec::Display(self.display()?),
            _ if is("MAX7219") => ChipSpec::Leds(self.leds()?),
            _ if is(JUMPER) => ChipSpec::Jumper(self.cs),
            _ => {
                let flash = Part::all().map(|part| part.name);
                let known = CONVERTERS.iter().map(|part| part.name());
                let known = known.chain(CAN_CONTROLLERS.iter().map(|part| part.name()));
                let known = known.chain(["TSC2046", "SSD1306", "MAX7219", JUMPER]).chain(flash);
                return Err(unknown("part", &self.form.part, &known.collect::<Vec<_>>()));
            }
        };
        self.none_left()?;
        Ok(chip)
    }

    fn converter(&mut self, part: AdcPart) -> Result<AdcSpec, Wrong> {
        let form = &mut self.form;
        let supply = form.supply_mv.take();
        let supply_mv = supply.as_ref().map_or(SUPPLY_MV, |supply| *supply.get_ref());
        let vref = form.vref_mv.take();
        let vref_mv = vref.as_ref().map_or(supply_mv, |vref| *vref.get_ref());
        part.check_supply(supply_mv, vref_mv).map_err(|error| {
            let of_supply = matches!(error, SupplyError::Supply { .. });
            let at = if of_supply { supply.as_ref().or(vref.as_ref()) } else { vref.as_ref() };
            let at = at.map_or(form.part.span(), Spanned::span);
            Wrong { at, what: error.to_string() }
        })?;
        let mut signals = Vec::new();
        if let Some(inputs) = form.inputs.take() {
            let channels = part.channels();
            if let Some(beyond) = inputs.get_ref().get(usize::from(channels)) {
                return Err(Wrong::at(
                    beyond,
                    format!("the {part} has the channels 0 to {}", channels - 1),
                ));
            }
            for input in inputs.into_inner() {
                signals.push(self.files.signal(&input)?);
            }
        }
        Ok(AdcSpec { cs: self.cs, part, supply_mv, vref_mv, inputs: signals.leak() })
    }

    fn can(&mut self, part: PartKind) -> Result<CanSpec, Wrong> {
        let oscillator = self.form.oscillator_hz.take();
        if let Some(hz) = oscillator.as_ref().filter(|hz| !OSCILLATORS_HZ.contains(hz.get_ref())) {
            return Err(Wrong::at(hz, "the oscillator has 2 to 40 MHz"));
        }
        let oscillator_hz = oscillator.map_or(OSCILLATOR_HZ, Spanned::into_inner);
        let int = self.form.int.take();
        let int = int.map(|pin| self.pins.output(&pin)).transpose()?;
        Ok(CanSpec { cs: self.cs, part, oscillator_hz, int })
    }

    fn touch(&mut self) -> Result<TouchSpec, Wrong> {
        let int = self.form.int.take();
        let int = int.map(|pin| self.pins.output(&pin)).transpose()?;
        let pen = match self.form.pen.take() {
            None => None,
            Some(at) if at.get_ref().iter().all(|part| (0.0..=1.0).contains(part)) => {
                Some(at.into_inner().map(|part| (part * f64::from(u16::MAX)) as u16))
            }
            Some(at) => {
                return Err(Wrong::at(
                    &at,
                    "the pen is at [X, Y], each from 0.0 to 1.0 of the panel",
                ));
            }
        };
        Ok(TouchSpec { cs: self.cs, int, pen })
    }

    fn display(&mut self) -> Result<DisplaySpec, Wrong> {
        let form = &mut self.form;
        let (Some(dc), Some(reset)) = (form.dc.take(), form.reset.take()) else {
            return Err(Wrong::at(
                &form.part,
                "an SSD1306 needs the pins of D/C# and RES#: dc = 24, reset = 25",
            ));
        };
        let (dc, reset) = (self.pins.input(self.index, &dc)?, self.pins.input(self.index, &reset)?);
        let picture = self.form.picture.take().map(|file| self.files.written(file)).transpose()?;
        Ok(DisplaySpec { cs: self.cs, dc, reset, picture })
    }

    fn leds(&mut self) -> Result<LedsSpec, Wrong> {
        let chips = self.form.chips.take();
        if let Some(chips) =
            chips.as_ref().filter(|chips| !(1..=CHAIN_MAX).contains(chips.get_ref()))
        {
            return Err(Wrong::at(chips, format!("a chain has 1 to {CHAIN_MAX} chips")));
        }
        Ok(LedsSpec { cs: self.cs, chips: chips.map_or(1, Spanned::into_inner) })
    }

    /// Refuses keys that are left.
    fn none_left(&self) -> Result<(), Wrong> {
        let ChipForm {
            part,
            cs: _,
            file,
            supply_mv,
            vref_mv,
            inputs,
            oscillator_hz,
            int,
            pen,
            dc,
            reset,
            picture,
            chips,
        } = &self.form;
        let left = [
            ("file", file.as_ref().map(Spanned::span)),
            ("supply_mv", supply_mv.as_ref().map(Spanned::span)),
            ("vref_mv", vref_mv.as_ref().map(Spanned::span)),
            ("inputs", inputs.as_ref().map(Spanned::span)),
            ("oscillator_hz", oscillator_hz.as_ref().map(Spanned::span)),
            ("int", int.as_ref().map(Spanned::span)),
            ("pen", pen.as_ref().map(Spanned::span)),
            ("dc", dc.as_ref().map(Spanned::span)),
            ("reset", reset.as_ref().map(Spanned::span)),
            ("picture", picture.as_ref().map(Spanned::span)),
            ("chips", chips.as_ref().map(Spanned::span)),
        ];
        match left.into_iter().find_map(|(key, place)| place.map(|at| (key, at))) {
            None => Ok(()),
            Some((key, at)) => {
                Err(Wrong { at, what: format!("{key} does not go with {:?}", part.get_ref()) })
            }
        }
    }
}

/// The files that a board names, so that none is written over another.
pub(super) struct Files<'f> {
    /// Where their paths begin.
    folder: &'f Path,
    read: Vec<PathBuf>,
    written: Vec<PathBuf>,
}

impl<'f> Files<'f> {
    /// The board's own file is read.
    pub(super) fn new(name: &str, folder: &'f Path) -> Self {
        Self { folder, read: vec![name.into()], written: Vec::new() }
    }

    fn written(&mut self, file: Spanned<String>) -> Result<&'static Path, Wrong> {
        if file.get_ref().is_empty() || file.get_ref().contains('\0') {
            return Err(Wrong::at(&file, "name a file"));
        }
        let path = self.folder.join(file.get_ref());
        if self.read.contains(&path) || self.written.contains(&path) {
            return Err(Wrong::at(
                &file,
                "it would be written over: the board uses this file already",
            ));
        }
        self.written.push(path.clone());
        Ok(Box::leak(path.into_boxed_path()))
    }

    fn signal(&mut self, text: &Spanned<String>) -> Result<SignalSpec, Wrong> {
        let spec = text.get_ref().parse().map_err(|error| Wrong::at(text, format!("{error}")))?;
        let SignalSpec::File { path, rate_uhz } = spec else { return Ok(spec) };
        let path = self.folder.join(path);
        if self.written.contains(&path) {
            return Err(Wrong::at(text, "the board writes this file: name another"));
        }
        self.read.push(path.clone());
        Ok(SignalSpec::File { path: path.to_string_lossy().into_owned(), rate_uhz })
    }
}
