//! Compiles the programs for guests: the command, the hand-written loop, QEMU's plugins, modules of the
//! kernel, and device trees.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::board::Arch;
use super::doc;
use super::packages::{Headers, Kernel, common_headers};
use crate::static_build::Place;
use crate::tool;

/// Where things are.
#[derive(Debug)]
pub(super) struct Dirs {
    /// The workspace.
    pub(super) root: PathBuf,
    /// The directory that is kept between runs: `target/guests`.
    pub(super) work: PathBuf,
}

impl Dirs {
    /// `guests/…` of the workspace.
    pub(super) fn source(&self, name: &str) -> PathBuf {
        self.root.join("guests").join(name)
    }

    /// A file that is made, in a directory of its kind.
    pub(super) fn made(&self, kind: &str, name: &str) -> Result<PathBuf, String> {
        let dir = self.work.join(kind);
        fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
        Ok(dir.join(name))
    }
}

/// The files that Cargo builds for an architecture.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) arch: Arch,
    /// The static command.
    pub(super) command: PathBuf,
    /// The library that `barewire run` loads.
    pub(super) library: PathBuf,
}

/// Builds the command for architectures.
pub(super) fn commands(dirs: &Dirs, arches: &[Arch]) -> Result<Vec<PathBuf>, String> {
    let (cargo, log) = (dirs.work.join("cargo"), dirs.made("log", "cargo.log")?);
    let place = Place { root: &dirs.root, cargo: &cargo, profile: "guest", config: &[], log: &log };
    let targets: Vec<_> = arches.iter().map(|arch| arch.target()).collect();
    place.commands(&targets)
}

/// Builds the command and its library for architectures.
pub(super) fn cargo(dirs: &Dirs, arches: &[Arch]) -> Result<Vec<Built>, String> {
    let commands = commands(dirs, arches)?;
    let (cargo, log) = (dirs.work.join("cargo"), dirs.made("log", "cargo-library.log")?);
    let place = Place { root: &dirs.root, cargo: &cargo, profile: "guest", config: &[], log: &log };
    let linkers: Vec<_> = arches.iter().map(|arch| format!("{}gcc", arch.cross())).collect();
    let targets: Vec<_> =
        arches.iter().zip(&linkers).map(|(arch, linker)| (arch.library(), &**linker)).collect();
    let libraries = place.libraries(&targets)?;
    let built = arches.iter().zip(commands).zip(libraries);
    Ok(built.map(|((&arch, command), library)| Built { arch, command, library }).collect())
}

/// Builds the program that judges the bus on a busy machine.
pub(super) fn judge(dirs: &Dirs, arch: Arch) -> Result<PathBuf, String> {
    example(dirs, arch, "under_load")
}

/// Builds an example of `barewire-linux`, statically.
pub(super) fn example(dirs: &Dirs, arch: Arch, name: &str) -> Result<PathBuf, String> {
    let (cargo, log) = (dirs.work.join("cargo"), dirs.made("log", &format!("cargo-{name}.log"))?);
    let place = Place { root: &dirs.root, cargo: &cargo, profile: "guest", config: &[], log: &log };
    place.example(name, arch.target())
}

/// Builds the program `guests/NAME.c` that executes marks, statically.
pub(super) fn marked(dirs: &Dirs, arch: Arch, name: &str) -> Result<PathBuf, String> {
    let out = dirs.made("made", &format!("{name}.{}", arch.linux()))?;
    let mut gcc = Command::new(format!("{}gcc", arch.cross()));
    if arch == Arch::Armhf {
        // The marks are instructions of four bytes.
        gcc.arg("-marm");
    }
    gcc.args(["-O2", "-Wall", "-Werror", "-static", "-pthread", "-o"]).arg(&out);
    tool::answer(gcc.arg(dirs.source(&format!("{name}.c"))))?;
    Ok(out)
}

/// Builds the programs that were written for spidev and are linked dynamically.
pub(super) fn clients(dirs: &Dirs, arch: Arch) -> Result<Vec<PathBuf>, String> {
    let build = |source: &str| {
        let source = dirs.source(source);
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let out = dirs.made(&format!("clients-{}", arch.linux()), &name)?;
        tool::answer(&mut client(arch, &source, &out))?;
        Ok(out)
    };
    let abi = "../command/barewire-cli/tests/clients/spidev_abi.c";
    ["spimessage.c", "spichecks.c", abi].into_iter().map(build).collect()
}

