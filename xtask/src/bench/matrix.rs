//! The matrix: peers, workloads, stores and sizes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A system that does the work.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Workloads, each with its stores and sizes.
    runs: &'static [(&'static str, Stores)],
}

/// Stores, each with the size of the work.
type Stores = &'static [(&'static str, usize)];

/// The way a peer is installed and started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The package `steersman-bench`, with this command.
    Ours(&'static str),
    /// The package below `benches/peers/rust`.
    Rust,
    /// A program below `benches/peers/py`, with its requirements.
    Python(&'static str),
    /// A program below `benches/peers/js`.
    Node(&'static str),
}

/// One figure to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) workload: &'static str,
    pub(crate) store: &'static str,
    pub(crate) n: usize,
    /// Pieces of an answer and bytes of the first message, in W7s.
    pub(crate) stream: Option<(usize, usize)>,
}

/// The order of the workloads within a repetition.
pub(crate) const WORKLOADS: [&str; 11] = [
    "LIMIT", "W6", "W1", "W7", "W7s", "W7c", "W4", "W2", "W3", "W5", "W1L",
];

/// Pieces of an answer in W7s.
pub(crate) const PIECES: [usize; 3] = [1, 20, 200];
/// Bytes of the first message in W7s.
pub(crate) const BYTES: [usize; 3] = [200, 30_000, 250_000];

const HTTP: [(&str, Stores); 2] = [("W7", &[("none", 200)]), ("W7c", &[("none", 64)])];

/// All peers.
pub(crate) const PEERS: [Peer; 10] = [
    Peer {
        name: "limit",
        kind: Kind::Ours("limit"),
        runs: &[("LIMIT", &[("none", 0)])],
    },
    Peer {
        name: "steersman",
        kind: Kind::Ours("ours"),
        runs: &[
            (
                "W1",
                &[("none", 200), ("sqlite", 200), ("sqlite-commit", 200)],
            ),
            (
                "W1L",
                &[("none", 1_000), ("sqlite", 1_000), ("sqlite-commit", 1_000)],
            ),
            (
                "W2",
                &[("none", 1_000), ("sqlite", 1_000), ("sqlite-commit", 1_000)],
            ),
            (
                "W3",
                &[("none", 2_000), ("sqlite", 2_000), ("sqlite-commit", 2_000)],
            ),
            (
                "W4",
                &[("none", 100), ("sqlite", 100), ("sqlite-commit", 100)],
            ),
            ("W5", &[("sqlite", 2_000), ("sqlite-commit", 2_000)]),
            ("W6", &[("none", 0)]),
            HTTP[0],
            HTTP[1],
            ("W7s", &[("none", 10), ("sqlite-commit", 10)]),
        ],
    },
    Peer {
        name: "bare loop",
        kind: Kind::Ours("bare"),
        runs: &[HTTP[0], HTTP[1], ("W7s", &[("none", 10)])],
    },
    Peer {
        name: "graph-flow",
        kind: Kind::Rust,
        runs: &[
            ("W1", &[("none", 200), ("memory", 200), ("sqlite", 200)]),
            ("W1L", &[("sqlite", 1_000)]),
            ("W2", &[("none", 1_000), ("sqlite", 1_000)]),
            ("W3", &[("memory", 2_000), ("sqlite", 2_000)]),
            ("W4", &[("none", 100), ("sqlite", 100)]),
            ("W5", &[("sqlite", 2_000)]),
            ("W6", &[("none", 0)]),
            HTTP[0],
            HTTP[1],
        ],
    },
    Peer {
        name: "langgraph",
        kind: Kind::Python("langgraph"),
        runs: &[
            (
                "W1",
                &[
                    ("none", 200),
                    ("memory", 200),
                    ("sqlite", 200),
                    ("sqlite-sync", 200),
                    ("sqlite-exit", 200),
                    ("sqlite-delta", 200),
                    ("sqlite-blocking", 200),
                ],
            ),
            ("W1L", &[("sqlite", 1_000), ("sqlite-delta", 1_000)]),
            ("W2", &[("none", 1_000), ("sqlite", 1_000)]),
            (
                "W3",
                &[
                    ("memory", 2_000),
                    ("sqlite", 2_000),
                    ("sqlite-delta", 2_000),
                ],
            ),
            ("W4", &[("none", 100), ("sqlite", 100)]),
            ("W5", &[("sqlite", 2_000), ("sqlite-delta", 2_000)]),
            ("W6", &[("none", 0)]),
            HTTP[0],
            HTTP[1],
        ],
    },
    Peer {
        name: "burr",
        kind: Kind::Python("burr"),
        runs: &[
            (
                "W1",
                &[("none", 200), ("sqlite", 200), ("sqlite-async", 200)],
            ),
            ("W1L", &[("sqlite", 1_000)]),
            (
                "W2",
                &[("none", 1_000), ("sqlite", 1_000), ("sqlite-async", 1_000)],
            ),
            ("W3", &[("none", 2_000), ("sqlite", 2_000)]),
            (
                "W4",
                &[("none", 100), ("sqlite", 100), ("sqlite-async", 100)],
            ),
            ("W5", &[("sqlite", 2_000)]),
            ("W6", &[("none", 0)]),
            HTTP[0],
            HTTP[1],
        ],
    },
    Peer {
        name: "openai-agents",
        kind: Kind::Python("openai_agents"),
        runs: &[
            ("W1", &[("none", 200), ("sqlite", 200)]),
            ("W1L", &[("sqlite", 1_000)]),
            ("W2", &[("none", 1_000), ("sqlite", 1_000)]),
            ("W3", &[("none", 2_000), ("sqlite", 2_000)]),
            ("W4", &[("none", 100), ("sqlite", 100)]),
            ("W5", &[("sqlite", 2_000)]),
            ("W6", &[("none", 0)]),
            HTTP[0],
            HTTP[1],
        ],
    },
    Peer {
        name: "llamaindex-workflows",
        kind: Kind::Python("llama"),
        runs: &[
            ("W1", &[("none", 200), ("sqlite", 200)]),
            ("W1L", &[("none", 1_000)]),
            ("W2", &[("none", 1_000), ("sqlite", 100)]),
            ("W3", &[("none", 2_000), ("sqlite", 500)]),
            ("W4", &[("none", 100), ("sqlite", 100)]),
            ("W5", &[("sqlite", 500)]),
            ("W6", &[("none", 0)]),
            HTTP[0],
            HTTP[1],
        ],
    },
    Peer {
        name: "pydantic-ai",
        kind: Kind::Python("pydantic"),
        runs: &[
            ("W1", &[("none", 200), ("dbos", 200)]),
            ("W1L", &[("dbos", 1_000)]),
            ("W2", &[("none", 1_000), ("dbos", 1_000)]),
            ("W3", &[("none", 2_000), ("rows", 2_000)]),
            ("W4", &[("none", 100), ("dbos", 100)]),
            ("W5", &[("rows", 2_000)]),
            ("W6", &[("none", 0)]),
            HTTP[0],
            HTTP[1],
        ],
    },
    Peer {
        name: "agentkit",
        kind: Kind::Node("agentkit.mjs"),
        runs: &[
            (
                "W1",
                &[("none", 200), ("sqlite", 200), ("sqlite-step", 200)],
            ),
            ("W1L", &[("sqlite-step", 1_000)]),
            ("W2", &[("none", 1_000), ("sqlite-step", 1_000)]),
            ("W3", &[("none", 2_000), ("sqlite-step", 2_000)]),
            ("W4", &[("none", 100), ("sqlite-step", 100)]),
            ("W5", &[("sqlite-step", 2_000)]),
            ("W6", &[("none", 0)]),
            HTTP[0],
            HTTP[1],
        ],
    },
];

impl Peer {
    /// The runs of this peer in a workload.
    pub(crate) fn runs(&self, workload: &str) -> Vec<Run> {
        let stores = self.runs.iter().filter(|(name, _)| *name == workload);
        let runs = stores.flat_map(|(workload, stores)| {
            stores.iter().map(|(store, n)| Run {
                workload,
                store,
                n: *n,
                stream: None,
            })
        });
        if workload != "W7s" {
            return runs.collect();
        }
        let cases = PIECES.iter().flat_map(|p| BYTES.map(|bytes| (*p, bytes)));
        let cases: Vec<(usize, usize)> = cases.collect();
        let streamed = runs.flat_map(|run| {
            let of = |case: &(usize, usize)| Run {
                stream: Some(*case),
                ..run.clone()
            };
            cases.iter().map(of).collect::<Vec<_>>()
        });
        streamed.collect()
    }

    /// True if a later run of this store needs the folder that W3 leaves.
    pub(crate) fn resumes(&self, store: &str) -> bool {
        self.runs("W5").iter().any(|run| run.store == store)
    }
}

/// The places of the built and installed programs.
pub(crate) struct Places {
    pub(crate) work: PathBuf,
    /// The program of `steersman-bench`.
    pub(crate) ours: PathBuf,
}

impl Places {
    /// The command of a run, without the address of a server.
    pub(crate) fn command(&self, peer: &Peer, run: &Run) -> Command {
        let mut command = match peer.kind {
            Kind::Ours(of) => {
                let mut command = Command::new(&self.ours);
                command.arg(of);
                command
            }
            Kind::Rust => Command::new(self.peer_in_rust()),
            Kind::Python(name) => {
                let mut command = Command::new(self.python(name));
                command.arg(self.work.join(format!("py/{name}_bench.py")));
                command
            }
            Kind::Node(script) => {
                let mut command = Command::new("node");
                command.arg(self.work.join("node").join(script));
                command
            }
        };
        if run.workload != "LIMIT" {
            // A longer W1 is another row, not another program.
            let workload = if run.workload == "W1L" {
                "W1"
            } else {
                run.workload
            };
            command.args([workload, &run.n.to_string(), "--store", run.store]);
        }
        command
    }

    /// The interpreter of a peer in Python.
    pub(crate) fn python(&self, name: &str) -> PathBuf {
        self.work.join("venv").join(name).join("bin/python")
    }

    /// The folder in which the peer in Rust is built.
    pub(crate) fn rust_target(&self) -> PathBuf {
        self.work.join("rust-target")
    }

    fn peer_in_rust(&self) -> PathBuf {
        self.rust_target().join("release/graphflow")
    }

    /// The folder that W3 leaves for W5.
    pub(crate) fn kept(&self, peer: &Peer, run: &Run) -> PathBuf {
        let name = format!("{}-{}", peer.name, run.store);
        self.work.join("kept").join(name)
    }
}

/// The folder of the peers' programs.
pub(crate) fn peers_folder(root: &Path) -> PathBuf {
    root.join("benches/peers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_of_a_peer_is_in_the_order() {
        for peer in &PEERS {
            let known = |name: &str| WORKLOADS.contains(&name);
            assert!(
                peer.runs.iter().all(|(name, _)| known(name)),
                "{}",
                peer.name
            );
        }
    }

    #[test]
    fn a_streamed_workload_has_all_sizes() {
        let ours = &PEERS[1];
        assert_eq!(ours.runs("W7s").len(), 2 * PIECES.len() * BYTES.len());
        assert!(ours.resumes("sqlite") && !ours.resumes("none"));
    }
}
