//! Sites of expressions and templates with the names in scope. They are collected while lowering and checked afterwards.

use super::source::{Node, Span};
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::{Expr, Template};
use steersman_machine::values::types::Type;

/// An expression or template with its place.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The parsed code.
    pub code: Code,
    /// The scalar that holds the text.
    pub node: Node,
    /// The use of the value.
    pub wants: Wants,
    /// The names in scope.
    pub scope: Scope,
}

/// Parsed code of a site.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    /// A bare expression.
    Expr(Expr),
    /// A parsed template.
    Template(Template),
}

/// The use of a site's value, which decides the checks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wants {
    /// True or false; optionals must be narrowed.
    Condition,
    /// A branch's score: a number, true or false.
    Worth,
    /// Any value; an unset one is none.
    Value,
    /// The argument of this name that a definition fixes for a callee. True if the callee needs it.
    Fixed(Name, Name, bool),
    /// A text; an unset value becomes the empty text.
    Text,
    /// A part of the prompt that precedes the history.
    Prefix,
    /// A text of the history.
    History,
    /// A value of this type; also its name for messages, and the place of its declaration.
    Fits(Box<Type>, String, Span),
}

/// Names in scope at a site, in addition to `state`, `config`, `calls`, `now`, `agent`, `mode`, `session` and `branch`, which
/// are in scope everywhere unless `request`, `schedule` or `outside` is set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// Span of the enclosing item. If a key in it is wrong, the site is not checked.
    pub item: Option<Span>,
    /// The agent whose own state entries are looked up first.
    pub agent: Option<Name>,
    /// The meaning of `args`.
    pub args: Args,
    /// `result` is in scope; its type is unknown.
    pub result: bool,
    /// `error` is in scope.
    pub error: bool,
    /// `tool` is in scope.
    pub called: bool,
    /// `save` is in scope.
    pub save: bool,
    /// The site is a transport field: secrets and live config values resolve.
    pub transport: bool,
    /// `event` is in scope and has the fields of this event.
    pub event: Option<Name>,
    /// Only `schedule` is in scope, because the session has not begun.
    pub schedule: bool,
    /// `message` is in scope, and `before` outside routes.
    pub message: bool,
    /// `route` is in scope.
    pub route: bool,
    /// `question` and `person` are in scope.
    pub reach: bool,
    /// `answer` and `artifacts` are in scope.
    pub answer: bool,
    /// `outcome` is in scope.
    pub outcome: bool,
    /// Only `request` is in scope.
    pub request: bool,
    /// Only `config` and, in a transport field, `secrets` are in scope, because the site belongs to no session.
    pub outside: bool,
}

/// The meaning of `args` at a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Args {
    /// `args` is not in scope.
    #[default]
    None,
    /// The arguments of this tool.
    Tool(Name),
    /// The arguments of this agent.
    Agent(Name),
    /// The arguments of the routed agent that leads to this plain agent, which has no instance of its own.
    Router(Name),
}

impl Scope {
    /// Returns this scope with `result`.
    pub(crate) fn with_result(&self) -> Self {
        Self {
            result: true,
            ..self.clone()
        }
    }
    /// Returns this scope with `message` and `before`.
    pub(crate) fn with_message(&self) -> Self {
        Self {
            message: true,
            ..self.clone()
        }
    }
    /// Returns this scope with `result` and `error`.
    pub(crate) fn with_error(&self) -> Self {
        Self {
            result: true,
            error: true,
            ..self.clone()
        }
    }
    /// Returns this scope for a transport field.
    pub(crate) fn transported(&self) -> Self {
        Self {
            transport: true,
            ..self.clone()
        }
    }
}
