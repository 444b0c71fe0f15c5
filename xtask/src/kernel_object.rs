//! The Rust half of the kernel module (`kernel/`) as one object, which a kernel's build links as it is.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::needs::Need;
use crate::static_build::{KERNEL_ARM64, KERNEL_ARMHF, LIBRARY_AMD64};
use crate::tool;

/// An architecture of the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Machine {
    /// Rust's target, which has no floating point.
    pub(crate) target: &'static str,
    /// The prefix of the cross compiler's programs.
    pub(crate) cross: &'static str,
    /// Linux's name of it, which ends the object's name (`kernel/module/Kbuild`).
    pub(crate) linux: &'static str,
    /// Flags of the compiler, those of `kernel/.cargo/config.toml`, which has the reason.
    flags: &'static str,
}

pub(crate) const ARM64: Machine = Machine {
    target: KERNEL_ARM64,
    cross: "aarch64-linux-gnu-",
    linux: "arm64",
    flags: "-Ctarget-feature=-strict-align",
};
pub(crate) const ARM: Machine =
    Machine { target: KERNEL_ARMHF, cross: "arm-linux-gnueabihf-", linux: "arm", flags: "" };

/// User-mode Linux, which is a program: for the machine's own target.
pub(crate) const UM: Machine = Machine { target: LIBRARY_AMD64, cross: "", linux: "um", flags: "" };

impl Machine {
    /// The object, as Kbuild looks for it.
    pub(crate) fn object(self) -> String {
        format!("rust-{}.o_shipped", self.linux)
    }

    /// The tools needed to build it.
    pub(crate) fn needs(self) -> [Need; 2] {
        let (package, linker) = match self.linux {
            "arm64" => ("gcc-aarch64-linux-gnu", "aarch64-linux-gnu-ld"),
            _ => ("gcc-arm-linux-gnueabihf", "arm-linux-gnueabihf-ld"),
        };
        [Need::Target(self.target), Need::program(package, linker)]
    }
}

/// The functions of the Rust half that messages and prepared accesses call: no panic is reachable from them.
const MESSAGE_PATH: [&str; 12] = [
    "bw_configure",
    "bw_exchange",
    "bw_run",
    "bw_resume",
    "bw_arm",
    "bw_takes_selected",
    "bw_exchange_ecspi",
    "bw_exchange_bcm2835",
    "bw_exchange_pl022",
    "bw_exchange_other",
    "bw_reclaim",
    "bw_leave",
];
/// Those that only binding calls.
const BINDING: [&str; 3] = ["bw_sizes", "bw_init", "bw_limits"];
/// The functions of the C half that it calls. The kernel's own are not its affair.
const WANTED: [&str; 4] = ["bw_line_set", "bw_now_ns", "bw_panicked", "bw_wait_ns"];

/// How it is built for a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Half<'a> {
    /// The workspace.
    pub(crate) root: &'a Path,
    pub(crate) machine: Machine,
    /// A feature of that crate, if it is not empty.
    pub(crate) feature: &'a str,
    /// Flags of the compiler, beyond the machine's.
    pub(crate) flags: &'a str,
    /// Functions that it calls beside [`WANTED`].
    pub(crate) others: &'a [&'a str],
    /// The directory of Cargo's builds.
    pub(crate) cargo: &'a Path,
    /// The file that gets Cargo's output.
    pub(crate) log: &'a Path,
}

impl Machine {
    /// The Rust half for it, as it is.
    pub(crate) fn half<'a>(self, root: &'a Path, cargo: &'a Path, log: &'a Path) -> Half<'a> {
        Half { root, machine: self, feature: "", flags: "", others: &[], cargo, log }
    }
}

