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

/// Builds it for a kernel.
///
/// # Errors
/// One of the tools fails; the error has the end of its output.
pub(super) fn build(root: &Path, work: &Path, kernel: &Kernel) -> Result<PathBuf, String> {
    let folder = work.join("module");
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let object = work.join("rust.o");
    let (cargo, log) = (work.join("cargo-module"), work.join("rust.log"));
    let half = Half { feature: "um", flags: FLAGS, others: &OTHERS, ..UM.half(root, &cargo, &log) };
    half.build(&object)?;
    copied(&root.join("kernel/module"), &[(&UM.object(), &object)], &folder)?;
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(&kernel.tree).arg(format!("M={}", folder.display()));
    make.args(["ARCH=um", "KCFLAGS=-Werror", "modules"]);
    tool::run(&mut make, &work.join("module.log"))?;
    let module = folder.join("barewire.ko");
    fs::metadata(&module).map_err(|e| format!("make built no {}: {e}", module.display()))?;
    Ok(module)
}
