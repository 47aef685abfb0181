//! Checks the order of the rooms of a crate. A room is a folder of its sources, with the file of the same name.

use crate::graph::{self, Graph};
use std::path::Path;

/// The rooms of crates, in order. A room uses only rooms before it.
pub(crate) const ROOMS: &[(&str, &[&str])] = &[
    (
        "steersman-machine",
        &[
            "stored",
            "values",
            "snapshot",
            "network",
            "view",
            "questions",
            "routers",
            "context",
            "tick",
            "search",
            "trace",
        ],
    ),
    (
        "steersman-runtime",
        &[
            "ports", "log", "tools", "engine", "driver", "local", "rerun",
        ],
    ),
];

/// Types through which callers reach a whole crate. Each room may implement methods on them, even if another room declares
/// them.
const HANDLES: &[(&str, &str)] = &[("steersman-runtime", "Engine")];

/// Checks all crates of [`ROOMS`].
pub(crate) fn check(root: &Path, faults: &mut Vec<String>) {
    for (name, rooms) in ROOMS {
        match graph::of_crate(root, name) {
            Ok(graph) => faults.extend(against(&graph, name, rooms)),
            Err(fault) => faults.push(fault),
        }
    }
}

/// Returns the faults of one crate, each with its place and the remedy.
pub(crate) fn against(graph: &Graph, name: &str, rooms: &[&str]) -> Vec<String> {
    let order = |room: &str| rooms.iter().position(|known| *known == room);
    let mut faults = Vec::new();
    for folder in graph.folders() {
        if order(folder).is_none() {
            faults.push(format!(
                "{name}: `{folder}` is no room: move it into one of {}, or add it to `ROOMS` of xtask",
                rooms.join(", ")
            ));
        }
    }
    for room in rooms {
        if !graph.folders().contains(*room) {
            faults.push(format!(
                "{name}: there is no room `{room}`: remove it from `ROOMS` of xtask"
            ));
        }
    }
    for (from, to, uses) in graph.arrows() {
        // Such a use follows the order. Uses that all do so form no cycle.
        if order(from) >= order(to) {
            continue;
        }
        for used in uses {
            faults.push(format!(
                "{}: `{from}` uses `{}`, and the room `{to}` comes after it: move the name to the room that owns its meaning, or \
                 the code that uses it to a later room",
                used.place, used.name
            ));
        }
    }
    for (folder, of, home) in graph.foreign_impls() {
        if HANDLES.contains(&(name, &*of.name)) {
            continue;
        }
        faults.push(format!(
            "{}: an `impl {}` in `{folder}`, and `{home}` declares the type: its methods would be called from anywhere without a \
             path. Move the impl, or make functions of the methods",
            of.place, of.name
        ));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the faults of a crate with the rooms `low` and `high`, in this order.
    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter();
        let sources: Vec<(String, String)> = files
            .map(|(path, text)| (format!("crates/x/src/{path}"), (*text).to_owned()))
            .collect();
        let graph = graph::of_sources("crates/x/src/", &sources).unwrap();
        against(&graph, "x", &["low", "high"])
    }

    const LIB: (&str, &str) = ("lib.rs", "pub mod high; pub mod low; pub use high::Shown;");

    #[test]
    fn uses_of_rooms_before_are_fine() {
        let high = "use crate::low::inner::{A, b}; use super::low; pub struct Shown(A);";
        let low = "pub mod inner; #[cfg(test)] mod tests { use crate::high::Shown; }";
        let inner = "use super::C; pub struct A; impl A {} pub fn b() {}";
        let files = [
            LIB,
            ("high.rs", high),
            ("low.rs", low),
            ("low/inner.rs", inner),
        ];
        assert_eq!(faults(&files), [""; 0]);
    }

    #[test]
    fn a_use_of_a_room_after_is_a_fault_with_its_line() {
        let high = ("high.rs", "pub struct Shown; pub struct B;");
        for (low, line, name) in [
            ("\nuse crate::high::Shown;", 2, "high::Shown"),
            (
                "use std::fmt;\n\nuse crate::{high::{Shown, B}};",
                3,
                "high::B",
            ),
            ("use crate::Shown;", 1, "Shown"),
            ("fn f() {\n    let _ = crate::high::B;\n}", 2, "high::B"),
            ("use super::high;", 1, "high"),
            ("use crate::high::*;", 1, "high::*"),
        ] {
            let found = faults(&[LIB, high, ("low.rs", low)]);
            let at = format!("crates/x/src/low.rs:{line}: `low` uses `{name}`");
            assert!(found.iter().any(|f| f.starts_with(&at)), "{low}: {found:?}");
        }
    }

    #[test]
    fn folders_and_rooms_are_the_same() {
        let found = faults(&[LIB, ("low.rs", ""), ("attic/dust.rs", "")]);
        assert!(found[0].contains("`attic` is no room"), "{found:?}");
        assert!(found[1].contains("no room `high`"), "{found:?}");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn methods_are_in_the_room_of_their_type() {
        let high = "use crate::low::A; pub struct Shown; impl A { pub fn shown(&self) {} }";
        let found = faults(&[LIB, ("high.rs", high), ("low.rs", "pub struct A;")]);
        assert_eq!(found.len(), 1, "{found:?}");
        let at = "crates/x/src/high.rs:1: an `impl A` in `high`, and `low` declares the type";
        assert!(found[0].starts_with(at), "{found:?}");
    }
}
