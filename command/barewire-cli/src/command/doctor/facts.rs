//! Findings about a controller: clock, power, pins, interrupt, chip selects, and its present user.

use barewire_linux::map::clock::{Clock, ClockState};
use barewire_linux::survey::{
    Child, Controller, Machine, Pins, RefusedChip, Select, SelectAt, Use,
};

use super::report::{Finding, Level, Step};
use super::{cost, lines, refused};
use crate::shared::text::figure;

/// A bus has at most four chip selects.
pub(super) const SELECTS: usize = 4;

pub(super) fn findings(machine: &Machine, controller: &Controller) -> Vec<Finding> {
    let mut findings = Vec::new();
    if controller.block().is_none() {
        let text = "not one that barewire drives by its registers: use it through spidev";
        findings.push(Finding::new(Level::Note, "block", text));
    }
    findings.extend(driver(controller));
    findings.extend(controller.clock.as_ref().map(|clock| of_clock(controller, clock)));
    findings.extend(power(controller));
    findings.extend(pins(machine, controller));
    if controller.device.base().is_some() {
        findings.push(interrupt(controller));
    }
    findings.extend(users(controller));
    let told = |(number, select): &(usize, &Select)| {
        *number < SELECTS
            || controller.child(*number).is_some()
            || !matches!(select.at, SelectAt::Native { .. })
    };
    let all = controller.selects.iter().enumerate().filter(told);
    findings.extend(all.map(|(number, select)| chip_select(controller, number, select)));
    findings.extend(lines::findings(controller));
    match refused::findings(controller) {
        refused if refused.is_empty() => findings.extend(cost::finding(controller)),
        refused => findings.extend(refused),
    }
    findings
}

/// A controller that no driver has, as after an unbind.
fn driver(controller: &Controller) -> Option<Finding> {
    if controller.device.driver.is_some() {
        return None;
    }
    // Offering it would not help.
    let hindrance = lines::held(controller)
        .or_else(|| (!controller.awaits.is_empty()).then(|| waits(&controller.awaits)));
    if let Some(why) = hindrance {
        let text = format!("none has it, and none can: {why}");
        return Some(Finding::new(Level::Problem, "driver", text));
    }
    let lines = controller.selects.iter().any(|it| matches!(it.at, SelectAt::Gpio { .. }));
    let lines = if lines {
        "; the GPIO lines of its chip selects are free and keep their levels"
    } else {
        ""
    };
    let text = format!("none has it: nothing keeps its clock on{lines}");
    let step = Step::new("give it back to the kernel's driver").run("barewire restore");
    let undo = format!(
        "echo {0} > /sys/bus/{1}/devices/{0}/driver/unbind",
        controller.device.name, controller.device.bus
    );
    Some(Finding::new(Level::Note, "driver", text).with(step.undone_by(undo)))
}

/// Text that names the devices a device waits for, and the remedy.
pub(crate) fn waits(awaits: &[String]) -> String {
    format!(
        "it waits for {}, which its node names, and until that has a driver itself the kernel binds none here: load that driver, or correct the node (`cat /sys/kernel/debug/devices_deferred` lists all that waits)",
        awaits.join(" and ")
    )
}

fn of_clock(controller: &Controller, clock: &Clock) -> Finding {
    let rate = match &clock.rate {
        Some(rate) => format!("{} ({})", figure::clock(rate.hz), rate.name),
        None => "rate unknown".into(),
    };
    let keeps = controller.uio.as_ref().is_some_and(|uio| uio.keeps_clock);
    let keeps_door = controller.door.is_some();
    let (level, state) = match &clock.state {
        _ if keeps_door => (Level::Ok, "on while a program has it open".to_owned()),
        _ if keeps => (Level::Ok, "on while the UIO device is open".to_owned()),
        ClockState::Always => (Level::Ok, "never switched off".to_owned()),
        ClockState::Unknown if controller.device.rival().is_some() => {
            (Level::Ok, "switched by its driver".to_owned())
        }
        ClockState::Unknown => {
            (Level::Note, "whether it runs cannot be seen (root can, with debugfs)".to_owned())
        }
        state if state.is_off() && controller.device.rival().is_some() => {
            (Level::Ok, format!("switched off by its driver while it is idle ({state})"))
        }
        state if state.is_off() => (Level::Problem, format!("off ({state})")),
        state => (Level::Ok, format!("on ({state})")),
    };
    Finding::new(level, "clock", format!("{rate}; {state}"))
}

