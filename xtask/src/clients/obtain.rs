//! Fetches the programs, and builds those of this workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::scripts;
use crate::context::{Context, Stop};
use crate::programs;
use crate::tool;

/// Packages from PyPI; the first is pinned, because two of its versions are clients.
const PYPI: [&str; 16] = [
    "spidev==3.8",
    "gpiozero==2.0.1.post3",
    "luma.oled==3.16.0",
    "luma.core==2.6.0",
    "lgpio==0.2.2.0",
    "rpi-lgpio==0.6",
    "gpiod==2.5.0",
    "python-periphery==2.4.3",
    "Adafruit-PureIO==1.1.12",
    "Adafruit-Blinka==10.0.0",
    "Adafruit-PlatformDetect==3.89.1",
    "adafruit-circuitpython-busdevice==5.2.17",
    "adafruit-circuitpython-mcp3xxx==1.5.2",
    "adafruit-circuitpython-framebuf==1.6.12",
    "adafruit-circuitpython-ssd1306==2.12.24",
    "rpi_ws281x==5.0.0",
];

/// A package that asks for RPi.GPIO by its name, in whose place rpi-lgpio is; it imports gpiozero instead.
const PYPI_ALONE: &str = "waveshare-epaper==1.4.0";

/// Packages from npm.
const NPM: [&str; 1] = ["spi-device@3.1.2"];

/// The programs that clients use.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) barewire: PathBuf,
    /// The scripts' folder.
    scripts: PathBuf,
    variables: Vec<(&'static str, PathBuf)>,
}

impl Tools {
    /// A file of the scripts' folder.
    pub(super) fn script(&self, name: &str) -> PathBuf {
        self.scripts.join(name)
    }

    /// A shell in a client's directory.
    pub(super) fn shell(&self, dir: &Path) -> Command {
        let mut command = Command::new("sh");
        self.environment(&mut command, dir);
        command
    }

    /// Gives a command the client's directory and the scripts' variables.
    pub(super) fn environment(&self, command: &mut Command, dir: &Path) {
        command.current_dir(dir).envs(self.variables.iter().map(|(name, path)| (name, path)));
    }
}

/// Fetches and builds all, in `dir`.
pub(super) fn all(dir: &Path, cx: &Context) -> Result<Tools, Stop> {
    let made = fs::create_dir_all(dir);
    made.map_err(|e| Stop::Broke(format!("cannot make {}: {e}", dir.display())))?;
    let python = python(dir).map_err(Stop::Lacks)?;
    let node_packages = node_packages(dir).map_err(Stop::Lacks)?;
    let spidev_test = spidev_test(dir).map_err(Stop::Lacks)?;
    let image = dir.join("image.bin");
    let noise = fs::write(&image, noise(4 << 20));
    noise.map_err(|e| Stop::Broke(format!("cannot write {}: {e}", image.display())))?;
    let folder = programs::build(cx, &dir.join("build.log")).map_err(Stop::Broke)?;
    let barewire = folder.join("barewire");
    let variables = vec![
        ("BAREWIRE", barewire.clone()),
        ("PYTHON", python),
        ("CLIENTS", scripts(cx)),
        ("NODE_PACKAGES", node_packages),
        ("IMAGE", image),
        ("SPIDEV_TEST", spidev_test),
        ("SPIDEV_CRATE", folder.join("examples/spidev_client")),
        ("DISPLAY_CRATE", folder.join("examples/display_client")),
        ("RPPAL_CRATE", folder.join("examples/rppal_client")),
        ("FLASH_CRATE", folder.join("examples/flash_client")),
    ];
    Ok(Tools { barewire, scripts: scripts(cx), variables })
}

/// A Python with the packages of PyPI.
fn python(dir: &Path) -> Result<PathBuf, String> {
    let venv = dir.join("venv");
    let python = venv.join("bin/python");
    let log = dir.join("venv.log");
    if !python.exists() {
        tool::run(Command::new("python3").args(["-m", "venv"]).arg(&venv), &log)?;
    }
    let mut pip = Command::new(&python);
    tool::run(pip.args(["-m", "pip", "install", "--quiet"]).args(PYPI), &log)?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", PYPI_ALONE]);
    tool::run(&mut pip, &log)?;
    Ok(python)
}

/// Packages for node.
fn node_packages(dir: &Path) -> Result<PathBuf, String> {
    let packages = dir.join("node_modules");
    if !packages.exists() {
        let mut npm = Command::new("npm");
        let npm = npm.args(["install", "--silent", "--no-fund", "--prefix"]).arg(dir).args(NPM);
        tool::run(npm, &dir.join("npm.log"))?;
    }
    Ok(packages)
}

/// The kernel's `spidev_test`, from Debian's package of the kernel's source.
fn spidev_test(dir: &Path) -> Result<PathBuf, String> {
    let program = dir.join("spidev_test");
    if !program.exists() {
        // The package depends on the one of the kernel's version, which has the archive.
        let script = "set -e; rm -rf source; mkdir source; cd source; \
            name=$(apt-cache depends linux-source | sed -n 's/.*Depends: *//p' | head -n 1); \
            apt-get -o APT::Sandbox::User= download \"$name\"; \
            dpkg-deb --fsys-tarfile ./*.deb | tar -xO ./usr/src/$name.tar.xz \
            | tar -xJO $name/tools/spi/spidev_test.c > spidev_test.c; \
            rm ./*.deb; cc -O2 -o ../spidev_test spidev_test.c";
        let mut shell = Command::new("sh");
        tool::run(shell.args(["-c", script]).current_dir(dir), &dir.join("spidev_test.log"))?;
    }
    Ok(program)
}

/// Bytes of SplitMix64.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31).to_le_bytes()
    });
    words.flatten().take(len).collect()
}
