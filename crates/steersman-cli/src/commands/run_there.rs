//! `run` with a server: begins a session of a definition that the server serves, or follows one, until it rests.

use crate::address::Address;
use crate::attach;
use crate::commands::run::RunArgs;
use crate::commands::there::{driving, files, on_a_store};
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::play::there::{Followed, follow, reported};
use crate::printer::Printer;
use crate::remote::Remote;
use crate::words;
use serde_json::{Map, Value as Json, json};
use std::path::Path;
use steersman::views::screen::{Ask, FollowScreen};
use steersman_client::{Given, Say, Stands, Start, TurnOrStarted};

/// Begins a session, or goes on with one, and follows it until it rests.
pub(crate) async fn run(
    remote: &Remote,
    args: &RunArgs,
    input: Option<String>,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let on_stores = [
        ("--rebind", args.rebind),
        ("--history", args.history.is_some()),
        ("--model", !args.model.is_empty()),
        ("--step", args.step),
        ("--verbose", args.verbose),
    ];
    let given = on_stores.into_iter().find(|(_, is_given)| *is_given);
    if let Some(name) = given.map(|(name, _)| name).or(driving(&args.drive)) {
        return Err(on_a_store(name));
    }
    match (&args.resume, input) {
        (Some(session), input) => resume(remote, args, session, input, printer).await,
        (None, Some(input)) => begin(remote, args, input, printer).await,
        (None, None) => Err(
            CommandError::usage("a conversation at the terminal works on a store")
                .hint("say one thing: --input \"...\"; or leave out --server (STEERSMAN_SERVER)"),
        ),
    }
}

async fn begin(
    remote: &Remote,
    args: &RunArgs,
    input: String,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let contents = attach::to_message(&args.file)?;
    let config = config(&args.set)?;
    let start = Start {
        role: args.role.clone(),
        config: (!config.is_empty()).then_some(config),
        definition: definition(remote, args.definition.as_deref()).await?,
        entry: args.entry.clone(),
        files: files(&contents),
        message: Some(input),
        seed: args.seed,
        ..Start::default()
    };
    let sessions = remote.client.sessions();
    let session = match sessions.start(&start, &Given::default()).await? {
        TurnOrStarted::Started(started) => started.session,
        TurnOrStarted::Turn(turn) => turn.session,
    };
    finish(remote, printer, &session, (0, 0), true).await
}

async fn resume(
    remote: &Remote,
    args: &RunArgs,
    session: &str,
    input: Option<String>,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if args.definition.is_some() {
        return Err(on_a_store("a definition together with --resume"));
    }
    let address = Address::parse(session)?;
    let session = remote.session(&address.session).await?;
    let Some(input) = input else {
        let stands: FollowScreen = remote.screen_of(&session, &Ask::default()).await?;
        return finish(remote, printer, &session, (stands.upto.0, 0), false).await;
    };
    let contents = attach::to_message(&args.file)?;
    let before: FollowScreen = remote.screen_of(&session, &Ask::default()).await?;
    let say = Say {
        role: args.role.clone(),
        files: files(&contents),
        text: Some(input),
        ..Say::default()
    };
    let sessions = remote.client.sessions();
    let receipt = sessions
        .say(&session, &say, &Given::default())
        .await?
        .receipt()?;
    let after = before.upto.0;
    // A message that waits is taken after what is open, so the session is reported as it stands.
    let least = match receipt.fate {
        Stands::Taken => receipt.line.map_or(after, |line| line.saturating_sub(1)),
        _ => 0,
    };
    finish(remote, printer, &session, (after, least), false).await
}

/// Follows a session until it rests, and reports how it stands.
async fn finish(
    remote: &Remote,
    printer: &Printer,
    session: &str,
    (after, least): (u64, u64),
    begins: bool,
) -> Result<Exit, CommandError> {
    let followed = Followed {
        session,
        branch: None,
        after,
        least,
        begins,
        whole: true,
    };
    if let Some(screen) = follow(remote, printer, &followed).await? {
        return reported(printer, screen);
    }
    if printer.is_json() {
        printer.json(&json!({
            "event": "interrupted",
            "session": session,
            "status": "interrupted",
        }))?;
    }
    Ok(Exit::Interrupted)
}

/// Returns the name of the definition: that of a file here, or the text itself; otherwise the only one that the server serves.
async fn definition(remote: &Remote, given: Option<&Path>) -> Result<String, CommandError> {
    if let Some(path) = given {
        let text = path.display().to_string();
        if locate::definition(path).is_ok() {
            return Err(CommandError::usage(format!(
                "`{text}` is a file here, and a server begins the definitions that it serves"
            ))
            .hint("give the name of the definition, or leave out --server (STEERSMAN_SERVER)"));
        }
        return Ok(text);
    }
    let served = remote.client.definitions().list().await?;
    let names = served["items"].as_array().into_iter().flatten();
    let names: Vec<&str> = names.filter_map(|one| one["name"].as_str()).collect();
    match &names[..] {
        [only] => Ok((*only).to_owned()),
        [] => Err(CommandError::usage(format!(
            "{} serves no definition that this token may begin",
            remote.url
        ))
        .hint("steersman serve DEFINITION serves one")),
        several => Err(
            CommandError::usage(format!("{} serves several definitions", remote.url))
                .hint(format!("name one: {}", several.join(", "))),
        ),
    }
}

/// Returns the values of `--set`. The server knows their types.
fn config(given: &[String]) -> Result<Map<String, Json>, CommandError> {
    let mut values = Map::new();
    for given in given {
        let Some((name, text)) = given.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(CommandError::usage(format!("`--set {given}` has no value"))
                .hint("--set NAME=VALUE"));
        };
        if values.insert(name.to_owned(), words::value(text)).is_some() {
            return Err(CommandError::usage(format!(
                "`--set {name}` is given twice"
            )));
        }
    }
    Ok(values)
}
