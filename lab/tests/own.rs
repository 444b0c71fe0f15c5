//! Experiments of users, run as a whole: the figures add up, and move as what moves them.

use std::collections::BTreeMap;

use barewire_lab::cost::Costs;
use barewire_lab::held_out::{self, HeldOutScore};
use barewire_lab::messages::{self, MessageOutcome, OwnOutcome};
use barewire_lab::own::{Measure, OwnExperiment};
use barewire_lab::sweep::{OwnSweepRequest, own_sweep};
use barewire_sim::BoardSpec;

fn experiment(text: &str) -> OwnExperiment {
    let board = |name: &str| BoardSpec::find(name).map_err(|error| error.to_string());
    OwnExperiment::read("mine", text, &board).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn outcome(text: &str) -> OwnOutcome {
    messages::outcome(&experiment(text), &Costs::fitted(), &Costs::drawn()).expect("it runs")
}

/// An experiment of one message.
fn one(head: &str, message: &str) -> String {
    format!("{head}\n[[message]]\nname = \"m\"\n{message}\n")
}

fn figures(message: &MessageOutcome) -> BTreeMap<&'static str, f64> {
    message.figures.iter().map(|one| (one.figure, one.simulated.used)).collect()
}

fn used(text: &str) -> BTreeMap<&'static str, f64> {
    figures(&outcome(text).messages[0])
}

/// A Raspberry Pi 3 at three lengths, an i.MX6, a BeagleBone, an i.MX8MP.
const SETUPS: [(&str, &str); 6] = [
    ("board = \"rpi3\"\nkernel = \"4.9\"\nspeed_hz = 8_000_000", "lengths = [1]"),
    ("board = \"rpi3\"\nkernel = \"4.9\"\nspeed_hz = 8_000_000", "lengths = [2]"),
    ("board = \"rpi3\"\nkernel = \"4.9\"\nspeed_hz = 3_000_000", "lengths = [3]"),
    ("board = \"imx6dl\"\nkernel = \"4.14\"\nspeed_hz = 20_000_000", "lengths = [256]"),
    (
        "board = \"beaglebone\"\nkernel = \"4.4\"\nspeed_hz = 2_000_000",
        "lengths = [4]\nevery_us = 200.0",
    ),
    (
        "board = \"imx8mp\"\nkernel = \"6.12\"\nspeed_hz = 16_000_000",
        "lengths = [1, 63]\nbatch = 3",
    ),
];

#[test]
fn the_parts_of_a_message_add_up_on_each_board() {
    for (head, message) in SETUPS {
        let text = one(head, message);
        let outcome = outcome(&text);
        let told = &outcome.messages[0];
        let figures = figures(told);
        let half_a_clock_us = 0.5e6 / told.speed_hz as f64;
        let sum = figures["cs-to-clock"] + figures["clocks"] + figures["clock-to-cs"];
        // To half a clock: a driver divides its reference, and the first edge is half a clock late.
        assert!(
            (sum - half_a_clock_us - figures["cs-low"]).abs() < half_a_clock_us,
            "{text}{figures:?}"
        );
        let batch = told.batch as f64;
        let toggles = figures.get("cs-toggle").copied().unwrap_or(0.0) * (batch - 1.0);
        let period = batch * figures["cs-low"] + toggles + figures["cs-high"];
        assert!((period * figures["rate"] / batch / 1e6 - 1.0).abs() < 0.02, "{text}{figures:?}");
        // In a loop the next call begins when the one before returns.
        assert!(figures["call"] < 1.001 * period && figures["call"] > batch * figures["cs-low"]);
        let steps: f64 = told.steps.iter().map(|step| step.us).sum();
        assert!((steps - figures["call"]).abs() < 1e-6 && (told.sum_us - steps).abs() < 1e-6);
        for one in &told.figures {
            for band in [Some(one.simulated), one.barewire].into_iter().flatten() {
                assert!(band.low <= band.used && band.used <= band.high, "{text}{one:?}");
            }
        }
        // barewire is beside each time, and a call of it is shorter on the same wire.
        let ours = |name: &str| {
            let found = told.figures.iter().find(|one| one.figure == name).expect(name);
            found.barewire.unwrap_or_else(|| panic!("{text}: barewire has no {name}")).used
        };
        assert!(ours("call") < figures["call"] && ours("cs-low") > 0.0, "{text}");
    }
}

