//! This project's kernel module for user-mode Linux, which stands in for Linux's drivers of the controllers.
//!
//! How it works: both halves of `kernel/` are built as for any kernel ([`Half`]). User-mode Linux is a program, so the
//! Rust half is made for the machine's own target. Its registers are calls of the C half, because the kernel has no
//! device memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kernel::Kernel;
use crate::guests::module::build::copied;
use crate::kernel_object::{Half, UM};
use crate::tool;

/// Modules may lie further from the kernel than a short call reaches, and have no table of addresses.
const FLAGS: &str = "-C relocation-model=static -C code-model=large";
/// The C half's registers, and the kernel's functions that compilers call.
const OTHERS: [&str; 4] = ["bw_register_read", "bw_register_write", "memcpy", "memset"];

/// The module, and a client of its prepared accesses.
#[derive(Clone, Debug)]
pub(super) struct Modules {
    pub(super) driver: PathBuf,
    pub(super) client: PathBuf,
}

/// What Kbuild is told of the client: `guests/spicount` has more of them, for other kernels.
const CLIENT: &str = "obj-m := spiapi.o\nKBUILD_EXTRA_SYMBOLS := $(src)/barewire.symvers\n";

/// Builds them for a kernel.
///
/// # Errors
/// One of the tools fails; the error has the end of its output.
pub(super) fn build(root: &Path, work: &Path, kernel: &Kernel) -> Result<Modules, String> {
    let folder = work.join("module");
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let object = work.join("rust.o");
    let (cargo, log) = (work.join("cargo-module"), work.join("rust.log"));
    let half = Half { feature: "um", flags: FLAGS, others: &OTHERS, ..UM.half(root, &cargo, &log) };
    half.build(&object)?;
    copied(&root.join("kernel/module"), &[(&UM.object(), &object)], &folder)?;
    let driver = made(&folder, "barewire", work, kernel)?;
    let place = work.join("client");
    fs::create_dir_all(&place).map_err(|e| format!("cannot make {}: {e}", place.display()))?;
    let kbuild = work.join("client.Kbuild");
    fs::write(&kbuild, CLIENT).map_err(|e| format!("cannot write {}: {e}", kbuild.display()))?;
    let others = [
        ("Kbuild", &*kbuild),
        ("barewire_spi.h", &*root.join("kernel/module/barewire_spi.h")),
        ("barewire.symvers", &*folder.join("Module.symvers")),
    ];
    copied(&root.join("guests/spicount"), &others, &place)?;
    Ok(Modules { driver, client: made(&place, "spiapi", work, kernel)? })
}

/// The module `name` of a folder.
fn made(folder: &Path, name: &str, work: &Path, kernel: &Kernel) -> Result<PathBuf, String> {
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(&kernel.tree).arg(format!("M={}", folder.display()));
    make.args(["ARCH=um", "KCFLAGS=-Werror", "modules"]);
    tool::run(&mut make, &work.join(format!("{name}.log")))?;
    let module = folder.join(format!("{name}.ko"));
    fs::metadata(&module).map_err(|e| format!("make built no {}: {e}", module.display()))?;
    Ok(module)
}
