//! The picture as Mermaid, for pages that draw it: GitHub, GitLab, most wikis.

use crate::words::wrap;
use std::fmt::Write as _;
use steersman::views::graph::{At, Cluster, Edge, Fact, Graph, Is, Kind, What};

/// The first line, by which this command recognises its own files.
pub(crate) const MARK: &str = "%% drawn by `steersman graph`";

/// Maximum number of characters of a line in a box. Mermaid does not wrap lines reliably.
const ROOM: usize = 44;

/// Returns the text of the diagram.
pub(crate) fn text(graph: &Graph) -> String {
    let mut out = format!("{MARK}\nflowchart TD\n");
    for at in &graph.clusters[0].items {
        item(graph, *at, 1, &mut out);
    }
    for edge in &graph.edges {
        out.push_str(&arrow(edge));
    }
    styles(graph, &mut out);
    out
}

fn item(graph: &Graph, at: At, depth: usize, out: &mut String) {
    let margin = "  ".repeat(depth);
    match at {
        At::Node(node) => {
            let node = &graph.nodes[node];
            let (open, close) = match node.what {
                What::You | What::Event => (">", "]"),
                What::Agent | What::Plain => ("(", ")"),
                What::Person => ("([", "])"),
                What::Router => ("{{", "}}"),
                What::State | What::Task | What::Mode => ("[", "]"),
                What::Begin => ("((", "))"),
                What::End => ("(((", ")))"),
                What::Again => ("[[", "]]"),
            };
            let mut rows = vec![format!("<b>{}</b>", escaped(&node.name))];
            rows.extend(shown(&node.note));
            rows.extend(facts(&node.facts));
            rows.extend(
                shown(&node.mark.text)
                    .into_iter()
                    .map(|row| format!("<i>{row}</i>")),
            );
            let label = rows.join("<br/>");
            let _ = writeln!(out, "{margin}{}{open}\"{label}\"{close}", id(at));
        }
        At::Cluster(number) => {
            let cluster = &graph.clusters[number];
            let _ = writeln!(out, "{margin}subgraph {}[\"{}\"]", id(at), title(cluster));
            for at in &cluster.items {
                item(graph, *at, depth + 1, out);
            }
            let _ = writeln!(out, "{margin}end");
        }
    }
}

fn title(cluster: &Cluster) -> String {
    let mut rows = vec![format!(
        "<b>{}</b> {}",
        escaped(&cluster.name),
        escaped(&cluster.by)
    )];
    rows.extend(facts(&cluster.facts));
    if !cluster.mark.text.is_empty() {
        rows.push(format!("<i>{}</i>", escaped(&cluster.mark.text)));
    }
    rows.join("<br/>")
}

fn facts(facts: &[Fact]) -> Vec<String> {
    let rows = facts.iter().map(|fact| match &*fact.word {
        "" => fact.text.clone(),
        word => format!("{word}: {}", fact.text),
    });
    rows.flat_map(|row| shown(&row)).collect()
}

fn shown(text: &str) -> Vec<String> {
    wrap(text, ROOM).iter().map(|row| escaped(row)).collect()
}

fn arrow(edge: &Edge) -> String {
    let line = match edge.kind {
        Kind::Leads => "-->",
        Kind::Calls => "-.->",
        Kind::First => "==>",
        Kind::Else => "--x",
    };
    let label = shown(&Graph::told(edge)).join("<br/>");
    let label = if label.is_empty() {
        String::new()
    } else {
        format!("|\"{label}\"|")
    };
    format!("  {} {line}{label} {}\n", id(edge.from), id(edge.to))
}

fn id(at: At) -> String {
    match at {
        At::Node(node) => format!("n{node}"),
        At::Cluster(cluster) => format!("c{cluster}"),
    }
}

/// Adds styles for the marks of a session.
fn styles(graph: &Graph, out: &mut String) {
    let nodes = graph.nodes.iter().enumerate();
    let nodes = nodes.map(|(k, node)| (At::Node(k), node.mark.is));
    let clusters = graph.clusters.iter().enumerate();
    let clusters = clusters.map(|(k, cluster)| (At::Cluster(k), cluster.mark.is));
    let marked: Vec<(At, Is)> = nodes
        .chain(clusters)
        .filter_map(|(at, is)| Some((at, is?)))
        .collect();
    for (is, name, style) in [
        (
            Is::Over,
            "over",
            "stroke:#6b7280,stroke-width:2px,stroke-dasharray:4 3",
        ),
        (
            Is::Goal,
            "goal",
            "stroke:#b45309,stroke-width:2px,stroke-dasharray:4 3",
        ),
        (Is::Here, "here", "stroke:#15803d,stroke-width:3px"),
        (Is::Waits, "waits", "stroke:#b45309,stroke-width:3px"),
        (Is::Acts, "acts", "stroke:#15803d,stroke-width:4px"),
    ] {
        let ids: Vec<String> = marked
            .iter()
            .filter(|(_, i)| *i == is)
            .map(|(at, _)| id(*at))
            .collect();
        if !ids.is_empty() {
            let _ = writeln!(
                out,
                "  classDef {name} {style}\n  class {} {name}",
                ids.join(",")
            );
        }
    }
}

/// Escapes a text for Mermaid's quotes: characters that have a meaning in Mermaid, Markdown or HTML are written by number.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'a'..='z'
            | 'A'..='Z'
            | '0'..='9'
            | ' '
            | ','
            | ':'
            | '/'
            | '('
            | ')'
            | '='
            | '?'
            | '\''
            | '!' => {
                out.push(c);
            }
            // Inside a word these characters cannot start a Markdown list.
            '.' | '-' if !out.is_empty() && !out.ends_with(|c: char| c.is_ascii_digit()) => {
                out.push(c);
            }
            c if c.is_alphanumeric() => out.push(c),
            c => {
                let _ = write!(out, "#{};", u32::from(c));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn texts_are_escaped_for_mermaid() {
        for (text, written) in [
            ("state.a == 'b'", "state.a == 'b'"),
            ("say \"x\" #1;", "say #34;x#34; #35;1#59;"),
            ("a < b | c", "a #60; b #124; c"),
            (
                "1. `first` *of* a_b",
                "1#46; #96;first#96; #42;of#42; a#95;b",
            ),
            ("grün 東", "grün 東"),
        ] {
            assert_eq!(escaped(text), written);
        }
    }
}