#[test]
fn newer_kernels_and_fewer_steps_are_faster() {
    let call = |kernel: &str, client: &str| {
        let head = format!(
            "board = \"imx8mp\"\nkernel = {kernel:?}\nclient = {client:?}\nwaiting = \"polling\"\nspeed_hz = 16_000_000"
        );
        used(&one(&head, "lengths = [4]"))["call"]
    };
    let kernels = ["3.14", "5.18", "5.19", "6.1", "6.12"].map(|kernel| call(kernel, "spidev"));
    let [thread, queue, same, direct, newest] = kernels;
    assert!(thread > queue && queue == same && same > direct && direct == newest, "{kernels:?}");
    let clients = ["spidev", "in-kernel", "in-kernel-optimized"].map(|client| call("6.12", client));
    assert!(clients[0] > clients[1] && clients[1] > clients[2], "{clients:?}");
}

#[test]
fn delays_batches_sleep_and_dma_do_what_the_page_says() {
    let pi = "board = \"rpi3\"\nkernel = \"6.1\"\nspeed_hz = 4_000_000";
    let plain = used(&one(pi, "lengths = [3]\nbatch = 10"));
    let none = used(&one(pi, "lengths = [3]\nbatch = 10\ncs_change_delay_us = 0.0"));
    assert!((plain["cs-toggle"] - none["cs-toggle"] - 10.0).abs() < 0.01, "{plain:?} {none:?}");
    let held = used(&one(pi, "lengths = [3]\nbatch = 10\ncs_change = false"));
    assert!(!held.contains_key("cs-toggle") && held["cs-low"] > 9.0 * plain["cs-low"]);
    let delayed = used(&one(pi, "lengths = [3]\ndelay_us = 5.0"));
    let single = used(&one(pi, "lengths = [3]"));
    assert!((delayed["clock-to-cs"] - single["clock-to-cs"] - 5.0).abs() < 0.1, "{delayed:?}");
    // After sleep the code is cold.
    let every = used(&one(pi, "lengths = [3]\nevery_us = 1000.0"));
    assert!(every["call"] > 1.5 * single["call"], "{every:?} {single:?}");
    assert!((every["rate"] - 1_000.0).abs() < 10.0 && every["processor"] < 20.0, "{every:?}");
    let dma = |rate: f64| {
        let text = format!("{pi}\n[dma]\nsetup_us = 30.0\nbytes_per_us = {rate:?}");
        used(&one(&text, "lengths = [1000]"))
    };
    let (fast, slow) = (dma(100.0), dma(0.1));
    assert!((slow["clocks"] - 10_000.0).abs() < 200.0, "{slow:?}");
    assert!((fast["clocks"] - 1000.0 * 9.0 / 4.0).abs() < 50.0 && fast["cs-to-clock"] > 30.0);
}

#[test]
fn refills_by_interrupts_rest_as_long_as_the_file_says() {
    let gap = |more: &str| {
        let head = format!(
            "board = \"imx6dl\"\nkernel = \"4.1\"\nspeed_hz = 20_000_000\n[fifo]\nrefill_bytes = 16\n{more}"
        );
        used(&one(&head, "lengths = [100]"))["refill-gap"]
    };
    let [steps, forty, fifty] = ["", "gap_us = 40.0", "gap_us = 50.0"].map(gap);
    assert!(steps > 1.0 && steps < 40.0, "{steps}");
    assert!((fifty - forty - 10.0).abs() < 0.2, "{forty} {fifty}");
}

