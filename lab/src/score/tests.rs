//! The score of replays whose quality is known.

use super::*;
use crate::figure::published;

fn band(used: f64) -> Band {
    Band { used, low: used, high: used }
}

/// Replays that equal the published values.
fn perfect() -> Replays {
    published().into_iter().map(|figure| (figure.id, band(figure.value))).collect()
}

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
}

/// All threads and both totals.
fn all(score: &Score) -> impl Iterator<Item = &ThreadScore> {
    score.threads.iter().chain([&score.all, &score.with_fitted])
}

/// Two threads. `t` has two effects of two changes, a null and a fit pair; `u` is a fitted thread with one effect.
fn small() -> (Rules, Vec<Figure>) {
    let pair = |thread: &str, change: &str, before: &str, after: &str, class, null_bound| Pair {
        thread: thread.into(),
        change: change.into(),
        before: before.into(),
        after: after.into(),
        class,
        units: Some(2.0),
        null_bound,
        why: None,
    };
    let rules = Rules {
        goal: 0.25,
        fitted_threads: vec!["u".into()],
        input: vec!["t-input".into()],
        arithmetic: vec![],
        fit_set: [(
            "t".to_owned(),
            vec!["t-fit0".to_owned(), "t-fit1".to_owned(), "t-a".to_owned()],
        )]
        .into(),
        assumed: vec![],
        pairs: vec![
            pair("t", "fast", "t-a", "t-b", Class::Effect, None),
            pair("t", "slow", "t-b", "t-c", Class::Effect, None),
            pair("t", "fast", "t-c", "t-d", Class::Null, Some(1.0)),
            pair("t", "fast", "t-fit0", "t-fit1", Class::Effect, None),
            pair("t", "slow", "t-d", "t-a", Class::Unresolved, None),
            pair("u", "fast", "u-a", "u-b", Class::Effect, None),
        ],
    };
    let figure = |(id, value, unit): (&str, f64, &str)| Figure {
        id: id.into(),
        thread: id[..1].into(),
        value,
        unit: unit.into(),
        variant: String::new(),
        metric: String::new(),
    };
    let figures = [
        ("t-a", 100.0, "us"),
        ("t-b", 50.0, "us"),
        ("t-c", 60.0, "us"),
        ("t-d", 60.0, "us"),
        ("t-fit0", 10.0, "s"),
        ("t-fit1", 5.0, "s"),
        ("t-input", 1.0, "count"),
        ("u-a", 40.0, "us"),
        ("u-b", 20.0, "us"),
    ];
    (rules, figures.map(figure).to_vec())
}

/// Replays of [`small`]: `t-a` is 10 too much, `t-d` is out of its bound, `u-b` is 5 too much.
fn small_replays() -> Replays {
    let bands = [
        ("t-a", 110.0, 110.0, 110.0),
        ("t-b", 50.0, 45.0, 50.0),
        ("t-c", 60.0, 60.5, 66.5),
        ("t-d", 58.5, 58.5, 60.0),
        ("t-fit0", 99.0, 99.0, 99.0),
        ("t-fit1", 1.0, 1.0, 1.0),
        ("u-a", 40.0, 40.0, 40.0),
        ("u-b", 25.0, 25.0, 25.0),
    ];
    bands.map(|(id, used, low, high)| (id.to_owned(), Band { used, low, high })).into()
}

