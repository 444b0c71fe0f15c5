//! Tools that CI needs beside the pinned compiler: looks for them, and installs them where it
//! may.
//!
//! Installing is done as root on a system with apt-get (a container, a build machine) and for
//! what rustup keeps in the user's own directory. Everywhere else the exact command is printed
//! and the run goes on; what needs the tool then skips, loudly.

use std::path::{Path, PathBuf};

use crate::backports;
use crate::child::Task;
use crate::ci::{Context, Outcome};
use crate::static_build;

/// A Debian package and what shows that it is there.
struct Package {
    name: &'static str,
    proof: Proof,
    serves: &'static str,
}

/// What a package puts on the system.
enum Proof {
    Program(&'static str),
    File(&'static str),
}

const PACKAGES: [Package; 8] = [
    Package {
        name: "valgrind",
        proof: Proof::Program("valgrind"),
        serves: "counts instructions per message",
    },
    Package {
        name: "sigrok-cli",
        proof: Proof::Program("sigrok-cli"),
        serves: "decodes the VCD files we write",
    },
    Package {
        name: "qemu-system-arm",
        proof: Proof::Program("qemu-system-arm"),
        serves: "boards and chips that nobody here wrote",
    },
    Package {
        name: "qemu-user",
        proof: Proof::Program("qemu-aarch64"),
        serves: "counts instructions of page tables on 64-bit Arm",
    },
    Package {
        name: "qemu-system-misc",
        proof: Proof::Program("qemu-system-riscv64"),
        serves: "a RISC-V board that nobody here wrote",
    },
    Package {
        name: "device-tree-compiler",
        proof: Proof::Program("dtc"),
        serves: "merges overlays, and makes device trees of guests",
    },
    Package {
        name: "ovmf",
        proof: Proof::File("/usr/share/OVMF/OVMF_CODE_4M.fd"),
        serves: "a real firmware image to write, read and verify",
    },
    Package { name: "chromium", proof: Proof::Program("chromium"), serves: "opens the lab's page" },
];

/// What `guests` needs beside them.
const GUEST_PACKAGES: [Package; 5] = [
    Package { name: "make", proof: Proof::Program("make"), serves: "a kernel module of guests" },
    // The C library comes with the compiler by recommendation only.
    Package {
        name: "libc6-dev-arm64-cross",
        proof: Proof::File("/usr/aarch64-linux-gnu/lib/libc.a"),
        serves: "programs of 64-bit guests, with gcc-aarch64-linux-gnu",
    },
    Package {
        name: "libc6-dev-armhf-cross",
        proof: Proof::File("/usr/arm-linux-gnueabihf/lib/libc.a"),
        serves: "programs of 32-bit guests, with gcc-arm-linux-gnueabihf",
    },
    Package {
        name: "gcc-aarch64-linux-gnu",
        proof: Proof::Program("aarch64-linux-gnu-gcc"),
        serves: "the same",
    },
    Package {
        name: "gcc-arm-linux-gnueabihf",
        proof: Proof::Program("arm-linux-gnueabihf-gcc"),
        serves: "the same",
    },
];

/// What `clients` needs beside them: the clients, and what builds those that are sources.
const CLIENT_PACKAGES: [Package; 5] = [
    Package { name: "flashrom", proof: Proof::Program("flashrom"), serves: "a client" },
    Package { name: "gpiod", proof: Proof::Program("gpiomon"), serves: "a client" },
    Package { name: "spi-tools", proof: Proof::Program("spi-pipe"), serves: "two clients" },
    Package {
        name: "python3-spidev",
        proof: Proof::File("/usr/share/doc/python3-spidev/copyright"),
        serves: "a client",
    },
    Package {
        name: "python3-venv",
        proof: Proof::File("/usr/share/doc/python3-venv/copyright"),
        serves: "clients from PyPI",
    },
];

/// What the C library's step needs beside them.
const C_PACKAGES: [Package; 6] = [
    Package { name: "gcc", proof: Proof::Program("cc"), serves: "C programs" },
    Package { name: "g++", proof: Proof::Program("c++"), serves: "C++ programs, and sanitizers" },
    Package { name: "make", proof: Proof::Program("make"), serves: "builds the examples" },
    Package { name: "cmake", proof: Proof::Program("cmake"), serves: "builds them too" },
    Package { name: "pkgconf", proof: Proof::Program("pkg-config"), serves: "finds the library" },
    Package { name: "valgrind", proof: Proof::Program("valgrind"), serves: "checks memory" },
];

/// Targets without an operating system, on which the core must build.
pub(crate) const BARE_TARGETS: [&str; 6] = [
    "thumbv7em-none-eabihf",
    "aarch64-unknown-none",
    "riscv32imac-unknown-none-elf",
    "wasm32-unknown-unknown",
    NO_CAS_TARGETS[0],
    NO_CAS_TARGETS[1],
];

/// Those of them without compare-and-swap, for which the core has a feature.
pub(crate) const NO_CAS_TARGETS: [&str; 2] = ["thumbv6m-none-eabi", "riscv32imc-unknown-none-elf"];

/// The 32-bit Linux that the workspace must build for.
pub(crate) const LINUX32_TARGET: &str = "armv7-unknown-linux-gnueabihf";

/// What the package of this machine's architecture is built for.
const PACKAGE_TARGET: &str = static_build::AMD64;

/// What the library that `barewire run` loads is built for in packages of 64-bit Arm.
const LIBRARY64_TARGET: &str = static_build::LIBRARY_ARM64;

/// What the command is built for in 64-bit guests.
const GUEST64_TARGET: &str = static_build::ARM64;

impl Proof {
    fn holds(&self) -> bool {
        match self {
            Self::Program(name) => on_path(name).is_some(),
            Self::File(path) => Path::new(path).is_file(),
        }
    }
}

/// The step: everything looked for, what is missing fetched, what stays missing named.
pub(crate) fn check(cx: &Context) -> Outcome {
    let mut missing: Vec<&str> = Vec::new();
    missing.extend(packages(cx, &PACKAGES));
    backports::newer_qemu(cx, is_root(cx) && on_path("apt-get").is_some());
    missing.extend(targets(cx));
    missing.extend(oldest(cx));
    missing.extend(miri(cx));
    let note =
        if missing.is_empty() { String::new() } else { format!("missing: {}", missing.join(", ")) };
    // CI must skip nothing that can run there; elsewhere a missing tool is the user's choice.
    let outcome = if cx.ci && !missing.is_empty() { Outcome::failed() } else { Outcome::passed() };
    outcome.with_note(note)
}

/// Packages that stay missing.
fn packages(cx: &Context, wanted: &[Package]) -> Vec<&'static str> {
    let mut missing = absent(wanted, Proof::holds);
    let root = is_root(cx);
    if !missing.is_empty() && cx.may_install && root && on_path("apt-get").is_some() {
        for task in [apt_update(), apt_install(&missing)] {
            task.env("DEBIAN_FRONTEND", "noninteractive").run(&cx.root, cx.console);
        }
        missing = absent(wanted, Proof::holds);
    }
    for package in wanted {
        let found = if missing.contains(&package.name) { "MISSING" } else { "found" };
        cx.console.say(&format!("{:<24}{found:<9}{}", package.name, package.serves));
    }
    if !missing.is_empty() {
        let sudo = if root { "" } else { "sudo " };
        let (update, install) = (apt_update().line(), apt_install(&missing).line());
        cx.console.say(&format!("to install: {sudo}{update} && {sudo}{install}"));
    }
    missing
}

fn is_root(cx: &Context) -> bool {
    Task::new("id", &["-u"]).answer(&cx.root).is_some_and(|uid| uid.trim() == "0")
}

/// What the guests need, installed where that is ours to do; what stays missing is named, and the
/// guests say what they lack.
pub(crate) fn for_guests(cx: &Context) {
    packages(cx, &GUEST_PACKAGES);
}

/// What the clients need, installed where that is ours to do; what stays missing.
pub(crate) fn for_clients(cx: &Context) -> Vec<&'static str> {
    packages(cx, &CLIENT_PACKAGES)
}

