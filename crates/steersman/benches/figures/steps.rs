//! A step inside a Rust tool, compared with a line of a tool loop: both are on disk before the next one begins.

use crate::many::{Caller, Gaps, LIVE};
use crate::measure::{Goal, Size, Table, Took, Watch, median, short};
use crate::store::file;
use crate::world::runtime;
use serde_json::Value as Json;
use std::sync::Arc;
use steersman::runtime::engine::Durability;
use steersman::{Network, Steersman, ToolError, Turn, tool, tool_with};

/// Drives one session in which a model calls the tool so often. Returns the number of lines.
async fn driven(network: &Network, turns: u32) -> (u64, Took) {
    let model = Caller {
        tool: "look",
        turns,
        gaps: Arc::<Gaps>::default(),
    };
    let setup = Steersman::options().model("default", model);
    let setup = setup.durability(Durability::Step);
    let steersman = setup.open(file("steps.db")).await.expect("it opens");
    let session = steersman.start(network).await.expect("it starts");
    let before = steersman.engine().store().head(session.id()).await;
    let watch = Watch::start();
    let turn = session.ask("Please look.").await.expect("it is driven");
    let took = watch.took();
    assert!(matches!(turn, Turn::Answer(_)), "{turn:?}");
    let after = steersman.engine().store().head(session.id()).await;
    steersman.stop().await;
    let lines = after.expect("it is there").0 - before.expect("it is there").0;
    (lines, took)
}

/// The section of steps.
pub(crate) fn report(table: &Table, size: Size) {
    let steps = size.of(900, 20);
    let stepping = Network::from_yaml(LIVE)
        .tool(tool_with("look", 1, move |_: Json, cx| async move {
            for n in 0..steps {
                let green = async { Ok::<_, ToolError>("The lamp in the hall is green.") };
                let seen: String = cx
                    .step(&format!("look {n}"), async {
                        green.await.map(str::to_owned)
                    })
                    .await?;
                std::hint::black_box(seen);
            }
            Ok::<_, ToolError>("green")
        }))
        .build()
        .expect("the definition of the benchmark is right");
    let looking = Network::from_yaml(LIVE)
        .tool(tool("look", 1, |_: Json| async {
            Ok::<_, String>("The lamp in the hall is green.")
        }))
        .build()
        .expect("the definition of the benchmark is right");
    let mut all = Vec::new();
    for _ in 0..size.repeat {
        let (lines, loops) = runtime().block_on(driven(&looking, (steps / 2) as u32));
        let (_, inside) = runtime().block_on(driven(&stepping, 1));
        all.push((
            [inside.micros(steps), loops.micros(lines)],
            [
                inside.clock * 1e6 / steps as f64,
                loops.clock * 1e6 / lines as f64,
            ],
        ));
    }
    let mid = |of: fn(&([f64; 2], [f64; 2])) -> f64| median(all.iter().map(of));
    let beside = format!(
        "{} and {} us",
        short(mid(|(cpu, _)| cpu[0])),
        short(mid(|(cpu, _)| cpu[1]))
    );
    let figure = "`cx.step`, each on disk: CPU over a line of a tool loop";
    table.row(
        figure,
        mid(|(cpu, _)| cpu[0] / cpu[1]),
        " times",
        Goal::None,
        &beside,
    );
    let beside = format!(
        "{} and {} us",
        short(mid(|(_, clock)| clock[0])),
        short(mid(|(_, clock)| clock[1]))
    );
    let figure = "the same: time";
    table.row(
        figure,
        mid(|(_, clock)| clock[0] / clock[1]),
        " times",
        Goal::None,
        &beside,
    );
}
