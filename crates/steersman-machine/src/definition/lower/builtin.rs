//! Tools that come with the engine.

use super::Lower;
use super::values::{of_kind, plain_text};
use crate::ids::Name;
use crate::interaction::Class;
use crate::network::{BuiltIn, Parameters, Render, Source, ToolDef, Type, TypeKind};
use crate::notes::{DOCUMENTS, MOST, TRANSCRIPT};
use serde_json::json;
use std::collections::BTreeMap;

/// Names that stand for built-in tools under `tools:`.
pub(super) const SETS: [&str; 6] = ["finish", "ask", "todo", "fork", "artifacts", "notes"];

/// The tool that reads what has spilled.
pub(super) const READ: &str = "artifact_read";

/// The tool that searches transcript and documents.
pub(super) const NOTES: &str = crate::notes::SEARCH;

/// The tools that a built-in name under `tools:` stands for.
pub(super) fn set(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "finish" => &["finish"],
        "ask" => &["ask"],
        "fork" => &["fork"],
        "todo" => &["todo_add", "todo_complete", "todo_cancel", "todo_update"],
        "artifacts" => &["artifact_write", READ, "artifact_list", "artifact_search"],
        "notes" => &[NOTES],
        _ => return None,
    })
}

fn optional(mut ty: Type) -> Type {
    ty.optional = true;
    ty
}

fn told(description: &str) -> Type {
    Type {
        description: Some(description.to_owned()),
        ..plain_text()
    }
}

fn whole() -> Type {
    let (minimum, maximum) = (Some(1.0), None);
    of_kind(TypeKind::Integer { minimum, maximum })
}

fn list(of: Type) -> Type {
    of_kind(TypeKind::List(Box::new(of)))
}

/// The type of `state.todo`.
pub(super) fn todo_list() -> Type {
    let words = ["todo", "done", "cancelled"].map(str::to_owned);
    let item = of_kind(TypeKind::Fields(vec![
        ("id".into(), whole()),
        ("text".into(), plain_text()),
        ("status".into(), of_kind(TypeKind::Enum(words.to_vec()))),
        ("result".into(), optional(plain_text())),
        ("reason".into(), optional(plain_text())),
    ]));
    Type {
        default: Some(json!([])),
        ..list(item)
    }
}

/// What it does, what it is told to be for, its parameters.
type Told = (BuiltIn, &'static str, Vec<(&'static str, Type)>);

/// A tool that ends something, or gives the floor away, by name.
fn ends(name: &str) -> Option<Told> {
    Some(match name {
        "finish" => (
            BuiltIn::Finish,
            "End the task with this result.",
            vec![("result", plain_text())],
        ),
        "done" => (
            BuiltIn::Done,
            "Say that the task is done, with what came of it.",
            vec![("result", optional(plain_text()))],
        ),
        "need_help" => (
            BuiltIn::NeedHelp,
            "Give the floor back: the user wants something else, or this is not yours to do.",
            vec![("request", told("What the user wants, in the user's words."))],
        ),
        "handoff" => (
            BuiltIn::Handoff,
            "Hand the conversation over to somebody else.",
            vec![("to", told("Who.")), ("reason", plain_text())],
        ),
        _ => return None,
    })
}

/// A tool of the to-do list, by name.
fn todo(name: &str) -> Option<Told> {
    Some(match name {
        "todo_add" => (
            BuiltIn::TodoAdd,
            "Add an item to the to-do list.",
            vec![("text", plain_text())],
        ),
        "todo_complete" => (
            BuiltIn::TodoComplete,
            "Mark an item of the to-do list as done, with its result.",
            vec![("id", whole()), ("result", plain_text())],
        ),
        "todo_cancel" => (
            BuiltIn::TodoCancel,
            "Cancel an item of the to-do list, with the reason.",
            vec![("id", whole()), ("reason", plain_text())],
        ),
        "todo_update" => (
            BuiltIn::TodoUpdate,
            "Change the text of an item of the to-do list.",
            vec![("id", whole()), ("text", plain_text())],
        ),
        _ => return None,
    })
}

