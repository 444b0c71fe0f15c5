//! The kept fit is the one that the fit set gives, and what it is worth: too slow without optimisation, so CI runs it
//! with `--release --include-ignored`.
//!
//! Set `BAREWIRE_BLESS=1` to write `fitted.toml` anew; the difference is then for a reviewer.

use std::collections::BTreeMap;
use std::path::Path;

use barewire_lab::Lab;
use barewire_lab::cost::{Checks, fitted_text};
use barewire_lab::fit::{self, Fit};

fn digits(score: f64) -> f64 {
    (score * 1e4).round() / 1e4
}

#[test]
#[ignore = "refits twelve times; in step test-release"]
fn the_kept_fit_is_that_of_the_fit_set() {
    let Fit { costs, residuals, draws, leave_one_out, shuffled } =
        Lab::new().refit(&mut |_, _| ()).expect("every figure of the fit set replays");
    let leave_one_out: BTreeMap<String, f64> =
        leave_one_out.into_iter().map(|(thread, score)| (thread, digits(score))).collect();
    let checks = Checks { leave_one_out, shuffled: shuffled.into_iter().map(digits).collect() };
    let text = fitted_text(&fit::moved(&costs), &draws, &checks);
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("fitted.toml");
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        std::fs::write(&kept, &text).expect("fitted.toml can be written");
    }
    assert!(residuals.iter().all(|one| one.error.abs() < 0.05), "{residuals:#?}");
    let kept = std::fs::read_to_string(&kept).expect("fitted.toml is there");
    assert!(kept == text, "the fit gives another fitted.toml: BAREWIRE_BLESS=1 writes it");
}

#[test]
fn a_fit_to_figures_dealt_out_anew_is_no_better_than_simple_predictors() {
    let outcome_of_simple = {
        let lab = Lab::new();
        let none = barewire_lab::outcome::Replays::new();
        barewire_lab::score::score(lab.rules(), lab.figures(), &none).all.strongest.score
    };
    let Checks { shuffled, leave_one_out } = Checks::kept();
    assert!(shuffled.len() >= 6 && leave_one_out.len() == 5);
    let mut sorted = shuffled.clone();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted[sorted.len() / 2];
    println!("simple {outcome_of_simple} shuffled {shuffled:?} left out {leave_one_out:?}");
    assert!(middle >= outcome_of_simple, "{middle} {outcome_of_simple}");
}
