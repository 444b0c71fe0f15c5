//! Gains on boards with figures that can be reckoned by hand.

use super::*;
use crate::own::OwnExperiment;

fn own(text: &str) -> OwnExperiment {
    let boards =
        |name: &str| barewire_sim::BoardSpec::find(name).map_err(|error| error.to_string());
    OwnExperiment::read("mine", text, &boards).expect("an experiment")
}

fn gains(text: &str) -> GainOutcome {
    gain(&own(text), &Costs::fitted(), &[], &mut |_, _| ()).expect("it runs")
}

fn of(message: &MessageGain, measure: Measure) -> &MeasureGain {
    message.measures.iter().find(|one| one.measure == measure.name()).expect("all are there")
}

const IMX: &str = "board = \"imx8mp\"\nkernel = \"6.12\"\nspeed_hz = 16_000_000\n[[message]]\nname = \"read\"\nlengths = [4]\n";
const BATCHED: &str = "board = \"rpi3\"\nkernel = \"4.9\"\nspeed_hz = 3_600_000\n[[message]]\nname = \"adc\"\nlengths = [3]\nbatch = 10\n";

#[test]
fn groups_add_up_to_the_time_of_today_and_together_to_the_times_with_each_measure() {
    for text in [IMX, BATCHED] {
        let outcome = gains(text);
        let message = &outcome.messages[0];
        let sum = |groups: &[GroupTime]| groups.iter().map(|group| group.us).sum::<f64>();
        assert!((sum(&message.groups) - message.today_us.used).abs() < 1e-9);
        let mut before = message.today_us.used;
        for one in message.measures.iter().filter(|one| one.together_us.is_some()) {
            let us = one.together_us.expect("filtered").used;
            assert!((sum(&one.groups) - us).abs() < 1e-9, "{}", one.measure);
            assert!(us < before, "{} is not taken for nothing", one.measure);
            before = us;
        }
        for one in &message.measures {
            let is_there = one.saves_us.is_some();
            assert_eq!(is_there, one.why.is_none(), "{}", one.measure);
            assert_eq!(is_there, one.verdict != Verdict::NotHere, "{}", one.measure);
            assert_eq!(one.together_us.is_some(), one.not_taken.is_none(), "{}", one.measure);
            if let Some(Band { used, low, high }) = one.saves_us {
                assert!(low <= used && used <= high, "{}: {low} {used} {high}", one.measure);
            }
        }
    }
}

#[test]
fn the_delay_of_a_cs_change_is_nine_times_10_us_in_ten_parts() {
    let outcome = gains(BATCHED);
    let delay = of(&outcome.messages[0], Measure::CsChangeDelay);
    let saves = delay.saves_us.expect("there is one");
    assert!((saves.used - 9.0).abs() < 0.2, "{saves:?}");
    assert!((saves.high - saves.low).abs() < 1.0, "both sides share the rest: {saves:?}");
    let single = BATCHED.replace("batch = 10\n", "");
    let outcome = gains(&single);
    let message = &outcome.messages[0];
    assert_eq!(
        of(message, Measure::CsChangeDelay).why.as_deref(),
        Some("no cs_change in the message")
    );
    // Ten in a call spare nine system calls and have nine waits of 10 us.
    assert_eq!(of(message, Measure::Batch).verdict, Verdict::Costs);
    assert_eq!(of(message, Measure::BatchNoDelay).verdict, Verdict::Saves);
}

#[test]
fn the_module_leaves_out_its_counted_instructions() {
    let outcome = gains(IMX);
    let module = of(&outcome.messages[0], Measure::Module);
    let own = own(IMX);
    let costs = Costs::fitted();
    let profile = costs.profile(&own.profile);
    // The lab's costs are Linux 6.1's counts.
    let instructions = (5301.0 - 3664.0) * costs.instruction_ps(&profile, Regime::InALoop);
    let ps = instructions + 13.0 * profile.register_write_ps.value as f64;
    let saves = module.saves_us.expect("imx8mp has a count").used;
    assert!((saves - ps / 1e6).abs() < 0.01, "{saves} {ps}");
    assert_eq!(
        module.source.as_deref(),
        Some("counted for 4 bytes in the guest imx8mp-evk under Linux 6.1: guests/kernel.txt")
    );
}