fn notes_parameters() -> Vec<(&'static str, Type)> {
    let sources = [DOCUMENTS, TRANSCRIPT].map(str::to_owned).to_vec();
    let source = Type {
        description: Some("Both, where it is left out.".to_owned()),
        ..of_kind(TypeKind::Enum(sources))
    };
    let (least, most) = (Some(1.0), Some(f64::from(MOST)));
    let most = Type {
        description: Some("Passages at most; 5, where it is left out.".to_owned()),
        ..of_kind(TypeKind::Integer {
            minimum: least,
            maximum: most,
        })
    };
    vec![
        ("query", plain_text()),
        ("source", optional(source)),
        ("most", optional(most)),
    ]
}

/// A built-in tool by name.
fn tool(name: &'static str) -> Option<ToolDef> {
    let (built_in, description, parameters): Told = match name {
        "finish" | "done" | "need_help" | "handoff" => ends(name)?,
        "ask" => (
            BuiltIn::AskUser,
            "Ask the user a question and wait for the answer.",
            vec![
                ("question", plain_text()),
                ("options", optional(list(plain_text()))),
            ],
        ),
        "todo_add" | "todo_complete" | "todo_cancel" | "todo_update" => todo(name)?,
        "fork" => (
            BuiltIn::Fork,
            "Try several ways at once: one branch of yourself for each instruction. Gives their results.",
            vec![("instructions", list(plain_text()))],
        ),
        "artifact_write" => (
            BuiltIn::ArtifactWrite,
            "Keep a text as a new version of an artifact: a report, code, data. The user sees it at once.",
            vec![
                ("name", told("A file name, such as `report.md`.")),
                ("content", plain_text()),
                (
                    "media_type",
                    optional(told("By the name where it is left out.")),
                ),
            ],
        ),
        READ => (
            BuiltIn::ArtifactRead,
            "Read an artifact by its lines: 200 from the first, where nothing else is said.",
            vec![
                ("name", plain_text()),
                ("version", optional(whole())),
                ("from", optional(whole())),
                ("lines", optional(whole())),
            ],
        ),
        "artifact_list" => (
            BuiltIn::ArtifactList,
            "List the artifacts: names, versions, media types, sizes.",
            vec![],
        ),
        "artifact_search" => (
            BuiltIn::ArtifactSearch,
            "Find the lines of artifacts that have all these words.",
            vec![("query", plain_text())],
        ),
        NOTES => (
            BuiltIn::NotesSearch,
            "Find passages of this conversation and of the attached documents by their words.",
            notes_parameters(),
        ),
        _ => return None,
    };
    let parameters = parameters
        .into_iter()
        .map(|(name, ty)| (name.into(), ty))
        .collect();
    Some(ToolDef {
        name: name.into(),
        description: description.to_owned(),
        parameters: Parameters::Fields(parameters),
        effect: match built_in {
            // Documents may change at any time.
            BuiltIn::NotesSearch => Class::Read,
            _ => Class::Pure,
        },
        requires: Vec::new(),
        approve: Vec::new(),
        source: Source::BuiltIn(built_in),
        set: Vec::new(),
        result: None,
        on_error: BTreeMap::new(),
        on_doubt: None,
        simulate: None,
        repeat_allowed: false,
        then: None,
        // What reads artifacts gives no more than fits, so nothing of it becomes another one.
        render: Render {
            spill: usize::MAX,
            ..Render::default()
        },
        timeout: 60_000,
        retry: 4,
        parallel: 8,
    })
}

impl Lower<'_> {
    /// The declared tools and those of the engine that are offered to somebody.
    pub(super) fn with_built_in(
        &self,
        mut tools: BTreeMap<Name, ToolDef>,
    ) -> BTreeMap<Name, ToolDef> {
        let used = self.out.builtins.iter();
        tools.extend(used.filter_map(|name| Some(((*name).into(), tool(name)?))));
        tools
    }
}
