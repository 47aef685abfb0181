//! Where expressions and templates stand, and what names mean there: collected while lowering, judged afterwards.

use super::source::{Node, Span};
use steersman_machine::expression::{Expr, Template};
use steersman_machine::ids::Name;
use steersman_machine::network::Type;

/// An expression or template with its place.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// What it is.
    pub code: Code,
    /// The scalar that it stands in.
    pub node: Node,
    /// What is made of it.
    pub wants: Wants,
    /// What names mean.
    pub scope: Scope,
}

/// What stands at a site.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    /// A bare expression.
    Expr(Expr),
    /// A template.
    Template(Template),
}

/// What is made of a site's value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wants {
    /// True or false; optionals must be narrowed.
    Condition,
    /// What a branch is worth: a number, true or false.
    Worth,
    /// Any value; unset is none.
    Value,
    /// A text; unset is nothing.
    Text,
    /// A part of the prompt in front of the history.
    Prefix,
    /// A value of this type, called so, declared there.
    Fits(Box<Type>, String, Span),
}

/// What names mean at a site, beside `state`, `config`, `calls`, `now`, `agent`, `mode`, `session` and `branch`, which
/// have a meaning everywhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The item that it belongs to, to be left alone where that is broken.
    pub item: Option<Span>,
    /// Whose state is looked at first.
    pub agent: Option<Name>,
    /// What `args` are.
    pub args: Args,
    /// `result`, whose shape nobody knows.
    pub result: bool,
    /// `error`.
    pub error: bool,
    /// Secrets and live values resolve.
    pub transport: bool,
    /// The event that `event` is.
    pub event: Option<Name>,
    /// `message`.
    pub message: bool,
    /// `route`.
    pub route: bool,
    /// `question` and `person`.
    pub reach: bool,
    /// `answer`.
    pub answer: bool,
    /// `outcome`.
    pub outcome: bool,
    /// Nothing but `request`.
    pub request: bool,
    /// Nothing but `config` and, in a transport field, `secrets`: it belongs to no session.
    pub outside: bool,
}

/// What `args` are at a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Args {
    /// Without a meaning.
    #[default]
    None,
    /// A tool's.
    Tool(Name),
    /// An agent's.
    Agent(Name),
    /// Those of the routed agent that leads to this plain agent, which has no instance of its own.
    Router(Name),
}

impl Scope {
    /// The same with `result`.
    pub(crate) fn with_result(&self) -> Self {
        Self {
            result: true,
            ..self.clone()
        }
    }
    /// The same with `message` and `before`.
    pub(crate) fn with_message(&self) -> Self {
        Self {
            message: true,
            ..self.clone()
        }
    }
    /// The same with `error`.
    pub(crate) fn with_error(&self) -> Self {
        Self {
            result: true,
            error: true,
            ..self.clone()
        }
    }
    /// The same as a transport field.
    pub(crate) fn transported(&self) -> Self {
        Self {
            transport: true,
            ..self.clone()
        }
    }
}