fn power(controller: &Controller) -> Option<Finding> {
    let status = controller.runtime_status.as_deref()?;
    let text = match status {
        "active" => "on (runtime PM: active)".to_owned(),
        "suspended" => "asleep until it is used (runtime PM: suspended)".to_owned(),
        "unsupported" => {
            "not managed while no driver asks for it (runtime PM: unsupported)".to_owned()
        }
        other => format!("runtime PM: {other}"),
    };
    Some(Finding::new(Level::Ok, "power", text))
}

fn pins(machine: &Machine, controller: &Controller) -> Option<Finding> {
    let bound = controller.device.driver.is_some();
    Some(match &controller.pins {
        Pins::Owned(lines) => {
            let names: Vec<&str> = lines.iter().map(|line| pin_name(line)).collect();
            Finding::new(Level::Ok, "pins", format!("set for it: {}", names.join(", ")))
        }
        Pins::None if bound => Finding::new(
            Level::Note,
            "pins",
            "its node sets none: the boot loader must have set SCK, MOSI and MISO",
        ),
        Pins::None => Finding::new(
            Level::Note,
            "pins",
            "without a driver none belongs to it: what they carry is left from before (i.MX) or they are inputs (Raspberry Pi)",
        ),
        Pins::Unknown if machine.debugfs => return None,
        Pins::Unknown => Finding::new(Level::Note, "pins", "cannot be seen without debugfs"),
    })
}

/// The name in a line of `pinmux-pins`: `pin 9 (gpio9): …`.
fn pin_name(line: &str) -> &str {
    let name = line.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    name.map_or(line, |(name, _)| name)
}

fn interrupt(controller: &Controller) -> Finding {
    let counted = controller.uio.as_ref().and_then(|uio| uio.events);
    let text = match (controller.has_interrupt, counted) {
        (false, _) => "none in its node: transfers are polled",
        (true, Some(0)) => {
            "in its node; none was counted by UIO yet: a transfer with poll-limit-us=0 must move the count in /sys/class/uio/*/event"
        }
        (true, Some(_)) => "in its node, and UIO has counted some",
        (true, None) => "in its node",
    };
    let level = if controller.has_interrupt { Level::Ok } else { Level::Note };
    Finding::new(level, "interrupt", text)
}

/// Others that have the registers: claims that are not the controller's own, and processes.
fn users(controller: &Controller) -> Vec<Finding> {
    let mut findings = Vec::new();
    let own = |name: &&String| !name.contains(&controller.device.name);
    let others: Vec<_> = controller.claimed_by.iter().filter(own).map(String::as_str).collect();
    if !others.is_empty() {
        let text = format!("its registers are also claimed by {}", others.join(", "));
        findings.push(Finding::new(Level::Note, "claimed", text));
    }
    if !controller.neighbours.is_empty() {
        let text = format!(
            "its page also has the registers of {}: who may map one can drive both",
            controller.neighbours.join(", ")
        );
        findings.push(Finding::new(Level::Note, "page", text));
    }
    if !controller.mapped_by.is_empty() {
        let processes: Vec<String> = controller.mapped_by.iter().map(u32::to_string).collect();
        let text = format!("its registers are mapped by process {}", processes.join(", "));
        findings.push(Finding::new(Level::Note, "in use", text));
    }
    findings
}

fn chip_select(controller: &Controller, number: usize, select: &Select) -> Finding {
    let line = lines::line(select);
    let about = format!("--cs {number}");
    let refused = |it: &&RefusedChip| it.reg.iter().any(|&value| value as usize == number);
    let chip = match (controller.child(number), controller.refused.iter().find(refused)) {
        (Some(child), _) => chip(child),
        (None, Some(refused)) => format!("{}, which is refused", refused.node),
        (None, None) => "no chip in the device tree".into(),
    };
    Finding::new(Level::Ok, &about, format!("{line}: {chip}"))
}

/// A chip, and what the kernel makes of it.
fn chip(child: &Child) -> String {
    let mut text = match child.compatible.first() {
        Some(name) => name.clone(),
        None => "a chip that the tree does not name".into(),
    };
    if let Some(device) = &child.device {
        text += &format!(" ({device})");
    }
    if let Some(driver) = &child.driver {
        text += &format!(", driver {driver}");
    }
    for it in &child.uses {
        text += &format!(", {}", used(it));
    }
    text
}

/// Text for what the kernel made of a chip (such as `mtd0`), and who uses that.
pub(super) fn used(Use { class, name, used_by }: &Use) -> String {
    let name = if name.starts_with(class) { name.clone() } else { format!("{class} {name}") };
    match used_by.is_empty() {
        true => name,
        false => format!("{name} ({})", used_by.join(", ")),
    }
}
