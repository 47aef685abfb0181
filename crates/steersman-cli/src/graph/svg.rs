//! The picture as SVG: one file without scripts, external fonts or links, readable on light and dark pages. Each cluster is
//! laid out separately, and is then one box in the cluster around it.

use super::layout::{self, Arrow, Laid, Plan};
use super::{At, Cluster, Edge, Fact, Graph, Is, Kind, Mark, Node, What};
use crate::words::{fold, turns};
use std::fmt::Write as _;

/// The first line, by which this command recognises its own files.
pub(crate) const MARK: &str = "<!-- drawn by `steersman graph` -->";

/// Maximum number of characters of a line in a box, and of a line of a label. Longer text is wrapped.
const ROOM: usize = 46;
const LABEL: usize = 28;
/// Widths of characters at the font sizes used. Narrower fonts leave a little more room.
const TITLE: f64 = 8.6;
const SMALL: f64 = 6.7;
/// Height of a line, and padding inside of a border.
const LINE: f64 = 15.0;
const PAD: f64 = 10.0;
/// Padding inside of a cluster.
const INNER: f64 = 18.0;
/// Width of the word before a fact, in characters.
const WORD: usize = 12;

/// Returns the text of the file.
pub(crate) fn text(graph: &Graph) -> String {
    let whole = Sheet::of(graph, 0);
    let mut head = fold(graph.about.as_deref().unwrap_or_default(), 90);
    head.extend(fold(graph.stands.as_deref().unwrap_or_default(), 90));
    let wide = head
        .iter()
        .map(|row| width(row, SMALL))
        .fold(width(&graph.name, TITLE * 1.2), f64::max);
    let top = 34.0 + LINE * head.len() as f64;
    let (w, h) = (
        whole.laid.size.0.max(wide) + 2.0 * INNER,
        whole.laid.size.1 + top + 2.0 * INNER,
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
    whole.draw(
        graph,
        INNER + (w - 2.0 * INNER - whole.laid.size.0).max(0.0) / 2.0,
        top + INNER,
        &mut out,
    );
    out.push_str("</svg>\n");
    out
}

/// Colours that are readable on white and on black: boxes have their own background, lines and titles use medium tones.
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
</style>";

/// A cluster with its layout.
struct Sheet<'g> {
    cluster: &'g Cluster,
    laid: Laid,
    sizes: Vec<(f64, f64)>,
    /// The clusters in it, by index among its items.
    inner: Vec<Option<Sheet<'g>>>,
    edges: Vec<&'g Edge>,
}

impl<'g> Sheet<'g> {
    fn of(graph: &'g Graph, number: usize) -> Self {
        let cluster = &graph.clusters[number];
        let inner: Vec<Option<Self>> = cluster
            .items
            .iter()
            .map(|at| match at {
                At::Cluster(inner) => Some(Self::of(graph, *inner)),
                At::Node(_) => None,
            })
            .collect();
        let sizes: Vec<(f64, f64)> = cluster
            .items
            .iter()
            .zip(&inner)
            .map(|(at, sheet)| match (at, sheet) {
                (_, Some(sheet)) => sheet.size(),
                (At::Node(node), None) => size(&graph.nodes[*node]),
                (At::Cluster(_), None) => (0.0, 0.0),
            })
            .collect();
        let place = |at: At| cluster.items.iter().position(|item| *item == at);
        let mut edges = Vec::new();
        let mut arrows = Vec::new();
        for edge in &graph.edges {
            if let (Some(from), Some(to)) = (place(edge.from), place(edge.to)) {
                edges.push(edge);
                arrows.push(Arrow {
                    from,
                    to,
                    label: label_size(edge),
                });
            }
        }
        let laid = layout::lay(&Plan {
            boxes: sizes.clone(),
            arrows,
        });
        Self {
            cluster,
            laid,
            sizes,
            inner,
            edges,
        }
    }