/// The compiler's call for a program that was written for spidev.
pub(super) fn client(arch: Arch, source: &Path, out: &Path) -> Command {
    let mut gcc = Command::new(format!("{}gcc", arch.cross()));
    gcc.args(["-O2", "-w", "-pthread", "-DJEDEC_ID=0xef,0x40,0x19", "-DIS_ERASED(byte)=1"]);
    gcc.arg("-o").arg(out).arg(source);
    gcc
}

/// The C library that they are linked to, by the names under which it is loaded: the cross compiler's own.
pub(super) fn c_library(arch: Arch) -> Result<Vec<PathBuf>, String> {
    let find = |name: &&str| {
        let mut gcc = Command::new(format!("{}gcc", arch.cross()));
        gcc.arg(format!("-print-file-name={name}"));
        let path = String::from_utf8_lossy(&tool::answer(&mut gcc)?).trim().to_owned();
        // A name that it does not know is printed as it is.
        if Path::new(&path).is_absolute() { Ok(path.into()) } else { Err(format!("no {name}")) }
    };
    [arch.loader(), "libc.so.6", "libgcc_s.so.1"].iter().map(find).collect()
}

/// Builds a plugin of QEMU's: `wire` puts a flash on a board's bus, `steps` writes down what the kernel runs.
///
/// QEMU's own symbols are looked up when it is loaded, in Debian's program, which exports them.
pub(super) fn plugin(dirs: &Dirs, name: &str) -> Result<PathBuf, String> {
    let out = dirs.made("made", &format!("{name}.so"))?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]).arg(&out);
    gcc.arg(dirs.source(&format!("{name}.c"))).arg("-Wl,--unresolved-symbols=ignore-all");
    tool::answer(&mut gcc)?;
    Ok(out)
}

/// Debian's tree with fragments behind it, and with the overlay of the board `merged`.
pub(super) fn device_tree(
    dirs: &Dirs,
    kernel: &Kernel,
    tree: &str,
    fragment: &str,
    merged: Option<&str>,
) -> Result<PathBuf, String> {
    let mut dtc = Command::new("dtc");
    dtc.args(["-q", "-I", "dtb", "-O", "dts"]).arg(kernel.device_tree(tree));
    let mut source = tool::answer(&mut dtc)?;
    for name in [format!("{fragment}.dtsi"), "rng.dtsi".to_owned()] {
        source.extend(read(&dirs.source("dts").join(name))?);
    }
    // Each kernel has trees of its own.
    let name = format!("{fragment}-{}", kernel.version);
    let text = dirs.made("made", &format!("{name}.dts"))?;
    let out = dirs.made("made", &format!("{name}.dtb"))?;
    fs::write(&text, source).map_err(|e| format!("cannot write {}: {e}", text.display()))?;
    let mut dtc = Command::new("dtc");
    dtc.args(["-q", "-I", "dts", "-O", "dtb", "-o"]).arg(&out).arg(&text);
    // A fragment may include another.
    dtc.arg("-i").arg(dirs.source("dts"));
    tool::answer(&mut dtc)?;
    merged.map_or_else(|| Ok(out.clone()), |board| merge(dirs, &out, board))
}

/// The tree in `base` with an overlay of `contrib/overlays`, merged by the commands of docs/boards.md
/// for the board: in a directory with the tree as `board.dtb`, and `contrib`.
fn merge(dirs: &Dirs, base: &Path, board: &str) -> Result<PathBuf, String> {
    let page = String::from_utf8_lossy(&read(&dirs.root.join("docs/boards.md"))?).into_owned();
    let commands = doc::commands(&doc::blocks(&page, &format!("{board}/merge")));
    let tree = dirs.made(&format!("merge-{board}"), "board.dtb")?;
    let folder = tree.parent().unwrap_or(&tree).to_owned();
    let contrib = folder.join("contrib");
    let _ = fs::remove_file(&contrib);
    let made = std::os::unix::fs::symlink(dirs.root.join("contrib"), &contrib);
    made.map_err(|e| format!("cannot make {}: {e}", contrib.display()))?;
    fs::copy(base, &tree).map_err(|e| format!("cannot write {}: {e}", tree.display()))?;
    tool::answer(Command::new("sh").args(["-e", "-c", &commands]).current_dir(&folder))?;
    Ok(folder.join("board-barewire.dtb"))
}

