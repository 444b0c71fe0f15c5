//! The ways to a controller's registers: this project's kernel module, UIO, and `/dev/mem` where nothing stops its clock.
//!
//! No command that is printed here unbinds a driver while a chip on the bus has one: its flash,
//! network or regulator would go with it. None writes a clock's register.

use barewire_linux::bus_text;
use barewire_linux::gpio::{GpioChip, GpioLine};
use barewire_linux::map::clock::ClockState;
use barewire_linux::map::{Block, CsLineAt, CsPin, MapSpec, Via};
use barewire_linux::survey::{
    Access, Capability, Controller, Driver, Machine, Rights, Select, SelectAt, Survey, UioNode,
};

use super::board::Board;
use super::facts::{SELECTS, used};
use super::overlay;
use super::report::{Step, Way};
use super::spidev::{permission, tries};

pub(super) fn ways(survey: &Survey, controller: &Controller) -> Vec<Way> {
    let Some(block) = controller.block() else {
        return Vec::new();
    };
    let Survey { machine, rights, .. } = survey;
    if let Some(node) = &controller.door {
        return vec![by_door(controller, node)];
    }
    let uio = match &controller.uio {
        Some(node) => by_uio(controller, block, node, rights),
        None => by_overlay(machine, controller),
    };
    let mut ways = vec![uio];
    if machine.module != Driver::Missing && controller.uio.is_none() {
        ways.insert(0, to_door(machine, controller));
    }
    if controller.uio.is_none() {
        ways.push(by_memory(machine, controller, block, rights));
    }
    ways
}

/// The kernel module has it, and gives it to programs.
fn by_door(controller: &Controller, node: &Access) -> Way {
    let mut way = Way::new("barewire");
    let number = node.path.trim_start_matches("/dev/barewire");
    name_door(&mut way, controller, number);
    if !controller.neighbours.is_empty() {
        way.obstacles.push(shared_page(controller));
    }
    if !node.allowed {
        way.steps.push(permission(node, "SUBSYSTEM==\"barewire\"", "spi"));
    }
    way.ready = way.obstacles.is_empty() && way.steps.is_empty();
    way
}

/// Where the module is there and has not got the controller.
fn to_door(machine: &Machine, controller: &Controller) -> Way {
    let mut way = Way::new("barewire");
    way.obstacles.extend(rivals(controller));
    if !controller.neighbours.is_empty() {
        way.obstacles.push(shared_page(controller));
    }
    let free = |number: &u32| !machine.doors.contains(&format!("barewire{number}"));
    name_door(&mut way, controller, &(0..).find(free).unwrap_or(0).to_string());
    if !way.is_reachable() {
        return way;
    }
    if machine.module == Driver::Module {
        let load = Step::new("load this project's kernel module");
        way.steps.push(load.run("modprobe barewire").undone_by("modprobe -r barewire"));
    }
    let (name, bus) = (&controller.device.name, controller.device.bus);
    let own = format!("/sys/bus/{bus}/devices/{name}/driver_override");
    let driver = controller.device.rival();
    let mut step = Step::new(match driver {
        Some(driver) => format!(
            "take the controller from {driver}, whose spidev nodes go until then, for the module, which keeps its clock and pins"
        ),
        None => "give the controller to the module, which keeps its clock and pins".to_owned(),
    });
    if let Some(driver) = driver {
        step = step.run(controller.device.unbind_command(driver));
    }
    step = step
        .run(format!("echo barewire-user > {own}"))
        .run(format!("echo {name} > /sys/bus/{bus}/drivers/barewire-user/bind"))
        .undone_by(format!("echo {name} > /sys/bus/{bus}/drivers/barewire-user/unbind"))
        .undone_by(format!("echo > {own}"));
    if let Some(driver) = driver {
        step = step.undone_by(format!("echo {name} > /sys/bus/{bus}/drivers/{driver}/bind"));
    }
    way.steps.push(step);
    way
}

fn shared_page(controller: &Controller) -> String {
    format!(
        "its page also has the registers of {}, so the module gives it to no program",
        controller.neighbours.join(", ")
    )
}

fn name_door(way: &mut Way, controller: &Controller, number: &str) {
    let bus = format!("barewire:{number}");
    for child in &controller.children {
        way.tries.extend(tries(&bus, child, child.chip_select.into()));
    }
    way.bus = Some(bus);
}

