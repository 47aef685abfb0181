//! Long-term memory: texts that sessions of a store save and find by scope. Stores keep the texts. This module has their size
//! limits and finds the scope of a session.

use crate::network::Network;
use crate::snapshot::Snapshot;
use crate::stored::bounds;
use crate::view::{Cx, View};

/// Maximum size, in bytes, of one memory.
pub const CONTENT: usize = 1 << 20;
/// Most tags of one memory.
pub(crate) const TAGS: usize = 16;
/// Maximum size, in bytes, of a tag.
pub(crate) const TAG: usize = 64;
/// Maximum size, in bytes, of a scope.
pub const SCOPE: usize = 256;
/// Maximum size, in bytes, of one memory that one read returns.
pub const READ: usize = 15 << 10;

/// Returns the scope in which a session saves and finds memories. Its template is evaluated as the root agent sees state, and
/// never as another agent does.
///
/// # Errors
/// The reason, for the model, why there is no scope: a value is unset, or the text is not a valid scope. There is no fallback.
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

/// Returns the reason why a text is not a valid scope, or `None` if it is.
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

/// Returns the scope of a network for people: the template, or the network's name.
pub fn told_scope(network: &Network) -> &str {
    let template = network.memory.scope.as_ref();
    template.map_or(&network.name, |template| &template.source)
}

/// Returns the reason why a memory may not have this name or these tags, or `None` if it may.
pub fn unfit(name: &str, tags: &[&str]) -> Option<String> {
    if let Some(why) = crate::view::artifact::misnamed(name) {
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
