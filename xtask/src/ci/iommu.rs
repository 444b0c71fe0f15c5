//! The steps of the page tables' workspace, which has a lock file of its own.

use std::path::Path;

use super::PROFILE;
use super::checkers::{BARE_TARGETS, FEATURES_TARGET, LINUX32_TARGET, model_checker, under_miri};
use crate::child::Task;
use crate::context::{Context, Outcome};
use crate::needs::{self, Need};
use crate::static_build;
use crate::step::{Lane, Step};

/// The step.
pub(super) const STEP: Step = Step {
    name: "iommu",
    about: "the page tables' workspace: lints, tests, QEMU's SMMU, loom, instructions, targets",
    lane: Lane::Own,
    minutes: 7,
    needs: &[
        Need::OldestCompiler,
        Need::package("valgrind"),
        Need::Qemu("qemu-system-aarch64"),
        Need::program("qemu-user", "qemu-aarch64"),
        Need::Target(BARE_TARGETS[0]),
        Need::Target(BARE_TARGETS[1]),
        Need::Target(BARE_TARGETS[2]),
        Need::Target(BARE_TARGETS[3]),
        Need::Target(LINUX32_TARGET),
        Need::Target(static_build::ARM64),
    ],
    paths: &["iommu/"],
    run,
};

/// Its tests under Miri, which the other steps need not wait for.
pub(super) const MIRI: Step = Step {
    name: "iommu_miri",
    about: "the unsafe code of the page tables under Miri",
    lane: Lane::Own,
    minutes: 5,
    needs: &[Need::Miri],
    paths: &["iommu/barewire-iommu/"],
    run: miri,
};

/// The modules of the page tables whose unit tests Miri leaves out: they have no unsafe code and call none.
/// `explain`, whose tests are not built for it, reads tables through a closure, `bits` is a set in atomic words,
/// `range`, `strategy` and `tlbi` compute. They would take more time than all others. So would the model's, which reach
/// none of its unsafe code: that implements an unsafe trait, and dereferences no pointer.
const MIRI_SKIPS: [&str; 5] = ["explain", "iova::bits", "smmu::v3::range", "strategy", "tlbi"];

fn run(cx: &Context) -> Outcome {
    let dir = cx.root.join("iommu");
    let test = "test --workspace --no-fail-fast --profile ci -- --show-output";
    let tested = cx.run_tests_in(&dir, &cargo(cx, test).linted());
    if tested.tally.build_broke {
        return tested;
    }
    let checked = cx.run_tests_beside(
        &dir,
        &[
            model_checker(cx, "iommu-loom", "barewire-iommu", &["--test", "loom*"]),
            model_checker(cx, "iommu-loom", "barewire-iommu", &["--lib", "loom"]),
        ],
    );
    let mut ran = vec![tested, counted(cx, &dir), checked];
    ran.extend(builds(cx).iter().map(|task| cx.run_in(&dir, task)));
    ran.push(cx.run_in(&dir, &msrv(cx)));
    Outcome::of_all(ran)
}

/// A cargo command of that workspace, whose builds are beside those of the other.
fn cargo(cx: &Context, words: &str) -> Task {
    let words: Vec<&str> = words.split(' ').collect();
    Task::new("cargo", &words).env("CARGO_TARGET_DIR", target(cx))
}

fn target(cx: &Context) -> String {
    cx.root.join(cx.target_dir("iommu")).to_string_lossy().into_owned()
}

/// The library's long runs are left out: they have no unsafe code of their own, and reach the same
/// code as the tests here.
fn miri(cx: &Context) -> Outcome {
    let skips = MIRI_SKIPS.map(|module| ["--skip".to_owned(), format!("{module}::")]).concat();
    let skips: Vec<_> = skips.iter().map(String::as_str).collect();
    let task = under_miri(cx, "iommu-miri", &["-p", "barewire-iommu", "--lib"], &skips);
    cx.run_tests_in(&cx.root.join("iommu"), &task)
}

/// Instructions of what a user builds with the profile `counted`, on x86-64 and, by QEMU, on 64-bit Arm.
fn counted(cx: &Context, dir: &Path) -> Outcome {
    let (target, arm64) = (target(cx), static_build::ARM64);
    let build = "build --profile counted -p barewire-iommu-bench";
    // The linker as in `static_build`.
    let flags = format!("{} -C linker=rust-lld", static_build::atomics(arm64));
    let builds = [
        cargo(cx, &format!("{build} --bins")),
        cargo(cx, &format!("{build} --bin iommu-count --target {arm64}")).env("RUSTFLAGS", flags),
    ];
    for task in builds {
        let built = cx.ran_in(dir, &task);
        if !built.success {
            return Outcome::of_tests(false, built.tally);
        }
    }
    let test = "test --workspace --no-fail-fast --profile ci --test instructions -- --show-output";
    let count = cargo(cx, test)
        .linted()
        .env("BAREWIRE_PROGRAMS", format!("{target}/counted"))
        .env("BAREWIRE_PROGRAMS_ARM64", format!("{target}/{arm64}/counted"));
    cx.run_tests_in(dir, &count)
}

/// The library for targets without an operating system, all for 32-bit Linux, and the documentation.
fn builds(cx: &Context) -> Vec<Task> {
    let bare = |target| format!("build --profile ci -p barewire-iommu --target {target}");
    let mut builds = BARE_TARGETS.map(bare).to_vec();
    builds.push(format!("{} --features alloc", bare(FEATURES_TARGET)));
    builds.push(format!("check --workspace --profile ci --target {LINUX32_TARGET}"));
    let builds = builds.iter().map(|words| cargo(cx, words).env("RUSTFLAGS", "-Dwarnings"));
    let documented = ["--bins", "--lib"].map(|kind| {
        let words = format!("doc --workspace --no-deps --profile ci {kind}");
        cargo(cx, &words).env("RUSTDOCFLAGS", "-Dwarnings")
    });
    builds.chain(documented).collect()
}

fn msrv(cx: &Context) -> Task {
    let (compiler, dir) = (format!("+{}", needs::oldest_compiler(cx)), cx.target_dir("iommu-msrv"));
    let dir = cx.root.join(dir).to_string_lossy().into_owned();
    let args = [&compiler, "check", "--workspace", "--target-dir", &dir];
    Task::new("cargo", &[&args[..], &PROFILE].concat())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::checkers::tests::unsafe_files;
    use super::*;

    #[test]
    fn miri_leaves_out_no_module_that_has_unsafe_code() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../iommu/barewire-iommu/src");
        let found = unsafe_files(&src);
        assert!(found.len() > 8, "{found:?}");
        for module in MIRI_SKIPS {
            let place = src.join(module.replace("::", "/"));
            assert!(place.join("mod.rs").exists() || place.with_extension("rs").exists());
            let inside = |path: &PathBuf| path.with_extension("").starts_with(&place);
            assert_eq!(found.iter().find(|path| inside(path)), None);
        }
    }
}
