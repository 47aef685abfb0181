//! The keys of the format, as tables. The parser checks against them ([`super::shape`]); the canonical form and the JSON
//! Schema for editors are derived from them, so they always agree.

pub(crate) mod agent;
mod file;
pub(crate) mod route;
mod test;
mod tool;

pub(crate) use agent::AGENT;
pub(crate) use file::FILE;

/// A map with a fixed set of keys.
#[derive(Debug)]
pub(crate) struct Table {
    /// Name of the table in the documentation.
    pub name: &'static str,
    /// Noun with article for messages: "a tool".
    pub words: &'static str,
    pub keys: &'static [Key],
    /// Groups of keys that exclude each other; with `true` exactly one key of the group is required.
    pub one_of: &'static [(bool, &'static [&'static str])],
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub ty: Ty,
    pub required: bool,
    /// The default, as text for the documentation; empty or "–" if there is none.
    pub default: &'static str,
    pub doc: &'static str,
}

/// Type of the value of a key.
#[derive(Debug)]
pub(crate) enum Ty {
    /// A whole number that is not below the given minimum.
    Integer(i64),
    Number,
    Boolean,
    /// Text without templates.
    Text,
    /// A reference to a name (`[a-z][a-z0-9_]*`) that is declared elsewhere.
    Name,
    /// A path, relative to the file that names it.
    Path,
    /// The path of a file or folder that a session reads in its current state; its content is not part of the definition.
    Documents,
    /// A template, or a path to one.
    Prompt,
    Duration,
    /// A size in bytes, with a unit: `16KiB`.
    Size,
    /// An amount of money: a number, not below 0.
    Money,
    /// A rate: `5/s`, `100/min, 40000 tokens/min`; `false` allows requests only, no tokens.
    Rate(bool),
    Expr,
    Template,
    /// Any JSON, with templates in its texts.
    Data,
    /// Any JSON, without templates.
    Any,
    /// One of these words; `false` marks a reserved word.
    Word(&'static [(&'static str, bool)]),
    /// A type: its short name, `[type]`, or the long form.
    Type,
    List(&'static Ty),
    /// A map with any keys and values of one type.
    Map(&'static Ty),
    /// A map whose keys are names of tools, agents, state entries and so on; the names must be well formed.
    Names(&'static Ty),
    Table(&'static Table),
    /// The first alternative that fits the value.
    Or(&'static [Ty]),
}

const fn key(name: &'static str, ty: Ty, default: &'static str, doc: &'static str) -> Key {
    Key {
        name,
        ty,
        required: false,
        default,
        doc,
    }
}

impl Key {
    const fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

impl Table {
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// `EXPR`, `{ that, else }`, or a list of both.
const REQUIRES: Ty = Ty::Or(&[
    Ty::Expr,
    Ty::Table(&tool::REQUIRES),
    Ty::List(&Ty::Or(&[Ty::Expr, Ty::Table(&tool::REQUIRES)])),
]);
const APPROVE: Ty = Ty::Or(&[Ty::Expr, Ty::Table(&tool::APPROVE)]);
const REFLECTS: Ty = Ty::Or(&[Ty::Boolean, Ty::Table(&agent::REFLECT)]);
const THEN: Ty = Ty::Or(&[Ty::Name, Ty::Table(&tool::THEN)]);
const NAMES: Ty = Ty::List(&Ty::Name);
const TEXTS: Ty = Ty::Map(&Ty::Template);
const DATA: Ty = Ty::Map(&Ty::Data);
const TYPES: Ty = Ty::Names(&Ty::Type);
const CLASS: Ty = Ty::Word(&[
    ("pure", true),
    ("read", true),
    ("idempotent", true),
    ("unsafe", true),
]);

/// The long form of a type.
pub(crate) static TYPE: Table = Table {
    name: "Type",
    words: "a type",
    keys: &[
        key("type", Ty::Type, "from the other keys", "A short name."),
        key(
            "fields",
            Ty::Map(&Ty::Type),
            "–",
            "An object with exactly these fields.",
        ),
        key("items", Ty::Type, "–", "A list."),
        key("enum", Ty::List(&Ty::Text), "–", "One of these texts."),
        key(
            "optional",
            Ty::Boolean,
            "false",
            "May be absent; then `none`.",
        ),
        key("default", Ty::Any, "–", "Must fit."),
        key("description", Ty::Text, "–", "Told to the model."),
        key("minimum", Ty::Number, "–", "At least."),
        key("maximum", Ty::Number, "–", "At most."),
        key(
            "pattern",
            Ty::Text,
            "–",
            "Regular expression for the whole text.",
        ),
        key("schema", Ty::Path, "–", "A JSON Schema file."),
        key(
            "expires",
            Ty::Duration,
            "–",
            "State only: its default again, else `none`, this long after its last write.",
        ),
        key(
            "reduce",
            Ty::Word(&[
                ("last", true),
                ("append", true),
                ("sum", true),
                ("max", true),
                ("merge", true),
            ]),
            "last",
            "State only: how several writes of one exchange come together.",
        ),
        key(
            "ask",
            Ty::Template,
            "–",
            "Secret parameters: the question to the person.",
        ),
    ],
    one_of: &[(false, &["type", "fields", "items", "enum", "schema"])],
};

/// Short names of types; `false` marks a reserved name.
pub(crate) const SHORT: &[(&str, bool)] = &[
    ("string", true),
    ("integer", true),
    ("number", true),
    ("boolean", true),
    ("object", true),
    ("any", true),
    ("secret", true),
    ("artifact", true),
];

#[cfg(test)]
mod all {
    use super::{Table, agent, file, route, test, tool};

    /// All tables, for tests.
    pub(crate) static TABLES: &[&Table] = &[
        &file::FILE,
        &file::CONFIG,
        &file::SECRET,
        &file::MODEL,
        &file::PRICE,
        &file::MCP,
        &super::TYPE,
        &file::EVENT,
        &file::START,
        &tool::TOOL,
        &tool::HTTP,
        &tool::REQUIRES,
        &tool::APPROVE,
        &tool::DOUBT,
        &tool::ON_ERROR,
        &tool::THEN,
        &tool::WAIT,
        &tool::RENDER,
        &tool::HORIZON,
        &agent::AGENT,
        &agent::MODE,
        &agent::MODE_EXIT,
        &agent::VIEW,
        &agent::SUMMARY,
        &agent::BEFORE,
        &agent::REFLECT,
        &agent::TOOL_USE,
        &agent::PERSON,
        &agent::PERSON_TIMEOUT,
        &agent::CONTEXT,
        &agent::COMPACT,
        &agent::LIMITS,
        &agent::LIMIT,
        &agent::ANSWER_LIMIT,
        &agent::BOUND_LIMIT,
        &agent::TIME_LIMIT,
        &agent::MONEY_LIMIT,
        &route::ROUTE,
        &route::RULE,
        &route::CHOICE,
        &route::UNUSABLE,
        &route::STATE_NODE,
        &route::SPEAKER,
        &route::BEGIN,
        &route::EXIT,
        &route::TASK,
        &route::ORCHESTRATOR,
        &test::TEST,
        &test::REMEMBERED,
        &test::STEP,
        &test::EXPECT,
    ];
}

#[cfg(test)]
mod tests {
    use super::Table;
    use super::all::TABLES;

    /// The readers of the tree look keys up by name. A key that no reader looks up would be accepted and then ignored.
    #[test]
    fn every_key_that_is_built_is_read() {
        let readers = [
            include_str!("lower/agent.rs"),
            include_str!("lower/context.rs"),
            include_str!("lower/file.rs"),
            include_str!("lower/limits.rs"),
            include_str!("lower/knowledge.rs"),
            include_str!("lower/mcp.rs"),
            include_str!("lower/memory.rs"),
            include_str!("lower/modes.rs"),
            include_str!("lower/reflect.rs"),
            include_str!("lower/route.rs"),
            include_str!("lower/tests.rs"),
            include_str!("lower/tool.rs"),
            include_str!("lower/values.rs"),
            include_str!("load.rs"),
        ]
        .concat();
        for table in TABLES {
            for key in table.keys {
                let read = readers.contains(&format!("\"{}\"", key.name));
                assert!(read, "`{}` of {} is never read", key.name, table.name);
            }
        }
    }

    #[test]
    fn keys_of_a_table_differ_and_groups_name_them() {
        for table in TABLES {
            for (at, key) in table.keys.iter().enumerate() {
                let again = table.keys[at + 1..]
                    .iter()
                    .any(|other| other.name == key.name);
                assert!(!again, "`{}` of {}", key.name, table.name);
            }
            let known = |name: &&str| Table::key(table, name).is_some();
            assert!(
                table
                    .one_of
                    .iter()
                    .all(|(_, group)| group.iter().all(known))
            );
        }
    }
}
