//! Detects whether a session's definition was edited since the session was bound to it, and binds the session again.

use crate::commands::check;
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::printer::{Printer, yellow};
use std::path::{Path, PathBuf};
use steersman::Network;
use steersman::runtime::engine::Inspection;
use steersman_machine::network::{Network as CheckedNetwork, Source};
use steersman_machine::stored::ids::Digest;

/// Returns the file of the session's definition, if it is known and still exists.
pub(crate) fn file(seen: &Inspection) -> Option<PathBuf> {
    let folder = Path::new(seen.values.folder.as_deref()?);
    let name = seen.values.file.as_deref().unwrap_or("steersman.yaml");
    Some(folder.join(name)).filter(|file| file.is_file())
}

/// Returns true if a definition is at another place than the one that the session is bound to.
fn is_elsewhere(seen: &Inspection, network: &Network) -> bool {
    let folder = network.folder().map(|folder| folder.display().to_string());
    folder != seen.values.folder || network.file() != seen.values.file.as_deref()
}

fn differs(seen: &Inspection, network: &Network) -> bool {
    let bound = seen.network.as_ref();
    bound.is_some_and(|bound| bound.digest != network.checked().digest)
}

/// Returns both digests: `3f9a21` and `77c0de`. If the second is known only when a session starts, it is `another one`.
fn digests(place: &Place, seen: &Inspection, network: &Network) -> (String, String) {
    let was = seen.binding().map(|bound| bound.digest.short());
    let now = place.engine().digest_under(seen, network.checked());
    let now = now.map_or_else(|| "another one".to_owned(), Digest::short);
    (was.unwrap_or_default(), now)
}

/// Warns if the definition was edited, so that nobody looks for a prompt that is not in use, or if its folder is not there.
pub(crate) fn tell(place: &Place, seen: &Inspection, rebind: &str, printer: &Printer) {
    let gone = seen
        .values
        .folder
        .as_deref()
        .filter(|folder| !Path::new(folder).is_dir());
    if let (Some(folder), Some(network)) = (gone, &seen.network)
        && needs_folder(network)
    {
        printer.talk(yellow(&format!(
            "the folder of the definition, {folder}, is not there, and its commands run in it; {rebind} DEFINITION takes \
             the definition from where it is now"
        )));
    }
    let (Some(file), Some(bound)) = (file(seen), &seen.network) else {
        return;
    };
    let was = seen.binding().map(|bound| bound.digest.short());
    let was = was.unwrap_or_default();
    let built = Network::from_path(&file).and_then(|builder| Ok(builder.build()?));
    let told = match built {
        // Another definition has replaced the file, which is not an edit.
        Ok(network) if network.checked().name != bound.name => return,
        Ok(network) if !differs(seen, &network) => return,
        Ok(network) => {
            let (was, now) = digests(place, seen, &network);
            format!(
                "definition changed ({was}, now {now}); this session stays on {was}; {rebind} takes the new one"
            )
        }
        Err(_) => {
            format!("definition changed and has errors now; this session stays on {was}")
        }
    };
    printer.talk(yellow(&told));
}

/// Returns true if something of a definition runs in its folder.
fn needs_folder(network: &CheckedNetwork) -> bool {
    let mut tools = network.tools.values();
    tools.any(|tool| matches!(tool.source, Source::Command { .. } | Source::Mcp { .. }))
}

/// Checks that a session is bound to the definition that the command names.
pub(crate) fn is_bound_to(
    place: &Place,
    seen: &Inspection,
    short: &str,
    definition: &Path,
    printer: &Printer,
) -> Result<(), CommandError> {
    let network = check::required(definition, printer)?;
    if !differs(seen, &network) {
        if is_elsewhere(seen, &network) {
            let bound = seen.values.folder.as_deref().unwrap_or_default();
            printer.talk(yellow(&format!(
                "it is the same definition at another place; this session stays at {bound}; --rebind moves it"
            )));
        }
        return Ok(());
    }
    let (was, now) = digests(place, seen, &network);
    Err(CommandError::usage(format!(
        "session `{short}` is bound to {was}, and `{}` is {now}",
        definition.display()
    ))
    .hint(format!(
        "to go on with the definition that it is bound to: steersman run --resume {short}"
    ))
    .hint(format!(
        "to take the new one: steersman run --resume {short} --rebind {}",
        definition.display()
    )))
}

/// Binds the session to the present state of a definition: the one that is named, otherwise its own.
pub(crate) async fn rebind(
    place: &Place,
    seen: &Inspection,
    short: &str,
    definition: Option<&Path>,
    printer: &Printer,
) -> Result<(), CommandError> {
    let known = file(seen);
    let Some(path) = definition.or(known.as_deref()) else {
        return Err(CommandError::usage(format!(
            "the file of the definition of session `{short}` is not known or does not exist"
        ))
        .hint(format!(
            "name it: steersman run --resume {short} --rebind DEFINITION"
        )));
    };
    if seen.network.is_none() {
        return Err(CommandError::usage(format!(
            "session `{short}` has not begun: its definition is fixed already"
        ))
        .hint("begin another one: steersman run"));
    }
    let network = check::required(path, printer)?;
    if !differs(seen, &network) && !is_elsewhere(seen, &network) {
        printer.talk("The definition is the one that it is bound to.");
        return Ok(());
    }
    let done = place
        .steersman
        .redefine(&seen.info.id, &network, "user")
        .await;
    if let (Ok(()), false, Some(folder)) = (&done, differs(seen, &network), network.folder()) {
        let folder = folder.display();
        printer.talk(format!("The session follows its definition to {folder}."));
    }
    done.map_err(|error| match error {
        steersman::Error::Refused(why) => {
            let error = CommandError::new(
                Exit::Store,
                format!("session `{short}` does not take the new definition: {why}"),
            )
            .hint(format!(
                "it goes on with the one that it is bound to: steersman run --resume {short}"
            ));
            let mut branches = seen.branches.iter().filter(|branch| !branch.superseded);
            let open = branches.find(|branch| branch.snapshot.is_open());
            match open {
                Some(branch) => error.hint(format!(
                    "to end what is open, and then take the new one: steersman cancel {}",
                    crate::place::typed_as(short, (branch.id != seen.current).then_some(branch))
                )),
                None => error.hint("a new session takes the new one: steersman run"),
            }
        }
        other => other.into(),
    })
}
