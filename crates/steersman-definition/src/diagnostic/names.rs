//! Diagnostics E02xx: a name is unknown, or names something of another sort.

use super::{Diagnostic, Place};

type At = Option<Place>;

impl Diagnostic {
    pub(crate) fn unknown_name(at: At, wanted: &str, name: &str, near: Option<&str>) -> Self {
        Self::new("E0201", at, format!("no {wanted} is named `{name}`")).near(name, near)
    }
    pub(crate) fn unknown_label(at: At, name: &str, near: Option<&str>) -> Self {
        Self::unknown_name(at, "label", name, near).help("declare it under `labels:`")
    }
    pub(crate) fn unknown_state(at: At, name: &str, near: Option<&str>) -> Self {
        Self::new("E0202", at, format!("no state is named `{name}`"))
            .near(name, near)
            .help("declare it under `state:`")
    }
    pub(crate) fn state_not_above(at: At, name: &str, owner: &str, declared: At) -> Self {
        Self::new(
            "E0202",
            at,
            format!("`state.{name}` is not to be seen here"),
        )
        .also(declared, format!("the state of `{owner}`"))
        .note("an agent sees its own state and that of the agents which lead to it")
    }
    pub(crate) fn one_namespace(at: At, name: &str, first: At) -> Self {
        Self::new("E0203", at, format!("`{name}` names a tool and an agent"))
            .also(first, "first here")
            .note("tools, agents and built-in tools share one namespace, so that `calls.NAME` has one meaning")
    }
    pub(crate) fn reserved_name(at: At, name: &str) -> Self {
        Self::new("E0204", at, format!("`{name}` is the engine's own name"))
    }
    pub(crate) fn malformed_name(at: At, name: &str) -> Self {
        Self::new("E0205", at, format!("`{name}` is not a name"))
            .note("names are lower case letters, digits and `_`, begin with a letter, and have 48 characters at most")
    }
    pub(crate) fn long_name(at: At, name: &str) -> Self {
        Self::new("E0206", at, format!("`{name}` has more than 64 characters"))
            .note("providers of models refuse longer names of tools")
    }
    /// The name that a model sees of an MCP tool is too long. The tool's own name is fixed, but `as` can rename it.
    pub(crate) fn long_remote(at: At, name: &str) -> Self {
        let seen = steersman_machine::network::wire_name(name);
        let long = seen.len();
        let what = format!("a model sees `{name}` as `{seen}`, which has {long} characters");
        Self::new("E0213", at, what)
            .note("providers of models refuse names of tools with more than 64")
            .help("give it a shorter one: `{ tool: SERVER.TOOL, as: NAME }`")
    }
    pub(crate) fn not_taken(
        at: At,
        server: &str,
        tool: &str,
        (taken, near): (&str, Option<&str>),
    ) -> Self {
        Self::new(
            "E0212",
            at,
            format!("`{tool}` is none of the tools that are taken of `{server}`"),
        )
        .note(format!("`mcp.{server}.tools` takes {taken}"))
        .near(tool, near)
    }
    pub(crate) fn unknown_field(
        at: At,
        of: &str,
        name: &str,
        near: Option<&str>,
        known: &str,
    ) -> Self {
        let diagnostic = Self::new("E0207", at, format!("`{of}` has no `{name}`"));
        match near {
            Some(near) => diagnostic.near(name, Some(near)),
            None if known.is_empty() => diagnostic,
            None => diagnostic.note(format!("it has {known}")),
        }
    }
    pub(crate) fn wrong_sort(at: At, name: &str, is: &str, wanted: &str, declared: At) -> Self {
        Self::new(
            "E0208",
            at,
            format!("`{name}` is {is}; {wanted} is wanted here"),
        )
        .also(declared, "declared here")
    }
    pub(crate) fn unknown_root(at: At, name: &str, near: Option<&str>, known: &str) -> Self {
        let diagnostic = Self::new("E0209", at, format!("`{name}` has no meaning here"));
        match near {
            Some(near) => diagnostic.near(name, Some(near)),
            None => diagnostic.note(format!("here have a meaning: {known}")),
        }
    }
    /// Adds how the fields of an event reach a place where the event itself has no meaning.
    /// Says what gives `save` a meaning.
    pub(crate) fn of_a_command(self) -> Self {
        self.help("`save: NAME` at a tool with `command` gives it a meaning in `command` and `env`")
    }
    pub(crate) fn of_an_event(self) -> Self {
        self.help(
            "an event's fields come to a session as arguments of its agent: `start: { args: { NAME: \"{{ event.FIELD }}\" } }`, and \
             `args.NAME` here",
        )
    }
    pub(crate) fn seen_twice(at: At, name: &str) -> Self {
        Self::new(
            "E0210",
            at,
            format!("the model would see two tools named `{name}`"),
        )
        .help("give one of them another name with `as:`")
    }
    pub(crate) fn path_as_text(at: At, text: &str) -> Self {
        let value = format!("\"{{{{ {text} }}}}\"");
        Self::new(
            "W0203",
            at.clone(),
            format!("`{text}` is these letters here, not a value"),
        )
        .patch("for the value, write", at, value)
    }
    pub(crate) fn unreachable(at: At, what: &str, name: &str) -> Self {
        Self::new("W0201", at, format!("nothing leads to the {what} `{name}`"))
    }
    pub(crate) fn no_member(at: At, name: &str) -> Self {
        Self::new(
            "E0201",
            at,
            format!("`{name}` is no member of this handoff"),
        )
        .help(format!(
            "each member is a key: add `{name}: []`, with those to whom it may hand over"
        ))
    }
    pub(crate) fn never_handed_to(at: At, route: &str, member: &str) -> Self {
        Self::new(
            "W0201",
            at,
            format!("no member of `{route}` hands over to `{member}`"),
        )
        .help("name it in the list of a member that hands over to it, or `start` with it")
    }
    pub(crate) fn circle(at: At, names: &str, depth: u32) -> Self {
        Self::new(
            "W0202",
            at,
            format!("these agents can call each other in a circle: {names}"),
        )
        .note(format!(
            "calls nest at most {depth} deep (`limits.depth`); a deeper one is refused"
        ))
    }
    pub(crate) fn fallback_circle(at: At, model: &str, through: &str) -> Self {
        let what = if model == through {
            format!("the model `{model}` stands in for itself")
        } else {
            format!("the model `{model}` stands in for itself, through `{through}`")
        };
        Self::new("E0211", at, what)
            .note("each model of a chain is asked once, so the circle says nothing")
            .help("leave out the name that leads back")
    }
}
