//! `cancel`: a call, an agent, or all of a session.

use crate::cli::{Cancel, Global};
use crate::commands::act::{Target, role};
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use steersman::runtime::inbox::{CancelWhat, Message};
use steersman_machine::ids::Id;

pub(crate) async fn run(
    args: Cancel,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let target = Target::find(&args.session, global, &args.act.own.drive).await?;
    let what = match args.what.as_deref() {
        None | Some("session") => CancelWhat::Session,
        Some(name) => find(&target, name)?,
    };
    let message = Message::Cancel {
        what,
        by: role(&args.act),
        branch: None,
    };
    let exit = target
        .deliver(message, None, &args.act.own, printer)
        .await?;
    // cancelled is what was asked for
    Ok(if exit == Exit::Failed {
        Exit::Answered
    } else {
        exit
    })
}

/// An open call or an agent, by id or by name.
fn find(target: &Target, name: &str) -> Result<CancelWhat, CommandError> {
    let Some(branch) = target.inspection.current_branch() else {
        return Err(CommandError::usage("this session has not begun"));
    };
    let snapshot = &branch.snapshot;
    let id = name.parse::<Id>().ok();
    let effects: Vec<Id> = snapshot
        .effects
        .iter()
        .filter(|(effect, _)| {
            let call = snapshot.call_of(**effect);
            id == Some(**effect)
                || call.is_some_and(|c| id == Some(c.call.id) || *c.call.name == *name)
        })
        .map(|(effect, _)| *effect)
        .collect();
    let agents: Vec<Id> = snapshot
        .agents
        .values()
        .filter(|a| id == Some(a.id) || *a.def == *name)
        .map(|a| a.id)
        .collect();
    match (effects.as_slice(), agents.as_slice()) {
        ([effect], []) => Ok(CancelWhat::Effect(*effect)),
        ([], [agent]) => Ok(CancelWhat::Agent(*agent)),
        ([], []) => Err(CommandError::usage(format!(
            "no open call and no agent is named `{name}`"
        ))
        .hint("`steersman show` names them")),
        _ => {
            let ids: Vec<String> = effects.iter().chain(&agents).map(Id::to_string).collect();
            Err(CommandError::usage(format!("`{name}` means more than one"))
                .hint(format!("name one by its id: {}", ids.join(", "))))
        }
    }
}
