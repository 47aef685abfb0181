//! A router in Rust: it is called once for each decision; its choice and the values that it read are recorded.

use super::{Decision, Reads};
use crate::network::Network;
use crate::network::nets::RouteView;
use crate::snapshot::Snapshot;
use crate::stored::ids::{Id, Name};
use crate::stored::interaction::Choice;
use crate::view::View;

pub(super) fn decide(
    network: &Network,
    snapshot: &Snapshot,
    agent: Id,
    view: &View<'_>,
    members: &[Name],
) -> Decision {
    let agent = snapshot.agent(agent);
    let Some(router) = network.natives.routers.get(&agent.def) else {
        return Decision::Failed(format!("no router `{}` is registered", agent.def));
    };
    let reads = Reads::new(view);
    let chosen = router.route(&RouteView {
        snapshot,
        agent,
        scope: &reads,
    });
    match chosen {
        Err(why) => Decision::Failed(why),
        Ok(Choice::Agents(names)) if names.iter().any(|n| !members.contains(n)) => {
            Decision::Failed(format!("`{}` is not among its members", names.join(", ")))
        }
        Ok(choice) => Decision::Chosen(choice, reads.into_values()),
    }
}
