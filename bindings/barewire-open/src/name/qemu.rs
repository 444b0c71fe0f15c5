//! `qemu:BOARD[,flash=FILE]`: a board in QEMU, and the file behind its flash chip or card.

use std::path::PathBuf;

use barewire_qemu::{BOARDS, BoardSpec};

use super::read_options;
use crate::near;

/// A board in QEMU as asked for.
#[derive(Clone, Debug)]
pub struct QemuName {
    /// Which board.
    pub board: &'static BoardSpec,
    /// The file behind its flash chip or card.
    pub flash: Option<PathBuf>,
}

/// The boards' names.
pub(crate) fn board_names() -> Vec<&'static str> {
    BOARDS.iter().map(|board| board.name).collect()
}

/// Reads what follows `qemu:`.
pub(crate) fn parse(text: &str) -> Result<QemuName, String> {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default();
    let board = BOARDS
        .iter()
        .find(|board| board.name == name)
        .ok_or_else(|| near::unknown("QEMU board", name, &board_names()))?;
    let mut flash = None;
    read_options(parts, &["flash"], |_, value| {
        if value.is_empty() {
            return Err("name a file: flash=FILE".into());
        }
        flash = Some(value.into());
        Ok(())
    })?;
    Ok(QemuName { board, flash })
}