fn by_uio(controller: &Controller, block: Block, node: &UioNode, rights: &Rights) -> Way {
    let mut way = Way::new("uio");
    let runs = match controller.clock.as_ref().map(|clock| &clock.state) {
        _ if node.keeps_clock => true,
        Some(state) => !state.is_off() && *state != ClockState::Unknown,
        None => false,
    };
    if !runs {
        way.obstacles.push("nothing keeps its clock on: its node belongs below a simple-pm-bus with its own clocks (Linux 6.3 or later); start without its overlay, and `barewire doctor --overlay` prints another".into());
    }
    let via = Via::Uio { device: node.name().to_owned() };
    name_bus(&mut way, controller, block, via, rights);
    match (node.access.allowed, controller.neighbours.is_empty()) {
        (true, _) => {}
        (false, true) => {
            way.steps.push(permission(&node.access, "SUBSYSTEM==\"uio\"", "uio"));
        }
        (false, false) => way.obstacles.push(format!(
            "{} is for root, and stays so: its page also has the registers of {}",
            node.access.path,
            controller.neighbours.join(", ")
        )),
    }
    way.steps.extend(gpio_permissions(controller));
    way.ready = way.obstacles.is_empty() && way.steps.is_empty();
    way
}

/// Before there is a UIO device: the overlay that makes one.
fn by_overlay(machine: &Machine, controller: &Controller) -> Way {
    let mut way = Way::new("uio");
    way.obstacles.extend(rivals(controller));
    if machine.uio == Driver::Missing {
        way.obstacles.push("this kernel has no uio_pdrv_genirq: take one with CONFIG_UIO_PDRV_GENIRQ=m, or stay with spidev".into());
    }
    let always = controller.clock.as_ref().is_some_and(|clock| clock.state == ClockState::Always);
    if !always && machine.version < (6, 3) {
        way.obstacles.push(format!(
            "Linux {} does not keep the clock of a UIO node on (6.3 and later do): take a newer kernel, or stay with spidev",
            machine.release
        ));
    }
    if controller.node.is_empty() {
        way.obstacles.push(
            "its node in the device tree is unknown: there is nothing to write an overlay against"
                .into(),
        );
    }
    if !way.is_reachable() {
        return way;
    }
    let file = overlay::name(controller);
    let name = &controller.device.name;
    let wanted = Step::new(
        "an overlay that gives the controller to UIO, with its clock, pins and interrupt",
    )
    .run(format!("barewire doctor --overlay {name} > {file}.dtso"));
    way.steps.push(wanted);
    way.steps.push(Board::of(machine).apply_overlay(machine, &file));
    way.steps.push(
        Step::new("load UIO's driver (at every start: contrib/modprobe.d and modules-load.d), then ask again")
            .run("modprobe uio_pdrv_genirq of_id=generic-uio")
            .run("barewire doctor")
            .undone_by("modprobe -r uio_pdrv_genirq"),
    );
    way
}

fn by_memory(machine: &Machine, controller: &Controller, block: Block, rights: &Rights) -> Way {
    let mut way = Way::new("mem");
    way.obstacles.extend(rivals(controller));
    match &rights.mem {
        None => way.obstacles.push("this kernel has no /dev/mem (CONFIG_DEVMEM)".into()),
        Some(access) if !access.allowed || !rights.has(Capability::SysRawio) => {
            way.obstacles.push("/dev/mem is for root (CAP_SYS_RAWIO): `sudo barewire …`".into());
        }
        Some(_) => {}
    }
    let always = controller.clock.as_ref().is_some_and(|clock| clock.state == ClockState::Always);
    if !always {
        way.obstacles.push("the kernel stops its clock when its driver goes, and registers without a clock hang the machine: use UIO, whose overlay keeps the clock".into());
    }
    name_bus(
        &mut way,
        controller,
        block,
        Via::DevMem { address: controller.device.address },
        rights,
    );
    if !way.is_reachable() {
        return way;
    }
    let device = &controller.device;
    if let Some(driver) = device.rival() {
        way.steps.push(
            Step::new(format!("take the controller from {driver}; its spidev nodes go until then"))
                .run(device.unbind_command(driver))
                .undone_by(format!(
                    "echo {} > /sys/bus/{}/drivers/{driver}/bind",
                    device.name, device.bus
                )),
        );
    }
    way.steps.extend(Board::of(machine).pins_step(controller));
    let others = controller.claimed_by.iter().any(|name| !name.contains(&device.name));
    if others && !machine.iomem_relaxed {
        way.steps.push(
            Step::new("last, and only if mapping is refused (CONFIG_IO_STRICT_DEVMEM), for the whole machine: start the kernel with `iomem=relaxed`, which lets every process with CAP_SYS_RAWIO map registers in use"),
        );
    }
    way.ready = way.steps.is_empty();
    way
}

