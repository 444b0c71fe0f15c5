//! `spidev:/dev/spidevB.C`: a node of the kernel's spidev.

use std::path::PathBuf;

/// A spidev node as asked for.
#[derive(Clone, Debug)]
pub struct SpidevName {
    /// The node.
    pub path: PathBuf,
}

const NODES: &str = "/dev/spidev";

/// Reads what follows `spidev:`.
pub(crate) fn parse(text: &str) -> Result<SpidevName, String> {
    let mut parts = text.split(',');
    let path = parts.next().unwrap_or_default();
    if !path.starts_with('/') {
        return Err(match node_in(path) {
            Some(node) => format!("{path:?} is no path: did you mean \"spidev:{node}\"?"),
            None => format!("{path:?} is no path: name a node: spidev:{NODES}B.C"),
        });
    }
    match parts.next() {
        None => Ok(SpidevName { path: path.into() }),
        Some(option) => Err(format!("no option {option:?}: a spidev node has none")),
    }
}

/// The node meant by `/dev/spidev0.1`, `spidev0.1` or `0.1`.
pub(crate) fn node_in(text: &str) -> Option<String> {
    let text = text.strip_prefix("/dev/").unwrap_or(text);
    let (bus, chip_select) = text.strip_prefix("spidev").unwrap_or(text).split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_number(bus) && is_number(chip_select)).then(|| format!("{NODES}{bus}.{chip_select}"))
}
