//! The step `iommu`: the lane of the page tables' workspace, which has a lock file of its own.

use std::path::Path;

use super::checkers::{LINUX32_TARGET, model_checker, under_miri};
use super::{PROFILE, WHOLE};
use crate::child::Task;
use crate::context::{Context, Outcome};
use crate::needs::{self, Need};
use crate::static_build;
use crate::step::{Lane, Step};

/// The step.
pub(super) const STEP: Step = Step {
    name: "iommu",
    about: "the page tables' workspace: lints, tests, QEMU's SMMU, loom, Miri, instructions, targets",
    lane: Lane::Shared,
    minutes: 8,
    needs: &[
        Need::Miri,
        Need::OldestCompiler,
        Need::package("valgrind"),
        Need::Qemu { name: "qemu-system-arm", program: "qemu-system-aarch64" },
        Need::program("qemu-user", "qemu-aarch64"),
        Need::Target(BARE_TARGETS[0]),
        Need::Target(BARE_TARGETS[1]),
        Need::Target(LINUX32_TARGET),
        Need::Target(static_build::ARM64),
    ],
    paths: &["iommu/"],
    run,
};

/// Targets without an operating system, one of 32 and one of 64 bits.
const BARE_TARGETS: [&str; 2] = ["thumbv7em-none-eabihf", "aarch64-unknown-none"];

/// The modules of the page tables and of their model whose unit tests Miri leaves out: they have no unsafe code
/// and call none. `explain` reads tables through a closure, `bits` is a set in atomic words, `naive` is a map,
/// and `strategy` computes. They would take more time than all others.
const MIRI_SKIPS: [(&str, &str); 4] = [
    ("barewire-iommu", "explain"),
    ("barewire-iommu", "iova::bits"),
    ("barewire-iommu", "strategy"),
    ("barewire-iommu-model", "naive"),
];

fn run(cx: &Context) -> Outcome {
    let dir = cx.root.join("iommu");
    let target = cx.root.join(cx.target_dir("iommu")).to_string_lossy().into_owned();
    let cargo = |args: &[&str]| {
        let (verb, rest) = args.split_first().expect("a verb");
        Task::new("cargo", &[&[*verb, "--target-dir", &target], rest].concat())
    };
    let mut ran = vec![
        cx.run_in(
            &dir,
            &cargo(
                &[
                    &["clippy", "--workspace", "--all-targets"],
                    &PROFILE[..],
                    &["--", "-D", "warnings"],
                ]
                .concat(),
            ),
        ),
        cx.run_tests_in(
            &dir,
            &cargo(
                &[
                    &["test", "--workspace", "--no-fail-fast"],
                    &PROFILE[..],
                    &["--", "--show-output"],
                ]
                .concat(),
            )
            .env(WHOLE.0, WHOLE.1),
        ),
    ];
    if ran.iter().any(|outcome| outcome.tally.build_broke) {
        return Outcome::of_all(ran);
    }
    ran.push(counted(cx, &dir, &target));
    ran.push(cx.run_tests_beside(
        &dir,
        &[
            model_checker(cx, "iommu-loom", "barewire-iommu", &["--test", "loom*"]),
            model_checker(cx, "iommu-loom", "barewire-iommu", &["--lib", "loom"]),
            miri(cx),
        ],
    ));
    ran.extend(builds(&target).map(|task| cx.run_in(&dir, &task)));
    ran.push(cx.run_in(&dir, &msrv(cx)));
    Outcome::of_all(ran)
}

/// The library's long runs are left out: without unsafe code of their own, they cover what these do.
fn miri(cx: &Context) -> Task {
    let skips = MIRI_SKIPS.map(|(_, module)| ["--skip".to_owned(), format!("{module}::")]).concat();
    let skips: Vec<_> = skips.iter().map(String::as_str).collect();
    let packages = ["-p", "barewire-iommu", "-p", "barewire-iommu-model", "--lib"];
    under_miri(cx, "iommu-miri", &packages, &skips)
}

/// Instructions of what a user builds with the profile `counted`, on x86-64 and, by QEMU, on 64-bit Arm.
fn counted(cx: &Context, dir: &Path, target: &str) -> Outcome {
    let build =
        ["build", "--target-dir", target, "--profile", "counted", "-p", "barewire-iommu-bench"];
    let host = Task::new("cargo", &[&build[..], &["--bins"]].concat());
    // The linker as in `static_build`.
    let flags = format!("{} -C linker=rust-lld", static_build::atomics(static_build::ARM64));
    let arm64 = ["--bin", "iommu-count", "--target", static_build::ARM64];
    let arm64 = Task::new("cargo", &[&build[..], &arm64].concat()).env("RUSTFLAGS", flags);
    for task in [host, arm64] {
        let built = cx.ran_in(dir, &task);
        if !built.success {
            return Outcome::of_tests(false, built.tally);
        }
    }
    let count = ["test", "--target-dir", target, "--workspace", "--no-fail-fast"];
    let which = ["--test", "instructions", "--", "--show-output"];
    let count = Task::new("cargo", &[&count[..], &PROFILE, &which].concat())
        .env("BAREWIRE_PROGRAMS", format!("{target}/counted"))
        .env("BAREWIRE_PROGRAMS_ARM64", format!("{target}/{}/counted", static_build::ARM64));
    cx.run_tests_in(dir, &count)
}

/// The library for targets without an operating system, all for 32-bit Linux, and the documentation.
fn builds(target: &str) -> [Task; 6] {
    let cargo = |args: &[&str]| {
        let (verb, rest) = args.split_first().expect("a verb");
        let args = [&[*verb, "--target-dir", target], &PROFILE[..], rest].concat();
        Task::new("cargo", &args).env("RUSTFLAGS", "-Dwarnings")
    };
    let library = ["build", "-p", "barewire-iommu", "--target"];
    let documented = |kind| {
        let args = ["doc", "--target-dir", target, "--workspace", "--no-deps", kind];
        Task::new("cargo", &[&args[..], &PROFILE].concat()).env("RUSTDOCFLAGS", "-Dwarnings")
    };
    [
        cargo(&[&library[..], &[BARE_TARGETS[0]]].concat()),
        cargo(&[&library[..], &[BARE_TARGETS[1]]].concat()),
        cargo(&[&library[..], &[BARE_TARGETS[1], "--features", "alloc"]].concat()),
        cargo(&["check", "--workspace", "--target", LINUX32_TARGET]),
        documented("--bins"),
        documented("--lib"),
    ]
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
        for (package, module) in MIRI_SKIPS {
            let src =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../iommu").join(package).join("src");
            let found = unsafe_files(&src);
            assert!(!found.is_empty(), "none in {package}, which has some");
            let place = src.join(module.replace("::", "/"));
            assert!(place.join("mod.rs").exists() || place.with_extension("rs").exists());
            let inside = |path: &PathBuf| path.with_extension("").starts_with(&place);
            assert_eq!(found.into_iter().find(inside), None);
        }
    }
}
