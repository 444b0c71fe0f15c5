//! One guest from its initramfs to its end: QEMU under a deadline, the console read as it comes.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::board::{Arch, Board, Boot};
use super::build::{self, Dirs};
use super::counts;
use super::doc;
use super::flash;
use super::modules::Module;
use super::newc::Archive;
use super::protocol::{self, GuestLine};
use super::steps;
use crate::check::{Check, Verdict};

/// How long a guest that said it is done may take to switch itself off.
const OFF: Duration = Duration::from_secs(20);

/// Files of a guest's own: where each goes, and where it is.
pub(super) type Files = Vec<(String, PathBuf)>;

/// Everything a boot is made of.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) dirs: &'a Dirs,
    pub(super) board: &'static Board,
    pub(super) boot: &'static Boot,
    /// The kernel's full version.
    pub(super) version: String,
    pub(super) kernel: PathBuf,
    pub(super) device_tree: PathBuf,
    pub(super) wiring: PathBuf,
    pub(super) busybox: PathBuf,
    /// The plugin that writes down what the kernel runs, if its steps are counted.
    pub(super) stepping: Option<PathBuf>,
    /// The plugin that writes down what operations count, if they are priced.
    pub(super) pricing: Option<PathBuf>,
    /// Loaded at boot, in this order.
    pub(super) modules: Vec<Module>,
    /// Programs, what they load, and modules that the script loads.
    pub(super) files: Files,
}

/// The checks and counts that a guest reported, and the host's findings afterwards.
#[derive(Debug, Default, PartialEq)]
pub(super) struct GuestReport {
    pub(super) checks: Vec<Check>,
    pub(super) counts: Vec<(String, f64)>,
    /// The kernel's steps.
    pub(super) steps: Vec<steps::Counted>,
    /// Operations between two marks.
    accesses: Vec<(String, f64)>,
    wrote: Vec<(usize, usize)>,
    done: bool,
}

/// Where a boot's operations are written that are priced.
pub(super) fn priced_trace(dirs: &Dirs, board: &Board, boot: &Boot) -> Result<PathBuf, String> {
    dirs.made("log", &format!("{}-{}.trace", board.name, boot.name))
}

