//! The keys of the format. One line of a section gives a key, its type, default and text, and the function that reads it. The
//! checks of shapes, the canonical form, the JSON Schema, the reference and the lowering follow from it.
//!
//! ```text
//! section! {
//!     /// An example.
//!     Example<'a>: "Example", "an example", short [Name<'a>, Long<Self>] tool {
//!         tool: Name<'a>, required "A tool.";
//!         args: Map<'a, Data<'a>> | "result", "Its arguments.";
//!         retry: Few<'a, 0> = 4, "Further attempts at most.";
//!         env: Map<'a, Template<'a>>, "Secrets resolve here.", with ["command"] "a tool without `command`";
//!     }
//! }
//! ```
//!
//! This makes a view of a node, `Example<'a>`, with one function for each key. `example.args()` is `None` if the key is absent,
//! otherwise a view of the value with its place. `example.retry()` holds the number, which is 4 if the key is absent. If nothing
//! reads a key, its function is unused code, which the compiler reports.
//!
//! * `= value` is the default, as a value. If the lowering decides the default, `| "text"` describes it; `=> function` computes
//!   this text.
//! * `as "key"` gives the key if it is not a name in Rust.
//! * `with [keys] "place"` reports the key at a place that has none of these keys.
//! * `names Space` or `declares Space`, last: the value names something of this [`Space`] or is a map that declares it. Editors
//!   find, complete and rename names by it.
//! * `short [..] key`: a value that is not a map is the value of this key, and the section has no other key. `Long<Self>` is the
//!   map. If the word is not a key, the lowering looks at the node.
//! * `ordered`: maps of such sections keep their order in the stored form.
//! * `exactly one of &[..];` or `at_most one of &[..];` after the section: keys that exclude each other.

pub(crate) mod agent;
pub(crate) mod file;
pub(crate) mod kinds;
pub(crate) mod route;
pub(crate) mod test;
pub(crate) mod tool;

use super::source::{Kind, Node, Span, Value};
use kinds::{
    Any, Flag, List, Many, Map, Millis, Name, Or, Path, Read, Real, Template, Text, Type, Word,
    words,
};
use steersman_machine::stored::interaction::{Class, Reduce};

/// The keys of a section.
#[derive(Debug)]
pub(crate) struct Table {
    /// Name of the section in the documentation.
    pub name: &'static str,
    /// Noun with article for messages: "a tool".
    pub words: &'static str,
    /// The keys in the order of the reference.
    pub keys: &'static [Key],
    /// Groups of keys that exclude each other; with `true` exactly one key of the group is required.
    pub one_of: &'static [(bool, &'static [&'static str])],
    /// True if the order of a map of such sections has a meaning: models see it, or the first entry is the start.
    pub ordered: bool,
    /// The key to which a value that is not a map belongs.
    pub short: Option<&'static str>,
}

/// A key of a section.
#[derive(Debug)]
pub(crate) struct Key {
    /// The key as it is written.
    pub name: &'static str,
    /// Type of the value.
    pub ty: Ty,
    /// True if a section without the key is reported.
    pub required: bool,
    /// The value of an absent key.
    pub default: Default,
    /// The text of the reference.
    pub doc: &'static str,
    /// The key has a meaning only together with one of these keys. The text describes a place that has none of them.
    pub with: Option<(&'static [&'static str], &'static str)>,
    /// Meaning of the names in the value.
    pub refers: Option<Refers>,
}

/// The meaning of the names in a value: of a text, of the texts of a list, or of the keys of a map.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refers {
    /// They are declared here.
    Declares(Space),
    /// They are declared elsewhere.
    Names(Space),
}

/// The sorts of names. Tools, agents and people share one namespace.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Space {
    /// A tool.
    Tool,
    /// An agent or a person.
    Agent,
    /// A person.
    Person,
    /// A tool, an agent or a person.
    Callable,
    /// An item of what an agent is offered: a tool, an agent, a person or a built-in set.
    Offer,
    /// `approval TOOL` and the like: something that waits.
    Open,
    /// A state entry.
    State,
    /// `state.NAME`; any other text is a type.
    StateValue,
    Model,
    Event,
    Config,
    Secret,
    Server,
    Outcome,
    Role,
    /// A parameter of the enclosing tool or agent.
    Parameter,
    /// A field of the enclosing event.
    Field,
    /// A mode of the enclosing agent.
    Mode,
    /// A state of the enclosing route.
    Place,
    /// A task of the enclosing route.
    Task,
    /// A state of the enclosing route if it has states, otherwise an agent.
    Start,
}