#[test]
fn a_small_example_by_hand() {
    let (rules, figures) = small();
    let score = score(&rules, &figures, &small_replays());

    // t: published -50/100 and +10/50, together 0.7; predicted -60/100 and +10/50. The null, the unresolved pair and
    // the fit pair, whose replay is far off, do not count.
    let t = &score.threads[0];
    assert_eq!((t.thread.as_str(), t.kind, t.effects, t.missing), ("t", Kind::Predicted, 2, 0));
    near(t.lab, 0.1 / 0.7);
    // The fit pair halves: fast -50 by the ratio, -5 by the constant. Slow has no fit pair.
    near(t.ratio, 0.2 / 0.7);
    near(t.constant, (0.45 + 0.2) / 0.7);
    assert_eq!(t.formula, None);
    assert_eq!(t.strongest, Strongest { name: "ratio", score: t.ratio });
    assert!(t.beats);
    near(t.by_change["fast"].score, 0.2);
    near(t.by_change["slow"].score, 0.0);
    let unit = t.by_unit["us"];
    assert_eq!((unit.effects, t.by_unit.len()), (2, 1));
    near(unit.error, 10.0);
    near(unit.published, 60.0);
    near(unit.score, 10.0 / 60.0);

    // u: published -20/40, predicted -15/40. Its change is not t's, so the simple predictors say that nothing changes.
    let u = &score.threads[1];
    assert_eq!(
        (u.thread.as_str(), u.kind, u.effects, score.threads.len()),
        ("u", Kind::Fitted, 1, 2)
    );
    near(u.lab, 0.25);
    near(u.strongest.score, 1.0);

    assert_eq!((score.all.kind, score.all.effects), (Kind::Predicted, 2));
    near(score.all.lab, t.lab);
    near(score.with_fitted.lab, (0.1 + 0.125) / 1.2);
    near(score.with_fitted.strongest.score, (0.2 + 0.5) / 1.2);
    assert_eq!((score.beaten, score.beaten_predicted), (2, 1));
    near(score.goal, 0.25);

    let [null] = &score.nulls[..] else { panic!("one null") };
    assert_eq!((null.predicted, null.within), (Some(-1.5), false));
    // Of b, c and d, b and d lie at an end of their bands; c is below. The widths are 0.1, 0.1, 1.5/58.5.
    assert_eq!((score.coverage.covered, score.coverage.of), (2, 3));
    near(score.coverage.median_width.expect("three widths"), 0.1);
    assert_eq!(score.coverage_by_thread["t"], score.coverage);
    assert_eq!(score.coverage_by_thread["u"], Coverage { covered: 0, of: 0, median_width: None });

    let kinds: Vec<_> =
        score.pairs.iter().map(|pair| (pair.kind == Kind::Fitted, pair.counted)).collect();
    let expected =
        [(false, true), (false, true), (false, false), (true, false), (false, false), (true, true)];
    assert_eq!(kinds, expected);
    let first = &score.pairs[0];
    assert_eq!((first.published, first.predicted, first.unit.as_str()), (-50.0, -60.0, "us"));
    near(first.published_relative, -0.5);
    near(first.predicted_relative, -0.6);
    assert!(score.not_replayed.is_empty(), "an input is not replayed, and not missed");
}

#[test]
fn a_figure_that_is_not_replayed_changes_nothing_and_is_listed() {
    let (rules, figures) = small();
    let mut replays = small_replays();
    replays.remove("t-a");
    replays.insert("t-d".into(), Band { used: 60.0, low: f64::NAN, high: 61.0 });
    let score = score(&rules, &figures, &replays);
    assert_eq!(score.not_replayed, ["t-a", "t-d"]);
    let t = &score.threads[0];
    assert_eq!((t.effects, t.missing), (2, 1));
    near(t.lab, 0.5 / 0.7);
    assert_eq!((score.pairs[0].replayed, score.pairs[0].predicted), (false, 0.0));
    assert_eq!((score.nulls[0].predicted, score.nulls[0].within), (None, false));
    assert_eq!((score.coverage.covered, score.coverage.of), (1, 3));
}

#[test]
fn the_median_width_is_of_the_widths_that_there_are() {
    let (rules, figures) = small();
    let median = |b: Band, c: Option<Band>| {
        let mut replays = small_replays();
        replays.insert("t-b".into(), b);
        replays.remove("t-c");
        replays.extend(c.map(|c| ("t-c".to_owned(), c)));
        replays.insert("t-d".into(), Band { used: 10.0, low: 10.0, high: 12.0 });
        score(&rules, &figures, &replays).coverage.median_width
    };
    let wide = Band { used: 10.0, low: 5.0, high: 15.0 };
    near(median(wide, None).expect("two widths"), 0.6);
    near(median(wide, Some(band(3.0))).expect("three widths"), 0.2);
    // A figure replayed as 0 has no relative width.
    near(median(band(0.0), Some(wide)).expect("two widths"), 0.6);
}

#[test]
fn a_score_as_low_as_the_strongest_does_not_beat_it() {
    let (mut rules, figures) = small();
    rules.pairs.retain(|pair| pair.thread == "u");
    let mut replays = small_replays();
    replays.insert("u-b".into(), band(40.0));
    let even = score(&rules, &figures, &replays);
    let u = &even.threads[1];
    assert_eq!((u.lab, u.strongest.score, u.beats), (1.0, 1.0, false));
    assert_eq!((even.beaten, even.with_fitted.beats), (0, false));
    // A thread without an effect has no score, and beats nothing.
    assert!(even.threads[0].lab.is_nan() && !even.threads[0].beats && !even.all.beats);
    replays.insert("u-b".into(), band(39.0));
    let better = score(&rules, &figures, &replays);
    assert_eq!((better.beaten, better.beaten_predicted, better.with_fitted.beats), (1, 0, true));
}

#[test]
fn a_null_may_be_at_its_bound() {
    let (rules, figures) = small();
    let within = |after: f64| {
        let mut replays = small_replays();
        replays.insert("t-d".into(), band(after));
        score(&rules, &figures, &replays).nulls[0].within
    };
    assert_eq!([58.9, 59.0, 61.0, 61.1].map(within), [false, true, true, false]);
}