/// Builds a module of one file against a kernel's headers, unless it was built before: uio_pdrv_genirq, which Debian's
/// kernels are configured without, and the driver that sends messages where steps are counted.
pub(super) fn module(
    dirs: &Dirs,
    kernel: &Kernel,
    arch: Arch,
    source: &Path,
) -> Result<PathBuf, String> {
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let kind = name.split('_').next().unwrap_or(&name);
    let folder = format!("{kind}-{}", kernel.version);
    let module = dirs.made(&folder, &format!("{name}.ko"))?;
    let copy = dirs.made(&folder, &format!("{name}.c"))?;
    let mut code = String::from_utf8_lossy(&read(source)?).into_owned();
    if arch == Arch::Armhf {
        // The build program that makes aliases is of the host's word size and refuses the table. The
        // module is loaded by name here.
        let kept = code.lines().filter(|line| !line.contains("MODULE_DEVICE_TABLE"));
        code = kept.collect::<Vec<_>>().join("\n") + "\n";
    }
    if module.is_file() && fs::read_to_string(&copy).is_ok_and(|built| built == code) {
        return Ok(module);
    }
    // After a build that fails, the old module would pass for this code's on the next run.
    let _ = fs::remove_file(&module);
    write_anew(&copy, &code)?;
    write_anew(&dirs.made(&folder, "Makefile")?, &format!("obj-m := {name}.o\n"))?;
    make_module(dirs, kernel, arch, module)
}

/// A kernel's headers, as modules are built against them.
///
/// They are unpacked and not installed, so three things in them must point to where they are: the Makefile
/// that includes the common one, the variables, and the links to the build programs.
pub(super) fn headers(kernel: &Kernel) -> Result<PathBuf, String> {
    let (abi, version) = (kernel.abi(), &kernel.version);
    let Some(Headers { own, common, kbuild }) = &kernel.headers else {
        return Err(format!("the headers of {version} are not fetched"));
    };
    let headers = own.join(format!("usr/src/linux-headers-{version}"));
    let common = common.join("usr/src").join(common_headers(abi));
    let programs = fs::read_dir(kbuild.join("usr/lib")).into_iter().flatten().flatten();
    let programs = programs.map(|entry| entry.path());
    let programs = programs
        .into_iter()
        .find(|path| path.join("scripts").is_dir())
        .ok_or_else(|| format!("no build programs in {}", kbuild.display()))?;
    write_anew(&headers.join("Makefile"), &format!("include {}/Makefile\n", common.display()))?;
    let variables = headers.join(".kernelvariables");
    if let Ok(text) = fs::read_to_string(&variables) {
        let installed = format!("/usr/src/{}", common_headers(abi));
        let ours = common.to_string_lossy();
        if !text.contains(&*ours) {
            write_anew(&variables, &text.replace(&installed, &ours))?;
        }
    }
    for dir in [&headers, &common] {
        for name in ["scripts", "tools"] {
            let link = dir.join(name);
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(programs.join(name), &link)
                .map_err(|e| format!("cannot link {}: {e}", link.display()))?;
        }
    }
    Ok(headers)
}

/// Makes a module in its folder, where its sources and their Makefile are, against a kernel's headers.
pub(super) fn make_module(
    dirs: &Dirs,
    kernel: &Kernel,
    arch: Arch,
    module: PathBuf,
) -> Result<PathBuf, String> {
    let folder = module.parent().unwrap_or(&module);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(headers(kernel)?).arg(format!("M={}", folder.display()));
    make.arg(format!("ARCH={}", arch.linux())).arg(format!("CROSS_COMPILE={}", arch.cross()));
    // Type information of modules would need pahole.
    make.args(["CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"]);
    tool::run(&mut make, &dirs.made("log", &format!("{name}.log"))?)?;
    if module.is_file() { Ok(module) } else { Err(format!("no {} was built", module.display())) }
}

/// A new file in the place of the old one, which may have other names.
fn write_anew(path: &Path, text: &str) -> Result<(), String> {
    let _ = fs::remove_file(path);
    fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// A file's content.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}
