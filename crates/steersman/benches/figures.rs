//! The figures of the project: the cost of a step, in CPU time and as ratios within one run.
//!
//! `cargo bench -p steersman` runs all sections, `cargo bench -p steersman -- machine store` some of them: `machine`,
//! `routes`, `store`, `whole`, `wire`, `many`, `growth`, `branches`, `relevance`, `contexts`, `chat`, `search`,
//! `program`, `screens`, `steps`.
//! `--quick` does about a hundredth of the work, to check that everything runs. A run without `--bench`, as by
//! `cargo test --benches`, does the same. No figure fails the run. `--count PATH TIMES` runs one hot path so often, for
//! `cargo xtask counts`.

#[path = "figures/chat.rs"]
mod chat;
#[path = "figures/contexts.rs"]
mod contexts;
#[path = "figures/counts.rs"]
mod counts;
#[path = "figures/desk.rs"]
mod desk;
#[path = "figures/growth.rs"]
mod growth;
#[path = "figures/machine.rs"]
mod machine;
#[path = "figures/many.rs"]
mod many;
#[path = "figures/measure.rs"]
mod measure;
#[path = "figures/program.rs"]
mod program;
#[path = "figures/relevance.rs"]
mod relevance;
#[path = "figures/routes.rs"]
mod routes;
#[path = "figures/screens.rs"]
mod screens;
#[path = "figures/search.rs"]
mod search;
#[path = "figures/steps.rs"]
mod steps;
#[path = "figures/store.rs"]
mod store;
#[path = "figures/whole.rs"]
mod whole;
#[path = "figures/wire.rs"]
mod wire;
#[path = "figures/world.rs"]
mod world;

use measure::{Size, Table};

type Section = (&'static str, fn(&Table, Size));

const SECTIONS: [Section; 15] = [
    ("machine", machine::report),
    ("routes", routes::report),
    ("store", store::report),
    ("whole", whole::report),
    ("wire", wire::report),
    ("many", many::report),
    ("growth", growth::report),
    ("branches", growth::branches),
    ("relevance", relevance::report),
    ("contexts", contexts::report),
    ("chat", chat::report),
    ("search", search::report),
    ("program", program::report),
    ("screens", screens::report),
    ("steps", steps::report),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [weigh, what, count] = &args[..]
        && weigh == "--weigh"
    {
        machine::weigh(what, count.parse().expect("a number"));
        return;
    }
    if let [count, path, times] = &args[..]
        && count == "--count"
    {
        counts::run(path, times.parse().expect("a number"));
        return;
    }
    if let [serve, pieces] = &args[..]
        && serve == "--serve"
    {
        wire::serve(pieces.parse().expect("a number"));
        return;
    }
    let quick = args.iter().any(|a| a == "--quick") || !args.iter().any(|a| a == "--bench");
    let wanted: Vec<&String> = args.iter().filter(|a| !a.starts_with('-')).collect();
    let table = Table::begin();
    for (name, report) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str())) {
            report(&table, Size::new(quick));
        }
    }
}