impl Parts<'_> {
    /// Boots the guest and waits for its end.
    ///
    /// # Errors
    /// The guest cannot be started. A guest that fails after its start is a failed check.
    pub(super) fn run(&self) -> Result<GuestReport, String> {
        let name = format!("{}-{}", self.board.name, self.boot.name);
        let (initrd, image) =
            (self.made(&format!("{name}.cpio"))?, self.made(&format!("{name}.flash"))?);
        let content = flash::content(self.board.flash_bytes);
        write(&initrd, &self.initramfs(&content)?)?;
        write(&image, &content)?;
        let log = self.dirs.made("log", &format!("{name}.log"))?;
        let mut said = self.boot(&initrd, &image, &log)?;
        if self.boot.accesses {
            let marks = build::read(&self.marks()?)?;
            match counts::accesses(&said.accesses, &String::from_utf8_lossy(&marks)) {
                Ok(rows) => said.counts.extend(rows),
                Err(why) => said.checks.push(Check::new("accesses", Verdict::Failed, why)),
            }
        }
        if self.boot.stepped {
            let traced = self.traced()?;
            match steps::count(&traced) {
                Ok(counted) => said.steps = counted,
                Err(why) => said.checks.push(Check::new(self.boot.name, Verdict::Failed, why)),
            }
            // Some 50 MB; the trees of calls stay.
            for path in [&traced.trace, &traced.symbols] {
                let _ = fs::remove_file(path);
            }
        }
        let after = build::read(&image)?;
        // They have some 30 MB each, and are not needed after this.
        for path in [&initrd, &image] {
            let _ = fs::remove_file(path);
        }
        Ok(said.judged(&content, &after))
    }

    fn made(&self, name: &str) -> Result<PathBuf, String> {
        self.dirs.made("run", name)
    }

    /// Where the plugin writes what it counted.
    fn marks(&self) -> Result<PathBuf, String> {
        self.dirs.made("log", &format!("{}-{}.marks", self.board.name, self.boot.name))
    }

    /// Where the plugin writes what ran.
    fn traced(&self) -> Result<steps::Traced, String> {
        let name = |kind| format!("{}-{}.{kind}", self.board.name, self.boot.name);
        Ok(steps::Traced {
            trace: self.made(&name("trace"))?,
            symbols: self.made(&name("symbols"))?,
            trees: self.dirs.made("log", &name("trees"))?,
        })
    }

    fn initramfs(&self, content: &[u8]) -> Result<Vec<u8>, String> {
        let mut archive = Archive::default();
        for dir in ["bin", "dev", "etc", "lib", "m", "proc", "run", "run/lock", "sys", "tmp"] {
            archive.directory(dir);
        }
        let source = |name: &str| build::read(&self.dirs.source(name));
        archive.file("init", 0o755, &source("init.sh")?);
        archive.file("lib.sh", 0o644, &source("lib.sh")?);
        archive.file("board.sh", 0o644, &source(&format!("boards/{}.sh", self.board.name))?);
        archive.file("check.sh", 0o644, &source(&format!("checks/{}.sh", self.boot.script))?);
        let boot = format!("{}/{}", self.board.name, self.boot.name);
        let mut steps = String::new();
        for page in doc::PAGES {
            let page = source(&format!("../{page}"))?;
            steps += &doc::blocks(&String::from_utf8_lossy(&page), &boot);
        }
        archive.file("steps", 0o644, steps.as_bytes());
        archive.file("bin/busybox", 0o755, &build::read(&self.busybox)?);
        archive.symlink("bin/sh", "busybox");
        for (place, file) in &self.files {
            archive.file(place, 0o755, &build::read(file)?);
        }
        archive.file("etc/passwd", 0o644, b"root::0:0::/:/bin/sh\nuser::1000:1000::/:/bin/sh\n");
        archive.file("etc/group", 0o644, b"root::0:\nuser::1000:\n");
        archive.file("ref", 0o644, flash::reference(content));
        archive.file("new", 0o644, &flash::new_bytes());
        let mut order = String::new();
        for (name, bytes) in &self.modules {
            archive.file(&format!("m/{name}.ko"), 0o644, bytes);
            order += &format!("{name}\n");
        }
        archive.file("m/order", 0o644, order.as_bytes());
        Ok(archive.finish())
    }

    fn boot(&self, initrd: &Path, image: &Path, log: &Path) -> Result<GuestReport, String> {
        let error = |e| format!("cannot write {}: {e}", log.display());
        let mut copy = File::create(log).map_err(error)?;
        let mut qemu = self.qemu(initrd, image)?;
        writeln!(copy, "{qemu:?}").map_err(error)?;
        let stderr = copy.try_clone().map_err(error)?;
        let mut child = qemu
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(|e| format!("cannot run {}: {e}", self.board.arch.qemu()))?;
        let deadline = Instant::now() + Duration::from_secs(self.boot.timeout_s);
        let mut said = listen(&mut child, deadline, &mut copy);
        if !said.done {
            let why = match child.try_wait() {
                Ok(None) => format!("it said nothing more within {} s", self.boot.timeout_s),
                _ => "QEMU ended before the script did".to_owned(),
            };
            let why = format!("{why}; see {}", log.display());
            said.checks.push(Check::new("end", Verdict::Failed, why));
        }
        stop(&mut child, if said.done { OFF } else { Duration::ZERO });
        Ok(said)
    }

    fn qemu(&self, initrd: &Path, image: &Path) -> Result<Command, String> {
        // If this process ends for any reason, QEMU ends too.
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", "nice", "-n", "5", self.board.arch.qemu()]);
        qemu.args(["-M", self.board.name, "-display", "none", "-monitor", "none", "-no-reboot"]);
        qemu.args(self.board.machine);
        let processors = match (self.board.processors, self.boot.counted) {
            // QEMU's machine with four processors does not start with fewer.
            (4, _) => 4,
            // A thread is woken on another processor too, but two of sabrelite's do not boot with counted time.
            (processors, true) if self.boot.stepped && self.board.arch == Arch::Arm64 => processors,
            (_, true) => 1,
            (processors, false) => processors,
        };
        qemu.args(["-smp", &processors.to_string()]);
        if self.boot.counted {
            qemu.args(["-icount", "shift=0,sleep=off"]);
        }
        qemu.arg("-kernel").arg(&self.kernel).arg("-dtb").arg(&self.device_tree);
        qemu.arg("-initrd").arg(initrd).arg("-append").arg(format!(
            "{} quiet loglevel=4 rdinit=/init panic=-1 {}",
            self.board.console, self.boot.kernel_args
        ));
        let file = format!("format=raw,file={},snapshot=off", image.display());
        let mut plugin = self.wiring.display().to_string();
        match self.boot.wiring.or(self.board.wiring) {
            Some(wiring) => {
                plugin += &format!(",add={wiring}");
                qemu.args(["-drive", &format!("if=none,id=fl0,{file}")]);
            }
            None => {
                qemu.args(["-drive", &format!("if=mtd,{file}")]);
            }
        }
        if self.boot.accesses {
            let [block, bank] = self.board.registers;
            plugin += &format!(",range={block},range={bank},accesses={}", self.marks()?.display());
        }
        qemu.args(["-plugin", &plugin]);
        if let Some(plugin) = &self.stepping {
            let steps::Traced { trace, symbols, .. } = self.traced()?;
            let [plugin, trace, symbols] = [plugin, &trace, &symbols].map(|path| path.display());
            qemu.arg("-plugin").arg(format!("{plugin},trace={trace},symbols={symbols}"));
        }
        if let Some(plugin) = &self.pricing {
            let trace = priced_trace(self.dirs, self.board, self.boot)?;
            qemu.arg("-plugin").arg(format!("{},trace={}", plugin.display(), trace.display()));
        }
        Ok(qemu)
    }
}

