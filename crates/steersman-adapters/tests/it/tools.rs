//! Runs one tool of a definition once, as the driver would.

use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;
use steersman_adapters::secrets::Opened;
use steersman_definition::{Files, compile};
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::stored::interaction::Artifact;
use steersman_machine::tick::effect::ToolWork;
use steersman_machine::values::expression::Names;
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::Env;
use steersman_runtime::artifact::Artifacts;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{Blobs as _, Scope};
use steersman_runtime::toolset::{ToolRun, Toolset};
use tokio_util::sync::CancellationToken;

/// Compiles a definition. Panics with its errors.
pub(crate) fn network(yaml: &str) -> Arc<Network> {
    let (network, diagnostics) = compile(&Files::new("test.yaml", yaml));
    let errors = diagnostics
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n");
    Arc::new(network.unwrap_or_else(|| panic!("{errors}")))
}

pub(crate) fn env(list: &[(&str, &str)]) -> Env {
    let list = list
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let list = list.collect::<std::collections::BTreeMap<_, _>>();
    Arc::new(move |name| list.get(name).cloned())
}

/// An attempt of the tool `t` with these names (`args`, `state`, `config`) and this environment.
pub(crate) fn run_of_t(network: &Arc<Network>, names: Json, env: &Env) -> ToolRun {
    run_of(network, "t", names, env)
}

/// An attempt of this tool, with these names and this environment.
pub(crate) fn run_of(network: &Arc<Network>, tool: &str, names: Json, env: &Env) -> ToolRun {
    let args = names.get("args").cloned().unwrap_or_else(|| json!({}));
    let mut all = json!({ "args": {}, "state": {}, "config": {} });
    all.as_object_mut()
        .unwrap()
        .extend(names.as_object().unwrap().clone());
    let scope = Opened::new(Names::from_json(all), network, env, Path::new("."));
    ToolRun {
        network: network.clone(),
        session: "k7wq".into(),
        part: Scope::default(),
        mark: 0xab,
        effect: Id::new(Line(21), 1),
        attempt: 1,
        work: ToolWork {
            makes: format!("{tool}-21.1").as_str().into(),
            tool: tool.into(),
            class: network.tool(tool).effect,
            args: args.to_string().into(),
            approve: Vec::new(),
            inputs: Vec::new(),
        },
        folder: Path::new(".").into(),
        artifacts: Artifacts::new(Arc::new(MemoryStore::new()), Snapshot::empty(), None),
        scope: Arc::new(scope.expect("the secrets are there")),
        steps: None,
        writes: None,
        trace: None,
    }
}

/// The artifacts that an agent sees that has one.
pub(crate) async fn with_artifact(name: &str, media: &str, content: &[u8]) -> Artifacts {
    let store = Arc::new(MemoryStore::new());
    let agent = Id::new(Line(1), 0);
    let version = Artifact {
        scope: agent,
        call: Id::new(Line(2), 0),
        name: name.into(),
        media: media.into(),
        hash: *blake3::hash(content).as_bytes(),
        len: content.len() as u64,
    };
    store.put_blob(version.hash, content.into()).await.unwrap();
    let mut snapshot = Snapshot::empty();
    let versions = std::iter::once(version).collect();
    snapshot.artifacts.insert((agent, name.into()), versions);
    Artifacts::new(store, snapshot, agent)
}

pub(crate) async fn run(tools: &dyn Toolset, run: &ToolRun) -> Raw {
    assert!(tools.has(&run.network, &run.work.tool));
    tools.run(run, &CancellationToken::new()).await
}

pub(crate) fn shown(raw: &Raw) -> String {
    let fault = |word: &str, fault: &Fault| {
        let status = fault
            .status
            .map(|status| format!(" {status}"))
            .unwrap_or_default();
        let again = fault
            .again
            .map(|ms| format!(" again after {ms}"))
            .unwrap_or_default();
        format!("{word}: {}{status}{again}: {}", fault.code, fault.message)
    };
    match raw {
        Raw::Done(result) => format!("done: {result}"),
        Raw::Made { result, made, .. } => {
            let made = made.iter();
            let made = made.map(|c| format!("{} {} {} bytes", c.name, c.media, c.bytes.len()));
            format!(
                "done: {result}, made {}",
                made.collect::<Vec<_>>().join(", ")
            )
        }
        Raw::NotPerformed(why) => fault("not performed", why),
        Raw::Unknown(why) => fault("unknown", why),
        Raw::Failed(why) => fault("failed", why),
    }
}
