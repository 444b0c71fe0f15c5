//! Published times beside priced ones (`guests/published.txt`): the errors, whatever they are.

use std::fmt::Write;

use super::super::board::Board;
use super::prices::{Level, List};
use super::replay::Time;
use super::rows;
use super::trace::Operation;

/// The figures.
pub(super) const FIGURES: &str = "guests/published.txt";

/// What was published of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Each,
    Three,
    Lead,
    Lag,
}

impl What {
    fn of(self, time: &Time) -> u64 {
        match self {
            Self::Each => time.total(),
            Self::Three => 3 * time.total(),
            Self::Lead => time.lead,
            Self::Lag => time.lag,
        }
    }
}

/// A published time, and what stands in for it.
#[derive(Clone, Debug, PartialEq)]
struct Figure {
    id: String,
    board: String,
    kernel: String,
    path: String,
    bytes: u64,
    is_cold: bool,
    sck_hz: u64,
    what: What,
    published_us: f64,
}

/// A figure with the times at the three levels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compared {
    id: String,
    board: String,
    published_us: f64,
    priced_us: [f64; 3],
}

/// Reads the figures.
fn parse(text: &str) -> Result<Vec<Figure>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| figure(line).ok_or_else(|| format!("{FIGURES}: no figure: `{line}`")))
        .collect()
}

fn figure(line: &str) -> Option<Figure> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [id, board, kernel, path, bytes, state, sck_hz, what, published, _, ..] = *words.as_slice()
    else {
        return None;
    };
    let what = match what {
        "each" => What::Each,
        "three" => What::Three,
        "lead" => What::Lead,
        "lag" => What::Lag,
        _ => return None,
    };
    Some(Figure {
        id: id.to_owned(),
        board: board.to_owned(),
        kernel: kernel.to_owned(),
        path: path.to_owned(),
        bytes: bytes.parse().ok()?,
        is_cold: matches!(state, "cold"),
        sck_hz: sck_hz.parse().ok()?,
        what,
        published_us: published.parse().ok()?,
    })
}

/// The figures of a board and a kernel.
///
/// # Errors
/// A line that is no figure, a path that was not counted, or a price that is missing.
pub(super) fn compare(
    text: &str,
    board: &Board,
    kernel: &str,
    operations: &[Operation],
    list: &List,
) -> Result<Vec<Compared>, String> {
    let own = |figure: &Figure| {
        figure.board == board.name && kernel.starts_with(&format!("{}.", figure.kernel))
    };
    let mut all = Vec::new();
    for figure in parse(text)?.into_iter().filter(own) {
        let is_one = |one: &&Operation| {
            (&*one.path, one.bytes, one.is_cold) == (&*figure.path, figure.bytes, figure.is_cold)
        };
        let group: Vec<&Operation> = operations.iter().filter(is_one).collect();
        let one = rows::middle(&group)
            .ok_or_else(|| format!("{FIGURES}: {}: that was not counted", figure.id))?;
        let mut priced_us = [0.0; 3];
        for (level, us) in Level::ALL.into_iter().zip(&mut priced_us) {
            let time = rows::price(one, board, list, level, figure.sck_hz)?;
            *us = figure.what.of(&time) as f64 / 1e6;
        }
        let Figure { id, board, published_us, .. } = figure;
        all.push(Compared { id, board, published_us, priced_us });
    }
    Ok(all)
}

/// For people.
pub(super) fn text(all: &[Compared]) -> String {
    let mut text = format!(
        "Published beside priced, in microseconds; the error is of the used prices.\n{:<22}{:<12}{:>10}{:>9}{:>9}{:>9}{:>8}\n",
        "figure", "board", "published", "low", "used", "high", "error"
    );
    for Compared { id, board, published_us, priced_us: [low, used, high] } in all {
        let error = 100.0 * (used / published_us - 1.0);
        let _ = writeln!(
            text,
            "{id:<22}{board:<12}{published_us:>10.2}{low:>9.2}{used:>9.2}{high:>9.2}{error:>+7.0} %"
        );
    }
    text
}

/// Objects, separated by commas.
pub(super) fn json(all: &[Compared]) -> String {
    let object = |one: &Compared| {
        let Compared { id, board, published_us, priced_us: [low, used, high] } = one;
        format!(
            "{{\"figure\":{},\"board\":{},\"published_us\":{published_us},\"priced_us\":[{low},{used},{high}]}}",
            crate::check::quoted(id),
            crate::check::quoted(board)
        )
    };
    all.iter().map(object).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_one_and_of_a_board_that_is_priced() {
        let all = parse(include_str!("../../../../guests/published.txt")).expect("figures");
        assert!(all.len() > 10);
        let boards = super::super::super::board::BOARDS;
        let is_priced = |name: &str| {
            boards.iter().any(|board| board.name == name && !board.priced_boots.is_empty())
        };
        assert!(all.iter().all(|figure| is_priced(&figure.board)));
    }

    #[test]
    fn what_is_no_figure_is_refused() {
        assert!(parse("a raspi3b 6.1 spidev 3 warm 3000000 each 16.13 source").is_ok());
        assert!(parse("a raspi3b 6.1 spidev 3 warm 3000000 each 16.13").is_err(), "no source");
        assert!(parse("a raspi3b 6.1 spidev 3 warm 3000000 all 16.13 source").is_err());
    }

    #[test]
    fn each_quantity_is_another_part_of_the_time() {
        let time = Time { instructions: 1_000_000, lead: 5, lag: 7, ..Time::default() };
        let of = [What::Each, What::Three, What::Lead, What::Lag].map(|what| what.of(&time));
        assert_eq!(of, [1_000_000, 3_000_000, 5, 7]);
    }
}
