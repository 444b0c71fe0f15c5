//! `spidev:/dev/spidevB.C[,split-with-cs-held]`: a node of the kernel's spidev.

use std::path::PathBuf;

use super::read_options;

/// A spidev node as asked for.
#[derive(Clone, Debug)]
pub(crate) struct SpidevName {
    /// The node.
    pub(crate) path: PathBuf,
    /// Leave to split a message where CS must stay active.
    pub(crate) split_with_cs_held: bool,
}

const NODES: &str = "/dev/spidev";
const SPLIT: &str = "split-with-cs-held";

/// Reads what follows `spidev:`.
pub(super) fn parse(text: &str) -> Result<SpidevName, String> {
    let mut parts = text.split(',');
    let path = parts.next().unwrap_or_default();
    if !path.starts_with('/') {
        return Err(match node_in(path) {
            Some(node) => format!("{path:?} is no path: did you mean \"spidev:{node}\"?"),
            None => format!("{path:?} is no path: name a node: spidev:{NODES}B.C"),
        });
    }
    let mut split_with_cs_held = false;
    read_options(parts, &[SPLIT], |_, value| {
        if !value.is_empty() {
            return Err("it takes no value".into());
        }
        split_with_cs_held = true;
        Ok(())
    })?;
    Ok(SpidevName { path: path.into(), split_with_cs_held })
}

/// The node meant by `/dev/spidev0.1`, `spidev0.1` or `0.1`.
pub(super) fn node_in(text: &str) -> Option<String> {
    let text = text.strip_prefix("/dev/").unwrap_or(text);
    let (bus, chip_select) = text.strip_prefix("spidev").unwrap_or(text).split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_number(bus) && is_number(chip_select)).then(|| format!("{NODES}{bus}.{chip_select}"))
}
