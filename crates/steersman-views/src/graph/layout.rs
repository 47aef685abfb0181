//! Coordinates of a picture: each cluster is laid out separately, and is then one box in the cluster around it.
//!
//! Sizes are in pixels of a font of 11 pixels; a painter that uses another font scales them.

use super::layer::{self, Arrow, Laid, Plan};
use super::{At, Cluster, Edge, Fact, Graph, Mark, Node, What};
use crate::words::fold;
use serde::Serialize;

/// Maximum number of characters of a line in a box. Longer text is wrapped.
const ROOM: usize = 46;
/// Maximum number of characters of a line of a label. Longer text is wrapped.
const LABEL: usize = 28;
/// Width of a character of a title, at a font of 13 pixels. Narrower fonts leave a little more room.
pub const TITLE: f64 = 8.6;
/// Width of a character of other text, at a font of 11 pixels.
pub const SMALL: f64 = 6.7;
/// Height of a line of text.
pub const LINE: f64 = 15.0;
/// Padding inside of a border.
pub const PAD: f64 = 10.0;
/// Padding inside of a cluster.
pub const INNER: f64 = 18.0;
/// Width of the word before a fact, in characters.
pub const WORD: usize = 12;

/// A line of a fact in a box.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The word before the text, indented by two blanks if the fact belongs to the tool above; empty on further lines of a fact.
    pub word: String,
    /// The text, at most 46 characters wide.
    pub text: String,
}

/// The area of a shape: its upper left corner and its size.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Area {
    /// Distance from the left.
    pub x: f64,
    /// Distance from the top.
    pub y: f64,
    /// Width of the shape.
    pub w: f64,
    /// Height of the shape.
    pub h: f64,
}

/// A part of the picture with its place. Nodes, clusters and edges are indices of the [`Graph`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "shape", rename_all = "snake_case")]
pub enum Shape {
    /// The line of an arrow.
    Route {
        /// Index in [`Graph::edges`].
        edge: usize,
        /// Its points, from box to box.
        points: Vec<(f64, f64)>,
    },
    /// The box of a node.
    Node {
        /// Index in [`Graph::nodes`].
        node: usize,
        /// The area of the box.
        #[serde(flatten)]
        area: Area,
        /// The note below its name, in lines.
        note: Vec<String>,
        /// Its facts, in lines.
        facts: Vec<Line>,
        /// The text of its mark, in lines.
        mark: Vec<String>,
    },
    /// The frame of a cluster.
    Frame {
        /// Index in [`Graph::clusters`].
        cluster: usize,
        /// The area of the frame, with the items of the cluster.
        #[serde(flatten)]
        area: Area,
        /// The facts in its head, in lines.
        facts: Vec<Line>,
    },
    /// The label of an arrow.
    Label {
        /// Index in [`Graph::edges`].
        edge: usize,
        /// The area of the text.
        #[serde(flatten)]
        area: Area,
        /// The middle of its text, from the left.
        middle: f64,
        /// Its text, in lines.
        rows: Vec<String>,
    },
}

/// The layout of a picture.
pub struct Layout<'g> {
    graph: &'g Graph,
    whole: Sheet<'g>,
}

impl<'g> Layout<'g> {
    /// Computes the layout of a picture.
    pub fn of(graph: &'g Graph) -> Self {
        Self {
            graph,
            whole: Sheet::of(graph, 0),
        }
    }

    /// Returns the width and height of all shapes together.
    pub fn size(&self) -> (f64, f64) {
        self.whole.laid.size
    }

    /// Returns the shapes in the order in which they are painted: arrows before boxes, so that no line covers text, then labels.
    /// The upper left corner is at this point.
    pub fn shapes(&self, x: f64, y: f64) -> Vec<Shape> {
        let mut shapes = Vec::new();
        self.whole.place(self.graph, x, y, &mut shapes);
        shapes
    }
}