#[test]
fn a_sweep_has_the_file_s_own_figure_and_columns_for_kernels() {
    let text = one("board = \"rpi3\"\nkernel = \"4.9\"\nspeed_hz = 3_000_000", "lengths = [3]");
    let (own, costs) = (experiment(&text), Costs::fitted());
    let request = |kernels: &[&str], values: &[f64]| OwnSweepRequest {
        kernels: kernels.iter().map(|&kernel| kernel.into()).collect(),
        parameter: "length".into(),
        values: values.into(),
        ..OwnSweepRequest::default()
    };
    let sweep = own_sweep(&own, &costs, &request(&[], &[1.0, 3.0, 64.0])).expect("it runs");
    assert_eq!(sweep.columns, ["Linux 4.9", "by polling", "by interrupts", "barewire"]);
    let of = |length: f64| &sweep.rows.iter().find(|row| row.0 == length).expect("a row").1;
    assert!((of(3.0)[0] - used(&text)["call"]).abs() < 1e-9);
    // It polls what is short, and sleeps for what is long.
    assert!(of(3.0)[0] == of(3.0)[1] && of(64.0)[0] == of(64.0)[2], "{sweep:?}");
    let sweep = own_sweep(&own, &costs, &request(&["3.14", "6.12"], &[3.0])).expect("it runs");
    assert_eq!(sweep.columns, ["Linux 3.14", "Linux 6.12", "barewire"]);
    assert!(sweep.rows[0].1[0] > sweep.rows[0].1[1]);
    for (request, told) in [
        (request(&["2.4"], &[3.0]), "the lab knows Linux 3.14 to 6.12"),
        (request(&[], &[5_000.0]), "length of 5000 bytes: it has 5000 bytes: at most 4096"),
        (request(&[], &[]), "a sweep needs values"),
        (
            OwnSweepRequest { figure: Some("rat".into()), ..request(&[], &[1.0]) },
            "there is no figure \"rat\"",
        ),
        (
            OwnSweepRequest { message: Some("n".into()), ..request(&[], &[1.0]) },
            "there is no message \"n\"",
        ),
        (
            OwnSweepRequest { parameter: "irq-latency".into(), ..request(&[], &[1.0]) },
            "there is no parameter",
        ),
    ] {
        let error = own_sweep(&own, &costs, &request).expect_err(told).to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn without_a_step_a_call_is_shorter_by_it() {
    let text =
        one("board = \"beaglebone\"\nkernel = \"4.4\"\nspeed_hz = 2_000_000", "lengths = [4]");
    let (own, costs) = (experiment(&text), Costs::fitted());
    let whole = messages::explain(&own, &costs, ("m", None), &[]).expect("it runs");
    let step = whole.steps.iter().find(|step| step.step == "statistics").expect("it has them");
    let off =
        messages::explain(&own, &costs, ("m", None), &["statistics".into()]).expect("it runs");
    assert!(
        (whole.replayed - off.replayed - step.us).abs() < 0.05,
        "{} {}",
        whole.replayed,
        off.replayed
    );
    assert_eq!((whole.id.as_str(), whole.published), ("mine:m:call", None));
    for (figure, without, told) in [
        (("n", None), vec![], "there is no message \"n\""),
        (("m", Some("rat")), vec![], "there is no figure \"rat\""),
        (("m", None), vec!["wire".to_owned()], "there is no step \"wire\""),
        (("m", Some("cs-toggle")), vec![], "m has no cs-toggle"),
    ] {
        let error = messages::explain(&own, &costs, figure, &without).expect_err(told).to_string();
        assert!(error.contains(told), "{error}");
    }
}

/// The table of the figures not seen before is reviewed: `BAREWIRE_BLESS=1` writes it anew.
#[test]
fn figures_not_seen_before_are_as_reviewed() {
    use std::fmt::Write as _;
    let figures = held_out::figures(&Costs::fitted(), &Costs::drawn());
    let mut text = String::new();
    for one in &figures {
        let _ = match (one.simulated, &one.not_expressed) {
            (Some(band), None) => writeln!(
                text,
                "{:<20}{:>9}{:>12.2}{:>12.2}{:>12.2}  {:>6.1} %  {}",
                one.id,
                one.published,
                band.used,
                band.low,
                band.high,
                100.0 * one.error.expect("it has one"),
                if one.within == Some(true) { "in band" } else { "outside" }
            ),
            (None, Some(why)) => writeln!(text, "{:<20}{:>9}  {why}", one.id, one.published),
            _ => panic!("{} is answered, or says why it is not", one.id),
        };
    }
    let score = HeldOutScore::of(&figures);
    let _ = writeln!(text, "{score:#?}");
    assert_eq!(
        score.expressed + figures.iter().filter(|one| one.not_expressed.is_some()).count(),
        figures.len()
    );
    let kept =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/held-out.txt");
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        std::fs::write(&kept, &text).expect("it can be written");
    }
    let kept = std::fs::read_to_string(&kept).expect("the table is there");
    assert!(kept == text, "the figures are others:\n{text}");
}

#[test]
fn a_measure_is_found_by_its_name() {
    for measure in Measure::ALL {
        assert_eq!(Measure::named(measure.name()), Some(measure));
    }
    assert_eq!(Measure::named("call "), None);
}

#[test]
fn a_published_value_is_in_the_band_or_not() {
    let head = "board = \"rpi3\"\nkernel = \"6.1\"\nspeed_hz = 4_000_000";
    let call = used(&one(head, "lengths = [3]"))["call"];
    for (published, within) in [(call, true), (100.0 * call, false), (call / 100.0, false)] {
        let message = format!("lengths = [3]\npublished.call = {published:?}");
        let outcome = outcome(&one(head, &message));
        let found = outcome.messages[0].figures.iter().find(|one| one.figure == "call");
        let found = found.expect("it has a call");
        assert_eq!((found.published, found.within), (Some(published), Some(within)));
        let error = found.error.expect("it has an error");
        assert!((error - (call - published) / published).abs() < 1e-6, "{error}");
    }
}
