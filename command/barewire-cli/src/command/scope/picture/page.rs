//! The page: one file that needs no other. Its charts are drawn here; its script draws and zooms the waveforms.

use std::fmt::Write as _;

use barewire_lab::report::style;
use barewire_lab::report::svg::escaped;
use barewire_scope::picture::{self, FIRST, Kept, SLOWEST, Wave};
use serde::Serialize;

use super::{Content, EDGES_MAX, charts, wave};
use crate::shared::failure::Failure;
use crate::shared::text::figure;

/// Kinds with histograms.
const KINDS: usize = 24;

const SCRIPT: &str = include_str!("page.js");

const STYLE: &str = "\
.bar{display:flex;flex-wrap:wrap;gap:8px;align-items:center;margin:10px 0}\
.bar select{max-width:560px}.bar button,.bar select{font:inherit;font-size:13px;padding:3px 9px;color:var(--ink);background:var(--soft);\
border:1px solid var(--rule);border-radius:4px}#said{font-size:13px;color:var(--dim);font-variant-numeric:tabular-nums}\
#wave .chart{touch-action:none;cursor:crosshair}#timeline rect{cursor:pointer}.hists{display:grid;grid-template-columns:repeat(auto-fill,minmax(320px,1fr));gap:14px 24px}.frame{fill:none;stroke:var(--dim)}\
pre{font-size:12px;overflow-x:auto;background:var(--soft);padding:12px;line-height:1.4}\n";

/// A message for the script. Times are in nanoseconds from the message's beginning.
#[derive(Serialize)]
struct MessageData {
    nth: u64,
    name: String,
    start_ns: f64,
    why: Vec<&'static str>,
    lines: Vec<LineData>,
    from: f64,
    to: f64,
    words: Vec<(f64, f64)>,
    shortened: bool,
}

/// A wire: its level at the beginning, when it changes, and the words below it.
#[derive(Serialize)]
struct LineData {
    name: String,
    high: bool,
    edges: Vec<f64>,
    words: Vec<String>,
}

fn message(content: &Content<'_>, kept: &Kept, wave: &Wave) -> MessageData {
    let Content { subject, summary, gathered, .. } = content;
    let own = &kept.message;
    let ns = |at: u64| picture::ns_from(subject.tick, own.start, at);
    let digits = usize::from(subject.wires.word_bits).div_ceil(4);
    let line = |line: picture::Line| {
        let high = |levels: u64| levels >> line.bit & 1 == 1;
        let pairs =
            wave.edges.windows(2).filter(|pair| high(pair[0].levels) != high(pair[1].levels));
        let words: &[u32] = match line.words {
            (true, _) => &own.mosi,
            (_, true) => &own.miso,
            _ => &[],
        };
        LineData {
            high: high(wave.edges[0].levels),
            edges: pairs.map(|pair| ns(pair[1].at)).collect(),
            words: words
                .iter()
                .take(wave.words.len())
                .map(|word| format!("{word:0digits$x}"))
                .collect(),
            name: line.name,
        }
    };
    let lines = picture::lines(subject.wires, subject.channels, own.select);
    MessageData {
        nth: kept.nth,
        name: subject.name(kept, &summary.kinds),
        start_ns: subject.tick.ns(own.start),
        why: gathered.why(kept.nth),
        lines: lines.into_iter().map(line).collect(),
        from: ns(wave.from),
        to: ns(wave.to),
        words: wave.words.iter().map(|&(begin, end)| (ns(begin), ns(end))).collect(),
        shortened: wave.shortened,
    }
}

/// The page.
pub(in super::super) fn page(content: &Content<'_>) -> Result<String, Failure> {
    let Content { subject, summary, gathered, kept, waves, table } = content;
    let file = escaped(&subject.file);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>barewire scope: {file}</title>\
         <link rel=\"icon\" href=\"data:,\"><style>{}{}{}{STYLE}</style></head><body>\n\
         <header><h1>{file}</h1><p>{}, {}.</p></header>\n",
        style::COLOURS,
        style::CHARTS,
        style::PAGE,
        figure::time(subject.tick.ns(summary.duration)),
        figure::counted(summary.messages, "message")
    );
    let (count, whole) = (kept.len() as u64, gathered.count());
    let said = if count == whole {
        format!("All {}.", figure::counted(whole, "message"))
    } else {
        format!(
            "{} of {}: the first {FIRST}, the {SLOWEST} that lasted longest, and an evenly spaced sample.",
            figure::grouped(count),
            figure::counted(whole, "message")
        )
    };
    let _ = writeln!(
        html,
        "<h2 id=\"waveforms\">Waveforms</h2>\n<p>{said} A message has its first {} changes of levels at most. Wheel or +/− zoom, \
         dragging or the arrow keys move, a double click or 0 shows all; a click sets a mark to measure from.</p>",
        figure::grouped(EDGES_MAX as u64)
    );
    html += "<div class=\"bar\"><button id=\"before\">‹</button><select id=\"pick\" aria-label=\"message\"></select>\
             <button id=\"after\">›</button><button id=\"in\">+</button><button id=\"out\">−</button>\
             <button id=\"all\">all</button><span id=\"said\"></span></div>\n<figure id=\"wave\" tabindex=\"0\">";
    if let (Some(first), Some(drawn)) = (kept.first(), waves.first()) {
        html += &wave::inline(subject, drawn, &subject.name(first, &summary.kinds));
    }
    html += "</figure>\n<h2 id=\"time\">Over the time</h2>\n";
    let (_, stride) = gathered.points();
    let each = match stride {
        1 => "A point is a message".to_owned(),
        stride => {
            format!("Thinned out: a point is the slowest of {stride} messages one after the other")
        }
    };
    let _ = writeln!(
        html,
        "<p>{each}; a click shows the waveform of the nearest one that is kept.</p>"
    );
    let _ = writeln!(
        html,
        "<figure>{}</figure>\n<figure>{}</figure>",
        charts::timeline(content),
        charts::use_of_bus(content)
    );
    html += "<h2 id=\"kinds\">Kinds</h2>\n<p>Dashed: p50 and p99. Wide ranges have logarithmic scales.</p>\n";
    for (place, kind) in summary.kinds.iter().enumerate().take(KINDS) {
        let name = escaped(&format!("{}{}", subject.select(kind.select), kind.name));
        let messages = figure::counted(kind.count, "message");
        let _ = writeln!(
            html,
            "<h3><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect class=\"f{}\" width=\"12\" height=\"12\"/></svg> {name}: \
             {messages}</h3>\n<div class=\"hists\">{}</div>",
            charts::colour(Some(place)),
            charts::histograms(kind, place, subject.tick)
        );
    }
    if summary.kinds.len() > KINDS {
        let _ = writeln!(
            html,
            "<p>The other {} are in the table.</p>",
            figure::counted((summary.kinds.len() - KINDS) as u64, "kind")
        );
    }
    let data: Vec<_> =
        kept.iter().zip(*waves).map(|(kept, wave)| message(content, kept, wave)).collect();
    let data = serde_json::to_string(&data)
        .map_err(|error| Failure::Failed(format!("cannot make JSON of the waveforms: {error}")))?;
    let _ = writeln!(
        html,
        "<h2 id=\"table\">All figures</h2>\n<pre>{}</pre>\n<script type=\"application/json\" id=\"data\">{}</script>\n\
         <script>{SCRIPT}</script></body></html>",
        escaped(table),
        // A name of a channel may not end the script.
        data.replace('<', "\\u003c")
    );
    Ok(html)
}