/// What the C library's step needs, installed where that is ours to do; what stays missing.
pub(crate) fn for_c(cx: &Context) -> Vec<&'static str> {
    packages(cx, &C_PACKAGES)
}

/// The packages whose proof does not hold.
fn absent(wanted: &[Package], holds: impl Fn(&Proof) -> bool) -> Vec<&'static str> {
    wanted.iter().filter(|package| !holds(&package.proof)).map(|package| package.name).collect()
}

fn apt_update() -> Task {
    Task::new("apt-get", &["update"])
}

fn apt_install(packages: &[&str]) -> Task {
    Task::new("apt-get", &[&["install", "-y", "--no-install-recommends"], packages].concat())
}

/// Targets that stay missing from the pinned toolchain.
fn targets(cx: &Context) -> Vec<&'static str> {
    let serves = |target| match target {
        LINUX32_TARGET => "builds the workspace for 32 bits, and 32-bit guests",
        GUEST64_TARGET => "builds the command for 64-bit guests, and what is counted on Arm",
        PACKAGE_TARGET => "builds the command for packages",
        LIBRARY64_TARGET => "builds its library for packages",
        _ => "builds the core without std",
    };
    let hosted = [LINUX32_TARGET, GUEST64_TARGET, PACKAGE_TARGET, LIBRARY64_TARGET];
    let wanted = || BARE_TARGETS.into_iter().chain(hosted);
    let lacking =
        || -> Vec<&'static str> { wanted().filter(|target| !has_target(cx, target)).collect() };
    let mut missing = lacking();
    if !missing.is_empty() {
        obtain(cx, &Task::new("rustup", &[&["target", "add"], &missing[..]].concat()));
        missing = lacking();
    }
    for target in wanted() {
        let found = if missing.contains(&target) { "MISSING" } else { "found" };
        cx.console.say(&format!("{target:<30}{found:<9}{}", serves(target)));
    }
    missing
}