impl Half<'_> {
    /// Builds it as the file `object`, without symbols that are not the C half's.
    pub(crate) fn build(&self, object: &Path) -> Result<(), String> {
        let Self { root, machine, feature, flags, others, cargo, log } = *self;
        let mut build = Command::new("cargo");
        build.args(["build", "--release", "--locked", "--target", machine.target]);
        build.args(["--features", feature, "--target-dir"]).arg(cargo);
        // The paths of panics have no directory of this machine in them.
        let remapped = format!("--remap-path-prefix={}=barewire", root.display());
        build
            .env("RUSTFLAGS", [&remapped, machine.flags, flags].join(" "))
            .current_dir(root.join("kernel"));
        tool::run(&mut build, log)?;
        let archive: PathBuf = cargo.join(machine.target).join("release/libbarewire_kernel.a");
        let tool = |name: &str| Command::new(format!("{}{name}", machine.cross));
        // Everything that these reach, and nothing else. With the compiler's bitcode nm would see no symbols.
        let linked = |names: &[&str], object: &Path| {
            let mut link = tool("ld");
            link.args(["-r", "-S", "--gc-sections", "-e", "bw_run"]);
            link.args(names.iter().flat_map(|name| ["-u", name]));
            tool::answer(link.arg("-o").arg(object).arg(&archive))?;
            let mut strip = tool("objcopy");
            strip.args(
                [".debug*", ".llvm*", ".comment", ".eh_frame*", ".ARM.exidx*", ".ARM.extab*"]
                    .map(|of| format!("--remove-section={of}")),
            );
            // The compiler's own copies are simple loops, and the C half would get them in place of the kernel's.
            strip.args(
                ["memcpy", "memmove", "memset", "memcmp", "bcmp"]
                    .map(|of| format!("--localize-symbol={of}")),
            );
            tool::answer(strip.arg(object))
        };
        linked(&[&BINDING[..], &MESSAGE_PATH].concat(), object)?;
        // One feature is for panics; user-mode Linux's registers are checked, since they are no part of a board.
        if feature.is_empty() {
            let messages = cargo.join(format!("messages-{}.o", machine.linux));
            linked(&MESSAGE_PATH, &messages)?;
            let names = tool::answer(tool("nm").arg(&messages))?;
            if let Some(wrong) = panic(&String::from_utf8_lossy(&names)) {
                return Err(format!("{wrong}: {}", messages.display()));
            }
        }
        let undefined = tool::answer(tool("nm").arg("-u").arg(object))?;
        let undefined = String::from_utf8_lossy(&undefined).into_owned();
        match stranger(&undefined, others) {
            None => Ok(()),
            Some(name) => {
                Err(format!("the Rust half of the module needs {name}, which the C half has not"))
            }
        }
    }
}

/// What is wrong with nm's symbols of the message path: one that belongs to a panic, or a function of the path that is not there.
/// Undefined ones stay in the table whether or not they are called: the panic handler would call `bw_panicked`.
fn panic(names: &str) -> Option<String> {
    let defined = names.lines().filter(|line| !line.contains(" U "));
    let names: Vec<&str> = defined.filter_map(|line| line.split_whitespace().last()).collect();
    if let Some(missing) = MESSAGE_PATH.iter().find(|name| !names.contains(name)) {
        return Some(format!("nm does not show {missing}"));
    }
    let belongs = |name: &&&str| {
        ["panicking", "begin_unwind", "slice_index"].iter().any(|of| name.contains(of))
    };
    let found = names.iter().find(belongs)?;
    Some(format!("a message can panic: it reaches {found}; objdump -dr shows who calls it"))
}

/// The first undefined symbol of nm's that is neither the C half's nor one of the others.
fn stranger<'t>(undefined: &'t str, others: &[&str]) -> Option<&'t str> {
    let mut names = undefined.lines().filter_map(|line| line.split_whitespace().last());
    names.find(|name| !WANTED.contains(name) && !others.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_that_the_c_half_lacks_is_named() {
        assert_eq!(
            stranger("                 U bw_line_set\n                 U bw_now_ns\n", &[]),
            None
        );
        let copies = "         U bw_line_set\n         U memcpy\n";
        assert_eq!(stranger(copies, &[]), Some("memcpy"));
        assert_eq!(stranger(copies, &["memcpy"]), None);
    }

    #[test]
    fn the_header_declares_every_function_of_both_halves() {
        let header = include_str!("../../kernel/module/barewire.h");
        for name in BINDING.iter().chain(&MESSAGE_PATH).chain(&WANTED) {
            assert!(header.contains(&format!(" {name}(")), "{name}");
        }
    }

    #[test]
    fn a_panic_that_a_message_reaches_is_found() {
        let clean = MESSAGE_PATH.map(|name| format!("0000 T {name}\n")).concat();
        assert_eq!(panic(&clean), None);
        assert_eq!(panic(&format!("{clean}     U bw_panicked\n")), None);
        assert!(panic(&format!("{clean}0000 t _RN7___rustc17rust_begin_unwind\n")).is_some());
        let called = "0000 t _RNvNtCs3g5_4core9panicking5panic\n";
        assert!(panic(&format!("{clean}{called}")).is_some_and(|why| why.contains("5panic")));
        // A tool that shows nothing proves nothing.
        assert!(panic("").is_some_and(|why| why.contains("does not show")));
    }

    /// Who builds by hand has the same flags.
    #[test]
    fn cargos_configuration_has_the_machines_flags() {
        let config = include_str!("../../kernel/.cargo/config.toml");
        let table = format!("[target.{}]\nrustflags = [\"{}\"]", ARM64.target, ARM64.flags);
        assert!(config.contains(&table), "{table}");
        assert_eq!((config.matches("rustflags").count(), ARM.flags), (1, ""));
    }

    /// Who builds by hand names them all.
    #[test]
    fn the_page_names_every_function_that_is_kept() {
        let page = include_str!("../../docs/kernel.md");
        let words = page.split("-u bw_%s' ").nth(1).and_then(|rest| rest.split(')').next());
        let words: Vec<&str> = words.expect("a list").split_whitespace().collect();
        for name in BINDING.iter().chain(&MESSAGE_PATH) {
            let name = name.trim_start_matches("bw_");
            assert!(words.contains(&name), "{name} is not in {words:?}");
        }
    }
}