    fn head(&self) -> f64 {
        let rows =
            rows(&self.cluster.facts).len() + usize::from(!self.cluster.mark.text.is_empty());
        24.0 + LINE * rows as f64 + INNER
    }

    fn size(&self) -> (f64, f64) {
        let title =
            width(&self.cluster.name, TITLE) + width(self.cluster.by, SMALL) + 2.0 * PAD + 12.0;
        let facts = rows(&self.cluster.facts)
            .iter()
            .map(|(_, text)| row_width(text))
            .fold(title, f64::max);
        let mark = width(&self.cluster.mark.text, SMALL + 0.3) + 2.0 * PAD;
        (
            (self.laid.size.0 + 2.0 * INNER).max(facts).max(mark),
            self.laid.size.1 + self.head() + INNER,
        )
    }

    fn draw(&self, graph: &Graph, x: f64, y: f64, out: &mut String) {
        // Arrows are drawn first, so that no line covers text; then boxes, then labels.
        for (edge, points) in self.edges.iter().zip(&self.laid.arrows) {
            arrow(edge, points, x, y, out);
        }
        for (k, at) in self.cluster.items.iter().enumerate() {
            let (bx, by) = (x + self.laid.boxes[k].0, y + self.laid.boxes[k].1);
            match (at, &self.inner[k]) {
                (At::Node(node), _) => draw_node(&graph.nodes[*node], bx, by, self.sizes[k], out),
                (At::Cluster(_), Some(sheet)) => sheet.frame(graph, bx, by, self.sizes[k], out),
                (At::Cluster(_), None) => {}
            }
        }
        for (edge, (lx, ly)) in self.edges.iter().zip(&self.laid.labels) {
            draw_label(edge, x + lx, y + ly, out);
        }
    }

    fn frame(&self, graph: &Graph, x: f64, y: f64, (w, h): (f64, f64), out: &mut String) {
        let marked = marked(&self.cluster.mark);
        let _ = writeln!(
            out,
            "<rect class=\"cluster{marked}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"10\"/>"
        );
        let after = x + PAD + width(&self.cluster.name, TITLE) + 10.0;
        let _ = writeln!(
            out,
            "<text class=\"head\" x=\"{:.1}\" y=\"{:.1}\">{}</text><text class=\"out\" x=\"{after:.1}\" y=\"{:.1}\">{}</text>",
            x + PAD,
            y + 19.0,
            escaped(&self.cluster.name),
            y + 19.0,
            escaped(self.cluster.by)
        );
        let mut line = y + 19.0;
        for (word, text) in rows(&self.cluster.facts) {
            line += LINE;
            fact_row(&word, &text, x + PAD, line, "out", out);
        }
        if !self.cluster.mark.text.is_empty() {
            line += LINE;
            let _ = writeln!(
                out,
                "<text class=\"mark\" style=\"fill:#22a05a\" x=\"{:.1}\" y=\"{line:.1}\">{}</text>",
                x + PAD,
                escaped(&self.cluster.mark.text)
            );
        }
        let left = x + (w - self.laid.size.0) / 2.0;
        self.draw(graph, left, y + self.head(), out);
    }
}

// ---- boxes ---------------------------------------------------------------------------------------------------

fn width(text: &str, each: f64) -> f64 {
    // A character that takes two columns in a terminal is counted twice here.
    let wide = |c: char| if u32::from(c) >= 0x1100 { 2.0 } else { 1.0 };
    text.chars().map(wide).sum::<f64>() * each
}

fn row_width(text: &str) -> f64 {
    width(text, SMALL) + WORD as f64 * SMALL + 2.0 * PAD
}

/// Splits facts into lines; only the first line of a fact has its word.
fn rows(facts: &[Fact]) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for fact in facts {
        for (k, text) in fold(&fact.text, ROOM).into_iter().enumerate() {
            let indent = if fact.of_tool { "  " } else { "" };
            let word = if k == 0 {
                format!("{indent}{}", fact.word)
            } else {
                String::new()
            };
            rows.push((word, text));
        }
    }
    rows
}

