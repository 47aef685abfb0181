//! Diagnostics E03xx: expressions and their types.

use super::{Diagnostic, Place};

type At = Option<Place>;

impl Diagnostic {
    pub(crate) fn expression_syntax(at: At, message: &str) -> Self {
        Self::new("E0301", at, format!("this is no expression: {message}"))
    }
    pub(crate) fn template_syntax(at: At, message: &str) -> Self {
        Self::new("E0301", at, format!("this is no template: {message}"))
    }
    /// An operator of another language. `what`: the kind of text it stands in. `changes`: what stands for it here, if that is known.
    pub(crate) fn foreign_operator(
        at: At,
        what: &str,
        operator: &str,
        advice: &str,
        changes: Vec<(Place, String)>,
    ) -> Self {
        let message = format!("this is no {what}: `{operator}` is an operator of other languages");
        Self::new("E0301", at, message).changes(advice, changes)
    }
    /// A statement of a template that is not closed. `end`: the statement that closes it.
    pub(crate) fn unclosed(at: At, open: &str, end: &str) -> Self {
        Self::new(
            "E0301",
            at,
            format!("this is no template: `{open}` is not closed"),
        )
        .help(format!("end it with `{{% {end} %}}`"))
    }
    /// Two operands have different kinds. The diagnostic shows the kind of each, and its declaration.
    pub(crate) fn unlike(
        at: At,
        message: String,
        right: &str,
        left: (At, &str),
        declared: Vec<(At, String)>,
        why: &str,
    ) -> Self {
        let mut diagnostic = Self::new("E0302", at, message)
            .label(right)
            .also(left.0, left.1);
        for (at, text) in declared {
            diagnostic = diagnostic.also(at, text);
        }
        diagnostic.note(format!("{why}; when it runs, every evaluation would fail"))
    }
    pub(crate) fn operand(at: At, operator: &str, wanted: &str, found: &str) -> Self {
        Self::new(
            "E0302",
            at,
            format!("`{operator}` needs {wanted}, not {found}"),
        )
        .label(found)
    }
    pub(crate) fn on_secret(at: At, path: &str) -> Self {
        Self::new("E0304", at, format!("`{path}` is a secret: only `is none` and `is not none` may be asked of it"))
            .note("a secret resolves in transport fields (address, headers, body, environment) and nowhere else")
    }
    /// An optional is used without being narrowed first.
    pub(crate) fn not_narrowed(at: At, path: &str, declared: At, insert: Option<Place>) -> Self {
        let diagnostic =
            Self::new("E0305", at, format!("`{path}` may be none here")).also(declared, "optional");
        match insert {
            Some(place) => {
                let with = format!("{path} is not none and ");
                diagnostic.patch("ask first", Some(place), with)
            }
            None => diagnostic.help(format!("ask first: `{path} is not none and ..`")),
        }
    }
    pub(crate) fn is_defined(at: At, path: &str) -> Self {
        Self::new(
            "E0306",
            at,
            format!("`{path}` is declared, so it is always defined"),
        )
        .help(format!("ask `{path} is not none`"))
    }
    pub(crate) fn misfit(at: At, message: &str, declared: At) -> Self {
        Self::new("E0307", at, message).also(declared, "declared here")
    }
    pub(crate) fn never_equal(
        at: At,
        path: &str,
        word: &str,
        near: Option<&str>,
        words: &str,
    ) -> Self {
        Self::new("E0307", at, format!("`{path}` is never `{word}`"))
            .near(word, near)
            .note(format!("it is one of {words}"))
    }
    /// A comparison that the bounds of a parameter never let hold. `bound`: the key that does so.
    pub(crate) fn never_holds(at: At, path: &str, bound: &str, declared: At) -> Self {
        Self::new("W0450", at, "this never holds").also(
            declared,
            format!(
                "the `{bound}` of `{path}` excludes it: such a call is refused before this is asked"
            ),
        )
    }
    pub(crate) fn no_condition(at: At, found: &str) -> Self {
        Self::new(
            "E0308",
            at,
            format!("a condition is true or false, not {found}"),
        )
        .label(found)
    }
    pub(crate) fn no_fields(at: At, path: &str, is: &str, length: bool) -> Self {
        let diagnostic = Self::new("E0309", at, format!("`{path}` is {is} and has no fields"));
        if length {
            diagnostic.help(format!("write `{path} | length`"))
        } else {
            diagnostic
        }
    }
    pub(crate) fn transport_only(at: At, path: &str, why: &str) -> Self {
        Self::new("E0310", at, format!("`{path}` is not to be seen here")).note(why)
    }
    pub(crate) fn missing_argument(at: At, of: &str, name: &str, declared: At) -> Self {
        Self::new("E0311", at, format!("`{of}` needs the argument `{name}`"))
            .also(declared, "required")
    }
    pub(crate) fn unknown_argument(at: At, of: &str, name: &str, near: Option<&str>) -> Self {
        Self::new("E0311", at, format!("`{of}` has no argument `{name}`")).near(name, near)
    }
    pub(crate) fn type_key(at: At, key: &str, of: &str) -> Self {
        Self::new("E0312", at, format!("`{key}` means nothing for {of}"))
    }
    /// A key at a person that belongs to the tool which asks them.
    pub(crate) fn key_of_asking(at: At, key: &str) -> Self {
        Self::type_key(at, key, "a person")
            .help("what a person says is written by the tool that asks them: `tools: { NAME: { ask: PERSON, set: { ENTRY: \"{{ result }}\" } } }`")
    }
    pub(crate) fn pattern(at: At, why: &str) -> Self {
        Self::new("E0313", at, format!("this is no regular expression: {why}"))
    }
    pub(crate) fn no_value_at_start(at: At, name: &str) -> Self {
        Self::new(
            "E0314",
            at,
            format!("`state.{name}` has no value when a session starts"),
        )
        .help("give it a `default:`, or say `optional: true`")
    }
    pub(crate) fn not_to_be_filled(at: At, name: &str, why: &str) -> Self {
        let what = format!("`state.{name}` cannot be filled from what is said");
        Self::new("E0315", at, what).note(format!("it is {why}"))
    }
}
