//! Gains as text: for each message today's time in groups, and a line for each measure.

use std::fmt::Write as _;

use barewire_lab::Band;
use barewire_lab::gain::{GainOutcome, MeasureGain, MessageGain, Verdict};
use barewire_lab::report::number;

/// All of it.
pub(super) fn text(gain: &GainOutcome) -> String {
    let GainOutcome { name, title, board, kernel, client, driver, little_percent, messages } = gain;
    let mut text = format!(
        "{name}: {title}\n{board}, {kernel}, {client}, {driver}. Simulated.\nTimes are of a call, of a batch those of a part. alone: \
         below {little_percent} % of today's time is little.\ntogether: the time with the measures above that are taken too.\n"
    );
    for message in messages {
        one(&mut text, message);
    }
    let is_used = |measure: &str| {
        let all = messages.iter().flat_map(|message| &message.measures);
        all.filter(|one| one.measure == measure)
            .any(|one| one.saves_us.or(one.together_us).is_some())
    };
    text += "\nmeasures:\n";
    for measure in messages.iter().take(1).flat_map(|message| &message.measures) {
        if is_used(measure.measure) {
            let _ = writeln!(text, "  {:<16} {}", measure.measure, measure.what);
        }
        if let Some(source) = &measure.source {
            let _ = writeln!(text, "  {:<16} {source}", "");
        }
    }
    text
}

fn range(band: Band) -> String {
    let between = if band.low < 0.0 { " to " } else { "-" };
    format!("{}{between}{}", number(band.low), number(band.high))
}

fn one(text: &mut String, message: &MessageGain) {
    let MessageGain { name, lengths, batch, speed_hz, waiting, regime, .. } = message;
    let bytes: Vec<String> = lengths.iter().map(usize::to_string).collect();
    let batch = if *batch > 1 { format!(" x {batch}") } else { String::new() };
    let unit = if lengths[..] == [1] { "byte" } else { "bytes" };
    let published =
        message.published_us.map_or(String::new(), |us| format!(", published {} us", number(us)));
    let _ = writeln!(
        text,
        "\n{name}: {} {unit}{batch} at {} MHz, {waiting}, {regime}\n  today {} us, {}{published}",
        bytes.join(" + "),
        number(*speed_hz as f64 / 1e6),
        number(message.today_us.used),
        range(message.today_us)
    );
    let is_off = |us: f64| us < message.today_us.low || us > message.today_us.high;
    if message.published_us.is_some_and(is_off) {
        *text += "  Published is not in the band: fit the costs first (barewire lab fit --experiment), and give them by --costs.\n";
    }
    for group in &message.groups {
        let share = 100.0 * group.us / message.today_us.used;
        let _ = writeln!(text, "    {:<16}{:>9.3} us{share:>7.1} %", group.group, group.us);
    }
    let _ = writeln!(
        text,
        "  {:<16}{:>10}{:>18}{:>8}  {:<8}{:>10}{:>18}",
        "measure", "saves us", "low-high", "%", "alone", "together", "low-high"
    );
    for measure in &message.measures {
        let _ = writeln!(text, "{}", line(measure).trim_end());
    }
    let _ = writeln!(text, "  {}", advice(message));
}

fn line(one: &MeasureGain) -> String {
    let MeasureGain { measure, saves_us, saves_percent, why, together_us, not_taken, .. } = one;
    let together = match (together_us, not_taken) {
        (Some(us), _) => format!("{:>10}{:>18}", number(us.used), range(*us)),
        // The reason alone stands on the left already.
        (None, Some(reason)) if why.as_ref() != Some(reason) => format!("  not taken: {reason}"),
        _ => String::new(),
    };
    let Some((saves, percent)) = saves_us.zip(*saves_percent) else {
        let why = format!("not here: {}", why.as_deref().unwrap_or_default());
        return match together_us {
            Some(_) => format!("  {measure:<16}{why}\n  {:<62}{together}", "  with those above:"),
            None => format!("  {measure:<16}{why}"),
        };
    };
    let word = match one.verdict {
        Verdict::Saves => "saves",
        Verdict::AtMost => "at most",
        Verdict::Little => "little",
        Verdict::Costs => "costs",
        Verdict::NotHere => "",
    };
    format!(
        "  {measure:<16}{:>10}{:>18}{percent:>8.1}  {word:<8}{together}",
        number(saves.used),
        range(saves)
    )
}

/// The measures of the kernel's path: of no use where barewire runs in the process.
const OF_KERNEL: [&str; 3] = ["kernel-upgrade", "polling-limit", "module"];

/// The largest saving alone, and what those together leave, in sentences.
fn advice(message: &MessageGain) -> String {
    let all = &message.measures;
    let known = all.iter().filter(|one| one.verdict == Verdict::Saves);
    let us = |one: &MeasureGain| one.saves_us.map_or(0.0, |band| band.used);
    let largest = known.max_by(|one, other| us(one).total_cmp(&us(other)));
    let taken: Vec<_> = all.iter().filter(|one| one.together_us.is_some()).collect();
    let Some((last, together)) = taken.last().and_then(|one| Some((one, one.together_us?))) else {
        let wire = message.groups.iter().find(|group| group.group == "wire");
        let wire = wire.map_or(0.0, |group| 100.0 * group.us / message.today_us.used);
        return format!("No measure of these saves much: the wire has {wire:.0} % of the time.");
    };
    let is_user = last.measure.starts_with("user");
    let names = taken.iter().map(|one| one.measure);
    let names: Vec<&str> = names.filter(|name| !is_user || !OF_KERNEL.contains(name)).collect();
    let alone = largest.map_or(String::new(), |one| {
        format!("Most alone: {}, {:.0} %. ", one.measure, one.saves_percent.unwrap_or_default())
    });
    format!("{alone}Together {} us: {}.", number(together.used), names.join(", "))
}
