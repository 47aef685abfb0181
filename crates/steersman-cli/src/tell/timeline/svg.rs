//! The timeline as SVG: one file without scripts, external fonts or links, readable on light and dark pages.

use crate::words::length;
use std::fmt::Write as _;
use steersman::views::graph::{SMALL, svg::escaped, width};
use steersman::views::timeline::{Axis, Lane, Span, Stretch, Timeline, What};

/// The first line, by which this program recognises its own files.
pub(crate) const MARK: &str = "<!-- drawn by `steersman timeline` -->";

/// Margin around the picture.
const EDGE: f64 = 18.0;
/// Width of the lanes.
const WIDE: f64 = 860.0;
/// Height of a lane.
const LANE: f64 = 28.0;
/// Height of a bar.
const BAR: f64 = 18.0;
/// Indentation of a lane below that of the agent above it.
const STEP: f64 = 12.0;
/// Widest name.
const NAME: f64 = 240.0;
/// Width of the sums at the right.
const SUMS: f64 = 190.0;
/// Top of the first lane.
const TOP: f64 = 96.0;
/// Number of marks of the scale.
const MARKS: usize = 6;
/// Width of a character of a lane's name.
const BOLD: f64 = 7.4;
/// Narrowest visible bar.
const LEAST: f64 = 1.5;

/// Returns the text of the file. `name` and `about` stand above the lanes.
pub(crate) fn text(timeline: &Timeline, axis: &Axis, name: &str, about: &str) -> String {
    let names = timeline.lanes.iter();
    let names = names.map(|lane| width(&lane.title(), BOLD) + STEP * lane.depth as f64);
    let left = EDGE + names.fold(40.0, f64::max).min(NAME) + 12.0;
    let w = left + WIDE + SUMS + EDGE;
    let bottom = TOP + LANE * timeline.lanes.len() as f64;
    let h = bottom + 46.0;
    let mut out = format!(
        "{MARK}\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" viewBox=\"0 0 {w:.0} {h:.0}\" \
         role=\"img\">\n<title>{}</title>\n{STYLE}\n{HATCH}\n",
        escaped(name)
    );
    let _ = writeln!(
        out,
        "<text class=\"name\" x=\"{EDGE}\" y=\"28\">{}</text><text class=\"about\" x=\"{EDGE}\" y=\"46\">{}</text>",
        escaped(name),
        escaped(about)
    );
    for stretch in axis.stretches.iter().filter(|stretch| stretch.shortened) {
        shortened(stretch, left, bottom, &mut out);
    }
    scale(timeline, axis, (left, bottom), &mut out);
    for (k, lane) in timeline.lanes.iter().enumerate() {
        let y = TOP + LANE * k as f64;
        draw_lane(lane, axis, (left, y), &mut out);
    }
    legend(left, bottom + 26.0, &mut out);
    out.push_str("</svg>\n");
    out
}

