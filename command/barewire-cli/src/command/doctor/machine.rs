//! Findings about the whole machine: the rights of a process, and the causes that delay it.

use barewire_linux::survey::{
    Capability, Driver, Machine, Processor, Rights, Survey, config_value,
};

use super::report::{Finding, Level, Step};

/// The longest exit from an idle state that is not reported, in microseconds.
const SLOW_WAKE_US: u64 = 50;

pub(super) fn findings(survey: &Survey, config: Option<&str>) -> Vec<Finding> {
    let Survey { machine, rights, processor, .. } = survey;
    let mut findings = vec![
        spidev(machine),
        module(machine),
        uio(machine, config),
        memory(machine, rights, config),
    ];
    findings.extend(debugfs(machine, rights));
    findings.push(real_time(rights, processor));
    findings.extend(governors(processor));
    findings.extend(idle(processor));
    findings
}

fn spidev(machine: &Machine) -> Finding {
    let about = "spidev";
    match (machine.spidev, machine.bufsiz) {
        (Driver::Loaded, Some(bytes)) => Finding::new(
            Level::Ok,
            about,
            format!(
                "loaded; a message is at most {bytes} bytes (bufsiz), longer reads are cut between messages"
            ),
        ),
        (Driver::Loaded, None) => Finding::new(Level::Ok, about, "loaded"),
        (Driver::Module, _) => Finding::new(Level::Note, about, "a module that is not loaded")
            .with(Step::new("load it").run("modprobe spidev").undone_by("modprobe -r spidev")),
        (Driver::Missing, _) => {
            Finding::new(Level::Note, about, "not in this kernel (CONFIG_SPI_SPIDEV)")
        }
    }
}

fn module(machine: &Machine) -> Finding {
    let about = "kernel module";
    match machine.module {
        Driver::Loaded if !machine.doors.is_empty() => {
            let doors: Vec<String> =
                machine.doors.iter().map(|name| format!("/dev/{name}")).collect();
            let text = format!("barewire gives {} to programs", doors.join(", "));
            Finding::new(Level::Ok, about, text)
        }
        Driver::Loaded => Finding::new(Level::Ok, about, "barewire is loaded"),
        Driver::Module => Finding::new(
            Level::Ok,
            about,
            "barewire is there and not loaded: it can give controllers to programs, without UIO and without an overlay",
        ),
        Driver::Missing => Finding::new(
            Level::Note,
            about,
            "barewire is not installed: it gives controllers to programs, without UIO and without an overlay (docs/kernel.md)",
        )
        .with(
            Step::new("install it, with the kernel's headers (`cargo xtask dist dkms` makes the package)")
                .run("apt install ./barewire-dkms_*_all.deb linux-headers-$(uname -r)")
                .undone_by("apt remove barewire-dkms"),
        ),
    }
}

fn uio(machine: &Machine, config: Option<&str>) -> Finding {
    let about = "UIO";
    match machine.uio {
        Driver::Loaded if !machine.uio_devices.is_empty() => {
            let devices = machine.uio_devices.join(", ");
            Finding::new(Level::Ok, about, format!("uio_pdrv_genirq has {devices}"))
        }
        Driver::Loaded => Finding::new(
            Level::Note,
            about,
            "uio_pdrv_genirq is loaded and has no device; it takes nodes with the name in its parameter of_id",
        )
        .with(
            Step::new("if there is a node \"generic-uio\", load it again with that name; if it is built in, put uio_pdrv_genirq.of_id=generic-uio on the kernel's command line")
                .run("modprobe -r uio_pdrv_genirq")
                .run("modprobe uio_pdrv_genirq of_id=generic-uio")
                .undone_by("modprobe -r uio_pdrv_genirq"),
        ),
        Driver::Module => Finding::new(Level::Note, about, "uio_pdrv_genirq is a module that is not loaded").with(
            Step::new("load it, when a node of the device tree is to be driven by it")
                .run("modprobe uio_pdrv_genirq of_id=generic-uio")
                .undone_by("modprobe -r uio_pdrv_genirq"),
        ),
        Driver::Missing => {
            let set = config.map(|config| config_value(config, "CONFIG_UIO_PDRV_GENIRQ"));
            let why = match set {
                Some(None) => "CONFIG_UIO_PDRV_GENIRQ is not set in its configuration",
                Some(Some(_)) => "its configuration has it, its modules do not: install the kernel's modules",
                None => "CONFIG_UIO_PDRV_GENIRQ",
            };
            Finding::new(Level::Note, about, format!("not in this kernel ({why})"))
        }
    }
}

