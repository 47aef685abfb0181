//! The picture for a terminal: an outline in which each box lists its arrows. ASCII, and never wider than the screen.

use crate::printer::{bold, cyan, dim, green, yellow};
use crate::words::fold;
use steersman::views::graph::{At, Cluster, Edge, Fact, Graph, Is, Kind, Mark, Node, What};

/// Width of the word before a fact.
const WORD: usize = 12;
/// Column of the note after a name, if the name leaves room.
const NOTE: usize = 26;

/// Minimum room for a text next to others.
const LEAST: usize = 20;

/// Returns the rows of the outline, for a layout of this width.
pub(crate) fn rows(graph: &Graph, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let about = graph
        .about
        .as_deref()
        .map_or_else(String::new, |about| format!(": {about}"));
    for (k, row) in fold(&format!("{}{about}", graph.name), width)
        .iter()
        .enumerate()
    {
        rows.push(if k == 0 { bold(row) } else { row.clone() });
    }
    if let Some(stands) = &graph.stands {
        rows.extend(fold(stands, width));
    }
    items(graph, &graph.clusters[0], ("", width), &mut rows);
    rows
}

/// The beginning of each row of a part, and the width of the layout.
type Within<'a> = (&'a str, usize);

fn items(graph: &Graph, cluster: &Cluster, within: Within<'_>, rows: &mut Vec<String>) {
    let (margin, width) = within;
    for at in &cluster.items {
        let drawn = match at {
            At::Node(node) => &graph.nodes[*node],
            At::Cluster(inner) => {
                rows.push(margin.trim_end().to_owned());
                let inner = &graph.clusters[*inner];
                head(within, &inner.name, &inner.by, &inner.mark, rows);
                facts(within, &inner.facts, rows);
                arrows(graph, *at, within, rows);
                items(graph, inner, (&format!("{margin}| "), width), rows);
                continue;
            }
        };
        // The arrows that lead to the end show it.
        if drawn.what == What::End {
            continue;
        }
        rows.push(margin.trim_end().to_owned());
        node(graph, *at, drawn, within, rows);
    }
}

fn node(graph: &Graph, at: At, node: &Node, within: Within<'_>, rows: &mut Vec<String>) {
    head(within, &node.name, &node.note, &node.mark, rows);
    facts(within, &node.facts, rows);
    arrows(graph, at, within, rows);
}

fn head(within: Within<'_>, name: &str, note: &str, mark: &Mark, rows: &mut Vec<String>) {
    let (margin, width) = within;
    let sign = sign(mark);
    let used = margin.len() + sign.len();
    let left = format!("{sign}{name}");
    let pad = NOTE
        .saturating_sub(left.chars().count() + margin.len())
        .max(2);
    let note = match (note.is_empty(), mark.text.is_empty()) {
        (true, true) => String::new(),
        (false, true) => note.to_owned(),
        (true, false) => format!("<- {}", mark.text),
        (false, false) => format!("{note}   <- {}", mark.text),
    };
    let column = used + name.chars().count() + pad;
    let parts = fold(&note, width.saturating_sub(column).max(LEAST));
    let mut parts = parts.iter();
    let first = parts
        .next()
        .map_or_else(String::new, |first| format!("{}{first}", " ".repeat(pad)));
    rows.push(
        format!("{margin}{}{}", paint(mark, &left), dim(&first))
            .trim_end()
            .to_owned(),
    );
    for part in parts {
        rows.push(format!(
            "{margin}{}{}",
            " ".repeat(column - margin.len()),
            dim(part)
        ));
    }
}

/// Returns the sign before a name for the mark of a session.
fn sign(mark: &Mark) -> &'static str {
    match mark.is {
        None => "",
        Some(Is::Over) => "x ",
        Some(Is::Goal) => "o ",
        Some(Is::Here) => "* ",
        Some(Is::Waits) => "? ",
        Some(Is::Acts) => "> ",
    }
}

fn paint(mark: &Mark, text: &str) -> String {
    match mark.is {
        None => cyan(text),
        Some(Is::Over) => dim(text),
        Some(Is::Goal | Is::Waits) => yellow(text),
        Some(Is::Here | Is::Acts) => green(text),
    }
}

fn facts(within: Within<'_>, facts: &[Fact], rows: &mut Vec<String>) {
    let (margin, width) = within;
    for fact in facts {
        let room = width.saturating_sub(margin.len() + WORD + 4).max(LEAST);
        for (k, part) in fold(&fact.text, room).iter().enumerate() {
            let word = if k == 0 { &*fact.word } else { "" };
            let indent = if fact.of_tool { "  " } else { "" };
            let word = format!("{indent}{word}");
            rows.push(format!(
                "{margin}    {}{part}",
                dim(&format!("{word:<WORD$}"))
            ));
        }
    }
}

/// Renders the arrows of an item. Arrows with the same text share one row.
fn arrows(graph: &Graph, at: At, (margin, width): Within<'_>, rows: &mut Vec<String>) {
    let mut told: Vec<(Vec<&str>, &Edge)> = Vec::new();
    for edge in graph.edges_from(at) {
        let same = |other: &Edge| {
            (other.kind, &other.label, other.times) == (edge.kind, &edge.label, edge.times)
        };
        let name = graph.name(edge.to);
        match told.iter_mut().find(|(_, other)| same(other)) {
            Some((names, _)) if !names.contains(&name) => names.push(name),
            Some(_) => {}
            None => told.push((vec![name], edge)),
        }
    }
    for (names, edge) in told {
        let arrow = match edge.kind {
            Kind::Leads => "->",
            Kind::Calls => "=>",
            Kind::First => "..>",
            Kind::Else => "-!>",
        };
        let left = format!("{arrow} {}", names.join(", "));
        let margin = format!("{margin}  ");
        let mut label = Graph::told(edge);
        if names.len() > 1 && label.ends_with("x)") {
            label.truncate(label.len() - 1);
            label.push_str(" each)");
        }
        let pad = NOTE
            .saturating_sub(left.chars().count() + margin.len())
            .max(2);
        let column = left.chars().count() + pad;
        let room = width.saturating_sub(margin.len() + column);
        // Many names leave no room for the label next to them.
        if room < 30 && !label.is_empty() {
            rows.extend(
                fold(&left, width.saturating_sub(margin.len()).max(LEAST))
                    .into_iter()
                    .map(|row| format!("{margin}{row}")),
            );
            let room = width.saturating_sub(margin.len() + WORD + 4).max(LEAST);
            let parts = fold(&label, room);
            rows.extend(
                parts
                    .iter()
                    .map(|part| format!("{margin}{}{}", " ".repeat(WORD + 4), dim(part))),
            );
            continue;
        }
        let parts = fold(&label, room.max(LEAST));
        let first = parts.first().map_or("", String::as_str);
        for (k, row) in fold(&left, width.saturating_sub(margin.len()).max(LEAST))
            .iter()
            .enumerate()
        {
            let first = match first {
                first if k == 0 && !first.is_empty() => {
                    format!("{}{}", " ".repeat(pad), dim(first))
                }
                _ => String::new(),
            };
            rows.push(format!("{margin}{row}{first}"));
        }
        for part in parts.iter().skip(1) {
            rows.push(format!("{margin}{}{}", " ".repeat(column), dim(part)));
        }
    }
}
