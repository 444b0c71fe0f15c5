//! The boots that a command line can ask for, by name: those of the command, or those of the kernel module.

use super::Job;
use super::board::{BOARDS, Board, Boot};

/// Which boots of a board.
pub(super) type Boots = fn(&Board) -> &'static [&'static Boot];

/// The boards that have such boots.
pub(super) fn boards(boots: Boots) -> impl Iterator<Item = &'static Board> {
    BOARDS.into_iter().filter(move |board| !boots(board).is_empty())
}

/// All boards, and all boots of them. Once a run, so they may stay for good.
pub(super) fn names(boots: Boots) -> Vec<&'static str> {
    let of = |board: &'static Board| {
        let name = board.name;
        let boots = boots(board).iter().map(move |boot| &*format!("{name}/{}", boot.name).leak());
        [name].into_iter().chain(boots)
    };
    boards(boots).flat_map(of).collect()
}

/// The boards for the help text.
pub(super) fn list(boots: Boots) -> String {
    let mut text = String::from("Boards and their boots:\n");
    for board in boards(boots) {
        let names: Vec<&str> = boots(board).iter().map(|boot| boot.name).collect();
        text += &format!("  {:<12}{}\n", board.name, names.join(", "));
    }
    text
}

/// The boots that `only` names, by themselves or by their board; all of them if it is empty.
pub(super) fn jobs(boots: Boots, only: &[String]) -> Vec<Job> {
    let wanted = |board: &Board, boot: &Boot| {
        let whole = format!("{}/{}", board.name, boot.name);
        only.is_empty() || only.iter().any(|name| *name == board.name || *name == whole)
    };
    let of = |board: &'static Board| boots(board).iter().map(move |&boot| (board, boot));
    boards(boots).flat_map(of).filter(|(board, boot)| wanted(board, boot)).collect()
}
