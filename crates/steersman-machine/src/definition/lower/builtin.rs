//! Tools that come with the engine.

use super::Lower;
use super::values::{of_kind, plain_text};
use crate::expression::Data;
use crate::ids::Name;
use crate::interaction::Class;
use crate::network::{BuiltIn, Parameters, Render, Source, ToolDef, Type, TypeKind};
use crate::notes::{DOCUMENTS, MOST, TRANSCRIPT};
use crate::rating::{BEST, WORST};
use serde_json::json;
use std::collections::BTreeMap;

/// Names that stand for built-in tools under `tools:`.
pub(super) const SETS: [&str; 7] = [
    "finish",
    "ask",
    "todo",
    "fork",
    "artifacts",
    "notes",
    "memory",
];

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
        "artifacts" => &[
            "artifact_write",
            READ,
            "artifact_list",
            "artifact_search",
            "artifact_rate",
        ],
        "memory" => &["memory_save", "memory_search", "memory_read", "memory_rate"],
        "notes" => &[NOTES],
        _ => return None,
    })
}

/// Whether a test may give outcomes of it: what it gives depends on more than the session.
pub(super) fn may_be_played(name: &str) -> bool {
    matches!(
        name,
        NOTES | "memory_save" | "memory_search" | "memory_read" | "memory_rate"
    )
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

fn told_whole(description: &str) -> Type {
    Type {
        description: Some(description.to_owned()),
        ..whole()
    }
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

/// From 1 to 5.
fn stars() -> Type {
    let (minimum, maximum) = (Some(f64::from(WORST)), Some(f64::from(BEST)));
    Type {
        description: Some("From 1, of no use, to 5, very good.".to_owned()),
        ..of_kind(TypeKind::Integer { minimum, maximum })
    }
}

/// A tool of the artifacts, by name.
fn artifacts(name: &str) -> Option<Told> {
    Some(match name {
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
            "List the artifacts: names, versions, media types, sizes, ratings, how they begin.",
            vec![],
        ),
        "artifact_search" => (
            BuiltIn::ArtifactSearch,
            "Find artifacts by words: the best first, with the lines that have them.",
            vec![("query", plain_text())],
        ),
        "artifact_rate" => (
            BuiltIn::ArtifactRate,
            "Say how good an artifact is. What is rated well is found first.",
            vec![
                ("name", plain_text()),
                ("rating", stars()),
                ("reason", optional(plain_text())),
                (
                    "version",
                    optional(told_whole("The newest where it is left out.")),
                ),
            ],
        ),
        _ => return None,
    })
}

/// A tool of the memory, by name.
fn memory(name: &str) -> Option<Told> {
    let most = Type {
        description: Some("Memories at most; 5, where it is left out.".to_owned()),
        ..of_kind(TypeKind::Integer {
            minimum: Some(1.0),
            maximum: Some(f64::from(MOST)),
        })
    };
    let id = || told_whole("As `memory_search` gives it.");
    Some(match name {
        "memory_save" => (
            BuiltIn::MemorySave,
            "Remember something for later conversations: a text, or an artifact as it is now. One of the two.",
            vec![
                ("name", told("A short name, such as `delivery-address`.")),
                ("content", optional(plain_text())),
                ("artifact", optional(told("The name of an artifact."))),
                ("tags", optional(list(plain_text()))),
            ],
        ),
        "memory_search" => (
            BuiltIn::MemorySearch,
            "Find what earlier conversations remembered, by words: the best first.",
            vec![("query", plain_text()), ("most", optional(most))],
        ),
        "memory_read" => (
            BuiltIn::MemoryRead,
            "Read all of a memory by its lines: 200 from the first, where nothing else is said.",
            vec![
                ("id", id()),
                ("from", optional(whole())),
                ("lines", optional(whole())),
            ],
        ),
        "memory_rate" => (
            BuiltIn::MemoryRate,
            "Say how good a memory is. What is rated well is found first.",
            vec![
                ("id", id()),
                ("rating", stars()),
                ("reason", optional(plain_text())),
            ],
        ),
        _ => return None,
    })
}

/// What dry mode answers: nothing leaves a branch that is only tried.
fn simulated(built_in: BuiltIn) -> Option<Data> {
    let text = match built_in {
        BuiltIn::MemorySave => "Remembered.",
        BuiltIn::MemoryRate => "Rated.",
        _ => return None,
    };
    Some(Data::Plain(json!(text)))
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
        "artifact_write" | READ | "artifact_list" | "artifact_search" | "artifact_rate" => {
            artifacts(name)?
        }
        "memory_save" | "memory_search" | "memory_read" | "memory_rate" => memory(name)?,
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
            BuiltIn::NotesSearch | BuiltIn::MemorySearch | BuiltIn::MemoryRead => Class::Read,
            // What is saved twice under one key is saved once.
            BuiltIn::MemorySave | BuiltIn::MemoryRate => Class::Idempotent,
            _ => Class::Pure,
        },
        requires: Vec::new(),
        approve: Vec::new(),
        source: Source::BuiltIn(built_in),
        set: Vec::new(),
        result: None,
        on_error: BTreeMap::new(),
        on_doubt: None,
        simulate: simulated(built_in),
        reflect: None,
        repeat_allowed: false,
        then: None,
        mode: None,
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