/// The value of an absent key.
#[derive(Debug)]
pub(crate) enum Default {
    /// An absent key has no value.
    None,
    /// The lowering decides; a text for the documentation.
    Words(&'static str),
    /// A value; the function writes it as a definition does.
    Value(fn() -> String),
}

impl Key {
    /// Returns the default for the documentation; `None` if there is none.
    pub(crate) fn default(&self) -> Option<String> {
        match self.default {
            Default::None => None,
            Default::Words(words) => Some(words.to_owned()),
            Default::Value(written) => Some(written()),
        }
    }
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
    /// A map with the keys of a section.
    Table(fn() -> &'static Table),
    /// The first alternative that fits the value.
    Or(&'static [Ty]),
}

impl Ty {
    /// Returns the alternatives of a choice, also those of a choice within it. A type that is not a choice is its only
    /// alternative.
    pub(crate) fn alternatives(&'static self) -> Vec<&'static Self> {
        match self {
            Self::Or(kinds) => kinds.iter().flat_map(Self::alternatives).collect(),
            one => vec![one],
        }
    }

    /// Returns true if a value looks like this alternative of a choice.
    pub(crate) fn fits(&self, node: &Node) -> bool {
        let scalar = node.scalar();
        match self {
            Self::Integer(_) => scalar.is_some_and(|s| matches!(s.kind, Kind::Integer(_))),
            Self::Number | Self::Money => {
                scalar.is_some_and(|s| matches!(s.kind, Kind::Integer(_) | Kind::Number(_)))
            }
            Self::Boolean => scalar.is_some_and(|s| matches!(s.kind, Kind::Bool(_))),
            Self::Duration | Self::Size => scalar.is_some_and(|s| !s.text.contains("{{")),
            Self::Word(words) => {
                scalar.is_some_and(|s| words.iter().any(|(word, _)| *word == &*s.text))
                    || scalar.is_some_and(|s| s.kind == Kind::Text && is_name(&s.text))
                        && !matches!(words.first(), Some(("fail", _)))
            }
            Self::Text
            | Self::Template
            | Self::Prompt
            | Self::Path
            | Self::Documents
            | Self::Name
            | Self::Rate(_)
            | Self::Expr => scalar.is_some_and(|s| s.kind != Kind::Null),
            Self::List(_) => matches!(node.value, Value::List(_)),
            Self::Map(_) | Self::Names(_) | Self::Table(_) => matches!(node.value, Value::Map(_)),
            Self::Data | Self::Any | Self::Type => true,
            Self::Or(kinds) => kinds.iter().any(|ty| ty.fits(node)),
        }
    }

    /// Returns the first alternative of a choice that a value looks like.
    pub(crate) fn chosen(&'static self, node: &Node) -> Option<&'static Self> {
        self.alternatives().into_iter().find(|ty| ty.fits(node))
    }
}

impl Table {
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

static EMPTY: Node = Node {
    span: Span::NONE,
    value: Value::Map(Vec::new()),
};

/// A view of a node by its keys.
pub(crate) trait Section<'a>: Read<'a> {
    /// Returns the table of keys.
    fn table() -> &'static Table;
    /// Returns a view of an absent section: all keys have their defaults.
    fn empty() -> Self {
        Self::read(&EMPTY)
    }
}

/// Makes sections; see the head of this module.
macro_rules! section {
    ($(
        $(#[$doc:meta])+
        $name:ident<$a:lifetime>: $title:literal, $words:literal $(, short [$($form:ty),+] $at:ident)? $(; $ordered:ident)? {
            $(
                $field:ident $(as $key:literal)? : $ty:ty $(| $default:literal)? $(= $value:expr)? $(=> $text:expr)?,
                $($required:ident)? $about:literal $(, with [$($other:literal),+] $without:literal)?
                $(, names $names:ident)? $(, declares $declares:ident)?;
            )+
        }
        $($how:ident one of $members:expr;)?
    )+) => {$(
        $(#[$doc])+
        #[derive(Copy, Clone, Debug)]
        pub(crate) struct $name<$a>(pub &$a $crate::source::Node);

        impl<$a> $name<$a> {
            const TABLE: $crate::keys::Table = $crate::keys::Table {
                name: $title,
                words: $words,
                keys: &[$($crate::keys::Key {
                    name: $crate::keys::section!(@key $field $($key)?),
                    ty: <$ty as $crate::keys::kinds::Read<$a>>::TY,
                    required: $crate::keys::section!(@is $($required)?),
                    default: $crate::keys::section!(@default $a $ty; $($default)? $(= $value)? $(=> $text)?),
                    doc: $about,
                    with: $crate::keys::section!(@with $([$($other),+] $without)?),
                    refers: $crate::keys::section!(@refers $(Names $names)? $(Declares $declares)?),
                }),+],
                one_of: &[$(($crate::keys::section!(@exactly $how), $members))?],
                ordered: $crate::keys::section!(@is $($ordered)?),
                short: $crate::keys::section!(@short $($at)?),
            };

            $($crate::keys::section!(@read $a $field, $crate::keys::section!(@key $field $($key)?), $about, $ty $(= $value)?);)+

            /// Returns the value of a key. In the short form, the value that is not a map belongs to one key, and no other key is
            /// present.
            fn child(self, key: &str) -> Option<&$a $crate::source::Node> {
                $(
                    if !matches!(self.0.value, $crate::source::Value::Map(_)) {
                        return (key == stringify!($at)).then_some(self.0);
                    }
                )?
                self.0.get(key)
            }
        }

        impl<$a> $crate::keys::kinds::Read<$a> for $name<$a> {
            const TY: $crate::keys::Ty = $crate::keys::section!(@ty $a $($($form),+)?);
            fn read(node: &$a $crate::source::Node) -> Self {
                Self(node)
            }
            fn node(self) -> &$a $crate::source::Node {
                self.0
            }
        }

        impl<$a> $crate::keys::Section<$a> for $name<$a> {
            fn table() -> &'static $crate::keys::Table {
                const { &Self::TABLE }
            }
        }
    )+};
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    (@is) => { false };
    (@is $yes:ident) => { true };
    (@exactly exactly) => { true };
    (@exactly at_most) => { false };
    (@with) => { None };
    (@with [$($other:literal),+] $without:literal) => { Some((&[$($other),+], $without)) };
    (@short) => { None };
    (@short $at:ident) => { Some(stringify!($at)) };
    (@refers) => { None };
    (@refers $how:ident $space:ident) => {
        Some($crate::keys::Refers::$how($crate::keys::Space::$space))
    };
    (@default $a:lifetime $ty:ty;) => { $crate::keys::Default::None };
    (@default $a:lifetime $ty:ty; $default:literal) => { $crate::keys::Default::Words($default) };
    (@default $a:lifetime $ty:ty; => $text:expr) => { $crate::keys::Default::Value($text) };
    (@default $a:lifetime $ty:ty; = $value:expr) => {
        $crate::keys::Default::Value(|| <$ty as $crate::keys::kinds::Valued<$a>>::written($value))
    };
    (@read $a:lifetime $field:ident, $key:expr, $about:literal, $ty:ty) => {
        #[doc = $about]
        pub(crate) fn $field(self) -> Option<$ty> {
            self.child($key).map(<$ty as $crate::keys::kinds::Read<$a>>::read)
        }
    };
    (@read $a:lifetime $field:ident, $key:expr, $about:literal, $ty:ty = $value:expr) => {
        #[doc = $about]
        pub(crate) fn $field(
            self,
        ) -> $crate::keys::kinds::Given<$a, <$ty as $crate::keys::kinds::Valued<$a>>::Value> {
            let at = self.child($key);
            let written = at.map(<$ty as $crate::keys::kinds::Read<$a>>::read);
            let value = written.and_then($crate::keys::kinds::Valued::value);
            $crate::keys::kinds::Given { at, value: value.unwrap_or_else(|| $value) }
        }
    };
    (@ty $a:lifetime) => { $crate::keys::Ty::Table(<Self as $crate::keys::Section<$a>>::table) };
    (@ty $a:lifetime $($form:ty),+) => {
        $crate::keys::Ty::Or(const { &[$(<$form as $crate::keys::kinds::Read<$a>>::TY),+] })
    };
}
pub(crate) use section;

words! {
    /// The short name of a type.
    enum ShortType: String = "string", Integer = "integer", Number = "number", Boolean = "boolean", Object = "object",
        Any = "any", Secret = "secret", Artifact = "artifact";
}

words! {
    /// The end of a value of state, if it is no time.
    enum Lasting: Answer = "answer";
}

words! {
    Class: Pure = Self::Pure.word(), Read = Self::Read.word(), Idempotent = Self::Idempotent.word(), Unsafe = Self::Unsafe.word();
    Reduce: Last = "last", Append = "append", Sum = "sum", Max = "max", Merge = "merge";
}

section! {
    /// The long form of a type.
    LongType<'a>: "Type", "a type" {
        ty as "type": Type<'a> | "from the other keys", "A short name.";
        fields: Map<'a, Type<'a>>, "An object with exactly these fields.";
        items: Type<'a>, "A list.";
        words as "enum": List<'a, Text<'a>>, "One of these texts.";
        optional: Flag<'a> = false, "May be absent; then `none`.";
        default: Any<'a>, "Must fit.";
        description: Text<'a>, "Told to the model.";
        minimum: Real<'a>, "At least.";
        maximum: Real<'a>, "At most.";
        pattern: Text<'a>, "Regular expression for the whole text.";
        schema: Path<'a>, "A JSON Schema file.";
        expires: Or<Word<'a, Lasting>, Millis<'a>>,
            "State only: its default again, else `none`, this long after its last write; `answer`: with the end of the answer or task of the agent that declares it.";
        by: Many<'a, Name<'a>> | "anybody",
            "State only: the people, or `user`, who may edit it from outside.", names Person;
        reduce: Word<'a, Reduce> = Reduce::default(), "State only: how several writes of one exchange come together.";
        ask: Template<'a>, "Secret parameters: the question to the person.";
    }
    at_most one of &["type", "fields", "items", "enum", "schema"];
}

/// Returns true if a text is a well-formed name: `[a-z][a-z0-9_]*`, at most 48 bytes.
pub(crate) fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 48
        && bytes.next().is_some_and(|c| c.is_ascii_lowercase())
        && bytes.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
}

#[cfg(test)]
mod tests {
    use super::file::File;
    use super::{Section, Ty};

    #[test]
    fn keys_of_a_section_differ_and_groups_name_them() {
        for table in crate::schema::tables(File::table()) {
            for (at, key) in table.keys.iter().enumerate() {
                let again = table.keys[at + 1..]
                    .iter()
                    .any(|other| other.name == key.name);
                assert!(!again, "`{}` of {}", key.name, table.name);
                let others = key.with.iter().flat_map(|(others, _)| *others);
                for other in others {
                    assert!(table.key(other).is_some(), "`{other}` of {}", table.name);
                }
            }
            for key in table.keys {
                // a new name under which something is seen is not declared and not used
                let free = key.name == "as";
                let inner = key.ty.alternatives();
                // in the short form of a section the name belongs to a key of that section
                let short = inner
                    .iter()
                    .any(|ty| matches!(ty, Ty::Table(of) if of().short.is_some()));
                let named = !short && inner.iter().any(|ty| matches!(ty, Ty::Name));
                assert!(
                    !named || free || key.refers.is_some(),
                    "`{}` of {}",
                    key.name,
                    table.name
                );
            }
            let groups = table.one_of.iter().flat_map(|(_, group)| *group);
            for name in groups {
                assert!(table.key(name).is_some(), "`{name}` of {}", table.name);
            }
        }
    }
}
