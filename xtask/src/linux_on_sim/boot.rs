//! One run: a server, a device tree, an initramfs, a boot, and what they said.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::board::{BROKEN, Board, Run};
use super::kernel::Kernel;
use super::module::Modules;
use super::ours::Programs;
use super::protocol::{self, RunReport};
use super::traces;
use crate::check::{Check, Verdict};
use crate::guests::newc::Archive;
use crate::tool;

/// How long a server may take to come up, and to end after its client.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(5);

/// All that runs have in common.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) work: PathBuf,
    pub(super) kernel: Kernel,
    pub(super) programs: Programs,
    /// This project's module and its client; `None`: no run wants them.
    pub(super) modules: Option<Modules>,
    /// A run that takes longer has failed.
    pub(super) longest: Duration,
}

/// A child that does not outlive us.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // It has mostly ended.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl KilledOnDrop {
    /// Whether it ended in time.
    fn ends_within(&mut self, longest: Duration) -> Result<bool, String> {
        let until = Instant::now() + longest;
        loop {
            let ended = self.0.try_wait().map_err(|e| format!("cannot wait: {e}"))?;
            if ended.is_some() {
                return Ok(true);
            }
            if Instant::now() > until {
                return Ok(false);
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Parts {
    /// Boots, and reads what was said. The files of the run stay in its folder.
    pub(super) fn run(&self, board: &Board, run: &Run, frames: u32) -> Result<RunReport, String> {
        let dir = self.work.join("runs").join(format!("{}-{}", board.name, run.name));
        _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
        let (socket, source) = (dir.join("socket"), dir.join("board.dts"));
        let (tree, initramfs) = (dir.join("board.dtb"), dir.join("initramfs"));
        let mut server = Command::new(&self.programs.server);
        // A relative path: a socket's is short.
        server.current_dir(&dir).args(["socket", "board.dts", board.name]).args(run.chips);
        server.env("BAREWIRE_TRACE", "trace");
        let mut server = kept(&mut server, &dir.join("server"))?;
        self.wait_for(&socket, &mut server, &dir)?;
        let mut compiler = Command::new("dtc");
        compiler.args(["-q", "-O", "dtb", "-o"]).arg(&tree).arg(&source);
        tool::run(&mut compiler, &dir.join("dtc.log"))?;
        fs::write(&initramfs, self.initramfs()?)
            .map_err(|e| format!("cannot write {}: {e}", initramfs.display()))?;
        let mut linux = Command::new(&self.kernel.linux);
        linux.current_dir(&dir).args([
            "mem=96M",
            "initrd=initramfs",
            "dtb=board.dtb",
            "con0=null,fd:1",
            "con=null",
            "rdinit=/init",
            "time-travel=inf-cpu",
            "barewire_mmio.socket=socket",
        ]);
        linux.arg(format!("frames={frames}")).arg(format!("checks={}", run.checks));
        linux.arg(format!("module={}", u8::from(run.module)));
        linux.args(run.options.split_whitespace());
        let console = dir.join("console");
        let ended = kept(&mut linux, &console)?.ends_within(self.longest)?;
        server.ends_within(PATIENCE)?;
        drop(server);
        let text =
            |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let guest =
            text(&console).map_err(|e| format!("cannot read {}: {e}", console.display()))?;
        let told = text(&dir.join("server")).unwrap_or_default();
        if !ended {
            let s = self.longest.as_secs();
            return Err(format!("it did not end within {s} s; --longest gives it more"));
        }
        let loopback = run.checks.contains("loopback");
        // The rules that Linux's driver breaks are not to be broken by ours.
        let broken = if run.module { BROKEN.to_vec() } else { [BROKEN, board.broken].concat() };
        let mut said = protocol::read(&guest, &told, &broken, loopback);
        if !run.log.is_empty() {
            let why = format!("Linux's log lacks: {}", run.log);
            said.checks.push(protocol::judged("log", guest.contains(run.log), why));
        }
        if let Some(numbers) = said.traced {
            let trace = text(&dir.join("trace")).unwrap_or_default();
            said.message = traces::of_message(&trace, numbers);
            if said.message.is_none() {
                said.checks.push(Check::new(
                    "trace",
                    Verdict::Failed,
                    "the server's trace lacks it",
                ));
            }
        }
        Ok(said)
    }

    fn wait_for(&self, socket: &Path, server: &mut KilledOnDrop, dir: &Path) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while !socket.exists() {
            let ended = server.0.try_wait().map_err(|e| format!("cannot wait: {e}"))?;
            if ended.is_some() || Instant::now() > until {
                let said = fs::read_to_string(dir.join("server")).unwrap_or_default();
                return Err(format!("no server of the board: {}", said.trim()));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn initramfs(&self) -> Result<Vec<u8>, String> {
        let read = |path: &Path| {
            fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
        };
        let mut archive = Archive::default();
        for directory in ["bin", "dev", "lib", "lib/x86_64-linux-gnu", "lib64"] {
            archive.directory(directory);
        }
        for (name, path) in &self.programs.others {
            archive.file(name, 0o755, &read(path)?);
        }
        archive.file("init", 0o755, &read(&self.programs.init)?);
        archive.file("spi-loopback-test.ko", 0o644, &read(&self.kernel.module)?);
        if let Some(modules) = &self.modules {
            archive.file("barewire.ko", 0o644, &read(&modules.driver)?);
            archive.file("spiapi.ko", 0o644, &read(&modules.client)?);
        }
        Ok(archive.finish())
    }
}

/// Starts `command` with its output in `file`.
fn kept(command: &mut Command, file: &Path) -> Result<KilledOnDrop, String> {
    let failed = |e| format!("cannot start {}: {e}", command.get_program().to_string_lossy());
    let out = File::create(file).map_err(failed)?;
    let err = out.try_clone().map_err(failed)?;
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
    child.map(KilledOnDrop).map_err(|e| format!("cannot start {program}: {e}"))
}