/// A cluster with its layout.
struct Sheet<'g> {
    cluster: &'g Cluster,
    laid: Laid,
    sizes: Vec<(f64, f64)>,
    /// The clusters in it, by index among its items.
    inner: Vec<Option<Sheet<'g>>>,
    /// The edges between its items, each with its index.
    edges: Vec<(usize, &'g Edge)>,
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
        for (number, edge) in graph.edges.iter().enumerate() {
            if let (Some(from), Some(to)) = (place(edge.from), place(edge.to)) {
                edges.push((number, edge));
                arrows.push(Arrow {
                    from,
                    to,
                    label: label_size(edge),
                });
            }
        }
        let laid = layer::lay(&Plan {
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
            width(&self.cluster.name, TITLE) + width(&self.cluster.by, SMALL) + 2.0 * PAD + 12.0;
        let facts = rows(&self.cluster.facts)
            .iter()
            .map(|line| row_width(&line.text))
            .fold(title, f64::max);
        let mark = width(&self.cluster.mark.text, SMALL + 0.3) + 2.0 * PAD;
        (
            (self.laid.size.0 + 2.0 * INNER).max(facts).max(mark),
            self.laid.size.1 + self.head() + INNER,
        )
    }

    fn place(&self, graph: &Graph, x: f64, y: f64, shapes: &mut Vec<Shape>) {
        for ((edge, _), points) in self.edges.iter().zip(&self.laid.arrows) {
            let points = points.iter().map(|(px, py)| (px + x, py + y)).collect();
            shapes.push(Shape::Route {
                edge: *edge,
                points,
            });
        }
        for (k, at) in self.cluster.items.iter().enumerate() {
            let (w, h) = self.sizes[k];
            let area = Area {
                x: x + self.laid.boxes[k].0,
                y: y + self.laid.boxes[k].1,
                w,
                h,
            };
            match (at, &self.inner[k]) {
                (At::Node(node), _) => {
                    let of = &graph.nodes[*node];
                    shapes.push(Shape::Node {
                        node: *node,
                        area,
                        note: below(of),
                        facts: rows(&of.facts),
                        mark: marks(&of.mark),
                    });
                }
                (At::Cluster(cluster), Some(sheet)) => {
                    shapes.push(Shape::Frame {
                        cluster: *cluster,
                        area,
                        facts: rows(&sheet.cluster.facts),
                    });
                    let left = area.x + (area.w - sheet.laid.size.0) / 2.0;
                    sheet.place(graph, left, area.y + sheet.head(), shapes);
                }
                (At::Cluster(_), None) => {}
            }
        }
        for ((number, edge), (lx, ly)) in self.edges.iter().zip(&self.laid.labels) {
            let rows = label(edge);
            if rows.is_empty() {
                continue;
            }
            let (w, h) = label_size(edge);
            let area = Area {
                x: x + lx - w / 2.0,
                y: y + ly - h / 2.0,
                w,
                h,
            };
            shapes.push(Shape::Label {
                edge: *number,
                area,
                middle: x + lx,
                rows,
            });
        }
    }
}

/// Returns the width of a text whose characters have this width.
pub fn width(text: &str, each: f64) -> f64 {
    // A character from U+1100 on counts twice, because most of them are twice as wide.
    let wide = |c: char| if u32::from(c) >= 0x1100 { 2.0 } else { 1.0 };
    text.chars().map(wide).sum::<f64>() * each
}

fn row_width(text: &str) -> f64 {
    width(text, SMALL) + WORD as f64 * SMALL + 2.0 * PAD
}

/// Splits facts into lines; only the first line of a fact has its word.
fn rows(facts: &[Fact]) -> Vec<Line> {
    let mut rows = Vec::new();
    for fact in facts {
        for (k, text) in fold(&fact.text, ROOM).into_iter().enumerate() {
            let indent = if fact.of_tool { "  " } else { "" };
            let word = if k == 0 {
                format!("{indent}{}", fact.word)
            } else {
                String::new()
            };
            rows.push(Line { word, text });
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
    let wide = facts.iter().map(|line| row_width(&line.text));
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
