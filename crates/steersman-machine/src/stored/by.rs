//! People and programs that act on a session from outside, and the deciders of holds and questions. **Stored**: enums grow at
//! their end.

use super::bounds;
use super::ids::Name;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Role of a person or program that names no role.
pub const USER: &str = "user";

/// A person or program that acts from outside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct By {
    /// Role under which it acts: [`USER`] or the name of a declared person.
    pub role: Name,
    /// Identity that an authenticating front end checked, at most [`bounds::NAME`] bytes. `None` means that nobody checked it,
    /// for example at a terminal. Models never see it.
    pub who: Option<Name>,
}

impl By {
    /// The user, with whom the conversation is held.
    pub fn user() -> Self {
        Self::default()
    }

    /// A person in this role.
    pub fn role(role: &str) -> Self {
        role.into()
    }

    /// The same role under an identity that was checked.
    #[must_use]
    pub fn known_as(self, who: &str) -> Self {
        let who = Some(bounds::name(who));
        Self { who, ..self }
    }

    /// Returns the role, for texts that name a speaker. `None` for the user, who needs no name.
    pub fn named(&self) -> Option<&Name> {
        Some(&self.role).filter(|role| ***role != *USER)
    }

    /// Returns the person or program, for texts that name one. `None` for an anonymous user.
    pub fn shown(&self) -> Option<&Self> {
        Some(self).filter(|by| by.named().is_some() || by.who.is_some())
    }
}

impl Default for By {
    fn default() -> Self {
        USER.into()
    }
}

impl From<&str> for By {
    fn from(role: &str) -> Self {
        Self {
            role: bounds::name(role),
            who: None,
        }
    }
}

impl From<Name> for By {
    fn from(role: Name) -> Self {
        if role.len() > bounds::NAME {
            return Self::from(&*role);
        }
        Self { role, who: None }
    }
}

/// Converts the role of a speaker. `None` means the user.
impl From<Option<Name>> for By {
    fn from(role: Option<Name>) -> Self {
        role.map_or_else(Self::default, Self::from)
    }
}

/// The role, with the identity in parentheses if it is known: `approver (ann@example.org)`.
impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.role)?;
        match &self.who {
            Some(who) => write!(f, " ({who})"),
            None => Ok(()),
        }
    }
}

/// The decider of a hold or a question: the party that ended the hold or gave the result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Decider {
    /// A person or program outside.
    Person(By),
    /// The definition or the engine's own rules.
    Rule,
    /// The time of the hold or question ran out.
    Timeout,
    /// The probe of a tool.
    Probe,
    /// The place of a model: it answers again.
    Place,
    /// An event that a tool waited for, by its id.
    Event(Name),
}

impl Decider {
    /// Returns the person who decided, if a person did.
    pub fn person(&self) -> Option<&By> {
        match self {
            Self::Person(by) => Some(by),
            _ => None,
        }
    }

    /// Returns the role of the person, or the word for what decided: `rule`, `timeout`, `probe`, `place`, `event`.
    pub fn word(&self) -> &str {
        match self {
            Self::Person(by) => &by.role,
            Self::Rule => "rule",
            Self::Timeout => "timeout",
            Self::Probe => "probe",
            Self::Place => "place",
            Self::Event(_) => "event",
        }
    }
}

impl From<By> for Decider {
    fn from(by: By) -> Self {
        Self::Person(by)
    }
}

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person(by) => by.fmt(f),
            other => f.write_str(other.word()),
        }
    }
}