fn memory(machine: &Machine, rights: &Rights, config: Option<&str>) -> Finding {
    let about = "/dev/mem";
    let Some(access) = &rights.mem else {
        return Finding::new(Level::Note, about, "not in this kernel (CONFIG_DEVMEM)");
    };
    if !access.allowed || !rights.has(Capability::SysRawio) {
        return Finding::new(Level::Note, about, "for root only (CAP_SYS_RAWIO)");
    }
    let value = |option| config.map(|config| config_value(config, option) == Some("y"));
    let text = match (value("CONFIG_STRICT_DEVMEM"), value("CONFIG_IO_STRICT_DEVMEM")) {
        _ if machine.iomem_relaxed => "allowed; iomem=relaxed opens claimed registers too",
        (_, Some(true)) => {
            "allowed, but not registers that a driver has claimed (CONFIG_IO_STRICT_DEVMEM)"
        }
        (Some(true), Some(false)) => "allowed for registers, not for memory (CONFIG_STRICT_DEVMEM)",
        (Some(false), Some(false)) => "allowed, for memory too (no CONFIG_STRICT_DEVMEM)",
        _ => {
            "allowed; whether claimed registers can be mapped is unknown (no kernel configuration found)"
        }
    };
    Finding::new(Level::Ok, about, text)
}

fn debugfs(machine: &Machine, rights: &Rights) -> Option<Finding> {
    if machine.debugfs {
        return None;
    }
    let text = "not visible: clocks and pins cannot be checked";
    let finding = Finding::new(Level::Note, "debugfs", text);
    Some(if rights.is_root() {
        finding.with(
            Step::new("mount it")
                .run("mount -t debugfs none /sys/kernel/debug")
                .undone_by("umount /sys/kernel/debug"),
        )
    } else {
        finding.with(Step::new("root sees it").run("sudo barewire doctor"))
    })
}

fn real_time(rights: &Rights, processor: &Processor) -> Finding {
    let about = "real time";
    let may = rights.rtprio > 0 || rights.has(Capability::SysNice);
    let lock = rights.memlock == u64::MAX || rights.has(Capability::IpcLock);
    let throttled = match (processor.rt_runtime_us, processor.rt_period_us) {
        (Some(runtime), Some(period)) if runtime < period => {
            format!("; the kernel gives real-time threads {runtime} of every {period} µs")
        }
        _ => String::new(),
    };
    if may && lock {
        return Finding::new(
            Level::Ok,
            about,
            format!("priorities and locked memory are allowed{throttled}"),
        );
    }
    let lacks = match (may, lock) {
        (false, false) => "no priority, and not all memory can be locked",
        (false, true) => "no priority",
        (true, _) => "not all memory can be locked",
    };
    Finding::new(Level::Note, about, format!("{lacks} for this user{throttled}")).with(
        Step::new("allow it to the group spi (contrib/limits.d; a service: contrib/systemd)")
            .run("printf '@spi - rtprio 80\\n@spi - memlock unlimited\\n' > /etc/security/limits.d/60-barewire.conf")
            .undone_by("rm /etc/security/limits.d/60-barewire.conf"),
    )
}

fn governors(processor: &Processor) -> Option<Finding> {
    let slow: Vec<_> =
        processor.governors.iter().filter(|(_, governor)| governor != "performance").collect();
    let (_, governor) = slow.first()?;
    let mut step = Step::new("hold the clock at its highest, until the next start");
    for (policy, governor) in &slow {
        let file = format!("/sys/devices/system/cpu/cpufreq/{policy}/scaling_governor");
        step = step
            .run(format!("echo performance > {file}"))
            .undone_by(format!("echo {governor} > {file}"));
    }
    let text = format!("the governor {governor} changes the processors' clock: times vary");
    Some(Finding::new(Level::Note, "clock rate", text).with(step))
}

fn idle(processor: &Processor) -> Option<Finding> {
    let state = processor.slowest_wake()?;
    let (name, us) = (&state.name, state.exit_latency_us);
    if us <= SLOW_WAKE_US {
        return Some(Finding::new(
            Level::Ok,
            "idle states",
            format!("a processor wakes within {us} µs ({name})"),
        ));
    }
    let files = format!("/sys/devices/system/cpu/cpu*/cpuidle/{}/disable", state.directory);
    let text = format!("a processor that slept in {name} wakes after up to {us} µs");
    let step = Step::new("keep the processors out of it, until the next start (`--fifo` keeps them awake while a command runs)")
        .run(format!("for file in {files}; do echo 1 > $file; done"))
        .undone_by(format!("for file in {files}; do echo 0 > $file; done"));
    Some(Finding::new(Level::Note, "idle states", text).with(step))
}
