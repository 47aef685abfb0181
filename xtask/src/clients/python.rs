//! The generated module of the client in Python.

use super::{
    Answer, Api, Field, Form, HEAD, IF_MATCH, IF_NONE_MATCH, KEY, LAST_ID, Named, Operation, Type,
    WAIT, about, pascal,
};
use std::fmt::Write;

/// Words of the language.
const WORDS: &[&str] = &[
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
    "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Returns the module.
pub(super) fn file(api: &Api) -> String {
    let mut out = format!(
        "\"\"\"{HEAD}\"\"\"\n\nfrom __future__ import annotations\n\n\
        from collections.abc import AsyncGenerator, Awaitable, Callable, Generator\n\
        from typing import Any, List, Literal, TypedDict, Union, cast\n\n\
        from ._call import Call, Frame, given, path\n"
    );
    exports(&mut out, api);
    for (name, named) in ordered(api) {
        out += "\n\n";
        declare(&mut out, name, named);
    }
    for (tag, operations) in &api.tags {
        for is_async in [false, true] {
            class(&mut out, api, tag, operations, is_async);
        }
    }
    for is_async in [false, true] {
        all(&mut out, api, is_async);
    }
    out
}

/// Writes the names that the package exports.
fn exports(out: &mut String, api: &Api) {
    let types = ordered(api).into_iter().map(|(name, _)| name.clone());
    // The error of this name has the fields of the document.
    let types = types.filter(|name| name != "Problem");
    let mut names: Vec<String> = types
        .chain(["Api".to_owned(), "AsyncApi".to_owned()])
        .collect();
    names.sort();
    out.push_str("\n__all__ = [\n");
    for name in names {
        let _ = writeln!(out, "    {name:?},");
    }
    out.push_str("]\n");
}

/// Returns the types that are needed at run time, each after those that it uses.
fn ordered(api: &Api) -> Vec<(&String, &Named)> {
    let bodies: Vec<&String> = api
        .tags
        .values()
        .flatten()
        .filter_map(|operation| operation.body.as_ref())
        .collect();
    // The fields of a body are arguments of its method.
    let is_wanted = |name: &String| api.answered.contains(name) || !bodies.contains(&name);
    let mut all: Vec<_> = (api.types.iter())
        .filter(|(name, _)| is_wanted(name))
        .collect();
    all.sort_by_key(|(_, named)| !matches!(named.form, Form::Words(_)));
    all
}

fn declare(out: &mut String, name: &str, named: &Named) {
    match &named.form {
        Form::Words(words) => {
            let _ = writeln!(out, "{name} = Literal[");
            for word in words {
                let _ = writeln!(out, "    {word:?},");
            }
            let _ = write!(out, "]\n{}\n", doc(&named.doc, ""));
        }
        Form::Is(kind) => {
            let _ = writeln!(out, "{name} = {}", kind.python());
        }
        Form::Fields(fields) => {
            // A name that is a word of the language, such as `for`, needs the other form of the declaration.
            let part = |out: &mut String, part: &str, is_required: bool| {
                let _ = writeln!(
                    out,
                    "_{name}{part} = TypedDict(\n    \"_{name}{part}\",\n    {{"
                );
                for field in fields.iter().filter(|f| f.is_required == is_required) {
                    let kind = field.kind.python();
                    let kind = if is_required {
                        kind
                    } else {
                        format!("Union[{kind}, None]")
                    };
                    for line in field.doc.lines() {
                        let _ = writeln!(out, "        # {line}");
                    }
                    let _ = writeln!(out, "        \"{}\": \"{kind}\",", field.name);
                }
                let total = if is_required {
                    ""
                } else {
                    "    total=False,\n"
                };
                let _ = writeln!(out, "    }},\n{total})\n");
            };
            part(out, "Required", true);
            part(out, "Optional", false);
            let _ = write!(
                out,
                "\nclass {name}(_{name}Required, _{name}Optional):\n{}\n",
                doc(&named.doc, "    ")
            );
        }
    }
}

fn doc(text: &str, indent: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let rest: Vec<&str> = lines.collect();
    if rest.is_empty() {
        return format!("{indent}\"\"\"{first}\"\"\"");
    }
    let rest = rest.iter().map(|line| {
        if line.is_empty() {
            "\n".to_owned()
        } else {
            format!("{indent}{line}\n")
        }
    });
    let rest: String = rest.collect();
    format!("{indent}\"\"\"{first}\n{rest}{indent}\"\"\"")
}

fn argument(name: &str) -> String {
    let name = name.replace(['-', '.'], "_").to_lowercase();
    let end = if WORDS.contains(&&*name) { "_" } else { "" };
    name + end
}

fn class(out: &mut String, api: &Api, tag: &str, operations: &[Operation], is_async: bool) {
    let name = if is_async { "Async" } else { "" };
    let (send, open) = if is_async {
        (
            "Callable[[Call], Awaitable[Any]]",
            "Callable[[Call], AsyncGenerator[Frame, None]]",
        )
    } else {
        (
            "Callable[[Call], Any]",
            "Callable[[Call], Generator[Frame, None, None]]",
        )
    };
    let _ = write!(
        out,
        "\n\nclass {name}{}:\n    \"\"\"{}\"\"\"\n\n    def __init__(self, send: {send}, open: {open}) -> None:\n        \
        self._send = send\n        self._open = open\n",
        pascal(tag),
        about(tag)
    );
    for operation in operations {
        method(out, api, operation, is_async);
    }
}

/// The arguments of a method, and what it makes of them.
#[derive(Default)]
struct Arguments {
    /// Declarations without a default, by position.
    plain: Vec<String>,
    /// Declarations of arguments that are named.
    named: Vec<String>,
    /// Names, and what they mean.
    told: Vec<(String, String)>,
    /// The parts of the request.
    parts: String,
}

/// The headers that have an argument: name, type and meaning.
const NAMED: [(&str, &str, &str, &str); 5] = [
    (
        KEY,
        "idempotency_key",
        "str",
        "The key under which a repetition is carried out once. Without one the client makes one.",
    ),
    (
        WAIT,
        "wait",
        "int",
        "Seconds, at most 60, for which the request waits until the session settles.",
    ),
    (
        IF_MATCH,
        "if_match",
        "int",
        "The last line that you know: nothing is done if there is a later one.",
    ),
    (
        IF_NONE_MATCH,
        "if_none_match",
        "str",
        "The `ETag` that you have: the answer is `None` if nothing is new.",
    ),
    (
        LAST_ID,
        "last_event_id",
        "str",
        "The cursor of the last event that you have.",
    ),
];

impl Arguments {
    fn of(api: &Api, operation: &Operation) -> Self {
        let mut all = Self::default();
        for place in &operation.places {
            let name = argument(&place.name);
            all.plain.push(format!("{name}: {}", place.kind.python()));
            all.told.push((name, place.doc.clone()));
        }
        if let Some(kind) = &operation.body {
            if let Some(mut fields) = api.fields(kind) {
                // The description leaves out the parts of the path.
                fields.retain(|field| {
                    operation
                        .places
                        .iter()
                        .all(|place| place.name != field.name)
                });
                all.fields("body", &fields);
            } else {
                all.parts += "            body=body,\n";
                all.named.push(format!("body: {kind}"));
            }
        }
        if !operation.query.is_empty() {
            all.fields("query", &operation.query);
        }
        for (header, name, kind, says) in NAMED {
            if operation.has(header) {
                all.named.push(format!("{name}: {kind} | None = None"));
                all.told.push((name.to_owned(), says.to_owned()));
                let _ = writeln!(all.parts, "            {name}={name},");
            }
        }
        if operation.has(KEY) {
            all.parts += "            takes_key=True,\n";
        }
        if matches!(operation.answer, Answer::Bytes) {
            all.parts += "            answer=\"bytes\",\n";
        }
        all
    }

    /// Adds the fields of the body or of the query.
    fn fields(&mut self, part: &str, fields: &[Field]) {
        let _ = write!(
            self.parts,
            "            {part}=given(\n                {{\n"
        );
        for field in fields {
            let name = argument(&field.name);
            let _ = writeln!(
                self.parts,
                "                    \"{}\": {name},",
                field.name
            );
            let kind = field.kind.python();
            self.named.push(if field.is_required {
                format!("{name}: {kind}")
            } else {
                format!("{name}: {kind} | None = None")
            });
            self.told.push((name, field.doc.clone()));
        }
        self.parts += "                }\n            ),\n";
    }
}

/// Returns the type of an answer.
fn answered(operation: &Operation, is_async: bool) -> String {
    match &operation.answer {
        Answer::Nothing => "None".to_owned(),
        Answer::Bytes => "bytes".to_owned(),
        Answer::Events if is_async => "AsyncGenerator[Frame, None]".to_owned(),
        Answer::Events => "Generator[Frame, None, None]".to_owned(),
        Answer::Json(kinds) => {
            let mut kinds: Vec<String> = kinds.iter().map(Type::python).collect();
            if operation.has(IF_NONE_MATCH) {
                kinds.push("None".to_owned());
            }
            if kinds.iter().any(|kind| kind == "Any") {
                return "Any".to_owned();
            }
            kinds.join(" | ")
        }
    }
}

fn method(out: &mut String, api: &Api, operation: &Operation, is_async: bool) {
    let arguments = Arguments::of(api, operation);
    let kind = answered(operation, is_async);
    let is_stream = matches!(operation.answer, Answer::Events);
    let (start, wait) = match (is_async, is_stream) {
        (true, false) => ("async def", "await "),
        (true, true) | (false, _) => ("def", ""),
    };
    let _ = writeln!(
        out,
        "\n    {start} {}(\n        self,",
        argument(&operation.name)
    );
    let star = (!arguments.named.is_empty()).then(|| "*".to_owned());
    let all = arguments.plain.iter().chain(&star);
    for one in all.chain(&arguments.named) {
        let _ = writeln!(out, "        {one},");
    }
    let _ = writeln!(out, "    ) -> {kind}:");
    let mut says = operation.doc.join("\n\n");
    if !arguments.told.is_empty() {
        says += "\n";
        for (name, what) in &arguments.told {
            let _ = write!(says, "\n{name}: {what}");
        }
    }
    let _ = writeln!(out, "{}", doc(&says, "        "));
    let mut place = format!("\"{}\"", operation.path);
    for field in &operation.places {
        let _ = write!(place, ", {0}={1}", field.name, argument(&field.name));
    }
    let _ = write!(
        out,
        "        call = Call(\n            \"{}\",\n            path({place}),\n{}        )\n",
        operation.verb, arguments.parts
    );
    let _ = match (&operation.answer, is_stream) {
        (Answer::Nothing, _) => writeln!(out, "        {wait}self._send(call)"),
        (_, true) => writeln!(out, "        return self._open(call)"),
        _ if kind == "Any" => writeln!(out, "        return {wait}self._send(call)"),
        _ => writeln!(
            out,
            "        return cast(\"{kind}\", {wait}self._send(call))"
        ),
    };
}

/// Writes the class with one attribute for each tag.
fn all(out: &mut String, api: &Api, is_async: bool) {
    let prefix = if is_async { "Async" } else { "" };
    let (send, open) = if is_async {
        (
            "Callable[[Call], Awaitable[Any]]",
            "Callable[[Call], AsyncGenerator[Frame, None]]",
        )
    } else {
        (
            "Callable[[Call], Any]",
            "Callable[[Call], Generator[Frame, None, None]]",
        )
    };
    let _ = write!(
        out,
        "\n\nclass {prefix}Api:\n    \"\"\"All operations, by tag.\"\"\"\n\n    def __init__(self, send: {send}, open: {open}) -> None:\n"
    );
    for tag in api.tags.keys() {
        let class = pascal(tag);
        let _ = writeln!(
            out,
            "        self.{} = {prefix}{class}(send, open)",
            argument(tag)
        );
    }
}

impl Type {
    fn python(&self) -> String {
        match self {
            Self::Any => "Any".to_owned(),
            Self::Text => "str".to_owned(),
            Self::Whole => "int".to_owned(),
            Self::Number => "float".to_owned(),
            Self::Truth => "bool".to_owned(),
            Self::Map(of) => format!("dict[str, {}]", of.python()),
            Self::List(of) => format!("List[{}]", of.python()),
            Self::Named(name) => name.clone(),
        }
    }
}

/// The words of the client for asyncio, and those of the client that blocks.
const BLOCKING: [(&str, &str); 17] = [
    (
        "The client for asyncio. `cargo xtask clients` makes the client that blocks from this file.",
        HEAD_OF_BLOCKING,
    ),
    ("A client for asyncio", "A client that blocks"),
    ("async def ", "def "),
    ("async with ", "with "),
    ("async for ", "for "),
    ("await ", ""),
    ("import asyncio", "import time"),
    ("asyncio.sleep", "time.sleep"),
    (
        "AsyncGenerator[Frame, None]",
        "Generator[Frame, None, None]",
    ),
    (
        "AsyncGenerator[Event, None]",
        "Generator[Event, None, None]",
    ),
    ("Async", ""),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
    ("aclosing", "closing"),
    ("aclose", "close"),
    ("aread", "read"),
    ("aiter_bytes", "iter_bytes"),
];

const HEAD_OF_BLOCKING: &str =
    "The client that blocks, made by `cargo xtask clients` from `_async.py`. Do not edit.";

/// Returns the client that blocks, made from the one for asyncio.
pub(super) fn blocking(asyncio: &str) -> String {
    let words = BLOCKING.iter();
    words.fold(asyncio.to_owned(), |text, (from, to)| {
        text.replace(from, to)
    })
}
