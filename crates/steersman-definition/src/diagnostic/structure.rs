//! Diagnostics E01xx: the text is not a valid definition.

use super::{Diagnostic, Place, quoted};

type At = Option<Place>;

impl Diagnostic {
    pub(crate) fn yaml_syntax(at: At, message: String, help: Option<String>) -> Self {
        let mut diagnostic = Self::new("E0101", at, format!("this is no YAML: {message}"));
        diagnostic.help = help;
        diagnostic
    }
    /// A line that a tab indents. `changes`: spaces for all such tabs, if it is known how many.
    pub(crate) fn tab(at: At, changes: Vec<(Place, String)>) -> Self {
        Self::new("E0101", at, "this is no YAML: a tab indents this line")
            .changes("indent with spaces", changes)
    }
    /// An unquoted text with a colon. `advice` says what to write; `with` is that, if it can stand in place of the text.
    pub(crate) fn unquoted_colon(at: At, advice: String, with: Option<String>) -> Self {
        let what = "this is no YAML: it reads an unquoted text with `: ` in it as a map";
        let changes = at.clone().zip(with).into_iter().collect();
        Self::new("E0101", at, what).changes(advice, changes)
    }
    pub(crate) fn too_big(at: At, what: String, most: String) -> Self {
        Self::new("E0102", at, what).note(most)
    }
    pub(crate) fn duplicate_key(at: At, first: At, key: &str) -> Self {
        Self::new("E0103", at, format!("the key `{key}` stands here twice"))
            .label("again")
            .also(first, "first here")
    }
    pub(crate) fn merge_key(at: At) -> Self {
        Self::new("E0104", at, "merge keys (`<<`) are not allowed")
            .note("what a definition says should stand where it is read")
            .help("write the entries out, or use an anchor for one whole value")
    }
    pub(crate) fn unknown_key(
        at: At,
        key: &str,
        table: &str,
        near: Option<&str>,
        known: &str,
    ) -> Self {
        let diagnostic = Self::new("E0105", at, format!("{table} has no key `{key}`"));
        match near {
            Some(near) => diagnostic.near(key, Some(near)),
            None => diagnostic.note(format!("its keys are {known}")),
        }
    }
    /// A key of another framework. `is`: the key that means the same.
    pub(crate) fn foreign_key(
        at: At,
        key: &str,
        table: &str,
        is: Option<&str>,
        advice: &str,
    ) -> Self {
        Self::new("E0105", at, format!("{table} has no key `{key}`"))
            .near(key, is)
            .help(advice)
    }
    /// Adds another key that is wrong in the same way.
    pub(crate) fn also_here(&mut self, at: At) {
        self.labels.extend(at.map(|at| (at, "and here".to_owned())));
    }
    pub(crate) fn rest_of_a_text(at: At, key: &str, table: &str) -> Self {
        Self::new("E0105", at, format!("{table} has no key `{key}`"))
            .note("nothing stands behind it; in `{ .. }` a text ends at its first comma")
            .help("put a text that holds a comma in quotes")
    }
    pub(crate) fn wrong_kind(at: At, wanted: &str, found: &str) -> Self {
        Self::new(
            "E0106",
            at,
            format!("{wanted} is expected here, not {found}"),
        )
    }
    /// A list where each entry has its name as its key. `named`: the entries have a key `name`. `changes`: the same as a map, if it
    /// can be made of the list.
    pub(crate) fn list_of_named(at: At, named: bool, changes: Vec<(Place, String)>) -> Self {
        let advice = if named {
            "make each `name` the key of its entry: `NAME: { .. }`"
        } else {
            "each entry has its name as its key: `NAME: ..`"
        };
        Self::wrong_kind(at, "a map", "a list").changes(advice, changes)
    }
    /// Adds what to write instead.
    pub(crate) fn instead(self, advice: &str, at: At, with: String) -> Self {
        self.patch(advice, at, with)
    }
    pub(crate) fn key_is_no_text(at: At, found: &str) -> Self {
        Self::new("E0106", at, format!("a key is text, not {found}"))
    }
    pub(crate) fn missing_key(at: At, table: &str, key: &str) -> Self {
        Self::new("E0107", at, format!("{table} needs the key `{key}`"))
    }
    pub(crate) fn unknown_word(at: At, word: &str, words: &str, near: Option<&str>) -> Self {
        Self::new("E0108", at, format!("`{word}` has no meaning here"))
            .near(word, near)
            .note(format!("it is one of {words}"))
    }
    pub(crate) fn not_together(at: At, table: &str, keys: &str, other: At) -> Self {
        Self::new("E0109", at, format!("{table} has only one of {keys}"))
            .also(other, "the other one")
    }
    pub(crate) fn none_of(at: At, table: &str, keys: &str) -> Self {
        Self::new("E0109", at, format!("{table} needs one of {keys}"))
    }
    pub(crate) fn reserved(at: At, what: &str) -> Self {
        Self::new(
            "E0110",
            at,
            format!("{what} is reserved, not built in this version"),
        )
        .note("its name and meaning are fixed; a later version understands it")
    }
    pub(crate) fn cut(at: At, rest: At) -> Self {
        Self::new(
            "E0111",
            at,
            "YAML ends this text at ` #`: the rest is a comment",
        )
        .also(rest, "cut off")
        .help("put the text in quotes; if it is a comment, put a space behind the `#`")
    }
    pub(crate) fn unquoted_braces(at: At) -> Self {
        let text = at.as_ref().map(|at| at.excerpt().trim().to_owned());
        let diagnostic = Self::new("E0112", at.clone(), "YAML reads an unquoted `{{` as a map");
        match text {
            Some(text) if text.contains("}}") => {
                diagnostic.patch("quote the whole text", at, quoted(&text))
            }
            _ => diagnostic.help("quote the whole text"),
        }
    }
    pub(crate) fn not_a_boolean(at: At, word: &str) -> Self {
        let place = at.clone();
        Self::new(
            "E0113",
            at,
            format!("`{word}` is text here, but a boolean to other readers of YAML"),
        )
        .note("only `true` and `false` are booleans")
        .patch("if it is text, quote it", place, format!("\"{word}\""))
    }
    pub(crate) fn no_file(at: At, path: &str, near: Option<&str>) -> Self {
        Self::new("E0114", at, format!("there is no file `{path}`"))
            .near(path, near)
            .note("paths are relative to the file that names them")
    }
    pub(crate) fn outside_folder(at: At, path: &str) -> Self {
        Self::new(
            "E0114",
            at,
            format!("`{path}` leaves the folder of the definition"),
        )
    }
    /// Documents that sessions are to search cannot be read.
    pub(crate) fn unreadable(at: At, path: &str, why: &str) -> Self {
        Self::new("E0130", at, format!("`{path}` cannot be read: {why}"))
            .note("`knowledge` names files and folders of text and Markdown, relative to the file that names them")
    }
    pub(crate) fn malformed(at: At, text: &str, wanted: &str) -> Self {
        Self::new("E0115", at, format!("`{text}` is not {wanted}"))
    }
    /// A text cannot be the name of an artifact.
    pub(crate) fn misnamed(at: At, why: &str) -> Self {
        Self::new("E0115", at, why.to_owned())
            .help("write a path below one folder: `report.pdf`, `out/report.pdf`")
    }
    /// A message of a history is not a chat message.
    pub(crate) fn no_message(at: At, why: &str, fix: &str) -> Self {
        Self::new("E0115", at, why.to_owned()).help(fix)
    }
    pub(crate) fn import_circle(at: At, path: &str) -> Self {
        Self::new(
            "E0116",
            at,
            format!("`{path}` imports itself, here or through others"),
        )
    }
    pub(crate) fn defined_twice(at: At, what: &str, name: &str, first: At) -> Self {
        let diagnostic = Self::new("E0117", at, format!("{what} `{name}` is defined twice"))
            .also(first, "first here");
        match what {
            "tool" | "agent" => {
                diagnostic.help("`override: true` in the later one replaces the first")
            }
            _ => diagnostic,
        }
    }
    pub(crate) fn version(at: At, found: &str) -> Self {
        Self::new(
            "E0118",
            at,
            format!("version {found} of the format is unknown here"),
        )
        .help("this program reads `steersman: 1`")
    }
    pub(crate) fn yaml_tag(at: At, tag: &str) -> Self {
        Self::new("E0119", at, format!("tags such as `{tag}` are not allowed"))
    }
    /// A negation as other languages write it, which YAML reads as a tag. `with`: the expression that was probably meant.
    pub(crate) fn tag_for_not(at: At, tag: &str, advice: &str, with: &str) -> Self {
        let what = format!("YAML reads `{tag}` as a tag, and tags are not allowed");
        Self::new("E0119", at.clone(), what).patch(advice, at, with)
    }
    pub(crate) fn second_document(at: At) -> Self {
        Self::new(
            "E0119",
            at,
            "a definition is one document; a second begins here",
        )
    }
    pub(crate) fn no_schema(at: At, path: &str, why: &str) -> Self {
        Self::new("E0120", at, format!("`{path}` is no JSON Schema: {why}"))
    }
    pub(crate) fn unfit_schema(at: At, path: &str, why: &str) -> Self {
        Self::new(
            "E0120",
            at,
            format!("the schema `{path}` cannot be used: {why}"),
        )
    }
    pub(crate) fn odd_number(at: At, text: &str) -> Self {
        let place = at.clone();
        Self::new(
            "E0121",
            at,
            format!("`{text}` is a number that readers of YAML disagree about"),
        )
        .patch("if it is text, quote it", place, format!("\"{text}\""))
    }
    pub(crate) fn no_entry(at: At, candidates: &str) -> Self {
        let diagnostic = Self::new("E0122", at, "who gets the first message is open");
        if candidates.is_empty() {
            diagnostic
                .note("each agent is named by another")
                .help("write `entry: NAME`")
        } else {
            diagnostic
                .note(format!("{candidates} are named by no other agent"))
                .help("write `entry: NAME`")
        }
    }
    pub(crate) fn limit_outcome(at: At, word: &str, of: &str, can: &str, why: &str) -> Self {
        let what = format!("`on_limit: {word}` cannot be for {of}");
        Self::new("E0123", at, what).note(format!("{why}; {can} can be"))
    }
    pub(crate) fn only_tests(at: At) -> Self {
        Self::new("E0107", at, "this is a file of tests, and no definition")
            .note("a definition reads the files in the folder `tests/` next to it")
            .help("name the definition: its folder, or its file")
    }
    pub(crate) fn no_agents(at: At) -> Self {
        Self::new(
            "E0107",
            at,
            "a definition needs the key `agents`, with an agent at least",
        )
    }
}
