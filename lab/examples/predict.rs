//! The frozen predictions beside what the lab's costs make of the same boards today.
//!
//! With `--csv` the lines of a file: that is how `lab/predictions.csv` was made, once.

use barewire_lab::predict::{frozen, today};

/// Four digits.
fn number(value: f64) -> String {
    let places = (3 - value.abs().log10().floor() as i32).max(0);
    format!("{value:.*}", places as usize)
}

fn main() {
    let today = today();
    if std::env::args().any(|argument| argument == "--csv") {
        println!("board,figure,unit,low,used,high,regime,command");
        for one in today {
            let [low, used, high] = [one.band.low, one.band.used, one.band.high].map(number);
            let (board, figure, unit) = (one.board, one.figure, one.unit);
            println!("{board},{figure},{unit},{low},{used},{high},{},{}", one.regime, one.command);
        }
        return;
    }
    println!(
        "{:<12}{:<15}{:<5}{:>10}{:>22}{:>10}",
        "board", "figure", "unit", "frozen", "", "today"
    );
    for one in frozen() {
        let now = today.iter().find(|now| now.board == one.board && now.figure == one.figure);
        let now = now.map_or("none".into(), |now| number(now.band.used));
        let [low, used, high] = [one.band.low, one.band.used, one.band.high].map(number);
        let range = format!("({low}-{high})");
        println!(
            "{:<12}{:<15}{:<5}{used:>10}{range:>22}{now:>10}",
            one.board, one.figure, one.unit
        );
    }
}
