//! Watches that cases make progress, and collects the promises that they break.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::time::Duration;
use std::{env, panic};

use crate::case::{Case, run_case};
use crate::fuse::{self, Run};
use crate::threads::{lock, while_it_goes_on};

/// A case that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(if cfg!(miri) { 1_200 } else { 120 });

/// How many failures are shown.
const SHOWN_MAX: usize = 20;

/// Chooses the cases whose name contains each of its parts, and none of those after a `!`; and
/// reports each. Parts are separated by commas.
const CHOICE: &str = "BAREWIRE_PANICS";

/// The cases that have run, and those that run now.
#[derive(Default)]
pub(crate) struct Watch {
    current: Mutex<Option<Case>>,
    runs: AtomicU64,
    panics: AtomicU64,
    mixes: AtomicU64,
    failures: Mutex<Vec<String>>,
}

/// The chosen case, if one was chosen.
pub(crate) fn choice() -> Option<&'static str> {
    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    CHOSEN.get_or_init(|| env::var(CHOICE).ok()).as_deref()
}

fn is_chosen(case: Case, choice: &str) -> bool {
    let name = case.to_string();
    choice.split(',').all(|part| match part.strip_prefix('!') {
        Some(other) => !name.contains(other),
        None => name.contains(part),
    })
}

impl Watch {
    /// Runs a case, if it is chosen, and notes what it breaks.
    pub(crate) fn run(&self, case: Case) -> Option<Arc<Run>> {
        let chosen = choice();
        if chosen.is_some_and(|choice| !is_chosen(case, choice)) {
            return None;
        }
        *lock(&self.current) = Some(case);
        if chosen.is_some() {
            print!("{case}: ");
        }
        let ran = run_case(case);
        self.runs.fetch_add(1, Ordering::Relaxed);
        if chosen.is_some() {
            println!("{:?}", ran.as_ref().map(|run| run.log().fired.len()));
        }
        match ran {
            Ok(run) => {
                self.panics.fetch_add(run.log().fired.len() as u64, Ordering::Relaxed);
                Some(run)
            }
            Err(wrong) => {
                lock(&self.failures).push(format!("{case}: {wrong}"));
                None
            }
        }
    }

    pub(crate) fn count_mix(&self) {
        self.mixes.fetch_add(1, Ordering::Relaxed);
    }

    fn shown(&self) -> String {
        let failures = lock(&self.failures);
        let shown: Vec<_> = failures.iter().take(SHOWN_MAX).cloned().collect();
        format!("{} of {} cases failed\n{}", failures.len(), self.runs(), shown.join("\n"))
    }

    fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }
}

/// Prints the case before any panic that no hook injected: a case that aborts is the last one
/// printed.
fn tell_cases() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if let Some(case) = fuse::case() {
                eprintln!("in {case}:");
            }
            before(info);
        }));
    });
}

/// Runs `body`, and fails if a case failed or hangs. A case that hangs is abandoned.
pub(crate) fn watched(what: &str, body: impl FnOnce(&Watch) + Send + 'static) {
    tell_cases();
    let watch = Arc::new(Watch::default());
    let hanging = || {
        let case = lock(&watch.current).expect("one was begun");
        format!("{case} hangs. Before, {}", watch.shown())
    };
    let watched = watch.clone();
    while_it_goes_on(LIMIT, || watch.runs(), hanging, move || body(&watched));
    assert!(lock(&watch.failures).is_empty(), "{}", watch.shown());
    println!(
        "FIGURE: panics everywhere, {what}: {} mixes, {} panics, {} runs",
        watch.mixes.load(Ordering::Relaxed),
        watch.panics.load(Ordering::Relaxed),
        watch.runs(),
    );
}