/// The chips that are bound to drivers. While there are any, the controller must not be taken.
fn rivals(controller: &Controller) -> Vec<String> {
    controller
        .rivals()
        .filter_map(|child| {
            let (device, driver) = (child.device.as_deref()?, child.rival()?);
            let uses: Vec<String> = child.uses.iter().map(used).collect();
            let with =
                if uses.is_empty() { String::new() } else { format!(" for {}", uses.join(", ")) };
            Some(format!(
                "the kernel's driver {driver} has {device} on this bus{with}, and would lose it"
            ))
        })
        .collect()
}

/// The bus's text and the commands that try it, or which part of it is unknown.
fn name_bus(way: &mut Way, controller: &Controller, block: Block, via: Via, rights: &Rights) {
    let rate = controller.clock.as_ref().and_then(|clock| clock.rate.as_ref());
    let Some(hz) = rate.and_then(|rate| u32::try_from(rate.hz).ok()) else {
        let who = if rights.is_root() {
            "mount debugfs, or see the SoC's manual"
        } else {
            "root sees it: sudo barewire doctor"
        };
        way.obstacles.push(format!("the rate of the clock that it divides is unknown ({who})"));
        return;
    };
    if controller.selects.len() > SELECTS {
        way.obstacles.push(format!(
            "a bus has at most {SELECTS} chip selects, and reg and cs-gpios make {} here: write it by hand with the lines of up to {SELECTS} chips, or use spidev",
            controller.selects.len()
        ));
        return;
    }
    let lines: Vec<(usize, CsPin)> = controller
        .selects
        .iter()
        .enumerate()
        .filter_map(|(number, select)| Some((number, pin(select)?)))
        .collect();
    for (number, select) in controller.selects.iter().enumerate() {
        if let SelectAt::Elsewhere { node, offset } = &select.at {
            way.obstacles.push(format!("chip select {number} is line {offset} of {node}: write its label as gpiodetect prints it, cs=gpio@LABEL:{offset}"));
        }
    }
    let mut chip_selects = [const { None }; SELECTS];
    for (place, (_, pin)) in chip_selects.iter_mut().zip(&lines) {
        *place = Some(pin.clone());
    }
    let spec = MapSpec::new(block, via, hz, chip_selects);
    if let Err(error) = spec.check() {
        way.obstacles.push(error.to_string());
        return;
    }
    let text = bus_text::text(&spec);
    for (place, (number, _)) in lines.iter().enumerate() {
        way.tries.extend(
            controller.child(*number).map(|child| tries(&text, child, place)).unwrap_or_default(),
        );
    }
    way.bus = Some(text);
}

fn pin(select: &Select) -> Option<CsPin> {
    let at = match &select.at {
        SelectAt::Native { channel } => CsLineAt::Native { channel: *channel },
        SelectAt::Gpio { address, offset, .. } => {
            CsLineAt::Kernel(GpioLine { chip: GpioChip::At(*address), offset: *offset })
        }
        SelectAt::Elsewhere { .. } => return None,
    };
    Some(CsPin { at, active_high: select.active_high })
}

/// The nodes of GPIO chips that this user may not open, each once.
fn gpio_permissions(controller: &Controller) -> Option<Step> {
    let refused = controller.selects.iter().find_map(|select| match &select.at {
        SelectAt::Gpio { chip: Some(chip), .. } if !chip.allowed => Some(chip),
        _ => None,
    })?;
    Some(permission(refused, "SUBSYSTEM==\"gpio\"", "gpio"))
}
