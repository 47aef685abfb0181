//! The keys of the format, as one table. The parser judges by it ([`super::shape`]), the canonical form and the JSON
//! Schema for editors are made from it, so they cannot drift.

pub(crate) mod agent;
mod file;
pub(crate) mod route;
mod test;
mod tool;

pub(crate) use agent::AGENT;
pub(crate) use file::FILE;

/// A kind of map with fixed keys.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its name in the documentation.
    pub name: &'static str,
    /// What it is, in a sentence: "a tool".
    pub words: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// Groups of keys of which at most one may stand; with `true` exactly one must.
    pub one_of: &'static [(bool, &'static [&'static str])],
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub ty: Ty,
    pub required: bool,
    /// What holds where it is not written, as the documentation says it.
    pub default: &'static str,
    pub doc: &'static str,
}

/// What a value may be.
#[derive(Debug)]
pub(crate) enum Ty {
    /// A whole number, not below this.
    Integer(i64),
    Number,
    Boolean,
    /// Plain text.
    Text,
    /// A name of the format (`[a-z][a-z0-9_]*`), declared elsewhere.
    Name,
    /// A path, relative to the file that names it.
    Path,
    /// The path of a file or folder that sessions read as it is then: no part of the definition.
    Documents,
    /// A template, or a path to one.
    Prompt,
    Duration,
    /// Bytes.
    Size,
    /// An amount of money: a number, not below 0.
    Money,
    /// `5/s`, `100/min, 40000 tokens/min`; `false`: of requests alone.
    Rate(bool),
    Expr,
    Template,
    /// JSON with templates in its texts.
    Data,
    /// JSON.
    Any,
    /// One of these words; `false`: reserved.
    Word(&'static [(&'static str, bool)]),
    /// A short type, `[type]`, or the long form.
    Type,
    List(&'static Ty),
    /// From names to values.
    Map(&'static Ty),
    /// From names of tools, agents, state entries and the like, which must be well formed, to values.
    Names(&'static Ty),
    Table(&'static Table),
    /// The first that fits.
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

/// Short names of types; `false`: reserved.
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

    /// Every table, for tests and the documentation.
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

    /// Whoever reads the tree asks for keys by name. A key that nobody asks for would be judged and then lost.
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
