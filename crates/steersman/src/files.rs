//! Artifacts in the payload of an event: a sender puts the content where the definition declares an artifact.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json};
use steersman_machine::stored::bounds::ARTIFACT;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::types::{Misfit, Type, TypeKind};
use steersman_machine::view::artifact;
use steersman_machine::view::artifact::{Content, media_of};

/// Returns the payload with each artifact replaced by its name, and the contents that were taken out.
///
/// # Errors
/// The error names the field that has no valid content: an artifact is an object of `name`, `media_type`, and `text` or `base64`.
pub(crate) fn taken_out(
    fields: &[(Name, Type)],
    payload: &Json,
) -> Result<(Json, Vec<Content>), String> {
    let Some(given) = payload.as_object() else {
        return Ok((payload.clone(), Vec::new()));
    };
    let mut contents = Vec::new();
    let named = fields_of(fields, given, &mut contents).map_err(|misfit| misfit.to_string())?;
    match artifact::unfit(&contents) {
        Some(why) => Err(why),
        None => Ok((Json::Object(named), contents)),
    }
}

fn fields_of(
    fields: &[(Name, Type)],
    given: &Map<String, Json>,
    contents: &mut Vec<Content>,
) -> Result<Map<String, Json>, Misfit> {
    let mut named = given.clone();
    for (name, ty) in fields {
        if let Some(value) = named.get_mut(&**name) {
            replace(ty, value, name, contents).map_err(|misfit| misfit.under(name))?;
        }
    }
    Ok(named)
}

/// Takes the contents out of a value of this type. Any other misfit is left to the type check that follows.
fn replace(
    ty: &Type,
    value: &mut Json,
    field: &str,
    contents: &mut Vec<Content>,
) -> Result<(), Misfit> {
    match (&ty.kind, &mut *value) {
        (TypeKind::Artifact, Json::Null) if ty.optional => {}
        (TypeKind::Artifact, given) => {
            let content = content(given, field)?;
            *value = Json::from(&*content.name);
            contents.push(content);
        }
        (TypeKind::List(items), Json::Array(list)) => {
            for (n, item) in list.iter_mut().enumerate() {
                replace(items, item, field, contents)
                    .map_err(|misfit| misfit.under(&format!("[{n}]")))?;
            }
        }
        (TypeKind::Fields(fields), Json::Object(given)) => {
            *given = fields_of(fields, given, contents)?;
        }
        _ => {}
    }
    Ok(())
}

/// Reads a content from the value that a sender gave for an artifact.
fn content(given: &Json, field: &str) -> Result<Content, Misfit> {
    const WANTED: &str = "must be an artifact: { \"name\": \"..\", \"media_type\": \"..\", and \"base64\" or \"text\" }";
    let wrong = |why: &str| Misfit {
        path: String::new(),
        why: why.to_owned(),
    };
    let object = given.as_object().ok_or_else(|| wrong(WANTED))?;
    let known = ["name", "media_type", "base64", "text"];
    if let Some(extra) = object.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(wrong("is not declared of an artifact").under(extra));
    }
    let text = |key: &str| match object.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(wrong("must be text").under(key)),
    };
    let bytes: Vec<u8> = match (text("base64")?, text("text")?) {
        (Some(coded), None) if coded.len() / 4 * 3 > ARTIFACT + 3 => {
            let why = format!("is more than the {ARTIFACT} bytes of one version");
            return Err(wrong(&why).under("base64"));
        }
        (Some(coded), None) => STANDARD
            .decode(coded)
            .map_err(|error| wrong(&format!("is no base64: {error}")).under("base64"))?,
        (None, Some(text)) => text.into(),
        _ => return Err(wrong(WANTED)),
    };
    let name = text("name")?.unwrap_or(field);
    let media = text("media_type")?.unwrap_or_else(|| media(name, &bytes));
    Ok(Content {
        name: name.to_owned(),
        media: media.to_owned(),
        bytes: bytes.into(),
    })
}

/// Returns the media type of a file, by its name. If the name means `text/plain` and the bytes are not UTF-8, it is
/// `application/octet-stream`.
pub fn media<'a>(name: &str, bytes: &[u8]) -> &'a str {
    match media_of(name) {
        "text/plain" if std::str::from_utf8(bytes).is_err() => "application/octet-stream",
        media => media,
    }
}
