//! Definitions of the engine's built-in tools.

use super::super::keys::Section as _;
use super::super::keys::tool::Tool;
use super::Lower;
use super::values::{of_kind, plain_text};
use serde_json::json;
use std::collections::BTreeMap;
use steersman_machine::network::notes::{DOCUMENTS, MOST, TRANSCRIPT};
use steersman_machine::network::{Render, Source, ToolDef};
use steersman_machine::stored::bounds::{QUOTED, SPILL};
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::Data;
use steersman_machine::values::types::{Parameters, Type, TypeKind};
use steersman_machine::view::rating::{BEST, WORST};

fn optional(mut ty: Type) -> Type {
    ty.optional = true;
    ty
}

fn described(description: &str) -> Type {
    Type {
        description: Some(description.to_owned()),
        ..plain_text()
    }
}

fn positive() -> Type {
    let (minimum, maximum) = (Some(1.into()), None);
    of_kind(TypeKind::Integer { minimum, maximum })
}

fn described_positive(description: &str) -> Type {
    Type {
        description: Some(description.to_owned()),
        ..positive()
    }
}

fn list(of: Type) -> Type {
    of_kind(TypeKind::List(Box::new(of)))
}

/// The type of `state.todo`.
pub(super) fn todo_list() -> Type {
    let words = ["todo", "done", "cancelled"].map(str::to_owned);
    let item = of_kind(TypeKind::Fields(vec![
        ("id".into(), positive()),
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

/// Type of a number of passages or memories.
fn most(description: &str) -> Type {
    Type {
        description: Some(description.to_owned()),
        ..of_kind(TypeKind::Integer {
            minimum: Some(1.into()),
            maximum: Some(MOST.into()),
        })
    }
}

/// Type of the place in which `notes_search` looks.
fn notes() -> Type {
    let sources = [DOCUMENTS, TRANSCRIPT].map(str::to_owned).to_vec();
    Type {
        description: Some("Both, where it is left out.".to_owned()),
        ..of_kind(TypeKind::Enum(sources))
    }
}

/// Type of a rating, from 1 to 5.
fn stars() -> Type {
    let (minimum, maximum) = (Some(WORST.into()), Some(BEST.into()));
    Type {
        description: Some("From 1, of no use, to 5, very good.".to_owned()),
        ..of_kind(TypeKind::Integer { minimum, maximum })
    }
}

/// Returns the parameters of a tool.
fn parameters(tool: BuiltIn) -> Vec<(&'static str, Type)> {
    let id = || described_positive("As `memory_search` gives it.");
    match tool {
        BuiltIn::Finish => vec![("result", plain_text())],
        BuiltIn::Done => vec![("result", optional(plain_text()))],
        BuiltIn::NeedHelp => vec![(
            "request",
            described("What the user wants, in the user's words."),
        )],
        BuiltIn::Handoff => vec![("to", described("Who.")), ("reason", plain_text())],
        BuiltIn::AskUser => vec![
            ("question", plain_text()),
            ("options", optional(list(plain_text()))),
        ],
        BuiltIn::Fork => vec![("instructions", list(plain_text()))],
        BuiltIn::TodoAdd => vec![("text", plain_text())],
        BuiltIn::TodoComplete => vec![("id", positive()), ("result", plain_text())],
        BuiltIn::TodoCancel => vec![("id", positive()), ("reason", plain_text())],
        BuiltIn::TodoUpdate => vec![("id", positive()), ("text", plain_text())],
        BuiltIn::NotesSearch => {
            let most = most("Passages at most; 5, where it is left out.");
            let source = optional(notes());
            vec![
                ("query", plain_text()),
                ("source", source),
                ("most", optional(most)),
            ]
        }
        BuiltIn::ArtifactWrite => vec![
            ("name", described("A file name, such as `report.md`.")),
            ("content", plain_text()),
            (
                "media_type",
                optional(described("By the name where it is left out.")),
            ),
        ],
        BuiltIn::ArtifactRead => vec![
            ("name", plain_text()),
            ("version", optional(positive())),
            ("from", optional(positive())),
            ("lines", optional(positive())),
        ],
        BuiltIn::ArtifactList => vec![],
        BuiltIn::ArtifactSearch => vec![("query", plain_text())],
        BuiltIn::ArtifactRate => {
            let version = described_positive("The newest where it is left out.");
            vec![
                ("name", plain_text()),
                ("rating", stars()),
                ("reason", optional(plain_text())),
                ("version", optional(version)),
            ]
        }
        BuiltIn::MemorySave => vec![
            (
                "name",
                described("A short name, such as `delivery-address`."),
            ),
            ("content", optional(plain_text())),
            ("artifact", optional(described("The name of an artifact."))),
            ("tags", optional(list(plain_text()))),
            ("replaces", optional(list(id()))),
        ],
        BuiltIn::MemorySearch => {
            let most = most("Memories at most; 5, where it is left out.");
            let query = described("The newest, where it is left out.");
            vec![("query", optional(query)), ("most", optional(most))]
        }
        BuiltIn::MemoryRead => vec![
            ("id", id()),
            ("from", optional(positive())),
            ("lines", optional(positive())),
        ],
        BuiltIn::MemoryRate => vec![
            ("id", id()),
            ("rating", stars()),
            ("reason", optional(plain_text())),
        ],
    }
}

/// Returns the simulated answer for a dry branch, which must not change the memory of a scope.
fn simulated(built_in: BuiltIn) -> Option<Data> {
    let text = match built_in {
        BuiltIn::MemorySave => "Remembered.",
        BuiltIn::MemoryRate => "Rated.",
        _ => return None,
    };
    Some(Data::Plain(json!(text)))
}

/// Returns the definition of a built-in tool.
fn tool(built_in: BuiltIn) -> ToolDef {
    let usual = Tool::empty();
    let parameters = parameters(built_in).into_iter();
    let parameters = parameters.map(|(name, ty)| (name.into(), ty)).collect();
    ToolDef {
        name: built_in.name().into(),
        description: built_in.description().to_owned(),
        parameters: Parameters::Fields(parameters),
        effect: built_in.class(),
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
        timeout: usual.timeout().value,
        retry: usual.retry().value,
        parallel: usual.parallel().value,
    }
}

impl Lower<'_> {
    /// Adds the built-in tools that agents are offered to the declared tools.
    pub(super) fn with_built_in(
        &self,
        mut tools: BTreeMap<Name, ToolDef>,
    ) -> BTreeMap<Name, ToolDef> {
        let used = self.out.builtins.iter();
        tools.extend(used.map(|of| (of.name().into(), tool(*of))));
        tools
    }
}