/// Colours that are readable on white and on black: bars have medium tones, texts on them are white.
const STYLE: &str = "<style>
text { font: 11px ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #7c8796; }
.name { font: bold 17px ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif; }
.lane { font-weight: bold; }
.on { fill: #ffffff; }
.on.dark { fill: #1f2937; }
.row { fill: #8b95a5; fill-opacity: .08; }
.mark { stroke: #8b95a5; stroke-opacity: .35; stroke-width: 1; }
.short { fill: #8b95a5; fill-opacity: .12; }
.model { fill: #2563c9; }
.tool { fill: #15803d; }
.agent { fill: #8b95a5; fill-opacity: .45; }
.wait { fill: url(#wait); stroke: #b7791f; stroke-width: .8; }
.failed { fill: #c53030; }
.unowned { fill: #7c8796; fill-opacity: .35; stroke: #c53030; stroke-width: .8; stroke-dasharray: 2 2; }
.open { stroke: #7c8796; stroke-width: 1; stroke-dasharray: 3 2; }
</style>";

/// The pattern of waits.
const HATCH: &str = "<defs><pattern id=\"wait\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#f6d998\"/><rect width=\"2\" height=\"6\" fill=\"#e3b04b\"/></pattern></defs>";

fn x_of(left: f64, place: f64) -> f64 {
    left + WIDE * place
}

/// Draws the scale: the time since the beginning.
fn scale(timeline: &Timeline, axis: &Axis, (left, bottom): (f64, f64), out: &mut String) {
    let mut free = 0.0;
    let mut told = String::new();
    for mark in 0..=MARKS {
        let place = mark as f64 / MARKS as f64;
        let x = x_of(left, place);
        let text = length(timeline.begins.until(axis.moment(place)));
        let wide = width(&text, SMALL);
        let (anchor, from) = match mark {
            0 => ("start", x),
            MARKS => ("end", x - wide),
            _ => ("middle", x - wide / 2.0),
        };
        let _ = writeln!(
            out,
            "<line class=\"mark\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>",
            TOP - 8.0
        );
        // Rounded as they are, two marks can be equal.
        if from >= free && text != told {
            let _ = writeln!(
                out,
                "<text text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>",
                TOP - 13.0
            );
            free = from + wide + 8.0;
        }
        told = text;
    }
    for (k, what) in [What::Model, What::Tool, What::Wait].iter().enumerate() {
        let x = sum_at(left, k);
        let _ = writeln!(
            out,
            "<text text-anchor=\"end\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            TOP - 13.0,
            what.word()
        );
    }
}

/// Returns the right edge of a column of sums.
fn sum_at(left: f64, column: usize) -> f64 {
    left + WIDE + 62.0 * (column as f64 + 1.0)
}

/// Draws the ground of a stretch that is shortened, with its length above.
fn shortened(stretch: &Stretch, left: f64, bottom: f64, out: &mut String) {
    let (from, to) = (x_of(left, stretch.left), x_of(left, stretch.right));
    let text = format!("// {}", length(stretch.from.until(stretch.to)));
    let _ = writeln!(
        out,
        "<rect class=\"short\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>shortened: {}</title></rect>",
        TOP - 8.0,
        (to - from).max(LEAST),
        bottom - TOP + 8.0,
        &text[3..],
    );
    if width(&text, SMALL) <= to - from {
        let _ = writeln!(
            out,
            "<text text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
            f64::midpoint(from, to),
            TOP - 28.0
        );
    }
}

fn draw_lane(lane: &Lane, axis: &Axis, (left, y): (f64, f64), out: &mut String) {
    let middle = y + LANE / 2.0 + 4.0;
    let at = EDGE + STEP * lane.depth as f64;
    let title = cut(&lane.title(), left - 8.0 - at, BOLD);
    let _ = writeln!(
        out,
        "<text class=\"lane\" x=\"{at:.1}\" y=\"{middle:.1}\">{}</text>\
         <rect class=\"row\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{WIDE:.1}\" height=\"{:.1}\" rx=\"3\"/>",
        escaped(&title),
        y + 3.0,
        LANE - 6.0
    );
    // A span that stands for others is drawn below them.
    let order = [
        What::Agent,
        What::Wait,
        What::Unowned,
        What::Model,
        What::Tool,
    ];
    for what in order {
        for span in lane.spans.iter().filter(|span| span.what == what) {
            draw_span(span, axis, (left, y), out);
        }
    }
    for (k, what) in [What::Model, What::Tool, What::Wait]
        .into_iter()
        .enumerate()
    {
        let sum = lane.sum(what);
        if sum > 0 {
            let _ = writeln!(
                out,
                "<text text-anchor=\"end\" x=\"{:.1}\" y=\"{middle:.1}\">{}</text>",
                sum_at(left, k),
                length(sum)
            );
        }
    }
}

fn draw_span(span: &Span, axis: &Axis, (left, y): (f64, f64), out: &mut String) {
    let (from, to) = (axis.place(span.from), axis.place(span.to));
    let (x, w) = (x_of(left, from), (WIDE * (to - from)).max(LEAST));
    let high = if span.what == What::Agent { 6.0 } else { BAR };
    let top = y + (LANE - high) / 2.0;
    let class = if span.failed {
        "failed"
    } else {
        span.what.word()
    };
    let open = if span.open { " open" } else { "" };
    let end = if span.open { ", goes on" } else { "" };
    let failed = if span.failed { ", failed" } else { "" };
    let _ = writeln!(
        out,
        "<rect class=\"{class}{open}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{w:.1}\" height=\"{high:.1}\" rx=\"2\"><title>{} {}, {}{failed}{end}, @{}</title></rect>",
        span.what.word(),
        escaped(&span.name),
        length(span.millis()),
        span.line
    );
    let room = w - 8.0;
    let name = span.name.rsplit('/').next().unwrap_or_default();
    let text = cut(name, room, SMALL);
    if high == BAR && !text.is_empty() {
        let dark = if span.what == What::Wait && !span.failed {
            " dark"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "<text class=\"on{dark}\" pointer-events=\"none\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 4.0,
            top + 13.0,
            escaped(&text)
        );
    }
}

/// Returns the beginning of a text that has room, with characters of this width; nothing if that says too little.
fn cut(text: &str, room: f64, each: f64) -> String {
    if width(text, each) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if width(&kept, each) + each > room {
            kept.pop();
            break;
        }
    }
    if kept.chars().count() < 4 {
        return String::new();
    }
    kept.push('\u{2026}');
    kept
}

fn legend(left: f64, y: f64, out: &mut String) {
    let entries = [
        ("model", "model"),
        ("tool", "tool"),
        ("agent", "agent that it called"),
        ("wait", "wait"),
        ("failed", "failed"),
        ("unowned", "no process drove it"),
        ("short", "// time that is shortened"),
    ];
    let mut x = left;
    for (class, text) in entries {
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"10\" rx=\"2\"/><text x=\"{:.1}\" y=\"{y:.1}\">{text}</text>",
            y - 9.0,
            x + 19.0
        );
        x += 19.0 + width(text, SMALL) + 22.0;
    }
}
