//! The flash chips that a simulated board can have.

use std::fmt::Write as _;

use barewire_sim::model::nor::Part;
use serde::Serialize;

use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::text::figure;

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct FlashParts {
    flash_parts: Vec<FlashPart>,
}

#[derive(Serialize)]
struct FlashPart {
    /// The value of `flash-part=`.
    name: String,
    jedec_id: String,
    size: usize,
    /// The revision that the SFDP's header tells; null without SFDP.
    sfdp: Option<String>,
    /// Behaviour of the part that its SFDP does not describe; null if none is known.
    beyond_sfdp: Option<&'static str>,
    source: &'static str,
}

/// Prints them.
pub(super) fn run(json: bool) -> Result<(), Failure> {
    let parts = FlashParts { flash_parts: Part::all().map(|part| FlashPart::of(&part)).collect() };
    if json {
        return output::json(&parts);
    }
    let mut text = String::from("name         id      size     SFDP  beyond its SFDP\n");
    for part in &parts.flash_parts {
        part.text(&mut text);
    }
    text += "\nPut one on a board: --bus sim:imx8mp,flash-part=NAME\n";
    output::text(&text)
}

impl FlashPart {
    fn of(part: &Part) -> Self {
        let [a, b, c] = part.jedec_id;
        Self {
            name: part.option_name(),
            jedec_id: format!("{a:02x}{b:02x}{c:02x}"),
            size: part.size,
            sfdp: part.sfdp_revision().map(|[major, minor]| format!("{major}.{minor}")),
            beyond_sfdp: (!part.beyond_sfdp.is_empty()).then_some(part.beyond_sfdp),
            source: part.source,
        }
    }

    fn text(&self, text: &mut String) {
        let Self { name, jedec_id, size, sfdp, beyond_sfdp, source } = self;
        let size = figure::size(*size as u64);
        let sfdp = sfdp.as_deref().unwrap_or("none");
        let beyond = beyond_sfdp.unwrap_or("nothing known");
        let _ = writeln!(text, "{name:<13}{jedec_id}  {size:<9}{sfdp:<6}{beyond}");
        let _ = writeln!(text, "    {source}");
    }
}
