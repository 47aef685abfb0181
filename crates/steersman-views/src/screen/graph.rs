//! The screen of `graph`, for a session.

use super::seen::named_line;
use super::{Ask, Missing, Refusal, Screen, ScreenError, Seen, branch_name, line};
use crate::graph::{self, Graph};
use crate::list::status;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Bodies as _, Line};

/// The definition of a session as a picture, with the marks of where it stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GraphScreen {
    /// The picture.
    pub graph: Graph,
}

impl Screen for GraphScreen {
    const NAME: &'static str = "graph";

    async fn of(seen: Seen, ask: &Ask) -> Result<Self, ScreenError> {
        let (inspection, branch) = (&seen.inspection, seen.branch());
        let path = seen.log.path(branch, &inspection.branches);
        let line = line(named_line(ask)?.as_ref(), &path)?;
        let upto = line.unwrap_or(branch.head);
        let path: Vec<&Arc<LogLine>> = path.into_iter().filter(|l| l.n <= upto).collect();
        let snapshot = match line {
            None => branch.snapshot.clone(),
            Some(_) => path
                .iter()
                .fold(Snapshot::empty(), |snapshot, line| fold(snapshot, line)),
        };
        let binding = snapshot.binding.as_ref();
        let binding =
            binding.ok_or_else(|| Refusal::new(Missing::Line, "this session has not begun"))?;
        let values = seen.log.texts.text(binding.values);
        let network = seen
            .engine
            .network_of(&inspection.info.id, binding, &values)
            .await?;
        let mut drawn = graph::draw(&network);
        let pending = if line.is_none() {
            &inspection.pending[..]
        } else {
            &[]
        };
        graph::stand(
            &mut drawn,
            &network,
            &snapshot,
            &path,
            pending,
            &seen.log.texts,
        );
        drawn.graph.stands = Some(heading(&seen, line, upto));
        Ok(Self { graph: drawn.graph })
    }
}

/// Returns the line above the drawing of a session: its name, branch, line and status.
fn heading(seen: &Seen, line: Option<Line>, upto: Line) -> String {
    let inspection = &seen.inspection;
    let of = match inspection.branches.len() {
        1 => String::new(),
        _ => format!(" on {}", branch_name(seen.branch())),
    };
    let status = match line {
        Some(_) => "as it stood then".to_owned(),
        None => match status(&inspection.info) {
            at_work @ ("running" | "interrupted") => at_work.to_owned(),
            _ => inspection.settled.word().to_owned(),
        },
    };
    format!("session {}{of} @{upto}: {status}", seen.short)
}
