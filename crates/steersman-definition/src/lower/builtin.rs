//! Definitions of the engine's built-in tools.

use super::Lower;
use super::values::{of_kind, plain_text};
use serde_json::json;
use std::collections::BTreeMap;
use steersman_machine::network::notes::{DOCUMENTS, MOST, TRANSCRIPT};
use steersman_machine::network::{Render, Source, ToolDef};
use steersman_machine::stored::bounds::{QUOTED, SPILL};
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::interaction::Class;
use steersman_machine::values::expression::Data;
use steersman_machine::values::types::{Parameters, Type, TypeKind};
use steersman_machine::view::rating::{BEST, WORST};

/// Returns true if tests may script a tool's outcomes, because its result depends on more than the session.
pub(super) fn may_be_played(tool: BuiltIn) -> bool {
    matches!(
        tool,
        BuiltIn::NotesSearch
            | BuiltIn::MemorySave
            | BuiltIn::MemorySearch
            | BuiltIn::MemoryRead
            | BuiltIn::MemoryRate
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

/// Description and parameters of a tool, as the model sees them.
type Told = (&'static str, Vec<(&'static str, Type)>);

/// Tools that end something or give the floor away.
fn ends(tool: BuiltIn) -> Option<Told> {
    Some(match tool {
        BuiltIn::Finish => (
            "End the task with this result.",
            vec![("result", plain_text())],
        ),
        BuiltIn::Done => (
            "Say that the task is done, with what came of it.",
            vec![("result", optional(plain_text()))],
        ),
        BuiltIn::NeedHelp => (
            "Give the floor back: the user wants something else, or this is not yours to do.",
            vec![("request", told("What the user wants, in the user's words."))],
        ),
        BuiltIn::Handoff => (
            "Hand the conversation over to somebody else.",
            vec![("to", told("Who.")), ("reason", plain_text())],
        ),
        _ => return None,
    })
}

/// Tools of the to-do list.
fn todo(tool: BuiltIn) -> Option<Told> {
    Some(match tool {
        BuiltIn::TodoAdd => (
            "Add an item to the to-do list.",
            vec![("text", plain_text())],
        ),
        BuiltIn::TodoComplete => (
            "Mark an item of the to-do list as done, with its result.",
            vec![("id", whole()), ("result", plain_text())],
        ),
        BuiltIn::TodoCancel => (
            "Cancel an item of the to-do list, with the reason.",
            vec![("id", whole()), ("reason", plain_text())],
        ),
        BuiltIn::TodoUpdate => (
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

/// Type of a rating, from 1 to 5.
fn stars() -> Type {
    let (minimum, maximum) = (Some(f64::from(WORST)), Some(f64::from(BEST)));
    Type {
        description: Some("From 1, of no use, to 5, very good.".to_owned()),
        ..of_kind(TypeKind::Integer { minimum, maximum })
    }
}

/// Tools for artifacts.
fn artifacts(tool: BuiltIn) -> Option<Told> {
    Some(match tool {
        BuiltIn::ArtifactWrite => (
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
        BuiltIn::ArtifactRead => (
            "Read an artifact by its lines: 200 from the first, where nothing else is said.",
            vec![
                ("name", plain_text()),
                ("version", optional(whole())),
                ("from", optional(whole())),
                ("lines", optional(whole())),
            ],
        ),
        BuiltIn::ArtifactList => (
            "List the artifacts: names, versions, media types, sizes, ratings, how they begin.",
            vec![],
        ),
        BuiltIn::ArtifactSearch => (
            "Find artifacts by words: the best first, with the lines that have them.",
            vec![("query", plain_text())],
        ),
        BuiltIn::ArtifactRate => (
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

/// Tools for memory.
fn memory(tool: BuiltIn) -> Option<Told> {
    let most = Type {
        description: Some("Memories at most; 5, where it is left out.".to_owned()),
        ..of_kind(TypeKind::Integer {
            minimum: Some(1.0),
            maximum: Some(f64::from(MOST)),
        })
    };
    let id = || told_whole("As `memory_search` gives it.");
    Some(match tool {
        BuiltIn::MemorySave => (
            "Remember something for later conversations: a text, or an artifact as it is now. One of the two.",
            vec![
                ("name", told("A short name, such as `delivery-address`.")),
                ("content", optional(plain_text())),
                ("artifact", optional(told("The name of an artifact."))),
                ("tags", optional(list(plain_text()))),
            ],
        ),
        BuiltIn::MemorySearch => (
            "Find what earlier conversations remembered, by words: the best first.",
            vec![("query", plain_text()), ("most", optional(most))],
        ),
        BuiltIn::MemoryRead => (
            "Read all of a memory by its lines: 200 from the first, where nothing else is said.",
            vec![
                ("id", id()),
                ("from", optional(whole())),
                ("lines", optional(whole())),
            ],
        ),
        BuiltIn::MemoryRate => (
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

/// Returns the simulated answer for a dry branch, from which nothing must leave.
fn simulated(built_in: BuiltIn) -> Option<Data> {
    let text = match built_in {
        BuiltIn::MemorySave => "Remembered.",
        BuiltIn::MemoryRate => "Rated.",
        _ => return None,
    };
    Some(Data::Plain(json!(text)))
}

/// Tools that belong to no set.
fn alone(tool: BuiltIn) -> Option<Told> {
    Some(match tool {
        BuiltIn::AskUser => (
            "Ask the user a question and wait for the answer.",
            vec![
                ("question", plain_text()),
                ("options", optional(list(plain_text()))),
            ],
        ),
        BuiltIn::Fork => (
            "Try several ways at once: one branch of yourself for each instruction. Gives their results.",
            vec![("instructions", list(plain_text()))],
        ),
        BuiltIn::NotesSearch => (
            "Find passages of this conversation and of the attached documents by their words.",
            notes_parameters(),
        ),
        _ => return None,
    })
}

/// Returns the definition of a built-in tool.
fn tool(built_in: BuiltIn) -> ToolDef {
    let sets = [ends, todo, artifacts, memory, alone];
    let told = sets.iter().find_map(|told| told(built_in));
    let (description, parameters) = told.expect("each built-in tool is in one of them");
    let parameters = parameters
        .into_iter()
        .map(|(name, ty)| (name.into(), ty))
        .collect();
    ToolDef {
        name: built_in.name().into(),
        description: description.to_owned(),
        parameters: Parameters::Fields(parameters),
        effect: match built_in {
            // documents and memories may change at any time
            BuiltIn::NotesSearch | BuiltIn::MemorySearch | BuiltIn::MemoryRead => Class::Read,
            // saving twice under the same key saves once
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
        render: Render {
            spill: match built_in {
                // passages are quoted whole, and their number is bounded
                BuiltIn::NotesSearch | BuiltIn::MemorySearch => QUOTED,
                _ => SPILL,
            },
            ..Render::default()
        },
        timeout: 60_000,
        retry: 4,
        parallel: 8,
    }
}

impl Lower<'_> {
    /// Adds the built-in tools that an agent is offered to the declared tools.
    pub(super) fn with_built_in(
        &self,
        mut tools: BTreeMap<Name, ToolDef>,
    ) -> BTreeMap<Name, ToolDef> {
        let used = self.out.builtins.iter();
        tools.extend(used.map(|of| (of.name().into(), tool(*of))));
        tools
    }
}
