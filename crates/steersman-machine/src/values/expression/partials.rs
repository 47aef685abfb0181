//! Partials: pieces of prompts that ship with the library. `{% include "steersman/task" %}`
//! inserts one; it reads the names that were set before it.
//!
//! **They never change.** A definition names a partial, and its digest does not cover the text. A changed text would change the
//! requests of sessions under the same digest. An improved text gets a new name. A snapshot test guards this.

use super::Partial;

/// Makes an entry of the table. All names begin with `steersman/`, so that later kinds of includes can have other names.
macro_rules! partial {
    ($name:literal, $reads:expr, $about:literal) => {
        Partial {
            name: concat!("steersman/", $name),
            reads: &$reads,
            about: $about,
            text: include_str!(concat!("partials/", $name, ".j2")),
        }
    };
}

/// All partials of the library.
pub(super) const PARTIALS: &[Partial] = &[
    partial!("speaker", ["name"], "Who speaks, and for whom they do not."),
    partial!(
        "style",
        ["name", "role", "style"],
        "Who somebody is in a network, and how they speak."
    ),
    partial!("task", ["task"], "What is to be done."),
    partial!("rules", ["rules"], "What must be kept to."),
    partial!("demonstrations", ["demonstrations"], "Examples."),
    partial!(
        "cot",
        ["demonstrations"],
        "Examples of thinking before answering."
    ),
    partial!("output", ["tag"], "The tag around the answer."),
    partial!("last", ["last"], "The last word."),
    partial!("system", ["system"], "A text as it is."),
    partial!(
        "facts",
        ["facts"],
        "What was extracted: a map from names to values, of which those that are none are left out."
    ),
    partial!("concise", [], "Asks for a short answer."),
];

/// Returns the text of a partial. The error names all partials, for people.
pub(super) fn find(name: &str) -> Result<&'static str, String> {
    let found = PARTIALS.iter().find(|partial| partial.name == name);
    found.map(|partial| partial.text.trim_end()).ok_or_else(|| {
        let known: Vec<String> = PARTIALS.iter().map(|p| format!("`{}`", p.name)).collect();
        format!(
            "there is no partial `{name}`; there are {}. Write a text of your own into the template itself",
            known.join(", ")
        )
    })
}