#[test]
fn perfect_replays_score_0() {
    let score = score(&Rules::published(), &published(), &perfect());
    for thread in all(&score) {
        near(thread.lab, 0.0);
        assert!(thread.beats && thread.missing == 0 && thread.effects > 0, "{}", thread.thread);
        assert!(
            thread.by_change.values().chain(thread.by_unit.values()).all(|sums| sums.score < 1e-9)
        );
    }
    assert_eq!((score.beaten, score.beaten_predicted), (5, 4));
    // What was published varies by more than the bounds at four of Ranjan's small sizes.
    let out: Vec<_> =
        score.nulls.iter().filter(|null| !null.within).map(|null| null.after.as_str()).collect();
    let small = ["4K-map_sg", "64K-map_sg", "1M-map_sg", "1M-unmap"]
        .map(|size| format!("ranjan-{size}_after"));
    assert_eq!((out, score.nulls.len()), (small.iter().map(String::as_str).collect(), 14));
    assert_eq!(score.coverage, Coverage { covered: 43, of: 43, median_width: Some(0.0) });
    assert_eq!(score.coverage_by_thread.values().map(|coverage| coverage.of).sum::<usize>(), 43);
    assert!(score.not_replayed.is_empty());
}

#[test]
fn replays_that_do_not_change_score_1_and_so_do_none() {
    let flat = published().into_iter().map(|figure| (figure.id, band(7.0))).collect();
    for replays in [flat, Replays::new()] {
        let score = score(&Rules::published(), &published(), &replays);
        for thread in all(&score) {
            near(thread.lab, 1.0);
            assert!(!thread.beats, "{}", thread.thread);
            assert_eq!(thread.missing, if replays.is_empty() { thread.effects } else { 0 });
        }
        assert_eq!(score.beaten, 0);
        assert!(score.nulls.iter().all(|null| null.within != replays.is_empty()));
        // All but the four inputs.
        assert_eq!(score.not_replayed.len(), if replays.is_empty() { 91 } else { 0 });
    }
}

#[test]
fn the_strongest_is_the_lowest_of_what_a_thread_has() {
    let score = score(&Rules::published(), &published(), &perfect());
    for thread in &score.threads {
        let simple = [
            ("ratio", Some(thread.ratio)),
            ("constant", Some(thread.constant)),
            ("busy", Some(thread.busy)),
            ("formula", thread.formula),
        ];
        assert!(
            simple
                .iter()
                .all(|(_, score)| score.is_none_or(|score| score >= thread.strongest.score))
        );
        assert!(simple.contains(&(thread.strongest.name, Some(thread.strongest.score))));
        assert_eq!(thread.formula.is_some(), thread.thread == "ellis");
    }
    for total in [&score.all, &score.with_fitted] {
        assert!(total.strongest.score <= total.ratio.min(total.constant));
    }
}

#[test]
fn the_counted_effects_are_those_of_the_rules_without_fit_pairs() {
    let score = score(&Rules::published(), &published(), &perfect());
    let effects: Vec<_> =
        all(&score).map(|thread| (thread.thread.as_str(), thread.effects)).collect();
    // 44 effects; the RFC, Ranjan and Pitchen have one fit pair each.
    let expected = [
        ("jander-rfc", 10),
        ("ellis", 7),
        ("ranjan", 4),
        ("jander-v2", 19),
        ("pitchen", 1),
        ("all", 37),
        ("all", 41),
    ];
    assert_eq!(effects, expected);
    assert_eq!(score.with_fitted.by_change.values().map(|sums| sums.effects).sum::<usize>(), 41);
    assert_eq!(score.with_fitted.by_unit.values().map(|sums| sums.effects).sum::<usize>(), 41);
}

/// The scores that the lab has to beat. They follow from the published figures and the rules alone.
#[test]
fn the_simple_predictors_of_the_published_figures() {
    let score = score(&Rules::published(), &published(), &perfect());
    let mut table = String::new();
    for thread in all(&score) {
        let formula = thread.formula.map_or("-".to_owned(), |formula| format!("{formula:.3}"));
        let ThreadScore { thread, effects, ratio, constant, strongest, .. } = thread;
        table += &format!(
            "{thread} {effects} {ratio:.3} {constant:.3} {formula} {}: {:.3}\n",
            strongest.name, strongest.score
        );
    }
    assert_eq!(
        table,
        "jander-rfc 10 0.566 0.943 - ratio: 0.566
ellis 7 1.000 1.000 0.031 formula: 0.031
ranjan 4 0.029 0.008 - constant: 0.008
jander-v2 19 1.033 0.886 - busy: 0.631
pitchen 1 0.214 0.149 - constant: 0.149
all 37 0.928 0.914 - each thread's strongest: 0.491
all 41 0.774 0.758 - each thread's strongest: 0.408
"
    );
}