/// Whether the compiler in use has a standard library for `target`, however it was installed.
pub(crate) fn has_target(cx: &Context, target: &str) -> bool {
    Task::new("rustc", &["--print", "target-libdir", "--target", target])
        .answer(&cx.root)
        .is_some_and(|dir| Path::new(dir.trim()).is_dir())
}

/// Whether a program of this name is on the path.
pub(crate) fn has_program(name: &str) -> bool {
    on_path(name).is_some()
}

/// The oldest compiler the workspace promises to build with: its manifest's `rust-version`.
pub(crate) fn oldest_compiler(cx: &Context) -> String {
    let manifest = std::fs::read_to_string(cx.root.join("Cargo.toml")).unwrap_or_default();
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    format!("{}.0", line.unwrap_or_default().trim_matches('"'))
}

/// Whether that compiler answers.
pub(crate) fn has_compiler(cx: &Context, version: &str) -> bool {
    Task::new("cargo", &[&format!("+{version}"), "--version"]).answer(&cx.root).is_some()
}

/// `rustc` if the oldest compiler stays missing.
fn oldest(cx: &Context) -> Option<&'static str> {
    let version = oldest_compiler(cx);
    if !has_compiler(cx, &version) {
        obtain(
            cx,
            &Task::new("rustup", &["toolchain", "install", &version, "--profile", "minimal"]),
        );
    }
    let missing = !has_compiler(cx, &version);
    let found = if missing { "MISSING" } else { "found" };
    let name = format!("rustc {version}");
    cx.console.say(&format!("{name:<24}{found:<9}the oldest compiler promised"));
    missing.then_some("the oldest compiler promised")
}

/// `miri` if it stays missing.
fn miri(cx: &Context) -> Option<&'static str> {
    if !has_miri(cx) {
        let install = ["toolchain", "install", "nightly", "--profile", "minimal"];
        let parts = ["--component", "miri,rust-src"];
        obtain(cx, &Task::new("rustup", &[&install[..], &parts[..]].concat()));
    }
    let missing = !has_miri(cx);
    let found = if missing { "MISSING" } else { "found" };
    cx.console.say(&format!("{:<24}{found:<9}checks unsafe code and atomics", "miri"));
    missing.then_some("miri")
}

/// Whether the nightly toolchain and its Miri answer.
pub(crate) fn has_miri(cx: &Context) -> bool {
    Task::new("cargo", &["+nightly", "miri", "--version"]).answer(&cx.root).is_some()
}

/// Runs a rustup command, or says why not and how the user can.
fn obtain(cx: &Context, task: &Task) {
    if on_path("rustup").is_none() {
        cx.console.say(&format!("rustup is not installed; with it one would run: {}", task.line()));
    } else if cx.may_install {
        task.run(&cx.root, cx.console);
    } else {
        cx.console.say(&format!("to install: {}", task.line()));
    }
}

/// Where the shell would find `program`.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_without_proof_are_absent_in_order() {
        assert!(absent(&PACKAGES, |_| true).is_empty());
        assert_eq!(
            absent(&PACKAGES, |_| false),
            [
                "valgrind",
                "sigrok-cli",
                "qemu-system-arm",
                "qemu-user",
                "qemu-system-misc",
                "device-tree-compiler",
                "ovmf",
                "chromium"
            ]
        );
        let programs = |proof: &Proof| matches!(proof, Proof::Program(_));
        assert_eq!(absent(&PACKAGES, programs), ["ovmf"]);
        let libraries = ["libc6-dev-arm64-cross", "libc6-dev-armhf-cross"];
        assert_eq!(absent(&GUEST_PACKAGES, programs), libraries);
    }

    #[test]
    fn the_install_command_can_be_pasted() {
        assert_eq!(
            apt_install(&["valgrind", "ovmf"]).line(),
            "apt-get install -y --no-install-recommends valgrind ovmf"
        );
    }

    #[test]
    fn programs_are_found_on_the_path_only() {
        assert!(on_path("cargo").is_some());
        assert!(on_path("barewire-no-such-program").is_none());
    }
}
