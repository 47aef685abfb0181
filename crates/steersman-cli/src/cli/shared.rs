//! Arguments that several commands share.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use serde_json::Value as Json;
use std::io::IsTerminal;
use std::path::PathBuf;
use steersman_machine::network::LOCAL;

/// Returns the change of a definition that `--model NAME` asks for: a path and its value.
pub(crate) fn model_set(name: &str) -> (String, Json) {
    let path = match name {
        LOCAL => "models.default",
        _ => "models.default.model",
    };
    (path.to_owned(), name.into())
}

/// A session to look at, with a branch and a line.
#[derive(Debug, Args)]
pub(crate) struct Look {
    /// SESSION[:BRANCH][@LINE]: a unique prefix, `last`, or a label `vendor=Acme`; a line `12`, `-2`, or a tool's name.
    #[arg(default_value = "last")]
    pub(crate) address: String,
}

/// The option by which rows begin with their time.
#[derive(Copy, Clone, Debug, Args)]
pub(crate) struct Times {
    /// Begin each row with its time of day, and each day with its date [default: on a terminal of at least 80 columns].
    #[arg(long)]
    pub(crate) times: bool,
}

impl Times {
    /// Narrowest terminal on which times leave enough room.
    const ROOM: usize = 80;

    /// Returns true if rows begin with their time.
    pub(crate) fn are_shown(self) -> bool {
        let wide = || crate::words::width() >= Self::ROOM;
        self.times || (std::io::stdout().is_terminal() && wide())
    }
}

/// The sessions that are meant: one, or all that match.
#[derive(Clone, Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub(crate) struct Which {
    /// The session.
    #[arg(group = "which")]
    pub(crate) session: Option<String>,
    /// All that match: `status = waits and vendor = Acme and age > -7d`. Says first how many they are.
    #[arg(long = "where", value_name = "FILTER", group = "which")]
    pub(crate) filter: Option<String>,
    /// Do not ask.
    #[arg(long, conflicts_with = "session")]
    pub(crate) yes: bool,
}

/// The person who acts on a session, and the way in which the session is driven.
#[derive(Clone, Debug, Args)]
pub(crate) struct Acting {
    /// The role in which you act.
    #[arg(long = "as", value_name = "ROLE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) role: Option<String>,
    #[command(flatten)]
    pub(crate) own: Own,
}

/// Options for a session that no process owns: it is driven, unless `--no-run` is given.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Own {
    /// Only put it into the inbox; the next owner of the session takes it.
    #[arg(long)]
    pub(crate) no_run: bool,
    #[command(flatten)]
    pub(crate) drive: Drive,
}

/// Options for measuring sessions by the grades of a definition.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Grading {
    /// Measure by the `grades:` of the definition: pass rates, with their intervals. The exit code then says nothing else.
    #[arg(long)]
    pub(crate) grade: bool,
    /// Compare with this baseline. Exit code 8 if a grade is worse, or cannot be compared.
    #[arg(long, value_name = "FILE", requires = "grade")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write what was measured into this file, as a baseline for later. Overwrites it.
    #[arg(long, value_name = "FILE", requires = "grade")]
    pub(crate) save_baseline: Option<PathBuf>,
}

/// Options for driving a session.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Drive {
    /// Answers of models that the definition calls `scripted`, from a file. A session remembers the script that it begins with;
    /// for a session that has begun, this command alone takes it.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Answers of all models from a file, whatever the definition or the session says. Remembered as `--script` is.
    #[arg(long, value_name = "FILE", conflicts_with = "script")]
    pub(crate) script_all: Option<PathBuf>,
    /// When a line must be on disk: before what depends on it leaves the process, or before anything goes on.
    #[arg(long, value_name = "WHEN", default_value = "output")]
    pub(crate) durability: Durability,
    /// Take the time from this file (milliseconds since 1970, or RFC 3339), for tests.
    #[arg(long, value_name = "FILE")]
    pub(crate) clock: Option<PathBuf>,
    /// How long to stay while a model does not answer [default: 60s at a terminal, else 0s].
    #[arg(long, value_name = "DURATION", value_parser = crate::words::duration)]
    pub(crate) wait: Option<std::time::Duration>,
}

/// The moment at which a line must be on disk.
#[derive(Copy, Clone, Debug, Default, ValueEnum)]
pub(crate) enum Durability {
    /// Before what depends on it leaves the process.
    #[default]
    Output,
    /// Before anything goes on.
    Step,
}
