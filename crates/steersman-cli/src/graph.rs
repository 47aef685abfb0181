//! A definition as a picture: nodes, edges, clusters, and the marks of a session in it.
//!
//! [`of`] makes the picture from a network, [`stand`] marks a session in it; [`terminal`], [`mermaid`] and [`svg`] draw it.
//! A routed agent is a cluster that contains its members, because each start makes a new instance: a member of two routers
//! is drawn in both. An agent with modes is a cluster of its modes; the agents that it starts are drawn next to it. So no
//! edge crosses the border of a cluster, and each cluster can be laid out separately.

mod facts;
mod layout;
pub(crate) mod mermaid;
mod modes;
mod of;
mod stand;
pub(crate) mod svg;
pub(crate) mod terminal;

pub(crate) use of::draw;
pub(crate) use stand::stand;

use serde::Serialize;
use steersman_machine::stored::ids::Name;

/// The picture. Everything is listed in the order in which it is drawn.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Graph {
    /// Name of the network.
    pub(crate) name: Name,
    /// Description of the network, in one line.
    pub(crate) about: Option<String>,
    /// For a session: its name, its line and its status.
    pub(crate) stands: Option<String>,
    /// The first cluster is the whole network.
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Edge>,
}

/// A routed agent with its members, or an agent with its modes. The first cluster is the whole network.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Cluster {
    /// The name of the agent.
    pub(crate) name: Name,
    /// The kind of router: `rules`, `sequence`, `states`, `tasks`, `handoff`, `pick`, `Rust`. For an agent with modes:
    /// `modes`.
    pub(crate) by: &'static str,
    pub(crate) facts: Vec<Fact>,
    /// The cluster that contains it; `None` for the whole network.
    pub(crate) inside: Option<usize>,
    /// The nodes and clusters in it, in order.
    pub(crate) items: Vec<At>,
    pub(crate) mark: Mark,
}

/// A box of the picture.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Node {
    pub(crate) what: What,
    pub(crate) name: String,
    /// Text next to the name: the kind, and the model or the role.
    pub(crate) note: String,
    pub(crate) facts: Vec<Fact>,
    pub(crate) inside: usize,
    pub(crate) mark: Mark,
}

/// The kind of a node.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// The user or caller.
    You,
    /// An event that starts sessions.
    Event,
    /// A model-driven agent.
    Agent,
    /// A plain agent, which only runs a tool.
    Plain,
    Person,
    /// The chooser of a routed agent.
    Router,
    /// A state of a state graph.
    State,
    /// A task of a concierge.
    Task,
    /// A mode of an agent.
    Mode,
    /// The beginning of a cluster.
    Begin,
    /// The end of a cluster.
    End,
    /// A routed agent that is drawn further up, because networks may be recursive.
    Again,
}

/// A line of text in a box.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Fact {
    /// The word before the text: `tool`, `needs`, `done`.
    pub(crate) word: &'static str,
    pub(crate) text: String,
    /// True if it belongs to the tool in the rows above.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) of_tool: bool,
}

/// The index of a node or of a cluster.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum At {
    Node(usize),
    Cluster(usize),
}

/// An arrow between two items of the same cluster.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Edge {
    pub(crate) from: At,
    pub(crate) to: At,
    pub(crate) kind: Kind,
    /// The condition or reason; empty if there is nothing to say.
    pub(crate) label: String,
    /// For a session: how often the arrow was taken.
    pub(crate) times: Option<u64>,
}

/// The meaning of an arrow.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A router chooses it, an agent hands over, or a message arrives.
    Leads,
    /// An agent calls another one, asks a person, or is judged, and waits for the result.
    Calls,
    /// The source must be done before the target.
    First,
    /// Taken only after a failure.
    Else,
}

/// The mark of a session on a node or cluster.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Mark {
    pub(crate) is: Option<Is>,
    /// The status in words: `acts`, `waits for approver`, `done`.
    pub(crate) text: String,
}

/// The kinds of marks, from the least to the most important.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Is {
    /// It was active, and is over.
    Over,
    /// It is wanted, and not done.
    Goal,
    /// The session is here: at rest with the floor, or in this state.
    Here,
    /// It waits for a person or something else.
    Waits,
    /// It is at work.
    Acts,
}

impl Graph {
    /// Returns the edges that leave a node or cluster.
    pub(crate) fn edges_from(&self, at: At) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |edge| edge.from == at)
    }

    /// Returns the name of a node or cluster.
    pub(crate) fn name(&self, at: At) -> &str {
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
    pub(crate) fn told(edge: &Edge) -> String {
        match edge.times {
            None | Some(0) => edge.label.clone(),
            Some(times) if edge.label.is_empty() => format!("({times}x)"),
            Some(times) => format!("{} ({times}x)", edge.label),
        }
    }
}

impl Mark {
    /// Adds a mark and its text. The most important mark stays.
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
            word,
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