impl GuestReport {
    /// Adds the host's own check of the flash.
    fn judged(mut self, before: &[u8], after: &[u8]) -> Self {
        self.checks.push(flash::judge(before, after, &self.wrote));
        self
    }

    fn take(&mut self, line: GuestLine) {
        match line {
            GuestLine::Check(check) => self.checks.push(check),
            GuestLine::Count(path, count) => self.count(path, count),
            GuestLine::Accesses(path, calls) => self.accesses.push((path, calls)),
            GuestLine::Wrote { offset, length } => self.wrote.push((offset, length)),
            GuestLine::Done => self.done = true,
        }
    }

    /// Keeps the smallest count of each path, because an interrupt can only add to it.
    fn count(&mut self, path: String, count: f64) {
        match self.counts.iter_mut().find(|(known, _)| *known == path) {
            Some((_, least)) => *least = least.min(count),
            None => self.counts.push((path, count)),
        }
    }
}

/// Reads the console until the guest is done, its end, or the deadline.
fn listen(child: &mut Child, deadline: Instant, copy: &mut File) -> GuestReport {
    let (mut said, began) = (GuestReport::default(), Instant::now());
    let Some(console) = child.stdout.take() else { return said };
    let (sender, lines) = mpsc::channel();
    // Ends with QEMU's output.
    std::thread::spawn(move || {
        let mut console = BufReader::new(console);
        let mut line = Vec::new();
        while console.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).into_owned();
            if sender.send(text).is_err() {
                break;
            }
            line.clear();
        }
    });
    while !said.done {
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(text) => {
                // Errors of writing the log are ignored: the checks read the lines, not the log.
                let seconds = began.elapsed().as_secs_f64();
                let _ = writeln!(copy, "{seconds:6.1} {}", text.trim_end());
                if let Some(line) = protocol::parse(&text) {
                    said.take(line);
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    said
}

/// Waits for QEMU's end, and makes one if it does not come in time.
fn stop(child: &mut Child, patience: Duration) {
    let until = Instant::now() + patience;
    while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(script: &str, seconds: u64) -> GuestReport {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut copy = File::options().write(true).open("/dev/null").expect("a log");
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let said = listen(&mut child, deadline, &mut copy);
        stop(&mut child, Duration::ZERO);
        said
    }

    #[test]
    fn a_console_is_read_to_its_end() {
        let said = heard(
            "echo noise; printf 'CHECK a passed\\r\\nCOUNT p 13\\nCOUNT p 12.5\\nCOUNT p 14\\nWROTE 4 8\\nDONE\\n'; exec sleep 60",
            30,
        );
        assert!(said.done);
        assert_eq!(said.checks, [Check::new("a", Verdict::Passed, "")]);
        assert_eq!((said.counts, said.wrote), (vec![("p".to_owned(), 12.5)], vec![(4, 8)]));
    }

    #[test]
    fn a_guest_that_hangs_or_dies_is_not_done() {
        // On a busy machine the shell may not have begun after a second.
        let hangs = |seconds| heard("echo CHECK a passed; exec sleep 60", seconds);
        let kept = |said: GuestReport| !said.done && said.checks.len() == 1;
        assert!(kept(hangs(1)) || kept(hangs(30)));
        assert!(!heard("echo CHECK a passed", 30).done);
    }

    #[test]
    fn the_host_looks_at_the_flash_too() {
        let before = flash::content(64);
        let said =
            GuestReport { wrote: vec![(0, 8)], ..GuestReport::default() }.judged(&before, &before);
        assert_eq!(said.checks.len(), 1);
        assert_eq!(said.checks[0].verdict, Verdict::Failed);
    }
}
