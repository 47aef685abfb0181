//! Files that are sent with a message or an event.

use crate::error::CommandError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use std::io::ErrorKind;
use std::path::Path;
use steersman::{Content, media_of_file};
use steersman_machine::stored::bounds::ARTIFACT;
use steersman_machine::view::artifact::unfit;
use steersman_runtime::files;

/// Reads the files of a message, each under the name given with it, otherwise under the file's own name.
pub(crate) fn to_message(files: &[String]) -> Result<Vec<Content>, CommandError> {
    let contents = files.iter().map(|file| match file.split_once('=') {
        Some((name, path)) => read(Some(name), Path::new(path)),
        None => read(None, Path::new(file)),
    });
    let contents: Vec<Content> = contents.collect::<Result<_, _>>()?;
    match unfit(&contents) {
        Some(why) => Err(CommandError::usage(why).hint("give it another name: --file NAME=PATH")),
        None => Ok(contents),
    }
}

/// Puts files into the payload of an event, each as the content of one field.
pub(crate) fn to_event(files: &[String], payload: &mut Json) -> Result<(), CommandError> {
    for file in files {
        let (field, path) = file.split_once('=').ok_or_else(|| {
            CommandError::usage(format!("`{file}` does not name a field of the event"))
                .hint("--file FIELD=PATH")
        })?;
        let content = read(None, Path::new(path))?;
        let Some(fields) = payload.as_object_mut() else {
            return Err(CommandError::usage(
                "the payload of an event is a JSON object",
            ));
        };
        let value = json!({
            "name": content.name,
            "media_type": content.media,
            "base64": STANDARD.encode(&content.bytes),
        });
        if fields.insert(field.to_owned(), value).is_some() {
            return Err(CommandError::usage(format!(
                "the field `{field}` is given twice"
            )));
        }
    }
    Ok(())
}

/// Reads one file, up to the size limit of an artifact.
fn read(name: Option<&str>, path: &Path) -> Result<Content, CommandError> {
    let failed = |error: std::io::Error| {
        let path = path.display();
        CommandError::usage(match error.kind() {
            ErrorKind::FileTooLarge => {
                format!("`{path}` holds more than the {ARTIFACT} bytes of an artifact")
            }
            _ => format!("`{path}` cannot be read: {error}"),
        })
    };
    let bytes = files::named(path, ARTIFACT).map_err(failed)?;
    let own = path.file_name().and_then(|name| name.to_str());
    let name = name.or(own).ok_or_else(|| {
        CommandError::usage(format!("`{}` has no name that is text", path.display()))
            .hint("give it one: --file NAME=PATH")
    })?;
    Ok(Content {
        name: name.to_owned(),
        media: media_of_file(name, &bytes).to_owned(),
        bytes: bytes.into(),
    })
}