#[test]
fn barewire_in_the_process_is_what_the_lab_prints_beside() {
    let outcome = gains(IMX);
    let beside = crate::messages::outcome(&own(IMX), &Costs::fitted(), &[]).expect("it runs");
    let call = beside.messages[0].figures.iter().find(|one| one.figure == "call").expect("one");
    let user = of(&outcome.messages[0], Measure::UserPolled).saves_us.expect("it saves").used;
    let expected = call.simulated.used - call.barewire.expect("it takes part").used;
    assert!((user - expected).abs() < 1e-9, "{user} {expected}");
}

#[test]
fn what_is_not_for_a_board_or_kernel_says_why() {
    let why = |text: &str, measure| {
        let outcome = gains(text);
        of(&outcome.messages[0], measure).why.clone().unwrap_or_default()
    };
    let imx6 = IMX.replace("imx8mp", "imx6dl").replace("6.12", "4.1");
    let beagle = IMX.replace("imx8mp", "beaglebone").replace("6.12", "4.4").replace("16_", "2_");
    let beagle = beagle.replace("[[", "cs = 1\n[[");
    let pi = IMX.replace("imx8mp", "rpi3").replace("6.12", "6.1");
    let two = IMX.replace("[4]", "[1, 3]");
    for (text, measure, part) in [
        (IMX, Measure::KernelUpgrade, "Linux 6.12 is the newest here"),
        (IMX, Measure::PollingLimit, "it polls already"),
        (IMX, Measure::StayAwake, "nothing sleeps here"),
        (IMX, Measure::ModuleApi, "for drivers in the kernel"),
        (&imx6, Measure::PollingLimit, "spi-imx polls since Linux 5.19, not in Linux 4.1"),
        (&beagle, Measure::Module, "on spi-omap2-mcspi's controller are not counted"),
        (&beagle, Measure::NativeSelect, "its select is the controller's own already"),
        (&pi, Measure::NativeSelect, "moves its own selects as pins"),
        (&two, Measure::NativeSelect, "rises between the transfers"),
        (&format!("{IMX}every_us = 100.0\n"), Measure::Batch, "one message each period"),
        (
            &IMX.replace("6.12\"", "6.12\"\nclient = \"in-kernel\""),
            Measure::UserPolled,
            "in the kernel",
        ),
    ] {
        let said = why(text, measure);
        assert!(said.contains(part), "{}: {said:?}", measure.name());
    }
    // The interface leaves out more than the driver alone.
    let outcome = gains(&IMX.replace("6.12\"", "6.12\"\nclient = \"in-kernel\""));
    let saves = |measure| of(&outcome.messages[0], measure).saves_us.expect("a saving").used;
    assert!(saves(Measure::ModuleApi) > saves(Measure::Module));
    // The upgrade makes room for the polling limit; the module brings it along.
    let outcome = gains(&imx6.replace("[4]", "[256]"));
    let polling = of(&outcome.messages[0], Measure::PollingLimit);
    assert!(polling.saves_us.is_none() && polling.together_us.is_some(), "{polling:?}");
    let module = of(&outcome.messages[0], Measure::Module);
    assert!(module.saves_us.is_some() && module.source.is_some(), "{module:?}");
}

#[test]
fn a_processor_that_stays_awake_saves_at_most_what_is_cold() {
    let outcome = gains(&format!("{IMX}every_us = 1000.0\n"));
    let message = &outcome.messages[0];
    let saves = of(message, Measure::StayAwake).saves_us.expect("it sleeps");
    let warm = gains(IMX).messages[0].today_us.used;
    assert!((message.today_us.used - saves.used - warm).abs() < 0.3, "{saves:?} {warm}");
    assert_eq!(saves.low, 0.0);
}
