//! Arguments of `rerun`, `diff`, `test` and `export`.

use super::Drive;
use clap::Args;
use clap::builder::{NonEmptyStringValueParser, RangedU64ValueParser};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("sessions").required(true))]
pub(crate) struct Rerun {
    /// SESSION[:BRANCH][@LINE]: what came up to the line stays [default: everything again].
    #[arg(group = "sessions")]
    pub(crate) address: Option<String>,
    /// All sessions that match: `definition = invoice and updated > -7d`. Reruns are left out.
    #[arg(long = "where", value_name = "FILTER", group = "sessions", conflicts_with_all = ["say", "name"])]
    pub(crate) filter: Option<String>,
    /// Set a value of the definition: `models.default.model=gpt-5-nano`. May be given more than once.
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// Ask this model: short for `--set models.default.model=NAME`.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Another definition: a file, or a folder with a steersman.yaml.
    #[arg(long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// Say this at the line, before anything else happens there, in place of the next recorded message.
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
    /// So many times.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,
    /// Let effects touch the world that are not on record.
    #[arg(long, conflicts_with = "filter")]
    pub(crate) live: bool,
    /// Who answers for people: `recorded`, `stop`, or an agent of the definition for questions without a recorded answer.
    #[arg(long, value_name = "WHO", default_value = "recorded", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) people: String,
    /// Stop after each line: Enter goes to the next one, `c` goes on without stops, `q` leaves it paused, any other text is
    /// said there. Reads standard input, a terminal or not; its end is a `q`.
    #[arg(long, conflicts_with = "filter")]
    pub(crate) step: bool,
    /// A name for it: its label `rerun`.
    #[arg(long = "as", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: Option<String>,
    /// At most so many sessions, newest first.
    #[arg(long, value_name = "N", requires = "filter", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) limit: Option<usize>,
    /// Begin no more once this much was paid.
    #[arg(long, value_name = "AMOUNT", requires = "filter")]
    pub(crate) cost: Option<f64>,
    /// Write a report into this folder: a page for each session and a summary, as Markdown and JSON.
    /// Overwrites nothing.
    #[arg(long, value_name = "DIR", requires = "filter")]
    pub(crate) report: Option<PathBuf>,
    /// So many at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) parallel: u16,
    #[command(flatten)]
    pub(crate) drive: Drive,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// SESSION[:BRANCH].
    pub(crate) a: String,
    /// Another one, or another branch of it: SESSION[:BRANCH].
    pub(crate) b: String,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("exported").required(true))]
pub(crate) struct Export {
    /// The session.
    #[arg(group = "exported")]
    pub(crate) session: Option<String>,
    /// All sessions that match.
    #[arg(long = "where", value_name = "FILTER", group = "exported")]
    pub(crate) filter: Option<String>,
    /// Messages, calls, answers and rewards of each model call, one JSON object a line. Without it a session is one
    /// document: all that `show` and `log` tell.
    #[arg(long)]
    pub(crate) trajectories: bool,
    /// What a branch is worth: a value of its `outcome:` by name, or an expression over those names, `outcome`, `answer`,
    /// `state` and `calls`; a number or true or false [default: what a search judged it to be worth].
    #[arg(long, value_name = "EXPR", requires = "trajectories")]
    pub(crate) reward: Option<String>,
    /// Write the artifacts into this folder instead, every version, and `index.json`, which lists them with their ratings.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["trajectories", "out"])]
    pub(crate) artifacts: Option<PathBuf>,
    /// Write into this file. Overwrites nothing.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// A definition, or a folder with a steersman.yaml.
    #[arg(default_value = ".")]
    pub(crate) definition: PathBuf,
    /// Only tests whose name contains this.
    #[arg(long, short)]
    pub(crate) name: Option<String>,
    /// Run each test twice: what comes out otherwise the second time is a failure.
    #[arg(long)]
    pub(crate) replay: bool,
    /// Run commands and requests of class `pure` and `read` for real where a test gives no outcomes for them.
    #[arg(long)]
    pub(crate) real: bool,
    /// Write the results into this file, as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Make a test of this session instead, which holds; print it.
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["name", "replay", "real", "junit"])]
    pub(crate) record: Option<String>,
    /// Write the recorded test into this file: tests/NAME.yaml. Overwrites nothing.
    #[arg(long, value_name = "FILE", requires = "record")]
    pub(crate) out: Option<PathBuf>,
}
