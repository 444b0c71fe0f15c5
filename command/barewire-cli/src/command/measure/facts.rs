//! What is known of the machine, as lines.

use barewire_lab::measured::Fact;
use barewire_linux::Root;
use barewire_linux::survey::{Controller, Survey};

use super::super::doctor;
use crate::shared::processors;

const CPUFREQ: &str = "/sys/devices/system/cpu/cpu0/cpufreq";

/// The machine's facts: doctor's, and those on which times depend.
pub(super) fn of(root: &Root, survey: &Survey, controller: Option<&Controller>) -> Vec<Fact> {
    let fact = |about: &str, text: String| Fact { about: about.into(), text };
    let machine = &survey.machine;
    let mut facts = vec![
        fact("board", machine.model.clone()),
        fact("compatible", machine.compatible.join(", ")),
        fact("kernel", machine.release.clone()),
        fact("processors", format!("{} for this process", processors::allowed().len())),
    ];
    let khz = |name: &str| std::fs::read_to_string(root.path(format!("{CPUFREQ}/{name}"))).ok();
    for (name, about) in [
        ("scaling_cur_freq", "processor's clock now, kHz"),
        ("cpuinfo_min_freq", "its lowest, kHz"),
        ("cpuinfo_max_freq", "its highest, kHz"),
    ] {
        facts.extend(khz(name).map(|text| fact(about, text.trim().into())));
    }
    for (policy, governor) in &survey.processor.governors {
        facts.push(fact(&format!("governor of {policy}"), governor.clone()));
    }
    for state in &survey.processor.idle {
        let off = if state.disabled { ", switched off" } else { "" };
        let text = format!("leaves within {} us{off}", state.exit_latency_us);
        facts.push(fact(&format!("idle state {}", state.name), text));
    }
    if let Some(controller) = controller {
        facts.push(fact("controller", controller.device.name.clone()));
        if let Some(driver) = &controller.device.driver {
            facts.push(fact("its driver", driver.clone()));
        }
    }
    let found = doctor::found(survey, controller).into_iter();
    facts.extend(found.map(|(about, text)| Fact { about, text }));
    facts.retain(|fact| !fact.text.is_empty());
    facts
}
