//! `check --servers`: lists what the MCP servers of a definition offer now, and compares it with the definition.

use crate::cli::{Drive, Global};
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::printer::{Printer, bold, dim};
use crate::words::count;
use serde_json::{Value as Json, json};
use steersman::{Network, Steersman};
use steersman_machine::network::manifest::Manifest;
use steersman_machine::network::wire_name;

/// Returns the name under which models see a tool, if it differs by more than the dot replaced by two underscores.
/// Providers accept letters, digits, `_` and `-`.
pub(crate) fn renamed(tool: &str) -> Option<String> {
    let seen = wire_name(tool);
    (seen != tool.replacen('.', "__", 1)).then_some(seen)
}

fn renamed_all(manifest: &Manifest) -> Json {
    let servers = manifest.servers.iter();
    let tools = servers.flat_map(|(server, listing)| {
        let tools = listing.tools.iter();
        tools.map(move |listed| format!("{server}.{}", listed.name))
    });
    let renamed = tools.filter_map(|tool| Some((tool.clone(), Json::from(renamed(&tool)?))));
    Json::Object(renamed.collect())
}

/// Returns what asks the servers of a definition: over the store, if one of them wants a sign-in and there is a store.
pub(crate) async fn asker(network: &Network, global: &Global) -> Result<Steersman, CommandError> {
    let mut servers = network.checked().mcp.values();
    let signs_in = servers.any(|server| server.oauth().is_some());
    if signs_in && Place::existing(global).await?.is_some() {
        let place = Place::open(global, &Drive::default()).await?;
        return Ok(place.steersman);
    }
    Ok(Steersman::in_memory())
}

pub(crate) async fn run(
    network: &Network,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let steersman = asker(network, global).await?;
    let answers = steersman.servers(network).await?;
    let mut manifest = Manifest::default();
    let mut failed = Vec::new();
    for answer in answers {
        match answer.offers {
            Ok(listing) => {
                manifest.servers.insert(answer.server, listing);
            }
            Err(fault) => failed.push((answer.server, fault.message)),
        }
    }
    let fits = network.checked().with_manifest(&manifest);
    let exit = match (&fits, failed.is_empty()) {
        (Err(_), _) => Exit::Definition,
        (Ok(_), false) => Exit::Failed,
        (Ok(_), true) => Exit::Answered,
    };
    if printer.is_json() {
        let failed = failed
            .iter()
            .map(|(server, why)| (server.to_string(), Json::from(&**why)));
        printer.json(&json!({
            "ok": exit == Exit::Answered,
            "servers": manifest.servers,
            "renamed": renamed_all(&manifest),
            "failed": failed.collect::<serde_json::Map<_, _>>(),
            "wrong": fits.as_ref().err(),
        }))?;
        return Ok(exit);
    }
    for (name, listing) in &manifest.servers {
        let tools = count(listing.tools.len() as u64, "tool");
        printer.data(format!(
            "{}   {tools}   {}",
            bold(name),
            dim(&listing.about)
        ))?;
        for listed in &listing.tools {
            let tool = format!("{name}.{}", listed.name);
            let known = fits
                .as_ref()
                .ok()
                .and_then(|network| network.tools.get(&*tool));
            let class = known.map_or("", |tool| tool.effect.word());
            let about = listed.description.lines().next().unwrap_or_default();
            let about: String = about.chars().take(80).collect();
            printer.data(format!("  {tool:<32} {class:<10} {}", dim(&about)))?;
            if let Some(seen) = renamed(&tool) {
                printer.data(format!("    a model sees it as {seen}"))?;
            }
        }
    }
    for (name, why) in &failed {
        printer.complain(format!("error: MCP server `{name}`: {why}\n"));
    }
    for why in fits.as_ref().err().into_iter().flatten() {
        printer.complain(format!("error: {why}\n"));
    }
    if network.checked().mcp.is_empty() {
        printer.talk("This definition has no MCP servers.");
    }
    Ok(exit)
}
