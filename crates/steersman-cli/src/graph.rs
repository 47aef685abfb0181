//! A definition as a picture: nodes, edges, clusters, and where a session stands in them.
//!
//! [`of`] makes it from a network, [`stand`] marks a session in it; [`terminal`], [`mermaid`] and [`svg`] draw it. A routed
//! agent is a cluster with its members inside, because each start makes an instance of its own: an agent that two routers
//! name stands in both. An agent with modes is a cluster of its modes; whom it starts stands beside it. So no edge crosses the border of a cluster, and a cluster can be drawn by itself.

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
use steersman_machine::ids::Name;

/// The picture. Everything stands in the order in which it is drawn.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Graph {
    /// Name of the network.
    pub(crate) name: Name,
    /// One line about it.
    pub(crate) about: Option<String>,
    /// Of a session: which one, at which line, and how it stands.
    pub(crate) stands: Option<String>,
    /// The first is the whole network.
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Edge>,
}

/// A routed agent with its members, or an agent with its modes; the first one is the whole network.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Cluster {
    /// The agent.
    pub(crate) name: Name,
    /// What chooses: `rules`, `sequence`, `states`, `tasks`, `handoff`, `pick`, `Rust`; `modes`: what stands in it is what one
    /// agent can be.
    pub(crate) by: &'static str,
    pub(crate) facts: Vec<Fact>,
    /// What it stands in; none: it is the whole network.
    pub(crate) inside: Option<usize>,
    /// What stands in it, in order.
    pub(crate) items: Vec<At>,
    pub(crate) mark: Mark,
}

/// A box.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Node {
    pub(crate) what: What,
    pub(crate) name: String,
    /// Beside the name: what it is, and by which model or person.
    pub(crate) note: String,
    pub(crate) facts: Vec<Fact>,
    pub(crate) inside: usize,
    pub(crate) mark: Mark,
}

/// What a node is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// Whoever talks with it.
    You,
    /// An event that starts sessions.
    Event,
    /// A model-driven agent.
    Agent,
    /// An agent that only runs a tool.
    Plain,
    Person,
    /// What chooses.
    Router,
    /// A state of a graph of states.
    State,
    /// A task of a concierge.
    Task,
    /// A mode of an agent.
    Mode,
    /// Where a cluster begins.
    Begin,
    /// Where it ends.
    End,
    /// A routed agent that stands further up: networks may call themselves.
    Again,
}

/// Something to say in a box.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Fact {
    /// `tool`, `needs`, `done`.
    pub(crate) word: &'static str,
    pub(crate) text: String,
    /// It belongs to the tool that was said last.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) of_tool: bool,
}

/// A node or a cluster.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum At {
    Node(usize),
    Cluster(usize),
}

/// An arrow between two that stand in the same cluster.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Edge {
    pub(crate) from: At,
    pub(crate) to: At,
    pub(crate) kind: Kind,
    /// Why it is taken; empty: nothing is to be said.
    pub(crate) label: String,
    /// Of a session: how often it was.
    pub(crate) times: Option<u64>,
}

/// What an arrow means.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A router leads there, an agent hands over, a message comes in.
    Leads,
    /// An agent starts another one, asks a person, or is judged by one, and waits for what comes back.
    Calls,
    /// This comes first.
    First,
    /// Only where something went wrong.
    Else,
}

/// Where a session stands.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Mark {
    pub(crate) is: Option<Is>,
    /// In words, what stands here last: `acts`, `waits for approver`, `done`.
    pub(crate) text: String,
}

/// How something stands, from nothing to what is to be seen first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Is {
    /// It was there, and is over.
    Over,
    /// Wanted, and not done.
    Goal,
    /// It stands here: at rest with the floor, the state of a graph.
    Here,
    /// It waits for somebody or something.
    Waits,
    /// It is at work.
    Acts,
}

impl Graph {
    /// What is drawn as the head of a cluster: `bank: tasks`.
    pub(crate) fn edges_from(&self, at: At) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |edge| edge.from == at)
    }

    /// The name of a node or cluster.
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

    /// What somebody reads of an arrow: why it is taken, and how often it was.
    pub(crate) fn told(edge: &Edge) -> String {
        match edge.times {
            None | Some(0) => edge.label.clone(),
            Some(times) if edge.label.is_empty() => format!("({times}x)"),
            Some(times) => format!("{} ({times}x)", edge.label),
        }
    }
}

impl Mark {
    /// Adds what somebody who comes later says; what is to be seen first stays.
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

    /// Of the tool that was said last.
    fn of_tool(self) -> Self {
        Self {
            of_tool: true,
            ..self
        }
    }
}
