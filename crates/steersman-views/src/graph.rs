//! A definition as a picture: nodes, edges, clusters, and the marks of a session in it.
//!
//! [`draw`] makes the picture from a network, [`stand`] marks a session in it, and [`Layout`] gives it coordinates. Painters
//! only paint.
//! A routed agent is a cluster that contains its members. A member of two routers is drawn in both, because each router starts
//! its own instance. An agent with modes is a cluster of its modes; the agents that it starts are drawn next to it. So no
//! edge crosses the border of a cluster, and each cluster can be laid out separately.

mod facts;
mod layer;
mod layout;
mod modes;
mod of;
mod stand;
pub mod svg;

pub use layout::{Area, INNER, LINE, Layout, Line, PAD, SMALL, Shape, TITLE, WORD, width};
pub use of::{Drawn, draw};
pub use stand::stand;

use crate::words::Word;
use serde::{Deserialize, Serialize};
use steersman_machine::stored::ids::Name;

/// The picture. Everything is listed in the order in which it is drawn.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Graph {
    /// Name of the network.
    pub name: Name,
    /// Description of the network, in one line.
    pub about: Option<String>,
    /// For a session: its name, its line and its status.
    pub stands: Option<String>,
    /// The first cluster is the whole network.
    pub clusters: Vec<Cluster>,
    /// The boxes. Items and edges name them by index.
    pub nodes: Vec<Node>,
    /// The arrows, each between two items of one cluster.
    pub edges: Vec<Edge>,
}

/// A routed agent with its members, or an agent with its modes. The first cluster is the whole network.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Cluster {
    /// The name of the agent.
    pub name: Name,
    /// The kind of router: `rules`, `sequence`, `states`, `tasks`, `handoff`, `pick`, `Rust`. For an agent with modes:
    /// `modes`.
    pub by: Word,
    /// Text in the head of its frame.
    pub facts: Vec<Fact>,
    /// The cluster that contains it; `None` for the whole network.
    pub inside: Option<usize>,
    /// The nodes and clusters in it, in order.
    pub items: Vec<At>,
    /// The mark of a session.
    pub mark: Mark,
}

/// A box of the picture.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Node {
    /// The kind of node.
    pub what: What,
    /// Name of the agent, person, event, state, task or mode.
    pub name: String,
    /// Text next to the name: the kind, and the model or the role.
    pub note: String,
    /// Text in the box, below its name.
    pub facts: Vec<Fact>,
    /// The cluster that contains it.
    pub inside: usize,
    /// The mark of a session.
    pub mark: Mark,
}

/// The kind of a node.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The user or caller.
    You,
    /// An event or a schedule that starts sessions.
    Event,
    /// A model-driven agent.
    Agent,
    /// A plain agent, which only runs a tool.
    Plain,
    /// A person that agents ask.
    Person,
    /// The chooser of a routed agent.
    Router,
    /// A state of a state graph.
    State,
    /// A task of a router by tasks.
    Task,
    /// A mode of an agent.
    Mode,
    /// The beginning of a cluster.
    Begin,
    /// The end of a cluster.
    End,
    /// A routed agent within itself. Networks may be recursive, so its cluster is drawn once, around this node.
    Again,
}

/// A line of text in a box.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Fact {
    /// The word before the text: `tool`, `needs`, `done`.
    pub word: Word,
    /// The text after the word, in one line.
    pub text: String,
    /// True if it belongs to the tool in the rows above.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub of_tool: bool,
}

/// The index of a node or of a cluster.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// Index in [`Graph::nodes`].
    Node(usize),
    /// Index in [`Graph::clusters`].
    Cluster(usize),
}

/// An arrow between two items of the same cluster.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Edge {
    /// The item at which the arrow begins.
    pub from: At,
    /// The item at which the arrow ends.
    pub to: At,
    /// The relation of the two items.
    pub kind: Kind,
    /// The condition or reason; empty if there is nothing to say.
    pub label: String,
    /// For a session: how often the arrow was taken.
    pub times: Option<u64>,
}

/// The meaning of an arrow.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A router chooses the target, an agent hands the floor over to it, or a message arrives at it.
    Leads,
    /// An agent calls another one, asks a person, or is judged, and waits for the result.
    Calls,
    /// The source must be done before the target.
    First,
    /// Taken only after a failure.
    Else,
}

/// The mark of a session on a node or cluster.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Mark {
    /// The kind of mark; `None` if the session was never here.
    pub is: Option<Is>,
    /// The status in words: `acts`, `waits for approver`, `done`.
    pub text: String,
}

/// The kinds of marks, from the least to the most important.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Is {
    /// It was active and has ended.
    Over,
    /// The task is still to be done.
    Goal,
    /// The session is here: at rest with the floor, or in this state.
    Here,
    /// It waits for a person or something else.
    Waits,
    /// The agent, person or tool acts now.
    Acts,
}

impl Graph {
    /// Returns the edges that leave a node or cluster.
    pub fn edges_from(&self, at: At) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |edge| edge.from == at)
    }

    /// Returns the name of a node or cluster.
    pub fn name(&self, at: At) -> &str {
        match at {
            At::Node(node) => &self.nodes[node].name,
            At::Cluster(cluster) => &self.clusters[cluster].name,
        }
    }

    fn mark(&mut self, at: At) -> &mut Mark {
        match at {
            At::Node(node) => &mut self.nodes[node].mark,
            At::Cluster(cluster) => &mut self.clusters[cluster].mark,
        }
    }

    /// Returns the text of an arrow: its label, and how often it was taken.
    pub fn told(edge: &Edge) -> String {
        match edge.times {
            None | Some(0) => edge.label.clone(),
            Some(times) if edge.label.is_empty() => format!("({times}x)"),
            Some(times) => format!("{} ({times}x)", edge.label),
        }
    }
}

impl Mark {
    /// Adds a mark and its text. Of several marks the most important one stays.
    fn add(&mut self, is: Is, text: &str) {
        self.is = self.is.max(Some(is));
        if text.is_empty() || self.text.split(", ").any(|said| said == text) {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str(", ");
        }
        self.text.push_str(text);
    }
}

impl Fact {
    fn new(word: &'static str, text: impl Into<String>) -> Self {
        Self {
            word: word.into(),
            text: text.into(),
            of_tool: false,
        }
    }

    /// Marks the fact as belonging to the tool before it.
    fn of_tool(self) -> Self {
        Self {
            of_tool: true,
            ..self
        }
    }
}