/// Returns the lines of the note below the name.
fn below(node: &Node) -> Vec<String> {
    fold(&node.note, ROOM)
}

fn size(node: &Node) -> (f64, f64) {
    match node.what {
        What::Begin => return (12.0, 12.0),
        What::End => return (22.0, 22.0),
        _ => {}
    }
    let notes = below(node);
    let facts = rows(&node.facts);
    let marks = marks(&node.mark);
    let narrow = notes.iter().map(|note| width(note, SMALL) + 2.0 * PAD);
    let marked = marks
        .iter()
        .map(|mark| width(mark, SMALL + 0.3) + 2.0 * PAD);
    let wide = facts.iter().map(|(_, text)| row_width(text));
    let title = width(&node.name, TITLE) + 2.0 * PAD;
    let widest = narrow
        .chain(marked)
        .chain(wide)
        .fold(title.max(60.0), f64::max);
    let count = notes.len() + facts.len() + marks.len();
    let gap = if facts.is_empty() { 0.0 } else { 5.0 };
    let extra = match node.what {
        // Room for the slanted sides.
        What::Router => 26.0,
        What::Person => 14.0,
        _ => 0.0,
    };
    (widest + extra, 26.0 + LINE * count as f64 + gap)
}

fn marks(mark: &Mark) -> Vec<String> {
    fold(&mark.text, ROOM)
        .into_iter()
        .filter(|row| !row.is_empty())
        .collect()
}

fn draw_node(node: &Node, x: f64, y: f64, (w, h): (f64, f64), out: &mut String) {
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
    for note in below(node) {
        line += LINE;
        let _ = writeln!(
            out,
            "<text class=\"word\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{line:.1}\">{}</text>",
            escaped(&note)
        );
    }
    if !node.facts.is_empty() {
        line += 5.0;
    }
    for (word, text) in rows(&node.facts) {
        line += LINE;
        fact_row(&word, &text, x + PAD, line, "", out);
    }
    for mark in marks(&node.mark) {
        line += LINE;
        let _ = writeln!(
            out,
            "<text class=\"mark\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{line:.1}\">{}</text>",
            escaped(&mark)
        );
    }
}

fn fact_row(word: &str, text: &str, x: f64, y: f64, class: &str, out: &mut String) {
    let at = x + WORD as f64 * SMALL;
    let grey = if class.is_empty() { "word" } else { class };
    let x = x + (word.len() - word.trim_start().len()) as f64 * SMALL;
    if !word.is_empty() {
        let word = word.trim_start();
        let _ = write!(
            out,
            "<text class=\"{grey}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escaped(word)
        );
    }
    let class = match class {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
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

fn label(edge: &Edge) -> Vec<String> {
    let told = Graph::told(edge);
    if told.is_empty() {
        Vec::new()
    } else {
        fold(&told, LABEL)
    }
}

fn label_size(edge: &Edge) -> (f64, f64) {
    let rows = label(edge);
    if rows.is_empty() {
        return (0.0, 0.0);
    }
    let wide = rows.iter().map(|row| width(row, SMALL)).fold(0.0, f64::max);
    (wide + 10.0, LINE * rows.len() as f64 + 4.0)
}

fn draw_label(edge: &Edge, x: f64, y: f64, out: &mut String) {
    let rows = label(edge);
    if rows.is_empty() {
        return;
    }
    let (w, h) = label_size(edge);
    let _ = writeln!(
        out,
        "<rect class=\"label\" x=\"{:.1}\" y=\"{:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"3\"/>",
        x - w / 2.0,
        y - h / 2.0
    );
    for (k, row) in rows.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            y - h / 2.0 + LINE * (k as f64 + 1.0) - 2.0,
            escaped(row)
        );
    }
}

fn arrow(edge: &Edge, points: &[(f64, f64)], x: f64, y: f64, out: &mut String) {
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
    let points: Vec<(f64, f64)> = points.iter().map(|(px, py)| (px + x, py + y)).collect();
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
fn escaped(text: &str) -> String {
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
