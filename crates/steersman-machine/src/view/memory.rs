//! Long-term memory: texts that the sessions of a store save and find by scope. Stores keep the texts. This module has their
//! limits and finds the scope of a session.

use crate::network::Network;
use crate::snapshot::Snapshot;
use crate::stored::bounds;
use crate::view::{Cx, View};

/// Maximum size, in bytes, of one memory.
pub const CONTENT: usize = 1 << 20;
/// Maximum number of tags of one memory.
pub(crate) const TAGS: usize = 16;
/// Maximum size, in bytes, of a tag.
pub(crate) const TAG: usize = 64;
/// Maximum size, in bytes, of a scope.
pub const SCOPE: usize = 256;
/// Maximum number of bytes of a memory that one read returns.
pub const READ: usize = 15 << 10;

/// Returns the scope in which a session saves and finds memories. Its template always reads the state that the root agent sees,
/// whichever agent uses the memory.
///
/// # Errors
/// The reason why there is no scope, for the model: a value is unset, or the text is not a valid scope. There is no fallback.
pub fn scope(cx: &Cx<'_>, snapshot: &Snapshot) -> Result<String, String> {
    let Some(template) = &cx.network.memory.scope else {
        return Ok(cx.network.name.to_string());
    };
    let source = &template.source;
    let view = View::new(cx, snapshot, snapshot.root);
    let gap = template
        .gap(&view)
        .map_err(|e| no_scope(source, &e.to_string()))?;
    if let Some(gap) = gap {
        return Err(no_scope(source, &format!("`{gap}` is not set yet")));
    }
    let scope = template.render(&view);
    let scope = scope.map_err(|e| no_scope(source, &e.to_string()))?;
    unfit_scope(&scope).map_or_else(|| Ok(scope.clone()), |why| Err(no_scope(source, &why)))
}

fn no_scope(source: &str, why: &str) -> String {
    let source = bounds::cut(source, 128);
    format!(
        "there is no memory here, because its scope `{source}` cannot be used: {why}. Nothing was saved or searched."
    )
}

/// Returns the reason why a text is not a valid scope, or `None` if it is.
pub fn unfit_scope(scope: &str) -> Option<String> {
    if scope.trim().is_empty() {
        return Some("it is empty".to_owned());
    }
    if scope.len() > SCOPE {
        return Some(format!(
            "it has {} bytes; at most {SCOPE} are allowed",
            scope.len()
        ));
    }
    if scope.chars().any(char::is_control) {
        return Some("it has control characters".to_owned());
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
        return Some(format!(
            "it has {} tags; at most {TAGS} are allowed",
            tags.len()
        ));
    }
    let is_bad =
        |tag: &&&str| tag.trim().is_empty() || tag.len() > TAG || tag.chars().any(char::is_control);
    let bad = tags.iter().find(is_bad)?;
    Some(format!(
        "`{}` is not a tag: a tag is a word or a few, of {TAG} bytes at most",
        bounds::cut(bad, TAG).escape_debug()
    ))
}
