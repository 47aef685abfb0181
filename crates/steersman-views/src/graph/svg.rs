//! The picture as SVG: one file without scripts, external fonts or links, readable on light and dark pages.

use super::{
    Area, Cluster, Edge, Graph, INNER, Is, Kind, LINE, Layout, Line, Mark, Node, PAD, SMALL, Shape,
    TITLE, WORD, What, width,
};
use crate::words::{fold, turns};
use std::fmt::Write as _;

/// The first line, by which the program recognises its own files.
pub const MARK: &str = "<!-- drawn by `steersman graph` -->";

/// Returns the text of the file.
pub fn text(graph: &Graph) -> String {
    let layout = Layout::of(graph);
    let mut head = fold(graph.about.as_deref().unwrap_or_default(), 90);
    head.extend(fold(graph.stands.as_deref().unwrap_or_default(), 90));
    let wide = head
        .iter()
        .map(|row| width(row, SMALL))
        .fold(width(&graph.name, TITLE * 1.2), f64::max);
    let top = 34.0 + LINE * head.len() as f64;
    let (w, h) = (
        layout.size().0.max(wide) + 2.0 * INNER,
        layout.size().1 + top + 2.0 * INNER,
    );
    let mut out = format!(
        "{MARK}\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" viewBox=\"0 0 {w:.0} {h:.0}\" \
         role=\"img\">\n<title>{}</title>\n{STYLE}\n",
        escaped(&graph.name)
    );
    let _ = writeln!(
        out,
        "<text class=\"name\" x=\"{INNER}\" y=\"28\">{}</text>",
        escaped(&graph.name)
    );
    for (k, row) in head.iter().enumerate() {
        let y = 28.0 + LINE * (k as f64 + 1.0) + 2.0;
        let _ = writeln!(
            out,
            "<text class=\"about\" x=\"{INNER}\" y=\"{y:.1}\">{}</text>",
            escaped(row)
        );
    }
    let left = INNER + (w - 2.0 * INNER - layout.size().0).max(0.0) / 2.0;
    for shape in layout.shapes(left, top + INNER) {
        match &shape {
            Shape::Route { edge, points } => arrow(&graph.edges[*edge], points, &mut out),
            Shape::Node {
                node,
                area,
                note,
                facts,
                mark,
            } => draw_node(&graph.nodes[*node], *area, (note, facts, mark), &mut out),
            Shape::Frame {
                cluster,
                area,
                facts,
            } => frame(&graph.clusters[*cluster], *area, facts, &mut out),
            Shape::Label {
                area, middle, rows, ..
            } => draw_label(*area, *middle, rows, &mut out),
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Colours. Lines and titles have medium tones, so that they can be read wherever the picture is shown; boxes are dark if the page asks
/// for dark colours.
const STYLE: &str = "<style>
text { font: 11px ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #1f2937; }
.name { font: bold 17px ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif; fill: #7c8796; }
.about { fill: #7c8796; }
.title { font: bold 13px ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif; }
.head { font: bold 13px ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif; fill: #7c8796; }
.word { fill: #6b7280; }
.out { fill: #7c8796; }
.mark { font-weight: bold; fill: #166534; }
.cluster { fill: #8b95a5; fill-opacity: .10; stroke: #8b95a5; }
.box { fill: #f8fafc; stroke: #64748b; }
.you, .event { fill: #e0f2fe; stroke: #0369a1; }
.router { fill: #fef3c7; stroke: #b45309; }
.person { fill: #fce7f3; stroke: #be185d; }
.task, .state { fill: #ede9fe; stroke: #6d28d9; }
.plain { fill: #f1f5f9; stroke: #64748b; stroke-dasharray: 5 3; }
.dot { fill: #8b95a5; stroke: #8b95a5; }
.end { fill: none; stroke: #8b95a5; stroke-width: 2; }
.over { stroke: #475569; stroke-width: 2.5; }
.goal { stroke: #b45309; stroke-width: 2.5; stroke-dasharray: 6 3; }
.here, .acts { stroke: #15803d; stroke-width: 3.5; }
.waits { stroke: #b45309; stroke-width: 3.5; }
.way { fill: none; stroke: #8b95a5; stroke-width: 1.4; }
.calls { stroke-dasharray: 5 4; }
.first { stroke-width: 2.2; stroke-dasharray: 1 4; stroke-linecap: round; }
.else { stroke: #dc6b6b; stroke-dasharray: 8 3 2 3; }
.taken { stroke: #22a05a; stroke-width: 2.4; }
.tip { fill: #8b95a5; }
.tip.else { fill: #dc6b6b; }
.tip.taken { fill: #22a05a; }
.label { fill: #f8fafc; stroke: #cbd5e1; stroke-width: .6; }
@media (prefers-color-scheme: dark) {
text { fill: #e2e8f0; }
.name, .about, .head, .out { fill: #94a0b0; }
.word { fill: #a8b3c2; }
.mark { fill: #6fcf97; }
.box { fill: #232a35; stroke: #8291a7; }
.you, .event { fill: #0d2c3e; stroke: #3fa3d8; }
.router { fill: #38290b; stroke: #d6982e; }
.person { fill: #3a162a; stroke: #e36a9f; }
.task, .state { fill: #2a2149; stroke: #a48cef; }
.plain { fill: #1c222c; stroke: #8291a7; }
.over { stroke: #a3b0c2; }
.goal, .waits { stroke: #e0a440; }
.here, .acts { stroke: #4cc47c; }
.label { fill: #1c222c; stroke: #475569; }
}
</style>";

/// Draws the frame of a cluster.
fn frame(cluster: &Cluster, area: Area, facts: &[Line], out: &mut String) {
    let Area { x, y, w, h } = area;
    let marked = marked(&cluster.mark);
    let _ = writeln!(
        out,
        "<rect class=\"cluster{marked}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"10\"/>"
    );
    let after = x + PAD + width(&cluster.name, TITLE) + 10.0;
    let _ = writeln!(
        out,
        "<text class=\"head\" x=\"{:.1}\" y=\"{:.1}\">{}</text><text class=\"out\" x=\"{after:.1}\" y=\"{:.1}\">{}</text>",
        x + PAD,
        y + 19.0,
        escaped(&cluster.name),
        y + 19.0,
        escaped(&cluster.by)
    );
    let mut line = y + 19.0;
    for fact in facts {
        line += LINE;
        fact_row(fact, (x + PAD, line), Ground::Frame, out);
    }
    if !cluster.mark.text.is_empty() {
        line += LINE;
        let _ = writeln!(
            out,
            "<text class=\"mark\" style=\"fill:#22a05a\" x=\"{:.1}\" y=\"{line:.1}\">{}</text>",
            x + PAD,
            escaped(&cluster.mark.text)
        );
    }
}

// ---- boxes ---------------------------------------------------------------------------------------------------

fn draw_node(
    node: &Node,
    Area { x, y, w, h }: Area,
    (notes, facts, marks): (&[String], &[Line], &[String]),
    out: &mut String,
) {
    let marked = marked(&node.mark);
    let shape = match node.what {
        What::Begin => {
            let _ = writeln!(
                out,
                "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\"/>",
                x + w / 2.0,
                y + h / 2.0
            );
            return;
        }
        What::End => {
            let (cx, cy) = (x + w / 2.0, y + h / 2.0);
            let _ = writeln!(
                out,
                "<circle class=\"end{marked}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"9\"/><circle class=\"dot\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4.5\"/>"
            );
            return;
        }
        What::Router => {
            let (cut, mid) = (13.0, y + h / 2.0);
            format!(
                "<polygon class=\"router{marked}\" points=\"{x:.1},{mid:.1} {:.1},{y:.1} {:.1},{y:.1} {:.1},{mid:.1} {:.1},{:.1} {:.1},{:.1}\"/>",
                x + cut,
                x + w - cut,
                x + w,
                x + w - cut,
                y + h,
                x + cut,
                y + h
            )
        }
        what => {
            let (class, round) = match what {
                What::You => ("you", 14.0),
                What::Event => ("event", 2.0),
                What::Person => ("person", h / 2.0),
                What::State => ("state", 5.0),
                What::Task | What::Mode => ("task", 5.0),
                What::Plain | What::Again => ("plain", 5.0),
                _ => ("box", 9.0),
            };
            let round = round.min(18.0);
            format!(
                "<rect class=\"{class}{marked}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"{round:.1}\"/>"
            )
        }
    };
    let _ = writeln!(out, "{shape}");
    let middle = x + w / 2.0;
    let mut line = y + 18.0;
    let _ = writeln!(
        out,
        "<text class=\"title\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{line:.1}\">{}</text>",
        escaped(&node.name)
    );
    for note in notes {
        line += LINE;
        let _ = writeln!(
            out,
            "<text class=\"word\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{line:.1}\">{}</text>",
            escaped(note)
        );
    }
    if !facts.is_empty() {
        line += 5.0;
    }
    for fact in facts {
        line += LINE;
        fact_row(fact, (x + PAD, line), Ground::Box, out);
    }
    for mark in marks {
        line += LINE;
        let _ = writeln!(
            out,
            "<text class=\"mark\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{line:.1}\">{}</text>",
            escaped(mark)
        );
    }
}

/// The ground of a row, which decides its colours.
#[derive(Copy, Clone)]
enum Ground {
    Box,
    Frame,
}

/// Draws the row of a fact: its word, then its text. Leading spaces of the word indent it.
fn fact_row(Line { word, text }: &Line, (x, y): (f64, f64), ground: Ground, out: &mut String) {
    let at = x + WORD as f64 * SMALL;
    let (grey, class) = match ground {
        Ground::Box => ("word", ""),
        Ground::Frame => ("out", " class=\"out\""),
    };
    let x = x + (word.len() - word.trim_start().len()) as f64 * SMALL;
    if !word.is_empty() {
        let word = word.trim_start();
        let _ = write!(
            out,
            "<text class=\"{grey}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escaped(word)
        );
    }
    let _ = writeln!(
        out,
        "<text{class} x=\"{at:.1}\" y=\"{y:.1}\">{}</text>",
        escaped(text)
    );
}

fn marked(mark: &Mark) -> &'static str {
    match mark.is {
        None => "",
        Some(Is::Over) => " over",
        Some(Is::Goal) => " goal",
        Some(Is::Here) => " here",
        Some(Is::Waits) => " waits",
        Some(Is::Acts) => " acts",
    }
}

// ---- arrows --------------------------------------------------------------------------------------------------

fn draw_label(Area { x, y, w, h }: Area, middle: f64, rows: &[String], out: &mut String) {
    let _ = writeln!(
        out,
        "<rect class=\"label\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"3\"/>"
    );
    for (k, row) in rows.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>",
            y + LINE * (k as f64 + 1.0) - 2.0,
            escaped(row)
        );
    }
}

fn arrow(edge: &Edge, points: &[(f64, f64)], out: &mut String) {
    let kind = match edge.kind {
        Kind::Leads => "",
        Kind::Calls => " calls",
        Kind::First => " first",
        Kind::Else => " else",
    };
    let taken = if edge.times.is_some_and(|times| times > 0) {
        " taken"
    } else {
        ""
    };
    let (Some(first), Some(&tip)) = (points.first(), points.last()) else {
        return;
    };
    let mut way = format!("M{:.1},{:.1}", first.0, first.1);
    for pair in points.windows(2) {
        let ((ax, ay), (bx, by)) = (pair[0], pair[1]);
        if (ax - bx).abs() < 0.1 || (ay - by).abs() < 0.1 {
            let _ = write!(way, " L{bx:.1},{by:.1}");
        } else {
            let middle = f64::midpoint(ay, by);
            let _ = write!(
                way,
                " C{ax:.1},{middle:.1} {bx:.1},{middle:.1} {bx:.1},{by:.1}"
            );
        }
    }
    let _ = writeln!(out, "<path class=\"way{kind}{taken}\" d=\"{way}\"/>");
    let before = points
        .iter()
        .rev()
        .find(|p| (p.0 - tip.0).abs() + (p.1 - tip.1).abs() > 0.5);
    let (dx, dy) = before.map_or((0.0, 1.0), |p| (tip.0 - p.0, tip.1 - p.1));
    // The tip points straight: from above, from below, or from the side.
    let (dx, dy) = if dy.abs() > 0.5 {
        (0.0, dy.signum())
    } else {
        (dx.signum(), 0.0)
    };
    let (ax, ay) = (tip.0 - dx * 8.0, tip.1 - dy * 8.0);
    let _ = writeln!(
        out,
        "<polygon class=\"tip{kind}{taken}\" points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\"/>",
        tip.0,
        tip.1,
        ax + dy * 4.0,
        ay + dx * 4.0,
        ax - dy * 4.0,
        ay - dx * 4.0
    );
}

/// Escapes a text for an element.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\t' => out.push(' '),
            // XML does not allow these characters, or viewers do not show them.
            c if c.is_control() || turns(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
