//! `export`: sessions as documents, as trajectories, and the artifacts they made.

use crate::address::{Address, SessionName};
use crate::cli::{Export as Args, Global};
use crate::commands::test::write_new;
use crate::commands::{artifacts, log, sessions, show};
use crate::error::{CommandError, Exit};
use crate::filter::Filter;
use crate::locate;
use crate::place::Place;
use crate::printer::Printer;
use crate::words::count;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::path::Path;
use steersman::runtime::artifact::Artifacts;
use steersman::runtime::engine::{BranchView, Inspection};
use steersman::runtime::store::SessionInfo;
use steersman_machine::snapshot::Snapshot;

pub(crate) async fn run(
    args: Args,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let place = Place::to_look(global).await?;
    let found = match &args.session {
        Some(session) => vec![place.session(&Address::parse(session)?.session).await?],
        None => sessions::select(&place, &Filter::parse(args.filter.as_deref())?).await?,
    };
    if let Some(folder) = &args.artifacts {
        return artifacts_of(&place, &found, folder, printer).await;
    }
    let (mut text, mut rows) = (String::new(), 0);
    for info in &found {
        let documents = if args.trajectories {
            let worth = |seen: &Inspection, branch: &BranchView| worth(&args, seen, branch);
            place.steersman.trajectories(&info.id, worth).await?
        } else {
            vec![whole(&place, info).await?]
        };
        for document in documents {
            // writing to a text cannot fail
            let _ = writeln!(text, "{document}");
            rows += 1;
        }
    }
    match &args.out {
        Some(out) => {
            write_new(out, &text)?;
            let sessions = count(found.len() as u64, "session");
            let told = if args.trajectories {
                format!("{} of {sessions}", count(rows, "block"))
            } else {
                sessions
            };
            printer.talk(format!("{}: {told}", locate::shown(out)));
        }
        None => printer.bytes(text.as_bytes())?,
    }
    Ok(Exit::Answered)
}

/// What a branch is worth: the value that is named, else what a search said.
fn worth(args: &Args, seen: &Inspection, branch: &BranchView) -> Option<f64> {
    let Some(name) = &args.reward else {
        return seen.ledger.score(branch.id);
    };
    let value = &seen.outcome_on(branch)[name];
    let holds = value.as_bool().map(|holds| f64::from(u8::from(holds)));
    value.as_f64().or(holds)
}

/// A session as one document: what `show` tells of it, and its lines under `log`.
async fn whole(place: &Place, info: &SessionInfo) -> Result<Json, CommandError> {
    let address = Address {
        session: SessionName::Prefix(info.id.to_string()),
        branch: None,
        line: None,
    };
    let mut document = show::document(place, &address).await?;
    document["log"] = log::documents(place, &info.id).await?.into();
    Ok(document)
}

/// Every version of each artifact at `SESSION/vN/NAME`, and a list of them in `index.json`.
async fn artifacts_of(
    place: &Place,
    found: &[SessionInfo],
    folder: &Path,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let mut index = Vec::new();
    let mut saved = 0;
    for info in found {
        let seen = place.engine().inspect(&info.id).await?;
        let snapshot = seen.current_branch();
        let snapshot = snapshot.map_or_else(Snapshot::empty, |branch| branch.snapshot.clone());
        let made = Artifacts::new(place.store().clone(), snapshot, None);
        for (version, content) in made.contents().await.map_err(artifacts::refused)? {
            let mut row = artifacts::document(&version);
            row["session"] = json!(&*info.id);
            row["file"] = Json::Null;
            // what was erased is listed all the same
            if let Some(content) = content {
                let file = format!("{}/v{}/{}", info.id, version.version, version.name);
                artifacts::save(&folder.join(&file), &content)?;
                row["file"] = file.into();
                saved += 1;
            }
            index.push(row);
        }
    }
    let text = format!("{:#}\n", Json::Array(index));
    artifacts::save(&folder.join("index.json"), text.as_bytes())?;
    let (files, sessions) = (count(saved, "file"), count(found.len() as u64, "session"));
    printer.talk(format!("{}: {files} of {sessions}", locate::shown(folder)));
    Ok(Exit::Answered)
}
