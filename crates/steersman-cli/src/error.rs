//! Exit codes of commands, and errors with hints for people.

use std::fmt;
use steersman::runtime::bind::BindError;
use steersman::runtime::engine::EngineError;
use steersman::runtime::store::StoreError;
use steersman::views::filter::{FilterError, SelectError};

/// Exit codes. They are stable, because scripts rely on them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The session answered, or there is nothing to report.
    Answered = 0,
    /// The session failed, or something outside that it needs is missing.
    Failed = 1,
    /// The command was used wrongly.
    Usage = 2,
    /// The definition has errors.
    Definition = 3,
    /// The store or the binding refused the operation.
    Store = 4,
    /// The session waits for a person, an event, a time, or a model that does not answer.
    Waits = 5,
    /// A limit was reached.
    Limit = 6,
    /// An effect is in doubt.
    Doubt = 7,
    /// A test failed, or `diff` or `rerun` found a different result.
    Differs = 8,
    /// Interrupted; the session can be resumed.
    Interrupted = 130,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// The exit code of the process.
    pub(crate) exit: Exit,
    /// The error; lower case, no full stop. Empty if everything was printed already.
    pub(crate) message: String,
    /// Advice on what to do.
    pub(crate) hints: Vec<String>,
}

impl CommandError {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hints: Vec::new(),
        }
    }
    /// Makes the error for wrong use; nothing was done.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }
    /// Makes the error for an operation that the store or the binding refused.
    pub(crate) fn store(message: impl Into<String>) -> Self {
        Self::new(Exit::Store, message)
    }
    /// Adds advice on what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
    /// Makes the error that ends the command silently: the reader of standard output is gone.
    pub(crate) fn reader_gone() -> Self {
        Self::new(Exit::Answered, "")
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self::reader_gone()
        } else {
            Self::usage(error.to_string())
        }
    }
}

impl From<steersman::Error> for CommandError {
    fn from(error: steersman::Error) -> Self {
        match error {
            steersman::Error::Definition(error) => Self::new(Exit::Definition, error.to_string()),
            steersman::Error::Read { .. } => Self::usage(error.to_string()),
            steersman::Error::Store(error) => error.into(),
            steersman::Error::Engine(error) => error.into(),
            steersman::Error::Refused(why) => Self::usage(why),
            steersman::Error::Key(_) => Self::store(error.to_string()),
        }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::of_store(&error)
    }
}

impl From<FilterError> for CommandError {
    fn from(error: FilterError) -> Self {
        let usage = Self::usage(error.what);
        match error.help {
            Some(help) => usage.hint(help),
            None => usage,
        }
    }
}

impl From<SelectError> for CommandError {
    fn from(error: SelectError) -> Self {
        match error {
            SelectError::Filter(error) => error.into(),
            SelectError::Engine(error) => error.into(),
        }
    }
}

impl From<EngineError> for CommandError {
    fn from(error: EngineError) -> Self {
        Self::of_engine(&error)
    }
}

impl CommandError {
    fn of_store(error: &StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::NoSession(_) => {
                Self::usage(message).hint("`steersman sessions` lists those that there are")
            }
            StoreError::Moved { session, to } => Self::usage(message).hint(format!(
                "look for it there: steersman show {session} --store {to}"
            )),
            StoreError::Owned { session, .. } => Self::store(message).hint(format!(
                "it goes on there; to follow it: steersman log {session} -f"
            )),
            StoreError::Newer { .. } => {
                Self::store(message).hint("use the version of steersman that wrote it")
            }
            StoreError::Corrupt { .. } => {
                Self::store(message).hint("keep a copy of the file as it is before anything else")
            }
            StoreError::Unaccepted { .. } => Self::store(message)
                .hint("keep a copy of its files as they are; what it holds can be looked at: steersman fsck")
                .hint("once you know what happened meanwhile: steersman doctor --accept-store"),
            StoreError::Io { .. } => {
                Self::store(message).hint("name another place: --store FILE or STEERSMAN_STORE")
            }
            StoreError::TooLarge { .. } => Self::usage(format!("{message}; nothing was written"))
                .hint("put it into a file, and let a tool read the parts that matter"),
            StoreError::BadId { .. } | StoreError::Unsealed(_) => Self::usage(message),
            StoreError::Full { .. } => {
                Self::store(message).hint("to have them taken: steersman run --all")
            }
            StoreError::Repeated(_) => {
                Self::usage(message).hint("what says something else needs an id of its own")
            }
            StoreError::Conflict(_) | StoreError::Fenced { .. } | StoreError::Order { .. } => {
                Self::store(message)
            }
        }
    }

    fn of_engine(error: &EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::Store(error) => Self::of_store(error),
            EngineError::Bind(BindError::NoTool(_)) => {
                Self::store(message).hint("run it from the program that registers this tool")
            }
            EngineError::Bind(
                BindError::NoNet(_)
                | BindError::NetVersion { .. }
                | BindError::NoRouter { .. }
                | BindError::NoHook { .. },
            ) => Self::store(message).hint("run it from the program that registers it"),
            // A script was given, so it is the cause.
            EngineError::Bind(BindError::Model(error)) if error.message.contains("script") => {
                Self::usage(message)
            }
            EngineError::Bind(BindError::Model(_)) => {
                Self::usage(message).hint("offline: --script-all FILE")
            }
            EngineError::Bind(BindError::NoPrice { .. }) => {
                Self::usage(message).hint("why, and what to write: steersman explain E0406")
            }
            EngineError::Bind(
                BindError::Missing { .. }
                | BindError::Misfit { .. }
                | BindError::Undeclared(_)
                | BindError::Live { .. },
            )
            | EngineError::Refused(_) => Self::usage(message),
            // The message has the command to type.
            EngineError::Bind(BindError::Server { why, .. }) if why.contains(" login ") => {
                Self::new(Exit::Failed, message)
            }
            EngineError::Bind(BindError::Server { .. }) => Self::new(Exit::Failed, message).hint(
                "start its command by itself, in the folder of the definition, to see what it prints; a server that is slow to start needs `start_timeout`",
            ),
            EngineError::Bind(BindError::Tools(_)) => Self::new(Exit::Definition, message)
                .hint("what its servers offer now: steersman check --servers"),
            EngineError::Inbox(_) | EngineError::Definition { .. } | EngineError::Broken { .. } => {
                Self::store(message)
            }
            EngineError::Gone(why) => match &**why {
                // This error came from inside a driven session, so the command was not used wrongly.
                EngineError::Store(StoreError::TooLarge { .. }) => Self::store(why.to_string()),
                why => Self::of_engine(why),
            },
            EngineError::Stopped => Self::new(Exit::Interrupted, message),
        }
    }
}

/// Removes the global options from a usage error. clap lists those that were given or set in the environment as if they
/// were required.
pub(crate) fn without_globals(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else {
        return error;
    };
    let told = usage.to_string();
    let globals = [
        " --store <FILE>",
        " --server <URL>",
        " --color <WHEN>",
        " --json",
        " --quiet",
    ];
    let fixed = globals
        .iter()
        .fold(told.clone(), |told, global| told.replace(global, ""));
    if fixed != told {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(fixed.into()));
    }
    error
}
