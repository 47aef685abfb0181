//! The to-do list: a set of tools over `state.todo`.

use super::refuse;
use crate::snapshot::{Agent, OpenCall, Snapshot};
use crate::stored::bounds::cut;
use crate::stored::built_in::BuiltIn;
use crate::stored::codes::Code;
use crate::stored::interaction::How;
use crate::stored::outcome::{Mapped, NewWrite};
use crate::view::{Cx, declares, mapping};
use serde_json::{Value as Json, json};

/// Maximum size, in bytes, of the text of a failure in an item.
const WHY: usize = 256;

/// Returns the result of a call that changes the list.
pub(crate) fn change(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall, kind: BuiltIn) -> Mapped {
    let Some((scope, _)) = declares(cx, snapshot, open.owner, "todo") else {
        return refuse(Code::Failed, "failed: no state `todo` is declared here");
    };
    let cell = snapshot.cell(scope, &"todo".into());
    let mut list = cell
        .and_then(|c| c.value.0.as_array().cloned())
        .unwrap_or_default();
    // Writes take effect when the exchange closes, so add those of the calls that closed before this one.
    for other in snapshot.exchange(open.owner) {
        let writes = other.closed.iter().flat_map(|c| &c.writes);
        for (write, value) in writes {
            if write.scope == scope
                && *write.name == *"todo"
                && let Some(Json::Array(newer)) = value.as_ref().map(|v| &*v.0)
            {
                list.clone_from(newer);
            }
        }
    }
    let args = mapping::arguments(cx, snapshot, open);
    let text = |name: &str| {
        args.get(name)
            .and_then(Json::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let shown = if kind == BuiltIn::TodoAdd {
        let id = list.len() + 1;
        list.push(json!({ "id": id, "text": text("text"), "status": "todo", "result": null, "reason": null }));
        format!("Added as {id}.")
    } else {
        let id = args.get("id").cloned().unwrap_or_default();
        let failed = not_done(cx, snapshot.agent(open.owner), &list, &id, &text("result"));
        let Some(item) = list.iter_mut().find(|item| item.get("id") == Some(&id)) else {
            return refuse(Code::Misfit, format!("misfit: there is no item {id}"));
        };
        match kind {
            BuiltIn::TodoComplete => {
                if let Some(why) = failed {
                    item["reason"] = why.clone().into();
                    return Mapped {
                        writes: vec![write(list)],
                        ..refuse(
                            Code::Failed,
                            format!("failed: item {id} is not done: {why}"),
                        )
                    };
                }
                item["status"] = "done".into();
                item["result"] = text("result").into();
                item["reason"] = Json::Null;
                format!("Item {id} is done.")
            }
            BuiltIn::TodoCancel => {
                item["status"] = "cancelled".into();
                item["reason"] = text("reason").into();
                format!("Item {id} is cancelled.")
            }
            BuiltIn::TodoUpdate => {
                item["text"] = text("text").into();
                format!("Item {id} reads otherwise now.")
            }
            BuiltIn::TodoAdd
            | BuiltIn::Finish
            | BuiltIn::Done
            | BuiltIn::NeedHelp
            | BuiltIn::Handoff
            | BuiltIn::AskUser
            | BuiltIn::Fork
            | BuiltIn::ArtifactWrite
            | BuiltIn::ArtifactRead
            | BuiltIn::ArtifactList
            | BuiltIn::ArtifactSearch
            | BuiltIn::ArtifactRate
            | BuiltIn::MemorySave
            | BuiltIn::MemorySearch
            | BuiltIn::MemoryRead
            | BuiltIn::MemoryRate
            | BuiltIn::NotesSearch => String::new(),
        }
    };
    Mapped {
        writes: vec![write(list)],
        ..Mapped::plain(How::Done, None, shown)
    }
}

fn write(list: Vec<Json>) -> NewWrite {
    NewWrite {
        name: "todo".to_owned(),
        value: Some(Json::Array(list)),
        seal: false,
    }
}

/// Returns the reason why an item cannot be completed: a call failed and none has succeeded since, and either the item is the
/// first that is to be done, or the given result is the text of that failure.
fn not_done(cx: &Cx<'_>, owner: &Agent, list: &[Json], id: &Json, result: &str) -> Option<String> {
    let (name, text) = owner.turn.missed.as_ref()?;
    let text = text.map_or_else(|| "".into(), |body| cx.bodies.text(body));
    let mut open = list.iter().filter(|item| item["status"] == "todo");
    let is_next = open.next().is_some_and(|item| item.get("id") == Some(id));
    let says_so = !text.trim().is_empty() && text.trim() == result.trim();
    (is_next || says_so).then(|| cut(&format!("{name}: {text}"), WHY).into_owned())
}
