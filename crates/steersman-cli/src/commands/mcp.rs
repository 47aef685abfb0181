//! `mcp`: serves definitions as tools to a program that starts this one, with the Model Context Protocol.

use crate::cli::{Drive, Global};
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;

pub(crate) const LISTED: &str = "Serve definitions as tools to a program that starts this (MCP)";

/// Serve definitions as tools over standard input and output with the Model Context Protocol. A client of the protocol starts this; nothing is
/// to be typed here.
///
/// Each entry is a tool. A call begins a session or goes on with one, and the sessions of the store are driven until the client goes away.
/// `steersman serve` has the same tools over HTTP, at `/mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    /// The definitions whose entries are tools [default: the definition here].
    #[arg(value_name = "DEFINITION")]
    definitions: Vec<PathBuf>,
    /// A role in which the person at the client may decide and answer [default: user].
    #[arg(long = "as", value_name = "ROLE", value_parser = NonEmptyStringValueParser::new())]
    roles: Vec<String>,
    #[command(flatten)]
    drive: Drive,
}

#[cfg(not(feature = "serve"))]
pub(crate) async fn run(
    args: McpArgs,
    _global: &Global,
    _printer: &Printer,
) -> Result<Exit, CommandError> {
    drop(args);
    Err(
        CommandError::usage("this program was built without its server")
            .hint("build it with its default features"),
    )
}

#[cfg(feature = "serve")]
pub(crate) async fn run(
    args: McpArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    use super::serve::{paths, read, trouble};
    use crate::place::Place;
    use crate::printer::yellow;
    use steersman_server::{Options, Server, serve_mcp};
    use tokio::signal::unix::{SignalKind, signal};

    let paths = paths(&args.definitions);
    if paths.is_empty() {
        return Err(CommandError::usage("there is no definition here")
            .hint("name it with its path: steersman mcp /home/ann/desk"));
    }
    let definitions = read(&paths, printer)?;
    let mut term = signal(SignalKind::terminate())?;
    let place = Place::to_serve(global, &args.drive, &definitions, None).await?;
    let options = Options {
        definitions,
        ..Options::default()
    };
    let server = Server::new(place.steersman.clone(), options);
    let (driving, troubles) = (server.clone(), printer.clone());
    let mut driving = tokio::spawn(async move {
        let told = |what| {
            if let Some(trouble) = trouble(&what) {
                troubles.complain(yellow(&trouble));
            }
        };
        driving.drive(told).await
    });
    let roles = args.roles.iter().map(|role| role.as_str().into()).collect();
    let served = tokio::select! {
        served = serve_mcp(&server, roles, tokio::io::stdin(), tokio::io::stdout()) => served,
        _ = term.recv() => Ok(()),
        _ = tokio::signal::ctrl_c() => Ok(()),
        driven = &mut driving => {
            driven.map_err(|error| CommandError::store(error.to_string()))??;
            return Ok(Exit::Answered);
        }
    };
    server.stop();
    let driven = driving.await;
    driven.map_err(|error| CommandError::store(error.to_string()))??;
    served.map_err(|error| {
        CommandError::usage(format!(
            "the client sent no message of the protocol: {error}"
        ))
        .hint("`steersman mcp` is started by a client, not by hand")
    })?;
    Ok(Exit::Answered)
}
