//! `cs-gpios`: the GPIO lines of a controller's chip selects.
//!
//! Read first: Linux's `Documentation/devicetree/bindings/spi/spi-controller.yaml` and
//! `Documentation/devicetree/bindings/gpio/gpio.txt`.
//!
//! An entry is a phandle and as many cells as the GPIO chip's `#gpio-cells` says, or a single 0 for
//! a line of the controller. An entry that cannot be followed leaves the place of all after it
//! unknown, so there is no half of a list: Linux logs an error and counts no GPIO lines at all, or
//! gives up the controller, depending on version and driver.

use crate::gpio;
use crate::node;
use crate::root::Root;
use crate::soc;

use super::line::SelectAt;
use super::refusal::{BadEntry, Fault};
use super::rights::Access;

/// The lines, by chip select; `None` is a line of the controller.
///
/// # Errors
/// [`Fault::CsGpios`] at the first entry that cannot be followed.
pub(super) fn lines(root: &Root, of_node: &str) -> Result<Vec<Option<SelectAt>>, Fault> {
    let path = format!("{of_node}/cs-gpios");
    let bytes = root.bytes(&path).unwrap_or_default().len();
    let cells = node::cells(root, &path);
    let mut lines = Vec::new();
    let mut rest = cells.as_slice();
    while let [phandle, after @ ..] = rest {
        if *phandle == 0 {
            lines.push(None);
            rest = after;
            continue;
        }
        let fault = |why| Fault::CsGpios { entry: lines.len(), why };
        let (provider, count) = provider(root, *phandle).map_err(fault)?;
        let Some((specifier, after)) = after.split_at_checked(count) else {
            return Err(fault(BadEntry::CutOff));
        };
        // With three cells the first is the bank's number and the second the line.
        let offset = specifier.get(count.saturating_sub(2)).copied().unwrap_or(0);
        lines.push(Some(line_at(root, *phandle, &provider, offset)));
        rest = after;
    }
    match bytes % 4 == 0 {
        true => Ok(lines),
        false => Err(Fault::CsGpios { entry: lines.len(), why: BadEntry::CutOff }),
    }
}

/// The node of a GPIO chip, and the cells that follow its phandle.
fn provider(root: &Root, phandle: u32) -> Result<(String, usize), BadEntry> {
    let path = node::of_phandle(root, phandle).ok_or(BadEntry::Dangling { phandle })?;
    let node = || name(&path);
    let [count, ..] = node::cells(root, &format!("{path}/#gpio-cells"))[..] else {
        return Err(BadEntry::NoGpioChip { node: node() });
    };
    if !node::is_available(root, &path) {
        return Err(BadEntry::Disabled { node: node() });
    }
    Ok((path, count as usize))
}

fn name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn line_at(root: &Root, phandle: u32, provider: &str, offset: u32) -> SelectAt {
    let is_it = |found: &soc::DetectedSoc| {
        let cells = node::cells(root, &format!("{}/of_node/phandle", found.directory()));
        cells.first() == Some(&phandle)
    };
    let Some(found) = soc::devices(root, |_| true).into_iter().find(is_it) else {
        return SelectAt::Elsewhere { node: name(provider), offset };
    };
    let chip = gpio::names_at(root, found.address).into_iter().next();
    let chip = chip.and_then(|name| Access::of(root, &format!("/dev/{name}")));
    SelectAt::Gpio { address: found.address, offset, chip }
}
