//! The to-do list: a set of tools over `state.todo`.

use super::refuse;
use crate::effect::{Mapped, NewWrite};
use crate::fold::MISFIT;
use crate::interaction::How;
use crate::mapping;
use crate::network::BuiltIn;
use crate::snapshot::{OpenCall, Snapshot};
use crate::tick::Cx;
use crate::view::declares;
use serde_json::{Value as Json, json};

/// What a call of the set does to the list.
pub(crate) fn change(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall, kind: BuiltIn) -> Mapped {
    let Some((scope, _)) = declares(cx, snapshot, open.owner, "todo") else {
        return refuse("failed", "failed: no state `todo` is declared here");
    };
    let cell = snapshot.cell(scope, &"todo".into());
    let mut list = cell
        .and_then(|c| c.value.0.as_array().cloned())
        .unwrap_or_default();
    // What other calls of this exchange wrote takes effect when it closes; they build on each other all the same.
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
        let Some(item) = list.iter_mut().find(|item| item.get("id") == Some(&id)) else {
            return refuse(MISFIT, format!("misfit: there is no item {id}"));
        };
        match kind {
            BuiltIn::TodoComplete => {
                item["status"] = "done".into();
                item["result"] = text("result").into();
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
            | BuiltIn::ArtifactSearch => String::new(),
        }
    };
    Mapped {
        writes: vec![NewWrite {
            name: "todo".to_owned(),
            value: Some(Json::Array(list)),
            seal: false,
        }],
        ..Mapped::plain(How::Done, None, shown)
    }
}
