//! Long-term memory: texts that sessions of a store save and find by scope. Where they are kept is the store's; what the
//! tools are, and which scope a session means, is said here.

use crate::bounds;
use crate::network::Network;
use crate::snapshot::Snapshot;
use crate::tick::Cx;
use crate::view::View;

/// Bytes of one memory at most.
pub const CONTENT: usize = 1 << 20;
/// Tags of one memory at most.
pub const TAGS: usize = 16;
/// Bytes of a tag at most.
pub const TAG: usize = 64;
/// Bytes of a scope at most.
pub const SCOPE: usize = 256;
/// Bytes of one memory that are read at once.
pub const READ: usize = 15 << 10;

/// The scope whose memories a session saves and finds, as the entry of the session sees it: no other agent's state
/// stands in its place.
///
/// # Errors
/// Why there is none, for the model: a value is unset, or what comes of it is no scope. There is nothing that stands in.
pub fn scope(cx: &Cx<'_>, snapshot: &Snapshot) -> Result<String, String> {
    let Some(template) = &cx.network.memory.scope else {
        return Ok(cx.network.name.to_string());
    };
    let source = &template.source;
    let view = View::new(cx, snapshot, snapshot.root);
    let gap = template
        .gap(&view)
        .map_err(|e| said(source, &e.to_string()))?;
    if let Some(gap) = gap {
        return Err(said(source, &format!("`{gap}` is not set yet")));
    }
    let scope = template.render(&view);
    let scope = scope.map_err(|e| said(source, &e.to_string()))?;
    unfit_scope(&scope).map_or_else(|| Ok(scope.clone()), |why| Err(said(source, &why)))
}

fn said(source: &str, why: &str) -> String {
    let source = bounds::cut(source, 128);
    format!(
        "there is no memory here: of its scope `{source}`, {why}. Nothing was saved or searched."
    )
}

/// Why a text is no scope; none if it is one.
pub fn unfit_scope(scope: &str) -> Option<String> {
    if scope.trim().is_empty() {
        return Some("nothing is left".to_owned());
    }
    if scope.len() > SCOPE {
        return Some(format!("{} bytes come; {SCOPE} is the most", scope.len()));
    }
    if scope.chars().any(char::is_control) {
        return Some("there are characters in it that are not seen".to_owned());
    }
    (scope.trim() != scope).then(|| "it begins or ends with a blank".to_owned())
}

/// How the scope of a network reads, for people: the template, or the network's name.
pub fn told_scope(network: &Network) -> &str {
    let template = network.memory.scope.as_ref();
    template.map_or(&network.name, |template| &template.source)
}

/// Why something may not be saved under this name with these tags; none if it may.
pub fn unfit(name: &str, tags: &[&str]) -> Option<String> {
    if let Some(why) = crate::artifact::misnamed(name) {
        return Some(why.replace("an artifact", "a memory"));
    }
    if tags.len() > TAGS {
        return Some(format!("{} tags come; {TAGS} is the most", tags.len()));
    }
    let bad =
        |tag: &&&str| tag.trim().is_empty() || tag.len() > TAG || tag.chars().any(char::is_control);
    let bad = tags.iter().find(bad)?;
    Some(format!(
        "`{}` is no tag: a tag is a word or a few, of {TAG} bytes at most",
        bounds::cut(bad, TAG).escape_debug()
    ))
}
