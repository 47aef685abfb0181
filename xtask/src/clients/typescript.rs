//! The generated module of the client in TypeScript.

use super::{
    Answer, Api, Field, Form, HEAD, IF_MATCH, IF_NONE_MATCH, KEY, LAST_ID, Named, Operation, Type,
    WAIT, about, camel, pascal,
};
use std::fmt::Write;

/// Returns the module.
pub(super) fn file(api: &Api) -> String {
    let mut out = format!(
        "// {HEAD}\n\nimport type {{ Call, Frame, Options }} from \"./call.js\";\n\n\
        type Send = (call: Call) => Promise<unknown>;\n\
        type Open = (call: Call) => AsyncIterable<Frame>;\n"
    );
    for (name, named) in &api.types {
        declare(&mut out, name, named);
    }
    for (tag, operations) in &api.tags {
        let open = if streams(operations) {
            "    private readonly open: Open,\n"
        } else {
            ""
        };
        let _ = write!(
            out,
            "\n/** {} */\nexport class {}Api {{\n  constructor(\n    private readonly send: Send,\n{open}  ) {{}}\n",
            about(tag),
            pascal(tag)
        );
        for operation in operations {
            method(&mut out, api, operation);
        }
        out += "}\n";
    }
    out += "\n/** All operations, by tag. */\nexport class Api {\n";
    for tag in api.tags.keys() {
        let _ = writeln!(out, "  readonly {}: {}Api;", camel(tag), pascal(tag));
    }
    out += "\n  constructor(send: Send, open: Open) {\n";
    for (tag, operations) in &api.tags {
        let open = if streams(operations) { ", open" } else { "" };
        let _ = writeln!(
            out,
            "    this.{} = new {}Api(send{open});",
            camel(tag),
            pascal(tag)
        );
    }
    out += "  }\n}\n";
    out
}

/// Returns true if one of the operations answers with a stream.
fn streams(operations: &[Operation]) -> bool {
    let mut answers = operations.iter().map(|operation| &operation.answer);
    answers.any(|answer| matches!(answer, Answer::Events))
}

fn declare(out: &mut String, name: &str, named: &Named) {
    let _ = write!(out, "\n{}", doc(&named.doc, ""));
    match &named.form {
        Form::Words(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("  | {word:?}")).collect();
            let _ = writeln!(out, "export type {name} =\n{};", words.join("\n"));
        }
        Form::Is(kind) => {
            let _ = writeln!(out, "export type {name} = {};", kind.typescript());
        }
        Form::Fields(fields) => {
            let _ = writeln!(out, "export interface {name} {{");
            for field in fields {
                member(out, field);
            }
            out.push_str("}\n");
        }
    }
}

fn member(out: &mut String, field: &Field) {
    let _ = write!(out, "{}", doc(&field.doc, "  "));
    let kind = field.kind.typescript();
    let _ = if field.is_required {
        writeln!(out, "  {}: {kind};", field.name)
    } else {
        writeln!(out, "  {}?: {kind} | null | undefined;", field.name)
    };
}

fn doc(text: &str, indent: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines[..] {
        [] => String::new(),
        [only] => format!("{indent}/** {only} */\n"),
        _ => {
            let lines = lines.iter().map(|line| {
                let line = format!("{indent} * {line}");
                line.trim_end().to_owned() + "\n"
            });
            let lines: String = lines.collect();
            format!("{indent}/**\n{lines}{indent} */\n")
        }
    }
}

fn method(out: &mut String, api: &Api, operation: &Operation) {
    let mut arguments = Vec::new();
    let mut says = operation.doc.join("\n\n");
    if !operation.places.is_empty() {
        says.push('\n');
    }
    for place in &operation.places {
        let name = camel(&place.name);
        let _ = write!(says, "\n@param {name} {}", place.doc);
        arguments.push(format!("{name}: {}", place.kind.typescript()));
    }
    let mut call = String::new();
    if let Some(body) = &operation.body {
        let fields = api.fields(body).unwrap_or_default();
        let is_needed = fields.is_empty() || fields.iter().any(|field| field.is_required);
        let default = if is_needed { "" } else { " = {}" };
        arguments.push(format!("body: {body}{default}"));
        call += "      body,\n";
    }
    let is_needed = operation.query.iter().any(|field| field.is_required);
    if !operation.query.is_empty() {
        let fields = operation.query.iter().map(|field| {
            let mark = if field.is_required { "" } else { "?" };
            let end = if field.is_required {
                ""
            } else {
                " | undefined"
            };
            format!("{}{mark}: {}{end}", field.name, field.kind.typescript())
        });
        let fields: Vec<String> = fields.collect();
        let default = if is_needed { "" } else { " = {}" };
        arguments.push(format!("query: {{ {} }}{default}", fields.join("; ")));
        call += "      query,\n";
    }
    let named = [
        (KEY, "key"),
        (WAIT, "wait"),
        (IF_MATCH, "ifMatch"),
        (IF_NONE_MATCH, "ifNoneMatch"),
        (LAST_ID, "lastEventId"),
    ];
    let names = named.iter().filter(|(header, _)| operation.has(header));
    let mut names: Vec<String> = names.map(|(_, name)| format!("{name:?}")).collect();
    names.push("\"signal\"".to_owned());
    arguments.push(format!(
        "options: Pick<Options, {}> = {{}}",
        names.join(" | ")
    ));
    let kind = match &operation.answer {
        Answer::Nothing => "void".to_owned(),
        Answer::Bytes => "Uint8Array".to_owned(),
        Answer::Events => "Frame".to_owned(),
        Answer::Json(kinds) => {
            let mut kinds: Vec<String> = kinds.iter().map(Type::typescript).collect();
            if operation.has(IF_NONE_MATCH) {
                kinds.push("null".to_owned());
            }
            if kinds.iter().any(|kind| kind == "unknown") {
                "unknown".to_owned()
            } else {
                kinds.join(" | ")
            }
        }
    };
    if operation.has(KEY) {
        call += "      takesKey: true,\n";
    }
    if matches!(operation.answer, Answer::Bytes) {
        call += "      answer: \"bytes\",\n";
    }
    let path: String = (operation.pieces().iter())
        .map(|(text, is_parameter)| {
            if *is_parameter {
                format!("${{encodeURIComponent({})}}", camel(text))
            } else {
                (*text).to_owned()
            }
        })
        .collect();
    let stream = matches!(operation.answer, Answer::Events);
    let (outer, send) = if stream {
        ("AsyncIterable", "open")
    } else {
        ("Promise", "send")
    };
    let cast = if stream {
        String::new()
    } else {
        format!(" as Promise<{kind}>")
    };
    let _ = write!(out, "\n{}", doc(&says, "  "));
    let _ = writeln!(out, "  {}(", camel(&operation.name));
    for argument in arguments {
        let _ = writeln!(out, "    {argument},");
    }
    let _ = write!(
        out,
        "  ): {outer}<{kind}> {{\n    return this.{send}({{\n      verb: \"{}\",\n      path: `{path}`,\n{call}      options,\n    }}){cast};\n  }}\n",
        operation.verb
    );
}

impl Type {
    fn typescript(&self) -> String {
        match self {
            Self::Any => "unknown".to_owned(),
            Self::Text => "string".to_owned(),
            Self::Whole | Self::Number => "number".to_owned(),
            Self::Truth => "boolean".to_owned(),
            Self::Map(of) => format!("Record<string, {}>", of.typescript()),
            Self::List(of) => format!("Array<{}>", of.typescript()),
            Self::Named(name) => name.clone(),
        }
    }
}
