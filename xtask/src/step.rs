//! A step of CI: when it runs, its needs and its work. [`ci`](crate::ci) lists and runs them.

use crate::context::{Context, Outcome};
use crate::needs::{self, Need};

/// When a step runs. The head of [`ci`](crate::ci) says why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lane {
    /// `cargo xtask test`: before all others, and alone.
    Test,
    /// Steps that use the shared target directory. Runs beside [`Lane::Programs`].
    Shared,
    /// Builds the shipped files, and uses them as users do. Runs beside [`Lane::Shared`].
    Programs,
    /// Steps with target directories of their own. When one of the two lanes before has ended, it takes the
    /// next of them.
    Own,
    /// After all others, and alone: boots of emulated boards and of user-mode Linux.
    Boots,
}

/// One step of CI.
#[derive(Debug)]
pub(crate) struct Step {
    /// Its name for `--step`.
    pub(crate) name: &'static str,
    /// The subject of its checks, for headers and help.
    pub(crate) about: &'static str,
    /// When it runs.
    pub(crate) lane: Lane,
    /// Minutes on two quiet cores, for the list of what did not run.
    pub(crate) minutes: u8,
    /// The tools it needs besides the pinned compiler.
    pub(crate) needs: &'static [Need],
    /// Where a change asks for it (`--changed`): beginnings of paths. Empty: anywhere.
    pub(crate) paths: &'static [&'static str],
    /// Its work.
    pub(crate) run: fn(&Context) -> Outcome,
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Step {
    /// Runs it, unless this machine lacks what it needs.
    pub(crate) fn run(&self, cx: &Context) -> Outcome {
        self.checked(cx, self.run)
    }

    /// Runs `work` as this step's, unless this machine lacks what it needs.
    pub(crate) fn checked(&self, cx: &Context, work: impl Fn(&Context) -> Outcome) -> Outcome {
        let missing = needs::missing(self.needs, cx);
        if missing.is_empty() {
            return work(cx);
        }
        let names: Vec<String> = missing.iter().map(|need| need.name()).collect();
        let what = format!("{}: no {}", self.name, names.join(", no "));
        cx.lacks(&what, &format!("cargo xtask ci --step {} --install", self.name))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::console::Console;
    use crate::context::Verdict;

    #[test]
    fn a_step_whose_needs_are_missing_does_not_run_and_says_what_mends_it() {
        static NEEDS: [Need; 1] =
            [Need::program("barewire-no-such-package", "barewire-no-such-program")];
        let step = Step {
            name: "x",
            about: "x",
            lane: Lane::Own,
            minutes: 1,
            needs: &NEEDS,
            paths: &[],
            run: |_| panic!("it runs without what it needs"),
        };
        let mut cx = Context::new(PathBuf::from("."), Console::silent(), false);
        (cx.ci, cx.may_install) = (false, false);
        let outcome = step.run(&cx);
        assert_eq!(outcome.verdict, Verdict::Skipped);
        let line = &outcome.tally.skipped[0];
        assert_eq!(
            line,
            "SKIPPED: x: no barewire-no-such-package; to mend: cargo xtask ci --step x --install"
        );
    }
}
