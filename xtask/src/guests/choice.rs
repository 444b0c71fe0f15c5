//! The boots that a command line can ask for, by name: those of the command, or those of the kernel module.

use super::Job;
use super::board::{BOARDS, Board, Boot};

/// The boots that CI leaves out, for its time. Other boards have the same ones, which the test of this file checks; and
/// for each of these one has the same word size, and one the same controller in another boot.
pub(super) const NOT_IN_CI: [&str; 7] = [
    "raspi3b/kernel",
    "raspi3b/processes",
    "raspi3b/uio",
    "sabrelite/kernel",
    "sabrelite/module",
    "sabrelite/namespaces",
    "sabrelite/processes",
];

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
    let of_these = |name: &&str| {
        boards(boots).any(|board| boots(board).iter().any(|boot| **name == whole(board, boot)))
    };
    let not_in_ci: Vec<&str> = NOT_IN_CI.into_iter().filter(of_these).collect();
    if !not_in_ci.is_empty() {
        text += &format!("Not in CI: {}\n", not_in_ci.join(", "));
    }
    text
}

/// The name of a boot, with its board's.
fn whole(board: &Board, boot: &Boot) -> String {
    format!("{}/{}", board.name, boot.name)
}

/// The boots of CI.
pub(super) fn of_ci(boots: Boots) -> Vec<String> {
    let all = jobs(boots, &[]).into_iter().map(|(board, boot)| whole(board, boot));
    all.filter(|name| !NOT_IN_CI.contains(&name.as_str())).collect()
}

/// The boots that `only` names, by themselves or by their board; all of them if it is empty.
pub(super) fn jobs(boots: Boots, only: &[String]) -> Vec<Job> {
    let wanted = |board: &Board, boot: &Boot| {
        let whole = whole(board, boot);
        only.is_empty() || only.iter().any(|name| *name == board.name || *name == whole)
    };
    let of = |board: &'static Board| boots(board).iter().map(move |&boot| (board, boot));
    boards(boots).flat_map(of).filter(|(board, boot)| wanted(board, boot)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ci_leaves_out_runs_on_another_board() {
        let kinds: [Boots; 2] = [|board| board.boots, |board| board.module_boots];
        let all = kinds.map(|boots| names(boots)).concat();
        let ci = kinds.map(of_ci).concat();
        for name in NOT_IN_CI {
            let (_, boot) = name.split_once('/').expect("a board and a boot");
            assert!(all.contains(&name) && !ci.iter().any(|one| one == name), "{name}");
            assert!(ci.iter().any(|one| one.ends_with(&format!("/{boot}"))), "{name}");
        }
        let jobs: usize = kinds.iter().map(|&boots| jobs(boots, &[]).len()).sum();
        assert_eq!(ci.len() + NOT_IN_CI.len(), jobs);
        assert!(list(kinds[1]).contains("Not in CI: sabrelite/module\n"));
    }
}
