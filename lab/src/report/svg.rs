//! A drawing in the making: rectangles, lines and text as SVG.
//!
//! *Read first*: SVG 1.1 (Second Edition), chapters 9 and 10. Colours are classes of [`super::style`], so that one
//! drawing serves light and dark.

use std::fmt::Write as _;

use super::style;

/// The point of a text that its position names.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// The drawing.
#[derive(Debug)]
pub struct Svg {
    id: String,
    label: String,
    width: f64,
    body: String,
}

impl Svg {
    /// An empty one. `label` is what a screen reader says of it.
    #[must_use]
    pub fn new(id: &str, label: &str, width: f64) -> Self {
        Self { id: id.into(), label: label.into(), width, body: String::new() }
    }

    /// A rectangle; `title` is shown when the pointer is on it.
    pub fn rect(&mut self, [x, y, width, height]: [f64; 4], class: &str, title: &str) {
        let (class, title) = (escaped(class), escaped(title));
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\">\
             <title>{title}</title></rect>",
            width.max(0.0)
        );
    }

    /// A line.
    pub fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], class: &str) {
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// A line from `low` to `high` with an end at each, at the height `y`. One that is narrower than the lines at its ends
    /// would look like a mark of its own, and is left out.
    pub fn whisker(&mut self, low: f64, high: f64, y: f64) {
        if high - low < 1.0 {
            return;
        }
        self.line([low, y, high, y], "whisker");
        self.line([low, y - 2.5, low, y + 2.5], "whisker");
        self.line([high, y - 2.5, high, y + 2.5], "whisker");
    }

    /// A line through points.
    pub fn polyline(&mut self, points: &[(f64, f64)], class: &str, title: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (points, title) = (points.join(" "), escaped(title));
        let _ = write!(
            self.body,
            "<polyline class=\"{class}\" points=\"{points}\"><title>{title}</title></polyline>"
        );
    }

    /// Text on the base line `y`.
    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        let (anchor, text) = (anchor.name(), escaped(text));
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// The drawing, `height` high, to stand in a page that has [`style::CHARTS`].
    #[must_use]
    pub fn inline(self, height: f64) -> String {
        self.with(height, 0.0, "")
    }

    /// The drawing as a file of its own, with a margin.
    #[must_use]
    pub fn file(self, height: f64) -> String {
        let style = format!("<style>{}{}</style>", style::COLOURS, style::CHARTS);
        let paper = "<rect class=\"paper\" x=\"-16\" y=\"-16\" width=\"100%\" height=\"100%\"/>";
        self.with(height, 16.0, &(style + paper)) + "\n"
    }

    fn with(self, height: f64, margin: f64, head: &str) -> String {
        let Self { id, label, width, body } = self;
        let (id, label) = (escaped(&id), escaped(&label));
        let (width, height) = (width + 2.0 * margin, height.ceil() + 2.0 * margin);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" id=\"{id}\" role=\"img\" \
             aria-label=\"{label}\" viewBox=\"{0} {0} {width} {height}\" width=\"{width}\" \
             height=\"{height}\">{head}{body}</svg>",
            -margin
        )
    }
}

/// Text escaped so that it is no markup, not even in an attribute.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            // XML has no way to write these.
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                escaped.push('\u{fffd}');
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// The size of text of the class `head`, which is 12 pixels and half bold: as wide as this without.
pub const HEAD: f64 = 14.0;

/// How wide text of `size` is at most, in the unit of `size`. The reader's font is not known here: this assumes DejaVu Sans,
/// which is wider than other fonts of user interfaces (its advance widths, rounded up).
#[must_use]
pub fn width_of(text: &str, size: f64) -> f64 {
    text.chars().map(share_of_size).sum::<f64>() * size
}

fn share_of_size(character: char) -> f64 {
    match character {
        ' ' | 'i' | 'j' | 'l' | 'I' | 'J' | '.' | ',' | ':' | ';' | '\'' | '’' | '|' | '/' => {
            0.34
        }
        '!' | '(' | ')' | '[' | ']' | '-' | 'f' | 't' | 'r' => 0.41,
        'c' | 's' | 'z' | '?' | '–' | '†' | '*' | '_' | '"' | '“' | '”' => 0.55,
        'm' | 'M' | 'W' | '%' | '@' => 1.0,
        'w' | '+' | '=' | '<' | '>' | '−' | '×' | '~' | '^' | '#' => 0.84,
        'a'..='z' | '0'..='9' | '$' | '{' | '}' | 'µ' => 0.64,
        'A'..='Z' | '&' => 0.79,
        _ => 1.0,
    }
}

/// Text cut to a width, with an ellipsis.
#[must_use]
pub fn fitted(text: &str, width: f64, size: f64) -> String {
    if width_of(text, size) <= width {
        return text.into();
    }
    let mut free = width - width_of("…", size);
    let fits = |character: &char| {
        free -= share_of_size(*character) * size;
        free >= 0.0
    };
    text.chars().take_while(fits).collect::<String>() + "…"
}
